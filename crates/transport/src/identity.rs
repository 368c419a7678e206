//! A server's identity: its certificate and key, and the fingerprint by which clients recognize it.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use data_encoding::{BASE32_NOPAD, BASE32_NOPAD_NOCASE, BASE64};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use thiserror::Error;
use x509_cert::der::Decode;

/// How long a generated certificate is valid, in years.
const VALID_YEARS: i32 = 10;

const DAY_S: u64 = 24 * 60 * 60;
/// How long before its beginning a browser's certificate is valid, for clocks that are behind.
const WEB_VALID_BEFORE_S: u64 = DAY_S;
/// How long it is valid after that. Browsers accept 14 days in all, from the first instant to the last.
const WEB_VALID_AFTER_S: u64 = 12 * DAY_S;

/// A certificate chain, leaf first, and the leaf's private key. The key matches the leaf.
pub struct Identity {
    certified: Arc<CertifiedKey>,
    key: PrivateKeyDer<'static>,
}

/// Why an identity cannot be loaded or generated.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The certificate file has no certificate.
    #[error("no certificate in it: a PEM file with a section BEGIN CERTIFICATE is needed")]
    NoCertificate,
    /// The key file has no key.
    #[error("no private key in it: a PEM file with a section BEGIN PRIVATE KEY is needed")]
    NoKey,
    /// The certificate file is malformed.
    #[error("the certificate cannot be read: {0}")]
    BadCertificate(String),
    /// The key file is malformed, or the kind of key is not supported.
    #[error("the private key cannot be read: {0}. RSA, ECDSA and Ed25519 keys are supported")]
    BadKey(String),
    /// The key belongs to another certificate.
    #[error("the private key does not belong to the first certificate of the chain")]
    KeyMismatch,
    /// A name is invalid in a certificate.
    #[error("no certificate can be made for {names:?}: {detail}")]
    BadName {
        /// The requested names.
        names: Vec<String>,
        /// The reason.
        detail: String,
    },
}

/// A certificate and its key as PEM text, for two files.
pub struct IdentityPem {
    /// The chain. It is public.
    pub certificates: String,
    /// The key. It is secret: its holder can impersonate this server.
    pub key: String,
}

impl Identity {
    /// Generates a self-signed certificate for a development server, valid for ten years. Clients verify it
    /// by its [`fingerprint`](Self::fingerprint). `names` are DNS names and IP addresses. The key is ECDSA
    /// P-256.
    ///
    /// # Errors
    /// [`IdentityError::BadName`].
    pub fn generate(names: &[&str]) -> Result<Self, IdentityError> {
        Self::self_signed(names, "parlor development server")
    }

    /// Generates a certificate for a player's direct paths in one room. It does not identify the player, and
    /// is never reused.
    pub fn of_player() -> Self {
        Self::self_signed(&["player"], "parlor player").expect("the name is fine, and P-256 keys can be made")
    }

    /// Generates a self-signed certificate that browsers accept by its hash: short-lived, from `begin_s` on, in
    /// seconds since 1970. The key is ECDSA P-256.
    ///
    /// # Errors
    /// [`IdentityError::BadName`].
    pub fn generate_web(names: &[&str], begin_s: u64) -> Result<Self, IdentityError> {
        let since_1970 = |seconds| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
        Self::signed(names, "parlor web", |params| {
            params.not_before = since_1970(begin_s.saturating_sub(WEB_VALID_BEFORE_S));
            params.not_after = since_1970(begin_s + WEB_VALID_AFTER_S);
        })
    }

    /// The beginning that [`generate_web`](Self::generate_web) was given.
    pub fn web_begin_s(&self) -> Option<u64> {
        let not_before = self.leaf()?.tbs_certificate.validity.not_before;
        Some(not_before.to_unix_duration().as_secs() + WEB_VALID_BEFORE_S)
    }

