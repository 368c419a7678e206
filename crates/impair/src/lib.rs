//! A bad network from a seed: what becomes of each packet, and when it arrives.
//!
//! This crate is pure: time comes in as a [`Duration`](core::time::Duration) since a start that the caller chose, and the
//! same settings and the same calls always give the same results. Whoever has sockets or virtual time holds packets
//! back until the instants that come out.
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
//! - [`Impairment`]: the settings, as text and by methods · [`Path`]: one direction for datagrams, which may get lost
//! - [`Stalls`]: one direction for a stream, where nothing is lost and everything is late · [`Rng`]: the numbers

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
