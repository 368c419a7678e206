//! Opening a room in a hall.

use crate::until::until;
use parlor::{Event, Room, RoomBuilder};
use parlor_testing::Hall;

/// Opens a room on the hall's servers, and waits until this player is in it.
#[track_caller]
pub(crate) fn opened<K>(hall: &Hall, builder: RoomBuilder<K>) -> Room {
    let mut room = builder.registry(hall.registry.clone()).open();
    until(&mut room, |event| match event {
        Event::PlayerJoined(player) if player.is_me => Some(()),
        Event::Closed(why) => panic!("{why}"),
        _ => None,
    });
    room
}
