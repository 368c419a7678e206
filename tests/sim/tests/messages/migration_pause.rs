//! A migration as games see it: their steps pause, everything predicted begins anew, and no game waits for ever.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{ClosedReason, Event, Options, RollbackConfig, RoomCore, StateSource, StateUpdate};
use parlor_proto::{CloseReason, Instant, MemberId};
use parlor_sim::{APP, Link, PeerId, Rng, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tank {
    x: f32,
}
replicated!(Tank as "tank" => { x: Kind::float(-4_096.0, 4_096.0, 1.0) });

/// What one process ran and was told.
#[derive(Debug, Default)]
struct Log {
    steps: Vec<u32>,
    /// Those between the news that another host is named and the news that it goes on.
    between: Vec<u32>,
    is_between: bool,
    /// Who became the host, after whom.
    changes: Vec<(MemberId, Option<MemberId>)>,
    /// What was left of a predicted key and a rollback lane when another host was named.
    left: Vec<(Option<u32>, bool)>,
    /// Where the own tank was when that one went on: in the first state of it, or at the new host itself.
    tanks: Vec<Option<f32>>,
    /// The first state of the new host.
    first_state: Option<StateUpdate>,
}

struct Game {
    sim: Sim,
    /// The host, and three players beside it.
    peers: Vec<PeerId>,
    logs: Vec<Rc<RefCell<Log>>>,
}

/// A room of four players, whose next host has the longest way, on networks that lose a packet now and then.
fn game(seed: u64, set: impl Fn(&mut Options)) -> Game {
    game_over(seed, 50, set)
}

/// The same on networks that lose so many packets of a thousand.
fn game_over(seed: u64, loss: u32, set: impl Fn(&mut Options)) -> Game {
    let mut sim = Sim::keeping_seats(seed, Duration::from_secs(30));
    let mut peers: Vec<PeerId> = Vec::new();
    for number in 0..4 {
        let mut options = match peers.first() {
            None => Options::host(APP),
            Some(host) => Options::join(APP, sim.code(*host)),
        };
        options.host_timeout = Some(Duration::from_millis(250));
        set(&mut options);
        let peer = sim.enter(options, Link::quic().latency_ms(if number == 1 { 80 } else { 40 }).loss(loss));
        sim.run_until(10_000, "it is in", |sim| sim.room(peer).player_count() > number);
        peers.push(peer);
    }
    let logs: Vec<Rc<RefCell<Log>>> = peers.iter().map(|_| Rc::default()).collect();
    for (peer, log) in peers.iter().zip(&logs) {
        let (playing, hearing) = (Rc::clone(log), Rc::clone(log));
        sim.play(*peer, move |room, now| play(room, now, &mut playing.borrow_mut()));
        sim.hear(*peer, move |room, now, event| hear(room, now, event, &mut hearing.borrow_mut()));
    }
    sim.run_for(2_000);
    Game { sim, peers, logs }
}

fn play(room: &mut RoomCore, now: Instant, log: &mut Log) {
    let tick = room.tick_number().unwrap();
    if !room.is_replay() {
        log.steps.push(tick.0);
        if log.is_between {
            log.between.push(tick.0);
        }
    }
    // The call fails once the room is over.
    let _: Result<(), _> = room.send_input(&tick.0);
    let is_host = room.is_host();
    if is_host {
        let count: u64 = room.get("count").unwrap().unwrap_or(0);
        room.set("count", &(count + 1), Audience::All).unwrap();
    } else {
        room.set_predicted("mine", &tick.0).unwrap();
    }
    if let Some((entity, _)) = own_tank(room, now) {
        // The host leaves each tank where it is; a player believes that its own moves.
        let x = if is_host { 0.0 } else { (tick.0 % 4_000) as f32 + 1.0 };
        room.world(now).unwrap().insert(entity, &Tank { x }).unwrap();
    }
}

fn own_tank(room: &mut RoomCore, now: Instant) -> Option<(parlor_proto::EntityId, Tank)> {
    let me = room.local_id();
    let world = room.world(now).ok()?;
    let mut mine =
        world.entities().into_iter().filter(|entity| world.owner(*entity).is_ok_and(|of| of == me));
    let entity = mine.next()?;
    Some((entity, world.component(entity).ok()??))
}

fn hear(room: &mut RoomCore, now: Instant, event: &Event, log: &mut Log) {
    match event {
        Event::HostMigration { .. } => {
            log.is_between = true;
            log.left.push((room.predicted("mine").unwrap(), room.lane().diagnostics().is_some()));
        }
        Event::HostChanged { host, previous } => {
            log.is_between = false;
            log.changes.push((*host, *previous));
            if room.is_host() {
                log.tanks.push(own_tank(room, now).map(|(_, tank)| tank.x));
            }
        }
        Event::State(update) if !log.changes.is_empty() && log.first_state.is_none() => {
            log.first_state = Some(update.clone());
            log.tanks.push(own_tank(room, now).map(|(_, tank)| tank.x));
        }
        _ => {}
    }
}

impl Game {
    /// Kills the host. Gives how many milliseconds each of the others saw a migration under way, and checks
    /// what it could draw meanwhile.
    fn lose_host(&mut self) -> [u32; 3] {
        self.sim.crash(self.peers[0]);
        let mut seen = [0; 3];
        for _ in 0..3_000 {
            self.sim.run_for(1);
            for (seen, peer) in seen.iter_mut().zip(&self.peers[1..]) {
                let room = self.sim.room(*peer);
                assert_eq!(room.is_migrating(), room.info().migrating);
                if room.is_migrating() {
                    *seen += 1;
                    assert!(room.get::<u64>("count").unwrap().is_some(), "what was known can be drawn");
                    let wait = room.until_next_tick(self.sim.now()).unwrap();
                    assert!(wait > Duration::ZERO, "a loop that sleeps does not spin");
                }
            }
        }
        seen
    }

    /// The steps of a process beyond the dead host's that came right after another number than the one before.
    fn gaps(&self, index: usize) -> Vec<(u32, u32)> {
        let last = *self.logs[0].borrow().steps.last().unwrap();
        let log = self.logs[index].borrow();
        let pairs = log.steps.windows(2).map(|pair| (pair[0], pair[1]));
        pairs.filter(|(one, next)| *next > last && *next != one + 1).collect()
    }
}

fn entities(options: &mut Options) {
    options.schema = Some(Arc::new(Schema::builder().replicate::<Tank>().build().unwrap()));
}

#[test]
fn a20_steps_pause_for_everybody_during_a_migration() {
    let mut seen = [0; 3];
    for_seeds(10, |seed| {
        // A packet of a map has 15 fragments, and the loss of one is that of the packet.
        let mut game = game_over(seed, 20, |_| ());
        // So much that the next host gets it in several packets.
        let mut noise = Rng::new(seed);
        for part in 0..3 {
            let map: Vec<i64> = (0..1_600).map(|_| (noise.draw() >> 1).cast_signed()).collect();
            let key = format!("map/{part}");
            game.sim.act(game.peers[0], |room, _| room.set(&key, &map, Audience::All).unwrap());
        }
        game.sim.run_for(2_000);
        let ms = game.lose_host();
        seen.iter_mut().zip(ms).for_each(|(all, ms)| *all += ms);
        let count: u64 = game.sim.room(game.peers[1]).get("count").unwrap().unwrap();
        assert!(count > 100, "seed {seed}: the new host goes on after {count} steps");
        for index in 1..4 {
            let log = game.logs[index].borrow();
            assert_eq!(log.changes, [(MemberId(1), Some(MemberId(0)))], "seed {seed}, player {index}");
            assert_eq!(log.between, [], "seed {seed}, player {index} steps in a migration");
            assert!(!game.sim.room(game.peers[index]).is_migrating());
            assert_eq!(game.sim.room(game.peers[index]).diagnostics().ticks_dropped, 0, "it is no backlog");
        }
        for index in 2..4 {
            let gaps = game.gaps(index);
            assert_eq!(gaps.len(), 1, "seed {seed}, player {index}: only the pause is left out: {gaps:?}");
        }
    });
    println!("{seen:?} ms in migrations");
    assert!(seen.iter().all(|ms| *ms > 100), "all were seen in one: {seen:?}");
}

#[test]
fn a20_the_world_stands_still_in_a_pause_and_loses_no_step_before_it() {
    for_seeds(5, |seed| {
        let mut game = game(seed, |_| ());
        game.lose_host();
        let (old, new) = (game.logs[0].borrow(), game.logs[1].borrow());
        // The heir logs the steps that it ran as a guest, too: those of the host begin anew somewhere before.
        let at = new.steps.windows(2).position(|pair| pair[1] <= pair[0]);
        let as_host = &new.steps[at.map_or(0, |at| at + 1)..];
        assert!(at.is_some(), "seed {seed}: it makes up for steps that it ran as a guest");
        let kept = old.steps.iter().filter(|step| **step < as_host[0]).count();
        let count: u64 = game.sim.room(game.peers[1]).get("count").unwrap().unwrap();
        assert_eq!(count, (kept + as_host.len()) as u64, "seed {seed}: each step counts once");
        assert!(
            as_host[0] <= old.steps.last().unwrap() + 1,
            "seed {seed}: none before the pause is left out"
        );
        let jumps: Vec<u32> =
            as_host.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 1).collect();
        assert!(jumps.len() <= 1, "seed {seed}: only the pause is left out: {jumps:?}");
        let before_pause = new.steps[at.unwrap()];
        let ran: Vec<&u32> = as_host.iter().take_while(|step| **step <= before_pause).collect();
        assert_eq!(u32::try_from(ran.len()), Ok(before_pause + 1 - as_host[0]), "seed {seed}");
    });
}

