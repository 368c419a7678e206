//! The last samples of one key.

use super::{WholeNumbers, interpolate};
use crate::keyed::Hints;
use crate::limits::{HISTORY_DEPTH_MAX, STILL_AFTER};
use crate::value::Value;
use core::time::Duration;
use parlor_proto::Instant;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

/// The last samples of one key, oldest first. Not empty after the first push.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    samples: VecDeque<Sample>,
    hints: Hints,
}

#[derive(Clone, Debug)]
struct Sample {
    at: Instant,
    value: Arc<Value>,
    /// Whether values are not interpolated between the sample before and this one.
    cut: bool,
}

impl Track {
    /// Appends the value of the key at `at` of room time.
    pub(super) fn push(
        &mut self,
        at: Instant,
        value: Arc<Value>,
        hints: Hints,
        cut: bool,
        tick_interval: Duration,
    ) {
        self.hints = hints;
        if let Some(last) = self.samples.back_mut() {
            if at <= last.at {
                *last = Sample { at: last.at, value, cut: cut || last.cut };
                return;
            }
            // Updates are sent only for changes. A value unchanged for long stood still, and would otherwise
            // seem to have moved slowly ever since.
            let moved_from = at - tick_interval;
            if at.saturating_since(last.at) > STILL_AFTER && moved_from > last.at {
                let still = Sample { at: moved_from, value: Arc::clone(&last.value), cut: false };
                self.append(still);
            }
        }
        self.append(Sample { at, value, cut });
    }

    /// Drops samples that are not needed from the moment `shown` on.
    pub(super) fn forget_before(&mut self, shown: Instant) {
        while self.samples.get(1).is_some_and(|second| second.at <= shown) {
            self.samples.pop_front();
        }
    }

    /// The number of samples.
    pub(super) fn depth(&self) -> usize {
        self.samples.len()
    }

    pub(super) fn value_at(&self, at: Instant, whole_numbers: WholeNumbers) -> Cow<'_, Value> {
        let next = self.samples.partition_point(|sample| sample.at <= at);
        let before = next.checked_sub(1).and_then(|index| self.samples.get(index));
        match (before, self.samples.get(next)) {
            (Some(from), Some(to)) if !to.cut => {
                let (done, whole) = (at.saturating_since(from.at), to.at.saturating_since(from.at));
                let t = done.as_secs_f64() / whole.as_secs_f64();
                Cow::Owned(interpolate(&from.value, &to.value, t, &self.hints, whole_numbers))
            }
            (Some(only), _) | (None, Some(only)) => Cow::Borrowed(&only.value),
            (None, None) => Cow::Owned(Value::Null),
        }
    }

    fn append(&mut self, sample: Sample) {
        if self.samples.len() == HISTORY_DEPTH_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}
