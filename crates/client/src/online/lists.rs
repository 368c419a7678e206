//! What there is for an account to join and to read: its turn rooms, live matches, and matches that were kept.

use super::account::{Account, Pending, Question};
use super::view::Phase;
use bytes::Bytes;
use data_encoding::BASE64;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Part<T> {
    /// What is in it.
    #[serde(alias = "matches", alias = "rooms")]
    pub items: Vec<T>,
    /// What to give as `after` for the next part, which may be empty; `None` after the last one.
    #[serde(default)]
    pub next: Option<String>,
}

/// Which live matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchFilter {
    /// Those under this label alone.
    pub label: Option<String>,
    /// Those with so many members at least.
    pub min_members: usize,
    /// Those with so many at most.
    pub max_members: Option<usize>,
    /// Only those that have a seat left.
    pub open_seats: bool,
}

/// A match that can be joined, by its id: `Room::join`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LiveMatch {
    /// Its id.
    pub id: String,
    /// What it is listed under.
    pub label: String,
    /// Members in it.
    pub members: usize,
    /// Members that it may have.
    pub max_members: u16,
    /// When it opened, in milliseconds since 1970.
    pub opened_at_ms: u64,
}

/// A match that the server keeps.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeptMatch {
    /// Its id.
    pub id: String,
    /// What it was listed under.
    pub label: String,
    /// When it opened, in milliseconds since 1970.
    pub opened_at_ms: u64,
    /// When it ended; `None` as long as it goes on.
    pub ended_at_ms: Option<u64>,
    /// How it ended: `ended`, or `server_ended` if the newest moments may be missing; `None` as long as it goes on.
    pub ending: Option<String>,
    /// Entries of its log.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Why the log ends before the match does, as [`Happened::Cut`] says; `None` if it does not.
    pub cut: Option<String>,
}

/// A part of the log of a match.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MatchLog {
    /// The match.
    #[serde(rename = "match")]
    pub of: KeptMatch,
    /// What happened in it, in the order in which it did.
    pub entries: Vec<LogEntry>,
    /// What to give as `from` for the next part; `None` if there are no more entries yet.
    #[serde(default)]
    pub next: Option<u64>,
}

/// Something that happened in a match.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LogEntry {
    /// Its place in the log, from 0 without gaps.
    pub number: u64,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: u64,
    /// What it was.
    pub what: Happened,
}

/// What happened in a match.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happened {
    /// The match opened: always the first.
    Opened {
        /// What it was listed under.
        label: String,
        /// Members that it could have at once.
        members_max: u16,
    },
    /// Somebody took a seat.
    Joined {
        /// Its number in the match.
        member: u32,
        /// What it called itself.
        name: String,
        /// Its account; `None` if nobody vouched for it.
        user: Option<String>,
    },
    /// Somebody's seat was free again.
    Left {
        /// Whose.
        member: u32,
        /// Why, in a word: docs/matches.md lists them.
        why: String,
        /// What was said about it, if somebody was removed.
        reason: Option<String>,
    },
    /// Somebody sent data reliably. What may be lost is not kept.
    Data {
        /// Its place among all that had one, as the members saw it.
        order: u64,
        /// Who sent it.
        from: u32,
        /// What the game took it for.
        op: i64,
        /// Whom it went to; nobody, if the sender was alone.
        to: Vec<u32>,
        /// What was sent.
        #[serde(deserialize_with = "from_base64")]
        payload: Bytes,
    },
    /// It was over: always the last.
    Ended,
    /// The log ends here, and the match went on.
    Cut {
        /// `full` if it had no more room, `quota` if its account had none, `store full` if the store had none, `store unavailable` if the
        /// store was slow or away, `defect` if the store refused an entry.
        why: String,
    },
    /// Something that a later server writes down.
    #[serde(other)]
    Unknown,
}

/// What a list says of a turn room.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoomSummary {
    /// Its id, by which [`SignIn::resume`](super::SignIn::resume) goes on in it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its game.
    pub game: String,
    /// The rule set that judges the moves.
    #[serde(default)]
    pub rules: Option<String>,
    /// `active`, or `archived` once nobody sits there.
    pub status: String,
    /// Where the game is.
    pub phase: Phase,
    /// How many sit there.
    pub player_count: usize,
    /// How many fit.
    pub max_players: u16,
    /// What is said about it.
    pub metadata: Value,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// When it last changed.
    pub updated: u64,
    /// Counts its changes.
    pub version: u64,
}

/// What there is to join and to read.
impl Account {
    /// The turn rooms that the player sits in, a hundred at once; `after` is [`Part::next`] of the part before.
    pub fn turn_rooms(&self, after: Option<&str>) -> Pending<Part<RoomSummary>> {
        self.get("/rooms/mine", &[("after", after.map(escaped))])
    }

    /// The live matches of the account's game that can be found, a hundred at once; `after` is [`Part::next`] of the part before.
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

    /// The matches that the player was in and that the server keeps, the newest first, a hundred at once; `after` is [`Part::next`] of the part
    /// before.
    pub fn kept_matches(&self, after: Option<&str>) -> Pending<Part<KeptMatch>> {
        self.get("/matches/kept", &[("after", after.map(escaped))])
    }

    /// What happened in a match that the player was in, from an entry on; then `from` is [`MatchLog::next`] of the part before.
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

/// A text as it stands in a URL.
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
