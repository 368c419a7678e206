//! A file that a thread of its own writes: a game never waits for a disk.

use parlor_client_core::RoomError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes that may wait for the disk.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Pieces that may wait so.
const WAITING_PIECES_MAX: usize = 1_024;

/// A file and the thread that writes it.
#[derive(Debug)]
pub(super) struct FileWriter {
    bytes: Option<SyncSender<Vec<u8>>>,
    progress: Arc<Progress>,
    /// Gives an error once the thread is done. Behind a lock, so that a room can be shared between threads.
    done: Mutex<Receiver<()>>,
}

#[derive(Debug, Default)]
struct Progress {
    waiting_bytes: AtomicUsize,
    waiting_pieces: AtomicUsize,
    failure: Mutex<Option<String>>,
}

impl FileWriter {
    /// Creates the file, which only its owner can read; on Unix. With `replaces` one of that name is overwritten.
    ///
    /// # Errors
    /// [`RoomError::File`] if that is impossible, as without `replaces` when there is one of that name.
    pub(super) fn create(path: &Path, replaces: bool) -> Result<Self, RoomError> {
        let failed =
            |error: std::io::Error| RoomError::File { path: path.to_owned(), detail: error.to_string() };
        let mut options = OpenOptions::new();
        options.write(true).create_new(!replaces).create(true).truncate(replaces);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(failed)?;
        // One place more, for the end.
        let (bytes, queue) = sync_channel(WAITING_PIECES_MAX + 1);
        let (ends, done) = sync_channel(1);
        let progress = Arc::<Progress>::default();
        let thread = std::thread::Builder::new().name("parlor-file".into()).spawn({
            let (progress, path) = (Arc::clone(&progress), path.to_owned());
            move || {
                write_all(file, &path, &queue, &progress);
                drop::<SyncSender<()>>(ends);
            }
        });
        thread.map_err(failed)?;
        Ok(FileWriter { bytes: Some(bytes), progress, done: Mutex::new(done) })
    }

    /// Whether the disk keeps up, so that more may be written.
    pub(super) fn has_room(&self) -> bool {
        self.progress.waiting_bytes.load(Ordering::Relaxed) < WAITING_BYTES_MAX
            && self.progress.waiting_pieces.load(Ordering::Relaxed) < WAITING_PIECES_MAX
    }

    /// Why nothing more is written, if so.
    pub(super) fn failure(&self) -> Option<String> {
        self.progress.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes bytes, if it [has room](Self::has_room); the end is always taken.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        if let (false, Some(queue)) = (bytes.is_empty(), &self.bytes) {
            self.progress.waiting_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
            self.progress.waiting_pieces.fetch_add(1, Ordering::Relaxed);
            // It fails only when the thread has, and that has said why: there is room.
            let _ = queue.try_send(bytes);
        }
    }

    /// Ends the file once all of it is written.
    pub(super) fn finish(&mut self) {
        self.bytes = None;
    }

    /// Waits until all of it is written, or the patience is over.
    pub(super) fn wait(&self, patience: Duration) {
        // The thread sends nothing: it is an end or a timeout, and after that it ends in the background.
        let _ = self.done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(patience);
    }
}

fn write_all(mut file: File, path: &Path, queue: &Receiver<Vec<u8>>, progress: &Progress) {
    while let Ok(bytes) = queue.recv() {
        if let Err(error) = file.write_all(&bytes) {
            let failure = format!("{} could not be written: {error}", path.display());
            tracing::warn!(%failure, "a file of a room ends");
            *progress.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            return;
        }
        progress.waiting_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
        progress.waiting_pieces.fetch_sub(1, Ordering::Relaxed);
    }
}
