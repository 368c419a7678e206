//! Spectators with a delay: they see the room as it was, and nothing of it earlier.

use parlor_client_core::{ClosedReason, Event, Options, PathMode, RoomCore, Transport, Wish};
use parlor_hub::room::KeptEntry;
use parlor_hub::{Config, StateMemory};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::wire::handshake::Refusal;
use parlor_proto::{CloseReason, Instant, Lane, MemberId, RoomCode};
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use parlor_sync::replicator::Template;
use parlor_sync::schema::{Kind, Schema};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const DELAY: Duration = Duration::from_secs(5);
/// More than a packet needs to a spectator, its repetition included.
const LATER_MAX: Duration = Duration::from_millis(800);

struct Tank {
    x: f32,
}

/// A player's own state. As a text it is never drawn ahead of what came.
struct Mark {
    text: String,
}

parlor_sync::replicated!(Tank as "tank" => { x: Kind::float(-1_000.0, 1_000.0, 0.01) });
parlor_sync::replicated!(Mark as "mark" => { text: Kind::text(16) });

/// How finely the tests know the time.
const MOMENT: Duration = Duration::from_millis(5);

/// What happened or was seen, and when first. Clients' clocks differ, so it has the simulation's.
#[derive(Clone, Default)]
struct Seen {
    things: Rc<RefCell<BTreeMap<String, Instant>>>,
    clock: Rc<Cell<Instant>>,
}

impl Seen {
    fn note(&self, thing: String) {
        self.things.borrow_mut().entry(thing).or_insert(self.clock.get());
    }

    fn has(&self, thing: &str) -> bool {
        self.things.borrow().contains_key(thing)
    }
}

/// Plays as a host or a guest: every fifth step has a count in the state, a message to all and a state of its own.
fn play(seen: &Seen, who: &'static str) -> impl FnMut(&mut RoomCore, Instant) + use<> {
    let (seen, mut step) = (seen.clone(), 0u32);
    move |room, now| {
        step += 1;
        if !step.is_multiple_of(5) {
            return;
        }
        let count = step / 5;
        if room.is_host() {
            let count = count.max(room.get("count").expect("it is a number").unwrap_or(0u32) + 1);
            room.set("count", &count, Audience::All).expect("the host writes");
            seen.note(format!("count {count}"));
        }
        if who == "bob" && room.info().host_id.is_some() {
            let text = format!("mark {count}");
            room.set_own(&Mark { text: text.clone() }).expect("a player may");
            seen.note(text);
        }
        let text = format!("{who} {count}");
        room.send(Lane::ReliableOrdered, Recipient::Others, "say", &text, false, now).expect("it is open");
        seen.note(text);
    }
}

/// Notes what a spectator sees: counts, messages, joins and leaves.
fn watch(sim: &mut Sim, watcher: PeerId, seen: &Seen) {
    let of_state = seen.clone();
    sim.play(watcher, move |room, now| {
        if let Some(count) = room.get::<u32>("count").expect("it is a number") {
            of_state.note(format!("count {count}"));
        }
        if let Some(Mark { text }) = room.remote_state(MemberId(1), None, now) {
            of_state.note(text);
        }
    });
    let of_events = seen.clone();
    sim.hear(watcher, move |_, _, event| {
        let what = match event {
            Event::Message(message) => Some(message.read::<String>().expect("it is a text")),
            Event::PlayerJoined(player) => Some(format!("{} joined", player.name)),
            Event::PlayerLeft { name, .. } => Some(format!("{name} left")),
            _ => None,
        };
        what.into_iter().for_each(|what| of_events.note(what));
    });
}

struct Room {
    sim: Sim,
    host: PeerId,
    guest: PeerId,
    /// What happened at the players, and what a spectator saw.
    done: Seen,
    seen: Seen,
    began: Instant,
    schema: Option<Arc<Schema>>,
}

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Tank>().build().expect("it is within bounds");
    Options {
        schema: Some(schema.into()),
        template: Some(Template::of::<Mark>().build().expect("it is within bounds")),
        host_timeout: Some(Duration::from_millis(250)),
        spectator_delay: DELAY,
        ..options
    }
}

/// Joins a room of this schema, or a match.
fn joining(code: RoomCode, schema: &Option<Arc<Schema>>) -> Options {
    let joined = Options::join(APP, code);
    if schema.is_some() { options(joined) } else { joined }
}

fn named(name: &str, options: Options) -> Options {
    Options { name: name.into(), ..options }
}

