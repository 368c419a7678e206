//! Output of `--events` during play: events as they happen, and the member's status twice a second.

use crate::report::Standing;
use parlor::Event;
use parlor_terminal::print::print_json;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Time between two lines that say how a member stands.
const EVERY: Duration = Duration::from_millis(500);

/// Tells of one member.
#[derive(Debug)]
pub(crate) struct Teller {
    name: String,
    began: Instant,
    due: Instant,
}

impl Teller {
    /// Tells of the member with this name.
    pub(crate) fn new(name: &str) -> Self {
        let now = Instant::now();
        Teller { name: name.to_owned(), began: now, due: now + EVERY }
    }

    /// Says what happened, but not that state, messages or entities came: those are counted.
    pub(crate) fn happened(&self, event: &Event) -> anyhow::Result<()> {
        let Some((word, details)) = told(event) else { return Ok(()) };
        self.say(word, details)
    }

    /// Whether it is time to say how the member stands.
    pub(crate) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.due;
        if is_due {
            self.due = now + EVERY;
        }
        is_due
    }

    /// Says how the member stands; `gap` is the longest time without an update since that was said last.
    pub(crate) fn stands(&self, standing: &Standing, gap: Duration) -> anyhow::Result<()> {
        let mut status = serde_json::to_value(standing)?;
        status["gap_ms_max"] = json!(gap.as_secs_f64() * 1e3);
        self.say("status", status)
    }

    fn say(&self, word: &str, mut line: Value) -> anyhow::Result<()> {
        line["event"] = json!(word);
        line["name"] = json!(self.name);
        line["at_ms"] = json!(self.began.elapsed().as_secs_f64() * 1e3);
        print_json(&line)
    }
}

/// The word for an event, and what belongs to it.
fn told(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Open { code } => ("open", json!({ "code": code.to_string() })),
        Event::PlayerJoined(player) => (
            "player_joined",
            json!({ "player": player.id.0, "is_me": player.is_me, "player_name": player.name }),
        ),
        Event::PlayerLeft { id, reason, .. } => {
            ("player_left", json!({ "player": id.0, "reason": reason.as_str() }))
        }
        Event::SpectatorJoined(player) => (
            "spectator_joined",
            json!({ "spectator": player.id.0, "is_me": player.is_me, "spectator_name": player.name }),
        ),
        Event::SpectatorLeft { id, reason, .. } => {
            ("spectator_left", json!({ "spectator": id.0, "reason": reason.as_str() }))
        }
        Event::PlayerLost { id, reason } => {
            ("player_lost", json!({ "player": id.0, "reason": reason.as_str() }))
        }
        Event::PlayerBack { id } => ("player_back", json!({ "player": id.0 })),
        Event::ConnectionLost { reason, detail } => {
            ("connection_lost", json!({ "reason": reason.as_str(), "detail": detail }))
        }
        Event::Reconnecting { attempt } => ("reconnecting", json!({ "attempt": attempt })),
        Event::Reconnected { state_resynced } => ("reconnected", json!({ "state_resynced": state_resynced })),
        Event::HostMigration { previous, new, is_me } => {
            let previous = previous.map(|id| id.0);
            ("host_migration", json!({ "previous": previous, "new": new.0, "is_me": is_me }))
        }
        Event::HostChanged { host, previous } => {
            ("host_changed", json!({ "host": host.0, "previous": previous.map(|id| id.0) }))
        }
        Event::Reopened { gap } => ("reopened", json!({ "gap": gap })),
        Event::HandOverRefused { why } => ("hand_over_refused", json!({ "why": why.as_str() })),
        Event::Closed(reason) => {
            ("closed", json!({ "reason": reason.as_str(), "detail": reason.to_string() }))
        }
        _ => return None,
    })
}
