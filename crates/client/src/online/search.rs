//! Searches for a match.

use super::account::{Account, AccountError, Pending, Question, Waiting};
use super::error::OnlineError;
use super::filter::{Filter, Properties, Property};
use super::lists::escaped;
use super::lobby::LobbyRoom;
use super::news::{News, NewsEvent};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// What is searched for, from [`Account::find_match`].
#[derive(Clone, Debug)]
#[must_use = "start() begins the search"]
pub struct MatchSearch {
    account: Account,
    input: Map<String, Value>,
    properties: Properties,
    filter: Filter,
}

/// What happens in a search.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SearchEvent {
    /// It waits, perhaps again: others were found, and it came to nothing.
    Waiting,
    /// A match was found, and must be confirmed in this time: [`Search::accept`] or [`Search::decline`].
    Confirm(Duration),
    /// A match was found, and this player is to open its room in this time, and to say its code with
    /// [`Search::opened`].
    Open(Duration),
    /// A match was found, and its room is open.
    Found(MatchFound),
    /// The server has refused a request.
    Refused(OnlineError),
    /// The search is over. No more events come.
    Ended(SearchEnded),
}

/// Why a search is over.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SearchEnded {
    /// A match was found: [`SearchEvent::Found`] came before.
    Found,
    /// The player, or a member of its party, has left it.
    Left,
    /// A player of the party has no connection.
    Gone,
    /// It took too long.
    Expired,
    /// It was not confirmed.
    Declined,
    /// The members of the party have changed.
    PartyChanged,
    /// Another search of the player has found a match.
    FoundElsewhere,
    /// The queue is no longer there.
    QueueGone,
    /// It did not begin.
    Failed(AccountError),
}

/// A match that was found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MatchFound {
    /// Its room.
    pub room: LobbyRoom,
    /// Its players in teams; all in one if the queue has none.
    pub teams: Vec<Vec<MatchPlayer>>,
    /// Whether it runs already: then `teams` has only those who searched together.
    pub backfill: bool,
}

/// A player of a match that was found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MatchPlayer {
    /// Its account.
    pub account: String,
    /// Its name.
    pub name: String,
    /// Its points on the queue's ladder.
    pub points: i64,
}

/// A queue of the game.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct QueueInfo {
    /// Its name.
    #[serde(rename = "queue")]
    pub name: String,
    /// Its title.
    pub title: String,
    /// Players who wait.
    pub waiting: usize,
    /// The median wait of the last searches that have found a match, in milliseconds; `None` for too few.
    #[serde(default)]
    pub wait_ms: Option<u64>,
}

/// A search that runs. No call blocks: call [`poll`](Self::poll) in each frame. It outlives a lost connection and a
/// server that starts anew: then it begins again. Dropping it closes its connection, and the search ends soon after.
pub struct Search {
    account: Account,
    news: News,
    input: Value,
    ticket: Option<String>,
    state: &'static str,
    asked: Waiting<Stands>,
    events: VecDeque<SearchEvent>,
    is_over: bool,
}

#[derive(Deserialize)]
struct Stands {
    ticket: String,
    #[serde(flatten)]
    view: View,
}

#[derive(Deserialize)]
struct View {
    state: String,
    #[serde(default)]
    left_ms: u64,
    #[serde(default)]
    confirmed: bool,
    #[serde(default)]
    opens: bool,
    found: Option<MatchFound>,
    why: Option<String>,
}

#[derive(Deserialize)]
struct Queues {
    queues: Vec<QueueInfo>,
}

impl Account {
    /// A search in a queue. On a server for development any name is a queue.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let account = parlor::online::sign_in("play.example.com").account("tanks")?;
    /// use parlor::online::SearchEvent;
    /// let mut search = account.find_match("duel").set("mode", "ranked").start();
    /// // In each frame:
    /// while let Some(event) = search.poll() {
    ///     match event {
    ///         // Open a room, and say its code once it is there: `search.opened(&code)`.
    ///         SearchEvent::Open(_) => {}
    ///         SearchEvent::Found(found) => println!("join {}", found.room.code),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn find_match(&self, queue: &str) -> MatchSearch {
        let input = [("queue".to_owned(), queue.into())].into_iter().collect();
        MatchSearch { account: self.clone(), input, properties: Properties::new(), filter: Filter::new() }
    }

    /// Lists the queues of the game.
    pub fn queues(&self) -> Pending<Vec<QueueInfo>> {
        let question = Question::Get("/matchmaking/queues".to_owned());
        self.work(|shared| async move { Ok(shared.ask_own::<Queues>(question).await?.queues) })
    }
}

impl MatchSearch {
    /// Sets a property of the player, which others' filters see.
    pub fn set(mut self, name: &str, value: impl Into<Property>) -> Self {
        self.properties.insert(name.to_owned(), value.into());
        self
    }

    /// Sets what the others' properties must be.
    pub fn filter(self, filter: Filter) -> Self {
        MatchSearch { filter, ..self }
    }

    /// Sets how many players the match may have, within what the queue says.
    pub fn players(mut self, min: u16, max: u16) -> Self {
        self.input.insert("players".to_owned(), json!({ "min": min, "max": max }));
        self
    }

    /// Searches for all members of the player's party, given by its id: for its owner.
    pub fn party(mut self, party: &str) -> Self {
        self.input.insert("party".to_owned(), party.into());
        self
    }

