//! A planned hand-over at a host, against a hub of each age.

use bytes::Bytes;
use parlor_client_core::{Event, Mode, Options, RoomCore};
use parlor_proto::session::{self, Answer, Outgoing, Session};
use parlor_proto::wire::control::{HandOver, HandOverRefusal, MemberInfo, Presence, ToHub, ToMember};
use parlor_proto::wire::handshake::{Authority, Limits, RoomKind, Welcome, capability};
use parlor_proto::{Epoch, Instant, LinkKind, MemberId, RoomId, SessionId, TickRate, channel};
use std::time::Duration;

const NOW: Instant = Instant::from_millis(1_000);

fn welcome(capabilities: u64) -> Welcome {
    Welcome {
        version: 1,
        session: SessionId(1),
        capabilities,
        room: RoomId(1),
        code: "K7QM".parse().expect("it is a code"),
        kind: RoomKind::PlayerHosted,
        member: MemberId(0),
        authority: Authority::Member(MemberId(0)),
        epoch: Epoch(0),
        tick_rate: TickRate::DEFAULT,
        opened: NOW,
        now: NOW,
        max_players: 4,
        limits: Limits::of_this_build(),
        resume: None,
        grace_ms: 0,
        gone_ms: None,
        schema: Bytes::new(),
        members: 2,
    }
}

/// A host and another player on a hub that can do so much.
fn host(capabilities: u64) -> (RoomCore, Session) {
    let mut options = Options::host("tanks");
    options.host_timeout = Some(Duration::from_millis(250));
    let (mut room, mut hub) = (RoomCore::new(options, Mode::Auto), Session::server(LinkKind::WebSocket, NOW));
    room.connected(LinkKind::WebSocket, NOW);
    exchange(&mut room, &mut hub);
    hub.answer(Answer::Welcome(Box::new(welcome(capabilities))), NOW);
    for id in [0, 1].map(MemberId) {
        let presence = Presence { member: id, connected: true, slow: false, rtt_ms: None };
        let (name, link) = (String::new(), LinkKind::WebSocket);
        let joined = ToMember::Joined(MemberInfo { id, name, user: None, link, presence, data: Vec::new() });
        hub.send(Outgoing::new(channel::CONTROL, joined.encode())).expect("it is open");
    }
    exchange(&mut room, &mut hub);
    while room.poll(NOW).is_some() {}
    assert!(room.is_host() && room.player_count() == 2);
    (room, hub)
}

/// Exchanges all packets. Returns the room control that the hub received.
fn exchange(room: &mut RoomCore, hub: &mut Session) -> Vec<ToHub> {
    for _ in 0..4 {
        while let Some(packet) = room.poll_packet(NOW) {
            hub.handle_packet(packet, NOW).expect("the room keeps to the protocol");
        }
        while let Some(packet) = hub.poll_packet(NOW) {
            room.handle_packet(packet, NOW);
        }
    }
    let events = std::iter::from_fn(|| hub.poll_event());
    let told = events.filter_map(|event| match event {
        session::Event::Message(message) if message.channel == channel::CONTROL => {
            ToHub::decode(message.payload).expect("it can be read")
        }
        _ => None,
    });
    told.collect()
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
