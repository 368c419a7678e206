//! The keyed state as this process holds it: the host writes and publishes, everybody else decodes and smooths.

use super::event::{StateSource, StateUpdate};
use super::info::Diagnostics;
use bytes::Bytes;
use parlor_proto::session::{Outgoing, Session, Tag};
use parlor_proto::{Instant, MemberId, Tick, TickRate, channel};
use parlor_sync::interpolation::{Playout, PlayoutMetrics};
use parlor_sync::keyed::{
    Outcome, Publisher, Replica, Sent, Source, StateSequence, StateStamp, Store, UpdateError, Viewer,
};
use parlor_sync::value::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// One end's share of the state.
#[derive(Debug)]
pub(super) enum SharedState {
    /// The authority's: it writes.
    Host { store: Store, publisher: Publisher, published: u64 },
    /// A member's: it reads.
    Member { replica: Replica, playout: Playout, interval_ms: f64 },
}

impl SharedState {
    pub(super) fn new(is_host: bool, rate: TickRate) -> Self {
        if is_host {
            // The hub sees everything, so that it can give every member its view.
            SharedState::Host {
                store: Store::new(),
                publisher: Publisher::new(Viewer::Everything),
                published: 0,
            }
        } else {
            let interval_ms = rate.interval().as_secs_f64() * 1_000.0;
            SharedState::Member {
                replica: Replica::new(),
                playout: Playout::new(rate.interval()),
                interval_ms,
            }
        }
    }

    /// Where the host writes; `None` for anybody else.
    pub(super) fn store_mut(&mut self) -> Option<&mut Store> {
        match self {
            SharedState::Host { store, .. } => Some(store),
            SharedState::Member { .. } => None,
        }
    }

    /// Closes what was set since the last commit. Says whether there is something to publish.
    pub(super) fn commit(
        &mut self,
        tick: Tick,
        server_time: Instant,
        used: &BTreeMap<MemberId, Tick>,
    ) -> bool {
        let SharedState::Host { store, .. } = self else { return false };
        // A clock that is set back, or a game that begins to ask for steps, must not make the state older than it was.
        let server_time = server_time.max(store.stamp().server_time);
        let committed = store.commit(StateStamp { tick, server_time, input_acks: used.clone() });
        committed
            .expect("a room has no more members than acknowledgements fit, and no more steps than sequences")
            .is_some()
    }

    /// Sends the hub what it does not have yet.
    pub(super) fn publish(&mut self, session: &mut Session) {
        let SharedState::Host { store, publisher, published } = self else { return };
        let Some((payload, sent)) = publisher.poll_update(store) else { return };
        let tag = Some(Tag(sent.0));
        // It fails only when the session is over, and then nothing is owed to anybody.
        if session.send(Outgoing { tag, ..Outgoing::new(channel::STATE, payload) }).is_ok() {
            *published += 1;
        }
    }

    /// What became of an update that was published.
    pub(super) fn fate(&mut self, tag: Tag, delivered: bool) {
        let SharedState::Host { publisher, .. } = self else { return };
        if delivered {
            publisher.delivered(Sent(tag.0));
        } else {
            publisher.lost(Sent(tag.0));
        }
    }

    /// Takes an update of the host in; `None` if it brings nothing new.
    pub(super) fn take_update(
        &mut self,
        payload: Bytes,
        me: MemberId,
        at: Instant,
    ) -> Result<Option<StateUpdate>, UpdateError> {
        let SharedState::Member { replica, playout, interval_ms } = self else { return Ok(None) };
        let Outcome::Taken(applied) = replica.apply(payload)? else { return Ok(None) };
        playout.observe(at, &applied, replica);
        playout.render_time(at);
        let head = &applied.head;
        let changes =
            applied.changes.changed.iter().map(|change| &change.key).chain(&applied.changes.removed);
        let mut changed: Vec<String> = changes.map(|key| key.to_string()).collect();
        changed.sort_unstable();
        let PlayoutMetrics { jitter, buffer_delay, buffered_server_time, history_depth } = playout.metrics();
        Ok(Some(StateUpdate {
            sequence: head.sequence.0,
            server_tick: head.tick,
            server_time_ms: head.server_time.as_millis(),
            tick_interval_ms: *interval_ms,
            input_ack_tick: head.input_acks.iter().find(|(member, _)| *member == me).map(|(_, tick)| *tick),
            source: match head.source {
                Source::Delta => StateSource::Delta,
                Source::Complete => StateSource::Complete,
                Source::Transfer => StateSource::Transfer,
            },
            jitter_ms: ms(jitter),
            buffer_delay_ms: ms(buffer_delay),
            history_depth,
            buffered_server_time_ms: ms(buffered_server_time),
            changed,
        }))
    }

    pub(super) fn get(&self, key: &str) -> Option<Value> {
        match self {
            SharedState::Host { store, .. } => store.get(key),
            SharedState::Member { replica, .. } => replica.get(key).cloned(),
        }
    }

    pub(super) fn interpolated(&mut self, key: &str, now: Instant) -> Option<Value> {
        match self {
            SharedState::Host { store, .. } => store.get(key),
            SharedState::Member { playout, .. } => {
                let at = playout.render_time(now)?;
                playout.value_at(key, at).map(std::borrow::Cow::into_owned)
            }
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        match self {
            SharedState::Host { store, .. } => store.item(key).is_some(),
            SharedState::Member { replica, .. } => replica.get(key).is_some(),
        }
    }

    pub(super) fn keys(&self) -> Vec<String> {
        match self {
            SharedState::Host { store, .. } => store.iter().map(|item| item.key.to_string()).collect(),
            SharedState::Member { replica, .. } => replica.iter().map(|(key, _)| key.to_string()).collect(),
        }
    }

    /// The sequence of what the reads give; `None` before the first update.
    pub(super) fn sequence(&self) -> Option<u64> {
        let sequence = match self {
            SharedState::Host { store, .. } => store.sequence(),
            SharedState::Member { replica, .. } => replica.sequence(),
        };
        (sequence != StateSequence::EMPTY).then_some(sequence.0)
    }

    /// The sequence and the hash of what the reads give; `None` before the first update.
    pub(super) fn hash(&self) -> Option<(u64, u64)> {
        let hash = match self {
            SharedState::Host { store, .. } => store.hash(Viewer::Everything),
            SharedState::Member { replica, .. } => replica.hash(),
        };
        Some((self.sequence()?, hash))
    }

    pub(super) fn diagnose(&self, diagnostics: &mut Diagnostics) {
        match self {
            SharedState::Host { published, .. } => diagnostics.updates_published = *published,
            SharedState::Member { replica, playout, .. } => {
                let counters = replica.counters();
                diagnostics.updates_decoded = counters.taken;
                diagnostics.updates_outdated = counters.old;
                diagnostics.updates_gapped = counters.gaps;
                diagnostics.jitter_ms = ms(playout.metrics().jitter);
                diagnostics.buffer_delay_ms = ms(playout.metrics().buffer_delay);
            }
        }
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
