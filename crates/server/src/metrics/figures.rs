//! Metrics in the text format of monitoring.

use super::Seconds;
use core::sync::atomic::AtomicU64;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// A label: its name and its value. Both are words of this program; a peer's words never become labels
/// (threat 33).
pub type Label = [(&'static str, &'static str); 1];

/// The metrics at one moment.
#[derive(Debug, Default)]
pub struct Figures(Registry);

impl Figures {
    /// A value that goes up and down.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, value: u64) {
        let gauge = Gauge::<i64>::default();
        gauge.set(signed(value));
        self.0.register(name, help, gauge);
    }

    /// A value that only goes up.
    pub fn counter(&mut self, name: &'static str, help: &'static str, value: u64) {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        self.0.register(name, help, counter);
    }

    /// A duration that only goes up, in seconds.
    pub fn seconds(&mut self, name: &'static str, help: &'static str, value: f64) {
        let counter = Counter::<f64, AtomicU64>::default();
        counter.inc_by(value);
        let counter: Seconds = counter;
        self.0.register(name, help, counter);
    }

    /// A duration that goes up and down, in seconds. It may be negative.
    pub fn gauge_seconds(&mut self, name: &'static str, help: &'static str, value: f64) {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        self.0.register(name, help, gauge);
    }

    /// A gauge for each label.
    pub fn gauges(
        &mut self,
        name: &'static str,
        help: &'static str,
        values: impl IntoIterator<Item = (Label, u64)>,
    ) {
        let family = Family::<Label, Gauge>::default();
        for (label, value) in values {
            family.get_or_create(&label).set(signed(value));
        }
        self.0.register(name, help, family);
    }

    /// A counter for each label.
    pub fn counters(
        &mut self,
        name: &'static str,
        help: &'static str,
        values: impl IntoIterator<Item = (Label, u64)>,
    ) {
        let family = Family::<Label, Counter>::default();
        for (label, value) in values {
            family.get_or_create(&label).inc_by(value);
        }
        self.0.register(name, help, family);
    }

    /// The registry, for families with more kinds of labels.
    pub(super) fn registry(&mut self) -> &mut Registry {
        &mut self.0
    }
}

pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
