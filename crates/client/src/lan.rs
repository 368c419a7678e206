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

pub use parlor_transport::lan::{Discovery, LanError, LanEvent, LanRoom, MDNS_PORT, Network, SERVICE};

/// Discovers rooms of a game on the networks of this machine.
///
/// # Errors
/// The operating system refuses the sockets.
pub fn discover(app: &str) -> Result<Discovery, LanError> {
    Discovery::start(Network::default(), Some(app))
}