#[test]
fn a20_a_game_may_pause_or_go_on_as_it_likes() {
    type Set = fn(&mut Options);
    let rooms: [(&str, Set, bool); 4] = [
        ("keys", |_| (), true),
        ("keys that go on", |options| options.migration_pause = Some(false), false),
        ("entities", entities, false),
        (
            "entities that pause",
            |options| {
                entities(options);
                options.migration_pause = Some(true);
            },
            true,
        ),
    ];
    for (name, set, pauses) in rooms {
        let mut game = game(7, set);
        game.lose_host();
        for index in 2..4 {
            let between = game.logs[index].borrow().between.len();
            assert_eq!(between == 0, pauses, "{name}: player {index} ran {between} steps meanwhile");
            assert!(!game.logs[index].borrow().changes.is_empty());
        }
    }
}

#[test]
fn a20_prediction_interpolation_and_rollback_begin_anew_at_three_players() {
    for_seeds(3, |seed| {
        let mut game = game(seed, |options| {
            entities(options);
            options.predicted = vec!["tank".to_owned()];
            options.migration_pause = Some(true);
        });
        let (host, peers) = (game.peers[0], game.peers.clone());
        game.sim.act(host, |room, now| {
            for member in 1..4 {
                let tank = room.world(now).unwrap().spawn(Some(MemberId(member))).unwrap();
                room.world(now).unwrap().insert(tank, &Tank { x: 0.0 }).unwrap();
            }
        });
        game.sim.run_for(1_000);
        let begin = game.sim.room(host).tick_number().unwrap().offset(30);
        for peer in &peers {
            let lane = RollbackConfig::new((0..4).map(MemberId), begin);
            game.sim.act(*peer, |room, _| room.rollback(&lane).unwrap());
        }
        game.sim.run_for(500);
        for peer in &peers[1..] {
            let (mine, tank) = game.sim.act(*peer, |room, now| {
                (room.predicted::<u32>("mine").unwrap(), own_tank(room, now).map(|(_, tank)| tank.x))
            });
            assert!(mine.is_some() && tank.is_some_and(|x| x > 0.0), "seed {seed}: {mine:?} {tank:?}");
            assert!(game.sim.room(*peer).lane().diagnostics().is_some());
        }
        game.lose_host();
        for index in 1..4 {
            let log = game.logs[index].borrow();
            assert_eq!(log.left, [(None, false)], "seed {seed}, player {index}");
            assert_eq!(log.tanks, [Some(0.0)], "seed {seed}, player {index}: it is where the host left it");
        }
        for index in 2..4 {
            let first = game.logs[index].borrow().first_state.clone().unwrap();
            assert_eq!(first.source, StateSource::Transfer, "seed {seed}: {first:?}");
            assert!(first.history_depth <= 1, "seed {seed}: nothing of the old host is drawn: {first:?}");
        }
        let heir = game.peers[1];
        let drawn = game.sim.act(heir, |room, now| room.interpolated::<u64>("count", now).unwrap());
        assert_eq!(
            drawn,
            game.sim.room(heir).get("count").unwrap(),
            "seed {seed}: a host draws what it wrote"
        );
    });
}

