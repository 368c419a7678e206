//! Predicted actions, against a model of ten lines: what an owner made is applied once at the host, or refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Acting, Action, ActionError, Event, Options, RoomCore, RoomError};
use parlor_impair::Rng;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::{EntityId, Instant, MemberId};
use parlor_sim::{Link, PeerId, Sim, for_seeds};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How many actions were applied to a ship, and the sum of their serials.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ship {
    count: i32,
    sum: i32,
    x: i32,
}
replicated!(Ship as "ship" => {
    count: Kind::int(0, 100_000),
    sum: Kind::int(0, 100_000_000),
    x: Kind::int(-1_000_000, 1_000_000),
});

/// Adds a serial to a ship. The host alone refuses serials that five divides.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Add {
    serial: i32,
}

/// What one process did with an action.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Done {
    /// The step in which it was applied first, and last.
    first: u32,
    last: u32,
    times: u32,
    shown: u32,
}

thread_local! {
    /// By host or owner, member and serial.
    static DONE: RefCell<BTreeMap<(bool, MemberId, i32), Done>> = const { RefCell::new(BTreeMap::new()) };
}

fn done(is_host: bool, member: MemberId, serial: i32) -> Option<Done> {
    DONE.with_borrow(|done| done.get(&(is_host, member, serial)).copied())
}

fn refuses(serial: i32) -> bool {
    serial % 5 == 0
}

impl Action for Add {
    const NAME: &'static str = "add";

    fn apply(&self, world: &mut Acting<'_>) -> Result<(), ActionError> {
        let (entity, tick, is_host) = (world.entity(), world.tick().0, world.is_host());
        let mut ship: Ship = world.component(entity)?.ok_or("no_ship")?;
        (ship.count, ship.sum) = (ship.count + 1, ship.sum + self.serial);
        assert!(world.insert(entity, &ship)?, "host and owner write it");
        let shown = u32::from(world.once("add"));
        DONE.with_borrow_mut(|done| {
            let done = done.entry((is_host, world.member(), self.serial)).or_default();
            let first = if done.times == 0 { tick } else { done.first };
            *done = Done { first, last: tick, times: done.times + 1, shown: done.shown + shown };
        });
        // After the write, which is undone.
        if is_host && refuses(self.serial) { Err("unlucky".into()) } else { Ok(()) }
    }
}

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Ship>().build().unwrap();
    let mut options =
        Options { schema: Some(Arc::new(schema)), predicted: vec!["ship".to_owned()], ..options };
    options.actions.define::<Add>().unwrap();
    options
}

fn ship_of(room: &mut RoomCore, now: Instant, member: MemberId) -> Option<(EntityId, Ship)> {
    let world = room.world(now).unwrap();
    let mut entities = world.entities().into_iter();
    let entity = entities.find(|entity| world.owner(*entity).unwrap() == Some(member))?;
    Some((entity, world.component(entity).unwrap()?))
}

/// The host gives each player a ship, and moves it by its player's input.
fn host_step(room: &mut RoomCore, now: Instant) {
    let players: Vec<MemberId> = room.players().iter().map(|player| player.id).collect();
    for player in players {
        if ship_of(room, now, player).is_none() && !room.is_replay() {
            let mut world = room.world(now).unwrap();
            let entity = world.spawn(Some(player)).unwrap();
            world.insert(entity, &Ship::default()).unwrap();
        }
        sail(room, now, player);
    }
}

fn sail(room: &mut RoomCore, now: Instant, player: MemberId) {
    let by = room.input::<i32>(player).unwrap().unwrap_or_default();
    if let Some((entity, mut ship)) = ship_of(room, now, player) {
        ship.x += by;
        room.world(now).unwrap().insert(entity, &ship).unwrap();
    }
}

/// What a guest made: the accepted serials by call, and the refusals here.
#[derive(Debug, Default)]
struct Made {
    next: i32,
    serials: Vec<i32>,
    /// How often the loop asked for an input, and in how many steps.
    sampled: u32,
    replays: u32,
    /// Actions in every so many steps; none if zero.
    every: u32,
    sends_input: bool,
    full: u32,
}

