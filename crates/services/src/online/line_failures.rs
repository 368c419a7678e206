//! Failures of operations that another node carries out, on their way over the line.

use super::codes;
use super::failure::Failure;
use crate::cluster::line::{AskError, Refusal};
use core::time::Duration;
use serde_json::Value;

/// When to ask again a node that could not be asked.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A failure as the node that was asked sends it.
pub(super) fn to_refusal(failure: &Failure) -> Refusal {
    Refusal::new(failure.status().as_u16(), failure.to_json().to_string())
}

/// The failure of a question: the other node's own, or that it could not be asked.
pub(super) fn to_failure(error: &AskError) -> Failure {
    if let AskError::Refused(refusal) = error
        && let Some(failure) = sent(refusal)
    {
        return failure;
    }
    tracing::warn!(%error, "another node could not be asked");
    Failure::unavailable("another server of this cluster does not answer: ask again in a moment", RETRY_AFTER)
}

/// The other node's failure; `None` for one that no operation of this build has.
fn sent(refusal: &Refusal) -> Option<Failure> {
    let error: Value = serde_json::from_slice(&refusal.body).ok()?;
    let (code, kind) = codes::known(error["code"].as_str()?)?;
    let mut failure = Failure::new(kind, code, error["sentence"].as_str()?);
    if let Some(path) = error["path"].as_str() {
        failure = failure.at(path);
    }
    if let Some(after_ms) = error["retry_after_ms"].as_u64() {
        failure = failure.after(Duration::from_millis(after_ms));
    }
    if let Some(current) = error.get("current") {
        failure = failure.beside(current.clone());
    }
    Some(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::online::failure::Kind;
    use serde_json::json;

    #[test]
    fn a_failure_comes_over_the_line_as_it_was_sent() {
        let full = Failure::new(Kind::Conflict, "taken", "another one has it").at("name");
        for failure in [full.clone(), full.beside(json!({ "version": 3 })), Failure::field("a.b", "too long")]
        {
            assert_eq!(to_failure(&AskError::Refused(to_refusal(&failure))), failure);
        }
        let later = Failure::unavailable("not now", Duration::from_millis(250));
        assert_eq!(to_failure(&AskError::Refused(to_refusal(&later))), later);
        let unknown = AskError::Refused(Refusal::new(404, "this node answers no such question"));
        assert_eq!(to_failure(&unknown).code(), "unavailable");
    }
}
