//! Whole worlds, each from one seed, checked against the model of a room.

use parlor_sim::model::Counts;
use parlor_sim::{SEEDS, for_seeds, for_shard_of_seeds, scenario};

/// Number of tests, so that they use several processors.
const SHARDS: u64 = 4;

fn worlds(shard: u64) {
    for_shard_of_seeds(shard, SHARDS, SEEDS, |seed| _ = scenario::run(seed));
}

#[test]
fn no_world_diverges_from_its_model_shard_0() {
    worlds(0);
}

#[test]
fn no_world_diverges_from_its_model_shard_1() {
    worlds(1);
}

#[test]
fn no_world_diverges_from_its_model_shard_2() {
    worlds(2);
}

#[test]
fn no_world_diverges_from_its_model_shard_3() {
    worlds(3);
}

/// Among the worlds above some are of this kind. These are all.
#[test]
fn m9_m13_who_returns_is_itself_and_sees_what_its_scope_admits() {
    for_seeds(SEEDS / 5, |seed| _ = scenario::returns::run(seed));
}

#[test]
fn a_seed_gives_the_same_world_again_and_another_seed_another() {
    for_seeds(SEEDS / 10, |seed| {
        let once = scenario::run(seed);
        assert_eq!(once, scenario::run(seed));
        assert_ne!(once.trace_hash, scenario::run(seed + 1).trace_hash);
    });
}

/// The seeds are the same in every run, so that this checks the generator and does not depend on luck.
#[test]
fn worlds_have_everything_in_them() {
    let worlds = (0..160).map(scenario::run).chain((0..16).map(scenario::returns::run));
    let all = worlds.map(|outcome| outcome.counts).fold(Counts::default(), Counts::and);
    for (what, count, least) in [
        ("rooms", all.rooms, 30),
        ("seats", all.seats, 100),
        ("seats of spectators", all.spectators, 10),
        ("seats given up", all.leaves, 20),
        ("kicks", all.kicks, 1),
        ("members that fell silent", all.silences, 1),
        ("connections that were made again", all.resumed, 1),
        ("clients turned away", all.rejected, 10),
        ("messages", all.messages, 1_000),
        ("messages past the hub", all.messages_apart, 10),
        ("looks at members with paths", all.apart, 100),
        ("states", all.states, 600),
        ("inputs", all.inputs, 200),
        ("predicted actions", all.actions, 50),
        ("refused predicted actions", all.actions_refused, 10),
        ("changes of player data", all.data, 30),
        ("members that had everything in the end", all.settled, 40),
        ("logs that ran again", all.logs, 30),
        ("logs that were torn", all.torn, 1),
        ("members that came back after their grace", all.returned, 10),
        ("members that were refused", all.returns_refused, 10),
        ("migrations among them", all.migrations, 10),
        ("values that a scope admits", all.in_scope, 10_000),
        ("comparisons of all that a scope admits", all.scopes, 1_000),
    ] {
        assert!(count >= least, "{count} {what} in all these worlds: {all:?}");
    }
    println!("{all:?}");
}
