//! Members that break the rules.

use bytes::Bytes;
use parlor_client_core::{ClosedReason, Event, Options};
use parlor_hub::HubEvent;
use parlor_proto::session::{self, Outgoing, Session};
use parlor_proto::wire::control::{LeaveReason, PlayerData, ToHub};
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::wire::handshake::{Intent, RoomKind, RoomSettings};
use parlor_proto::{Carrier, ChannelId, CloseReason, Epoch, Lane, MemberId, Packet, channel, limits};
use parlor_sim::{Link, PeerId, Rng, SEEDS, Sim, for_seeds, hello};
use parlor_sync::inputs::OwnInputs;
use parlor_sync::keyed::Audience;

/// A room with a host, a guest, and the hostile member 2; and another room.
struct World {
    sim: Sim,
    host: PeerId,
    guest: PeerId,
    mallory: PeerId,
    beside: PeerId,
}

fn world(link: Link) -> World {
    let mut sim = Sim::new(1);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let code = sim.code(host);
    let guest = sim.join(code, Link::quic());
    let beside = sim.host(Options::host("tanks"), Link::quic());
    let mallory = sim.intrude(hello(Intent::Join { code, secret: None }), link);
    sim.run_for(1_000);
    assert_eq!(sim.room(host).player_count(), 3);
    World { sim, host, guest, mallory, beside }
}

