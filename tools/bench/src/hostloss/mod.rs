//! How long a game pauses when its host is gone, on virtual time and from a seed.
//!
//! Hub, sessions and rooms are the real ones; clocks and network are simulated ([`parlor_sim`]). Every death
//! is in a room of its own, drawn from the seed, so one seed gives the same figures.

mod game;
mod runs;

use super::args::HostlossArgs;
use super::table::{Table, figure};
use super::tally::percentile;
use crate::output::{print, tell};
use anyhow::Context;
use parlor_sim::Link;
use runs::{Death, Hitch};
use serde::Serialize;
use serde_json::json;

/// Players of a room, the host among them.
const PLAYERS: usize = 8;
/// How many of 1,000 packets are lost, each way.
const LOSS_PER_MILLE: u32 = 20;
/// Aims of the project.
const P50_MS_MAX: u32 = 400;
const P99_MS_MAX: u32 = 1_000;

/// The figures of one link.
#[derive(Debug, PartialEq, Serialize)]
struct Figures {
    rtt_ms: u64,
    loss_percent: f64,
    deaths: u64,
    /// From the last state of the old host to the first one of the new, at the player who waits longest.
    pause_ms_p50: u32,
    pause_ms_p99: u32,
    /// What is waited on this link if nothing is lost and nothing has to be rounded up to a tick: silence and one round trip.
    floor_ms: f64,
    /// Inputs that the old host had used, as some player saw, and that the new one's state does not have.
    inputs_lost: u64,
    /// Observed steps whose state two hosts wrote, and epochs under which two wrote.
    split_brains: u64,
    misses: Vec<&'static str>,
}

/// What does not depend on the link.
#[derive(Debug, Serialize)]
struct Others {
    quiet_minutes: u32,
    false_migrations_per_hour: f64,
    hitch_of_game_500_ms: Hitch,
    hitch_of_process_500_ms: Hitch,
    partitions: u32,
    partitions_migrated: u64,
    partitions_split_brains: u64,
    partitions_inputs_lost: u64,
}

/// Runs the bench.
///
/// # Errors
/// If a room goes another way than it must.
pub(crate) fn run(args: &HostlossArgs) -> anyhow::Result<()> {
    let seed = args.common.seed;
    let rows = args.rtt.iter().map(|rtt_ms| {
        tell(&format!("{rtt_ms} ms"));
        row(*rtt_ms, args.silence, args.deaths, seed)
    });
    let rows = rows.collect::<anyhow::Result<Vec<_>>>()?;
    let others = others(args)?;
    let setting = json!({
        "seed": seed, "players": PLAYERS, "tick_hz": game::HZ, "host_silence_ms": args.silence, "others": others,
    });
    print("hostloss", args.common.json, &setting, &rows, &notes(&others), &table(&rows))
}

fn row(rtt_ms: u64, silence_ms: u64, deaths: u32, seed: u64) -> anyhow::Result<Figures> {
    let link = Link::quic().latency_ms(rtt_ms / 2).loss(LOSS_PER_MILLE);
    let deaths: Vec<Death> = (0..u64::from(deaths))
        .map(|number| runs::death(link, silence_ms, seed, number))
        .collect::<Result<_, _>>()?;
    let mut pauses: Vec<u32> = deaths.iter().map(|death| death.pause_ms).collect();
    let pause_ms_p50 = percentile(&mut pauses, 50).context("nobody died")?;
    let pause_ms_p99 = percentile(&mut pauses, 99).context("nobody died")?;
    let inputs_lost = deaths.iter().map(|death| death.inputs_lost).sum();
    let split_brains = deaths.iter().map(|death| death.split_brains).sum();
    let aims = [
        ("p50", pause_ms_p50 <= P50_MS_MAX),
        ("p99", pause_ms_p99 <= P99_MS_MAX),
        ("inputs", inputs_lost == 0),
        ("split brains", split_brains == 0),
    ];
    #[expect(clippy::cast_precision_loss, reason = "a second or so")]
    let floor_ms = silence_ms as f64 * 0.75 + rtt_ms as f64;
    Ok(Figures {
        rtt_ms,
        loss_percent: f64::from(LOSS_PER_MILLE) / 10.0,
        deaths: deaths.len() as u64,
        pause_ms_p50,
        pause_ms_p99,
        floor_ms,
        inputs_lost,
        split_brains,
        misses: aims.into_iter().filter(|(_, is_met)| !is_met).map(|(name, _)| name).collect(),
    })
}

