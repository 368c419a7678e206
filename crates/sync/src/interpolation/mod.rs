//! Playing values out smoothly: a little behind the newest update, between the two samples around the moment shown.
//!
//! A [`Playout`] is fed with what a [`Replica`] took in. Its [`Timeline`] says which moment of the room to show, its
//! tracks hold the last samples of each key, and [`interpolate`] mixes two of them. Nothing is extrapolated: when
//! samples run out, the newest stands.
//!
//! - Numbers move in a straight line; whole numbers through the whole numbers in between. The hint
//!   [`Interp::Snap`](crate::keyed::Interp::Snap) is for counts and ids, of which half a step is a lie.
//! - Angles, if a hint says that they are, take the shorter way around.
//! - Lists of one length and maps move part by part.
//! - Everything else stays what it was until the newer sample is due.

mod mix;
mod timeline;
mod track;

pub use mix::interpolate;
pub use timeline::Timeline;

use crate::keyed::{Applied, Replica, Source};
use crate::value::Value;
use core::time::Duration;
use parlor_proto::Instant;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use track::Track;

/// Plays the values of one replica out.
#[derive(Clone, Debug)]
pub struct Playout {
    timeline: Timeline,
    tracks: BTreeMap<Arc<str>, Track>,
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
    /// A playout of a room whose ticks are `tick_interval` apart.
    #[must_use]
    pub fn new(tick_interval: Duration) -> Self {
        Playout { timeline: Timeline::new(tick_interval), tracks: BTreeMap::new() }
    }

    /// Takes the samples of an update that `replica` has just taken in, and that arrived at `now` of the local
    /// clock. After a transfer nothing of before is shown or mixed any more.
    pub fn observe(&mut self, now: Instant, applied: &Applied, replica: &Replica) {
        let head = &applied.head;
        for key in &applied.changes.removed {
            self.tracks.remove(key);
        }
        if head.source == Source::Transfer {
            self.tracks.clear();
            self.timeline.restart();
            for (key, value) in replica.iter() {
                self.sample(key, value, head.server_time, replica, true);
            }
        } else {
            for change in &applied.changes.changed {
                if let Some(value) = replica.shared(&change.key) {
                    self.sample(&change.key, value, head.server_time, replica, change.created);
                }
            }
        }
        self.timeline.arrived(now, head.server_time);
    }

    /// The moment of room time to show at `now` of the local clock; it never runs backwards, except across a
    /// transfer. None before the first update.
    pub fn render_time(&mut self, now: Instant) -> Option<Instant> {
        self.timeline.render_time(now)
    }

    /// The value of `key` at the moment `at` of room time. Before its first sample that stands, and after its last
    /// one that does.
    #[must_use]
    pub fn value_at(&self, key: &str, at: Instant) -> Option<Cow<'_, Value>> {
        self.tracks.get(key).map(|track| track.value_at(at))
    }

    /// All keys that have a value, in ascending order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.tracks.keys()
    }

    /// How it is doing, as of the last [`render_time`](Self::render_time).
    #[must_use]
    pub fn metrics(&self) -> PlayoutMetrics {
        PlayoutMetrics {
            jitter: self.timeline.jitter(),
            buffer_delay: self.timeline.buffer_delay(),
            history_depth: self.tracks.values().map(Track::depth).max().unwrap_or(0),
            buffered_server_time: self.timeline.buffered(),
        }
    }

    fn sample(&mut self, key: &Arc<str>, value: &Arc<Value>, at: Instant, replica: &Replica, cut: bool) {
        let track = self.tracks.entry(Arc::clone(key)).or_default();
        if let Some(shown) = self.timeline.shown() {
            track.forget_before(shown);
        }
        let hints = replica.hints(key).cloned().unwrap_or_default();
        track.push(at, Arc::clone(value), hints, cut, self.timeline.tick_interval());
    }
}

#[cfg(test)]
mod tests;
