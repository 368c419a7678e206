//! What players have a right to: to read what is stored about them, and to have it deleted.

use super::account::{Account, AccountError, Pending, Question};
use super::lists::escaped;
use serde::Deserialize;
use serde_json::{Value, json};

/// The account as its server knows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AccountInfo {
    /// Its id, which others see as [`Player::user`](crate::Player::user).
    pub id: String,
    /// What others see.
    pub name: String,
}

/// A part of what is stored about an account.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ExportPart {
    /// What the entries are: `account`, `sign_ins`, `rooms`, `inbox` or `matches`; later servers may have more.
    pub kind: String,
    /// The entries as the server has them. `docs/accounts.md` says what stands in each kind.
    pub entries: Vec<Value>,
    /// What to give as `after` for the next part; `None` after the last one.
    #[serde(default)]
    pub next: Option<String>,
}

#[derive(Deserialize)]
struct Me {
    account: AccountInfo,
}

/// What is stored about the player.
impl Account {
    /// Reads the account's id and name.
    pub fn info(&self) -> Pending<AccountInfo> {
        self.work(|shared| async move {
            Ok(shared.ask_own::<Me>(Question::Get("/account".to_owned())).await?.account)
        })
    }

    /// Reads all that the server stores about the account, a part at a time; `after` is [`ExportPart::next`] of the part before.
    pub fn export(&self, after: Option<&str>) -> Pending<ExportPart> {
        let query = after.map(|after| format!("?after={}", escaped(after))).unwrap_or_default();
        self.ask(Question::Get(format!("/account/export{query}")))
    }

    /// Deletes the account at the server, for good: it leaves its rooms, and its credentials, sign-ins and inbox go. Moves that it made in rooms
    /// of others stay there under its id. From then on this account answers [`AccountError::Deleted`], and so do its clones; signing in
    /// anew, with the same session too, makes another account.
    pub fn delete(&self) -> Pending<()> {
        self.work(|shared| async move {
            let me: Me = shared.ask_own(Question::Get("/account".to_owned())).await?;
            let input = json!({ "account": me.account.id });
            let _: Value = shared.ask_own(Question::Post("/account/delete".to_owned(), input)).await?;
            shared.forget().await;
            Ok(())
        })
    }

    /// Deletes a turn room with all that was played there. Whoever opened it may, once it has ended or while nobody else sits there.
    pub fn delete_room(&self, room: &str) -> Pending<()> {
        let question = Question::Post(format!("/rooms/{}/delete", escaped(room)), json!({}));
        self.work(|shared| async move {
            let done: Result<Value, AccountError> = shared.ask_own(question).await;
            done.map(|_| ())
        })
    }
}
