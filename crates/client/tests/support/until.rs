//! Waiting for something that a room tells of.

use crate::support::Patience;
use parlor::{Event, Room};

/// Polls until an event is the one that is waited for.
#[track_caller]
pub(crate) fn until<T>(room: &mut Room, wanted: impl Fn(Event) -> Option<T>) -> T {
    let patience = Patience::new();
    loop {
        while let Some(event) = room.poll() {
            if let Some(found) = wanted(event) {
                return found;
            }
        }
        room.step();
        patience.look_again(|| format!("the room stands like this: {:?}", room.info()));
    }
}
