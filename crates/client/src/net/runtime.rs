//! The thread of connections and requests.

use crate::background::Background;
use tokio::runtime::Handle;

/// The thread for all of it, so that no handshake of a game's requests delays a room.
pub(crate) fn handle() -> &'static Handle {
    static NET: Background = Background::new("parlor-net");
    NET.handle()
}
