//! States that players send of themselves, as a game holds them.

use super::room::Room;
use parlor_client_core::RoomError;
use parlor_proto::MemberId;
use parlor_sync::replicator::{Flows, Latency};
use parlor_sync::schema::Replicated;
use std::marker::PhantomData;
use std::time::Duration;

impl Room {
    /// States of the type `C` that players send of themselves: this player's, to set, and those of all, to
    /// read.
    pub fn own_state<C: Replicated>(&self) -> OwnState<'_, C> {
        OwnState { room: self, state: PhantomData }
    }

    /// The player whom messages to [`Recipient::Primary`](crate::Recipient::Primary) reach, if there is one:
    /// the hub names one that keeps up, and another when it lags or leaves.
    /// [`Event::Primary`](crate::Event::Primary) tells of each.
    pub fn primary(&self) -> Option<MemberId> {
        self.with(|core, _| core.primary())
    }
}

/// States that players send of themselves, from [`Room::own_state`]: each declares a template
/// ([`RoomBuilder::template`](super::RoomBuilder::template)), sets its own state, and reads those of all
/// others at any moment.
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
/// let mut room = Room::join("race", "K7QM").template(template).open();
/// loop {
///     while let Some(event) = room.poll() {
///         if let Event::Closed(why) = event {
///             return Err(why.into());
///         }
///     }
///     while let Some(step) = room.step() {
///         step.own_state().set(&Car { place: [1.0, 2.0], heading: 0.0 })?;
///     }
///     for player in room.players() {
///         // Draw what this gives: where the car is at this moment.
///         let _ = room.own_state::<Car>().of(player.id);
///     }
///     std::thread::sleep(room.until_next_tick());
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct OwnState<'a, C> {
    room: &'a Room,
    state: PhantomData<fn(C) -> C>,
}

impl<C: Replicated> OwnState<'_, C> {
    /// Sets this player's own state, as often as the game likes. With each step it is decided whether others
    /// must be told.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or was opened without a template, a number is NaN or infinite,
    /// or the type does not fit the template.
    pub fn set(&self, state: &C) -> Result<(), RoomError> {
        self.room.with(|core, _| core.set_own(state))
    }

    /// Says that what is set next does not follow from what was before: others see it there at once, and
    /// nothing in between.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or was opened without a template.
    pub fn teleport(&self) -> Result<(), RoomError> {
        self.room.with(|core, _| core.teleport_own())
    }

    /// The state of a player now: extrapolated beyond what came, and where that proves wrong, the error is
    /// blended away. The own state is as it was set last. `None` until something came, or if the player's
    /// state is not of this type.
    pub fn of(&self, player: MemberId) -> Option<C> {
        self.room.with(|core, now| core.remote_state(player, None, now))
    }

    /// The state of a player at a moment of [`server_time`](Room::server_time), as [`of`](Self::of).
    pub fn at(&self, player: MemberId, moment: Duration) -> Option<C> {
        self.room.with(|core, now| core.remote_state(player, Some(moment), now))
    }

    /// How the states of a player travel here, and this player's there: latency and reverse latency, loss and
    /// bandwidth. The other end measures the latter: while the game reads this, it is asked every 2 s, and
    /// [`Flows::up`] is there after a round trip. A spectator cannot ask.
    pub fn diagnostics(&self, player: MemberId) -> Flows {
        self.room.with(|core, now| core.remote_flows(player, now))
    }

    /// How late the states of a player arrive here.
    pub fn latency(&self, player: MemberId) -> Option<Latency> {
        self.room.with(|core, _| core.remote_latency(player))
    }
}
