//! Receipts: scores that the game's own service signed, and that a player carries to the server.
//!
//! A receipt is a JWT by the operator's key with its own `typ`. So a service that judges a game needs no connection to
//! the server, and a player can change nothing in what it carries.

use super::failure::{Failure, Kind};
use super::tokens::Tokens;
use parlor_server::Time;
use parlor_server::admission::{CLOCK_SKEW_S_MAX, SigningKey};
use parlor_server::realm::Realm;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest life of a receipt, in seconds.
pub const RECEIPT_LIFE_S_MAX: u64 = 60 * 60;
/// Largest size of a receipt's id, in bytes.
pub(super) const RECEIPT_ID_BYTES_MAX: usize = 64;

const RECEIPT: &str = "parlor-receipt";

/// A score for a player, as a service of the game signs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreReceipt {
    /// The player's account.
    pub sub: String,
    /// The game.
    pub aud: String,
    /// Its environment; may be missing if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub env: String,
    /// The board.
    pub board: String,
    /// The score; on a board of sums, what is added.
    pub score: i64,
    /// The sub-score. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sub_score: i64,
    /// What belongs to the score and is shown with it: a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
    /// Names the receipt, which is good once: 1 to 64 bytes.
    pub jti: String,
    /// Time of issue, in seconds since 1970.
    pub iat: u64,
    /// Expiry, in seconds since 1970: at most [`RECEIPT_LIFE_S_MAX`] after its issue.
    pub exp: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl ScoreReceipt {
    /// The receipt as players carry it, signed with the operator's key.
    pub fn signed(&self, key: &SigningKey) -> String {
        key.sign_as(RECEIPT, self)
    }

    /// Reads a receipt, and checks everything but whether it was used.
    pub(super) fn verify(text: &str, tokens: &Tokens, realm: &Realm, time: &Time) -> Result<Self, Failure> {
        let receipt: ScoreReceipt = tokens
            .by_operator(RECEIPT, text)
            .ok_or_else(|| bad("it was not signed by this server's operator key, or is no receipt"))?;
        let now_s = time.wall_s();
        if (receipt.aud.as_str(), receipt.env.as_str()) != (realm.app(), realm.environment()) {
            return Err(bad("it is for another game or environment"));
        }
        let is_short =
            receipt.exp.checked_sub(receipt.iat).is_some_and(|life_s| life_s <= RECEIPT_LIFE_S_MAX);
        if !is_short || receipt.iat > now_s.saturating_add(CLOCK_SKEW_S_MAX) {
            return Err(bad(
                "its `exp` is at most an hour after its `iat`, and its `iat` is not in the future",
            ));
        }
        if now_s >= receipt.exp {
            return Err(bad("its time is over"));
        }
        if !(1..=RECEIPT_ID_BYTES_MAX).contains(&receipt.jti.len())
            || receipt.jti.chars().any(char::is_control)
        {
            return Err(bad("its `jti` has 1 to 64 bytes, and no control characters"));
        }
        Ok(receipt)
    }
}

/// A refusal that says what is wrong with a receipt.
pub(super) fn bad(why: &str) -> Failure {
    Failure::new(Kind::Forbidden, "bad_receipt", format!("this receipt is not good here: {why}"))
}
