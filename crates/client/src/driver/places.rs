//! Which servers to try for a room, in which order (A5, A6).

use super::connect_options::ConnectOptions;
use parlor_client_core::{ConnectFailure, ConnectFailureKind, Found, JoinPath, Mode, Scope};
use parlor_proto::RoomCode;
use parlor_proto::wire::path::is_of_local_network;
use parlor_transport::discovery::{Registry, ServerAddress};
use std::env;

/// A server to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) address: ServerAddress,
    pub(super) found: Found,
}

impl Place {
    /// A place to ask for a room. Its address is of the local network if it says so; of a name that is known once it is reached.
    pub(super) fn new(address: ServerAddress, join_path: Option<JoinPath>) -> Self {
        let is_local = address.is_loopback() || address.host.parse().is_ok_and(is_of_local_network);
        let scope = if is_local { Scope::Local } else { Scope::Internet };
        let server = ServerAddress { fingerprint: None, ..address.clone() }.to_string();
        Place { address, found: Found { asked: server.clone(), server, scope, join_path } }
    }

    /// A place that the server at this one names.
    pub(super) fn sends_to(self, address: ServerAddress) -> Self {
        let Place { address, found } = Place::new(address, self.found.join_path);
        Place { address, found: Found { asked: self.found.asked, ..found } }
    }
}

/// The environment variable that names the server to use.
pub(super) const SERVER_VARIABLE: &str = "PARLOR_SERVER";

/// Where a room can be opened.
pub(super) fn for_host(connect: &ConnectOptions, registry: &Registry) -> Result<Vec<Place>, ConnectFailure> {
    if let Some(server) = configured(connect)? {
        return Ok(vec![known(server, registry, None)]);
    }
    let here = registry.servers().first().map(|entry| on_this_machine(entry.port, entry.fingerprint));
    match here {
        Some(address) if connect.mode != Mode::Relay => Ok(vec![Place::new(address, None)]),
        _ => Err(no_server("no server was found to open a room on")),
    }
}

/// Whether a server is named, or runs on this machine for the rooms of all.
#[cfg(feature = "server")]
pub(super) fn is_there_a_server(
    connect: &ConnectOptions,
    registry: &Registry,
) -> Result<bool, ConnectFailure> {
    Ok(configured(connect)?.is_some() || !registry.servers().is_empty())
}

/// Where the room of `app` with this code may be. The registry of this machine comes first, then the configured server: two games may
/// have rooms with the same code.
pub(super) fn for_guest(
    connect: &ConnectOptions,
    app: &str,
    code: RoomCode,
    registry: &Registry,
) -> Result<Vec<Place>, ConnectFailure> {
    if let Some(server) = &connect.server {
        return Ok(vec![known(server.clone(), registry, Some(JoinPath::InternetExplicit))]);
    }
    let mut places = Vec::new();
    let here = registry.room(code).filter(|_| connect.mode != Mode::Relay);
    if let Some(entry) = here.as_ref().filter(|entry| entry.app == app) {
        let address = on_this_machine(entry.server.port, entry.server.fingerprint);
        places.push(Place::new(address, Some(JoinPath::Local)));
    }
    if let Some(server) = configured(connect)? {
        places.push(known(server, registry, Some(JoinPath::InternetFallback)));
    }
    if places.is_empty() {
        return Err(no_server(&match here {
            Some(entry) => format!(
                "the room {code} on this machine is of the game {:?} and not of {app:?}, and no server is configured",
                entry.app
            ),
            None => format!("no room {code} was found on this machine, and no server is configured"),
        }));
    }
    Ok(places)
}

