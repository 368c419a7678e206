//! The room's shared state as this process holds it. The authority writes and publishes a world; members read
//! a replica of it. Keyed state is a part of that world.

mod ack_watermark;
mod checksums;
mod host;
mod member;
mod prediction;
mod scope;
mod upstream;
mod views;

pub(crate) use checksums::Checksums;
pub(crate) use host::Host;
pub(crate) use member::{Member, News};
use upstream::state_part;

pub(crate) use upstream::{Upstream, Way};
use views::DirectViews;

use crate::info::Diagnostics;
use parlor_proto::session::Session;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::wire::path::PathRole;
use parlor_proto::{EntityId, Instant, MemberId, PathId, Tick, TickRate};
use parlor_sync::inputs::Report;
use parlor_sync::schema::{ComponentId, NOT_OF_GAME, Replicated, RowReader, Schema};
use parlor_sync::value::Value;
use parlor_sync::world::{World, WorldError};
use std::sync::Arc;

/// One end's side of the world.
#[derive(Debug)]
pub(crate) enum SharedState {
    /// The authority's: it writes.
    Host(Box<Host>),
    /// A member's: it reads.
    Member(Box<Member>),
}

impl SharedState {
    pub(crate) fn new(is_host: bool, me: MemberId, schema: Arc<Schema>, rate: TickRate) -> Self {
        if is_host {
            SharedState::Host(Box::new(Host::new(schema, rate)))
        } else {
            SharedState::Member(Box::new(Member::new(me, schema, rate)))
        }
    }

    /// Begins the stream anew, over another hub that has nothing of the world.
    pub(crate) fn reopened(&mut self) {
        match self {
            SharedState::Host(host) => host.reopened(),
            SharedState::Member(member) => member.reopened(),
        }
    }

    pub(crate) fn host(&self) -> Option<&Host> {
        match self {
            SharedState::Host(host) => Some(host),
            SharedState::Member(_) => None,
        }
    }

    pub(crate) fn host_mut(&mut self) -> Option<&mut Host> {
        match self {
            SharedState::Host(host) => Some(host),
            SharedState::Member(_) => None,
        }
    }

    /// The path that delivers the state being read; `None` for the hub's stream.
    pub(crate) fn source(&self) -> Option<PathId> {
        match self {
            SharedState::Host(_) => None,
            SharedState::Member(member) => member.source(),
        }
    }

    /// Opens a path: the member listens to it, the host sends the state over it.
    pub(crate) fn path_opened(&mut self, id: PathId, peer: MemberId, role: PathRole) {
        match (self, role) {
            (SharedState::Member(member), PathRole::Dial) => member.await_stream(Some(id)),
            (SharedState::Host(host), PathRole::Accept) => host.serve(peer),
            (SharedState::Member(_), PathRole::Accept) | (SharedState::Host(_), PathRole::Dial) => {}
        }
    }

    /// Ends a path. Returns whether it delivered the state being read: then the hub must send the full state.
    pub(crate) fn path_closed(&mut self, id: PathId, peer: MemberId) -> bool {
        match self {
            SharedState::Member(member) => member.lose_stream(id),
            SharedState::Host(host) => {
                if let Some(direct) = host.direct_mut() {
                    direct.remove(peer);
                }
                false
            }
        }
    }

    /// The views sent over paths, at a host that has paths.
    pub(crate) fn direct_mut(&mut self) -> Option<&mut DirectViews> {
        self.host_mut().and_then(Host::direct_mut)
    }

    /// When there may be more to send over paths.
    pub(crate) fn direct_due(&self) -> Option<Instant> {
        match self {
            SharedState::Host(host) => host.direct().and_then(DirectViews::due),
            SharedState::Member(_) => None,
        }
    }

    pub(crate) fn direct_timeout(&mut self, now: Instant) {
        if let Some(direct) = self.direct_mut() {
            direct.handle_timeout(now);
        }
    }

    pub(crate) fn world(&self) -> &World {
        match self {
            SharedState::Host(host) => host.world(),
            SharedState::Member(member) => member.world(),
        }
    }

    /// The entities of the game, by ascending slot.
    pub(crate) fn entities(&self) -> impl Iterator<Item = EntityId> {
        let world = self.world();
        world.entities().filter(|entity| is_of_game(world, *entity))
    }

    /// A component as the authority last wrote it, or as this process predicts it.
    pub(crate) fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, WorldError> {
        Ok(self.row(entity, self.component_id::<C>()?)?.map(|row| C::read(&row)))
    }

