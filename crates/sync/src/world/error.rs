//! What can be wrong with a call, and with a packet.

use super::EntityId;
use crate::delta::DeltaError;
use crate::limits::{
    ENTITIES_MAX, ENTITY_BLOB_BYTES_MAX, WORLD_BLOB_BYTES_MAX, WORLD_HISTORY_BYTES_MAX, WORLD_LANES_MAX,
};
use crate::schema::{ComponentId, RowError};
use parlor_proto::Tick;
use parlor_proto::wire::cursor::ReadError;
use thiserror::Error;

/// A call cannot be: the game's fault.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum WorldError {
    /// There is no such entity, or it is gone.
    #[error("there is no {entity}: it was despawned, or belongs to another room")]
    NoSuchEntity {
        /// The entity.
        entity: EntityId,
    },
    /// The schema has no component of this name.
    #[error("the schema of this room has no component {name:?}: register it before the room opens")]
    NotRegistered {
        /// The name.
        name: &'static str,
    },
    /// The schema has no component of this number.
    #[error("the schema of this room has no {component}")]
    NoSuchComponent {
        /// The component.
        component: ComponentId,
    },
    /// The value does not fit its component.
    #[error(transparent)]
    Row(#[from] RowError),
    /// There are too many entities.
    #[error(
        "a world has at most {ENTITIES_MAX} entities, the ones despawned within the last 128 ticks included"
    )]
    TooManyEntities,
    /// All components together are too large.
    #[error(
        "all components of a world have at most {WORLD_LANES_MAX} lanes together, those of entities despawned within the last 128 ticks included"
    )]
    TooManyLanes,
    /// All texts, bytes and values together are too large.
    #[error(
        "texts, bytes and values take at most {WORLD_BLOB_BYTES_MAX} bytes in a world and {ENTITY_BLOB_BYTES_MAX} in an entity"
    )]
    TooManyBytes,
    /// Too much changed lately.
    #[error(
        "what changed within the last 128 ticks takes more than {WORLD_HISTORY_BYTES_MAX} bytes to remember: change less at once, or more rarely"
    )]
    TooMuchHistory,
    /// A batch is closed with a tick that is not newer than the one before.
    #[error("{tick} was to be committed, and {newest} already is: each tick is committed once, in order")]
    TickNotNewer {
        /// The tick.
        tick: Tick,
        /// The newest that was committed.
        newest: Tick,
    },
}

/// A packet of a world breaks the protocol: the peer's fault.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StreamError {
    /// Its head cannot be read.
    #[error("a packet of the world could not be read: {0}")]
    Read(#[from] ReadError),
    /// Its entries cannot be decoded.
    #[error("a packet of the world could not be decoded: {0}")]
    Delta(#[from] DeltaError),
    /// It brings a row that no value becomes.
    #[error("a packet of the world brings a row that cannot be: {0}")]
    Row(#[from] RowError),
    /// Its head contradicts itself.
    #[error("the head of a packet of the world contradicts itself: {0}")]
    Head(&'static str),
    /// It builds on something of an entity that is not here any more, or never was.
    #[error("a packet of the world builds on slot {slot} as of tick {label}, which is not here")]
    BaselineGone {
        /// The entity's slot.
        slot: u16,
        /// The tick of what it builds on.
        label: u32,
    },
    /// It names an entity that is not there.
    #[error("a packet of the world changes slot {slot}, where there is no entity")]
    UnknownEntity {
        /// The slot.
        slot: u16,
    },
    /// It names an entity beyond the largest one.
    #[error("a packet of the world names slot {slot}, there are {ENTITIES_MAX}")]
    SlotBeyond {
        /// The slot.
        slot: u16,
    },
    /// It names components that the schema does not have, or that the entity does not have.
    #[error("a packet of the world has components {mask:#x} of slot {slot} that are not there")]
    UnknownComponents {
        /// The entity's slot.
        slot: u16,
        /// One bit for each component.
        mask: u64,
    },
    /// It makes the world larger than worlds may be.
    #[error("a packet of the world makes it larger than worlds may be")]
    TooLarge,
}