fn room(seed: u64, config: Config) -> Room {
    room_of(options(Options::host(APP)), seed, config)
}

fn room_of(opened: Options, seed: u64, config: Config) -> Room {
    let mut sim = Sim::with_hub(seed, config);
    let done = Seen::default();
    let seen = Seen { clock: Rc::clone(&done.clock), ..Seen::default() };
    done.clock.set(sim.now());
    done.note("ada joined".into());
    let schema = opened.schema.clone();
    let host =
        sim.host(named("ada", Options { paths: PathMode::Auto, ..opened }), Link::quic().latency_ms(20));
    let guest = Options { paths: PathMode::Auto, ..joining(sim.code(host), &schema) };
    let guest = sim.enter(named("bob", guest), Link::quic().latency_ms(30));
    done.clock.set(sim.now());
    done.note("bob joined".into());
    sim.play(host, play(&done, "ada"));
    sim.play(guest, play(&done, "bob"));
    sim.run_for(300);
    let began = done.clock.get();
    Room { sim, host, guest, done, seen, began, schema }
}

fn config(seed: u64) -> Config {
    let mut drawn = [5; 32];
    drawn[..8].copy_from_slice(&seed.to_le_bytes());
    Config { record: true, ..Config::new(drawn) }
}

impl Room {
    fn enter(&mut self, link: Link) -> PeerId {
        let code = self.sim.code(self.host);
        let watcher = Options { spectate: true, ..joining(code, &self.schema) };
        let watcher = self.sim.enter(named("wil", watcher), link);
        let seen = self.seen.clone();
        watch(&mut self.sim, watcher, &seen);
        watcher
    }

    fn run_for(&mut self, ms: u64) {
        let until = self.sim.now() + Duration::from_millis(ms);
        while self.sim.now() < until {
            self.done.clock.set(self.sim.now());
            self.sim.pass(MOMENT);
        }
    }

    /// Whether a spectator who was there since `since` saw everything that happened, late by the delay and not earlier.
    fn expect_all_is_late(&self, since: Instant, what: &str) {
        let (done, seen) = (self.done.things.borrow(), self.seen.things.borrow());
        for (thing, at) in seen.iter() {
            let done = done.get(thing).unwrap_or_else(|| panic!("{what}: {thing} never happened"));
            assert!(
                *at + MOMENT >= *done + DELAY,
                "{what}: {thing} was seen {:?} after it",
                at.saturating_since(*done)
            );
            // A spectator that joins later gets the present state at once.
            let late = at.saturating_since((*done + DELAY).max(since));
            assert!(late < LATER_MAX, "{what}: {thing} was seen {late:?} too late");
        }
        let is_past =
            |at: &Instant| *at + DELAY > since + LATER_MAX && *at + DELAY + LATER_MAX < self.sim.now();
        let missing = done.iter().filter(|(thing, at)| is_past(at) && !seen.contains_key(*thing));
        // Of states only the newest is sent.
        let is_state = |thing: &str| thing.starts_with("count") || thing.starts_with("mark");
        let missing: Vec<_> = missing.filter(|(thing, _)| !is_state(thing)).collect();
        assert!(missing.is_empty(), "{what}: never seen: {missing:?}");
        let marks = seen.keys().filter(|thing| thing.starts_with("mark")).count();
        assert!(marks > 3 || self.schema.is_none(), "{what}: {marks} marks were seen");
    }
}

