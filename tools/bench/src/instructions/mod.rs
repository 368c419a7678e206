//! Instructions of the hub for each packet and message, by part of the program: valgrind's callgrind counts them in
//! a process that plays in a room without sockets, and only while the hub works. A run and one of twice the time
//! are counted; the difference excludes the set-up.

mod args;
mod callgrind;
mod game;

use super::table::{Table, figure};
use super::valgrind;
use crate::output::{print, tell};
use anyhow::{Context, ensure};
pub(crate) use args::{InstructionsArgs, PlayRoomArgs};
use args::{Play, RoomLink};
use callgrind::{ByPart, by_part};
pub(crate) use game::play;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The functions by which a driver uses the hub. None calls another one of them.
const HUB: [&str; 4] = [
    "parlor_hub::hub::Hub::handle_packet",
    "parlor_hub::hub::Hub::poll_output",
    "parlor_hub::hub::cycle::<impl parlor_hub::hub::Hub>::handle_timeout",
    "parlor_hub::hub::cycle::<impl parlor_hub::hub::Hub>::flush",
];

/// What the hub did in the run that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Played {
    messages_relayed: u64,
    packets_sent: u64,
    packets_received: u64,
}

/// One run.
#[derive(Clone, Debug)]
struct Run {
    played: Played,
    instructions: ByPart,
}

/// One row.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    play: Play,
    link: RoomLink,
    packets_per_player_second: f64,
    /// None where members send inputs: the hub counts them with the packets alone.
    messages_delivered_per_player_second: Option<f64>,
    instructions_per_player_second: f64,
    /// Packets in either direction.
    instructions_per_packet: f64,
    instructions_per_delivered_message: Option<f64>,
    /// Instructions for each packet, by part.
    parts_per_packet: BTreeMap<&'static str, f64>,
}

/// Runs the bench.
///
/// # Errors
/// There is no valgrind, or it could not count.
pub(crate) fn run(args: &InstructionsArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for play in Play::ALL {
        for link in [RoomLink::Quic, RoomLink::Websocket] {
            tell(&format!("{} over {}", play.name(), link.name()));
            let once = count(args, (play, link), args.seconds)?;
            let twice = count(args, (play, link), 2 * args.seconds)?;
            rows.push(row((play, link), args.seconds, &once, &twice)?);
        }
    }
    let setting = json!({
        "seconds": args.seconds, "members": game::MEMBERS, "steps_per_second": game::RATE_HZ, "seed": args.common.seed,
    });
    let table = Table::of(
        &rows,
        &[
            ("play", |row: &Row| row.play.name().to_owned()),
            ("link", |row| row.link.name().to_owned()),
            ("packets/player·s", |row| figure(row.packets_per_player_second, 1)),
            ("messages/player·s", |row| figure(row.messages_delivered_per_player_second, 1)),
            ("instructions/packet", |row| figure(row.instructions_per_packet, 0)),
            ("/message", |row| figure(row.instructions_per_delivered_message, 0)),
            ("/player·s", |row| figure(row.instructions_per_player_second, 0)),
            ("by part, for each packet", |row| parts(&row.parts_per_packet)),
        ],
    );
    print("instructions", args.common.json, &setting, &rows, &[], &table)
}

