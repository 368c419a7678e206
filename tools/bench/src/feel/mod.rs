//! How a game feels on links from good to poor: the arena, on virtual time and from a seed.
//!
//! The rules are those of `arena`, step for step. Hub, sessions and rooms are the real ones; clocks and
//! network are simulated ([`parlor_sim`]). So a minute takes a second or two, and one seed gives the same
//! minute again.

mod figures;
mod link;
mod play;
mod watch;

pub(crate) use link::Quality;

use super::args::FeelArgs;
use super::table::{Table, figure};
use crate::output::{print, tell};
use figures::Figures;
use serde_json::json;

/// Runs the bench.
///
/// # Errors
/// What kept a member from playing.
pub(crate) fn run(args: &FeelArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for quality in &args.links {
        for rtt_ms in &args.rtt {
            tell(&format!("{rtt_ms} ms, {}", quality.as_str()));
            rows.push(row(*rtt_ms, *quality, args.seconds, args.common.seed)?);
        }
    }
    let setting = json!({ "seed": args.common.seed, "seconds": args.seconds, "tick_hz": parlor_demos::arena::HZ, "members": 2 });
    let notes = ["each row is the same minute again for the same seed; \"misses\" names aims that a row does not reach".to_owned()];
    print("feel", args.common.json, &setting, &rows, &notes, &table(&rows))
}

fn row(rtt_ms: u32, quality: Quality, seconds: u32, seed: u64) -> anyhow::Result<Figures> {
    let span_us = u64::from(seconds) * 1_000_000;
    let played = play::play(rtt_ms, quality, span_us, seed)?;
    Figures::of(&played, rtt_ms, quality, span_us)
}

fn table(rows: &[Figures]) -> Table {
    let mut table = Table::new(&[
        "RTT ms",
        "jitter ms",
        "loss %",
        "own input ticks",
        "foreseen %",
        "undisturbed %",
        "late",
        "aged out",
        "pushes",
        "corrections",
        "shots",
        "once",
        "hits",
        "agreed %",
        "beyond",
        "even %",
        "delay p95 ms",
        "of ms",
        "lead ms",
        "clock ms",
        "misses",
    ]);
    for it in rows {
        table.row(vec![
            it.rtt_ms.to_string(),
            it.jitter_ms.to_string(),
            figure(Some(it.loss_percent), 0),
            it.own_input_latency_ticks_max.map_or_else(|| "–".to_owned(), |ticks| ticks.to_string()),
            figure(it.foreseen_percent, 2),
            figure(it.foreseen_undisturbed_percent, 2),
            it.inputs_late.to_string(),
            it.inputs_aged_out.to_string(),
            it.pushes.to_string(),
            format!("{} + {}", it.corrections_pushed, it.corrections_calm),
            it.shots.to_string(),
            it.shots_shown_once.to_string(),
            it.hits.to_string(),
            figure(it.hits_agreed_percent, 2),
            it.shots_beyond_rewind.to_string(),
            figure(it.pictures_even_percent, 2),
            figure(Some(it.render_delay_ms_p95), 1),
            figure(Some(it.render_delay_ms_aim), 1),
            figure(Some(it.lead_ms), 0),
            figure(Some(it.clock_error_ms_max), 1),
            it.misses.join(", "),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_plays_the_same_game_and_another_one_another() {
        let play = |seed| row(80, Quality::Poor, 3, seed).unwrap();
        let first = play(7);
        assert!(first.shots > 0 && first.pictures > 0, "there is something to compare: {first:?}");
        assert_eq!(first, play(7));
        assert_ne!(first.trace, play(8).trace);
    }

    #[test]
    fn on_a_clean_link_nothing_is_missed() {
        let figures = row(40, Quality::Clean, 8, 1).unwrap();
        assert_eq!(figures.misses, Vec::<&str>::new(), "{figures:?}");
        assert!(figures.pushes > 0 && figures.hits > 0 && figures.order_changes_per_second >= 4.0);
    }
}
