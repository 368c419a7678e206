//! Inputs: this process's own, and at the host those of all players for each step.

use bytes::Bytes;
use parlor_proto::OrderedMap;
use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::inputs::{
    Acted, Arrival, Counters, Input, InputBuffer, InputError, OwnInputs, Report, Runs, View,
};

/// The inputs of a room as one process has them.
#[derive(Debug)]
pub(crate) struct Inputs {
    rate: TickRate,
    /// This process's own inputs, at the host too.
    own: OwnInputs,
    /// The other members' inputs, at the host.
    others: OrderedMap<MemberId, Other>,
    runs: Runs,
    /// The oldest step run without an input that came later, since `take_late`.
    late: Option<Tick>,
    /// Counters of members that have left.
    left: Counters,
    /// Late inputs as the host reported them to this member. The report counts modulo 256.
    told_late: (u8, u64),
}

#[derive(Debug)]
struct Other {
    buffer: InputBuffer,
    /// The newest step whose input the game used.
    used: Option<Tick>,
}

impl Inputs {
    pub(crate) fn new(rate: TickRate) -> Self {
        Inputs {
            rate,
            own: OwnInputs::new(),
            others: OrderedMap::new(),
            runs: Runs::default(),
            late: None,
            left: Counters::default(),
            told_late: (0, 0),
        }
    }

    /// Records this process's input, and what is sent for it if it has actions.
    pub(crate) fn record(
        &mut self,
        tick: Tick,
        drawn: Option<Instant>,
        encoded: Bytes,
        with_actions: Option<Bytes>,
    ) {
        let view = drawn.map(|drawn| View::behind(tick, drawn, self.rate));
        self.own.record_with_actions(tick, view, encoded, with_actions);
    }

    /// Takes a member's next action of an input up to a step, with the step of the input, at the host.
    pub(crate) fn next_action(&mut self, tick: Tick) -> Option<(MemberId, Tick, Acted)> {
        let mut others = self.others.iter_mut();
        others.find_map(|(member, other)| {
            other.buffer.next_action(tick).map(|(row, acted)| (*member, row, acted))
        })
    }

    /// This process's input of a step.
    pub(crate) fn own_at(&self, tick: Tick) -> Option<&Input> {
        self.own.at(tick)
    }

    /// Encodes this process's newest inputs that the host has not used, with up to `repeated` older ones.
    pub(crate) fn own_message(&self, repeated: usize) -> Option<Bytes> {
        self.own.message(repeated)
    }

    /// The other members that sent inputs, at the host.
    pub(crate) fn members(&self) -> impl Iterator<Item = MemberId> {
        self.others.keys().copied()
    }

    /// Another member's input for a step, at the host.
    pub(crate) fn of(&self, member: MemberId, tick: Tick) -> Option<&Input> {
        self.others.get(&member)?.buffer.at(tick)
    }

    /// Takes in a member's input message, at the host.
    pub(crate) fn take(
        &mut self,
        from: MemberId,
        message: Bytes,
        arrival: Arrival,
    ) -> Result<(), InputError> {
        let rate = self.rate;
        let other =
            self.others.get_or_insert_with(from, || Other { buffer: InputBuffer::new(rate), used: None });
        if let Some(late) = other.buffer.take(message, arrival, &self.runs)?
            && self.late.is_none_or(|oldest| oldest.is_newer_than(late))
        {
            self.late = Some(late);
        }
        Ok(())
    }

    /// Takes the oldest step that was run before its input came, since the last call.
    pub(crate) fn take_late(&mut self) -> Option<Tick> {
        self.late.take()
    }

    /// Notes the first run of a step at `now` of room time, at the host.
    pub(crate) fn ran(&mut self, tick: Tick, now: Instant) {
        self.others.values_mut().for_each(|other| other.buffer.ran(tick, now));
        self.runs.ran(tick, now);
    }

    /// Notes that the host's game used an input of a member.
    pub(crate) fn used(&mut self, member: MemberId, tick: Tick) {
        if let Some(other) = self.others.get_mut(&member)
            && other.used.is_none_or(|used| tick.is_newer_than(used))
        {
            other.used = Some(tick);
        }
    }

    /// The newest step whose input of another member the game used, at the host.
    pub(crate) fn newest_used(&self, member: MemberId) -> Option<Tick> {
        self.others.get(&member)?.used
    }

    /// The reports to the members whose inputs were used, at `now` of room time.
    pub(crate) fn reports(&mut self, now: Instant) -> OrderedMap<MemberId, Report> {
        let told = self.others.iter_mut();
        told.filter_map(|(member, other)| Some((*member, other.buffer.report(other.used?, now)))).collect()
    }

    /// Applies the host's report on this member's inputs.
    pub(crate) fn reported(&mut self, report: Report) {
        self.own.acknowledge(report.tick);
        let (known, count) = self.told_late;
        self.told_late = (report.late, count + u64::from(report.late.wrapping_sub(known)));
    }

    pub(crate) fn left(&mut self, member: MemberId) {
        if let Some(other) = self.others.remove(&member) {
            self.left += other.buffer.counters();
        }
    }

    /// Counters of another member's inputs, at the host; `None` if none came.
    pub(crate) fn counters_of(&self, member: MemberId) -> Option<Counters> {
        Some(self.others.get(&member)?.buffer.counters())
    }

    /// Input counters: at the host of all members, at a member those that the host reported.
    pub(crate) fn counters(&self, is_host: bool) -> Counters {
        if !is_host {
            return Counters { late: self.told_late.1, ..Counters::default() };
        }
        let mut sum = self.left;
        self.others.values().for_each(|other| sum += other.buffer.counters());
        sum
    }
}
