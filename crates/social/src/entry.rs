//! One player's place in one season of a board.

use crate::limits::IDS;
use crate::ranks::Key;
use xxhash_rust::xxh3::xxh3_64;

/// What is stored of a player. More is better in its key, whatever the board's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its score, sub-score, and when it reached both.
    pub key: Key,
    /// Submissions that counted.
    pub tries: u64,
    /// What the player said with the score.
    pub extra: Option<Vec<u8>>,
    /// Marks of the newest submissions, the newest first; 0 for none. A submission that is sent again is known by them.
    pub recent: [u64; IDS],
}

/// A score that somebody submits, as players know it: not turned round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// The score, or what is added.
    pub score: i64,
    /// The sub-score, which decides between equal scores.
    pub sub: i64,
    /// When it came.
    pub at_ms: u64,
    /// The mark of its id: see [`mark_of`].
    pub id: Option<u64>,
    /// What the player says with it.
    pub extra: Option<Vec<u8>>,
}

/// What a submission makes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The entry after it.
    pub entry: Entry,
    /// Whether the entry is better than before.
    pub improved: bool,
    /// Whether the submission was known: it counted when it came first.
    pub again: bool,
    /// Whether there is anything to store.
    pub is_changed: bool,
}

/// The mark of a submission's id: never 0, and a number that stores with signed numbers have.
pub fn mark_of(id: &str) -> u64 {
    (xxh3_64(id.as_bytes()) >> 1).max(1)
}

impl Entry {
    pub(crate) fn first((score, sub): (i64, i64), submission: &Submission) -> Self {
        let mut entry = Entry {
            key: Key { score, sub, at_ms: submission.at_ms },
            tries: 1,
            extra: submission.extra.clone(),
            recent: [0; IDS],
        };
        entry.remember(submission.id);
        entry
    }

    pub(crate) fn remember(&mut self, id: Option<u64>) {
        if let Some(id) = id {
            self.recent.rotate_right(1);
            self.recent[0] = id;
        }
    }
}
