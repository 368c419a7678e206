//! Scopes: a filter that a host's game writes decides who sees which entity.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Event, Options, RoomCore, WorldAccess};
use parlor_proto::{EntityId, Instant, MemberId};
use parlor_sim::{Link, PeerId, Rng, Sim, for_seeds};
use parlor_sync::audience::Audience;
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What an entity is: those of its team may know it.
#[derive(Clone, Debug, PartialEq)]
struct Tank {
    team: u32,
}
replicated!(Tank as "tank" => { team: Kind::int(0, 2) });

const TEAMS: u32 = 3;

fn team_of(player: MemberId) -> u32 {
    player.0 % TEAMS
}

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Tank>().build().unwrap();
    Options { schema: Some(Arc::new(schema)), ..options }
}

fn is_of_team(world: &WorldAccess<'_>, player: MemberId, entity: EntityId) -> bool {
    world.component::<Tank>(entity).unwrap().is_some_and(|tank| tank.team == team_of(player))
}

/// Changes the world: tanks change their team and owner, come and go.
fn churn(rng: &mut Rng, world: &mut WorldAccess<'_>, players: &[MemberId]) {
    let entities = world.entities();
    let team = Tank { team: u32::try_from(rng.below(u64::from(TEAMS))).unwrap() };
    if entities.len() < 12 || rng.per_mille(30) && entities.len() < 20 {
        let owner = rng.per_mille(300).then(|| rng.pick(players));
        let entity = world.spawn(owner).unwrap();
        world.insert(entity, &team).unwrap();
        return;
    }
    let entity = entities[rng.index(entities.len())];
    match rng.below(40) {
        0 => world.despawn(entity).unwrap(),
        1..=3 => world.insert(entity, &team).unwrap(),
        4 => world.transfer(entity, Some(rng.pick(players))).unwrap(),
        5 => world.transfer(entity, None).unwrap(),
        6 => world.set_audience(entity, Audience::members([rng.pick(players), rng.pick(players)])).unwrap(),
        7 => world.set_audience(entity, Audience::All).unwrap(),
        _ => {}
    }
}

/// Lets a game write the world as the host, and look at it as a guest: it must not see what is not of its team.
fn let_play(sim: &mut Sim, peer: PeerId, seed: u64, is_busy: Rc<Cell<bool>>) {
    let mut rng = Rng::new(seed ^ sim.peer_count() as u64);
    sim.play(peer, move |room: &mut RoomCore, now: Instant| {
        let me = room.local_id().unwrap();
        let players: Vec<MemberId> = room.players().iter().map(|player| player.id).collect();
        let is_host = room.is_host();
        let mut world = room.world(now).unwrap();
        if is_host {
            if is_busy.get() {
                churn(&mut rng, &mut world, &players);
            }
            return world.scope(1, is_of_team).unwrap();
        }
        for entity in world.entities() {
            let (owner, tank) = (world.owner(entity).unwrap(), world.component::<Tank>(entity).unwrap());
            let is_meant = owner == Some(me) || tank.as_ref().is_none_or(|tank| tank.team == team_of(me));
            assert!(is_meant, "seed {seed}: {me} sees {entity}, {tank:?} of {owner:?}");
        }
    });
}

/// The entities that a member sees, and those of the host's world that it should.
fn seen_and_meant(sim: &mut Sim, host: PeerId, guest: PeerId) -> (BTreeSet<EntityId>, BTreeSet<EntityId>) {
    let me = sim.room(guest).local_id().unwrap();
    let seen = sim.act(guest, |room, now| room.world(now).unwrap().entities());
    let meant = sim.act(host, |room, now| {
        let world = room.world(now).unwrap();
        let is_meant =
            |entity: &EntityId| world.owner(*entity) == Ok(Some(me)) || is_of_team(&world, me, *entity);
        world.entities().into_iter().filter(is_meant).collect()
    });
    (seen.into_iter().collect(), meant)
}

#[test]
fn threat_13_m13_a_member_sees_what_the_games_filter_admits_and_never_anything_else() {
    for_seeds(20, |seed| {
        let mut rng = Rng::new(seed);
        let mut sim = Sim::new(seed);
        let host_timeout = Some(Duration::from_millis(400));
        let host =
            sim.host(options(Options { host_timeout, ..Options::host("tanks") }), Link::worse(&mut rng));
        let code = sim.code(host);
        let is_busy = Rc::new(Cell::new(true));
        let_play(&mut sim, host, seed, is_busy.clone());
        let mut guests = Vec::new();
        // Some come late: what they are sent first is filtered as all that follows.
        for _ in 0..3 {
            let guest = sim.enter(options(Options::join("tanks", code)), Link::worse(&mut rng).loss(30));
            sim.run_until(20_000, "a seat", |sim| sim.room(guest).is_connected());
            let_play(&mut sim, guest, seed, is_busy.clone());
            guests.push(guest);
            sim.run_for(1_500);
        }
        // The next host goes on with the filter: nothing is seen in between, either.
        if seed.is_multiple_of(2) {
            sim.crash(host);
            sim.run_until(20_000, "another host", |sim| {
                guests.iter().any(|guest| sim.room(*guest).is_host())
            });
            sim.run_for(3_000);
        }
        // Links heal, so that the host stays the host.
        for peer in [host].into_iter().chain(guests.iter().copied()) {
            let healed = sim.link(peer).healed();
            sim.relink(peer, healed);
        }
        sim.run_for(3_000);
        is_busy.set(false);
        let members = sim.hub().room_details(code).unwrap().members;
        let id = members.iter().find(|member| member.is_host).unwrap().id;
        let is_it = |peer: &PeerId| sim.room(*peer).local_id() == Some(id);
        let host = [host].into_iter().chain(guests.iter().copied()).find(is_it).unwrap();
        guests.retain(|guest| *guest != host && sim.closed(*guest).is_none());
        // No audience of the game's own remains, so that the filter alone decides.
        sim.act(host, |room, now| {
            let mut world = room.world(now).unwrap();
            world.entities().into_iter().for_each(|it| world.set_audience(it, Audience::All).unwrap());
        });
        sim.run_for(6_000);
        for guest in guests {
            let (seen, meant) = seen_and_meant(&mut sim, host, guest);
            assert_eq!(seen, meant, "seed {seed}: {guest}");
            assert!(!meant.is_empty(), "seed {seed}: the team of {guest} has tanks");
        }
    });
}

