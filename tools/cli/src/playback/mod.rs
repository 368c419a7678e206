//! Recordings of rooms, played from their files.

mod lines;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use lines::{joining, record};
pub(crate) use watch::watch;

use anyhow::Context;
use parlor::recording::{Head, Playback, Reader, RecordingError, Step};
use parlor_proto::Instant;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are read from a file at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A file that grows, or is whole.
#[derive(Debug)]
struct Pieces {
    file: File,
    name: String,
    piece: Vec<u8>,
}

impl Pieces {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("{name} cannot be read"))?;
        Ok(Pieces { file, name, piece: vec![0; PIECE_BYTES] })
    }

    /// The next bytes; none at the end of what there is.
    fn next(&mut self) -> anyhow::Result<&[u8]> {
        let bytes =
            self.file.read(&mut self.piece).with_context(|| format!("{} cannot be read", self.name))?;
        Ok(&self.piece[..bytes])
    }
}

/// A recording that plays from its file.
#[derive(Debug)]
pub(crate) struct Film {
    pieces: Pieces,
    playback: Playback,
    /// What ended it early.
    error: Option<RecordingError>,
    /// Whether there was nothing more in the file when it was looked at last.
    is_at_end: bool,
}

impl Film {
    /// A film at its begin.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Film { pieces: Pieces::open(path)?, playback: Playback::new(), error: None, is_at_end: false })
    }

    /// What was played so far.
    pub(crate) fn playback(&self) -> &Playback {
        &self.playback
    }

    /// Of which room it is, once the file says so.
    ///
    /// # Errors
    /// If the file cannot be read or is no recording of this version.
    pub(crate) fn head(&mut self) -> anyhow::Result<Option<Arc<Head>>> {
        loop {
            if let Some(head) = self.playback.head()? {
                return Ok(Some(head));
            }
            let piece = self.pieces.next()?;
            if piece.is_empty() {
                return Ok(None);
            }
            self.playback.feed(piece);
        }
    }

    /// When the next record is; `None` at the end of what there is.
    ///
    /// # Errors
    /// If the file cannot be read. What is wrong with the recording is kept as [`error`](Self::error), and nothing comes after it.
    fn next_at(&mut self) -> anyhow::Result<Option<Instant>> {
        while self.error.is_none() {
            match self.playback.next_at() {
                Ok(Some(at)) => return Ok(Some(at)),
                Ok(None) => {
                    let piece = self.pieces.next()?;
                    self.is_at_end = piece.is_empty();
                    if self.is_at_end {
                        break;
                    }
                    self.playback.feed(piece);
                }
                Err(error) => self.error = Some(error),
            }
        }
        Ok(None)
    }

    /// Plays the next record that is not after `until`, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn step(&mut self, until: Instant) -> anyhow::Result<Option<Step>> {
        if self.next_at()?.is_none() {
            return Ok(None);
        }
        Ok(self.playback.step(until).unwrap_or_else(|error| {
            self.error = Some(error);
            None
        }))
    }

    /// What is wrong with the recording, if something is.
    pub(crate) fn error(&self) -> Option<&RecordingError> {
        self.error.as_ref()
    }

    /// Bytes at the end of the file that are no whole record, if it was played to there and has no end.
    pub(crate) fn cut_bytes(&self) -> usize {
        if self.is_at_end && !self.is_over() { self.playback.reader().leftover_bytes() } else { 0 }
    }

    /// Whether there is nothing more to come.
    pub(crate) fn is_over(&self) -> bool {
        self.error.is_some() || self.playback.ended().is_some()
    }
}

/// The position in a recording that may still grow.
#[derive(Debug)]
pub(crate) struct Edge {
    pieces: Pieces,
    reader: Reader,
    /// The newest record's room time, and when it was seen.
    newest: Option<(Instant, std::time::Instant)>,
}

impl Edge {
    /// The edge of a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Edge { pieces: Pieces::open(path)?, reader: Reader::new(), newest: None })
    }

    /// The room's time, as the file tells: that of its newest record, and what passed since that was seen. `None` before the
    /// first record.
    ///
    /// # Errors If the file cannot be read. Playback reports errors in its records.
    pub(crate) fn room_time(&mut self) -> anyhow::Result<Option<Instant>> {
        loop {
            let piece = self.pieces.next()?;
            if piece.is_empty() {
                break;
            }
            self.reader.feed(piece);
            while let Ok(Some((at, _))) = self.reader.next_record() {
                self.newest = Some((at, std::time::Instant::now()));
            }
        }
        Ok(self.newest.map(|(at, seen)| at + seen.elapsed()))
    }
}

/// Where a spectator is in a recording.
#[derive(Debug)]
pub(crate) enum Pace {
    /// As fast as it can be read.
    AtOnce,
    /// As fast as it happened: since when, and from which room time on.
    AsItWas(Option<(std::time::Instant, Instant)>),
    /// As it happens, and this much later.
    Behind(Box<Edge>, Duration),
}

impl Pace {
    /// The room time up to which records of `film` are shown at this moment.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn until(&mut self, film: &mut Film) -> anyhow::Result<Instant> {
        Ok(match self {
            Pace::AtOnce => Instant::from_micros(u64::MAX),
            Pace::AsItWas(Some((since, from))) => *from + since.elapsed(),
            Pace::AsItWas(began) => {
                let first = film.next_at()?;
                *began = first.map(|first| (std::time::Instant::now(), first));
                first.unwrap_or_default()
            }
            Pace::Behind(edge, delay) => edge.room_time()?.map_or(Instant::ZERO, |now| now - *delay),
        })
    }
}

/// Whether a file begins as a recording does.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn is_recording(path: &Path) -> anyhow::Result<bool> {
    Ok(Pieces::open(path)?.next()?.starts_with(parlor::recording::MAGIC))
}
