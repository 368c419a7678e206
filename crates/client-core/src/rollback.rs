//! The rollback lane: players simulate a common state from their inputs, without waiting for each other.

use crate::error::RoomError;
use bytes::Bytes;
use parlor_proto::OrderedMap;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{ApiMisuse, MemberId, Tick, limits};
use parlor_sync::keyed::state_hash;
use parlor_sync::limits::ROLLBACK_KEYS_MAX;
use parlor_sync::rollback::{
    self, Config, Diagnostics, Event, From, InputStatus, PlayerInput, Predictor, Request, Role, Rollback,
    RollbackError, States,
};
use parlor_sync::value::{Value, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Steps per frame at most, so that a returning game keeps drawing while it catches up.
const STEPS_MAX: u32 = 16;

/// Configuration of a rollback lane; part of it must be equal at all participants. See [`Config`] for the
/// reasons of the defaults.
#[derive(Clone, Debug)]
pub struct RollbackConfig {
    /// The players, 2 to 8. All other members are spectators. The host settles inputs, whether it plays or
    /// not.
    pub players: Vec<MemberId>,
    /// The first step, a step of the room: all participants have the state before it.
    pub begin: Tick,
    /// Distinguishes successive lanes of a room. Default: 0.
    pub session: u16,
    /// Delay from an input to the step that uses it, in ticks, 0 to 16. Default: 2.
    pub input_delay: u32,
    /// Steps ahead of the settled state at most, in ticks, 1 to 48. Default: 24.
    pub window: u32,
    /// How long the host waits for a late input, in ticks. Default: 8.
    pub patience: u32,
    /// Delay of a spectator behind the room, in ticks. Default: 60, so that a spectator cannot tell a player
    /// in time what the others do.
    pub spectator_delay: u32,
    /// How missing inputs are predicted. Default: [`repeat_last`](rollback::repeat_last).
    pub predictor: Predictor,
}

impl RollbackConfig {
    /// A lane of these players from the step `begin` on, with the defaults.
    pub fn new(players: impl IntoIterator<Item = MemberId>, begin: Tick) -> Self {
        let defaults = Config::new(2, 0, begin);
        RollbackConfig {
            players: players.into_iter().collect(),
            begin,
            session: defaults.session,
            input_delay: defaults.input_delay,
            window: defaults.window,
            patience: defaults.patience,
            spectator_delay: 60,
            predictor: defaults.predictor,
        }
    }

    fn of(&self, me: MemberId, authority: Option<MemberId>) -> Result<Config, RollbackError> {
        let number = |member: MemberId| {
            let at = self.players.iter().position(|player| *player == member);
            at.and_then(|at| u8::try_from(at).ok())
        };
        let role = match number(me) {
            Some(player) => Role::Player(player),
            None if authority == Some(me) => Role::Arbiter,
            None => Role::Spectator { delay: self.spectator_delay },
        };
        let config = Config {
            session: self.session,
            arbiter: authority.and_then(number),
            role,
            input_delay: self.input_delay,
            window: self.window,
            patience: self.patience,
            predictor: self.predictor,
            ..Config::new(u8::try_from(self.players.len()).unwrap_or(u8::MAX), 0, self.begin)
        };
        config.check()?;
        Ok(config)
    }
}

/// What a game must do next for its rollback lane: a [`Request`] without the inputs, which are read
/// separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollbackRequest {
    /// Save the game's own state before step `tick`. The lane's keys are saved already.
    Save {
        /// The step that comes next.
        tick: Tick,
    },
    /// Restore the state before step `tick`. The lane's keys are restored already.
    Load {
        /// The step that comes next.
        tick: Tick,
    },
    /// Run a step with the inputs of [`RollbackLane::input`].
    Advance {
        /// The step's number.
        tick: Tick,
        /// Whether it was run before.
        is_replay: bool,
    },
}

/// History and corrections of a key of a rollback lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RollbackKeyDiagnostics {
    /// Saved states that have the key, up to two more than the window.
    pub history: usize,
    /// How often a replay gave it another value before a step than was guessed.
    pub corrections: u64,
    /// The last such step.
    pub corrected: Option<Tick>,
}

/// The rollback lane of a room, if the game has begun one: see [`RoomCore::rollback`](crate::RoomCore::rollback).
#[derive(Debug, Default)]
pub struct RollbackLane {
    running: Option<Box<Running>>,
}

/// For a game.
impl RollbackLane {
    /// What the game must do next for its lane; `None` when nothing is left to do.
    pub fn next_request(&mut self) -> Option<RollbackRequest> {
        self.running.as_mut()?.next_request()
    }

