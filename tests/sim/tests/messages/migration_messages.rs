//! Messages to the host take effect exactly once, in each sender's order, even if the host changes in
//! between.
//!
//! The model is in the room's state: for each player the next expected number. Duplicates, losses and
//! reordering in the last host's state are faults, wherever they happened and whatever was lost.

use parlor_client_core::{Event, Options, PathMode, ReasonCode, RoomCore, TransportPath};
use parlor_hub::Config;
use parlor_impair::Rng;
use parlor_proto::limits::HAND_OVER_INTERVAL;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{Instant, Lane, MemberId};
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// A player, and how many messages of each lane it has sent.
struct Seat {
    peer: PeerId,
    sent: Rc<Cell<u64>>,
    is_mute: Rc<Cell<bool>>,
    /// The messages addressed to it by id.
    told: Rc<RefCell<Vec<u64>>>,
}

struct Room {
    sim: Sim,
    seats: Vec<Seat>,
    talks: Rc<Cell<bool>>,
}

fn ordered(from: MemberId) -> String {
    format!("ordered/{}", from.0)
}

fn unordered(from: MemberId) -> String {
    format!("unordered/{}", from.0)
}

/// A room in which each player sends two messages per step to the host, one on each reliable lane, and one to
/// the next player.
fn room(seed: u64, players: u32, link: Link) -> Room {
    let mut room = room_of(seed, players, link, PathMode::Relay);
    room.sim.run_for(1_000);
    room
}

/// The same room, with direct paths to the host.
fn room_with_paths(seed: u64, players: u32, link: Link) -> Room {
    let mut room = room_of(seed, players, link, PathMode::Auto);
    room.expect_paths();
    room
}

fn room_of(seed: u64, players: u32, link: Link, paths: PathMode) -> Room {
    let mut drawn = [9; 32];
    drawn[..8].copy_from_slice(&seed.to_le_bytes());
    let mut sim = Sim::with_hub(seed, Config { record: true, ..Config::new(drawn) });
    sim.direct((paths == PathMode::Auto).then_some(link));
    let mut options = Options::host(APP);
    options.host_timeout = Some(Duration::from_millis(250));
    options.paths = paths;
    if let parlor_client_core::Wish::Host { max_players, .. } = &mut options.intent {
        *max_players = 8;
    }
    let host = sim.host(options, link);
    let code = sim.code(host);
    let mut peers = vec![host];
    peers.extend((1..players).map(|_| {
        let mut options = Options::join(APP, code);
        options.paths = paths;
        let peer = sim.enter(options, link);
        sim.run_until(10_000, "it is in", |sim| sim.room(peer).player_count() > 0);
        peer
    }));
    let talks = Rc::new(Cell::new(true));
    let seats = peers.into_iter().map(|peer| {
        let (sent, told) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let is_mute = Rc::new(Cell::new(false));
        let (count, talks, mute) = (Rc::clone(&sent), Rc::clone(&talks), Rc::clone(&is_mute));
        sim.play(peer, move |room, now| {
            if talks.get() && !mute.get() {
                talk(room, players, &count, now);
            }
        });
        let own = Rc::clone(&told);
        sim.hear(peer, move |room, _, event| hear(room, event, &own));
        Seat { peer, sent, is_mute, told }
    });
    let seats = seats.collect();
    Room { sim, seats, talks }
}

fn talk(room: &mut RoomCore, players: u32, count: &Cell<u64>, now: Instant) {
    let number = count.get();
    // A player with a long-lost connection has a full queue; it sends the same message in the next step.
    if room.send(Lane::ReliableOrdered, Recipient::Authority, "ordered", &number, false, now).is_err() {
        return;
    }
    let sent = room.send(Lane::ReliableUnordered, Recipient::Authority, "unordered", &number, false, now);
    sent.expect("there is room where there was for one");
    count.set(number + 1);
    let me = room.local_id().expect("the room is open");
    let next = MemberId((me.0 + 1) % players);
    if room.player(next).is_some() {
        let sent = room.send(Lane::ReliableOrdered, Recipient::Member(next), "to you", &number, false, now);
        sent.expect("there is room where there was for one");
    }
}

