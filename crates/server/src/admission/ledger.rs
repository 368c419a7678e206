//! Used tokens, each remembered until it expires.

use ring::digest::{SHA256, digest};
use std::collections::{BTreeMap, HashSet};

/// The first bytes of an id's SHA-256. A signer might find two ids with the same digest, but would only
/// reject its own token.
type Digest = [u8; 16];

/// Ids of used tokens until they expire. Bounded: when full it rejects new ids rather than forget valid ones.
#[derive(Debug)]
pub(super) struct Ledger {
    ids: HashSet<Digest>,
    /// The ids by the second at which they may be forgotten, on a clock that never leaps.
    by_end: BTreeMap<u64, Vec<Digest>>,
    ids_max: usize,
}

/// Why an id was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotEntered {
    Known,
    Full,
}

impl Ledger {
    pub(super) fn new(ids_max: usize) -> Self {
        Ledger { ids: HashSet::new(), by_end: BTreeMap::new(), ids_max }
    }

    /// Records an unused id until `forget_s`.
    pub(super) fn enter(&mut self, id: Digest, forget_s: u64, now_s: u64) -> Result<(), NotEntered> {
        while let Some(ended) = self.by_end.first_entry().filter(|ended| *ended.key() <= now_s) {
            for old in ended.remove() {
                self.ids.remove(&old);
            }
        }
        if self.ids.contains(&id) {
            return Err(NotEntered::Known);
        }
        if self.ids.len() >= self.ids_max {
            return Err(NotEntered::Full);
        }
        self.ids.insert(id);
        self.by_end.entry(forget_s).or_default().push(id);
        Ok(())
    }
}

/// The digest of an issuer's id. No issuer's name has a zero byte.
pub(super) fn digest_of(issuer: &str, id: &str) -> Digest {
    let mut id_digest = Digest::default();
    id_digest.copy_from_slice(&digest(&SHA256, format!("{issuer}\0{id}").as_bytes()).as_ref()[..16]);
    id_digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Digest {
        digest_of("service", name)
    }

    #[test]
    fn an_id_is_known_until_it_may_be_forgotten() {
        let mut ledger = Ledger::new(10);
        assert_eq!(ledger.enter(id("a"), 100, 50), Ok(()));
        assert_eq!(ledger.enter(id("a"), 100, 99), Err(NotEntered::Known));
        // The same id with another expiry is still known.
        assert_eq!(ledger.enter(id("a"), 120, 99), Err(NotEntered::Known));
        assert_eq!(ledger.enter(id("b"), 130, 99), Ok(()));
        assert_eq!(ledger.enter(id("a"), 160, 100), Ok(()));
        assert_eq!(ledger.enter(id("b"), 160, 100), Err(NotEntered::Known));
    }

    #[test]
    fn a_full_ledger_forgets_nothing_that_is_still_good() {
        let mut ledger = Ledger::new(3);
        for (name, end_s) in [("a", 60), ("b", 61), ("c", 62)] {
            assert_eq!(ledger.enter(id(name), end_s, 10), Ok(()));
        }
        assert_eq!(ledger.enter(id("d"), 62, 59), Err(NotEntered::Full));
        assert_eq!(ledger.enter(id("a"), 62, 59), Err(NotEntered::Known));
        assert_eq!(ledger.enter(id("d"), 90, 60), Ok(()));
        assert_eq!(ledger.ids.len(), ledger.by_end.values().map(Vec::len).sum::<usize>());
    }
}