    /// Records the checksum of the game's own state saved before step `tick`, to detect desyncs. It must be
    /// equal on every machine. The lane's keys are included automatically.
    pub fn saved(&mut self, tick: Tick, checksum: u64) {
        if let Some(running) = &mut self.running {
            running.saved(tick, checksum);
        }
    }

    /// A player's input in the step of [`RollbackRequest::Advance`], and whether it is confirmed; `None`
    /// until the player's first input.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player in the lane, or the input does not match the type. A hostile
    /// player can send anything, but it sends the same to all.
    pub fn input<T: DeserializeOwned>(
        &self,
        player: MemberId,
    ) -> Result<Option<(T, InputStatus)>, RoomError> {
        let running = self.running.as_ref().ok_or(ApiMisuse::NoSuchPlayer(player))?;
        let Some((encoded, status)) = running.input(player)? else { return Ok(None) };
        match Value::decode(encoded) {
            Ok(value) => Ok(Some((from_value(&value)?, status))),
            // Only its sender is at fault, and it sent nothing that can be decoded.
            Err(_) => Ok(None),
        }
    }

    /// Sets a key of the lane's state, within a step. Keys are saved, restored and compared with the other
    /// ends automatically.
    ///
    /// # Errors
    /// [`RoomError`] if there is no lane, or key or value exceed their bounds.
    pub fn set<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), RoomError> {
        let encoded = to_value(value)?.encode(limits::STATE_VALUE_BYTES_MAX)?;
        let what = "set the state of a rollback lane";
        self.running.as_mut().ok_or(RoomError::Misuse(ApiMisuse::NotOpen { what }))?.set(key, encoded)
    }

    /// The value of a key at this end, predictions included.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it does not match the type.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        let value = self.running.as_ref().and_then(|running| running.get(key));
        Ok(value.map(|value| from_value(&value)).transpose()?)
    }

    /// The value of a key without predictions: in the newest state of which the host has settled all inputs, and
    /// that this end has run. With the step that comes after that state. All ends that have the same step have the
    /// same value. Ask between steps.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it does not match the type.
    pub fn settled<T: DeserializeOwned>(&self, key: &str) -> Result<Option<(Tick, T)>, RoomError> {
        let found = self.running.as_ref().and_then(|running| running.settled(key));
        let Some((tick, value)) = found else { return Ok(None) };
        Ok(Some((tick, from_value(&value)?)))
    }

    /// All keys of the lane with their values, in ascending order.
    pub fn states(&self) -> Vec<(String, Value)> {
        self.running.as_ref().map(|running| running.states().collect()).unwrap_or_default()
    }

    /// Removes a key of the lane's state, within a step. Returns whether it existed.
    pub fn remove(&mut self, key: &str) -> bool {
        self.running.as_mut().is_some_and(|running| running.remove(key))
    }

    /// Ends the lane and discards its keys.
    pub fn end(&mut self) {
        self.running = None;
    }

    /// The next event of the lane, oldest first: a desync of two ends, or that this end was away too long.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.running.as_mut()?.session.poll_event()
    }

    /// What became of a key in the lane's replays; `None` if the lane has no such key.
    pub fn key_diagnostics(&self, key: &str) -> Option<RollbackKeyDiagnostics> {
        self.running.as_ref()?.key_diagnostics(key)
    }

    /// Counters of the lane, and its last corrections; `None` without one.
    pub fn diagnostics(&self) -> Option<Diagnostics> {
        self.running.as_ref().map(|running| running.session.diagnostics())
    }
}

/// For the room.
impl RollbackLane {
    /// Begins a lane in the role that this member has in it. It replaces the previous one.
    ///
    /// # Errors
    /// [`RoomError`] if a value is out of bounds.
    pub(crate) fn begin(
        &mut self,
        config: &RollbackConfig,
        me: MemberId,
        authority: Option<MemberId>,
    ) -> Result<(), RoomError> {
        self.running = Some(Box::new(Running::new(config, me, authority)?));
        Ok(())
    }

    /// Records this player's input. Begins a step if one is due by the room's step `target` and can be run.
    pub(crate) fn step(&mut self, input: &Bytes, target: Tick) -> Result<bool, RoomError> {
        self.running.as_mut().map_or(Ok(false), |running| running.step(input, target))
    }

    /// The next message, and its recipients among the present members.
    pub(crate) fn poll_message(
        &mut self,
        authority: Option<MemberId>,
        is_there: impl Fn(MemberId) -> bool,
    ) -> Option<(Recipient, Bytes)> {
        self.running.as_mut()?.poll_message(authority, is_there)
    }

