//! Random secrets, and their stored hashes.

use super::failure::Failure;
use crate::store::{RoomId, SignInId};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use parlor_server::embed;
use parlor_server::realm::Realm;
use parlor_social::limits::ID_BYTES_MAX;
use parlor_turn::PlayerId;
use ring::{digest, hmac};

/// Random bytes of an id.
const ID_BYTES: usize = 12;

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
    Ok(as_id(kind, &random::<ID_BYTES>()?))
}

fn as_id(kind: char, bytes: &[u8]) -> String {
    format!("{kind}{}", HEXLOWER.encode(bytes))
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

/// Key from which the ids of rooms are derived whose creator named the request. Without it nobody can guess
/// the id of a room from that name.
pub(super) struct RoomIdKey(hmac::Key);

impl RoomIdKey {
    /// The key from its stored form.
    pub(super) fn of(kept: &[u8]) -> Self {
        RoomIdKey(hmac::Key::new(hmac::HMAC_SHA256, kept))
    }

    /// The id of the room that this player's request with this id opens: always the same one.
    ///
    /// # Errors
    /// If the request's id is empty or too long.
    pub(super) fn of_request(&self, realm: &Realm, player: &PlayerId, id: &str) -> Result<RoomId, Failure> {
        check_request_id("id", id)?;
        // Neither a realm nor a player has a control character in its name.
        let code = hmac::sign(&self.0, format!("{}\n{}\n{id}", realm.path(), player.as_str()).as_bytes());
        let (first, _) = code.as_ref().split_at(ID_BYTES);
        Ok(RoomId::new(&as_id('r', first))?)
    }
}

/// Checks the id by which a request that is sent again is known. `path` is its field.
///
/// # Errors
/// If it is empty or too long.
pub(super) fn check_request_id(path: &str, id: &str) -> Result<(), Failure> {
    if (1..=ID_BYTES_MAX).contains(&id.len()) {
        return Ok(());
    }
    Err(Failure::field(path, format!("an id has 1 to {ID_BYTES_MAX} bytes")))
}

/// The stored hash of an unguessably long secret. It does not reveal the secret.
pub(super) fn digest(secret: &str) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, secret.as_bytes()).as_ref())
}

/// Compares two hashes in constant time.
pub(super) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
