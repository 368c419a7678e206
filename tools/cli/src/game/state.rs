//! Shared types: a player's input, and the authority's values under their keys.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Steps per second. All durations of the game are counted in steps.
pub(crate) const HZ: u32 = 30;
/// Width of the field in units.
pub(crate) const FIELD_WIDTH: f32 = 60.0;
/// Height of the field in units. A unit is as high as it is wide.
pub(crate) const FIELD_HEIGHT: f32 = 40.0;

/// Where a magpie wants to fly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Dir {
    /// None: no direction was given yet.
    #[default]
    Stay,
    /// To the top of the screen.
    Up,
    /// To the bottom of the screen.
    Down,
    /// To the left.
    Left,
    /// To the right.
    Right,
}

impl Dir {
    /// The step of length 1 in this direction; `y` grows downwards.
    pub(crate) fn vector(self) -> (f32, f32) {
        match self {
            Dir::Stay => (0.0, 0.0),
            Dir::Up => (0.0, -1.0),
            Dir::Down => (0.0, 1.0),
            Dir::Left => (-1.0, 0.0),
            Dir::Right => (1.0, 0.0),
        }
    }
}

/// What a player wants in one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Input {
    /// The direction last pressed.
    pub dir: Dir,
    /// Whether to dash, if the dash is ready.
    pub dash: bool,
}

/// What a magpie is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Motion {
    /// Flying in its direction.
    #[default]
    Gliding,
    /// In its burst: it knocks magpies that it touches.
    Dashing,
    /// Knocked: it tumbles and does not obey.
    Dizzy,
}

/// The value of `p/<id>`: a magpie as it is now. Its numbers that grow or shrink with time are stored as the tick at
/// which they end, so that a magpie that stands still costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlayerState {
    /// Distance from the left edge, 0 to [`FIELD_WIDTH`].
    pub x: f32,
    /// Distance from the top edge, 0 to [`FIELD_HEIGHT`].
    pub y: f32,
    /// Where it last flew to; never [`Dir::Stay`] once it has flown.
    pub heading: Dir,
    /// What it is doing.
    pub motion: Motion,
    /// Whether it has just been knocked and cannot be knocked again yet.
    pub safe: bool,
    /// The gems it carries.
    pub score: u32,
    /// The tick from which it may dash again.
    pub dash_ready_at: u32,
}

/// The value of `n/<id>`: what of a player never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Badge {
    /// The player's own name; the drawing code sanitizes it.
    pub name: String,
    /// Number of the player's colour, the lowest that was free.
    pub slot: u8,
    /// The player's letter, unique in the room.
    pub glyph: char,
}

/// The value of `g/<n>`: a gem that lies or flies on the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GemState {
    /// Distance from the left edge.
    pub x: f32,
    /// Distance from the top edge.
    pub y: f32,
    /// What it adds to the score.
    pub worth: u32,
}

/// The part of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Fewer than two players: they may warm up, nothing counts.
    #[default]
    Waiting,
    /// The round is on.
    Playing,
    /// The winner is shown.
    Over,
}

/// The value of `round`. It changes at most twice per round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RoundState {
    /// Number of the round, from 1; 0 before the first.
    pub number: u32,
    /// The part of it.
    pub phase: Phase,
    /// The tick at which the phase ends; without meaning while waiting.
    pub ends_at: u32,
    /// The winners: more than one after a tie, none if no gem was found. Empty unless [`Phase::Over`].
    pub winners: Vec<u32>,
    /// What the winners carried.
    pub best: u32,
}

/// Ticks from `now` until `tick`, 0 once it has come. Ticks wrap around.
pub(crate) fn ticks_until(tick: u32, now: u32) -> u32 {
    tick.wrapping_sub(now).cast_signed().max(0).cast_unsigned()
}

/// The name of one published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// A [`PlayerState`].
    Player(u32),
    /// A [`Badge`].
    Badge(u32),
    /// A [`GemState`].
    Gem(u16),
    /// The [`RoundState`].
    Round,
}

impl Key {
    /// Reads a key; `None` if it is not one of the game's.
    pub(crate) fn parse(text: &str) -> Option<Key> {
        if text == "round" {
            return Some(Key::Round);
        }
        let (kind, number) = text.split_once('/')?;
        match kind {
            "p" => number.parse().ok().map(Key::Player),
            "n" => number.parse().ok().map(Key::Badge),
            "g" => number.parse().ok().map(Key::Gem),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Player(id) => write!(f, "p/{id}"),
            Key::Badge(id) => write!(f, "n/{id}"),
            Key::Gem(number) => write!(f, "g/{number}"),
            Key::Round => f.write_str("round"),
        }
    }
}

/// One published value. It serialises as what it holds, without a mark of its kind: the key tells the kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Value {
    /// Under [`Key::Player`].
    Player(PlayerState),
    /// Under [`Key::Badge`].
    Badge(Badge),
    /// Under [`Key::Gem`].
    Gem(GemState),
    /// Under [`Key::Round`].
    Round(RoundState),
}
