//! Random numbers and the time of day, from the operating system.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns random bytes.
pub fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map(|()| bytes)
}

/// The time of day, in milliseconds since 1970.
pub fn unix_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

/// The same in seconds.
pub fn unix_s() -> u64 {
    since_1970().as_secs()
}

/// Bytes of memory that this process may use: the machine's, or its container's limit if that is lower.
/// `None` if the system reports neither.
pub fn memory_bytes() -> Option<usize> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
    });
    let container = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
    machine.into_iter().chain(container).min()
}

#[allow(
    clippy::disallowed_methods,
    reason = "tokens and rooms outlive processes, and those who make and read them have no other clock in common"
)]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