type Shared = Rc<RefCell<Made>>;

fn guest_step(room: &mut RoomCore, now: Instant, made: &Shared) {
    let (me, mut made) = (room.local_id().unwrap(), made.borrow_mut());
    let step = room.tick_number().unwrap().0;
    if room.is_replay() {
        made.replays += 1;
        // What a replay says and does is ignored: the record counts.
        room.send_input(&999).unwrap();
        if let Some((entity, _)) = ship_of(room, now, me) {
            room.act_predicted(entity, &Add { serial: 77_777 }, now).unwrap();
        }
    } else if let Some((entity, before)) = ship_of(room, now, me)
        && made.every > 0
        && step.is_multiple_of(made.every)
    {
        let serial = made.next + 1;
        match room.act_predicted(entity, &Add { serial }, now) {
            Ok(()) => {
                let (_, after) = ship_of(room, now, me).unwrap();
                assert_eq!(
                    (after.count, after.sum),
                    (before.count + 1, before.sum + serial),
                    "it shows at once"
                );
                (made.next, _) = (serial, made.serials.push(serial));
            }
            Err(RoomError::Misuse(_)) => made.full += 1,
            // It is the host by now, and decides at once.
            Err(RoomError::Refused { .. }) if room.is_host() => made.next = serial,
            Err(other) => panic!("{other}"),
        }
    }
    if made.sends_input {
        if !room.is_replay() {
            made.sampled += 1;
            room.send_input(&((step % 3) as i32)).unwrap();
        }
        assert_ne!(room.input::<i32>(me).unwrap(), Some(999), "a replay has the recorded input");
        sail(room, now, me);
    }
}

struct Game {
    sim: Sim,
    host: PeerId,
    guests: Vec<(PeerId, Shared)>,
}

fn game(seed: u64, host: Options, links: &[Link], sends_input: bool) -> Game {
    DONE.with_borrow_mut(BTreeMap::clear);
    let mut sim = Sim::new(seed);
    let host = sim.host(options(host), Link::quic().latency_ms(0));
    sim.play(host, host_step);
    let code = sim.code(host);
    let mut guests = Vec::new();
    for link in links {
        let guest = sim.enter(options(Options::join("tanks", code)), *link);
        let made = Rc::new(RefCell::new(Made { sends_input, ..Made::default() }));
        let own = Rc::clone(&made);
        sim.play(guest, move |room, now| guest_step(room, now, &own));
        sim.run_until(20_000, "a seat", |sim| sim.room(guest).is_connected());
        guests.push((guest, made));
    }
    Game { sim, host, guests }
}

impl Game {
    /// Lets guests act for a while, and then waits until all is decided.
    fn play(&mut self, every: u32, ms: u64) {
        self.set_pace(every);
        self.sim.run_for(ms);
        self.set_pace(0);
        let guests: Vec<PeerId> = self.guests.iter().map(|(peer, _)| *peer).collect();
        self.sim.run_until(30_000, "all decisions", |sim| {
            guests.iter().all(|peer| sim.room(*peer).diagnostics().actions_pending == 0)
        });
        self.sim.run_for(2_000);
    }

    fn set_pace(&self, every: u32) {
        self.guests.iter().for_each(|(_, made)| made.borrow_mut().every = every);
    }

    fn me(&self, guest: usize) -> MemberId {
        self.sim.room(self.guests[guest].0).local_id().unwrap()
    }