#[test]
fn a14_each_change_tells_who_was_the_host_before() {
    let mut game = game(3, |_| ());
    game.lose_host();
    game.sim.crash(game.peers[1]);
    game.sim.run_for(3_000);
    for index in 2..4 {
        let changes = [(MemberId(1), Some(MemberId(0))), (MemberId(2), Some(MemberId(1)))];
        assert_eq!(game.logs[index].borrow().changes, changes, "player {index}");
    }
}

/// A game whose next host stands still, and how long after the news of it each of the others is out of the
/// room.
fn wait_for(grace: Option<Duration>, stall_ms: u64) -> (Game, Vec<Option<u64>>) {
    // A next host that stands still is not lost by chance.
    let mut game = game_over(5, 0, |options| {
        options.migration_grace = grace.unwrap_or(options.migration_grace);
    });
    game.sim.stall(game.peers[1], true);
    game.sim.crash(game.peers[0]);
    let (mut named, mut over) = ([None; 2], vec![None; 2]);
    for ms in 0..10_000 {
        if ms == stall_ms {
            game.sim.stall(game.peers[1], false);
        }
        game.sim.run_for(1);
        for index in 0..2 {
            let room = game.sim.room(game.peers[index + 2]);
            if room.is_migrating() {
                named[index].get_or_insert(ms);
            }
            if let (Some(named), true) = (named[index], room.closed().is_some()) {
                over[index].get_or_insert(ms - named);
            }
        }
    }
    (game, over)
}

