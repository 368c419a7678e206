//! Keyed state: one authority writes values under string keys, and every reader holds a replica of what it may see.
//!
//! - The authority writes into a [`Store`] and closes a batch with [`commit`](Store::commit). Each batch that
//!   changed something has a [`StateSequence`].
//! - A [`Publisher`] for each receiver makes updates of the changes that this receiver may see, against the newest
//!   sequence that it is known to have.
//! - A [`Replica`] takes updates and holds the values. At sequence *s* it holds exactly what the authority's store
//!   held at *s*, as far as it may see it.
//!
//! The same machine serves both hops. A host publishes to the hub with [`Viewer::Everything`]; the hub's store
//! [adopts](Store::adopt) these updates with their sequences, numbers of keys and audiences, and publishes each
//! member's view from there. A member that becomes host is given everything in the same way and goes on with
//! [`Replica::into_store`].
//!
//! Values replace one another: an update against baseline *b* brings a receiver at any sequence from *b* on to the
//! sequence of the update. So updates may be lost, repeated and overtake each other.

mod adopt;
mod audience;
mod gaps;
mod hash;
mod hints;
mod publisher;
mod replica;
mod store;
mod update;

pub use adopt::{Change, Changes, Outcome};
pub use audience::{Audience, Viewer};
pub use hash::state_hash;
pub use hints::{Hint, HintError, Hints, Interp};
pub use publisher::{Publisher, Sent};
pub use replica::{Applied, Replica, ReplicaCounters};
pub use store::{Item, StateError, StateStamp, Store};
pub use update::{Declared, Source, Update, UpdateEntry, UpdateError, UpdateHead};

use core::fmt;

/// Numbers the batches of an authority, across changes of the authority. 0 is the empty state before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateSequence(pub u64);

impl StateSequence {
    /// The empty state before the first batch.
    pub const EMPTY: StateSequence = StateSequence(0);

    /// The batch after this one.
    #[must_use]
    pub const fn next(self) -> StateSequence {
        StateSequence(self.0 + 1)
    }
}

impl fmt::Display for StateSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state {}", self.0)
    }
}

/// Numbers a key for as long as it exists. A key that is removed and set again in a later batch is another key with
/// another number; numbers are never used again in a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.0)
    }
}
