//! Rooms without a seat, the topics that a game wants, and histories.

use super::super::error::OnlineError;
use super::super::event::{Event, Notice, Topic};
use super::super::view::RoomMessage;
use super::{Core, Request, Stage, Want};
use serde::Deserialize;
use serde_json::{Value, json};

impl Core {
    /// Takes in a notice of a room in which this player has no seat.
    pub(super) fn handle_watched(&mut self, notice: &Notice) {
        if self.stage != Stage::Following
            || self.view.as_ref().is_none_or(|view| view.id != notice.notice.room)
        {
            return;
        }
        if notice.kind == "unsubscribed" {
            let sentence = "the server ended the subscription: this player may not read the room any more";
            return self.close(OnlineError::new("not_in_room", sentence));
        }
        self.hold(notice);
        self.read_again();
    }

    /// Sets the topics whose events the game gets.
    pub(in super::super) fn set_topic(&mut self, topic: Topic, is_wanted: bool) {
        let changed = if is_wanted { self.topics.insert(topic) } else { self.topics.remove(&topic) };
        if let Want::Watched(room) = &self.want
            && changed
            && self.stage == Stage::Following
        {
            let input = self.subscription(room);
            self.request(Request { op: "turn.subscribe", input, again: true });
        }
    }

    pub(super) fn subscription(&self, room: &str) -> Value {
        json!({ "room": room, "topics": self.topics })
    }

    pub(super) fn handle_history(&mut self, output: Value) {
        #[derive(Deserialize)]
        struct Part {
            messages: Vec<RoomMessage>,
            #[serde(default)]
            next: Option<String>,
        }
        if let Ok(Part { messages, next }) = serde_json::from_value(output) {
            self.events.push_back(Event::History { messages, next });
        }
    }
}