#[test]
fn a7_a_room_waits_for_a_new_host_as_long_as_the_game_says() {
    for (grace, ms) in [(None, 3_000), (Some(500), 500), (Some(5_000), 5_000)] {
        let (game, over) = wait_for(grace.map(Duration::from_millis), 60_000);
        for (index, over) in over.into_iter().enumerate() {
            let over = over.expect("it does not wait for ever");
            assert!((ms - 20..ms + 50).contains(&over), "{over} ms of {ms}");
            let why = ClosedReason::Session(CloseReason::HostGone);
            assert_eq!(game.sim.closed(game.peers[index + 2]), Some(why));
        }
    }
    let (game, over) = wait_for(None, 2_000);
    assert_eq!(over, [None, None], "the new host was there in time");
    assert!(game.sim.room(game.peers[1]).is_host());
    let wrong = Options { migration_grace: Duration::from_millis(499), ..Options::host(APP) };
    assert!(wrong.check().unwrap_err().contains("migration_grace"));
}

#[test]
fn a7_time_without_a_connection_is_no_wait_for_a_new_host() {
    let mut game = game_over(6, 0, |options| options.migration_grace = Duration::from_secs(1));
    game.sim.stall(game.peers[1], true);
    game.sim.crash(game.peers[0]);
    let third = game.peers[3];
    game.sim.run_until(2_000, "it is named", |sim| sim.room(third).is_migrating());
    game.sim.unplug(third, true);
    game.sim.cut(third);
    game.sim.run_for(300);
    game.sim.stall(game.peers[1], false);
    game.sim.run_for(4_000);
    game.sim.unplug(third, false);
    game.sim.run_for(5_000);
    assert_eq!(game.sim.closed(third), None);
    assert_eq!(game.logs[3].borrow().changes.len(), 1, "it hears of it once it is back");
}
