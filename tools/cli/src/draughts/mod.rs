//! Draughts on a terminal, as text: the board, and typed commands.

mod board;
mod command;

pub(crate) use board::{Game, word};
pub(crate) use command::{Command, HELP};

/// The game, and its rule set.
pub(crate) const APP: &str = "draughts";
