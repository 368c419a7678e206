//! What the eye is shown of predicted rows: between two steps, and without the jump that a correction makes.

use crate::interpolation::{Row as Ends, Sample};
use crate::replicator::motion::Motion;
use crate::schema::{Component, Kind};
use crate::world::Row;
use core::f64::consts::FRAC_PI_2;
use core::time::Duration;
use parlor_proto::Instant;

/// How what a correction displaces is kept from the eye.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothing {
    /// In this time the displacement fades, evenly; zero shows corrections at once. 100 ms by default:
    /// shorter looks like a jump, and longer shows the player for too long where it is not.
    pub fade: Duration,
    /// A field that is displaced further is shown where it is at once, in the units of the field. `None`, the
    /// default: by more than a sixteenth of its range, which nothing crosses within a round trip and only a
    /// leap does. Angles and rotations leap from a quarter of a turn on.
    pub leap: Option<f64>,
}

impl Default for Smoothing {
    fn default() -> Self {
        Smoothing { fade: Duration::from_millis(100), leap: None }
    }
}

/// A part of the range of a field beyond which a displacement is a leap.
const LEAP_PART: f64 = 1.0 / 16.0;

/// The moment of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// How far the simulation is on the way from its newest step to the next: 0 to 1.
    pub phase: f64,
    /// The local clock.
    pub now: Instant,
}

/// What a correction displaced, of one component of one entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Eye {
    /// What was shown when the correction began, if anything was.
    before: Vec<f64>,
    was_shown: bool,
    /// What is put on top of the rows, and since when it fades.
    offset: Vec<f64>,
    since: Option<Instant>,
}

/// Two rows as they are shown, the older first.
pub(super) type Pair<'a> = [Row<'a>; 2];

impl Eye {
    /// Forgets what was displaced: what follows is shown as it is.
    pub(super) fn snap(&mut self) {
        (self.was_shown, self.since) = (false, None);
    }

    /// Makes `sample` what lies between two rows at a frame, and what is left of a displacement on top.
    pub(super) fn show(
        &self,
        (component, motion): (&Component, &Motion),
        rows: Pair<'_>,
        frame: Frame,
        fade: Duration,
        sample: &mut Sample,
    ) {
        let [older, newer] = rows.map(|(lanes, blobs)| Ends { lanes, blobs });
        // Nothing is extrapolated, so it does not matter how long a step takes.
        sample.mix(component, older, newer, 0.0, frame.phase.clamp(0.0, 1.0));
        let Some(since) = self.since else { return };
        let elapsed = frame.now.saturating_since(since);
        if elapsed < fade {
            let left = 1.0 - elapsed.as_secs_f64() / fade.as_secs_f64();
            motion.put(sample.numbers_mut(), &self.offset, left);
        }
    }

    /// A correction begins: what is shown is kept.
    pub(super) fn begin(&mut self, shown: Option<&Sample>) {
        self.was_shown = shown.is_some();
        self.before.clear();
        self.before.extend_from_slice(shown.map(Sample::numbers).unwrap_or_default());
    }

    /// A correction is over, and `right` is what is to be shown from now on: whatever was shown goes over to
    /// it. Says how far it was displaced, in the unit of the field that was most.
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

/// How far a field may be displaced without being a leap, in its unit.
fn leap_of(kind: &Kind) -> f64 {
    match kind {
        Kind::Float { min, max, .. } | Kind::Vector { min, max, .. } => (max - min) * LEAP_PART,
        Kind::Transform { position, .. } | Kind::Body { position, .. } => {
            (position.max - position.min) * LEAP_PART
        }
        // The chord of a sixth of a turn; the others do not move, or only turn.
        _ => 1.0,
    }
}
