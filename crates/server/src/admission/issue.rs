//! Signing keys, and signed tokens.

use super::{Claims, TOKEN_LIFE_S_MAX, crypto};
use crate::system::{self, unix_s};
use data_encoding::{BASE64, HEXLOWER};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use parlor_proto::RoomCode;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::Serialize;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// PKCS#8 header before the 32 bytes of a private Ed25519 key (RFC 8410).
const PRIVATE_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// Header before the 32 bytes of a public key.
const PUBLIC_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Why a key cannot be used or made.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The file could not be read.
    #[error("the admission key cannot be read from {}: {error}. Check the path, and that this user may read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The file holds something else.
    #[error(
        "{} is no {expected} Ed25519 key in PEM. `parlor token --new-key FILE` makes a pair: FILE is the private key, for \
         whoever gives out tokens, and FILE.pub the public one, for servers", path.display()
    )]
    NotThisKey {
        /// The file.
        path: PathBuf,
        /// "public" or "private".
        expected: &'static str,
    },
    /// A file could not be written. Existing files are never overwritten.
    #[error("the key cannot be written to {}: {error}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The operating system has no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    NoRandomness(String),
}

/// What a token is to permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest<'a> {
    /// The user.
    pub user: &'a str,
    /// The game.
    pub app: &'a str,
    /// The game's environment; may be empty.
    pub environment: &'a str,
    /// The permitted operation.
    pub what: PermitFor,
}

/// The operation that a token permits once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitFor {
    /// Join the room with this code.
    Join(RoomCode),
    /// Open a room, under this code or, if `None`, under any code.
    Create(Option<RoomCode>),
}

/// A private key that signs tokens.
pub struct SigningKey {
    /// PKCS#8.
    private: Vec<u8>,
    public: [u8; 32],
}

impl core::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SigningKey").field("public", &HEXLOWER.encode(&self.public)).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Generates a key.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn generate() -> Result<Self, KeyError> {
        let seed: [u8; 32] = random()?;
        let private = [&PRIVATE_HEAD[..], &seed].concat();
        Ok(Self::from_pkcs8(private).expect("32 bytes with their head are a key"))
    }

    /// Reads a private key (PEM), as [`write_new`](Self::write_new) or `openssl genpkey -algorithm ed25519`
    /// writes it.
    ///
    /// # Errors
    /// [`KeyError`] describes what to do.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(&read(path)?).ok();
        key.and_then(|key| Self::from_pkcs8(key.secret_pkcs8_der().to_vec()))
            .ok_or_else(|| KeyError::NotThisKey { path: path.to_owned(), expected: "private" })
    }

    fn from_pkcs8(private: Vec<u8>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&private).ok()?;
        let public = pair.public_key().as_ref().try_into().expect("a public Ed25519 key has 32 bytes");
        Some(SigningKey { private, public })
    }

    /// Writes the pair: the private key to `path`, readable by its owner only, and the public key beside it
    /// with `.pub` appended. Returns the path of the public key.
    ///
    /// # Errors
    /// [`KeyError::Unwritable`], also if one of the files exists.
    pub fn write_new(&self, path: &Path) -> Result<PathBuf, KeyError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".pub");
        let beside = PathBuf::from(beside);
        write_new(path, &pem("PRIVATE KEY", &self.private), true)?;
        write_new(&beside, &self.public_pem(), false)?;
        Ok(beside)
    }

    /// The public key (PEM), for servers.
    pub fn public_pem(&self) -> String {
        pem("PUBLIC KEY", &[&PUBLIC_HEAD[..], &self.public].concat())
    }

    /// Returns a token that is valid once, for [`TOKEN_LIFE_S_MAX`] seconds from now.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn token(&self, request: &TokenRequest<'_>) -> Result<String, KeyError> {
        let id: [u8; 16] = random()?;
        let iat = unix_s();
        let (room, create) = match request.what {
            PermitFor::Join(code) => (Some(code), false),
            PermitFor::Create(code) => (code, true),
        };
        Ok(self.sign(&Claims {
            sub: request.user.to_owned(),
            aud: request.app.to_owned(),
            env: request.environment.to_owned(),
            room: room.map(|code| code.as_str().to_owned()),
            create,
            iat,
            exp: iat + TOKEN_LIFE_S_MAX,
            jti: HEXLOWER.encode(&id),
        }))
    }

    pub(super) fn sign(&self, claims: &Claims) -> String {
        self.sign_with(Header::new(Algorithm::EdDSA), claims)
    }

    /// Signs a token that is not for admission. `typ` in its header separates the kinds, so none can be used
    /// as another.
    pub fn sign_as(&self, typ: &str, claims: &impl Serialize) -> String {
        self.sign_with(Header { typ: Some(typ.to_owned()), ..Header::new(Algorithm::EdDSA) }, claims)
    }

    fn sign_with(&self, header: Header, claims: &impl Serialize) -> String {
        sign(&header, claims, &EncodingKey::from_ed_der(&self.private))
    }

    /// Loads a key that [`to_kept`](Self::to_kept) returned.
    pub fn from_kept(kept: &[u8]) -> Option<Self> {
        Self::from_pkcs8(kept.to_vec())
    }

    /// The private key to store; keep it secret.
    pub fn to_kept(&self) -> &[u8] {
        &self.private
    }

    /// The public key, with which tokens are verified.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    #[cfg(test)]
    pub(super) fn private(&self) -> &[u8] {
        &self.private
    }
}

/// Signs a token. The key must fit the header's algorithm.
pub(super) fn sign(header: &Header, claims: &impl Serialize, key: &EncodingKey) -> String {
    crypto::install();
    jsonwebtoken::encode(header, claims, key)
        .expect("the key was read before, and claims are texts and numbers")
}

/// The 32 bytes of a public key in a file (PEM, Ed25519).
///
/// # Errors
/// [`KeyError`] describes what to do.
pub fn read_public(path: &Path) -> Result<[u8; 32], KeyError> {
    SubjectPublicKeyInfoDer::from_pem_slice(&read(path)?)
        .ok()
        .and_then(|der| der.strip_prefix(&PUBLIC_HEAD).and_then(|key| key.try_into().ok()))
        .ok_or_else(|| KeyError::NotThisKey { path: path.to_owned(), expected: "public" })
}

fn read(path: &Path) -> Result<Vec<u8>, KeyError> {
    fs::read(path).map_err(|error| KeyError::Unreadable { path: path.to_owned(), error })
}

fn write_new(path: &Path, text: &str, is_private: bool) -> Result<(), KeyError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(if is_private { 0o600 } else { 0o644 });
    }
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| KeyError::Unwritable { path: path.to_owned(), error })
}

fn pem(label: &str, der: &[u8]) -> String {
    // Both kinds of key fit one line of PEM.
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64.encode(der))
}

fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    system::random().map_err(|error| KeyError::NoRandomness(error.to_string()))
}
