//! Spectators: they see what players see, say nothing, and take neither a player's seat nor the host's part.

use parlor_client_core::{ClosedReason, Event, Options, RoomCore, RoomError};
use parlor_hub::Config;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::wire::handshake::{Refusal, capability};
use parlor_proto::{ApiMisuse, CloseReason, Instant, Lane, MemberId, Packet};
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use parlor_sync::replicator::Template;
use parlor_sync::schema::{Kind, Schema};
use parlor_sync::value::Value;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(30);

struct Tank {
    x: f32,
}

parlor_sync::replicated!(Tank as "tank" => { x: Kind::float(-1_000.0, 1_000.0, 0.01) });

struct Room {
    sim: Sim,
    host: PeerId,
    guest: PeerId,
    watcher: PeerId,
}

/// Counts in the state, as the host; every step sends an input, as a player.
fn play() -> impl FnMut(&mut RoomCore, Instant) {
    let mut count = 0;
    move |room, _| {
        if !room.is_spectator() {
            room.send_input(&1u8).expect("a player may");
        }
        if room.is_host() {
            count = count.max(room.get("count").expect("it is a number").unwrap_or(0)) + 1;
            room.set("count", &count, Audience::All).expect("the host writes");
            let players: Vec<u32> =
                room.inputs::<u8>().expect("it hosts").iter().map(|(player, _)| player.0).collect();
            room.set("inputs", &players, Audience::All).expect("the host writes");
        }
    }
}

/// A room of two players whose spectator has a lower id than the guest.
fn room(seed: u64, link: Link) -> Room {
    let mut drawn = [9; 32];
    drawn[..8].copy_from_slice(&seed.to_le_bytes());
    let remember = Duration::from_secs(600);
    let mut sim = Sim::with_hub(seed, Config { record: true, grace: GRACE, remember, ..Config::new(drawn) });
    let schema = Schema::builder().replicate::<Tank>().build().expect("it is within bounds");
    let options = |options: Options| Options {
        schema: Some(schema.clone().into()),
        template: Some(Template::of::<Tank>().build().expect("it is within bounds")),
        host_timeout: Some(Duration::from_millis(250)),
        ..options
    };
    let mut hosted = options(Options::host(APP));
    if let parlor_client_core::Wish::Host { max_players, .. } = &mut hosted.intent {
        *max_players = 2;
    }
    let host = sim.host(hosted, Link::quic());
    let code = sim.code(host);
    let join = |spectate| Options { spectate, ..options(Options::join(APP, code)) };
    let watcher = sim.enter(join(true), link);
    sim.run_for(500);
    let guest = sim.enter(join(false), Link::quic());
    sim.run_for(500);
    for peer in [host, guest, watcher] {
        sim.play(peer, play());
    }
    sim.run_for(500);
    Room { sim, host, guest, watcher }
}

impl Room {
    fn id(&self, peer: PeerId) -> MemberId {
        self.sim.room(peer).local_id().expect("it is in the room")
    }

    fn count(&self, peer: PeerId) -> u64 {
        self.sim.room(peer).get("count").expect("it is a number").unwrap_or(0)
    }

    fn listed(&self, peer: PeerId) -> (Vec<u32>, Vec<u32>) {
        let ids = |list: &[parlor_client_core::Player]| list.iter().map(|player| player.id.0).collect();
        (ids(self.sim.room(peer).players()), ids(self.sim.room(peer).spectators()))
    }

    fn expect_state_flows(&mut self, from: PeerId) {
        let before = self.count(self.watcher);
        self.sim.run_for(1_000);
        let (there, here) = (self.count(from), self.count(self.watcher));
        assert!(here > before && there - here < 30, "{before} became {here}, and the host has {there}");
    }
}

fn is_refused<T>(result: Result<T, RoomError>) -> bool {
    matches!(result, Err(RoomError::Misuse(ApiMisuse::Spectator { .. })))
}