    /// The model: what was made is applied once at the host, or refused by a reason that the owner hears; and owner
    /// and host have the same ship.
    fn check(&mut self) {
        for index in 0..self.guests.len() {
            let (me, peer) = (self.me(index), self.guests[index].0);
            let serials = self.guests[index].1.borrow().serials.clone();
            let mut refused = 0;
            for event in self.sim.take_events(peer) {
                if let Event::ActionRefused { name, why, .. } = event {
                    let reason = ActionRefusal::ByGame { reason: "unlucky".to_owned() };
                    assert_eq!((name.as_str(), why), ("add", reason));
                    refused += 1;
                }
            }
            let accepted: Vec<i32> = serials.iter().copied().filter(|serial| !refuses(*serial)).collect();
            assert_eq!(refused, serials.len() - accepted.len(), "each refusal is heard once");
            let wanted = (i32::try_from(accepted.len()).unwrap(), accepted.iter().sum::<i32>());
            let [at_host, at_owner] = [self.host, peer]
                .map(|peer| self.sim.act(peer, |room, now| ship_of(room, now, me).unwrap().1));
            assert_eq!((at_host.count, at_host.sum), wanted, "each is applied once at the host");
            assert_eq!((at_owner.count, at_owner.sum), wanted, "refused predictions are undone");
            for serial in serials {
                for is_host in [true, false] {
                    assert_eq!(
                        done(is_host, me, serial).map(|done| done.shown),
                        Some(1),
                        "{is_host}: {serial}"
                    );
                }
            }
            assert!(done(false, me, 77_777).is_none(), "a replay made an action");
        }
    }

    /// How many actions the host applied in another step than their owner, and how many there were.
    fn displaced(&self, guest: usize, first: bool) -> (usize, usize) {
        let me = self.me(guest);
        let serials = self.guests[guest].1.borrow().serials.clone();
        let moved = serials.iter().filter(|serial| {
            let (host, owner) = (done(true, me, **serial).unwrap(), done(false, me, **serial).unwrap());
            (if first { host.first } else { host.last }) != owner.first
        });
        (moved.count(), serials.len())
    }
}

#[test]
fn m3_an_action_shows_at_once_and_the_host_decides_it_in_the_same_tick() {
    for_seeds(3, |seed| {
        for sends_input in [true, false] {
            let links =
                [Link::quic().latency_ms(0), Link::quic().latency_ms(40), Link::quic().latency_ms(75)];
            let mut game = game(seed, Options::host("tanks"), &links, sends_input);
            game.sim.run_for(3_000);
            // The first ones set the lead where nothing else is sent.
            game.play(3, 4_000);
            let before: Vec<(usize, usize)> = (0..3).map(|guest| game.displaced(guest, true)).collect();
            game.play(4, 8_000);
            game.check();
            for (guest, before) in before.into_iter().enumerate() {
                let after = game.displaced(guest, true);
                assert!(after.1 - before.1 > 50, "{after:?}");
                let most = if sends_input { before.0 } else { before.0 + 2 };
                assert!(after.0 <= most, "{guest}: {before:?}, {after:?}");
            }
        }
    });
}

#[test]
fn m3_a_refusal_undoes_the_prediction_and_names_the_reason() {
    let mut game = game(1, Options::host("tanks"), &[Link::quic().latency_ms(50)], false);
    game.sim.run_for(3_000);
    game.guests[0].1.borrow_mut().next = 4;
    let me = game.me(0);
    game.set_pace(1);
    let guest = game.guests[0].0;
    game.sim.run_until(1_000, "one action", |sim| sim.room(guest).diagnostics().actions_pending > 0);
    game.set_pace(0);
    let predicted = game.sim.act(guest, |room, now| ship_of(room, now, me).unwrap().1);
    assert!(predicted.sum >= 5, "its owner sees it: {predicted:?}");
    game.play(0, 1_000);
    game.check();
    let counted = game.sim.room(guest).diagnostics();
    assert_eq!((counted.actions_pending, counted.actions_refused), (0, 1), "{counted:?}");
    assert!(counted.prediction.corrections > 0, "{counted:?}");
}

