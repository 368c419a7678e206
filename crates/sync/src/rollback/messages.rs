//! Messages of a session.

use super::config::Role;
use super::input::Input;
use super::report::Event;
use super::session::{AHEAD_TICKS, Rollback, bit};
use super::wire::{self, Kind};
use bytes::Bytes;
use parlor_proto::Tick;
use parlor_proto::wire::cursor::{ReadError, Reader, Write};

/// The sender of a message. The caller knows it from the transport, never from the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A player.
    Player(u8),
    /// The arbiter, if it does not play.
    Arbiter,
    /// Another end, by a number that the caller assigns: a spectator.
    Other(u32),
}

/// The recipient of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// All other players, and the arbiter.
    Players,
    /// The arbiter alone.
    Arbiter,
    /// One end.
    One(From),
}

/// The messages left to send at this tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unsaid {
    inputs: bool,
    settled: bool,
    /// The next end that gets a stream.
    stream: Option<usize>,
}

impl Unsaid {
    /// At a new tick everything is sent again: the next message repairs a loss.
    pub(super) fn all(is_arbiter: bool) -> Self {
        Unsaid { inputs: true, settled: is_arbiter, stream: is_arbiter.then_some(0) }
    }
}

/// Ticks of inputs before the settled one that a message repeats, for ends that are behind.
const BEHIND_TICKS: i32 = 32;
/// Ticks for which streams begin too late until this end is lost: more than a round trip.
const LOST_TICKS: i32 = 60;
/// Ticks that a message about settled ones reaches back.
const SETTLED_TICKS: i32 = 64;

/// Sending and receiving.
impl Rollback {
    /// Writes the next message into `out` and returns its recipient; `None` when all are sent until the next
    /// tick. Send them unreliably: the next messages repeat whatever is lost.
    pub fn poll_message(&mut self, out: &mut Vec<u8>) -> Option<To> {
        if std::mem::take(&mut self.unsaid.inputs) {
            self.write_inputs(out);
            let is_spectator = matches!(self.config.role, Role::Spectator { .. });
            return Some(if is_spectator { To::Arbiter } else { To::Players });
        }
        if std::mem::take(&mut self.unsaid.settled) {
            self.write_settled(out);
            return Some(To::Players);
        }
        let index = self.unsaid.stream?;
        let stream = self.arbiter.as_ref()?.stream(index, self.settled, self.elapsed);
        self.unsaid.stream = stream.map(|_| index + 1);
        let (who, from) = stream?;
        self.write_stream(out, from);
        Some(To::One(who))
    }

    fn write_inputs(&mut self, out: &mut Vec<u8>) {
        wire::write_head(out, self.config.session, Kind::Inputs);
        wire::write_tick(out, self.settled);
        let behind = self.others_settled();
        let least = self.settled.offset(-BEHIND_TICKS);
        let first = if behind.is_newer_than(least) { behind } else { least };
        let mut tick = if first.is_newer_than(self.config.begin) { first } else { self.config.begin };
        // A missed tick has no input to send, and the list has no gaps.
        let own = self.config.me().map(|me| &self.queues[usize::from(me)]);
        let end = self.end.offset(i32::try_from(self.config.input_delay).expect("delays are short"));
        while end.is_newer_than(tick) && own.is_some_and(|own| own.pressed(tick).is_none()) {
            tick = tick.next();
        }
        wire::write_tick(out, tick);
        let at = wire::reserve_count(out);
        let (mut count, mut before) = (0u8, None);
        while let Some(input) = own.and_then(|own| own.pressed(tick))
            && out.len() < wire::TARGET_BYTES / 2
            && count < u8::MAX
        {
            wire::write_input(out, &input, before.as_ref());
            (count, before, tick) = (count + 1, Some(input), tick.next());
        }
        wire::set_count(out, at, count);
        let (from, sums) = self.sums.recent(self.finals());
        wire::write_tick(out, from);
        let at = wire::reserve_count(out);
        let mut count = 0u8;
        for sum in sums {
            out.put_u32(sum);
            count += 1;
        }
        wire::set_count(out, at, count);
    }

    fn write_settled(&mut self, out: &mut Vec<u8>) {
        wire::write_head(out, self.config.session, Kind::Settled);
        let arbiter = self.arbiter.as_ref().expect("only an arbiter says what is settled");
        let mut first = arbiter.untold(self.settled);
        for least in [self.settled.offset(-SETTLED_TICKS), arbiter.log.oldest()] {
            first = if least.is_newer_than(first) { least } else { first };
        }
        wire::write_tick(out, first);
        let at = wire::reserve_count(out);
        let (mut count, mut run) = (0u8, None::<(u8, u8)>);
        let mut tick = first;
        while let Some((missed, _)) = arbiter.log.get(tick) {
            run = match run {
                Some((ticks, mask)) if mask == missed => Some((ticks + 1, mask)),
                Some((ticks, mask)) => {
                    out.put(&[ticks, mask]);
                    count += 1;
                    Some((1, missed))
                }
                None => Some((1, missed)),
            };
            tick = tick.next();
        }
        if let Some((ticks, mask)) = run {
            out.put(&[ticks, mask]);
            count += 1;
        }
        wire::set_count(out, at, count);
    }

