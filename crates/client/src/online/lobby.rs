//! Lobbies and parties: players who gather before they go into a room together.

mod asked;

pub use asked::{LobbySearch, NewLobby};

use super::account::{Account, AccountError, Pending, Question, Waiting};
use super::error::OnlineError;
use super::filter::{Properties, Property};
use super::lists::escaped;
use super::news::{News, NewsEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Maximum number of requests whose answers are awaited.
const WAITING_MAX: usize = 64;

/// Who may join a lobby without an invitation or its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LobbyAccess {
    /// Anybody.
    Public,
    /// Friends of its owner.
    Friends,
    /// Nobody.
    Private,
}

/// A lobby, as the player sees it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LobbyView {
    /// Its id.
    pub id: String,
    /// Whether it is a party.
    #[serde(rename = "kind", deserialize_with = "is_party")]
    pub is_party: bool,
    /// Who may join.
    pub access: LobbyAccess,
    /// Whether nobody may join but who is invited.
    pub locked: bool,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub bucket: String,
    /// The account of its owner.
    pub owner: String,
    /// Seats.
    pub max: u16,
    /// How many members it has.
    pub size: usize,
    /// How many of them are ready.
    pub ready: usize,
    /// Grows with each change.
    pub version: u64,
    /// What it says of itself.
    pub properties: Properties,
    /// How many friends of the player sit there, in what a search finds.
    #[serde(default)]
    pub friends: usize,
    /// The code by which players join; for members.
    #[serde(default)]
    pub code: Option<String>,
    /// In the order of joining; for members.
    #[serde(default)]
    pub members: Vec<LobbyMember>,
    /// Accounts that are invited; for members.
    #[serde(default)]
    pub invited: Vec<String>,
    /// Where it goes on; for members.
    #[serde(default)]
    pub room: Option<LobbyRoom>,
}

/// A member of a lobby.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LobbyMember {
    /// Its account.
    pub account: String,
    /// Its name.
    pub name: String,
    /// Whether it has a connection; otherwise its seat is kept for a short time.
    pub here: bool,
    /// What it says of itself.
    pub properties: Properties,
}

/// The room in which a lobby goes on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LobbyRoom {
    /// `player_hosted`, `dedicated`, `match` or `turn`.
    pub kind: String,
    /// Its code: for [`Room::join`](crate::Room::join), or for a turn room
    /// [`SignIn::join`](super::SignIn::join).
    pub code: String,
}

/// The lobbies of a player.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct MyLobbies {
    /// Those in which it is.
    pub lobbies: Vec<LobbyView>,
    /// Those to which it is invited.
    pub invitations: Vec<LobbyView>,
}

/// What happens in a lobby.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LobbyEvent {
    /// The player is in it: [`Lobby::view`] has all of it.
    Here,
    /// Something of it has changed.
    Changed,
    /// A member has joined.
    MemberJoined(LobbyMember),
    /// The member with this account is gone.
    MemberLeft(String),
    /// It has another owner.
    OwnerChanged {
        /// Whether it is this player.
        is_me: bool,
    },
    /// A member says something.
    Said {
        /// Counts what is said; a gap shows what was missed.
        n: u64,
        /// The member's account.
        from: String,
        /// What kind of thing.
        kind: String,
        /// What it says.
        body: Value,
    },
    /// The lobby goes on in this room.
    Room(LobbyRoom),
    /// The server has refused a request.
    Refused(OnlineError),
    /// The lobby is over for this player. No more events come.
    Closed(LobbyClosed),
}

/// Why a lobby is over.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LobbyClosed {
    /// The player has left it.
    Left,
    /// The player was kicked.
    Kicked,
    /// The player had no connection for too long.
    TimedOut,
    /// It was ended, or the server was started anew: lobbies are in memory.
    Ended,
    /// The player did not come in.
    Failed(AccountError),
}

/// A lobby or a party in which the player is. No call blocks: call [`poll`](Self::poll) in each frame. Dropping it
/// closes its connection; the player then loses its seat after a short time, at once by [`leave`](Self::leave).
pub struct Lobby {
    account: Account,
    news: News,
    /// How to come in.
    entry: Option<Question>,
    asked: Waiting<One>,
    leaving: Option<Pending<()>>,
    view: Option<LobbyView>,
    events: VecDeque<LobbyEvent>,
    is_over: bool,
}

#[derive(Deserialize)]
struct One {
    lobby: LobbyView,
}

#[derive(Deserialize)]
struct Found {
    lobbies: Vec<LobbyView>,
}

#[derive(Deserialize)]
struct Said {
    n: u64,
    from: String,
    #[serde(rename = "type")]
    kind: String,
    body: Value,
}

impl Account {
    /// Opens a lobby or a party.
    pub fn create_lobby(&self, lobby: NewLobby) -> Lobby {
        Lobby::new(self, Question::Post("/lobbies".to_owned(), json!(lobby)))
    }

