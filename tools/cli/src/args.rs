//! The command line.

pub(crate) mod admin;
pub(crate) mod board;
mod doctor;
pub(crate) mod lobby;
mod matches;
mod serve;
mod signed_in;

pub(crate) use doctor::DoctorArgs;
pub(crate) use matches::MatchArgs;
pub(crate) use serve::{AccountsArg, AdmissionArg, LogFormat, ServeArgs};

use clap::{Args, Parser, Subcommand, ValueEnum};
use parlor::{EntityId, Impairment};
use parlor_terminal::connect_options::{ConnectArgs, JoinArgs};
use parlor_terminal::run_until::parse_seconds;
use std::net::SocketAddr;
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
    /// Make a folder with a game of yours to begin with, in Rust or for a browser
    New(NewArgs),
    /// Run a server for rooms
    Serve(ServeArgs),
    /// Look at this machine as a server's, or at a server as players reach it, and say what to do
    Doctor(Box<DoctorArgs>),
    /// List the rooms of this machine and, with --lan, of the local network
    Rooms(RoomsArgs),
    /// Create an admission key or token
    Token(TokenArgs),
    /// Replay a room from its log or recording, and print what happened
    Replay(ReplayArgs),
    /// Print the log of a room message by message, with the entities in each packet of state
    Dump(DumpArgs),
    /// Follow one input from the key press to what every member drew, by the packet logs of both ends
    Trace(TraceArgs),
    /// Play English draughts in two terminals, in a turn room that outlives them and the server. Without a room: resumes your game, or
    /// finds an opponent
    Draughts(DraughtsArgs),
    /// Join or open a match: a room without a host whose members send each other lines
    Match(MatchArgs),
    /// Show the boards of a game and their ranks, and submit scores
    Board(board::BoardArgs),
    /// Gather players in a lobby, and talk
    Lobby(lobby::LobbyArgs),
    /// Manage rooms, accounts and backups of a server, as its operator
    Admin(admin::AdminArgs),
    /// Relay UDP to a server through a simulated bad network, for any program
    Impair(ImpairArgs),
    /// Print what a shell needs to complete commands and options
    Completions(CompletionsArgs),
    /// Write a manual page for each command into a folder
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder of the pages
    pub folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    #[command(flatten)]
    pub join: JoinArgs,
    /// Your name, as others see it
    #[arg(long, env = "PARLOR_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// Maximum number of players, for the host
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=16), conflicts_with_all = ["room", "join"])]
    pub max_players: u16,
    /// How much later than the players spectators see the room, for its host, such as 5s: 1s to 300s [default: no later]
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["room", "join"])]
    pub spectator_delay: Option<Duration>,
    /// Watch a room, and take no player's seat
    #[arg(long, conflicts_with_all = ["find", "record"])]
    pub watch: bool,
    /// Code of the room, for the host: 4 to 12 letters and digits [default: drawn by the server]
    #[arg(long, value_name = "CODE", conflicts_with_all = ["room", "join"])]
    pub code: Option<String>,
    /// Let the server find others who search, and play with them: it needs --data or --store
    #[arg(long, value_name = "QUEUE", num_args = 0..=1, default_missing_value = "magpies", conflicts_with_all = ["room", "join", "code", "port", "lan"])]
    pub find: Option<String>,
    /// File that keeps who you are, for --find [default: one for each server and name]
    #[arg(long, value_name = "FILE", requires = "find")]
    pub session: Option<PathBuf>,
    /// Admission token; valid once
    #[arg(long, env = "PARLOR_TOKEN", value_name = "TOKEN")]
    pub token: Option<String>,
    /// Port of the server that a host without --server starts itself; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 0, conflicts_with_all = ["room", "join", "server"])]
    pub port: u16,
    /// Record the room into this file, for its host: see `parlor replay`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["room", "join"])]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub connect: ConnectArgs,
    #[command(flatten)]
    pub headless: HeadlessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The folder to make; the game is named after it
    pub folder: PathBuf,
    /// What to begin with
    #[arg(long, value_enum, default_value_t)]
    pub template: Template,
    /// A checkout of Parlor to build the game with [default: the one of this program, or else the published version]
    #[arg(long, value_name = "FOLDER")]
    pub parlor: Option<PathBuf>,
}

/// A game to begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// A terminal, and a value for each player
    #[default]
    Dots,
    /// A terminal, a world of entities, and prediction
    Tanks,
    /// Bevy, with prediction; it is drawn in a terminal until you say otherwise
    Bevy,
    /// A browser: TypeScript, a canvas, no library
    Browser,
    /// The same game for a browser, with Phaser
    Phaser,
    /// A browser: a board of tiles, with React
    React,
}

#[derive(Debug, Args)]
pub(crate) struct BotsArgs {
    #[command(flatten)]
    pub join: JoinArgs,
    /// Number of bots
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub count: u16,
    /// Skill of the bots, from 0 to 1
    #[arg(long, default_value_t = 0.6)]
    pub skill: f32,
    /// Admission token of one bot; repeat it for each bot
    #[arg(long = "token", value_name = "TOKEN")]
    pub tokens: Vec<String>,
    #[command(flatten)]
    pub connect: ConnectArgs,
    #[command(flatten)]
    pub headless: HeadlessArgs,
}

