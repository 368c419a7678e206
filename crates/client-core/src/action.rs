//! Predicted actions: what a game defines once, and its owner and the host apply alike.

mod scene;

pub(crate) use scene::{Making, Scene};

use crate::defined::{Actions, Outside};
use crate::error::RoomError;
use crate::message::check_name;
use crate::players::Players;
use crate::simulation::{Past, Simulation};
use crate::state::SharedState;
use crate::world::WorldAccess;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::{EntityId, Instant, MemberId, Tick, limits};
use parlor_sync::schema::Replicated;
use parlor_sync::value::{Value, from_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;

/// An action of a game that its player sees at once, and that the host decides in the same step.
///
/// [`apply`](Self::apply) runs at the owner when the action is made, at the host in that step, and again at both
/// when steps are run again. It depends on the world and on the action's own fields, not on the clock. It writes
/// what the owner [predicts](crate::Options::predicted); other writes are left to the host.
pub trait Action: Serialize + DeserializeOwned + 'static {
    /// The action's name, 1 to 64 bytes, the same at all members.
    const NAME: &'static str;

    /// Applies the action to the world.
    ///
    /// # Errors
    /// [`ActionError`] refuses the action: what it wrote is undone, and its owner gets the reason.
    fn apply(&self, world: &mut Acting<'_>) -> Result<(), ActionError>;
}

/// Why an action is not applied. A name makes one: `return Err("no_ammo".into())`.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionError {
    /// The game refuses it, for a reason with a name.
    Refused(&'static str),
    /// It could not read or write the world.
    Room(RoomError),
}

impl From<&'static str> for ActionError {
    fn from(reason: &'static str) -> Self {
        ActionError::Refused(reason)
    }
}

impl From<RoomError> for ActionError {
    fn from(error: RoomError) -> Self {
        ActionError::Room(error)
    }
}

/// The game's reason for an action that failed without one.
pub(crate) const FAILED: &str = "failed";

impl ActionError {
    fn refusal(&self) -> ActionRefusal {
        match self {
            ActionError::Refused(reason) => by_game(reason),
            ActionError::Room(_) => by_game(FAILED),
        }
    }
}

/// A refusal by the game. A reason that is no label is [`FAILED`].
pub(crate) fn by_game(reason: &str) -> ActionRefusal {
    let is_label = (1..=limits::LABEL_BYTES_MAX).contains(&reason.len());
    ActionRefusal::ByGame { reason: if is_label { reason } else { FAILED }.to_owned() }
}

type Run = fn(&Value, &mut Acting<'_>) -> Result<(), ActionRefusal>;

impl Actions {
    /// Defines an action.
    ///
    /// # Errors
    /// A text for a person, if the name is empty, too long or taken.
    pub fn define<A: Action>(&mut self) -> Result<(), String> {
        let name = A::NAME;
        check_name("the name of an action", name)?;
        let run: Run = run::<A>;
        self.insert(name, run)
    }

    /// Applies an action, and returns the entities that it wrote; or undoes it, and returns why. `None` if the game
    /// must apply it.
    fn apply(
        &self,
        name: &str,
        value: &Value,
        mut acting: Acting<'_>,
    ) -> Option<Result<Vec<EntityId>, ActionRefusal>> {
        if !self.has(name) {
            return Some(Err(ActionRefusal::NotDefined));
        }
        if let Some(why) = acting.shared.refusal(acting.made.from, acting.made.entity) {
            return Some(Err(why));
        }
        if self.get::<Outside>(name).is_some() {
            return None;
        }
        let run: &Run = self.get(name)?;
        let applied = run(value, &mut acting);
        let written = acting.end(applied.is_ok());
        Some(applied.map(|()| written))
    }
}

fn run<A: Action>(value: &Value, acting: &mut Acting<'_>) -> Result<(), ActionRefusal> {
    let action: A = from_value(value).map_err(|_| ActionRefusal::Unreadable)?;
    action.apply(acting).map_err(|error| error.refusal())
}

/// Who made an action, and of what.
#[derive(Clone, Copy, Debug)]
struct Made {
    from: MemberId,
    number: u32,
    entity: EntityId,
    /// Whether it is applied here for the first time.
    is_first: bool,
}

type Undo = Box<dyn FnOnce(&mut SharedState)>;

/// The world, while an [`Action`] is applied.
pub struct Acting<'a> {
    shared: &'a mut SharedState,
    simulation: &'a mut Simulation,
    welcome: &'a Welcome,
    players: &'a Players,
    rewind_max: Duration,
    now: Instant,
    made: Made,
    undo: Vec<Undo>,
    despawns: Vec<EntityId>,
    written: Vec<EntityId>,
}

impl fmt::Debug for Acting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acting").field("made", &self.made).finish_non_exhaustive()
    }
}

impl Acting<'_> {
    /// Keeps what was done, or undoes it. Returns the entities that were written.
    fn end(mut self, keep: bool) -> Vec<EntityId> {
        if !keep {
            self.undo.into_iter().rev().for_each(|undo| undo(self.shared));
            return Vec::new();
        }
        let Some(host) = self.shared.host_mut() else { return self.written };
        for entity in self.despawns {
            // It may be gone already: an action may name it twice.
            if host.despawn(entity).is_ok() {
                self.written.push(entity);
            }
        }
        self.written
    }

    fn world(&mut self) -> WorldAccess<'_> {
        WorldAccess::new(self.shared, self.simulation, (self.welcome, self.players), None, self.now)
    }
}

