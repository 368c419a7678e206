//! Sessions whose reliable messages go on in others: at another hub, and over another connection of the same member.

use crate::harness::{Rng, for_seeds, hello, welcome};
use bytes::Bytes;
use parlor_proto::session::{Answer, Carried, Event, Message, Outgoing, Session};
use parlor_proto::wire::cursor::Write as _;
use parlor_proto::wire::handshake::{Hello, Limits, Resume, ResumeToken, Welcome, capability};
use parlor_proto::{CloseReason, Instant, LinkKind, Packet, PeerMisbehaved, SessionId, channel, limits};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

const CHANNELS: [parlor_proto::ChannelId; 3] =
    [channel::CONTROL, channel::MESSAGE_ORDERED, channel::MESSAGE_UNORDERED];

/// One end: what it sent, and what came.
#[derive(Default)]
struct Log {
    sent: Vec<(usize, u64)>,
    got: Vec<(usize, u64)>,
}

impl Log {
    fn say(&mut self, session: &mut Session, rng: &mut Rng) {
        let (kind, id) = (usize::try_from(rng.below(3)).expect("an index"), self.sent.len() as u64);
        let payload = Bytes::copy_from_slice(&id.to_be_bytes());
        if session.send(Outgoing::new(CHANNELS[kind], payload)).is_ok() {
            self.sent.push((kind, id));
        }
    }

    fn hear(&mut self, session: &mut Session) {
        while let Some(event) = session.poll_event() {
            match event {
                Event::Message(Message { channel, payload, .. }) => {
                    let kind = CHANNELS.iter().position(|known| *known == channel).expect("it is known");
                    self.got.push((kind, u64::from_be_bytes(payload[..].try_into().expect("a number"))));
                }
                Event::Closed(reason) => panic!("{reason:?}"),
                _ => {}
            }
        }
    }

    /// Each message came once, and those of a channel in order came so.
    fn is_of(&self, peer: &Log, is_all: bool) {
        for kind in 0..3 {
            let of = |all: &[(usize, u64)]| -> Vec<u64> {
                all.iter().filter(|(of, _)| *of == kind).map(|(_, id)| *id).collect()
            };
            let (sent, mut got) = (of(&peer.sent), of(&self.got));
            if kind == 2 {
                got.sort_unstable();
                assert!(got.windows(2).all(|pair| pair[0] != pair[1]), "none comes twice: {got:?}");
                assert!(!is_all || got == sent, "{got:?} of {sent:?}");
            } else {
                assert!(if is_all { got == sent } else { sent.starts_with(&got) }, "{got:?} of {sent:?}");
            }
        }
    }
}

/// The packets that are under way, of which any may be lost with the connection.
#[derive(Default)]
struct Ways {
    up: VecDeque<Packet>,
    down: VecDeque<Packet>,
}

fn greet(hello: Hello, link: LinkKind, now: Instant) -> (Session, Session) {
    let mut client = Session::client(hello, link, now);
    let mut server = Session::server(link, now);
    while let Some(packet) = client.poll_packet(now) {
        server.handle_packet(packet, now).expect("it is honest");
    }
    assert!(matches!(server.poll_event(), Some(Event::Hello(_))));
    (client, server)
}

/// Lets the member go on at another hub, which has `carried`.
fn moves(
    client: &mut Session,
    carried: Bytes,
    link: LinkKind,
    logs: &mut [Log; 2],
    rng: &mut Rng,
    now: Instant,
) -> Session {
    let carried = Carried::decode(carried).expect("a hub wrote it");
    let mut waiting = Session::waiting(hello().channels, carried, now);
    // What others say to the member while it is on its way.
    (0..rng.below(4)).for_each(|_| logs[1].say(&mut waiting, rng));
    let (mut next, mut server) = greet(hello(), link, now);
    server.go_on_with(waiting.take_carried());
    let welcome = welcome(now, Limits::of_this_build());
    let capabilities = welcome.capabilities | capability::CONTINUES;
    server.answer(Answer::Welcome(Box::new(Welcome { capabilities, ..welcome })), now);
    let greeting = server.poll_packet(now).expect("the greeting");
    next.handle_packet(greeting, now).expect("it is honest");
    assert!(matches!(next.poll_event(), Some(Event::Welcome(_))));
    assert!(next.poll_event().is_none(), "the greeting comes alone");
    next.go_on_with(client.take_carried());
    *client = next;
    server
}

