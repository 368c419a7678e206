//! Lag compensation: the world as a member saw it when it acted.

use super::error::RoomError;
use super::info::Diagnostics;
use super::room::{Joined, RoomCore};
use super::shared::check_of_game;
use parlor_proto::{ApiMisuse, EntityId, Instant, MemberId};
use parlor_sync::interpolation::Sample;
use parlor_sync::limits::REWIND_MAX;
use parlor_sync::schema::Replicated;
use parlor_sync::world::{World, WorldError};
use std::time::Duration;

/// How often the past was looked up, and how often not far enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rewinds {
    pub(super) all: u64,
    pub(super) beyond: u64,
}

/// The world as a member saw it: what [`RoomCore::rewind`] gives to look at.
///
/// Every component is what the member drew of it, mixed from the same two versions of it by the same code. The member's own
/// entities are as they are at present: their player acts on them at once, and does not see them late. Entities that went since
/// are not there, and what came since is as it came.
#[derive(Debug)]
pub struct Past<'a> {
    world: &'a World,
    viewer: MemberId,
    present: Instant,
    /// None is the present.
    moment: Option<Instant>,
    is_beyond: bool,
    sample: Sample,
}

impl Past<'_> {
    /// All entities that there are, by ascending slot.
    #[must_use]
    pub fn entities(&self) -> Vec<EntityId> {
        self.world.entities().filter(|entity| check_of_game(self.world, *entity).is_ok()).collect()
    }

    /// A component of an entity as the member saw it; `None` if the entity had none then.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&mut self, entity: EntityId) -> Result<Option<C>, RoomError> {
        check_of_game(self.world, entity)?;
        let is_own = self.world.owner(entity)? == Some(self.viewer);
        let Some(moment) = self.moment.filter(|_| !is_own) else { return Ok(self.world.get(entity)?) };
        let schema = self.world.schema();
        let id = schema.find(C::NAME).ok_or(WorldError::NotRegistered { name: C::NAME })?;
        let is_there = self.sample.take_moment(self.world, entity, id, moment, Duration::ZERO);
        Ok(is_there.then(|| self.sample.read(&schema.components()[id.index()])))
    }

    /// How far before the begin of the host's step this is; zero is the present.
    #[must_use]
    pub fn back(&self) -> Duration {
        self.moment.map_or(Duration::ZERO, |moment| self.present.saturating_since(moment))
    }

    /// Whether the member saw what was longer ago than may be looked at. Then this is as far back as may be.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        self.is_beyond
    }
}

/// For the host's game: what members saw.
impl RoomCore {
    /// Lets the host look at the world as `member` saw it when it made the input that counts in the step that the game is in:
    /// to judge a shot by what the shooter aimed at. It goes back by what the member says that it drew, at most
    /// [`Options::rewind_max`](super::Options::rewind_max); what would be longer ago is counted, and looked at as of then. For the
    /// host's own player, and one that has sent no input yet, it is the present.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such player.
    pub fn rewind<R>(
        &mut self,
        member: MemberId,
        look: impl FnOnce(&mut Past<'_>) -> R,
    ) -> Result<R, RoomError> {
        let rewind_max = self.options.rewind_max.min(REWIND_MAX);
        let (_, joined) = self.open_as_host("look back")?;
        if joined.players.get(member).is_none() {
            return Err(ApiMisuse::NoSuchPlayer(member).into());
        }
        let (present, moment) = joined.seen_by(member);
        let oldest = present - rewind_max;
        let is_beyond = moment.is_some_and(|moment| moment < oldest);
        joined.rewinds.all += 1;
        joined.rewinds.beyond += u64::from(is_beyond);
        let moment = moment.map(|moment| moment.max(oldest)).filter(|moment| *moment < present);
        Ok(look(&mut Past {
            world: joined.shared.world(),
            viewer: member,
            present,
            moment,
            is_beyond,
            sample: Sample::default(),
        }))
    }
}

impl Joined {
    pub(super) fn diagnose_past(&self, diagnostics: &mut Diagnostics) {
        (diagnostics.rewinds, diagnostics.rewinds_beyond) = (self.rewinds.all, self.rewinds.beyond);
        if let Some(resimulation) = &self.resimulation {
            diagnostics.resimulations = resimulation.count();
            diagnostics.resimulations_short = resimulation.short();
        }
    }

    /// When the step began that the game is in, and what moment a member drew when it made the input for it, both of room time;
    /// none if it drew nothing.
    fn seen_by(&self, member: MemberId) -> (Instant, Option<Instant>) {
        let (rate, tick) = (self.welcome.tick_rate, self.input_tick());
        let input = if member == self.welcome.member { None } else { self.inputs.of(member, tick) };
        let drawn = input.and_then(|input| Some(input.view?.moment(input.tick, rate)));
        (rate.begins(tick), drawn)
    }
}
