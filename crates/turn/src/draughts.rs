//! Complete English draughts on 8 × 8 squares: men and kings, mandatory and complete captures, and the draw
//! after many moves without progress.
//!
//! Squares have the players' usual numbers: 1 to 32, the dark ones, row by row from Black's side. Black moves
//! first, towards higher numbers.
//!
//! ```text
//!        1     2     3     4        black
//!     5     6     7     8
//!        9    10    11    12
//!    13    14    15    16
//!       17    18    19    20
//!    21    22    23    24
//!       25    26    27    28
//!    29    30    31    32           white
//! ```
//!
//! A move has the type `move` and the data `{"path": [11, 15]}`: its start square and each landing square.
//! The first and the last square suffice where they identify a single move.

use super::ids::PlayerId;
use super::refusal::{Code, Refusal};
use super::rules::{Attempt, Award, Ended, Next, Opening, Outcome, Rules};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use thiserror::Error;

/// The rule set `draughts`.
#[derive(Clone, Copy, Debug)]
pub struct Draughts;

/// Number of playable squares.
pub const SQUARES: u8 = 32;
/// Consecutive moves of both players without a capture or a man's move after which the game is drawn.
pub const QUIET_MOVES_MAX: u16 = 80;
/// The longest path: the start square, and one for each of twelve captures.
const PATH_LEN_MAX: usize = 13;
/// The board that counts wins, if an operator has defined it.
const WINS: &str = "draughts.wins";
/// Maximum number of legal moves that a refusal lists.
const MOVES_NAMED_MAX: usize = 12;

/// A side of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Starts on squares 1 to 12.
    Black,
    /// Starts on squares 21 to 32.
    White,
}

impl Side {
    /// Returns the other side.
    pub fn other(self) -> Side {
        match self {
            Side::Black => Side::White,
            Side::White => Side::Black,
        }
    }

    /// Returns the row where its men become kings.
    fn crown_row(self) -> i8 {
        match self {
            Side::Black => 7,
            Side::White => 0,
        }
    }

    fn forward(self) -> i8 {
        match self {
            Side::Black => 1,
            Side::White => -1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    side: Side,
    is_king: bool,
}

impl Piece {
    fn letter(self) -> char {
        match (self.side, self.is_king) {
            (Side::Black, false) => 'b',
            (Side::Black, true) => 'B',
            (Side::White, false) => 'w',
            (Side::White, true) => 'W',
        }
    }

    fn of_letter(letter: char) -> Option<Piece> {
        let side = match letter.to_ascii_lowercase() {
            'b' => Side::Black,
            'w' => Side::White,
            _ => return None,
        };
        Some(Piece { side, is_king: letter.is_ascii_uppercase() })
    }

    /// Returns its directions of movement: rows and columns.
    fn directions(self) -> impl Iterator<Item = (i8, i8)> {
        let rows = [self.side.forward(), -self.side.forward()];
        let rows = if self.is_king { &rows[..] } else { &rows[..1] }.to_vec();
        rows.into_iter().flat_map(|row| [(row, -1), (row, 1)])
    }
}

/// The pieces. As text: a letter per square, 1 to 32: `b` and `w` are men, `B` and `W` kings, `.` is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    squares: [Option<Piece>; SQUARES as usize],
}

/// The text is not a valid board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a board has {SQUARES} letters, each one of b, w, B, W and .")]
pub struct BadBoard;

/// A legal move. Displayed in the usual notation: `11-15`, and `22x15x8` for captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The start square and each landing square.
    pub path: Vec<u8>,
    /// The squares of the captured pieces.
    pub takes: Vec<u8>,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.takes.is_empty() { "-" } else { "x" };
        let squares: Vec<String> = self.path.iter().map(u8::to_string).collect();
        f.write_str(&squares.join(mark))
    }
}

impl FromStr for Board {
    type Err = BadBoard;

    fn from_str(text: &str) -> Result<Board, BadBoard> {
        if text.len() != usize::from(SQUARES) {
            return Err(BadBoard);
        }
        let mut squares = [None; SQUARES as usize];
        for (square, letter) in squares.iter_mut().zip(text.chars()) {
            *square = match letter {
                '.' => None,
                letter => Some(Piece::of_letter(letter).ok_or(BadBoard)?),
            };
        }
        Ok(Board { squares })
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.squares.iter().try_for_each(|square| {
            let letter = square.map_or('.', Piece::letter);
            fmt::Write::write_char(f, letter)
        })
    }
}

impl Default for Board {
    /// Returns the initial board: twelve men on each side.
    fn default() -> Board {
        let man = |side| Some(Piece { side, is_king: false });
        let mut squares = [None; SQUARES as usize];
        squares[..12].fill(man(Side::Black));
        squares[20..].fill(man(Side::White));
        Board { squares }
    }
}

