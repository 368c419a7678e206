//! Paths among all players: a mesh.

use crate::harness::{Room, options, room_with};
use bytes::Bytes;
use parlor_client_core::{Event, Options, PathMode, Transport, Wish};
use parlor_proto::MemberId;
use parlor_proto::wire::envelope::Recipient;
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use parlor_sync::replicator::Template;
use parlor_sync::schema::Kind;
use std::time::Duration;

struct Tank {
    x: f32,
}

parlor_sync::replicated!(Tank as "tank" => { x: Kind::float(-1_000.0, 1_000.0, 0.01) });

/// A host and three guests, who all want a mesh and have own states.
fn mesh(seed: u64, relay: Link, direct: Link) -> Room {
    let mut host = options(PathMode::Mesh);
    host.template = Some(Template::of::<Tank>().build().expect("it is within bounds"));
    room_with(seed, &[PathMode::Mesh; 3], host, relay, Some(direct))
}

/// Whether one player reaches another one over a path.
fn is_direct(sim: &Sim, from: PeerId, to: PeerId) -> bool {
    let id = sim.room(to).local_id().expect("it is in");
    let mut players = sim.room(from).players().iter();
    players.any(|player| player.id == id && player.transport == Transport::Direct)
}

/// All pairs of players but one.
fn pairs(peers: &[PeerId], but: Option<(PeerId, PeerId)>) -> Vec<(PeerId, PeerId)> {
    let all = peers.iter().flat_map(|a| peers.iter().map(|b| (*a, *b)));
    all.filter(|(a, b)| a != b && but.is_none_or(|(c, d)| (*a, *b) != (c, d) && (*a, *b) != (d, c))).collect()
}

fn connect(room: &mut Room, but: Option<(PeerId, PeerId)>) {
    let pairs = pairs(&room.peers, but);
    room.sim.run_until(40_000, "the mesh is up", |sim| pairs.iter().all(|(a, b)| is_direct(sim, *a, *b)));
}

/// Moves all tanks for some seconds.
fn drive(room: &mut Room, seconds: u64) {
    for step in 0..seconds * 20 {
        for peer in room.peers.clone() {
            room.sim.act(peer, |room, _| {
                // Back and forth, so that nothing can be foreseen.
                let x = if step % 2 == 0 { 0.0 } else { 100.0 + step as f32 };
                room.set_own(&Tank { x }).expect("it has a template");
            });
        }
        room.sim.run_for(50);
    }
}

/// Lets all tanks stand at 50.
fn park(room: &mut Room) {
    for peer in room.peers.clone() {
        room.sim.act(peer, |room, _| room.set_own(&Tank { x: 50.0 }).expect("it has a template"));
    }
    room.sim.run_for(2_000);
}

fn latency(room: &Room, to: usize, from: usize) -> Duration {
    let from = room.member(from);
    room.sim.room(room.peers[to]).remote_latency(from).expect("its states came").mean
}

#[test]
fn t7_in_a_mesh_own_states_go_over_a_path_for_each_pair_and_the_relay_for_one_that_has_none() {
    let mut room = mesh(5, Link::quic().latency_ms(60), Link::quic().latency_ms(5));
    let wall = (room.peers[2], room.peers[3]);
    room.sim.wall(wall.0, wall.1);
    connect(&mut room, Some(wall));
    // Three paths of the host, and two of three between the guests.
    assert_eq!(room.sim.paths_made(), 5);
    room.sim.run_for(4_000);
    assert!(!is_direct(&room.sim, wall.0, wall.1), "each pair's way is told");
    let before = room.sim.traffic(room.peers[1]);
    drive(&mut room, 3);
    let after = room.sim.traffic(room.peers[1]);
    for (to, from) in [(0, 1), (1, 0), (1, 2), (2, 1), (1, 3), (3, 1)] {
        let mean = latency(&room, to, from);
        assert!(mean < Duration::from_millis(60), "{from} to {to}: {mean:?}");
    }
    for (to, from) in [(2, 3), (3, 2)] {
        let mean = latency(&room, to, from);
        assert!(mean > Duration::from_millis(110), "{from} to {to} by the relay: {mean:?}");
    }
    let down = after.down_bytes - before.down_bytes;
    assert!(down < 2_000, "the server sends no state to who gets all of them directly: {down} bytes");

    // A mesh that breaks is replaced by the relay, and comes again.
    room.sim.silence_paths(true);
    drive(&mut room, 3);
    assert!(pairs(&room.peers, None).iter().all(|(a, b)| !is_direct(&room.sim, *a, *b)));
    park(&mut room);
    for to in 0..4 {
        for from in (0..4).filter(|from| *from != to) {
            let from = room.member(from);
            let peer = room.peers[to];
            let state = room.sim.act(peer, |room, now| room.remote_state::<Tank>(from, None, now));
            let x = state.expect("its states came").x;
            assert!((x - 50.0).abs() < 0.1, "{from} is seen at {x}");
        }
    }
    room.sim.silence_paths(false);
    connect(&mut room, Some(wall));
}

