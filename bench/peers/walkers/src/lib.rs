//! Measures a library that replicates a Bevy world: a server of a thousand walkers in one process, its clients in another,
//! and between them a network that lets acknowledgements come later. The library says how its server and its clients are
//! made; all else is the same for each.

// The walkers are those of Parlor's own bench, from its own file. How time and bytes are counted stands there as well, so that no
// peer is counted in another way.
#[allow(dead_code)] // Parlor's bench asks it for more.
#[path = "../../../../tools/bench/src/account.rs"]
mod account;
mod args;
mod client;
#[allow(dead_code)] // Parlor's bench asks it for more.
#[path = "../../../../tools/bench/src/network.rs"]
mod network;
#[allow(dead_code)] // Parlor's bench asks it for more.
#[path = "../../../../tools/bench/src/recording.rs"]
mod recording;
mod server;
#[allow(dead_code)] // What others need of it stands there too.
#[path = "../../../../tests/sim/src/walkers.rs"]
mod walkers;

pub use args::Setting;

use anyhow::bail;
use bevy::prelude::{App, Bundle, Component};
use serde::{Deserialize, Deserializer, Serialize};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A library that is measured.
pub trait Library {
    /// A server for these many clients that listens on `listen`. Each update of the app is a tick that is sent.
    ///
    /// # Errors
    /// What the library says.
    fn server(setting: &Setting, listen: SocketAddr) -> anyhow::Result<App>;

    /// A client that has begun to connect.
    ///
    /// # Errors
    /// What the library says.
    fn client(setting: &Setting, number: u64, server: SocketAddr) -> anyhow::Result<App>;

    /// What makes an entity one that is replicated to all clients.
    fn replicated() -> impl Bundle;
}

/// Where a walker stands: what is replicated, with the resolution that Parlor's schema of walkers has. Floats would cost
/// these libraries more.
#[derive(Clone, Component, Debug, PartialEq, Eq, Serialize)]
pub struct Pose {
    /// In 1/512 m, from 0.
    position: [u32; 3],
    /// A quaternion: which part is the largest in 2 bits, the three others in 9 bits each.
    rotation: u32,
}

/// How often a pose was decoded in this process.
static POSES_DECODED: AtomicU64 = AtomicU64::new(0);

impl<'de> Deserialize<'de> for Pose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            position: [u32; 3],
            rotation: u32,
        }
        let Wire { position, rotation } = Wire::deserialize(deserializer)?;
        POSES_DECODED.fetch_add(1, Ordering::Relaxed);
        Ok(Pose { position, rotation })
    }
}

/// What the binary of each library does: `server` or `load`, with options; see [`Setting`].
///
/// # Errors
/// What kept it from measuring.
pub fn run<L: Library>() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let role = words.next().unwrap_or_default();
    let setting = Setting::parse(words)?;
    match role.as_str() {
        "server" => server::run::<L>(&setting),
        "load" => client::run::<L>(&setting),
        _ => bail!("the first word is `server` or `load`, not {role:?}"),
    }
}
