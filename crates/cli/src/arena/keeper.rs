//! The host of the demo. It keeps the arena and does not drive.

use super::game::Game;
use anyhow::bail;
use parlor::{ClosedReason, Event, Room};
use serde_json::{Value, json};
use std::time::Duration;

/// How often it is looked whether the room is open.
const LOOK: Duration = Duration::from_millis(1);

/// The host: it decides what becomes of everybody's orders, and what shots met.
#[derive(Debug)]
pub(crate) struct Keeper {
    room: Room,
    game: Game,
    steps: u64,
    shots: u64,
    hits: u64,
    beyond: u64,
    closed: Option<ClosedReason>,
}

impl Keeper {
    /// A keeper in a room of its own.
    pub(crate) fn new(room: Room, game: Game) -> Self {
        Keeper { room, game, steps: 0, shots: 0, hits: 0, beyond: 0, closed: None }
    }

    /// The room.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// Why it is over, if it is.
    pub(crate) fn closed(&self) -> Option<&ClosedReason> {
        self.closed.as_ref()
    }

    /// Waits until the room is open, and gives its code.
    ///
    /// # Errors
    /// Why it does not open.
    pub(crate) fn open(&mut self) -> anyhow::Result<String> {
        loop {
            self.turn()?;
            match (&self.closed, self.room.code().filter(|_| self.room.is_connected())) {
                (Some(reason), _) => bail!("there is no room: {reason}"),
                (None, Some(code)) => return Ok(code.to_string()),
                (None, None) => std::thread::sleep(LOOK),
            }
        }
    }

    /// One round of a loop: takes what came and runs the steps that are due.
    ///
    /// # Errors
    /// If the room does not take what the host writes.
    pub(crate) fn turn(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
            }
        }
        while self.room.tick() {
            self.game.decide(&mut self.room)?;
            self.steps += 1;
            for verdict in self.game.verdicts.drain(..) {
                self.shots += 1;
                self.hits += u64::from(verdict.met.is_some());
                self.beyond += u64::from(verdict.is_beyond);
            }
        }
        Ok(())
    }

    /// What was decided, for a report.
    pub(crate) fn report(&self) -> Value {
        json!({
            "steps": self.steps,
            "shots": self.shots,
            "hits": self.hits,
            "shots_beyond_rewind": self.beyond,
        })
    }

    /// Leaves the room, which ends it.
    pub(crate) fn leave(self) {
        self.room.leave();
    }
}
