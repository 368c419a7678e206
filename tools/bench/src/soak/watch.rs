//! The server's resources over time, and whether they level off.

use super::record::Attack;
use crate::machine;
use crate::server::Server;
use serde::Serialize;
use std::path::Path;

/// What the server took at one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Look {
    pub(super) at_s: f64,
    pub(super) attacker: Attack,
    pub(super) resident_bytes: u64,
    pub(super) open_files: u64,
    /// The store's file and its log.
    pub(super) store_bytes: u64,
}

impl Look {
    /// Looks.
    ///
    /// # Errors
    /// The server is gone.
    pub(super) fn at(at_s: f64, attacker: Attack, server: &Server) -> anyhow::Result<Look> {
        let resident_bytes = machine::memory(server.pid())?.resident_bytes;
        let open_files = std::fs::read_dir(format!("/proc/{}/fd", server.pid()))?.count() as u64;
        Ok(Look { at_s, attacker, resident_bytes, open_files, store_bytes: bytes_in(server.data())? })
    }
}

/// The sizes of all files of a folder.
fn bytes_in(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(folder)? {
        // SQLite may take a file away between the listing and the look.
        bytes += file?.metadata().map_or(0, |file| if file.is_file() { file.len() } else { 0 });
    }
    Ok(bytes)
}

/// The part of what something takes by which it may grow in the last third and still be level.
const GROWTH_MAX: f64 = 0.05;

/// How something changed in the last third of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Trend {
    /// On average.
    pub(super) mean: f64,
    pub(super) slope_per_minute: f64,
    /// The slope by the length of the third.
    pub(super) growth: f64,
    /// As much is level: 5% of the mean, or what is `little` of such a thing.
    pub(super) growth_max: f64,
}

impl Trend {
    /// By least squares, with a level of its own for the attacker at work: the phases must not be taken for a slope.
    pub(super) fn of(looks: &[Look], little: f64, figure: impl Fn(&Look) -> f64) -> Option<Trend> {
        let end_s = looks.last()?.at_s;
        let third_s = end_s / 3.0;
        let third: Vec<&Look> = looks.iter().filter(|look| look.at_s >= end_s - third_s).collect();
        let (mut above, mut below) = (0.0, 0.0);
        for attack in Attack::ALL {
            let points: Vec<(f64, f64)> = third
                .iter()
                .filter(|look| look.attacker == attack)
                .map(|look| (look.at_s, figure(look)))
                .collect();
            let (at, of) =
                (mean(points.iter().map(|point| point.0)), mean(points.iter().map(|point| point.1)));
            above += points.iter().map(|point| (point.0 - at) * (point.1 - of)).sum::<f64>();
            below += points.iter().map(|point| (point.0 - at).powi(2)).sum::<f64>();
        }
        let slope = if below > 0.0 { above / below } else { return None };
        let mean = mean(third.iter().map(|look| figure(look)));
        let growth_max = (mean * GROWTH_MAX).max(little);
        Some(Trend { mean, slope_per_minute: slope * 60.0, growth: slope * third_s, growth_max })
    }

    pub(super) fn is_level(&self) -> bool {
        self.growth <= self.growth_max
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "looks are counted in thousands")]
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look every second of 900, with the attacker at work every other minute.
    fn looks(figure: impl Fn(f64, bool) -> f64) -> Vec<Look> {
        let look = |second: u32| {
            let is_on = second / 60 % 2 == 1;
            let attacker = if is_on { Attack::On } else { Attack::Off };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
            let store_bytes = figure(second.into(), is_on) as u64;
            Look { at_s: second.into(), attacker, resident_bytes: 0, open_files: 0, store_bytes }
        };
        (0..900).map(look).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    fn trend(looks: &[Look]) -> Trend {
        Trend::of(looks, 8.0, |look| look.store_bytes as f64).expect("there are looks")
    }

    #[test]
    fn what_an_attack_adds_while_it_lasts_is_no_slope() {
        let trend = trend(&looks(|_, is_on| if is_on { 5_000.0 } else { 1_000.0 }));
        assert!(trend.growth.abs() < 1.0 && trend.is_level(), "{trend:?}");
    }

    #[test]
    fn what_grows_is_seen_through_the_attack() {
        let trend = trend(&looks(|at_s, is_on| 10.0 * at_s + if is_on { 5_000.0 } else { 1_000.0 }));
        assert!((trend.slope_per_minute - 600.0).abs() < 1.0 && !trend.is_level(), "{trend:?}");
    }

    #[test]
    fn what_grew_once_and_stays_is_level() {
        let trend = trend(&looks(|at_s, _| at_s.min(500.0) * 10.0));
        assert!(trend.is_level() && trend.growth == 0.0, "{trend:?}");
        assert!(Trend::of(&[], 8.0, |_| 0.0).is_none());
    }
}
