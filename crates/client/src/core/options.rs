//! What a game says about its room before there is one.

use super::paths::PathMode;
use parlor_proto::channel::{Channel, ChannelTable, Codec, TableError};
use parlor_proto::wire::handshake::{
    Auth, Hello, Intent, Resume, ResumeToken, RoomKind, RoomSettings, Welcome,
};
use parlor_proto::{ChannelId, Lane, PathId, RoomCode, SessionId, TickRate};
use parlor_sync::limits::REWIND_MAX;
use parlor_sync::prediction::Smoothing;
use parlor_sync::replicator::Template;
use parlor_sync::schema::{Schema, SchemaError};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Everything that goes into a hello.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which game.
    pub app: String,
    /// Which environment of it; may be empty.
    pub environment: String,
    /// What others may call this player; may be empty.
    pub name: String,
    /// What a joiner must know beside the code.
    pub secret: Option<String>,
    /// What says to a server that admits by token who this is.
    pub token: Option<String>,
    /// The game's own channels.
    pub channels: ChannelTable,
    /// What the room's entities are made of; host and guests must have the same. With none a host has no entities, and a guest
    /// reads those that there are without knowing their types.
    pub schema: Option<Arc<Schema>>,
    /// What this player's own state is made of; with none it sends none.
    pub template: Option<Template>,
    /// Whether a member runs its steps ahead of the room's time, so that its input for a step is at the host before the host
    /// runs that step. Without it an input is used as soon as it comes.
    pub lead: bool,
    /// Names of components of a member's own entities that it predicts: its steps write them as the host's do, ahead of what the
    /// host has told. If there are any, it has lead.
    pub predicted: Vec<String>,
    /// How what was predicted wrongly is kept from the eye.
    pub smoothing: Smoothing,
    /// How far back a host looks at most to judge by what a player saw ([`RoomCore::rewind`](super::RoomCore::rewind)): 250 ms, and
    /// never more.
    pub rewind_max: Duration,
    /// Steps that a host runs again at most for inputs that came late, before each new step; up to 32, and 0 runs none again.
    /// Then a step must have all that it changes in components of entities: these are set back, and nothing else is.
    pub resimulate_ticks: u32,
    /// Steps that a host runs behind the room's time, up to 32: late inputs come in time then, and everybody sees everything
    /// so much later.
    pub simulation_delay_ticks: u32,
    /// If set, the hash of the state is kept at every sequence that this divides: members that decoded the same keep
    /// the same.
    pub hash_every: Option<NonZeroU64>,
    /// Whether a connection that is lost is made again, if the server keeps the seat. It is, if not said otherwise.
    pub reconnect: bool,
    /// For a host: after so long without a word from it another player takes its part, 100 ms to 10 s. `None` if none does, and
    /// the room ends with its host.
    pub host_silence: Option<Duration>,
    /// Which paths this player wants to others beside the server. None, if not said otherwise: addresses of players are told to
    /// nobody then.
    pub paths: PathMode,
    /// To host or to join.
    pub intent: Wish,
}

/// What a game wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A new room.
    Host {
        /// The code that it shall have; drawn by the hub if none.
        code: Option<RoomCode>,
        /// Players that it may have at once, 2 to 16.
        max_players: u16,
        /// Its steps per second.
        tick_rate: TickRate,
        /// Whether this process plays itself, or only decides: then the room may have up to 255 players, if the server allows
        /// it.
        dedicated: bool,
    },
    /// A new match: a room that the hub itself runs, whose members are equal.
    Match {
        /// Players that it may have at once, 2 to 256.
        max_players: u16,
        /// Its steps per second: the same clock for everybody.
        tick_rate: TickRate,
        /// What it is listed under; may be empty.
        label: String,
        /// Whether the server shall keep its log.
        keep: bool,
    },
    /// A seat in the room with this code, or in the match with this id.
    Join {
        /// Its code.
        code: RoomCode,
    },
    /// The seat that a process of this player had which is no more, with what came for it meanwhile.
    Resume {
        /// The session that it had.
        session: SessionId,
        /// What proves it: see [`RoomCore::resume_proof`](super::RoomCore::resume_proof).
        token: ResumeToken,
    },
}

/// What a connection asks a server for, as far as a token has to say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A new room, with this code if there is one.
    Create(Option<RoomCode>),
    /// A seat in the room with this code.
    Join(RoomCode),
}

/// Players that a match may have, if not said otherwise.
const MATCH_PLAYERS_DEFAULT: u16 = 16;

impl Options {
    /// A new room for `app` with four seats and thirty steps a second.
    #[must_use]
    pub fn host(app: &str) -> Self {
        Options::new(
            app,
            Wish::Host { code: None, max_players: 4, tick_rate: TickRate::DEFAULT, dedicated: false },
        )
    }

