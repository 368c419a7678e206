//! What a session tells its caller, and how that answers.

use super::DeliveryId;
use crate::error::CloseReason;
use crate::ids::{ChannelId, Epoch};
use crate::time::Tick;
use crate::wire::handshake::{Hello, Redirect, Refusal, Resume, ResumeToken, RetryAfter, Welcome};
use bytes::Bytes;

/// What happened in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A server's peer said hello: answer it with [`Session::answer`](super::Session::answer).
    Hello(Box<Hello>),
    /// A server's peer asks to go on with a session that it had: find it and let it [`go on`](super::Session::go_on) in
    /// this one's place, or [`answer`](super::Session::answer) that it does not.
    Resume(Resume),
    /// A client's session goes on; with this it resumes the next time.
    Resumed(ResumeToken),
    /// Nothing was heard for so long that the session, which [can be resumed](super::Session::set_resumable), has let
    /// go of its connection.
    Silent,
    /// A client is in.
    Welcome(Box<Welcome>),
    /// A client is not let in; the session is over. A client that resumes and is to come again later has its session still,
    /// without a connection. At a server: its peer was turned away without being asked about,
    /// because the two share no version of the protocol.
    Rejected(Rejection),
    /// A message came.
    Message(Message),
    /// The tracked message arrived, and the peer's caller was given it. Each delivery id has one fate, this or the next, at the
    /// latest when the session is over.
    Delivered(DeliveryId),
    /// The tracked message did not arrive, as far as can be told, or was replaced before it left.
    Lost(DeliveryId),
    /// The session is over. Nothing comes after it.
    Closed(CloseReason),
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// On which channel.
    pub channel: ChannelId,
    /// Its key, if the channel is sequenced; otherwise 0.
    pub key: u32,
    /// The message.
    pub payload: Bytes,
    /// Its number among all that the sender sent reliably, if its lane is reliable; it may come before one with a lower number.
    pub number: Option<u64>,
    /// The sender's tick when it sent the packet, if it carried one and
    /// [`Session::set_tick`](super::Session::set_tick) was called here: packets have only the low half of it, which means
    /// nothing without a tick nearby.
    pub tick: Option<Tick>,
    /// The room's epoch as the sender knew it.
    pub epoch: Epoch,
}

/// A hub's answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Come in.
    Welcome(Box<Welcome>),
    /// Anything else.
    Rejected(Rejection),
}

/// The answers that do not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The room is elsewhere.
    Redirect(Redirect),
    /// Not now.
    RetryAfter(RetryAfter),
    /// No.
    Refused(Refusal),
}