impl Board {
    /// Returns all legal moves. Captures are mandatory, so other moves are omitted if there are any. An empty
    /// list means that `side` has lost.
    pub fn moves(&self, side: Side) -> Vec<Move> {
        let own: Vec<(u8, Piece)> = (1..=SQUARES)
            .filter_map(|square| Some((square, self.at(square)?)))
            .filter(|(_, piece)| piece.side == side)
            .collect();
        let mut moves = Vec::new();
        for (from, piece) in &own {
            let mut way = Way { board: self, piece: *piece, path: vec![*from], takes: Vec::new() };
            way.captures(&mut moves);
        }
        if moves.is_empty() {
            for (from, piece) in &own {
                let steps = piece.directions().filter_map(|way| beside(*from, way));
                let free = steps.filter(|to| self.at(*to).is_none());
                moves.extend(free.map(|to| Move { path: vec![*from, to], takes: Vec::new() }));
            }
        }
        moves
    }

    /// Returns the board after a legal move, and whether a man moved. An illegal move changes nothing.
    pub fn after(&self, made: &Move) -> (Board, bool) {
        let mut board = self.clone();
        let (Some(from), Some(to)) = (made.path.first(), made.path.last()) else { return (board, false) };
        let Some(piece) = self.at(*from) else { return (board, false) };
        board.set(*from, None);
        for taken in &made.takes {
            board.set(*taken, None);
        }
        let is_king = piece.is_king || place(*to).0 == piece.side.crown_row();
        board.set(*to, Some(Piece { is_king, ..piece }));
        (board, !piece.is_king)
    }

    fn at(&self, square: u8) -> Option<Piece> {
        self.squares.get(usize::from(square).checked_sub(1)?).copied().flatten()
    }

    fn set(&mut self, square: u8, piece: Option<Piece>) {
        if let Some(place) = usize::from(square).checked_sub(1).and_then(|index| self.squares.get_mut(index))
        {
            *place = piece;
        }
    }
}

/// A capture in progress.
struct Way<'a> {
    board: &'a Board,
    piece: Piece,
    path: Vec<u8>,
    takes: Vec<u8>,
}

impl Way<'_> {
    /// Collects all captures that continue from here. A capture must be completed. The piece keeps its
    /// initial rank, so a man that reaches the crown row stops there.
    fn captures(&mut self, moves: &mut Vec<Move>) {
        let Some(&here) = self.path.last() else { return };
        let mut goes_on = false;
        for way in self.piece.directions() {
            let Some((over, to)) = self.jump(here, way) else { continue };
            goes_on = true;
            self.path.push(to);
            self.takes.push(over);
            self.captures(moves);
            self.path.pop();
            self.takes.pop();
        }
        if !goes_on && !self.takes.is_empty() {
            moves.push(Move { path: self.path.clone(), takes: self.takes.clone() });
        }
    }

    /// Returns the piece captured by a jump in this direction, and the landing square. No piece is captured
    /// twice; the start square counts as empty.
    fn jump(&self, here: u8, way: (i8, i8)) -> Option<(u8, u8)> {
        let over = beside(here, way)?;
        let to = beside(over, way)?;
        let is_prey = self.board.at(over).is_some_and(|piece| piece.side != self.piece.side);
        let is_free = self.board.at(to).is_none() || self.path.first() == Some(&to);
        (is_prey && is_free && !self.takes.contains(&over)).then_some((over, to))
    }
}

/// Returns row and column of a square. Dark squares begin at column 1 in even rows and at 0 in odd ones.
fn place(square: u8) -> (i8, i8) {
    let index = square.wrapping_sub(1) % SQUARES;
    let (row, nth) = (index / 4, index % 4);
    let column = 2 * nth + (1 - row % 2);
    (row.cast_signed(), column.cast_signed())
}

/// Returns the next square in a direction.
fn beside(square: u8, (rows, columns): (i8, i8)) -> Option<u8> {
    let (row, column) = place(square);
    let (row, column) = (row + rows, column + columns);
    let on_board = |at: i8| (0..8).contains(&at);
    (on_board(row) && on_board(column)).then(|| row.cast_unsigned() * 4 + column.cast_unsigned() / 2 + 1)
}

/// The stored state.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    board: String,
    /// The side to move.
    turn: Side,
    black: PlayerId,
    white: PlayerId,
    /// Consecutive moves without a capture or a man's move.
    quiet: u16,
}

/// The data of a move.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    path: Vec<u8>,
}

