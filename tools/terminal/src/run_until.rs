//! When a program ends: after a given time, and at Ctrl-C or SIGTERM.

use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The end of a program's loop.
#[derive(Debug)]
pub struct End<'a> {
    at: Option<Instant>,
    stop: &'a AtomicBool,
}

impl<'a> End<'a> {
    /// So many seconds from now, if any are given; in any case once `stop` is set.
    pub fn after(seconds: Option<f64>, stop: &'a AtomicBool) -> Self {
        End { at: seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds)), stop }
    }

    /// Whether it is time to go.
    pub fn is_here(&self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at) || self.stop.load(Ordering::Relaxed)
    }
}

/// A flag that Ctrl-C and SIGTERM set.
///
/// # Errors
/// If the process listens for them already, or cannot.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || set.store(true, Ordering::Relaxed))
        .context("Ctrl-C cannot be listened for")?;
    Ok(flag)
}

/// Reads a number of seconds from the command line: 0 to 86,400.
///
/// # Errors
/// What is wrong with it, for a person.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.0..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("it may be 0 to 86400".to_owned()) }
}
