//! Cache of verified tokens: verification costs as much as the rest of a small operation, and callers repeat.

use super::tokens::Identity;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of cached tokens. Beyond it the cache is emptied.
const REMEMBERED_MAX: usize = 20_000;

/// Identities by the hash of their whole token: a token with any changed letter is another one, and the cache
/// holds no tokens. Times are not checked here.
#[derive(Debug, Default)]
pub(super) struct Verified {
    by_hash: Mutex<HashMap<[u8; 32], Identity>>,
}

impl Verified {
    /// Returns the identity of this token if its signature was verified before.
    pub(super) fn find(&self, token: &str) -> Option<Identity> {
        self.lock().get(&hash(token)).cloned()
    }

    /// Records that the signature of this token was verified.
    pub(super) fn enter(&self, token: &str, identity: &Identity) {
        let mut known = self.lock();
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(hash(token), identity.clone());
    }

    /// Each change is one step, so a panic leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Identity>> {
        self.by_hash.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::online::tokens::Signer;
    use crate::store::Role;

    #[test]
    fn what_is_remembered_is_bounded_and_found_by_the_whole_token_alone() {
        let identity = |sub: String| Identity {
            sub,
            role: Role::Player,
            aud: "tanks".into(),
            env: String::new(),
            iat: 1,
            exp: 2,
            sid: None,
            signer: Signer::Server,
        };
        let verified = Verified::default();
        for number in 0..REMEMBERED_MAX + 10 {
            verified.enter(&format!("token {number}"), &identity(format!("p{number}")));
        }
        assert_eq!(verified.lock().len(), 10, "of too many all were forgotten");
        let last = REMEMBERED_MAX + 9;
        assert_eq!(verified.find(&format!("token {last}")), Some(identity(format!("p{last}"))));
        for other in [format!("token {last} "), format!("token {}", last - 10), "token".to_owned()] {
            assert_eq!(verified.find(&other), None, "{other}");
        }
    }
}
