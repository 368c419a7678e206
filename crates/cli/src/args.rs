//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use parlor::{EntityId, Impairment};
use parlor_server::{FLUSH_QUANTUM_MS_MAX, GRACE_S_MAX};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Realtime multiplayer for any game: open a room, share its code, play.
#[derive(Debug, Parser)]
#[command(name = "parlor", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play Magpies, a terminal game for 2 to 16: host a room and share its code, or join one
    Play(PlayArgs),
    /// Fill a room with scripted members
    Bots(BotsArgs),
    /// Run a server for rooms
    Serve(ServeArgs),
    /// List the rooms of this machine and, with --lan, of the network that it is on
    Rooms(RoomsArgs),
    /// Make a key for a server that admits by token, or a token
    Token(TokenArgs),
    /// Run a room again from its log, or play its recording, and say what happened in it
    Replay(ReplayArgs),
    /// Show the log of a room message by message: who said what, and of its state what each packet says of which entity
    Dump(DumpArgs),
    /// A thousand walkers in a room, of which every member sees those that are near its own
    Walkers(WalkersArgs),
    /// Drive and shoot in an arena, with switches for prediction, interpolation and a bad network
    Arena(ArenaArgs),
    /// Play English draughts in two terminals, in a room that outlives both and the server
    Draughts(DraughtsArgs),
    /// Be in a match: a room that the server itself runs, whose members are equal and send each other lines
    Match(crate::commands::matches::MatchArgs),
    /// Look after the accounts and turn rooms of a server, as its operator
    Admin(crate::commands::admin::args::AdminArgs),
    /// Pass UDP on to a server as a bad network would, to try any program on it
    Impair(ImpairArgs),
    /// Measure this build on this machine
    #[cfg(target_os = "linux")]
    Bench(crate::bench::args::BenchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// Join the room with this code or invite link instead of hosting one
    #[arg(long, value_name = "CODE|LINK")]
    pub join: Option<String>,
    /// What others shall call you
    #[arg(long, env = "PARLOR_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// Players that the room may have, for its host
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=16), conflicts_with = "join")]
    pub max_players: u16,
    /// Choose the code of the room, for its host: 4 to 12 letters and digits
    #[arg(long, value_name = "CODE", conflicts_with = "join")]
    pub code: Option<String>,
    /// What lets in at a server that admits by token; good once
    #[arg(long, env = "PARLOR_TOKEN", value_name = "TOKEN")]
    pub token: Option<String>,
    /// Port of the server that a host without --server starts inside itself; any free one if not given
    #[arg(long, value_name = "PORT", default_value_t = 0, conflicts_with_all = ["join", "server"])]
    pub port: u16,
    /// Record the room into this file, for its host: see `parlor replay`
    #[arg(long, value_name = "FILE", conflicts_with = "join")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub reach: ReachArgs,
    #[command(flatten)]
    pub headless: HeadlessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BotsArgs {
    /// The room: its code or an invite link
    #[arg(long, value_name = "CODE|LINK")]
    pub join: String,
    /// How many
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub count: u16,
    /// How well they play, from 0 to 1
    #[arg(long, default_value_t = 0.6)]
    pub skill: f32,
    /// What lets one of them in at a server that admits by token; give one for each
    #[arg(long = "token", value_name = "TOKEN")]
    pub tokens: Vec<String>,
    #[command(flatten)]
    pub reach: ReachArgs,
    #[command(flatten)]
    pub headless: HeadlessArgs,
}

