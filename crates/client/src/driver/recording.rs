//! A recording on its way into a file, and what a game says of it.

use super::room::Room;
use parlor_client_core::{RoomCore, RoomError};
use parlor_sync::recording::Figures;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes that may wait for the disk before the rest is left with the core, which has a bound of its own.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Pieces that may wait so.
const WAITING_PIECES_MAX: usize = 1_024;

/// The file of a recording, with a thread that writes it: a game never waits for a disk.
#[derive(Debug)]
pub(super) struct Tape {
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

impl Progress {
    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How a recording stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// What was recorded.
    pub figures: Figures,
    /// Why nothing more is written into the file, if so.
    pub failure: Option<String>,
}

impl Tape {
    /// A tape into a new file, which only its owner can read: a recording has what everybody in the room may
    /// see, together.
    fn create(path: &Path) -> Result<Self, RoomError> {
        let failed =
            |error: std::io::Error| RoomError::File { path: path.to_owned(), detail: error.to_string() };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(failed)?;
        // One place more, for the end.
        let (bytes, queue) = sync_channel(WAITING_PIECES_MAX + 1);
        let (ends, done) = sync_channel(1);
        let progress = Arc::<Progress>::default();
        let thread = std::thread::Builder::new().name("parlor-recording".into()).spawn({
            let (progress, path) = (Arc::clone(&progress), path.to_owned());
            move || {
                write_all(file, &path, &queue, &progress);
                drop::<SyncSender<()>>(ends);
            }
        });
        thread.map_err(failed)?;
        Ok(Tape { bytes: Some(bytes), progress, done: Mutex::new(done) })
    }

    /// Takes what a room recorded, if the disk keeps up.
    pub(super) fn wind(&self, core: &mut RoomCore) {
        if self.progress.failure().is_some() {
            core.recording_mut().stop();
            return;
        }
        if self.progress.waiting_bytes.load(Ordering::Relaxed) < WAITING_BYTES_MAX
            && self.progress.waiting_pieces.load(Ordering::Relaxed) < WAITING_PIECES_MAX
        {
            self.take(core);
        }
    }

    fn take(&self, core: &mut RoomCore) {
        let bytes = core.recording_mut().take_bytes();
        if let (false, Some(queue)) = (bytes.is_empty(), &self.bytes) {
            self.progress.waiting_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
            self.progress.waiting_pieces.fetch_add(1, Ordering::Relaxed);
            // It fails only when the thread has, and that has said why: there is room.
            let _ = queue.try_send(bytes);
        }
    }

    /// Takes the end of it.
    fn finish(&mut self, core: &mut RoomCore) {
        self.take(core);
        self.bytes = None;
    }

    /// Waits until all of it is written, or the patience is over.
    fn wait(&self, patience: Duration) {
        // The thread sends nothing: it is an end or a timeout, and after that it ends in the background.
        let _ = self.done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(patience);
    }
}

fn write_all(mut file: File, path: &Path, queue: &Receiver<Vec<u8>>, progress: &Progress) {
    while let Ok(bytes) = queue.recv() {
        if let Err(error) = file.write_all(&bytes) {
            let failure = format!("{} could not be written: {error}", path.display());
            tracing::warn!(%failure, "a recording ends");
            *progress.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            return;
        }
        progress.waiting_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
        progress.waiting_pieces.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Room {
    /// The recording of this room.
    pub fn recording(&self) -> RecordingControl<'_> {
        RecordingControl { room: self }
    }

    pub(super) fn finish_recording(&self, patience: Duration) {
        let tape = self.tape().take();
        if let Some(mut tape) = tape {
            self.with(|core, _| tape.finish(core));
            tape.wait(patience);
        }
    }
}

/// Records a room: from [`Room::recording`].
///
/// ```no_run
/// # let room = parlor::Room::host("tanks").open();
/// room.recording().start("tonight.prec")?;
/// # Ok::<(), parlor::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RecordingControl<'a> {
    room: &'a Room,
}

impl RecordingControl<'_> {
    /// Records the room from here on into a new file, for the host: all state that it writes, tick by tick,
    /// and who comes and goes, to be played again by `parlor replay` or
    /// [`Playback`](crate::recording::Playback). It ends with the room, or with [`stop`](Self::stop). The
    /// file has everything, also what only some players may see.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, the room is not open yet, it is being recorded already,
    /// or the file cannot be made, as when there is one of that name.
    pub fn start(&self, path: impl AsRef<Path>) -> Result<(), RoomError> {
        self.room.with(|core, _| core.start_recording())?;
        match Tape::create(path.as_ref()) {
            Ok(tape) => {
                *self.room.tape() = Some(tape);
                Ok(())
            }
            Err(error) => {
                self.room.with(|core, _| core.recording_mut().forget());
                Err(error)
            }
        }
    }

    /// Ends the recording, if there is one, and waits, for a second at the most, until the file is whole.
    pub fn stop(&self) {
        self.room.with(|core, _| core.recording_mut().stop());
        self.room.finish_recording(Duration::from_secs(1));
    }

    /// How the newest recording stands; `None` if there was none.
    pub fn status(&self) -> Option<Recording> {
        let figures = self.room.with(|core, _| core.recording().figures())?;
        let failure = self.room.tape().as_ref().and_then(|tape| tape.progress.failure());
        Some(Recording { figures, failure })
    }
}