/// The server that the game, the environment or the settings file names, in this order; `None` if they name none or
/// only this machine shall do.
fn configured(connect: &ConnectOptions) -> Result<Option<ServerAddress>, ConnectFailure> {
    if connect.server.is_some() {
        return Ok(connect.server.clone());
    }
    if connect.mode == Mode::Local {
        return Ok(None);
    }
    match env::var(SERVER_VARIABLE) {
        Ok(text) if !text.trim().is_empty() => {
            text.trim().parse().map(Some).map_err(|error| ConnectFailure {
                kind: ConnectFailureKind::BadAddress,
                detail: format!("{SERVER_VARIABLE} is wrong: {error}"),
            })
        }
        _ => Ok(connect.server_of_file.clone()),
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

pub(super) fn on_this_machine(port: u16, fingerprint: parlor_transport::Fingerprint) -> ServerAddress {
    ServerAddress { host: "127.0.0.1".into(), port, fingerprint: Some(fingerprint) }
}

fn no_server(what: &str) -> ConnectFailure {
    ConnectFailure {
        kind: ConnectFailureKind::NoServer,
        detail: format!(
            "{what}. Start one on this machine with `parlor serve`, or name one: set {SERVER_VARIABLE}=HOST, pass it \
             to the room, or join by an invite link, which carries its server. A game that hosts can bring its own: \
             the feature `server` of the crate `parlor`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_transport::Fingerprint;

    fn connect(mode: Mode, server: Option<&str>) -> ConnectOptions {
        let server = server.map(|text| text.parse().expect("an address"));
        ConnectOptions { mode, server, ..ConnectOptions::default() }
    }

    #[test]
    fn a_room_on_this_machine_comes_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let code: RoomCode = "K7QM".parse().expect("a code");
        let failure =
            for_guest(&connect(Mode::Local, None), "tanks", code, &registry).expect_err("nothing is there");
        assert_eq!(failure.kind, ConnectFailureKind::NoServer);
        assert!(failure.detail.contains("K7QM") && failure.detail.contains("PARLOR_SERVER"), "{failure}");

        let print = Fingerprint([5; 32]);
        let _entry = registry.enter_room(code, "tanks", 9_000, print).expect("the folder is ours");
        let places =
            for_guest(&connect(Mode::Local, None), "tanks", code, &registry).expect("the room is there");
        assert_eq!(places[0].found.join_path, Some(JoinPath::Local));
        assert_eq!(places[0].address.fingerprint, Some(print));
        let explicit = for_guest(&connect(Mode::Auto, Some("play.example.com")), "tanks", code, &registry)
            .expect("it is named");
        assert_eq!(explicit[0].found.join_path, Some(JoinPath::InternetExplicit));
        assert_eq!(explicit[0].found.scope, Scope::Internet);
        assert!(for_guest(&connect(Mode::Relay, None), "tanks", code, &registry).is_err());
    }

    #[test]
    fn a_room_of_another_game_on_this_machine_is_passed_by() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let code: RoomCode = "K7QM".parse().expect("a code");
        let _entry = registry.enter_room(code, "chess", 9_000, Fingerprint([5; 32])).expect("it is ours");
        let failure = for_guest(&connect(Mode::Local, None), "tanks", code, &registry).expect_err("not ours");
        assert!(failure.detail.contains("chess") && failure.detail.contains("tanks"), "{failure}");
        assert!(for_guest(&connect(Mode::Local, None), "chess", code, &registry).is_ok());
    }

    #[test]
    fn a3_a_server_of_the_local_network_is_local() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let scope = |server: &str| {
            let places = for_host(&connect(Mode::Auto, Some(server)), &registry).expect("it is named");
            places[0].found.scope
        };
        for near in ["192.168.1.7:7700", "10.0.0.4", "169.254.3.3", "[fd00::7]:7700", "localhost"] {
            assert_eq!(scope(near), Scope::Local, "{near}");
        }
        for far in ["203.0.113.4", "play.example.com", "[2001:db8::1]:7700"] {
            assert_eq!(scope(far), Scope::Internet, "{far}");
        }
    }

    #[test]
    fn a_server_on_this_machine_is_known_by_its_port() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let print = Fingerprint([5; 32]);
        let _entry = registry.enter_server(9_000, print).expect("the folder is ours");
        let places = for_host(&connect(Mode::Auto, Some("127.0.0.1:9000")), &registry).expect("it is named");
        assert_eq!(places[0].address.fingerprint, Some(print));
        let places = for_host(&connect(Mode::Auto, None), &registry).expect("it is found");
        assert_eq!(places[0].address.port, 9_000);
        assert!(for_host(&connect(Mode::Relay, None), &registry).is_err());
    }
}
