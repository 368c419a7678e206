//! Options with which a game opens or joins a room.

use crate::connection::ReconnectPolicy;
use crate::defined::Actions;
use crate::drawing::Drawing;
use core::net::SocketAddr;
use parlor_proto::channel::{Channel, ChannelTable, Codec, TableError};
use parlor_proto::text::Millis;
use parlor_proto::wire::control::RoomTerms;
use parlor_proto::wire::handshake::{
    Auth, Hello, Intent, Resume, ResumeToken, RoomKind, RoomSettings, Welcome, capability,
};
use parlor_proto::wire::path::is_of_local_network;
use parlor_proto::{ChannelId, Lane, PathId, RoomCode, SessionId, TickRate, limits};
use parlor_sync::lead::LeadTuning;
use parlor_sync::limits::{MIGRATION_GRACE_DEFAULT, MIGRATION_GRACE_MAX, MIGRATION_GRACE_MIN, REWIND_MAX};
use parlor_sync::prediction::Smoothing;
use parlor_sync::replicator::Template;
use parlor_sync::schema::{Schema, SchemaError};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Everything that goes into a hello.
#[derive(Clone, Debug)]
pub struct Options {
    /// The app id.
    pub app: String,
    /// Its environment; may be empty.
    pub environment: String,
    /// This player's display name; may be empty.
    pub name: String,
    /// A secret that a joining member must know beside the code.
    pub secret: Option<String>,
    /// A token that identifies this player to a server with token admission.
    pub token: Option<String>,
    /// The game's own channels.
    pub channels: ChannelTable,
    /// Component types of the room's entities. Host and guests must have the same. Without it a host has no
    /// entities, and a guest reads entities without knowing their types.
    pub schema: Option<Arc<Schema>>,
    /// Type of this player's own state; `None` sends none.
    pub template: Option<Template>,
    /// Whether a guest runs its steps ahead of the room's time, so that its inputs reach the host before the
    /// step that uses them. Without lead an input is used on arrival.
    pub lead: bool,
    /// How the lead follows the host's reports.
    pub lead_tuning: LeadTuning,
    /// How a guest draws the entities of others.
    pub drawing: Drawing,
    /// Names of components that a guest predicts on its own entities: its steps write them ahead of the
    /// host's state. A non-empty list implies lead.
    pub predicted: Vec<String>,
    /// The game's predicted actions, the same at all members. Any implies lead.
    pub actions: Actions,
    /// How corrections of mispredictions are smoothed for display.
    pub smoothing: Smoothing,
    /// Maximum rewind of the host for lag compensation ([`RoomCore::rewind`](super::RoomCore::rewind)).
    /// Default and upper bound: 250 ms.
    pub rewind_max: Duration,
    /// Maximum steps that a host resimulates for late inputs before each new step, up to 32. 0 disables it. A
    /// step must then keep everything that it changes in components of entities: only these are rolled back.
    pub resimulate_ticks: u32,
    /// Steps that a host runs behind the room's time, up to 32. Late inputs then come in time, and all
    /// members see everything later by this delay.
    pub simulation_delay_ticks: u32,
    /// If set, keeps the hash of the state at every sequence that this number divides. Members that decoded
    /// the same state have the same hashes.
    pub hash_every: Option<NonZeroU64>,
    /// Whether a lost connection is reconnected, if the server keeps the seat. Default: true.
    pub reconnect: bool,
    /// When a lost connection is tried again, and for how long.
    pub reconnect_policy: ReconnectPolicy,
    /// Silence after which a member of the new room counts as lost: 1 to 8 s. Default: `None`, as the server has it.
    pub presence: Option<Duration>,
    /// How long a lost member of the new room has its seat, if the server keeps it as long. Default: `None`, as the
    /// server has it.
    pub grace: Option<Duration>,
    /// Whether to join as a spectator: it watches, sends nothing, and takes no player's seat. Default: false.
    pub spectate: bool,
    /// How many spectators the new room takes, 0 to 64. Default: 8. At most as many as leave the room 256 members in all.
    pub spectators: u16,
    /// How much later than its players the spectators of the new room see it: zero, or 1 s to 5 min. Default: zero.
    pub spectator_delay: Duration,
    /// Host timeout: after this silence of the host another member takes the host role. 100 ms to 10 s.
    /// `None` disables migration: the room ends with its host.
    pub host_timeout: Option<Duration>,
    /// How long this process waits for a new host before the room is over for it, while it is connected.
    /// 500 ms to 60 s. Default: 3 s.
    pub migration_grace: Duration,
    /// Whether this process takes no steps while a new host is awaited. Default (`None`): in a room of keyed
    /// state, whose schema has no component of the game.
    pub migration_pause: Option<bool>,
    /// How messages and inputs travel unless the game says otherwise. Default: [`Protocol::Both`].
    pub protocol: Protocol,
    /// Which direct paths this player wants. Default: none, so that no player address is disclosed.
    pub paths: PathMode,
    /// Whether to host or to join.
    pub intent: Wish,
}

