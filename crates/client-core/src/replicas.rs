//! Own states: the one that this player sends, and those received from others.

use crate::state::{Upstream, Way};
use parlor_proto::OrderedMap;
use parlor_proto::session::{DeliveryId, Outgoing, Session};
use parlor_proto::wire::replica::StateOf;
use parlor_proto::{Instant, MemberId, Tick, TickRate, channel, limits};
use parlor_sync::replicator::{Introduction, Latency, Own, Remote, ReplicaError, State, Template};
use parlor_sync::world::Sent;

/// Bytes per second of a player's own state at most; the hub accepts twice as much.
const BYTES_PER_SECOND: u32 = 32 * 1024;
const _: () = assert!(BYTES_PER_SECOND as usize <= limits::OWN_STATE_BYTES_PER_SECOND);
/// Own states of others kept at most, including those of players not announced yet.
const REMOTES_MAX: usize = limits::MEMBERS_MAX_SERVER_RUN as usize;

/// The own states of all players.
#[derive(Debug)]
pub(crate) struct Replicas {
    me: MemberId,
    rate: TickRate,
    own: Option<Box<OwnStream>>,
    remotes: OrderedMap<MemberId, Remote>,
}

/// This player's own state, and what the hub has of it.
#[derive(Debug)]
struct OwnStream {
    own: Own,
    introduction: Introduction,
    upstream: Upstream,
    /// The tick of the last commit.
    committed: Option<Tick>,
}

impl Replicas {
    pub(crate) fn new(me: MemberId, template: Option<Template>, rate: TickRate) -> Self {
        let own = template.map(|template| {
            Box::new(OwnStream {
                introduction: Introduction::new(template.form().schema().encode()),
                own: Own::new(template, rate, me),
                upstream: Upstream::new(BYTES_PER_SECOND, rate.interval()),
                committed: None,
            })
        });
        Replicas { me, rate, own, remotes: OrderedMap::new() }
    }

    /// Ends a step. Returns whether there is something to send.
    pub(crate) fn commit(&mut self, label: Tick) -> bool {
        let Some(stream) = &mut self.own else { return false };
        if stream.committed.is_some_and(|committed| label.0 <= committed.0) {
            return false;
        }
        stream.committed = Some(label);
        stream.own.commit(label).expect("the label is newer, and one entity fits")
    }

    /// Sends the hub what it lacks.
    pub(crate) fn publish(&mut self, session: &mut Session, way: Way, now: Instant) {
        let me = self.me;
        let Some(stream) = &mut self.own else { return };
        let OwnStream { own, introduction, upstream, .. } = &mut **stream;
        upstream.publish(own.world(), session, way, now, |packet, sent| {
            let payload = introduction.wrap(packet, sent).encode();
            Outgoing {
                delivery_id: Some(DeliveryId::of_replica(me, sent.0)),
                ..Outgoing::new(channel::REPLICAS, payload)
            }
        });
    }

    /// When [`publish`](Self::publish) may have more to send.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.own.as_ref().and_then(|stream| stream.upstream.poll_timeout())
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(stream) = &mut self.own {
            stream.upstream.handle_timeout(now);
        }
    }

    /// Notes the fate of a packet of this player's own state.
    pub(crate) fn fate(&mut self, number: u64, delivered: bool) {
        let Some(stream) = &mut self.own else { return };
        stream.upstream.fate(Sent(number), delivered);
        if delivered {
            stream.introduction.delivered(Sent(number));
        }
    }

    /// Takes in a packet of another player's state that came at `arrived` of room time. It may come before
    /// that player is announced; `is_here` says whether a player is known.
    pub(crate) fn take(
        &mut self,
        state: StateOf,
        arrived: Instant,
        is_here: impl Fn(MemberId) -> bool,
    ) -> Result<(), ReplicaError> {
        if self.remotes.len() >= REMOTES_MAX {
            self.remotes.retain(|member, _| is_here(*member));
        }
        let rate = self.rate;
        let remote = self.remotes.get_or_insert_with(state.source, || Remote::new(rate));
        remote.apply(state.state, arrived).map(drop)
    }

    /// This player's own state; `None` without a template.
    pub(crate) fn own(&self) -> Option<&Own> {
        self.own.as_ref().map(|stream| &stream.own)
    }

    /// This player's own state, mutable.
    pub(crate) fn own_mut(&mut self) -> Option<&mut Own> {
        self.own.as_mut().map(|stream| &mut stream.own)
    }

    /// The state of another player at `at` of room time; `None` until an update arrives.
    pub(crate) fn state_at(&mut self, member: MemberId, at: Instant) -> Option<State> {
        self.remotes.get_mut(&member)?.state_at(at)
    }

    /// Delay of another player's states on their way here.
    pub(crate) fn latency(&self, member: MemberId) -> Option<Latency> {
        self.remotes.get(&member)?.remote_state()?.latency()
    }

    pub(crate) fn left(&mut self, member: MemberId) {
        self.remotes.remove(&member);
    }
}
