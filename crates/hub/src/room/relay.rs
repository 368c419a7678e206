//! Messages between members, and inputs on their way to the authority.

use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::cursor::ReadError;
use parlor_proto::wire::envelope::{Downward, ENVELOPE_BYTES_MAX, From, To, Upward};
use parlor_proto::{ChannelId, MemberId, PeerMisbehaved, channel, limits};

impl Room {
    /// Passes a message on: encoded once, whoever receives it.
    pub(super) fn relay(
        &mut self,
        from: MemberId,
        channel: ChannelId,
        key: u32,
        payload: Bytes,
    ) -> Result<(), PeerMisbehaved> {
        let malformed = |error| PeerMisbehaved::Malformed { what: "the envelope of a message", error };
        let upward = Upward::decode(payload).map_err(malformed)?;
        if upward.payload.len() > RELAYED_BYTES_MAX {
            return Err(malformed(ReadError::OutOfRange { field: "length" }));
        }
        let to = self.receivers(from, upward.to);
        if to.is_empty() {
            return Ok(());
        }
        let order = upward.stamp.then(|| {
            self.stamped += 1;
            self.stamped - 1
        });
        let message = Outgoing {
            channel,
            key: relayed_key(from, key),
            payload: Downward { from: From::Member(from), order, payload: upward.payload }.encode(),
            tag: None,
        };
        self.counters.relayed += to.len() as u64;
        self.outputs.push_back(Output::Send { to, message });
        Ok(())
    }

    /// The members that a message reaches. One that is gone is counted: its sender may not know yet.
    fn receivers(&mut self, from: MemberId, to: To) -> Vec<MemberId> {
        let mut named = match to {
            To::Authority => self.authority.member().into_iter().collect(),
            To::Others => return self.seers_of(from),
            To::Everyone => {
                return self.members.ids().filter(|member| self.view(*member).sees_member(from)).collect();
            }
            To::Member(member) => vec![member],
            To::Members(members) => members,
        };
        let count = named.len();
        named.retain(|member| self.members.get(*member).is_some() && self.view(*member).sees_member(from));
        self.counters.unreachable += (count - named.len()) as u64;
        named
    }

    /// Passes an input on to the authority, under its sender's key, so that a newer one replaces an older one that
    /// still waits and no sender replaces another's.
    ///
    /// Nobody reads it here, but it must not be larger than an input can be: the host's link pays for it (threat 21).
    pub(super) fn input_from(&mut self, from: MemberId, payload: Bytes) -> Result<(), PeerMisbehaved> {
        if payload.len() > limits::INPUT_BYTES_MAX + TICK_BYTES {
            let error = ReadError::OutOfRange { field: "length" };
            return Err(PeerMisbehaved::Malformed { what: "an input", error });
        }
        let Some(authority) = self.authority.member().filter(|authority| *authority != from) else {
            return Ok(());
        };
        self.counters.inputs += 1;
        let message = Outgoing { channel: channel::INPUT, key: from.0, payload, tag: None };
        self.outputs.push_back(Output::Send { to: vec![authority], message });
        Ok(())
    }
}

/// Largest payload that is relayed: with any envelope around it a message frame still takes it.
const RELAYED_BYTES_MAX: usize = limits::PAYLOAD_BYTES_MAX - ENVELOPE_BYTES_MAX;
/// The number of its step stands before an input.
const TICK_BYTES: usize = 4;

/// Sequenced messages of different senders must not replace each other, so the sender is part of the relayed key.
fn relayed_key(from: MemberId, key: u32) -> u32 {
    from.0 << 16 | key & 0xffff
}

const _: () = assert!(RELAYED_BYTES_MAX > limits::MESSAGE_BYTES_MAX + limits::LABEL_BYTES_MAX);
