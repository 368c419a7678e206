//! The command line of `parlor-bench`.

mod services;

pub(crate) use services::{
    BoardsArgs, ClusterArgs, ClusterPart, LobbiesArgs, MatchmakerArgs, MovesArgs, RanksArgs, TurnsArgs,
};

use super::feel::Quality;
use super::instructions::{InstructionsArgs, PlayRoomArgs};
use super::pace::Pace;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures this build on this machine. What each figure means stands in docs/performance.md.
#[derive(Debug, Parser)]
#[command(name = "parlor-bench", version, propagate_version = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub bench: Bench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// What it costs the server to relay a message, for loads and flush quanta
    Relay(RelayArgs),
    /// How many players a core of the server carries, in rooms as games have them
    Capacity(CapacityArgs),
    /// How long a message takes through the relay at half a core of load, beside a plain QUIC relay
    Latency(LatencyArgs),
    /// What memory an idle session takes
    Idle(IdleArgs),
    /// How many members a core lets in each second
    Join(JoinArgs),
    /// How many moves in turn rooms a server takes each second, every one stored before it is acknowledged
    Turns(TurnsArgs),
    /// What a second node costs: idle, for relayed messages, and for moves of players at different nodes
    Cluster(ClusterArgs),
    /// How long games pause when their room moves to another node, and when their node is killed
    Moves(MovesArgs),
    /// How many scores a server takes each second, every one stored before it is acknowledged and looked for after a kill
    Boards(BoardsArgs),
    /// How long ranks in memory take to load, to ask and to change, and what an entry takes of memory
    Ranks(RanksArgs),
    /// What a search costs the matchmaker, in memory and on virtual time, and how long players wait
    Matchmaker(MatchmakerArgs),
    /// How long a search of four conditions takes among many lobbies in memory
    Lobbies(LobbiesArgs),
    /// Whether a room costs more where there are many, in instructions
    Rooms(RoomsArgs),
    /// Instructions of the hub for each packet and message, by part of the program
    Instructions(InstructionsArgs),
    /// What it takes to share a thousand walkers with 16 clients, beside other libraries: see bench/peers/README.md
    Replicate(ReplicateArgs),
    /// 100 players who all see each other: what the state engine takes for each tick
    Crowd(CrowdArgs),
    /// How small 901 falling cubes become, beside a plain delta coder: see bench/peers/README.md
    Cubes(CubesArgs),
    /// What a bad network leaves of a game's stream of 3 Mbit/s
    Loss(LossArgs),
    /// How a game feels on links from good to poor, in virtual time: prediction, hits, smoothness
    Feel(FeelArgs),
    /// How long a game stands still when its host is gone, in virtual time
    Hostloss(HostlossArgs),
    /// What it costs to go back eight steps with every step, beside ggrs: see bench/peers/README.md
    Rollback(RollbackArgs),
    /// Everything at once for long, with an attacker by turns: whether memory, files and store level off, and whether others notice
    Soak(SoakArgs),
    /// Serves a room of walkers, for `replicate` to measure
    #[command(hide = true)]
    ServeWalkers(ServeWalkersArgs),
    /// Drives a hub without sockets, for `rooms` to count what it does
    #[command(hide = true)]
    DriveHub(DriveHubArgs),
    /// Plays in a room without sockets, for `instructions` to count what its hub does
    #[command(hide = true)]
    PlayRoom(PlayRoomArgs),
}

