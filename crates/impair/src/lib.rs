//! A network simulator with a seed: decides the fate and arrival time of each packet.
//!
//! This crate is pure: time comes in as a [`Duration`](core::time::Duration) since a start that the caller
//! chose, and the same settings and the same calls always give the same results. The caller, with sockets or
//! virtual time, delays packets until the returned instants.
//!
//! ```
//! use core::time::Duration;
//! use parlor_impair::{Direction, Impairment, Path};
//!
//! let impairment: Impairment = "latency=100ms,jitter=30ms,loss=5%,seed=7".parse().unwrap();
//! let mut path = Path::new(&impairment, 0, Direction::There);
//! for arrival in path.offer(Duration::from_secs(1), 1_200) {
//!     assert!(arrival >= Duration::from_millis(1_100) && arrival <= Duration::from_millis(1_130));
//! }
//! ```
//!
//! - [`Impairment`]: the settings, as text and by methods · [`Path`]: one direction of datagrams, which may
//!   be lost
//! - [`Stalls`]: one direction of a stream, where losses become delays · [`Rng`]: the random numbers

mod bottleneck;
mod path;
mod rng;
mod settings;
mod stalls;
mod text;

pub use path::{Arrivals, Counts, Direction, Path};
pub use rng::Rng;
pub use settings::{Impairment, Outage, QUEUE_BYTES_DEFAULT};
pub use stalls::{RETRANSMISSION, Stalls};
pub use text::ImpairmentError;
