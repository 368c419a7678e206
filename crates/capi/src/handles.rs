//! Handles of rooms: an index with a generation, so that one that is out of date names nothing.

use crate::boundary::{Done, Failure, call};
use crate::types::{parlor_result, parlor_room};
use parlor::{Event, Room};
use parlor_client_core::Columns;
use slotmap::{DefaultKey, Key, KeyData, SlotMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// A room, and what its handle keeps beside it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) room: Room,
    /// What the last poll gave.
    pub(crate) event: Option<Event>,
    /// Columns to read into, so that each frame need not allocate them.
    pub(crate) columns: Columns,
}

/// A slot is empty while its room is left.
type Slot = Arc<Mutex<Option<Held>>>;

static ROOMS: LazyLock<Mutex<SlotMap<DefaultKey, Slot>>> = LazyLock::new(Mutex::default);

fn rooms() -> MutexGuard<'static, SlotMap<DefaultKey, Slot>> {
    ROOMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a room, and returns its handle.
pub(crate) fn keep(room: Room) -> parlor_room {
    let held = Held { room, event: None, columns: Columns::default() };
    rooms().insert(Arc::new(Mutex::new(Some(held)))).data().as_ffi()
}

/// Takes a room out. Its handle names nothing from here on; a call in another thread is waited for.
pub(crate) fn take(handle: parlor_room) -> Result<Room, Failure> {
    let slot = rooms().remove(KeyData::from_ffi(handle).into()).ok_or_else(Failure::no_such_room)?;
    let held = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    held.map(|held| held.room).ok_or_else(Failure::no_such_room)
}

/// Does a call on a room. Calls on one room wait for each other; those on others do not.
pub(crate) fn on_room(handle: parlor_room, act: impl FnOnce(&mut Held) -> Done) -> parlor_result {
    call(|| {
        let slot = rooms().get(KeyData::from_ffi(handle).into()).cloned();
        let slot = slot.ok_or_else(Failure::no_such_room)?;
        let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        act(held.as_mut().ok_or_else(Failure::no_such_room)?)
    })
}
