//! Relayed matches: rooms that the hub itself runs. Their members are equal, there is no state, and what they say to each other is
//! passed on in the order in which the room takes it.
//!
//! A match that is kept says what happens in it as [`KeptEntry`], one after another: whoever stores them has what every member was
//! told, in the same order.

use super::relay::Held;
use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::Upward;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{ChannelId, Lane, MemberId, PeerMisbehaved, channel, limits};

/// What happened in a match that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptEntry {
    /// It opened; always the first.
    Opened {
        /// What it is listed under.
        label: String,
        /// Members that it may have at once.
        members_max: u16,
    },
    /// Somebody took a seat.
    Joined {
        /// As which member.
        member: MemberId,
        /// Under which name.
        name: String,
        /// Who it is by its token, if it had one.
        user: Option<String>,
    },
    /// Somebody's seat is free again. Who is in the match when its server ends it is not said to have left.
    Left {
        /// Whose.
        member: MemberId,
        /// Why.
        reason: LeaveReason,
    },
    /// Somebody sent data reliably. What may be lost is not kept.
    Data {
        /// Its place among what has an order in the match.
        order: u64,
        /// Who sent it.
        from: MemberId,
        /// What the game takes it for.
        op: i64,
        /// Whom it went to, ascending; nobody, if the sender was alone.
        to: Vec<MemberId>,
        /// What was sent.
        payload: Bytes,
    },
    /// It is over; always the last.
    Ended,
}

/// The number of the next entry of a match that is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keeping {
    next: u64,
}

impl Room {
    /// Whether it is a relayed match: then no member decides and there is no state.
    pub(super) fn is_match(&self) -> bool {
        self.setup.settings.kind == RoomKind::Match
    }

    /// Whether what a member says on `channel` has a place in this kind of room.
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
                    | channel::MESSAGE_ORDERED
                    | channel::MESSAGE_UNORDERED
                    | channel::MESSAGE_UNRELIABLE
                    | channel::MESSAGE_SEQUENCED
            )
            || channel.0 >= limits::APP_CHANNEL_FIRST;
        if self.is_match() && !is_of_match {
            return Err(PeerMisbehaved::OutOfPlace {
                frame: "a word about state, inputs or paths",
                when: "in a match, which has none",
            });
        }
        Ok(())
    }

    /// Match data has the form that it must have, and an order if all of it arrives: members never say so themselves.
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

    /// Whether what a member says is kept, though nobody may get it: then it is its own affair how much it says.
    pub(super) fn keeps(&self, held: &Held) -> bool {
        self.keeping.is_some() && matches!(held, Held::Message { channel: channel::MATCH_DATA, .. })
    }

    pub(super) fn keep_joined(&mut self, member: MemberId) {
        let settings = &self.setup.settings;
        if self.keeping.is_some_and(|keeping| keeping.next == 0) {
            let opened = KeptEntry::Opened { label: settings.label.clone(), members_max: self.members_max() };
            self.keep(opened);
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
            self.keep(KeptEntry::Data { order, from, op, to: to.to_vec(), payload });
        }
    }

    /// Says what happened, if this is a match that is kept.
    pub(super) fn keep(&mut self, entry: KeptEntry) {
        if let Some(keeping) = &mut self.keeping {
            let number = keeping.next;
            keeping.next += 1;
            self.outputs.push_back(Output::Kept { number, entry });
        }
    }
}