    fn self_signed(names: &[&str], common_name: &str) -> Result<Self, IdentityError> {
        Self::signed(names, common_name, |params| {
            // A year before now, for clients whose clock is behind.
            params.not_before = rcgen::date_time_ymd(this_year() - 1, 1, 1);
            params.not_after = rcgen::date_time_ymd(this_year() + VALID_YEARS, 12, 31);
        })
    }

    fn signed(
        names: &[&str],
        common_name: &str,
        set_validity: impl FnOnce(&mut CertificateParams),
    ) -> Result<Self, IdentityError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let bad_name =
            |error: rcgen::Error| IdentityError::BadName { names: names.clone(), detail: error.to_string() };
        let mut params = CertificateParams::new(names.clone()).map_err(bad_name)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        set_validity(&mut params);
        let key = KeyPair::generate().map_err(bad_name)?;
        let certificate = params.self_signed(&key).map_err(bad_name)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Self::new(vec![certificate.der().clone()], key)
    }

    /// Reads a chain (leaf first) and a key from PEM. Both may be in the same file.
    ///
    /// # Errors
    /// [`IdentityError`] says what is missing or wrong.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| IdentityError::BadCertificate(error.to_string()))?;
        if chain.is_empty() {
            return Err(IdentityError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => IdentityError::NoKey,
            error => IdentityError::BadKey(error.to_string()),
        })?;
        Self::new(chain, key)
    }

    /// Returns the PEM that [`from_pem`](Self::from_pem) reads.
    pub fn to_pem(&self) -> IdentityPem {
        let label = match &self.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        IdentityPem {
            certificates: self.certified.cert.iter().map(|der| pem("CERTIFICATE", der)).collect(),
            key: pem(label, self.key.secret_der()),
        }
    }

    /// The fingerprint of the leaf certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certified.cert[0])
    }

    /// The expiry of the leaf certificate, in seconds since 1970; `None` if it cannot be read.
    pub fn expires_s(&self) -> Option<u64> {
        Some(self.leaf()?.tbs_certificate.validity.not_after.to_unix_duration().as_secs())
    }

    fn leaf(&self) -> Option<x509_cert::Certificate> {
        x509_cert::Certificate::from_der(&self.certified.cert[0]).ok()
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, IdentityError> {
        let signer =
            ring::sign::any_supported_type(&key).map_err(|error| IdentityError::BadKey(error.to_string()))?;
        let certified = CertifiedKey::new(chain, signer);
        match certified.keys_match() {
            // Without a public half the key cannot be compared; TLS will detect a mismatch.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) => {
                return Err(IdentityError::KeyMismatch);
            }
            Err(error) => return Err(IdentityError::BadCertificate(error.to_string())),
        }
        Ok(Identity { certified: Arc::new(certified), key })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint())
    }
}

impl fmt::Debug for IdentityPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityPem").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

/// SHA-256 of a leaf certificate (DER). As text it has 52 characters of base32 (RFC 4648), in lower case and
/// without padding: safe in URLs and file names, and when read aloud. Upper case is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        Fingerprint(Sha256::digest(certificate.as_ref()).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE32_NOPAD.encode(&self.0).to_ascii_lowercase())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The text is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a fingerprint has 52 letters a to z and digits 2 to 7, as the server prints it at its start")]
pub struct NotAFingerprint;

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let bytes = BASE32_NOPAD_NOCASE.decode(text.as_bytes()).map_err(|_| NotAFingerprint)?;
        bytes.try_into().map(Fingerprint).map_err(|_| NotAFingerprint)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = BASE64.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