#[test]
fn m13_the_filter_narrows_an_audience_and_its_end_gives_that_back() {
    let mut sim = Sim::new(3);
    let host = sim.host(options(Options::host("tanks")), Link::quic());
    let code = sim.code(host);
    let mut join = || {
        let guest = sim.enter(options(Options::join("tanks", code)), Link::quic());
        sim.run_until(10_000, "a seat", |sim| sim.room(guest).is_connected());
        guest
    };
    let guests = [join(), join(), join()];
    let ids = guests.map(|guest| sim.room(guest).local_id().unwrap());
    let [tank, owned] = sim.act(host, |room, now| {
        let mut world = room.world(now).unwrap();
        let tank = world.spawn(None).unwrap();
        world.insert(tank, &Tank { team: 0 }).unwrap();
        world.set_audience(tank, Audience::members([ids[0], ids[1]])).unwrap();
        let owned = world.spawn(Some(ids[2])).unwrap();
        [tank, owned]
    });
    let sees = |sim: &mut Sim, entity| {
        guests.map(|guest| sim.act(guest, |room, now| room.world(now).unwrap().contains(entity)))
    };
    sim.run_for(500);
    assert_eq!((sees(&mut sim, tank), sees(&mut sim, owned)), ([true, true, false], [true; 3]));
    let admitted = Rc::new(RefCell::new(vec![ids[1], ids[2]]));
    let shared = admitted.clone();
    sim.play(host, move |room, now| {
        let mut world = room.world(now).unwrap();
        world.scope(3, |_, player, _| shared.borrow().contains(&player)).unwrap();
    });
    sim.run_for(500);
    assert_eq!((sees(&mut sim, tank), sees(&mut sim, owned)), ([false, true, false], [false, true, true]));
    *admitted.borrow_mut() = vec![ids[0]];
    sim.run_for(500);
    assert_eq!(
        (sees(&mut sim, tank), sees(&mut sim, owned)),
        ([true, false, false], [true, false, true]),
        "its owner is in scope"
    );
    sim.act(host, |room, now| room.world(now).unwrap().transfer(owned, Some(ids[1]))).unwrap();
    sim.run_for(500);
    assert_eq!(sees(&mut sim, owned), [true, true, false]);
    sim.play(host, |_, _| {});
    sim.act(host, |room, now| room.world(now).unwrap().end_scope()).unwrap();
    sim.run_for(500);
    assert_eq!((sees(&mut sim, tank), sees(&mut sim, owned)), ([true, true, false], [true; 3]));
    let error =
        sim.act(guests[0], |room, now| room.world(now).unwrap().scope(1, |_, _, _| true)).unwrap_err();
    assert!(error.to_string().contains("host"), "{error}");
    let error = sim.act(host, |room, now| room.world(now).unwrap().scope(0, |_, _, _| true)).unwrap_err();
    assert!(error.to_string().contains("1 to 600"), "{error}");
}

#[test]
fn m13_each_pair_is_asked_about_once_in_so_many_calls() {
    let mut sim = Sim::new(4);
    let host = sim.host(options(Options::host("tanks")), Link::quic());
    let code = sim.code(host);
    let guest = sim.enter(options(Options::join("tanks", code)), Link::quic());
    sim.run_until(10_000, "a seat", |sim| sim.room(guest).is_connected());
    let asked = |sim: &mut Sim, calls: u32| {
        sim.act(host, |room, now| {
            let mut asked = Vec::new();
            for _ in 0..calls {
                let mut world = room.world(now).unwrap();
                let filter = |_: &WorldAccess<'_>, player, entity| {
                    asked.push((player, entity));
                    true
                };
                world.scope(4, filter).unwrap();
            }
            asked
        })
    };
    sim.act(host, |room, now| (0..20).for_each(|_| assert!(room.world(now).unwrap().spawn(None).is_ok())));
    assert_eq!(asked(&mut sim, 1).len(), 40, "all at first");
    let round = asked(&mut sim, 4);
    assert_eq!((round.len(), round.iter().collect::<BTreeSet<_>>().len()), (40, 40), "each pair once");
    assert_eq!(asked(&mut sim, 8).len(), 80);
    // What changed is asked about at once, and all when a player comes.
    let owned = sim.act(host, |room, now| room.world(now).unwrap().spawn(Some(MemberId(1))).unwrap());
    let news: Vec<_> = asked(&mut sim, 1).into_iter().filter(|(_, entity)| *entity == owned).collect();
    assert_eq!(news, [(MemberId(0), owned)], "its owner is not asked about");
    let late = sim.enter(options(Options::join("tanks", code)), Link::quic());
    sim.run_until(10_000, "a seat", |sim| sim.room(late).is_connected());
    sim.run_for(500);
    assert!(sim.take_events(host).iter().any(|event| matches!(event, Event::PlayerJoined(_))));
    assert_eq!(asked(&mut sim, 1).len(), 20 * 3 + 2);
}
