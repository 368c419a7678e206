//! From the command line to a room's builder.

use anyhow::Context;
use clap::{Args, ValueEnum};
use parlor::{Impairment, PathMode, RoomBuilder, TransportPreference};
use std::path::PathBuf;

/// The room to join, given the same way to every program: as its argument, or by `--join`.
#[derive(Clone, Debug, Default, Args)]
pub struct JoinArgs {
    /// The room to join: its code, invite link, page (https://HOST/join/CODE) or id
    #[arg(value_name = "CODE|LINK|ID")]
    room: Option<String>,
    /// The same, as an option
    #[arg(long, alias = "room", value_name = "CODE|LINK|ID", conflicts_with = "room")]
    join: Option<String>,
}

impl JoinArgs {
    /// The room to join, if one was given.
    pub fn room(&self) -> Option<&str> {
        self.room.as_deref().or(self.join.as_deref())
    }
}

/// Options that say where a room is, and how it is reached.
#[derive(Clone, Debug, Args)]
pub struct ConnectArgs {
    /// Server: HOST, HOST:PORT or HOST:PORT#FINGERPRINT [default: $PARLOR_SERVER, then this machine]
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,
    /// Play on the local network: a host starts its own server and announces the room, unless it has a secret; a
    /// guest finds it by its code. See docs/lan.md
    #[arg(long, conflicts_with = "server")]
    pub lan: bool,
    /// Secret of the room, beside its code
    #[arg(long, env = "PARLOR_SECRET", value_name = "SECRET")]
    pub secret: Option<String>,
    /// Transports to try
    #[arg(long, value_enum, default_value_t = TransportArg::Auto)]
    pub via: TransportArg,
    /// Direct paths to try between guest and host. They show each end the other's addresses
    #[arg(long, value_enum, default_value_t = PathArg::Relay)]
    pub path: PathArg,
    /// Root certificates (PEM) that verify the server
    #[arg(long, env = "PARLOR_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Simulate a bad network at this end, such as latency=80ms,jitter=20ms,loss=3%; see docs/impair.md
    #[arg(long, env = "PARLOR_IMPAIR", value_name = "SPEC")]
    pub impair: Option<Impairment>,
    /// Log all packets of this end into a file, for `parlor dump`; one of that name is overwritten
    #[arg(long, value_name = "FILE")]
    pub packet_log: Option<PathBuf>,
}

/// Direct paths that are tried: see [`PathMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PathArg {
    /// A direct path, and the server where there is none
    Auto,
    /// A direct path or none of the room: a guest without one leaves
    P2p,
    /// As `auto`, and a direct path to each other player that wants the same
    Mesh,
    /// A direct path within the local network only
    Local,
    /// No direct path: everything goes through the server, and no player learns another's address
    Relay,
}

/// Transports that are tried: see [`TransportPreference`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TransportArg {
    /// QUIC, and WebSocket where QUIC gets no answer
    Auto,
    /// QUIC only
    Quic,
    /// WebSocket only
    Websocket,
}

/// The name of a player: the given one, or the user's.
pub fn name(given: Option<&str>) -> String {
    let user = || std::env::var("USER").or_else(|_| std::env::var("USERNAME")).ok();
    given.map(str::to_owned).or_else(user).unwrap_or_default()
}

/// Applies the options to a room's builder.
///
/// # Errors
/// What is wrong with an option: a file that cannot be read, or a server or secret that cannot be used.
pub fn apply<K>(mut builder: RoomBuilder<K>, args: &ConnectArgs) -> anyhow::Result<RoomBuilder<K>> {
    if let Some(server) = &args.server {
        builder = builder.server(server);
    }
    if let Some(secret) = &args.secret {
        builder = builder.secret(secret);
    }
    if let Some(file) = &args.ca {
        let pem = std::fs::read_to_string(file)
            .with_context(|| format!("the certificates in {} cannot be read", file.display()))?;
        builder = builder.roots(&pem);
    }
    if let Some(impairment) = args.impair {
        builder = builder.impairment(impairment);
    }
    if let Some(file) = &args.packet_log {
        builder = builder.packet_log(file);
    }
    builder = builder.transport(match args.via {
        TransportArg::Auto => TransportPreference::Auto,
        TransportArg::Quic => TransportPreference::Quic,
        TransportArg::Websocket => TransportPreference::WebSocket,
    });
    builder = builder.paths(match args.path {
        PathArg::Auto => PathMode::Auto,
        PathArg::P2p => PathMode::P2p,
        PathArg::Mesh => PathMode::Mesh,
        PathArg::Local => PathMode::Local,
        PathArg::Relay => PathMode::Relay,
    });
    builder.check()?;
    Ok(builder)
}
