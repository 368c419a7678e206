//! Instants and ticks. Time is an argument; nothing here reads a clock.

use core::fmt;
use core::num::NonZeroU16;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point on a monotonic clock, in microseconds since an origin that the caller chose.
///
/// Only instants of the same clock may be compared. Instants of a room ("room time") have the room's opening
/// as their origin. Instants passed to a machine are from the process that drives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin of its clock.
    pub const ZERO: Instant = Instant(0);

    /// The instant `micros` µs after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Instant(micros)
    }

    /// The instant `millis` ms after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Instant(millis * 1_000)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the origin, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// How long after `earlier` this instant is; zero if it is not after it.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Instant;
    /// Saturates at the end of time instead of wrapping.
    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(micros(rhs)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    /// Saturates at the origin instead of wrapping.
    fn sub(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_sub(micros(rhs)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// A fixed step of a room, numbered from the room's opening. The number wraps, so ticks have no order of
/// their own. Use [`is_newer_than`](Tick::is_newer_than) or [`since`](Tick::since), which are correct for
/// ticks less than 2³¹ steps apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tick(pub u32);

impl Tick {
    /// The next step.
    pub const fn next(self) -> Tick {
        Tick(self.0.wrapping_add(1))
    }

    /// Returns this tick moved by `steps`, which may be negative.
    pub const fn offset(self, steps: i32) -> Tick {
        Tick(self.0.wrapping_add_signed(steps))
    }

    /// Steps from `earlier` to this tick; negative if this one is older.
    #[allow(clippy::cast_possible_wrap)] // the wrap is intended: the distance on a circle of 2³² steps
    pub const fn since(self, earlier: Tick) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// Whether this tick comes after `other`.
    pub const fn is_newer_than(self, other: Tick) -> bool {
        self.since(other) > 0
    }

    /// The low half of the number, which packets carry.
    #[allow(clippy::cast_possible_truncation)]
    pub const fn to_wire(self) -> u16 {
        self.0 as u16
    }

    /// The tick nearest to `near` whose low half is `wire`.
    #[allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation)]
    pub const fn from_wire(wire: u16, near: Tick) -> Tick {
        near.offset(wire.wrapping_sub(near.0 as u16) as i16 as i32)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tick {}", self.0)
    }
}

/// Steps per second of a room, 1 to [`limits::TICK_HZ_MAX`](crate::limits::TICK_HZ_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TickRate(NonZeroU16);

impl TickRate {
    /// The default rate: 30 steps a second.
    pub const DEFAULT: TickRate = TickRate(NonZeroU16::new(30).expect("30 is not zero"));

    /// A rate of `hz` steps per second; `None` outside 1..=[`TICK_HZ_MAX`](crate::limits::TICK_HZ_MAX).
    pub const fn new(hz: u16) -> Option<TickRate> {
        match NonZeroU16::new(hz) {
            Some(hz) if hz.get() <= crate::limits::TICK_HZ_MAX => Some(TickRate(hz)),
            _ => None,
        }
    }

    /// Steps per second.
    pub const fn hz(self) -> u16 {
        self.0.get()
    }

    /// The length of one step.
    pub const fn interval(self) -> Duration {
        Duration::from_nanos(1_000_000_000 / self.0.get() as u64)
    }

    /// Returns the step that is running at `at`, an instant of room time.
    ///
    /// It is computed from the origin each time, so that a rate whose interval is not a whole number of
    /// microseconds does not drift.
    #[allow(clippy::cast_possible_truncation)] // the number of a tick wraps
    pub const fn tick_at(self, at: Instant) -> Tick {
        Tick((at.as_micros() as u128 * self.hz() as u128 / 1_000_000) as u32)
    }

    /// When the step `tick` begins, in room time: the first microsecond for which [`tick_at`](Self::tick_at)
    /// returns it. Exact until the number wraps, after half a year at the highest rate.
    pub const fn begins(self, tick: Tick) -> Instant {
        Instant::from_micros((tick.0 as u64 * 1_000_000).div_ceil(self.hz() as u64))
    }

    /// How long the step running at `at` has been running: less than one [`interval`](Self::interval).
    #[allow(clippy::cast_possible_truncation)] // below one second
    pub const fn phase_at(self, at: Instant) -> Duration {
        let scaled = at.as_micros() as u128 * self.hz() as u128 % 1_000_000;
        Duration::from_micros((scaled / self.hz() as u128) as u64)
    }
}

impl Default for TickRate {
    fn default() -> Self {
        TickRate::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tick_survives_the_wire_if_the_reader_is_within_half_a_circle(tick: u32, off in -32_768i32..=32_767) {
            let tick = Tick(tick);
            prop_assert_eq!(Tick::from_wire(tick.to_wire(), tick.offset(-off)), tick);
        }

        #[test]
        fn order_holds_across_the_wrap(tick: u32, steps in 1i32..i32::MAX) {
            let later = Tick(tick).offset(steps);
            prop_assert!(later.is_newer_than(Tick(tick)));
            prop_assert!(!Tick(tick).is_newer_than(later));
            prop_assert_eq!(later.since(Tick(tick)), steps);
        }

        #[test]
        fn a_step_begins_with_its_first_microsecond(hz in 1u16..=240, tick in 1u32..) {
            let (rate, tick) = (TickRate::new(hz).unwrap(), Tick(tick));
            let begins = rate.begins(tick);
            prop_assert_eq!(rate.tick_at(begins), tick);
            prop_assert_eq!(rate.tick_at(begins - Duration::from_micros(1)), tick.offset(-1));
        }

        #[test]
        fn phase_and_tick_tell_one_time(hz in 1u16..=240, micros in 0u64..1 << 40) {
            let (rate, at) = (TickRate::new(hz).unwrap(), Instant::from_micros(micros));
            prop_assert!(rate.phase_at(at) <= rate.interval());
            let began = at - rate.phase_at(at);
            // The step began within one microsecond of rounding.
            prop_assert!(rate.tick_at(began + Duration::from_micros(1)) == rate.tick_at(at));
        }
    }
}
