//! Which tokens were used: each is remembered as long as it would be good.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Ids of tokens, until they may be forgotten. Bounded: it takes no more rather than forget one that is still good.
#[derive(Debug)]
pub(super) struct Ledger {
    ids: HashSet<Arc<str>>,
    /// With when each may be forgotten, in seconds since 1970.
    by_end: BTreeSet<(u64, Arc<str>)>,
    ids_max: usize,
}

/// Why an id was not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotEntered {
    Known,
    Full,
}

impl Ledger {
    pub(super) fn new(ids_max: usize) -> Self {
        Ledger { ids: HashSet::new(), by_end: BTreeSet::new(), ids_max }
    }

    /// Enters an id that nobody used before, and remembers it until `forget_s`.
    pub(super) fn enter(&mut self, id: String, forget_s: u64, now_s: u64) -> Result<(), NotEntered> {
        while let Some((_, old)) = self.by_end.first().filter(|(end_s, _)| *end_s <= now_s) {
            self.ids.remove(old);
            self.by_end.pop_first();
        }
        if self.ids.contains(id.as_str()) {
            return Err(NotEntered::Known);
        }
        if self.ids.len() >= self.ids_max {
            return Err(NotEntered::Full);
        }
        let id: Arc<str> = id.into();
        self.ids.insert(Arc::clone(&id));
        self.by_end.insert((forget_s, id));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_until_it_may_be_forgotten() {
        let mut ledger = Ledger::new(10);
        assert_eq!(ledger.enter("a".into(), 100, 50), Ok(()));
        assert_eq!(ledger.enter("a".into(), 100, 99), Err(NotEntered::Known));
        // Under another end it is the same id.
        assert_eq!(ledger.enter("a".into(), 120, 99), Err(NotEntered::Known));
        assert_eq!(ledger.enter("b".into(), 130, 99), Ok(()));
        assert_eq!(ledger.enter("a".into(), 160, 100), Ok(()));
        assert_eq!(ledger.enter("b".into(), 160, 100), Err(NotEntered::Known));
    }

    #[test]
    fn a_full_ledger_forgets_nothing_that_is_still_good() {
        let mut ledger = Ledger::new(3);
        for (id, end_s) in [("a", 60), ("b", 61), ("c", 62)] {
            assert_eq!(ledger.enter(id.into(), end_s, 10), Ok(()));
        }
        assert_eq!(ledger.enter("d".into(), 62, 59), Err(NotEntered::Full));
        assert_eq!(ledger.enter("a".into(), 62, 59), Err(NotEntered::Known));
        assert_eq!(ledger.enter("d".into(), 90, 60), Ok(()));
        assert_eq!(ledger.ids.len(), ledger.by_end.len());
    }
}
