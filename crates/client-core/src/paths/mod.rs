//! Direct paths between members and their host, and among members.
//!
//! A path is a second session between two members, over a connection of their own; the sessions of both with the
//! hub go on. One that has the host at an end carries the room's state and inputs as well. The hub introduces the
//! two, and a driver connects them. Whatever the two ends must agree on (switches of routes, acknowledgements) is
//! handled on arrival, even if the game does not poll. What the game reads changes only in its polls.

mod host;
mod link;
mod required;
mod route;
mod signaling;

pub(crate) use route::Letter;
pub(crate) use signaling::Heard;

use crate::connection::Connection;
use crate::info::{ReasonCode, TransportPath, TransportStatus};
use crate::options::{Options, PathMode};
use crate::players::{Player, Players};
use crate::replicas::Replicas;
use crate::state::SharedState;
use core::net::SocketAddr;
use link::{Outcome, Path};
use parlor_proto::limits::{MEMBERS_MAX_SERVER_RUN, PATH_CANDIDATES_INTERVAL, PATH_TRY_TIMEOUT};
use parlor_proto::wire::control::ToHub;
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole, is_of_local_network};
use parlor_proto::{ChannelId, Instant, LinkKind, MemberId, Packet, PathId};
use parlor_proto::{OrderedMap, OrderedSet};
use required::Required;
use std::collections::VecDeque;
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

/// The parts of a room that its paths read and act on.
pub(crate) struct Around<'a> {
    pub(crate) options: &'a Options,
    pub(crate) hub: &'a mut Connection,
    /// The open room. There are no paths without one.
    pub(crate) welcome: Option<&'a Welcome>,
    pub(crate) shared: Option<&'a mut SharedState>,
    pub(crate) replicas: Option<&'a mut Replicas>,
    /// Whether the room is over for this process.
    pub(crate) is_closed: bool,
}

/// The paths of one process.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// SHA-256 of this process's certificate, and its candidate addresses.
    key: Option<[u8; 32]>,
    addresses: Vec<SocketAddr>,
    by_id: OrderedMap<PathId, Path>,
    /// Paths offered so far.
    offered: u64,
    /// Offers that come too early, with their time limits: an earlier path to the same member is not idle, or the
    /// game has not read yet who is the host.
    early: OrderedMap<MemberId, (PathOffer, Instant)>,
    commands: VecDeque<PathCommand>,
    /// Channels whose sequenced messages all go through the hub.
    kept_by_hub: OrderedSet<ChannelId>,
    /// When to tell the hub this process's addresses, if pending.
    tell_at: Option<Instant>,
    told_at: Option<Instant>,
    attempts: u32,
    outcome: Option<Outcome>,
    required: Required,
    /// Why the last path ended, for a person.
    ended: Option<String>,
    /// The reason to report, until it is taken.
    reason: Option<ReasonCode>,
    /// Whether there is something to send that the driver does not know of, until it is taken.
    wants_driver: bool,
}

/// This process's own end.
impl Paths {
    /// Sets the SHA-256 of this process's certificate and its candidate addresses, of which the mode admits
    /// some.
    pub(crate) fn set_own(&mut self, key: [u8; 32], addresses: Vec<SocketAddr>, mode: PathMode) {
        self.key = Some(key);
        self.addresses = addresses.into_iter().filter(|address| mode.admits(address)).collect();
    }

    pub(crate) fn key(&self) -> Option<[u8; 32]> {
        self.key
    }

    /// Schedules telling the addresses, because this process has joined or rejoined a room.
    pub(crate) fn addresses_changed(&mut self, now: Instant) {
        if self.key.is_some() {
            let earliest = self.told_at.map(|told| told + RETRY_FIRST);
            self.tell_at = Some(earliest.map_or(now, |earliest| earliest.max(now)));
        }
    }

    /// Tells the hub this process's addresses, if due. Call it only while the hub can be told them.
    pub(crate) fn tell_addresses(&mut self, mode: PathMode, hub: &mut Connection, now: Instant) {
        if self.tell_at.is_none_or(|at| at > now) {
            return;
        }
        self.tell_at = None;
        // Later members need the host's addresses, too; a member with a path to the host needs no other.
        let wants_all = mode == PathMode::Mesh;
        if !wants_all && self.by_id.values().any(|path| path.is_to_host() && !path.is_over()) {
            return;
        }
        let may_tell_observed = mode != PathMode::Local;
        let candidates = Candidates { addresses: self.addresses.clone(), may_tell_observed, wants_all };
        self.told_at = Some(now);
        self.tell_hub(hub, &ToHub::Candidates(candidates));
    }