/// What a game wants to open or join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Opens a new room.
    Host {
        /// The room's code; `None` lets the hub draw one.
        code: Option<RoomCode>,
        /// Players at once, 2 to 16.
        max_players: u16,
        /// Steps per second.
        tick_rate: TickRate,
        /// Whether this process is a dedicated server without a player. The room may then have up to 255
        /// players, if the server allows it.
        dedicated: bool,
    },
    /// Opens a match: a room that the hub itself runs, with equal members.
    Match {
        /// Players at once, 2 to 256.
        max_players: u16,
        /// Steps per second of the match's common clock.
        tick_rate: TickRate,
        /// The label in listings; may be empty.
        label: String,
        /// Whether the server keeps the match's log.
        keep: bool,
    },
    /// Joins the room with this code, or the match with this id.
    Join {
        /// The code.
        code: RoomCode,
    },
    /// Resumes the seat that an earlier process of this player had, with the messages that came for it since.
    Resume {
        /// Its session.
        session: SessionId,
        /// Its resume token: see [`RoomCore::resume_proof`](super::RoomCore::resume_proof).
        token: ResumeToken,
    },
}

impl Wish {
    /// A new room with a code that the hub draws, four seats and thirty steps a second.
    pub const fn host() -> Self {
        Wish::Host { code: None, max_players: 4, tick_rate: TickRate::DEFAULT, dedicated: false }
    }

    /// A new match with up to 16 players, thirty steps a second, no label and no kept log.
    pub const fn create_match() -> Self {
        let (max_players, tick_rate) = (MATCH_PLAYERS_DEFAULT, TickRate::DEFAULT);
        Wish::Match { max_players, tick_rate, label: String::new(), keep: false }
    }
}

/// What a connection requests, as far as a token must cover it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Opens a room, with this code if set.
    Create(Option<RoomCode>),
    /// Joins the room with this code.
    Join(RoomCode),
}

/// The shortest silence after which a room can take a member to be lost.
pub const PRESENCE_MIN: Duration = Duration::from_secs(1);

/// Default of `max_players` of a match.
const MATCH_PLAYERS_DEFAULT: u16 = 16;

impl Options {
    /// Options for a new room of `app`, with four seats and thirty steps a second.
    pub fn host(app: &str) -> Self {
        Options::new(app, Wish::host())
    }

    /// Options for a new match of `app`, with up to 16 players, thirty steps a second, no label and no kept
    /// log.
    pub fn create_match(app: &str) -> Self {
        Options::new(app, Wish::create_match())
    }