/// Records the effect of a message for the host. A duplicate or an early message is a permanent fault.
fn hear(room: &mut RoomCore, event: &Event, told: &RefCell<Vec<u64>>) {
    let Event::Message(message) = event else { return };
    let number: u64 = message.read().expect("it is a number");
    let parlor_proto::wire::envelope::Sender::Member(from) = message.from else { return };
    if message.kind == "to you" {
        return told.borrow_mut().push(number);
    }
    if !room.is_host() {
        // Any other member would skip it: the message must go to the host.
        return;
    }
    let get = |room: &RoomCore, key: &str| room.get::<u64>(key).expect("it is a number").unwrap_or(0);
    let set = |room: &mut RoomCore, key: &str, value: u64| {
        room.set(key, &value, Audience::All).expect("the host writes");
    };
    if message.kind == "ordered" {
        let expected = get(room, &ordered(from));
        if number != expected {
            let (host, tick) = (room.local_id(), room.tick_number());
            let fault = format!("{from:?} said {number} instead of {expected} to {host:?} in {tick:?}");
            let mut faults: Vec<String> = room.get("faults").expect("texts").unwrap_or_default();
            faults.push(fault);
            faults.truncate(5);
            room.set("faults", &faults, Audience::All).expect("the host writes");
        }
        set(room, &ordered(from), number + 1);
    } else {
        // Unordered messages that arrive once each add up.
        let key = unordered(from);
        let (sum, squares) = room.get::<(u64, u64)>(&key).expect("two numbers").unwrap_or((0, 0));
        let sums = (sum + number, squares + number * number);
        room.set(&key, &sums, Audience::All).expect("the host writes");
    }
}

impl Room {
    fn is_host(&self, peer: PeerId) -> bool {
        !self.sim.is_crashed(peer) && self.sim.room(peer).is_connected() && self.sim.room(peer).is_host()
    }

    /// The present host. During a migration there is none for a moment.
    fn host(&mut self) -> PeerId {
        for _ in 0..100 {
            let mut peers = self.seats.iter().map(|seat| seat.peer);
            if let Some(host) = peers.rfind(|peer| self.is_host(*peer)) {
                return host;
            }
            self.sim.run_for(10);
        }
        panic!("nobody is the host for a second");
    }

    /// Waits until all guests read the host's state over paths. A path that failed is retried after 12 s,
    /// then after 24.
    fn expect_paths(&mut self) {
        let peers: Vec<PeerId> = self.seats.iter().map(|seat| seat.peer).collect();
        self.sim.run_until(40_000, "all have paths", |sim| {
            let mut there = peers.iter().filter(|peer| !sim.is_crashed(**peer)).map(|peer| sim.room(*peer));
            there.all(|room| {
                room.is_connected()
                    && (room.is_host() || room.info().transport_path == TransportPath::DirectUdp)
            })
        });
    }

    /// Cuts the host off from the hub for a while, and with `with_paths` all paths, too. Then lets time pass.
    fn cut_the_host_off(&mut self, rng: &mut Rng, with_paths: bool) {
        let host = self.host();
        self.sim.silence(host, true);
        self.sim.silence_paths(with_paths);
        self.sim.run_for(250 + rng.below(800));
        self.sim.silence(host, false);
        self.sim.silence_paths(false);
        self.sim.run_for(rng.below(900));
    }

