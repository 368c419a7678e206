//! What is asked of the matchmaker, and what is answered.

use core::time::Duration;
use parlor_social::limits::{GROUP_MAX, NAME_BYTES_MAX, PROPERTIES_MAX};
use parlor_social::{Entrance, Filter, Match, Name, Players, Properties, Seeker, Ticket, TicketState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A search.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnterQueue {
    /// The queue.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    pub(super) queue: String,
    /// The player's party, all of whose members search together: for its owner.
    pub(super) party: Option<String>,
    /// How many players the match may have, within what the queue says.
    pub(super) players: Option<Players>,
    /// What the player says of itself.
    #[serde(default)]
    #[schemars(extend("maxProperties" = PROPERTIES_MAX))]
    pub(super) properties: Properties,
    /// What the others' properties must be.
    pub(super) filter: Option<Filter>,
}

/// Which search.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfTicket {
    /// Its id.
    pub(super) ticket: String,
}

/// Whether a player takes the match that was found.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmMatch {
    /// The search.
    pub(super) ticket: String,
    /// Whether it does. Otherwise its search ends.
    pub(super) accept: bool,
}

/// The room that was opened for a match.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenedRoom {
    /// The search.
    pub(super) ticket: String,
    /// The room's code. The player sits in it.
    pub(super) code: String,
}

/// Free seats of a match.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfferSeats {
    /// The queue.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    pub(super) queue: String,
    /// The room's code. A player who offers sits in it.
    pub(super) code: String,
    /// Free seats, without those who are on their way.
    #[schemars(range(max = GROUP_MAX))]
    pub(super) seats: u16,
    /// The mean points of its players on the queue's ladder.
    pub(super) points: Option<i64>,
    /// What it says of itself, as players do.
    #[serde(default)]
    #[schemars(extend("maxProperties" = PROPERTIES_MAX))]
    pub(super) properties: Properties,
}

/// An offer to take back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithdrawOffer {
    /// The queue.
    pub(super) queue: String,
    /// The room's code.
    pub(super) code: String,
}

/// Queues.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct QueueList {
    /// In the order of their names.
    pub(super) queues: Vec<QueueView>,
}

/// A queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct QueueView {
    /// Its name.
    pub(super) queue: String,
    /// Its title.
    pub(super) title: String,
    /// Players of a match, at least.
    pub(super) min_players: u16,
    /// Players of a match, at most.
    pub(super) max_players: u16,
    /// Players who wait.
    pub(super) waiting: usize,
    /// Players who have found a match since the queue was empty.
    pub(super) found: u64,
    /// The median wait of the last searches that have found a match, in milliseconds; missing for too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wait_ms: Option<u64>,
    /// Matches that offer seats.
    pub(super) offers: usize,
}

/// A search that was made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct TicketAnswer {
    /// Its id.
    pub(super) ticket: String,
    /// How it stands.
    #[serde(flatten)]
    pub(super) view: TicketView,
}

/// How long an offer holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct OfferAnswer {
    /// Milliseconds until it is to be made again.
    pub(super) holds_ms: u64,
}

/// How a search stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct TicketView {
    /// The queue.
    queue: String,
    /// `waiting`; `confirm`: all are asked; `opening`: a member opens the room; `found`; `ended`.
    #[schemars(extend("enum" = ["waiting", "confirm", "opening", "found", "ended"]))]
    state: &'static str,
    /// How long it has waited, in milliseconds.
    waited_ms: u64,
    /// Accounts that search together.
    members: Vec<String>,
    /// Milliseconds until the present step is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ms: Option<u64>,
    /// Whether the caller has confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<bool>,
    /// Whether the caller is asked to open the room, and to say its code with `matchmaking.opened`.
    #[serde(skip_serializing_if = "Option::is_none")]
    opens: Option<bool>,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<FoundView>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [
        "left", "gone", "expired", "declined", "party_changed", "found_elsewhere", "queue_gone",
    ]))]
    why: Option<&'static str>,
}

/// A match that was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FoundView {
    /// Its room.
    room: Entrance,
    /// Its players in teams; all in one if the queue has none.
    teams: Vec<Vec<FoundPlayer>>,
    /// Whether it runs already: then `teams` has only those who searched together.
    backfill: bool,
}

/// A player of a match.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FoundPlayer {
    /// Its account.
    account: String,
    /// Its name.
    name: String,
    /// Its points on the queue's ladder.
    points: i64,
}

impl FoundView {
    fn of(found: &Match) -> Self {
        let player = |seeker: &Seeker| FoundPlayer {
            account: seeker.player.to_string(),
            name: seeker.name.clone(),
            points: seeker.skill,
        };
        FoundView {
            room: found.room.clone(),
            teams: found.teams.iter().map(|team| team.iter().map(player).collect()).collect(),
            backfill: found.is_backfill,
        }
    }
}

impl TicketView {
    /// As this member sees it.
    pub(super) fn of(
        queue: &Name,
        ticket: &Ticket,
        state: &TicketState,
        player: &str,
        now: Duration,
    ) -> Self {
        let left = |until: &Duration| Some(millis(until.saturating_sub(now)));
        let (mut left_ms, mut confirmed, mut opens, mut found, mut why) = (None, None, None, None, None);
        let state = match state {
            TicketState::Waiting => "waiting",
            TicketState::Confirm { until, confirmed: by } => {
                left_ms = left(until);
                confirmed = Some(by.contains(player));
                "confirm"
            }
            TicketState::Opening { opener, until } => {
                left_ms = left(until);
                opens = Some(&**opener == player);
                "opening"
            }
            TicketState::Found(it) => {
                found = Some(FoundView::of(it));
                "found"
            }
            TicketState::Ended(ended) => {
                why = Some(ended.as_str());
                "ended"
            }
        };
        TicketView {
            queue: queue.to_string(),
            state,
            waited_ms: millis(now.saturating_sub(ticket.since)),
            members: ticket.members.iter().map(|member| member.player.to_string()).collect(),
            left_ms,
            confirmed,
            opens,
            found,
            why,
        }
    }

    /// Accounts that search together.
    pub(super) fn members(&self) -> &[String] {
        &self.members
    }

    /// As news of the topic `search/TICKET`.
    pub(super) fn as_news(&self, ticket: &str) -> Value {
        json!({ "topic": format!("search/{ticket}"), "ticket": ticket, "search": self })
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
