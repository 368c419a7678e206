//! Own states: the one that this player sends, and those received from others.

use crate::state::{Upstream, Way};
use bytes::Bytes;
use parlor_proto::OrderedMap;
use parlor_proto::session::{DeliveryId, Outgoing, Session};
use parlor_proto::wire::replica::{OwnState, StateOf};
use parlor_proto::{Instant, MemberId, PathId, Tick, TickRate, channel, limits};
use parlor_sync::audience::Viewer;
use parlor_sync::replicator::{
    Flow, Flows, Introduction, Latency, Own, Remote, ReplicaError, State, Template,
};
use parlor_sync::world::{Sent, StreamError};
use std::time::Duration;

/// Bytes per second of a player's own state at most; the hub accepts twice as much.
const BYTES_PER_SECOND: u32 = 32 * 1024;
/// A member is asked at most so often how states travel there, and answered at most twice as often.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// An answer counts for so long.
const ANSWER_LASTS: Duration = Duration::from_secs(10);
const _: () = assert!(BYTES_PER_SECOND as usize <= limits::OWN_STATE_BYTES_PER_SECOND);
/// Own states of others kept at most, including those of players not announced yet.
const REMOTES_MAX: usize = limits::MEMBERS_MAX_SERVER_RUN as usize;

/// The own states of all players.
#[derive(Debug)]
pub(crate) struct Replicas {
    me: MemberId,
    rate: TickRate,
    own: Option<Box<OwnStream>>,
    remotes: OrderedMap<MemberId, Other>,
}

/// Another player's state.
#[derive(Debug)]
struct Other {
    remote: Remote,
    /// When it was asked last how this player's states travel there, in room time.
    asked: Option<Instant>,
    /// What it answered last, and when.
    told: Option<(Flow, Instant)>,
    /// When it was answered last.
    answered: Option<Instant>,
}

/// A flow as members tell each other: mean, best, worst and variance of the latency in µs, the lost part in 1/1000,
/// and bytes per second.
pub(crate) type SaidFlow = (u32, u32, u32, u32, u16, u32);

/// This player's own state, and what others have of it.
#[derive(Debug)]
struct OwnStream {
    own: Own,
    /// The encoded schema of the state.
    schema: Bytes,
    to_hub: Stream,
    /// The streams to members with a path.
    to_members: OrderedMap<MemberId, Stream>,
    /// The tick of the last commit.
    committed: Option<Tick>,
}

/// What one receiver has of this player's own state.
#[derive(Debug)]
struct Stream {
    introduction: Introduction,
    upstream: Upstream,
}

impl Stream {
    fn new(viewer: Viewer, schema: Bytes, rate: TickRate) -> Self {
        Stream {
            introduction: Introduction::new(schema),
            upstream: Upstream::to(viewer, BYTES_PER_SECOND, rate.interval()),
        }
    }

    /// Sends what the receiver lacks.
    fn publish(&mut self, me: MemberId, own: &Own, session: &mut Session, way: Way, now: Instant) {
        let Stream { introduction, upstream } = self;
        upstream.publish(own.world(), session, way, now, |packet, sent| {
            let payload = introduction.wrap(packet, sent).encode();
            Outgoing {
                delivery_id: Some(DeliveryId::of_replica(me, sent.0)),
                ..Outgoing::new(channel::REPLICAS, payload)
            }
        });
    }

    /// Notes the fate of a packet.
    fn fate(&mut self, number: u64, delivered: bool) {
        self.upstream.fate(Sent(number), delivered);
        if delivered {
            self.introduction.delivered(Sent(number));
        }
    }
}

impl Replicas {
    pub(crate) fn new(me: MemberId, template: Option<Template>, rate: TickRate) -> Self {
        let own = template.map(|template| {
            let schema = template.form().schema().encode();
            Box::new(OwnStream {
                to_hub: Stream::new(Viewer::Everything, schema.clone(), rate),
                own: Own::new(template, rate, me),
                schema,
                to_members: OrderedMap::new(),
                committed: None,
            })
        });
        Replicas { me, rate, own, remotes: OrderedMap::new() }
    }

    /// Begins all streams anew, over another hub. This player's own state stays.
    pub(crate) fn reopened(&mut self) {
        self.remotes = OrderedMap::new();
        if let Some(OwnStream { to_hub, to_members, schema, .. }) = self.own.as_deref_mut() {
            *to_hub = Stream::new(Viewer::Everything, schema.clone(), self.rate);
            *to_members = OrderedMap::new();
        }
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
        if let Some(OwnStream { own, to_hub, .. }) = self.own.as_deref_mut() {
            to_hub.publish(self.me, own, session, way, now);
        }
    }

