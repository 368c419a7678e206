//! The rollback lane: a state that players make together from their inputs, without waiting for each other.

use super::comeback::say;
use super::error::RoomError;
use super::room::{Joined, RoomCore};
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::envelope::{Downward, From as Sender, To, Upward};
use parlor_proto::{ApiMisuse, CloseReason, Instant, MemberId, Tick, channel, limits};
use parlor_sync::keyed::state_hash;
use parlor_sync::limits::{ROLLBACK_INPUT_BYTES_MAX, ROLLBACK_KEYS_MAX};
use parlor_sync::rollback::{
    self, Config, Diagnostics, Event, From, InputStatus, PlayerInput, Predictor, Request, Role, Rollback,
    RollbackError, States,
};
use parlor_sync::value::{Value, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Steps that one frame runs at most, so that a game that comes back goes on drawing while it catches up.
const STEPS_MAX: u32 = 16;

/// What all who take part in a rollback lane must agree on, and what each may choose. See [`Config`] for the reasons of the
/// defaults.
#[derive(Clone, Debug)]
pub struct RollbackConfig {
    /// The players, 2 to 8. Whoever of the room is none of them watches; the host settles, whether it plays or not.
    pub players: Vec<MemberId>,
    /// The first step, a step of the room: everybody has the state before it.
    pub begin: Tick,
    /// Tells one lane in a room from the one before. Default 0.
    pub session: u16,
    /// From an input to the step that uses it, in ticks, 0 to 16. Default 2.
    pub input_delay: u32,
    /// Steps ahead of what is settled, in ticks, 1 to 48. Default 24.
    pub window: u32,
    /// How long the host waits for a late input, in ticks. Default 8.
    pub patience: u32,
    /// How far behind the room a spectator is, in ticks. Default 60: what one sees of the others cannot be told to a player in
    /// time.
    pub spectator_delay: u32,
    /// How missing inputs are guessed. Default [`repeat_last`](rollback::repeat_last).
    pub predictor: Predictor,
}

impl RollbackConfig {
    /// A lane of these players from the step `begin` on, with the defaults.
    #[must_use]
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

/// What a game must do next for its rollback lane: [`Request`], with the inputs to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollbackRequest {
    /// Keep the game's own state as that before step `tick`. What is under keys is kept already.
    Save {
        /// The step that comes next.
        tick: Tick,
    },
    /// Go back to the state before step `tick`. What is under keys is back already.
    Load {
        /// The step that comes next.
        tick: Tick,
    },
    /// Run a step with what [`RoomCore::rollback_input`] gives.
    Advance {
        /// Its number.
        tick: Tick,
        /// Whether it was run before.
        is_replay: bool,
    },
}

/// A rollback lane of a room.
#[derive(Debug)]
pub(super) struct RollbackLane {
    players: Vec<MemberId>,
    session: Rollback,
    /// What the step that runs uses.
    inputs: Vec<PlayerInput>,
    keys: BTreeMap<String, Bytes>,
    saved: States<BTreeMap<String, Bytes>>,
    steps_in_a_row: u32,
    message: Vec<u8>,
}

impl RollbackLane {
    fn number(&self, member: MemberId) -> Option<usize> {
        self.players.iter().position(|player| *player == member)
    }

    fn next_request(&mut self) -> Option<RollbackRequest> {
        Some(match self.session.poll_request()? {
            Request::Save { tick } => {
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

/// For a game: a rollback lane.
impl RoomCore {
    /// Begins a rollback lane, in place of the one that there may have been. All who take part begin it with the same players,
    /// in the same order, and the same first step: agree on them by state or a message first.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or a value is out of its bounds.
    pub fn rollback(&mut self, config: &RollbackConfig) -> Result<(), RoomError> {
        let (_, joined) = self.open_with_host("begin a rollback lane")?;
        let inner = config.of(joined.welcome.member, joined.welcome.authority.member()).map_err(bounds)?;
        joined.rollback = Some(Box::new(RollbackLane {
            players: config.players.clone(),
            session: Rollback::new(inner).map_err(bounds)?,
            inputs: Vec::new(),
            keys: BTreeMap::new(),
            saved: States::new(&inner),
            steps_in_a_row: 0,
            message: Vec::new(),
        }));
        Ok(())
    }

    /// Begins one more step of the lane with this player's input, if one is due and can be run: then do all that
    /// [`rollback_request`](Self::rollback_request) says, and ask again. An input counts a few ticks later, and may be up to 64
    /// encoded bytes; for a spectator it is not read. Without a lane no step is due.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input is too large.
    pub fn rollback_step<T: Serialize + ?Sized>(
        &mut self,
        input: &T,
        now: Instant,
    ) -> Result<bool, RoomError> {
        let encoded = to_value(input)?.encode(ROLLBACK_INPUT_BYTES_MAX)?;
        let is_away = self.reconnect.is_away();
        let (session, joined) = self.open("run a step of the rollback lane")?;
        let target = joined.welcome.tick_rate.tick_at(joined.room_time(now));
        let Some(lane) = &mut joined.rollback else { return Ok(false) };
        if let Role::Player(me) = lane.session.config().role {
            lane.session.add_input(me, &encoded).map_err(bounds)?;
        }
        if lane.steps_in_a_row < STEPS_MAX && lane.session.step(target) {
            lane.steps_in_a_row += 1;
            return Ok(true);
        }
        lane.steps_in_a_row = 0;
        let (me, authority) = (joined.welcome.member, joined.welcome.authority.member());
        let players = &joined.players;
        let is_there = |member: MemberId| member != me && players.get(member).is_some();
        let mut sent = false;
        while let Some(to) = lane.session.poll_message(&mut lane.message) {
            if let Some(to) = addressees(to, &lane.players, authority, is_there) {
                let payload = Bytes::copy_from_slice(&lane.message);
                let message = Upward { to, stamp: false, payload }.encode();
                say(session, is_away, Outgoing::new(channel::ROLLBACK, message))?;
                sent = true;
            }
        }
        self.wants_driver |= sent;
        Ok(false)
    }

    /// What the game must do next for its lane; `None` when it is where it should be.
    pub fn rollback_request(&mut self) -> Option<RollbackRequest> {
        self.lane_mut()?.next_request()
    }

    /// The checksum of the game's own state that was kept as that before step `tick`, so that ends that differ are found. It must
    /// be the same on every machine. What is under keys is in it by itself.
    pub fn rollback_saved(&mut self, tick: Tick, checksum: u64) {
        if let Some(lane) = self.lane_mut() {
            let keys = if lane.keys.is_empty() { 0 } else { state_hash(&lane.keys) };
            lane.session.saved(tick, keys.rotate_left(1) ^ checksum);
        }
    }

    /// What a player does in the step that [`RollbackRequest::Advance`] asked for, and how sure that is; `None` if it has not
    /// pressed anything yet.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player in the lane, or the input is not as the type wants it: a hostile player can send
    /// anything, but it sends the same to all.
    pub fn rollback_input<T: DeserializeOwned>(
        &self,
        player: MemberId,
    ) -> Result<Option<(T, InputStatus)>, RoomError> {
        let lane = self.lane().ok_or(ApiMisuse::NoSuchPlayer(player))?;
        let number = lane.number(player).ok_or(ApiMisuse::NoSuchPlayer(player))?;
        let Some(input) = lane.inputs.get(number).filter(|input| !input.bytes().is_empty()) else {
            return Ok(None);
        };
        match Value::decode(Bytes::copy_from_slice(input.bytes())) {
            Ok(value) => Ok(Some((from_value(&value)?, input.status))),
            // Only its own sender is to blame, and it did nothing that can be understood.
            Err(_) => Ok(None),
        }
    }

    /// Sets a key of the lane's state, within a step. It is kept, brought back and compared with the other ends by itself.
    ///
    /// # Errors
    /// [`RoomError`] if there is no lane, or key or value are out of their bounds.
    pub fn set_rollback_state<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), RoomError> {
        let encoded = to_value(value)?.encode(limits::STATE_VALUE_BYTES_MAX)?;
        let Some(lane) = self.lane_mut() else {
            return Err(ApiMisuse::NotOpen { what: "set the state of a rollback lane" }.into());
        };
        if let Some(kept) = lane.keys.get_mut(key) {
            *kept = encoded;
            return Ok(());
        }
        if key.is_empty() || key.len() > limits::STATE_KEY_BYTES_MAX || lane.keys.len() >= ROLLBACK_KEYS_MAX {
            let text = format!(
                "a rollback lane has up to {ROLLBACK_KEYS_MAX} keys of 1 to {} bytes",
                limits::STATE_KEY_BYTES_MAX
            );
            return Err(ApiMisuse::Bounds(text).into());
        }
        lane.keys.insert(key.to_owned(), encoded);
        Ok(())
    }

    /// The value of a key as this end has it at present, guesses included; for a key that the lane does not have, what
    /// [`get`](Self::get) gives.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it is not as the type wants it.
    pub fn rollback_state<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        match self.lane().and_then(|lane| lane.keys.get(key)) {
            Some(encoded) => Ok(Some(from_value(&own(encoded))?)),
            None => self.get(key),
        }
    }

    /// All keys of the lane with their values, in ascending order.
    #[must_use]
    pub fn rollback_states(&self) -> Vec<(String, Value)> {
        let keys = self.lane().into_iter().flat_map(|lane| lane.keys.iter());
        keys.map(|(key, encoded)| (key.clone(), own(encoded))).collect()
    }

    /// Removes a key of the lane's state, within a step; says whether there was one.
    pub fn clear_rollback(&mut self, key: &str) -> bool {
        self.lane_mut().is_some_and(|lane| lane.keys.remove(key).is_some())
    }

    /// Ends the lane, with all that is under its keys.
    pub fn clear_rollback_all(&mut self) {
        if let Some(joined) = &mut self.joined {
            joined.rollback = None;
        }
    }

    /// What the lane has to tell, oldest first: two ends that differ, or that this one was away for too long.
    pub fn rollback_event(&mut self) -> Option<Event> {
        self.lane_mut()?.session.poll_event()
    }

    /// What the lane counted, and its last corrections; `None` without one.
    #[must_use]
    pub fn rollback_diagnostics(&self) -> Option<Diagnostics> {
        self.lane().map(|lane| lane.session.diagnostics())
    }

    fn lane(&self) -> Option<&RollbackLane> {
        self.joined.as_ref()?.rollback.as_deref()
    }

    fn lane_mut(&mut self) -> Option<&mut RollbackLane> {
        self.joined.as_mut()?.rollback.as_deref_mut()
    }

    /// Takes a message of the lane in. What is in it is its sender's fault alone, for the hub does not read it.
    pub(super) fn read_rollback(&mut self, payload: Bytes) -> Result<(), CloseReason> {
        let downward = Downward::decode(payload).map_err(|error| CloseReason::Misbehaved {
            detail: format!("the envelope of a rollback message could not be read: {error}"),
        })?;
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let authority = joined.welcome.authority.member();
        let (Some(lane), Sender::Member(member)) = (&mut joined.rollback, downward.from) else {
            return Ok(());
        };
        let from = match lane.number(member).and_then(|number| u8::try_from(number).ok()) {
            Some(number) => From::Player(number),
            None if authority == Some(member) => From::Arbiter,
            None => From::Other(member.0),
        };
        if lane.session.handle_message(from, downward.payload).is_err() {
            self.messages_unreadable += 1;
        }
        Ok(())
    }
}

impl Joined {
    /// A player has left: nobody waits for its inputs.
    pub(super) fn left_rollback(&mut self, member: MemberId) {
        if let Some(lane) = &mut self.rollback
            && let Some(number) = lane.number(member).and_then(|number| u8::try_from(number).ok())
        {
            lane.session.left(number);
        }
    }
}

/// A value that this end encoded itself.
fn own(encoded: &Bytes) -> Value {
    Value::decode(encoded.clone()).expect("what was encoded here can be decoded")
}

fn bounds(error: RollbackError) -> RoomError {
    ApiMisuse::Bounds(error.to_string()).into()
}

/// For whom a message of a lane is; `None` if nobody of them is there.
fn addressees(
    to: rollback::To,
    players: &[MemberId],
    authority: Option<MemberId>,
    is_there: impl Fn(MemberId) -> bool,
) -> Option<To> {
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
    (!members.is_empty()).then_some(To::Members(members))
}
