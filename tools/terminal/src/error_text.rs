//! The error text of a failed command: one line with its causes, each once.

use std::fmt::Write;

/// The error and its causes. A cause that the error above already includes is omitted.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if said.is_empty() {
            said = cause;
        } else if !said.contains(&cause) {
            let _ = write!(said, ": {cause}");
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use anyhow::Context;
    use parlor::ClosedReason;
    use parlor_proto::wire::handshake::Refusal;

    #[derive(Debug, thiserror::Error)]
    #[error("the log cannot be read: {0}")]
    struct Tells(#[from] std::io::Error);

    #[test]
    fn each_cause_is_said_once() {
        let io = || std::io::Error::other("the disk is full");
        assert_eq!(sentence(&Tells(io()).into()), "the log cannot be read: the disk is full");
        let error = Err::<(), _>(io()).context("nothing was written").expect_err("it is one");
        assert_eq!(sentence(&error), "nothing was written: the disk is full");
        let refused = ClosedReason::from(Refusal::NoSuchRoom);
        assert_eq!(sentence(&refused.into()), Refusal::NoSuchRoom.to_string());
    }
}
