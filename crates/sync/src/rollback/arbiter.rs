//! The arbiter: settles ticks, and tracks to whom settled ticks must be sent.

use super::config::Config;
use super::log::Log;
use super::messages::From;
use crate::limits::{ROLLBACK_PLAYERS_MAX, ROLLBACK_SPECTATORS_MAX};
use parlor_proto::Tick;

/// Consecutive inputs in time that earn one tick of patience.
const EARNS: u32 = 16;
/// Ticks of silence after which an end is sent nothing more until it is heard again.
const SILENT_TICKS: i32 = 60;
/// Ticks without progress after which an end is also sent the inputs of others.
const STUCK_TICKS: i32 = 8;

/// The arbiter's record of one player.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    patience: u32,
    in_time: u32,
    is_gone: bool,
}

/// An end that gets settled ticks.
#[derive(Clone, Copy, Debug)]
struct Follower {
    who: From,
    /// All ticks before this one are settled there, by its last word.
    settled: Tick,
    /// The tick of its last progress, and of its last message.
    moved: Tick,
    heard: Tick,
}

/// The arbiter's part of a session.
#[derive(Debug)]
pub(super) struct Arbiter {
    window: i32,
    /// Steps run ahead after which a missing input is late.
    late_after: i32,
    patience_max: u32,
    standings: [Standing; ROLLBACK_PLAYERS_MAX],
    players: u8,
    /// Since when it waits for the oldest tick, and for which players, one bit each.
    waits: Option<(Tick, u8)>,
    followers: Vec<Follower>,
    pub(super) log: Log,
}

impl Arbiter {
    pub(super) fn new(config: &Config) -> Self {
        let standing = Standing { patience: config.patience, ..Standing::default() };
        let window = i32::try_from(config.window).expect("windows are short");
        Arbiter {
            window,
            // The other half of the window covers the return path of settled ticks: without it the others
            // would stall for that time.
            late_after: (window + 1) / 2,
            patience_max: config.patience,
            standings: [standing; ROLLBACK_PLAYERS_MAX],
            players: config.players,
            waits: None,
            followers: Vec::with_capacity(ROLLBACK_PLAYERS_MAX + ROLLBACK_SPECTATORS_MAX),
            log: Log::new(config.count(), config.history, config.begin),
        }
    }

    pub(super) fn left(&mut self, player: u8) {
        if let Some(standing) = self.standings.get_mut(usize::from(player)) {
            standing.is_gone = true;
        }
    }

    /// Decides whether the oldest tick can be settled, and returns the players whose inputs are missed, one
    /// bit each. `absent` has a bit for each missing input. `ahead` is the number of steps run from that tick
    /// on.
    pub(super) fn decide(&mut self, absent: u8, ahead: i32, elapsed: Tick) -> Option<u8> {
        let late = (0..self.players)
            .filter(|player| absent & 1 << player != 0 && !self.standings[usize::from(*player)].is_gone)
            .fold(0u8, |late, player| late | 1 << player);
        let mut waited = 0;
        if late != 0 {
            if ahead < self.late_after {
                return None;
            }
            let (since, by) = *self.waits.get_or_insert((elapsed, 0));
            self.waits = Some((since, by | late));
            waited = u32::try_from(elapsed.since(since)).unwrap_or(0);
            let is_waited_for =
                |player: u8| late & 1 << player != 0 && waited < self.standings[usize::from(player)].patience;
            if (0..self.players).any(is_waited_for) {
                return None;
            }
        }
        let kept_waiting = self.waits.take().map_or(0, |(since, by)| {
            waited = waited.max(u32::try_from(elapsed.since(since)).unwrap_or(0));
            by
        });
        for (standing, player) in self.standings.iter_mut().zip(0..self.players) {
            standing.settled(kept_waiting & 1 << player != 0, absent & 1 << player != 0, waited);
            standing.patience = standing.patience.min(self.patience_max);
        }
        Some(absent)
    }

    /// Records an end's progress, so that it gets what comes after. The caller has checked that `settled` is
    /// possible.
    pub(super) fn heard(&mut self, who: From, settled: Tick, elapsed: Tick) {
        if let Some(follower) = self.followers.iter_mut().find(|follower| follower.who == who) {
            follower.heard = elapsed;
            if settled.is_newer_than(follower.settled) {
                follower.moved = elapsed;
            }
            // Its last word counts, also an older one: a process that begins the lane again has settled nothing.
            // A message that was overtaken is made up for by the next one.
            follower.settled = settled;
            return;
        }
        let is_other = |who: From| matches!(who, From::Other(_));
        let others = self.followers.iter().filter(|follower| is_other(follower.who)).count();
        if is_other(who) && others >= ROLLBACK_SPECTATORS_MAX {
            // An end that was silent for long is replaced.
            let gone = self
                .followers
                .iter()
                .position(|follower| is_other(follower.who) && elapsed.since(follower.heard) > SILENT_TICKS);
            let Some(gone) = gone else { return };
            self.followers.swap_remove(gone);
        }
        self.followers.push(Follower { who, settled, moved: elapsed, heard: elapsed });
    }

    /// The oldest tick that some player may not know to be settled.
    pub(super) fn untold(&self, settled: Tick) -> Tick {
        self.followers.iter().filter(|follower| matches!(follower.who, From::Player(_))).fold(
            settled,
            |oldest, follower| {
                if oldest.is_newer_than(follower.settled) { follower.settled } else { oldest }
            },
        )
    }

    /// Returns the `index`th end that needs the stream of settled ticks, and its start.
    pub(super) fn stream(&self, index: usize, settled: Tick, elapsed: Tick) -> Option<(From, Tick)> {
        let wants = |follower: &&Follower| {
            let lag = settled.since(follower.settled);
            let is_behind = match follower.who {
                From::Other(_) => lag > 0,
                From::Player(_) | From::Arbiter => {
                    lag > self.window || lag > 0 && elapsed.since(follower.moved) >= STUCK_TICKS
                }
            };
            is_behind && elapsed.since(follower.heard) <= SILENT_TICKS
        };
        self.followers.iter().filter(wants).nth(index).map(|follower| (follower.who, follower.settled))
    }
}

impl Standing {
    fn settled(&mut self, kept_waiting: bool, missed: bool, waited: u32) {
        if kept_waiting {
            self.patience = self.patience.saturating_sub(waited);
        }
        if missed {
            self.in_time = 0;
            return;
        }
        self.in_time += 1;
        if self.in_time >= EARNS {
            self.in_time = 0;
            self.patience += 1;
        }
    }
}
