//! The fixed step: what a game does in it, and what only the host does.

use super::host::Host;
use super::room::{Room, Running};
use parlor_client_core::{Action, Moment, Past, RoomError, WorldAccess};
use parlor_proto::{EntityId, MemberId, Tick, TickRate};
use parlor_sync::schema::Replicated;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Steps.
impl Room {
    /// Begins a fixed step if one is due. At most eight run in a row; the rest of a backlog is dropped and
    /// counted ([`Diagnostics::ticks_dropped`](crate::Diagnostics::ticks_dropped)), and the log (`tracing`) warns
    /// once. Messages and state of the steps are sent when no further step is due, so call this until it gives
    /// `None`.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::join("tanks", "K7QM").open();
    /// while let Some(mut step) = room.step() {
    ///     step.send_input("jump").expect("the room is open while it steps");
    /// }
    /// ```
    pub fn step(&mut self) -> Option<Step<'_>> {
        let now = self.shared.now();
        let mut core = self.shared.lock();
        self.running = if core.tick(now) {
            core.tick_number().map(|number| Running { number, is_replay: core.is_replay() })
        } else {
            None
        };
        if let Some(Running { number, is_replay: false }) = self.running {
            self.shared.log_moment(&core, Moment::Step, Some(number), now);
        }
        let wake = self.running.is_none() && core.take_wants_driver();
        let dropped = core.ticks_dropped();
        self.wind(&mut core);
        drop(core);
        if self.running.is_none()
            && let Some(advice) = self.advice.frame_ended(now, dropped)
        {
            tracing::warn!("{advice}");
        }
        if wake {
            self.shared.wake();
        }
        self.current_step()
    }

    /// Brings the time that has passed in the game, for a game that keeps its own: an engine's frame time, a game
    /// that pauses. Call it once in each frame, before [`step`](Self::step). From the first call on steps run by
    /// the game's time, and none is due without it.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::join("tanks", "K7QM").open();
    /// # let frame_time = || std::time::Duration::from_millis(16);
    /// loop {
    ///     while let Some(event) = room.poll() { /* … */ }
    ///     room.advance(frame_time());
    ///     while let Some(mut step) = room.step() {
    ///         step.send_input("jump").expect("the room is open while it steps");
    ///     }
    /// }
    /// ```
    ///
    /// All members share the room's clock, so the game's time can only be behind it:
    ///
    /// - Game time that is ahead of the room's clock is discarded. Nothing runs faster than the room.
    /// - If it is behind, steps run up to a twentieth faster until it is not.
    /// - If it is more than 250 ms behind, as in slow motion and after a pause, it leaps to the room's clock. The steps
    ///   in between are dropped and counted ([`Diagnostics::ticks_dropped`](crate::Diagnostics::ticks_dropped)).
    /// - Zero pauses the steps of this process alone. A host that pauses stops its room for all.
    ///
    /// A guest's lead takes a delay of its steps into account, as the host's reports show it. What others do is drawn
    /// by the room's clock.
    pub fn advance(&mut self, elapsed: Duration) {
        let now = self.shared.now();
        self.shared.lock().advance(elapsed, now);
        self.advice.advanced(now);
    }

    /// The step that [`step`](Self::step) began last, as long as neither it nor [`poll`](Self::poll) was
    /// called since. It is for engines that run the systems of a step one by one, and cannot pass the
    /// [`Step`] to each.
    pub fn current_step(&mut self) -> Option<Step<'_>> {
        let Running { number, is_replay } = self.running?;
        Some(Step { room: self, number, is_replay })
    }

    /// Whether a one-shot effect is to be shown, such as a sound or a flash: the first time that it is asked
    /// for under this number in 256 ticks, however often the step that brings it is run again.
    ///
    /// ```no_run
    /// # fn shoot(step: &parlor::Step) {
    /// # let play_sound = || ();
    /// if step.once("shot", step.number().0.into()) {
    ///     play_sound();
    /// }
    /// # }
    /// ```
    pub fn once(&self, effect: &str, number: u64) -> bool {
        self.with(|core, _| core.once(effect, number))
    }

    /// Steps of the room per second, once it is open.
    pub fn tick_hz(&self) -> Option<u16> {
        self.with(|core, _| core.tick_rate()).map(TickRate::hz)
    }

    /// Number of the last step, for what happens between steps. In a step, [`Step::number`].
    pub fn tick_number(&self) -> Option<Tick> {
        self.with(|core, _| core.tick_number())
    }
}

