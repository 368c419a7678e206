//! Parlor on virtual time: one hub and any number of clients in one thread, with a network between them that is drawn
//! from a seed. The same seed and the same calls give the same run, packet for packet.
//!
//! ```
//! use parlor::core::Options;
//! use parlor_sim::{Link, Sim};
//!
//! let mut sim = Sim::new(7);
//! let host = sim.host(Options::host("tanks"), Link::quic());
//! let code = sim.code(host);
//! let guest = sim.join(code, Link::websocket().latency_ms(60));
//! sim.run_for(500);
//! assert_eq!(sim.room(guest).player_count(), 2);
//! println!("{}", sim.transcript());
//! ```
//!
//! - [`Sim`]: the world; a test drives it and looks at it
//! - [`Link`]: what lies between a client and the hub
//! - [`PeerId`]: a client: a game with its room, or a session that can be made to say anything
//! - [`model`]: what must be true of rooms, and objects when it is not
//! - [`scenario`]: a whole world from one seed, held against the model
//! - [`Author`]: the state of a host that is no game
//! - [`LogFile`]: what is on the disk that rooms are recorded on
//! - [`walkers`]: the scene that state coding is measured on
//! - [`for_seeds`]: runs a scenario with many seeds and says how to repeat the one that failed

mod author;
mod disk;
mod link;
pub mod model;
mod peer;
pub mod scenario;
mod seeds;
mod sim;
mod transcript;
pub mod walkers;

pub use author::Author;
pub use disk::LogFile;
pub use link::Link;
pub use parlor_impair::Rng;
pub use peer::{Hear, PeerId, Play, Tamper, Traffic};
pub use seeds::{SEEDS, WORLDS_PER_SEED, for_seeds, for_shard_of_seeds};
pub use sim::{APP, Sim, hello};
