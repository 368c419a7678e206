//! The `--json` report of a member.

use crate::talk::{Heard, Talk};
use parlor::{ClosedReason, Room};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a member saw, decoded and measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    name: String,
    member: Option<u32>,
    role: &'static str,
    code: Option<String>,
    members_seen: BTreeMap<u32, String>,
    join_path: Option<&'static str>,
    scope: &'static str,
    connectivity: Connectivity,
    #[serde(flatten)]
    standing: Standing,
    updates_published: u64,
    messages_sent: u64,
    messages_received: u64,
    packets_lost: u64,
    jitter_ms: f64,
    /// The hash of the state at the sequence that `--hash-at` named, if this member decoded exactly that.
    state_hash: Option<Mark>,
    /// The hashes at every sequence that is a multiple of `--hash-at`, or of 100, that this member decoded.
    state_hashes: BTreeMap<u64, String>,
    closed: Option<Closed>,
}

/// The requested mode, the server that was asked for the room, and the one that has it.
#[derive(Debug, Serialize)]
struct Connectivity {
    mode: &'static str,
    coordinator: Option<String>,
    relay: Option<String>,
}

/// How a member stands at a moment.
#[derive(Debug, Serialize)]
pub(crate) struct Standing {
    link: Option<&'static str>,
    link_state: &'static str,
    transport_path: &'static str,
    transport_status: Option<&'static str>,
    last_reason_code: Option<&'static str>,
    /// The way in which each other player is reached, by its id.
    ways: BTreeMap<u32, &'static str>,
    steps: u64,
    updates_decoded: u64,
    rtt_ms: Option<f64>,
    /// Numbers that this member said, with `--talk`.
    said: u64,
    /// What it heard of the numbers of others, by their ids.
    heard: BTreeMap<u32, Heard>,
}

#[derive(Debug, Serialize)]
struct Mark {
    sequence: u64,
    hash: Option<String>,
}

#[derive(Debug, Serialize)]
struct Closed {
    reason: &'static str,
    detail: String,
}

/// Sequences between two hashes of a report, if none was named.
pub(crate) const HASH_EVERY: u64 = 100;

impl Report {
    /// The report on a member: its room, everybody it ever saw there by their ids, and why the room closed.
    pub(crate) fn of(
        name: &str,
        room: &Room,
        members: &BTreeMap<u32, String>,
        standing: Standing,
        closed: Option<&ClosedReason>,
        hash_at: Option<u64>,
    ) -> Report {
        let (info, diagnostics) = (room.info(), room.diagnostics());
        let hex = |hash: u64| format!("{hash:016x}");
        let marks: BTreeMap<u64, String> =
            room.state().checksums().into_iter().map(|(sequence, hash)| (sequence, hex(hash))).collect();
        Report {
            name: name.to_owned(),
            member: info.local_id.map(|id| id.0),
            role: info.role.as_str(),
            code: info.code.map(|code| code.to_string()),
            members_seen: members.clone(),
            join_path: info.join_path.map(parlor::JoinPath::as_str),
            scope: info.scope.as_str(),
            connectivity: Connectivity {
                mode: info.connectivity.mode.as_str(),
                coordinator: info.connectivity.coordinator,
                relay: info.connectivity.relay,
            },
            standing,
            updates_published: diagnostics.updates_published,
            messages_sent: diagnostics.session.messages_sent,
            messages_received: diagnostics.session.messages_received,
            packets_lost: diagnostics.session.packets_lost,
            jitter_ms: diagnostics.jitter_ms,
            state_hash: hash_at.map(|sequence| Mark { sequence, hash: marks.get(&sequence).cloned() }),
            state_hashes: marks,
            closed: closed.map(|reason| Closed { reason: reason.as_str(), detail: reason.to_string() }),
        }
    }
}

impl Standing {
    /// How a member stands now that has run so many steps.
    pub(crate) fn of(room: &Room, steps: u64, talk: &Talk) -> Standing {
        let (info, diagnostics) = (room.info(), room.diagnostics());
        let players = room.players();
        let others = players.iter().filter(|player| !player.is_me);
        Standing {
            link: info.connectivity.link.map(parlor::LinkKind::as_str),
            link_state: room.link_state().as_str(),
            transport_path: info.transport_path.as_str(),
            transport_status: info.transport_status.map(parlor::TransportStatus::as_str),
            last_reason_code: info.last_reason_code.map(parlor::ReasonCode::as_str),
            ways: others.map(|player| (player.id.0, player.transport.as_str())).collect(),
            steps,
            updates_decoded: diagnostics.updates_decoded,
            rtt_ms: diagnostics.rtt.map(|rtt| rtt.as_secs_f64() * 1_000.0),
            said: talk.said(),
            heard: talk.heard().clone(),
        }
    }
}
