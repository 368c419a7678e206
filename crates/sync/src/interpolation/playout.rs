//! The last samples of all keys of a room, and the moment to show.

use super::timeline::Timeline;
use super::track::Track;
use crate::keyed::{Changes, KeyReader, Shown};
use crate::value::Value;
use crate::world::Applied;
use core::time::Duration;
use parlor_proto::{Instant, Tick, TickRate};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Plays the keyed state of one replica out, and says which moment of its world to show.
#[derive(Clone, Debug)]
pub struct Playout {
    rate: TickRate,
    timeline: Timeline,
    tracks: BTreeMap<Arc<str>, Track>,
    /// The newest tick that came.
    newest: Option<Tick>,
    /// Whether the last packet belonged to a transfer.
    is_transfer: bool,
}

/// How a playout is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayoutMetrics {
    /// How much later than the fastest nearly all updates arrive.
    pub jitter: Duration,
    /// How far behind the fastest update the moment shown is.
    pub buffer_delay: Duration,
    /// Samples of the key that has most, at most [`HISTORY_DEPTH_MAX`](crate::limits::HISTORY_DEPTH_MAX).
    pub history_depth: usize,
    /// How much newer the newest update is than the moment shown; zero once it stands.
    pub buffered_server_time: Duration,
}

impl Playout {
    /// A playout of a room whose steps come at this rate.
    pub fn new(rate: TickRate) -> Self {
        Playout {
            rate,
            timeline: Timeline::new(rate.interval()),
            tracks: BTreeMap::new(),
            newest: None,
            is_transfer: false,
        }
    }

    /// Takes the samples of a packet that arrived at `now` of the local clock and that changed `changes` of
    /// the keys in `keys`. With the first packet of a transfer all that was before is forgotten, and nothing
    /// is mixed across it.
    pub fn observe(&mut self, now: Instant, applied: &Applied, changes: &Changes, keys: &KeyReader) {
        for key in &changes.removed {
            self.tracks.remove(key);
        }
        if applied.transfer && !self.is_transfer {
            self.tracks.clear();
            self.timeline.restart();
            self.newest = None;
            for (key, _) in keys.iter() {
                self.sample(key, keys.shown(key), applied.tick, true);
            }
        }
        self.is_transfer = applied.transfer;
        for change in &changes.changed {
            let cut = change.created || applied.transfer;
            self.sample(&change.key, keys.shown(&change.key), change.tick, cut);
        }
        // What is sent again says nothing of how long the way here takes.
        if self.newest.is_none_or(|newest| applied.tick.is_newer_than(newest)) {
            self.newest = Some(applied.tick);
            self.timeline.arrived(now, self.rate.begins(applied.tick));
        }
    }

    /// The moment of room time to show at `now` of the local clock; it never runs backwards, except across a
    /// transfer. None before the first update.
    pub fn render_time(&mut self, now: Instant) -> Option<Instant> {
        self.timeline.render_time(now)
    }

    /// The value of `key` at the moment `at` of room time. Before its first sample that stands, and after its
    /// last one that does.
    pub fn value_at(&self, key: &str, at: Instant) -> Option<Cow<'_, Value>> {
        self.tracks.get(key).map(|track| track.value_at(at))
    }

    /// All keys that have a value, in ascending order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.tracks.keys()
    }

    /// How it is doing, as of the last [`render_time`](Self::render_time).
    pub fn metrics(&self) -> PlayoutMetrics {
        PlayoutMetrics {
            jitter: self.timeline.jitter(),
            buffer_delay: self.timeline.buffer_delay(),
            history_depth: self.tracks.values().map(Track::depth).max().unwrap_or(0),
            buffered_server_time: self.timeline.buffered(),
        }
    }

    fn sample(&mut self, key: &Arc<str>, shown: Option<Shown<'_>>, tick: Tick, cut: bool) {
        let Some(Shown { value, hints }) = shown else { return };
        let track = self.tracks.entry(Arc::clone(key)).or_default();
        if let Some(moment) = self.timeline.shown() {
            track.forget_before(moment);
        }
        let (at, interval) = (self.rate.begins(tick), self.timeline.tick_interval());
        track.push(at, Arc::clone(value), hints.clone(), cut, interval);
    }
}
