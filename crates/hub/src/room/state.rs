//! The room's state: the authority sends it up once, every member is sent its own view of it.

use super::budget::room_for_state;
use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::{Outgoing, Tag};
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

/// What a budget or the bytes under way held back is tried again after so long, and not with each packet that comes
/// meanwhile: it would leave in crumbs.
const RETRY_AFTER: Duration = Duration::from_millis(15);

/// What the authority published, and how far each member is.
#[derive(Debug)]
pub(super) struct State {
    replica: Replica,
    /// Who is given everything because it becomes the authority.
    heir: Option<Heir>,
    views: Views,
    /// Where the numbers of streams begin that begin under this epoch. Late fates of older ones have lower numbers.
    numbers_from: u64,
    config: PublisherConfig,
    /// Members whose connections take nothing for now, and how many bytes may be under way to each.
    blocked: BTreeMap<MemberId, usize>,
    /// Members that the authority sends the state itself.
    direct: BTreeSet<MemberId>,
    /// Bytes per second of state that the paths of members have room for, where that is known.
    paths: BTreeMap<MemberId, u32>,
    /// Something changed, or was lost, since the last flush.
    due: bool,
    /// When it is tried again to send what a member may not be sent at the moment, if there is something.
    waits_until: Option<Instant>,
}

/// A member that becomes the authority.
#[derive(Debug)]
struct Heir {
    member: MemberId,
    epoch: Epoch,
    publisher: Publisher,
}

/// What a new authority is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Legacy {
    /// Which ids it must not give again.
    pub(super) used: IdsUsed,
    /// Messages to the one before whose numbers are below this are in the state.
    pub(super) taken: u64,
    /// Whether the state went back to when nothing was missing.
    pub(super) went_back: bool,
}

/// Bytes per second that an heir is sent. Everybody waits for it.
const HEIR_BYTES_PER_SECOND: u32 = 512 * 1024;
/// Packets of one stream that may be sent under one epoch, as a power of two.
const NUMBERS_OF_EPOCH_BITS: u32 = 24;

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
        }
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

    /// Whether a member is to go on with the state, and has not said a word of it yet.
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

    /// While a member's connection takes nothing, no more than one packet waits for it: what is made later is newer.
    pub(super) fn writable(&mut self, member: MemberId, writable: bool) {
        if writable {
            self.blocked.remove(&member);
            self.due = true;
        } else {
            self.blocked.insert(member, 1);
        }
        self.configure(member);
    }

    /// What a member's path carries, all included, or that it is not known: no more packets are made than there is room for,
    /// so that they need not wait, and the newest state takes the place of what was not made.
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

    /// A member is sent the state by the authority, and no packets are made for it here; or it is not any more, and has nothing of
    /// what was sent to it from here.
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

    /// A member that has no connection is made no packets.
    pub(super) fn away(&mut self, member: MemberId) {
        self.blocked.insert(member, 0);
        self.configure(member);
    }

    /// What is held is the truth from here on, and `heir` is given all of it, under `epoch`. Messages up to the number `untaken` in
    /// the session of the authority before may be in it in part: then what is held is first what it was when nothing was missing.
    pub(super) fn hand_over(&mut self, heir: MemberId, epoch: Epoch, untaken: Option<u64>) -> Legacy {
        let (taken, back) = untaken.map_or((0, None), |last| self.look_back(Epoch(epoch.0 - 1), last));
        back.into_iter().for_each(|tick| self.replica.go_back(tick));
        let used = self.replica.hand_over();
        self.views.remove(heir);
        // A tag has room for 40 bits of a number: 2^16 epochs, after which the oldest streams are long forgotten.
        self.numbers_from = u64::from(epoch.0 & 0xffff) << NUMBERS_OF_EPOCH_BITS;
        let mut publisher = Publisher::new(Viewer::Everything, PublisherConfig::new(HEIR_BYTES_PER_SECOND));
        publisher.number_from(self.numbers_from);
        self.heir = Some(Heir { member: heir, epoch, publisher });
        self.due = true;
        Legacy { used, taken, went_back: back.is_some() }
    }

    /// Below which number the messages to the authority of `epoch` are taken in the newest state of which nothing is missing, and
    /// the tick of that state if it is an older one and messages up to `last` may have been taken since.
    fn look_back(&self, epoch: Epoch, last: u64) -> (u64, Option<Tick>) {
        let Some(newest) = self.world().tick() else { return (0, None) };
        let whole = self.replica.whole();
        let taken = Taken::told(&self.replica, whole.unwrap_or(newest), epoch, last);
        (taken, whole.filter(|whole| *whole != newest && taken <= last))
    }

    /// What arrived may have something sent, too: it came so late that it counts as lost, or it is the last that was missing, so
    /// that the member can be told that it has all. What is held back anyway waits for its time.
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

    /// Whether something waits for time to pass.
    pub(super) fn is_waiting(&self) -> bool {
        self.waits_until.is_some()
    }

    /// Takes in a packet of the authority; says whether it was news, and whether it is the first of a new authority.
    fn apply(&mut self, packet: Bytes) -> Result<(bool, bool), StreamError> {
        let is_news = matches!(self.replica.apply(packet)?, Outcome::Taken(_));
        // Who goes on with the state has all of it.
        let is_first = self.heir.take_if(|_| is_news).is_some();
        self.due |= is_news;
        Ok((is_news, is_first))
    }

    /// Gives what each member is to be sent.
    fn flush(&mut self, now: Instant, mut send: impl FnMut(MemberId, ChannelId, Bytes, Sent)) {
        if !self.due && self.waits_until.is_none_or(|until| now < until) {
            return;
        }
        self.due = false;
        let world = self.replica.world();
        let mut is_heir_due = false;
        if let Some(Heir { member, epoch, publisher }) = &mut self.heir
            && !self.blocked.contains_key(member)
        {
            let mut encodings = Encodings::new();
            while let Some((packet, sent)) = publisher.poll(world, &mut encodings, now) {
                send(*member, channel::CHECKPOINT, Checkpoint { epoch: *epoch, packet }.encode(), sent);
            }
            is_heir_due = publisher.is_due(world);
        }
        self.views.flush(world, now, |member, packet, sent| send(member, channel::STATE, packet, sent));
        let members: Vec<MemberId> = self.views.members().filter(|member| !self.is_held(*member)).collect();
        let mut is_due = |member| self.views.publisher_mut(member).is_some_and(|it| it.is_due(world));
        self.waits_until = (is_heir_due || members.into_iter().any(&mut is_due)).then(|| now + RETRY_AFTER);
    }

    /// Whether no packets are made for a member at the moment.
    fn is_held(&self, member: MemberId) -> bool {
        self.blocked.contains_key(&member) || self.direct.contains(&member)
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
        if !self.is_word_of_authority(from, "state")? {
            return Ok(());
        }
        if epoch > self.epoch {
            // Epochs are given by the hub: nobody can know of one before it does.
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

    /// Gives every member that may see something new its packets. The authority wrote the state and needs none.
    pub(super) fn flush_state(&mut self, now: Instant) {
        let outputs = &mut self.outputs;
        self.state.flush(now, |member, channel, payload, sent| {
            let tag = Some(Tag::of_state(sent.0));
            let message = Outgoing { channel, key: 0, payload, tag };
            outputs.push_back(Output::Send { to: vec![member], message });
        });
    }

    /// Whether a member may not act on an entity, and why.
    pub(super) fn action_refusal(&self, member: MemberId, entity: EntityId) -> Option<ActionRefusal> {
        self.state.refusal(member, self.authority.member() == Some(member), entity)
    }
}
