//! A predicted entity changes its owner.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Options, RoomCore, RoomError};
use parlor_proto::{EntityId, Instant, MemberId};
use parlor_sim::{Link, PeerId, Sim, for_seeds};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Cart {
    at: f32,
}
replicated!(Cart as "cart" => { at: Kind::float(-4_000.0, 4_000.0, 1.0 / 64.0) });

/// The cart after the first run of each step of one process, by the owner there.
type Steps = BTreeMap<(Option<MemberId>, u32), Cart>;

/// State shared by all games of the test, outside the room.
struct Script {
    /// Whether the players drive.
    drives: Cell<bool>,
    /// The owner to whom the host gives the cart in its next step.
    hands_to: Cell<Option<Option<MemberId>>>,
}

/// The metres that a player drives in a step: they differ by player, and change every fifth step.
fn wanted(me: MemberId, step: u32) -> f32 {
    f32::from(u8::try_from((step / 5 * 7 + me.0 * 3) % 11).unwrap()) / 8.0 - 0.5
}

/// The same step for the host and for members.
fn step(room: &mut RoomCore, now: Instant, script: &Script, log: &RefCell<Steps>) -> Result<(), RoomError> {
    let (me, step) = (room.local_id().unwrap(), room.tick_number().unwrap().0);
    let (is_host, is_replay) = (room.is_host(), room.is_replay());
    room.send_input(&if script.drives.get() { wanted(me, step) } else { 0.0 })?;
    let Some(cart) = room.world(now)?.entities().first().copied() else {
        if is_host {
            let cart = room.world(now)?.spawn(None)?;
            room.world(now)?.insert(cart, &Cart { at: 0.0 })?;
        }
        return Ok(());
    };
    if is_host && let Some(to) = script.hands_to.take() {
        room.world(now)?.transfer(cart, to)?;
    }
    let owner = room.world(now)?.owner(cart)?;
    let mut driven = room.world(now)?.component::<Cart>(cart)?.unwrap();
    if is_host || owner == Some(me) {
        driven.at += owner.map_or(Ok(None), |owner| room.input::<f32>(owner))?.unwrap_or(0.0);
        room.world(now)?.insert(cart, &driven)?;
        driven = room.world(now)?.component::<Cart>(cart)?.unwrap();
    } else {
        assert!(room.world(now)?.insert(cart, &Cart { at: 1.0 }).is_err(), "it is not this member's");
    }
    if !is_replay {
        log.borrow_mut().insert((owner, step), driven);
    }
    Ok(())
}

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Cart>().build().unwrap();
    Options { schema: Some(Arc::new(schema)), predicted: vec!["cart".to_owned()], ..options }
}

struct Yard {
    sim: Sim,
    script: Rc<Script>,
    /// The host first.
    seats: Vec<(PeerId, Rc<RefCell<Steps>>)>,
}

impl Yard {
    fn new(seed: u64, link: Link) -> Self {
        let mut sim = Sim::new(seed);
        let script = Rc::new(Script { drives: Cell::new(true), hands_to: Cell::new(None) });
        let host = sim.host(options(Options::host("carts")), Link::quic().latency_ms(0));
        let code = sim.code(host);
        let mut peers = vec![host];
        peers.extend((0..2).map(|_| sim.enter(options(Options::join("carts", code)), link)));
        let mut seats = Vec::new();
        for peer in peers {
            let steps = Rc::new(RefCell::new(Steps::new()));
            let (script, own) = (Rc::clone(&script), Rc::clone(&steps));
            sim.run_until(10_000, "a seat", |sim| sim.room(peer).is_connected());
            sim.play(peer, move |room, now| step(room, now, &script, &own).unwrap());
            seats.push((peer, steps));
        }
        Yard { sim, script, seats }
    }

    fn id(&self, seat: usize) -> MemberId {
        self.sim.room(self.seats[seat].0).local_id().unwrap()
    }

    fn step_of(&self, seat: usize) -> u32 {
        self.sim.room(self.seats[seat].0).tick_number().unwrap().0
    }

    fn corrections(&self, seat: usize) -> u64 {
        self.sim.room(self.seats[seat].0).diagnostics().prediction.corrections
    }

    /// The cart and its owner, as each process sees them.
    fn carts(&mut self) -> Vec<(Option<MemberId>, Option<Cart>)> {
        let Yard { sim, seats, .. } = self;
        let cart = |(peer, _): &(PeerId, _)| {
            sim.act(*peer, |room, now| {
                let world = room.world(now).unwrap();
                let cart: EntityId = world.entities()[0];
                (world.owner(cart).unwrap(), world.component::<Cart>(cart).unwrap())
            })
        };
        seats.iter().map(cart).collect()
    }

    /// Steps from `from` on in which an owner's cart differed from the host's, and the number of compared
    /// steps.
    fn wrong(&self, seat: usize, from: u32) -> (Vec<u32>, usize) {
        let (me, truth, own) = (Some(self.id(seat)), self.seats[0].1.borrow(), self.seats[seat].1.borrow());
        let both = own.range((me, from)..=(me, u32::MAX));
        let both: Vec<_> = both.filter_map(|(key, cart)| Some((key.1, cart, truth.get(key)?))).collect();
        let wrong =
            both.iter().filter(|(_, predicted, decided)| predicted != decided).map(|(step, ..)| *step);
        (wrong.collect(), both.len())
    }
}

#[test]
fn who_is_given_an_entity_predicts_it_and_who_gave_it_away_does_not() {
    for_seeds(3, |seed| {
        let mut yard = Yard::new(seed, Link::quic().latency_ms(40).jitter_ms(5));
        yard.sim.run_for(3_000);
        let (ada, bob) = (Some(yard.id(1)), Some(yard.id(2)));
        let mut before = yard.carts()[0].1;
        for owner in [ada, bob, None, bob, ada] {
            let corrections = [yard.corrections(1), yard.corrections(2)];
            yard.script.drives.set(true);
            yard.script.hands_to.set(Some(owner));
            // Long enough for the transfer to arrive and for mispredictions to be corrected.
            yard.sim.run_for(1_000);
            let from = [0, 1, 2].map(|seat| yard.step_of(seat));
            yard.sim.run_for(2_000);
            for seat in [1, 2] {
                let (wrong, compared) = yard.wrong(seat, from[seat]);
                let is_owner = owner == Some(yard.id(seat));
                assert!(if is_owner { compared > 50 } else { compared == 0 }, "{owner:?}: {compared} steps");
                assert!(wrong.is_empty(), "{owner:?}: seat {seat} was wrong in {wrong:?}");
                // The previous owner may have predicted steps after the transfer, and is corrected once.
                let gone_back = yard.corrections(seat) - corrections[seat - 1];
                assert!(gone_back <= 1, "{owner:?}: seat {seat} went back {gone_back} times");
            }
            yard.script.drives.set(false);
            yard.sim.run_for(1_000);
            let after = yard.carts();
            assert!(after.iter().all(|cart| *cart == after[0]), "{owner:?}: {after:?}");
            assert_eq!(after[0].0, owner);
            assert_eq!(
                after[0].1 == before,
                owner.is_none(),
                "its owner drives it, and nobody else: {after:?}"
            );
            before = after[0].1;
        }
    });
}
