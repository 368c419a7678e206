//! The spread of what was measured: its median, its 99th percentile and the largest.

use serde::{Deserialize, Serialize};

/// Numbers of one kind.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) longest: u64,
}

impl Spread {
    pub(crate) fn of(mut took: Vec<u64>) -> Self {
        took.sort_unstable();
        let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
        Spread { p50: at(50), p99: at(99), longest: took.last().copied().unwrap_or_default() }
    }
}
