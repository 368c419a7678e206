//! Own state: each member publishes one state of its own and reads those of all others.
//!
//! - A [`Template`] defines the fields of a member's state and the error that others may see.
//! - [`Own`] holds the member's own state. Others extrapolate the last state they received. So a state is
//!   sent only when their error would be too large (dead reckoning), or after the longest interval. Its
//!   [`World`](crate::world::World) has the state as its one entity. It is published to the hub like any
//!   world, and by the hub to the others; [`interval_ticks`] gives the lower rate for distant members.
//! - An [`Introduction`] adds the schema of the state to these packets until it is known to have arrived.
//! - A [`Remote`] applies the packets. A [`RemoteState`] in it gives the state at any moment, extrapolated
//!   beyond the newest sample. Extrapolation errors are blended away.
//!
//! Sender and receivers must extrapolate alike only within the tolerances: the result is only shown, and no
//! encoding depends on it.
//!
//! ```
//! use parlor_proto::{Instant, MemberId, Tick, TickRate};
//! use parlor_sync::audience::Viewer;
//! use parlor_sync::replicated;
//! use parlor_sync::replicator::{Introduction, Own, Remote, Template, Tolerance};
//! use parlor_sync::schema::Kind;
//! use parlor_sync::world::{Encodings, Publisher, PublisherConfig};
//!
//! struct Car {
//!     place: [f32; 2],
//! }
//! replicated!(Car as "car" => { place: Kind::vector2(-512.0, 512.0, 1.0 / 64.0) });
//!
//! // A member sets its state; others may see it 10 cm off.
//! let template = Template::of::<Car>().tolerance("place", Tolerance::off_by(0.1)).build()?;
//! let mut introduction = Introduction::new(template.form().schema().encode());
//! let mut own = Own::new(template, TickRate::DEFAULT, MemberId(0));
//! let mut publisher = Publisher::new(Viewer::Everything, PublisherConfig::default());
//! let mut encodings = Encodings::default();
//! // The hub, or through it another member, takes it in.
//! let mut remote = Remote::of_everything(TickRate::DEFAULT);
//! let mut packets = 0;
//! for tick in 1..=30u32 {
//!     own.set(&Car { place: [tick as f32, 0.0] })?;
//!     own.commit(Tick(tick))?;
//!     let now = Instant::from_micros(u64::from(tick) * 1_000_000 / 30);
//!     while let Some((packet, sent)) = publisher.poll(own.world(), &mut encodings, now) {
//!         remote.apply(introduction.wrap(packet, sent), now)?;
//!         publisher.delivered(sent);
//!         introduction.delivered(sent);
//!         packets += 1;
//!     }
//! }
//! let car: Car = remote.state_at(Instant::from_millis(1_100)).expect("it came").read();
//! assert!((car.place[0] - 33.0).abs() < 0.2);
//! assert!(packets < 10, "it moved steadily");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod added;
mod flow;
mod latency;
pub(crate) mod motion;
mod own;
mod pace;
mod reckoner;
mod remote_state;
mod rotation;
mod stream;
mod template;

pub use flow::{Flow, Flows};
pub use latency::{Latencies, Latency};
pub use motion::EXTRAPOLATION_MAX;
pub use own::Own;
pub use pace::interval_ticks;
pub use remote_state::RemoteState;
pub use stream::{Introduction, Remote, ReplicaError, check_own_state};
pub use template::{Cycle, Form, State, Template, TemplateBuilder, TemplateError, Tolerance};

#[cfg(test)]
mod relay_tests;
#[cfg(test)]
mod tests;
