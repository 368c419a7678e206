//! Data between players of a match: an op code and bytes.

use super::{Joined, RoomCore};
use crate::error::RoomError;
use crate::error::misbehaved;
use crate::event::Event;
use bytes::Bytes;
use parlor_proto::session::Session;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::{Downward, Recipient, Sender};
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{ApiMisuse, CloseReason, channel};

impl RoomCore {
    /// Sends data to players of a match. Reliable data is ordered: all receivers get it in the same order.
    /// Unreliable data may be lost and is not ordered.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not an open match, a recipient is not in it, or the data exceeds 64 KiB.
    pub fn send_data(
        &mut self,
        op: i64,
        to: Recipient,
        bytes: Bytes,
        reliably: bool,
    ) -> Result<(), RoomError> {
        if !self.open("send data")?.1.is_match() {
            let text = "only a match has match data: send a message, or open the room by Room::create_match";
            return Err(ApiMisuse::Bounds(text.into()).into());
        }
        let channel = if reliably { channel::MATCH_DATA } else { channel::MATCH_DATA_UNRELIABLE };
        let len = bytes.len();
        self.send_enveloped(channel, to, MatchData { op, payload: bytes }.encode(), len, false)
    }

    /// Takes in data of a player of the match.
    pub(super) fn read_data(&mut self, message: parlor_proto::session::Message) -> Result<(), CloseReason> {
        let bytes = message.payload.len();
        let may_be_dropped = message.channel == channel::MATCH_DATA_UNRELIABLE;
        let unreadable = |error| misbehaved("match data", &error);
        let Downward { from, order, payload, .. } = Downward::decode(message.payload).map_err(unreadable)?;
        let MatchData { op, payload } = MatchData::decode(payload).map_err(unreadable)?;
        // The hub itself sends no data to a match.
        let Sender::Member(from) = from else { return Ok(()) };
        self.inbox.tell_message(Event::Data { from, op, order, data: payload }, bytes, may_be_dropped)
    }

    /// The open room, for calls that need a room with a host.
    pub(super) fn open_with_host(
        &mut self,
        what: &'static str,
    ) -> Result<(&mut Session, &mut Joined), RoomError> {
        let (session, joined) = self.open(what)?;
        if joined.is_match() { Err(ApiMisuse::NoHost { what }.into()) } else { Ok((session, joined)) }
    }

    /// Whether events wait for the complete list of members: a game that sees the room open must be able to
    /// read all members.
    pub(super) fn awaits_greeting(&self) -> bool {
        self.closed.is_none() && self.joined.as_ref().is_some_and(|joined| joined.greeting_left > 0)
    }
}

impl Joined {
    /// Whether the hub runs the room and all members are equal.
    pub(super) fn is_match(&self) -> bool {
        self.welcome.kind == RoomKind::Match
    }

    /// The error for a host-only call by another process.
    pub(super) fn not_host(&self, what: &'static str) -> ApiMisuse {
        if self.is_match() {
            return ApiMisuse::NoHost { what };
        }
        ApiMisuse::NotHost { what, local: self.welcome.member }
    }
}
