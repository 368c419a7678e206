//! Recording of a room at its host: see [`parlor_sync::recording`].

use crate::error::RoomError;
use crate::options::Options;
use crate::players::Players;
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::{ApiMisuse, Instant};
use parlor_sync::recording::{Ended, Figures, Head, Recorder};
use parlor_sync::world::World;

/// The newest recording of a room, if there is one.
#[derive(Debug, Default)]
pub struct Recording {
    recorder: Option<Box<Recorder>>,
}

/// For the process that records. [`RoomCore::start_recording`](crate::RoomCore::start_recording) starts one.
impl Recording {
    /// Takes the next bytes of the file, recorded since the last call. If they are not taken, the recording
    /// ends once 16 MiB wait.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        self.recorder.as_mut().map(|recorder| recorder.take()).unwrap_or_default()
    }

    /// Stops the recording. Its remaining bytes can still be taken.
    pub fn stop(&mut self) {
        self.end(Ended::Stopped);
    }

    /// Discards the recording.
    pub fn forget(&mut self) {
        self.recorder = None;
    }

    /// Figures of the newest recording; `None` if there was none.
    pub fn figures(&self) -> Option<Figures> {
        self.recorder.as_ref().map(|recorder| recorder.figures())
    }
}

impl Recording {
    /// Starts a recording with the members that are there.
    ///
    /// # Errors
    /// [`RoomError`] if a recording is running.
    pub(crate) fn start(
        &mut self,
        options: &Options,
        welcome: &Welcome,
        world: &World,
        players: &Players,
    ) -> Result<(), RoomError> {
        if self.figures().is_some_and(|figures| figures.ended.is_none()) {
            return Err(ApiMisuse::Bounds("the room is being recorded: stop that first".into()).into());
        }
        let mut recorder = Recorder::new(&Head {
            code: welcome.code,
            app: options.app.clone(),
            environment: options.environment.clone(),
            tick_rate: welcome.tick_rate,
            schema: world.schema().clone(),
            opened: welcome.opened,
        });
        players.iter().for_each(|player| recorder.came(player.id, &player.name));
        self.recorder = Some(Box::new(recorder));
        Ok(())
    }

    pub(crate) fn end(&mut self, ended: Ended) {
        if let Some(recorder) = &mut self.recorder {
            recorder.end(ended);
        }
    }

    /// Records the last commit, at `now` of room time.
    pub(crate) fn observe(&mut self, world: &World, now: Instant) {
        if let Some(recorder) = &mut self.recorder {
            recorder.observe(world, now);
        }
    }

    /// Records members that join and leave.
    pub(crate) fn hear(&mut self, control: &ToMember) {
        let Some(recorder) = &mut self.recorder else { return };
        match control {
            ToMember::Joined(info) => recorder.came(info.id, &info.name),
            ToMember::Left { member, .. } => recorder.left(*member),
            _ => {}
        }
    }
}
