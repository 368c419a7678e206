//! The inputs of a room.

use super::roster::{Claimed, ClaimedSeat, Reopening};
use bytes::Bytes;
use core::net::SocketAddr;
use parlor_proto::wire::control::{LeaveReason, Presence};
use parlor_proto::{ChannelId, CloseReason, Epoch, LinkKind, MemberId};

/// An input of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A client takes the seat [`Room::next_member`](super::Room::next_member).
    Join {
        /// Its display name.
        name: String,
        /// The user of its token: at most [`USER_BYTES_MAX`](parlor_proto::limits::USER_BYTES_MAX) bytes.
        user: Option<String>,
        /// The kind of link.
        link: LinkKind,
        /// Whether it takes a spectator's seat.
        spectates: bool,
    },
    /// A member's session ended.
    Leave {
        /// The member.
        member: MemberId,
        /// The reason.
        reason: LeaveReason,
    },
    /// A member sent a message.
    Message {
        /// The sender.
        from: MemberId,
        /// The channel.
        channel: ChannelId,
        /// The key, if the channel is sequenced.
        key: u32,
        /// The message's bytes.
        payload: Bytes,
        /// The room's epoch as the sender knew it.
        epoch: Epoch,
    },
    /// A state update was delivered or lost.
    Fate {
        /// Its receiver.
        member: MemberId,
        /// Its delivery id.
        delivery_id: u64,
        /// Whether it arrived.
        delivered: bool,
    },
    /// A member's connection became writable or blocked. After a block only the newest state is sent.
    Writable {
        /// The member.
        member: MemberId,
        /// Whether it is writable.
        writable: bool,
    },
    /// The measured capacity of a member's path: no more state than that is sent to it.
    Path {
        /// The member.
        member: MemberId,
        /// The capacity, including all overhead.
        bytes_per_second: u32,
    },
    /// A member's connection is lost; its seat is kept.
    Away {
        /// The member.
        member: MemberId,
        /// How it was lost.
        reason: LeaveReason,
    },
    /// A member's connection is back, or was replaced.
    Back {
        /// The member.
        member: MemberId,
        /// The kind of link.
        link: LinkKind,
    },
    /// A member's process restarted and resumed its seat.
    Restarted {
        /// The member.
        member: MemberId,
        /// The kind of link.
        link: LinkKind,
    },
    /// A member's session ended, because it was lost: it may return, so its player data is kept.
    Lost {
        /// The member.
        member: MemberId,
        /// The reason.
        reason: LeaveReason,
    },
    /// A member that was lost is back: its id and its player data are what they were.
    Returned {
        /// The member.
        member: MemberId,
        /// Its display name.
        name: String,
        /// The user of its token, as of [`Join`](Input::Join).
        user: Option<String>,
        /// The kind of link.
        link: LinkKind,
    },
    /// A member that was lost will not return.
    Forget {
        /// The member.
        member: MemberId,
    },
    /// What the hub measured of a member.
    Measured(Presence),
    /// A member wants direct paths to other members, or its observed address changed.
    Reachable {
        /// The member.
        member: MemberId,
        /// The SHA-256 of the certificate that it shows on them.
        key: [u8; 32],
        /// Its observed address, if others may reach it there.
        observed: Option<SocketAddr>,
        /// The hub's seed for its path ids. Only the first one counts.
        seed: u64,
    },
    /// The authority may have processed unacknowledged reliable messages up to this number.
    Untaken {
        /// The highest such number in its session.
        number: u64,
    },
    /// The host timeout expired.
    HostSilent {
        /// The members that were heard meanwhile.
        heard: Vec<MemberId>,
    },
    /// The room goes on at another node. The first input of such a room.
    Reopened(Reopening),
    /// A member claimed its seat and has a new session.
    Claimed {
        /// The member.
        seat: ClaimedSeat,
        /// How it goes on.
        how: Claimed,
    },
    /// The room is about to move: pass on what waits, whatever the budgets allow.
    Sealed,
    /// All pending input was handled: send what is due.
    Flush,
    /// The server ends the room.
    End {
        /// The reason.
        reason: CloseReason,
    },
}
