//! Settings as text, for the command line.

use crate::settings::{Impairment, Outage};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use thiserror::Error;

/// The example in error messages.
const EXAMPLE: &str = "latency=100ms,jitter=30ms,loss=5%";
/// The text for no impairment.
const NONE: &str = "none";

/// Why settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImpairmentError {
    /// The text is not a list of settings.
    #[error(
        "{0:?} is no setting of an impairment: write NAME=VALUE, separated by commas, such as {EXAMPLE}, or {NONE}"
    )]
    NoSetting(String),
    /// The setting does not exist.
    #[error("an impairment has no {name:?}: there is {}", all_names())]
    UnknownName {
        /// The name.
        name: String,
    },
    /// A setting occurs twice.
    #[error("{name} is given twice: give it once")]
    Twice {
        /// The setting.
        name: &'static str,
    },
    /// A value is malformed or out of range.
    #[error("{name} may not be {value}: {accepts}")]
    Refused {
        /// The setting.
        name: &'static str,
        /// The value.
        value: String,
        /// The valid values.
        accepts: &'static str,
    },
    /// A queue without a rate.
    #[error("queue is what waits for a limited rate, and there is none: add rate, such as rate=2mbit")]
    QueueWithoutRate,
}

impl ImpairmentError {
    pub(crate) fn refused(setting: Setting, value: String) -> Self {
        ImpairmentError::Refused { name: setting.name(), value, accepts: setting.accepts() }
    }
}

/// A named setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    Latency,
    Jitter,
    Loss,
    Duplicate,
    Reorder,
    Rate,
    Queue,
    Outage,
    Seed,
}

const TIMES: &[(&str, u64)] = &[("us", 1), ("ms", 1_000), ("s", 1_000_000), ("min", 60_000_000)];
const SHARES: &[(&str, u64)] = &[("%", 10_000)];
const RATES: &[(&str, u64)] = &[("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)];
const SIZES: &[(&str, u64)] = &[("B", 1), ("kB", 1_000), ("MB", 1_000_000)];

impl Setting {
    const ALL: [Setting; 9] = [
        Setting::Latency,
        Setting::Jitter,
        Setting::Loss,
        Setting::Duplicate,
        Setting::Reorder,
        Setting::Rate,
        Setting::Queue,
        Setting::Outage,
        Setting::Seed,
    ];

    const fn name(self) -> &'static str {
        match self {
            Setting::Latency => "latency",
            Setting::Jitter => "jitter",
            Setting::Loss => "loss",
            Setting::Duplicate => "duplicate",
            Setting::Reorder => "reorder",
            Setting::Rate => "rate",
            Setting::Queue => "queue",
            Setting::Outage => "outage",
            Setting::Seed => "seed",
        }
    }

    const fn accepts(self) -> &'static str {
        match self {
            Setting::Latency | Setting::Jitter => "it is a time of at most 10s, with its unit, such as 100ms",
            Setting::Loss | Setting::Duplicate | Setting::Reorder => {
                "it is a share from 0% to 100%, with at most 4 decimals, such as 5%"
            }
            Setting::Rate => {
                "it is bits per second from 1kbit to 10gbit, with the unit (bit, kbit, mbit, gbit), such as 2mbit"
            }
            Setting::Queue => "it is a size from 1500B to 64MB, with its unit (B, kB, MB), such as 64kB",
            Setting::Outage => {
                "it is a time of at least 1ms, a slash and the longer time after which it comes again, at most 60min, \
                 such as 500ms/10s"
            }
            Setting::Seed => "it is a whole number of at most 64 bits, such as 7",
        }
    }

    /// Returns the setting as text; `None` for its default.
    pub(crate) fn value(self, of: &Impairment) -> Option<String> {
        let share = |ppm: u32| (ppm != 0).then(|| write(ppm.into(), SHARES));
        let delay = |time: Duration| (!time.is_zero()).then(|| write(micros(time), TIMES));
        match self {
            Setting::Latency => delay(of.latency),
            Setting::Jitter => delay(of.jitter),
            Setting::Loss => share(of.loss_ppm),
            Setting::Duplicate => share(of.duplicate_ppm),
            Setting::Reorder => share(of.reorder_ppm),
            Setting::Rate => of.rate_bits_per_s.map(|rate| write(rate, RATES)),
            Setting::Queue => of.queue_bytes.map(|bytes| write(bytes, SIZES)),
            Setting::Outage => of.outage.map(|outage| {
                format!("{}/{}", write(micros(outage.length), TIMES), write(micros(outage.every), TIMES))
            }),
            Setting::Seed => (of.seed != 0).then(|| of.seed.to_string()),
        }
    }

    /// Sets it. Returns `None` if the value is malformed.
    fn read(self, value: &str, into: Impairment) -> Option<Impairment> {
        let share = || read(value, SHARES).map(|ppm| u32::try_from(ppm).unwrap_or(u32::MAX));
        let time = |value| read(value, TIMES).map(Duration::from_micros);
        Some(match self {
            Setting::Latency => into.latency(time(value)?),
            Setting::Jitter => into.jitter(time(value)?),
            Setting::Loss => into.loss_ppm(share()?),
            Setting::Duplicate => into.duplicate_ppm(share()?),
            Setting::Reorder => into.reorder_ppm(share()?),
            Setting::Rate => into.rate_bits_per_s(read(value, RATES)?),
            Setting::Queue => into.queue_bytes(read(value, SIZES)?),
            Setting::Outage => {
                let (length, every) = value.split_once('/')?;
                into.outage(Outage { length: time(length)?, every: time(every)? })
            }
            Setting::Seed => into.seed(value.parse().ok()?),
        })
    }
}