#[test]
fn t7_messages_come_once_and_in_order_while_a_mesh_comes_and_goes() {
    for_seeds(3, |seed| {
        let lossy = Link::quic().loss(20).jitter_ms(15);
        let mut room = mesh(seed, lossy, lossy.latency_ms(8));
        room.talk(1_000);
        connect(&mut room, None);
        room.talk(1_500);
        room.settle();
        room.talk(500);
        room.sim.break_paths();
        room.talk(1_500);
        room.settle();
        room.sim.silence_paths(true);
        room.talk(2_000);
        room.settle();
    });
}

#[test]
fn t7_who_wants_no_mesh_is_in_none_and_learns_no_address_but_the_hosts() {
    let modes = [PathMode::Auto, PathMode::Mesh, PathMode::Mesh];
    let mut room =
        room_with(3, &modes, options(PathMode::Auto), Link::quic(), Some(Link::quic().latency_ms(5)));
    let [host, auto, one, other] = room.peers[..] else { panic!("there are four") };
    room.sim.run_until(10_000, "paths are up", |sim| {
        [auto, one, other].iter().all(|guest| is_direct(sim, *guest, host)) && is_direct(sim, one, other)
    });
    room.sim.run_for(5_000);
    assert_eq!(room.sim.paths_made(), 4);
    assert!(!is_direct(&room.sim, auto, one) && !is_direct(&room.sim, one, auto));
}

#[test]
fn t7_a_match_has_a_mesh_and_its_reliable_data_keeps_one_order_for_all() {
    let mut sim = Sim::new(9);
    sim.direct(Some(Link::quic().latency_ms(5)));
    let far = Link::quic().latency_ms(60);
    let options = |options: Options| Options { paths: PathMode::Mesh, ..options };
    let opened = options(Options::create_match(APP));
    assert!(matches!(opened.intent, Wish::Match { .. }));
    let first = sim.host(opened, far);
    let code = sim.code(first);
    let peers: Vec<PeerId> = std::iter::once(first)
        .chain((0..2).map(|_| sim.enter(options(Options::join(APP, code)), far)))
        .collect();
    let all = pairs(&peers, None);
    sim.run_until(10_000, "the mesh is up", |sim| {
        peers.iter().all(|peer| sim.room(*peer).player_count() == 3)
            && all.iter().all(|(a, b)| is_direct(sim, *a, *b))
    });
    let began = sim.now();
    sim.act(peers[1], |room, now| {
        room.send_data(7, Recipient::Others, Bytes::from_static(b"quick"), false, now).expect("it is open");
    });
    sim.run_until(1_000, "it comes", |sim| {
        [0, 2].iter().all(|at| sim.events(peers[*at]).iter().any(|event| matches!(event, Event::Data { .. })))
    });
    assert!(sim.now().saturating_since(began) < Duration::from_millis(60), "it came over the paths");
    for number in 0..20u8 {
        for peer in &peers {
            sim.act(*peer, |room, now| {
                room.send_data(i64::from(number), Recipient::Everyone, Bytes::new(), true, now)
                    .expect("it is open");
            });
        }
        sim.run_for(3);
    }
    sim.run_for(2_000);
    let order = |peer: PeerId| -> Vec<(MemberId, i64)> {
        let reliable = sim.events(peer).iter().filter_map(|event| match event {
            Event::Data { from, op, order: Some(_), .. } => Some((*from, *op)),
            _ => None,
        });
        reliable.collect()
    };
    let orders: Vec<_> = peers.iter().map(|peer| order(*peer)).collect();
    assert_eq!(orders[0].len(), 60);
    assert!(orders[0] == orders[1] && orders[1] == orders[2]);
}
