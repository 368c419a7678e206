//! A planned hand-over at a host, against a hub of each age.

use crate::hub::{self, NOW, admit, control, welcome};
use parlor_client_core::{Event, Mode, Options, RoomCore};
use parlor_proto::session::{Outgoing, Session};
use parlor_proto::wire::control::{HandOver, HandOverRefusal, ToHub, ToMember};
use parlor_proto::wire::handshake::capability;
use parlor_proto::{Epoch, LinkKind, MemberId, channel};
use std::time::Duration;

/// A host and another player on a hub that can do so much.
fn host(capabilities: u64) -> (RoomCore, Session) {
    let mut options = Options::host("tanks");
    options.host_timeout = Some(Duration::from_millis(250));
    let (mut room, mut hub) = (RoomCore::new(options, Mode::Auto), Session::server(LinkKind::WebSocket, NOW));
    room.connected(LinkKind::WebSocket, NOW);
    exchange(&mut room, &mut hub);
    admit(&mut hub, welcome(capabilities), &[0, 1], NOW);
    exchange(&mut room, &mut hub);
    while room.poll(NOW).is_some() {}
    assert!(room.is_host() && room.player_count() == 2);
    (room, hub)
}

/// Exchanges all packets. Returns the room control that the hub received.
fn exchange(room: &mut RoomCore, hub: &mut Session) -> Vec<ToHub> {
    control(hub::exchange(room, hub, NOW))
}

#[test]
fn a_hub_that_does_not_know_the_word_is_not_sent_it() {
    let (mut room, mut hub) = host(capability::RETURNS);
    let error = room.hand_over(None, NOW).expect_err("it is older");
    assert!(error.to_string().contains("this server is older"), "{error}");
    while room.poll(NOW).is_some() {}
    assert_eq!(exchange(&mut room, &mut hub), []);
    let (mut room, mut hub) = host(capability::RETURNS | capability::HANDS_OVER);
    room.hand_over(Some(MemberId(1)), NOW).expect("it may");
    while room.poll(NOW).is_some() {}
    let asked = HandOver { epoch: Epoch(0), to: Some(MemberId(1)) };
    assert_eq!(exchange(&mut room, &mut hub), [ToHub::HandOver(asked)]);
}

/// An answer that nobody asked for changes nothing.
#[test]
fn a_refusal_comes_once_and_the_host_steps_on() {
    let (mut room, mut hub) = host(capability::HANDS_OVER);
    let refuse = |room: &mut RoomCore, hub: &mut Session| {
        let refused = ToMember::NotHandedOver(HandOverRefusal::TooSoon).encode();
        hub.send(Outgoing::new(channel::CONTROL, refused)).expect("it is open");
        exchange(room, hub);
        std::iter::from_fn(|| room.poll(NOW)).collect::<Vec<Event>>()
    };
    let after = |ms| NOW + Duration::from_millis(ms);
    assert_eq!(refuse(&mut room, &mut hub), []);
    // The first measurement of the clock sets the steps.
    room.tick(after(100));
    assert!(room.tick(after(200)));
    room.hand_over(None, after(200)).expect("it may");
    while room.poll(after(200)).is_some() {}
    assert!(!room.tick(after(300)), "the last step is over");
    let why = HandOverRefusal::TooSoon;
    assert_eq!(refuse(&mut room, &mut hub), [Event::HandOverRefused { why }]);
    assert!(room.tick(after(300)) && room.is_host());
}
