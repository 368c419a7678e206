//! One type for each kind of id, so that they cannot be taken for one another.

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
    /// Who a person is, across sessions and rooms. Anonymous members have none.
    UserId(u64), "user "
}
id! {
    /// A live link between two processes, numbered by the process that accepted it. It never goes on the wire.
    ConnectionId(u64), "connection "
}
id! {
    /// A room, for as long as its server lives. Never its code: codes are typed by people and may be used again.
    RoomId(u64), "room "
}
id! {
    /// A participant of a room. The first is 0; a number is never given to another in the same room.
    ///
    /// Member 0 is whoever opened the room. Whether a member is the *authority* is a field of the room
    /// ([`Authority`](crate::wire::handshake::Authority)), not a property of the number.
    MemberId(u32), ""
}
id! {
    /// A thing of a shared world.
    EntityId(u32), "entity "
}
id! {
    /// The number of a channel in the table that both ends agreed on.
    ChannelId(u8), "channel "
}

/// An authenticated state between two ends that outlives the connections that carry it: 128 bits that cannot be
/// guessed, drawn by the hub. It names a session in logs; it does not prove anything.
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

/// How often the authority of a room has changed. What an authority says under an older epoch is ignored, so that
/// two of them can never both be heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}", self.0)
    }
}
