//! Playout of a room's keys: their last samples, and the moment to show.

use super::WholeNumbers;
use super::timeline::{RenderDelay, Timeline};
use super::track::Track;
use crate::keyed::{Changes, KeyReader, Shown};
use crate::value::Value;
use crate::world::Applied;
use core::time::Duration;
use parlor_proto::OrderedMap;
use parlor_proto::{Instant, Tick, TickRate};
use std::borrow::Cow;
use std::sync::Arc;

/// Plays out the keyed state of one replica, and determines which moment of its world to show.
#[derive(Clone, Debug)]
pub struct Playout {
    rate: TickRate,
    timeline: Timeline,
    tracks: OrderedMap<Arc<str>, Track>,
    whole_numbers: WholeNumbers,
    /// The newest tick received.
    newest: Option<Tick>,
    /// Whether the last packet belonged to a transfer.
    is_transfer: bool,
}

/// Playout metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayoutMetrics {
    /// How much later than the fastest nearly all updates arrive.
    pub jitter: Duration,
    /// How far the moment shown is behind the fastest update.
    pub buffer_delay: Duration,
    /// The largest number of samples of a key, at most
    /// [`HISTORY_DEPTH_MAX`](crate::limits::HISTORY_DEPTH_MAX).
    pub history_depth: usize,
    /// How far the newest update is ahead of the moment shown; zero once playout has caught up with it.
    pub buffered_server_time: Duration,
}

impl Playout {
    /// Creates a playout for a room with this tick rate.
    pub fn new(rate: TickRate) -> Self {
        Playout {
            rate,
            timeline: Timeline::new(rate.interval()),
            tracks: OrderedMap::new(),
            whole_numbers: WholeNumbers::default(),
            newest: None,
            is_transfer: false,
        }
    }

    /// Sets the bounds of how far behind the newest update the moment to show is.
    pub fn set_delay(&mut self, delay: RenderDelay) {
        self.timeline.set_delay(delay);
    }

    /// Sets how whole numbers move.
    pub fn set_whole_numbers(&mut self, whole_numbers: WholeNumbers) {
        self.whole_numbers = whole_numbers;
    }

    /// Takes in the samples of a packet that arrived at `now` of the local clock and changed `changes` of the
    /// keys in `keys`. The first packet of a transfer drops all earlier samples: values are not interpolated
    /// across it.
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
        // A repeated packet does not measure the transit time.
        if self.newest.is_none_or(|newest| applied.tick.is_newer_than(newest)) {
            self.newest = Some(applied.tick);
            self.timeline.arrived(now, self.rate.begins(applied.tick));
        }
    }

    /// Returns the moment of room time to show at `now` of the local clock. It never runs backwards, except
    /// across a transfer. `None` before the first update.
    pub fn render_time(&mut self, now: Instant) -> Option<Instant> {
        self.timeline.render_time(now)
    }

    /// Returns the value of `key` at the moment `at` of room time: its first sample before that, and its last
    /// one after that.
    pub fn value_at(&self, key: &str, at: Instant) -> Option<Cow<'_, Value>> {
        self.tracks.get(key).map(|track| track.value_at(at, self.whole_numbers))
    }

    /// All keys that have a value, in ascending order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.tracks.keys()
    }

    /// Returns the metrics of the last [`render_time`](Self::render_time).
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
        let track = self.tracks.get_or_insert_with(Arc::clone(key), Default::default);
        if let Some(moment) = self.timeline.shown() {
            track.forget_before(moment);
        }
        let (at, interval) = (self.rate.begins(tick), self.timeline.tick_interval());
        track.push(at, Arc::clone(value), hints.clone(), cut, interval);
    }
}
