//! Direct paths between members and their host.
//!
//! A path is a second session between a member and the host, over a connection of their own; the sessions of
//! both with the hub go on. The hub introduces the two, and a driver connects them. Whatever the two ends
//! must agree on (switches of routes, acknowledgements) is handled on arrival, even if the game does not
//! poll. What the game reads changes only in its polls.

mod host;
mod link;
mod read;
mod route;
mod signaling;

use link::Path;

pub(crate) use route::Letter;

use crate::info::{ReasonCode, TransportPath, TransportStatus};
use crate::options::PathMode;
use crate::room::{Joined, RoomCore};
use core::net::SocketAddr;
use parlor_proto::limits::{PATH_CANDIDATES_INTERVAL, PATH_TRY_TIMEOUT};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::control::ToHub;
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole};
use parlor_proto::{ChannelId, Instant, LinkKind, MemberId, Packet, PathId, channel};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// A driver's task for a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathCommand {
    /// Connect to the other end, or accept its connection.
    Try {
        /// The path.
        id: PathId,
        /// The member at its other end.
        peer: MemberId,
        /// SHA-256 of the certificate that the other end must show.
        fingerprint: [u8; 32],
        /// Candidate addresses of the other end.
        candidates: Vec<SocketAddr>,
        /// The role of this end.
        role: PathRole,
        /// Time limit.
        deadline: Duration,
    },
    /// Close the connection, or stop trying.
    Close {
        /// The path.
        id: PathId,
    },
}

/// Retries of a lost path at most.
const ATTEMPTS_MAX: u32 = 8;
/// Wait before the first retry; doubled each time, up to [`RETRY_MAX`]. The hub accepts addresses no more
/// often.
const RETRY_FIRST: Duration = Duration::from_secs(12);
const RETRY_MAX: Duration = Duration::from_secs(300);
const _: () = assert!(RETRY_FIRST.as_millis() > PATH_CANDIDATES_INTERVAL.as_millis());
/// Ended paths to a member that wait for its last word, beside a live one. The word never comes if the member
/// knew nothing of the path.
const ENDED_MAX: usize = 4;
/// Slack of a driver beyond the time limit of a try.
const TRY_SLACK: Duration = Duration::from_secs(1);

/// How the last path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No connection in time.
    TimedOut,
    /// The other end was the wrong one, or refused.
    Refused,
    /// It was open and broke.
    Lost,
}

/// The paths of one process.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// SHA-256 of this process's certificate, and its candidate addresses.
    key: Option<[u8; 32]>,
    addresses: Vec<SocketAddr>,
    by_id: BTreeMap<PathId, Path>,
    /// Paths offered so far.
    offered: u64,
    commands: VecDeque<PathCommand>,
    /// Channels whose sequenced messages all go through the hub.
    kept_by_hub: BTreeSet<ChannelId>,
    /// When to tell the hub this process's addresses, if pending.
    tell_at: Option<Instant>,
    told_at: Option<Instant>,
    attempts: u32,
    outcome: Option<Outcome>,
    /// Why the last path ended, for a person.
    ended: Option<String>,
    /// The newest time passed in.
    now: Instant,
}

impl Paths {
    /// The path to a peer that is being tried or open.
    fn to(&self, peer: MemberId) -> Option<&Path> {
        self.by_id.values().find(|path| path.peer == peer && !path.is_over())
    }

    /// Whether an open path to a peer exists.
    pub(crate) fn is_open_to(&self, peer: MemberId) -> bool {
        self.to(peer).is_some_and(Path::is_open)
    }

    pub(crate) fn key(&self) -> Option<[u8; 32]> {
        self.key
    }

    fn close(&mut self, id: PathId) {
        self.commands.push_back(PathCommand::Close { id });
    }
}

/// For a driver: paths to other members.
impl RoomCore {
    /// Whether the game wants paths; only then [`offer_paths`](Self::offer_paths) is needed.
    pub fn wants_paths(&self) -> bool {
        self.options.paths != PathMode::Relay
    }

    /// Sets the SHA-256 of this process's certificate and its candidate addresses, before each
    /// [`connected`](Self::connected). They are not disclosed if the game wants no paths.
    pub fn offer_paths(&mut self, key: [u8; 32], addresses: Vec<SocketAddr>) {
        if self.wants_paths() {
            let mode = self.options.paths;
            self.paths.key = Some(key);
            self.paths.addresses = addresses.into_iter().filter(|address| mode.admits(address)).collect();
        }
    }

    /// Why the last path ended or failed, for a person; `None` if none did.
    pub fn path_ended(&self) -> Option<&str> {
        self.paths.ended.as_deref()
    }

    /// The next task for a path, oldest first.
    pub fn poll_path_command(&mut self) -> Option<PathCommand> {
        self.paths.commands.pop_front()
    }

