//! Random secrets, and what is kept of them.

use super::failure::Failure;
use crate::system;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::digest;

/// Random bytes of the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    system::random()
        .map_err(|error| Failure::defect(&format!("the operating system gives no random numbers: {error}")))
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