/// What every bench takes.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CommonArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Where phases and drifts are drawn from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Rooms of 8 members, one row each
    #[arg(long, value_delimiter = ',', default_values_t = [10, 40, 80, 160], value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rooms: Vec<u32>,
    /// How long a flush may wait for more messages, in ms; one row each
    #[arg(long, value_delimiter = ',', default_values_t = [0, 2, 4], value_parser = clap::value_parser!(u16).range(..=20))]
    pub quantum: Vec<u16>,
    /// Over what the members are connected
    #[arg(long, value_enum, default_value_t = ViaArg::Both)]
    pub via: ViaArg,
    /// Whether the members of a room send at phases of their own or all at once
    #[arg(long, value_enum, default_value_t = Pace::Drifting)]
    pub pace: Pace,
    /// How long each row is measured
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = seconds)]
    pub seconds: f64,
    /// Measure each row also beside so many sessions that are connected and send nothing [5000 if no number follows]
    #[arg(long, value_name = "N", num_args = 0..=1, default_value_t = 0, default_missing_value = "5000", value_parser = clap::value_parser!(u32).range(..=20_000))]
    pub idle: u32,
    /// How often each row is measured alone and beside idle sessions, in turns
    #[arg(long, value_name = "N", default_value_t = 3, requires = "idle", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub turns: u16,
    /// How long idle sessions settle before anything counts
    #[arg(long, value_name = "N", default_value_t = 10.0, requires = "idle", value_parser = seconds)]
    pub settle: f64,
    /// Measure other relays beside: see bench/peers/README.md
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    /// Rooms of 8 players, one row each, until a row does not hold
    #[arg(long, value_delimiter = ',', default_values_t = [10, 20, 40, 60, 80, 100, 120, 160, 200, 240], value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rooms: Vec<u32>,
    /// Over what the players are connected
    #[arg(long, value_enum, default_value_t = ViaArg::Both)]
    pub via: ViaArg,
    /// How long each row is measured
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = seconds)]
    pub seconds: f64,
    /// How long a flush may wait for more messages, in ms
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=20))]
    pub quantum: u16,
    /// Cores of the server, with a shard on each; on a machine with no more, the generator shares the last
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub cores: u16,
    /// Say where the server's time goes, by perf: needs a build with `--profile profiling`
    #[arg(long)]
    pub parts: bool,
    /// Measure the same game on Colyseus beside: see bench/peers/README.md
    #[arg(long)]
    pub peers: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    /// Rooms of 8 members, instead of as many as make half a core of load
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rooms: Option<u32>,
    /// How often each relay is measured, in turns
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub turns: u32,
    /// How long each turn is measured
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = seconds)]
    pub seconds: f64,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct IdleArgs {
    /// Sessions, in rooms of 8
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub sessions: u32,
    /// How long they settle
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = seconds)]
    pub settle: f64,
    /// Over what they are connected; one row each
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Transport::Quic, Transport::Webtransport, Transport::Ws, Transport::Wss])]
    pub via: Vec<Transport>,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// Joins each second; without it, as many as one after the other reaches
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: Option<u32>,
    /// Rooms that are joined
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rooms: u32,
    /// Over what the members are connected
    #[arg(long, value_enum, default_value_t = ViaArg::Both)]
    pub via: ViaArg,
    /// How long each row is measured
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RoomsArgs {
    /// Rooms of 2 members, one row each
    #[arg(long, value_delimiter = ',', default_values_t = [200, 2_000, 10_000], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rooms: Vec<u32>,
    /// Ticks of 200 ms that are counted; a multiple of 5 holds whole seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub ticks: u32,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplicateArgs {
    /// What is measured
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Library::Parlor, Library::Engine, Library::BevyReplicon, Library::Lightyear])]
    pub of: Vec<Library>,
    /// Ticks each second; one row each
    #[arg(long, value_delimiter = ',', default_values_t = [30, 60], value_parser = clap::value_parser!(u16).range(5..=120))]
    pub hz: Vec<u16>,
    /// How many of 100 walkers move; one row each
    #[arg(long, value_delimiter = ',', default_values_t = [0, 10, 100], value_parser = clap::value_parser!(u32).range(..=100))]
    pub moving: Vec<u32>,
    /// Walkers
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=8_000))]
    pub entities: u32,
    /// Clients that receive all of it
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub clients: u32,
    /// How long each row is measured
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = seconds)]
    pub seconds: f64,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What shares a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Library {
    /// Parlor from end to end
    Parlor,
    /// Its state engine alone, in one process and without sockets
    Engine,
    /// bevy_replicon over renet
    BevyReplicon,
    /// lightyear over UDP
    Lightyear,
}

impl Library {
    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Library::Parlor => "parlor",
            Library::Engine => "parlor engine",
            Library::BevyReplicon => "bevy_replicon",
            Library::Lightyear => "lightyear",
        }
    }

    /// The binary of a peer.
    pub(crate) const fn binary(self) -> Option<&'static str> {
        match self {
            Library::Parlor | Library::Engine => None,
            Library::BevyReplicon => Some("replicon-walkers"),
            Library::Lightyear => Some("lightyear-walkers"),
        }
    }
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ServeWalkersArgs {
    /// Ticks each second
    #[arg(long)]
    pub hz: u16,
    /// Walkers
    #[arg(long)]
    pub entities: u32,
    /// How many of 100 walkers move
    #[arg(long)]
    pub moving: u32,
    /// What the walkers are drawn from
    #[arg(long)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CrowdArgs {
    /// Players, each an entity that moves
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub players: u32,
    /// How long each row is measured, in seconds of the world
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CubesArgs {
    /// Frames at 60 Hz
    #[arg(long, default_value_t = 1_200, value_parser = clap::value_parser!(u32).range(8..=36_000))]
    pub frames: u32,
    /// Scenes of other seeds, measured as well
    #[arg(long, value_name = "SEEDS", value_delimiter = ',', default_values_t = [2])]
    pub more_seeds: Vec<u64>,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LossArgs {
    /// How many packets of 100 are lost, each way; one row each
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1, 3, 10], value_parser = clap::value_parser!(u32).range(..=50))]
    pub loss: Vec<u32>,
    /// How long a packet takes, each way, in ms
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(..=1_000))]
    pub latency: u64,
    /// How long each row is measured
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    /// What is measured: streams over links that lose packets, links that carry less than is wanted, links that are cut
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [LossPart::Lossy, LossPart::Narrow, LossPart::Cut])]
    pub parts: Vec<LossPart>,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What is wrong with a link.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LossPart {
    /// It loses packets
    Lossy,
    /// It carries less than is wanted
    Narrow,
    /// It is cut for 3 s
    Cut,
}

