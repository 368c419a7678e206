//! Rooms on the local network: found without a server that both sides know, and without being told a code.
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
//! A room is announced by its server, if that was told so: `parlor serve --lan`, `parlor play --lan`, and `Config::lan` of a
//! server inside a game. Rooms with a secret never are. An announcement proves nothing: whoever is on the same network can make
//! one, under any name and code. So show what is found as what somebody nearby says, and do not join it by itself.

pub use parlor_transport::lan::{Discovery, LanError, LanEvent, LanRoom, MDNS_PORT, Network, SERVICE};

/// Looks for rooms of a game on the networks of this machine.
///
/// # Errors
/// The system refuses what it takes.
pub fn discover(app: &str) -> Result<Discovery, LanError> {
    Discovery::start(Network::default(), Some(app))
}
