//! Trains the priors of the delta coder, and prints the file `src/delta/priors.rs`.
//!
//! Run `cargo run --release -p parlor-sync --example train_priors > priors.rs`, and move the file there.

#![allow(clippy::print_stdout, reason = "it is a command")]

mod lab;

use lab::{Scene, train, train_keys};
use parlor_impair::Rng;
use parlor_sync::delta::Trainer;

const HEAD: &str = "\
//! The initial models of each packet: a part of the protocol, identical at both ends.
//!
//! They were trained by `cargo run --release -p parlor-sync --example train_priors`, which prints this file.
//! The training motion is generated from seeds: walkers with other seeds than those of any bench (at 30 and
//! 60 Hz), falling and bouncing boxes that do not touch each other (with velocities in the schema and
//! without), and players who stop and go. All of these are also recorded as new to their receiver. Added are
//! the keys of a small game: maps of numbers and texts, scores, and a level in one large text.
//!
//! The generator of the walkers is shared with a bench, so the priors know that kind of motion; the seeds
//! 5,000 to 5,002 are for training alone. No scene of cubes that touch each other is used. For each model the
//! trainer takes the share of ones, or of each symbol, among all its uses in the scenes. It takes the initial
//! count with which the adaptation would have cost least.

use super::layout::{COUNT, SYMBOL_COUNT};
use crate::coder::{Bit, Symbols};

";

fn main() {
    let (mut trainer, mut rng) = (Trainer::new(), Rng::new(77));
    for seed in 5_000..5_003 {
        for hz in [30, 60] {
            train(&Scene::walkers(seed, 400, hz, 120), &mut trainer, &mut rng);
            train(&Scene::bouncing(seed, 300, hz, 200, false), &mut trainer, &mut rng);
            train(&Scene::bouncing(seed, 200, hz, 200, true), &mut trainer, &mut rng);
            train(&Scene::players(seed, 300, hz, 150), &mut trainer, &mut rng);
        }
        (0..10).for_each(|_| train_keys(&mut trainer, &mut rng, 120));
    }
    print!("{HEAD}{}", trainer.priors());
}
