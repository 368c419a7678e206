//! The packet log of a room: every packet of its link and its direct paths, in a file.

use super::file_writer::FileWriter;
use parlor_client_core::{LoggedMoment, Moment, PacketLogWriter, PacketWay, PathId, RoomError};
use parlor_proto::{Instant, Packet, Tick};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a log at most, unless the game says otherwise.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where a room logs its packets, for [`RoomBuilder::packet_log`](super::RoomBuilder::packet_log). A path will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketLog {
    pub(super) path: PathBuf,
    pub(super) bytes_max: u64,
}

impl PacketLog {
    /// A log in this file; one of that name is overwritten. Only its owner can read it, on Unix.
    pub fn new(path: impl AsRef<Path>) -> Self {
        PacketLog { path: path.as_ref().to_owned(), bytes_max: BYTES_MAX }
    }

    /// Sets the size in bytes at which the log ends. Default: 64 MiB.
    #[must_use]
    pub fn bytes_max(self, bytes_max: u64) -> Self {
        PacketLog { bytes_max, ..self }
    }
}

impl<P: AsRef<Path>> From<P> for PacketLog {
    fn from(path: P) -> Self {
        PacketLog::new(path)
    }
}

/// A log that is written.
#[derive(Debug)]
pub(super) struct PacketTap(Mutex<Tap>);

#[derive(Debug)]
struct Tap {
    writer: PacketLogWriter,
    file: FileWriter,
    /// The newest tick that the game drew.
    drawn: Option<Tick>,
}

impl PacketTap {
    /// Begins a log.
    ///
    /// # Errors
    /// [`RoomError::File`] if the file cannot be made.
    pub(super) fn begin(log: &PacketLog, app: &str, schema: &[u8], now: Instant) -> Result<Self, RoomError> {
        let file = FileWriter::create(&log.path, true)?;
        let (writer, head) = PacketLogWriter::new(app, schema, log.bytes_max, now);
        file.write(head);
        Ok(PacketTap(Mutex::new(Tap { writer, file, drawn: None })))
    }

    /// Logs a packet, if the disk keeps up.
    pub(super) fn packet(&self, way: PacketWay, path: Option<PathId>, packet: &Packet, now: Instant) {
        let mut tap = self.lock();
        if tap.file.has_room() {
            let bytes = tap.writer.packet(way, path, packet, now);
            tap.file.write(bytes);
        } else {
            tap.writer.miss();
        }
    }

    /// Logs a moment of the game, if the disk keeps up.
    pub(super) fn moment(&self, moment: LoggedMoment, now: Instant) {
        let mut tap = self.lock();
        let is_known =
            moment.moment == Moment::Drawn && tap.drawn.is_some_and(|drawn| drawn.0 >= moment.tick.0);
        if is_known || !tap.file.has_room() {
            return;
        }
        if moment.moment == Moment::Drawn {
            tap.drawn = Some(moment.tick);
        }
        let bytes = tap.writer.moment(moment, now);
        tap.file.write(bytes);
    }

    /// Ends the log and waits until the file is whole, or the patience is over.
    pub(super) fn finish(&self, patience: Duration) {
        let mut tap = self.lock();
        tap.file.finish();
        tap.file.wait(patience);
    }

    fn lock(&self) -> MutexGuard<'_, Tap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
