//! What a hub wants done, and what it lets its driver know.

use crate::room::{Counters, KeptEntry, Room, Setup};
use parlor_proto::session::TurnedAway;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{
    CloseReason, ConnectionId, Instant, LinkKind, MemberId, Packet, PeerMisbehaved, RoomCode, RoomId,
};
use std::ops::AddAssign;

/// What a hub wants done, and what it lets its driver know.
#[derive(Clone, Debug)]
pub enum Output {
    /// Give a packet to a connection.
    Packet {
        /// Which.
        connection: ConnectionId,
        /// What.
        packet: Packet,
    },
    /// Close a connection once it has carried what it was given. The hub has forgotten it already.
    Close {
        /// Which.
        connection: ConnectionId,
        /// Why, as [`CloseReason::as_str`] says it, or `turned_away`: for whoever was not reached by the goodbye.
        reason: &'static str,
    },
    /// Append to the log of a room.
    Recorded {
        /// Which room.
        room: RoomId,
        /// The bytes to append; see [`crate::room::log`].
        bytes: Vec<u8>,
    },
    /// Append to the log of a match that is [kept](parlor_proto::wire::handshake::RoomSettings::keep).
    Kept {
        /// Which room it is.
        room: RoomId,
        /// The match's id.
        code: RoomCode,
        /// Which game it is of.
        app: String,
        /// Which environment of the game.
        environment: String,
        /// The number of the entry: they count from 0 in each match, without gaps.
        number: u64,
        /// What happened.
        entry: KeptEntry,
    },
    /// Something that an operator may like to know.
    Happened(Happening),
}

/// What an operator may like to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A room opened.
    RoomOpened(RoomSummary),
    /// A room ended.
    RoomEnded {
        /// Its code.
        code: RoomCode,
        /// Why.
        reason: CloseReason,
    },
    /// Somebody took a seat.
    Joined {
        /// In which room.
        code: RoomCode,
        /// As which member.
        member: MemberId,
        /// Under which name.
        name: String,
        /// Over which connection.
        connection: ConnectionId,
        /// The user that its token vouched for, if it had one.
        user: Option<String>,
    },
    /// Somebody's seat is free again.
    Left {
        /// In which room.
        code: RoomCode,
        /// Who.
        member: MemberId,
        /// Why.
        reason: LeaveReason,
    },
    /// The connection of somebody is lost; the seat is kept for a while.
    Away {
        /// In which room.
        code: RoomCode,
        /// Who.
        member: MemberId,
        /// How it was lost.
        reason: LeaveReason,
    },
    /// Somebody is back in a seat that was kept, or has another connection before the first was known to be lost.
    Resumed {
        /// In which room.
        code: RoomCode,
        /// Who.
        member: MemberId,
        /// Over which connection.
        connection: ConnectionId,
        /// Whether its process began anew.
        is_restarted: bool,
    },
    /// A resume token was used again: two ends had one session, and it was ended.
    TokenReused {
        /// In which room.
        code: RoomCode,
        /// Whose.
        member: MemberId,
    },
    /// Somebody was not let in.
    TurnedAway {
        /// Over which connection.
        connection: ConnectionId,
        /// Why.
        answer: TurnedAway,
    },
    /// Somebody broke the protocol and was disconnected.
    Misbehaved {
        /// Over which connection.
        connection: ConnectionId,
        /// How.
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
    /// Who runs it.
    pub kind: RoomKind,
    /// What it is listed under, if it is a match; may be empty.
    pub label: String,
    /// When it opened, on the hub's clock.
    pub opened: Instant,
    /// Which game it is for.
    pub app: String,
    /// Which environment of the game.
    pub environment: String,
    /// Members in it: its players, and a host without a player.
    pub members: usize,
    /// How many of them have no connection for now.
    pub away: usize,
    /// How many are connected over each kind of link.
    pub links: [(LinkKind, usize); 3],
    /// Players in it.
    pub players: usize,
    /// Players that it may have at once.
    pub max_players: u16,
    /// Whether a secret is needed beside the code.
    pub needs_secret: bool,
}

/// What a hub counted since it was made, and what there is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Rooms that live.
    pub rooms: usize,
    /// Connections that are known, in a room or not yet.
    pub connections: usize,
    /// Messages between members, counted once for each receiver.
    pub messages_relayed: u64,
    /// Messages between members that were dropped because their sender sent too many, counted once for each receiver.
    pub over_budget: u64,
    /// Inputs that were dropped because more came than steps had passed.
    pub inputs_over_budget: u64,
    /// Messages to members that were gone.
    pub unreachable: u64,
    /// How often another member became a room's authority.
    pub migrations: u64,
    /// Packets given to connections.
    pub packets_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Packets that came over connections.
    pub packets_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Hellos that were sent on to another hub.
    pub redirected: u64,
    /// Hellos that were told to come again later.
    pub put_off: u64,
    /// Hellos that were refused.
    pub refused: u64,
    /// Messages that were flushed.
    pub flush_waits: u64,
    /// How long they waited in all, from their turn to their flush, in microseconds.
    pub flush_wait_us: u64,
    /// Sessions that went on over another connection.
    pub resumed: u64,
    /// Sessions that were ended because a token was used again.
    pub tokens_reused: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.rooms += other.rooms;
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
    }
}

impl Stats {
    /// What a room counted while it was told something.
    pub(super) fn add_room(&mut self, before: &Counters, after: &Counters) {
        self.messages_relayed += after.relayed - before.relayed;
        self.over_budget += after.over_budget - before.over_budget;
        self.inputs_over_budget += after.inputs_over_budget - before.inputs_over_budget;
        self.unreachable += after.unreachable - before.unreachable;
        self.migrations += after.migrations - before.migrations;
    }

    /// Somebody was not let in.
    pub(super) fn turned_away(&mut self, answer: &TurnedAway) {
        match answer {
            TurnedAway::Redirect(_) => self.redirected += 1,
            TurnedAway::RetryAfter(_) => self.put_off += 1,
            TurnedAway::Refused(_) => self.refused += 1,
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
        needs_secret: settings.secret.is_some(),
    }
}