    fn tell_hub(&mut self, hub: &mut Connection, message: &ToHub) {
        hub.tell_hub(message);
        self.wants_driver = true;
    }

    /// The next task for the driver, oldest first.
    pub(crate) fn poll_command(&mut self) -> Option<PathCommand> {
        self.commands.pop_front()
    }

    /// Takes the reason to report, if a path ended with one.
    pub(crate) fn take_reason(&mut self) -> Option<ReasonCode> {
        self.reason.take()
    }

    /// Whether data to send is queued that the driver does not know of; reading clears the flag.
    pub(crate) fn take_wants_driver(&mut self) -> bool {
        std::mem::take(&mut self.wants_driver)
    }
}

/// The life of a path, and its packets.
impl Paths {
    /// Handles the hub's offer of a path to another member: follows it, now or within [`PATH_TRY_TIMEOUT`].
    fn offered(&mut self, offer: PathOffer, around: &Around<'_>, now: Instant) {
        let is_wanted = match around.options.paths {
            PathMode::Relay => false,
            PathMode::Mesh => true,
            PathMode::Local | PathMode::Auto | PathMode::P2p => offer.has_authority,
        };
        if !is_wanted || around.is_closed || self.by_id.contains_key(&offer.id) {
            return;
        }
        // A later offer replaces an earlier one. No room has more members than this: a hub that names more is malicious.
        if self.early.len() >= usize::from(MEMBERS_MAX_SERVER_RUN) {
            return;
        }
        self.early.insert(offer.peer, (offer, now + PATH_TRY_TIMEOUT));
        self.follow_offers(around, now);
    }

    /// Follows the offers that waited and can be followed now.
    fn follow_offers(&mut self, around: &Around<'_>, now: Instant) {
        self.early.retain(|_, (_, until)| now < *until);
        let Some(welcome) = around.welcome.filter(|_| !around.is_closed) else { return };
        let Some(shared) = &around.shared else { return };
        let (host, is_host) = (welcome.authority.member(), shared.host().is_some());
        let paths = &self.by_id;
        let mut due = Vec::new();
        self.early.retain(|peer, (offer, until)| {
            let is_known = match offer.role {
                _ if !offer.has_authority => host != Some(*peer) && !is_host,
                PathRole::Dial => host == Some(*peer) && !is_host,
                PathRole::Accept => is_host,
            };
            let is_due = is_known && paths.values().filter(|path| path.peer == *peer).all(Path::is_idle);
            due.extend(is_due.then(|| (offer.clone(), *until)));
            !is_due
        });
        due.into_iter().for_each(|(offer, until)| self.follow(offer, until, around.options.paths, now));
    }

    fn follow(&mut self, offer: PathOffer, until: Instant, mode: PathMode, now: Instant) {
        let (id, peer) = (offer.id, offer.peer);
        let of_peer = || self.by_id.values().filter(|path| path.peer == peer);
        // The last word on a path that is over at the other end, too, may come much later.
        let oldest = of_peer().min_by_key(|path| path.number).map(|path| path.id);
        if let Some(oldest) = oldest.filter(|_| of_peer().count() >= ENDED_MAX) {
            self.by_id.remove(&oldest);
        }
        self.offered += 1;
        self.by_id.insert(id, Path::new(self.offered, &offer, until + TRY_SLACK));
        let PathOffer { fingerprint, role, mut candidates, .. } = offer;
        candidates.retain(|address| mode.admits(address));
        let deadline = until.saturating_since(now);
        self.commands.push_back(PathCommand::Try { id, peer, fingerprint, candidates, role, deadline });
        self.wants_driver = true;
    }

    /// Moves what waits: messages to the hub's session, and offers that can be followed now.
    pub(crate) fn go_on(&mut self, around: &mut Around<'_>, now: Instant) {
        self.drain_queues(around.hub, now);
        self.follow_offers(around, now);
    }

    /// Notes a connection to the other end of a path, with its identity verified. `remote` is its address.
    pub(crate) fn connected(
        &mut self,
        id: PathId,
        (kind, remote): (LinkKind, SocketAddr),
        around: &Around<'_>,
        now: Instant,
    ) {
        if let Some((path, welcome)) = self.by_id.get_mut(&id).zip(around.welcome) {
            let hello = around.options.hello_of_path(id);
            path.connected((kind, remote), hello, welcome.epoch, now);
        }
    }

