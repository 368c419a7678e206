//! The room's state: the authority sends it up once, every member is sent its own view of it.

use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::{Outgoing, Tag};
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::wire::cursor::ReadError;
use parlor_proto::{EntityId, Epoch, Instant, MemberId, PeerMisbehaved, TickRate, channel};
use parlor_sync::schema::Schema;
use parlor_sync::world::{Outcome, PublisherConfig, Replica, Sent, StreamError, Views, World};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What a budget or the bytes under way held back is tried again after so long, and not with each packet that comes
/// meanwhile: it would leave in crumbs.
const RETRY_AFTER: Duration = Duration::from_millis(15);

/// What the authority published, and how far each member is.
#[derive(Debug)]
pub(super) struct State {
    replica: Replica,
    views: Views,
    config: PublisherConfig,
    /// Members whose connections take nothing for now.
    blocked: BTreeSet<MemberId>,
    /// Something changed, or was lost, since the last flush.
    due: bool,
    /// When it is tried again to send what a member may not be sent at the moment, if there is something.
    waits_until: Option<Instant>,
}

impl State {
    pub(super) fn new(schema: Arc<Schema>, rate: TickRate, bytes_per_second: u32) -> Self {
        State {
            views: Views::new(&schema),
            replica: Replica::of_everything(schema, rate),
            config: PublisherConfig::new(bytes_per_second),
            blocked: BTreeSet::new(),
            due: false,
            waits_until: None,
        }
    }

    pub(super) fn world(&self) -> &World {
        self.replica.world()
    }

    pub(super) fn add(&mut self, member: MemberId) {
        self.views.add(member, self.config);
        self.due = true;
    }

    pub(super) fn remove(&mut self, member: MemberId) {
        self.views.remove(member);
        self.blocked.remove(&member);
    }

    /// While a member's connection takes nothing, no more than one packet waits for it: what is made later is newer.
    pub(super) fn writable(&mut self, member: MemberId, writable: bool) {
        let Some(publisher) = self.views.publisher_mut(member) else { return };
        if writable {
            self.blocked.remove(&member);
            publisher.set_config(self.config);
            self.due = true;
        } else {
            self.blocked.insert(member);
            publisher.set_config(PublisherConfig { in_flight_bytes_max: 1, ..self.config });
        }
    }

    /// What arrived may have something sent, too: it came so late that it counts as lost, or it is the last that was missing, so
    /// that the member can be told that it has all. What is held back anyway waits for its time.
    pub(super) fn fate(&mut self, member: MemberId, number: u64, delivered: bool) {
        self.views.fate(member, Sent(number), delivered);
        self.due |= !delivered || self.blocked.contains(&member);
        if !self.due && !self.is_waiting() {
            let world = self.replica.world();
            self.due = self.views.publisher_mut(member).is_some_and(|publisher| publisher.is_due(world));
        }
    }

    /// Whether something waits for time to pass.
    pub(super) fn is_waiting(&self) -> bool {
        self.waits_until.is_some()
    }

    /// Takes in a packet of the authority; says whether it was news.
    fn apply(&mut self, packet: Bytes) -> Result<bool, StreamError> {
        let is_news = matches!(self.replica.apply(packet)?, Outcome::Taken(_));
        self.due |= is_news;
        Ok(is_news)
    }

    /// Gives what each member is to be sent.
    fn flush(&mut self, now: Instant, send: impl FnMut(MemberId, Bytes, Sent)) {
        if !self.due && self.waits_until.is_none_or(|until| now < until) {
            return;
        }
        self.due = false;
        let world = self.replica.world();
        self.views.flush(world, now, send);
        let members: Vec<MemberId> =
            self.views.members().filter(|member| !self.blocked.contains(member)).collect();
        let mut is_due = |member| self.views.publisher_mut(member).is_some_and(|it| it.is_due(world));
        self.waits_until = members.into_iter().any(&mut is_due).then(|| now + RETRY_AFTER);
    }

    /// Whether a member may not act on an entity, and why. What it does not see is not there for it.
    fn refusal(&self, member: MemberId, is_authority: bool, entity: EntityId) -> Option<ActionRefusal> {
        let Ok(owner) = self.world().owner(entity) else { return Some(ActionRefusal::NoSuchEntity) };
        if owner == Some(member) || is_authority && owner.is_none() {
            return None;
        }
        let sees = self.views.publisher(member).is_none_or(|publisher| publisher.sees(entity.slot));
        Some(if sees { ActionRefusal::NotOwner } else { ActionRefusal::NoSuchEntity })
    }
}

impl Room {
    /// Takes a packet of the authority in. One under an older epoch is ignored: it was under way when the authority
    /// changed.
    pub(super) fn state_from(
        &mut self,
        from: MemberId,
        payload: Bytes,
        epoch: Epoch,
    ) -> Result<(), PeerMisbehaved> {
        if epoch < self.epoch {
            self.counters.stale_epoch += 1;
            return Ok(());
        }
        self.expect_authority(from, "state")?;
        if epoch > self.epoch {
            // Epochs are given by the hub: nobody can know of one before it does.
            let error = ReadError::OutOfRange { field: "epoch" };
            return Err(PeerMisbehaved::Malformed { what: "the state", error });
        }
        let bad = |error: StreamError| PeerMisbehaved::BadState { detail: error.to_string() };
        let is_news = self.state.apply(payload).map_err(bad)?;
        let counter = if is_news { &mut self.counters.updates } else { &mut self.counters.updates_old };
        *counter += 1;
        Ok(())
    }

    /// Gives every member that may see something new its packets. The authority wrote the state and needs none.
    pub(super) fn flush_state(&mut self, now: Instant) {
        let outputs = &mut self.outputs;
        self.state.flush(now, |member, payload, sent| {
            let tag = Some(Tag::of_state(sent.0));
            let message = Outgoing { channel: channel::STATE, key: 0, payload, tag };
            outputs.push_back(Output::Send { to: vec![member], message });
        });
    }

    /// Whether a member may not act on an entity, and why.
    pub(super) fn action_refusal(&self, member: MemberId, entity: EntityId) -> Option<ActionRefusal> {
        self.state.refusal(member, self.authority.member() == Some(member), entity)
    }
}