    /// When [`publish`](Self::publish) may have more to send.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.own.as_ref().and_then(|stream| stream.to_hub.upstream.poll_timeout())
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(stream) = &mut self.own {
            stream.to_hub.upstream.handle_timeout(now);
        }
    }

    /// Notes the fate of a packet of this player's own state to the hub.
    pub(crate) fn fate(&mut self, number: u64, delivered: bool) {
        if let Some(stream) = &mut self.own {
            stream.to_hub.fate(number, delivered);
        }
    }

    /// Begins a stream to a member over a path.
    pub(crate) fn path_opened(&mut self, peer: MemberId) {
        if let Some(OwnStream { schema, to_members, .. }) = self.own.as_deref_mut() {
            to_members.insert(peer, Stream::new(Viewer::Member(peer), schema.clone(), self.rate));
        }
    }

    /// Ends the stream to a member, because the path is over.
    pub(crate) fn path_closed(&mut self, peer: MemberId) {
        if let Some(stream) = &mut self.own {
            stream.to_members.remove(&peer);
        }
    }

    /// Sends a member what it lacks, over its path.
    pub(crate) fn publish_to(&mut self, peer: MemberId, session: &mut Session, now: Instant) {
        let Some(OwnStream { own, to_members, .. }) = self.own.as_deref_mut() else { return };
        if let Some(stream) = to_members.get_mut(&peer) {
            stream.publish(self.me, own, session, Way::default(), now);
        }
    }

    /// Notes the fate of a packet of this player's own state to a member with a path.
    pub(crate) fn fate_at(&mut self, peer: MemberId, number: u64, delivered: bool) {
        let stream = self.own.as_mut().and_then(|stream| stream.to_members.get_mut(&peer));
        if let Some(stream) = stream {
            stream.fate(number, delivered);
        }
    }

    /// When [`publish_to`](Self::publish_to) may have more to send.
    pub(crate) fn direct_due(&self) -> Option<Instant> {
        let streams = self.own.iter().flat_map(|stream| stream.to_members.values());
        streams.filter_map(|stream| stream.upstream.poll_timeout()).min()
    }

    pub(crate) fn direct_timeout(&mut self, now: Instant) {
        let streams = self.own.iter_mut().flat_map(|stream| stream.to_members.values_mut());
        streams.for_each(|stream| stream.upstream.handle_timeout(now));
    }

    /// Takes in a packet of a member's own state that came over the path `id` at `arrived` of room time.
    pub(crate) fn take_direct(
        &mut self,
        from: MemberId,
        id: PathId,
        payload: Bytes,
        arrived: Instant,
    ) -> Result<(), ReplicaError> {
        let state = OwnState::decode(payload).map_err(StreamError::from)?;
        self.other(from).remote.apply_direct(id, state, arrived).map(drop)
    }

    fn other(&mut self, member: MemberId) -> &mut Other {
        let rate = self.rate;
        let new = || Other { remote: Remote::new(rate), asked: None, told: None, answered: None };
        self.remotes.get_or_insert_with(member, new)
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
        self.other(state.source).remote.apply(state.state, arrived).map(drop)
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
        self.remotes.get_mut(&member)?.remote.state_at(at)
    }

    /// Delay of another player's states on their way here.
    pub(crate) fn latency(&self, member: MemberId) -> Option<Latency> {
        self.remotes.get(&member)?.remote.remote_state()?.latency()
    }

    /// How another player's states travel here, and this player's there, at `now` of room time. Also whether to ask
    /// that player for the latter.
    pub(crate) fn flows(&mut self, member: MemberId, now: Instant) -> (Flows, bool) {
        let is_sending = self.own.is_some();
        let Some(other) = self.remotes.get_mut(&member) else { return (Flows::default(), false) };
        let is_recent = |(_, at): &(Flow, Instant)| now.saturating_since(*at) < ANSWER_LASTS;
        let up = other.told.filter(is_recent).map(|(flow, _)| flow);
        let asks = is_sending && other.asked.is_none_or(|asked| now.saturating_since(asked) >= ASK_EVERY);
        if asks {
            other.asked = Some(now);
        }
        (Flows { down: other.remote.flow(now), up }, asks)
    }

    /// Takes in a member's question (`None`), or its answer. Returns the answer to a question.
    pub(crate) fn heard_flow(
        &mut self,
        from: MemberId,
        said: Option<SaidFlow>,
        now: Instant,
    ) -> Option<SaidFlow> {
        let other = self.remotes.get_mut(&from)?;
        let Some(said) = said else {
            if other.answered.is_some_and(|answered| now.saturating_since(answered) < ASK_EVERY / 2) {
                return None;
            }
            let flow = other.remote.flow(now)?;
            other.answered = Some(now);
            return Some(say(&flow));
        };
        if other.asked.is_some_and(|asked| now.saturating_since(asked) < ANSWER_LASTS) {
            other.told = Some((hear(said), now));
        }
        None
    }

    pub(crate) fn left(&mut self, member: MemberId) {
        self.remotes.remove(&member);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "they saturate, and none is negative"
)]
fn say(flow: &Flow) -> SaidFlow {
    let Latency { mean, best, worst, variance } = flow.latency;
    let [mean, best, worst, variance] =
        [mean, best, worst, variance].map(|time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    (mean, best, worst, variance, (flow.loss * 1_000.0).round() as u16, flow.bytes_per_second.round() as u32)
}

fn hear((mean, best, worst, variance, loss, bytes_per_second): SaidFlow) -> Flow {
    let [mean, best, worst, variance] =
        [mean, best, worst, variance].map(|us| Duration::from_micros(us.into()));
    Flow {
        latency: Latency { mean, best, worst, variance },
        loss: f64::from(loss.min(1_000)) / 1_000.0,
        bytes_per_second: bytes_per_second.into(),
    }
}
