//! A predicted player on a bad network, without a window: `cargo run -p parlor-bevy --example predicted`.
//!
//! One app hosts a room on a server inside this process, the other one joins it over 100 ms of round trip with 5% loss and
//! steers a skater. It sees at once what it steers; the host's wind, which it cannot know of, it is told, and runs its steps
//! again. In the end both have the skater at the same place.

mod play;

use bevy_ecs::error::Result;
use std::io::{Write, stdout};

fn main() -> Result {
    play::play(&mut |line| {
        // A reader that has gone away is no fault.
        let _ = writeln!(stdout(), "{line}");
    })
}
