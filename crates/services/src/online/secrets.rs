//! Random secrets, and their stored hashes.

use super::failure::Failure;
use crate::store::SignInId;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use parlor_server::embed;
use ring::{digest, hmac};

/// Random bytes from the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    embed::random()
        .map_err(|error| Failure::defect(&format!("the operating system gives no random numbers: {error}")))
}

/// Returns an unguessable secret, as text.
pub(super) fn secret() -> Result<String, Failure> {
    Ok(BASE64URL_NOPAD.encode(&random::<32>()?))
}

/// Returns a unique id, as text. Its first letter is its kind.
pub(super) fn id(kind: char) -> Result<String, Failure> {
    Ok(format!("{kind}{}", HEXLOWER.encode(&random::<12>()?)))
}

/// Key from which each refresh token's successor is derived. Useless without a token.
pub(super) struct RefreshKey(hmac::Key);

impl RefreshKey {
    /// The key from its stored form.
    pub(super) fn of(kept: &[u8]) -> Self {
        RefreshKey(hmac::Key::new(hmac::HMAC_SHA256, kept))
    }

    /// The successor of a refresh token's secret: always the same one.
    pub(super) fn successor(&self, sign_in: &SignInId, secret: &str) -> String {
        let code = hmac::sign(&self.0, format!("{sign_in}.{secret}").as_bytes());
        BASE64URL_NOPAD.encode(code.as_ref())
    }
}

/// The stored hash of an unguessably long secret. It does not reveal the secret.
pub(super) fn digest(secret: &str) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, secret.as_bytes()).as_ref())
}

/// Compares two hashes in constant time.
pub(super) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
