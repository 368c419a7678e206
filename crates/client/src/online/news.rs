//! News of an account: what is so now, as it changes.

use super::account::{Account, AccountError, Pending};
use crate::net::{self, Connection};
use parlor_client_core::ReconnectPolicy;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// Maximum number of news that wait for [`News::poll`]. Beyond it the oldest are dropped, and
/// [`NewsEvent::Connected`] comes again.
const WAITING_MAX: usize = 256;

/// What an account hears of.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NewsEvent {
    /// It is connected, perhaps again: what was so before may have changed, so read what you show.
    Connected,
    /// The connection was lost. It is made again by itself.
    Disconnected(String),
    /// Friends who have come, gone, or say something else.
    Presence(Vec<FriendNews>),
    /// The list of friends has changed: [`Friends::list`](super::Friends::list) has what is so.
    Friends,
    /// Something of another topic, as the server sends it.
    Other {
        /// The topic.
        topic: String,
        /// All of it.
        news: Value,
    },
    /// There will be no more: the account cannot sign in.
    Closed(AccountError),
}

/// News of a friend.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FriendNews {
    /// The friend's account.
    pub account: String,
    /// Whether it is here.
    pub online: bool,
    /// What it says of itself.
    #[serde(default)]
    pub status: Option<String>,
    /// How friends come to it: a room's code, or a lobby's id.
    #[serde(default)]
    pub join: Option<String>,
}

/// The news of an account, from [`Account::news`]. No call blocks: call [`poll`](Self::poll) in each frame. Dropping it
/// closes its connection.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let account = parlor::online::sign_in("play.example.com").account("tanks")?;
/// use parlor::online::NewsEvent;
/// let mut news = account.news();
/// // In each frame:
/// while let Some(event) = news.poll() {
///     match event {
///         NewsEvent::Presence(friends) => println!("{friends:?}"),
///         NewsEvent::Closed(why) => return Err(why.into()),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct News {
    account: Account,
    stage: Stage,
    /// The token that the server has refused, or closed a connection for.
    over: Option<String>,
    attempts: u32,
    waiting: VecDeque<NewsEvent>,
    me: Option<String>,
}

enum Stage {
    /// Until then.
    Waiting(Instant),
    SigningIn(Pending<String>),
    Open(Connection, Token),
    Ended,
}

/// A token, and whether the server has taken it.
struct Token {
    text: String,
    is_taken: bool,
}

#[derive(Deserialize)]
struct Heard {
    id: Option<u64>,
    output: Option<Value>,
    error: Option<Value>,
    news: Option<Value>,
}

#[derive(Deserialize)]
struct Friends {
    friends: Vec<FriendNews>,
}

impl Account {
    /// Listens for news, on a connection of its own. While one is open, the player is here for its friends.
    pub fn news(&self) -> News {
        News {
            account: self.clone(),
            stage: Stage::Waiting(Instant::now()),
            over: None,
            attempts: 0,
            waiting: VecDeque::new(),
            me: None,
        }
    }
}

impl News {
    /// Returns the next event, if there is one.
    pub fn poll(&mut self) -> Option<NewsEvent> {
        while self.waiting.is_empty() && self.work() {}
        self.waiting.pop_front()
    }

    /// Whether it is connected, so that the player is here.
    pub fn is_connected(&self) -> bool {
        matches!(&self.stage, Stage::Open(_, token) if token.is_taken)
    }

    /// This player's account; `None` until it is connected.
    pub fn me(&self) -> Option<&str> {
        self.me.as_deref()
    }

    /// Does one thing. Returns whether there may be more to do.
    fn work(&mut self) -> bool {
        match &mut self.stage {
            Stage::Ended => false,
            Stage::Waiting(until) => {
                if Instant::now() < *until {
                    return false;
                }
                self.stage = Stage::SigningIn(self.account.access_token(self.over.take()));
                true
            }
            Stage::SigningIn(pending) => match pending.poll() {
                None => false,
                Some(Ok(text)) => {
                    let connection = self.account.socket();
                    self.stage = Stage::Open(connection, Token { text, is_taken: false });
                    true
                }
                Some(Err(error)) if !error.may_pass() => {
                    self.stage = Stage::Ended;
                    self.push(NewsEvent::Closed(error));
                    true
                }
                Some(Err(error)) => {
                    self.lost(&error.to_string());
                    true
                }
            },
            Stage::Open(connection, token) => match connection.poll() {
                None => false,
                Some(net::Event::Open) => {
                    let first = json!({ "id": 0, "op": "account.me", "token": token.text });
                    if let Err(error) = connection.send_text(&first.to_string()) {
                        self.lost(&error.to_string());
                    }
                    true
                }
                Some(net::Event::Text(text)) => {
                    self.hear(&text);
                    true
                }
                Some(net::Event::Message(_)) => true,
                Some(net::Event::Closed(why)) => {
                    // A token that is over is refused by the next connection.
                    self.lost(&why.to_string());
                    true
                }
            },
        }
    }

    fn hear(&mut self, text: &str) {
        let Ok(Heard { id, output, error, news }) = serde_json::from_str(text) else { return };
        let Stage::Open(_, token) = &mut self.stage else { return };
        if let (Some(0), Some(output)) = (id, &output) {
            token.is_taken = true;
            self.me = output.pointer("/account/id").and_then(Value::as_str).map(str::to_owned);
            self.attempts = 0;
            self.push(NewsEvent::Connected);
        } else if !token.is_taken && error.is_some() {
            self.over = Some(token.text.clone());
            self.lost("the server does not take the token");
        } else if let Some(news) = news {
            let topic = news.get("topic").and_then(Value::as_str).unwrap_or_default().to_owned();
            let event = match topic.as_str() {
                "friends" => NewsEvent::Friends,
                "presence" => match Friends::deserialize(&news) {
                    Ok(Friends { friends }) => NewsEvent::Presence(friends),
                    Err(_) => return,
                },
                _ => NewsEvent::Other { topic, news },
            };
            self.push(event);
        }
    }

    fn push(&mut self, event: NewsEvent) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.clear();
            self.waiting.push_back(NewsEvent::Connected);
        }
        self.waiting.push_back(event);
    }

    fn lost(&mut self, why: &str) {
        if self.is_connected() {
            self.push(NewsEvent::Disconnected(why.to_owned()));
        }
        let wait: Duration = ReconnectPolicy::default().delay(self.account.session().seed(), self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        self.stage = Stage::Waiting(Instant::now() + wait);
    }
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News").field("is_connected", &self.is_connected()).finish_non_exhaustive()
    }
}