#[test]
fn m1_a_spectator_sees_what_players_see_and_says_nothing() {
    for_seeds(6, |seed| {
        let link = if seed % 2 == 0 { Link::quic().latency_ms(40).loss(50) } else { Link::websocket() };
        let mut room = room(seed, link);
        assert_eq!((room.id(room.host), room.id(room.watcher)), (MemberId(0), MemberId(1)));
        for peer in [room.host, room.guest, room.watcher] {
            assert_eq!(room.listed(peer), (vec![0, 2], vec![1]), "seed {seed}: {peer}");
            let came = room.sim.take_events(peer);
            let is_told = |wanted: u32, spectates: bool| {
                came.iter().any(|event| match event {
                    Event::SpectatorJoined(player) => {
                        spectates && player.id.0 == wanted && player.is_spectator
                    }
                    Event::PlayerJoined(player) => {
                        !spectates && player.id.0 == wanted && !player.is_spectator
                    }
                    _ => false,
                })
            };
            assert!(is_told(0, false) && is_told(1, true) && is_told(2, false), "{came:?}");
            assert!(!is_told(1, false), "{came:?}");
        }
        assert!(room.sim.room(room.watcher).is_spectator() && !room.sim.room(room.guest).is_spectator());
        // State, entities, own states and messages reach it.
        room.expect_state_flows(room.host);
        let tank = room.sim.act(room.host, |core, now| core.world(now).and_then(|mut it| it.spawn(None)));
        let tank = tank.expect("the host may");
        room.sim.act(room.guest, |core, _| core.set_own(&Tank { x: 7.0 })).expect("a player may");
        let say = |core: &mut RoomCore, now| {
            core.send(Lane::ReliableOrdered, Recipient::Everyone, "hello", &1, false, now)
        };
        room.sim.act(room.host, say).expect("a player may");
        room.sim.act(room.guest, say).expect("a player may");
        room.sim.run_for(1_000);
        let came = room.sim.take_events(room.watcher);
        assert!(came.contains(&Event::Spawned { entity: tank }), "{came:?}");
        assert_eq!(came.iter().filter(|event| matches!(event, Event::Message(_))).count(), 2, "{came:?}");
        let seen = room.sim.act(room.watcher, |core, now| core.remote_state::<Tank>(MemberId(2), None, now));
        assert!(seen.is_some_and(|tank| (tank.x - 7.0).abs() < 0.1));
        // Whatever it says is refused by name, and nothing of it goes out.
        room.sim.act(room.watcher, |core, now| {
            assert!(is_refused(core.send_input(&1u8)));
            assert!(is_refused(say(core, now)));
            assert!(is_refused(core.set_player_data(MemberId(1), "team", Some(&Value::from("red")))));
            assert!(is_refused(core.act(tank, "fire", &1)));
            assert!(is_refused(core.set_own(&Tank { x: 1.0 })) && is_refused(core.teleport_own()));
            assert!(is_refused(core.set_predicted("count", &1)));
            assert!(is_refused(core.set("count", &0, Audience::All)) && is_refused(core.remove("count")));
            assert!(is_refused(core.kick(MemberId(2), "")));
            assert!(is_refused(core.world(now).and_then(|mut it| it.insert(tank, &Tank { x: 1.0 }))));
            assert!(is_refused(core.world(now).and_then(|mut it| it.spawn(None))));
        });
        room.sim.run_for(1_000);
        let inputs = |peer| room.sim.room(peer).get::<Vec<u32>>("inputs").expect("it is a list");
        assert_eq!(inputs(room.watcher), Some(vec![0, 2]), "the host's step reads the players' inputs");
        assert!(room.sim.room(room.host).input_counters(MemberId(1)).is_none());
        assert!(room.sim.closed(room.watcher).is_none(), "{}", room.sim.excerpt(60));
    });
}