/// Running without a terminal.
#[derive(Clone, Debug, Args)]
pub(crate) struct HeadlessArgs {
    /// Run without a screen, with inputs from --script or a bot
    #[arg(long)]
    pub headless: bool,
    /// File with inputs; see docs/play.md
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Stop after this many seconds; otherwise when the room ends or Ctrl-C is pressed
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Stop after this many updates of the state were decoded (host: published)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub updates: Option<u64>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
    /// Print events as they happen, and the status of each member twice a second: one JSON object a line
    #[arg(long, requires = "headless")]
    pub events: bool,
    /// Send a numbered message to all others at this rate, reliable and ordered, and report which numbers arrived
    #[arg(long, value_name = "HZ", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=60))]
    pub talk: u16,
    /// Put the hash of the state at this sequence into the report
    #[arg(long, value_name = "SEQUENCE", value_parser = clap::value_parser!(u64).range(1..))]
    pub hash_at: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// The game's own service
    Server,
    /// The server's operator
    Admin,
}

#[derive(Debug, Args)]
pub(crate) struct DraughtsArgs {
    /// Server: HOST, HOST:PORT or HOST:PORT#FINGERPRINT [default: the one on this machine]
    #[arg(long, env = "PARLOR_SERVER", value_name = "SERVER")]
    pub server: Option<String>,
    /// Your name, as others see it; two players on one machine need two names
    #[arg(long, env = "PARLOR_NAME", value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub join: JoinArgs,
    /// File of the player's sign-in [default: one for each server and name, in the user's state folder]
    #[arg(long, env = "PARLOR_SESSION", value_name = "FILE")]
    pub session: Option<PathBuf>,
    /// Root certificates (PEM) that verify the server
    #[arg(long, env = "PARLOR_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RoomsArgs {
    /// Rooms of this game only, such as magpies
    #[arg(long)]
    pub app: Option<String>,
    /// Also list rooms on the local network
    #[arg(long)]
    pub lan: bool,
    /// Seconds to listen
    #[arg(long, value_name = "N", value_parser = parse_seconds, default_value = "2", requires = "lan")]
    pub seconds: f64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// Create a key pair: FILE for the issuer of tokens, FILE.pub for servers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "app", "user", "environment", "room", "create"])]
    pub new_key: Option<PathBuf>,
    /// Private key that signs the token
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The game
    #[arg(long)]
    pub app: Option<String>,
    /// Its environment, if it has one
    #[arg(long)]
    pub environment: Option<String>,
    /// The user
    #[arg(long)]
    pub user: Option<String>,
    /// The room; with --create the code of the new room
    #[arg(long, value_name = "CODE")]
    pub room: Option<String>,
    /// Allow opening a room
    #[arg(long)]
    pub create: bool,
    /// Token of an operator for a server with --operator-key, valid for an hour, instead of one for a room
    #[arg(long, value_enum, conflicts_with_all = ["room", "create", "new_key"])]
    pub role: Option<RoleArg>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Log of a room, written by `parlor serve --room-log`, or recording, written by its host
    pub file: PathBuf,
    /// Print one JSON object instead of the transcript; of a recording one for each record, and that one last
    #[arg(long)]
    pub json: bool,
    /// Only the first seconds after the room was opened
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub until: Option<f64>,
    /// Follow a recording that is being written, as a spectator with a delay
    #[arg(long)]
    pub follow: bool,
    /// Delay of the spectator, such as 5s or 500ms
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
pub(crate) struct TraceArgs {
    /// Packet logs of the members, written by `--packet-log` or `RoomBuilder::packet_log`: the player's, the host's, others'
    #[arg(required = true, value_name = "LOG")]
    pub files: Vec<PathBuf>,
    /// Whose input is followed [default: the first that is not the host]
    #[arg(long, value_name = "ID")]
    pub player: Option<u32>,
    /// The step of the input [default: one in the middle of the logs]
    #[arg(long, value_name = "STEP")]
    pub input: Option<u32>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// Log of a room, written by `parlor serve --room-log`, or of a client's packets, written by `--packet-log`
    pub file: PathBuf,
    /// Only messages from and to this member
    #[arg(long, value_name = "ID")]
    pub member: Option<u32>,
    /// Only this entity: its slot, or SLOT.GENERATION
    #[arg(long, value_name = "ENTITY")]
    pub entity: Option<EntityFilter>,
    /// Only from this many seconds after the room was opened
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub from: Option<f64>,
    /// Only until this many seconds after the room was opened
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
pub(crate) struct ImpairArgs {
    /// Address to listen on for the clients; port 0 for any free one
    #[arg(long, value_name = "IP:PORT")]
    pub listen: SocketAddr,
    /// The server to relay to
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,
    /// The bad network, each way, such as latency=80ms,jitter=20ms,loss=3%; see
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