fn all_names() -> String {
    Setting::ALL.map(Setting::name).join(", ")
}

impl FromStr for Impairment {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<Self, ImpairmentError> {
        let mut impairment = Impairment::none();
        if text == NONE {
            return Ok(impairment);
        }
        let mut given = Vec::new();
        for part in text.split(',') {
            let no_setting = || ImpairmentError::NoSetting(part.to_owned());
            let (name, value) = part.split_once('=').ok_or_else(no_setting)?;
            let (name, value) = (name.trim(), value.trim());
            let setting = Setting::ALL.into_iter().find(|setting| setting.name() == name);
            let setting = setting.ok_or_else(|| ImpairmentError::UnknownName { name: name.to_owned() })?;
            if given.contains(&setting) {
                return Err(ImpairmentError::Twice { name: setting.name() });
            }
            given.push(setting);
            impairment = setting
                .read(value, impairment)
                .ok_or_else(|| ImpairmentError::refused(setting, value.to_owned()))?;
        }
        impairment.check()?;
        Ok(impairment)
    }
}

/// Writes the settings in a form that can be parsed; `none` for the default.
impl fmt::Display for Impairment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_empty = true;
        for setting in Setting::ALL {
            if let Some(value) = setting.value(self) {
                let comma = if is_empty { "" } else { "," };
                write!(f, "{comma}{}={value}", setting.name())?;
                is_empty = false;
            }
        }
        if is_empty { f.write_str(NONE) } else { Ok(()) }
    }
}

/// Parses a number with one of the units, and optional decimals, exactly: a value that needs rounding is
/// rejected.
fn read(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let &(_, size) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let scale = 10u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let part = decimals.parse::<u64>().ok()?.checked_mul(size)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(size)?;
    (part % scale == 0).then(|| whole.checked_add(part / scale))?
}

/// Writes a number with the largest unit that needs no decimals; a share always in percent.
fn write(number: u64, units: &[(&str, u64)]) -> String {
    let fits = |unit: &&(&str, u64)| number != 0 && number.is_multiple_of(unit.1);
    let &(unit, size) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    let decimals = format!("{:04}", number % size);
    match decimals.trim_end_matches('0') {
        "" => format!("{}{unit}", number / size),
        decimals => format!("{}.{decimals}{unit}", number / size),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