/// How the server is reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReachArgs {
    /// The server: HOST, HOST:PORT or HOST:PORT#FINGERPRINT. Without it PARLOR_SERVER counts
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,
    /// Play with those on this network: a host starts its own server and announces the room there, unless it has a secret; a
    /// guest finds it there by its code. See docs/lan.md
    #[arg(long, conflicts_with = "server")]
    pub lan: bool,
    /// What must be known beside the code
    #[arg(long, env = "PARLOR_SECRET", value_name = "SECRET")]
    pub secret: Option<String>,
    /// What may connect to the server
    #[arg(long, value_enum, default_value_t = ViaArg::Auto)]
    pub via: ViaArg,
    /// Which paths to and from the host are tried beside the server. Whoever wants them tells the other end its addresses
    #[arg(long, value_enum, default_value_t = PathArg::Relay)]
    pub path: PathArg,
    /// File with certificates (PEM) that may vouch for the server
    #[arg(long, env = "PARLOR_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Put this end on a bad network, such as latency=80ms,jitter=20ms,loss=3%; see docs/impair.md
    #[arg(long, env = "PARLOR_IMPAIR", value_name = "SPEC")]
    pub impair: Option<Impairment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathArg {
    /// A direct one, and the server where none comes about
    Auto,
    /// The same, asked for by name
    P2p,
    /// A direct one within the local network alone
    Local,
    /// None: everything goes by the server, and nobody is told where this player is
    Relay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViaArg {
    /// QUIC, and WebSocket where QUIC gets no answer
    Auto,
    /// QUIC only
    Quic,
    /// WebSocket only
    Websocket,
}

/// Running without a terminal.
#[derive(Clone, Debug, Args)]
pub(crate) struct HeadlessArgs {
    /// Without a screen: inputs come from --script, or from a bot
    #[arg(long)]
    pub headless: bool,
    /// File with inputs; see docs/play.md
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Stop after this many seconds; otherwise when the room ends or Ctrl-C is pressed
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Stop when this many updates of the state were decoded (by a host: published)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub updates: Option<u64>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
    /// Print what happens in the room as it does, and twice a second how each member stands: one JSON object a line
    #[arg(long, requires = "headless")]
    pub events: bool,
    /// Say a number to all others so many times a second, reliably and in order, and report which numbers of theirs came
    #[arg(long, value_name = "HZ", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=60))]
    pub talk: u16,
    /// Put the hash of the state at this sequence into the report
    #[arg(long, value_name = "SEQUENCE", value_parser = clap::value_parser!(u64).range(1..))]
    pub hash_at: Option<u64>,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.0..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("it may be 0 to 86400".to_owned()) }
}