    /// Options to join a room of `app`.
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
            lead_tuning: LeadTuning::default(),
            drawing: Drawing::default(),
            predicted: Vec::new(),
            actions: Actions::default(),
            smoothing: Smoothing::default(),
            rewind_max: REWIND_MAX,
            resimulate_ticks: 0,
            simulation_delay_ticks: 0,
            hash_every: None,
            reconnect: true,
            reconnect_policy: ReconnectPolicy::default(),
            presence: None,
            grace: None,
            spectate: false,
            spectators: limits::SPECTATORS_DEFAULT,
            spectator_delay: Duration::ZERO,
            host_timeout: None,
            migration_grace: MIGRATION_GRACE_DEFAULT,
            migration_pause: None,
            protocol: Protocol::default(),
            paths: PathMode::default(),
            intent,
        }
    }

    /// Declares a channel for the game's own bytes.
    ///
    /// # Errors
    /// [`TableError`] if the number is reserved, too large or taken.
    pub fn channel(&mut self, number: u8, lane: Lane) -> Result<(), TableError> {
        self.channels.declare(Channel { id: ChannelId(number), lane, codec: Codec::Raw, schema_hash: 0 })
    }

    /// Builds the hello of these options.
    pub(crate) fn hello(&self) -> Hello {
        let timeout_ms = |timeout: Duration| u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        let settings = |kind, max_players, tick_rate| RoomSettings {
            secret: self.secret.clone(),
            tick_rate,
            host_timeout_ms: self.host_timeout.map(timeout_ms),
            spectator_delay_ms: timeout_ms(self.spectator_delay),
            schema: self.schema.as_ref().map(|schema| schema.encode()).unwrap_or_default(),
            ..RoomSettings::new(kind, max_players)
        };
        Hello {
            environment: self.environment.clone(),
            capabilities: capability::RETURNS | capability::HANDS_OVER | self.moves() | self.spectates(),
            name: self.name.clone(),
            auth: self.token.as_ref().map_or(Auth::Anonymous, |token| Auth::Token(token.clone().into())),
            channels: self.channels.clone(),
            schema: self.schema.as_ref().and_then(|schema| NonZeroU64::new(schema.hash())),
            ..Hello::new(
                &self.app,
                match &self.intent {
                    &Wish::Host { code, max_players, tick_rate, dedicated } => {
                        let kind = if dedicated { RoomKind::Dedicated } else { RoomKind::PlayerHosted };
                        Intent::Create(RoomSettings { code, ..settings(kind, max_players, tick_rate) })
                    }
                    Wish::Match { max_players, tick_rate, label, keep } => Intent::Create(RoomSettings {
                        label: label.clone(),
                        keep: *keep,
                        ..settings(RoomKind::Match, *max_players, *tick_rate)
                    }),
                    &Wish::Join { code } => Intent::Join { code, secret: self.secret.clone() },
                    &Wish::Resume { session, token } => Intent::Resume(Resume { session, token }),
                },
            )
        }
    }

    /// The capability to follow a room to another server: that of a client that reconnects.
    fn moves(&self) -> u64 {
        if self.reconnect { capability::MOVES } else { 0 }
    }

    /// The capability of spectators, as a hello for these options has it.
    fn spectates(&self) -> u64 {
        let is_set = match self.intent {
            Wish::Host { .. } | Wish::Match { .. } => self.spectators == limits::SPECTATORS_DEFAULT,
            Wish::Join { .. } => self.spectate,
            Wish::Resume { .. } => false,
        };
        if is_set { capability::SPECTATES } else { 0 }
    }

    /// How many spectators the room takes that this process opens, if its hello does not say it.
    pub(crate) fn spectators_to_say(&self) -> Option<u16> {
        let opens = matches!(self.intent, Wish::Host { .. } | Wish::Match { .. });
        (opens && !matches!(self.spectators, 0 | limits::SPECTATORS_DEFAULT)).then_some(self.spectators)
    }

    /// Builds the hello with which this process returns as the member that it was.
    pub(crate) fn hello_of_lost(&self, resume: Resume) -> Hello {
        Hello { intent: Intent::Resume(resume), ..self.hello() }
    }

    /// Whether this process opens a room as its host.
    pub(crate) fn is_of_host(&self) -> bool {
        matches!(self.intent, Wish::Host { .. })
    }

    /// The code that the game names.
    pub(crate) fn chosen_code(&self) -> Option<RoomCode> {
        match self.intent {
            Wish::Host { code, .. } => code,
            Wish::Join { code } => Some(code),
            Wish::Match { .. } | Wish::Resume { .. } => None,
        }
    }

    /// The terms of the room that this process opens.
    pub(crate) fn terms(&self) -> RoomTerms {
        let opens = matches!(self.intent, Wish::Host { .. } | Wish::Match { .. });
        let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let [presence_ms, grace_ms] = [self.presence, self.grace].map(|time| time.filter(|_| opens).map(ms));
        RoomTerms { presence_ms, grace_ms }
    }

    /// Builds the hello on a path to the host.
    pub(crate) fn hello_of_path(&self, path: PathId) -> Hello {
        let intent = Intent::Path(path);
        Hello { channels: self.channels.clone(), ..Hello::new(&self.app, intent) }
    }

    /// Builds the hello with which this process rejoins its room by the code.
    pub(crate) fn hello_again(&self, code: Option<RoomCode>) -> Hello {
        let Some(code) = code else { return self.hello() };
        Options { intent: Wish::Join { code }, ..self.clone() }.hello()
    }

    /// The schema of the room that this client has joined.
    ///
    /// # Errors
    /// [`SchemaError`] if the hub's schema is malformed.
    pub(crate) fn room_schema(&self, welcome: &Welcome) -> Result<Arc<Schema>, SchemaError> {
        match &self.schema {
            Some(schema) => Ok(Arc::clone(schema)),
            None if welcome.schema.is_empty() => Ok(Arc::default()),
            None => Schema::decode(welcome.schema.clone()).map(Arc::new),
        }
    }

    /// Whether a guest runs its steps ahead of the room's time.
    pub(crate) fn has_lead(&self) -> bool {
        self.lead || !self.predicted.is_empty() || !self.actions.is_empty()
    }

    /// The predicted components, one bit each.
    pub(crate) fn predicted_mask(&self, schema: &Schema) -> u64 {
        self.predicted.iter().filter_map(|name| schema.find(name)).fold(0, |mask, id| mask | id.bit())
    }

    /// Checks that the schema has all components that options name.
    fn check_components(&self) -> Result<(), String> {
        let has = |name: &str| self.schema.as_ref().is_some_and(|schema| schema.find(name).is_some());
        let predicted = self.predicted.iter().map(|name| (name.as_str(), "predicted"));
        let mut named = predicted.chain(self.drawing.names().map(|name| (name, "interpolated by the game")));
        match named.find(|(name, _)| !has(name)) {
            Some((name, what)) => Err(format!(
                "the component \"{name}\" is to be {what} and is not in the schema: give the room a schema that has it"
            )),
            None => Ok(()),
        }
    }

    /// Checks that every field is within its bounds.
    ///
    /// # Errors
    /// A message that names the invalid field and its bounds.
    pub fn check(&self) -> Result<(), String> {
        self.check_components()?;
        self.lead_tuning.check()?;
        self.drawing.delay.check()?;
        let (grace, bounds) = (self.migration_grace, MIGRATION_GRACE_MIN..=MIGRATION_GRACE_MAX);
        if !bounds.contains(&grace) {
            let [grace, min, max] = [grace, *bounds.start(), *bounds.end()].map(Millis);
            return Err(format!("migration_grace is {grace}; it may be {min} to {max}"));
        }
        self.reconnect_policy.check()?;
        if self.spectators > limits::SPECTATORS_MAX {
            let (wanted, most) = (self.spectators, limits::SPECTATORS_MAX);
            return Err(format!("spectators is {wanted}; it may be 0 to {most}"));
        }
        let bounds = PRESENCE_MIN..=limits::SILENCE_TIMEOUT;
        if let Some(presence) = self.presence.filter(|presence| !bounds.contains(presence)) {
            let [presence, min, max] = [presence, *bounds.start(), *bounds.end()].map(Millis);
            return Err(format!("presence is {presence}; it may be {min} to {max}"));
        }
        self.hello().check()
    }
}

