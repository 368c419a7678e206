//! Relayed matches: rooms whose authority is the hub. Members are equal and there is no state. Their messages
//! are relayed in the order in which the room receives them.
//!
//! A kept match emits its history as [`KeptEntry`] values, in its members' message order.

use super::relay::Held;
use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::Upward;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{ChannelId, Lane, MemberId, PeerMisbehaved, channel, limits};

/// An entry in the log of a kept match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptEntry {
    /// It opened; always the first.
    Opened {
        /// The match's label.
        label: String,
        /// The maximum number of members.
        members_max: u16,
        /// The user that opened it, by its token.
        by: Option<String>,
    },
    /// A member joined.
    Joined {
        /// The member.
        member: MemberId,
        /// Its name.
        name: String,
        /// The user of its token, if it had one.
        user: Option<String>,
    },
    /// A member left. Not recorded for members that are still in the match when its server ends it.
    Left {
        /// The member.
        member: MemberId,
        /// The reason.
        reason: LeaveReason,
    },
    /// A member sent reliable data. Unreliable data is not logged.
    Data {
        /// Its number among the ordered messages of the match.
        order: u64,
        /// The sender.
        from: MemberId,
        /// The operation code, defined by the game.
        op: i64,
        /// The receivers, ascending; empty if the sender was alone.
        to: Vec<MemberId>,
        /// The data.
        payload: Bytes,
    },
    /// It is over; always the last.
    Ended,
}

/// Numbers the entries of a kept match.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keeping {
    next: u64,
}

impl Room {
    /// Whether it is a relayed match: no member is the authority and there is no state.
    pub(super) fn is_match(&self) -> bool {
        self.setup.settings.kind == RoomKind::Match
    }

    /// Checks whether `channel` is allowed in this kind of room.
    pub(super) fn check_place(&self, channel: ChannelId) -> Result<(), PeerMisbehaved> {
        let is_data = matches!(channel, channel::MATCH_DATA | channel::MATCH_DATA_UNRELIABLE);
        if is_data && !self.is_match() {
            return Err(PeerMisbehaved::OutOfPlace {
                frame: "match data",
                when: "in a room that is no match",
            });
        }
        let is_of_match = is_data
            || matches!(
                channel,
                channel::CONTROL
                    | channel::PATH
                    | channel::MESSAGE_ORDERED
                    | channel::MESSAGE_UNORDERED
                    | channel::MESSAGE_UNRELIABLE
                    | channel::MESSAGE_SEQUENCED
            )
            || channel.0 >= limits::APP_CHANNEL_FIRST;
        if self.is_match() && !is_of_match {
            return Err(PeerMisbehaved::OutOfPlace {
                frame: "a word about state or inputs",
                when: "in a match, which has none",
            });
        }
        Ok(())
    }

    /// Checks the format of match data. All reliable data gets an order: members never request it.
    pub(super) fn check_data(
        channel: ChannelId,
        lane: Lane,
        upward: Upward,
    ) -> Result<Upward, PeerMisbehaved> {
        if !matches!(channel, channel::MATCH_DATA | channel::MATCH_DATA_UNRELIABLE) {
            return Ok(upward);
        }
        let malformed = |error| PeerMisbehaved::Malformed { what: "match data", error };
        MatchData::decode(upward.payload.clone()).map_err(malformed)?;
        Ok(Upward { stamp: lane.is_reliable(), ..upward })
    }

    /// Whether a message is logged even without receivers. It is then charged to its sender.
    pub(super) fn keeps(&self, held: &Held) -> bool {
        self.keeping.is_some() && matches!(held, Held::Message { channel: channel::MATCH_DATA, .. })
    }

    pub(super) fn keep_joined(&mut self, member: MemberId) {
        if self.keeping.is_none() || self.spectates(member) {
            return;
        }
        let info = self.members.get(member).map(|member| &member.info);
        let by = info.and_then(|info| info.user.clone());
        if self.keeping.is_some_and(|keeping| keeping.next == 0) {
            let label = self.setup.settings.label.clone();
            self.keep(KeptEntry::Opened { label, members_max: self.members_max(), by });
        }
        let info = self.members.get(member).map(|member| &member.info);
        let joined =
            info.map(|info| KeptEntry::Joined { member, name: info.name.clone(), user: info.user.clone() });
        joined.into_iter().for_each(|joined| self.keep(joined));
    }

    pub(super) fn keep_data(&mut self, from: MemberId, order: Option<u64>, payload: &Bytes, to: &[MemberId]) {
        if self.keeping.is_some()
            && let Some(order) = order
            && let Ok(MatchData { op, payload }) = MatchData::decode(payload.clone())
        {
            let to = to.iter().copied().filter(|member| !self.spectates(*member)).collect();
            self.keep(KeptEntry::Data { order, from, op, to, payload });
        }
    }

    /// Logs an entry, if this is a kept match.
    pub(super) fn keep(&mut self, entry: KeptEntry) {
        if let Some(keeping) = &mut self.keeping {
            let number = keeping.next;
            keeping.next += 1;
            self.outputs.push_back(Output::Kept { number, entry });
        }
    }
}
