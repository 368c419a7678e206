//! Messages between members, and inputs on their way to the authority.

use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::envelope::{Downward, From, To, Upward};
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
        let upward = Upward::decode(payload)
            .map_err(|error| PeerMisbehaved::Malformed { what: "the envelope of a message", error })?;
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
            To::Others => return self.members.ids().filter(|member| *member != from).collect(),
            To::Everyone => return self.members.ids().collect(),
            To::Member(member) => vec![member],
            To::Members(members) => members,
        };
        let count = named.len();
        named.retain(|member| self.members.get(*member).is_some());
        self.counters.unreachable += (count - named.len()) as u64;
        named
    }

    /// Passes an input on to the authority, under its sender's key, so that a newer one replaces an older one that
    /// still waits and no sender replaces another's.
    pub(super) fn input_from(&mut self, from: MemberId, payload: Bytes) {
        let Some(authority) = self.authority.member().filter(|authority| *authority != from) else { return };
        self.counters.inputs += 1;
        let message = Outgoing { channel: channel::INPUT, key: from.0, payload, tag: None };
        self.outputs.push_back(Output::Send { to: vec![authority], message });
    }
}

/// Sequenced messages of different senders must not replace each other, so the sender is part of the relayed key.
fn relayed_key(from: MemberId, key: u32) -> u32 {
    from.0 << 16 | key & 0xffff
}

const _: () = assert!(limits::MESSAGE_BYTES_MAX > parlor_proto::wire::envelope::ENVELOPE_BYTES_MAX);
