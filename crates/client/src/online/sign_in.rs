//! Who a player is, and which room it wants.

use super::account::Account;
use super::core::{Core, Want};
use super::error::RoomFailure;
use super::room::{Place, TurnRoom};
use super::session::Session;
use super::token_store::TokenStore;
use super::who::Who;
use crate::net::Trust;
use parlor_proto::RoomCode;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Begins at a server: `HOST`, `HOST:PORT` or `HOST:PORT#FINGERPRINT`.
///
/// The player is somebody new each time, unless a [`session`](SignIn::session) or its [file](SignIn::session_file) is given.
pub fn sign_in(server: &str) -> SignIn {
    SignIn {
        server: server.to_owned(),
        environment: None,
        name: None,
        session: None,
        session_file: None,
        trust: None,
        config: Map::new(),
        options: Map::new(),
        criteria: Map::new(),
    }
}

/// Who a player is, until it is said which room it wants. See [`sign_in`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens until a room is asked for"]
pub struct SignIn {
    server: String,
    environment: Option<String>,
    name: Option<String>,
    session: Option<Session>,
    session_file: Option<PathBuf>,
    trust: Option<Trust>,
    config: Map<String, Value>,
    /// What is said of a room that is opened beside its configuration.
    options: Map<String, Value>,
    criteria: Map<String, Value>,
}

impl SignIn {
    /// What the others shall see. It counts when the account is made.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned()).filter(|name| !name.trim().is_empty());
        self
    }

    /// The game's environment, such as `staging`: rooms and accounts of one are never seen from another.
    pub fn environment(mut self, environment: &str) -> Self {
        self.environment = Some(environment.to_owned());
        self
    }

    /// The player of a session that was saved.
    pub fn session(mut self, session: Session) -> Self {
        self.session = Some(session);
        self
    }

    /// The player of the session that a file keeps; a new one, if there is no such file.
    pub fn session_file(mut self, path: &Path) -> Self {
        self.session_file = Some(path.to_owned());
        self
    }

    /// Whom to believe: the fingerprint in the address if it has one, else what the system trusts.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// The rule set that judges the moves of rooms that are opened, such as `draughts`. Rooms that are found have it too. Where the server
    /// has games of its operator's, their files say it, and this must say the same.
    pub fn rules(self, rules: &str) -> Self {
        self.config("rules", rules)
    }

    /// The mode of the game, one of those that its operator's file has.
    pub fn mode(self, mode: &str) -> Self {
        self.option("mode", mode)
    }

    /// The name of a room that is opened.
    pub fn room_name(self, name: &str) -> Self {
        self.option("name", name)
    }

    /// A room that is opened is on no list and given to no stranger.
    pub fn private(self) -> Self {
        self.option("visibility", "private")
    }

    /// Seats of a room that is opened: no more than the game's configuration has.
    pub fn max_players(self, seats: u16) -> Self {
        self.option("max_players", seats)
    }

    fn option(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options.insert(name.to_owned(), value.into());
        self
    }

    /// A field of the configuration of rooms that are opened: docs/turn-rooms.md has them all. It is for servers for development: one with
    /// games of its operator's refuses what its file does not say.
    pub fn config(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.config.insert(field.to_owned(), value.into());
        self
    }

    /// What a room must be that [`join_or_create`](Self::join_or_create) gives: `name`, `max_players`, or `metadata.` and the name of a
    /// value in its metadata, such as `metadata.mode`. A room that is opened because none is found is so, too.
    pub fn criterion(mut self, field: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match field.strip_prefix("metadata.") {
            None => {
                self.criteria.insert(field.to_owned(), value);
            }
            Some(name) => {
                let metadata = self.criteria.entry("metadata").or_insert_with(|| json!({}));
                if let Value::Object(fields) = metadata {
                    fields.insert(name.to_owned(), value);
                }
            }
        }
        self
    }

    /// A room of this game in which the player sits already; or the oldest that can be joined; or one of its own. All of them meet
    /// each [`criterion`](Self::criterion).
    ///
    /// # Errors
    /// [`RoomFailure`] if there is no such address, or the session's file cannot be used. All else is told by events.
    pub fn join_or_create(self, game: &str) -> Result<TurnRoom, RoomFailure> {
        let mut input = self.asked();
        // A server that knows no criteria is asked without, where there are none.
        if !self.criteria.is_empty() {
            input["criteria"] = json!(self.criteria);
        }
        self.open(game, Want::Found { op: "turn.join_or_create", input })
    }

    /// A room of its own.
    ///
    /// # Errors
    /// As for [`join_or_create`](Self::join_or_create).
    pub fn create(self, game: &str) -> Result<TurnRoom, RoomFailure> {
        let input = self.asked();
        self.open(game, Want::Found { op: "turn.create", input })
    }

    /// What is said of a room that is opened. Whoever says nothing of its configuration leaves it to the server.
    fn asked(&self) -> Value {
        let mut input = json!(self.options);
        if !self.config.is_empty() {
            input["config"] = json!(self.config);
        }
        input
    }

    /// The room with this code or id.
    ///
    /// # Errors
    /// As for [`join_or_create`](Self::join_or_create).
    pub fn join(self, game: &str, room: &str) -> Result<TurnRoom, RoomFailure> {
        // Ids are longer than any code.
        let want = match room.trim().parse::<RoomCode>() {
            Ok(code) => Want::Found { op: "turn.join_by_code", input: json!({ "code": code.as_str() }) },
            Err(_) => Want::Found { op: "turn.join", input: json!({ "room": room.trim() }) },
        };
        self.open(game, want)
    }

    /// The room with this id, in which the player sits already.
    ///
    /// # Errors
    /// As for [`join_or_create`](Self::join_or_create).
    pub fn resume(self, game: &str, room: &str) -> Result<TurnRoom, RoomFailure> {
        self.open(game, Want::Known(room.to_owned()))
    }

    /// The player's account of this game, for realtime rooms ([`RoomBuilder::account`](crate::RoomBuilder::account)) and for lists. Nothing
    /// is asked of the server before it is needed.
    ///
    /// # Errors
    /// As for [`join_or_create`](Self::join_or_create).
    pub fn account(self, game: &str) -> Result<Account, RoomFailure> {
        let (server, trust) = (self.server.trim().parse()?, self.trust.clone());
        let (who, tokens) = self.who(game)?;
        Ok(Account::new(who, server, trust, tokens))
    }

    fn open(self, game: &str, want: Want) -> Result<TurnRoom, RoomFailure> {
        let (server, trust) = (self.server.trim().parse()?, self.trust.clone());
        let (who, tokens) = self.who(game)?;
        Ok(TurnRoom::new(Core::new(who, want), Place::new(server, trust), tokens))
    }

    fn who(self, game: &str) -> Result<(Who, TokenStore), RoomFailure> {
        let (session, path) = match (self.session, self.session_file) {
            (Some(session), _) => (session, None),
            (None, Some(path)) => (Session::kept(&path)?, Some(path)),
            (None, None) => (Session::new()?, None),
        };
        let environment = self.environment.as_deref().unwrap_or_default();
        let tokens = TokenStore::new(session.clone(), path, self.server.trim(), game, environment);
        let who = Who {
            app: game.to_owned(),
            environment: self.environment,
            name: self.name,
            device: session.device(),
        };
        Ok((who, tokens))
    }
}
