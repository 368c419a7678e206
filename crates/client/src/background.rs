//! Background threads, each with an async runtime, that live as long as the process.

use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle, Runtime};

/// A thread that starts when it is first needed. It is independent of the game's own runtime: no work runs on
/// that one, and no call needs one.
#[derive(Debug)]
pub(crate) struct Background {
    name: &'static str,
    runtime: OnceLock<Runtime>,
}

impl Background {
    pub(crate) const fn new(name: &'static str) -> Self {
        Background { name, runtime: OnceLock::new() }
    }

    pub(crate) fn handle(&self) -> &Handle {
        let start = || {
            Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name(self.name)
                .enable_all()
                .build()
                .expect("the system gives a process one thread and an event queue")
        };
        self.runtime.get_or_init(start).handle()
    }
}
