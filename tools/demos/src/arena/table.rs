//! The game's interface to a step, in a room with sockets or in the simulator.

use super::game::{Seen, look};
use super::rules::{Order, Tank};
use parlor::{EntityId, MemberId, RoomError, Step, WorldAccess, WorldReader};
use parlor_client_core::RoomCore;
use parlor_proto::Instant;

/// A step of a room as the game uses it.
pub trait Table {
    /// This player's id, once the room is open.
    fn me(&self) -> Option<MemberId>;

    /// All players in the room.
    fn players(&self) -> Vec<MemberId>;

    /// The number of the step that is running.
    fn step_number(&self) -> u32;

    /// Records this player's order for the step that is running, and sends it.
    fn send(&mut self, order: &Order) -> Result<(), RoomError>;

    /// A player's order for the step that is running, if one came that can be read.
    fn order(&mut self, of: MemberId) -> Option<Order>;

    /// Looks at the world, and changes what may be changed.
    fn world<R>(&mut self, then: impl FnOnce(&mut WorldAccess<'_>) -> R) -> Result<R, RoomError>;

    /// At the host: all tanks but one, where a player saw them when it gave the order of this step. Nothing at a member.
    fn seen_by(&mut self, player: MemberId, but: EntityId) -> Result<Past, RoomError>;

    /// Whether an effect is to be shown, and was not before.
    fn is_first(&mut self, effect: &str, number: u64) -> bool;
}

/// What a player saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// Tanks and where they were, in metres.
    pub tanks: Vec<(EntityId, [f32; 2])>,
    /// Whether it was longer ago than can be gone back: then this is the oldest that can be had.
    pub is_beyond: bool,
}

/// A room without sockets, and what its clock says.
pub struct Core<'a>(pub &'a mut RoomCore, pub Instant);

impl Core<'_> {
    /// All tanks as they are to be drawn: see [`look`]. Before the room is open there are none.
    pub fn look(&mut self, is_smooth: bool) -> Vec<Seen> {
        let world = self.0.world(self.1);
        world.map(|world| look(&mut WorldReader::from(world), is_smooth)).unwrap_or_default()
    }
}

impl Table for Step<'_> {
    fn me(&self) -> Option<MemberId> {
        self.local_id()
    }

    fn players(&self) -> Vec<MemberId> {
        (**self).players().iter().map(|player| player.id).collect()
    }

    fn step_number(&self) -> u32 {
        self.number().0
    }

    fn send(&mut self, order: &Order) -> Result<(), RoomError> {
        self.send_input(order)
    }

    fn order(&mut self, of: MemberId) -> Option<Order> {
        self.input(of)
    }

    fn world<R>(&mut self, then: impl FnOnce(&mut WorldAccess<'_>) -> R) -> Result<R, RoomError> {
        self.edit(then)
    }

    fn seen_by(&mut self, player: MemberId, but: EntityId) -> Result<Past, RoomError> {
        self.host().map_or(Ok(Past::default()), |mut host| host.rewind(player, |past| seen(past, but)))
    }

    fn is_first(&mut self, effect: &str, number: u64) -> bool {
        self.once(effect, number)
    }
}

impl Table for Core<'_> {
    fn me(&self) -> Option<MemberId> {
        self.0.local_id()
    }

    fn players(&self) -> Vec<MemberId> {
        self.0.players().iter().map(|player| player.id).collect()
    }

    fn step_number(&self) -> u32 {
        self.0.tick_number().map_or(0, |tick| tick.0)
    }

    fn send(&mut self, order: &Order) -> Result<(), RoomError> {
        self.0.send_input(order)
    }

    fn order(&mut self, of: MemberId) -> Option<Order> {
        self.0.input(of).ok().flatten()
    }

    fn world<R>(&mut self, then: impl FnOnce(&mut WorldAccess<'_>) -> R) -> Result<R, RoomError> {
        Ok(then(&mut self.0.world(self.1)?))
    }

    fn seen_by(&mut self, player: MemberId, but: EntityId) -> Result<Past, RoomError> {
        self.0.rewind(player, |past| seen(past, but))
    }

    fn is_first(&mut self, effect: &str, number: u64) -> bool {
        self.0.once(effect, number)
    }
}

/// All tanks but one as they were.
fn seen(past: &mut parlor::Past<'_>, but: EntityId) -> Past {
    let others = past.entities().into_iter().filter(|entity| *entity != but);
    let tanks = others.filter_map(|entity| {
        let tank = past.component::<Tank>(entity).ok()??;
        Some((entity, tank.position))
    });
    Past { tanks: tanks.collect(), is_beyond: past.is_beyond() }
}
