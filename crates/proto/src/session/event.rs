//! Events of a session, and the answers to them.

use super::DeliveryId;
use crate::error::CloseReason;
use crate::ids::{ChannelId, Epoch};
use crate::time::Tick;
use crate::wire::handshake::{Hello, Redirect, Refusal, Resume, ResumeToken, RetryAfter, Seat, Welcome};
use bytes::Bytes;

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// On a server: the peer said hello. Answer it with [`Session::answer`](super::Session::answer).
    Hello(Box<Hello>),
    /// On a server: the peer asks to resume a session. Find it and let it [`go on`](super::Session::go_on) in
    /// this one's place, or [`answer`](super::Session::answer) with a rejection.
    Resume(Resume),
    /// On a client: the session was resumed. The token is for the next resumption.
    Resumed(ResumeToken),
    /// On a client: how to claim its seat at another node. Each replaces the one before.
    Seat(Box<Seat>),
    /// The peer was silent for too long: the [resumable](super::Session::set_resumable) session has dropped
    /// its connection.
    Silent,
    /// On a client: it was admitted.
    Welcome(Box<Welcome>),
    /// On a client: it was rejected, and the session is over. A resuming client that gets RetryAfter keeps
    /// its session, without a connection. On a server: the peer was rejected without a hello event, because
    /// the two share no protocol version.
    Rejected(Rejection),
    /// A message was received.
    Message(Message),
    /// The tracked message arrived, and was given to the peer's caller. Each delivery id gets one fate, this
    /// or the next, at the latest when the session is over.
    Delivered(DeliveryId),
    /// The tracked message was presumably lost, or was replaced before it was sent.
    Lost(DeliveryId),
    /// On a client: the hub has closed the connection, because the room is at another node; its address, if it is known.
    /// The [resumable](super::Session::set_resumable) session has no connection now, and takes reliable messages still.
    Moved(String),
    /// The session is over. The last event.
    Closed(CloseReason),
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its channel.
    pub channel: ChannelId,
    /// Its key on a sequenced channel; otherwise 0.
    pub key: u32,
    /// The payload.
    pub payload: Bytes,
    /// Its number among all reliable messages of the sender, on a reliable lane. It may arrive before one
    /// with a lower number.
    pub number: Option<u64>,
    /// The sender's tick when it sent the packet. `None` if the packet had none, or without
    /// [`Session::set_tick`](super::Session::set_tick) here: packets carry only its low half, which is
    /// ambiguous without a tick nearby.
    pub tick: Option<Tick>,
    /// The room's epoch as the sender knew it.
    pub epoch: Epoch,
}

/// A hub's answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Admits the peer.
    Welcome(Box<Welcome>),
    /// Rejects it.
    Rejected(Rejection),
}

/// Answers that do not admit the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The room is on another server.
    Redirect(Redirect),
    /// Try again later.
    RetryAfter(RetryAfter),
    /// Refused.
    Refused(Refusal),
}