#[test]
fn m3_no_loss_outage_or_stall_loses_or_doubles_an_action() {
    for_seeds(12, |seed| {
        let mut rng = Rng::new(seed);
        let links: Vec<Link> = (0..3).map(|_| Link::worse(&mut rng)).collect();
        let resimulate_ticks = rng.pick(&[0, 8, 32]);
        let host = Options { resimulate_ticks, ..Options::host("tanks") };
        let mut game = game(seed, host, &links, rng.per_mille(500));
        for _ in 0..6 {
            game.set_pace(rng.pick(&[1, 2, 7]));
            let peer = game.guests[rng.index(3)].0;
            match rng.below(3) {
                0 => game.sim.stall(peer, true),
                1 => game.sim.silence(peer, true),
                _ => {}
            }
            game.sim.run_for(100 + rng.below(700));
            game.sim.stall(peer, false);
            game.sim.silence(peer, false);
            game.sim.run_for(rng.below(800));
        }
        for (peer, _) in &game.guests {
            let link = game.sim.link(*peer).healed();
            game.sim.relink(*peer, link);
        }
        game.play(0, 0);
        model(&mut game);
    });
}

/// As [`Game::check`], where actions may be too late for the host.
fn model(game: &mut Game) {
    for index in 0..game.guests.len() {
        let (me, peer) = (game.me(index), game.guests[index].0);
        let serials = game.guests[index].1.borrow().serials.clone();
        let refused = game.sim.take_events(peer).into_iter().filter_map(|event| match event {
            Event::ActionRefused { why, .. } => Some(why),
            _ => None,
        });
        let (late, unlucky): (Vec<_>, Vec<_>) = refused.partition(|why| *why == ActionRefusal::Late);
        // A late one is refused before it is applied, so the host's log has all others.
        let applied: Vec<i32> =
            serials.iter().copied().filter(|serial| done(true, me, *serial).is_some()).collect();
        assert_eq!(applied.len() + late.len(), serials.len(), "each is decided once");
        let accepted: Vec<i32> = applied.iter().copied().filter(|serial| !refuses(*serial)).collect();
        assert_eq!(unlucky.len(), applied.len() - accepted.len());
        let [at_host, at_owner] =
            [game.host, peer].map(|peer| game.sim.act(peer, |room, now| ship_of(room, now, me).unwrap().1));
        let wanted = (i32::try_from(accepted.len()).unwrap(), accepted.iter().sum::<i32>());
        assert_eq!((at_host.count, at_host.sum), wanted, "each is applied once at the host");
        assert_eq!((at_owner.count, at_owner.sum), wanted, "refused predictions are undone");
        assert!(applied.iter().all(|serial| done(true, me, *serial).unwrap().shown == 1));
    }
}

#[test]
fn m15_a_late_action_is_rewound_to_its_own_tick_by_a_host_that_resimulates() {
    for_seeds(3, |seed| {
        // Outages delay inputs by more than any lead expects.
        let link = Link::quic().latency_ms(50).loss(50).outage_ms(250, 2_500);
        let run = |resimulate_ticks| {
            let host = Options { resimulate_ticks, ..Options::host("tanks") };
            let mut game = game(seed, host, &[link], true);
            game.sim.run_for(2_000);
            game.play(2, 20_000);
            game.check();
            (game.displaced(0, false), game.sim.room(game.host).diagnostics().resimulations)
        };
        let ((moved, all), resimulated) = run(16);
        assert!(all > 250 && resimulated > 1, "{all} actions, {resimulated} resimulations");
        assert_eq!(moved, 0, "of {all} actions");
        let ((moved, _), _) = run(0);
        assert!(moved > 0, "it would have come to this anyway");
    });
}

#[test]
fn m3_inputs_are_sampled_once_a_tick_and_replayed_from_the_record() {
    let mut game = game(4, Options::host("tanks"), &[Link::quic().latency_ms(50).loss(50)], true);
    game.sim.run_for(3_000);
    let guest = game.guests[0].0;
    let (from, sampled) = (game.sim.room(guest).tick_number().unwrap().0, game.guests[0].1.borrow().sampled);
    game.play(5, 10_000);
    game.check();
    let steps = game.sim.room(guest).tick_number().unwrap().0 - from;
    let made = game.guests[0].1.borrow();
    assert_eq!(made.sampled - sampled, steps, "once in each step");
    assert!(made.replays > 20, "{made:?}");
}