/// The settings of a server. Each may stand on the command line, in the environment, or in the file given with
/// --config, and counts in this order.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// TOML file with settings of the same names
    #[arg(long, env = "PARLOR_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on [default: all]
    #[arg(long, env = "PARLOR_LISTEN", value_name = "IP")]
    pub listen: Option<IpAddr>,
    /// Port, UDP for QUIC and TCP for HTTP and WebSocket; 0 for any free one [default: 7700]
    #[arg(long, env = "PARLOR_PORT")]
    pub port: Option<u16>,
    /// Name under which others reach this server, for links [default: its addresses]
    #[arg(long, env = "PARLOR_PUBLIC_HOST", value_name = "HOST")]
    pub public_host: Option<String>,
    /// Certificate chain (PEM); without it a development identity is made
    #[arg(long, env = "PARLOR_CERTIFICATE", value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, env = "PARLOR_KEY", value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Folder that keeps the development identity, so that its fingerprint stays
    #[arg(long, env = "PARLOR_IDENTITY", value_name = "FOLDER")]
    pub identity: Option<PathBuf>,
    /// Serve this game only; may be given several times [default: any]
    #[arg(long = "app", env = "PARLOR_APPS", value_name = "APP", value_delimiter = ',')]
    pub apps: Option<Vec<String>>,
    /// Rooms that may live at once [default: 10000]
    #[arg(long, env = "PARLOR_MAX_ROOMS")]
    pub max_rooms: Option<usize>,
    /// Take rooms of dedicated hosts: processes without a player, for up to 255 players
    #[arg(long, env = "PARLOR_DEDICATED")]
    pub dedicated: bool,
    /// KiB of state that one member is sent in a second at most [default: 192]
    #[arg(long, env = "PARLOR_STATE_RATE", value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=65_536))]
    pub state_rate: Option<u32>,
    /// Connections there may be at once on TCP, and as many again on QUIC [default: 4096]
    #[arg(long, env = "PARLOR_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Handshakes that one address may begin in each second on the long run [default: 10]
    #[arg(long, env = "PARLOR_HANDSHAKES_PER_SECOND", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub handshakes_per_second: Option<u32>,
    /// Handshakes that all may begin in each second on the long run [default: 500]
    #[arg(long, env = "PARLOR_HANDSHAKES_PER_SECOND_ALL", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub handshakes_per_second_all: Option<u32>,
    /// Limit connections from this machine like all others, which they are not by themselves
    #[arg(long, env = "PARLOR_LIMIT_LOCAL")]
    pub limit_local: bool,
    /// Public key (PEM, Ed25519) of whoever gives out tokens; without it everybody is anonymous but those with accounts here
    #[arg(long, env = "PARLOR_ADMISSION_KEY", value_name = "FILE")]
    pub admission_key: Option<PathBuf>,
    /// Whether somebody without a token may come in [default: required where there is an admission key, else optional]
    #[arg(long, env = "PARLOR_ADMISSION", value_enum)]
    pub admission: Option<AdmissionArg>,
    /// Threads over which the rooms are spread; each has a port of its own, the first and those after it [default: 1]
    #[arg(long, env = "PARLOR_SHARDS")]
    pub shards: Option<NonZeroU16>,
    /// Milliseconds that a room may hold back what it sends, to save packets [default: 0, at most 20]
    #[arg(long, env = "PARLOR_FLUSH_QUANTUM", value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=FLUSH_QUANTUM_MS_MAX))]
    pub flush_quantum: Option<u64>,
    /// Seconds for which the seat of a player is kept whose connection is lost [default: 30; 0 keeps none]
    #[arg(long, env = "PARLOR_GRACE", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=GRACE_S_MAX))]
    pub grace: Option<u64>,
    /// Announce the rooms on the local network, but those with a secret; see docs/lan.md
    #[arg(long, env = "PARLOR_LAN")]
    pub lan: bool,
    /// Write a log of every room into this folder, for `parlor replay`
    #[arg(long, env = "PARLOR_ROOM_LOG", value_name = "FOLDER")]
    pub room_log: Option<PathBuf>,
    /// Put all sockets of the server on a bad network, such as latency=80ms,jitter=20ms,loss=3%; see docs/impair.md
    #[arg(long, env = "PARLOR_IMPAIR", value_name = "SPEC")]
    pub impair: Option<Impairment>,
    /// Keep accounts and turn rooms in this folder; without it and without --store there are none. It keeps the development identity,
    /// too, unless --identity names another folder
    #[arg(long, env = "PARLOR_DATA", value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Keep accounts and turn rooms there: a file, sqlite://FILE or postgres://USER@HOST/DATABASE
    #[arg(long, env = "PARLOR_STORE", value_name = "URL")]
    pub store: Option<String>,
    /// Who may make an account [default: open with a development identity, closed with a certificate]
    #[arg(long, env = "PARLOR_ACCOUNTS", value_enum)]
    pub accounts: Option<AccountsArg>,
    /// Public key (PEM, Ed25519) of whoever signs tokens for the roles server and admin; without it there are none
    #[arg(long, env = "PARLOR_OPERATOR_KEY", value_name = "FILE")]
    pub operator_key: Option<PathBuf>,
    /// Tell a service of the game's own, at this https address, what happens in turn rooms; see docs/online.md
    #[arg(long, env = "PARLOR_WEBHOOK", value_name = "URL")]
    pub webhook: Option<String>,
    /// File with the key that such requests are signed with, 16 bytes or more
    #[arg(long, env = "PARLOR_WEBHOOK_KEY", value_name = "FILE")]
    pub webhook_key: Option<PathBuf>,
    /// Whether that service may have an address within a private network, or this machine's own
    #[arg(long, env = "PARLOR_WEBHOOK_PRIVATE")]
    pub webhook_private: bool,
    /// How the log on standard error looks [default: text]
    #[arg(long, env = "PARLOR_LOG_FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
    /// What is logged, for instance "info" or "parlor_server=debug" [default: info]
    #[arg(long, env = "PARLOR_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AdmissionArg {
    /// Nobody comes in without a token
    Required,
    /// Without a token somebody is anonymous; a wrong one lets nobody in
    Optional,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AccountsArg {
    /// Anybody makes an account
    Open,
    /// The game's own service signs its players in, and nobody else makes an account
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// The game's own service
    Server,
    /// Whoever runs the server
    Admin,
}

