//! Inputs: what this process sends, and at the host what the players want in each step.

use super::error::RoomError;
use super::room::{Joined, RoomCore};
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::{Instant, MemberId, Tick, TickRate, channel, limits};
use parlor_sync::inputs::{Arrival, Counters, Input, InputBuffer, InputError, OwnInputs, Report, Runs, View};
use parlor_sync::limits::INPUTS_SENT_MAX;
use parlor_sync::value::{Value, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The inputs of a room as one process has them.
#[derive(Debug)]
pub(super) struct Inputs {
    rate: TickRate,
    /// What this process wants, at the host too.
    own: OwnInputs,
    /// What the others want, at the host.
    others: BTreeMap<MemberId, Other>,
    runs: Runs,
    /// The oldest step that was run without the input that came for it later, since the last one that was taken.
    late: Option<Tick>,
    /// What was counted of those who have left.
    left: Counters,
    /// How many came too late, as the host told this member; it counts modulo 256.
    told_late: (u8, u64),
}

#[derive(Debug)]
struct Other {
    buffer: InputBuffer,
    /// The newest step whose input the game used.
    used: Option<Tick>,
}

impl Inputs {
    pub(super) fn new(rate: TickRate) -> Self {
        Inputs {
            rate,
            own: OwnInputs::new(),
            others: BTreeMap::new(),
            runs: Runs::default(),
            late: None,
            left: Counters::default(),
            told_late: (0, 0),
        }
    }

    /// Records what this process wants.
    pub(super) fn record(&mut self, tick: Tick, drawn: Option<Instant>, encoded: Bytes) {
        let view = drawn.map(|drawn| View::behind(tick, drawn, self.rate));
        self.own.record(tick, view, encoded);
    }

    /// What this process wanted in a step.
    pub(super) fn own_at(&self, tick: Tick) -> Option<&Input> {
        self.own.at(tick)
    }

    /// What another one wants in a step, at the host.
    pub(super) fn of(&self, member: MemberId, tick: Tick) -> Option<&Input> {
        self.others.get(&member)?.buffer.at(tick)
    }

    /// Takes in what a member sent, at the host.
    pub(super) fn take(
        &mut self,
        from: MemberId,
        message: Bytes,
        arrival: Arrival,
    ) -> Result<(), InputError> {
        let rate = self.rate;
        let other =
            self.others.entry(from).or_insert_with(|| Other { buffer: InputBuffer::new(rate), used: None });
        if let Some(late) = other.buffer.take(message, arrival, &self.runs)?
            && self.late.is_none_or(|oldest| oldest.is_newer_than(late))
        {
            self.late = Some(late);
        }
        Ok(())
    }

    /// The oldest step that was run already and for which an input came since this was asked last.
    pub(super) fn take_late(&mut self) -> Option<Tick> {
        self.late.take()
    }

    /// A step begins at `now` of room time, for the first time, at the host.
    pub(super) fn ran(&mut self, tick: Tick, now: Instant) {
        self.others.values_mut().for_each(|other| other.buffer.ran(tick, now));
        self.runs.ran(tick, now);
    }

    /// The game of the host used an input of a member.
    fn used(&mut self, member: MemberId, tick: Tick) {
        if let Some(other) = self.others.get_mut(&member)
            && other.used.is_none_or(|used| tick.is_newer_than(used))
        {
            other.used = Some(tick);
        }
    }

    /// What to tell the members of whom an input was used, at `now` of room time.
    pub(super) fn reports(&mut self, now: Instant) -> BTreeMap<MemberId, Report> {
        let told = self.others.iter_mut();
        told.filter_map(|(member, other)| Some((*member, other.buffer.report(other.used?, now)))).collect()
    }

    /// The host tells this member of its inputs.
    pub(super) fn reported(&mut self, report: Report) {
        self.own.acknowledge(report.tick);
        let (known, count) = self.told_late;
        self.told_late = (report.late, count + u64::from(report.late.wrapping_sub(known)));
    }

    pub(super) fn left(&mut self, member: MemberId) {
        if let Some(other) = self.others.remove(&member) {
            self.left += other.buffer.counters();
        }
    }

    /// What was counted: at the host of all members, at a member what the host told it.
    pub(super) fn counters(&self, is_host: bool) -> Counters {
        if !is_host {
            return Counters { late: self.told_late.1, ..Counters::default() };
        }
        let mut sum = self.left;
        self.others.values().for_each(|other| sum += other.buffer.counters());
        sum
    }
}

/// For a game: inputs.
impl RoomCore {
    /// Says what this player wants in the step that was run last. It is recorded, and sent until the host has used it. The
    /// host's own goes the same way, without leaving the process.
    ///
    /// In a step that is [run again](Self::is_replay) it does nothing: what was recorded counts.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input is larger than [`limits::INPUT_BYTES_MAX`].
    pub fn send_input<T: Serialize + ?Sized>(&mut self, input: &T) -> Result<(), RoomError> {
        let has_lead = self.options.has_lead();
        let (_, joined) = self.open_with_host("be sent inputs")?;
        if joined.step().is_replay {
            return Ok(());
        }
        let encoded = to_value(input)?.encode(limits::INPUT_BYTES_MAX)?;
        let tick = joined.input_tick();
        joined.inputs.record(tick, joined.shared.drawn(), encoded);
        if joined.is_host() {
            return Ok(());
        }
        // Without lead an input is used as soon as it comes: only the newest counts.
        let repeated = if has_lead { INPUTS_SENT_MAX } else { 0 };
        if let Some(message) = joined.inputs.own.message(repeated) {
            let key = joined.welcome.member.0;
            self.post_input(Outgoing { key, ..Outgoing::new(channel::INPUT, message) })?;
        }
        Ok(())
    }

    /// What a player wants in the step that the game is in: the input for it, or the newest one before it that came. `None`
    /// until the first. The host asks of anybody, and the player is told that it was used; a member asks of itself alone.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host and the player another one, or the input is not as the type wants it: a
    /// hostile player can send anything.
    pub fn input<T: DeserializeOwned>(&mut self, player: MemberId) -> Result<Option<T>, RoomError> {
        let (_, joined) = self.open("read inputs")?;
        let (me, is_host) = (joined.welcome.member, joined.is_host());
        let tick = joined.input_tick();
        if player != me && !is_host {
            return Err(joined.not_host("read inputs").into());
        }
        let input = if player == me { joined.inputs.own_at(tick) } else { joined.inputs.of(player, tick) };
        let Some(Input { tick, encoded, .. }) = input.cloned() else { return Ok(None) };
        let read = from_value(&Value::decode(encoded).expect("it was read when it came, or written here"))?;
        // The host waits for no word of its own: telling of it would be an update for every step.
        joined.inputs.used(player, tick);
        Ok(Some(read))
    }

    /// What all players that sent something want in the step that the game is in, for the host. An input that cannot be read is
    /// left out: a hostile player can send anything.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host.
    pub fn inputs<T: DeserializeOwned>(&mut self) -> Result<Vec<(MemberId, T)>, RoomError> {
        let (_, joined) = self.open_as_host("read inputs")?;
        let me = joined.welcome.member;
        let mut members: Vec<MemberId> = joined.inputs.others.keys().copied().chain([me]).collect();
        members.sort_unstable();
        let mut all = Vec::with_capacity(members.len());
        for member in members {
            match self.input(member) {
                Ok(input) => all.extend(input.map(|input| (member, input))),
                Err(_) => self.messages_unreadable += 1,
            }
        }
        Ok(all)
    }

    /// What was counted of a player's inputs, for the host; `None` if none came.
    #[must_use]
    pub fn input_counters(&self, player: MemberId) -> Option<Counters> {
        Some(self.joined.as_ref()?.inputs.others.get(&player)?.buffer.counters())
    }

    /// Takes in a message of inputs that came `at`.
    pub(super) fn read_input(&mut self, from: MemberId, message: Bytes, at: Instant) {
        let Some(joined) = &mut self.joined else { return };
        // One of a player who has left came late; one of a player who is not known yet came early, and the next one comes soon.
        let is_wanted = joined.is_host() || joined.migration.is_heir();
        if !is_wanted || joined.players.get(from).is_none() {
            return;
        }
        let room_time = joined.room_time(at);
        let tick = joined.welcome.tick_rate.tick_at(room_time);
        // The hub passes inputs on unread: that one cannot be read is its sender's fault alone.
        if joined.inputs.take(from, message, Arrival { at: room_time, tick }).is_err() {
            self.messages_unreadable += 1;
        }
    }
}

impl Joined {
    /// The step that inputs are for: the one that the game is in. A game that does not ask for steps is in that which its
    /// writes count for.
    pub(super) fn input_tick(&self) -> Tick {
        let step = self.step();
        if step.is_replay || !self.label.is_newer_than(step.tick) { step.tick } else { self.label }
    }
}
