//! Events of kept matches, on their way from the shards to the store.
//!
//! A shard queues entries and never waits; a task of the services stores them
//! (`services/src/online/matches/keeping.rs`). If the store is slow or away, the queue fills and the affected
//! logs end. The task records that in the store once it works again. A log without an end is true up to it;
//! one with a gap would not be.

use crate::realm::{Realm, environment_of};
use crate::time::Time;
use parlor_hub::room::KeptEntry;
use parlor_proto::{RoomCode, RoomId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

/// Maximum number of queued entries.
const QUEUE_MAX: usize = 8_192;
/// Maximum bytes of queued entries.
const QUEUE_BYTES_MAX: u32 = 16 << 20;
/// Approximate bytes of an entry beside its payload.
const ENTRY_BYTES: usize = 128;

/// A match, by its key in the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MatchKey {
    /// Its app and environment.
    pub realm: Realm,
    /// Its code.
    pub id: RoomCode,
}

/// An event of a match, on its way to the store.
#[derive(Debug)]
pub struct QueuedEntry {
    /// The match.
    pub of: MatchKey,
    /// Its position in the match's log.
    pub number: u64,
    /// Its time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The event.
    pub entry: KeptEntry,
    /// Its reserved bytes in the queue, until it is stored.
    pub reserved: OwnedSemaphorePermit,
}

/// A match, by its id in a hub.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HubMatch<'a> {
    pub(crate) room: RoomId,
    pub(crate) code: RoomCode,
    pub(crate) app: &'a str,
    pub(crate) environment: &'a str,
}

/// What the queue lacked room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The log ends with its last queued entry.
    pub is_cut: bool,
    /// When the match ended, in milliseconds since 1970, if it did.
    pub ended_ms: Option<u64>,
}

/// Marks of matches whose opening was queued. There are at most as many as live matches and queued entries.
#[derive(Debug, Default)]
struct Marks {
    of: Mutex<BTreeMap<MatchKey, Mark>>,
    changed: Notify,
}

/// The shard's side. Each shard has its own clone.
#[derive(Clone, Debug)]
pub(crate) struct MatchLogQueue {
    queue: mpsc::Sender<QueuedEntry>,
    reserved: Arc<Semaphore>,
    marks: Arc<Marks>,
    /// Matches of this shard that are not recorded any further.
    lost: FxHashMap<RoomId, LostPart>,
    time: Time,
}

/// Which part of a match is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LostPart {
    /// All of it: the store has no entry of the match.
    Whole,
    /// The entries after the queued ones.
    Rest,
}

/// The task's side.
#[derive(Debug)]
pub struct MatchLogReceiver {
    queue: mpsc::Receiver<QueuedEntry>,
    marks: Arc<Marks>,
}

/// Creates both sides.
pub(crate) fn channel(time: Time) -> (MatchLogQueue, MatchLogReceiver) {
    of_size(QUEUE_MAX, QUEUE_BYTES_MAX, time)
}

fn of_size(entries_max: usize, bytes_max: u32, time: Time) -> (MatchLogQueue, MatchLogReceiver) {
    let (sender, queue) = mpsc::channel(entries_max);
    let marks = Arc::new(Marks::default());
    let reserved = Arc::new(Semaphore::new(bytes_max as usize));
    let match_logs = MatchLogQueue {
        queue: sender,
        reserved,
        marks: Arc::clone(&marks),
        lost: FxHashMap::default(),
        time,
    };
    (match_logs, MatchLogReceiver { queue, marks })
}

