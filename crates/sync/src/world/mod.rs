//! A world of entities, written by one authority and replicated to each reader as far as it may see it.
//!
//! - A [`World`] holds entities with components. The authority writes into it and closes each tick's batch
//!   with [`commit`](World::commit). It keeps the components of the last ticks.
//! - A [`Publisher`] for each receiver makes packets of the changes. Each entity is a delta against *rows*
//!   that this receiver is known to have. A row is an entity's state at one tick, as far as the receiver sees
//!   it.
//! - A [`Replica`] applies packets to a world that can be read and published again.
//! - [`Views`] are the publishers of all members of a room.
//!
//! The same machine serves both hops. A host publishes to the hub with [`Viewer::Everything`]; the hub's
//! replica holds owners, zones and audiences too, and [`Views`] publish each member's view from it. A member
//! that becomes host gets everything in the same way, and continues with [`Replica::into_successor`].
//!
//! Packets may be lost, repeated or reordered. A receiver is *settled* once it has all packets whose fate the
//! sender does not know, with the last marked as such. It then holds exactly the authority's state of that
//! tick, as far as it may see it. A late packet is kept as a possible baseline, and does not change the
//! present state.
//!
//! Every packet can be decoded, because a sender uses only two kinds of baselines. The first are acknowledged
//! rows at most [`BASELINE_AGE_MAX`](crate::limits::BASELINE_AGE_MAX) ticks older than its newest. The second
//! is the newest acknowledged row of any age, if all rows sent after it are within that limit. Receivers
//! ignore packets that are older than that, and senders treat rows acknowledged later as lost. So a receiver
//! must keep twice that many ticks, and the row before them.
//!
//! A sent row carries its changes against its baseline under its own tick as label. If the packet with the
//! right label was lost, a reader may know a component's version under a newer label than the authority's.
//! The row of any given label is the same at both ends.

mod adopt;
mod baseline_sharing;
mod blocks;
mod brief;
mod column;
mod config;
mod diagnostics;
mod encode;
mod error;
mod flight;
mod hash;
mod history;
mod labels;
mod load;
mod log;
mod memory;
mod meta;
mod packet;
mod plan;
mod publisher;
mod receiver_state;
mod replica;
mod resting;
mod retreat;
mod ring;
mod store;
mod succession;
mod switch;
mod views;
mod window;

pub use crate::audience::{Audience, Viewer};
pub use config::PublisherConfig;
pub use diagnostics::{ComponentFigures, Diagnostics};
pub use encode::Encodings;
pub use error::{StreamError, WorldError};
pub use packet::PacketHead;
pub use parlor_proto::EntityId;
pub use publisher::{Publisher, Sent};
pub use replica::{Applied, Outcome, Replica, ReplicaCounters};
pub use store::{Row, World};
pub use succession::IdsUsed;
pub use views::Views;
