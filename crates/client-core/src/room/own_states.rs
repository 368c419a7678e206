//! Own states: each player's state of itself, set and read by the game.

use super::{Joined, RoomCore};
use crate::error::RoomError;
use parlor_proto::{ApiMisuse, Instant, MemberId};
use parlor_sync::replicator::{Latency, Own};
use parlor_sync::schema::Replicated;
use parlor_sync::world::WorldError;
use std::time::Duration;

/// For a game: own states of players.
impl RoomCore {
    /// Sets this player's own state, as often as the game likes. Each step decides whether an update must be
    /// sent.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or has no template, a number is NaN or infinite, or the type
    /// does not fit the template.
    pub fn set_own<C: Replicated>(&mut self, state: &C) -> Result<(), RoomError> {
        let own = self.own_state("set its own state")?;
        Ok(own.set(state).map_err(WorldError::Row)?)
    }

    /// Marks the next own state as a teleport: other members jump to it without interpolation.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or has no template.
    pub fn teleport_own(&mut self) -> Result<(), RoomError> {
        self.own_state("set its own state")?.teleport();
        Ok(())
    }

    /// The state of a player at `at` of room time. Default: at `now`. It is extrapolated beyond the newest
    /// update; errors are blended away. This player's own state is as last set. `None` until an update
    /// arrives, or if the state has another type.
    pub fn remote_state<C: Replicated>(
        &mut self,
        member: MemberId,
        at: Option<Duration>,
        now: Instant,
    ) -> Option<C> {
        let joined = self.joined.as_mut()?;
        let at = at.map_or_else(|| joined.room_time(now), |at| Instant::ZERO + at);
        if member == joined.welcome.member {
            return joined.replicas.own()?.get();
        }
        joined.players.get(member)?;
        joined.replicas.state_at(member, at)
    }

    /// Delay of a player's own states on their way here.
    pub fn remote_latency(&self, member: MemberId) -> Option<Latency> {
        self.joined.as_ref()?.replicas.latency(member)
    }

    /// The recipient of messages to the primary, if there is one.
    pub fn primary(&self) -> Option<MemberId> {
        self.joined.as_ref().and_then(|joined| joined.primary)
    }

    fn own_state(&mut self, what: &'static str) -> Result<&mut Own, RoomError> {
        let (_, Joined { replicas, .. }) = self.open_with_host(what)?;
        let missing = "this room was opened without a template: give RoomBuilder::template() one first";
        replicas.own_mut().ok_or_else(|| ApiMisuse::Bounds(missing.into()).into())
    }
}