/// How a game's messages and inputs travel unless it says otherwise. State is the same with each: a lost
/// packet delays nothing, and what it had is sent again if nothing newer was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Messages arrive, in the order of sending. Inputs are repeated until the host has used them, so that
    /// each step has its own: a host with [`simulation_delay_ticks`](Options::simulation_delay_ticks) or
    /// [`resimulate_ticks`](Options::resimulate_ticks), or guests with [`lead`](Options::lead), make use of it.
    Reliable,
    /// Messages and inputs are sent once and may be lost: what is out of date soon.
    Unreliable,
    /// Messages arrive, in the order of sending. Of inputs the newest one is sent; with [`lead`](Options::lead)
    /// they are repeated.
    #[default]
    Both,
}

impl Protocol {
    /// Returns the name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Reliable => "reliable",
            Protocol::Unreliable => "unreliable",
            Protocol::Both => "both",
        }
    }

    /// The lane of messages for which the game names none.
    pub const fn lane(self) -> Lane {
        match self {
            Protocol::Reliable | Protocol::Both => Lane::ReliableOrdered,
            Protocol::Unreliable => Lane::Unreliable,
        }
    }

    /// Whether inputs are repeated until the host has used them. Without lead an input is used on arrival, and
    /// the newest alone counts at most hosts.
    pub(crate) const fn repeats_inputs(self, has_lead: bool) -> bool {
        match self {
            Protocol::Reliable => true,
            Protocol::Unreliable => false,
            Protocol::Both => has_lead,
        }
    }
}

/// Which direct paths a game wants between its players and their host, and among its players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMode {
    /// Within a local network only. No address that is reachable from elsewhere is disclosed.
    Local,
    /// Wherever a path opens: it is tried first, and the hub relays until it opens, and where it does not.
    Auto,
    /// A direct path to the host, or none of the room. A guest without one in time gets
    /// [`ClosedReason::NoDirectPath`](crate::ClosedReason::NoDirectPath). At a host like `Auto`: its guests decide.
    P2p,
    /// As `Auto`, and a path to each other player that wants the same: a mesh. Own states and messages to a player
    /// with a path go over it. All players with this mode learn each other's addresses; 16 of them have paths.
    Mesh,
    /// None. No address is disclosed.
    #[default]
    Relay,
}

impl PathMode {
    /// Returns the mode's name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            PathMode::Local => "local",
            PathMode::Auto => "auto",
            PathMode::P2p => "p2p",
            PathMode::Mesh => "mesh",
            PathMode::Relay => "relay",
        }
    }

    pub(crate) fn admits(self, address: &SocketAddr) -> bool {
        match self {
            PathMode::Local => is_of_local_network(address.ip()),
            PathMode::Auto | PathMode::P2p | PathMode::Mesh => true,
            PathMode::Relay => false,
        }
    }
}
