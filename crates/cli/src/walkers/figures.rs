//! What a viewer measures.

use crate::costs::Rows;
use parlor::Room;
use serde::Serialize;
use std::time::{Duration, Instant};

/// How often rates are measured.
const EVERY: Duration = Duration::from_secs(1);

/// What a viewer sees, and what it costs.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// Walkers in sight.
    pub(crate) visible: usize,
    /// The most that were in sight at once.
    pub(crate) visible_max: usize,
    /// Walkers in the world.
    pub(crate) total: usize,
    /// Walkers that came into sight since the viewer joined.
    pub(crate) came: u64,
    /// Walkers that went out of sight since then.
    pub(crate) went: u64,
    /// Changes of walkers that were seen since the viewer joined.
    pub(crate) updates: u64,
    /// Bytes that came since then, as the session counts them: without the headers of QUIC, UDP and IP.
    pub(crate) bytes: u64,
    /// Changes in the last second.
    pub(crate) updates_per_second: f64,
    /// Bytes in the last second.
    pub(crate) bytes_per_second: f64,
    /// Bytes for each change in the last second.
    pub(crate) bytes_per_update: Option<f64>,
}

impl Figures {
    /// Names and values for a person.
    pub(crate) fn rows(&self) -> Rows {
        let per_update =
            self.bytes_per_update.map_or_else(|| "–".to_owned(), |bytes| format!("{bytes:.2} B"));
        vec![
            ("in sight", format!("{} of {}", self.visible, self.total)),
            ("came, went", format!("{}, {}", self.came, self.went)),
            ("updates", format!("{:.0}/s", self.updates_per_second)),
            ("received", format!("{:.1} kB/s", self.bytes_per_second / 1_000.0)),
            ("an update", per_update),
        ]
    }
}

/// Turns counts into rates.
#[derive(Debug)]
pub(super) struct Meter {
    at: Instant,
    bytes: u64,
    updates: u64,
}

impl Meter {
    pub(super) fn new() -> Self {
        Meter { at: Instant::now(), bytes: 0, updates: 0 }
    }

    /// Brings the bytes up to date, and once a second the rates.
    pub(super) fn measure(&mut self, figures: &mut Figures, room: &Room) {
        figures.bytes = room.diagnostics().session.bytes_received;
        let passed = self.at.elapsed();
        if passed < EVERY {
            return;
        }
        let (bytes, updates) = (figures.bytes - self.bytes, figures.updates - self.updates);
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
        {
            figures.bytes_per_second = bytes as f64 / passed.as_secs_f64();
            figures.updates_per_second = updates as f64 / passed.as_secs_f64();
            figures.bytes_per_update = (updates > 0).then(|| bytes as f64 / updates as f64);
        }
        (self.at, self.bytes, self.updates) = (Instant::now(), figures.bytes, figures.updates);
    }
}
