//! The host of the demo. It runs the arena and does not drive.

use crate::demo_loop::Member;
use parlor::{ClosedReason, Event, Room};
use parlor_demos::arena::Game;
use serde_json::{Value, json};
use std::path::Path;

/// The host: it applies all orders and decides hits.
#[derive(Debug)]
pub(crate) struct DemoHost {
    room: Room,
    game: Game,
    steps: u64,
    shots: u64,
    hits: u64,
    beyond: u64,
    closed: Option<ClosedReason>,
}

impl DemoHost {
    /// A host in a room of its own.
    pub(crate) fn new(room: Room, game: Game) -> Self {
        DemoHost { room, game, steps: 0, shots: 0, hits: 0, beyond: 0, closed: None }
    }

    /// Records the room into a file from now on.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(crate) fn record(&mut self, path: &Path) -> anyhow::Result<()> {
        Ok(self.room.recording().start(path)?)
    }
}

impl Member for DemoHost {
    fn room(&self) -> &Room {
        &self.room
    }

    fn closed(&self) -> Option<&ClosedReason> {
        self.closed.as_ref()
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
            }
        }
        while let Some(mut step) = self.room.step() {
            self.game.decide(&mut step)?;
            self.steps += 1;
            for verdict in self.game.verdicts.drain(..) {
                self.shots += 1;
                self.hits += u64::from(verdict.met.is_some());
                self.beyond += u64::from(verdict.is_beyond);
            }
        }
        Ok(())
    }

    fn report(&mut self) -> Value {
        json!({
            "steps": self.steps,
            "shots": self.shots,
            "hits": self.hits,
            "shots_beyond_rewind": self.beyond,
        })
    }

    fn leave(self) {
        self.room.leave();
    }
}
