//! Output of a soak: a row each minute, a summary at the end, and a verdict on each criterion.

use super::attacker::Outcomes;
use super::record::{Attack, Kind, Record};
use super::watch::{Look, Trend};
use crate::table::{Table, figure};
use anyhow::bail;
use serde::Serialize;
use std::collections::BTreeMap;

/// With the attacker at work, honest clients may wait so many times as long as without.
pub(super) const RATIO_MAX: f64 = 2.0;
/// Fewer times than these say nothing of their 99th percentile.
const TIMES_MIN: u64 = 200;
/// A shorter run says nothing of whether anything levels off.
const LEVEL_MIN_S: f64 = 6.0 * 60.0;
/// What may come and go of each, whatever its size.
const LITTLE_MEMORY: f64 = 8.0 * MIB;
const LITTLE_FILES: f64 = 16.0;
const LITTLE_STORE: f64 = 4.0 * MIB;
const MIB: f64 = 1_048_576.0;

/// What honest clients waited for.
#[derive(Debug, Serialize)]
pub(super) struct Waited {
    what: Kind,
    times_without_attacker: u64,
    times_with_attacker: u64,
    ms_p50_without_attacker: Option<f64>,
    ms_p99_without_attacker: Option<f64>,
    ms_p50_with_attacker: Option<f64>,
    ms_p99_with_attacker: Option<f64>,
    /// With the attacker by without.
    p99_ratio: Option<f64>,
}

impl Waited {
    fn read(record: &Record, what: Kind) -> Self {
        let (off, off_p50, off_p99) = record.figures(what, Attack::Off);
        let (on, on_p50, on_p99) = record.figures(what, Attack::On);
        let enough = off >= TIMES_MIN && on >= TIMES_MIN;
        Waited {
            what,
            times_without_attacker: off,
            times_with_attacker: on,
            ms_p50_without_attacker: off_p50,
            ms_p99_without_attacker: off_p99,
            ms_p50_with_attacker: on_p50,
            ms_p99_with_attacker: on_p99,
            p99_ratio: on_p99.zip(off_p99).filter(|_| enough).map(|(on, off)| on / off),
        }
    }
}

/// What members of rooms waited for while the attacker was at work in one way.
#[derive(Debug, Serialize)]
pub(super) struct WaitedByWay {
    attack: &'static str,
    what: Kind,
    times: u64,
    ms_p99: Option<f64>,
    /// By that without the attacker.
    p99_ratio: Option<f64>,
}

impl WaitedByWay {
    fn all(record: &Record) -> Vec<Self> {
        let read = |(attack, what, times, ms_p99): (&'static str, Kind, u64, Option<f64>)| {
            let (off, _, off_p99) = record.figures(what, Attack::Off);
            let enough = times >= TIMES_MIN && off >= TIMES_MIN;
            let p99_ratio = ms_p99.zip(off_p99).filter(|_| enough).map(|(on, off)| on / off);
            WaitedByWay { attack, what, times, ms_p99, p99_ratio }
        };
        record.by_way().into_iter().map(read).collect()
    }

    fn line(&self) -> String {
        let what = self.what.as_str();
        format!(
            "{}: p99 of {what} {} ms, {} ×",
            self.attack,
            figure(self.ms_p99, 1),
            figure(self.p99_ratio, 2)
        )
    }
}

/// One criterion.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    criterion: String,
    /// `None` if the run says nothing of it.
    is_met: Option<bool>,
    because: String,
}

impl Verdict {
    fn of_trend(what: &str, unit: f64, unit_name: &str, trend: Option<Trend>) -> Self {
        let criterion = format!("{what} levels off");
        let Some(trend) = trend else {
            let because = format!("the run is shorter than {LEVEL_MIN_S:.0} s");
            return Verdict { criterion, is_met: None, because };
        };
        let because = format!(
            "in the last third it grew by {:.1} {unit_name} ({:+.2} a minute), and {:.1} are allowed",
            trend.growth / unit,
            trend.slope_per_minute / unit,
            trend.growth_max / unit
        );
        Verdict { criterion, is_met: Some(trend.is_level()), because }
    }