#[test]
fn threat_45_x3_spectators_see_a_room_later_and_nothing_of_it_earlier() {
    for_seeds(12, |seed| {
        let what = format!("seed {seed}");
        let mut room = room(seed, config(seed));
        // Before the room's opening is visible, or long after.
        room.run_for([0, 700, 4_900, 12_000][usize::try_from(seed % 4).expect("it is small")]);
        let since = room.sim.now();
        let link = if seed % 2 == 0 { Link::quic().latency_ms(40).loss(20) } else { Link::websocket() };
        let watcher = room.enter(link);
        room.run_for(8_000);
        assert_eq!(room.sim.closed(watcher), None, "{what}");
        room.expect_all_is_late(since, &what);
        // It is the room of then: its time, and who was in it. Players know of no spectator.
        let tick = |peer| room.sim.room(peer).tick_number().expect("it is open").0;
        let behind = tick(room.host) - tick(watcher);
        assert!((148..=152).contains(&behind), "{what}: {behind} ticks");
        assert_eq!(room.sim.room(room.host).spectators().len(), 0);
        assert_eq!(room.sim.room(watcher).spectators().len(), 1);
        // The guest goes: its spectators see that later, and what came before it.
        room.sim.act(room.guest, |core, now| core.leave(now));
        room.done.note("bob left".into());
        room.run_for(4_000);
        assert!(!room.seen.has("bob left"));
        room.run_for(2_000);
        room.expect_all_is_late(since, &what);
        assert_eq!(room.sim.logs().len(), 1, "the copy has no log of its own");
        // So do they see the room's end.
        room.sim.act(room.host, |core, now| core.leave(now));
        let ended = room.sim.now();
        room.run_for(4_500);
        assert_eq!(room.sim.closed(watcher), None, "{what}");
        room.sim.run_until(2_000, "the spectator saw the end", |sim| sim.closed(watcher).is_some());
        assert_eq!(room.sim.closed(watcher), Some(ClosedReason::Session(CloseReason::HostLeft)), "{what}");
        assert!(room.sim.now() >= ended + DELAY);
        room.run_for(1_000);
        assert_eq!((room.sim.hub().room_count(), room.sim.hub().stats().state_bytes), (0, 0));
    });
}

#[test]
fn x3_spectators_see_a_match_later_and_its_kept_log_is_as_ever() {
    let config = Config { keeps: true, ..config(9) };
    let Wish::Match { max_players, tick_rate, label, .. } = Options::create_match(APP).intent else {
        panic!()
    };
    let opened = Options {
        intent: Wish::Match { max_players, tick_rate, label, keep: true },
        spectator_delay: DELAY,
        ..Options::create_match(APP)
    };
    let mut room = room_of(opened, 9, config);
    room.run_for(6_000);
    let since = room.sim.now();
    let watcher = room.enter(Link::quic());
    room.run_for(3_000);
    room.expect_all_is_late(since, "a match");
    for peer in [room.host, room.guest] {
        room.sim.act(peer, |core, now| core.leave(now));
    }
    room.done.note("bob left".into());
    room.run_for(6_000);
    assert!(matches!(room.sim.closed(watcher), Some(ClosedReason::Session(CloseReason::RoomEnded { .. }))));
    let ends = room.sim.kept().iter().filter(|(_, _, entry)| *entry == KeptEntry::Ended).count();
    assert_eq!(ends, 1, "the copy keeps nothing");
    assert_eq!(room.sim.hub().stats().state_bytes, 0);
}

#[test]
fn x3_a_host_that_dies_is_seen_to_be_followed_by_the_next_one() {
    for_seeds(6, |seed| {
        let mut room = room(seed, config(seed));
        room.run_for(6_000);
        let since = room.sim.now();
        let watcher = room.enter(Link::quic());
        room.run_for(3_000);
        room.sim.crash(room.host);
        room.run_for(3_000);
        assert!(room.sim.room(room.guest).is_host(), "seed {seed}");
        assert!(!room.sim.room(watcher).players()[1].is_host, "seed {seed}: its spectators see that later");
        room.run_for(8_000);
        let host =
            room.sim.room(watcher).players().iter().find(|player| player.is_host).map(|player| player.id);
        assert_eq!(host, Some(MemberId(1)), "seed {seed}");
        room.seen.things.borrow_mut().remove("ada left");
        room.expect_all_is_late(since, &format!("seed {seed}"));
    });
}

#[test]
fn x3_players_of_such_a_room_have_no_paths_that_its_spectators_could_not_see() {
    let mut room = room(3, config(3));
    let watcher = room.enter(Link::quic());
    room.run_for(8_000);
    let players = room.sim.room(room.host).players();
    assert!(matches!(players[1].transport, Transport::Relay(_)), "{:?}", players[1].transport);
    assert_eq!(room.sim.closed(watcher), None);
}

