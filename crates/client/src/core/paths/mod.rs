//! Paths between members and their host beside the hub.
//!
//! A path is a second session between a member and the host, over a connection of their own; both ends' sessions with the hub go on.
//! The hub introduces the two; a driver connects them; what comes over the connection is heard here. Everything that two ends agree on
//! (when messages change their way, and what came) is done as soon as it arrives, whether the game polls or not; what the game
//! reads changes in its polls alone.

mod host;
mod link;
mod member;
mod read;
mod route;
mod words;

pub(super) use host::DirectViews;
use link::Path;
pub(super) use route::Letter;

use super::info::{ReasonCode, TransportPath, TransportStatus};
use super::room::{Joined, RoomCore};
use core::net::SocketAddr;
use parlor_proto::limits::{PATH_CANDIDATES_INTERVAL, PATH_TRY_TIMEOUT};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::control::ToHub;
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole, is_of_local_network};
use parlor_proto::{ChannelId, Instant, LinkKind, MemberId, Packet, PathId, channel};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Which paths a game wants between its players and their host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMode {
    /// Within a local network only: no address that is reached from elsewhere is told to anybody.
    Local,
    /// Where one comes about; otherwise the hub relays.
    Auto,
    /// The same, asked for by name: the hub relays where none comes about, too.
    P2p,
    /// None. No address is told to anybody.
    #[default]
    Relay,
}

/// What a driver is to do about a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathCommand {
    /// Connect to the other end, or let it connect.
    Try {
        /// Which path.
        id: PathId,
        /// Who is at its other end.
        peer: MemberId,
        /// The SHA-256 of the certificate that it must show.
        fingerprint: [u8; 32],
        /// Where it may be reached.
        candidates: Vec<SocketAddr>,
        /// Which end this is.
        role: PathRole,
        /// How long that may take.
        deadline: Duration,
    },
    /// Close the connection, or stop trying.
    Close {
        /// Which path.
        id: PathId,
    },
}

/// How often a path that was lost is tried again.
const ATTEMPTS_MAX: u32 = 8;
/// How long before that, the first time; each further time twice as long, up to [`RETRY_MAX`]. The hub hears addresses no more often.
const RETRY_FIRST: Duration = Duration::from_secs(12);
const RETRY_MAX: Duration = Duration::from_secs(300);
const _: () = assert!(RETRY_FIRST.as_millis() > PATH_CANDIDATES_INTERVAL.as_millis());
/// Paths to a member that are over and wait for its last word, beside a new one. That word does not come if it knew nothing of the path.
const ENDED_MAX: usize = 4;
/// What a driver may take beyond the time that a try has.
const TRY_SLACK: Duration = Duration::from_secs(1);

/// What became of the last path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing was reached in time.
    TimedOut,
    /// Something was, and it was not the other end.
    Refused,
    /// It was up, and is not any more.
    Lost,
}

/// The paths of one process.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// The certificate of this process, and where it may be reached.
    key: Option<[u8; 32]>,
    addresses: Vec<SocketAddr>,
    by_id: BTreeMap<PathId, Path>,
    /// How many there were.
    offered: u64,
    commands: VecDeque<PathCommand>,
    /// Channels of sequenced messages that all go through the hub.
    kept_by_hub: BTreeSet<ChannelId>,
    /// When the hub is told where this process may be reached, if it is to be.
    tell_at: Option<Instant>,
    told_at: Option<Instant>,
    attempts: u32,
    outcome: Option<Outcome>,
    /// Why the last one ended, for a person.
    ended: Option<String>,
    /// When anything was told last.
    now: Instant,
}

impl PathMode {
    /// The word for it in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            PathMode::Local => "local",
            PathMode::Auto => "auto",
            PathMode::P2p => "p2p",
            PathMode::Relay => "relay",
        }
    }

    fn admits(self, address: &SocketAddr) -> bool {
        match self {
            PathMode::Local => is_of_local_network(address.ip()),
            PathMode::Auto | PathMode::P2p => true,
            PathMode::Relay => false,
        }
    }
}

