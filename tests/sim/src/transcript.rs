//! The transcript of a run: lines for a person, and a hash of everything.

use crate::peer::PeerId;
use parlor_client_core::{Event, Message};
use parlor_proto::Instant;
use std::collections::VecDeque;
use std::fmt::{self, Write};
use xxhash_rust::xxh3::Xxh3Default;

/// Lines kept; a longer run drops its beginning.
const LINES_MAX: usize = 20_000;

/// A record of a run.
pub(crate) struct Transcript {
    lines: VecDeque<String>,
    forgotten: usize,
    hash: Xxh3Default,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Transcript { lines: VecDeque::new(), forgotten: 0, hash: Xxh3Default::new() }
    }

    /// Writes a line, and hashes it.
    pub(crate) fn line(&mut self, now: Instant, who: impl fmt::Display, what: fmt::Arguments<'_>) {
        let ms = now.as_micros() / 1_000;
        let line = format!("{:>6}.{:03} {who:<8} {what}", ms / 1_000, ms % 1_000);
        self.hash(line.as_bytes());
        self.lines.push_back(line);
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
            self.forgotten += 1;
        }
    }

    /// Writes an event of a game.
    pub(crate) fn event(&mut self, now: Instant, peer: PeerId, event: &Event) {
        match event {
            // Too frequent to list.
            Event::State(update) => self.hash(&update.sequence.to_le_bytes()),
            Event::Message(Message { from, kind, order, .. }) => {
                self.line(now, peer, format_args!("Message {{ {from:?}, {kind:?}, order: {order:?} }}"));
            }
            Event::Raw { from, channel, payload, .. } => {
                let len = payload.len();
                self.line(now, peer, format_args!("Raw {{ {from:?}, {channel}, {len} bytes }}"));
            }
            event => self.line(now, peer, format_args!("{event:?}")),
        }
    }

    /// Hashes data without a line.
    pub(crate) fn hash(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    /// The last lines, for diagnosing a failure.
    pub(crate) fn excerpt(&self, lines: usize) -> String {
        let skipped = self.lines.len().saturating_sub(lines);
        let kept = self.lines.iter().skip(skipped).map(|line| format!("{line}\n"));
        std::iter::once(format!("({} lines before these)\n", self.forgotten + skipped)).chain(kept).collect()
    }

    pub(crate) fn trace_hash(&self) -> u64 {
        self.hash.digest()
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten > 0 {
            writeln!(f, "({} lines before these)", self.forgotten)?;
        }
        for line in &self.lines {
            f.write_str(line)?;
            f.write_char('\n')?;
        }
        Ok(())
    }
}
