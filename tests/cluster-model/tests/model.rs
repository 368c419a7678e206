//! Every state of a small cluster, and the way to a wrong one if a safeguard is taken out.

#![allow(clippy::print_stdout, reason = "a run says how many states it visited")]

use parlor_cluster_model::{Action, Bounds, Guards, World};
use stateright::{Checker, Model, Property};

/// A cluster of so many nodes.
struct Cluster {
    nodes: u8,
    bounds: Bounds,
    guards: Guards,
    /// The only property, if the rest does not matter.
    only: Option<&'static str>,
}

const TERM: &str = "no two nodes serve a room under one term";
const DECISION: &str = "who decides owns the room";
const EFFECT: &str = "the store writes what the owner says";
const SESSION: &str = "a session has one heir";

impl Model for Cluster {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.nodes, self.bounds, &self.guards)]
    }

    fn actions(&self, state: &World, actions: &mut Vec<Action>) {
        state.actions(actions);
    }

    fn next_state(&self, state: &World, action: Action) -> Option<World> {
        state.next(action, &self.guards)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(TERM, |_, world: &World| !world.shares_a_term()),
            Property::always(DECISION, |_, world: &World| !world.decides_wrongly()),
            Property::always(EFFECT, |model: &Cluster, world: &World| !world.writes_wrongly(&model.guards)),
            Property::always(SESSION, |_, world: &World| !world.doubles_a_session()),
            // Without these it could be right because nothing happens.
            Property::sometimes("a room is reopened elsewhere", |_, world: &World| world.is_reopened()),
            Property::sometimes("a node gets its room back", |_, world: &World| world.is_reclaimed()),
        ];
        if self.bounds.moves > 0 {
            let has_moved =
                Property::sometimes("a room moves with its session", |_, world: &World| world.has_moved());
            properties.push(has_moved);
        }
        properties.retain(|property| self.only.is_none_or(|only| property.name == only));
        properties
    }
}

const NONE: Bounds = Bounds {
    crashes: 0,
    pauses: 0,
    cuts: 0,
    late_answers: 0,
    lost_locks: 0,
    late_clocks: 0,
    moves: 1,
    claims: 1,
};

fn visit(nodes: u8, bounds: Bounds) {
    let model = Cluster { nodes, bounds, guards: Guards::ALL, only: None };
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{nodes} nodes, {bounds:?}: {} states", checker.unique_state_count());
    checker.assert_properties();
}

/// How much is visited: by default what takes seconds. `PARLOR_MODEL` is `long` for minutes, `weekly` for more.
fn is_extent(names: &[&str]) -> bool {
    std::env::var("PARLOR_MODEL").is_ok_and(|extent| names.contains(&extent.as_str()))
}

fn visit_if_long(bounds: Bounds) {
    if is_extent(&["long", "weekly"]) {
        visit(2, bounds);
    }
}

#[test]
fn a_node_may_sleep_and_lose_the_store() {
    visit(2, Bounds { pauses: 1, cuts: 1, ..NONE });
}

#[test]
fn a_node_may_die_and_lose_its_lock() {
    visit(2, Bounds { crashes: 1, lost_locks: 1, ..NONE });
}

/// All three, with a move, are more than ten million states: it has two of them each in the tests above and below.
#[test]
fn a_node_may_die_sleep_and_lose_the_store() {
    visit_if_long(Bounds { crashes: 1, pauses: 1, cuts: 1, moves: 0, ..NONE });
}

#[test]
fn a_node_may_die_and_sleep() {
    visit_if_long(Bounds { crashes: 1, pauses: 1, ..NONE });
}

#[test]
fn a_node_may_die_and_lose_the_store() {
    visit_if_long(Bounds { crashes: 1, cuts: 1, ..NONE });
}

#[test]
fn a_node_may_sleep_and_lose_its_lock_and_hear_late() {
    visit_if_long(Bounds { pauses: 1, lost_locks: 1, late_answers: 1, moves: 0, ..NONE });
}

#[test]
fn a_node_may_sleep_and_lose_its_lock() {
    visit_if_long(Bounds { pauses: 1, lost_locks: 1, ..NONE });
}

#[test]
fn a_node_may_lose_its_lock_twice_and_the_store() {
    visit_if_long(Bounds { lost_locks: 2, cuts: 1, ..NONE });
}

#[test]
fn a_clock_may_be_late() {
    visit_if_long(Bounds { late_clocks: 1, late_answers: 1, pauses: 1, ..NONE });
}

#[test]
fn one_of_three_nodes_may_die() {
    if is_extent(&["weekly"]) {
        visit(3, Bounds { crashes: 1, ..NONE });
    }
}

/// Without a guard there is a way to a state that is wrong.
fn is_missed(guards: Guards, bounds: Bounds, what: &'static str) {
    let model = Cluster { nodes: 2, bounds, guards, only: Some(what) };
    let checker = model.checker().threads(2).spawn_bfs().join();
    let way = checker.discovery(what).expect("the guard is missed");
    println!("{what}, after {} states: {:?}", checker.unique_state_count(), way.into_actions());
}

#[test]
fn a_node_that_stood_still_must_lapse() {
    is_missed(
        Guards { stalls_lapse: false, ..Guards::ALL },
        Bounds { pauses: 1, lost_locks: 1, ..NONE },
        DECISION,
    );
}

#[test]
fn a_lease_needs_a_margin() {
    is_missed(
        Guards { leases_have_a_margin: false, ..Guards::ALL },
        Bounds { cuts: 1, late_clocks: 1, ..NONE },
        DECISION,
    );
}

#[test]
fn copies_must_be_reconciled() {
    is_missed(Guards { copies_are_reconciled: false, ..Guards::ALL }, Bounds { cuts: 1, ..NONE }, DECISION);
}

#[test]
fn who_keeps_a_room_must_raise_its_term() {
    is_missed(Guards { keeping_raises_the_term: false, ..Guards::ALL }, NONE, SESSION);
}

#[test]
fn a_snapshot_must_be_taken_once() {
    is_missed(
        Guards { snapshots_are_taken_once: false, ..Guards::ALL },
        Bounds { pauses: 1, ..NONE },
        SESSION,
    );
}

#[test]
fn the_store_must_be_fenced() {
    is_missed(Guards { store_is_fenced: false, ..Guards::ALL }, Bounds { cuts: 1, ..NONE }, EFFECT);
}