    fn write_stream(&self, out: &mut Vec<u8>, from: Tick) {
        wire::write_head(out, self.config.session, Kind::Stream);
        let log = &self.arbiter.as_ref().expect("only an arbiter sends what is settled").log;
        let oldest = log.oldest();
        let mut tick = if oldest.is_newer_than(from) { oldest } else { from };
        wire::write_tick(out, tick);
        let at = wire::reserve_count(out);
        let (mut count, mut before) = (0u8, None::<&[Input]>);
        while let Some((missed, inputs)) = log.get(tick)
            && out.len() < wire::TARGET_BYTES
            && count < u8::MAX
        {
            out.put_u8(missed);
            let changed = (0..inputs.len())
                .filter(|player| missed & bit(*player) == 0)
                .filter(|player| before.is_none_or(|before| before[*player] != inputs[*player]))
                .fold(0u8, |changed, player| changed | bit(player));
            out.put_u8(changed);
            inputs
                .iter()
                .enumerate()
                .filter(|(player, _)| changed & bit(*player) != 0)
                .for_each(|(_, input)| wire::write_input(out, input, None));
            (count, before, tick) = (count + 1, Some(inputs), tick.next());
        }
        wire::set_count(out, at, count);
    }

    /// Takes in a message.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed; its part before the error has been taken in. Its sender is at fault,
    /// or has another build.
    pub fn handle_message(&mut self, from: From, bytes: Bytes) -> Result<(), ReadError> {
        let mut reader = Reader::new(bytes);
        let read = self.read_message(from, &mut reader);
        if read.is_err() {
            self.diagnostics.ignored += 1;
        }
        self.advance_settled();
        read
    }

    fn read_message(&mut self, from: From, reader: &mut Reader) -> Result<(), ReadError> {
        let (session, kind) = wire::read_head(reader)?;
        let is_arbiters = match from {
            From::Player(player) => self.config.arbiter == Some(player),
            From::Arbiter => self.config.arbiter.is_none(),
            From::Other(_) => false,
        };
        match kind {
            _ if session != self.config.session => self.diagnostics.ignored += 1,
            Some(Kind::Inputs) => self.read_inputs(from, reader)?,
            Some(Kind::Settled) if is_arbiters && self.arbiter.is_none() => self.read_settled(reader)?,
            Some(Kind::Stream) if is_arbiters && self.arbiter.is_none() => self.read_stream(reader)?,
            _ => self.diagnostics.ignored += 1,
        }
        Ok(())
    }

    fn read_inputs(&mut self, from: From, reader: &mut Reader) -> Result<(), ReadError> {
        let settled = wire::read_tick(reader)?;
        let mut tick = wire::read_tick(reader)?;
        let count = reader.u8()?;
        let player = match from {
            From::Player(player) if player < self.config.players => Some(player),
            _ => None,
        };
        let mut before = None;
        for _ in 0..count {
            let input = wire::read_input(reader, before.as_ref())?;
            if let Some(player) = player.filter(|player| self.config.me() != Some(*player)) {
                self.press(player, tick, input);
            }
            (before, tick) = (Some(input), tick.next());
        }
        let first = wire::read_tick(reader)?;
        let finals = self.finals();
        for (at, _) in (0u32..).zip(0..reader.u8()?) {
            let sum = reader.u32()?;
            if let Some(player) = player.filter(|player| self.config.me() != Some(*player)) {
                self.sums.said(player.into(), Tick(first.0.wrapping_add(at)), sum, finals);
            }
        }
        reader.finish()?;
        // No end can know more settled ticks than exist.
        if settled.since(self.settled) <= AHEAD_TICKS {
            if let Some(player) = player {
                self.said_settled(player, settled);
            }
            if let Some(arbiter) = &mut self.arbiter {
                arbiter.heard(from, settled, self.elapsed);
            }
        }
        Ok(())
    }

    fn read_settled(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let mut tick = wire::read_tick(reader)?;
        for _ in 0..reader.u8()? {
            let (ticks, missed) = (reader.u8()?, reader.u8()?);
            for _ in 0..ticks {
                self.outcome(tick, missed);
                tick = tick.next();
            }
        }
        reader.finish()
    }

    fn read_stream(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let first = wire::read_tick(reader)?;
        if first.is_newer_than(self.settled) {
            // The arbiter may not have heard yet that this end begins again, and go on where the last process was.
            let since = *self.gap.get_or_insert(self.elapsed);
            if !self.is_lost && self.elapsed.since(since) >= LOST_TICKS {
                self.is_lost = true;
                self.events.push_back(Event::Lost { oldest: first });
            }
        } else {
            self.gap = None;
        }
        let mut tick = first;
        let mut inputs = [None::<Input>; crate::limits::ROLLBACK_PLAYERS_MAX];
        for _ in 0..reader.u8()? {
            let (missed, changed) = (reader.u8()?, reader.u8()?);
            for (player, input) in inputs.iter_mut().enumerate().take(self.config.count()) {
                if changed & bit(player) != 0 {
                    *input = Some(wire::read_input(reader, None)?);
                }
                if let Some(input) = input
                    && missed & bit(player) == 0
                {
                    let player = u8::try_from(player).expect("players are few");
                    self.press(player, tick, *input);
                }
            }
            self.outcome(tick, missed);
            tick = tick.next();
        }
        reader.finish()
    }
}