    fn of_wait(waited: &Waited) -> Self {
        let criterion = format!("p99 of {} ≤ {RATIO_MAX} × that without the attacker", waited.what.as_str());
        let because = match waited.p99_ratio {
            Some(ratio) => format!("it is {ratio:.2} ×"),
            None => format!("fewer than {TIMES_MIN} were timed with the attacker or without it"),
        };
        Verdict { criterion, is_met: waited.p99_ratio.map(|ratio| ratio <= RATIO_MAX), because }
    }

    fn is_missed(&self) -> bool {
        self.is_met == Some(false)
    }

    fn line(&self) -> String {
        let word = match self.is_met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not judged",
        };
        format!("{word}: {}: {}", self.criterion, self.because)
    }
}

/// All that a soak says.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    seconds: f64,
    ended_early: bool,
    server_cpu_percent: f64,
    generator_cpu_percent: f64,
    resident_bytes: Option<Trend>,
    open_files: Option<Trend>,
    store_bytes: Option<Trend>,
    resident_bytes_max: u64,
    open_files_max: u64,
    store_bytes_last: u64,
    waited: Vec<Waited>,
    waited_by_attack: Vec<WaitedByWay>,
    /// Each kind: without the attacker, and with it.
    errors: BTreeMap<String, [u64; 2]>,
    attacker: Outcomes,
    verdicts: Vec<Verdict>,
    looks: Vec<Look>,
}

/// What is known at the end of a run.
pub(super) struct Ended {
    pub(super) looks: Vec<Look>,
    pub(super) attacker: Outcomes,
    pub(super) seconds: f64,
    pub(super) ended_early: bool,
    pub(super) server_cpu_percent: f64,
    pub(super) generator_cpu_percent: f64,
    /// The bound of the store. A store within it counts as level.
    pub(super) data_max_bytes: u64,
}

#[expect(clippy::cast_precision_loss, reason = "memory and files are below 2⁵³ bytes")]
fn float(count: u64) -> f64 {
    count as f64
}

impl Summary {
    pub(super) fn new(record: &Record, ended: Ended) -> Self {
        let looks = ended.looks;
        let is_long = ended.seconds >= LEVEL_MIN_S;
        let trend = |little, figure: fn(&Look) -> u64| {
            Trend::of(&looks, little, |look| float(figure(look))).filter(|_| is_long)
        };
        let resident = trend(LITTLE_MEMORY, |look| look.resident_bytes);
        let files = trend(LITTLE_FILES, |look| look.open_files);
        let store = trend(LITTLE_STORE, |look| look.store_bytes);
        let waited: Vec<Waited> = Kind::ALL.map(|kind| Waited::read(record, kind)).into();
        let store_bytes_last = looks.last().map_or(0, |look| look.store_bytes);
        let mut of_store = Verdict::of_trend("the store", MIB, "MiB", store);
        let max = ended.data_max_bytes;
        if store_bytes_last > max {
            of_store.is_met = Some(false);
            of_store.because += &format!("; it is beyond its bound of {:.0} MiB", float(max) / MIB);
        }
        let mut verdicts = vec![
            Verdict::of_trend("resident memory", MIB, "MiB", resident),
            Verdict::of_trend("the number of open files", 1.0, "files", files),
            of_store,
        ];
        verdicts.extend(waited.iter().map(Verdict::of_wait));
        Summary {
            seconds: ended.seconds,
            ended_early: ended.ended_early,
            server_cpu_percent: ended.server_cpu_percent,
            generator_cpu_percent: ended.generator_cpu_percent,
            resident_bytes: resident,
            open_files: files,
            store_bytes: store,
            resident_bytes_max: looks.iter().map(|look| look.resident_bytes).max().unwrap_or(0),
            open_files_max: looks.iter().map(|look| look.open_files).max().unwrap_or(0),
            store_bytes_last,
            waited,
            waited_by_attack: WaitedByWay::all(record),
            errors: record.errors(),
            attacker: ended.attacker,
            verdicts,
            looks,
        }
    }