    /// The same without a Rust type.
    pub(crate) fn row(&self, entity: EntityId, id: ComponentId) -> Result<Option<RowReader<'_>>, WorldError> {
        self.check(entity)?;
        let predicted = match self {
            SharedState::Host(_) => None,
            SharedState::Member(member) => member.predicted(entity, id),
        };
        predicted.map_or_else(|| self.world().row(entity, id), Ok)
    }

    /// The number of a component in the schema.
    pub(crate) fn component_id<C: Replicated>(&self) -> Result<ComponentId, WorldError> {
        self.world().schema().find(C::NAME).ok_or(WorldError::NotRegistered { name: C::NAME })
    }

    /// Who owns an entity.
    pub(crate) fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, WorldError> {
        self.check(entity)?;
        self.world().owner(entity)
    }

    /// Why `member` may not act on an entity; `None` if it may.
    pub(crate) fn refusal(&self, member: MemberId, entity: EntityId) -> Option<ActionRefusal> {
        match self.owner(entity) {
            Ok(Some(owner)) if owner == member => None,
            Ok(_) => Some(ActionRefusal::NotOwner),
            Err(_) => Some(ActionRefusal::NoSuchEntity),
        }
    }

    /// Checks that the game has this entity.
    fn check(&self, entity: EntityId) -> Result<(), WorldError> {
        check_of_game(self.world(), entity)
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        match self {
            SharedState::Host(host) => host.keys().get(key),
            SharedState::Member(member) => member.keys().get(key).cloned(),
        }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            SharedState::Host(host) => host.keys().item(key).is_some(),
            SharedState::Member(member) => member.keys().get(key).is_some(),
        }
    }

    pub(crate) fn key_names(&self) -> Vec<String> {
        match self {
            SharedState::Host(host) => host.keys().iter().map(|item| item.key.to_string()).collect(),
            SharedState::Member(member) => member.keys().iter().map(|(key, _)| key.to_string()).collect(),
        }
    }

    /// All keys with this prefix, with their values, in ascending order.
    pub(crate) fn entries(&self, prefix: &str) -> Vec<(String, Value)> {
        let keys = self.key_names().into_iter().filter(|key| key.starts_with(prefix));
        keys.filter_map(|key| self.get(&key).map(|value| (key, value))).collect()
    }

    /// All keys with this prefix, with their interpolated values at `now`, in ascending order. A key without a value
    /// at that moment is left out.
    pub(crate) fn entries_interpolated(&mut self, prefix: &str, now: Instant) -> Vec<(String, Value)> {
        let keys = self.key_names().into_iter().filter(|key| key.starts_with(prefix));
        keys.filter_map(|key| self.interpolated(&key, now).map(|value| (key, value))).collect()
    }

    /// The sequence and hash of the keyed state that reads return. `None` before the first update, and at a
    /// member while part of it is still missing.
    pub(crate) fn hash(&self) -> Option<(u64, u64)> {
        match self {
            SharedState::Host(host) => host.hash(),
            SharedState::Member(member) => member.hash(),
        }
    }

    /// Sends the hub what it lacks.
    pub(crate) fn publish(&mut self, session: &mut Session, way: Way, now: Instant) {
        if let SharedState::Host(host) = self {
            host.publish(session, way, now);
        }
    }

    /// When [`publish`](Self::publish) may have more to send.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            SharedState::Host(host) => host.upstream().poll_timeout(),
            SharedState::Member(_) => None,
        }
    }

    /// Notes the fate of a published packet.
    pub(crate) fn fate(&mut self, number: u64, delivered: bool) {
        if let SharedState::Host(host) = self {
            host.fate(number, delivered);
        }
    }

    pub(crate) fn interpolated(&mut self, key: &str, now: Instant) -> Option<Value> {
        match self {
            SharedState::Host(host) => host.keys().get(key),
            SharedState::Member(member) => member.interpolated(key, now),
        }
    }

    /// The host's report on this member's inputs; `None` at the host.
    pub(crate) fn input_report(&self) -> Option<Report> {
        match self {
            SharedState::Host(_) => None,
            SharedState::Member(member) => member.keys().input_report(),
        }
    }

    /// The last drawn moment of room time; `None` until an update arrives, and at the host, which draws the
    /// present.
    pub(crate) fn drawn(&self) -> Option<Instant> {
        match self {
            SharedState::Host(_) => None,
            SharedState::Member(member) => member.drawn(),
        }
    }

    /// The sequence at which [`hash`](Self::hash) would be.
    pub(crate) fn settled(&self) -> Option<u64> {
        let tick = match self {
            SharedState::Host(host) => host.world().tick(),
            SharedState::Member(member) => member.settled(),
        };
        tick.map(|tick| u64::from(tick.0))
    }

    /// Diagnostics of the world's stream up to the room's tick `now`: of the sent stream at the host, of the
    /// received one at a member.
    pub(crate) fn world_diagnostics(&self, now: Tick) -> parlor_sync::world::Diagnostics {
        match self {
            SharedState::Host(host) => host.diagnostics(),
            SharedState::Member(member) => member.world_diagnostics(now),
        }
    }

    pub(crate) fn diagnose(&self, diagnostics: &mut Diagnostics) {
        match self {
            SharedState::Host(host) => diagnostics.updates_published = host.upstream().sent(),
            SharedState::Member(member) => member.diagnose(diagnostics),
        }
    }
}

fn is_of_game(world: &World, entity: EntityId) -> bool {
    world.mask(entity).is_ok_and(|mask| mask & NOT_OF_GAME == 0)
}

/// Whether the game has such an entity: those that carry keyed state and acknowledgements are not for it to
/// touch.
pub(crate) fn check_of_game(world: &World, entity: EntityId) -> Result<(), WorldError> {
    if is_of_game(world, entity) { Ok(()) } else { Err(WorldError::NoSuchEntity { entity }) }
}
