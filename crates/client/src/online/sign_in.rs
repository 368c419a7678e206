//! Sign-in: the player's identity, and the room to enter.

use super::account::Account;
use super::core::{Core, Want};
use super::error::RoomFailure;
use super::repeat::random_id;
use super::room::{Place, TurnRoom};
use super::session::Session;
use super::token_store::TokenStore;
use super::who::Who;
use crate::modules::Module;
use crate::net::Trust;
use parlor_proto::RoomCode;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Begins a sign-in at a server: `HOST`, `HOST:PORT` or `HOST:PORT#FINGERPRINT`.
///
/// Each call creates a new player, unless a [`session`](SignIn::session) or its [file](SignIn::session_file)
/// is given.
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

/// A sign-in being configured: the player's identity, then the room to enter. See [`sign_in`].
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
    /// Options of a created room, beside its configuration.
    options: Map<String, Value>,
    criteria: Map<String, Value>,
}

impl SignIn {
    /// Sets the display name. Used when the account is created.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned()).filter(|name| !name.trim().is_empty());
        self
    }

    /// Sets the game's environment, such as `staging`. Rooms and accounts of one environment are invisible in
    /// another.
    pub fn environment(mut self, environment: &str) -> Self {
        self.environment = Some(environment.to_owned());
        self
    }

    /// Signs in with a saved session.
    pub fn session(mut self, session: Session) -> Self {
        self.session = Some(session);
        self
    }

    /// Signs in with the session in a file, and creates the file if it does not exist.
    pub fn session_file(mut self, path: &Path) -> Self {
        self.session_file = Some(path.to_owned());
        self
    }

    /// Sets the trusted certificates. Default: the fingerprint in the address if it has one, else those that
    /// the operating system trusts.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Sets the rule set that validates moves in created rooms, such as `draughts`; found rooms have it too.
    /// If the server's operator configures its games in files, this must match the game's file.
    pub fn rules(self, rules: &str) -> Self {
        self.config("rules", rules)
    }

    /// Sets the game's mode, one of those in its operator's file.
    pub fn mode(self, mode: &str) -> Self {
        self.option("mode", mode)
    }

    /// Sets the name of a created room.
    pub fn room_name(self, name: &str) -> Self {
        self.option("name", name)
    }

    /// Makes a created room private: not on lists, and closed to matchmaking.
    pub fn private(self) -> Self {
        self.option("visibility", "private")
    }

    /// Sets the number of seats of a created room, at most that of the game's configuration.
    pub fn max_players(self, seats: u16) -> Self {
        self.option("max_players", seats)
    }

    fn option(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options.insert(name.to_owned(), value.into());
        self
    }

    /// Sets a field of the configuration of created rooms: docs/turn-rooms.md lists them. For development
    /// servers: a server with games configured by its operator refuses fields that its file does not set.
    pub fn config(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.config.insert(field.to_owned(), value.into());
        self
    }

    /// Adds a criterion for [`join_or_create`](Self::join_or_create): `name`, `max_players`, or `metadata.`
    /// and the name of a value in the room's metadata, such as `metadata.mode`. A room that is created
    /// because none is found gets these values, too.
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

    /// Enters a room of this game that meets each [`criterion`](Self::criterion): one in which the player has
    /// a seat already, or the newest that can be joined, or a created one.
    ///
    /// # Errors
    /// [`RoomFailure`] if the address is invalid, the session's file cannot be used, or the module is switched
    /// off. Other errors arrive as events.
    pub fn join_or_create(self, game: &str) -> Result<TurnRoom, RoomFailure> {
        let mut input = self.asked();
        // Without criteria the field is left out, for servers that do not know it.
        if !self.criteria.is_empty() {
            input["criteria"] = json!(self.criteria);
        }
        self.open(game, Want::Found { op: "turn.join_or_create", input })
    }

    /// Creates a room. A request whose answer is lost with the connection is sent again and creates no second
    /// room.
    ///
    /// # Errors
    /// As for [`join_or_create`](Self::join_or_create).
    pub fn create(self, game: &str) -> Result<TurnRoom, RoomFailure> {
        let want = self.creation();
        self.open(game, want)
    }

    fn creation(&self) -> Want {
        let mut input = self.asked();
        input["id"] = random_id().into();
        Want::Found { op: "turn.create", input }
    }

    /// The options of a created room. Without any configuration the server's default applies.
    fn asked(&self) -> Value {
        let mut input = json!(self.options);
        if !self.config.is_empty() {
            input["config"] = json!(self.config);
        }
        input
    }

    /// Joins the room with this code or id.
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

    /// Resumes in the room with this id, in which the player has a seat already.
    ///
    /// # Errors
    /// As for [`join_or_create`](Self::join_or_create).
    pub fn resume(self, game: &str, room: &str) -> Result<TurnRoom, RoomFailure> {
        self.open(game, Want::Known(room.to_owned()))
    }

    /// Watches the room with this id without a seat, where its game admits spectators or this player played in it.
    /// Events and the view are those of a reader; what only players may do fails.
    ///
    /// # Errors
    /// As for [`join_or_create`](Self::join_or_create).
    pub fn watch(self, game: &str, room: &str) -> Result<TurnRoom, RoomFailure> {
        self.open(game, Want::Watched(room.to_owned()))
    }

    /// Returns the player's account of this game, for realtime rooms
    /// ([`RoomBuilder::account`](crate::RoomBuilder::account)) and for lists. No request is sent before it is
    /// needed.
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
        Module::Online.require()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_creation_has_an_id_of_its_own() {
        let player = sign_in("127.0.0.1").private();
        let id = || match player.creation() {
            Want::Found { op: "turn.create", input } => input["id"].as_str().unwrap_or_default().to_owned(),
            _ => panic!("it creates a room"),
        };
        let (one, other) = (id(), id());
        assert!(one.len() == 24 && one != other, "{one} {other}");
    }
}
