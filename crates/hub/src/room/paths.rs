//! Signaling for direct paths between members and the authority, and among members ([`mesh`](super::mesh)).
//!
//! A member that wants no direct path has no entry here, and nothing of it is revealed. The hub introduces
//! two ends and vouches for their certificates. Once the member reports that its path is up, it gets no state
//! from the hub.

use super::Room;
use super::mesh::Mesh;
use core::net::SocketAddr;
use parlor_proto::random::SplitMix64;
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole, is_candidate};
use parlor_proto::{Instant, MemberId, PathId, limits};
use std::collections::BTreeMap;

/// The members that want direct paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    of: BTreeMap<MemberId, Reach>,
    mesh: Mesh,
}

/// How to reach one member directly.
#[derive(Debug)]
struct Reach {
    key: [u8; 32],
    /// Its observed address.
    observed: Option<SocketAddr>,
    /// Its path ids, from a secret seed.
    ids: SplitMix64,
    named: Option<Named>,
    /// The latest path offered to the authority.
    path: Option<PathId>,
    /// Whether it receives the state over that path.
    is_up: bool,
}

/// The candidates that a member sent.
#[derive(Debug)]
struct Named {
    candidates: Candidates,
    at: Instant,
    /// Whether no path was offered for it yet.
    is_fresh: bool,
}

impl Reach {
    fn is_local(&self) -> bool {
        self.observed.is_some_and(|observed| observed.ip().to_canonical().is_loopback())
    }

    /// Returns the addresses for the other end. The one most likely reachable from afar comes first.
    fn candidates(&self, other: &Reach) -> Vec<SocketAddr> {
        let Some(Named { candidates, .. }) = &self.named else { return Vec::new() };
        let observed = self.observed.filter(|_| candidates.may_tell_observed);
        let are_local = self.is_local() && other.is_local();
        let mut told: Vec<SocketAddr> = Vec::new();
        for address in observed.into_iter().chain(candidates.addresses.iter().copied()) {
            if is_candidate(address, are_local) && !told.contains(&address) {
                told.push(address);
            }
        }
        told.truncate(limits::PATH_CANDIDATES_MAX);
        told
    }
}

impl Paths {
    pub(super) fn remove(&mut self, member: MemberId) {
        self.of.remove(&member);
        self.mesh.remove(member);
    }

    /// Returns the members that want a path to each other member, and named their addresses.
    pub(super) fn wanting_all(&self) -> impl Iterator<Item = MemberId> {
        let wants_all = |reach: &Reach| reach.named.as_ref().is_some_and(|named| named.candidates.wants_all);
        self.of.iter().filter(move |(_, reach)| wants_all(reach)).map(|(member, _)| *member)
    }

    /// Returns the members with a direct path to the authority.
    pub(super) fn up(&self) -> impl Iterator<Item = MemberId> {
        self.of.iter().filter(|(_, reach)| reach.is_up).map(|(member, _)| *member)
    }
}

impl Room {
    /// Adds a member that wants direct paths, or updates its observed address.
    pub(super) fn reachable(
        &mut self,
        member: MemberId,
        key: [u8; 32],
        observed: Option<SocketAddr>,
        seed: u64,
    ) {
        if self.members.get(member).is_none() {
            return;
        }
        let new = Reach { key, observed, ids: SplitMix64::new(seed), named: None, path: None, is_up: false };
        let reach = self.paths.of.entry(member).or_insert(new);
        (reach.key, reach.observed) = (key, observed);
    }

    /// Stores a member's candidate addresses. Drops and counts implausible or too frequent ones.
    pub(super) fn candidates_from(&mut self, from: MemberId, mut candidates: Candidates, now: Instant) {
        let Some(reach) = self.paths.of.get_mut(&from) else { return };
        let is_early =
            reach.named.as_ref().is_some_and(|named| now < named.at + limits::PATH_CANDIDATES_INTERVAL);
        if is_early {
            self.counters.candidates_refused += 1;
            return;
        }
        let (is_local, count) = (reach.is_local(), candidates.addresses.len());
        candidates.addresses.retain(|address| is_candidate(*address, is_local));
        self.counters.candidates_refused += (count - candidates.addresses.len()) as u64;
        reach.named = Some(Named { candidates, at: now, is_fresh: true });
        self.paths.mesh.named(from);
        self.offer_paths();
    }

    /// Offers paths to all members that wait for one.
    pub(super) fn offer_paths(&mut self) {
        self.offer_paths_to_authority();
        self.offer_mesh();
    }

    /// Offers paths between the authority and each member that waits for one.
    fn offer_paths_to_authority(&mut self) {
        // A new authority gets offers only once it is active: until then it has no state to send.
        let Some(host) = self.authority.member().filter(|_| !self.state.is_handed_over()) else { return };
        let waiting: Vec<MemberId> = self
            .paths
            .of
            .iter()
            .filter(|(member, reach)| **member != host && reach.named.as_ref().is_some_and(|it| it.is_fresh))
            .map(|(member, _)| *member)
            .collect();
        waiting.into_iter().for_each(|member| self.offer_path(host, member));
    }

