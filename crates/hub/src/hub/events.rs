//! Outputs and events of a hub for its driver.

use super::waiting::{ClaimedRoom, EnteredRoom};
use crate::cluster::ownership::RoomUid;
use crate::room::{Counters, KeptEntry, Room, Setup};
use parlor_proto::session::Rejection;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{
    CloseReason, ConnectionId, Instant, LinkKind, MemberId, Packet, PeerMisbehaved, RoomCode, RoomId,
};
use std::ops::AddAssign;

/// An action for the driver, or an event.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send a packet on a connection.
    Packet {
        /// The connection.
        connection: ConnectionId,
        /// The packet.
        packet: Packet,
    },
    /// Close a connection after sending what it was given. The hub has forgotten it already.
    Close {
        /// The connection.
        connection: ConnectionId,
        /// [`CloseReason::as_str`] or `turned_away`, for a peer that missed the goodbye.
        reason: &'static str,
    },
    /// Append to the log of a room.
    Recorded {
        /// The room.
        room: RoomId,
        /// The bytes to append; see [`crate::room::log`].
        bytes: Vec<u8>,
    },
    /// Append to the log of a [kept](parlor_proto::wire::handshake::RoomSettings::keep) match.
    Kept {
        /// The room's id.
        room: RoomId,
        /// The match's id.
        code: RoomCode,
        /// The match's game.
        app: String,
        /// The game's environment.
        environment: String,
        /// The number of the entry: counts from 0 in each match, without gaps.
        number: u64,
        /// The entry.
        entry: KeptEntry,
    },
    /// Find out where the room with this code is, of this game and environment, and answer by
    /// [`Hub::handle_located`](super::Hub::handle_located). Of a hub of a cluster alone, as the next two.
    Locate {
        /// The client that asks.
        connection: ConnectionId,
        /// The code.
        code: RoomCode,
        /// The client's game.
        app: String,
        /// The client's environment.
        environment: String,
    },
    /// Enter a room in the store under its code, if no room has it, and answer by
    /// [`Hub::handle_entered`](super::Hub::handle_entered).
    Enter {
        /// The client that opens it.
        connection: ConnectionId,
        /// The room.
        room: EnteredRoom,
    },
    /// Find out whose a room is, make it this node's if it is to be reopened here, and answer by
    /// [`Hub::handle_claimed`](super::Hub::handle_claimed).
    Claim {
        /// The member that asks.
        connection: ConnectionId,
        /// The room.
        room: ClaimedRoom,
    },
    /// Delete the room's entry, if there is one with this uid.
    Left {
        /// Its code.
        code: RoomCode,
        /// Its name for ever.
        uid: RoomUid,
    },
    /// An event for operators.
    Event(HubEvent),
}

/// An event for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubEvent {
    /// A room opened.
    RoomOpened(RoomSummary),
    /// A room ended.
    RoomEnded {
        /// Its code.
        code: RoomCode,
        /// The reason.
        reason: CloseReason,
    },
    /// A member took a seat.
    Joined {
        /// The room's code.
        code: RoomCode,
        /// The member's id.
        member: MemberId,
        /// The member's name.
        name: String,
        /// Its connection.
        connection: ConnectionId,
        /// The user that its token vouched for, if it had one.
        user: Option<String>,
    },
    /// A member left; its seat is free again.
    Left {
        /// The room's code.
        code: RoomCode,
        /// The member.
        member: MemberId,
        /// The reason.
        reason: LeaveReason,
    },
    /// A member's connection is lost; its seat is kept for a while.
    Away {
        /// The room's code.
        code: RoomCode,
        /// The member.
        member: MemberId,
        /// How it was lost.
        reason: LeaveReason,
    },
    /// A member resumed its kept seat, or switched connections before the loss of the old one was detected.
    Resumed {
        /// The room's code.
        code: RoomCode,
        /// The member.
        member: MemberId,
        /// The connection.
        connection: ConnectionId,
        /// Whether its process restarted.
        is_restarted: bool,
    },
    /// A spent resume token was used: two clients had one session, so it was ended.
    TokenReused {
        /// The room's code.
        code: RoomCode,
        /// The member whose token it was.
        member: MemberId,
    },
    /// A client was not admitted.
    Rejected {
        /// The connection.
        connection: ConnectionId,
        /// The reason.
        answer: Rejection,
    },
    /// A peer violated the protocol and was disconnected.
    Misbehaved {
        /// The connection.
        connection: ConnectionId,
        /// The violation.
        how: PeerMisbehaved,
    },
}

