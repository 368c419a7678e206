//! What only the operating system has: random numbers, and the time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map(|()| bytes)
}

/// The time of day, in milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

/// The same in seconds.
pub(crate) fn unix_s() -> u64 {
    since_1970().as_secs()
}

#[allow(
    clippy::disallowed_methods,
    reason = "tokens and rooms outlive processes, and those who make and read them have no other clock in common"
)]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
