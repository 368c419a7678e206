//! The log on standard error.

use crate::args::LogFormat;
use anyhow::{Context, anyhow};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts the log.
///
/// # Errors
/// If the filter cannot be read.
pub(crate) fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    let filter =
        EnvFilter::try_new(filter).with_context(|| format!("the log filter {filter:?} cannot be read"))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().try_init(),
    };
    started.map_err(|error| anyhow!("the log could not be started: {error}"))
}