#[allow(clippy::disallowed_methods, reason = "a certificate says until when it holds by the calendar")]
fn this_year() -> i32 {
    const SECONDS_PER_YEAR: u64 = 31_556_952;
    // A clock before 1970 is wrong; the certificate is then as wrong as the clock.
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    1970 + i32::try_from(seconds / SECONDS_PER_YEAR).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_gives_the_same_identity_back() {
        let identity = Identity::generate(&["localhost", "127.0.0.1", "::1"]).unwrap();
        let pem = identity.to_pem();
        let again = Identity::from_pem(pem.certificates.as_bytes(), pem.key.as_bytes()).unwrap();
        assert_eq!(again.fingerprint(), identity.fingerprint());
        assert_eq!(again.to_pem().key, pem.key);
        let one_file = format!("{}{}", pem.certificates, pem.key);
        assert!(Identity::from_pem(one_file.as_bytes(), one_file.as_bytes()).is_ok());
    }

    #[test]
    fn a_certificate_says_until_when_it_is_valid() {
        let expires_s = Identity::generate(&["localhost"]).unwrap().expires_s().unwrap();
        let years = i32::try_from(expires_s / 31_556_952).unwrap() + 1970;
        assert!((this_year() + VALID_YEARS..=this_year() + VALID_YEARS + 1).contains(&years), "{years}");
    }

    /// What browsers check of a certificate that they know by its hash alone.
    #[test]
    fn a_browsers_certificate_is_valid_for_less_than_14_days_from_a_day_before_its_beginning() {
        let begin_s = 1_800_000_000;
        let identity = Identity::generate_web(&["localhost"], begin_s).unwrap();
        assert_eq!(identity.web_begin_s(), Some(begin_s));
        let leaf = identity.leaf().unwrap().tbs_certificate;
        let [from, until] = [leaf.validity.not_before, leaf.validity.not_after];
        let [from_s, until_s] = [from, until].map(|time| time.to_unix_duration().as_secs());
        assert_eq!(from_s, begin_s - DAY_S);
        assert!(until_s - from_s < 14 * DAY_S, "{}", until_s - from_s);
        // The curve P-256 of ECDSA, as an object identifier: browsers refuse RSA.
        let p256 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
        assert_eq!(leaf.subject_public_key_info.algorithm.parameters.unwrap().value(), p256);
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let identity = Identity::generate(&["localhost"]).unwrap().to_pem();
        let other = Identity::generate(&["localhost"]).unwrap().to_pem();
        let (certificates, key) = (identity.certificates.as_bytes(), identity.key.as_bytes());
        let error = |certificates: &[u8], key: &[u8]| Identity::from_pem(certificates, key).unwrap_err();
        assert!(matches!(error(b"", key), IdentityError::NoCertificate));
        assert!(matches!(error(key, key), IdentityError::NoCertificate));
        assert!(matches!(error(certificates, b""), IdentityError::NoKey));
        assert!(matches!(error(certificates, certificates), IdentityError::NoKey));
        assert!(matches!(error(certificates, other.key.as_bytes()), IdentityError::KeyMismatch));
        let broken = pem("CERTIFICATE", b"not a certificate");
        assert!(matches!(error(broken.as_bytes(), key), IdentityError::BadCertificate(_)));
        let broken = pem("PRIVATE KEY", b"not a key");
        assert!(matches!(error(certificates, broken.as_bytes()), IdentityError::BadKey(_)));
        assert!(matches!(Identity::generate(&["ö"]), Err(IdentityError::BadName { .. })));
    }

    #[test]
    fn fingerprints_are_read_as_they_are_written() {
        let fingerprint = Identity::generate(&["localhost"]).unwrap().fingerprint();
        let text = fingerprint.to_string();
        assert_eq!(text.len(), 52);
        assert_eq!(text.parse(), Ok(fingerprint));
        assert_eq!(text.to_ascii_uppercase().parse(), Ok(fingerprint));
        for wrong in ["", "0", &text[1..], &format!("{text}a")] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(NotAFingerprint), "{wrong}");
        }
    }

    #[test]
    fn the_key_is_not_printed() {
        let identity = Identity::generate(&["localhost"]).unwrap();
        let key = identity.to_pem().key;
        let printed = format!("{identity:?} {:?}", identity.to_pem());
        assert!(!printed.contains(key.lines().nth(1).unwrap()));
    }
}
