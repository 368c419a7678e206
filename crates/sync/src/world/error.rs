//! Errors of calls and of packets.

use super::EntityId;
use crate::delta::DeltaError;
use crate::limits::{
    ENTITIES_MAX, ENTITY_BLOB_BYTES_MAX, WORLD_BLOB_BYTES_MAX, WORLD_HISTORY_BYTES_MAX, WORLD_LANES_MAX,
};
use crate::schema::{ComponentId, RowError};
use parlor_proto::Tick;
use parlor_proto::text::Quoted;
use parlor_proto::wire::cursor::ReadError;
use thiserror::Error;

/// An invalid call: the game's fault.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum WorldError {
    /// The entity does not exist, or was despawned.
    #[error("there is no {entity}: it was despawned, or belongs to another room")]
    NoSuchEntity {
        /// The entity.
        entity: EntityId,
    },
    /// The schema has no component with this name.
    #[error("the schema of this room has no component {}: register it before the room opens", Quoted(.name))]
    NotRegistered {
        /// The name.
        name: &'static str,
    },
    /// The schema has no component with this number.
    #[error("the schema of this room has no {component}")]
    NoSuchComponent {
        /// The component.
        component: ComponentId,
    },
    /// The value is invalid for its component.
    #[error(transparent)]
    Row(#[from] RowError),
    /// There are too many entities.
    #[error(
        "a world has at most {ENTITIES_MAX} entities, the ones despawned within the last 128 ticks included"
    )]
    TooManyEntities,
    /// All components together exceed the limit.
    #[error(
        "all components of a world have at most {WORLD_LANES_MAX} lanes together, those of entities despawned within the last 128 ticks included"
    )]
    TooManyLanes,
    /// All texts, bytes and values together exceed the limit.
    #[error(
        "texts, bytes and values take at most {WORLD_BLOB_BYTES_MAX} bytes in a world and {ENTITY_BLOB_BYTES_MAX} in an entity"
    )]
    TooManyBytes,
    /// The history exceeds its limit: too much changed recently.
    #[error(
        "what changed within the last 128 ticks takes more than {WORLD_HISTORY_BYTES_MAX} bytes to remember: change less at once, or more rarely"
    )]
    TooMuchHistory,
    /// A batch is closed with a tick that is not newer than the one before.
    #[error("{tick} was to be committed, and {newest} already is: each tick is committed once, in order")]
    TickNotNewer {
        /// The tick.
        tick: Tick,
        /// The newest committed tick.
        newest: Tick,
    },
}

/// A packet of a world violates the protocol: the peer's fault.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StreamError {
    /// Its head is malformed.
    #[error("a packet of the world could not be read: {0}")]
    Read(#[from] ReadError),
    /// Its entries cannot be decoded.
    #[error("a packet of the world could not be decoded: {0}")]
    Delta(#[from] DeltaError),
    /// A row is invalid for its component.
    #[error("a packet of the world brings a row that cannot be: {0}")]
    Row(#[from] RowError),
    /// Its head contradicts itself.
    #[error("the head of a packet of the world contradicts itself: {0}")]
    Head(&'static str),
    /// A baseline of an entity is unknown, or no longer kept.
    #[error("a packet of the world builds on slot {slot} as of tick {label}, which is not here")]
    BaselineGone {
        /// The entity's slot.
        slot: u16,
        /// The label of the baseline.
        label: u32,
    },
    /// It names an entity that does not exist.
    #[error("a packet of the world changes slot {slot}, where there is no entity")]
    UnknownEntity {
        /// The slot.
        slot: u16,
    },
    /// It names a slot beyond the maximum.
    #[error("a packet of the world names slot {slot}, there are {ENTITIES_MAX}")]
    SlotBeyond {
        /// The slot.
        slot: u16,
    },
    /// It names components that the schema or the entity lacks.
    #[error("a packet of the world has components {mask:#x} of slot {slot} that are not there")]
    UnknownComponents {
        /// The entity's slot.
        slot: u16,
        /// One bit for each component.
        mask: u64,
    },
    /// It makes the world exceed its limits.
    #[error("a packet of the world makes it larger than worlds may be")]
    TooLarge,
}