/// One fixed step of the game: [`Room::step`] gives it. It reads all that the [`Room`] does.
///
/// The same function may run at the host and at guests: [`input`](Self::input) and [`insert`](Self::insert)
/// do at each what it may do. What only the host does is behind [`host`](Self::host), which is `None` at a
/// guest.
///
/// ```no_run
/// # fn play(room: &mut parlor::Room) -> Result<(), parlor::RoomError> {
/// while let Some(mut step) = room.step() {
///     step.send_input(&1i32)?;
///     if let Some(mut host) = step.host() {
///         for (player, moved) in host.inputs::<i32>() {
///             let key = format!("tank/{player}");
///             let place: i32 = host.state().get(&key)?.unwrap_or_default();
///             host.set(&key, &(place + moved))?;
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// Nothing of a step can be done outside of one:
///
/// ```compile_fail,E0599
/// # let mut room = parlor::Room::host("tanks").open();
/// room.send_input(&1i32);
/// ```
///
/// And nothing can be polled within one, because reads change in [`Room::poll`]:
///
/// ```compile_fail,E0596
/// # let mut room = parlor::Room::host("tanks").open();
/// let mut step = room.step().unwrap();
/// step.poll();
/// ```
#[derive(Debug)]
pub struct Step<'a> {
    room: &'a mut Room,
    number: Tick,
    is_replay: bool,
}

impl Deref for Step<'_> {
    type Target = Room;

    fn deref(&self) -> &Room {
        self.room
    }
}

impl Step<'_> {
    /// The number of this step: the tick, the same for all members.
    pub fn number(&self) -> Tick {
        self.number
    }

    /// Whether this step was run before and is run again: because what a guest predicted turned out
    /// otherwise, or an input came late to a host that [re-simulates](crate::RoomBuilder::resimulate). What
    /// such a step sends and shows was sent and shown.
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// What only the host does in a step; `None` if this process is not the host.
    pub fn host(&mut self) -> Option<HostStep<'_>> {
        let (number, is_replay) = (self.number, self.is_replay);
        Some(HostStep { host: self.room.as_host()?, number, is_replay })
    }

    /// Says what this player wants in this step; call it once in each. It is sent until the host has used it.
    /// The host's own goes the same way. In a [replayed](Self::is_replay) step it does nothing: what was
    /// recorded counts.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or the input has more than 512 bytes.
    pub fn send_input<T: Serialize + ?Sized>(&mut self, input: &T) -> Result<(), RoomError> {
        self.room.with(|core, _| core.send_input(input))
    }

    /// As [`send_input`](Self::send_input), with what `sample` reads from the player's devices. It is called once for each step: in a
    /// [replayed](Self::is_replay) one it is not.
    ///
    /// # Errors
    /// As [`send_input`](Self::send_input).
    pub fn sample_input<T: Serialize>(&mut self, sample: impl FnOnce() -> T) -> Result<(), RoomError> {
        if self.is_replay { Ok(()) } else { self.send_input(&sample()) }
    }

    /// What a player wants in this step: the input for it, or the newest one before it that came. `None`
    /// until the first, and for an input that cannot be read as `T`, because a hostile player can send
    /// anything; [`Diagnostics::messages_unreadable`](crate::Diagnostics::messages_unreadable) counts those.
    /// The host reads everybody's, a guest its own alone and `None` for others.
    pub fn input<T: DeserializeOwned>(&mut self, player: MemberId) -> Option<T> {
        self.room.with(|core, _| core.input(player)).ok().flatten()
    }

    /// Sets a component of an entity: at the host of any, at a guest what it
    /// [predicts](crate::RoomBuilder::predict) of its own. Numbers beyond the range of their field are moved
    /// to its end.
    ///
    /// # Errors
    /// [`RoomError`] if a guest does not predict it, there is no such entity, the schema has no such
    /// component, a number is NaN or infinite, a text is too long, or the world is too large. Nothing changed
    /// then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, component: &C) -> Result<(), RoomError> {
        self.edit(|world| world.insert(entity, component))?
    }

    /// Changes a component of an entity in place, where [`insert`](Self::insert) could set it. Returns whether the entity has it.
    ///
    /// ```no_run
    /// # use parlor::schema::Kind;
    /// # struct Tank { shells: u8 }
    /// # parlor::replicated!(Tank as "tank" => { shells: Kind::int(0, 20) });
    /// # fn reload(step: &mut parlor::Step, tank: parlor::EntityId) -> Result<(), parlor::RoomError> {
    /// step.modify(tank, |tank: &mut Tank| tank.shells = 20)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn modify<C: Replicated>(
        &mut self,
        entity: EntityId,
        change: impl FnOnce(&mut C),
    ) -> Result<bool, RoomError> {
        self.edit(|world| world.modify(entity, change))?
    }

    /// Takes a component from an entity, where [`insert`](Self::insert) could set it. Returns whether it had
    /// one.
    ///
    /// # Errors
    /// [`RoomError`] if a guest does not predict it, there is no such entity, or the schema has no such
    /// component.
    pub fn remove_component<C: Replicated>(&mut self, entity: EntityId) -> Result<bool, RoomError> {
        self.edit(|world| world.remove::<C>(entity))?
    }

    /// Reads and changes many entities at one go, each as [`insert`](Self::insert) and [`host`](Self::host)
    /// may: nothing that the connection does comes in between.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open.
    pub fn edit<T>(&mut self, then: impl FnOnce(&mut WorldAccess<'_>) -> T) -> Result<T, RoomError> {
        self.room.access(then)
    }

    /// Makes a [predicted action](crate::RoomBuilder::action) on an entity of this player's own. It is applied at once, and at the host in
    /// the same step. If the host refuses it, what it did is undone and [`Event::ActionRefused`](crate::Event::ActionRefused) has the reason.
    /// Call it before the step writes anything else, because the host and replays apply the actions of a step first. Does nothing in a
    /// [replayed](Self::is_replay) step: what was made in it is applied again.
    ///
    /// [`Room::act`] asks the host's game for something that this player need not see at once; `Room::act(&step, …)` does so in a step.
    ///
    /// # Errors
    /// [`RoomError::Refused`] if there is no such entity, it is not this player's own, or the action refuses itself; nothing changed then.
    /// [`RoomError`] if the action is not defined, four were made in this step, 64 are undecided, or it has too many bytes: those of a step
    /// and its input have 512 together.
    pub fn act<A: Action>(&mut self, entity: EntityId, action: &A) -> Result<(), RoomError> {
        self.room.with(|core, now| core.act_predicted(entity, action, now))
    }

    /// The entities that predicted actions wrote in this step so far, those spawned and despawned included. An engine
    /// that keeps a copy of the world updates these before its step runs.
    pub fn acted(&self) -> Vec<EntityId> {
        self.room.with(|core, _| core.acted())
    }

    /// Predicts a key of the state: what it will be once the host has used this player's input of this step.
    /// [`StateView::predicted`](super::StateView::predicted) reads it.
    ///
    /// ```no_run
    /// # fn play(room: &mut parlor::Room) -> Result<(), parlor::RoomError> {
    /// while let Some(mut step) = room.step() {
    ///     step.send_input(&1i32)?;
    ///     let place: i32 = step.state().predicted("tank/1")?.unwrap_or_default();
    ///     step.set_predicted("tank/1", &(place + 1))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or more than 64 keys would be predicted.
    pub fn set_predicted<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), RoomError> {
        self.room.with(|core, _| core.set_predicted(key, value))
    }
}

