//! The clock of leases.

use core::time::Duration;

/// The time since some moment before this process's start, at whose rate leases end. It goes on while the machine
/// sleeps: on Linux `std::time::Instant` stands still meanwhile, and a node that slept would believe that it has its
/// lease.
#[cfg(target_os = "linux")]
pub(crate) fn uptime() -> Duration {
    of(rustix::time::clock_gettime(rustix::time::ClockId::Boottime))
}

/// The same elsewhere: the monotonic clock of these systems goes on in sleep.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn uptime() -> Duration {
    of(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// The same on Windows, whose `Instant` goes on in sleep.
#[cfg(not(unix))]
pub(crate) fn uptime() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// The processor time of this process. Zero where the system does not tell.
#[cfg(unix)]
pub(crate) fn cpu_time() -> Duration {
    of(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime))
}

#[cfg(not(unix))]
pub(crate) fn cpu_time() -> Duration {
    Duration::ZERO
}

/// These clocks begin at zero, so no time of theirs is below it.
#[cfg(unix)]
fn of(time: rustix::time::Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on() {
        let (before, worked) = (uptime(), cpu_time());
        while cpu_time().saturating_sub(worked) < Duration::from_millis(2) && cfg!(unix) {}
        assert!(uptime() > before);
    }
}