#[test]
fn m3_a_member_has_64_actions_pending_at_most_and_may_act_again_once_they_are_decided() {
    let mut game = game(2, Options::host("tanks"), &[Link::quic().latency_ms(20)], true);
    game.sim.run_for(3_000);
    let guest = game.guests[0].0;
    game.sim.silence(guest, true);
    game.set_pace(1);
    game.sim.run_for(2_500);
    assert_eq!(game.sim.room(guest).diagnostics().actions_pending, 64);
    assert!(game.guests[0].1.borrow().full > 5);
    game.sim.silence(guest, false);
    game.play(0, 0);
    model(&mut game);
    game.play(2, 2_000);
    model_again(&mut game);
}

/// After an earlier call of [`model`]: the owner may act again, and agrees with the host.
fn model_again(game: &mut Game) {
    let (me, peer) = (game.me(0), game.guests[0].0);
    let [at_host, at_owner] =
        [game.host, peer].map(|peer| game.sim.act(peer, |room, now| ship_of(room, now, me).unwrap().1));
    assert_eq!((at_owner.count, at_owner.sum), (at_host.count, at_host.sum));
    assert!(at_host.count > 20, "{at_host:?}");
}

#[test]
fn m14_who_does_not_own_the_entity_is_refused_here_and_at_the_host() {
    let links = [Link::quic().latency_ms(60), Link::quic().latency_ms(20)];
    let mut game = game(3, Options::host("tanks"), &links, true);
    game.sim.run_for(3_000);
    let (me, other) = (game.me(0), game.me(1));
    let guest = game.guests[0].0;
    let refused = game.sim.act(guest, |room, now| {
        let (theirs, _) = ship_of(room, now, other).unwrap();
        room.act_predicted(theirs, &Add { serial: 1 }, now)
    });
    assert!(matches!(refused, Err(RoomError::Refused { why: ActionRefusal::NotOwner, .. })), "{refused:?}");
    // The host takes the ship away while the action is under way.
    game.sim.act(game.host, |room, now| {
        let (ship, _) = ship_of(room, now, me).unwrap();
        room.world(now).unwrap().transfer(ship, Some(other)).unwrap();
    });
    game.set_pace(1);
    game.sim.run_until(1_000, "one action", |sim| sim.room(guest).diagnostics().actions_pending > 0);
    game.set_pace(0);
    game.sim.run_for(1_000);
    let why: Vec<ActionRefusal> = game
        .sim
        .take_events(guest)
        .into_iter()
        .filter_map(|event| match event {
            Event::ActionRefused { why, .. } => Some(why),
            _ => None,
        })
        .collect();
    assert!(!why.is_empty() && why.iter().all(|why| *why == ActionRefusal::NotOwner), "{why:?}");
}

#[test]
fn m3_actions_that_wait_for_a_host_that_is_gone_are_refused_by_name() {
    let host =
        Options { host_timeout: Some(std::time::Duration::from_millis(250)), ..Options::host("tanks") };
    let mut game = game(6, host, &[Link::quic(), Link::quic()], true);
    game.sim.run_for(3_000);
    game.play(2, 2_000);
    let guests: Vec<PeerId> = game.guests.iter().map(|(peer, _)| *peer).collect();
    game.sim.crash(game.host);
    game.set_pace(1);
    game.sim.run_until(5_000, "another host", |sim| guests.iter().any(|peer| sim.room(*peer).is_host()));
    game.set_pace(0);
    game.sim.run_for(2_000);
    for peer in guests {
        let changed = ActionRefusal::HostChanged;
        let events = game.sim.take_events(peer);
        let lost = events
            .iter()
            .filter(|event| matches!(event, Event::ActionRefused { why, .. } if *why == changed));
        assert!(lost.count() > 2);
        assert_eq!(game.sim.room(peer).diagnostics().actions_pending, 0);
    }
}
