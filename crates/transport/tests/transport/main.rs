//! Every link fulfils its contract, over real sockets.

#[path = "../common/mod.rs"]
mod common;
mod contract;
mod direct;
mod engine;
mod impaired;
#[cfg(feature = "lan")]
mod lan;
mod quic;
mod rate;
mod websocket;
mod webtransport;
