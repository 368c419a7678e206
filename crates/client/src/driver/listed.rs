//! What others see of a room where a server of this process announces it: set by the game, heard by the driver.

use parlor_proto::RoomCode;
use parlor_transport::lan::Listing;
use tokio::sync::watch;

/// How a room is listed on the local network. It is known once its code is.
#[derive(Debug)]
pub(super) struct Listed(watch::Sender<Wanted>);

/// What the game wants to be announced: nothing before the room is open.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) code: Option<RoomCode>,
    pub(super) listing: Option<Listing>,
}

impl Listed {
    pub(super) fn new(listing: Option<Listing>) -> Self {
        Listed(watch::Sender::new(Wanted { code: None, listing }))
    }

    /// Hears what is wanted now, and each change.
    pub(super) fn hear(&self) -> watch::Receiver<Wanted> {
        let mut wanted = self.0.subscribe();
        wanted.mark_changed();
        wanted
    }

    /// Notes that the room is open.
    pub(super) fn opened(&self, code: RoomCode) {
        self.0.send_modify(|wanted| wanted.code = Some(code));
    }

    /// Changes the listing. Returns whether a server of this process announces the room.
    pub(super) fn set(&self, listing: Option<Listing>) -> bool {
        self.0.send_modify(|wanted| wanted.listing = listing);
        self.0.receiver_count() > 0
    }
}