    /// Takes in a message. Returns whether it could be decoded; true without a lane.
    pub(crate) fn handle_message(
        &mut self,
        member: MemberId,
        authority: Option<MemberId>,
        message: Bytes,
    ) -> bool {
        self.running.as_mut().is_none_or(|running| running.handle_message(member, authority, message))
    }

    /// Notes that a player has left: no end waits for its inputs.
    pub(crate) fn left(&mut self, member: MemberId) {
        if let Some(running) = &mut self.running {
            running.left(member);
        }
    }
}

/// A lane that has begun.
#[derive(Debug)]
struct Running {
    players: Vec<MemberId>,
    session: Rollback,
    /// Inputs of the running step.
    inputs: Vec<PlayerInput>,
    keys: OrderedMap<String, Bytes>,
    saved: States<OrderedMap<String, Bytes>>,
    /// Corrections of present keys: how many, and the step of the last.
    corrected: OrderedMap<String, (u64, Tick)>,
    steps_in_a_row: u32,
    message: Vec<u8>,
}

impl Running {
    /// Builds the lane in the role that this member has in it.
    fn new(config: &RollbackConfig, me: MemberId, authority: Option<MemberId>) -> Result<Self, RoomError> {
        let inner = config.of(me, authority).map_err(bounds)?;
        Ok(Running {
            players: config.players.clone(),
            session: Rollback::new(inner).map_err(bounds)?,
            inputs: Vec::new(),
            keys: OrderedMap::new(),
            saved: States::new(&inner),
            corrected: OrderedMap::new(),
            steps_in_a_row: 0,
            message: Vec::new(),
        })
    }

    /// Records this player's input. Begins a step if one is due by the room's step `target` and can be run.
    fn step(&mut self, input: &Bytes, target: Tick) -> Result<bool, RoomError> {
        if let Role::Player(me) = self.session.config().role {
            self.session.add_input(me, input).map_err(bounds)?;
        }
        let begins = self.steps_in_a_row < STEPS_MAX && self.session.step(target);
        self.steps_in_a_row = if begins { self.steps_in_a_row + 1 } else { 0 };
        Ok(begins)
    }

    /// The next message, and its recipients among the present members.
    fn poll_message(
        &mut self,
        authority: Option<MemberId>,
        is_there: impl Fn(MemberId) -> bool,
    ) -> Option<(Recipient, Bytes)> {
        loop {
            let to = self.session.poll_message(&mut self.message)?;
            if let Some(to) = addressees(to, &self.players, authority, &is_there) {
                return Some((to, Bytes::copy_from_slice(&self.message)));
            }
        }
    }

    /// Takes in a message. Returns whether it could be decoded.
    fn handle_message(&mut self, member: MemberId, authority: Option<MemberId>, message: Bytes) -> bool {
        let from = match self.player(member) {
            Some(number) => From::Player(number),
            None if authority == Some(member) => From::Arbiter,
            None => From::Other(member.0),
        };
        self.session.handle_message(from, message).is_ok()
    }

    /// Notes that a player has left: no end waits for its inputs.
    fn left(&mut self, member: MemberId) {
        if let Some(number) = self.player(member) {
            self.session.left(number);
        }
    }

    /// Records the checksum of the game's own state before step `tick`.
    fn saved(&mut self, tick: Tick, checksum: u64) {
        let keys = if self.keys.is_empty() { 0 } else { state_hash(&self.keys) };
        self.session.saved(tick, keys.rotate_left(1) ^ checksum);
    }

    /// A player's input in the running step, encoded; `None` until its first input.
    fn input(&self, player: MemberId) -> Result<Option<(Bytes, InputStatus)>, RoomError> {
        let number = self.number(player).ok_or(ApiMisuse::NoSuchPlayer(player))?;
        let input = self.inputs.get(number).filter(|input| !input.bytes().is_empty());
        Ok(input.map(|input| (Bytes::copy_from_slice(input.bytes()), input.status)))
    }

    /// Sets a key of the lane's state.
    fn set(&mut self, key: &str, encoded: Bytes) -> Result<(), RoomError> {
        if let Some(kept) = self.keys.get_mut(key) {
            *kept = encoded;
            return Ok(());
        }
        if key.is_empty() || key.len() > limits::STATE_KEY_BYTES_MAX || self.keys.len() >= ROLLBACK_KEYS_MAX {
            let text = format!(
                "a rollback lane has up to {ROLLBACK_KEYS_MAX} keys of 1 to {} bytes",
                limits::STATE_KEY_BYTES_MAX
            );
            return Err(ApiMisuse::Bounds(text).into());
        }
        self.keys.insert(key.to_owned(), encoded);
        Ok(())
    }

