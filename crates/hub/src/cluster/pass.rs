//! Passes: what a hub says of a seat, for the other nodes of its cluster.
//!
//! ```text
//!  pass    version: 1 byte · uid: 16 bytes · code: text · app: text · environment: text · term: varint
//!          member: varint · generation: varint · hosts: 0 | 1, epoch: varint · spectates: 0 | 1
//!          name: text · user: 0 | 1, text · token: the first 16 bytes of SHA-256(resume token)
//!          seal: the first 16 bytes of HMAC-SHA256 with the cluster's key over all before it
//! ```
//!
//! A pass is worth nothing without the resume token that it names, and each token has its own. It has no date: it is
//! good for as long as the store has the room's row, and its generation shows an older one.

use super::ownership::{RoomUid, Term};
use bytes::Bytes;
use core::fmt;
use hmac::{Hmac, KeyInit, Mac};
use parlor_proto::wire::cursor::{ReadError, Reader, Write};
use parlor_proto::wire::handshake::ResumeToken;
use parlor_proto::{Epoch, MemberId, RoomCode, code, limits};
use sha2::{Digest, Sha256};

const VERSION: u8 = 1;
const SEAL_BYTES: usize = 16;

/// The key of a cluster's passes. All its nodes have the same. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct PassKey([u8; 32]);

impl PassKey {
    /// Makes the key of a secret that all nodes of the cluster have.
    pub fn of(secret: &[u8]) -> Self {
        PassKey(Sha256::digest(secret).into())
    }
}

impl fmt::Debug for PassKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PassKey(secret)")
    }
}

/// What a token is known by: enough of its hash that nobody finds another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenHash([u8; 16]);

impl TokenHash {
    /// Hashes a token.
    pub fn of(token: &ResumeToken) -> Self {
        TokenHash::of_digest(&Sha256::digest(token.0).into())
    }

    /// The same of a hash that is known already.
    pub fn of_digest(digest: &[u8; 32]) -> Self {
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        TokenHash(first)
    }
}

/// A seat, as its hub vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The room.
    pub uid: RoomUid,
    /// Its code.
    pub code: RoomCode,
    /// Its game.
    pub app: String,
    /// The game's environment.
    pub environment: String,
    /// The term under which it was given.
    pub term: Term,
    /// The member.
    pub member: MemberId,
    /// How many tokens the seat has had.
    pub generation: u32,
    /// The epoch of the room of which the member is the authority; `None` for another member.
    pub hosts: Option<Epoch>,
    /// Whether it is a spectator.
    pub spectates: bool,
    /// Its name.
    pub name: String,
    /// The user of its admission token.
    pub user: Option<String>,
    /// The resume token that must come with the pass.
    pub token: TokenHash,
}

impl Pass {
    /// Writes and seals it.
    pub fn issue(&self, key: &PassKey) -> Bytes {
        let mut out = Vec::with_capacity(limits::PASS_BYTES_MAX);
        out.put_u8(VERSION);
        out.put(&self.uid.0);
        out.put_str(self.code.as_str());
        out.put_str(&self.app);
        out.put_str(&self.environment);
        out.put_varint(self.term.0);
        out.put_varint(self.member.0.into());
        out.put_varint(self.generation.into());
        out.put_option(self.hosts, |out, epoch| out.put_varint(epoch.0.into()));
        out.put_bool(self.spectates);
        out.put_str(&self.name);
        out.put_option(self.user.as_deref(), |out, user| out.put_str(user));
        out.put(&self.token.0);
        let seal = sealed(key, &out).finalize().into_bytes();
        out.put(&seal[..SEAL_BYTES]);
        out.into()
    }

