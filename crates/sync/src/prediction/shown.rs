//! Display of predicted rows: interpolates between two steps and hides the jump of a correction.

use crate::interpolation::{Row as Ends, Sample};
use crate::replicator::motion::Motion;
use crate::schema::{Component, Kind};
use crate::world::Row;
use core::f64::consts::FRAC_PI_2;
use core::time::Duration;
use parlor_proto::Instant;

/// How corrections are smoothed for display.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothing {
    /// The time in which a displacement fades out linearly; zero shows corrections at once. Default: 100 ms.
    /// A shorter fade looks like a jump. A longer one shows the player in a wrong place for too long.
    pub fade: Duration,
    /// A displacement beyond this, in the unit of the field, is not smoothed. Default: `None`, a sixteenth of
    /// the field's range, which only a teleport crosses within a round trip. For angles and rotations the
    /// limit is a quarter turn.
    pub leap: Option<f64>,
}

impl Default for Smoothing {
    fn default() -> Self {
        Smoothing { fade: Duration::from_millis(100), leap: None }
    }
}

/// The part of a field's range beyond which a displacement counts as a teleport.
const LEAP_PART: f64 = 1.0 / 16.0;

/// The moment of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// The position of the simulation between its newest step and the next: 0 to 1.
    pub phase: f64,
    /// The time on the local clock.
    pub now: Instant,
}

/// The displacement of one component of one entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Eye {
    /// What was shown when the correction began, if anything was.
    before: Vec<f64>,
    was_shown: bool,
    /// The offset added to the rows, and since when it fades.
    offset: Vec<f64>,
    since: Option<Instant>,
}

/// Two rows to interpolate between, the older first.
pub(super) type Pair<'a> = [Row<'a>; 2];

impl Eye {
    /// Drops the displacement: the rows are shown as they are.
    pub(super) fn snap(&mut self) {
        (self.was_shown, self.since) = (false, None);
    }

    /// Sets `sample` to the interpolation of two rows at a frame, plus the rest of a displacement.
    pub(super) fn show(
        &self,
        (component, motion): (&Component, &Motion),
        rows: Pair<'_>,
        frame: Frame,
        fade: Duration,
        sample: &mut Sample,
    ) {
        let [older, newer] = rows.map(|(lanes, blobs)| Ends { lanes, blobs });
        // Nothing is extrapolated, so the length of a step does not matter.
        sample.mix(component, older, newer, 0.0, frame.phase.clamp(0.0, 1.0));
        let Some(since) = self.since else { return };
        let elapsed = frame.now.saturating_since(since);
        if elapsed < fade {
            let left = 1.0 - elapsed.as_secs_f64() / fade.as_secs_f64();
            motion.put(sample.numbers_mut(), &self.offset, left);
        }
    }

    /// Begins a correction: records what is shown.
    pub(super) fn begin(&mut self, shown: Option<&Sample>) {
        self.was_shown = shown.is_some();
        self.before.clear();
        self.before.extend_from_slice(shown.map(Sample::numbers).unwrap_or_default());
    }

    /// Ends a correction: fades from what was shown to `right`. Returns the displacement, in the unit of the
    /// field with the largest one.
    pub(super) fn end(
        &mut self,
        (component, motion): (&Component, &Motion),
        right: Option<&Sample>,
        now: Instant,
        leap: Option<f64>,
    ) -> f64 {
        self.since = None;
        let Some(right) = right.filter(|_| std::mem::take(&mut self.was_shown)) else { return 0.0 };
        let before = &mut self.before;
        let mut furthest = 0.0f64;
        for (index, field) in component.fields().iter().enumerate() {
            let off = motion.deviation(index, before, right.numbers());
            furthest = furthest.max(off.off_by);
            if off.off_by > leap.unwrap_or_else(|| leap_of(&field.kind)) || off.turned_by > FRAC_PI_2 {
                let numbers = component.field_numbers(index);
                before[numbers.clone()].copy_from_slice(&right.numbers()[numbers]);
            }
        }
        motion.offset(before, right.numbers(), &mut self.offset);
        self.since = Some(now);
        furthest
    }
}

/// The largest displacement of a field that is smoothed, in its unit.
fn leap_of(kind: &Kind) -> f64 {
    match kind {
        Kind::Float { min, max, .. } | Kind::Vector { min, max, .. } => (max - min) * LEAP_PART,
        Kind::Transform { position, .. } | Kind::Body { position, .. } => {
            (position.max - position.min) * LEAP_PART
        }
        // The chord of a sixth of a turn. The other kinds do not move, or only turn.
        _ => 1.0,
    }
}
