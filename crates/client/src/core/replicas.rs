//! States that players send of themselves: this player's own, and those of all others.

use super::error::RoomError;
use super::room::{Joined, RoomCore};
use super::upstream::{Upstream, Way};
use parlor_proto::session::{Outgoing, Session, Tag};
use parlor_proto::wire::envelope::To;
use parlor_proto::wire::replica::StateOf;
use parlor_proto::{ApiMisuse, Instant, Lane, MemberId, Tick, TickRate, channel, limits};
use parlor_sync::replicator::{Introduction, Latency, Own, Remote, ReplicaError, Template};
use parlor_sync::schema::Replicated;
use parlor_sync::world::{Sent, WorldError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes per second that a player's own state takes at most; the hub takes twice as much.
const BYTES_PER_SECOND: u32 = 32 * 1024;
const _: () = assert!(BYTES_PER_SECOND as usize <= limits::OWN_STATE_BYTES_PER_SECOND);
/// States of others that are kept, those of players who are not known yet included.
const REMOTES_MAX: usize = limits::MEMBERS_MAX_SERVER_RUN as usize;

/// All states that players send of themselves.
#[derive(Debug)]
pub(super) struct Replicas {
    me: MemberId,
    rate: TickRate,
    own: Option<Box<OwnStream>>,
    remotes: BTreeMap<MemberId, Remote>,
}

/// This player's own state, and how far the hub is with it.
#[derive(Debug)]
struct OwnStream {
    own: Own,
    introduction: Introduction,
    upstream: Upstream,
    /// The tick of the last commit.
    committed: Option<Tick>,
}

impl Replicas {
    pub(super) fn new(me: MemberId, template: Option<Template>, rate: TickRate) -> Self {
        let own = template.map(|template| {
            Box::new(OwnStream {
                introduction: Introduction::new(template.form().schema().encode()),
                own: Own::new(template, rate, me),
                upstream: Upstream::new(BYTES_PER_SECOND, rate.interval()),
                committed: None,
            })
        });
        Replicas { me, rate, own, remotes: BTreeMap::new() }
    }

    /// Ends a step; says whether there is something to send.
    pub(super) fn commit(&mut self, label: Tick) -> bool {
        let Some(stream) = &mut self.own else { return false };
        if stream.committed.is_some_and(|committed| label.0 <= committed.0) {
            return false;
        }
        stream.committed = Some(label);
        stream.own.commit(label).expect("the label is newer, and one entity fits")
    }

    /// Sends the hub what it does not have yet.
    pub(super) fn publish(&mut self, session: &mut Session, way: Way, now: Instant) {
        let me = self.me;
        let Some(stream) = &mut self.own else { return };
        let OwnStream { own, introduction, upstream, .. } = &mut **stream;
        upstream.publish(own.world(), session, way, now, |packet, sent| {
            let payload = introduction.wrap(packet, sent).encode();
            Outgoing { tag: Some(Tag::of_replica(me, sent.0)), ..Outgoing::new(channel::REPLICAS, payload) }
        });
    }

    /// When [`publish`](Self::publish) may have more to send.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.own.as_ref().and_then(|stream| stream.upstream.poll_timeout())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(stream) = &mut self.own {
            stream.upstream.handle_timeout(now);
        }
    }

    /// What became of a packet of this player's own state.
    pub(super) fn fate(&mut self, number: u64, delivered: bool) {
        let Some(stream) = &mut self.own else { return };
        stream.upstream.fate(Sent(number), delivered);
        if delivered {
            stream.introduction.delivered(Sent(number));
        }
    }

    /// Takes in a packet of another player's state that came at `arrived` of room time. It may come before the word that the
    /// player is there; `is_here` says of whom that is known.
    pub(super) fn take(
        &mut self,
        state: StateOf,
        arrived: Instant,
        is_here: impl Fn(MemberId) -> bool,
    ) -> Result<(), ReplicaError> {
        if self.remotes.len() >= REMOTES_MAX {
            self.remotes.retain(|member, _| is_here(*member));
        }
        let rate = self.rate;
        let remote = self.remotes.entry(state.source).or_insert_with(|| Remote::new(rate));
        remote.apply(state.state, arrived).map(drop)
    }

    pub(super) fn left(&mut self, member: MemberId) {
        self.remotes.remove(&member);
    }
}

/// For a game: states that players send of themselves.
impl RoomCore {
    /// Sets this player's own state, as often as the game likes. With each step it is decided whether others must be told.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or was opened without a template, a number is NaN or infinite, or the type does not
    /// fit the template.
    pub fn set_own<C: Replicated>(&mut self, state: &C) -> Result<(), RoomError> {
        let stream = self.own_stream("set its own state")?;
        Ok(stream.own.set(state).map_err(WorldError::Row)?)
    }

    /// Says that what is set next does not follow from what was before: others see it there at once, and nothing in between.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or was opened without a template.
    pub fn cut_own(&mut self) -> Result<(), RoomError> {
        self.own_stream("set its own state")?.own.cut();
        Ok(())
    }

    /// The state of a player at `at` of room time (at `now` if not said): extrapolated beyond what came, and where that proves
    /// wrong, the error is blended away. The own state is as it was set last. `None` until something came, or if the player's
    /// state is not of this type.
    pub fn proxy<C: Replicated>(
        &mut self,
        member: MemberId,
        at: Option<Duration>,
        now: Instant,
    ) -> Option<C> {
        let joined = self.joined.as_mut()?;
        let at = at.map_or_else(|| joined.room_time(now), |at| Instant::ZERO + at);
        if member == joined.welcome.member {
            return joined.replicas.own.as_ref()?.own.get();
        }
        joined.players.get(member)?;
        let state = joined.replicas.remotes.get_mut(&member)?.state_at(at)?;
        (state.name() == C::NAME).then(|| state.read())
    }

    /// How late the states of a player arrive here.
    #[must_use]
    pub fn proxy_latency(&self, member: MemberId) -> Option<Latency> {
        self.joined.as_ref()?.replicas.remotes.get(&member)?.proxy()?.latency()
    }

    /// The player whom messages to the primary reach, if there is one.
    #[must_use]
    pub fn primary(&self) -> Option<MemberId> {
        self.joined.as_ref().and_then(|joined| joined.primary)
    }

    /// Sends an event to all other players: in the order of sending, or as soon as it can be. It comes as a message.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn broadcast_event<T: Serialize + ?Sized>(
        &mut self,
        kind: &str,
        event: &T,
        in_order: bool,
    ) -> Result<(), RoomError> {
        self.send(event_lane(in_order), To::Others, kind, event, false)
    }

    /// Sends an event to the primary, whoever that is when the hub has it: in the order of sending, or as soon as it can be. It
    /// comes as a message.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_to_primary<T: Serialize + ?Sized>(
        &mut self,
        kind: &str,
        event: &T,
        in_order: bool,
    ) -> Result<(), RoomError> {
        self.send(event_lane(in_order), To::Primary, kind, event, false)
    }

    fn own_stream(&mut self, what: &'static str) -> Result<&mut OwnStream, RoomError> {
        let (_, Joined { replicas, .. }) = self.open_with_host(what)?;
        let missing = "this room was opened without a template: give RoomBuilder::template() one first";
        replicas.own.as_deref_mut().ok_or_else(|| ApiMisuse::Bounds(missing.into()).into())
    }
}

fn event_lane(in_order: bool) -> Lane {
    if in_order { Lane::ReliableOrdered } else { Lane::ReliableUnordered }
}
