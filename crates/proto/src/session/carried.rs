//! The reliable messages of a session that goes on at another hub, or in another session of the same member.
//!
//! ```text
//!  carried  version: 1 byte
//!  sent     first: varint · count: varint
//!           for each: 0 | 1, ordered · channel: 1 byte · if ordered: order: varint · payload
//!           count of orders: varint · for each: channel: 1 byte · next: varint
//!  received next: varint · count: varint · for each: number - next: varint
//!           count of channels: varint · for each: channel: 1 byte · next: varint · count: varint
//!           for each: order - next: varint · number: varint · payload
//! ```
//!
//! Both ends go on with the numbers that they had, so each message is delivered once. Packet numbers, times and
//! unreliable messages belong to a connection, and begin anew.

use super::inbox::Reliable;
use super::outbox::Sent;
use super::{Session, State};
use crate::channel::ChannelTable;
use crate::ids::Epoch;
use crate::link::LinkKind;
use crate::time::Instant;
use crate::wire::cursor::{ReadError, Reader};
use bytes::Bytes;

const VERSION: u8 = 1;

/// The reliable messages of a session, for another one that goes on with them.
#[derive(Debug, Default)]
pub struct Carried {
    sent: Sent,
    received: Reliable,
    /// Of a session of this process: from where on it does not acknowledge, and the epoch that it follows.
    here: Option<(Option<u64>, Epoch)>,
}

impl Carried {
    /// Decodes what [`Session::carried`] gave.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed, or more than a session holds.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut body = Reader::new(bytes);
        let version = body.u8()?;
        if version != VERSION {
            return Err(ReadError::Unknown { field: "carried session", value: version.into() });
        }
        let (sent, received) = (Sent::read(&mut body)?, Reliable::read(&mut body)?);
        let carried = Carried { sent, received, here: None };
        body.finish()?;
        Ok(carried)
    }
}

impl Session {
    /// The reliable messages of this session, for another hub. What comes or is sent afterwards is not in it.
    pub fn carried(&self) -> Bytes {
        let mut out = vec![VERSION];
        self.outbox.write_sent(&mut out);
        self.reliable.write(&mut out);
        out.into()
    }

    /// The accepting end of a session whose client is on its way with another connection: it has the messages of an
    /// earlier session, and takes more for the client.
    pub fn waiting(table: ChannelTable, carried: Carried, now: Instant) -> Self {
        let mut session = Session::server(LinkKind::Memory, now);
        (session.table, session.state, session.link) = (table, State::Open, None);
        session.is_resumable = true;
        session.go_on_with(carried);
        session
    }

    /// Keeps back the reliable messages that follow: another hub may go on with those up to here, and gives their numbers to
    /// its own. False sends them again.
    pub fn set_sealed(&mut self, is_sealed: bool) {
        self.outbox.set_sealed(is_sealed);
    }

    /// Takes the reliable messages out of this session, which is over, for one that takes its place.
    pub fn take_carried(&mut self) -> Carried {
        let here = Some((self.acks_held_from, self.epoch));
        Carried { sent: self.outbox.take_sent(), received: core::mem::take(&mut self.reliable), here }
    }

    /// Goes on with the reliable messages of an earlier session of the same two ends. Before anything reliable is sent
    /// or received; at the hub, before the welcome is sent: it goes alone, so that the other end can do the same.
    pub fn go_on_with(&mut self, carried: Carried) {
        debug_assert!(matches!(self.state, State::Deciding | State::Open), "it has a place in the room");
        debug_assert!(self.is_settled() && self.reliable.next() == 0, "nothing was sent or received");
        self.outbox.go_on_with(carried.sent);
        self.reliable = carried.received;
        if let Some((acks_held_from, epoch)) = carried.here {
            (self.acks_held_from, self.epoch) = (acks_held_from, epoch);
        }
        self.greets_apart = true;
    }
}
