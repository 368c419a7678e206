//! Timers of the generator. The runtime's own timers count in milliseconds, which would synchronize the
//! senders and spare the server work; the kernel's timer is exact.

use anyhow::Context;
use parlor_proto::Instant;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// The time since the bench began, for machines without a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { started: std::time::Instant::now() }
    }

    /// Microseconds since a little before the start, so that "a moment ago" exists from the beginning on.
    pub(crate) fn now(self) -> Instant {
        Instant::from_millis(1_000) + self.started.elapsed()
    }
}

/// Wakes by number, earliest first. A wake that was replaced by an earlier one still comes; whoever gets it looks
/// whether there is anything to do.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    wakes: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Agenda {
    pub(crate) fn add(&mut self, at: Instant, who: usize) {
        self.wakes.push(Reverse((at, who)));
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.wakes.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes one wake that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(Instant, usize)> {
        self.next_at().filter(|at| *at <= now)?;
        self.wakes.pop().map(|Reverse(wake)| wake)
    }
}

/// One timer of the kernel.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: AsyncFd<OwnedFd>,
    /// When it goes off.
    armed: Cell<Option<Instant>>,
}

impl Timer {
    /// A timer that is not set. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags).context("the kernel gives no timer")?;
        #[expect(
            deprecated,
            reason = "its replacement is unsafe, for types that change their file; OwnedFd does not"
        )]
        let fd = AsyncFd::new(fd)?;
        Ok(Timer { fd, armed: Cell::new(None) })
    }

    /// Lets it go off at `at`, if it does not before.
    pub(crate) fn arm(&self, at: Option<Instant>, clock: Clock) -> io::Result<()> {
        let Some(at) = at.filter(|at| self.armed.get().is_none_or(|armed| *at < armed)) else {
            return Ok(());
        };
        // Zero would switch it off.
        let wait = at.saturating_since(clock.now()).max(Duration::from_nanos(1));
        let value = Timespec::try_from(wait).map_err(io::Error::other)?;
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        self.armed.set(Some(at));
        Ok(())
    }

    /// Waits until it goes off. May be cancelled.
    pub(crate) async fn fired(&self) -> io::Result<()> {
        loop {
            let mut ready = self.fd.readable().await?;
            let mut count = [0_u8; 8];
            let read = ready.try_io(|fd| rustix::io::read(fd.get_ref(), &mut count).map_err(io::Error::from));
            if let Ok(read) = read {
                read?;
                self.armed.set(None);
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakes_come_when_they_are_due_earliest_first() {
        let mut agenda = Agenda::default();
        let at = Instant::from_millis;
        for (ms, who) in [(3, 30), (1, 10), (2, 20)] {
            agenda.add(at(ms), who);
        }
        assert_eq!(agenda.next_at(), Some(at(1)));
        assert_eq!(agenda.pop_due(Instant::ZERO), None);
        assert_eq!(agenda.pop_due(at(2)), Some((at(1), 10)));
        assert_eq!(agenda.pop_due(at(2)), Some((at(2), 20)));
        assert_eq!(agenda.pop_due(at(2)), None);
    }

    #[tokio::test]
    async fn a_timer_goes_off_at_the_earliest_time_it_was_given() {
        let (clock, timer) = (Clock::start(), Timer::new().expect("Linux has timers"));
        let soon = clock.now() + Duration::from_micros(200);
        timer.arm(Some(soon + Duration::from_secs(3_600)), clock).expect("it can be set");
        timer.arm(Some(soon), clock).expect("it can be set");
        timer.arm(Some(soon + Duration::from_secs(3_600)), clock).expect("it stays as it is");
        timer.fired().await.expect("it can be read");
        assert!(clock.now() + Duration::from_micros(1) >= soon);
        timer.arm(Some(Instant::ZERO), clock).expect("it can be set");
        timer.fired().await.expect("what is past goes off at once");
    }
}