    /// Introduces members that want all paths to each other, as far as they named their addresses.
    fn offer_mesh(&mut self) {
        let authority = self.authority.member();
        if authority.is_some() && self.state.is_handed_over() {
            return;
        }
        let wanting = self.paths.wanting_all().filter(|member| Some(*member) != authority);
        let wanting: Vec<MemberId> =
            wanting.filter(|member| !self.spectates(*member)).take(limits::MESH_MEMBERS_MAX).collect();
        for (at, low) in wanting.iter().enumerate() {
            for high in &wanting[at + 1..] {
                let pair = (*low, *high);
                let knows = self.view(*low).sees_member(*high) && self.view(*high).sees_member(*low);
                if knows
                    && self.paths.mesh.is_due(pair)
                    && let Some(path) =
                        self.introduce((PathRole::Accept, *low), (PathRole::Dial, *high), false)
                {
                    self.paths.mesh.offered(pair, path);
                }
            }
        }
        wanting.into_iter().for_each(|member| self.paths.mesh.introduced(member));
    }

    fn offer_path(&mut self, host: MemberId, member: MemberId) {
        let knows = self.view(member).sees_member(host) && self.view(host).sees_member(member);
        // A spectator is relayed to: it learns no address, and its packets reach no host unread.
        let is_named = self.paths.of.get(&host).is_some_and(|reach| reach.named.is_some());
        if !knows || self.spectates(member) || !is_named {
            return;
        }
        let path = self.introduce((PathRole::Accept, host), (PathRole::Dial, member), true);
        let Some(reach) = self.paths.of.get_mut(&member) else { return };
        if let Some(named) = &mut reach.named {
            named.is_fresh = false;
        }
        reach.path = path.or(reach.path);
    }

    /// Offers two members a path to each other. Returns it, unless neither has an address for the other.
    fn introduce(
        &mut self,
        accepting: (PathRole, MemberId),
        dialing: (PathRole, MemberId),
        has_authority: bool,
    ) -> Option<PathId> {
        let ends = [accepting, dialing];
        let of = [self.paths.of.get(&accepting.1)?, self.paths.of.get(&dialing.1)?];
        let candidates = [of[0].candidates(of[1]), of[1].candidates(of[0])];
        if candidates.iter().all(Vec::is_empty) {
            return None;
        }
        let keys = of.map(|reach| reach.key);
        let id = PathId(self.paths.of.get_mut(&dialing.1)?.ids.draw());
        let passes_on = has_authority && self.setup.settings.host_timeout_ms.is_some();
        self.counters.paths_offered += 1;
        for (at, (role, member)) in ends.into_iter().enumerate() {
            let other = 1 - at;
            let offer = PathOffer {
                id,
                peer: ends[other].1,
                fingerprint: keys[other],
                role,
                has_authority,
                passes_on,
                candidates: candidates[other].clone(),
            };
            self.control(vec![member], &ToMember::Path(offer));
        }
        Some(id)
    }

    /// Marks a member's path as carrying the state, or what the other end sends of its own.
    pub(super) fn path_up(&mut self, from: MemberId, id: PathId) {
        if let Some(other) = self.paths.mesh.set_up(from, id, true) {
            self.counters.paths_up += 1;
            self.replicas.direct(other, from, true);
            return;
        }
        let reach = self.paths.of.get_mut(&from).filter(|reach| reach.path == Some(id) && !reach.is_up);
        let Some(reach) = reach else { return };
        reach.is_up = true;
        self.counters.paths_up += 1;
        self.state.direct(from, true);
        self.own_states_go_directly(from, true);
        self.tell_direct(from, true);
    }

    /// Sets whether a member and the authority send each other their own states over a path.
    fn own_states_go_directly(&mut self, member: MemberId, directly: bool) {
        if let Some(host) = self.authority.member() {
            self.replicas.direct(host, member, directly);
            self.replicas.direct(member, host, directly);
        }
    }

    /// Handles the end of a member's path. If it carried the state, the hub's stream restarts.
    pub(super) fn path_down(&mut self, from: MemberId, id: PathId, was_up: bool) {
        if let Some(other) = self.paths.mesh.set_up(from, id, false) {
            self.replicas.direct(other, from, false);
            return;
        }
        let Some(reach) = self.paths.of.get_mut(&from) else { return };
        reach.path.take_if(|path| *path == id);
        let is_news = reach.path.is_none() && std::mem::take(&mut reach.is_up);
        if was_up {
            self.state.direct(from, false);
        }
        if is_news {
            self.own_states_go_directly(from, false);
            self.tell_direct(from, false);
        }
    }

    /// Ends all paths because the authority changed. Each member reports the end of its path, and then gets
    /// the hub's stream.
    pub(super) fn end_paths(&mut self) {
        let up: Vec<MemberId> = self.paths.up().collect();
        self.paths.mesh.restart();
        self.replicas.relay_all();
        for reach in self.paths.of.values_mut() {
            (reach.path, reach.is_up) = (None, false);
            if let Some(named) = &mut reach.named {
                named.is_fresh = true;
            }
        }
        up.into_iter().for_each(|member| self.tell_direct(member, false));
    }

    fn tell_direct(&mut self, member: MemberId, direct: bool) {
        let mut told = self.seers_of(member);
        told.push(member);
        self.control(told, &ToMember::Direct { member, direct });
    }

    /// Tells a newcomer which members reach the authority directly.
    pub(super) fn greet_with_paths(&mut self, newcomer: MemberId) {
        let up: Vec<MemberId> =
            self.paths.up().filter(|member| self.view(newcomer).sees_member(*member)).collect();
        for member in up {
            self.control(vec![newcomer], &ToMember::Direct { member, direct: true });
        }
    }
}
