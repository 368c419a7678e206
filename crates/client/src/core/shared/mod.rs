//! What the room shares, as this process holds it: the authority writes a world and publishes it, everybody else reads a
//! replica of it. Keyed state is a part of that world.

mod host;
mod member;

pub(super) use host::Host;
pub(super) use member::{Member, News};

use super::info::Diagnostics;
use super::paths::DirectViews;
use super::upstream::Way;
use parlor_proto::session::Session;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::{EntityId, Instant, MemberId, Tick, TickRate};
use parlor_sync::inputs::Report;
use parlor_sync::schema::{INPUT_ACK, KEYED_KEY, Replicated, Schema};
use parlor_sync::value::Value;
use parlor_sync::world::{World, WorldError};
use std::sync::Arc;

/// One end's share of the world.
#[derive(Debug)]
pub(super) enum Shared {
    /// The authority's: it writes.
    Host(Box<Host>),
    /// A member's: it reads.
    Member(Box<Member>),
}

/// The components that carry keyed state and acknowledgements. An entity that has one of them is not the game's.
pub(super) const HIDDEN: u64 = KEYED_KEY.bit() | INPUT_ACK.bit();

impl Shared {
    pub(super) fn new(is_host: bool, me: MemberId, schema: Arc<Schema>, rate: TickRate) -> Self {
        if is_host {
            Shared::Host(Box::new(Host::new(schema, rate)))
        } else {
            Shared::Member(Box::new(Member::new(me, schema, rate)))
        }
    }

    pub(super) fn host(&self) -> Option<&Host> {
        match self {
            Shared::Host(host) => Some(host),
            Shared::Member(_) => None,
        }
    }

    pub(super) fn host_mut(&mut self) -> Option<&mut Host> {
        match self {
            Shared::Host(host) => Some(host),
            Shared::Member(_) => None,
        }
    }

    /// At a host with paths, what is sent over them.
    pub(super) fn direct_mut(&mut self) -> Option<&mut DirectViews> {
        self.host_mut().and_then(Host::direct_mut)
    }

    /// When there may be more to send over paths.
    pub(super) fn direct_due(&self) -> Option<Instant> {
        match self {
            Shared::Host(host) => host.direct().and_then(DirectViews::due),
            Shared::Member(_) => None,
        }
    }

    pub(super) fn direct_timeout(&mut self, now: Instant) {
        if let Some(direct) = self.direct_mut() {
            direct.handle_timeout(now);
        }
    }

    pub(super) fn world(&self) -> &World {
        match self {
            Shared::Host(host) => host.world(),
            Shared::Member(member) => member.world(),
        }
    }

    /// The entities of the game, by ascending slot.
    pub(super) fn entities(&self) -> impl Iterator<Item = EntityId> {
        let world = self.world();
        world.entities().filter(|entity| is_of_game(world, *entity))
    }

    /// A component as the authority wrote it last, or as this process predicts it.
    pub(super) fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, WorldError> {
        self.check(entity)?;
        let predicted = match self {
            Shared::Host(_) => None,
            Shared::Member(member) => member.predicted(entity),
        };
        predicted.map_or_else(|| self.world().get(entity), Ok)
    }

    /// Who owns an entity.
    pub(super) fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, WorldError> {
        self.check(entity)?;
        self.world().owner(entity)
    }

    /// Why `member` may not act on an entity, if so.
    pub(super) fn refusal(&self, member: MemberId, entity: EntityId) -> Option<ActionRefusal> {
        match self.owner(entity) {
            Ok(Some(owner)) if owner == member => None,
            Ok(_) => Some(ActionRefusal::NotOwner),
            Err(_) => Some(ActionRefusal::NoSuchEntity),
        }
    }

    pub(super) fn is_of_game(&self, entity: EntityId) -> bool {
        self.check(entity).is_ok()
    }

    /// Whether the game has such an entity.
    fn check(&self, entity: EntityId) -> Result<(), WorldError> {
        check_of_game(self.world(), entity)
    }

    pub(super) fn get(&self, key: &str) -> Option<Value> {
        match self {
            Shared::Host(host) => host.keys().get(key),
            Shared::Member(member) => member.keys().get(key).cloned(),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        match self {
            Shared::Host(host) => host.keys().item(key).is_some(),
            Shared::Member(member) => member.keys().get(key).is_some(),
        }
    }

    pub(super) fn key_names(&self) -> Vec<String> {
        match self {
            Shared::Host(host) => host.keys().iter().map(|item| item.key.to_string()).collect(),
            Shared::Member(member) => member.keys().iter().map(|(key, _)| key.to_string()).collect(),
        }
    }

    /// The sequence of the keyed state that the reads give and its hash; `None` before the first, and at a member while
    /// something of it is still under way.
    pub(super) fn hash(&self) -> Option<(u64, u64)> {
        match self {
            Shared::Host(host) => host.hash(),
            Shared::Member(member) => member.hash(),
        }
    }

    /// Sends the hub what it does not have yet.
    pub(super) fn publish(&mut self, session: &mut Session, way: Way, now: Instant) {
        if let Shared::Host(host) = self {
            host.publish(session, way, now);
        }
    }

    /// When [`publish`](Self::publish) may have more to send.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Shared::Host(host) => host.upstream().poll_timeout(),
            Shared::Member(_) => None,
        }
    }

    /// What became of a packet that was published.
    pub(super) fn fate(&mut self, number: u64, delivered: bool) {
        if let Shared::Host(host) = self {
            host.fate(number, delivered);
        }
    }

    pub(super) fn interpolated(&mut self, key: &str, now: Instant) -> Option<Value> {
        match self {
            Shared::Host(host) => host.keys().get(key),
            Shared::Member(member) => member.interpolated(key, now),
        }
    }

    /// What the host tells of this member's inputs; at the host nothing.
    pub(super) fn input_report(&self) -> Option<Report> {
        match self {
            Shared::Host(_) => None,
            Shared::Member(member) => member.keys().input_report(),
        }
    }

    /// The moment of room time that the game drew last; `None` if nothing came, and at the host, who draws the present.
    pub(super) fn drawn(&self) -> Option<Instant> {
        match self {
            Shared::Host(_) => None,
            Shared::Member(member) => member.drawn(),
        }
    }

    /// The sequence at which [`hash`](Self::hash) would be.
    pub(super) fn settled(&self) -> Option<u64> {
        let tick = match self {
            Shared::Host(host) => host.world().tick(),
            Shared::Member(member) => member.settled(),
        };
        tick.map(|tick| u64::from(tick.0))
    }

    /// What was counted of the stream of the world up to the room's tick `now`: of what the host sends, or of what a member
    /// received.
    pub(super) fn world_diagnostics(&self, now: Tick) -> parlor_sync::world::Diagnostics {
        match self {
            Shared::Host(host) => host.diagnostics(),
            Shared::Member(member) => member.world_diagnostics(now),
        }
    }

    pub(super) fn diagnose(&self, diagnostics: &mut Diagnostics) {
        match self {
            Shared::Host(host) => diagnostics.updates_published = host.upstream().sent(),
            Shared::Member(member) => member.diagnose(diagnostics),
        }
    }
}

fn is_of_game(world: &World, entity: EntityId) -> bool {
    world.mask(entity).is_ok_and(|mask| mask & HIDDEN == 0)
}

/// Whether the game has such an entity: those that carry keyed state and acknowledgements are not for it to touch.
pub(super) fn check_of_game(world: &World, entity: EntityId) -> Result<(), WorldError> {
    if is_of_game(world, entity) { Ok(()) } else { Err(WorldError::NoSuchEntity { entity }) }
}