/// A room as an operator or a join page sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSummary {
    /// Its id.
    pub id: RoomId,
    /// Its code.
    pub code: RoomCode,
    /// Its kind.
    pub kind: RoomKind,
    /// Its label for listings, if it is a match; may be empty.
    pub label: String,
    /// When it opened, on the hub's clock.
    pub opened: Instant,
    /// The game's name.
    pub app: String,
    /// The game's environment.
    pub environment: String,
    /// Members in it: its players, its spectators, and a host without a player.
    pub members: usize,
    /// How many of them are disconnected.
    pub away: usize,
    /// How many are connected over each kind of link.
    pub links: [(LinkKind, usize); LinkKind::ALL.len()],
    /// Players in it.
    pub players: usize,
    /// Players that it may have at once.
    pub max_players: u16,
    /// Spectators in it.
    pub spectators: usize,
    /// Whether joining needs a secret beside the code.
    pub needs_secret: bool,
}

/// Counters since the hub was created, and current sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Live rooms.
    pub rooms: usize,
    /// Rooms that it takes beside those.
    pub rooms_free: usize,
    /// Open connections, in a room or not yet.
    pub connections: usize,
    /// Messages between members, counted once for each receiver.
    pub messages_relayed: u64,
    /// Messages dropped because their sender exceeded its budget, counted once for each receiver.
    pub over_budget: u64,
    /// Inputs dropped because they came faster than steps pass.
    pub inputs_over_budget: u64,
    /// Messages to members that had left.
    pub unreachable: u64,
    /// Host migrations.
    pub migrations: u64,
    /// Packets given to connections.
    pub packets_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Packets that came over connections.
    pub packets_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Hellos redirected to another hub.
    pub redirected: u64,
    /// Hellos told to retry later.
    pub put_off: u64,
    /// Hellos that were refused.
    pub refused: u64,
    /// Messages that were flushed.
    pub flush_waits: u64,
    /// Total time from arrival to flush of those messages, in microseconds.
    pub flush_wait_us: u64,
    /// Sessions resumed over another connection.
    pub resumed: u64,
    /// Sessions ended because a spent token was used.
    pub tokens_reused: u64,
    /// Bytes of memory that the state of all rooms takes, and the sessions whose seats are kept.
    pub state_bytes: usize,
    /// Kept seats that were freed before the end of the grace period, because there were too many.
    pub seats_freed_early: u64,
    /// Rooms ended for lack of memory for their state.
    pub rooms_ended_for_memory: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.rooms += other.rooms;
        self.rooms_free += other.rooms_free;
        self.connections += other.connections;
        self.messages_relayed += other.messages_relayed;
        self.over_budget += other.over_budget;
        self.inputs_over_budget += other.inputs_over_budget;
        self.unreachable += other.unreachable;
        self.migrations += other.migrations;
        self.packets_sent += other.packets_sent;
        self.bytes_sent += other.bytes_sent;
        self.packets_received += other.packets_received;
        self.bytes_received += other.bytes_received;
        self.redirected += other.redirected;
        self.put_off += other.put_off;
        self.refused += other.refused;
        self.flush_waits += other.flush_waits;
        self.flush_wait_us += other.flush_wait_us;
        self.resumed += other.resumed;
        self.tokens_reused += other.tokens_reused;
        self.state_bytes += other.state_bytes;
        self.seats_freed_early += other.seats_freed_early;
        self.rooms_ended_for_memory += other.rooms_ended_for_memory;
    }
}

impl Stats {
    /// Adds what a room counted during one input.
    pub(super) fn add_room(&mut self, before: &Counters, after: &Counters) {
        self.messages_relayed += after.relayed - before.relayed;
        self.over_budget += after.over_budget - before.over_budget;
        self.inputs_over_budget += after.inputs_over_budget - before.inputs_over_budget;
        self.unreachable += after.unreachable - before.unreachable;
        self.migrations += after.migrations - before.migrations;
    }

    /// Counts a rejected client.
    pub(super) fn rejected(&mut self, answer: &Rejection) {
        match answer {
            Rejection::Redirect(_) => self.redirected += 1,
            Rejection::RetryAfter(_) => self.put_off += 1,
            Rejection::Refused(_) => self.refused += 1,
        }
    }
}

pub(super) fn summary(room: &Room) -> RoomSummary {
    let Setup { id, code, app, environment, settings, opened, .. } = room.setup();
    RoomSummary {
        id: *id,
        code: *code,
        kind: settings.kind,
        label: settings.label.clone(),
        opened: *opened,
        app: app.clone(),
        environment: environment.clone(),
        members: room.len(),
        away: room.away_count(),
        links: LinkKind::ALL.map(|kind| (kind, room.linked_count(kind))),
        players: room.players(),
        max_players: settings.max_players,
        spectators: room.spectators(),
        needs_secret: settings.secret.is_some(),
    }
}
