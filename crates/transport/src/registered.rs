//! File descriptors whose readiness the runtime reports.

use std::io;
use std::os::fd::AsRawFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a file. Must be called in a tokio runtime.
///
/// # Errors
/// The operating system's error.
#[expect(
    deprecated,
    reason = "its replacement is unsafe, for types that change their file; sockets and timers do not"
)]
pub(crate) fn register<T: AsRawFd>(file: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(file, interest)
}