#[test]
fn m1_a_spectator_watches_on_through_a_migration_and_a_lost_connection() {
    for_seeds(6, |seed| {
        let mut room = room(seed, Link::quic().loss(20));
        room.sim.crash(room.host);
        room.sim.run_for(3_000);
        assert!(room.sim.room(room.guest).is_host(), "seed {seed}: {}", room.sim.excerpt(60));
        let changed = Event::HostChanged { host: MemberId(2), previous: Some(MemberId(0)) };
        let came = room.sim.take_events(room.watcher);
        assert!(came.contains(&changed), "seed {seed}: {came:?}");
        assert!(
            !came.iter().any(|event| matches!(event, Event::Primary { member: Some(MemberId(1)) })),
            "{came:?}"
        );
        room.expect_state_flows(room.guest);
        // Within the grace it goes on; after it, it is the same spectator.
        for (away, resynced) in [(10_000, false), (45_000, true)] {
            room.sim.take_events(room.guest);
            room.sim.unplug(room.watcher, true);
            room.sim.silence(room.watcher, true);
            room.sim.run_for(away);
            room.sim.unplug(room.watcher, false);
            room.sim.silence(room.watcher, false);
            room.sim.run_for(10_000);
            let came = room.sim.take_events(room.watcher);
            assert!(came.contains(&Event::Reconnected { state_resynced: resynced }), "seed {seed}: {came:?}");
            assert_eq!(room.id(room.watcher), MemberId(1));
            assert!(room.sim.room(room.watcher).is_spectator());
            assert_eq!(room.listed(room.guest).1, [1]);
            let told = room.sim.take_events(room.guest);
            let left = told.iter().any(|event| {
                matches!(event, Event::SpectatorLeft { id: MemberId(1), reason: LeaveReason::TimedOut, .. })
            });
            assert_eq!(left, resynced, "seed {seed}: {told:?}");
            let is_of_player = |event: &&Event| match event {
                Event::PlayerLost { id, .. } | Event::PlayerBack { id } | Event::PlayerLeft { id, .. } => {
                    id.0 == 1
                }
                _ => false,
            };
            assert_eq!(told.iter().find(is_of_player), None, "seed {seed}");
            room.expect_state_flows(room.guest);
        }
        // The last player leaves: nobody is left to play.
        room.sim.act(room.guest, RoomCore::leave);
        room.sim.run_for(2_000);
        let over = ClosedReason::Session(CloseReason::HostLeft);
        assert_eq!(room.sim.closed(room.watcher), Some(over));
        assert_eq!(room.sim.hub().room_count(), 0);
    });
}

#[test]
fn m1_an_older_server_seats_no_player_in_place_of_a_spectator() {
    let mut sim = Sim::keeping_seats(4, GRACE);
    let host = sim.host(Options::host(APP), Link::quic());
    let code = sim.code(host);
    let watcher = sim.enter(Options { spectate: true, ..Options::join(APP, code) }, Link::quic());
    // The server reads the hello as one that does not know the capability.
    let older = capability::RETURNS | capability::HANDS_OVER | capability::MOVES;
    let [older, newer] = [older, older | capability::SPECTATES].map(|bits| u8::try_from(bits).unwrap());
    let hello: Vec<u8> = [&[5][..], APP.as_bytes(), &[0, newer]].concat();
    sim.tamper(watcher, move |_, packet| {
        let at = packet.bytes.windows(hello.len()).position(|part| part == hello);
        let mut bytes = packet.bytes.to_vec();
        if let Some(at) = at {
            bytes[at + hello.len() - 1] = older;
        }
        vec![Packet { bytes: bytes.into(), ..packet }]
    });
    sim.run_for(1_000);
    assert_eq!(sim.closed(watcher), Some(ClosedReason::Refused(Refusal::SpectatorsFull { max: 0 })));
    assert_eq!(sim.room(host).player_count(), 1, "its seat is free at once");
}

#[test]
fn m1_a_room_may_refuse_spectators_or_take_more() {
    for (spectators, free) in [(0, 0), (1, 1), (12, 12)] {
        let mut sim = Sim::new(7);
        let host = sim.host(Options { spectators, ..Options::host(APP) }, Link::quic());
        let code = sim.code(host);
        sim.run_for(500);
        let watchers: Vec<PeerId> = (0..=free)
            .map(|_| sim.enter(Options { spectate: true, ..Options::join(APP, code) }, Link::quic()))
            .collect();
        sim.run_for(1_000);
        let refused = ClosedReason::Refused(Refusal::SpectatorsFull { max: spectators });
        let closed: Vec<_> = watchers.iter().filter_map(|watcher| sim.closed(*watcher)).collect();
        assert_eq!(closed, [refused]);
        assert_eq!(sim.room(host).spectators().len(), free);
        let guest = sim.join(code, Link::quic());
        sim.run_for(500);
        assert!(sim.closed(guest).is_none());
    }
    let too_many = Options { spectators: 65, ..Options::host(APP) };
    assert_eq!(too_many.check(), Err("spectators is 65; it may be 0 to 64".into()));
}
