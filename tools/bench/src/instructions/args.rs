//! The options of the bench.

use crate::args::CommonArgs;
use clap::{Args, ValueEnum};
use serde::Serialize;

#[derive(Debug, Args)]
pub(crate) struct InstructionsArgs {
    /// Seconds of play that are counted; as many before them are not
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub seconds: u32,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PlayRoomArgs {
    /// What members do
    #[arg(long)]
    pub play: Play,
    /// Their links
    #[arg(long)]
    pub link: RoomLink,
    /// Seconds of play after the warm-up
    #[arg(long)]
    pub seconds: u32,
    /// Where phases and delays are drawn from
    #[arg(long)]
    pub seed: u64,
}

/// The link between a member and the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoomLink {
    /// Datagrams and streams
    Quic,
    /// One stream for everything
    Websocket,
}

impl RoomLink {
    pub(super) fn name(self) -> &'static str {
        match self {
            RoomLink::Quic => "quic",
            RoomLink::Websocket => "websocket",
        }
    }
}

/// What members do in each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Play {
    /// Each sends one message to all others
    Messages,
    /// One shares a world of 24 moving entities, and all send inputs
    World,
}

impl Play {
    pub(super) const ALL: [Play; 2] = [Play::Messages, Play::World];

    pub(super) fn name(self) -> &'static str {
        match self {
            Play::Messages => "messages",
            Play::World => "world",
        }
    }
}
