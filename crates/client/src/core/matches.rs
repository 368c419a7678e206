//! What players of a match say to each other: an op code and bytes.

use super::error::RoomError;
use super::event::Event;
use super::reading::misbehaved;
use super::room::{Joined, RoomCore};
use bytes::Bytes;
use parlor_proto::session::Session;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::{Downward, From, To};
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{ApiMisuse, ChannelId, CloseReason, channel};

impl RoomCore {
    /// Sends data to players of a match. What is sent reliably has its place in one order that is the same for all who get it; what
    /// is not may be lost, and has none.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or no match, it is for a player who is not there, or has more than 64 KiB.
    pub fn send_data(&mut self, op: i64, to: To, bytes: Bytes, reliably: bool) -> Result<(), RoomError> {
        if !self.open("send data")?.1.is_match() {
            let text = "only a match has match data: send a message, or open the room by Room::create_match";
            return Err(ApiMisuse::Bounds(text.into()).into());
        }
        let channel = if reliably { channel::MATCH_DATA } else { channel::MATCH_DATA_UNRELIABLE };
        let len = bytes.len();
        self.send_enveloped(channel, to, MatchData { op, payload: bytes }.encode(), len, false)
    }

    /// Takes in what a player of the match says.
    pub(super) fn read_data(&mut self, message: parlor_proto::session::Message) -> Result<(), CloseReason> {
        let bytes = message.payload.len();
        let may_be_dropped = message.channel == channel::MATCH_DATA_UNRELIABLE;
        let unreadable = |error| misbehaved("match data", &error);
        let Downward { from, order, payload, .. } = Downward::decode(message.payload).map_err(unreadable)?;
        let MatchData { op, payload } = MatchData::decode(payload).map_err(unreadable)?;
        // The hub itself has nothing to say to a match.
        let From::Member(from) = from else { return Ok(()) };
        self.inbox.tell_message(Event::Data { from, op, order, data: payload }, bytes, may_be_dropped)
    }

    /// The open room, for what only a room with a host has.
    pub(super) fn open_with_host(
        &mut self,
        what: &'static str,
    ) -> Result<(&mut Session, &mut Joined), RoomError> {
        let (session, joined) = self.open(what)?;
        if joined.is_match() { Err(ApiMisuse::NoHost { what }.into()) } else { Ok((session, joined)) }
    }

    /// Whether events wait for the welcome's list of members to be whole: whoever is told that the room is open can read all of it.
    pub(super) fn awaits_greeting(&self) -> bool {
        self.closed.is_none() && self.joined.as_ref().is_some_and(|joined| joined.greeting_left > 0)
    }
}

impl Joined {
    /// Whether the hub runs it, and all are equal.
    pub(super) fn is_match(&self) -> bool {
        self.welcome.kind == RoomKind::Match
    }

    /// Why this process, which is not the host, may not do what only a host may.
    pub(super) fn not_host(&self, what: &'static str) -> ApiMisuse {
        if self.is_match() {
            return ApiMisuse::NoHost { what };
        }
        ApiMisuse::NotHost { what, local: self.welcome.member }
    }
}

/// Whether a channel is one of match data.
pub(super) fn is_match_data(channel: ChannelId) -> bool {
    matches!(channel, channel::MATCH_DATA | channel::MATCH_DATA_UNRELIABLE)
}
