//! The public handle of a turn room.

use super::core::{Core, Request};
use super::error::RoomFailure;
use super::event::{Event, Topic};
use super::session::Session;
use super::token_store::TokenStore;
use super::view::{Phase, RoomPlayer, RoomView};
use crate::net::{self, Connection, Trust};
use parlor_client_core::ReconnectPolicy;
use parlor_transport::discovery::ServerAddress;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Where the server is.
#[derive(Debug)]
pub(super) struct Place {
    url: String,
    trust: Trust,
}

impl Place {
    pub(super) fn new(server: ServerAddress, trust: Option<Trust>) -> Self {
        let by_fingerprint = server.fingerprint.map(Trust::Fingerprint);
        Place {
            url: format!("{}/v1/socket", server.url("ws", trust.is_some())),
            trust: by_fingerprint.or(trust).unwrap_or(Trust::System),
        }
    }

    pub(super) fn connect(&self) -> Connection {
        net::Options::of_online().trust(self.trust.clone()).websocket(&self.url)
    }
}

/// A turn room, which the server runs. No call blocks: call [`poll`](Self::poll) in each frame. Dropping it
/// closes the connection; the player keeps its seat in the room.
pub struct TurnRoom {
    core: Core,
    place: Place,
    tokens: TokenStore,
    link: Link,
    /// Attempts since the room was last connected.
    attempts: u32,
    /// When the access token is to be renewed.
    renew_at: Option<Instant>,
}

enum Link {
    Up(Connection),
    Waiting(Instant),
}

impl TurnRoom {
    pub(super) fn new(core: Core, place: Place, tokens: TokenStore) -> Self {
        let link = Link::Up(place.connect());
        TurnRoom { core, place, tokens, link, attempts: 0, renew_at: None }
    }

