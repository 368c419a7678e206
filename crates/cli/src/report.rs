//! What `--json` prints of a member.

use crate::seat::Seat;
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
    link: Option<&'static str>,
    transport_path: &'static str,
    join_path: Option<&'static str>,
    steps: u64,
    updates_decoded: u64,
    updates_published: u64,
    messages_sent: u64,
    messages_received: u64,
    packets_lost: u64,
    rtt_ms: Option<f64>,
    jitter_ms: f64,
    /// The hash of the state at the sequence that `--hash-at` named, if this member decoded exactly that.
    state_hash: Option<Mark>,
    /// The hashes at every sequence that is a multiple of `--hash-at`, or of 100, that this member decoded.
    state_hashes: BTreeMap<u64, String>,
    closed: Option<Closed>,
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
    /// What there is to say of a seat.
    pub(crate) fn of(seat: &Seat, name: &str, hash_at: Option<u64>) -> Report {
        let (room, info, diagnostics) = (seat.room(), seat.room().info(), seat.room().diagnostics());
        let hex = |hash: u64| format!("{hash:016x}");
        let marks: BTreeMap<u64, String> =
            room.state_marks().into_iter().map(|(sequence, hash)| (sequence, hex(hash))).collect();
        Report {
            name: name.to_owned(),
            member: info.local_id.map(|id| id.0),
            role: info.role.as_str(),
            code: info.code.map(|code| code.to_string()),
            members_seen: seat.seen().members.clone(),
            link: info.connectivity.link.map(parlor::LinkKind::as_str),
            transport_path: info.transport_path.as_str(),
            join_path: info.join_path.map(parlor::JoinPath::as_str),
            steps: seat.seen().steps,
            updates_decoded: diagnostics.updates_decoded,
            updates_published: diagnostics.updates_published,
            messages_sent: diagnostics.session.messages_sent,
            messages_received: diagnostics.session.messages_received,
            packets_lost: diagnostics.session.packets_lost,
            rtt_ms: diagnostics.rtt.map(|rtt| rtt.as_secs_f64() * 1_000.0),
            jitter_ms: diagnostics.jitter_ms,
            state_hash: hash_at.map(|sequence| Mark { sequence, hash: marks.get(&sequence).cloned() }),
            state_hashes: marks,
            closed: seat
                .closed()
                .map(|reason| Closed { reason: reason.as_str(), detail: reason.to_string() }),
        }
    }
}