impl Paths {
    /// The path to a peer that is being made or stands.
    fn to(&self, peer: MemberId) -> Option<&Path> {
        self.by_id.values().find(|path| path.peer == peer && !path.is_over())
    }

    /// Whether this process has a path to a peer over which messages go.
    pub(super) fn is_open_to(&self, peer: MemberId) -> bool {
        self.to(peer).is_some_and(Path::is_open)
    }

    pub(super) fn key(&self) -> Option<[u8; 32]> {
        self.key
    }

    fn close(&mut self, id: PathId) {
        self.commands.push_back(PathCommand::Close { id });
    }
}

/// For a driver: paths to other members.
impl RoomCore {
    /// Whether the game wants paths: then [`offer_paths`](Self::offer_paths) is worth calling.
    #[must_use]
    pub fn wants_paths(&self) -> bool {
        self.options.paths != PathMode::Relay
    }

    /// Says with which certificate (its SHA-256) this process shows itself to other members, and where they may reach it, before each
    /// [`connected`](Self::connected). Nothing of it leaves if the game wants no paths.
    pub fn offer_paths(&mut self, key: [u8; 32], addresses: Vec<SocketAddr>) {
        if self.wants_paths() {
            let mode = self.options.paths;
            self.paths.key = Some(key);
            self.paths.addresses = addresses.into_iter().filter(|address| mode.admits(address)).collect();
        }
    }

    /// Why the last path ended, or did not come about, for a person; `None` if none did.
    #[must_use]
    pub fn path_ended(&self) -> Option<&str> {
        self.paths.ended.as_deref()
    }

    /// What to do about a path, oldest first.
    pub fn poll_path_command(&mut self) -> Option<PathCommand> {
        self.paths.commands.pop_front()
    }

    /// A connection to the other end of a path stands, and that end is who it must be. `remote` is its address.
    pub fn path_connected(&mut self, id: PathId, kind: LinkKind, remote: SocketAddr, now: Instant) {
        let Some((path, joined)) = self.paths.by_id.get_mut(&id).zip(self.joined.as_ref()) else { return };
        let hello = self.options.hello_of_path(id);
        path.connected((kind, remote), hello, joined.welcome.epoch, now);
        self.drain_path(id, now);
    }

    /// The other end was not reached.
    pub fn path_failed(&mut self, id: PathId, why: &str, now: Instant) {
        self.path_over(id, Outcome::TimedOut, why, now);
    }

    /// The connection of a path broke.
    pub fn path_lost(&mut self, id: PathId, detail: &str, now: Instant) {
        self.path_over(id, Outcome::Lost, detail, now);
    }

    /// Takes a packet in that came over a path.
    pub fn handle_path_packet(&mut self, id: PathId, packet: Packet, now: Instant) {
        self.paths.now = now;
        if let Some(session) = self.paths.by_id.get_mut(&id).and_then(Path::session_mut) {
            // The session closes itself and says why in its events.
            let _: Result<(), parlor_proto::PeerMisbehaved> = session.handle_packet(packet, now);
            self.drain_path(id, now);
        }
    }

    /// The connection of a path carries so many bytes per second, all that goes over it included: no more state than that is made.
    pub fn path_to_peer_carries(&mut self, id: PathId, bytes_per_second: u32) {
        if let Some((path, joined)) = self.paths.by_id.get(&id).zip(self.joined.as_mut())
            && let Some(direct) = joined.shared.direct_mut()
        {
            direct.path_carries(path.peer, bytes_per_second);
        }
    }

    /// The next packet for a path. Call it only while its connection takes packets, until it gives `None`.
    pub fn poll_path_packet(&mut self, id: PathId, now: Instant) -> Option<Packet> {
        self.publish_to_paths(now);
        let packet = self.paths.by_id.get_mut(&id)?.session_mut()?.poll_packet(now);
        if packet.is_none() {
            self.drain_path(id, now);
        }
        packet
    }

