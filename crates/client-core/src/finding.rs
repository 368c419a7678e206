//! Where the room's server is, as far as a driver has found it.

use crate::info::{Connectivity, JoinPath, Mode, Scope, TransportPath};
use crate::options::PathMode;
use core::net::SocketAddr;
use parlor_proto::LinkKind;
use parlor_proto::wire::path::is_of_local_network;

/// Where a driver found the room's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its address, for a person to read.
    pub server: String,
    /// The address of the server that was asked for the room. It may have sent this process to another one.
    pub asked: String,
    /// Where it runs.
    pub scope: Scope,
    /// How a joining process found the room.
    pub join_path: Option<JoinPath>,
}

/// The search for the server of a room.
#[derive(Debug)]
pub(crate) struct Finding {
    mode: Mode,
    found: Option<Found>,
    /// Whether the code of the room to join is not known yet, only its server's address.
    is_code_unknown: bool,
}

impl Finding {
    pub(crate) fn new(mode: Mode) -> Self {
        Finding { mode, found: None, is_code_unknown: false }
    }

    /// Notes the server that is tried.
    pub(crate) fn found(&mut self, found: Found) {
        self.found = Some(found);
    }

    /// Notes whether the room's code is known.
    pub(crate) fn knows_code(&mut self, is_known: bool) {
        self.is_code_unknown = !is_known;
    }

    pub(crate) fn is_code_known(&self) -> bool {
        !self.is_code_unknown
    }

    /// Notes the address at which the server is reached.
    pub(crate) fn reached_at(&mut self, remote: SocketAddr) {
        if let Some(found) = self.found.as_mut().filter(|_| is_of_local_network(remote.ip())) {
            found.scope = Scope::Local;
        }
    }

    /// Where the other end is, and the way to it. `path` is the way of a direct path, if there is one.
    pub(crate) fn way(&self, path: Option<TransportPath>, is_open: bool) -> (Scope, TransportPath) {
        let scope = match path {
            Some(TransportPath::DirectUdp) => Scope::Direct,
            Some(TransportPath::LocalRoom) => Scope::Local,
            _ => self.found.as_ref().map_or(Scope::Internet, |found| found.scope),
        };
        let relayed = match (scope, is_open) {
            (Scope::Local, _) => TransportPath::LocalRoom,
            (Scope::Internet | Scope::Direct, true) => TransportPath::RelayRoom,
            (Scope::Internet | Scope::Direct, false) => TransportPath::RelayPending,
        };
        (scope, path.unwrap_or(relayed))
    }

    /// How a joining process found the room.
    pub(crate) fn join_path(&self) -> Option<JoinPath> {
        self.found.as_ref().and_then(|found| found.join_path)
    }

    /// The server, for a game that wants `paths`, and the link to it.
    pub(crate) fn connectivity(&self, paths: PathMode, link: Option<LinkKind>) -> Connectivity {
        Connectivity {
            mode: if paths == PathMode::P2p { Mode::P2p } else { self.mode },
            coordinator: self.found.as_ref().map(|found| found.asked.clone()),
            relay: self.found.as_ref().map(|found| found.server.clone()),
            link,
        }
    }
}
