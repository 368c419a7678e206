//! Rooms on the local network: finds rooms without a common server address and without a code.
//!
//! ```no_run
//! use parlor::lan::{self, LanEvent};
//! use parlor::Room;
//!
//! let mut nearby = lan::discover("tanks")?;
//! let mut room = loop {
//!     match nearby.poll() {
//!         Some(LanEvent::Found(found)) => break Room::join("tanks", &found.invite().to_string()).open(),
//!         Some(LanEvent::Lost(_)) | None => {} // draw the list that `nearby.rooms()` gives
//!         Some(LanEvent::Ended(why)) => return Err(why.into()),
//!     }
//! };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A room is announced by its server, if the server is configured for it: `parlor serve --lan`,
//! `parlor play --lan`, and `Config::lan` of a server inside a game. Rooms with a secret are never announced.
//! An announcement is not authenticated: any machine on the same network can make one, under any name and
//! code. So let the player choose from the list, and do not join a found room automatically.

pub use parlor_transport::lan::{LanError, LanEvent, LanRoom, Listing, MDNS_PORT, Network, SERVICE};

use crate::modules::{Module, ModuleDisabled};
use parlor_transport::lan;
use thiserror::Error;

/// Discovers rooms of a game on the networks of this machine.
///
/// # Errors
/// As [`Discovery::start`].
pub fn discover(app: &str) -> Result<Discovery, DiscoverError> {
    Discovery::start(Network::default(), Some(app))
}

/// Why rooms cannot be discovered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DiscoverError {
    /// The module is switched off.
    #[error(transparent)]
    Module(#[from] ModuleDisabled),
    /// The operating system refuses a socket or thread.
    #[error(transparent)]
    Lan(#[from] LanError),
}

/// Looks for rooms until it is dropped. Never blocks: call [`poll`](Self::poll) in each frame.
#[derive(Debug)]
pub struct Discovery(lan::Discovery);

impl Discovery {
    /// Starts looking for rooms of one game, or of all, on a network.
    ///
    /// # Errors
    /// The module is switched off, or the operating system refuses a socket or thread.
    pub fn start(network: Network, app: Option<&str>) -> Result<Self, DiscoverError> {
        Module::Lan.require()?;
        Ok(Discovery(lan::Discovery::start(network, app)?))
    }

    /// Returns the next event, if there is one.
    pub fn poll(&mut self) -> Option<LanEvent> {
        self.0.poll()
    }

    /// Returns the rooms that are announced at present.
    pub fn rooms(&self) -> impl Iterator<Item = &LanRoom> {
        self.0.rooms()
    }
}
