//! The room's state: the authority sends it once, and each member receives its own view of it.

use super::budget::room_for_state;
use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::{DeliveryId, Outgoing};
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::wire::cursor::ReadError;
use parlor_proto::wire::replica::Checkpoint;
use parlor_proto::{ChannelId, EntityId, Epoch, Instant, MemberId, PeerMisbehaved, Tick, TickRate, channel};
use parlor_sync::audience::Viewer;
use parlor_sync::keyed::Taken;
use parlor_sync::schema::Schema;
use parlor_sync::world::{
    Encodings, IdsUsed, Outcome, Publisher, PublisherConfig, Replica, Sent, StreamError, Views, World,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Delay before retrying after a budget or the in-flight limit held data back. Retrying with each arriving
/// packet would send tiny fragments.
const RETRY_AFTER: Duration = Duration::from_millis(15);

/// The published state, and each member's progress.
#[derive(Debug)]
pub(super) struct State {
    replica: Replica,
    /// The member that receives the whole state because it becomes the authority.
    heir: Option<Box<Heir>>,
    views: Views,
    /// Where the streams of this epoch start numbering. Late fates of older ones are lower.
    numbers_from: u64,
    config: PublisherConfig,
    /// Blocked members, and the in-flight byte limit of each.
    blocked: BTreeMap<MemberId, usize>,
    /// Members that receive the state directly from the authority.
    direct: BTreeSet<MemberId>,
    /// Known path capacities of members for state, in bytes per second.
    paths: BTreeMap<MemberId, u32>,
    /// Something changed, or was lost, since the last flush.
    due: bool,
    /// When to retry held-back data; `None` if there is none.
    waits_until: Option<Instant>,
    /// Bytes of memory of `views` at the last flush.
    views_bytes: usize,
}

/// A member that becomes the authority.
#[derive(Debug)]
struct Heir {
    member: MemberId,
    epoch: Epoch,
    publisher: Publisher,
}

/// What a new authority inherits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Legacy {
    /// Entity ids that it must not reuse.
    pub(super) used: IdsUsed,
    /// Messages to the old authority with lower numbers are contained in the state.
    pub(super) taken: u64,
    /// Whether the state was rolled back to the last complete version.
    pub(super) went_back: bool,
}

/// State bytes per second sent to an heir. High, because all members wait for it.
const HEIR_BYTES_PER_SECOND: u32 = 512 * 1024;

impl State {
    pub(super) fn new(schema: Arc<Schema>, rate: TickRate, bytes_per_second: u32) -> Self {
        State {
            heir: None,
            views: Views::new(&schema),
            numbers_from: 0,
            replica: Replica::of_everything(schema, rate),
            config: PublisherConfig::new(bytes_per_second),
            blocked: BTreeMap::new(),
            direct: BTreeSet::new(),
            paths: BTreeMap::new(),
            due: false,
            waits_until: None,
            views_bytes: 0,
        }
    }

