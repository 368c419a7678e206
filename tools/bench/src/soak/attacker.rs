//! One attacking address with several attacks in turn, on a thread with low priority. It connects only to
//! this bench's server.

mod attacks;

use crate::args::Transport;
use crate::load::Way;
use anyhow::Context;
use attacks::Attacks;
use parlor_transport::Fingerprint;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

/// Where it comes from.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 66, 6));
/// How long each way of attacking goes on.
const ATTACK: Duration = Duration::from_secs(8);
/// How soon it sees that it is to begin or to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What came of each way, by the answer.
pub(super) type Outcomes = BTreeMap<&'static str, BTreeMap<String, u64>>;

/// The attacker, until this is dropped.
pub(super) struct Attacker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_on: AtomicBool,
    is_over: AtomicBool,
    way: Mutex<Option<&'static str>>,
    outcomes: Mutex<Outcomes>,
}

impl Attacker {
    /// An attacker that waits.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(addr: SocketAddr, fingerprint: Fingerprint) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let run = move || {
            // Where it may not yield, the honest clients' own figures suffer, and nothing else.
            let _ = rustix::process::nice(19);
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            LocalSet::new().block_on(&runtime, attack(&own, addr, fingerprint));
        };
        let thread = std::thread::Builder::new().name("attacker".to_owned()).spawn(run);
        Ok(Attacker { shared, thread: Some(thread.context("there is no thread for the attacker")?) })
    }

    /// Lets it attack, or wait.
    pub(super) fn set(&self, is_on: bool) {
        self.shared.is_on.store(is_on, Ordering::Relaxed);
    }

    /// In which way it is at work.
    pub(super) fn way(&self) -> Option<&'static str> {
        *self.shared.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of it so far.
    pub(super) fn outcomes(&self) -> Outcomes {
        self.shared.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn note(&self, attack: &'static str, outcome: String) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        *outcomes.entry(attack).or_default().entry(outcome).or_default() += 1;
    }

    fn set_way(&self, way: Option<&'static str>) {
        *self.way.lock().unwrap_or_else(PoisonError::into_inner) = way;
    }

    fn is_attacking(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) && !self.is_over.load(Ordering::Relaxed)
    }
}

/// One way after another, for as long as it is on.
async fn attack(shared: &Arc<Shared>, addr: SocketAddr, fingerprint: Fingerprint) {
    let from = |transport| Way::new(transport, addr, fingerprint).at_source(transport, SOURCE);
    let ways = [from(Transport::Wss), from(Transport::Quic)];
    let attacks = Rc::new(Attacks::new(Arc::clone(shared), ways, addr));
    for number in 0_usize.. {
        while !shared.is_attacking() {
            if shared.is_over.load(Ordering::Relaxed) {
                return;
            }
            sleep(LOOK).await;
        }
        // All that one way has open is hung up on when the next begins.
        let under_way = attacks.begin(number);
        shared.set_way(Some(attacks::way(number)));
        let until = Instant::now() + ATTACK;
        while shared.is_attacking() && Instant::now() < until {
            sleep(LOOK).await;
        }
        drop(under_way);
        shared.set_way(None);
    }
}
