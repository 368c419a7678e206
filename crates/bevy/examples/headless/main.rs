//! A game for two in one process, without a window: `cargo run -p parlor-bevy --example headless`.
//!
//! One app hosts a room on a server inside this process, the other one joins it. The host's tanks drive, the member sees them
//! and says where they are, honks, and is heard. Then both leave.

mod play;

use bevy_ecs::error::Result;
use std::io::{Write, stdout};

fn main() -> Result {
    play::play(&mut |line| {
        // A reader that has gone away is no fault.
        let _ = writeln!(stdout(), "{line}");
    })
}