#[test]
fn a_session_that_is_carried_on_is_as_one_that_never_was() {
    for_seeds(|seed| {
        let mut rng = Rng::new(seed);
        let mut now = Instant::from_millis(5);
        let link = rng.pick(&[LinkKind::Quic, LinkKind::WebSocket]);
        let (mut client, mut server) = greet(hello(), link, now);
        server.answer(Answer::Welcome(Box::new(welcome(now, Limits::of_this_build()))), now);
        let (mut logs, mut ways) = ([Log::default(), Log::default()], Ways::default());
        for turn in 0..600 {
            now += Duration::from_millis(3);
            let is_over = turn >= 500;
            if !is_over && rng.one_in(3) {
                logs[0].say(&mut client, &mut rng);
            }
            if !is_over && rng.one_in(3) {
                logs[1].say(&mut server, &mut rng);
            }
            client.handle_timeout(now);
            server.handle_timeout(now);
            ways.up.extend(std::iter::from_fn(|| client.poll_packet(now)));
            ways.down.extend(std::iter::from_fn(|| server.poll_packet(now)));
            if !is_over && rng.one_in(60) {
                // Some packets are still heard, as their end has not heard of the move.
                let carried = server.carried();
                let heard = usize::try_from(rng.below(ways.down.len() as u64 + 1)).expect("they are few");
                for packet in ways.down.drain(..heard) {
                    client.handle_packet(packet, now).expect("it is honest");
                }
                logs[0].hear(&mut client);
                client.detach();
                ways = Ways::default();
                if rng.one_in(2) {
                    logs[0].say(&mut client, &mut rng);
                }
                server = moves(&mut client, carried, link, &mut logs, &mut rng, now);
                continue;
            }
            for packet in ways.up.drain(..) {
                server.handle_packet(packet, now).expect("it is honest");
            }
            for packet in ways.down.drain(..) {
                client.handle_packet(packet, now).expect("it is honest");
            }
            logs[0].hear(&mut client);
            logs[1].hear(&mut server);
            let [of_client, of_server] = &logs;
            of_client.is_of(of_server, false);
            of_server.is_of(of_client, false);
        }
        let [of_client, of_server] = &logs;
        assert!(of_client.sent.len() > 100 && of_server.sent.len() > 100);
        of_client.is_of(of_server, true);
        of_server.is_of(of_client, true);
    });
}

#[test]
fn a_member_whose_room_moves_keeps_its_session_without_a_connection() {
    let now = Instant::from_millis(5);
    let (mut client, mut server) = greet(hello(), LinkKind::Quic, now);
    server.answer(Answer::Welcome(Box::new(welcome(now, Limits::of_this_build()))), now);
    client.set_resumable(true);
    server.close(CloseReason::Moved { address: "b:1".into() }, now);
    while let Some(packet) = server.poll_packet(now) {
        client.handle_packet(packet, now).expect("it is honest");
    }
    let events: Vec<Event> = std::iter::from_fn(|| client.poll_event()).collect();
    assert_eq!(events.last(), Some(&Event::Moved("b:1".into())));
    assert!(client.is_open() && !client.is_attached());
    client.send(Outgoing::new(channel::MESSAGE_ORDERED, Bytes::from_static(b"later"))).expect("it waits");
    assert_eq!(client.unacknowledged().count(), 1);
}

