//! Many seeds for one scenario.

use std::ops::Range;

/// Seeds that a scenario runs with unless `PARLOR_SEEDS` says otherwise.
pub const SEEDS: u64 = 50;

/// Runs a scenario with each seed: `usual` many, or as many as `PARLOR_SEEDS` says, or the one that `PARLOR_SEED` names.
/// When it fails, it says how to repeat that.
///
/// # Panics
/// If the scenario does, or a variable is no number.
pub fn for_seeds(usual: u64, mut scenario: impl FnMut(u64)) {
    for seed in seeds(usual) {
        let _say = Say(seed);
        scenario(seed);
    }
}

fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")))
    };
    match number("PARLOR_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PARLOR_SEEDS").unwrap_or(usual),
    }
}

struct Say(u64);

impl Drop for Say {
    #[allow(clippy::print_stderr)] // it speaks to whoever runs the test
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "failed with seed {0}; again: PARLOR_SEED={0} cargo test -p parlor-sim {1}",
                self.0,
                test()
            );
        }
    }
}

/// The arguments of `cargo test` that select this test.
fn test() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|path| path.file_stem()?.to_str());
    // Cargo appends a hash.
    let file = program.and_then(|name| name.rsplit_once('-')).map_or("*", |(file, _)| file);
    let thread = std::thread::current();
    format!("--test {file} {}", thread.name().unwrap_or_default())
}