    /// A new match of `app` with up to 16 players and thirty steps a second, without a label and not kept.
    #[must_use]
    pub fn create_match(app: &str) -> Self {
        let max_players = MATCH_PLAYERS_DEFAULT;
        Options::new(
            app,
            Wish::Match { max_players, tick_rate: TickRate::DEFAULT, label: String::new(), keep: false },
        )
    }

    /// A seat in a room of `app`.
    #[must_use]
    pub fn join(app: &str, code: RoomCode) -> Self {
        Options::new(app, Wish::Join { code })
    }

    fn new(app: &str, intent: Wish) -> Self {
        Options {
            app: app.to_owned(),
            environment: String::new(),
            name: String::new(),
            secret: None,
            token: None,
            channels: ChannelTable::default(),
            schema: None,
            template: None,
            lead: false,
            predicted: Vec::new(),
            smoothing: Smoothing::default(),
            rewind_max: REWIND_MAX,
            resimulate_ticks: 0,
            simulation_delay_ticks: 0,
            hash_every: None,
            reconnect: true,
            host_silence: None,
            paths: PathMode::default(),
            intent,
        }
    }

    /// Adds a channel for the game's own bytes.
    ///
    /// # Errors
    /// [`TableError`] if the number is reserved, too large or taken.
    pub fn channel(&mut self, number: u8, lane: Lane) -> Result<(), TableError> {
        self.channels.declare(Channel { id: ChannelId(number), lane, codec: Codec::Raw, schema_hash: 0 })
    }

    /// The hello that says all this.
    #[must_use]
    pub(super) fn hello(&self) -> Hello {
        let secret = self.secret.clone();
        let silence_ms = |silence: Duration| u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
        let host_silence_ms = self.host_silence.map(silence_ms);
        let schema = || self.schema.as_ref().map(|schema| schema.encode()).unwrap_or_default();
        Hello {
            environment: self.environment.clone(),
            name: self.name.clone(),
            auth: self.token.as_ref().map_or(Auth::Anonymous, |token| Auth::Token(token.clone().into())),
            channels: self.channels.clone(),
            schema: self.schema.as_ref().and_then(|schema| NonZeroU64::new(schema.hash())),
            ..Hello::new(
                &self.app,
                match &self.intent {
                    &Wish::Host { code, max_players, tick_rate, dedicated } => Intent::Create(RoomSettings {
                        kind: if dedicated { RoomKind::Dedicated } else { RoomKind::PlayerHosted },
                        code,
                        secret,
                        max_players,
                        tick_rate,
                        host_silence_ms,
                        schema: schema(),
                        label: String::new(),
                        keep: false,
                    }),
                    Wish::Match { max_players, tick_rate, label, keep } => Intent::Create(RoomSettings {
                        kind: RoomKind::Match,
                        code: None,
                        secret,
                        max_players: *max_players,
                        tick_rate: *tick_rate,
                        host_silence_ms,
                        schema: schema(),
                        label: label.clone(),
                        keep: *keep,
                    }),
                    &Wish::Join { code } => Intent::Join { code, secret },
                    &Wish::Resume { session, token } => Intent::Resume(Resume { session, token }),
                },
            )
        }
    }

    /// The hello on a path to the host.
    #[must_use]
    pub(super) fn hello_of_path(&self, path: PathId) -> Hello {
        let intent = Intent::Path(path);
        Hello { channels: self.channels.clone(), ..Hello::new(&self.app, intent) }
    }

    /// The hello of a newcomer to the room that this process was in.
    #[must_use]
    pub(super) fn hello_again(&self, code: Option<RoomCode>) -> Hello {
        let hello = self.hello();
        match code {
            Some(code) => Hello { intent: Intent::Join { code, secret: self.secret.clone() }, ..hello },
            None => hello,
        }
    }

    /// The schema of the room that this client was let into.
    ///
    /// # Errors
    /// [`SchemaError`] if the hub sent one that is none.
    pub(super) fn room_schema(&self, welcome: &Welcome) -> Result<Arc<Schema>, SchemaError> {
        match &self.schema {
            Some(schema) => Ok(Arc::clone(schema)),
            None if welcome.schema.is_empty() => Ok(Arc::default()),
            None => Schema::decode(welcome.schema.clone()).map(Arc::new),
        }
    }

    /// Whether a member runs its steps ahead of the room's time.
    pub(super) fn has_lead(&self) -> bool {
        self.lead || !self.predicted.is_empty()
    }

    /// Whether every field is within its bounds.
    ///
    /// # Errors
    /// The field that is not, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        self.check_predicted()?;
        self.hello().check()
    }
}