    /// Reads a pass that a node of the cluster gave together with this token; `None` for anything else.
    pub fn verify(key: &PassKey, bytes: &Bytes, token: &ResumeToken) -> Option<Self> {
        let body = bytes.slice(..bytes.len().checked_sub(SEAL_BYTES)?);
        let is_sealed = sealed(key, &body).verify_truncated_left(&bytes[body.len()..]).is_ok();
        let pass = if is_sealed { Pass::read(body).ok()? } else { return None };
        (pass.token == TokenHash::of(token)).then_some(pass)
    }

    fn read(body: Bytes) -> Result<Self, ReadError> {
        let mut body = Reader::new(body);
        let version = body.u8()?;
        if version != VERSION {
            return Err(ReadError::Unknown { field: "pass", value: version.into() });
        }
        let pass = Pass {
            uid: RoomUid(body.array()?),
            code: body
                .str_max("code", code::MATCH_ID_LEN)?
                .parse()
                .map_err(|_| ReadError::OutOfRange { field: "code" })?,
            app: body.str_max("app", limits::LABEL_BYTES_MAX)?,
            environment: body.str_max("environment", limits::LABEL_BYTES_MAX)?,
            term: Term(body.varint()?),
            member: MemberId(body.varint_u32("member")?),
            generation: body.varint_u32("generation")?,
            hosts: body.option("hosts", |body| body.varint_u32("epoch").map(Epoch))?,
            spectates: body.bool("spectates")?,
            name: body.str_max("name", limits::NAME_BYTES_MAX)?,
            user: body.option("user", |body| body.str_max("user", limits::USER_BYTES_MAX))?,
            token: TokenHash(body.array()?),
        };
        body.finish()?;
        Ok(pass)
    }
}

fn sealed(key: &PassKey, body: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes a key of any length").chain_update(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: ResumeToken = ResumeToken([7; 32]);

    fn key(byte: u8) -> PassKey {
        PassKey::of(&[byte; 32])
    }

    fn pass() -> Pass {
        Pass {
            uid: RoomUid([1; 16]),
            code: "K7QM".parse().expect("a code"),
            app: "a".repeat(limits::LABEL_BYTES_MAX),
            environment: "e".repeat(limits::LABEL_BYTES_MAX),
            term: Term(3),
            member: MemberId(u32::MAX),
            generation: u32::MAX,
            hosts: Some(Epoch(u32::MAX)),
            spectates: true,
            name: "n".repeat(limits::NAME_BYTES_MAX),
            user: Some("u".repeat(limits::USER_BYTES_MAX)),
            token: TokenHash::of(&TOKEN),
        }
    }

    #[test]
    fn the_longest_pass_comes_back_and_fits() {
        let bytes = pass().issue(&key(1));
        assert!(bytes.len() <= limits::PASS_BYTES_MAX, "{} bytes", bytes.len());
        assert_eq!(Pass::verify(&key(1), &bytes, &TOKEN), Some(pass()));
    }

    #[test]
    fn threat_35_a_pass_of_another_key_or_with_another_token_is_none() {
        let bytes = pass().issue(&key(1));
        assert_eq!(Pass::verify(&key(2), &bytes, &TOKEN), None, "another cluster's");
        assert_eq!(Pass::verify(&key(1), &bytes, &ResumeToken([8; 32])), None, "without its token");
        assert!(!format!("{:?}", key(171)).contains("171"), "nothing shows a key");
    }

    proptest! {
        #[test]
        fn threat_35_a_pass_that_was_changed_is_none(at in any::<prop::sample::Index>(), bit in 0..8_u32) {
            let mut bytes = pass().issue(&key(1)).to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Pass::verify(&key(1), &bytes.into(), &TOKEN), None);
        }

        #[test]
        fn threat_35_bytes_of_a_stranger_are_no_pass(bytes in prop::collection::vec(any::<u8>(), 0..=512)) {
            prop_assert_eq!(Pass::verify(&key(1), &bytes.clone().into(), &TOKEN), None);
            // The reader itself must bear anything: another build's seal may be good.
            drop(Pass::read(bytes.into()));
        }
    }
}
