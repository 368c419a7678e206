//! Resumption over another connection, case by case; the guarantees of lanes across connections are in
//! [`chaos`](crate::chaos).

use crate::harness::{CLIENT, PERFECT, SERVER, World, ms};
use bytes::Bytes;
use parlor_proto::session::{Answer, DeliveryId, Event, Outgoing, Rejection, SendError, Session, Stats};
use parlor_proto::wire::cursor::Reader;
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::handshake::{Refusal, Resume, ResumeRefusal, ResumeToken, RetryAfter, Seat};
use parlor_proto::wire::header::Header;
use parlor_proto::{Carrier, CloseReason, Instant, LinkKind, Packet, SessionId, channel, limits};

const RESUME: Resume = Resume { session: SessionId(7), token: ResumeToken([1; 32]) };
const NEXT: ResumeToken = ResumeToken([2; 32]);

fn drain(session: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn message(text: &'static str) -> Outgoing {
    Outgoing::new(channel::MESSAGE_ORDERED, Bytes::from_static(text.as_bytes()))
}

/// Two open ends whose connection broke, with a message queued on each, and the client's Resume packet.
fn broken() -> (Session, Session, Packet, Instant) {
    let mut world = World::open(1, LinkKind::Quic, PERFECT);
    world.disconnect([true, true]);
    let now = Instant::from_millis(10_000_000_000);
    let [client, server] = world.ends;
    let (mut client, mut server) = (client.session, server.session);
    client.send(message("up")).expect("it is open");
    server.send(message("down")).expect("it is open");
    client.resume(RESUME, LinkKind::Quic, now);
    let packet = client.poll_packet(now).expect("the wish to go on");
    assert_eq!(client.poll_packet(now), None, "it says nothing else before it is answered");
    (client, server, packet, now)
}

#[test]
fn the_wish_to_go_on_comes_alone_and_with_an_empty_header() {
    let (_, _, packet, _) = broken();
    assert_eq!(packet.carrier, Carrier::Stream);
    let mut reader = Reader::new(packet.bytes);
    assert_eq!(Header::read(&mut reader), Ok(Header::default()));
    assert_eq!(Frame::read(&mut reader), Ok(Some(Frame::Resume(RESUME))));
    assert!(reader.is_empty());
}

#[test]
fn what_waited_at_both_ends_arrives_once_they_go_on() {
    let (mut client, mut server, packet, now) = broken();
    let mut newest = Session::server(LinkKind::Quic, now);
    newest.handle_packet(packet, now).expect("it is honest");
    assert_eq!(drain(&mut newest), [Event::Resume(RESUME)]);
    server.go_on(NEXT, LinkKind::Quic, now);
    assert!(!server.has_heard_peer(), "it does not know yet whether the client has the next token");
    for _ in 0..2 {
        while let Some(packet) = server.poll_packet(now) {
            client.handle_packet(packet, now).expect("it is honest");
        }
        while let Some(packet) = client.poll_packet(now) {
            server.handle_packet(packet, now).expect("it is honest");
        }
    }
    assert!(server.has_heard_peer());
    let got = |session: &mut Session| {
        let events = drain(session).into_iter();
        let texts = events.filter_map(|event| match event {
            Event::Message(message) => Some(message.payload),
            _ => None,
        });
        texts.collect::<Vec<Bytes>>()
    };
    assert_eq!(got(&mut server), ["up"]);
    assert_eq!(got(&mut client), ["down"]);
    assert!(client.is_attached() && server.is_attached());
}

fn seat(term: u64) -> Seat {
    let pass = Bytes::from_static(b"pass");
    Seat {
        term,
        uid: [7; 16],
        pass,
        hedge_ms: 500,
        elsewhere: vec!["b.example.com:4433".into()],
        moves_to: None,
    }
}

#[test]
fn a_seat_comes_with_the_answer_and_before_the_messages() {
    let (mut client, mut server, _, now) = broken();
    server.tell_seat(seat(1));
    server.go_on(NEXT, LinkKind::Quic, now);
    server.tell_seat(seat(2));
    server.tell_seat(seat(3));
    let first = server.poll_packet(now).expect("the answer");
    client.handle_packet(first, now).expect("it is honest");
    let events = drain(&mut client);
    let seats = events.iter().filter(|event| matches!(event, Event::Seat(_))).count();
    assert_eq!(
        seats, 1,
        "one that was told without a connection is void, and a newer one replaces the older"
    );
    let newest = Event::Seat(Box::new(seat(3)));
    assert_eq!(events[..2], [Event::Resumed(NEXT), newest], "its seat is known before anything of the room");
}

#[test]
fn a_client_gives_no_seats() {
    let (mut client, mut server, _, now) = broken();
    server.go_on(NEXT, LinkKind::Quic, now);
    let mut out = Vec::new();
    Header::default().write(&mut out);
    Frame::Seat(Box::new(seat(1))).write(&mut out);
    let packet = Packet { carrier: Carrier::Stream, bytes: out.into() };
    assert!(server.handle_packet(packet.clone(), now).is_err(), "only a hub gives them");
    assert!(client.handle_packet(packet, now).is_err(), "and none before the answer");
}

#[test]
fn what_is_isolated_does_not_overtake_the_answer() {
    let (_, mut server, _, now) = broken();
    server.go_on(NEXT, LinkKind::Quic, now);
    server.send(Outgoing::new(channel::MESSAGE_UNORDERED, Bytes::from_static(b"x"))).expect("it is open");
    let packets: Vec<Packet> = std::iter::from_fn(|| server.poll_packet(now)).collect();
    assert!(packets.iter().all(|packet| packet.carrier != Carrier::Isolated), "{packets:?}");
}

#[test]
fn who_is_refused_has_no_session_any_more_and_who_is_to_wait_has() {
    for (away, is_over) in [
        (Rejection::Refused(Refusal::Resume { why: ResumeRefusal::Gone }), true),
        (Rejection::RetryAfter(RetryAfter { after: ms(100), detail: "later".into() }), false),
    ] {
        let (mut client, _, packet, now) = broken();
        let mut newest = Session::server(LinkKind::Quic, now);
        newest.handle_packet(packet, now).expect("it is honest");
        newest.answer(Answer::Rejected(away.clone()), now);
        client.handle_packet(newest.poll_packet(now).expect("the answer"), now).expect("it is honest");
        assert_eq!(drain(&mut client), [Event::Rejected(away)]);
        assert_eq!(client.is_finished(), is_over);
        assert!(!client.is_attached());
        assert_eq!(
            client.send(message("again")).is_err(),
            is_over,
            "what it has to say waits, or is refused"
        );
    }
}

#[test]
fn an_answer_that_does_not_come_is_told_and_the_session_stays() {
    let (mut client, _, _, now) = broken();
    let due = now + limits::HANDSHAKE_TIMEOUT;
    assert_eq!(client.poll_timeout(), Some(due));
    client.handle_timeout(due);
    assert_eq!(drain(&mut client), [Event::Silent]);
    assert!(client.is_open() && !client.is_attached() && !client.is_finished());
}

#[test]
fn silence_detaches_a_session_that_can_be_resumed_and_ends_another() {
    for is_resumable in [true, false] {
        let mut world = World::open(2, LinkKind::Quic, PERFECT);
        let silence = world.clock(CLIENT) + limits::SILENCE_TIMEOUT * 2;
        for end in [CLIENT, SERVER] {
            let session = &mut world.ends[end].session;
            session.set_resumable(is_resumable);
            session.handle_timeout(silence + ms(1 << 40));
            let told = if is_resumable { Event::Silent } else { Event::Closed(CloseReason::TimedOut) };
            assert_eq!(drain(session).last(), Some(&told));
            assert_eq!(session.is_open(), is_resumable);
        }
    }
}

#[test]
fn without_a_connection_reliable_messages_wait_up_to_their_bound_and_others_are_dropped() {
    let (_, mut server, _, _) = broken();
    let large = || Bytes::from(vec![0; 16 * 1024]);
    let dropped = |stats: Stats| stats.messages_dropped;
    let before = dropped(server.stats());
    let unreliable =
        Outgoing { delivery_id: Some(DeliveryId(5)), ..Outgoing::new(channel::MESSAGE_UNRELIABLE, large()) };
    server.send(unreliable).expect("it is open");
    assert_eq!(dropped(server.stats()) - before, 1);
    assert_eq!(drain(&mut server), [Event::Lost(DeliveryId(5))]);
    assert_eq!(server.unreliable_waiting_bytes(), 0);
    let sent = (0..100).take_while(|_| server.send(Outgoing::new(channel::MESSAGE_ORDERED, large())).is_ok());
    let sent = sent.count();
    assert!((8..=10).contains(&sent), "{sent} of 16 KiB each");
    assert_eq!(server.send(Outgoing::new(channel::MESSAGE_ORDERED, large())), Err(SendError::Full));
}

#[test]
fn what_was_not_acknowledged_can_be_given_to_another_session() {
    let (_, mut server, _, _) = broken();
    server.send(Outgoing::new(channel::MESSAGE_UNORDERED, Bytes::from_static(b"more"))).expect("it is open");
    let given: Vec<Outgoing> = server.take_unacknowledged().into_iter().map(|(_, message)| message).collect();
    assert_eq!(
        given,
        [message("down"), Outgoing::new(channel::MESSAGE_UNORDERED, Bytes::from_static(b"more"))]
    );
    assert!(server.is_settled() && server.take_unacknowledged().is_empty());
}

#[test]
fn who_leaves_while_it_asks_says_nothing_that_would_not_be_understood() {
    let (mut client, _, _, now) = broken();
    client.close(CloseReason::Left, now);
    assert!(client.is_finished());
    assert_eq!(client.poll_packet(now), None);
    assert_eq!(drain(&mut client), [Event::Closed(CloseReason::Left)]);
}
