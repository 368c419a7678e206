//! Ed25519 for `jsonwebtoken`, by `ring`, which TLS brings anyway. The library's own choices are one that wants CMake and
//! one that brings RSA and two more curves, none of which a token here may have.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use signature::{Signer, Verifier};

/// Lets `jsonwebtoken` use it, in the whole process. If somebody was there before, theirs is used.
pub(crate) fn install() {
    let _ = PROVIDER.install_default();
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    let Algorithm::EdDSA = algorithm else { return Err(ErrorKind::InvalidAlgorithm.into()) };
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.as_bytes())
        .map_err(|_| Error::from(ErrorKind::InvalidEddsaKey))?;
    Ok(Box::new(Private(pair)))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let Algorithm::EdDSA = algorithm else { return Err(ErrorKind::InvalidAlgorithm.into()) };
    Ok(Box::new(Public(key.try_get_as_bytes()?.to_vec())))
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
