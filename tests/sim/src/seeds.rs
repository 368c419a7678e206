//! Runs one scenario with many seeds.
//!
//! `PARLOR_SEEDS` is the number of seeds for the scenario of the [whole world](crate::scenario).
//! `PARLOR_SEED` selects a single one, for every test. A test of one topic costs far more per seed, so it
//! runs with a fraction of that number: see [`for_seeds`].

use std::ops::Range;

/// Default number of seeds of a scenario.
pub const SEEDS: u64 = 50;

/// Seeds of the whole world for each seed of a test with [`SEEDS`] seeds by default; a test with a smaller
/// default gets proportionally fewer.
pub const WORLDS_PER_SEED: u64 = 25;

/// Runs a scenario of one topic with `usual` seeds by default. With `PARLOR_SEEDS` it runs with its share,
/// `PARLOR_SEEDS` / [`WORLDS_PER_SEED`] × `usual` / [`SEEDS`], but at least `usual`. With `PARLOR_SEED` it
/// runs with that seed alone. On failure it prints how to repeat the seed.
///
/// # Panics
/// If the scenario does, or a variable is not a number.
pub fn for_seeds(usual: u64, scenario: impl FnMut(u64)) {
    let share = |worlds: u64| (worlds.saturating_mul(usual) / (WORLDS_PER_SEED * SEEDS)).max(usual);
    let seeds = match number("PARLOR_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PARLOR_SEEDS").map_or(usual, share),
    };
    run(seeds, scenario);
}

/// Runs a scenario of the whole world with one of `shards` parts of the seeds: those with the remainder
/// `shard`. Each part is a separate test, so that they run in parallel.
///
/// # Panics
/// If the scenario does, or a variable is not a number.
pub fn for_shard_of_seeds(shard: u64, shards: u64, usual: u64, scenario: impl FnMut(u64)) {
    let step = usize::try_from(shards).expect("there are a few shards");
    let seeds: Range<u64> = match number("PARLOR_SEED") {
        Some(seed) if seed % shards == shard => seed..seed + 1,
        Some(_) => 0..0,
        None => shard..number("PARLOR_SEEDS").unwrap_or(usual),
    };
    run(seeds.step_by(step), scenario);
}

fn run(seeds: impl Iterator<Item = u64>, mut scenario: impl FnMut(u64)) {
    for seed in seeds {
        let _say = Say(seed);
        scenario(seed);
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")))
}

struct Say(u64);

impl Drop for Say {
    #[allow(clippy::print_stderr)] // it speaks to whoever runs the test
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            let program = std::env::current_exe().ok();
            let program = program.as_ref().and_then(|path| path.file_stem()?.to_str()).unwrap_or("*");
            eprintln!("failed with seed {}; again: {}", self.0, again(self.0, program, thread.name()));
        }
    }
}

/// The command that runs one seed of one test.
fn again(seed: u64, program: &str, test: Option<&str>) -> String {
    // Cargo appends a hash.
    let file = program.rsplit_once('-').map_or(program, |(file, _)| file);
    let target = if file == "parlor_sim" { "--lib".to_owned() } else { format!("--test {file}") };
    format!("PARLOR_SEED={seed} cargo test -p parlor-sim {target} {} -- --exact", test.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_package_file_and_test() {
        assert_eq!(
            again(7, "world-0f3a", Some("shard_2")),
            "PARLOR_SEED=7 cargo test -p parlor-sim --test world shard_2 -- --exact"
        );
        assert_eq!(
            again(8, "parlor_sim-77", Some("a::b")),
            "PARLOR_SEED=8 cargo test -p parlor-sim --lib a::b -- --exact"
        );
    }

    #[test]
    fn the_shards_run_every_seed_once() {
        if number("PARLOR_SEED").is_some() {
            return;
        }
        let mut all = Vec::new();
        (0..3).for_each(|shard| for_shard_of_seeds(shard, 3, 10, |seed| all.push(seed)));
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..number("PARLOR_SEEDS").unwrap_or(10)));
    }
}
