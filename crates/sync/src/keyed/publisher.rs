//! Updates for one receiver.

use super::store::{Entry, Store};
use super::update::{EntryRef, write_update};
use super::{KeyId, Source, StateSequence, UpdateHead, Viewer};
use crate::limits::{REMOVED_MAX, UPDATE_BYTES_MAX, UPDATES_IN_FLIGHT_MAX};
use bytes::Bytes;
use parlor_proto::limits::FRAGMENT_BYTES;
use parlor_proto::{MemberId, Tick};
use std::collections::{BTreeMap, BTreeSet};

/// Makes updates for one receiver out of one [`Store`], which must be the same at every call.
///
/// An update is relative to the newest sequence that the receiver is known to have. What became of each update must
/// be told with [`delivered`](Self::delivered) and [`lost`](Self::lost); the receiver applies an update before its
/// delivery is reported.
#[derive(Clone, Debug)]
pub struct Publisher {
    viewer: Viewer,
    /// What the receiver is known to have; [`StateSequence::EMPTY`] while nothing is known.
    baseline: StateSequence,
    /// The sequence of the store up to which `held` and `gone` are right. Whatever they hold was also sent.
    observed: StateSequence,
    /// Keys that the receiver sees, with the update from which on it did so without interruption.
    held: BTreeMap<KeyId, StateSequence>,
    /// Keys that the receiver saw and does not see any more, with the update that took them away. They stay until
    /// the receiver is known to have that update.
    gone: BTreeMap<KeyId, StateSequence>,
    /// Updates whose fate is not known, with the sequence that each brings the receiver to.
    in_flight: BTreeMap<Sent, StateSequence>,
    /// The number of the next update.
    next: Sent,
    /// A complete update that is larger than a datagram. Until its fate is known nothing else is sent: whatever came
    /// meanwhile would have to be complete, and as large, as well.
    alone: Option<Sent>,
    /// Whether something waits to be sent, first or again.
    due: bool,
    transfer: bool,
}

/// The number of an update among all that a publisher ever made, to say what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sent(pub u64);

impl Publisher {
    /// A publisher for a receiver that has nothing.
    #[must_use]
    pub fn new(viewer: Viewer) -> Self {
        Publisher {
            viewer,
            baseline: StateSequence::EMPTY,
            observed: StateSequence::EMPTY,
            held: BTreeMap::new(),
            gone: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            next: Sent(0),
            alone: None,
            due: true,
            transfer: false,
        }
    }

    /// An update, if the receiver may see something that was not sent yet or was lost; and its number. The first one
    /// is due with the store's first batch, even if the receiver sees nothing of it, so that it knows how matters
    /// stand.
    pub fn poll_update(&mut self, store: &Store) -> Option<(Bytes, Sent)> {
        let now = store.sequence();
        if now == StateSequence::EMPTY {
            return None;
        }
        let news = self.observe(store);
        self.due |= news;
        if !self.is_due() {
            return None;
        }
        self.due = false;
        if self.gone.len() > REMOVED_MAX {
            self.forget_receiver();
        }
        let mut bytes = self.update(store, self.baseline);
        if bytes.len() > UPDATE_BYTES_MAX {
            // Many removals beside a full state. A complete update lists none, and always fits.
            bytes = self.update(store, StateSequence::EMPTY);
        }
        let sent = self.next;
        self.next = Sent(sent.0 + 1);
        let is_large = self.baseline == StateSequence::EMPTY && bytes.len() > FRAGMENT_BYTES;
        self.alone = is_large.then_some(sent);
        self.in_flight.insert(sent, now);
        if self.in_flight.len() > UPDATES_IN_FLIGHT_MAX {
            self.in_flight.pop_first();
        }
        Some((bytes, sent))
    }

    /// The receiver has applied this update. Nothing is learned if its fate was known, or if it was sent before the
    /// receiver was started over with.
    pub fn delivered(&mut self, sent: Sent) {
        let Some(sequence) = self.in_flight.get(&sent).copied() else { return };
        self.in_flight.retain(|_, brings| *brings > sequence);
        self.gone.retain(|_, since| *since > sequence);
        self.baseline = sequence;
        self.transfer = false;
    }

    /// This update was lost. It is made up for unless a newer one is under way, which has everything that it had.
    pub fn lost(&mut self, sent: Sent) {
        if self.in_flight.remove(&sent).is_some() && sent.0 + 1 == self.next.0 {
            self.due = true;
        }
    }