    /// Lets messages in flight arrive, and compares effects with sent messages.
    fn expect_each_once(&mut self, seed: u64) {
        self.talks.set(false);
        self.sim.run_for(8_000);
        let host = self.host();
        let of = self.sim.room(host);
        let get = |key: &str| of.get::<u64>(key).expect("it is a number").unwrap_or(0);
        let faults: Vec<String> = of.get("faults").expect("texts").unwrap_or_default();
        assert!(faults.is_empty(), "seed {seed}: {faults:?}");
        for (number, seat) in self.seats.iter().enumerate() {
            let from = MemberId(u32::try_from(number).expect("few players"));
            let (heard, sent) = (get(&ordered(from)), seat.sent.get());
            if self.sim.is_crashed(seat.peer) {
                assert!(heard <= sent, "seed {seed}: {heard} of {sent} of one that died");
                continue;
            }
            assert_eq!(heard, sent, "seed {seed}: of what player {number} said");
            let sums = of.get::<(u64, u64)>(&unordered(from)).expect("two numbers").unwrap_or((0, 0));
            let expected = ((0..sent).sum::<u64>(), (0..sent).map(|number| number * number).sum());
            assert_eq!(sums, expected, "seed {seed}: of what player {number} said in any order");
            let closed = self.sim.closed(seat.peer);
            assert!(sent > 30, "seed {seed}: {sent} of player {number}, {closed:?}");
            // A message to a member by id is its own in any role.
            let told = seat.told.borrow();
            assert!(
                told.windows(2).all(|pair| pair[0] < pair[1]),
                "seed {seed}: player {number} was told {told:?}"
            );
        }
    }
}

#[test]
fn what_a_dead_host_did_not_acknowledge_comes_to_something_once_at_the_next() {
    for_seeds(15, |seed| {
        let mut rng = Rng::new(seed);
        let (latency, jitter, loss) = (rng.below(80), rng.below(8), rng.pick(&[0, 20, 50]));
        let link = Link::quic().latency_ms(latency).jitter_ms(jitter).loss(loss);
        let mut room = room(seed, 5, link);
        for _ in 0..2 {
            room.sim.run_for(100 + rng.below(900));
            let host = room.host();
            room.sim.crash(host);
            room.sim.run_for(1_500);
        }
        for seat in room.seats.iter().filter(|seat| !room.sim.is_crashed(seat.peer)) {
            let info = room.sim.room(seat.peer).info();
            assert_eq!(info.last_reason_code, Some(ReasonCode::HostMigrating), "seed {seed}");
        }
        room.expect_each_once(seed);
    });
}

#[test]
fn threat_25_what_members_with_paths_said_to_a_dead_host_comes_to_something_once_at_the_next() {
    for_seeds(8, |seed| {
        let mut rng = Rng::new(seed);
        let (latency, jitter, loss) = (rng.below(60), rng.below(8), rng.pick(&[0, 20]));
        let link = Link::quic().latency_ms(latency).jitter_ms(jitter).loss(loss);
        let mut room = room_with_paths(seed, 4, link);
        for _ in 0..2 {
            room.sim.run_for(rng.below(500));
            let host = room.host();
            room.sim.crash(host);
            // Until then all take their paths for open, and wait for messages on them.
            room.sim.run_for(1_500);
            room.expect_paths();
        }
        assert!(room.sim.paths_made() >= 6, "{} paths", room.sim.paths_made());
        room.expect_each_once(seed);
    });
}

#[test]
fn a_host_with_paths_that_is_cut_off_for_a_while_does_nothing_twice() {
    for_seeds(8, |seed| {
        let mut rng = Rng::new(seed);
        let (latency, loss) = (rng.below(60), rng.pick(&[0, 20]));
        let link = Link::quic().latency_ms(latency).loss(loss);
        let mut room = room_with_paths(seed, 4, link);
        for turn in 0..4 {
            // Its paths stay up, or fail with it.
            room.cut_the_host_off(&mut rng, turn % 2 == 1);
        }
        room.expect_each_once(seed);
    });
}

#[test]
fn a_host_that_comes_back_does_not_do_it_again() {
    for_seeds(15, |seed| {
        let mut rng = Rng::new(seed);
        let (latency, loss) = (rng.below(60), rng.pick(&[0, 20]));
        let link = Link::quic().latency_ms(latency).loss(loss);
        let mut room = room(seed, 4, link);
        // So often that each of them is the host more than once.
        for _ in 0..6 {
            room.cut_the_host_off(&mut rng, false);
        }
        room.expect_each_once(seed);
    });
}

