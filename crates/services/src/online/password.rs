//! Passwords: argon2id, on few separate threads, since each hash takes many mebibytes.
//!
//! A hash costs the caller nothing, so its address is charged before it is made: for sign-ups, sign-ins
//! (right or wrong) and linked addresses alike. Charged hashes wait in a queue (`hashing.rs`). Each thread
//! keeps its hashing memory: an allocator that got 19 MiB back for each hash would not return them to the
//! system.

use super::charges::{Charges, Rates};
use super::failure::Failure;
use super::hashing::Hashing;
use super::secrets;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use core::time::Duration;
use data_encoding::HEXLOWER;
use parlor_hub::Origin;
use parlor_hub::budget::Rate;
use parlor_server::embed::Clock;
use tokio::sync::oneshot;

/// Shortest password, in characters.
pub(super) const CHARS_MIN: usize = 8;
/// Longest password, in bytes: a longer one would only cost time.
pub(super) const BYTES_MAX: usize = 256;

/// Number of threads, and so of concurrent hashes.
const AT_ONCE: usize = 2;
/// Time to retry for a caller that finds the queue full.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Hashes for one address. A school may sign in at once, and no address uses more than a twentieth of the
/// threads for long.
const RATES: Rates = Rates {
    of_address: Rate { burst: 60, interval: Duration::from_millis(500) },
    of_neighbourhood: Rate { burst: 240, interval: Duration::from_millis(125) },
    what: "passwords came",
};

/// OWASP's recommendation for argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// The memory of a thread. It grows to the largest hash so far.
type Memory = Vec<Block>;

/// Hashes and compares passwords.
pub(super) struct Passwords {
    hashing: Hashing<Memory>,
    charges: Charges,
}

impl Passwords {
    /// Starts the threads. `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn start(clock: Clock, random: impl FnMut() -> u64) -> std::io::Result<Self> {
        Ok(Passwords { hashing: Hashing::start(AT_ONCE)?, charges: Charges::new(RATES, clock, random) })
    }

    /// Returns the stored form of a new password: the parameters, the salt and the hash.
    pub(super) async fn hash(&self, origin: Origin, password: String) -> Result<String, Failure> {
        let salt: [u8; SALT_BYTES] = secrets::random()?;
        let costs = [MEMORY_KIB, PASSES, LANES];
        let hash = self.work(origin, move |memory| derive(memory, &password, &salt, costs)).await?;
        let hash = hash.ok_or_else(|| Failure::defect("argon2 refuses its own parameters"))?;
        let (salt, hash) = (HEXLOWER.encode(&salt), HEXLOWER.encode(&hash));
        Ok(format!("argon2id${MEMORY_KIB}${PASSES}${LANES}${salt}${hash}"))
    }

    /// Whether a password matches the stored hash `kept`. Without a hash it takes as long, and is false.
    pub(super) async fn is_right(
        &self,
        origin: Origin,
        password: String,
        kept: Option<String>,
    ) -> Result<bool, Failure> {
        let compare = move |memory: &mut Memory| match kept.as_deref().and_then(StoredHash::read) {
            Some(kept) => {
                let hash = derive(memory, &password, &kept.salt, kept.costs);
                hash.is_some_and(|hash| secrets::are_equal(&hash, &kept.hash))
            }
            None => {
                derive(memory, &password, &[0; SALT_BYTES], [MEMORY_KIB, PASSES, LANES]);
                false
            }
        };
        self.work(origin, compare).await
    }

    /// Runs a job with the memory of a thread, when it is its turn.
    async fn work<T: Send + 'static>(
        &self,
        origin: Origin,
        what: impl FnOnce(&mut Memory) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (answer, done) = oneshot::channel();
        let work = Box::new(move |memory: &mut Memory| {
            // The caller may be gone; then the answer is dropped.
            let _ = answer.send(what(memory));
        });
        let begin = || if self.hashing.put(origin, work) { Ok(()) } else { Err(busy()) };
        self.charges.charge_if(origin, begin)?;
        // A job that lost its place to another address is dropped with its sender.
        done.await.map_err(|_| busy())
    }
}

fn busy() -> Failure {
    Failure::unavailable("too many sign in at once: ask again in a moment", RETRY_AFTER)
}

