//! Friends of a player, and what it says of itself.

use super::account::{Account, Pending, Question};
use serde::Deserialize;
use serde_json::{Value, json};

/// The friends of an account's player, from [`Account::friends`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let account = parlor::online::sign_in("play.example.com").account("tanks")?;
/// let friends = account.friends();
/// let mut asking = friends.ask_code("K7QMABCD");
/// let mut listing = friends.list();
/// // In each frame:
/// if let Some(list) = listing.poll() {
///     for friend in list? {
///         println!("{} {:?} {}", friend.name, friend.state, if friend.online { "is here" } else { "" });
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Friends {
    account: Account,
}

/// What another player is to the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FriendState {
    /// A friend.
    Friend,
    /// The player has asked the other.
    Asked,
    /// The other asks the player.
    Asks,
    /// The player has blocked the other.
    Blocked,
}

/// Another player on the list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Friend {
    /// Its account.
    pub account: String,
    /// Its name.
    pub name: String,
    /// What it is to the player.
    pub state: FriendState,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// Whether it is a friend who is here, and shows it.
    pub online: bool,
    /// What it says of itself.
    #[serde(default)]
    pub status: Option<String>,
    /// How friends come to it: a room's code, or a lobby's id.
    #[serde(default)]
    pub join: Option<String>,
}

#[derive(Deserialize)]
struct Changed {
    state: Option<FriendState>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

impl Account {
    /// The friends of the player. The server is not asked yet.
    pub fn friends(&self) -> Friends {
        Friends { account: self.clone() }
    }

    /// Says something to friends: what the player does, in up to 64 characters, and how friends come to it. Refused as
    /// `not_here` without an open connection: [`Account::news`].
    pub fn say_to_friends(&self, status: &str, join: Option<&str>) -> Pending<()> {
        self.presence(json!({ "status": status, "join": join }))
    }

    /// Hides from friends, who see the player as away.
    pub fn hide(&self) -> Pending<()> {
        self.presence(json!({ "visible": false }))
    }

    fn presence(&self, input: Value) -> Pending<()> {
        self.ask_done(Question::Post("/presence".to_owned(), input))
    }
}

impl Friends {
    /// Lists friends, requests and blocks, in the order of their accounts.
    pub fn list(&self) -> Pending<Vec<Friend>> {
        self.account.ask_all("/friends".to_owned())
    }

    /// Asks another player by its account. If that one has asked, both are friends from here on.
    pub fn ask(&self, account: &str) -> Pending<Option<FriendState>> {
        self.step("", json!({ "account": account }))
    }

    /// The same by the other's code.
    pub fn ask_code(&self, code: &str) -> Pending<Option<FriendState>> {
        self.step("", json!({ "code": code }))
    }

    /// Accepts what another player asks. Refused as `not_asked` if it does not.
    pub fn accept(&self, account: &str) -> Pending<Option<FriendState>> {
        self.step("/accept", json!({ "account": account }))
    }

    /// Ends a friendship, refuses a request, or takes one back.
    pub fn remove(&self, account: &str) -> Pending<Option<FriendState>> {
        self.step("/remove", json!({ "account": account }))
    }

    /// Blocks another player, who does not learn of it.
    pub fn block(&self, account: &str) -> Pending<Option<FriendState>> {
        self.step("/block", json!({ "account": account }))
    }

    /// Ends a block.
    pub fn unblock(&self, account: &str) -> Pending<Option<FriendState>> {
        self.step("/unblock", json!({ "account": account }))
    }

    /// The code by which others find the player.
    pub fn code(&self) -> Pending<String> {
        self.code_by(Question::Get("/friends/code".to_owned()))
    }

    /// Gets another code. The old one is good no more.
    pub fn new_code(&self) -> Pending<String> {
        self.code_by(Question::Post("/friends/code".to_owned(), json!({})))
    }

    fn code_by(&self, question: Question) -> Pending<String> {
        self.account.work(|shared| async move { Ok(shared.ask_own::<Code>(question).await?.code) })
    }

    /// The answer is what the other is from here on; `None` for nothing.
    fn step(&self, below: &str, input: Value) -> Pending<Option<FriendState>> {
        let question = Question::Post(format!("/friends{below}"), input);
        self.account.work(|shared| async move { Ok(shared.ask_own::<Changed>(question).await?.state) })
    }
}