/// The parts, the largest first.
fn parts(of: &BTreeMap<&'static str, f64>) -> String {
    let mut all: Vec<(&str, f64)> = of.iter().map(|(name, count)| (*name, *count)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let texts = all.iter().map(|(name, count)| format!("{name} {count:.0}"));
    texts.collect::<Vec<_>>().join(", ")
}

/// The file of a profile, removed at the end.
struct Profile(PathBuf);

impl Drop for Profile {
    fn drop(&mut self) {
        // It is not there if the run failed.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Counts a run of this length.
fn count(args: &InstructionsArgs, (play, link): (Play, RoomLink), seconds: u32) -> anyhow::Result<Run> {
    let profile =
        Profile(std::env::temp_dir().join(format!("parlor-bench-{}.callgrind", std::process::id())));
    let file = format!("--callgrind-out-file={}", profile.0.display());
    let collect = HUB.map(|function| format!("--toggle-collect={function}"));
    let plain = ["--compress-strings=no", "--compress-pos=no", "--dump-line=no"];
    let mut tool = vec!["--tool=callgrind", "--collect-atstart=no", &file];
    tool.extend(plain.into_iter().chain(collect.iter().map(String::as_str)));
    let options = [("--play", play.name()), ("--link", link.name())];
    let numbers = [("--seconds", u64::from(seconds)), ("--seed", args.common.seed)];
    let options = options.iter().map(|(option, value)| [(*option).to_owned(), (*value).to_owned()]);
    let numbers = numbers.iter().map(|(option, value)| [(*option).to_owned(), value.to_string()]);
    let options: Vec<String> =
        std::iter::once("play-room".to_owned()).chain(options.chain(numbers).flatten()).collect();
    let (played, _) = valgrind::run(&tool, &options)?;
    let counted = std::fs::read_to_string(&profile.0).context("callgrind wrote no profile")?;
    Ok(Run { played, instructions: by_part(&counted) })
}

/// A row from a run and one of twice the time.
///
/// # Errors
/// The hub did nothing in between, or the binary has no symbols.
fn row((play, link): (Play, RoomLink), seconds: u32, once: &Run, twice: &Run) -> anyhow::Result<Row> {
    let more = |of: fn(&Played) -> u64| float(of(&twice.played).saturating_sub(of(&once.played)));
    let packets = more(|played| played.packets_sent + played.packets_received);
    let messages = Some(more(|played| played.messages_relayed)).filter(|messages| *messages > 0.0);
    ensure!(packets > 0.0, "the hub had no packets: there is nothing to count");
    let before = |part: &str| once.instructions.get(part).copied().unwrap_or(0);
    let counts: BTreeMap<&str, f64> = twice
        .instructions
        .iter()
        .map(|(part, count)| (*part, float(count.saturating_sub(before(part)))))
        .collect();
    ensure!(
        counts.contains_key("hub"),
        "this binary has no symbols: build with `--profile profiling`, and run target/profiling/parlor-bench"
    );
    let all: f64 = counts.values().sum();
    let player_seconds = f64::from(seconds) * f64::from(game::MEMBERS);
    Ok(Row {
        play,
        link,
        packets_per_player_second: packets / player_seconds,
        messages_delivered_per_player_second: messages.map(|messages| messages / player_seconds),
        instructions_per_player_second: all / player_seconds,
        instructions_per_packet: all / packets,
        instructions_per_delivered_message: messages.map(|messages| all / messages),
        parts_per_packet: counts.into_iter().map(|(part, count)| (part, count / packets)).collect(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 instructions in minutes of valgrind")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(messages: u64, packets: u64, hub: u64, state: u64) -> Run {
        let played = Played { messages_relayed: messages, packets_sent: packets, packets_received: packets };
        Run { played, instructions: [("hub", hub), ("state engine", state)].into() }
    }

    #[test]
    fn set_up_falls_out_of_the_difference() {
        let (once, twice) = (of(100, 50, 9_000, 1_000), of(180, 90, 10_600, 3_400));
        let row = row((Play::World, RoomLink::Quic), 2, &once, &twice).expect("there is a difference");
        assert_eq!(row.instructions_per_packet, 4_000.0 / 80.0);
        assert_eq!(row.instructions_per_delivered_message, Some(4_000.0 / 80.0));
        assert_eq!(row.packets_per_player_second, 80.0 / 16.0);
        assert_eq!(parts(&row.parts_per_packet), "state engine 30, hub 20");
    }

    #[test]
    fn a_run_without_packets_or_symbols_is_an_error() {
        let (once, mut twice) = (of(100, 50, 9_000, 1_000), of(180, 90, 10_600, 3_400));
        assert!(row((Play::World, RoomLink::Quic), 2, &once, &once).is_err());
        twice.instructions = [("rest", 7)].into();
        let error = row((Play::World, RoomLink::Quic), 2, &once, &twice).expect_err("it has no symbols");
        assert!(error.to_string().contains("--profile profiling"), "{error}");
    }
}