    /// Whether [`poll_update`](Self::poll_update) would give an update even without a change of the store.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.due && !self.alone.is_some_and(|sent| self.in_flight.contains_key(&sent))
    }

    /// The receiver has lost its state: a complete update is due, and only complete ones until one is delivered.
    pub fn restart(&mut self) {
        self.forget_receiver();
        self.due = true;
    }

    /// Continuity ends, because another authority goes on with the state: like [`restart`](Self::restart), with
    /// updates that say [`Source::Transfer`].
    pub fn begin_transfer(&mut self) {
        self.restart();
        self.transfer = true;
    }

    /// Who receives.
    #[must_use]
    pub fn viewer(&self) -> Viewer {
        self.viewer
    }

    /// The newest sequence that the receiver is known to have; none before its first update is delivered.
    #[must_use]
    pub fn baseline(&self) -> Option<StateSequence> {
        (self.baseline != StateSequence::EMPTY).then_some(self.baseline)
    }

    /// Updates whose fate is not known.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn forget_receiver(&mut self) {
        self.baseline = StateSequence::EMPTY;
        self.gone.clear();
        // The delivery of what is under way would say that the receiver knows of removals that are forgotten here,
        // or that it still has what it lost.
        self.in_flight.clear();
    }

    /// Takes note of what the store changed since the last look. Says whether the receiver sees a difference.
    fn observe(&mut self, store: &Store) -> bool {
        let (since, now) = (self.observed, store.sequence());
        if since == now {
            return false;
        }
        let mut news = store.acks_changed > since && self.acks(store, since).next().is_some();
        news |= store.acks_changed > since && self.viewer == Viewer::Everything;
        let ids: BTreeSet<KeyId> = if since < store.forgotten {
            store.entries.keys().chain(self.held.keys()).copied().collect()
        } else {
            store.changed_since(since).collect()
        };
        for id in ids {
            match (self.visible(store, id), self.held.contains_key(&id)) {
                (Some(entry), true) => news |= self.is_news(entry, since),
                (Some(_), false) => {
                    self.held.insert(id, now);
                    self.gone.remove(&id);
                    news = true;
                }
                (None, true) => {
                    self.held.remove(&id);
                    self.gone.insert(id, now);
                    news = true;
                }
                (None, false) => {}
            }
        }
        self.observed = now;
        news
    }

    /// An update for a receiver that is at `baseline` or later.
    fn update(&self, store: &Store, baseline: StateSequence) -> Bytes {
        let complete = baseline == StateSequence::EMPTY;
        let everything = self.viewer == Viewer::Everything;
        let head = UpdateHead {
            sequence: store.sequence(),
            baseline,
            source: match (complete, self.transfer) {
                (false, _) => Source::Delta,
                (true, false) => Source::Complete,
                (true, true) => Source::Transfer,
            },
            tick: store.tick,
            server_time: store.server_time,
            input_acks: self.acks(store, StateSequence::EMPTY).collect(),
            next_key: everything.then_some(store.next_key),
        };
        let ids: BTreeSet<KeyId> = if complete {
            self.held.keys().copied().collect()
        } else {
            store.changed_since(baseline).filter(|id| self.held.contains_key(id)).collect()
        };
        let entries: Vec<EntryRef<'_>> = ids
            .into_iter()
            .filter_map(|id| {
                let (since, entry) = (self.held[&id], self.visible(store, id)?);
                // A receiver that saw the key all the time since `baseline` knows its name.
                let declared = complete || since > baseline || entry.declared > baseline;
                (declared || self.is_news(entry, baseline)).then(|| EntryRef {
                    id,
                    declared: declared.then_some((&*entry.name, &entry.content.hints)),
                    audience: everything.then_some(&entry.content.audience),
                    encoded: &entry.content.encoded,
                })
            })
            .collect();
        write_update(&head, self.gone.keys().copied(), entries.into_iter())
    }

    fn visible<'a>(&self, store: &'a Store, id: KeyId) -> Option<&'a Entry> {
        store.entries.get(&id).filter(|entry| entry.content.audience.admits(self.viewer))
    }

    /// Whether a receiver that saw the key at `since` would see a difference now. Who else may see it is news only
    /// to whoever sees everything.
    fn is_news(&self, entry: &Entry, since: StateSequence) -> bool {
        entry.shown > since || self.viewer == Viewer::Everything && entry.changed > since
    }

    /// Acknowledgements for the receiver that changed after `since`.
    fn acks<'a>(
        &self,
        store: &'a Store,
        since: StateSequence,
    ) -> impl Iterator<Item = (MemberId, Tick)> + use<'a> {
        let viewer = self.viewer;
        let seen = move |member: &MemberId| match viewer {
            Viewer::Everything => true,
            Viewer::Member(own) => own == *member,
        };
        let acks = store.acks.iter().filter(move |(member, ack)| seen(member) && ack.changed > since);
        acks.map(|(member, ack)| (*member, ack.tick))
    }
}

#[cfg(test)]
mod tests;
