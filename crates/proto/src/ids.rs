//! Types of ids, one for each kind, so that they cannot be mixed up.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id! {
    /// A live link between two processes, numbered by the accepting process. It is never sent.
    ConnectionId(u64), "connection "
}
id! {
    /// A room, for the lifetime of its server. Never its code: codes are typed by people and may be reused.
    RoomId(u64), "room "
}
id! {
    /// A participant of a room. The first is 0; a number is never reused in the same room.
    ///
    /// Member 0 opened the room. Whether a member is the *authority* is a field of the room
    /// ([`Authority`](crate::wire::handshake::Authority)), not a property of the number.
    MemberId(u32), ""
}
id! {
    /// A path between two members beside the hub, or an attempt at one. Drawn by the hub, so that ids are
    /// unpredictable.
    PathId(u64), "path "
}
id! {
    /// The number of a channel in the agreed table.
    ChannelId(u8), "channel "
}

/// An entity of a world.
///
/// A slot may be reused with another generation, so that the id of a despawned entity never matches a new
/// one. On the wire outside of the state it is one 32-bit number, [`to_bits`](Self::to_bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId {
    /// Its index in the world's tables.
    pub slot: u16,
    /// Counts the entities that had the slot, wrapping.
    pub generation: u16,
}

impl EntityId {
    /// Both parts in one number: the generation in the high half, the slot in the low one.
    pub const fn to_bits(self) -> u32 {
        (self.generation as u32) << 16 | self.slot as u32
    }

    /// The id whose [`to_bits`](Self::to_bits) is `bits`. Every number is the bits of some id.
    #[allow(clippy::cast_possible_truncation)] // each part is what the cast leaves
    pub const fn from_bits(bits: u32) -> Self {
        EntityId { slot: bits as u16, generation: (bits >> 16) as u16 }
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entity {}.{}", self.slot, self.generation)
    }
}

/// An authenticated state between two ends that outlives the connections that carry it: 128 unguessable bits,
/// drawn by the hub. It identifies a session in logs, and is not a credential.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u128);

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({:032x})", self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {:032x}", self.0)
    }
}

/// How often the authority of a room has changed. Messages of an authority under an older epoch are ignored,
/// so that two authorities are never active at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}", self.0)
    }
}