#[test]
fn a_member_that_resumes_at_the_node_before_hears_that_its_room_has_moved() {
    let now = Instant::from_millis(5);
    let (mut client, mut server) = greet(hello(), LinkKind::Quic, now);
    server.answer(Answer::Welcome(Box::new(welcome(now, Limits::of_this_build()))), now);
    while let Some(packet) = server.poll_packet(now) {
        client.handle_packet(packet, now).expect("it is honest");
    }
    client.set_resumable(true);
    client.detach();
    let resume = Resume { session: SessionId(7), token: ResumeToken([3; 32]) };
    client.resume(resume, LinkKind::Quic, now);
    let mut next = Session::server(LinkKind::Quic, now);
    next.handle_packet(client.poll_packet(now).expect("it asks"), now).expect("it is honest");
    next.close(CloseReason::Moved { address: "b:1".into() }, now);
    while let Some(packet) = next.poll_packet(now) {
        client.handle_packet(packet, now).expect("it is honest");
    }
    let events: Vec<Event> = std::iter::from_fn(|| client.poll_event()).collect();
    assert_eq!(events.last(), Some(&Event::Moved("b:1".into())));
    assert!(client.is_open() && !client.has_link());
}

proptest! {
    #[test]
    fn threat_37_a_carried_session_that_was_changed_is_bounded(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let now = Instant::from_millis(5);
        let (_, mut server) = greet(hello(), LinkKind::Quic, now);
        server.answer(Answer::Welcome(Box::new(welcome(now, Limits::of_this_build()))), now);
        for id in 0..9_u64 {
            let payload = Bytes::copy_from_slice(&id.to_be_bytes());
            server.send(Outgoing::new(CHANNELS[usize::try_from(id % 3).expect("an index")], payload)).expect("it is open");
        }
        let mut bytes = server.carried().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        for bytes in [bytes.clone(), bytes[..cut.index(bytes.len())].to_vec()] {
            let Ok(carried) = Carried::decode(bytes.into()) else { continue };
            let mut session = Session::waiting(hello().channels, carried, now);
            prop_assert!(session.held_bytes() <= 4 * limits::RELIABLE_QUEUE_BYTES_MAX);
            // Whatever is in it: a client's packet is taken or refused.
            let (mut next, mut hub) = greet(hello(), LinkKind::Quic, now);
            hub.go_on_with(session.take_carried());
            hub.answer(Answer::Welcome(Box::new(welcome(now, Limits::of_this_build()))), now);
            while let Some(packet) = hub.poll_packet(now) {
                let _: Result<(), PeerMisbehaved> = next.handle_packet(packet, now);
            }
            while let Some(packet) = next.poll_packet(now) {
                let _: Result<(), PeerMisbehaved> = hub.handle_packet(packet, now);
            }
        }
    }
}

/// A carried session with so many messages of 1,000 bytes that are sent, and that came too early.
fn carried_with(sent: u64, early: u64) -> Bytes {
    let mut out = vec![1];
    out.put_varint(0);
    out.put_varint(sent);
    for order in 0..sent {
        out.put_bool(true);
        out.put_u8(channel::MESSAGE_ORDERED.0);
        out.put_varint(order);
        out.put_bytes(&[7; 1_000]);
    }
    out.put_varint(0);
    out.put_varint(0);
    out.put_varint(0);
    out.put_varint(1);
    out.put_u8(channel::MESSAGE_ORDERED.0);
    out.put_varint(0);
    out.put_varint(early);
    for order in 1..=early {
        out.put_varint(order);
        out.put_varint(order);
        out.put_bytes(&[7; 1_000]);
    }
    out.into()
}

#[test]
fn threat_37_a_carried_session_has_no_more_than_a_session_holds() {
    assert!(Carried::decode(carried_with(100, 100)).is_ok());
    assert!(Carried::decode(carried_with(200, 0)).is_err(), "sent");
    assert!(Carried::decode(carried_with(0, 200)).is_err(), "came too early");
}
