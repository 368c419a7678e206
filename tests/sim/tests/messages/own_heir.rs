//! A host whose process begins anew and has its ticket only: it goes on with the hub's copy of its world, or comes
//! back as a player if another one has taken its part.

use crate::counting::{Room, by_ticket, room};
use parlor_client_core::{ClosedReason, Event, Options};
use parlor_hub::HubEvent;
use parlor_proto::wire::handshake::{Refusal, ResumeRefusal};
use parlor_proto::{CloseReason, MemberId};
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use parlor_sync::replicated;
use parlor_sync::replicator::Template;
use parlor_sync::schema::{Kind, Schema};
use std::sync::Arc;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(30);
const HOST: MemberId = MemberId(0);

/// What a change of the host to another, or to itself, says to a player.
fn changes(events: &[Event]) -> Vec<(MemberId, MemberId)> {
    let changed = events.iter().filter_map(|event| match event {
        Event::HostChanged { host, previous } => Some((previous.expect("it had one"), *host)),
        _ => None,
    });
    changed.collect()
}

impl Room {
    fn expect_steps(&mut self, peer: PeerId) {
        let (deeds, before) = (self.deeds.clone(), self.deeds.borrow().steps.len());
        self.sim.run_until(3_000, "it steps", move |_| {
            deeds.borrow().steps[before..].iter().any(|(by, _)| *by == peer)
        });
    }
}

#[test]
fn a_host_that_is_alone_has_its_room_back_with_its_code_and_its_world() {
    for_seeds(10, |seed| {
        let link = if seed % 2 == 0 { Link::quic().latency_ms(20).loss(20) } else { Link::websocket() };
        let mut room = room(seed, 1, link, GRACE);
        let host = room.peers[0];
        let (code, before) = (room.sim.code(host), room.count(host, "count"));
        let proof = room.sim.room(host).resume_proof().expect("the hub keeps seats");
        if seed % 3 == 0 {
            // It is noticed late, or is back before it is noticed.
            room.sim.crash(host);
            room.sim.run_for(some_ms(seed));
        }
        room.sim.restart(host, by_ticket(proof));
        room.expect_steps(host);
        assert_eq!((room.sim.code(host), room.sim.room(host).local_id()), (code, Some(HOST)));
        assert!(room.is_host(host), "seed {seed}");
        let events = room.sim.take_events(host);
        let named = Event::HostMigration { previous: Some(HOST), new: HOST, is_me: true };
        assert!(events.contains(&named), "seed {seed}: {events:?}");
        assert_eq!(changes(&events), [(HOST, HOST)]);
        assert!(room.count(host, "count") + 30 > before, "what reached the hub is there");
        // Who comes now finds one room.
        let late = room.sim.join(code, Link::quic());
        room.sim.run_for(1_000);
        let counts = [host, late].map(|peer| room.count(peer, "count"));
        assert!(counts[1] > before && counts[0] >= counts[1] && counts[0] < counts[1] + 8, "{counts:?}");
        assert_eq!(room.sim.room(host).player_count(), 2);
        assert_eq!(room.sim.hub().room_count(), 1);
    });
}

/// Some milliseconds to some seconds, within the grace.
fn some_ms(seed: u64) -> u64 {
    parlor_impair::Rng::new(seed).below(9_000)
}

/// Its steps begin with the room's first one, whatever is to be made up for.
#[test]
fn a_host_of_a_room_that_is_some_steps_old_has_it_back_and_steps() {
    for_seeds(12, |seed| {
        let mut sim = Sim::keeping_seats(seed, GRACE);
        let mut options = Options::host(APP);
        options.host_timeout = Some(Duration::from_millis(250));
        let host = sim.host(options, Link::quic());
        sim.run_for(seed * 60);
        let proof = sim.room(host).resume_proof().expect("the hub keeps seats");
        sim.restart(host, by_ticket(proof));
        sim.play(host, |room, _| {
            if room.is_host() {
                let count: u64 = room.get("count").expect("it is a number").unwrap_or(0);
                room.set("count", &(count + 1), Audience::All).expect("the host writes");
            }
        });
        sim.run_for(1_000);
        let guest = sim.join(sim.code(host), Link::quic());
        sim.run_for(500);
        let count = |peer| sim.room(peer).get::<u64>("count").expect("it is a number").unwrap_or(0);
        assert!(count(host) > 30 && count(guest) + 8 > count(host), "{} and {}", count(host), count(guest));
        let tick = sim.room(host).tick_number().expect("it is open").0;
        assert!(tick < 300, "seed {seed}: it runs step {tick}");
    });
}

