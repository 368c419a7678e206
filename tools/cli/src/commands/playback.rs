//! `parlor replay` of a recording: it is played, shown and verified.

use crate::args::ReplayArgs;
use crate::playback::{Edge, Film, Pace, joining, record, watch};
use anyhow::{Context, bail};
use parlor_proto::Instant;
use parlor_sync::audience::Viewer;
use parlor_terminal::print::{print_json, say};
use parlor_terminal::run_until::stop_flag;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a growing recording is read.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the command.
///
/// # Errors
/// If the file cannot be read, is damaged, or does not come to what was recorded.
pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let file = args.file.display();
    let stop = stop_flag()?;
    let mut film = Film::open(&args.file)?;
    let pace = match (args.follow, args.watch) {
        (true, _) => Pace::Behind(Box::new(Edge::open(&args.file)?), args.delay),
        (false, true) => Pace::AsItWas(None),
        (false, false) => Pace::AtOnce,
    };
    let end = args.until.map_or(Duration::MAX, Duration::from_secs_f64);
    let head = film.head().with_context(|| format!("{file} cannot be replayed"))?;
    let Some(head) = head else { bail!("{file} ends within its head: nothing was recorded") };
    if args.watch {
        watch(&mut film, pace, Instant::ZERO + end, &stop)?;
    } else {
        let hz = head.tick_rate.hz();
        if args.json {
            let components = head.schema.components().iter().map(|component| component.name());
            let components: Vec<_> = components.collect();
            let (code, app) = (head.code.to_string(), &head.app);
            print_json(
                &json!({ "what": "room", "code": code, "app": app, "hz": hz, "components": components }),
            )?;
        } else {
            say(&format!("recording of room {} of {:?}, {hz} Hz", head.code, head.app));
        }
        tell(&mut film, pace, Instant::ZERO + end, args, &stop)?;
    }
    sum_up(&film, args)
}

/// Tells what happens.
fn tell(
    film: &mut Film,
    mut pace: Pace,
    end: Instant,
    args: &ReplayArgs,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    // A spectator is not told of what was before it came.
    let mut is_there = !args.follow;
    loop {
        let now = pace.until(film)?.min(end);
        while let Some(step) = film.step(now)? {
            let said = if is_there { record(&step, film.playback(), args.json) } else { None };
            said.iter().for_each(|line| say(line));
        }
        if !is_there && film.playback().records() > 0 {
            is_there = true;
            say(&joining(film.playback(), args.json));
        }
        let is_over = film.is_over() || now >= end || matches!(pace, Pace::AtOnce);
        if is_over || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

/// Says what all of it came to.
fn sum_up(film: &Film, args: &ReplayArgs) -> anyhow::Result<()> {
    let playback = film.playback();
    let agrees = playback.first_difference().is_none();
    let hash = playback.world().map_or(0, |world| world.hash(Viewer::Everything));
    let cut_bytes = film.cut_bytes();
    let seconds = playback.at().saturating_since(Instant::ZERO).as_secs_f64();
    if args.json {
        print_json(&json!({
            "command": "replay",
            "seconds": seconds,
            "records": playback.records(),
            "tick": playback.world().and_then(|world| world.tick()).map(|tick| tick.0),
            "marks": playback.marks(),
            "agrees": agrees,
            "first_difference": playback.first_difference().map(|tick| tick.0),
            "hash": format!("{hash:016x}"),
            "ended": playback.ended().map(|ended| ended.to_string()),
            "cut_bytes": cut_bytes,
            "error": film.error().map(ToString::to_string),
        }))?;
    } else {
        let (records, marks) = (playback.records(), playback.marks());
        let verdict = if agrees { "all agree" } else { "NOT ALL AGREE" };
        say(&format!(
            "{records} records to {seconds:.3} s, {marks} hashes compared: {verdict}; hash at the end {hash:016x}"
        ));
        if cut_bytes > 0 {
            say(&format!("the file was cut: {cut_bytes} bytes at its end are no whole record"));
        }
    }
    if let Some(error) = film.error() {
        bail!("{error}");
    }
    if let Some(tick) = playback.first_difference() {
        bail!("the recording does not come to what was recorded: the first difference is at {tick}");
    }
    Ok(())
}
