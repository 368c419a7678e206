//! Runs the fuzz targets over the stored corpus, so that a stable compiler finds known faults again.

#[allow(unreachable_pub, reason = "it is a library where cargo-fuzz builds it")]
#[path = "../../../fuzz/src/targets.rs"]
mod targets;

use std::path::Path;

fn run(target: &str, body: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for file in std::fs::read_dir(&directory).expect("the corpus is there") {
        let path = file.expect("a directory can be listed").path();
        eprintln!("{}", path.display());
        body(&std::fs::read(&path).expect("a file can be read"));
        count += 1;
    }
    assert!(count > 0, "{} has files", directory.display());
}

#[test]
fn packet() {
    run("packet", targets::packet);
}

#[test]
fn session() {
    run("session", targets::session);
}

#[test]
fn control() {
    run("control", targets::control);
}

mod random {
    use super::targets;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A script of whole operations, which does not fail at once.
    fn script() -> impl Strategy<Value = Vec<u8>> {
        use targets::op;
        let end = || prop_oneof![Just(0), Just(op::SERVER)];
        let operation = prop_oneof![
            1 => (end(), 0u8..3, vec(any::<u8>(), 0..40)).prop_map(|(end, carrier, bytes)| {
                let len = u8::try_from(bytes.len()).expect("it is short");
                [vec![op::FEED | end, carrier, 0, len], bytes].concat()
            }),
            3 => any::<(bool, u8)>().prop_map(|(long, ms)| vec![op::WAIT, u8::from(long), ms]),
            8 => (end(), 0u8..8, 0u8..3, any::<u8>(), 0u8..40)
                .prop_map(|(end, channel, key, low, high)| vec![op::SEND | end, channel, key, high, low]),
            12 => end().prop_map(|end| vec![op::CARRY | end]),
            2 => end().prop_map(|end| vec![op::LOSE | end]),
            1 => end().prop_map(|end| vec![op::DETACH | end]),
            2 => (end(), 0u8..2).prop_map(|(end, kind)| vec![op::ATTACH | end, kind]),
            1 => end().prop_map(|end| vec![op::ANSWER | end, 0]),
        ];
        let open = vec![op::CARRY, op::ANSWER | op::SERVER, 0, op::CARRY | op::SERVER];
        (0u8..2, vec(operation, 0..60))
            .prop_map(move |(kind, operations)| [vec![kind], open.clone(), operations.concat()].concat())
    }

    proptest! {
        #[test]
        fn scripts(script in script()) {
            targets::session(&script);
        }

        #[test]
        fn bytes(bytes in vec(any::<u8>(), 0..300)) {
            targets::session(&bytes);
            targets::packet(&bytes);
            targets::control(&bytes);
        }
    }
}
