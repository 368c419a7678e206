//! What is measured, from the command line.

use anyhow::{Context, bail};
use std::time::Duration;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Ticks each second.
    pub hz: u32,
    /// Walkers in the world.
    pub entities: usize,
    /// How many of 100 walkers move.
    pub moving_percent: u32,
    /// Clients that receive all of it.
    pub clients: u64,
    /// From one client to the next, how much later its acknowledgements arrive.
    pub apart: Duration,
    /// How long is measured.
    pub span: Duration,
    /// Where the walkers are drawn from.
    pub seed: u64,
    /// Of the load: the port of the server.
    pub port: u16,
    /// Of the load: the process of the server.
    pub pid: u32,
}

impl Setting {
    /// Reads options: `--name value`, each of which may be left out.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut setting = Setting {
            hz: 30,
            entities: 1_000,
            moving_percent: 100,
            clients: 16,
            apart: Duration::from_millis(10),
            span: Duration::from_secs(5),
            seed: 1,
            port: 0,
            pid: 0,
        };
        while let Some(name) = words.next() {
            let value = words.next().with_context(|| format!("{name} wants a value"))?;
            let wrong = || format!("{name} {value} is no number, or too large");
            match name.as_str() {
                "--hz" => setting.hz = value.parse().with_context(wrong)?,
                "--entities" => setting.entities = value.parse().with_context(wrong)?,
                "--moving" => setting.moving_percent = value.parse().with_context(wrong)?,
                "--clients" => setting.clients = value.parse().with_context(wrong)?,
                "--apart-ms" => setting.apart = Duration::from_millis(value.parse().with_context(wrong)?),
                "--seconds" => setting.span = Duration::from_secs_f64(value.parse().with_context(wrong)?),
                "--seed" => setting.seed = value.parse().with_context(wrong)?,
                "--port" => setting.port = value.parse().with_context(wrong)?,
                "--pid" => setting.pid = value.parse().with_context(wrong)?,
                _ => bail!("there is no option {name}"),
            }
        }
        Ok(setting)
    }

    /// How long a tick lasts.
    #[must_use]
    pub fn tick(&self) -> Duration {
        Duration::from_secs(1) / self.hz
    }
}
