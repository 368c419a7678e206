//! Members without a screen.

use crate::args::HeadlessArgs;
use crate::game::{Bot, Script};
use crate::report::Report;
use crate::seat::{Pilot, Seat};
use anyhow::Context;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest sleep between two looks, so that Ctrl-C is noticed.
const NAP_MAX: Duration = Duration::from_millis(50);

/// Who moves a member without a screen: the script, if there is one, otherwise a bot.
pub(crate) fn pilot(args: &HeadlessArgs, seed: u64, skill: f32) -> anyhow::Result<Pilot> {
    let Some(file) = &args.script else { return Ok(Pilot::Bot(Bot::new(seed, skill))) };
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("the script {} cannot be read", file.display()))?;
    let script: Script =
        text.parse().with_context(|| format!("the script {} cannot be used", file.display()))?;
    Ok(Pilot::Script { script, began: None })
}

/// Plays until the time is over, every member's room has ended, or Ctrl-C is pressed. Says on standard error which room it is, and
/// who of the seats becomes its host.
///
/// # Errors
/// If a member cannot go on.
pub(crate) fn play(
    seats: &mut [Seat],
    names: &[String],
    args: &HeadlessArgs,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let end = End::after(args.seconds, stop);
    let mut announced = false;
    loop {
        for seat in seats.iter_mut().filter(|seat| seat.closed().is_none()) {
            seat.turn()?;
        }
        if !announced && let Some(code) = seats.iter().find_map(Seat::open_code) {
            announced = true;
            // Standard output is for the report; whoever starts a host wants the code before it ends.
            let _ = writeln!(std::io::stderr(), "room {code}");
        }
        for (seat, name) in seats.iter_mut().zip(names) {
            if seat.take_promotion() {
                let _ = writeln!(std::io::stderr(), "host {name}");
            }
        }
        let has_enough =
            |seat: &Seat| seat.closed().is_some() || args.updates.is_some_and(|n| seat.updates() >= n);
        if end.is_here() || seats.iter().all(has_enough) {
            return Ok(());
        }
        let rest = seats.iter().filter(|seat| seat.closed().is_none()).map(Seat::rest).min();
        std::thread::sleep(rest.unwrap_or(NAP_MAX).clamp(Duration::from_millis(1), NAP_MAX));
    }
}

/// Reports on seats in the form that was asked for, and leaves.
pub(crate) fn finish(seats: Vec<Seat>, names: &[String], args: &HeadlessArgs) -> anyhow::Result<Vec<Report>> {
    let reports =
        seats.iter().zip(names).map(|(seat, name)| Report::of(seat, name, args.hash_at)).collect::<Vec<_>>();
    let failed = seats.iter().find_map(|seat| match seat.closed() {
        // A room that was never open is a failure; one that ended is not.
        Some(reason) if seat.room().local_id().is_none() => Some(reason.clone()),
        _ => None,
    });
    seats.into_iter().for_each(Seat::leave);
    match failed {
        Some(reason) if !args.json => Err(reason.into()),
        _ => Ok(reports),
    }
}

/// When a command has had enough: after the time that it was given, and when it is told to stop.
pub(crate) struct End<'a> {
    at: Option<Instant>,
    stop: &'a AtomicBool,
}

impl<'a> End<'a> {
    /// So many seconds from now, if any are given.
    pub(crate) fn after(seconds: Option<f64>, stop: &'a AtomicBool) -> Self {
        End { at: seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds)), stop }
    }

    /// Whether it is time to go.
    pub(crate) fn is_here(&self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at) || self.stop.load(Ordering::Relaxed)
    }
}

/// A flag that Ctrl-C and SIGTERM set.
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || set.store(true, Ordering::Relaxed))
        .context("Ctrl-C cannot be listened for")?;
    Ok(flag)
}