#[derive(Debug, Args)]
pub(crate) struct DraughtsArgs {
    /// The server: HOST, HOST:PORT or HOST:PORT#FINGERPRINT; the one on this machine if not given
    #[arg(long, env = "PARLOR_SERVER", value_name = "SERVER")]
    pub server: Option<String>,
    /// What the others shall see; whoever plays twice on one machine needs two names
    #[arg(long, env = "PARLOR_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// The room, by its code or id; without it the game that is not over, or anybody who waits for one
    #[arg(long, value_name = "CODE|ID")]
    pub room: Option<String>,
    /// File that keeps who the player is [default: one for each server and name, in the user's folder for such things]
    #[arg(long, env = "PARLOR_SESSION", value_name = "FILE")]
    pub session: Option<PathBuf>,
    /// File with certificates (PEM) that may vouch for the server
    #[arg(long, env = "PARLOR_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RoomsArgs {
    /// Rooms of this game only, such as magpies
    #[arg(long)]
    pub app: Option<String>,
    /// Listen for rooms on the local network too
    #[arg(long)]
    pub lan: bool,
    /// How long to listen
    #[arg(long, value_name = "N", value_parser = parse_seconds, default_value = "2", requires = "lan")]
    pub seconds: f64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// Make a pair of keys: FILE for whoever gives out tokens, FILE.pub for servers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "app", "user", "environment", "room", "create"])]
    pub new_key: Option<PathBuf>,
    /// Private key with which the token is signed
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The game
    #[arg(long)]
    pub app: Option<String>,
    /// Its environment, if it has one
    #[arg(long)]
    pub environment: Option<String>,
    /// Who it is for
    #[arg(long)]
    pub user: Option<String>,
    /// The room that it is for; with --create the code that a new room must have
    #[arg(long, value_name = "CODE")]
    pub room: Option<String>,
    /// For opening a room
    #[arg(long)]
    pub create: bool,
    /// Not for a room, but for the services of a server with --operator-key: as its operator, for an hour
    #[arg(long, value_enum, conflicts_with_all = ["room", "create", "new_key"])]
    pub role: Option<RoleArg>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A room's log, which `parlor serve --room-log` wrote, or a recording, which its host wrote
    pub file: PathBuf,
    /// Print one JSON object instead of the transcript; of a recording one for each record, and that one last
    #[arg(long)]
    pub json: bool,
    /// Only what happened in the first so many seconds after the room's opening
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub until: Option<f64>,
    /// Follow a recording that is being written, as a spectator with a delay
    #[arg(long)]
    pub follow: bool,
    /// How far behind the room that spectator is, such as 5s or 500ms
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "5s", requires = "follow")]
    pub delay: Duration,
    /// Draw a recording of Magpies, as fast as it was played
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
}

/// A time in seconds or milliseconds, up to an hour.
fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, unit_s) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.parse::<f64>().map_err(|_| "not a time such as 5s or 500ms".to_owned())? * unit_s;
    if (0.0..=3_600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("it may be 0s to 3600s".to_owned())
    }
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// A room's log, which `parlor serve --room-log` wrote
    pub file: PathBuf,
    /// Only what this member said or was told
    #[arg(long, value_name = "ID")]
    pub member: Option<u32>,
    /// Only this entity: its slot, or SLOT.GENERATION
    #[arg(long, value_name = "ENTITY")]
    pub entity: Option<EntityFilter>,
    /// Only what happened from so many seconds after the room's opening on
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub from: Option<f64>,
    /// Only what happened before so many seconds after it
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub to: Option<f64>,
    /// Print one JSON object for each record instead of text
    #[arg(long)]
    pub json: bool,
}

