//! Runs the fuzz targets over the stored corpus, so that a stable compiler finds known faults again.

#[allow(unreachable_pub, reason = "it is a library where cargo-fuzz builds it")]
#[path = "../../../fuzz/src/sync_targets.rs"]
mod sync_targets;

use parlor_proto::TickRate;
use parlor_sync::delta::{EntryHead, EntryKind, Meta, Tables, Writer};
use parlor_sync::schema::ComponentId;
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

/// An entry of a host that contradicts itself.
#[derive(Clone, Debug)]
struct Claim {
    head: EntryHead,
    /// Determines the values of its components.
    seed: u32,
}

/// Few slots, labels and generations, so that entries often concern the same row.
fn claim() -> impl Strategy<Value = Claim> {
    let kind = prop::sample::select(vec![EntryKind::Spawn, EntryKind::Update, EntryKind::Despawn]);
    let components = prop::sample::select(vec![0u64, 1, 4, 5]);
    (kind, 0u16..3, 0u32..4, components, 0u16..2, 1u32..4, any::<bool>(), 0u32..3).prop_map(
        |(kind, slot, row_age, mask, generation, age, changes, seed)| {
            let mut head = EntryHead { kind, row_age, ..EntryHead::update(slot) };
            if kind == EntryKind::Update {
                (head.history, head.ages[0]) = (1, age);
            }
            if kind == EntryKind::Spawn || kind == EntryKind::Update && changes {
                (head.mask, head.mask_changed, head.changed) = (mask, true, mask);
                head.meta = Some(Meta::default());
            }
            head.generation = if kind == EntryKind::Spawn { generation } else { 0 };
            Claim { head, seed }
        },
    )
}

/// The packet of these entries, in a stream of everything.
fn packet(number: u16, tick: u32, is_last: bool, claims: &[Claim]) -> Vec<u8> {
    let schema = &sync_targets::GAME;
    let tables = Tables::new(schema, TickRate::DEFAULT);
    // Plain, complete; the epoch is that of packet 0, and so are the floors.
    let mut out = vec![8 | 4 | u8::from(is_last)];
    out.extend(number.to_le_bytes());
    out.extend([0, u8::try_from(number).expect("there are few packets")]);
    out.extend(tick.to_le_bytes());
    let mut writer = Writer::new();
    writer.begin_plain(&tables);
    for Claim { head, seed } in claims {
        writer.head(&tables, head);
        for id in ComponentId::in_mask(head.changed) {
            let (lanes, blobs) = sync_targets::row_of(&schema.components()[id.index()], *seed);
            writer.component(&tables, id, &[], &lanes, &blobs);
        }
    }
    writer.finish(&tables, &mut out);
    out
}

/// Entries up to the third descent of their slots: they may begin again once.
fn in_one_packet(mut claims: Vec<Claim>) -> Vec<Claim> {
    let mut descents = 0;
    let slots: Vec<u16> = claims.iter().map(|claim| claim.head.slot).collect();
    let until = slots.windows(2).position(|pair| {
        descents += u8::from(pair[1] <= pair[0]);
        descents > 1
    });
    claims.truncate(until.map_or(claims.len(), |last| last + 1));
    claims
}

/// Applies packets of these entries, each so many ticks after the one before, and passes the world on.
fn pass_on<'a>(packets: impl IntoIterator<Item = (&'a [Claim], u32, bool)>) {
    let (mut script, mut tick) = (vec![1], 10);
    for (number, (claims, on, is_last)) in (0..).zip(packets) {
        tick += on;
        let packet = packet(number, tick, is_last, claims);
        script.extend(u16::try_from(packet.len()).expect("it is short").to_be_bytes());
        script.extend(packet);
    }
    sync_targets::world(&script);
}

/// A second row with the label of an earlier one has a component more, and an update builds on it.
#[test]
fn threat_15_of_two_rows_with_one_label_the_first_counts() {
    let spawn = |mask| {
        let head = EntryHead { kind: EntryKind::Spawn, mask_changed: true, ..EntryHead::update(1) };
        let head = EntryHead { mask, changed: mask, meta: Some(Meta::default()), ..head };
        [Claim { head, seed: 0 }]
    };
    let update = |age| {
        let head = EntryHead { history: 1, ages: [age, 0, 0], ..EntryHead::update(1) };
        [Claim { head, seed: 0 }]
    };
    let packets = [(&spawn(0)[..], 0), (&update(2), 2), (&spawn(1), 0), (&[], 1), (&update(1), 0)];
    pass_on(packets.map(|(claims, on)| (claims, on, false)));
}

proptest! {
    #[test]
    fn threat_15_hosts_that_contradict_themselves(
        packets in vec((vec(claim(), 0..6).prop_map(in_one_packet), 0u32..4, any::<bool>()), 1..14)
    ) {
        pass_on(packets.iter().map(|(claims, on, is_last)| (&claims[..], *on, *is_last)));
    }

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