    /// Returns the next event, if there is one.
    pub fn poll(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.core.poll_event() {
                return Some(event);
            }
            if self.core.is_closed() {
                self.link = Link::Waiting(Instant::now());
                return None;
            }
            self.renew();
            self.flush();
            match &mut self.link {
                Link::Waiting(until) if Instant::now() < *until => return None,
                Link::Waiting(_) => self.link = Link::Up(self.place.connect()),
                Link::Up(connection) => match connection.poll()? {
                    net::Event::Open => {
                        self.core.set_refresh(self.tokens.newest());
                        self.core.handle_open();
                    }
                    net::Event::Text(text) => self.core.handle_text(&text),
                    net::Event::Message(_) => {}
                    net::Event::Closed(why) => self.lost(why.to_string(), Duration::ZERO),
                },
            }
            if let Some(token) = self.core.take_renewed() {
                self.tokens.keep(token);
            }
            if self.core.is_following() {
                self.attempts = 0;
            }
            if let Some(pause) = self.core.take_pause() {
                self.lost("the server cannot do this now".to_owned(), pause);
            }
        }
    }

    /// Renews the access token when three quarters of its time are over.
    fn renew(&mut self) {
        if let Some(good_for) = self.core.good_for.take() {
            self.renew_at = Some(Instant::now() + good_for * 3 / 4);
        }
        if self.renew_at.is_some_and(|at| at <= Instant::now()) && self.core.is_following() {
            self.renew_at = None;
            self.core.set_refresh(self.tokens.newest());
            self.core.renew();
        }
    }

    fn flush(&mut self) {
        let Link::Up(connection) = &mut self.link else { return };
        while let Some(text) = self.core.poll_text() {
            if let Err(error) = connection.send_text(&text) {
                // Queued messages are bounded far below the connection's limit, so the connection has ended.
                return self.lost(error.to_string(), Duration::ZERO);
            }
        }
    }

    fn lost(&mut self, why: String, at_least: Duration) {
        self.core.handle_lost(why);
        let wait = ReconnectPolicy::default().delay(self.tokens.session().seed(), self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        self.link = Link::Waiting(Instant::now() + at_least.max(wait));
    }

    /// The server's view of the room; `None` before [`Event::Connected`].
    pub fn view(&self) -> Option<&RoomView> {
        self.core.view()
    }

    /// This player's account.
    pub fn me(&self) -> Option<&str> {
        self.core.me()
    }

    /// The session to save, so that the player keeps the account after a restart.
    pub fn session(&self) -> &Session {
        self.tokens.session()
    }

    /// Whether the room is connected. If not, the view is the last one received.
    pub fn is_connected(&self) -> bool {
        self.core.is_following()
    }

    /// Whether this player may move: it is on turn, and none of its moves is pending.
    pub fn my_turn(&self) -> bool {
        let is_turn = |view: &RoomView| {
            view.phase == Phase::Playing
                && view.current_player.is_some()
                && view.current_player.as_deref() == self.me()
        };
        self.view().is_some_and(is_turn) && !self.core.has_pending_move()
    }

    /// The players, in the order of joining.
    pub fn players(&self) -> &[RoomPlayer] {
        self.view().map_or(&[], |view| &view.players)
    }

    /// Deserializes the room's state into the game's own type.
    ///
    /// # Errors
    /// [`RoomFailure::NotThere`] before the room was read; [`RoomFailure::Value`] if the state does not match
    /// the type.
    pub fn state<T: DeserializeOwned>(&self) -> Result<T, RoomFailure> {
        let view = self.view().ok_or(RoomFailure::NotThere)?;
        Ok(T::deserialize(&view.state)?)
    }

    /// Proposes a move in a room without rules: `state` is merged into the room's state. The result is
    /// [`Event::MoveMade`] or [`Event::MoveRejected`].
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn propose_move(
        &mut self,
        kind: &str,
        data: &impl Serialize,
        state: &impl Serialize,
    ) -> Result<(), RoomFailure> {
        let state = serde_json::to_value(state)?;
        self.propose_with(kind, data, Some(state))
    }

    /// Proposes a move in a room with a rule set, which computes the new state. The result is
    /// [`Event::MoveMade`] or [`Event::MoveRejected`].
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn propose(&mut self, kind: &str, data: &impl Serialize) -> Result<(), RoomFailure> {
        self.propose_with(kind, data, None)
    }

    fn propose_with(
        &mut self,
        kind: &str,
        data: &impl Serialize,
        state: Option<Value>,
    ) -> Result<(), RoomFailure> {
        let data = serde_json::to_value(data)?;
        let view = self.there()?;
        let (room, state_version) = (view.id.clone(), view.state_version);
        if self.core.has_pending_move() {
            return Err(RoomFailure::MovePending);
        }
        let mut input = json!({ "room": room, "type": kind, "data": data, "state_version": state_version });
        if let Some(state) = state {
            input["state"] = state;
        }
        self.core.propose(input, state_version);
        // Sent at once, not with the next frame.
        self.flush();
        Ok(())
    }

    /// Accepts or rejects another player's move, in a room where players judge each other's moves.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn validate(&mut self, proposal: u64, accept: bool, reason: Option<&str>) -> Result<(), RoomFailure> {
        self.ask("turn.validate", json!({ "proposal": proposal, "accept": accept, "reason": reason }), true)
    }

    /// Starts the game, as the host. The turn order is random, and so are the roles if the configuration says
    /// so.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn start(&mut self) -> Result<(), RoomFailure> {
        self.ask("turn.start", json!({}), true)
    }

    /// Starts the game, as the host, with all players in this turn order. `roles` pairs accounts with roles,
    /// if the configuration has them assigned by the host.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn start_with(&mut self, order: &[&str], roles: &[(&str, &str)]) -> Result<(), RoomFailure> {
        let mut input = json!({ "turn_order": order });
        if !roles.is_empty() {
            let by_player = roles.iter().map(|(player, role)| ((*player).to_owned(), Value::from(*role)));
            input["roles"] = Value::Object(by_player.collect());
        }
        self.ask("turn.start", input, true)
    }

    /// Ends the game, as the host, in a room without rules.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn end(&mut self, winner: Option<&str>, reason: &str) -> Result<(), RoomFailure> {
        self.ask("turn.end", json!({ "winner": winner, "reason": reason }), true)
    }

    /// Merges an object into the room's data, field by field; null removes a field. Any player may call it.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn set_data(&mut self, patch: &impl Serialize) -> Result<(), RoomFailure> {
        let patch = serde_json::to_value(patch)?;
        self.ask("turn.update", json!({ "data": patch }), true)
    }

    /// Puts an object in the place of the room's data. Any player may call it.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn replace_data(&mut self, data: &impl Serialize) -> Result<(), RoomFailure> {
        let data = serde_json::to_value(data)?;
        self.ask("turn.update", json!({ "data": data, "replace": true }), true)
    }

    /// Deserializes the room's data into the game's own type.
    ///
    /// # Errors
    /// As for [`state`](Self::state).
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, RoomFailure> {
        let view = self.view().ok_or(RoomFailure::NotThere)?;
        Ok(T::deserialize(&view.data)?)
    }

    /// Merges an object into the room's metadata, as the host or one of its admins.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn set_metadata(&mut self, patch: &impl Serialize) -> Result<(), RoomFailure> {
        let patch = serde_json::to_value(patch)?;
        self.ask("turn.update", json!({ "metadata": patch }), true)
    }

    /// Puts an object in the place of the room's metadata, as the host or one of its admins.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn replace_metadata(&mut self, metadata: &impl Serialize) -> Result<(), RoomFailure> {
        let metadata = serde_json::to_value(metadata)?;
        self.ask("turn.update", json!({ "metadata": metadata, "replace": true }), true)
    }

    /// Names the room's admins beside the host, as the host. They may pause the room and change its name, visibility and
    /// metadata.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn set_admins(&mut self, admins: &[&str]) -> Result<(), RoomFailure> {
        self.ask("turn.update", json!({ "admins": admins }), true)
    }

    /// Pauses the room, or lets it go on, as the host or one of its admins, in a room without rules. Clocks stand still
    /// in a pause, and nobody moves, starts or joins.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn set_paused(&mut self, is_paused: bool) -> Result<(), RoomFailure> {
        self.ask(if is_paused { "turn.pause" } else { "turn.resume" }, json!({}), true)
    }

    /// Renames the room, as the host or one of its admins.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn rename(&mut self, name: &str) -> Result<(), RoomFailure> {
        self.ask("turn.update", json!({ "name": name }), true)
    }

    /// Sets whether the room is public, as the host or one of its admins: on lists and open to matchmaking.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn set_public(&mut self, is_public: bool) -> Result<(), RoomFailure> {
        let visibility = if is_public { "public" } else { "private" };
        self.ask("turn.update", json!({ "visibility": visibility }), true)
    }

    /// Resigns from the game.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn resign(&mut self) -> Result<(), RoomFailure> {
        self.ask("turn.resign", json!({}), true)
    }

    /// Leaves the room. In a game with turns this resigns.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn leave(&mut self) -> Result<(), RoomFailure> {
        self.ask("turn.leave", json!({}), true)
    }

    /// Kicks a player, as the host.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn kick(&mut self, player: &str, reason: Option<&str>) -> Result<(), RoomFailure> {
        self.ask("turn.kick", json!({ "player": player, "reason": reason }), true)
    }

    /// Sends a message to all players. Unlike a change of the room, it is not repeated if its answer was
    /// lost.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn say(&mut self, kind: &str, body: &impl Serialize) -> Result<(), RoomFailure> {
        let body = serde_json::to_value(body)?;
        self.ask("turn.say", json!({ "type": kind, "body": body }), false)
    }

    /// Reads a part of the room's history, the newest messages first: [`Event::History`] answers. `after` is the `next`
    /// of the part before; a part has at most `limit` messages, 1 to 1000. The server keeps the last 256.
    ///
    /// # Errors
    /// [`RoomFailure`]; nothing is sent then.
    pub fn read_messages(&mut self, after: Option<&str>, limit: u16) -> Result<(), RoomFailure> {
        let mut input = json!({ "limit": limit });
        if let Some(after) = after {
            input["after"] = after.into();
        }
        self.ask("turn.messages", input, true)
    }

    /// Returns events of this topic again, after [`unsubscribe`](Self::unsubscribe). At the beginning a room returns
    /// those of all topics.
    pub fn subscribe(&mut self, topic: Topic) {
        self.core.set_topic(topic, true);
        self.flush();
    }

    /// Returns no more events of this topic. The view of a room that is only [watched](super::SignIn::watch) then follows
    /// the other topics alone.
    pub fn unsubscribe(&mut self, topic: Topic) {
        self.core.set_topic(topic, false);
        self.flush();
    }

    fn ask(&mut self, op: &'static str, mut input: Value, again: bool) -> Result<(), RoomFailure> {
        input["room"] = self.there()?.id.as_str().into();
        if !self.core.has_place() {
            return Err(RoomFailure::Full);
        }
        self.core.request(Request { op, input, again });
        self.flush();
        Ok(())
    }

    fn there(&self) -> Result<&RoomView, RoomFailure> {
        if self.core.is_closed() {
            return Err(RoomFailure::Closed);
        }
        self.view().ok_or(RoomFailure::NotThere)
    }
}

impl std::fmt::Debug for TurnRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnRoom")
            .field("url", &self.place.url)
            .field("view", &self.core.view())
            .finish_non_exhaustive()
    }
}