/// One entity, or all that were in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntityFilter {
    pub slot: u16,
    pub generation: Option<u16>,
}

impl EntityFilter {
    /// Whether an entity is meant.
    pub(crate) fn is(self, entity: EntityId) -> bool {
        self.slot == entity.slot && self.generation.is_none_or(|generation| generation == entity.generation)
    }
}

impl FromStr for EntityFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("an entity is SLOT or SLOT.GENERATION, such as 12 or 12.3, and not {text:?}");
        match text.split_once('.') {
            None => Ok(EntityFilter { slot: text.parse().map_err(wrong)?, generation: None }),
            Some((slot, generation)) => Ok(EntityFilter {
                slot: slot.parse().map_err(wrong)?,
                generation: Some(generation.parse().map_err(wrong)?),
            }),
        }
    }
}

#[derive(Debug, Args)]
#[command(mut_arg("headless", |headless| headless.help("Without a screen: all viewers walk in squares")))]
pub(crate) struct WalkersArgs {
    /// Join the room with this code or invite link instead of hosting one
    #[arg(long, value_name = "CODE|LINK")]
    pub join: Option<String>,
    /// Walkers that nobody steers, for the host
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(0..=10_000), conflicts_with = "join")]
    pub walkers: u16,
    /// Steps per second, for the host
    #[arg(long, value_name = "HZ", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=60), conflicts_with = "join")]
    pub hz: u16,
    /// Where the walkers are drawn from, for the host
    #[arg(long, default_value_t = 1, conflicts_with = "join")]
    pub seed: u64,
    /// Members in this process that see some of it; the first one is shown on the screen
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=15))]
    pub viewers: u16,
    /// Record the room into this file, for its host: see `parlor replay`
    #[arg(long, value_name = "FILE", conflicts_with = "join")]
    pub record: Option<PathBuf>,
    /// Without a screen: stop when every viewer saw so many changes of walkers
    #[arg(long, value_name = "N", requires = "headless", value_parser = clap::value_parser!(u64).range(1..))]
    pub updates: Option<u64>,
    #[command(flatten)]
    pub demo: DemoArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("headless", |headless| headless.help("Without a screen: bots alone")))]
pub(crate) struct ArenaArgs {
    /// Join the room with this code or invite link instead of hosting one
    #[arg(value_name = "CODE|LINK")]
    pub join: Option<String>,
    /// Bots in this process, beside whoever plays at the screen
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=7))]
    pub bots: u16,
    /// Targets that nobody drives, for the host
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=8), conflicts_with = "join")]
    pub drones: u8,
    /// What the bots are drawn from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Let one's own tank wait for the host, as the key P does
    #[arg(long)]
    pub no_prediction: bool,
    /// Draw the others where the host said last that they are, as the key I does
    #[arg(long)]
    pub no_interpolation: bool,
    #[command(flatten)]
    pub demo: DemoArgs,
}

/// What the demos have in common: where the room is, and how long it goes on.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Port of the server that a host without --server starts inside itself; any free one if not given
    #[arg(long, value_name = "PORT", default_value_t = 0, conflicts_with_all = ["join", "server"])]
    pub port: u16,
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Without a screen
    #[arg(long)]
    pub headless: bool,
    /// Stop after this many seconds; otherwise when the room ends or Ctrl-C is pressed
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImpairArgs {
    /// Address to listen on for the clients; port 0 for any free one
    #[arg(long, value_name = "IP:PORT")]
    pub listen: SocketAddr,
    /// The server that they want
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,
    /// What is wrong with the network between them, each way, such as latency=80ms,jitter=20ms,loss=3%; see
    /// docs/impair.md
    #[arg(value_name = "SPEC")]
    pub impairment: Impairment,
    /// Stop after this many seconds; otherwise when Ctrl-C is pressed
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Print one JSON object at the end, and nothing before
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
