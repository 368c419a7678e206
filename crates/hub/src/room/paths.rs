//! Paths between members and the authority beside the hub: who may try one, and who has one.
//!
//! A member that wants no such path has no entry here, and nothing of it is told to anybody. The hub introduces two ends and vouches
//! for their certificates; whether they reach each other it learns from the member, and then sends that one no state.

use super::Room;
use core::net::SocketAddr;
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole, is_candidate};
use parlor_proto::{Instant, MemberId, PathId, limits};
use std::collections::BTreeMap;

/// How members may be reached beside the hub, of those that want it.
#[derive(Debug, Default)]
pub(super) struct Paths {
    of: BTreeMap<MemberId, Reach>,
}

/// How one member may be reached.
#[derive(Debug)]
struct Reach {
    key: [u8; 32],
    /// Where the hub sees it.
    observed: Option<SocketAddr>,
    /// What the ids of its paths are made of, and how many were.
    seed: u64,
    drawn: u64,
    named: Option<Named>,
    /// The path to the authority that was offered last.
    path: Option<PathId>,
    /// Whether the state comes over it.
    is_up: bool,
}

/// What a member said of itself.
#[derive(Debug)]
struct Named {
    candidates: Candidates,
    at: Instant,
    /// No path was offered for it yet.
    is_fresh: bool,
}

impl Reach {
    /// SplitMix64 of a seed that nobody else knows.
    fn draw(&mut self) -> PathId {
        self.drawn += 1;
        let mut drawn = self.seed.wrapping_add(self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        PathId(drawn ^ (drawn >> 31))
    }

    fn is_local(&self) -> bool {
        self.observed.is_some_and(|observed| observed.ip().to_canonical().is_loopback())
    }

    /// What the other end of a path is told, the address first that is most likely to be reached from afar.
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
    }

    /// Who reaches the authority without the hub.
    pub(super) fn up(&self) -> impl Iterator<Item = MemberId> {
        self.of.iter().filter(|(_, reach)| reach.is_up).map(|(member, _)| *member)
    }
}

impl Room {
    /// A member wants paths, or is seen elsewhere.
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
        let new = Reach { key, observed, seed, drawn: 0, named: None, path: None, is_up: false };
        let reach = self.paths.of.entry(member).or_insert(new);
        (reach.key, reach.observed) = (key, observed);
    }

    /// A member names its addresses. Those that cannot be its own are left out and counted, and so is what comes too often.
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
        self.offer_paths();
    }

    /// Introduces the authority and those members to each other that wait for it.
    pub(super) fn offer_paths(&mut self) {
        // A new authority is reached when it is one: it offers nothing of the state before.
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

    fn offer_path(&mut self, host: MemberId, member: MemberId) {
        let knows = self.view(member).sees_member(host) && self.view(host).sees_member(member);
        let ends = self.paths.of.get(&host).zip(self.paths.of.get(&member));
        let Some((at_host, at_member)) = ends.filter(|(at_host, _)| knows && at_host.named.is_some()) else {
            return;
        };
        let (to_host, to_member) = (at_member.candidates(at_host), at_host.candidates(at_member));
        let (host_key, member_key) = (at_host.key, at_member.key);
        let Some(reach) = self.paths.of.get_mut(&member) else { return };
        if let Some(named) = &mut reach.named {
            named.is_fresh = false;
        }
        if to_host.is_empty() && to_member.is_empty() {
            return;
        }
        let (id, passes_on) = (reach.draw(), self.setup.settings.host_silence_ms.is_some());
        reach.path = Some(id);
        self.counters.paths_offered += 1;
        let accept = PathOffer {
            id,
            peer: member,
            fingerprint: member_key,
            role: PathRole::Accept,
            passes_on,
            candidates: to_host,
        };
        let dial = PathOffer {
            id,
            peer: host,
            fingerprint: host_key,
            role: PathRole::Dial,
            passes_on,
            candidates: to_member,
        };
        self.control(vec![host], &ToMember::Path(accept));
        self.control(vec![member], &ToMember::Path(dial));
    }

    /// The state comes to a member over its path.
    pub(super) fn path_up(&mut self, from: MemberId, id: PathId) {
        let reach = self.paths.of.get_mut(&from).filter(|reach| reach.path == Some(id) && !reach.is_up);
        let Some(reach) = reach else { return };
        reach.is_up = true;
        self.counters.paths_up += 1;
        self.state.direct(from, true);
        self.tell_direct(from, true);
    }

    /// A path is over for a member. One that has let go of the hub's stream has nothing of it.
    pub(super) fn path_down(&mut self, from: MemberId, id: PathId, was_up: bool) {
        let Some(reach) = self.paths.of.get_mut(&from) else { return };
        reach.path.take_if(|path| *path == id);
        let is_news = reach.path.is_none() && std::mem::take(&mut reach.is_up);
        if was_up {
            self.state.direct(from, false);
        }
        if is_news {
            self.tell_direct(from, false);
        }
    }

    /// The authority is another one: no path leads to it. Who had one says so, and is sent the hub's stream from then on.
    pub(super) fn end_paths(&mut self) {
        let up: Vec<MemberId> = self.paths.up().collect();
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

    /// Tells a newcomer who reaches the authority without the hub.
    pub(super) fn greet_with_paths(&mut self, newcomer: MemberId) {
        let up: Vec<MemberId> =
            self.paths.up().filter(|member| self.view(newcomer).sees_member(*member)).collect();
        for member in up {
            self.control(vec![newcomer], &ToMember::Direct { member, direct: true });
        }
    }
}
