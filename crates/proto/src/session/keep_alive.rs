//! Time frames, which are a session's signs of life, too: when a client sends them, and when it rests.

use super::{Session, release};
use crate::time::Instant;
use core::time::Duration;

/// Time frames without a known answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    first: Instant,
    last: Instant,
}

/// Interval of a client's Time frames until its filter has enough samples.
const TIME_INTERVAL_AT_FIRST: Duration = Duration::from_millis(100);
/// The number of samples that is enough.
const TIME_SAMPLES_AT_FIRST: usize = 5;

impl Session {
    /// Says whether the other end acts on a silence far shorter than the one that ends the session. A client's
    /// session then sends a Time frame in every keep-alive interval; otherwise one in three while no message
    /// goes either way.
    pub fn set_watched(&mut self, is_watched: bool, now: Instant) {
        self.is_watched = is_watched;
        if is_watched {
            self.time_at = self.time_at.map(|at| at.min(now + self.keep_alive));
        }
    }

    /// Sends a Time frame. An idle session whose last one was answered pauses instead.
    pub(super) fn ask_or_rest(&mut self, now: Instant) {
        let asked = self.asked.take();
        let is_answered = |asked: &Asked| asked.last <= self.heard && !self.is_watched;
        if let Some(Asked { last, .. }) = asked.filter(is_answered) {
            // It leaves more than half of the silence timeout for repeated Time frames on a link with heavy
            // loss.
            let rest = (self.keep_alive * 3).min(self.silence * 3 / 8).max(self.keep_alive);
            self.time_at = Some(last + rest);
            return;
        }
        self.time_due = true;
        let is_idle = self.check_idle() && !self.is_watched;
        // An idle session that has paused heard nothing for as long, and sends one Time frame first.
        let is_silent = asked.is_some() || !is_idle && self.heard + self.keep_alive * 2 <= now;
        let interval = if self.timesync.samples() < TIME_SAMPLES_AT_FIRST {
            self.first_time_interval()
        } else if is_silent {
            self.asked = asked.map(|asked| Asked { last: now, ..asked });
            // A link that loses a third of its packets must not seem dead after a few more losses. On a long
            // link an answer cannot have arrived yet: one more frame covers the loss of the first, and more
            // are useless.
            let is_early = asked.is_some_and(|asked| now < asked.first + self.answer_time());
            if is_early { self.keep_alive } else { self.keep_alive / 4 }
        } else if is_idle {
            self.asked = Some(Asked { first: now, last: now });
            self.keep_alive / 2
        } else {
            self.keep_alive
        };
        self.time_at = Some(now + interval);
    }

    /// Whether there was no message since the last Time frame. The queues of an idle session give back their
    /// memory: a server has thousands.
    pub(super) fn check_idle(&mut self) -> bool {
        let messages = self.stats.messages_sent + self.stats.messages_received;
        let is_idle = messages == std::mem::replace(&mut self.messages_before, messages);
        if is_idle {
            self.outbox.release();
            release(&mut self.events);
        }
        is_idle
    }

    /// The interval of Time frames until the offset is known. They are the keep-alives, too.
    pub(super) fn first_time_interval(&self) -> Duration {
        TIME_INTERVAL_AT_FIRST.min(self.keep_alive)
    }

    /// Maximum time until an answer, without loss.
    fn answer_time(&self) -> Duration {
        self.timesync.rtt().unwrap_or_default() + self.timesync.jitter() * 4
    }
}
