//! Finding the room at an address, without a code: in this machine's registry, or among the rooms announced on the local network. Both
//! name the code and the fingerprint of the server, so the room that is joined is the one that was found.

use super::connect_options::ConnectOptions;
use super::failure::failure;
use super::places::on_this_machine;
use parlor_client_core::{ConnectFailure, ConnectFailureKind};
use parlor_proto::RoomCode;
use parlor_transport::connect;
use parlor_transport::discovery::ServerAddress;
use std::collections::BTreeMap;

/// A room that was found, and its server.
#[derive(Clone, Debug)]
pub(super) struct AtAddress {
    pub(super) code: RoomCode,
    pub(super) server: ServerAddress,
}

/// Finds the only room of an app at the address in the options.
///
/// # Errors
/// [`ConnectFailureKind`]: the name does not resolve, or there is no room or several.
pub(super) async fn find(
    app: &str,
    environment: &str,
    connect: &ConnectOptions,
) -> Result<AtAddress, ConnectFailure> {
    let at = connect.at.as_ref().expect("it is looked for at an address");
    let resolved = connect::resolve(&at.host, at.port).await.map_err(|error| failure(at, &error))?;
    let mut rooms: BTreeMap<RoomCode, ServerAddress> = BTreeMap::new();
    if resolved.iter().any(|addr| addr.ip().is_loopback()) {
        let here = connect.registry.rooms().into_iter();
        let here = here.filter(|room| room.app == app && room.server.port == at.port);
        rooms
            .extend(here.map(|room| (room.code, on_this_machine(room.server.port, room.server.fingerprint))));
    }
    #[cfg(feature = "lan")]
    if rooms.is_empty() {
        rooms = nearby::find((app, environment), at, &resolved, connect.lan.unwrap_or_default()).await?;
    }
    #[cfg(not(feature = "lan"))]
    let _ = environment;
    only(rooms).map_err(|codes| wrong(app, at, &codes))
}

/// The only room; otherwise the codes of all.
fn only(mut rooms: BTreeMap<RoomCode, ServerAddress>) -> Result<AtAddress, Vec<RoomCode>> {
    match (rooms.len(), rooms.pop_first()) {
        (1, Some((code, server))) => Ok(AtAddress { code, server }),
        (_, first) => Err(first.into_iter().chain(rooms).map(|(code, _)| code).collect()),
    }
}

fn wrong(app: &str, at: &ServerAddress, codes: &[RoomCode]) -> ConnectFailure {
    if codes.is_empty() {
        let how = if cfg!(feature = "lan") {
            "A room on another machine is found if its host announces it on the local network, without a secret"
        } else {
            "The feature `lan` of the crate `parlor` looks for rooms of other machines on the local network"
        };
        let detail = format!("no room of {app:?} is known at {at}. {how}. An invite link leads to any room");
        return ConnectFailure { kind: ConnectFailureKind::NoRoom, detail };
    }
    let list: Vec<String> = codes.iter().map(RoomCode::to_string).collect();
    let detail = format!(
        "{} rooms of {app:?} are at {at}: {}. Join one of them by its code",
        codes.len(),
        list.join(", ")
    );
    ConnectFailure { kind: ConnectFailureKind::SeveralRooms, detail }
}

/// Rooms that are announced on the local network.
#[cfg(feature = "lan")]
mod nearby {
    use super::*;
    use crate::driver::failure::disabled;
    use crate::lan::{DiscoverError, Discovery, LanEvent, Network};
    use std::net::{IpAddr, SocketAddr};
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    /// Time limit for an announcement: an announcer waits at most a second, and queries may be lost.
    const PATIENCE: Duration = Duration::from_secs(5);
    /// Time for the announcements of other rooms of the same server, after the first.
    const SETTLES: Duration = Duration::from_millis(500);
    /// How often is looked whether something came.
    const LOOK_EVERY: Duration = Duration::from_millis(20);

    pub(super) async fn find(
        (app, environment): (&str, &str),
        at: &ServerAddress,
        resolved: &[SocketAddr],
        network: Network,
    ) -> Result<BTreeMap<RoomCode, ServerAddress>, ConnectFailure> {
        let unheard = |error: &dyn std::fmt::Display| ConnectFailure {
            kind: ConnectFailureKind::NoRoom,
            detail: format!("no room of {app:?} is looked for at {at}: {error}"),
        };
        let mut nearby = Discovery::start(network, Some(app)).map_err(|error| match error {
            DiscoverError::Module(module) => disabled(module),
            DiscoverError::Lan(error) => unheard(&error),
        })?;
        let is_there = |server: &&ServerAddress| {
            let ip = server.host.parse::<IpAddr>().ok();
            server.port == at.port && resolved.iter().any(|addr| Some(addr.ip().to_canonical()) == ip)
        };
        let mut until = Instant::now() + PATIENCE;
        let mut rooms = BTreeMap::new();
        while Instant::now() < until {
            match nearby.poll() {
                Some(LanEvent::Found(room)) if room.environment == environment => {
                    let Some(server) = room.servers.iter().find(is_there) else { continue };
                    if rooms.insert(room.code, server.clone()).is_none() && rooms.len() == 1 {
                        until = Instant::now() + SETTLES;
                    }
                }
                Some(LanEvent::Lost(room)) => drop(rooms.remove(&room.code)),
                Some(LanEvent::Found(_)) => {}
                Some(LanEvent::Ended(error)) => return Err(unheard(&error)),
                None => sleep(LOOK_EVERY).await,
            }
        }
        Ok(rooms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_told_apart_is_named() {
        let at: ServerAddress = "192.168.1.7:7700".parse().expect("an address");
        let code = |text: &str| text.parse::<RoomCode>().expect("a code");
        let rooms = |codes: &[&str]| codes.iter().map(|text| (code(text), at.clone())).collect();
        assert_eq!(only(rooms(&["K7QM"])).expect("there is one").code, code("K7QM"));
        let failure = |codes| wrong("tanks", &at, &only(rooms(codes)).expect_err("there is none or several"));
        let none = failure(&[]);
        assert_eq!(none.kind, ConnectFailureKind::NoRoom);
        assert!(none.detail.contains("192.168.1.7:7700"), "{none}");
        let several = failure(&["K7QM", "ABCD"]);
        assert_eq!(several.kind, ConnectFailureKind::SeveralRooms);
        assert!(several.detail.contains("ABCD, K7QM"), "{several}");
    }
}
