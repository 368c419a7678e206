//! `parlor rooms`: rooms that can be joined from here.

use crate::args::RoomsArgs;
use anyhow::bail;
use parlor::Invite;
use parlor::lan::{Discovery, LanEvent, LanRoom, Network};
use parlor_terminal::nearby::LOOK_EVERY;
use parlor_terminal::print::{print_json, say};
use parlor_transport::discovery::registry::RoomEntry;
use parlor_transport::discovery::{Registry, ServerAddress};
use serde::Serialize;
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

/// A room as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    code: String,
    app: String,
    /// Where it was found: `local` is this machine.
    found: &'static str,
    /// Where its server is.
    server: String,
    /// Its seats, if known.
    players_max: Option<u16>,
    invite: String,
}

/// Runs the command.
///
/// # Errors
/// The local network cannot be listened to.
pub(crate) fn run(args: &RoomsArgs) -> anyhow::Result<()> {
    let is_wanted = |app: &str| args.app.as_deref().is_none_or(|wanted| wanted == app);
    let here = Registry::of_this_user().rooms();
    let mut rooms: Vec<Listed> =
        here.iter().filter(|room| is_wanted(&room.app)).map(on_this_machine).collect();
    if args.lan {
        let nearby = listen(args.app.as_deref(), Duration::from_secs_f64(args.seconds))?;
        let is_here = |room: &LanRoom| {
            here.iter().any(|own| own.code == room.code && Some(own.server.fingerprint) == fingerprint(room))
        };
        rooms.extend(nearby.iter().filter(|room| !is_here(room)).map(on_this_network));
    }
    if args.json {
        return print_json(&json!({ "command": "rooms", "rooms": rooms }));
    }
    if rooms.is_empty() {
        let advice = if args.lan { "" } else { "; --lan looks on the network as well" };
        say(&format!("no rooms{advice}"));
    }
    for Listed { code, app, found, server, invite, .. } in &rooms {
        say(&format!("{code:<12} {app:<16} {found:<5} {server:<24} {invite}"));
    }
    Ok(())
}

/// What is announced within a time.
fn listen(app: Option<&str>, time: Duration) -> anyhow::Result<Vec<LanRoom>> {
    let mut nearby = Discovery::start(Network::default(), app)?;
    let until = Instant::now() + time;
    while Instant::now() < until {
        match nearby.poll() {
            Some(LanEvent::Ended(error)) => bail!(error),
            Some(LanEvent::Found(_) | LanEvent::Lost(_)) => {}
            None => thread::sleep(LOOK_EVERY),
        }
    }
    Ok(nearby.rooms().cloned().collect())
}

fn fingerprint(room: &LanRoom) -> Option<parlor_transport::Fingerprint> {
    room.servers.first().and_then(|server| server.fingerprint)
}

fn on_this_machine(room: &RoomEntry) -> Listed {
    let fingerprint = Some(room.server.fingerprint);
    let server = ServerAddress { host: "127.0.0.1".into(), port: room.server.port, fingerprint };
    let invite = Invite { code: room.code, server: Some(server), secret: None };
    listed(&invite, &room.app, "local", None)
}

fn on_this_network(room: &LanRoom) -> Listed {
    listed(&room.invite(), &room.app, "lan", Some(room.players_max))
}

fn listed(invite: &Invite, app: &str, found: &'static str, players_max: Option<u16>) -> Listed {
    let place = |server: &ServerAddress| ServerAddress { fingerprint: None, ..server.clone() }.to_string();
    let server = invite.server.as_ref().map(place).unwrap_or_default();
    Listed {
        code: invite.code.to_string(),
        app: app.to_owned(),
        found,
        server,
        players_max,
        invite: invite.to_string(),
    }
}