fn closed(sim: &Sim, peer: PeerId) -> Option<&CloseReason> {
    sim.session_events(peer).iter().find_map(|event| match event {
        session::Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

impl World {
    /// Checks that the hostile member is out for this reason, and all others are unaffected.
    fn assert_expelled(&mut self, what: &str) {
        self.sim.run_for(1_000);
        let detail = match closed(&self.sim, self.mallory) {
            Some(CloseReason::Misbehaved { detail }) => detail.clone(),
            other => panic!("{what}: {other:?}\n{}", self.sim.transcript()),
        };
        assert!(detail.contains(what), "{detail:?} does not say {what:?}");
        let named =
            self.sim.hub_events().iter().filter(|it| matches!(it, HubEvent::Misbehaved { .. })).count();
        assert_eq!(named, 1, "{what}");
        for peer in [self.host, self.guest, self.beside] {
            assert!(self.sim.room(peer).is_connected(), "{what}");
        }
        for peer in [self.host, self.guest] {
            let left = |event: &&Event| {
                matches!(event, Event::PlayerLeft { id: MemberId(2), reason: LeaveReason::Misbehaved, .. })
            };
            assert_eq!(self.sim.events(peer).iter().filter(left).count(), 1, "{what}");
            assert_eq!(self.sim.room(peer).player_count(), 2);
        }
        assert_eq!(self.sim.hub().connection_count(), 3);
    }
}

fn set_data(member: u32, key: &str, len: usize) -> Bytes {
    let data = PlayerData { member: MemberId(member), key: key.into(), value: Some(vec![0; len].into()) };
    ToHub::SetData(data).encode()
}

#[test]
fn a_member_that_does_what_only_the_host_may_is_expelled() {
    let kick = |member| ToHub::Kick { member: MemberId(member), reason: String::new() }.encode();
    let relay = |len| Upward { to: Recipient::Others, stamp: false, payload: vec![0; len].into() }.encode();
    let cases: [(ChannelId, Bytes, &str); 13] = [
        (channel::STATE, Bytes::from_static(b"anything"), "state may be sent by the authority only"),
        (channel::CONTROL, kick(0), "a kick may be sent by the authority only"),
        (channel::CONTROL, kick(1), "a kick may be sent by the authority only"),
        (channel::CONTROL, kick(2), "a kick may be sent by the authority only"),
        (channel::CONTROL, set_data(0, "a", 1), "another's player data may be sent by the authority only"),
        (channel::CONTROL, set_data(9, "a", 1), "another's player data may be sent by the authority only"),
        (channel::CONTROL, set_data(2, "", 1), "player data"),
        (channel::CONTROL, set_data(2, "a", 2_000), "a control message could not be read"),
        (channel::CONTROL, Bytes::from_static(&[0, 0xff, 0xff]), "a control message could not be read"),
        (channel::MESSAGE_ORDERED, Bytes::new(), "the envelope of a message could not be read"),
        (channel::MESSAGE_ORDERED, Bytes::from_static(&[3, 2, 1, 1]), "the envelope of a message"),
        (channel::MESSAGE_ORDERED, relay(limits::PAYLOAD_BYTES_MAX - 1), "the envelope of a message"),
        (channel::INPUT, vec![0; limits::INPUT_MESSAGE_BYTES_MAX + 1].into(), "an input could not be read"),
    ];
    for link in [Link::quic(), Link::websocket()] {
        for (channel, payload, what) in &cases {
            let mut world = world(link);
            let message = Outgoing::new(*channel, payload.clone());
            world.sim.say(world.mallory, |session, _| session.send(message).unwrap());
            world.assert_expelled(what);
        }
    }
}

#[test]
fn what_comes_with_a_fault_is_not_heard() {
    let mut world = world(Link::websocket());
    let upward = Upward { to: Recipient::Everyone, stamp: false, payload: Bytes::from_static(b"hear me") };
    let bad = Outgoing::new(channel::STATE, Bytes::new());
    world.sim.say(world.mallory, |session, _| {
        for _ in 0..50 {
            session.send(Outgoing::new(channel::CONTROL, Bytes::from_static(&[0, 0xff]))).unwrap();
            session.send(Outgoing::new(channel::MESSAGE_ORDERED, upward.encode())).unwrap();
            session.send(bad.clone()).unwrap();
        }
    });
    world.assert_expelled("a control message could not be read");
    assert_eq!(world.sim.room(world.host).diagnostics().messages_unreadable, 0);
}

#[test]
fn who_says_hello_and_goodbye_at_once_was_never_there() {
    for create in [false, true] {
        let mut world = world(Link::quic());
        let settings = RoomSettings::new(RoomKind::PlayerHosted, 4);
        let join = Intent::Join { code: world.sim.code(world.host), secret: None };
        let hello = hello(if create { Intent::Create(settings) } else { join });
        let visitor = world.sim.intrude(hello.clone(), Link::quic());
        world.sim.tamper(visitor, |_, _| Vec::new());
        world.sim.run_for(100);
        let mut session = Session::client(hello, parlor_proto::LinkKind::Quic, world.sim.now());
        session.close(CloseReason::Left, world.sim.now());
        let packet = session.poll_packet(world.sim.now()).unwrap();
        assert_eq!(session.poll_packet(world.sim.now()), None, "both are in one packet");
        let before = world.sim.events(world.host).len();
        world.sim.inject(visitor, packet);
        world.sim.run_for(1_000);
        assert_eq!(world.sim.events(world.host).len(), before, "nobody heard of it");
        assert_eq!((world.sim.hub().room_count(), world.sim.hub().connection_count()), (2, 4));
        let next = world.sim.join(world.sim.code(world.host), Link::quic());
        assert_eq!(world.sim.room(next).local_id(), Some(MemberId(3)), "its seat was not used");
    }
}

#[test]
fn a_packet_that_is_none_expels() {
    let packet = |carrier, bytes: &[u8]| Packet { carrier, bytes: Bytes::copy_from_slice(bytes) };
    let cases = [
        (packet(Carrier::Stream, &[]), "header"),
        (packet(Carrier::Stream, &[0xe0]), "header"),
        (packet(Carrier::Stream, &[0, 0xff]), "frame"),
        (packet(Carrier::Datagram, &[0; limits::DATAGRAM_BYTES_MAX + 1]), "larger than"),
        (packet(Carrier::Stream, &[0; limits::STREAM_PACKET_BYTES_MAX + 1]), "larger than"),
        (packet(Carrier::Stream, &[4, 0x40, 0xff]), "never sent"),
    ];
    for (packet, what) in cases {
        let mut world = world(Link::quic());
        world.sim.inject(world.mallory, packet);
        world.assert_expelled(what);
    }
}

#[test]
fn a_goodbye_cannot_put_words_into_the_hosts_mouth() {
    let forged = [
        CloseReason::Kicked { reason: "look at example.com".into() },
        CloseReason::ServerShutdown,
        CloseReason::HostGone,
        CloseReason::RoomEnded { reason: "x".into() },
    ];
    for reason in forged {
        let mut world = world(Link::quic());
        world.sim.say(world.mallory, |session, now| session.close(reason, now));
        world.sim.run_for(500);
        let left = world.sim.events(world.guest).iter().find_map(|event| match event {
            Event::PlayerLeft { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        assert_eq!(left, Some(LeaveReason::Left));
        assert!(world.sim.room(world.host).is_connected());
    }
}

/// A room with a hostile host and a guest.
fn hosted_by_mallory() -> (Sim, PeerId, PeerId) {
    let mut sim = Sim::new(2);
    let settings = RoomSettings {
        code: Some("TRAP".parse().expect("it is a code")),
        ..RoomSettings::new(RoomKind::PlayerHosted, 4)
    };
    let mallory = sim.intrude(hello(Intent::Create(settings)), Link::quic());
    sim.run_for(500);
    let guest = sim.join("TRAP".parse().expect("it is a code"), Link::quic());
    (sim, mallory, guest)
}

#[test]
fn a_host_that_breaks_the_rules_ends_its_room_and_nothing_else() {
    type Deed = fn(&mut Session);
    let cases: [(Deed, &str); 4] = [
        (|it| it.send(Outgoing::new(channel::STATE, Bytes::from_static(&[0xff; 9]))).unwrap(), "state"),
        (
            |it| {
                it.set_epoch(Epoch(5));
                it.send(Outgoing::new(channel::STATE, Bytes::new())).unwrap();
            },
            "epoch",
        ),
        (
            |it| {
                let kick = ToHub::Kick { member: MemberId(0), reason: String::new() };
                it.send(Outgoing::new(channel::CONTROL, kick.encode())).unwrap();
            },
            "a kick of oneself",
        ),
        (
            |it| {
                for key in 0..=limits::PLAYER_DATA_KEYS_MAX {
                    it.send(Outgoing::new(channel::CONTROL, set_data(1, &key.to_string(), 1))).unwrap();
                }
            },
            "data count",
        ),
    ];
    for (deed, what) in cases {
        let (mut sim, mallory, guest) = hosted_by_mallory();
        let beside = sim.host(Options::host("tanks"), Link::quic());
        sim.say(mallory, |session, _| deed(session));
        sim.run_for(1_000);
        let Some(CloseReason::Misbehaved { detail }) = closed(&sim, mallory) else {
            panic!("{what}: {:?}", closed(&sim, mallory));
        };
        assert!(detail.contains(what), "{detail:?} does not say {what:?}");
        assert_eq!(sim.closed(guest), Some(ClosedReason::Session(CloseReason::HostGone)));
        assert!(sim.room(beside).is_connected());
        assert_eq!((sim.hub().room_count(), sim.hub().connection_count()), (1, 1));
    }
}

#[test]
fn what_only_a_receiver_could_read_hurts_no_receiver() {
    let mut world = world(Link::quic());
    for payload in [&b""[..], b"\xff\xff\xff", b"\x01k", b"\x01k\xff\xff", &[0xc1; 300]] {
        let payload = Bytes::copy_from_slice(payload);
        world.sim.say(world.mallory, |session, _| {
            let upward = Upward { to: Recipient::Others, stamp: false, payload: payload.clone() };
            for lane in [Lane::ReliableOrdered, Lane::ReliableUnordered, Lane::Unreliable] {
                session.send(Outgoing::new(channel::typed(lane), upward.encode())).unwrap();
            }
            session.send(Outgoing::new(channel::INPUT, payload)).unwrap();
        });
        world.sim.run_for(100);
    }
    let unreadable = |peer| world.sim.room(peer).diagnostics().messages_unreadable;
    assert_eq!((unreadable(world.host), unreadable(world.guest)), (20, 15));
    assert!(world.sim.room(world.host).is_connected() && world.sim.room(world.guest).is_connected());
    // A valid input, but not of the type that the host expects.
    let mut inputs = OwnInputs::new();
    let tick = world.sim.room(world.host).tick_number().unwrap();
    inputs.record(tick, None, parlor_sync::value::Value::Text("north".into()).encode(99).unwrap());
    let input = inputs.message(0).unwrap();
    world.sim.say(world.mallory, |it, _| it.send(Outgoing::new(channel::INPUT, input)).unwrap());
    world.sim.run_for(100);
    world.sim.act(world.host, |room, _| {
        assert!(room.input::<i32>(MemberId(2)).is_err());
        assert_eq!(room.inputs::<i32>().unwrap(), []);
        assert_eq!(room.input::<String>(MemberId(2)).unwrap().as_deref(), Some("north"));
    });
}

fn mutate(rng: &mut Rng, packet: Packet) -> Vec<Packet> {
    if !rng.per_mille(100) {
        return vec![packet];
    }
    let mut bytes = packet.bytes.to_vec();
    match rng.below(5) {
        0 => bytes.truncate(rng.index(bytes.len() + 1)),
        1 => bytes.extend((0..rng.below(30)).map(|_| rng.draw().to_le_bytes()[0])),
        2 if !bytes.is_empty() => drop(bytes.remove(rng.index(bytes.len()))),
        3 => return vec![packet.clone(), packet],
        _ => {
            for _ in 0..=rng.below(4) {
                if !bytes.is_empty() {
                    let at = rng.index(bytes.len());
                    bytes[at] ^= 1 << rng.below(8);
                }
            }
        }
    }
    vec![Packet { bytes: bytes.into(), ..packet }]
}

#[test]
fn whatever_a_member_sends_the_others_play_on_and_nothing_is_left_behind() {
    for_seeds(SEEDS, |seed| {
        let (mut sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let host = sim.host(Options::host("tanks"), Link::quic());
        let guest = sim.join(sim.code(host), Link::any(&mut rng));
        let beside = sim.host(Options::host("tanks"), Link::quic());
        sim.play(host, |room, _| {
            room.inputs::<u32>().unwrap();
            room.set("tick", &room.tick_number().unwrap().0, Audience::All).unwrap();
        });
        let code = sim.code(host);
        for _ in 0..4 {
            let bad = sim.enter(Options::join("tanks", code), Link::any(&mut rng));
            if rng.per_mille(500) {
                sim.run_for(500);
            }
            sim.tamper(bad, mutate);
            let mut draw = rng.clone();
            sim.play(bad, move |room, now| {
                let _ = room.send_input(&draw.below(100));
                let lane = draw.pick(&[Lane::ReliableOrdered, Lane::ReliableUnordered, Lane::Unreliable]);
                let text = "t".repeat(draw.index(2_000));
                let _ = room.send(lane, Recipient::Others, "n", &text, true, now);
                let value = parlor_sync::value::Value::Int(1);
                let _ = room.set_player_data(room.local_id().unwrap(), "a", Some(&value));
            });
            sim.run_for(1_500);
        }
        for peer in [host, guest, beside] {
            assert!(sim.room(peer).is_connected(), "{:?}\n{}", sim.closed(peer), sim.transcript());
        }
        sim.play(host, |_, _| ());
        sim.run_for(12_000);
        // The host's last sequences may contain only acknowledgements of other members' inputs.
        let hash = |peer| sim.room(peer).state_hash().unwrap().1;
        assert_eq!(hash(guest), hash(host));
        let room = sim.hub().room(code).unwrap();
        assert_eq!(room.players, sim.room(host).player_count());
        [guest, host, beside].iter().for_each(|peer| sim.act(*peer, |room, now| room.leave(now)));
        sim.run_for(12_000);
        assert_eq!((sim.hub().room_count(), sim.hub().connection_count()), (0, 0));
        assert_eq!(sim.hub().poll_timeout(), None, "no timer is left behind");
    });
}
