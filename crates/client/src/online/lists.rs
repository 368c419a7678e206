//! Lists for an account: its turn rooms, live matches, and stored matches.

use super::account::{Account, Pending, Question};
use super::view::Phase;
use bytes::Bytes;
use data_encoding::BASE64;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Part<T> {
    /// The items of this page.
    #[serde(alias = "matches", alias = "rooms")]
    pub items: Vec<T>,
    /// The value of `after` for the next page, which may be empty; `None` on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// Filters live matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchFilter {
    /// Only matches with this label.
    pub label: Option<String>,
    /// The minimum number of members.
    pub min_members: usize,
    /// The maximum number of members.
    pub max_members: Option<usize>,
    /// Only matches with a free seat.
    pub open_seats: bool,
}

/// A match that can be joined by its id: `Room::join`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LiveMatch {
    /// Its id.
    pub id: String,
    /// Its label on the list.
    pub label: String,
    /// The number of its members.
    pub members: usize,
    /// The maximum number of members.
    pub max_members: u16,
    /// When it opened, in milliseconds since 1970.
    pub opened_at_ms: u64,
}

/// A match stored by the server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeptMatch {
    /// Its id.
    pub id: String,
    /// Its label on the list.
    pub label: String,
    /// When it opened, in milliseconds since 1970.
    pub opened_at_ms: u64,
    /// When it ended; `None` while it is running.
    pub ended_at_ms: Option<u64>,
    /// How it ended: `ended`, or `server_ended` if its last moments may be missing. `None` while it is
    /// running.
    pub ending: Option<String>,
    /// The number of entries in its log.
    pub entries: u64,
    /// The size of its log in bytes.
    pub bytes: u64,
    /// Why the log ends before the match does, as [`Happened::Cut`] says; `None` if it does not.
    pub cut: Option<String>,
}

/// A page of a match's log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MatchLog {
    /// The match.
    #[serde(rename = "match")]
    pub of: KeptMatch,
    /// The entries, in chronological order.
    pub entries: Vec<LogEntry>,
    /// The value of `from` for the next page; `None` if there are no more entries yet.
    #[serde(default)]
    pub next: Option<u64>,
}

/// An entry of a match's log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LogEntry {
    /// Its index in the log, from 0 without gaps.
    pub number: u64,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: u64,
    /// What happened.
    pub what: Happened,
}

/// What happened in a match.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happened {
    /// The match opened: always the first entry.
    Opened {
        /// Its label on the list.
        label: String,
        /// The maximum number of members at once.
        members_max: u16,
    },
    /// A member joined.
    Joined {
        /// Its number in the match.
        member: u32,
        /// Its display name.
        name: String,
        /// Its account; `None` without an authenticated one.
        user: Option<String>,
    },
    /// A member left.
    Left {
        /// The member's number.
        member: u32,
        /// The reason, in one word: docs/matches.md lists them.
        why: String,
        /// The text given for a kick, if there was one.
        reason: Option<String>,
    },
    /// A member sent data reliably. Unreliable data is not stored.
    Data {
        /// Its position in the match's total order.
        order: u64,
        /// The sender's number in the match.
        from: u32,
        /// The game's operation code.
        op: i64,
        /// The recipients; empty if the sender was alone.
        to: Vec<u32>,
        /// The payload.
        #[serde(deserialize_with = "from_base64")]
        payload: Bytes,
    },
    /// The match ended: always the last entry.
    Ended,
    /// The log was cut here; the match continued.
    Cut {
        /// `full` if it had no more room, `quota` if its account had none, `store full` if the store had none, `store unavailable` if the
        /// store was slow or away, `defect` if the store refused an entry.
        why: String,
    },
    /// An entry that only a later server version writes.
    #[serde(other)]
    Unknown,
}

