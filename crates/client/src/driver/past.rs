//! What members saw, as a host's game asks for it.

use super::builder::RoomBuilder;
use super::room::Room;
use crate::core::{Past, RoomError};
use parlor_proto::MemberId;
use parlor_sync::limits::{RESIMULATE_TICKS_MAX, REWIND_MAX, SIMULATION_DELAY_TICKS_MAX};
use std::time::Duration;

/// For a host.
impl Room {
    /// Lets the host look at the world as `member` saw it when it made the input that counts in this step: to judge a shot by
    /// what the shooter aimed at. See [`Past`] for what is there.
    ///
    /// ```no_run
    /// # use parlor::{MemberId, Room};
    /// # struct Tank { at: [f32; 2] }
    /// # parlor::replicated!(Tank as "tank" => { at: parlor::schema::Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
    /// # fn shoot(room: &mut Room, shooter: MemberId, meets: impl Fn(&Tank) -> bool) -> Result<(), parlor::RoomError> {
    /// let hit = room.rewind(shooter, |past| {
    ///     let mut all = past.entities().into_iter();
    ///     all.find(|entity| past.component::<Tank>(*entity).ok().flatten().is_some_and(|tank| meets(&tank)))
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such player.
    pub fn rewind<R>(
        &mut self,
        member: MemberId,
        look: impl FnOnce(&mut Past<'_>) -> R,
    ) -> Result<R, RoomError> {
        self.with(|core, _| core.rewind(member, look))
    }
}

/// For a host.
impl RoomBuilder {
    /// How far back [`Room::rewind`] looks at most: up to 250 ms, and that if not said. Less is fairer to whoever is shot at,
    /// more to whoever shoots over a long way.
    pub fn rewind_max(mut self, longest: Duration) -> Self {
        if longest > REWIND_MAX {
            self.note(Err(format!("rewind_max is {longest:?}; it may be up to {REWIND_MAX:?}")));
        }
        self.options.rewind_max = longest;
        self
    }

    /// Runs up to so many steps again when an input comes late, before each new step: 0 to 32, and 0, which runs none again, if
    /// not said. Everything that a step changes must then be in components of entities: they are set back, and nothing else is. Steps
    /// before an entity came or went are not run again.
    pub fn resimulate(mut self, ticks: u32) -> Self {
        if ticks > RESIMULATE_TICKS_MAX {
            self.note(Err(format!("resimulate is {ticks}; it may be 0 to {RESIMULATE_TICKS_MAX} ticks")));
        }
        self.options.resimulate_ticks = ticks;
        self
    }

    /// Runs the host's steps so many ticks behind the room's time: 0 to 32, and 0 if not said. Fewer inputs come late then, and
    /// everybody sees everything so much later.
    pub fn simulation_delay(mut self, ticks: u32) -> Self {
        if ticks > SIMULATION_DELAY_TICKS_MAX {
            let text =
                format!("simulation_delay is {ticks}; it may be 0 to {SIMULATION_DELAY_TICKS_MAX} ticks");
            self.note(Err(text));
        }
        self.options.simulation_delay_ticks = ticks;
        self
    }
}