#[test]
fn threat_45_x3_what_waits_for_spectators_is_bounded_and_the_room_goes_on_without_them() {
    let memory = StateMemory { room: 400 * 1024, origin: 2 << 20, all: 8 << 20 };
    let mut room = room(4, Config { memory, ..config(4) });
    let watcher = room.enter(Link::quic());
    room.run_for(2_000);
    assert_eq!(room.sim.closed(watcher), None);
    // The room itself remembers nothing of a message.
    room.sim.play(room.host, move |core, now| {
        let text = "x".repeat(4_000);
        core.send(Lane::ReliableOrdered, Recipient::Others, "say", &text, false, now).expect("it is open");
    });
    room.run_for(4_500);
    let Some(ClosedReason::Session(CloseReason::RoomEnded { reason })) = room.sim.closed(watcher) else {
        panic!("{:?}", room.sim.closed(watcher))
    };
    assert!(reason.contains("more memory"), "{reason}");
    assert_eq!((room.sim.closed(room.host), room.sim.closed(room.guest)), (None, None));
    let late = room.enter(Link::quic());
    room.run_for(500);
    assert_eq!(
        room.sim.closed(late),
        Some(ClosedReason::Refused(Refusal::SpectatorsFull { max: 0 })),
        "it has no spectators any more"
    );
    assert!(room.sim.hub().stats().state_bytes < 400 * 1024);
}

#[test]
fn threat_45_x3_a_room_that_ends_leaves_nothing_where_nobody_watches() {
    let mut room = room(8, config(8));
    let watcher = room.enter(Link::quic());
    room.run_for(7_000);
    room.sim.act(room.host, |core, now| core.leave(now));
    room.sim.act(room.guest, |core, now| core.leave(now));
    room.run_for(1_000);
    assert!(room.sim.hub().stats().state_bytes > 0 && room.sim.closed(watcher).is_none());
    room.sim.act(watcher, |core, now| core.leave(now));
    room.run_for(500);
    assert_eq!(room.sim.hub().stats().state_bytes, 0, "it ends with its last spectator");
    // Nor where nobody ever did, however many rooms there were.
    for seed in 0..20 {
        let host = room.sim.host(options(Options::host(APP)), Link::quic());
        room.sim.run_for(seed);
        room.sim.act(host, |core, now| core.leave(now));
    }
    room.run_for(200);
    assert_eq!(room.sim.hub().stats().state_bytes, 0);
}

#[test]
fn x3_an_operator_sees_and_removes_such_spectators() {
    let mut room = room(5, config(5));
    let watcher = room.enter(Link::quic());
    room.run_for(7_000);
    let code = room.sim.code(room.host);
    let details = room.sim.hub().room_details(code).expect("it is open");
    let listed: Vec<(&str, bool)> =
        details.members.iter().map(|member| (member.name.as_str(), member.spectates)).collect();
    assert_eq!(listed, [("ada", false), ("bob", false), ("wil", true)]);
    let of_room = &details.room;
    assert_eq!((of_room.members, of_room.players, of_room.spectators), (3, 2, 1));
    assert_eq!(of_room.links.iter().map(|(_, count)| count).sum::<usize>(), 3);
    assert_eq!(room.sim.hub().room_count(), 1, "the copy is no room of its own");
    let id = details.members[2].id;
    assert_eq!(Some(id), room.sim.room(watcher).local_id());
    room.sim.remove_member(code, id, "enough");
    room.run_for(500);
    let kicked = ClosedReason::Session(CloseReason::Kicked { reason: "enough".into() });
    assert_eq!(room.sim.closed(watcher), Some(kicked));
    assert_eq!(room.sim.room(room.guest).player_count(), 2);
}

#[test]
fn a_delay_that_is_too_short_or_too_long_is_refused() {
    for (ms, ok) in [(0, true), (1, false), (999, false), (1_000, true), (300_000, true), (300_001, false)] {
        let options = Options { spectator_delay: Duration::from_millis(ms), ..Options::host(APP) };
        let said = options.check();
        assert_eq!(said.is_ok(), ok, "{said:?}");
        let text = format!("spectator_delay is {ms} ms; it may be 0, or 1000 to 300000 ms");
        assert!(ok || said == Err(text), "{ms}");
    }
}

/// A spectator that lost its connection comes back to the room of then.
#[test]
fn x3_a_spectator_returns_to_its_seat() {
    let mut room = room(6, config(6));
    let watcher = room.enter(Link::quic());
    room.run_for(7_000);
    let id = room.sim.room(watcher).local_id();
    room.sim.cut(watcher);
    room.run_for(3_000);
    assert_eq!(room.sim.closed(watcher), None);
    assert_eq!(room.sim.room(watcher).local_id(), id);
    assert!(room.sim.events(watcher).iter().any(|event| matches!(event, Event::Reconnected { .. })));
    room.expect_all_is_late(room.began, "after a cut");
    let left = |event: &Event| matches!(event, Event::PlayerLeft { reason: LeaveReason::Left, .. });
    assert!(!room.sim.events(watcher).iter().any(left));
}