    /// Begins the search.
    pub fn start(self) -> Search {
        let MatchSearch { account, mut input, properties, filter } = self;
        input.insert("properties".to_owned(), json!(properties));
        if let Some(filter) = filter.to_json() {
            input.insert("filter".to_owned(), filter);
        }
        Search::new(&account, input.into(), None)
    }
}

impl Search {
    fn new(account: &Account, input: Value, ticket: Option<String>) -> Self {
        Search {
            account: account.clone(),
            news: account.news(),
            input,
            ticket,
            state: "",
            asked: Waiting::default(),
            events: VecDeque::new(),
            is_over: false,
        }
    }

    /// Returns the next event, if there is one.
    pub fn poll(&mut self) -> Option<SearchEvent> {
        if !self.is_over {
            self.work();
        }
        self.events.pop_front()
    }

    /// Takes the match that was found.
    pub fn accept(&mut self) {
        self.post("/confirm", json!({ "accept": true }));
    }

    /// Does not take it. The search ends.
    pub fn decline(&mut self) {
        self.post("/confirm", json!({ "accept": false }));
    }

    /// Says the code of the room that the player has opened, and in which it sits.
    pub fn opened(&mut self, code: &str) {
        self.post("/opened", json!({ "code": code }));
    }

    /// Searches on after [`SearchEvent::Found`], because the player could not get into the room: with its age.
    #[must_use]
    pub fn again(self) -> Search {
        let Some(ticket) = self.ticket else { return Search::new(&self.account, self.input, None) };
        let mut search = Search::new(&self.account, self.input, Some(ticket));
        search.state = "found";
        search.post("/again", json!({}));
        search
    }

    /// Ends the search.
    pub fn leave(&mut self) {
        match &self.ticket {
            Some(_) => self.post("/leave", json!({})),
            None => self.end(SearchEnded::Left),
        }
    }

    fn path(&self) -> Option<String> {
        self.ticket.as_ref().map(|ticket| format!("/matchmaking/{}", escaped(ticket)))
    }

    fn post(&mut self, below: &str, input: Value) {
        if let Some(path) = self.path() {
            self.asked.push(self.account.ask(Question::Post(format!("{path}{below}"), input)));
        }
    }

    fn work(&mut self) {
        while let Some(event) = self.news.poll() {
            match event {
                NewsEvent::Connected => {
                    let question = match self.path() {
                        Some(path) => Question::Get(path),
                        None => Question::Post("/matchmaking".to_owned(), self.input.clone()),
                    };
                    self.asked.push(self.account.ask(question));
                }
                NewsEvent::Other { topic, news } => {
                    let is_own =
                        self.ticket.as_ref().is_some_and(|ticket| topic == format!("search/{ticket}"));
                    let view = news.get("search").map(View::deserialize);
                    if let (true, Some(Ok(view))) = (is_own, view) {
                        self.take(view);
                    }
                }
                NewsEvent::Closed(why) => return self.end(SearchEnded::Failed(why)),
                _ => {}
            }
        }
        for answer in self.asked.poll() {
            match answer {
                Ok(Stands { ticket, view }) => {
                    self.ticket = Some(ticket);
                    self.take(view);
                }
                Err(error) => self.refused(error),
            }
        }
    }

    fn refused(&mut self, error: AccountError) {
        match error {
            // The server was started anew: its searches are in memory.
            AccountError::Refused(error) if error.code == "no_such_ticket" => {
                self.ticket = None;
                self.state = "";
                let question = Question::Post("/matchmaking".to_owned(), self.input.clone());
                self.asked.push(self.account.ask(question));
            }
            AccountError::Refused(error) if self.ticket.is_some() => {
                self.events.push_back(SearchEvent::Refused(error));
            }
            // It is asked again when the connection is back.
            error if self.ticket.is_some() || error.may_pass() => {}
            error => self.end(SearchEnded::Failed(error)),
        }
    }

    fn take(&mut self, View { state, left_ms, confirmed, opens, found, why }: View) {
        let left = Duration::from_millis(left_ms);
        let (state, event) = match state.as_str() {
            "waiting" => ("waiting", Some(SearchEvent::Waiting)),
            "confirm" if confirmed => ("confirmed", None),
            "confirm" => ("confirm", Some(SearchEvent::Confirm(left))),
            "opening" if opens => ("open", Some(SearchEvent::Open(left))),
            "opening" => ("opening", None),
            "found" => ("found", found.map(SearchEvent::Found)),
            "ended" => {
                let why = match why.as_deref() {
                    Some("left") => SearchEnded::Left,
                    Some("gone") => SearchEnded::Gone,
                    Some("declined") => SearchEnded::Declined,
                    Some("party_changed") => SearchEnded::PartyChanged,
                    Some("found_elsewhere") => SearchEnded::FoundElsewhere,
                    Some("queue_gone") => SearchEnded::QueueGone,
                    _ => SearchEnded::Expired,
                };
                return self.end(why);
            }
            _ => return,
        };
        // The same state may arrive as an answer and as news: one event for both.
        if self.state == state || self.is_over {
            return;
        }
        self.state = state;
        self.events.extend(event);
        if state == "found" {
            self.end(SearchEnded::Found);
        }
    }

    fn end(&mut self, why: SearchEnded) {
        if !self.is_over {
            self.is_over = true;
            self.events.push_back(SearchEvent::Ended(why));
        }
    }
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Search")
            .field("ticket", &self.ticket)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
