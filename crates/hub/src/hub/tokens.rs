//! The resume tokens of one session: which one is valid and which were used.

use parlor_proto::SessionId;
use parlor_proto::wire::handshake::ResumeToken;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// How many used tokens and earlier session ids are remembered per seat. Older ones count as unknown.
const SPENT_MAX: usize = 8;

/// The stored form of a token: a hub's memory or logs cannot be used to resume a session.
///
/// Comparison need not be constant-time: its timing depends on hashes and reveals nothing about tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash([u8; 32]);

impl Hash {
    fn of(token: &ResumeToken) -> Self {
        Hash(Sha256::digest(token.0).into())
    }
}

/// The successive tokens of one seat.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// The ids under which it can be resumed, the current one last: a restarted process gets a new session.
    sessions: VecDeque<SessionId>,
    newest: Hash,
    /// The token that the newest one replaced.
    before: Option<Hash>,
    spent: VecDeque<Hash>,
    /// How many tokens the seat has had.
    generation: u32,
}

/// The validity of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It proves ownership of the session.
    Good,
    /// It was valid once and has been replaced: two clients have it.
    Reused,
    /// It is not known.
    Unknown,
}

impl Family {
    pub(super) fn new(session: SessionId, token: &ResumeToken) -> Self {
        let (sessions, spent) = (VecDeque::from([session]), VecDeque::new());
        Family { sessions, newest: Hash::of(token), before: None, spent, generation: 1 }
    }

    /// Continues a family of another hub, whose token of this generation was used.
    pub(super) fn claimed(
        session: SessionId,
        used: &ResumeToken,
        next: &ResumeToken,
        generation: u32,
    ) -> Self {
        let mut family = Family { generation, ..Family::new(session, used) };
        family.rotate(used, next);
        family
    }

    /// Continues a family of another hub, of which only hashes are known.
    pub(super) fn moved(newest: [u8; 32], before: Option<[u8; 32]>, generation: u32) -> Self {
        Family {
            sessions: VecDeque::new(),
            newest: Hash(newest),
            before: before.map(Hash),
            spent: VecDeque::new(),
            generation,
        }
    }

    /// Makes its newest token newer than one of this generation.
    pub(super) fn follows(&mut self, generation: u32) {
        self.generation = self.generation.max(generation.saturating_add(1));
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the hash of its newest token.
    pub(super) fn newest(&self) -> &[u8; 32] {
        &self.newest.0
    }

    /// Returns the hash of the token that the newest one replaced.
    pub(super) fn before(&self) -> Option<&[u8; 32]> {
        self.before.as_ref().map(|hash| &hash.0)
    }

    /// Judges a token. `is_shown` says whether the peer has proved receipt of the newest token. Until then
    /// the newest may be lost in transit, and the one before it is valid too.
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

    /// Replaces a valid token that was used by `next`.
    pub(super) fn rotate(&mut self, used: &ResumeToken, next: &ResumeToken) {
        let used = Hash::of(used);
        let spent = if used == self.newest { self.before.replace(used) } else { Some(self.newest) };
        self.newest = Hash::of(next);
        self.generation = self.generation.saturating_add(1);
        if let Some(spent) = spent {
            push_bounded(&mut self.spent, spent);
        }
    }

    /// Sets the seat's new session id. Returns the oldest id if it can no longer be used to resume.
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
        // The answer with the next token may be lost.
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
