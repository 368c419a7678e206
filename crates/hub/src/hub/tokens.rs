//! The tokens of one session: which of them is good, and which was used before.

use parlor_proto::SessionId;
use parlor_proto::wire::handshake::ResumeToken;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// Tokens that are known to have been used, and sessions that one seat has had, of each so many. A token that is older is
/// refused as any other that is not good.
const SPENT_MAX: usize = 8;

/// All that is kept of a token: whoever reads a hub's memory or its logs cannot resume anything.
///
/// They are compared as they are: how long that takes depends on hashes, and tells nothing of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash([u8; 32]);

impl Hash {
    fn of(token: &ResumeToken) -> Self {
        Hash(Sha256::digest(token.0).into())
    }
}

/// The tokens that one seat was given, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// The names under which it can be resumed, the present one last: a process that began anew has another session.
    sessions: VecDeque<SessionId>,
    newest: Hash,
    /// The one that the newest was given for.
    before: Option<Hash>,
    spent: VecDeque<Hash>,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It proves whose the session is.
    Good,
    /// It did so once, and its owner has another one: somebody else has it, too.
    Reused,
    /// It never did, as far as is known.
    Unknown,
}

impl Family {
    pub(super) fn new(session: SessionId, token: &ResumeToken) -> Self {
        let (sessions, spent) = (VecDeque::from([session]), VecDeque::new());
        Family { sessions, newest: Hash::of(token), before: None, spent }
    }

    /// Judges a token. `is_shown` says whether the peer has shown that it was given the newest: until then that may have been
    /// lost on its way, and the one before is as good.
    pub(super) fn judge(&self, token: &ResumeToken, is_shown: bool) -> Verdict {
        let hash = Hash::of(token);
        if hash == self.newest || !is_shown && self.before == Some(hash) {
            Verdict::Good
        } else if self.before == Some(hash) || self.spent.contains(&hash) {
            Verdict::Reused
        } else {
            Verdict::Unknown
        }
    }

    /// A good token was used, and `next` is given for it.
    pub(super) fn rotate(&mut self, used: &ResumeToken, next: &ResumeToken) {
        let used = Hash::of(used);
        let spent = if used == self.newest { self.before.replace(used) } else { Some(self.newest) };
        self.newest = Hash::of(next);
        if let Some(spent) = spent {
            push_bounded(&mut self.spent, spent);
        }
    }

    /// The seat has another session from here on. Gives one that it cannot be resumed under any more, if there is one.
    pub(super) fn renamed(&mut self, session: SessionId) -> Option<SessionId> {
        push_bounded(&mut self.sessions, session)
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.sessions.iter().copied()
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) -> Option<T> {
    queue.push_back(item);
    if queue.len() > SPENT_MAX { queue.pop_front() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u8) -> ResumeToken {
        ResumeToken([number; 32])
    }

    fn family() -> Family {
        Family::new(SessionId(1), &token(0))
    }

    #[test]
    fn threat_08_each_token_is_good_until_its_owner_has_the_next() {
        let mut family = family();
        assert_eq!(family.judge(&token(0), true), Verdict::Good);
        assert_eq!(family.judge(&token(9), true), Verdict::Unknown);
        family.rotate(&token(0), &token(1));
        // The answer with the next may have been lost.
        assert_eq!(family.judge(&token(0), false), Verdict::Good);
        assert_eq!(family.judge(&token(1), false), Verdict::Good);
        assert_eq!(family.judge(&token(0), true), Verdict::Reused);
    }

    #[test]
    fn threat_08_all_that_were_used_are_known_as_such() {
        let mut family = family();
        let used = u8::try_from(SPENT_MAX).expect("it is small");
        for number in 0..used {
            family.rotate(&token(number), &token(number + 1));
            for old in 0..=number {
                assert_eq!(family.judge(&token(old), true), Verdict::Reused, "{old} of {number}");
            }
            assert_eq!(family.judge(&token(number + 1), true), Verdict::Good);
        }
    }

    #[test]
    fn threat_08_an_answer_that_was_lost_is_given_anew_and_the_lost_one_is_good_no_more() {
        let mut family = family();
        family.rotate(&token(0), &token(1));
        family.rotate(&token(0), &token(2));
        assert_eq!(family.judge(&token(0), false), Verdict::Good);
        assert_eq!(family.judge(&token(2), false), Verdict::Good);
        assert_eq!(family.judge(&token(1), false), Verdict::Reused);
    }

    #[test]
    fn threat_08_nothing_shows_a_token() {
        let family = Family::new(SessionId(1), &token(0xab));
        let text = format!("{family:?} {:?}", token(0xab));
        assert!(!text.contains("171") && !text.contains("ab, ab"), "{text}");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut family = family();
        for number in 0..200 {
            family.rotate(&token(number), &token(number + 1));
            let forgotten = family.renamed(SessionId(2 + u128::from(number)));
            assert_eq!(forgotten.is_some(), usize::from(number) + 2 > SPENT_MAX);
        }
        assert!(family.spent.len() <= SPENT_MAX && family.sessions().count() <= SPENT_MAX);
        assert_eq!(family.judge(&token(0), true), Verdict::Unknown);
    }
}
