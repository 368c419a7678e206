//! Options of the benches of services.

use super::{CommonArgs, seconds};
use clap::{Args, ValueEnum};
use serde::Serialize;

#[derive(Debug, Args)]
pub(crate) struct TurnsArgs {
    /// Rooms of two players
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    pub rooms: u32,
    /// How many ask at the same time, each one move after the other
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub connections: u32,
    /// How long it is measured
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    /// Give the server one core, apart from the clients, instead of the whole machine
    #[arg(long)]
    pub one_core: bool,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MovesArgs {
    /// An empty PostgreSQL database: postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "PARLOR_POSTGRES")]
    pub store: String,
    /// Rooms
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rooms: u32,
    /// Members of each room
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=32))]
    pub members: u16,
    /// How often all rooms move
    #[arg(long, default_value_t = 20)]
    pub rounds: u16,
    /// How often the node that has the rooms is killed
    #[arg(long, default_value_t = 10)]
    pub kills: u16,
    /// Steps of the games in each second
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..=120))]
    pub step_hz: u16,
    /// Round trips that are added at the members, in ms, two rows each
    #[arg(long, value_delimiter = ',', default_values_t = [0, 40])]
    pub rtt: Vec<u64>,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What the bench of a second node measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClusterPart {
    /// Processor time of servers that nobody uses, in percent of a core and for each server.
    Idle,
    /// Processor time for each message that a member receives, in microseconds.
    Relay,
    /// Moves in turn rooms that are stored each second.
    Turns,
    /// Time until a player of a turn room hears what another one says, in milliseconds.
    Notices,
}

impl ClusterPart {
    const ALL: [ClusterPart; 4] =
        [ClusterPart::Idle, ClusterPart::Relay, ClusterPart::Turns, ClusterPart::Notices];
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// An empty PostgreSQL database: postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "PARLOR_POSTGRES")]
    pub store: String,
    /// The bus of the two nodes: nats://HOST:PORT. Default: the database
    #[arg(long, value_name = "URL")]
    pub bus: Option<String>,
    /// What is measured
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',', default_values_t = ClusterPart::ALL)]
    pub parts: Vec<ClusterPart>,
    /// How often each part is measured with each kind of servers, in turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub turns: u16,
    /// How long each row is measured
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    /// Rooms of 8 members for the relay
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub relay_rooms: u32,
    /// Turn rooms of two players
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    pub turn_rooms: u32,
    /// How many move at the same time, each one move after the other
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub connections: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BoardsArgs {
    /// Entries of the board before it begins
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub entries: u32,
    /// How many ask at the same time, each one score after the other
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub connections: u32,
    /// How long it is measured
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    /// Give the server one core, apart from the clients, instead of the whole machine
    #[arg(long)]
    pub one_core: bool,
    /// Measure Redis on the same machine as well, if it is installed
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RanksArgs {
    /// Entries, one row each
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000, 10_000_000], value_parser = clap::value_parser!(u32).range(1..=30_000_000))]
    pub entries: Vec<u32>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MatchmakerArgs {
    /// Tickets that wait and that nobody fits
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(0..=150_000))]
    pub tickets: u32,
    /// Searches that come each second beside them
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub rate: u32,
    /// Virtual seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(10..=600))]
    pub seconds: u32,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LobbiesArgs {
    /// Lobbies, three rows each
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 20_000], value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub lobbies: Vec<u32>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}