    /// Reports a connection to the other end of a path, with its identity verified. `remote` is its address.
    pub fn path_connected(&mut self, id: PathId, kind: LinkKind, remote: SocketAddr, now: Instant) {
        let Some((path, joined)) = self.paths.by_id.get_mut(&id).zip(self.joined.as_ref()) else { return };
        let hello = self.options.hello_of_path(id);
        path.connected((kind, remote), hello, joined.welcome.epoch, now);
        self.drain_path(id, now);
    }

    /// Reports that the other end was not reached.
    pub fn path_failed(&mut self, id: PathId, why: &str, now: Instant) {
        self.path_over(id, Outcome::TimedOut, why, now);
    }

    /// Reports that the connection of a path broke.
    pub fn path_lost(&mut self, id: PathId, detail: &str, now: Instant) {
        self.path_over(id, Outcome::Lost, detail, now);
    }

    /// Takes in a packet from a path.
    pub fn handle_path_packet(&mut self, id: PathId, packet: Packet, now: Instant) {
        self.paths.now = now;
        if let Some(session) = self.paths.by_id.get_mut(&id).and_then(Path::session_mut) {
            // The session closes itself and gives the reason in its events.
            let _: Result<(), parlor_proto::PeerMisbehaved> = session.handle_packet(packet, now);
            self.drain_path(id, now);
        }
    }

    /// Sets the capacity of a path in bytes per second, all traffic included. State is limited to it.
    pub fn path_to_peer_carries(&mut self, id: PathId, bytes_per_second: u32) {
        if let Some((path, joined)) = self.paths.by_id.get(&id).zip(self.joined.as_mut())
            && let Some(direct) = joined.shared.direct_mut()
        {
            direct.path_carries(path.peer, bytes_per_second);
        }
    }

    /// The next packet for a path. Call it only while its connection takes packets, until it returns `None`.
    pub fn poll_path_packet(&mut self, id: PathId, now: Instant) -> Option<Packet> {
        self.publish_to_paths(now);
        let packet = self.paths.by_id.get_mut(&id)?.session_mut()?.poll_packet(now);
        if packet.is_none() {
            self.drain_path(id, now);
        }
        packet
    }

    /// When [`handle_path_timeout`](Self::handle_path_timeout) is due.
    pub fn poll_path_timeout(&self) -> Option<Instant> {
        let of_paths = self.paths.by_id.values().filter_map(Path::poll_timeout);
        let timeout = self.timeout_of_paths();
        let views = self.joined.as_ref().and_then(|joined| joined.shared.direct_due());
        let tell = self.paths.tell_at.filter(|_| self.can_tell_addresses());
        of_paths.chain(timeout).chain(views).chain(tell).min()
    }

    /// Lets time pass for all paths.
    pub fn handle_path_timeout(&mut self, now: Instant) {
        self.paths.now = now;
        if self.timeout_of_paths().is_some_and(|until| until <= now) {
            self.end_paths("the hub was not heard for too long", now);
        }
        let ids: Vec<PathId> = self.paths.by_id.keys().copied().collect();
        for id in ids {
            let Some(path) = self.paths.by_id.get_mut(&id) else { continue };
            if path.is_late(now) {
                self.path_over(id, Outcome::TimedOut, "no connection in time", now);
                continue;
            }
            path.pass_time(now);
            if let Some(session) = path.session_mut() {
                session.handle_timeout(now);
            }
            self.drain_path(id, now);
        }
        if let Some(joined) = &mut self.joined {
            joined.shared.direct_timeout(now);
        }
        self.tell_addresses(now);
    }
}

impl RoomCore {
    /// Schedules telling the addresses, because this process has joined or rejoined a room.
    pub(crate) fn addresses_changed(&mut self, now: Instant) {
        if self.paths.key.is_some() {
            let earliest = self.paths.told_at.map(|told| told + RETRY_FIRST);
            self.paths.tell_at = Some(earliest.map_or(now, |earliest| earliest.max(now)));
        }
    }

    fn can_tell_addresses(&self) -> bool {
        let is_apart = self.link == Some(LinkKind::Quic);
        let is_attached = self.session.as_ref().is_some_and(|session| session.is_attached());
        is_apart && is_attached && self.joined.is_some() && self.closed.is_none()
    }

    /// Tells the hub this process's addresses, if due.
    pub(crate) fn tell_addresses(&mut self, now: Instant) {
        if self.paths.tell_at.is_none_or(|at| at > now) || !self.can_tell_addresses() {
            return;
        }
        self.paths.tell_at = None;
        // Later members need the host's addresses, too; a member with a path needs no other.
        if self.paths.by_id.values().any(|path| path.role == PathRole::Dial && !path.is_over()) {
            return;
        }
        let may_tell_observed = self.options.paths != PathMode::Local;
        let candidates = Candidates { addresses: self.paths.addresses.clone(), may_tell_observed };
        self.paths.told_at = Some(now);
        self.tell_hub(&ToHub::Candidates(candidates));
    }

    fn tell_hub(&mut self, message: &ToHub) {
        if let Some(session) = &mut self.session {
            // If the queue is too full for it, the session is about to end as too slow.
            let _: Result<(), parlor_proto::session::SendError> =
                session.send(Outgoing::new(channel::CONTROL, message.encode()));
            self.wants_driver = true;
        }
    }