    /// Takes in a packet from a path.
    pub(crate) fn handle_packet(&mut self, id: PathId, packet: Packet, now: Instant) {
        if let Some(session) = self.by_id.get_mut(&id).and_then(Path::session_mut) {
            // The session closes itself and gives the reason in its events.
            let _: Result<(), parlor_proto::PeerMisbehaved> = session.handle_packet(packet, now);
        }
    }

    /// The next packet for a path.
    pub(crate) fn poll_packet(
        &mut self,
        id: PathId,
        around: &mut Around<'_>,
        now: Instant,
    ) -> Option<Packet> {
        if let Some(shared) = around.shared.as_deref_mut() {
            self.publish(shared, now);
        }
        let path = self.by_id.get_mut(&id)?;
        let (peer, is_open) = (path.peer, path.is_open());
        let session = path.session_mut()?;
        if let Some(replicas) = around.replicas.as_deref_mut().filter(|_| is_open) {
            replicas.publish_to(peer, session, now);
        }
        session.poll_packet(now)
    }

    /// The paths, for [`pass_time`](Self::pass_time).
    pub(crate) fn ids(&self) -> Vec<PathId> {
        self.by_id.keys().copied().collect()
    }

    /// Lets time pass for a path.
    pub(crate) fn pass_time(&mut self, id: PathId, around: &mut Around<'_>, now: Instant) {
        let Some(path) = self.by_id.get_mut(&id) else { return };
        if path.is_late(now) {
            return self.end(id, Outcome::TimedOut, "no connection in time", around, now);
        }
        path.pass_time(now);
        if let Some(session) = path.session_mut() {
            session.handle_timeout(now);
        }
    }

    /// When [`pass_time`](Self::pass_time) or [`tell_addresses`](Self::tell_addresses) is due. `can_tell` says
    /// whether the hub can be told the addresses.
    pub(crate) fn poll_timeout(&self, can_tell: bool) -> Option<Instant> {
        let of_paths = self.by_id.values().filter_map(Path::poll_timeout);
        of_paths.chain(self.tell_at.filter(|_| can_tell)).min()
    }

    /// Ends a path that was not reached.
    pub(crate) fn failed(&mut self, id: PathId, why: &str, around: &mut Around<'_>, now: Instant) {
        self.end(id, Outcome::TimedOut, why, around, now);
    }

    /// Ends a path that broke.
    pub(crate) fn lost(&mut self, id: PathId, detail: &str, around: &mut Around<'_>, now: Instant) {
        self.end(id, Outcome::Lost, detail, around, now);
    }

    /// Ends all paths; unacknowledged messages go through the hub.
    pub(crate) fn end_all(&mut self, why: &str, around: &mut Around<'_>, now: Instant) {
        self.ids().into_iter().for_each(|id| self.end(id, Outcome::Lost, why, around, now));
    }

    /// Ends a path, open or not. Unacknowledged messages go through the hub.
    fn end(&mut self, id: PathId, outcome: Outcome, why: &str, around: &mut Around<'_>, now: Instant) {
        let Some(path) = self.by_id.get_mut(&id).filter(|path| !path.is_over()) else { return };
        let (peer, is_to_host, tells) = (path.peer, path.is_to_host(), !path.is_of_host());
        let was_open = path.end(now);
        if was_open {
            path.go_back();
        } else {
            self.by_id.remove(&id);
        }
        self.close(id);
        let has_state = |shared: &mut SharedState| shared.path_closed(id, peer);
        let was_source = around.shared.as_deref_mut().is_some_and(has_state);
        if let Some(replicas) = around.replicas.as_deref_mut() {
            replicas.path_closed(peer);
        }
        if tells {
            self.tell_hub(around.hub, &ToHub::PathDown { id, was_up: was_source });
            let outcome = if was_open { Outcome::Lost } else { outcome };
            self.note_outcome(outcome, is_to_host, around.options.paths, now);
        }
        self.ended = Some(why.to_owned());
        self.drain_queues(around.hub, now);
        self.wants_driver = true;
    }

    fn close(&mut self, id: PathId) {
        self.commands.push_back(PathCommand::Close { id });
    }

    /// Notes how a path ended. The status of the transport is that of the path to the host.
    fn note_outcome(&mut self, outcome: Outcome, is_to_host: bool, mode: PathMode, now: Instant) {
        if is_to_host {
            self.outcome = Some(outcome);
            let reason = match outcome {
                Outcome::TimedOut => Some(ReasonCode::DirectUdpTimeout),
                Outcome::Refused => Some(ReasonCode::DirectRuntimeAttachFailed),
                Outcome::Lost => None,
            };
            self.reason = reason.or(self.reason);
        }
        if outcome == Outcome::Lost && self.attempts < ATTEMPTS_MAX {
            // A game that plays over a path alone does not wait for long.
            let factor = if mode == PathMode::P2p { 1 } else { 1 << self.attempts };
            let wait = RETRY_FIRST.saturating_mul(factor).min(RETRY_MAX);
            self.attempts += 1;
            self.tell_at = Some(self.tell_at.map_or(now + wait, |at| at.min(now + wait)));
        }
    }