fn derive(
    memory: &mut Memory,
    password: &str,
    salt: &[u8],
    [memory_kib, passes, lanes]: [u32; 3],
) -> Option<[u8; HASH_BYTES]> {
    let params = Params::new(memory_kib, passes, lanes, Some(HASH_BYTES)).ok()?;
    let blocks = params.block_count();
    if memory.len() < blocks {
        memory.resize(blocks, Block::new());
    }
    let memory = memory.get_mut(..blocks)?;
    let mut hash = [0; HASH_BYTES];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, &mut hash, memory).ok()?;
    Some(hash)
}

/// The stored hash of a password. It includes its parameters, so new hashes may use others.
struct StoredHash {
    costs: [u32; 3],
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl StoredHash {
    fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('$').collect();
        let ["argon2id", memory, passes, lanes, salt, hash] = parts[..] else { return None };
        let costs = [memory.parse().ok()?, passes.parse().ok()?, lanes.parse().ok()?];
        let salt = HEXLOWER.decode(salt.as_bytes()).ok()?;
        let hash = HEXLOWER.decode(hash.as_bytes()).ok()?;
        Some(StoredHash { costs, salt, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::super::hashing::WAITING_OF_ADDRESS_MAX;
    use super::*;
    use futures_util::future::join_all;

    fn passwords() -> Passwords {
        let mut number = 0_u64;
        let random = || {
            number += 1;
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        Passwords::start(Clock::start(), random).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn threat_46_an_address_has_as_many_hashes_as_its_budget_whatever_they_are_for() {
        let passwords = passwords();
        let (one, other) = (Origin(0x1_0000), Origin(0x2_0000));
        let work = |origin| passwords.work(origin, |memory| memory.len());
        let mut answers = Vec::new();
        // Repeatedly more jobs at once than may wait.
        for _ in 0..20 {
            answers.extend(join_all((0..WAITING_OF_ADDRESS_MAX).map(|_| work(one))).await);
        }
        let done = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(done, RATES.of_address.burst as usize);
        let refused = answers.iter().rfind(|answer| answer.is_err());
        assert_eq!(refused.and_then(|answer| answer.as_ref().err()).unwrap().code(), "too_often");
        assert!(work(other).await.is_ok() && work(Origin::LOCAL).await.is_ok());
        tokio::time::advance(RATES.of_address.interval).await;
        assert_eq!(
            [work(one).await.is_ok(), work(one).await.is_ok()],
            [true, false],
            "one more after so long"
        );
    }

    #[tokio::test]
    async fn threat_46_hashes_are_made_in_the_same_memory_however_many_there_are() {
        let passwords = passwords();
        let place = async || {
            let place = |memory: &mut Memory| {
                derive(memory, "correct horse", &[7; SALT_BYTES], [64, PASSES, LANES]);
                (memory.as_ptr() as usize, memory.capacity())
            };
            passwords.work(Origin::LOCAL, place).await.unwrap()
        };
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..200 {
            places.insert(place().await);
        }
        assert!((1..=AT_ONCE).contains(&places.len()), "{places:?}");
    }

    #[tokio::test]
    async fn a_password_is_right_or_wrong_and_never_kept() {
        let passwords = passwords();
        let kept = passwords.hash(Origin::LOCAL, "correct horse".into()).await.unwrap();
        assert!(!kept.contains("horse"));
        assert_ne!(
            kept,
            passwords.hash(Origin::LOCAL, "correct horse".into()).await.unwrap(),
            "each has a salt of its own"
        );
        assert!(passwords.is_right(Origin::LOCAL, "correct horse".into(), Some(kept.clone())).await.unwrap());
        for wrong in ["correct horsf", "", "correct horse "] {
            assert!(!passwords.is_right(Origin::LOCAL, wrong.into(), Some(kept.clone())).await.unwrap());
        }
        for damaged in
            [None, Some(String::new()), Some("argon2id$1$1$1$00$00".to_owned()), Some(kept.replace('$', "."))]
        {
            assert!(!passwords.is_right(Origin::LOCAL, "correct horse".into(), damaged).await.unwrap());
        }
    }
}