    /// Says whether the run shows that every criterion is met.
    ///
    /// # Errors
    /// Which criteria were missed, or that the run was interrupted: what it did not measure is not known.
    pub(super) fn judge(&self) -> anyhow::Result<()> {
        let missed: Vec<String> =
            self.verdicts.iter().filter(|verdict| verdict.is_missed()).map(Verdict::line).collect();
        if !missed.is_empty() {
            bail!("of the soak's criteria {} were missed: {}", missed.len(), missed.join("; "));
        }
        if self.ended_early {
            bail!(
                "the soak was interrupted after {:.0} s, so it shows nothing: run it to its end",
                self.seconds
            );
        }
        Ok(())
    }

    /// The waits, as people read them.
    pub(super) fn table(&self) -> Table {
        Table::of(
            &self.waited,
            &[
                ("ms", |waited| waited.what.as_str().to_owned()),
                ("p50 off", |waited| figure(waited.ms_p50_without_attacker, 1)),
                ("p99 off", |waited| figure(waited.ms_p99_without_attacker, 1)),
                ("p50 on", |waited| figure(waited.ms_p50_with_attacker, 1)),
                ("p99 on", |waited| figure(waited.ms_p99_with_attacker, 1)),
                ("p99 on / off", |waited| figure(waited.p99_ratio, 2)),
                ("times off", |waited| waited.times_without_attacker.to_string()),
                ("times on", |waited| waited.times_with_attacker.to_string()),
            ],
        )
    }

    /// What else is to be said, a line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "{:.0} s{}; at most {:.1} MiB resident and {} files open; the store has {:.1} MiB; server {:.0}% of a core, \
             generator {:.0}%",
            self.seconds,
            if self.ended_early { ", interrupted" } else { "" },
            float(self.resident_bytes_max) / MIB,
            self.open_files_max,
            float(self.store_bytes_last) / MIB,
            self.server_cpu_percent,
            self.generator_cpu_percent
        )];
        notes.extend(self.errors.iter().map(|(kind, [off, on])| {
            format!("error of an honest client: {kind}: {off} without the attacker, {on} with it")
        }));
        for (way, outcomes) in &self.attacker {
            let said: Vec<String> =
                outcomes.iter().map(|(outcome, count)| format!("{outcome} {count} times")).collect();
            notes.push(format!("attacker, {way}: {}", said.join(", ")));
        }
        notes.extend(self.waited_by_attack.iter().map(WaitedByWay::line));
        notes.extend(self.verdicts.iter().map(Verdict::line));
        notes
    }
}

/// What the last minute was like.
pub(super) fn minute(look: &Look, p99: [Option<f64>; 5], errors: u64, server_cpu_percent: f64) -> Table {
    Table::of(
        &[(look, p99, errors, server_cpu_percent)],
        &[
            ("s", |(look, ..)| figure(look.at_s, 0)),
            ("attacker", |(look, ..)| look.attacker.as_str().to_owned()),
            ("resident MiB", |(look, ..)| figure(float(look.resident_bytes) / MIB, 1)),
            ("files", |(look, ..)| look.open_files.to_string()),
            ("store MiB", |(look, ..)| figure(float(look.store_bytes) / MIB, 1)),
            ("server CPU %", |(.., percent)| figure(*percent, 0)),
            ("errors", |(_, _, errors, _)| errors.to_string()),
            ("message p99 ms", |(_, p99, ..)| figure(p99[0], 1)),
            ("state p99", |(_, p99, ..)| figure(p99[1], 1)),
            ("move p99", |(_, p99, ..)| figure(p99[2], 1)),
            ("request p99", |(_, p99, ..)| figure(p99[3], 1)),
            ("password p99", |(_, p99, ..)| figure(p99[4], 1)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ended_early: bool) -> anyhow::Result<()> {
        let ended = Ended {
            looks: Vec::new(),
            attacker: Outcomes::new(),
            seconds: 3.0,
            ended_early,
            server_cpu_percent: 0.0,
            generator_cpu_percent: 0.0,
            data_max_bytes: 0,
        };
        Summary::new(&Record::new(1), ended).judge()
    }

    #[test]
    fn an_interrupted_soak_is_not_passed() {
        judged(false).unwrap();
        let refused = judged(true).unwrap_err().to_string();
        assert!(refused.contains("interrupted after 3 s"), "{refused}");
    }
}
