//! A dedicated server for 64 players: a host without a player. It moves a dot for each of them, and runs until it is stopped.

use parlor::{ClosedReason, Event, HostStep, Room, RoomError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a player wants in a step.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) dx: f32,
    pub(crate) dy: f32,
}

/// What everybody sees of a player: `dot/ID` in the room's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dot {
    pub(crate) x: f32,
    pub(crate) y: f32,
}

/// Runs a room until it is over. `opened` is given its code.
pub(crate) fn serve(mut room: Room, mut opened: impl FnMut(String)) -> Result<(), ClosedReason> {
    loop {
        while let Some(event) = room.poll() {
            match event {
                Event::Open { code } => opened(code.to_string()),
                Event::PlayerLeft { id, .. } => {
                    // A key that a player left behind counts against the 60 KiB of the room.
                    room.as_host().and_then(|mut host| host.remove(&format!("dot/{id}")).ok());
                }
                Event::Closed(why) => return Err(why),
                _ => {}
            }
        }
        while let Some(mut step) = room.step() {
            if let Some(Err(error)) = step.host().map(|mut host| rules(&mut host)) {
                eprintln!("step {}: {error}", step.number());
            }
        }
        std::thread::sleep(room.until_next_tick().min(Duration::from_millis(5)));
    }
}

/// The rules of the game: an input is a wish, so it is clamped.
fn rules(host: &mut HostStep<'_>) -> Result<(), RoomError> {
    for (player, Move { dx, dy }) in host.inputs() {
        let key = format!("dot/{player}");
        let dot: Dot = host.state().get(&key)?.unwrap_or_default();
        let moved = Dot { x: dot.x + dx.clamp(-1.0, 1.0), y: dot.y + dy.clamp(-1.0, 1.0) };
        host.set(&key, &moved)?;
    }
    Ok(())
}

fn main() {
    let room = Room::host("dots").dedicated().max_players(64).tick_hz(20).open();
    if let Err(why) = serve(room, |code| eprintln!("join with {code}")) {
        eprintln!("dedicated: {why}");
    }
}
