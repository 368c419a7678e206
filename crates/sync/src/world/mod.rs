//! A world of entities that one authority writes and every reader holds as far as it may see it.
//!
//! - A [`World`] holds entities with components. The authority writes into it and closes the batch of each tick with
//!   [`commit`](World::commit). It remembers what each component was at the last ticks.
//! - A [`Publisher`] for each receiver makes packets of what changed. Each entity is a delta against a *row* of it that
//!   this receiver is known to have: a row is what the entity was at one tick, as far as the receiver sees it.
//! - A [`Replica`] takes packets and holds a world that can be read, and published on.
//! - [`Views`] are the publishers of all members of a room.
//!
//! The same machine serves both hops. A host publishes to the hub with [`Viewer::Everything`]; the hub's replica holds
//! owners, rooms and audiences too, and [`Views`] publish each member's view from it. A member that becomes host is
//! given everything in the same way and goes on with [`Replica::into_successor`].
//!
//! Packets may be lost, repeated and overtake each other. Whoever got all packets whose fate the sender does not know,
//! the last of them marked so, is *settled*: it holds exactly what the authority held at that tick, as far as it may see
//! it. What arrives late is kept as something that other packets may build on, and changes nothing that is read.
//!
//! Why every packet can be decoded: a sender builds on rows that are acknowledged and at most
//! [`BASELINE_AGE_MAX`](crate::limits::BASELINE_AGE_MAX) ticks older than its newest; or on the newest row that is
//! acknowledged, however old, if all rows that it sent or sends after that one are not older than so. A receiver ignores packets
//! that are that much older than the newest that it has, and a sender takes what is acknowledged so late for lost. So twice
//! that many ticks, and the row before them, are all that a receiver must remember.
//!
//! A row that is sent brings what changed against its baseline under one label, its own. A reader may so know a version of
//! one component under a label that is newer than the authority's, if the packet with the right one was lost: what a row of
//! any label was is the same at both.

mod adopt;
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
mod known;
mod labels;
mod load;
mod log;
mod meet;
mod meta;
mod packet;
mod plan;
mod publisher;
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
