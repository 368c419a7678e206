//! The authority's share: the world that it writes.

use super::check_of_game;
use crate::core::paths::DirectViews;
use crate::core::upstream::{Upstream, Way};
use parlor_proto::session::{Outgoing, Session, Tag};
use parlor_proto::{EntityId, Epoch, Instant, MemberId, Tick, TickRate, channel};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::inputs::Report;
use parlor_sync::keyed::{Hints, Keys, StateError, Taken};
use parlor_sync::schema::Schema;
use parlor_sync::value::Value;
use parlor_sync::world::{Diagnostics, IdsUsed, Replica, Sent, World, WorldError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes per second that the authority sends its hub at most. What the hub sends each member is bounded there.
const BYTES_PER_SECOND: u32 = 1024 * 1024;

/// The world that the authority writes, and how far its hub is.
#[derive(Debug)]
pub(in crate::core) struct Host {
    world: World,
    keys: Keys,
    upstream: Upstream,
    /// Once a member has a path to this process.
    direct: Option<Box<DirectViews>>,
}

impl Host {
    pub(super) fn new(schema: Arc<Schema>, rate: TickRate) -> Self {
        Host {
            world: World::new(schema, rate),
            keys: Keys::new(),
            upstream: Upstream::new(BYTES_PER_SECOND, rate.interval()),
            direct: None,
        }
    }

    /// The world of a replica that has everything of a host that is gone, to go on with.
    pub(in crate::core) fn succeed(
        replica: Replica,
        used: IdsUsed,
        rate: TickRate,
        epoch: Epoch,
    ) -> Result<Self, StateError> {
        let mut world = replica.into_successor(used);
        let upstream = Upstream::of_successor(&world, BYTES_PER_SECOND, rate.interval(), epoch);
        // What members were told of their inputs is told anew once one is used.
        let (keys, _) = Keys::of_world(&mut world)?;
        Ok(Host { world, keys, upstream, direct: None })
    }

    pub(in crate::core) fn world(&self) -> &World {
        &self.world
    }

    /// The world, to set all of the game's entities back.
    pub(in crate::core) fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    pub(in crate::core) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(in crate::core) fn set(
        &mut self,
        key: &str,
        value: &Value,
        audience: Audience,
    ) -> Result<(), StateError> {
        self.keys.set(&mut self.world, key, value, audience).map(drop)
    }

    pub(in crate::core) fn remove_key(&mut self, key: &str) -> Result<bool, StateError> {
        Ok(self.keys.remove(&mut self.world, key)?)
    }

    pub(in crate::core) fn declare(&mut self, prefix: &str, hints: Hints) -> Result<(), StateError> {
        self.keys.declare(&mut self.world, prefix, hints)
    }

    pub(in crate::core) fn spawn(&mut self, owner: Option<MemberId>) -> Result<EntityId, WorldError> {
        self.world.spawn(owner)
    }

    /// The world, to change an entity of the game in it.
    pub(in crate::core) fn entity(&mut self, entity: EntityId) -> Result<&mut World, WorldError> {
        check_of_game(&self.world, entity)?;
        Ok(&mut self.world)
    }

    /// Closes what was written since the last commit, under `label`; it waits if that is not newer than the last one. With it goes
    /// which messages were taken, if that matters, what came of them being written. Says whether there is something to publish.
    pub(in crate::core) fn commit(
        &mut self,
        label: Tick,
        taken: Option<Taken>,
        reports: impl FnOnce() -> BTreeMap<MemberId, Report>,
    ) -> bool {
        if self.world.tick().is_some_and(|newest| label.0 <= newest.0) {
            return false;
        }
        // If there is no room for an acknowledgement, its member waits until there is.
        let _: Result<(), WorldError> = self.keys.acknowledge(&mut self.world, &reports());
        if let Some(taken) = taken {
            // It is the same with messages: they are not acknowledged.
            let _: Result<(), WorldError> = self.keys.note_taken(&mut self.world, taken);
        }
        self.keys.close(&mut self.world).expect("nobody else removes the entities of keys");
        let is_news = self.world.is_dirty() && self.world.commit(label).expect("the label is newer");
        if let Some(direct) = self.direct.as_mut().filter(|_| is_news) {
            direct.written();
        }
        is_news
    }

    /// A member has a path to this process, and nothing of the world came over it.
    pub(in crate::core) fn serve(&mut self, member: MemberId) {
        let world = &self.world;
        self.direct.get_or_insert_with(|| Box::new(DirectViews::new(world))).add(member);
    }

    pub(in crate::core) fn direct_parts(&mut self) -> (&World, Option<&mut DirectViews>) {
        (&self.world, self.direct.as_deref_mut())
    }

    pub(in crate::core) fn direct_mut(&mut self) -> Option<&mut DirectViews> {
        self.direct.as_deref_mut()
    }

    pub(in crate::core) fn direct(&self) -> Option<&DirectViews> {
        self.direct.as_deref()
    }

    /// Which messages were taken, as it was committed last.
    pub(in crate::core) fn taken(&self) -> Option<Taken> {
        self.keys.taken().filter(|_| !self.world.is_dirty())
    }

    /// Sends the hub what it does not have yet.
    pub(in crate::core) fn publish(&mut self, session: &mut Session, way: Way, now: Instant) {
        self.upstream.publish(&self.world, session, way, now, |packet, sent| Outgoing {
            tag: Some(Tag::of_state(sent.0)),
            ..Outgoing::new(channel::STATE, packet)
        });
    }

    pub(in crate::core) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    pub(in crate::core) fn handle_timeout(&mut self, now: Instant) {
        self.upstream.handle_timeout(now);
    }

    /// What became of a packet that was published.
    pub(in crate::core) fn fate(&mut self, number: u64, delivered: bool) {
        self.upstream.fate(Sent(number), delivered);
    }

    pub(in crate::core) fn diagnostics(&self) -> Diagnostics {
        self.upstream.diagnostics(&self.world)
    }

    pub(super) fn hash(&self) -> Option<(u64, u64)> {
        let tick = self.world.tick()?;
        Some((u64::from(tick.0), self.keys.hash(Viewer::Everything)))
    }
}
