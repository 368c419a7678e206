//! Measures the size and speed of bodies, on the generators that the priors were trained on, with another
//! seed.
//!
//! `cargo run --release -p parlor-sync --example delta_lab [seed]`

#![allow(clippy::print_stdout, reason = "it is a command")]

mod lab;

use lab::{Scene, measure};

fn main() {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let scenes = [
        Scene::walkers(seed, 1_000, 30, 120),
        Scene::bouncing(seed, 400, 60, 240, false),
        Scene::bouncing(seed, 400, 60, 240, true),
        Scene::players(seed, 400, 30, 120),
    ];
    for scene in &scenes {
        println!("{}", measure(scene));
    }
}