    /// When [`handle_path_timeout`](Self::handle_path_timeout) is due.
    #[must_use]
    pub fn poll_path_timeout(&self) -> Option<Instant> {
        let of_paths = self.paths.by_id.values().filter_map(Path::poll_timeout);
        let lease = self.lease_of_paths();
        let views = self.joined.as_ref().and_then(|joined| joined.shared.direct_due());
        let tell = self.paths.tell_at.filter(|_| self.can_tell_addresses());
        of_paths.chain(lease).chain(views).chain(tell).min()
    }

    /// Lets time pass for all paths.
    pub fn handle_path_timeout(&mut self, now: Instant) {
        self.paths.now = now;
        if self.lease_of_paths().is_some_and(|until| until <= now) {
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
    /// This process is in a room, or in it again: whoever may reach it there is to know where.
    pub(super) fn addresses_changed(&mut self, now: Instant) {
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

    /// Tells the hub where this process may be reached, if it is time.
    pub(super) fn tell_addresses(&mut self, now: Instant) {
        if self.paths.tell_at.is_none_or(|at| at > now) || !self.can_tell_addresses() {
            return;
        }
        self.paths.tell_at = None;
        // A host is heard of by whoever comes later, too; a member with a path needs no other.
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
            // If so much waits that it cannot be said, the session is about to end as too slow.
            let _: Result<(), parlor_proto::session::SendError> =
                session.send(Outgoing::new(channel::CONTROL, message.encode()));
            self.wants_driver = true;
        }
    }

    /// The hub introduces another member to this one.
    pub(super) fn read_offer(&mut self, offer: PathOffer, now: Instant) {
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
        // What is over there, too, but for what it says of it, may come much later.
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

    /// All paths end; what was sent over them and is not known to have come goes through the hub.
    pub(super) fn end_paths(&mut self, why: &str, now: Instant) {
        let ids: Vec<PathId> = self.paths.by_id.keys().copied().collect();
        ids.into_iter().for_each(|id| self.path_over(id, Outcome::Lost, why, now));
    }

    /// Nothing of any path matters any more: this process is another member.
    pub(super) fn forget_paths(&mut self) {
        let ids: Vec<PathId> = std::mem::take(&mut self.paths.by_id).into_keys().collect();
        ids.into_iter().for_each(|id| self.paths.close(id));
        (self.paths.outcome, self.paths.attempts) = (None, 0);
        self.paths.kept_by_hub.clear();
    }

    /// What to report of paths, if there is something: which way packets go, what the connection is doing, and what went wrong.
    pub(super) fn path_info(&self) -> (Option<TransportPath>, Option<TransportStatus>) {
        let mut members = self.paths.by_id.values().filter(|path| path.role == PathRole::Dial);
        let Some(path) = members.rfind(|path| !path.is_over()) else {
            let status = self.paths.outcome.map(|outcome| match outcome {
                Outcome::TimedOut | Outcome::Refused => TransportStatus::DirectUdpTimeout,
                Outcome::Lost => TransportStatus::RelayFallback,
            });
            return (self.host_path(), status);
        };
        // What there is of state tells which way it comes; where there is none, messages alone go directly.
        let is_read = self.joined.as_ref().is_some_and(|Joined { shared, .. }| {
            shared.source() == Some(path.id) || path.is_open() && shared.world().tick().is_none()
        });
        if is_read {
            (Some(TransportPath::DirectUdp), Some(TransportStatus::DirectUdpReady))
        } else {
            (Some(TransportPath::DirectUdpPending), Some(TransportStatus::DirectUdpPending))
        }
    }

    /// What is reported of a host: a path, if every other player is reached by one.
    fn host_path(&self) -> Option<TransportPath> {
        let joined = self.joined.as_ref().filter(|joined| joined.is_host())?;
        let mut others = joined.players.iter().filter(|player| !player.is_me && player.connected).peekable();
        others.peek()?;
        others.all(|player| self.paths.is_open_to(player.id)).then_some(TransportPath::DirectUdp)
    }

    /// Where the other end of this member's path is.
    pub(super) fn peer_candidate(&self) -> Option<SocketAddr> {
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
