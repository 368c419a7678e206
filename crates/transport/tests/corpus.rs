//! Runs the fuzz target of HTTP/3 over the stored corpus and over chance, so that a stable compiler finds known
//! faults again.

#[allow(unreachable_pub, reason = "it is a library where cargo-fuzz builds it")]
#[path = "../../../fuzz/src/web_targets.rs"]
mod web_targets;

use std::path::Path;
use web_targets::{op, webtransport};

/// Scripts that chance makes of the stored ones.
const MUTATIONS: u64 = 20_000;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/webtransport");
    let files = std::fs::read_dir(directory).expect("the corpus is there");
    let mut corpus: Vec<_> = files
        .map(|file| file.expect("a directory can be listed").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file can be read")))
        .collect();
    corpus.sort();
    assert!(!corpus.is_empty());
    corpus
}

#[test]
fn stored_scripts_keep_the_promises() {
    for (path, script) in corpus() {
        eprintln!("{path}");
        webtransport(&script);
    }
}

/// Bytes changed, cut out, repeated, and scripts one after another. The seed is printed.
#[test]
fn changed_scripts_keep_the_promises() {
    let corpus = corpus();
    for seed in 0..MUTATIONS {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).expect("31 bits fit") % below.max(1)
        };
        let mut script = corpus[random(corpus.len())].1.clone();
        for _ in 0..1 + random(4) {
            let (at, other) = (random(script.len()), &corpus[random(corpus.len())].1);
            match random(5) {
                0 => script[at] = random(256).to_le_bytes()[0],
                1 => drop(script.drain(at..(at + 1 + random(8)).min(script.len()))),
                2 => script.insert(at, [op::OPEN, op::ADMIT, op::END, op::RESET][random(4)]),
                3 => script.splice(at..at, other.iter().copied().take(random(64))).for_each(drop),
                _ => script.extend_from_slice(other),
            }
            if script.is_empty() {
                script.push(op::OPEN);
            }
        }
        let result = std::panic::catch_unwind(|| webtransport(&script));
        assert!(result.is_ok(), "seed {seed}: {script:02x?}");
    }
}
