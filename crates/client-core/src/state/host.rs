//! The authority's side: the world that it writes.

use super::check_of_game;
use super::scope::{self, Scope};
use super::upstream::{Upstream, Way};
use super::views::DirectViews;
use parlor_proto::OrderedMap;
use parlor_proto::session::{DeliveryId, Outgoing, Session};
use parlor_proto::{EntityId, Epoch, Instant, MemberId, Tick, TickRate, channel};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::inputs::Report;
use parlor_sync::keyed::{Hints, Keys, StateError, Taken};
use parlor_sync::schema::Schema;
use parlor_sync::value::Value;
use parlor_sync::world::{Diagnostics, IdsUsed, Replica, Sent, World, WorldError};
use std::sync::Arc;

/// Bytes per second from the authority to its hub at most. The hub limits its own sending to members.
const BYTES_PER_SECOND: u32 = 1024 * 1024;

/// The world that the authority writes, and what the hub has of it.
#[derive(Debug)]
pub(crate) struct Host {
    world: World,
    keys: Keys,
    upstream: Upstream,
    /// Set once the game filters who sees what.
    pub(super) scope: Option<Scope>,
    /// Set once a member has a path to this process.
    direct: Option<Box<DirectViews>>,
}

impl Host {
    pub(crate) fn new(schema: Arc<Schema>, rate: TickRate) -> Self {
        Host {
            world: World::new(schema, rate),
            keys: Keys::new(),
            upstream: Upstream::new(BYTES_PER_SECOND, rate.interval()),
            scope: None,
            direct: None,
        }
    }

    /// Continues the world of a previous host from a complete replica.
    pub(crate) fn succeed(
        replica: Replica,
        used: IdsUsed,
        rate: TickRate,
        epoch: Epoch,
    ) -> Result<Self, StateError> {
        let mut world = replica.into_successor(used);
        let upstream = Upstream::of_successor(&world, BYTES_PER_SECOND, rate.interval(), epoch);
        // Input reports to members start again once an input is used.
        let (keys, _) = Keys::of_world(&mut world)?;
        let scope = scope::of_world(&world);
        Ok(Host { world, keys, upstream, scope, direct: None })
    }

    /// Sends the world from nothing, to another hub. Paths are over.
    pub(crate) fn reopened(&mut self) {
        self.upstream = Upstream::new(BYTES_PER_SECOND, self.world.rate().interval());
        self.direct = None;
    }

    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// The world, to restore all of the game's entities.
    pub(crate) fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) fn set(&mut self, key: &str, value: &Value, audience: Audience) -> Result<(), StateError> {
        self.keys.set(&mut self.world, key, value, audience).map(drop)
    }

    pub(crate) fn remove_key(&mut self, key: &str) -> Result<bool, StateError> {
        Ok(self.keys.remove(&mut self.world, key)?)
    }

    pub(crate) fn declare(&mut self, prefix: &str, hints: Hints) -> Result<(), StateError> {
        self.keys.declare(&mut self.world, prefix, hints)
    }

    /// The world, to change an entity of the game.
    pub(crate) fn entity(&mut self, entity: EntityId) -> Result<&mut World, WorldError> {
        check_of_game(&self.world, entity)?;
        Ok(&mut self.world)
    }

    /// Commits the writes since the last commit under `label`, or waits if `label` is not newer than the last
    /// one. The commit records `taken`: the consumed messages whose effects are in it. Returns whether there
    /// is something to publish.
    pub(crate) fn commit(
        &mut self,
        label: Tick,
        taken: Option<Taken>,
        reports: impl FnOnce() -> OrderedMap<MemberId, Report>,
    ) -> bool {
        if self.world.tick().is_some_and(|newest| label.0 <= newest.0) {
            return false;
        }
        // If an acknowledgement does not fit, its member waits until one does.
        let _: Result<(), WorldError> = self.keys.acknowledge(&mut self.world, &reports());
        if let Some(taken) = taken {
            // Likewise, messages that do not fit stay unacknowledged.
            let _: Result<(), WorldError> = self.keys.note_taken(&mut self.world, taken);
        }
        self.keys.close(&mut self.world).expect("nobody else removes the entities of keys");
        let is_news = self.world.is_dirty() && self.world.commit(label).expect("the label is newer");
        if let Some(direct) = self.direct.as_mut().filter(|_| is_news) {
            direct.written();
        }
        is_news
    }

    /// Starts the stream to a member with a new path, from nothing.
    pub(crate) fn serve(&mut self, member: MemberId) {
        let world = &self.world;
        self.direct.get_or_insert_with(|| Box::new(DirectViews::new(world))).add(member);
    }

    pub(crate) fn direct_parts(&mut self) -> (&World, Option<&mut DirectViews>) {
        (&self.world, self.direct.as_deref_mut())
    }

    pub(crate) fn direct_mut(&mut self) -> Option<&mut DirectViews> {
        self.direct.as_deref_mut()
    }

    pub(crate) fn direct(&self) -> Option<&DirectViews> {
        self.direct.as_deref()
    }

    /// The consumed messages as of the last commit.
    pub(crate) fn taken(&self) -> Option<Taken> {
        self.keys.taken().filter(|_| !self.world.is_dirty())
    }

    /// Whether everything that was written is committed.
    pub(crate) fn is_committed(&self) -> bool {
        !self.world.is_dirty()
    }

    /// Whether the hub has everything that is committed.
    pub(crate) fn is_at_hub(&self) -> bool {
        let is_there = |tick: Tick| self.upstream.ack_watermark().is_some_and(|has| !tick.is_newer_than(has));
        self.world.tick().is_none_or(is_there)
    }

    /// Sends the hub what it lacks.
    pub(crate) fn publish(&mut self, session: &mut Session, way: Way, now: Instant) {
        self.upstream.publish(&self.world, session, way, now, |packet, sent| Outgoing {
            delivery_id: Some(DeliveryId::of_state(sent.0)),
            ..Outgoing::new(channel::STATE, packet)
        });
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.upstream.handle_timeout(now);
    }

    /// Notes the fate of a published packet.
    pub(crate) fn fate(&mut self, number: u64, delivered: bool) {
        self.upstream.fate(Sent(number), delivered);
    }

    pub(crate) fn diagnostics(&self) -> Diagnostics {
        self.upstream.diagnostics(&self.world)
    }

    pub(crate) fn hash(&self) -> Option<(u64, u64)> {
        let tick = self.world.tick()?;
        Some((u64::from(tick.0), self.keys.hash(Viewer::Everything)))
    }
}