/// A step at the host, from [`Step::host`]: reads all that the [`Room`] does, writes all that [`Host`] does,
/// and judges inputs.
#[derive(Debug)]
pub struct HostStep<'a> {
    host: Host<'a>,
    number: Tick,
    is_replay: bool,
}

impl<'a> Deref for HostStep<'a> {
    type Target = Host<'a>;

    fn deref(&self) -> &Host<'a> {
        &self.host
    }
}

impl DerefMut for HostStep<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.host
    }
}

impl HostStep<'_> {
    /// The number of this step: see [`Step::number`].
    pub fn number(&self) -> Tick {
        self.number
    }

    /// Whether this step is run again: see [`Step::is_replay`].
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// What a player wants in this step: see [`Step::input`].
    pub fn input<T: DeserializeOwned>(&mut self, player: MemberId) -> Option<T> {
        self.with(|core, _| core.input(player)).ok().flatten()
    }

    /// What all players that sent something want in this step, by id. Inputs that cannot be read as `T` are
    /// left out and counted, as with [`Step::input`].
    pub fn inputs<T: DeserializeOwned>(&mut self) -> Vec<(MemberId, T)> {
        // A room that closed within the step has no inputs any more; the next poll says so.
        self.with(|core, _| core.inputs()).unwrap_or_default()
    }

    /// Looks at the world as `member` saw it when it made the input that counts in this step: to judge a shot
    /// by what the shooter aimed at. See [`Past`] for what is there.
    ///
    /// ```no_run
    /// # use parlor::{HostStep, MemberId};
    /// # struct Tank { at: [f32; 2] }
    /// # parlor::replicated!(Tank as "tank" => { at: parlor::schema::Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
    /// # fn shoot(host: &mut HostStep, shooter: MemberId, meets: impl Fn(&Tank) -> bool) -> Result<(), parlor::RoomError> {
    /// let hit = host.rewind(shooter, |past| {
    ///     let mut all = past.entities().into_iter();
    ///     all.find(|entity| past.component::<Tank>(*entity).ok().flatten().is_some_and(|tank| meets(&tank)))
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player.
    pub fn rewind<R>(
        &mut self,
        member: MemberId,
        look: impl FnOnce(&mut Past<'_>) -> R,
    ) -> Result<R, RoomError> {
        self.with(|core, _| core.rewind(member, look))
    }
}
