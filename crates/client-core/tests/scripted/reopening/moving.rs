//! A room that moves to another server, with its sessions: when its member claims its seat there.

use super::{World, retry, seat};
use parlor_client_core::Event;
use parlor_proto::CloseReason;
use parlor_proto::wire::handshake::Seat;

/// A room that is about to move to `c:1`, where its member has claimed its seat.
fn about_to_move() -> World {
    let mut world = World::new(1, 100, Some(seat(1, &["b:1", "c:1"])));
    world.run(9_000);
    world.hub.tell_seat(Seat { moves_to: Some("c:1".into()), ..seat(1, &["b:1", "c:1"]) });
    assert_eq!(world.dialled(500).as_deref(), Some("c:1"));
    world.claimed().expect("it claims before the room has moved");
    world.run(400);
    assert!(world.room.is_claiming() && world.room.is_connected() && world.room.line() == 0);
    world.events.clear();
    world
}

#[test]
fn a_room_that_is_about_to_move_is_claimed_there_before_its_link_is_closed() {
    let mut world = about_to_move();
    world.admit(1, 2, &[0, 1]);
    world.run(50);
    assert!(world.is_reopened() && world.room.line() == 1);
    let of_links = |event: &&Event| matches!(event, Event::ConnectionLost { .. } | Event::Reconnected { .. });
    assert_eq!(world.events.iter().find(of_links), None, "the game has lost no link");
    // The first link is closed only then, or the claim was answered too late.
    let mut world = about_to_move();
    world.hub.close(CloseReason::Moved { address: "c:1".into() }, world.now);
    world.run(20);
    world.reject(retry());
    assert_eq!(world.dialled(500).as_deref(), Some("c:1"));
    world.claimed().expect("it claims again");
    world.admit(1, 2, &[0, 1]);
    world.run(50);
    assert!(world.is_reopened());
}

#[test]
fn a_room_that_does_not_move_after_all_is_claimed_nowhere() {
    let mut world = about_to_move();
    world.hub.tell_seat(seat(1, &["b:1", "c:1"]));
    world.run(50);
    assert!(!world.room.is_claiming() && world.room.next_claim().is_none());
    world.run(2_000);
    assert!(world.room.is_connected() && world.room.line() == 0);
    assert_eq!((world.dialled.len(), &*world.events), (1, &[][..]));
    // Until it is called off, a claim without an answer is made again.
    let mut world = about_to_move();
    world.reject(retry());
    assert_eq!(world.dialled(500).as_deref(), Some("c:1"));
}

#[test]
fn a_room_that_falls_silent_when_it_was_about_to_move_is_claimed_there() {
    let mut world = about_to_move();
    world.silence();
    world.run(1_000);
    world.admit(1, 2, &[0, 1]);
    world.run(50);
    assert!(world.is_reopened());
}

#[test]
fn a_room_that_has_moved_is_claimed_there_at_once() {
    for (address, asked) in [("d:1", "d:1"), ("", "b:1")] {
        let mut world = World::new(1, 100, Some(seat(1, &["b:1"])));
        world.run(1_000);
        world.hub.close(CloseReason::Moved { address: address.into() }, world.now);
        assert_eq!(world.dialled(1_000).as_deref(), Some(asked));
        world.claimed().expect("it claims");
        world.admit(1, 2, &[0, 1]);
        world.run(50);
        assert!(world.is_reopened());
    }
    let mut alone = World::new(1, 100, None);
    alone.hub.close(CloseReason::Moved { address: "d:1".into() }, alone.now);
    alone.run(50);
    assert!(alone.room.closed().is_some(), "without a seat nothing can be claimed");
}
