//! Scripted input: a player controlled by a text file, for repeatable measurements and demonstrations.
//!
//! ```text
//! # seconds since the start, then what to do
//! 0.5 left
//! 1.2 dash
//! 2.0 up
//! loop 4.0
//! ```

use std::str::FromStr;

use thiserror::Error;

use super::state::{Dir, Input};

/// A dash is held for this long, so that it is not lost with one late packet.
const DASH_MS: u64 = 130;
/// The longest time a script may name: a day.
const SECONDS_MOST: f64 = 86_400.0;

/// Moves with their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// In the order of time, in milliseconds.
    moves: Vec<(u64, Move)>,
    /// The length of a repetition in milliseconds; never 0.
    period: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Turn(Dir),
    Dash,
}

/// Why a text is no script: the line, counted from 1, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub(crate) struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what is allowed there.
    pub what: Wrong,
}

/// What can be wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Wrong {
    /// Neither `<seconds> <move>` nor `loop <seconds>`.
    #[error("expected `<seconds> <move>` or `loop <seconds>`, for example `1.5 left`; found `{0}`")]
    Shape(String),
    /// The time is no time.
    #[error("`{0}` is no time; allowed are seconds from 0 to 86400, for example `1.5`")]
    Time(String),
    /// The move is unknown.
    #[error("`{0}` is no move; allowed are left, right, up, down, stay and dash")]
    Move(String),
    /// The time is before that of the line above.
    #[error("the time goes back; moves stand in the order of their times")]
    Backwards,
    /// Something follows the loop.
    #[error("nothing may follow `loop`")]
    AfterLoop,
    /// The loop ends before the last move, or is shorter than a millisecond.
    #[error("a loop must be longer than 0 and end after the last move")]
    ShortLoop,
}

impl Script {
    /// What the script wants in this tick, counted from its start, at `hz` ticks per second.
    pub(crate) fn input_at(&self, tick: u32, hz: u32) -> Input {
        let tick_ms = |tick: u64| tick * 1_000 / u64::from(hz.max(1));
        let now = tick_ms(u64::from(tick));
        let (time, repeated) = match self.period {
            Some(period) => (now % period, now >= period),
            None => (now, false),
        };
        let turns = || {
            self.moves.iter().rev().filter_map(|(at, what)| match what {
                Move::Turn(dir) => Some((*at, *dir)),
                Move::Dash => None,
            })
        };
        // Before the first turn of a repetition the last turn of the one before still holds.
        let before = turns().next().filter(|_| repeated).map(|(_, dir)| dir);
        let dir = turns().find(|(at, _)| *at <= time).map(|(_, dir)| dir).or(before).unwrap_or_default();
        // Held at least until the next tick, however slow the ticks are.
        let held = DASH_MS.max(tick_ms(1) + 1);
        let dash =
            self.moves.iter().any(|(at, what)| *what == Move::Dash && *at <= time && time < *at + held);
        Input { dir, dash }
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Script, ScriptError> {
        let mut script = Script::default();
        for (line, words) in (1..).zip(text.lines()) {
            let words: Vec<&str> = words.split('#').next().unwrap_or_default().split_whitespace().collect();
            script.add(&words).map_err(|what| ScriptError { line, what })?;
        }
        Ok(script)
    }
}

impl Script {
    fn add(&mut self, words: &[&str]) -> Result<(), Wrong> {
        let last = self.moves.last().map_or(0, |(at, _)| *at);
        match words {
            [] => Ok(()),
            _ if self.period.is_some() => Err(Wrong::AfterLoop),
            ["loop", seconds] => {
                let period = milliseconds(seconds)?;
                if period <= last {
                    return Err(Wrong::ShortLoop);
                }
                self.period = Some(period);
                Ok(())
            }
            [seconds, name] => {
                let at = milliseconds(seconds)?;
                if at < last {
                    return Err(Wrong::Backwards);
                }
                self.moves.push((at, movement(name)?));
                Ok(())
            }
            _ => Err(Wrong::Shape(words.join(" "))),
        }
    }
}

fn milliseconds(text: &str) -> Result<u64, Wrong> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=SECONDS_MOST).contains(seconds));
    let seconds: f64 = seconds.ok_or_else(|| Wrong::Time(text.to_owned()))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within a day")]
    Ok((seconds * 1_000.0).round() as u64)
}

fn movement(text: &str) -> Result<Move, Wrong> {
    Ok(match text {
        "left" => Move::Turn(Dir::Left),
        "right" => Move::Turn(Dir::Right),
        "up" => Move::Turn(Dir::Up),
        "down" => Move::Turn(Dir::Down),
        "stay" => Move::Turn(Dir::Stay),
        "dash" => Move::Dash,
        _ => return Err(Wrong::Move(text.to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(script: &Script, ticks: impl IntoIterator<Item = u32>) -> Vec<Dir> {
        ticks.into_iter().map(|tick| script.input_at(tick, 10).dir).collect()
    }

    #[test]
    fn moves_hold_until_the_next() {
        let script: Script = "# a start\n0.5 left\n\n1.2 dash # now\n2.0 up\n".parse().unwrap();
        assert_eq!(
            dirs(&script, [0, 4, 5, 19, 20, 900]),
            [Dir::Stay, Dir::Stay, Dir::Left, Dir::Left, Dir::Up, Dir::Up]
        );
        let dashes: Vec<u32> = (0..900).filter(|tick| script.input_at(*tick, 30).dash).collect();
        assert_eq!(dashes, [36, 37, 38, 39], "1.2 s is tick 36");
    }

    #[test]
    fn a_loop_repeats_and_carries_the_direction_over() {
        let script: Script = "0.5 left\n1 up\nloop 2.0".parse().unwrap();
        assert_eq!(
            dirs(&script, [0, 5, 10, 20, 24, 25, 30]),
            [Dir::Stay, Dir::Left, Dir::Up, Dir::Up, Dir::Up, Dir::Left, Dir::Up]
        );
    }

    #[test]
    fn a_dash_reaches_some_tick_at_every_rate() {
        let script: Script = "0.505 dash".parse().unwrap();
        for hz in [1, 2, 7, 30, 144] {
            assert!((0..3 * hz).any(|tick| script.input_at(tick, hz).dash), "{hz} Hz");
        }
        assert!(!script.input_at(u32::MAX, 0).dash, "no rate panics");
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        let message = |text: &str| text.parse::<Script>().unwrap_err().to_string();
        assert_eq!(
            message("0.5 left\n# fine\n0.7 jump"),
            "line 3: `jump` is no move; allowed are left, right, up, down, stay and dash"
        );
        assert_eq!(
            message("soon left"),
            "line 1: `soon` is no time; allowed are seconds from 0 to 86400, for example `1.5`"
        );
        assert!(message("NaN left").contains("is no time"));
        assert!(message("-1 left").contains("is no time"));
        assert_eq!(
            message("left"),
            "line 1: expected `<seconds> <move>` or `loop <seconds>`, for example `1.5 left`; found `left`"
        );
        assert!(message("2 left\n1 up").starts_with("line 2: the time goes back"));
        assert!(message("loop 1\n2 up").contains("nothing may follow"));
        assert!(message("2 left\nloop 2").contains("end after the last move"));
        assert!(message("loop 0").contains("longer than 0"));
    }
}
