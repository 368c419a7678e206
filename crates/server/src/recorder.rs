//! Room logs: the hub's record of each room, in one file each.
//!
//! The shard queues bytes and never waits; a thread of the runtime's blocking pool writes them. If a slow
//! disk fills the queue, the affected logs end there. A log without an end replays up to it; one with a gap
//! would be wrong.

use parlor_proto::{RoomCode, RoomId};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Maximum number of queued writes.
const QUEUE_MAX: usize = 1_024;
/// Maximum size of the log of one room, in bytes. The number of logs is bounded by the disk alone.
const LOG_BYTES_MAX: u64 = 256 << 20;
/// Maximum bytes of queued writes.
const QUEUE_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// Maximum wait for the disk at a server's stop.
const FINISH_TIME: Duration = Duration::from_secs(5);
/// Maximum number of existing files with the name of a room's log: codes and room numbers recur after a
/// restart.
const NAMESAKES_MAX: usize = 1_000;

/// The shard's side.
#[derive(Debug)]
pub(crate) struct Recorder {
    folder: PathBuf,
    queue: mpsc::Sender<Chunk>,
    room: Arc<Semaphore>,
    writer: JoinHandle<()>,
    logs: BTreeMap<RoomId, Log>,
    /// Logs that end because the queue was full. Their queued bytes are still written.
    cut: BTreeSet<RoomId>,
    /// Bytes recorded since the last hand-over.
    pending: BTreeMap<RoomId, Vec<u8>>,
}

/// A log as the shard sees it. The file closes when this and all its queued writes are dropped.
#[derive(Clone, Debug)]
struct Log {
    code: RoomCode,
    id: RoomId,
    file: Arc<Mutex<Option<File>>>,
    /// Bytes queued for it so far.
    bytes: Arc<AtomicU64>,
    /// Whether a write failed, which ends the log.
    has_failed: Arc<AtomicBool>,
}

/// Bytes for a file.
#[derive(Debug)]
struct Chunk {
    log: Log,
    bytes: Vec<u8>,
    /// Its reserved bytes in the queue, until it is written.
    _reserved: OwnedSemaphorePermit,
}

impl Recorder {
    /// Creates the folder and starts the writer. Must be called in a tokio runtime.
    pub(crate) fn start(folder: &Path) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        let (queue, writes) = mpsc::channel(QUEUE_MAX);
        let writer = tokio::task::spawn_blocking({
            let folder = folder.to_owned();
            move || write_all(&folder, writes)
        });
        Ok(Recorder {
            folder: folder.to_owned(),
            queue,
            room: Arc::new(Semaphore::new(QUEUE_BYTES_MAX as usize)),
            writer,
            logs: BTreeMap::new(),
            cut: BTreeSet::new(),
            pending: BTreeMap::new(),
        })
    }

    /// Opens the log of a room. Bytes already recorded for it belong to it.
    pub(crate) fn open(&mut self, id: RoomId, code: RoomCode) {
        let log = Log { code, id, file: Arc::default(), bytes: Arc::default(), has_failed: Arc::default() };
        self.logs.insert(id, log);
    }

    /// Records bytes of a room.
    pub(crate) fn record(&mut self, room: RoomId, bytes: &[u8]) {
        self.pending.entry(room).or_default().extend_from_slice(bytes);
    }

    /// Closes the log of a room that ended.
    pub(crate) fn close(&mut self, room: RoomId) {
        if let Some(bytes) = self.pending.remove(&room) {
            self.queue(room, bytes);
        }
        self.logs.remove(&room);
        self.cut.remove(&room);
    }

    /// Queues the recorded bytes.
    pub(crate) fn hand_over(&mut self) {
        while let Some((room, bytes)) = self.pending.pop_first() {
            self.queue(room, bytes);
        }
    }

    /// Writes all queued bytes and closes all files.
    pub(crate) async fn finish(mut self) {
        self.hand_over();
        let Recorder { folder, queue, writer, logs, .. } = self;
        drop((queue, logs));
        match timeout(FINISH_TIME, writer).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the writer of room logs failed; please report this"),
            Err(_) => {
                let folder = folder.display();
                tracing::warn!(%folder, "room logs may lack their end: the disk takes too long");
            }
        }
    }

    fn queue(&mut self, room: RoomId, bytes: Vec<u8>) {
        let Some(log) = self.logs.get(&room) else {
            tracing::error!(room = room.0, "a room that never opened was recorded; please report this");
            return;
        };
        if self.cut.contains(&room) || log.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let (code, id, folder) = (log.code, log.id.0, self.folder.display());
        let written = log.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if written + bytes.len() as u64 > LOG_BYTES_MAX {
            let mib = LOG_BYTES_MAX >> 20;
            tracing::warn!(%code, room = id, %folder, "the log of the room stops here: it has {mib} MiB");
            self.cut.insert(log.id);
            return;
        }
        let reserved = u32::try_from(bytes.len())
            .ok()
            .and_then(|len| Arc::clone(&self.room).try_acquire_many_owned(len).ok());
        let queued = reserved.is_some_and(|reserved| {
            self.queue.try_send(Chunk { log: log.clone(), bytes, _reserved: reserved }).is_ok()
        });
        if !queued {
            tracing::warn!(%code, room = id, %folder, "the log of the room stops here: the disk is too slow");
            self.cut.insert(log.id);
        }
    }
}

