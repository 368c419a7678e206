//! Finding a room on the local network by its code.

use crate::connect_options::ConnectArgs;
use anyhow::{Context, bail};
use parlor::RoomCode;
use parlor::lan::{self, LanEvent};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for a room's answer: an announcer waits at most a second, and queries may be lost.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked whether something came.
pub const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What leads to the room that a player wants to join: what was given, or with --lan an invite to the room nearby that has the
/// code.
///
/// # Errors No such room is announced nearby.
pub fn invite(app: &str, given: &str, connect: &ConnectArgs) -> anyhow::Result<String> {
    // What is no code is told by whoever is given it; a link says itself where it leads.
    let Some(code) = connect.lan.then(|| given.trim().parse::<RoomCode>().ok()).flatten() else {
        return Ok(given.to_owned());
    };
    let mut nearby = lan::discover(app).context("no room can be looked for")?;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match nearby.poll() {
            Some(LanEvent::Found(room)) if room.code == code => return Ok(room.invite().to_string()),
            Some(LanEvent::Found(_) | LanEvent::Lost(_)) => {}
            Some(LanEvent::Ended(error)) => bail!(error),
            None => thread::sleep(LOOK_EVERY),
        }
    }
    bail!(
        "no room {code} of {app} is announced on this network. Its host plays with --lan and without a secret, on the same \
         network, and that network must pass multicast (many for guests do not); an invite link leads there without"
    )
}
