//! The members' links.

use clap::ValueEnum;
use parlor_sim::Link;
use serde::Serialize;

/// How well a link carries what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Quality {
    /// Nothing is lost, nothing is late
    Clean,
    /// Up to 20 ms of jitter each way, and 2% lost
    Fair,
    /// Up to 40 ms of jitter each way, and 5% lost
    Poor,
}

impl Quality {
    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Quality::Clean => "clean",
            Quality::Fair => "fair",
            Quality::Poor => "poor",
        }
    }

    /// How much later a packet may come, evenly spread, each way.
    pub(crate) const fn jitter_ms(self) -> u32 {
        match self {
            Quality::Clean => 0,
            Quality::Fair => 20,
            Quality::Poor => 40,
        }
    }

    /// How many of 1,000 packets are lost, each way.
    pub(crate) const fn loss_per_mille(self) -> u32 {
        match self {
            Quality::Clean => 0,
            Quality::Fair => 20,
            Quality::Poor => 50,
        }
    }

    /// What nearly all packets are not later by: the 95th percentile of what is evenly spread.
    pub(crate) fn jitter_ms_p95(self) -> f64 {
        f64::from(self.jitter_ms()) * 0.95
    }

    /// Such a link with a round trip of so many milliseconds, jitter apart; an odd one loses its half millisecond.
    pub(crate) const fn link(self, rtt_ms: u32) -> Link {
        let link = Link::quic().latency_ms((rtt_ms / 2) as u64);
        link.jitter_ms(self.jitter_ms() as u64).loss(self.loss_per_mille())
    }
}
