//! Reads of a room beside its content: its status, round trips and counters.

use super::RoomCore;
use crate::info::{Connectivity, Diagnostics, Mode, Role, RoomInfo, Scope, TransportPath};
use crate::migration::Migration;
use crate::options::{PathMode, Wish};
use parlor_proto::Epoch;
use parlor_proto::session::Session;
use std::time::Duration;

/// For a game: the status of the room.
impl RoomCore {
    /// Round trip to the hub; zero at the host, `None` until measured.
    pub fn ping(&self) -> Option<Duration> {
        if self.is_host() { Some(Duration::ZERO) } else { self.connection.session().and_then(Session::rtt) }
    }

    /// Round trip to the host: over the direct path while one is open, otherwise through the hub, by both ends'
    /// round trips to it. Zero at the host; `None` until measured, in a match, and if the host has no player.
    pub fn host_ping(&self) -> Option<Duration> {
        let joined = self.joined.as_ref()?;
        if joined.is_host() {
            return Some(Duration::ZERO);
        }
        let host = joined.welcome.authority.member()?;
        self.paths.rtt_to(host).or_else(|| {
            let of_host = joined.players.get(host)?.rtt_ms?;
            Some(self.ping()? + Duration::from_millis(of_host.into()))
        })
    }

    /// Whether a migration is under way: the new host was named and has not been heard.
    pub fn is_migrating(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.migration.is_under_way())
    }

    /// State of the room and its connection.
    pub fn info(&self) -> RoomInfo {
        let welcome = self.joined.as_ref().map(|joined| &joined.welcome);
        let mode = if self.options.paths == PathMode::P2p { Mode::P2p } else { self.mode };
        let migration = self.joined.as_ref().map(|joined| &joined.migration);
        let is_host = match welcome {
            Some(_) => self.is_host(),
            None => matches!(self.options.intent, Wish::Host { .. }),
        };
        let role = if is_host { Role::Host } else { Role::Client };
        let chosen = match self.options.intent {
            Wish::Host { code, .. } => code,
            Wish::Join { code } => Some(code).filter(|_| !self.is_code_unknown),
            Wish::Match { .. } | Wish::Resume { .. } => None,
        };
        let open = self.joined.as_ref().map(|joined| (&joined.shared, &joined.players));
        let (path, path_status) = self.paths.info(open);
        let scope = match path {
            Some(TransportPath::DirectUdp) => Scope::Direct,
            Some(TransportPath::LocalRoom) => Scope::Local,
            _ => self.found.as_ref().map_or(Scope::Internet, |found| found.scope),
        };
        RoomInfo {
            role,
            code: welcome.map(|welcome| welcome.code).or(chosen),
            room: welcome.map(|welcome| welcome.room),
            session: welcome.map(|welcome| welcome.session),
            local_id: self.local_id(),
            host_id: welcome.and_then(|welcome| welcome.authority.member()),
            epoch: welcome.map_or(Epoch::default(), |welcome| welcome.epoch),
            migrating: self.is_migrating(),
            migration_completed: migration.is_some_and(Migration::has_completed),
            previous_host: migration.and_then(|migration| migration.hosts().0),
            new_host: migration.and_then(|migration| migration.hosts().1),
            max_players: welcome.map(|welcome| welcome.max_players),
            scope,
            transport_path: path.unwrap_or(match (scope, self.joined.is_some()) {
                (Scope::Local, _) => TransportPath::LocalRoom,
                (Scope::Internet | Scope::Direct, true) => TransportPath::RelayRoom,
                (Scope::Internet | Scope::Direct, false) => TransportPath::RelayPending,
            }),
            transport_status: self.status.transport(
                self.joined.is_some(),
                path_status,
                self.is_host() && self.player_count() < 2,
            ),
            last_reason_code: self.status.last_reason(),
            requested_mode: mode,
            requested_paths: self.options.paths,
            peer_candidate: self.paths.peer_candidate(),
            join_path: self.found.as_ref().and_then(|found| found.join_path),
            connectivity: Connectivity {
                mode,
                coordinator: self.found.as_ref().map(|found| found.asked.clone()),
                relay: self.found.as_ref().map(|found| found.server.clone()),
                link: self.connection.link(),
            },
        }
    }

    /// Steps dropped because the game was behind, as in [`diagnostics`](Self::diagnostics).
    pub fn ticks_dropped(&self) -> u64 {
        self.joined.as_ref().map_or(0, |joined| joined.simulation.ticks_dropped())
    }

    /// Counters and measurements.
    pub fn diagnostics(&self) -> Diagnostics {
        let session = self.connection.session();
        let mut diagnostics = Diagnostics {
            rtt: session.and_then(Session::rtt),
            rtt_jitter: session.map(Session::rtt_jitter).unwrap_or_default(),
            session: session.map(Session::stats).unwrap_or_default(),
            events_dropped: self.inbox.dropped(),
            messages_unreadable: self.messages_unreadable,
            ..Diagnostics::default()
        };
        if let Some(joined) = &self.joined {
            joined.simulation.diagnose(joined.is_host(), &mut diagnostics);
            joined.shared.diagnose(&mut diagnostics);
            joined.shared.diagnose_prediction(&mut diagnostics);
        }
        diagnostics
    }
}