#[test]
fn it_waits_for_the_third_if_the_second_dies_with_it() {
    for_seeds(10, |seed| {
        let mut rng = Rng::new(seed);
        let loss = rng.pick(&[0, 20]);
        let mut room = room(seed, 5, Link::quic().latency_ms(30).loss(loss));
        let [first, second] = [0, 1].map(|number| room.seats[number].peer);
        room.sim.crash(first);
        // It is named, has been sent the waiting messages, and may have begun to use them.
        room.sim.run_for(180 + rng.below(250));
        room.sim.crash(second);
        room.sim.run_for(1_500);
        room.expect_each_once(seed);
    });
}

#[test]
fn a_host_that_hands_over_does_what_it_was_told_once() {
    for_seeds(10, |seed| {
        let mut rng = Rng::new(seed);
        let (latency, loss) = (rng.below(60), rng.pick(&[0, 20, 50]));
        let link = Link::quic().latency_ms(latency).loss(loss);
        let has_paths = seed % 3 == 0;
        let mut room = if has_paths { room_with_paths(seed, 4, link) } else { room(seed, 4, link) };
        for turn in 1..=5 {
            let host = room.host();
            let others = room.seats.iter().map(|seat| seat.peer).filter(|peer| *peer != host);
            let others: Vec<MemberId> = others.filter_map(|peer| room.sim.room(peer).local_id()).collect();
            let to = rng.pick(&others);
            room.sim.act(host, |core, now| core.hand_over(Some(to), now)).expect("it may");
            // The word waits until the hub has the host's last step.
            room.sim.run_until(3_000, "another one is named", |sim| sim.room(host).info().epoch.0 == turn);
            // The hub refuses the next one before that.
            room.sim.pass(HAND_OVER_INTERVAL);
            room.sim.run_for(rng.below(900));
            assert_eq!(room.sim.room(host).info().epoch.0, turn, "seed {seed}");
            if has_paths {
                room.expect_paths();
            }
        }
        room.expect_each_once(seed);
    });
}

/// It goes on with the hub's copy of its own world, which says which messages are in it.
#[test]
fn a_host_that_begins_anew_does_what_others_told_it_once() {
    for_seeds(10, |seed| {
        let mut rng = Rng::new(seed);
        let (latency, loss) = (rng.below(60), rng.pick(&[0, 20]));
        let mut room = room(seed, 4, Link::quic().latency_ms(latency).loss(loss));
        for _ in 0..3 {
            room.sim.run_for(100 + rng.below(700));
            let host = room.host();
            // What a process that dies has said may be lost with it: it falls silent a while before.
            let seat = room.seats.iter().find(|seat| seat.peer == host).expect("it has a seat");
            let is_mute = Rc::clone(&seat.is_mute);
            is_mute.set(true);
            room.sim.run_for(1_000);
            let proof = room.sim.room(host).resume_proof().expect("the hub keeps seats");
            room.sim.crash(host);
            room.sim.run_for(rng.below(150));
            let mut options = Options::host(APP);
            options.intent = parlor_client_core::Wish::Resume { session: proof.session, token: proof.token };
            room.sim.restart(host, options);
            // The next process knows nothing of what the last one read, and is told again what that had not
            // acknowledged.
            seat.told.borrow_mut().clear();
            room.sim.run_for(1_000);
            is_mute.set(false);
        }
        room.expect_each_once(seed);
    });
}

#[test]
fn what_the_game_was_not_given_is_not_acknowledged() {
    let mut room = room(3, 3, Link::quic().latency_ms(20));
    let host = room.seats[0].peer;
    // The transport of a stalled game still receives and answers.
    room.sim.stall(host, true);
    room.sim.run_for(700);
    assert!(room.is_host(host), "a game that stands still is no dead host");
    room.sim.crash(host);
    room.sim.run_for(1_500);
    room.expect_each_once(3);
}
