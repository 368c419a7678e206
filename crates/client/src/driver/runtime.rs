//! The background thread that all rooms of a process share.

use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime for sockets, started by the first room. A game that has a runtime of its own is not disturbed: nothing
/// here runs on it, and no call of a room needs one.
pub(super) fn handle() -> &'static Handle {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME
        .get_or_init(|| {
            Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("parlor-driver")
                .enable_all()
                .build()
                .expect("the system gives a process one thread and an event queue")
        })
        .handle()
}