#[test]
fn a_host_that_is_back_before_it_is_missed_goes_on_and_the_others_with_it() {
    for_seeds(10, |seed| {
        let mut room = room(seed, 4, Link::quic().latency_ms(20).loss(20), GRACE);
        let host = room.peers[0];
        let proof = room.sim.room(host).resume_proof().expect("the hub keeps seats");
        room.sim.crash(host);
        room.sim.run_for(seed % 10 * 10);
        room.sim.restart(host, by_ticket(proof));
        room.expect_steps(host);
        room.sim.run_for(1_000);
        room.expect_no_split_brain();
        for peer in room.peers.clone() {
            let events = room.sim.take_events(peer);
            assert_eq!(changes(&events), [(HOST, HOST)], "seed {seed}: {peer:?}");
            assert_eq!(room.sim.room(peer).info().epoch.0, 1);
        }
        room.expect_one_world(host);
    });
}

#[test]
fn a_host_whose_connection_breaks_comes_back_as_a_player() {
    for_seeds(6, |seed| {
        let mut room = room(seed, 4, Link::quic().latency_ms(20), GRACE);
        let [host, next] = [room.peers[0], room.peers[1]];
        assert!(room.begin_anew(host), "the hub keeps seats");
        room.expect_steps(next);
        room.sim.run_for(2_000);
        assert!(room.is_host(next) && !room.is_host(host), "seed {seed}");
        assert_eq!(room.sim.room(host).local_id(), Some(HOST));
        assert_eq!(changes(&room.sim.take_events(room.peers[2])), [(HOST, MemberId(1))]);
        room.expect_no_split_brain();
        room.expect_one_world(next);
    });
}

#[test]
fn a_host_named_a_moment_ago_that_begins_anew_is_named_again() {
    for_seeds(10, |seed| {
        let mut room = room(seed, 3, Link::quic().latency_ms(40).loss(20), GRACE);
        let [old, heir] = [room.peers[0], room.peers[1]];
        let proof = room.sim.room(heir).resume_proof().expect("the hub keeps seats");
        room.sim.crash(old);
        // It is named, and may have the checkpoint.
        room.sim.run_for(240 + seed * 10);
        room.sim.crash(heir);
        room.sim.restart(heir, by_ticket(proof));
        room.sim.run_for(3_000);
        let hosts: Vec<PeerId> = room.peers.iter().copied().filter(|peer| room.is_host(*peer)).collect();
        assert_eq!(hosts.len(), 1, "seed {seed}\n{}", room.sim.excerpt(60));
        room.expect_no_split_brain();
        room.expect_steps(hosts[0]);
        room.expect_one_world(hosts[0]);
    });
}

#[test]
fn without_host_migration_the_room_of_a_process_that_is_gone_is_refused_by_name() {
    let mut sim = Sim::keeping_seats(1, GRACE);
    let host = sim.host(Options::host(APP), Link::quic());
    let guest = sim.join(sim.code(host), Link::quic());
    sim.run_for(500);
    let proof = sim.room(host).resume_proof().expect("the hub keeps seats");
    sim.restart(host, by_ticket(proof));
    sim.run_for(1_000);
    let why = ResumeRefusal::Gone;
    assert_eq!(sim.closed(host), Some(ClosedReason::Refused(Refusal::Resume { why })));
    assert!(sim.room(guest).is_connected(), "the room waits for the process that has its world");
}

