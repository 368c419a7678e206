//! Passwords: argon2id, on threads that may wait, and only a few at once, since each takes many mebibytes.

use super::failure::Failure;
use super::secrets;
use argon2::{Algorithm, Argon2, Params, Version};
use core::time::Duration;
use data_encoding::HEXLOWER;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Shortest password, in characters.
pub(super) const CHARS_MIN: usize = 8;
/// Longest password, in bytes: a longer one would only cost time.
pub(super) const BYTES_MAX: usize = 256;

/// How many are hashed at once.
const AT_ONCE: usize = 2;
/// How many more may wait for it.
const WAITING_MAX: usize = 64;
/// What is said to whoever finds too many waiting.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What OWASP recommends for argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// Hashes and compares passwords. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Passwords {
    working: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Passwords {
    pub(super) fn new() -> Self {
        let (working, waiting) = (Semaphore::new(AT_ONCE), Semaphore::new(AT_ONCE + WAITING_MAX));
        Passwords { working: Arc::new(working), waiting: Arc::new(waiting) }
    }

    /// What is kept of a new password: the parameters, the salt and the hash.
    pub(super) async fn hash(&self, password: String) -> Result<String, Failure> {
        let salt: [u8; SALT_BYTES] = secrets::random()?;
        let hash = self.work(move || derive(&password, &salt, [MEMORY_KIB, PASSES, LANES])).await?;
        let hash = hash.ok_or_else(|| Failure::defect("argon2 refuses its own parameters"))?;
        let (salt, hash) = (HEXLOWER.encode(&salt), HEXLOWER.encode(&hash));
        Ok(format!("argon2id${MEMORY_KIB}${PASSES}${LANES}${salt}${hash}"))
    }

    /// Whether a password is the one of which `kept` is kept. Without one it takes as long, and is none.
    pub(super) async fn is_right(&self, password: String, kept: Option<String>) -> Result<bool, Failure> {
        self.work(move || match kept.as_deref().and_then(Kept::read) {
            Some(kept) => {
                let hash = derive(&password, &kept.salt, kept.costs);
                hash.is_some_and(|hash| secrets::are_equal(&hash, &kept.hash))
            }
            None => {
                derive(&password, &[0; SALT_BYTES], [MEMORY_KIB, PASSES, LANES]);
                false
            }
        })
        .await
    }

    async fn work<T: Send + 'static>(&self, what: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
        let busy = || Failure::unavailable("too many sign in at once: ask again in a moment", RETRY_AFTER);
        let waits = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| busy())?;
        let works = Arc::clone(&self.working).acquire_owned().await.map_err(|_| busy())?;
        let done = tokio::task::spawn_blocking(move || {
            // Held until it is done, also if nobody waits for it any more.
            let _places = (waits, works);
            what()
        });
        done.await.map_err(|error| Failure::defect(&format!("a password could not be hashed: {error}")))
    }
}

fn derive(password: &str, salt: &[u8], [memory_kib, passes, lanes]: [u32; 3]) -> Option<[u8; HASH_BYTES]> {
    let params = Params::new(memory_kib, passes, lanes, Some(HASH_BYTES)).ok()?;
    let mut hash = [0; HASH_BYTES];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into(password.as_bytes(), salt, &mut hash).ok()?;
    Some(hash)
}

/// What is kept of a password. Its own parameters stand in it, so that others can be chosen for new ones.
struct Kept {
    costs: [u32; 3],
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Kept {
    fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('$').collect();
        let ["argon2id", memory, passes, lanes, salt, hash] = parts[..] else { return None };
        let costs = [memory.parse().ok()?, passes.parse().ok()?, lanes.parse().ok()?];
        let salt = HEXLOWER.decode(salt.as_bytes()).ok()?;
        let hash = HEXLOWER.decode(hash.as_bytes()).ok()?;
        Some(Kept { costs, salt, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_right_or_wrong_and_never_kept() {
        let passwords = Passwords::new();
        let kept = passwords.hash("correct horse".into()).await.unwrap();
        assert!(!kept.contains("horse"));
        assert_ne!(kept, passwords.hash("correct horse".into()).await.unwrap(), "each has a salt of its own");
        assert!(passwords.is_right("correct horse".into(), Some(kept.clone())).await.unwrap());
        for wrong in ["correct horsf", "", "correct horse "] {
            assert!(!passwords.is_right(wrong.into(), Some(kept.clone())).await.unwrap());
        }
        for damaged in
            [None, Some(String::new()), Some("argon2id$1$1$1$00$00".to_owned()), Some(kept.replace('$', "."))]
        {
            assert!(!passwords.is_right("correct horse".into(), damaged).await.unwrap());
        }
    }
}
