//! One input from end to end: from the step in which a player pressed a key to what every member drew of it. The
//! packet logs of both ends say when, in the room's time, which all members measure.

mod log;

use crate::args::TraceArgs;
use anyhow::{Context, bail};
use log::Log;
use parlor_client_core::{LoggedMoment, Moment};
use parlor_proto::{MemberId, Tick};
use parlor_terminal::print::{print_json, say};
use serde::Serialize;
use std::time::Duration;

/// One thing that happened to an input.
#[derive(Debug, PartialEq, Serialize)]
struct Passage {
    /// Since the player's step.
    at_ms: f64,
    member: u32,
    what: String,
}

/// Prints the way of one input.
///
/// # Errors
/// A file is no packet log, no log is the player's, or the input is in none of them.
pub(crate) fn run(args: &TraceArgs) -> anyhow::Result<()> {
    let logs: Vec<Log> = args.files.iter().map(|path| Log::read(path)).collect::<anyhow::Result<_>>()?;
    let player = args.player.map(MemberId);
    let of_player = match player {
        Some(player) => logs.iter().find(|log| log.member == player),
        None => logs.iter().find(|log| !log.is_host).or(logs.first()),
    };
    let of_player = of_player.with_context(|| match player {
        Some(player) => format!("none of the logs is that of player {}", player.0),
        None => "name a packet log of each member, written with --packet-log".to_owned(),
    })?;
    let tick = match args.input {
        Some(tick) => Tick(tick),
        None => traceable(of_player, &logs).context("no input of this player is in all of the logs")?,
    };
    let passages = passages(of_player, &logs, tick)?;
    if args.json {
        return print_json(&serde_json::json!({
            "player": of_player.member.0, "input": tick.0, "passages": passages,
        }));
    }
    say(&format!("input of step {} of player {}, at {} Hz", tick.0, of_player.member.0, of_player.rate.hz()));
    for Passage { at_ms, member, what } in &passages {
        say(&format!("{at_ms:>9.1} ms  player {member:<4} {what}"));
    }
    Ok(())
}

/// The input in the middle of those that all logs cover.
fn traceable(of_player: &Log, logs: &[Log]) -> Option<Tick> {
    let is_shown = |log: &Log, tick: Tick| {
        let is_later = |moment: &LoggedMoment| moment.moment != Moment::Step && moment.tick.0 > tick.0;
        log.is_host && log.step(tick).is_some() || log.first(is_later).is_some()
    };
    let steps = of_player.moments.iter().filter(|moment| moment.moment == Moment::Step);
    let ticks: Vec<Tick> = steps
        .map(|moment| moment.tick)
        .filter(|tick| of_player.sent.iter().any(|(_, newest)| newest == tick))
        .filter(|tick| logs.iter().all(|log| is_shown(log, *tick)))
        .collect();
    ticks.get(ticks.len() / 2).copied()
}

/// All that the logs say of an input, in the order of time.
///
/// # Errors
/// The player's log does not have the step.
fn passages(of_player: &Log, logs: &[Log], tick: Tick) -> anyhow::Result<Vec<Passage>> {
    let player = of_player.member;
    let Some(pressed) = of_player.step(tick) else {
        bail!("the log of player {} has no step {}", player.0, tick.0);
    };
    let mut found = vec![(pressed, player, format!("presses: step {} runs", tick.0))];
    let left = of_player.sent.iter().find(|(_, newest)| newest.0 >= tick.0);
    found.extend(left.map(|(at, _)| (*at, player, "sends it".to_owned())));
    let mut used = None;
    for host in logs.iter().filter(|log| log.is_host && log.member != player) {
        let is_it = |(_, from, newest): &&(Duration, Option<MemberId>, Tick)| {
            from.is_none_or(|from| from == player) && newest.0 >= tick.0
        };
        let came = host.came.iter().find(is_it).map(|(at, ..)| *at);
        found.extend(came.map(|at| (at, host.member, "receives it, as host".to_owned())));
        let ran = host.step(tick);
        if let Some(ran) = ran {
            let margin = came.map(|came| ran.as_secs_f64() * 1e3 - came.as_secs_f64() * 1e3);
            let how = match margin {
                Some(margin) if margin >= 0.0 => {
                    format!("uses it in step {}, {margin:.1} ms after it came", tick.0)
                }
                Some(margin) => format!("runs step {} without it: it comes {:.1} ms later", tick.0, -margin),
                None => format!("runs step {}, and has not got it", tick.0),
            };
            found.push((ran, host.member, how));
        }
        used = used.or(ran);
    }
    for log in logs.iter().filter(|log| !log.is_host) {
        let has_it = |moment: &LoggedMoment| match moment.moment {
            // The player itself is told which of its inputs are in a state.
            Moment::State { input: Some(input) } if log.member == player => input.0 >= tick.0,
            Moment::State { .. } => log.member != player && moment.tick.0 >= tick.0,
            Moment::Step | Moment::Drawn => false,
        };
        let told = log.first(|moment| used.is_none_or(|used| moment.room_time >= used) && has_it(moment));
        let Some(told) = told else { continue };
        let what = format!("has the state of step {}, with it", told.tick.0);
        found.push((told.room_time, log.member, what));
        let is_drawn = |moment: &LoggedMoment| {
            moment.moment == Moment::Drawn
                && moment.tick.0 >= told.tick.0
                && moment.room_time >= told.room_time
        };
        let drawn = log.first(is_drawn);
        found
            .extend(drawn.map(|drawn| (drawn.room_time, log.member, format!("draws step {}", drawn.tick.0))));
    }
    found.sort_by_key(|(at, ..)| *at);
    let since = |at: Duration| (at.as_secs_f64() - pressed.as_secs_f64()) * 1e3;
    Ok(found
        .into_iter()
        .map(|(at, member, what)| Passage { at_ms: since(at), member: member.0, what })
        .collect())
}

#[cfg(test)]
mod tests;
