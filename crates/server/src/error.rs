//! Errors of a server's start.

use crate::admission::KeyError;
use crate::identity::IdentitySourceError;
use core::net::SocketAddr;
use core::num::NonZeroU16;
use parlor_transport::discovery::AddressError;
use parlor_transport::quic::ListenError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a server could not start. No part of it is running then.
#[derive(Debug, Error)]
pub enum StartError {
    /// The TCP port could not be opened.
    #[error(
        "cannot listen on TCP {addr} (port {}): {error}. Is another server running there, and is the address this \
         machine's? Choose another port, or 0 for a free one", addr.port()
    )]
    Tcp {
        /// The address asked for.
        addr: SocketAddr,
        /// The operating system's error.
        error: io::Error,
    },
    /// The UDP port could not be opened.
    #[error(transparent)]
    Udp(#[from] ListenError),
    /// No number was free for both TCP and UDP.
    #[error("none of {tried} free TCP ports of {} was free on UDP too, the last one not because: {last}", last.addr.ip())]
    NoFreePort {
        /// How many were tried.
        tried: usize,
        /// Why the last one was not free.
        last: ListenError,
    },
    /// The shards need more port numbers than there are.
    #[error("{shards} shards need as many ports from {first} on, and 65535 is the last: choose a lower port")]
    TooFewPorts {
        /// The first port.
        first: u16,
        /// The number of shards.
        shards: NonZeroU16,
    },
    /// A thread could not be started.
    #[error("a thread of the server could not be started: {0}")]
    Thread(io::Error),
    /// There is no identity.
    #[error(transparent)]
    Identity(#[from] IdentitySourceError),
    /// There is no key to verify tokens with.
    #[error(transparent)]
    Admission(#[from] KeyError),
    /// Tokens are required, but none can be issued.
    #[error(
        "tokens are asked for and nobody can have one: name the key of whoever gives them out (--admission-key FILE), or a \
         folder for accounts, which get tickets (--data FOLDER)"
    )]
    NobodyMayCome,
    /// The port for monitoring could not be opened.
    #[error(
        "cannot listen on TCP {addr} for --metrics: {error}. Choose another port, or an address of this machine"
    )]
    Metrics {
        /// The address asked for.
        addr: SocketAddr,
        /// The operating system's error.
        error: io::Error,
    },
    /// The public host is not an address.
    #[error("the public host cannot stand in an invite: {0}")]
    PublicHost(AddressError),
    /// A web origin is invalid.
    #[error(
        "{text:?} is no origin of web pages: {why}. Give what a browser sends as Origin, for example https://game.example or \
         http://localhost:5173"
    )]
    WebOrigin {
        /// The configured origin.
        text: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The folder for room logs cannot be used.
    #[error("room logs cannot be written to {}: {error}. Name a folder that this user may write to", folder.display())]
    RoomLog {
        /// The folder.
        folder: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The operating system has no random numbers. Without them codes could be guessed.
    #[error("the operating system gives no random numbers: {0}")]
    NoRandomness(String),
}

/// A part of a running server stopped by itself, which is a defect. The server is of no further use: shut it
/// down.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the server's {part} stopped by itself: {detail}. Please report this with the log")]
pub struct ServerFailed {
    /// The part.
    pub part: &'static str,
    /// Known details.
    pub detail: String,
}
