//! Ed25519 and HMAC-SHA256 for `jsonwebtoken`, by `ring`, which TLS already brings. The library's own
//! backends need CMake, or bring RSA and two more curves, which tokens here may not use.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use signature::{Signer, Verifier};

/// Installs the provider for `jsonwebtoken` in the whole process. A provider that is already installed stays.
pub fn install() {
    let _ = PROVIDER.install_default();
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    match algorithm {
        Algorithm::EdDSA => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.as_bytes())
                .map_err(|_| Error::from(ErrorKind::InvalidEddsaKey))?;
            Ok(Box::new(Private(pair)))
        }
        Algorithm::HS256 => Ok(Box::new(HmacKey::new(key.as_bytes()))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

/// The library has checked that the key fits the algorithm.
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let key = key.try_get_as_bytes()?;
    match algorithm {
        Algorithm::EdDSA => Ok(Box::new(Public(key.to_vec()))),
        Algorithm::HS256 => Ok(Box::new(HmacKey::new(key))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct Private(Ed25519KeyPair);

impl Signer<Vec<u8>> for Private {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }
}

impl JwtSigner for Private {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

struct Public(Vec<u8>);

impl Verifier<Vec<u8>> for Public {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(message, signature)
            .map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Public {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

/// A symmetric key.
struct HmacKey(hmac::Key);

impl HmacKey {
    fn new(key: &[u8]) -> Self {
        HmacKey(hmac::Key::new(hmac::HMAC_SHA256, key))
    }
}

impl Signer<Vec<u8>> for HmacKey {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for HmacKey {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        hmac::verify(&self.0, message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for HmacKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for HmacKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
