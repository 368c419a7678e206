//! Random secrets, what is kept of them, and the time of day.

use super::failure::Failure;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::digest;
use std::time::{SystemTime, UNIX_EPOCH};

/// Random bytes of the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::defect(&format!("the operating system gives no random numbers: {error}"))
    })?;
    Ok(bytes)
}

/// A secret that nobody guesses, as text.
pub(super) fn secret() -> Result<String, Failure> {
    Ok(BASE64URL_NOPAD.encode(&random::<32>()?))
}

/// An id that nobody else draws, as text. It begins with a letter that says of what.
pub(super) fn id(kind: char) -> Result<String, Failure> {
    Ok(format!("{kind}{}", HEXLOWER.encode(&random::<12>()?)))
}

/// What is kept of a secret that is too long to be guessed: with this alone nobody has the secret.
pub(super) fn digest(secret: &str) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, secret.as_bytes()).as_ref())
}

/// Whether two hashes are the same, in a time that does not tell where they differ.
pub(super) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// The time of day, in milliseconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "rooms and tokens outlive processes, and processes have no other clock in common"
)]
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
