//! Trains the priors of the delta coder, and prints the file `src/delta/priors.rs`.
//!
//! `cargo run --release -p parlor-sync --example train_priors > priors.rs`, and put it there.

#![allow(clippy::print_stdout, reason = "it is a command")]

mod lab;

use lab::{Scene, train, train_keys};
use parlor_impair::Rng;
use parlor_sync::delta::Trainer;

const HEAD: &str = "\
//! The models that each packet begins with: a part of the protocol, which both ends must have alike.
//!
//! They were trained by `cargo run --release -p parlor-sync --example train_priors`, which prints this file, on motion
//! that is generated from seeds: walkers of other seeds than those of any bench (at 30 and 60 Hz), boxes that fall and
//! bounce without touching each other (with velocities in the schema and without), players who stop and go, all of these now
//! and then as they are new to their receiver, and the keys of a small game: maps of numbers and texts, scores, and a
//! level in one large text. The generator of the walkers is also that of a bench, so its motion is of a kind that the
//! priors know; the seeds 5,000 to 5,002 are for training alone. Nothing is trained on scenes of cubes that touch each
//! other. For each model the trainer takes the share of ones, or of each symbol, among all that the scenes ask of it, and
//! the count with which learning from there on would have cost least.

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
