//! States that players send of themselves, as a game holds them.

use super::room::Room;
use crate::core::RoomError;
use parlor_proto::MemberId;
use parlor_sync::replicator::Latency;
use parlor_sync::schema::Replicated;
use serde::Serialize;
use std::time::Duration;

/// States that players send of themselves: each declares a template ([`RoomBuilder::template`](super::RoomBuilder::template)), sets
/// its own state, and reads those of all others at any moment.
///
/// ```no_run
/// use parlor::replicator::{Template, Tolerance};
/// use parlor::schema::Kind;
/// use parlor::{Event, Room, replicated};
///
/// struct Car {
///     place: [f32; 2],
///     heading: f32,
/// }
/// replicated!(Car as "car" => {
///     place: Kind::vector2(-512.0, 512.0, 1.0 / 64.0),
///     heading: Kind::angle(1024),
/// });
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Others may see it 10 cm off before they are told.
/// let template = Template::of::<Car>().tolerance("place", Tolerance::off_by(0.1)).build()?;
/// let mut room = Room::guest("race", "K7QM").template(template).open();
/// loop {
///     while let Some(event) = room.poll() {
///         if let Event::Closed(why) = event {
///             return Err(why.into());
///         }
///     }
///     while room.tick() {
///         room.set_own(&Car { place: [1.0, 2.0], heading: 0.0 })?;
///     }
///     for player in room.players() {
///         // Draw what this gives: where the car is at this moment.
///         let _ = room.proxy::<Car>(player.id, None);
///     }
///     std::thread::sleep(room.until_next_tick());
/// }
/// # }
/// ```
impl Room {
    /// Sets this player's own state, as often as the game likes. With each step it is decided whether others must be told.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or was opened without a template, a number is NaN or infinite, or the type does not
    /// fit the template.
    pub fn set_own<C: Replicated>(&mut self, state: &C) -> Result<(), RoomError> {
        self.with(|core, _| core.set_own(state))
    }

    /// Says that what is set next does not follow from what was before: others see it there at once, and nothing in between.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or was opened without a template.
    pub fn cut_own(&mut self) -> Result<(), RoomError> {
        self.with(|core, _| core.cut_own())
    }

    /// The state of a player at a moment of [`server_time`](Self::server_time), now if not said: extrapolated beyond what came,
    /// and where that proves wrong, the error is blended away. The own state is as it was set last. `None` until something came,
    /// or if the player's state is not of this type.
    pub fn proxy<C: Replicated>(&mut self, player: MemberId, at: Option<Duration>) -> Option<C> {
        self.with(|core, now| core.proxy(player, at, now))
    }

    /// How late the states of a player arrive here.
    #[must_use]
    pub fn proxy_latency(&self, player: MemberId) -> Option<Latency> {
        self.with(|core, _| core.proxy_latency(player))
    }

    /// The player whom messages to the primary reach, if there is one: the hub names one that keeps up, and another when it
    /// lags or leaves. [`Event::Primary`](crate::Event::Primary) tells of each.
    #[must_use]
    pub fn primary(&self) -> Option<MemberId> {
        self.with(|core, _| core.primary())
    }

    /// Sends an event to all other players: in the order of sending, or as soon as it can be. It arrives, as a message.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the event cannot be written.
    pub fn broadcast_event<T: Serialize + ?Sized>(
        &mut self,
        kind: &str,
        event: &T,
        in_order: bool,
    ) -> Result<(), RoomError> {
        self.with(|core, _| core.broadcast_event(kind, event, in_order))
    }

    /// Sends an event to the primary, whoever that is when the hub has it: in the order of sending, or as soon as it can be. It
    /// comes as a message.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the event cannot be written.
    pub fn send_to_primary<T: Serialize + ?Sized>(
        &mut self,
        kind: &str,
        event: &T,
        in_order: bool,
    ) -> Result<(), RoomError> {
        self.with(|core, _| core.send_to_primary(kind, event, in_order))
    }
}
