//! Requests that are sent again when their answer is lost, because the server knows the repetition.

use super::account::{AccountError, Question, Shared};
use data_encoding::HEXLOWER;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Attempts at a request whose answer is lost.
const ATTEMPTS: u32 = 3;
/// Time between two attempts.
const REST: Duration = Duration::from_secs(1);

/// A random name for a request that may be sent again.
///
/// Without randomness the operating system is broken; the server then refuses the empty id.
pub(super) fn random_id() -> String {
    let mut bytes = [0; 12];
    match getrandom::fill(&mut bytes) {
        Ok(()) => HEXLOWER.encode(&bytes),
        Err(_) => String::new(),
    }
}

impl Shared {
    /// Sends a request that counts once, one after another of the account.
    pub(super) async fn ask_until_answered<T: DeserializeOwned>(
        &self,
        question: Question,
    ) -> Result<T, AccountError> {
        let _turn = self.repeating.lock().await;
        for _ in 1..ATTEMPTS {
            let answer = self.ask_own(question.clone()).await;
            let Some(rest) = rest_after(&answer) else { return answer };
            tokio::time::sleep(rest).await;
        }
        self.ask_own(question).await
    }
}

/// The time until a request is sent again; `None` if its answer is final.
fn rest_after<T>(answer: &Result<T, AccountError>) -> Option<Duration> {
    match answer {
        Err(AccountError::Net(_)) => Some(REST),
        // It may have been stored all the same.
        Err(AccountError::Refused(error)) if error.code == "unavailable" => {
            Some(error.retry_after().unwrap_or(REST))
        }
        _ => None,
    }
}