#[test]
fn threat_08_a_hosts_ticket_that_is_used_twice_ends_its_session_and_nobody_has_two_hosts() {
    let mut room = room(4, 1, Link::quic(), GRACE);
    let host = room.peers[0];
    let proof = room.sim.room(host).resume_proof().expect("the hub keeps seats");
    room.sim.restart(host, by_ticket(proof));
    room.expect_steps(host);
    // A page that was duplicated has the same ticket.
    let twin = room.sim.enter(by_ticket(proof), Link::quic());
    room.sim.run_for(2_000);
    let why = ResumeRefusal::Token;
    assert_eq!(room.sim.closed(twin), Some(ClosedReason::Refused(Refusal::Resume { why })));
    assert_eq!(room.sim.closed(host), Some(ClosedReason::Session(CloseReason::TokenReused)));
    let reused = |event: &&HubEvent| matches!(event, HubEvent::TokenReused { .. });
    assert_eq!(room.sim.hub_events().iter().filter(reused).count(), 1);
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tank {
    x: f32,
}
replicated!(Tank as "tank" => { x: Kind::float(0.0, 100.0, 0.5) });

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cursor {
    x: f32,
}
replicated!(Cursor as "cursor" => { x: Kind::float(0.0, 100.0, 0.5) });

fn with_tanks(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Tank>().build().expect("it is a schema");
    let template = Template::of::<Cursor>().build().expect("it is a template");
    Options { schema: Some(Arc::new(schema)), template: Some(template), ..options }
}

/// Entities keep their ids and owners, no id is given twice, private keys are there, and own states and inputs of
/// all go on.
#[test]
fn entities_private_keys_own_states_and_inputs_are_there() {
    let mut sim = Sim::keeping_seats(5, GRACE);
    let mut options = with_tanks(Options::host(APP));
    options.host_timeout = Some(Duration::from_millis(250));
    let host = sim.host(options, Link::quic().latency_ms(15));
    let guest = sim.enter(with_tanks(Options::join(APP, sim.code(host))), Link::quic().latency_ms(15));
    sim.run_for(1_000);
    let guest_id = sim.room(guest).local_id().expect("it is in");
    for (peer, x) in [(host, 1.0), (guest, 2.0)] {
        sim.play(peer, move |room, _| {
            room.set_own(&Cursor { x }).expect("it has a template");
            let _: Result<(), _> = room.send_input(&7u32);
            if room.is_host() {
                let inputs: Vec<u32> = room
                    .inputs::<u32>()
                    .expect("the host reads")
                    .into_iter()
                    .map(|(_, input)| input)
                    .collect();
                room.set("inputs", &inputs, Audience::All).expect("the host writes");
            }
        });
    }
    let (tank, wreck) = sim.act(host, |room, now| {
        room.set("hand", &"ace", Audience::members([HOST])).expect("the host writes");
        let mut world = room.world(now).expect("it is open");
        let [tank, wreck] = [(); 2].map(|()| world.spawn(Some(guest_id)).expect("there is room"));
        world.insert(tank, &Tank { x: 12.0 }).expect("it fits");
        (tank, wreck)
    });
    sim.run_for(500);
    sim.act(host, |room, now| room.world(now).expect("it is open").despawn(wreck)).expect("it is there");
    sim.run_for(1_000);
    let proof = sim.room(host).resume_proof().expect("the hub keeps seats");
    sim.crash(host);
    sim.restart(host, with_tanks(by_ticket(proof)));
    sim.run_until(3_000, "it is the host", |sim| sim.room(host).is_host());
    sim.run_for(1_000);
    let hand: Option<String> = sim.room(host).get("hand").expect("it is a text");
    assert_eq!(hand.as_deref(), Some("ace"));
    let events = sim.take_events(host);
    assert!(events.contains(&Event::Spawned { entity: tank }), "{events:?}");
    sim.act(host, |room, now| {
        let mut world = room.world(now).expect("it is open");
        assert_eq!(world.owner(tank), Ok(Some(guest_id)));
        assert_eq!(world.component::<Tank>(tank), Ok(Some(Tank { x: 12.0 })));
        let newer = world.spawn(None).expect("there is room");
        assert!(newer != wreck && newer != tank, "no id is given twice");
    });
    for (peer, other, x) in [(host, guest_id, 2.0), (guest, HOST, 1.0)] {
        let seen = sim.act(peer, |room, now| room.remote_state::<Cursor>(other, None, now));
        assert_eq!(seen, Some(Cursor { x }), "own states go on");
    }
    let inputs: Option<Vec<u32>> = sim.room(guest).get("inputs").expect("a list");
    assert_eq!(inputs, Some(vec![7, 7]));
}
