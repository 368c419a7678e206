//! From the command line to a room's builder.

use crate::args::{HeadlessArgs, PathArg, ReachArgs, ViaArg};
use crate::report::HASH_EVERY;
use anyhow::Context;
use parlor::{PathMode, RoomBuilder, Via};

/// What may call a player who has said nothing: the name of the user.
pub(crate) fn name(given: Option<&str>) -> String {
    let user = || std::env::var("USER").or_else(|_| std::env::var("USERNAME")).ok();
    given.map(str::to_owned).or_else(user).unwrap_or_default()
}

/// Applies what the command line says about the server and the report.
pub(crate) fn apply(
    builder: RoomBuilder,
    reach: &ReachArgs,
    headless: &HeadlessArgs,
) -> anyhow::Result<RoomBuilder> {
    connect(builder.hash_every(headless.hash_at.unwrap_or(HASH_EVERY)), reach)
}

/// Applies what the command line says about the server.
pub(crate) fn connect(mut builder: RoomBuilder, reach: &ReachArgs) -> anyhow::Result<RoomBuilder> {
    if let Some(server) = &reach.server {
        builder = builder.server(server);
    }
    if let Some(secret) = &reach.secret {
        builder = builder.secret(secret);
    }
    if let Some(file) = &reach.ca {
        let pem = std::fs::read_to_string(file)
            .with_context(|| format!("the certificates in {} cannot be read", file.display()))?;
        builder = builder.roots(&pem);
    }
    if let Some(impairment) = reach.impair {
        builder = builder.impairment(impairment);
    }
    builder = builder.via(match reach.via {
        ViaArg::Auto => Via::Auto,
        ViaArg::Quic => Via::Quic,
        ViaArg::Websocket => Via::WebSocket,
    });
    builder = builder.paths(match reach.path {
        PathArg::Auto => PathMode::Auto,
        PathArg::P2p => PathMode::P2p,
        PathArg::Local => PathMode::Local,
        PathArg::Relay => PathMode::Relay,
    });
    builder.check()?;
    Ok(builder)
}