    /// Joins the lobby with this id.
    pub fn join_lobby(&self, id: &str) -> Lobby {
        Lobby::new(self, Question::Post("/lobbies/join".to_owned(), json!({ "lobby": id })))
    }

    /// Joins the lobby with this code.
    pub fn join_lobby_by_code(&self, code: &str) -> Lobby {
        Lobby::new(self, Question::Post("/lobbies/join".to_owned(), json!({ "code": code })))
    }

    /// Searches lobbies that the player may join.
    pub fn find_lobbies(&self, search: &LobbySearch) -> Pending<Vec<LobbyView>> {
        let question = Question::Post("/lobbies/find".to_owned(), search.input());
        self.work(|shared| async move { Ok(shared.ask_own::<Found>(question).await?.lobbies) })
    }

    /// Lists the lobbies in which the player is, and those to which it is invited.
    pub fn my_lobbies(&self) -> Pending<MyLobbies> {
        self.ask(Question::Get("/lobbies/mine".to_owned()))
    }

    /// Declines an invitation.
    pub fn decline_lobby(&self, id: &str) -> Pending<()> {
        let question = Question::Post(format!("/lobbies/{}/decline", escaped(id)), json!({}));
        self.ask_done(question)
    }
}

impl Lobby {
    fn new(account: &Account, entry: Question) -> Self {
        Lobby {
            account: account.clone(),
            news: account.news(),
            entry: Some(entry),
            asked: Waiting::default(),
            leaving: None,
            view: None,
            events: VecDeque::new(),
            is_over: false,
        }
    }

    /// Returns the next event, if there is one.
    pub fn poll(&mut self) -> Option<LobbyEvent> {
        if !self.is_over {
            self.work();
        }
        self.events.pop_front()
    }

    /// The lobby; `None` before [`LobbyEvent::Here`].
    pub fn view(&self) -> Option<&LobbyView> {
        self.view.as_ref()
    }

    /// This player's account; `None` until it is connected.
    pub fn me(&self) -> Option<&str> {
        self.news.me()
    }

    /// Whether this player is the owner.
    pub fn is_owner(&self) -> bool {
        self.view.as_ref().is_some_and(|view| Some(view.owner.as_str()) == self.me())
    }

    /// Sets a property of the lobby, for its owner.
    pub fn set(&mut self, name: &str, value: impl Into<Property>) {
        self.change(json!({ "properties": { name: value.into() } }));
    }

    /// Removes a property of the lobby, for its owner.
    pub fn unset(&mut self, name: &str) {
        self.change(json!({ "properties": { name: null } }));
    }

    /// Locks the lobby, or opens it again, for its owner.
    pub fn set_locked(&mut self, is_locked: bool) {
        self.change(json!({ "locked": is_locked }));
    }

    /// Says who may join, for its owner.
    pub fn set_access(&mut self, access: LobbyAccess) {
        self.change(json!({ "access": access }));
    }

    /// Sets a property of this player. The server counts those with `ready`.
    pub fn set_mine(&mut self, name: &str, value: impl Into<Property>) {
        let mut properties = BTreeMap::new();
        properties.insert(name.to_owned(), Some(value.into()));
        self.ask_by(|path| Question::Patch(format!("{path}/me"), json!({ "properties": properties })));
    }

    /// Invites a friend.
    pub fn invite(&mut self, account: &str) {
        self.post("/invite", json!({ "account": account }));
    }

    /// Kicks a member for good, for the owner.
    pub fn kick(&mut self, account: &str) {
        self.post("/kick", json!({ "account": account }));
    }

    /// Makes another member the owner, for the owner.
    pub fn give_to(&mut self, account: &str) {
        self.post("/promote", json!({ "account": account }));
    }

    /// Says something to all members: up to 1 KiB.
    pub fn say(&mut self, kind: &str, body: Map<String, Value>) -> Option<Pending<u64>> {
        #[derive(Deserialize)]
        struct Number {
            n: u64,
        }
        let path = format!("{}/messages", self.path()?);
        let question = Question::Post(path, json!({ "type": kind, "body": body }));
        Some(self.account.work(|shared| async move { Ok(shared.ask_own::<Number>(question).await?.n) }))
    }

    /// Says in which room all go on, for the owner, who sits in it; `None` takes it back.
    pub fn go_on_in(&mut self, code: Option<&str>) {
        let input = code.map_or_else(|| json!({}), |code| json!({ "code": code }));
        self.post("/room", input);
    }

    /// Leaves the lobby. [`LobbyEvent::Closed`] comes when it is done.
    pub fn leave(&mut self) {
        match self.path() {
            Some(path) => {
                let question = Question::Post(format!("{path}/leave"), json!({}));
                self.leaving = Some(self.account.ask(question));
            }
            None => self.close(LobbyClosed::Left),
        }
    }

