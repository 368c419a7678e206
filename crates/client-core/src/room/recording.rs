//! Recording of the room at its host: see [`parlor_sync::recording`].

use super::{Joined, RoomCore};
use crate::error::RoomError;
use parlor_proto::wire::control::ToMember;
use parlor_proto::{ApiMisuse, Instant};
use parlor_sync::recording::{Ended, Figures, Head, Recorder};

/// For a process that records.
impl RoomCore {
    /// Starts a recording at the host: the present world, every commit, and members that join and leave. Read
    /// the bytes with [`take_recorded`](Self::take_recorded).
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, the room is not open, or a recording is running.
    pub fn start_recording(&mut self) -> Result<(), RoomError> {
        let is_recorded = self.recording_figures().is_some_and(|figures| figures.ended.is_none());
        let (options_app, options_environment) = (self.options.app.clone(), self.options.environment.clone());
        let (_, joined) = self.open_as_host("record the room")?;
        if is_recorded {
            return Err(ApiMisuse::Bounds("the room is being recorded: stop that first".into()).into());
        }
        let Joined { welcome, shared, players, .. } = joined;
        let mut recorder = Recorder::new(&Head {
            code: welcome.code,
            app: options_app,
            environment: options_environment,
            tick_rate: welcome.tick_rate,
            schema: shared.world().schema().clone(),
            opened: welcome.opened,
        });
        players.iter().for_each(|player| recorder.came(player.id, &player.name));
        self.recording = Some(Box::new(recorder));
        Ok(())
    }

    /// Stops the recording. Its remaining bytes can still be taken.
    pub fn stop_recording(&mut self) {
        self.end_recording(Ended::Stopped);
    }

    /// Discards the recording.
    pub fn forget_recording(&mut self) {
        self.recording = None;
    }

    /// Takes the next bytes of the file, recorded since the last call. If they are not taken, the recording
    /// ends once 16 MiB wait.
    pub fn take_recorded(&mut self) -> Vec<u8> {
        self.recording.as_mut().map(|recorder| recorder.take()).unwrap_or_default()
    }

    /// Figures of this room's newest recording; `None` if there was none.
    pub fn recording_figures(&self) -> Option<Figures> {
        self.recording.as_ref().map(|recorder| recorder.figures())
    }

    pub(super) fn end_recording(&mut self, ended: Ended) {
        if let Some(recorder) = &mut self.recording {
            recorder.end(ended);
        }
    }

    /// Records the last commit.
    pub(super) fn record(&mut self, now: Instant) {
        if let (Some(recorder), Some(joined)) = (&mut self.recording, &self.joined) {
            recorder.observe(joined.shared.world(), joined.room_time(now));
        }
    }

    /// Records members that join and leave.
    pub(super) fn record_control(&mut self, control: &ToMember) {
        let Some(recorder) = &mut self.recording else { return };
        match control {
            ToMember::Joined(info) => recorder.came(info.id, &info.name),
            ToMember::Left { member, .. } => recorder.left(*member),
            _ => {}
        }
    }
}