    /// Ends all paths, because another member is the host: the hub offers new ones, and attempts at the last
    /// host say nothing of the next.
    pub(crate) fn host_changed(&mut self, around: &mut Around<'_>, now: Instant) {
        self.end_all("another player is named host", around, now);
        self.attempts = 0;
    }

    /// Forgets all paths, because this process is another member.
    pub(crate) fn forget(&mut self) {
        self.early.clear();
        let ids: Vec<PathId> = std::mem::take(&mut self.by_id).into_keys().collect();
        ids.into_iter().for_each(|id| self.close(id));
        (self.outcome, self.attempts, self.required) = (None, 0, Required::default());
        self.kept_by_hub.clear();
    }

    /// Drops messages queued to a member that left. Messages that it sent before still arrive.
    pub(crate) fn left(&mut self, member: MemberId) {
        self.by_id.retain(|_, path| path.peer != member || !path.is_over());
        self.early.remove(&member);
    }
}

/// What a game can read of paths.
impl Paths {
    /// The path to a peer that is being tried or open.
    fn to(&self, peer: MemberId) -> Option<&Path> {
        self.by_id.values().find(|path| path.peer == peer && !path.is_over())
    }

    /// Whether an open path to a peer exists.
    pub(crate) fn is_open_to(&self, peer: MemberId) -> bool {
        self.to(peer).is_some_and(Path::is_open)
    }

    /// Why the last path ended or failed, for a person; `None` if none did.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// Address of the other end of this member's path.
    pub(crate) fn peer_candidate(&self) -> Option<SocketAddr> {
        let mut open = self.by_id.values().filter(|path| path.is_to_host() && path.is_open());
        open.next()?.remote
    }

    /// The transport path and status to report, if there are paths to report on.
    pub(crate) fn info(
        &self,
        open: Option<(&SharedState, &Players)>,
    ) -> (Option<TransportPath>, Option<TransportStatus>) {
        let members = self.by_id.values().filter(|path| path.is_to_host());
        let Some(path) = members.filter(|path| !path.is_over()).last() else {
            let status = self.outcome.map(|outcome| match outcome {
                Outcome::TimedOut | Outcome::Refused => TransportStatus::DirectUdpTimeout,
                Outcome::Lost => TransportStatus::RelayFallback,
            });
            let players = open.filter(|(shared, _)| shared.host().is_some()).map(|(_, players)| players);
            return (players.and_then(|players| self.host_path(players)), status);
        };
        // The source of the state decides the report. Before any state came, an open path that carries
        // messages counts.
        let is_read = open.is_some_and(|(shared, _)| {
            shared.source() == Some(path.id) || path.is_open() && shared.world().tick().is_none()
        });
        if is_read {
            let way = if self.is_local(path) { TransportPath::LocalRoom } else { TransportPath::DirectUdp };
            (Some(way), Some(TransportStatus::DirectUdpReady))
        } else {
            (Some(TransportPath::DirectUdpPending), Some(TransportStatus::DirectUdpPending))
        }
    }

    /// The host's report: direct paths, if every other player has one.
    fn host_path(&self, players: &Players) -> Option<TransportPath> {
        let mut others = players.iter().filter(|player| !player.is_me && player.connected).peekable();
        others.peek()?;
        let path = |player: &Player| self.to(player.id).filter(|path| path.is_open());
        let paths = others.map(path).collect::<Option<Vec<&Path>>>()?;
        let are_local = paths.into_iter().all(|path| self.is_local(path));
        Some(if are_local { TransportPath::LocalRoom } else { TransportPath::DirectUdp })
    }

    /// Whether the other end of a path is on this machine, whatever its address, or on its local network.
    fn is_local(&self, path: &Path) -> bool {
        let is_own = |ip| self.addresses.iter().any(|own| own.ip() == ip);
        path.remote
            .is_some_and(|remote| is_of_local_network(remote.ip()) || is_own(remote.ip().to_canonical()))
    }

    /// Round trip to a peer over its open path, once measured.
    pub(crate) fn rtt_to(&self, peer: MemberId) -> Option<Duration> {
        self.to(peer).filter(|path| path.is_open())?.rtt()
    }
}
