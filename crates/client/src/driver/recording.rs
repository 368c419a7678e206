//! A recording on its way into a file, and what a game says of it.

use super::file_writer::FileWriter;
use super::room::Room;
use parlor_client_core::{RoomCore, RoomError};
use parlor_sync::recording::Figures;
use std::path::Path;
use std::time::Duration;

/// The file of a recording.
#[derive(Debug)]
pub(super) struct Tape(FileWriter);

/// How a recording stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// What was recorded.
    pub figures: Figures,
    /// Why nothing more is written into the file, if so.
    pub failure: Option<String>,
}

impl Tape {
    /// A tape into a new file: a recording has what everybody in the room may see, together.
    fn create(path: &Path) -> Result<Self, RoomError> {
        FileWriter::create(path, false).map(Tape)
    }

    /// Takes what a room recorded, if the disk keeps up; otherwise it is left with the core, which has a bound of its
    /// own.
    pub(super) fn wind(&self, core: &mut RoomCore) {
        if self.0.failure().is_some() {
            core.recording_mut().stop();
        } else if self.0.has_room() {
            self.take(core);
        }
    }

    fn take(&self, core: &mut RoomCore) {
        self.0.write(core.recording_mut().take_bytes());
    }

    /// Takes the end of it.
    fn finish(&mut self, core: &mut RoomCore) {
        self.take(core);
        self.0.finish();
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
            tape.0.wait(patience);
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
        let failure = self.room.tape().as_ref().and_then(|tape| tape.0.failure());
        Some(Recording { figures, failure })
    }
}
