//! A game for two in one process, without a window: `cargo run -p parlor-bevy --example headless`.
//!
//! One app hosts a room on a server inside this process, the other one joins it. The host's tanks drive. The
//! member prints their positions and honks, and the host hears it. Then both leave.

mod play;

use bevy_ecs::error::Result;
use std::io::{Write, stdout};

fn main() -> Result {
    play::play(&mut |line| {
        // A closed reader is not an error.
        let _ = writeln!(stdout(), "{line}");
    })
}
