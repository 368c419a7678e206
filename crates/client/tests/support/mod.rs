//! What tests over real sockets share: how long they wait.

use std::time::{Duration, Instant};

/// Only a hang takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The limit of one wait.
pub(crate) struct Patience {
    began: Instant,
}

impl Patience {
    /// It begins now.
    pub(crate) fn new() -> Self {
        Patience { began: Instant::now() }
    }

    /// Lets others run before it is looked again; a hang fails, and `stands` says how things are.
    #[track_caller]
    pub(crate) fn look_again(&self, stands: impl FnOnce() -> String) {
        assert!(self.began.elapsed() < PATIENCE, "it does not come; {}", stands());
        std::thread::yield_now();
    }
}
