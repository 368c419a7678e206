//! Data protection: players can export what is stored about them, and delete it.

use super::account::{Account, AccountError, Pending, Question};
use super::lists::escaped;
use serde::Deserialize;
use serde_json::{Value, json};

/// The account in its server's store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AccountInfo {
    /// Its id, which others see as [`Player::user`](crate::Player::user).
    pub id: String,
    /// Its display name.
    pub name: String,
}

/// A page of the data that is stored about an account.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ExportPart {
    /// The kind of the entries: `account`, `sign_ins`, `rooms`, `inbox`, `matches` or `boards`. Later
    /// servers may have more.
    pub kind: String,
    /// The entries as the server has them. `docs/accounts.md` documents each kind.
    pub entries: Vec<Value>,
    /// The value of `after` for the next page; `None` on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

#[derive(Deserialize)]
struct Me {
    account: AccountInfo,
}

/// Export and deletion.
impl Account {
    /// Reads the account's id and name.
    pub fn info(&self) -> Pending<AccountInfo> {
        self.work(|shared| async move {
            Ok(shared.ask_own::<Me>(Question::Get("/account".to_owned())).await?.account)
        })
    }

    /// Exports all data that the server stores about the account, page by page. `after` is
    /// [`ExportPart::next`] of the page before.
    pub fn export(&self, after: Option<&str>) -> Pending<ExportPart> {
        let query = after.map(|after| format!("?after={}", escaped(after))).unwrap_or_default();
        self.ask(Question::Get(format!("/account/export{query}")))
    }

    /// Deletes the account at the server, permanently. It leaves its rooms; its credentials, sign-ins and
    /// inbox are deleted. Its moves in other players' rooms stay there under its id. From then on this
    /// account and its clones return [`AccountError::Deleted`]. Signing in again, even with the same session,
    /// creates another account.
    pub fn delete(&self) -> Pending<()> {
        self.work(|shared| async move {
            let me: Me = shared.ask_own(Question::Get("/account".to_owned())).await?;
            let input = json!({ "account": me.account.id });
            let _: Value = shared.ask_own(Question::Post("/account/delete".to_owned(), input)).await?;
            shared.forget().await;
            Ok(())
        })
    }

    /// Deletes a turn room with its whole history. Only the player that created it may, and only once it has
    /// ended or while no other player has a seat.
    pub fn delete_room(&self, room: &str) -> Pending<()> {
        let question = Question::Post(format!("/rooms/{}/delete", escaped(room)), json!({}));
        self.work(|shared| async move {
            let done: Result<Value, AccountError> = shared.ask_own(question).await;
            done.map(|_| ())
        })
    }
}