impl MatchLogQueue {
    /// Queues an event of a match. The events of a match arrive in order.
    pub(crate) fn keep(&mut self, of: HubMatch<'_>, number: u64, entry: KeptEntry) {
        let is_end = matches!(entry, KeptEntry::Ended);
        let lost = self.lost.get(&of.room).copied();
        if is_end {
            self.lost.remove(&of.room);
        }
        if lost == Some(LostPart::Whole) || (lost == Some(LostPart::Rest) && !is_end) {
            return;
        }
        let key =
            Realm::new(of.app, environment_of(of.environment)).map(|realm| MatchKey { realm, id: of.code });
        let key = match key {
            Ok(key) => key,
            Err(error) => return self.lose(of, None, number, is_end, &error.to_string()),
        };
        let at_ms = self.time.wall_ms();
        if lost == Some(LostPart::Rest) {
            return self.marks.mark(key, |mark| mark.ended_ms = Some(at_ms));
        }
        let said = self.reserve(&entry).map(|reserved| QueuedEntry {
            of: key.clone(),
            number,
            at_ms,
            entry,
            reserved,
        });
        if said.is_none_or(|said| self.queue.try_send(said).is_err()) {
            self.lose(of, Some(key), number, is_end, "the store is slow or away");
        }
    }

    fn reserve(&self, entry: &KeptEntry) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(ENTRY_BYTES.saturating_add(size(entry))).ok()?;
        Arc::clone(&self.reserved).try_acquire_many_owned(bytes).ok()
    }

    /// Handles an entry that was not queued. `key` is missing if the store could not name the match.
    fn lose(&mut self, of: HubMatch<'_>, key: Option<MatchKey>, number: u64, is_end: bool, why: &str) {
        let Some(key) = key.filter(|_| number > 0) else {
            tracing::warn!(id = %of.code, app = ?of.app, why, "a match is not kept");
            if !is_end {
                self.lost.insert(of.room, LostPart::Whole);
            }
            return;
        };
        tracing::warn!(id = %of.code, app = ?of.app, number, why, "the log of a match ends before the match");
        if is_end {
            // All entries are queued; a mark suffices for the end.
            return self.marks.mark(key, |mark| mark.ended_ms = Some(self.time.wall_ms()));
        }
        self.lost.insert(of.room, LostPart::Rest);
        self.marks.mark(key, |mark| mark.is_cut = true);
    }
}

/// Bytes of an entry beside its fixed part.
fn size(entry: &KeptEntry) -> usize {
    match entry {
        KeptEntry::Opened { label, by, .. } => label.len() + by.as_ref().map_or(0, String::len),
        KeptEntry::Joined { name, user, .. } => name.len() + user.as_ref().map_or(0, String::len),
        KeptEntry::Data { to, payload, .. } => payload.len() + 4 * to.len(),
        KeptEntry::Left { .. } | KeptEntry::Ended => 0,
    }
}

impl MatchLogReceiver {
    /// Waits for entries, and takes up to `most`. If there are marks, it takes them and all queued entries.
    /// Returns `None` once all shards have ended.
    pub async fn take(&mut self, most: usize) -> Option<(Vec<QueuedEntry>, BTreeMap<MatchKey, Mark>)> {
        let mut said = Vec::new();
        loop {
            tokio::select! {
                biased;
                taken = self.queue.recv_many(&mut said, most) => {
                    if taken == 0 {
                        let marks = self.marks.take();
                        return (!marks.is_empty()).then_some((said, marks));
                    }
                }
                () = self.marks.changed.notified() => {}
            }
            // No entry of a match is queued after its mark, so all queued entries come first.
            let marks = self.marks.take();
            if !marks.is_empty() {
                for _ in 0..self.queue.len() {
                    said.extend(self.queue.try_recv().ok());
                }
            }
            if !said.is_empty() || !marks.is_empty() {
                return Some((said, marks));
            }
        }
    }
}

impl Marks {
    fn mark(&self, key: MatchKey, change: impl FnOnce(&mut Mark)) {
        change(self.lock().entry(key).or_default());
        self.changed.notify_one();
    }

    fn take(&self) -> BTreeMap<MatchKey, Mark> {
        std::mem::take(&mut *self.lock())
    }

    /// Each change is one step, so the data stays consistent after a panic.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<MatchKey, Mark>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::FutureExt;
    use parlor_proto::MemberId;