/// The writer. It ends when the queue's other end is dropped and all is written.
fn write_all(folder: &Path, mut writes: mpsc::Receiver<Chunk>) {
    while let Some(Chunk { log, bytes, _reserved }) = writes.blocking_recv() {
        if log.has_failed.load(Ordering::Relaxed) {
            continue;
        }
        if let Err(error) = log.write(folder, &bytes) {
            log.has_failed.store(true, Ordering::Relaxed);
            let (code, room, folder) = (log.code, log.id.0, folder.display());
            tracing::warn!(%code, room, %folder, %error, "the log of the room stops here: it cannot be written");
        }
    }
}

impl Log {
    fn write(&self, folder: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(self.create(folder)?),
        };
        file.write_all(bytes)
    }

    /// Creates a file that only its owner can read: it holds the room's secret.
    fn create(&self, folder: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let stem = format!("{}-{}", self.code, self.id.0);
        let mut name = format!("{stem}.plog");
        for namesake in 2..NAMESAKES_MAX {
            match options.open(folder.join(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    name = format!("{stem}-{namesake}.plog")
                }
                opened => return opened,
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{stem}.plog is there too often: clear the folder"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn code() -> RoomCode {
        "K7QM".parse().unwrap()
    }

    #[tokio::test]
    async fn a_room_has_a_file_and_a_later_namesake_another() {
        let folder = tempfile::tempdir().unwrap();
        for round in [b"one", b"two"] {
            let mut recorder = Recorder::start(folder.path()).unwrap();
            recorder.record(RoomId(0), b"head ");
            recorder.open(RoomId(0), code());
            recorder.hand_over();
            recorder.record(RoomId(0), round);
            recorder.close(RoomId(0));
            recorder.finish().await;
        }
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("K7QM-0.plog"), b"head one");
        assert_eq!(read("K7QM-0-2.plog"), b"head two");
    }

    #[tokio::test]
    async fn a_log_that_outgrows_the_queue_stops_and_the_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::start(folder.path()).unwrap();
        for id in [RoomId(0), RoomId(1)] {
            recorder.open(id, code());
            recorder.record(id, b"head ");
        }
        recorder.hand_over();
        // The test takes all room in the queue, whatever the writer does.
        let taken = Arc::clone(&recorder.room).acquire_many_owned(QUEUE_BYTES_MAX - 10).await.unwrap();
        recorder.record(RoomId(0), &[b'x'; 11]);
        recorder.hand_over();
        drop(taken);
        for id in [RoomId(0), RoomId(1)] {
            recorder.record(id, b"more");
        }
        recorder.finish().await;
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("K7QM-0.plog"), b"head ");
        assert_eq!(read("K7QM-1.plog"), b"head more");
    }

    #[tokio::test]
    async fn a_log_that_is_as_long_as_it_may_be_stops_and_the_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::start(folder.path()).unwrap();
        for id in [RoomId(0), RoomId(1)] {
            recorder.open(id, code());
            recorder.record(id, b"head ");
        }
        recorder.hand_over();
        recorder.logs[&RoomId(0)].bytes.store(LOG_BYTES_MAX - 4, Ordering::Relaxed);
        for text in ["more", "5", "last"] {
            for id in [RoomId(0), RoomId(1)] {
                recorder.record(id, text.as_bytes());
            }
            recorder.hand_over();
        }
        recorder.finish().await;
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("K7QM-0.plog"), b"head more");
        assert_eq!(read("K7QM-1.plog"), b"head more5last");
    }

    #[tokio::test]
    async fn a_folder_that_vanished_stops_the_log_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::start(&folder.path().join("logs")).unwrap();
        fs::remove_dir(folder.path().join("logs")).unwrap();
        recorder.open(RoomId(0), code());
        recorder.record(RoomId(0), b"head");
        let stopped = Arc::clone(&recorder.logs[&RoomId(0)].has_failed);
        recorder.finish().await;
        assert!(stopped.load(Ordering::Relaxed));
    }
}