    fn path(&self) -> Option<String> {
        self.view.as_ref().map(|view| format!("/lobbies/{}", escaped(&view.id)))
    }

    fn change(&mut self, input: Value) {
        self.ask_by(|path| Question::Patch(path, input));
    }

    fn post(&mut self, below: &str, input: Value) {
        self.ask_by(|path| Question::Post(format!("{path}{below}"), input));
    }

    /// Asks for something in the lobby. Before it is there, and beyond so many requests, nothing is asked.
    fn ask_by(&mut self, question: impl FnOnce(String) -> Question) {
        let Some(path) = self.path().filter(|_| self.asked.len() < WAITING_MAX) else { return };
        self.asked.push(self.account.ask(question(path)));
    }

    fn work(&mut self) {
        while let Some(event) = self.news.poll() {
            match event {
                NewsEvent::Connected => {
                    // The first time it comes in; then it reads what it has missed.
                    let question = self.entry.take().or_else(|| self.path().map(Question::Get));
                    if let Some(question) = question {
                        self.asked.push(self.account.ask(question));
                    }
                }
                NewsEvent::Other { topic, news } => self.hear(&topic, news),
                NewsEvent::Closed(why) => return self.close(LobbyClosed::Failed(why)),
                _ => {}
            }
        }
        for answer in self.asked.poll() {
            match answer {
                Ok(One { lobby }) => self.take(lobby),
                Err(error) => self.refused(error),
            }
        }
        if let Some(left) = self.leaving.as_mut().and_then(Pending::poll) {
            self.leaving = None;
            match left {
                Ok(()) => self.close(LobbyClosed::Left),
                Err(error) => self.refused(error),
            }
        }
    }

    fn refused(&mut self, error: AccountError) {
        match error {
            AccountError::Refused(error) if self.view.is_some() && error.code == "no_such_lobby" => {
                self.close(LobbyClosed::Ended);
            }
            AccountError::Refused(error) if self.view.is_some() => {
                self.events.push_back(LobbyEvent::Refused(error));
            }
            error if self.view.is_none() => self.close(LobbyClosed::Failed(error)),
            // The connection was lost: it is read again when it is back.
            _ => {}
        }
    }

    fn hear(&mut self, topic: &str, news: Value) {
        let Some(id) = self.view.as_ref().map(|view| view.id.as_str()) else { return };
        let Some(below) = topic.strip_prefix("lobby/").and_then(|rest| rest.strip_prefix(id)) else { return };
        if below == "/said" {
            if let Ok(Said { n, from, kind, body }) = Said::deserialize(news) {
                self.events.push_back(LobbyEvent::Said { n, from, kind, body });
            }
        } else if let Some(gone) = news.get("gone").and_then(Value::as_str) {
            let why = match gone {
                "left" => LobbyClosed::Left,
                "kicked" => LobbyClosed::Kicked,
                "timed_out" => LobbyClosed::TimedOut,
                _ => LobbyClosed::Ended,
            };
            self.close(why);
        } else if let Ok(One { lobby }) = One::deserialize(news) {
            self.take(lobby);
        }
    }

    /// Takes the present state, and reports what has changed.
    fn take(&mut self, next: LobbyView) {
        let Some(before) = &self.view else {
            self.view = Some(next);
            self.events.push_back(LobbyEvent::Here);
            if let Some(room) = self.view.as_ref().and_then(|view| view.room.clone()) {
                self.events.push_back(LobbyEvent::Room(room));
            }
            return;
        };
        if next.version <= before.version {
            return;
        }
        let has = |view: &LobbyView, account: &str| view.members.iter().any(|it| it.account == account);
        let mut events = vec![LobbyEvent::Changed];
        for member in next.members.iter().filter(|member| !has(before, &member.account)) {
            events.push(LobbyEvent::MemberJoined(member.clone()));
        }
        for member in before.members.iter().filter(|member| !has(&next, &member.account)) {
            events.push(LobbyEvent::MemberLeft(member.account.clone()));
        }
        if next.owner != before.owner {
            events.push(LobbyEvent::OwnerChanged { is_me: Some(next.owner.as_str()) == self.news.me() });
        }
        if let Some(room) = next.room.clone().filter(|room| before.room.as_ref() != Some(room)) {
            events.push(LobbyEvent::Room(room));
        }
        self.view = Some(next);
        self.events.extend(events);
    }

    fn close(&mut self, why: LobbyClosed) {
        self.is_over = true;
        self.events.push_back(LobbyEvent::Closed(why));
    }
}

impl fmt::Debug for Lobby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lobby").field("view", &self.view).finish_non_exhaustive()
    }
}

fn is_party<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(String::deserialize(from)? == "party")
}
