//! Moves of this player: each is made once or not at all.

use super::super::error::OnlineError;
use super::super::event::Event;
use super::super::view::Checks;
use super::{Asked, Core, Move, Stage};
use serde::Deserialize;
use serde_json::Value;

/// A refusal. That of a move says which check failed.
#[derive(Deserialize)]
pub(super) struct Refused {
    #[serde(flatten)]
    pub(super) error: OnlineError,
    #[serde(default)]
    pub(super) checks: Option<Checks>,
}

impl Core {
    /// Makes a move for this version of the room's state.
    pub(in super::super) fn propose(&mut self, input: Value, state_version: u64) {
        self.pending = Some(Move { input, state_version });
        if self.stage == Stage::Following {
            self.send_move();
        }
    }

    pub(super) fn send_move(&mut self) {
        let Some(made) = &self.pending else { return };
        let input = made.input.clone();
        self.ask("turn.propose", input, Asked::Move);
    }

    /// Settles a move whose answer was lost. If the state's version is unchanged the move is repeated;
    /// otherwise it is rejected, because its fate is unknown.
    pub(super) fn settle_move(&mut self) {
        let Some(made) = &self.pending else { return };
        if self.view.as_ref().is_some_and(|view| view.state_version == made.state_version) {
            return self.send_move();
        }
        self.pending = None;
        let error =
            OnlineError::new("stale_state", "the room changed before this move came: look, and move again");
        let player = self.me.clone().unwrap_or_default();
        self.events.push_back(Event::MoveRejected { player, error, checks: None });
    }
}