impl Rules for Draughts {
    fn name(&self) -> &'static str {
        "draughts"
    }

    fn players(&self) -> RangeInclusive<u16> {
        2..=2
    }

    fn roles(&self) -> &'static [&'static str] {
        &["black", "white"]
    }

    fn open(&self, players: &[PlayerId], _seed: [u8; 32]) -> Result<Opening, Refusal> {
        let [black, white] = players else {
            return Err(Refusal::new(Code::TooFewPlayers, "draughts is for two players"));
        };
        let (first, black, white) = (black.clone(), black.clone(), white.clone());
        let state = State { board: Board::default().to_string(), turn: Side::Black, black, white, quiet: 0 };
        Ok(Opening { state: json!(state), first })
    }

    fn check(&self, attempt: &Attempt<'_>) -> Result<Outcome, Refusal> {
        let (state, board) = read_state(attempt.state)?;
        let made = read_move(attempt, &board, state.turn)?;
        let (after, man_moved) = board.after(&made);
        let is_quiet = made.takes.is_empty() && !man_moved;
        let quiet = if is_quiet { state.quiet.saturating_add(1) } else { 0 };
        let turn = state.turn.other();
        let over = |winner, reason: &str| Next::Over { winner, reason: reason.to_owned() };
        let next = if after.moves(turn).is_empty() {
            over(Some(attempt.player.clone()), "no_moves_left")
        } else if quiet >= QUIET_MOVES_MAX {
            over(None, "draw_without_progress")
        } else {
            Next::Turn(if turn == Side::Black { state.black.clone() } else { state.white.clone() })
        };
        Ok(Outcome { state: json!(State { board: after.to_string(), turn, quiet, ..state }), next })
    }

    /// The winner has one more win on the board `draughts.wins`.
    fn awards(&self, ended: &Ended<'_>) -> Vec<Award> {
        let win =
            |winner: &PlayerId| Award { player: winner.clone(), board: WINS.to_owned(), score: 1, sub: 0 };
        ended.winner.map(win).into_iter().collect()
    }
}

fn read_state(state: &Value) -> Result<(State, Board), Refusal> {
    let fault = || {
        let sentence = "the stored game is no game of draughts: tell who runs the server";
        Refusal::new(Code::RulesFault, sentence)
    };
    let state = State::deserialize(state).map_err(|_| fault())?;
    let board = state.board.parse().map_err(|_| fault())?;
    Ok((state, board))
}

fn read_move(attempt: &Attempt<'_>, board: &Board, side: Side) -> Result<Move, Refusal> {
    if attempt.kind != "move" {
        let sentence = "draughts has one type of move, `move`: use it, or resign";
        return Err(Refusal::at(Code::MoveNotAllowed, "type", sentence));
    }
    let data = Data::deserialize(attempt.data).map_err(|error| {
        let sentence = format!("a move is {{\"path\": [11, 15]}}: {error}");
        Refusal::at(Code::BadInput, "data", sentence)
    })?;
    let Data { path } = data;
    let in_range = path.iter().all(|square| (1..=SQUARES).contains(square));
    if !(2..=PATH_LEN_MAX).contains(&path.len()) || !in_range {
        let sentence = format!("a path has 2 to {PATH_LEN_MAX} squares with numbers from 1 to {SQUARES}");
        return Err(Refusal::at(Code::BadInput, "data.path", sentence));
    }
    let moves = board.moves(side);
    if let Some(made) = moves.iter().find(|legal| legal.path == path) {
        return Ok(made.clone());
    }
    let ends = |legal: &&Move| legal.path.first() == path.first() && legal.path.last() == path.last();
    let same_ends: Vec<&Move> =
        if path.len() == 2 { moves.iter().filter(ends).collect() } else { Vec::new() };
    match same_ends.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(illegal(&path, &moves)),
        several => {
            let sentence =
                format!("several captures go there: write the whole of {}", names(several.iter().copied()));
            Err(Refusal::at(Code::IllegalMove, "data.path", sentence))
        }
    }
}

fn illegal(path: &[u8], moves: &[Move]) -> Refusal {
    let must_take = moves.iter().any(|legal| !legal.takes.is_empty());
    let why = if must_take {
        "you must take, and take all that the capture reaches"
    } else {
        "no piece of yours can do that"
    };
    let tried = Move { path: path.to_vec(), takes: Vec::new() };
    let sentence = format!("{tried}: {why}; you can move {}", names(moves.iter()));
    Refusal::at(Code::IllegalMove, "data.path", sentence)
}

fn names<'a>(moves: impl Iterator<Item = &'a Move>) -> String {
    let mut names: Vec<String> = moves.take(MOVES_NAMED_MAX + 1).map(Move::to_string).collect();
    if names.len() > MOVES_NAMED_MAX {
        names[MOVES_NAMED_MAX] = "and others".to_owned();
    }
    names.join(", ")
}