    /// Handles the hub's offer of a path to another member.
    pub(crate) fn read_offer(&mut self, offer: PathOffer, now: Instant) {
        let PathOffer { id, peer, fingerprint, role, passes_on, mut candidates } = offer;
        let Some(joined) = &self.joined else { return };
        let host = joined.welcome.authority.member();
        let is_known = match role {
            PathRole::Dial => host == Some(peer) && !joined.is_host(),
            PathRole::Accept => joined.is_host(),
        };
        if !self.wants_paths() || !is_known || self.closed.is_some() || self.paths.by_id.contains_key(&id) {
            return;
        }
        let of_peer = || self.paths.by_id.values().filter(|path| path.peer == peer);
        if of_peer().any(|path| !path.is_idle()) {
            return;
        }
        // The last word on a path that is over at the other end, too, may come much later.
        let oldest = of_peer().min_by_key(|path| path.number).map(|path| path.id);
        if let Some(oldest) = oldest.filter(|_| of_peer().count() >= ENDED_MAX) {
            self.paths.by_id.remove(&oldest);
        }
        candidates.retain(|address| self.options.paths.admits(address));
        let until = now + PATH_TRY_TIMEOUT + TRY_SLACK;
        self.paths.offered += 1;
        let path = Path::new((id, self.paths.offered), peer, (role, passes_on), until);
        self.paths.by_id.insert(id, path);
        let deadline = PATH_TRY_TIMEOUT;
        let command = PathCommand::Try { id, peer, fingerprint, candidates, role, deadline };
        self.paths.commands.push_back(command);
        self.wants_driver = true;
    }

    /// Ends all paths; unacknowledged messages go through the hub.
    pub(crate) fn end_paths(&mut self, why: &str, now: Instant) {
        let ids: Vec<PathId> = self.paths.by_id.keys().copied().collect();
        ids.into_iter().for_each(|id| self.path_over(id, Outcome::Lost, why, now));
    }

    /// Forgets all paths, because this process is another member.
    pub(crate) fn forget_paths(&mut self) {
        let ids: Vec<PathId> = std::mem::take(&mut self.paths.by_id).into_keys().collect();
        ids.into_iter().for_each(|id| self.paths.close(id));
        (self.paths.outcome, self.paths.attempts) = (None, 0);
        self.paths.kept_by_hub.clear();
    }

    /// The transport path and status to report, if there are paths to report on.
    pub(crate) fn path_info(&self) -> (Option<TransportPath>, Option<TransportStatus>) {
        let mut members = self.paths.by_id.values().filter(|path| path.role == PathRole::Dial);
        let Some(path) = members.rfind(|path| !path.is_over()) else {
            let status = self.paths.outcome.map(|outcome| match outcome {
                Outcome::TimedOut | Outcome::Refused => TransportStatus::DirectUdpTimeout,
                Outcome::Lost => TransportStatus::RelayFallback,
            });
            return (self.host_path(), status);
        };
        // The source of the state decides the report. Before any state came, an open path that carries
        // messages counts.
        let is_read = self.joined.as_ref().is_some_and(|Joined { shared, .. }| {
            shared.source() == Some(path.id) || path.is_open() && shared.world().tick().is_none()
        });
        if is_read {
            (Some(TransportPath::DirectUdp), Some(TransportStatus::DirectUdpReady))
        } else {
            (Some(TransportPath::DirectUdpPending), Some(TransportStatus::DirectUdpPending))
        }
    }

    /// The host's report: a direct path, if every other player has one.
    fn host_path(&self) -> Option<TransportPath> {
        let joined = self.joined.as_ref().filter(|joined| joined.is_host())?;
        let mut others = joined.players.iter().filter(|player| !player.is_me && player.connected).peekable();
        others.peek()?;
        others.all(|player| self.paths.is_open_to(player.id)).then_some(TransportPath::DirectUdp)
    }

    /// Address of the other end of this member's path.
    pub(crate) fn peer_candidate(&self) -> Option<SocketAddr> {
        let mut open = self.paths.by_id.values().filter(|path| path.role == PathRole::Dial && path.is_open());
        open.next()?.remote
    }

    fn note_outcome(&mut self, outcome: Outcome, now: Instant) {
        self.paths.outcome = Some(outcome);
        self.last_reason = match outcome {
            Outcome::TimedOut => Some(ReasonCode::DirectUdpTimeout),
            Outcome::Refused => Some(ReasonCode::DirectRuntimeAttachFailed),
            Outcome::Lost => self.last_reason,
        };
        if outcome == Outcome::Lost && self.paths.attempts < ATTEMPTS_MAX {
            let wait = RETRY_FIRST.saturating_mul(1 << self.paths.attempts).min(RETRY_MAX);
            self.paths.attempts += 1;
            self.paths.tell_at = Some(now + wait);
        }
    }
}
