//! The data shown beside the game.

use parlor_terminal::costs::Rows;
use parlor_terminal::net_graph::push;
use std::collections::{BTreeMap, VecDeque};

/// How far the room is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not in the room yet; the text says what is being tried.
    Connecting(String),
    /// In the room, but the connection is lost and is being made again; the text says how far that is.
    Reconnecting(String),
    /// In the room.
    #[default]
    Open,
    /// Out of the room for good; the text says why.
    Closed(String),
}

/// What is known of a player besides the game. Bots of the host have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberLine {
    /// Its name; used where the game does not know one.
    pub name: String,
    /// Its round trip to the host, if known.
    pub ping_ms: Option<u32>,
    /// How it is connected, in one short word: `host`, `quic`, `ws`.
    pub transport: String,
}

/// The state of this member's own connection over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    rtt_ms: VecDeque<u64>,
    updates: VecDeque<u64>,
    /// Names and values of what else is known of the link, from the top.
    pub rows: Rows,
}

impl Figures {
    /// Adds a measured round trip.
    pub(crate) fn push_rtt_ms(&mut self, rtt_ms: u32) {
        push(&mut self.rtt_ms, rtt_ms.into());
    }

    /// Adds how many updates came in the last second.
    pub(crate) fn push_updates(&mut self, per_second: u32) {
        push(&mut self.updates, per_second.into());
    }

    /// The last round trips, the oldest first.
    pub(crate) fn rtt_ms(&self) -> &VecDeque<u64> {
        &self.rtt_ms
    }

    /// The last rates of updates, the oldest first.
    pub(crate) fn updates(&self) -> &VecDeque<u64> {
        &self.updates
    }
}

/// Everything that is drawn besides the [`Scene`](crate::game::Scene). Texts may hold anything: they are made safe when
/// they are drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HudModel {
    /// How far the room is.
    pub stage: Stage,
    /// The code of the room, once it is known.
    pub code: Option<String>,
    /// What a friend on this machine, or with the same server, types to join: `parlor play --join K7QM`.
    pub join_command: String,
    /// The link for a friend elsewhere, once there is one.
    pub invite: Option<String>,
    /// Where a browser on this machine joins, if this process is the server.
    pub page: Option<String>,
    /// The player that sits here.
    pub me: Option<u32>,
    /// Whether nobody sits here, but a spectator.
    pub watches: bool,
    /// The player whose machine is the authority.
    pub host: Option<u32>,
    /// What is known of the players, by their ids.
    pub members: BTreeMap<u32, MemberLine>,
    /// The state of the connection.
    pub figures: Figures,
    /// The simulated impairment, to explain its effects: `latency=80ms,loss=3%`.
    pub impairment: Option<String>,
    /// Something that has just happened, for a few seconds: `Ada is the host now`.
    pub notice: Option<String>,
    /// Whether the help is open.
    pub help: bool,
    /// What the shared state costs, as names and values, while the player wants to see it.
    pub costs: Option<Rows>,
}
