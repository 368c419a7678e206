//! A match's log entries, as stored and as read: JSON.

use super::super::failure::Failure;
use crate::store::{AccountId, MatchEntry};
use data_encoding::BASE64;
use parlor_hub::room::KeptEntry;
use parlor_proto::MemberId;
use parlor_proto::wire::control::LeaveReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Happened {
    /// The match opened: always the first.
    Opened {
        /// What it was listed under.
        label: String,
        /// Members that it could have at once.
        members_max: u16,
    },
    /// A member joined.
    Joined {
        /// Its number in the match.
        member: u32,
        /// What it called itself.
        name: String,
        /// Its account, or its user by the token of a game's own service; null without either.
        user: Option<String>,
    },
    /// A member left.
    Left {
        /// Whose.
        member: u32,
        /// Why: `left`, `kicked`, `connection_lost`, `timed_out`, `misbehaved`, `too_slow` or `unknown`.
        why: String,
        /// The reason, if the member was removed.
        reason: Option<String>,
    },
    /// Reliable data. Unreliable data is not kept.
    Data {
        /// Its place among all that had one, as the members saw it.
        order: u64,
        /// Its sender.
        from: u32,
        /// What the game took it for.
        op: i64,
        /// Its receivers; empty if the sender was alone.
        to: Vec<u32>,
        /// What was sent, in base64.
        payload: String,
    },
    /// It was over: always the last.
    Ended,
    /// The log ends here, and the match went on.
    Cut {
        /// `full` if it had no more room, `quota` if its account had none, `store full` if the store had none, `store unavailable` if the
        /// store was slow or away, `defect` if the store refused an entry.
        why: String,
    },
}

/// Something that happened in a match.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct EntryView {
    /// Its place in the log, from 0 without gaps.
    number: u64,
    /// When it happened, in milliseconds since 1970.
    at_ms: u64,
    /// What it was.
    what: Happened,
}

/// Converts an entry for the store.
pub(super) fn stored(number: u64, at_ms: u64, entry: KeptEntry) -> MatchEntry {
    let player = match &entry {
        KeptEntry::Joined { user: Some(user), .. } => AccountId::new(user).ok(),
        _ => None,
    };
    let body = serde_json::to_vec(&Happened::from(entry)).expect("numbers and texts are JSON");
    MatchEntry { number, at_ms, body, player }
}

/// Converts a stored entry for readers.
pub(super) fn view(entry: &MatchEntry) -> Result<EntryView, Failure> {
    let what = serde_json::from_slice(&entry.body).map_err(|error| {
        Failure::defect(&format!("entry {} of a match cannot be read: {error}", entry.number))
    })?;
    Ok(EntryView { number: entry.number, at_ms: entry.at_ms, what })
}

/// The last entry of a log that ends before its match.
pub(super) fn cut(number: u64, at_ms: u64, why: &str) -> EntryView {
    EntryView { number, at_ms, what: Happened::Cut { why: why.to_owned() } }
}

impl From<KeptEntry> for Happened {
    fn from(entry: KeptEntry) -> Self {
        match entry {
            KeptEntry::Opened { label, members_max, by: _ } => Happened::Opened { label, members_max },
            KeptEntry::Joined { member: MemberId(member), name, user } => {
                Happened::Joined { member, name, user }
            }
            KeptEntry::Left { member: MemberId(member), reason } => {
                let (why, reason) = leaving(reason);
                Happened::Left { member, why: why.to_owned(), reason }
            }
            KeptEntry::Data { order, from, op, to, payload } => Happened::Data {
                order,
                from: from.0,
                op,
                to: to.into_iter().map(|member| member.0).collect(),
                payload: BASE64.encode(&payload),
            },
            KeptEntry::Ended => Happened::Ended,
        }
    }
}

fn leaving(reason: LeaveReason) -> (&'static str, Option<String>) {
    match reason {
        LeaveReason::Left => ("left", None),
        LeaveReason::Kicked { reason } => ("kicked", Some(reason)),
        LeaveReason::ConnectionLost => ("connection_lost", None),
        LeaveReason::TimedOut => ("timed_out", None),
        LeaveReason::Misbehaved => ("misbehaved", None),
        LeaveReason::TooSlow => ("too_slow", None),
        LeaveReason::Unknown { .. } => ("unknown", None),
    }
}
