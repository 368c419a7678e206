//! The board as letters, from one side.

use anyhow::Context;
use parlor_turn::draughts::{Board, Move, Side};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;

/// A game of draughts as its room has it.
pub(crate) struct Game {
    board: Board,
    turn: Side,
    black: String,
    white: String,
}

/// The state of a room with these rules.
#[derive(Deserialize)]
struct State {
    board: String,
    turn: Side,
    black: String,
    white: String,
}

impl Game {
    /// Reads the state of a room.
    ///
    /// # Errors
    /// If it is that of another game.
    pub(crate) fn read(state: &Value) -> anyhow::Result<Self> {
        let State { board, turn, black, white } =
            State::deserialize(state).context("this is no game of draughts")?;
        Ok(Game { board: board.parse().context("this is no game of draughts")?, turn, black, white })
    }

    /// Which side a player has.
    pub(crate) fn side(&self, player: &str) -> Option<Side> {
        match player {
            player if player == self.black => Some(Side::Black),
            player if player == self.white => Some(Side::White),
            _ => None,
        }
    }

    /// All moves of the side to move.
    pub(crate) fn moves(&self) -> Vec<Move> {
        self.board.moves(self.turn)
    }

    /// The board, with the own side below: men are `b` and `w`, kings capitals, empty squares have their numbers.
    pub(crate) fn picture(&self, own: Side) -> String {
        let letters: Vec<char> = self.board.to_string().chars().collect();
        let mut lines: Vec<String> = (0..8).map(|row| line(&letters, row, own)).collect();
        if own == Side::Black {
            lines.reverse();
        }
        lines.join("\n")
    }
}

/// A row from 0, in which dark squares begin at the second place in even rows and at the first in odd ones.
fn line(letters: &[char], row: usize, own: Side) -> String {
    let mut cells = Vec::with_capacity(8);
    for place in 0..4 {
        let index = row * 4 + place;
        let dark = match letters.get(index) {
            Some('.') | None => (index + 1).to_string(),
            Some(letter) => letter.to_string(),
        };
        let pair = if row.is_multiple_of(2) { [String::new(), dark] } else { [dark, String::new()] };
        cells.extend(pair);
    }
    if own == Side::Black {
        cells.reverse();
    }
    cells.iter().fold(String::new(), |mut line, cell| {
        let _ = write!(line, "{cell:>4}");
        line
    })
}

/// The word for a side.
pub(crate) fn word(side: Side) -> &'static str {
    match side {
        Side::Black => "black",
        Side::White => "white",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_board_is_seen_from_the_own_side() {
        let state = json!({
            "board": "bbbbbbbbbb..B.........W.wwwwwwwww", "turn": "black", "black": "p1", "white": "p2", "quiet": 0,
        });
        assert!(Game::read(&state).is_err(), "33 squares");
        let board = Board::default().to_string();
        let state = json!({ "board": board, "turn": "black", "black": "p1", "white": "p2", "quiet": 0 });
        let game = Game::read(&state).unwrap();
        let (white, black) = (game.picture(Side::White), game.picture(Side::Black));
        let lines: Vec<&str> = white.lines().collect();
        assert_eq!(lines[0], "       b       b       b       b");
        assert_eq!(lines[3], "  13      14      15      16    ");
        assert_eq!(lines[7], "   w       w       w       w    ");
        let turned: Vec<&str> = black.lines().collect();
        assert_eq!(turned[0], "       w       w       w       w");
        assert_eq!(turned[4], "      16      15      14      13");
        assert_eq!((game.moves().len(), game.side("p2"), game.side("p3")), (7, Some(Side::White), None));
    }
}
