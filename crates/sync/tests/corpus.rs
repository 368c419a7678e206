//! Runs the fuzz targets over the stored corpus, so that a stable compiler finds known faults again.

#[allow(unreachable_pub, reason = "it is a library where cargo-fuzz builds it")]
#[path = "../../../fuzz/src/sync_targets.rs"]
mod sync_targets;

use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut all = Vec::new();
    for file in std::fs::read_dir(&directory).expect("the corpus is there") {
        let path = file.expect("a directory can be listed").path();
        all.push(std::fs::read(&path).expect("a file can be read"));
    }
    assert!(!all.is_empty(), "{} has files", directory.display());
    all
}

type Corpus = LazyLock<Vec<Vec<u8>>>;

static SCHEMAS: Corpus = LazyLock::new(|| corpus("schema"));
static BODIES: Corpus = LazyLock::new(|| corpus("delta"));
static STREAMS: Corpus = LazyLock::new(|| corpus("world"));
static SCRIPTS: Corpus = LazyLock::new(|| corpus("baselines"));
static RECORDINGS: Corpus = LazyLock::new(|| corpus("recording"));

#[test]
fn schema() {
    SCHEMAS.iter().for_each(|bytes| sync_targets::schema(bytes));
}

#[test]
fn delta() {
    BODIES.iter().for_each(|bytes| sync_targets::delta(bytes));
}

#[test]
fn world() {
    STREAMS.iter().for_each(|bytes| sync_targets::world(bytes));
}

#[test]
fn baselines() {
    SCRIPTS.iter().for_each(|bytes| sync_targets::baselines(bytes));
}

#[test]
fn recording() {
    RECORDINGS.iter().for_each(|bytes| sync_targets::recording(bytes));
}

/// An entry of the corpus with some bytes changed.
fn changed(corpus: &'static Corpus) -> impl Strategy<Value = Vec<u8>> {
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    (any::<prop::sample::Index>(), changes).prop_map(|(which, changes)| {
        let mut bytes = which.get(corpus).clone();
        for (at, byte) in changes {
            *at.get_mut(&mut bytes) = byte;
        }
        bytes
    })
}

/// A script with more of the relevant steps: packets are sent and received.
fn script() -> impl Strategy<Value = Vec<u8>> {
    use sync_targets::op;
    let usual = [op::WRITE, op::COMMIT, op::SEND, op::DELIVER, op::DELIVER, op::REPEAT, op::LOSE, op::MUTATE];
    let operation = prop_oneof![4 => prop::sample::select(usual.to_vec()), 1 => 0..op::COUNT];
    let step =
        (operation, any::<u8>(), any::<u8>()).prop_map(|(operation, what, how)| [operation, what, how]);
    let spawn = (any::<u8>(), any::<u8>()).prop_map(|(what, how)| [op::SPAWN, what, how]);
    (0u8..2, vec(spawn, 1..6), vec(step, 0..300))
        .prop_map(|(form, spawns, steps)| [vec![form], spawns.concat(), steps.concat()].concat())
}

proptest! {
    #[test]
    fn schemas_with_other_bytes(bytes in changed(&SCHEMAS)) {
        sync_targets::schema(&bytes);
    }

    #[test]
    fn threat_15_bodies_with_other_bytes(bytes in changed(&BODIES)) {
        sync_targets::delta(&bytes);
    }

    #[test]
    fn streams_with_other_bytes(bytes in changed(&STREAMS)) {
        sync_targets::world(&bytes);
    }

    #[test]
    fn networks_that_lose_repeat_and_forge(script in script()) {
        sync_targets::baselines(&script);
    }

    #[test]
    fn recordings_with_other_bytes(bytes in changed(&RECORDINGS)) {
        sync_targets::recording(&bytes);
    }

    #[test]
    fn bytes(bytes in vec(any::<u8>(), 0..300)) {
        sync_targets::schema(&bytes);
        sync_targets::delta(&bytes);
        sync_targets::world(&bytes);
        sync_targets::baselines(&bytes);
        sync_targets::recording(&bytes);
    }
}
