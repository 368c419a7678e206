//! A predicted player on a bad network, without a window: `cargo run -p parlor-bevy --example predicted`.
//!
//! One app hosts a room on a server inside this process. The other one joins it over a round trip of 100 ms
//! with 5% loss, and steers a skater. It predicts its own steering. The host's wind is unpredictable for it:
//! each gust causes a correction, and its steps are run again. In the end both have the skater at the same
//! place.

mod play;

use bevy_ecs::error::Result;
use std::io::{Write, stdout};

fn main() -> Result {
    play::play(&mut |line| {
        // A closed reader is not an error.
        let _ = writeln!(stdout(), "{line}");
    })
}
