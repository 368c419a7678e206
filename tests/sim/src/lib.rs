//! A deterministic simulator of Parlor on virtual time: one hub and any number of clients in one thread, with
//! a network drawn from a seed. The same seed and the same calls give the same run, packet for packet.
//!
//! ```
//! use parlor_client_core::Options;
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
//! - [`Sim`]: the world; a test drives it and inspects it
//! - [`Link`]: the network between a client and the hub
//! - [`PeerId`]: a client: a game with its room, or a bare session that can send anything
//! - [`model`]: the invariants of rooms, and objections to violations
//! - [`scenario`]: a whole world from one seed, checked against the model
//! - [`Author`]: publishes state as a host without a game
//! - [`LogFile`]: a room's log on the simulated disk
//! - [`walkers`]: the benchmark scene of state coding
//! - [`for_seeds`]: runs a scenario with many seeds and prints how to repeat a failed one

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
