//! The background thread of connections and requests.

use crate::background::Background;
use tokio::runtime::Handle;

/// The one thread for all of them, apart from that of the rooms, so that a TLS handshake never delays a room.
pub(crate) fn handle() -> &'static Handle {
    static NET: Background = Background::new("parlor-net");
    NET.handle()
}