    /// Returns its memory in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let heir = self.heir.as_ref().map_or(0, |heir| heir.publisher.memory_bytes());
        self.replica.memory_bytes() + heir + self.views_bytes
    }

    pub(super) fn world(&self) -> &World {
        self.replica.world()
    }

    pub(super) fn add(&mut self, member: MemberId) {
        self.views.add(member, self.config_of(member));
        if let Some(publisher) = self.views.publisher_mut(member) {
            publisher.number_from(self.numbers_from);
        }
        self.due = true;
    }

    /// Whether a new authority has been named and has not sent state yet.
    pub(super) fn is_handed_over(&self) -> bool {
        self.heir.is_some()
    }

    /// Whether a member is sent its view.
    pub(super) fn has(&self, member: MemberId) -> bool {
        self.views.publisher(member).is_some()
    }

    pub(super) fn remove(&mut self, member: MemberId) {
        self.views.remove(member);
        self.blocked.remove(&member);
        self.direct.remove(&member);
        self.paths.remove(&member);
        self.heir.take_if(|heir| heir.member == member);
    }

    /// Limits a blocked member to one packet in flight: a packet made later is newer.
    pub(super) fn writable(&mut self, member: MemberId, writable: bool) {
        if writable {
            self.blocked.remove(&member);
            self.due = true;
        } else {
            self.blocked.insert(member, 1);
        }
        self.configure(member);
    }

    /// Sets the capacity of a member's path in bytes per second, including overhead; `None` if unknown.
    /// Packets beyond the capacity are not made, so none of them queue and the newest state is sent instead.
    pub(super) fn path(&mut self, member: MemberId, bytes_per_second: Option<u32>) {
        match bytes_per_second.filter(|_| self.has(member)) {
            Some(carries) => self.paths.insert(member, room_for_state(carries)),
            None => self.paths.remove(&member),
        };
        self.configure(member);
    }

    fn configure(&mut self, member: MemberId) {
        let config = self.config_of(member);
        if let Some(publisher) = self.views.publisher_mut(member) {
            publisher.set_config(config);
        }
    }

    fn config_of(&self, member: MemberId) -> PublisherConfig {
        let most = self.config.bytes_per_second;
        let path = self.paths.get(&member).filter(|path| **path < most);
        let config = path.map_or(self.config, |path| PublisherConfig::new(*path));
        let is_direct = self.direct.contains(&member);
        let blocked = if is_direct { Some(0) } else { self.blocked.get(&member).copied() };
        PublisherConfig { in_flight_bytes_max: blocked.unwrap_or(config.in_flight_bytes_max), ..config }
    }

    /// Sets whether the authority sends a member its state directly. If so, the hub sends it none. Otherwise
    /// the hub's stream restarts from nothing.
    pub(super) fn direct(&mut self, member: MemberId, direct: bool) {
        if direct {
            self.direct.insert(member);
        } else {
            self.direct.remove(&member);
            if let Some(publisher) = self.views.publisher_mut(member) {
                publisher.restart();
            }
            self.due = true;
        }
        self.configure(member);
    }

    /// Stops sending to a member without a connection.
    pub(super) fn away(&mut self, member: MemberId) {
        self.blocked.insert(member, 0);
        self.configure(member);
    }

    /// Begins with this epoch, of which nothing has come yet.
    pub(super) fn begin(&mut self, epoch: Epoch) {
        self.numbers_from = DeliveryId::first_number(epoch);
    }

    /// Makes the held state authoritative and sends all of it to `heir`, under `epoch`. Messages to the old
    /// authority up to the number `untaken` may be partly included; if so, the state is first rolled back to
    /// the last complete version.
    pub(super) fn hand_over(&mut self, heir: MemberId, epoch: Epoch, untaken: Option<u64>) -> Legacy {
        let (taken, back) = untaken.map_or((0, None), |last| self.look_back(Epoch(epoch.0 - 1), last));
        back.into_iter().for_each(|tick| self.replica.go_back(tick));
        let used = self.replica.hand_over();
        self.views.remove(heir);
        self.numbers_from = DeliveryId::first_number(epoch);
        let mut publisher = Publisher::new(Viewer::Everything, PublisherConfig::new(HEIR_BYTES_PER_SECOND));
        publisher.number_from(self.numbers_from);
        self.heir = Some(Box::new(Heir { member: heir, epoch, publisher }));
        self.due = true;
        Legacy { used, taken, went_back: back.is_some() }
    }

    /// Returns the number below which messages to the authority of `epoch` are included in the newest
    /// complete state. Also returns that state's tick if it is older and messages up to `last` may have been
    /// processed since.
    fn look_back(&self, epoch: Epoch, last: u64) -> (u64, Option<Tick>) {
        let Some(newest) = self.world().tick() else { return (0, None) };
        let whole = self.replica.whole();
        let taken = Taken::told(&self.replica, whole.unwrap_or(newest), epoch, last);
        (taken, whole.filter(|whole| *whole != newest && taken <= last))
    }

    /// Records the fate of an update. A delivery may trigger sending too: one that came after its loss was
    /// assumed, or the last missing one, after which the member can be told that it is complete. Held-back
    /// data still waits.
    pub(super) fn fate(&mut self, member: MemberId, number: u64, delivered: bool) {
        match self.heir.as_mut().filter(|heir| heir.member == member) {
            Some(_) if number < self.numbers_from => {}
            Some(heir) if delivered => heir.publisher.delivered(Sent(number)),
            Some(heir) => heir.publisher.lost(Sent(number)),
            None => self.views.fate(member, Sent(number), delivered),
        }
        self.due |= !delivered || self.blocked.contains_key(&member);
        if !self.due && !self.is_waiting() {
            let world = self.replica.world();
            let heir =
                self.heir.as_mut().filter(|heir| heir.member == member).map(|heir| &mut heir.publisher);
            let publisher = heir.or_else(|| self.views.publisher_mut(member));
            self.due = publisher.is_some_and(|publisher| publisher.is_due(world));
        }
    }

    /// Whether data is waiting for time to pass.
    pub(super) fn is_waiting(&self) -> bool {
        self.waits_until.is_some()
    }

    /// Applies a packet of the authority. Returns whether it is new, and the first of a new authority.
    fn apply(&mut self, packet: Bytes) -> Result<(bool, bool), StreamError> {
        let is_news = matches!(self.replica.apply(packet)?, Outcome::Taken(_));
        // An heir that sends state has received all of it.
        let is_first = self.heir.take_if(|_| is_news).is_some();
        self.due |= is_news;
        Ok((is_news, is_first))
    }

    /// Sends what is due to each member.
    fn flush(&mut self, now: Instant, mut send: impl FnMut(MemberId, ChannelId, Bytes, Sent)) {
        if !self.due && self.waits_until.is_none_or(|until| now < until) {
            return;
        }
        self.due = false;
        let world = self.replica.world();
        let mut is_heir_due = false;
        if let Some(Heir { member, epoch, publisher }) = self.heir.as_deref_mut()
            && !self.blocked.contains_key(member)
        {
            let mut encodings = Encodings::new();
            while let Some((packet, sent)) = publisher.poll(world, &mut encodings, now) {
                send(*member, channel::CHECKPOINT, Checkpoint { epoch: *epoch, packet }.encode(), sent);
            }
            is_heir_due = publisher.is_due(world);
        }
        self.views.flush(world, now, |member, packet, sent| send(member, channel::STATE, packet, sent));
        self.views_bytes = self.views.memory_bytes(world);
        let members: Vec<MemberId> = self.views.members().filter(|member| !self.is_held(*member)).collect();
        let mut is_due = |member| self.views.publisher_mut(member).is_some_and(|it| it.is_due(world));
        self.waits_until = (is_heir_due || members.into_iter().any(&mut is_due)).then(|| now + RETRY_AFTER);
    }

    /// Whether no packets are made for a member at the moment.
    fn is_held(&self, member: MemberId) -> bool {
        self.blocked.contains_key(&member) || self.direct.contains(&member)
    }

    /// Returns why a member may not act on an entity; `None` if it may. Unseen entities do not exist for it.
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
    /// Applies a state packet of the authority. Ignores an older epoch: it was in flight at the change.
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
        if !self.is_word_of_authority(from, "state")? {
            return Ok(());
        }
        if epoch > self.epoch {
            // The hub assigns epochs: no member can know a later one.
            let error = ReadError::OutOfRange { field: "epoch" };
            return Err(PeerMisbehaved::Malformed { what: "the state", error });
        }
        let bad = |error: StreamError| PeerMisbehaved::BadState { detail: error.to_string() };
        let (is_news, is_first) = self.state.apply(payload).map_err(bad)?;
        if is_first {
            self.goes_on();
        }
        let counter = if is_news { &mut self.counters.updates } else { &mut self.counters.updates_old };
        *counter += 1;
        Ok(())
    }

    /// Sends every member the changes in its view. The authority wrote the state and needs none.
    pub(super) fn flush_state(&mut self, now: Instant) {
        let outputs = &mut self.outputs;
        self.state.flush(now, |member, channel, payload, sent| {
            let delivery_id = Some(DeliveryId::of_state(sent.0));
            let message = Outgoing { channel, key: 0, payload, delivery_id };
            outputs.push_back(Output::Send { to: vec![member], message });
        });
    }

    /// Returns why a member may not act on an entity; `None` if it may.
    pub(super) fn action_refusal(&self, member: MemberId, entity: EntityId) -> Option<ActionRefusal> {
        self.state.refusal(member, self.authority.member() == Some(member), entity)
    }
}