/// A turn room on a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoomSummary {
    /// Its id, for [`SignIn::resume`](super::SignIn::resume).
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its game.
    pub game: String,
    /// The rule set that validates moves.
    #[serde(default)]
    pub rules: Option<String>,
    /// `active`, or `archived` once it has no players.
    pub status: String,
    /// The phase of its game.
    pub phase: Phase,
    /// The number of players.
    pub player_count: usize,
    /// The number of seats.
    pub max_players: u16,
    /// Its metadata, set by the host.
    pub metadata: Value,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated: u64,
    /// The number of its changes.
    pub version: u64,
}

/// Lists.
impl Account {
    /// Lists the turn rooms that the player has a seat in, a hundred a page. `after` is [`Part::next`] of the
    /// page before.
    pub fn turn_rooms(&self, after: Option<&str>) -> Pending<Part<RoomSummary>> {
        self.get("/rooms/mine", &[("after", after.map(escaped))])
    }

    /// Lists the live matches of the account's game, without hidden ones, a hundred a page. `after` is
    /// [`Part::next`] of the page before.
    pub fn matches(&self, filter: &MatchFilter, after: Option<&str>) -> Pending<Part<LiveMatch>> {
        let fields = [
            ("label", filter.label.as_deref().map(escaped)),
            ("min_members", Some(filter.min_members.to_string())),
            ("max_members", filter.max_members.map(|members| members.to_string())),
            ("open_seats", Some(filter.open_seats.to_string())),
            ("after", after.map(escaped)),
        ];
        self.get("/matches", &fields)
    }

    /// Lists the stored matches that the player was in, newest first, a hundred a page. `after` is
    /// [`Part::next`] of the page before.
    pub fn kept_matches(&self, after: Option<&str>) -> Pending<Part<KeptMatch>> {
        self.get("/matches/kept", &[("after", after.map(escaped))])
    }

    /// Reads the log of a match that the player was in, from entry `from` on. For the next page, `from` is
    /// [`MatchLog::next`].
    pub fn match_log(&self, id: &str, from: u64) -> Pending<MatchLog> {
        self.get(&format!("/matches/{}/log", escaped(id)), &[("from", Some(from.to_string()))])
    }

    fn get<T: serde::de::DeserializeOwned + Send + 'static>(
        &self,
        path: &str,
        fields: &[(&str, Option<String>)],
    ) -> Pending<T> {
        let given = fields.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let query = given.collect::<Vec<_>>().join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        self.ask(Question::Get(format!("{path}{mark}{query}")))
    }
}

/// Percent-encodes a text for a URL.
pub(super) fn escaped(value: &str) -> String {
    utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()
}

fn from_base64<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(from)?;
    let bytes = BASE64.decode(text.as_bytes());
    bytes.map(Bytes::from).map_err(|error| D::Error::custom(format!("the payload is not in base64: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_log_is_read_with_what_later_servers_add() {
        let log = json!({
            "match": {
                "id": "8WQ2ZKD5TRNA7XHC", "label": "", "opened_at_ms": 1, "ended_at_ms": null, "ending": null, "entries": 2,
                "bytes": 9, "cut": null, "mood": "fine"
            },
            "entries": [
                { "number": 0, "at_ms": 1,
                  "what": { "kind": "data", "order": 0, "from": 1, "op": -7, "to": [0], "payload": "aGk=" } },
                { "number": 1, "at_ms": 2, "what": { "kind": "danced", "member": 1 } },
            ],
        });
        let log = MatchLog::deserialize(log).unwrap();
        let hi =
            Happened::Data { order: 0, from: 1, op: -7, to: vec![0], payload: Bytes::from_static(b"hi") };
        let what: Vec<_> = log.entries.into_iter().map(|entry| entry.what).collect();
        assert_eq!((what, log.next), (vec![hi, Happened::Unknown], None));
        let wrong = json!({ "kind": "data", "order": 0, "from": 1, "op": 1, "to": [], "payload": "?" });
        assert!(Happened::deserialize(wrong).unwrap_err().to_string().contains("base64"));
    }

    #[test]
    fn what_stands_in_a_url_is_escaped() {
        assert_eq!(escaped("a b&c=ü"), "a%20b%26c%3D%C3%BC");
    }
}