/// What an action reads.
impl Acting<'_> {
    /// The entity that the action is made with. The member owns it.
    pub fn entity(&self) -> EntityId {
        self.made.entity
    }

    /// The member that made the action.
    pub fn member(&self) -> MemberId {
        self.made.from
    }

    /// The running step.
    pub fn tick(&self) -> Tick {
        self.simulation.step().tick
    }

    /// Whether this process is the host, which decides. At the owner it is a prediction.
    pub fn is_host(&self) -> bool {
        self.shared.host().is_some()
    }

    /// All entities that this process sees, by ascending slot.
    pub fn entities(&mut self) -> Vec<EntityId> {
        self.world().entities()
    }

    /// The owner of an entity; `None` if it has none.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity.
    pub fn owner(&mut self, entity: EntityId) -> Result<Option<MemberId>, RoomError> {
        self.world().owner(entity)
    }

    /// A component of an entity: see [`WorldAccess::component`].
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        Ok(self.shared.component(entity)?)
    }

    /// Looks at the world as the member saw it, at the host; `None` at the owner. See
    /// [`RoomCore::rewind`](crate::RoomCore::rewind).
    pub fn rewind<R>(&mut self, look: impl FnOnce(&mut Past<'_>) -> R) -> Option<R> {
        let world = self.shared.host()?.world();
        Some(look(&mut self.simulation.past(world, self.made.from, self.rewind_max)))
    }

    /// Whether to show a one-shot effect of this action, such as a sound: once at each process, however often the
    /// action is applied.
    pub fn once(&mut self, effect: &str) -> bool {
        let number = u64::from(self.made.from.0) << 32 | u64::from(self.made.number);
        self.simulation.is_first(effect, number)
    }
}

/// What an action writes. It is undone if the action is refused.
impl Acting<'_> {
    /// Sets a component of an entity. Returns whether this process writes it: the host writes all, an owner what it
    /// predicts of its own entities. What it does not write is left to the host.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such entity, the schema has no such component, or the value does not fit.
    pub fn insert<C: Replicated + 'static>(
        &mut self,
        entity: EntityId,
        component: &C,
    ) -> Result<bool, RoomError> {
        let before: Option<C> = self.component(entity)?;
        let is_written = write(self.shared, entity, Some(component))?;
        if is_written {
            self.restore_on_refusal(entity, before);
        }
        Ok(is_written)
    }

    /// Removes a component of an entity, where [`insert`](Self::insert) would write it. Returns whether it did.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such entity, or the schema has no such component.
    pub fn remove<C: Replicated + 'static>(&mut self, entity: EntityId) -> Result<bool, RoomError> {
        let Some(before) = self.component::<C>(entity)? else { return Ok(false) };
        let is_written = write::<C>(self.shared, entity, None)?;
        if is_written {
            self.restore_on_refusal(entity, Some(before));
        }
        Ok(is_written)
    }

    /// Spawns an entity, at the host, when the action is decided; `None` at the owner, and when the host runs the
    /// step again.
    ///
    /// # Errors
    /// [`RoomError`] if there are as many entities as there can be.
    pub fn spawn(&mut self, owner: Option<MemberId>) -> Result<Option<EntityId>, RoomError> {
        let Some(host) = self.shared.host_mut().filter(|_| self.made.is_first) else { return Ok(None) };
        let entity = host.spawn(owner)?;
        self.written.push(entity);
        self.undo.push(Box::new(move |shared| {
            let host = shared.host_mut().and_then(|host| host.entity(entity).ok());
            host.map(|world| world.despawn(entity));
        }));
        Ok(Some(entity))
    }

    /// Despawns an entity at the end of the action, at the host. At the owner it stays until the host's state comes.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity.
    pub fn despawn(&mut self, entity: EntityId) -> Result<(), RoomError> {
        self.shared.owner(entity)?;
        self.despawns.push(entity);
        Ok(())
    }

    fn restore_on_refusal<C: Replicated + 'static>(&mut self, entity: EntityId, before: Option<C>) {
        self.written.push(entity);
        self.undo.push(Box::new(move |shared| {
            // It was there a moment ago, so it fits.
            let _: Result<bool, RoomError> = write(shared, entity, before.as_ref());
        }));
    }
}

/// Sets or removes a component where this process writes it.
fn write<C: Replicated>(
    shared: &mut SharedState,
    entity: EntityId,
    component: Option<&C>,
) -> Result<bool, RoomError> {
    if let Some(host) = shared.host_mut() {
        let world = host.entity(entity)?;
        match component {
            Some(component) => drop(world.insert(entity, component)?),
            None => drop(world.remove::<C>(entity)?),
        }
        return Ok(true);
    }
    match component {
        Some(component) => match shared.insert_predicted(entity, component) {
            Some(written) => written.map(|()| true).map_err(RoomError::from),
            None => Ok(false),
        },
        None => {
            let id = shared.component_id::<C>()?;
            Ok(shared.remove_predicted(entity, id).is_some())
        }
    }
}
