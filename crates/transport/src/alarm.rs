//! A reusable timer for one waiting task, such as a server's shard thread.
//!
//! On Linux it is a timer of the operating system (timerfd). A tokio timer would wake the thread more often
//! than it fires. A distant one lies in a coarse slot of the timer wheel and is taken out when that slot
//! begins. One moved to an earlier time wakes the very thread that moves it. On a quiet server these wake-ups
//! cost more than all other work.

use core::future::pending;
use core::pin::Pin;
use core::time::Duration;
use std::time::Instant;
use tokio::time::{Sleep, sleep_until};

#[cfg(target_os = "linux")]
use {
    crate::registered::register,
    nix::sys::time::TimeSpec,
    nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
    std::io,
    std::os::fd::{AsFd, AsRawFd, RawFd},
    tokio::io::Interest,
    tokio::io::unix::AsyncFd,
};

/// How much too early the timer may fire.
const EARLY_MAX: Duration = Duration::from_millis(1);

/// The timer. It is set again only if it would fire too late or much too early. An early wake-up costs its
/// owner less than setting the timer each time.
#[derive(Debug)]
pub struct Alarm {
    timer: Timer,
    /// When it fires; `None` after it fired.
    set: Option<Instant>,
}

#[derive(Debug)]
enum Timer {
    #[cfg(target_os = "linux")]
    System(AsyncFd<SystemTimer>),
    /// On other systems, and if the operating system refuses a timer.
    Runtime(Pin<Box<Sleep>>),
}

impl Alarm {
    /// Creates an unset timer. Must be called in a tokio runtime, in which it stays.
    pub fn new() -> Self {
        Alarm { timer: Timer::new(), set: None }
    }

    /// Waits until `due`; for ever if `None`. May return up to 1 ms early, at a time already set.
    /// Cancel-safe.
    pub async fn until(&mut self, due: Option<Instant>) {
        let Some(due) = due else { return pending().await };
        let stays = |set: Instant| set <= due && due.duration_since(set) <= EARLY_MAX;
        if !self.set.is_some_and(stays) {
            self.timer.set(due);
            self.set = Some(due);
        }
        self.timer.gone_off().await;
        self.set = None;
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer {
    fn new() -> Self {
        #[cfg(target_os = "linux")]
        match system_timer() {
            Ok(timer) => return Timer::System(timer),
            Err(error) => tracing::debug!(%error, "the system gives no timer, so the runtime's is used"),
        }
        Timer::runtime(Instant::now())
    }

    fn runtime(at: Instant) -> Self {
        Timer::Runtime(Box::pin(sleep_until(at.into())))
    }

    fn set(&mut self, at: Instant) {
        match self {
            #[cfg(target_os = "linux")]
            Timer::System(timer) => {
                // Zero would switch the timer off.
                let wait = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
                let once = Expiration::OneShot(TimeSpec::from_duration(wait));
                if let Err(error) = timer.get_ref().0.set(once, TimerSetTimeFlags::empty()) {
                    tracing::debug!(%error, "the system's timer was not set, so the runtime's is used");
                    *self = Timer::runtime(at);
                }
            }
            Timer::Runtime(sleep) => sleep.as_mut().reset(at.into()),
        }
    }

    async fn gone_off(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Timer::System(timer) => loop {
                // An error means that the runtime is shutting down, and the waiting task with it.
                let Ok(mut ready) = timer.readable().await else { return pending().await };
                // It may have fired before it was set to a later moment: then there is nothing to read.
                if let Ok(_read) = ready.try_io(|timer| Ok(timer.get_ref().0.wait()?)) {
                    ready.clear_ready();
                    return;
                }
            },
            Timer::Runtime(sleep) => sleep.as_mut().await,
        }
    }
}

/// The timer's file descriptor, registered with the runtime.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct SystemTimer(TimerFd);

#[cfg(target_os = "linux")]
impl AsRawFd for SystemTimer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[cfg(target_os = "linux")]
fn system_timer() -> io::Result<AsyncFd<SystemTimer>> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
    register(SystemTimer(timer), Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    /// The system's timer, where available, and tokio's.
    fn both(start: Instant) -> [Alarm; 2] {
        [Alarm::new(), Alarm { timer: Timer::runtime(start), set: None }]
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_system_gives_a_timer() {
        assert!(matches!(Alarm::new().timer, Timer::System(_)));
    }

    #[tokio::test]
    async fn it_goes_off_when_its_time_has_come() {
        for mut alarm in both(Instant::now()) {
            for wait_us in [0, 300, 7_000, 1, 70_000] {
                let due = Instant::now() + Duration::from_micros(wait_us);
                alarm.until(Some(due)).await;
                assert!(Instant::now() >= due, "{wait_us} µs");
            }
        }
    }

    #[tokio::test]
    async fn it_is_put_off_when_it_would_wake_for_nothing() {
        let start = Instant::now() + Duration::from_secs(3_600);
        for mut alarm in both(start) {
            for (due_ms, set_ms) in [(50, 50), (40, 40), (41, 40), (60, 60), (20, 20)] {
                let due = start + Duration::from_millis(due_ms);
                assert!(timeout(Duration::ZERO, alarm.until(Some(due))).await.is_err());
                assert_eq!(alarm.set, Some(start + Duration::from_millis(set_ms)), "for {due_ms} ms");
            }
        }
    }

    /// The timer fires between two waits; the second wait is for a later moment.
    #[tokio::test]
    async fn what_went_off_before_it_was_set_anew_wakes_nobody() {
        for mut alarm in both(Instant::now()) {
            let first = Instant::now() + Duration::from_millis(1);
            // On a stalled machine it has fired already.
            let _ = timeout(Duration::ZERO, alarm.until(Some(first))).await;
            // The runtime processes the event with this one.
            Alarm::new().until(Some(first + Duration::from_millis(5))).await;
            let later = Instant::now() + Duration::from_millis(100);
            alarm.until(Some(later)).await;
            assert!(Instant::now() >= later);
            assert!(
                timeout(Duration::ZERO, alarm.until(None)).await.is_err(),
                "there is nothing to wait for"
            );
        }
    }
}
