//! `parlor replay`: a room runs again from its log, or a recording is played.

use super::playback;
use crate::args::ReplayArgs;
use crate::playback::is_recording;
use anyhow::{Context, bail};
use parlor_hub::room::log::{self, LogError, Step};
use parlor_hub::room::{Input, Output};
use parlor_proto::{Instant, MemberId};
use parlor_terminal::print::{print_json, say};
use serde_json::json;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// Runs the command.
///
/// # Errors
/// If the file cannot be read or is neither a log nor a recording.
pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let file = args.file.display();
    if is_recording(&args.file)? {
        return playback::run(args);
    }
    if args.follow || args.watch {
        bail!("{file} is no recording: --follow and --watch are for what Room::recording and --record write");
    }
    let bytes = std::fs::read(&args.file).with_context(|| format!("{file} cannot be read"))?;
    let mut replay = log::replay(bytes.into())
        .with_context(|| format!("{file} is no recording, and cannot be replayed as a log"))?;
    let setup = replay.room().setup().clone();
    if !args.json {
        let max = setup.settings.max_players;
        say(&format!(
            "room {} of {:?}, {max} seats, {} Hz",
            setup.code,
            setup.app,
            setup.settings.tick_rate.hz()
        ));
    }
    let mut counts = Counts::default();
    let mut torn = None;
    let until = args.until.map_or(Duration::MAX, Duration::from_secs_f64);
    let is_wanted = |step: &Result<Step, LogError>| {
        step.as_ref().map_or(true, |step| step.at.saturating_since(setup.opened) < until)
    };
    for step in replay.by_ref().take_while(is_wanted) {
        match step {
            Ok(step) => {
                if !args.json
                    && let Some(line) = transcript(&step, setup.opened)
                {
                    say(&line);
                }
                counts.count(&step);
            }
            Err(error) => torn = Some(error.to_string()),
        }
    }
    let counters = replay.room().counters();
    if args.json {
        return print_json(&json!({
            "command": "replay",
            "code": setup.code.to_string(),
            "app": setup.app,
            "inputs": counts.inputs,
            "outputs": counts.outputs,
            "outputs_hash": format!("{:016x}", counts.hash()),
            "relayed": counters.relayed,
            "state_updates": counters.updates,
            "refused": counts.refused,
            "ended": replay.room().has_ended(),
            "torn": torn,
        }));
    }
    say(&format!(
        "{} inputs, {} outputs with the hash {:016x}, {} messages relayed, {} state updates, {} refused",
        counts.inputs,
        counts.outputs,
        counts.hash(),
        counters.relayed,
        counters.updates,
        counts.refused
    ));
    if let Some(torn) = torn {
        say(&format!("the log ends early: {torn}"));
    }
    Ok(())
}

/// What a replay came to. Two replays of one log have the same.
#[derive(Default)]
struct Counts {
    inputs: u64,
    outputs: u64,
    refused: u64,
    hasher: xxhash_rust::xxh3::Xxh3Default,
}

impl Counts {
    fn count(&mut self, step: &Step) {
        self.inputs += 1;
        self.outputs += step.outputs.len() as u64;
        self.refused += u64::from(step.refused.is_some());
        for output in &step.outputs {
            format!("{output:?}").hash(&mut self.hasher);
        }
    }

    fn hash(&self) -> u64 {
        self.hasher.finish()
    }
}

/// A line for what a person would want to know; messages, acknowledgements and flushes are too many.
fn transcript(step: &Step, opened: Instant) -> Option<String> {
    let at = step.at.saturating_since(opened).as_secs_f64();
    let line = match &step.input {
        Input::Join { name, user, link, spectates } => {
            let user = user.as_ref().map(|user| format!(", user {user:?},")).unwrap_or_default();
            let joins = if *spectates { "joins as a spectator" } else { "joins" };
            format!("{name:?}{user} {joins} over {}", link.as_str())
        }
        Input::Leave { member, reason } => format!("member {member} {reason}"),
        Input::Lost { member, reason } => format!("member {member} {reason}, and may return"),
        Input::Returned { member, name, link, .. } => {
            format!("member {member} returns as {name:?} over {}", link.as_str())
        }
        Input::Forget { member } => format!("member {member} may not return any more"),
        Input::End { reason } => format!("the server ends the room: {reason}"),
        Input::Away { member, reason } => format!("member {member} {reason}, and its seat is kept"),
        Input::Back { member, link } => format!("member {member} is back over {}", link.as_str()),
        Input::Restarted { member, link } => format!("member {member} begins anew over {}", link.as_str()),
        Input::Reopened(reopening) => {
            format!("the room of another node is reopened with {} members", reopening.roster.members.len())
        }
        Input::Claimed { seat, .. } => {
            format!("member {} claims its seat as {:?} over {}", seat.member, seat.name, seat.link.as_str())
        }
        Input::Sealed => "the room is sealed, to move to another node".to_owned(),
        Input::HostSilent { .. } => "nothing is heard of the host".to_owned(),
        Input::Message { .. }
        | Input::Fate { .. }
        | Input::Writable { .. }
        | Input::Path { .. }
        | Input::Reachable { .. }
        | Input::Measured(_)
        | Input::Untaken { .. }
        | Input::Flush => step.refused.as_ref().map(|refused| format!("refused: member {refused}"))?,
    };
    let ended = step.outputs.iter().find_map(|output| match output {
        Output::Ended { reason } => Some(format!("; the room ends: {reason}")),
        _ => None,
    });
    let removed: Vec<MemberId> = step
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Remove { member, .. } => Some(*member),
            _ => None,
        })
        .collect();
    let removed = if removed.is_empty() { String::new() } else { format!("; removed: {removed:?}") };
    Some(format!("{at:>9.3} s  {line}{}{removed}", ended.unwrap_or_default()))
}