    /// The value of a key.
    fn get(&self, key: &str) -> Option<Value> {
        self.keys.get(key).map(own)
    }

    /// The value of a key in the newest final state, and the step after that state.
    fn settled(&self, key: &str) -> Option<(Tick, Value)> {
        let last = self.session.finals();
        let (tick, keys) = if last == self.session.next() {
            (last, &self.keys)
        } else {
            let back = i32::try_from(self.session.config().window).unwrap_or(i32::MAX);
            let mut ticks = (0..=back).map(|back| last.offset(-back));
            ticks.find_map(|tick| self.saved.load(tick).map(|keys| (tick, keys)))?
        };
        keys.get(key).map(|encoded| (tick, own(encoded)))
    }

    /// All keys with their values, in ascending order.
    fn states(&self) -> impl Iterator<Item = (String, Value)> {
        self.keys.iter().map(|(key, encoded)| (key.clone(), own(encoded)))
    }

    /// Notes the keys that differ from what was saved before step `tick` in an earlier run.
    fn note_corrections(&mut self, tick: Tick) {
        let Some(before) = self.saved.load(tick) else { return };
        for (key, value) in &self.keys {
            if before.get(key).is_some_and(|before| before != value) {
                let corrected = self.corrected.get_or_insert_with(key.clone(), || (0, tick));
                *corrected = (corrected.0 + 1, tick);
            }
        }
    }

    fn key_diagnostics(&self, key: &str) -> Option<RollbackKeyDiagnostics> {
        let history = self.saved.iter().filter(|keys| keys.contains_key(key)).count();
        if history == 0 && !self.keys.contains_key(key) {
            return None;
        }
        let corrected = self.corrected.get(key);
        let (corrections, corrected) = (corrected.map_or(0, |it| it.0), corrected.map(|it| it.1));
        Some(RollbackKeyDiagnostics { history, corrections, corrected })
    }

    /// Removes a key. Returns whether it existed.
    fn remove(&mut self, key: &str) -> bool {
        self.corrected.remove(key);
        self.keys.remove(key).is_some()
    }

    fn player(&self, member: MemberId) -> Option<u8> {
        self.number(member).and_then(|number| u8::try_from(number).ok())
    }

    fn number(&self, member: MemberId) -> Option<usize> {
        self.players.iter().position(|player| *player == member)
    }

    /// What the game must do next.
    fn next_request(&mut self) -> Option<RollbackRequest> {
        Some(match self.session.poll_request()? {
            Request::Save { tick } => {
                self.note_corrections(tick);
                self.saved.save(tick, &self.keys);
                if !self.keys.is_empty() {
                    self.session.saved(tick, state_hash(&self.keys));
                }
                RollbackRequest::Save { tick }
            }
            Request::Load { tick } => {
                let saved = self.saved.load(tick).expect("a session asks for what it had saved only");
                self.keys.clone_from(saved);
                RollbackRequest::Load { tick }
            }
            Request::Advance { tick, inputs, is_replay } => {
                self.inputs.clear();
                self.inputs.extend_from_slice(inputs);
                RollbackRequest::Advance { tick, is_replay }
            }
        })
    }
}

/// Decodes a value that this end encoded itself.
fn own(encoded: &Bytes) -> Value {
    Value::decode(encoded.clone()).expect("what was encoded here can be decoded")
}

fn bounds(error: RollbackError) -> RoomError {
    ApiMisuse::Bounds(error.to_string()).into()
}

/// The recipients of a lane's message; `None` if none is present.
fn addressees(
    to: rollback::To,
    players: &[MemberId],
    authority: Option<MemberId>,
    is_there: impl Fn(MemberId) -> bool,
) -> Option<Recipient> {
    let mut members: Vec<MemberId> = match to {
        rollback::To::Players => players.iter().copied().chain(authority).collect(),
        rollback::To::Arbiter | rollback::To::One(From::Arbiter) => authority.into_iter().collect(),
        rollback::To::One(From::Player(player)) => {
            players.get(usize::from(player)).copied().into_iter().collect()
        }
        rollback::To::One(From::Other(member)) => vec![MemberId(member)],
    };
    members.retain(|member| is_there(*member));
    members.sort_unstable();
    members.dedup();
    (!members.is_empty()).then_some(Recipient::Members(members))
}