fn others(args: &HostlossArgs) -> anyhow::Result<Others> {
    let seed = args.common.seed;
    tell(&format!("{} minutes without a death", args.minutes));
    let migrations = runs::quiet(args.minutes, seed)?;
    tell(&format!("{} rooms with partitions", args.partitions));
    let partitions = (0..u64::from(args.partitions)).map(|number| runs::partitions(seed, number));
    let partitions = partitions.collect::<anyhow::Result<Vec<_>>>()?;
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    let false_migrations_per_hour = migrations as f64 * 60.0 / f64::from(args.minutes);
    Ok(Others {
        quiet_minutes: args.minutes,
        false_migrations_per_hour,
        hitch_of_game_500_ms: runs::hitch_of_game(seed)?,
        hitch_of_process_500_ms: runs::hitch_of_process(seed)?,
        partitions: args.partitions,
        partitions_migrated: partitions.iter().map(|it| it.migrations).sum(),
        partitions_split_brains: partitions.iter().map(|it| it.split_brains).sum(),
        partitions_inputs_lost: partitions.iter().map(|it| it.inputs_lost).sum(),
    })
}

fn table(rows: &[Figures]) -> Table {
    Table::of(
        rows,
        &[
            ("RTT ms", |it| it.rtt_ms.to_string()),
            ("loss %", |it| figure(it.loss_percent, 0)),
            ("deaths", |it| it.deaths.to_string()),
            ("p50 ms", |it| it.pause_ms_p50.to_string()),
            ("p99 ms", |it| it.pause_ms_p99.to_string()),
            ("floor ms", |it| figure(it.floor_ms, 0)),
            ("inputs lost", |it| it.inputs_lost.to_string()),
            ("split brains", |it| it.split_brains.to_string()),
            ("misses", |it| it.misses.join(", ")),
        ],
    )
}

fn notes(others: &Others) -> Vec<String> {
    let hitch = |what: &str, hitch: Hitch| {
        let comes = match hitch.is_player_after_ms {
            Some(ms) => format!("another player is the host, and it is a player {ms} ms after it goes on"),
            None => "it stays the host".to_owned(),
        };
        format!("{what} stands still for 500 ms: {comes}; the others wait {} ms", hitch.pause_ms)
    };
    vec![
        format!(
            "{} minutes at 100 ± 20 ms with 5% loss: {:.1} migrations an hour without a death",
            others.quiet_minutes, others.false_migrations_per_hour
        ),
        hitch("a game loop", others.hitch_of_game_500_ms),
        hitch("a whole process", others.hitch_of_process_500_ms),
        format!(
            "{} rooms with deaths and partitions: {} migrations, {} split brains, {} used inputs lost",
            others.partitions,
            others.partitions_migrated,
            others.partitions_split_brains,
            others.partitions_inputs_lost
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_host_is_followed_within_the_aims() {
        let figures = row(50, game::SILENCE_MS, 4, 1).unwrap();
        assert_eq!(figures.misses, Vec::<&str>::new(), "{figures:?}");
        assert_eq!(figures, row(50, game::SILENCE_MS, 4, 1).unwrap(), "the same seed gives the same figures");
        let floor_ms = 187 + 50;
        assert!(figures.pause_ms_p50 >= floor_ms, "nothing is faster than what it consists of: {figures:?}");
    }

    #[test]
    fn a_game_that_stands_still_is_waited_for_and_a_process_is_not() {
        assert_eq!(runs::hitch_of_game(3).unwrap().is_player_after_ms, None);
        assert!(runs::hitch_of_process(3).unwrap().is_player_after_ms.is_some());
    }

    #[test]
    fn partitions_split_nothing() {
        let all: Vec<Death> = (0..3).map(|number| runs::partitions(5, number).unwrap()).collect();
        assert!(all.iter().map(|it| it.migrations).sum::<u64>() > 3, "{all:?}");
        assert!(all.iter().all(|it| it.split_brains == 0 && it.inputs_lost == 0), "{all:?}");
    }
}
