//! Which servers to try for a room, in which order (A5, A6).

use super::reach::Reach;
use crate::core::{ConnectFailure, ConnectFailureKind, Found, JoinPath, Mode, Scope};
use parlor_proto::RoomCode;
use parlor_transport::discovery::{Registry, ServerAddress};
use std::env;

/// A server to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) address: ServerAddress,
    pub(super) found: Found,
}

impl Place {
    pub(super) fn new(address: ServerAddress, join_path: Option<JoinPath>) -> Self {
        let scope = if address.is_loopback() { Scope::Local } else { Scope::Internet };
        let server = ServerAddress { fingerprint: None, ..address.clone() }.to_string();
        Place { address, found: Found { server, scope, join_path } }
    }
}

/// The environment variable that names the server to use.
pub(super) const SERVER_VARIABLE: &str = "PARLOR_SERVER";

/// Where a room can be opened.
pub(super) fn for_host(reach: &Reach, registry: &Registry) -> Result<Vec<Place>, ConnectFailure> {
    if let Some(server) = configured(reach)? {
        return Ok(vec![known(server, registry, None)]);
    }
    let here = registry.servers().first().map(|entry| on_this_machine(entry.port, entry.fingerprint));
    match here {
        Some(address) if reach.mode != Mode::Relay => Ok(vec![Place::new(address, None)]),
        _ => Err(no_server("no server was found to open a room on")),
    }
}

/// Where the room with this code may be. The registry of this machine comes first, then the configured server.
pub(super) fn for_guest(
    reach: &Reach,
    code: RoomCode,
    registry: &Registry,
) -> Result<Vec<Place>, ConnectFailure> {
    if let Some(server) = &reach.server {
        return Ok(vec![known(server.clone(), registry, Some(JoinPath::InternetExplicit))]);
    }
    let mut places = Vec::new();
    if reach.mode != Mode::Relay
        && let Some(entry) = registry.room(code)
    {
        let address = on_this_machine(entry.server.port, entry.server.fingerprint);
        places.push(Place::new(address, Some(JoinPath::Local)));
    }
    if let Some(server) = configured(reach)? {
        places.push(known(server, registry, Some(JoinPath::InternetFallback)));
    }
    if places.is_empty() {
        return Err(no_server(&format!(
            "no room {code} was found on this machine, and no server is configured"
        )));
    }
    Ok(places)
}

/// The server that the game or the environment names; `None` if they name none or only this machine shall do.
fn configured(reach: &Reach) -> Result<Option<ServerAddress>, ConnectFailure> {
    if reach.server.is_some() {
        return Ok(reach.server.clone());
    }
    if reach.mode == Mode::Local {
        return Ok(None);
    }
    match env::var(SERVER_VARIABLE) {
        Ok(text) if !text.trim().is_empty() => {
            text.trim().parse().map(Some).map_err(|error| ConnectFailure {
                kind: ConnectFailureKind::BadAddress,
                detail: format!("{SERVER_VARIABLE} is wrong: {error}"),
            })
        }
        _ => Ok(None),
    }
}

/// Adds the fingerprint of a server on this machine, which its registry knows.
fn known(address: ServerAddress, registry: &Registry, join_path: Option<JoinPath>) -> Place {
    let fingerprint = match address.fingerprint {
        None if address.is_loopback() => registry.server(address.port).map(|entry| entry.fingerprint),
        given => given,
    };
    Place::new(ServerAddress { fingerprint, ..address }, join_path)
}

fn on_this_machine(port: u16, fingerprint: parlor_transport::Fingerprint) -> ServerAddress {
    ServerAddress { host: "127.0.0.1".into(), port, fingerprint: Some(fingerprint) }
}

fn no_server(what: &str) -> ConnectFailure {
    ConnectFailure {
        kind: ConnectFailureKind::NoServer,
        detail: format!(
            "{what}. Start one on this machine with `parlor serve`, or name one: set {SERVER_VARIABLE}=HOST, pass it \
             to the room, or join by an invite link, which carries its server"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_transport::Fingerprint;

    fn reach(mode: Mode, server: Option<&str>) -> Reach {
        let server = server.map(|text| text.parse().expect("an address"));
        Reach { mode, server, ..Reach::default() }
    }

    #[test]
    fn a_room_on_this_machine_comes_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let code: RoomCode = "K7QM".parse().expect("a code");
        let failure = for_guest(&reach(Mode::Local, None), code, &registry).expect_err("nothing is there");
        assert_eq!(failure.kind, ConnectFailureKind::NoServer);
        assert!(failure.detail.contains("K7QM") && failure.detail.contains("PARLOR_SERVER"), "{failure}");

        let print = Fingerprint([5; 32]);
        let _entry = registry.enter_room(code, "tanks", 9_000, print).expect("the folder is ours");
        let places = for_guest(&reach(Mode::Local, None), code, &registry).expect("the room is there");
        assert_eq!(places[0].found.join_path, Some(JoinPath::Local));
        assert_eq!(places[0].address.fingerprint, Some(print));
        let explicit =
            for_guest(&reach(Mode::Auto, Some("play.example.com")), code, &registry).expect("it is named");
        assert_eq!(explicit[0].found.join_path, Some(JoinPath::InternetExplicit));
        assert_eq!(explicit[0].found.scope, Scope::Internet);
        assert!(for_guest(&reach(Mode::Relay, None), code, &registry).is_err());
    }

    #[test]
    fn a_server_on_this_machine_is_known_by_its_port() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let print = Fingerprint([5; 32]);
        let _entry = registry.enter_server(9_000, print).expect("the folder is ours");
        let places = for_host(&reach(Mode::Auto, Some("127.0.0.1:9000")), &registry).expect("it is named");
        assert_eq!(places[0].address.fingerprint, Some(print));
        let places = for_host(&reach(Mode::Auto, None), &registry).expect("it is found");
        assert_eq!(places[0].address.port, 9_000);
        assert!(for_host(&reach(Mode::Relay, None), &registry).is_err());
    }
}
