//! Opening, answering, closing and changing connections, case by case.

use crate::harness::{CLIENT, Conditions, PERFECT, SERVER, World, hello, ms, welcome};
use bytes::Bytes;
use parlor_proto::session::{Answer, Event, Outgoing, Rejection, SendError, Session};
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::handshake::{Limits, Redirect, Refusal, RetryAfter};
use parlor_proto::wire::header::Header;
use parlor_proto::{
    ApiMisuse, Carrier, CloseReason, Epoch, Instant, LinkKind, Packet, Tick, channel, limits,
};

const NOW: Instant = Instant::from_millis(10);

fn drain(session: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

/// Hands all packets of one session to another.
fn hand_over(from: &mut Session, to: &mut Session) {
    while let Some(packet) = from.poll_packet(NOW) {
        to.handle_packet(packet, NOW).expect("honest peers understand each other");
    }
}

/// A client and a server that decides about its hello.
fn deciding() -> (Session, Session) {
    let mut client = Session::client(hello(), LinkKind::Quic, NOW);
    let mut server = Session::server(LinkKind::Quic, NOW);
    hand_over(&mut client, &mut server);
    assert_eq!(drain(&mut server), [Event::Hello(Box::new(hello()))]);
    (client, server)
}

#[test]
fn each_answer_that_turns_away_arrives_and_ends_both() {
    for away in [
        Rejection::Redirect(Redirect { address: "play.example.com:4433".into() }),
        Rejection::RetryAfter(RetryAfter { after: ms(1_500), detail: "full".into() }),
        Rejection::Refused(Refusal::NoSuchRoom),
    ] {
        let (mut client, mut server) = deciding();
        server.answer(Answer::Rejected(away.clone()), NOW);
        hand_over(&mut server, &mut client);
        assert_eq!(drain(&mut client), [Event::Rejected(away)]);
        assert!(client.is_finished() && server.is_finished());
        assert_eq!((client.poll_packet(NOW), server.poll_packet(NOW)), (None, None));
    }
}

#[test]
fn a_client_of_another_time_is_told_so_by_the_session_itself() {
    let mut server = Session::server(LinkKind::Quic, NOW);
    let mut bytes = Vec::new();
    Header::default().write(&mut bytes);
    // The fields after the versions may have any layout.
    bytes.extend([0x01, 9, 7, 0, 9, 0, 0xff, 0xff, 0xff, 0xff, 0xff]);
    let packet = Packet { carrier: Carrier::Stream, bytes: bytes.into() };
    assert_eq!(server.handle_packet(packet, NOW), Ok(()));
    let refused = Rejection::Refused(Refusal::Version { min: 1, max: 1 });
    assert_eq!(drain(&mut server), [Event::Rejected(refused.clone())]);
    let mut client = Session::client(hello(), LinkKind::Quic, NOW);
    while client.poll_packet(NOW).is_some() {}
    hand_over(&mut server, &mut client);
    assert_eq!(drain(&mut client), [Event::Rejected(refused)]);
    assert!(server.is_finished());
}

#[test]
fn an_answer_that_comes_too_late_goes_nowhere() {
    let answer = || Answer::Welcome(Box::new(welcome(NOW, Limits::of_this_build())));
    // The client left meanwhile.
    let (mut client, mut server) = deciding();
    client.close(CloseReason::Left, NOW);
    hand_over(&mut client, &mut server);
    assert_eq!(drain(&mut server), [Event::Closed(CloseReason::Left)]);
    server.answer(answer(), NOW);
    assert!(!server.is_open());
    // It violated the protocol meanwhile.
    let (_, mut server) = deciding();
    assert!(server.handle_packet(Packet { carrier: Carrier::Stream, bytes: Bytes::new() }, NOW).is_err());
    server.answer(answer(), NOW);
    assert!(!server.is_open());
    // The hub took too long, which is not the client's fault.
    let (_, mut server) = deciding();
    server.handle_timeout(NOW + limits::HANDSHAKE_TIMEOUT);
    assert_eq!(drain(&mut server), [Event::Closed(CloseReason::TimedOut)]);
    server.answer(answer(), NOW);
    assert!(!server.is_open());
    // The connection broke meanwhile.
    let (_, mut server) = deciding();
    server.detach();
    assert!(matches!(drain(&mut server)[..], [Event::Closed(CloseReason::ConnectionLost { .. })]));
    server.answer(answer(), NOW);
    assert!(!server.is_open() && server.is_finished());
}

#[test]
fn who_leaves_before_it_is_in_says_hello_and_goodbye() {
    let mut client = Session::client(hello(), LinkKind::WebSocket, NOW);
    client.close(CloseReason::Left, NOW);
    let mut server = Session::server(LinkKind::WebSocket, NOW);
    hand_over(&mut client, &mut server);
    assert_eq!(drain(&mut server), [Event::Hello(Box::new(hello())), Event::Closed(CloseReason::Left)]);
    assert!(client.is_finished() && server.is_finished());
}

#[test]
fn messages_need_an_open_session_a_channel_and_a_size() {
    let mut client = Session::client(hello(), LinkKind::Quic, NOW);
    let message = Outgoing::new(channel::MESSAGE_ORDERED, Bytes::from_static(b"hi"));
    assert_eq!(client.send(message.clone()), Err(SendError::Misuse(ApiMisuse::NotOpen { what: "send" })));
    client.close(CloseReason::Left, NOW);
    assert_eq!(client.send(message), Err(SendError::Misuse(ApiMisuse::Closed(CloseReason::Left))));
    let mut world = World::open(1, LinkKind::Quic, PERFECT);
    let session = &mut world.ends[CLIENT].session;
    let unknown = parlor_proto::ChannelId(40);
    let message = Outgoing::new(unknown, Bytes::new());
    assert_eq!(session.send(message), Err(SendError::Misuse(ApiMisuse::NoSuchChannel(unknown))));
    let large = Bytes::from(vec![0; limits::PAYLOAD_BYTES_MAX + 1]);
    let message = Outgoing::new(channel::MESSAGE_UNRELIABLE, large);
    assert!(matches!(session.send(message), Err(SendError::Misuse(ApiMisuse::MessageTooLarge { .. }))));
}

#[test]
fn too_many_reliable_messages_are_refused_and_not_dropped() {
    let mut world = World::open(2, LinkKind::Quic, PERFECT);
    world.is_cut = true;
    let mut accepted = 0;
    while world.send(SERVER, channel::MESSAGE_ORDERED, 0, 60_000, false) {
        accepted += 1;
        assert!(accepted < 100);
    }
    assert!(accepted * 60_000 > limits::RELIABLE_QUEUE_BYTES_MAX / 2);
    world.is_cut = false;
    world.run_ms(2_000);
    world.check_settled();
    assert!(world.send(SERVER, channel::MESSAGE_ORDERED, 0, 60_000, false));
}

#[test]
fn a_newer_sequenced_message_replaces_one_that_waits() {
    let mut world = World::open(3, LinkKind::Quic, PERFECT);
    for _ in 0..5 {
        for key in 0..2 {
            world.send(CLIENT, channel::MESSAGE_SEQUENCED, key, 20, true);
        }
    }
    world.run_ms(500);
    assert_eq!(world.got(SERVER, channel::MESSAGE_SEQUENCED).len(), 2);
    assert_eq!(world.ends[CLIENT].session.stats().messages_replaced, 8);
    world.check_settled();
}

#[test]
fn what_was_acknowledged_on_no_connection_is_not_an_acknowledgement_of_the_future() {
    // The server received the messages, but its acknowledgement was lost with the connection.
    let mut world = World::open(4, LinkKind::Quic, PERFECT);
    for _ in 0..5 {
        world.send(CLIENT, channel::MESSAGE_ORDERED, 0, 10, false);
    }
    world.run_ms(22);
    assert_eq!(world.got(SERVER, channel::MESSAGE_ORDERED).len(), 5);
    assert!(!world.ends[CLIENT].session.is_settled());
    world.disconnect([true, true]);
    // The first packet on the next connection is the server's.
    let (client_now, server_now) = (world.clock(CLIENT), world.clock(SERVER));
    let [client, server] = &mut world.ends;
    client.session.attach(LinkKind::Quic, client_now);
    server.session.attach(LinkKind::Quic, server_now);
    let packet = server.session.poll_packet(server_now).expect("the time is due");
    assert_eq!(client.session.handle_packet(packet, client_now), Ok(()));
    assert!(client.session.is_settled());
}

#[test]
fn an_isolated_message_cannot_overtake_the_welcome() {
    let (mut client, mut server) = deciding();
    server.answer(Answer::Welcome(Box::new(welcome(NOW, Limits::of_this_build()))), NOW);
    let message = || Outgoing::new(channel::MESSAGE_UNORDERED, Bytes::from_static(b"hi"));
    server.send(message()).expect("it is open");
    let packets: Vec<Packet> = std::iter::from_fn(|| server.poll_packet(NOW)).collect();
    assert!(packets.iter().all(|packet| packet.carrier == Carrier::Stream), "{packets:?}");
    for packet in packets {
        client.handle_packet(packet, NOW).expect("honest peers understand each other");
    }
    assert!(matches!(drain(&mut client)[..], [Event::Welcome(_), Event::Message(_)]));
    // Once the client was heard, they need not wait for the stream.
    hand_over(&mut client, &mut server);
    server.send(message()).expect("it is open");
    assert_eq!(server.poll_packet(NOW).map(|packet| packet.carrier), Some(Carrier::Isolated));
}

#[test]
fn a_goodbye_does_not_overtake_messages_on_streams_of_their_own() {
    let slow = Conditions { latency_us: (1_000, 200_000), lost: 0, doubled: 0 };
    for seed in 0..20 {
        let mut world = World::open(seed, LinkKind::Quic, slow);
        for _ in 0..30 {
            world.send(SERVER, channel::MESSAGE_UNORDERED, 0, 100, false);
        }
        world.run_ms(1);
        world.close(SERVER, CloseReason::HostLeft);
        world.run_ms(1_000);
        assert_eq!(world.ends[CLIENT].closed, Some(CloseReason::HostLeft));
        assert_eq!(world.got(CLIENT, channel::MESSAGE_UNORDERED).len(), 30);
        world.check_safety();
    }
}

#[test]
fn closing_without_a_connection_is_done_at_once() {
    let mut world = World::open(5, LinkKind::Quic, PERFECT);
    world.disconnect([true, true]);
    world.close(CLIENT, CloseReason::Left);
    assert!(world.ends[CLIENT].session.is_finished());
    assert_eq!(world.ends[CLIENT].session.poll_event(), Some(Event::Closed(CloseReason::Left)));
}

#[test]
fn a_goodbye_that_nobody_takes_does_not_linger_for_ever() {
    let mut world = World::open(6, LinkKind::Quic, PERFECT);
    let now = world.clock(CLIENT);
    let session = &mut world.ends[CLIENT].session;
    session.close(CloseReason::Left, now);
    assert!(!session.is_finished());
    assert_eq!(session.poll_timeout(), Some(now + limits::CLOSE_LINGER));
    session.handle_timeout(now + limits::CLOSE_LINGER);
    assert!(session.is_finished());
    assert_eq!(session.poll_packet(now + limits::CLOSE_LINGER), None);
}

#[test]
fn tick_and_epoch_travel_with_messages() {
    for kind in [LinkKind::Quic, LinkKind::WebSocket] {
        let mut world = World::open(7, kind, PERFECT);
        world.set_tick(SERVER, 70_000);
        world.set_tick(CLIENT, 69_000);
        world.ends[SERVER].session.set_epoch(Epoch(3));
        let now = world.clock(SERVER);
        let message = Outgoing::new(channel::MESSAGE_UNRELIABLE, Bytes::from_static(b"now"));
        world.ends[SERVER].session.send(message).expect("it is open");
        let mut messages = Vec::new();
        while let Some(packet) = world.ends[SERVER].session.poll_packet(now) {
            let client_now = world.clock(CLIENT);
            world.ends[CLIENT].session.handle_packet(packet, client_now).expect("it is honest");
            messages.extend(drain(&mut world.ends[CLIENT].session));
        }
        let [Event::Message(message)] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!((message.tick, message.epoch), (Some(Tick(70_000)), Epoch(3)));
    }
}

#[test]
fn a_welcome_in_a_version_that_was_not_offered_is_refused() {
    let (mut client, _) = deciding();
    let mut bytes = Vec::new();
    Header::default().write(&mut bytes);
    let mut odd = welcome(NOW, Limits::of_this_build());
    odd.version = 2;
    Frame::Welcome(Box::new(odd)).write(&mut bytes);
    let packet = Packet { carrier: Carrier::Stream, bytes: bytes.into() };
    assert!(client.handle_packet(packet, NOW).is_err());
    assert!(!client.is_open());
}
