//! The background thread that all rooms of a process share.

use crate::background::Background;
use tokio::runtime::Handle;

/// The runtime for the sockets of rooms, started by the first room.
pub(super) fn handle() -> &'static Handle {
    static ROOMS: Background = Background::new("parlor-driver");
    ROOMS.handle()
}
