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
    Table::of(
        rows,
        &[
            ("RTT ms", |it| it.rtt_ms.to_string()),
            ("jitter ms", |it| it.jitter_ms.to_string()),
            ("loss %", |it| figure(it.loss_percent, 0)),
            ("own input ticks", |it| {
                it.own_input_latency_ticks_max.map_or_else(|| "–".to_owned(), |ticks| ticks.to_string())
            }),
            ("foreseen %", |it| figure(it.foreseen_percent, 2)),
            ("undisturbed %", |it| figure(it.foreseen_undisturbed_percent, 2)),
            ("late", |it| it.inputs_late.to_string()),
            ("aged out", |it| it.inputs_aged_out.to_string()),
            ("pushes", |it| it.pushes.to_string()),
            ("corrections", |it| format!("{} + {}", it.corrections_pushed, it.corrections_calm)),
            ("shots", |it| it.shots.to_string()),
            ("once", |it| it.shots_shown_once.to_string()),
            ("hits", |it| it.hits.to_string()),
            ("agreed %", |it| figure(it.hits_agreed_percent, 2)),
            ("beyond", |it| it.shots_beyond_rewind.to_string()),
            ("even %", |it| figure(it.pictures_even_percent, 2)),
            ("delay p95 ms", |it| figure(it.render_delay_ms_p95, 1)),
            ("of ms", |it| figure(it.render_delay_ms_aim, 1)),
            ("lead ms", |it| figure(it.lead_ms, 0)),
            ("clock ms", |it| figure(it.clock_error_ms_max, 1)),
            ("misses", |it| it.misses.join(", ")),
        ],
    )
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
