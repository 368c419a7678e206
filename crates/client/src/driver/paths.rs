//! Direct paths: opens what the core wants opened, and carries its packets, each path in a task of its own.

use super::handle::Handle;
use super::link_pump::{GOODBYE_PATIENCE, PacketEndpoint, pump};
use parlor_client_core::{PathCommand, PathId, PathRole, RoomCore};
use parlor_proto::{Instant, LinkKind, Packet};
use parlor_transport::direct::{Attempt, Direct, Role};
use parlor_transport::quic::Dialer;
use parlor_transport::{Fingerprint, Identity, LinkSender};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The direct paths of a room.
#[derive(Debug)]
pub(super) struct Paths {
    shared: Arc<Handle>,
    direct: Direct,
    /// Where the hub was reached last.
    hub: Mutex<SocketAddr>,
}

impl Paths {
    /// Paths from the sockets of this dialer, under an identity of their own: nobody can tell by it who was in another room.
    pub(super) fn new(shared: &Arc<Handle>, dialer: &Arc<Dialer>) -> Self {
        Paths {
            shared: Arc::clone(shared),
            direct: Direct::new(Arc::clone(dialer), &Identity::of_player()),
            hub: Mutex::new((Ipv4Addr::UNSPECIFIED, 0).into()),
        }
    }

    /// Tells the core where this process may be found: right before a connection to the hub is told of.
    pub(super) fn offer(&self, core: &mut RoomCore, to_hub: &LinkSender) {
        *self.hub.lock().unwrap_or_else(PoisonError::into_inner) = to_hub.remote();
        // Where the hub is not reached by UDP, other players are not either; where it is in this process, they have reached it.
        let is_udp = to_hub.kind() == LinkKind::Quic;
        let candidates = if is_udp { self.direct.candidates(to_hub.remote()) } else { Vec::new() };
        core.offer_paths(self.direct.fingerprint().0, candidates);
    }

    /// Does what the core wants until it shall end, then ends all paths.
    async fn serve(self: Arc<Self>, mut ending: watch::Receiver<bool>) {
        let mut bell = self.shared.listen();
        let mut tasks = JoinSet::new();
        loop {
            let due = {
                let mut core = self.shared.lock();
                while let Some(command) = core.poll_path_command() {
                    self.obey(command, &mut tasks);
                }
                core.poll_path_timeout()
            };
            tokio::select! {
                () = bell.rung() => {}
                () = self.shared.sleep_until(due), if due.is_some() => {
                    self.shared.lock().handle_path_timeout(self.shared.now());
                    self.shared.wake_others(&mut bell);
                }
                Some(over) = tasks.join_next(), if !tasks.is_empty() => {
                    if let Ok(id) = over {
                        self.shared.paths().remove(&id);
                    }
                }
                _ = ending.wait_for(|is_ending| *is_ending) => break,
            }
        }
        self.shared.paths().clear();
        while tasks.join_next().await.is_some() {}
    }

    fn obey(self: &Arc<Self>, command: PathCommand, tasks: &mut JoinSet<PathId>) {
        match command {
            PathCommand::Try { id, peer: _, fingerprint, candidates, role, deadline } => {
                let role = match role {
                    PathRole::Dial => Role::Dial,
                    PathRole::Accept => Role::Accept,
                };
                let hub = *self.hub.lock().unwrap_or_else(PoisonError::into_inner);
                let peer = Fingerprint(fingerprint);
                let attempt = Attempt { id: id.0, role, peer, candidates, hub, deadline };
                let (end, ended) = watch::channel(());
                self.shared.paths().insert(id, end);
                tasks.spawn(Arc::clone(self).follow(id, attempt, ended));
            }
            PathCommand::Close { id } => drop(self.shared.paths().remove(&id)),
        }
    }

    /// One path, from the first try to its end.
    async fn follow(self: Arc<Self>, id: PathId, attempt: Attempt, mut ended: watch::Receiver<()>) -> PathId {
        let way = Way { id, ended: ended.clone() };
        let overdue = async {
            // It is never changed, only dropped.
            let _ = ended.changed().await;
            // The link's task looks once more whether something is left to be sent.
            self.shared.wake();
            sleep(GOODBYE_PATIENCE).await;
        };
        tokio::select! {
            () = self.walk(&way, &attempt) => {}
            () = overdue => {}
        }
        id
    }

    async fn walk(&self, way: &Way, attempt: &Attempt) {
        let shared = &self.shared;
        let opened = tokio::select! {
            opened = self.direct.open(attempt) => opened,
            () = way.is_over() => return,
        };
        match opened {
            Ok(link) => {
                pump(shared, link, way).await;
            }
            Err(error) => {
                tracing::debug!(%error, "there is no direct path");
                shared.lock().path_failed(way.id, &error.to_string(), shared.now());
                shared.wake();
            }
        }
    }
}

/// The other end of a path, as the core sees it.
#[derive(Debug)]
struct Way {
    id: PathId,
    ended: watch::Receiver<()>,
}

impl Way {
    /// Waits until the core is done with it.
    async fn is_over(&self) {
        let _ = self.ended.clone().changed().await;
    }
}

impl PacketEndpoint for Way {
    fn connected(&self, core: &mut RoomCore, link: &LinkSender, now: Instant) {
        core.path_connected(self.id, link.kind(), link.remote(), now);
    }

    fn carries(&self, core: &mut RoomCore, bytes_per_second: u32) {
        core.path_to_peer_carries(self.id, bytes_per_second);
    }

    fn path(&self) -> Option<PathId> {
        Some(self.id)
    }

    fn poll_packet(&self, core: &mut RoomCore, now: Instant) -> Option<Packet> {
        core.poll_path_packet(self.id, now)
    }

    fn handle_packet(&self, core: &mut RoomCore, packet: Packet, now: Instant) {
        core.handle_path_packet(self.id, packet, now);
    }

    fn lost(&self, core: &mut RoomCore, detail: &str, now: Instant) {
        core.path_lost(self.id, detail, now);
    }

    fn is_finished(&self, _core: &RoomCore) -> bool {
        self.ended.has_changed().is_err()
    }

    /// One task sees to the timers of all paths.
    fn poll_timeout(&self, _core: &RoomCore) -> Option<Instant> {
        None
    }

    fn handle_timeout(&self, _core: &mut RoomCore, _now: Instant) {}
}

/// The paths of a room while its driver runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) paths: Arc<Paths>,
    ending: watch::Sender<bool>,
    task: JoinSet<()>,
}

impl Running {
    pub(super) fn begin(paths: Paths) -> Self {
        let paths = Arc::new(paths);
        let (ending, is_ending) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(Arc::clone(&paths).serve(is_ending));
        Running { paths, ending, task }
    }

    /// Ends all paths; what was handed over may still arrive.
    pub(super) async fn end(mut self) {
        self.ending.send_replace(true);
        let _ = timeout(2 * GOODBYE_PATIENCE, self.task.join_next()).await;
    }
}

#[cfg(test)]
mod tests;