    fn of(room: u64) -> HubMatch<'static> {
        let code = if room == 1 { "ABCDEFGHJKMNPQRS" } else { "ABCDEFGHJKMNPQRT" };
        HubMatch { room: RoomId(room), code: code.parse().unwrap(), app: "tanks", environment: "" }
    }

    fn opened() -> KeptEntry {
        KeptEntry::Opened { label: String::new(), members_max: 4, by: None }
    }

    fn data(payload: usize) -> KeptEntry {
        let payload = Bytes::from(vec![0; payload]);
        KeptEntry::Data { order: 1, from: MemberId(0), op: 1, to: Vec::new(), payload }
    }

    /// What the task receives: numbers of entries by match, and marks.
    async fn taken(kept: &mut MatchLogReceiver) -> (Vec<(RoomCode, u64)>, Vec<(RoomCode, Mark)>) {
        let (said, marks) = kept.take(1).await.unwrap();
        let said = said.into_iter().map(|said| (said.of.id, said.number)).collect();
        (said, marks.into_iter().map(|(of, mark)| (of.id, mark)).collect())
    }

    #[tokio::test]
    async fn threat_30_where_the_queue_is_full_a_log_ends_and_never_has_a_hole() {
        let (mut match_logs, mut kept) = of_size(3, 1 << 20, Time::default());
        let (first, second) = (of(1), of(2));
        match_logs.keep(first, 0, opened());
        match_logs.keep(first, 1, data(1));
        match_logs.keep(first, 2, data(1));
        match_logs.keep(first, 3, data(1));
        // The match opened while the queue was full: the store gets nothing of it, not even its end.
        match_logs.keep(second, 0, opened());
        let (said, marks) = taken(&mut kept).await;
        assert_eq!(said, [(first.code, 0), (first.code, 1), (first.code, 2)]);
        assert_eq!(marks, [(first.code, Mark { is_cut: true, ended_ms: None })]);
        // There is room again. Entries after a gap are not taken.
        match_logs.keep(first, 4, data(1));
        match_logs.keep(second, 1, data(1));
        match_logs.keep(second, 2, KeptEntry::Ended);
        assert!(kept.take(1).now_or_never().is_none(), "neither entries nor an end");
        match_logs.keep(first, 5, KeptEntry::Ended);
        let (said, marks) = taken(&mut kept).await;
        assert_eq!(said, []);
        assert!(
            matches!(marks[..], [(code, Mark { is_cut: false, ended_ms: Some(_) })] if code == first.code)
        );
        drop(match_logs);
        assert!(kept.take(1).await.is_none());
    }

    #[tokio::test]
    async fn bytes_have_a_bound_and_are_free_again_once_they_are_stored() {
        let (mut match_logs, mut kept) = of_size(100, 1_000, Time::default());
        match_logs.keep(of(1), 0, opened());
        match_logs.keep(of(1), 1, data(700));
        match_logs.keep(of(2), 0, opened());
        let (said, marks) = kept.take(1).await.unwrap();
        assert_eq!((said.len(), marks.len()), (1, 0), "as many as were asked for");
        let (more, _) = kept.take(100).await.unwrap();
        assert_eq!(more.len(), 1, "of the second nothing was queued");
        match_logs.keep(of(1), 2, KeptEntry::Ended);
        let (said_not, marks) = kept.take(1).await.unwrap();
        assert!(said_not.is_empty() && marks.values().all(|mark| !mark.is_cut && mark.ended_ms.is_some()));
        drop((said, more));
        match_logs.keep(HubMatch { room: RoomId(3), ..of(2) }, 0, opened());
        assert_eq!(taken(&mut kept).await.0, [(of(2).code, 0)]);
    }

    #[tokio::test]
    async fn a_match_that_no_realm_can_have_is_not_kept() {
        let (mut match_logs, mut kept) = of_size(100, 1_000, Time::default());
        match_logs.keep(HubMatch { app: "a/b", ..of(1) }, 0, opened());
        match_logs.keep(HubMatch { app: "a/b", ..of(1) }, 1, KeptEntry::Ended);
        drop(match_logs);
        assert!(kept.take(1).await.is_none());
    }
}