impl LossPart {
    /// The word for it in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            LossPart::Lossy => "lossy",
            LossPart::Narrow => "narrow",
            LossPart::Cut => "cut",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct FeelArgs {
    /// Round trips between members and host, in ms, without jitter; one row each
    #[arg(long, value_delimiter = ',', default_values_t = [0, 40, 80, 150], value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub rtt: Vec<u32>,
    /// How well the links carry; every round trip with each
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Quality::Clean, Quality::Fair, Quality::Poor])]
    pub links: Vec<Quality>,
    /// How long each row is played, in seconds of the game
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HostlossArgs {
    /// Round trips between players and hub, in ms; one row each
    #[arg(long, value_delimiter = ',', default_values_t = [0, 50, 150], value_parser = clap::value_parser!(u64).range(..=1_000))]
    pub rtt: Vec<u64>,
    /// Hosts that die, each in a room of its own, for each row
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub deaths: u32,
    /// For how long the host may be silent at most, in ms; everything but the rows takes what a game has that sets nothing
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u64).range(100..=10_000))]
    pub silence: u64,
    /// How long a host that is there is looked at on a bad link, in minutes of the game
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub minutes: u32,
    /// Rooms whose hosts die, are cut off and come back
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub partitions: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// Entities of 64 bytes, all of which every step reads and writes; a pair of rows each. Few of them show what the session
    /// itself takes
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub entities: Vec<u32>,
    /// Steps of each turn; with each, eight are run again
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub steps: u32,
    /// How often each library is measured, in turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub turns: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SoakArgs {
    /// How long it goes on; Ctrl-C ends it early
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = minutes)]
    pub minutes: f64,
    /// Whether one address attacks: by turns, always or never
    #[arg(long, value_enum, default_value_t = AttackerArg::Both)]
    pub attacker: AttackerArg,
    /// How much honest load: so many times 3 rooms, 2 matches, 4 turn rooms, 4 who ask the services, 2 slow readers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub load: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Whether one address attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AttackerArg {
    /// Always
    On,
    /// Never
    Off,
    /// By turns, so that both are compared within one run
    Both,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DriveHubArgs {
    /// Rooms of 2 members
    #[arg(long)]
    pub rooms: u32,
    /// Ticks for which packets are made before
    #[arg(long)]
    pub prepare: u32,
    /// Ticks that the hub is driven
    #[arg(long)]
    pub ticks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViaArg {
    /// QUIC only
    Quic,
    /// WebSocket with TLS only
    Websocket,
    /// WebTransport only
    Webtransport,
    /// QUIC and WebSocket, one after the other
    Both,
    /// One after the other
    All,
}

impl ViaArg {
    /// What it stands for.
    pub(crate) fn transports(self) -> &'static [Transport] {
        match self {
            ViaArg::Quic => &[Transport::Quic],
            ViaArg::Websocket => &[Transport::Wss],
            ViaArg::Webtransport => &[Transport::Webtransport],
            ViaArg::Both => &[Transport::Quic, Transport::Wss],
            ViaArg::All => &[Transport::Quic, Transport::Webtransport, Transport::Wss],
        }
    }
}

/// Over what a member is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// QUIC
    Quic,
    /// WebTransport, as from a browser
    Webtransport,
    /// WebSocket without TLS, on this machine only
    Ws,
    /// WebSocket with TLS
    Wss,
    /// A server of this process, without a socket
    #[value(skip)]
    Memory,
}

impl Transport {
    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Transport::Quic => "quic",
            Transport::Webtransport => "webtransport",
            Transport::Ws => "ws",
            Transport::Wss => "wss",
            Transport::Memory => "memory",
        }
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.1..=3_600.0).contains(&seconds) { Ok(seconds) } else { Err("it may be 0.1 to 3600".to_owned()) }
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number of minutes".to_owned())?;
    if (0.02..=1_440.0).contains(&minutes) { Ok(minutes) } else { Err("it may be 0.02 to 1440".to_owned()) }
}
