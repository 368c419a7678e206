//! What games do in each of their steps: a host writes the world and filters it, a guest looks at it.

use super::super::report::{Objection, is_usual, object, refused};
use super::World;
use crate::model::Verdict;
use crate::model::scopes::{Scopes, Seen};
use crate::peer::PeerId;
use parlor_client_core::{Options, RoomCore, RoomError, WorldAccess};
use parlor_impair::Rng;
use parlor_proto::{EntityId, Epoch, Instant, MemberId};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// What an entity is. Those of its team see it, and of what team who is changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tank {
    team: u32,
    /// Different for each write, so that what is seen says when it was written.
    serial: u32,
}
replicated!(Tank as "tank" => { team: Kind::int(0, 2), serial: Kind::int(0, 1_000_000) });

const TEAMS: u64 = 3;
/// Entities without a player, about.
const TANKS: usize = 8;

/// What all games of a world share: they are one program.
pub(super) struct Game {
    /// Each pair of a player and an entity is asked about once in so many steps.
    pub(super) every: u32,
    /// Which team each player is of.
    pub(super) phase: Cell<u64>,
    pub(super) serial: Cell<u32>,
    /// Whether hosts still change the world.
    pub(super) is_busy: Cell<bool>,
    /// Whether hosts keep what belongs to players that are gone.
    pub(super) keeps: bool,
    pub(super) scopes: RefCell<Scopes>,
}

/// The options of a game with tanks.
pub(super) fn with_tanks(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Tank>().build().expect("one component is a schema");
    Options { schema: Some(Arc::new(schema)), ..options }
}

/// All that a game sees.
pub(super) fn look(room: &mut RoomCore, now: Instant) -> Result<Vec<Seen>, RoomError> {
    let world = room.world(now)?;
    let mut seen = Vec::new();
    for entity in world.entities() {
        let serial = world.component::<Tank>(entity)?.map_or(0, |tank| tank.serial);
        seen.push((entity, world.owner(entity)?, serial));
    }
    Ok(seen)
}

impl Game {
    /// The filter: an entity is seen by those of its team.
    pub(super) fn admits(&self, world: &WorldAccess<'_>, player: MemberId, entity: EntityId) -> bool {
        let team = (u64::from(player.0) + self.phase.get()) % TEAMS;
        world.component::<Tank>(entity).ok().flatten().is_some_and(|tank| u64::from(tank.team) == team)
    }

    /// Notes what a host has published. Must come before its next write.
    pub(super) fn note(
        &self,
        host: PeerId,
        room: &mut RoomCore,
        now: Instant,
    ) -> Result<(PeerId, Epoch), RoomError> {
        let host = (host, room.info().epoch);
        let sequence = room.state_hash().map_or(0, |(sequence, _)| sequence);
        self.scopes.borrow_mut().publishes(host, sequence, &look(room, now)?);
        Ok(host)
    }

    fn tank(&self, rng: &mut Rng) -> Tank {
        self.serial.set(self.serial.get() + 1);
        Tank { team: u32::try_from(rng.below(TEAMS)).expect("there are few"), serial: self.serial.get() }
    }
}

/// The game of one client.
struct Player {
    peer: PeerId,
    rng: Rng,
    game: Rc<Game>,
}

impl World {
    /// Lets a game play, from its first step on.
    pub(super) fn let_play(&mut self, peer: PeerId) {
        let mut player = Player { peer, rng: Rng::new(self.rng.draw()), game: Rc::clone(&self.game) };
        let objection = Objection::clone(&self.objection);
        self.sim.play(peer, move |room, now| {
            let verdict = player.step(room, now);
            object(&objection, verdict);
        });
    }
}

impl Player {
    fn step(&mut self, room: &mut RoomCore, now: Instant) -> Verdict {
        let Some(me) = room.local_id().filter(|_| room.is_connected()) else { return Ok(()) };
        let stepped = if room.is_host() { self.host(room, me, now) } else { self.watch(room, me, now) };
        match stepped {
            Ok(verdict) => verdict,
            Err(error) if is_usual(room, &error) => Ok(()),
            Err(error) => Err(refused(self.peer, "play", &error)),
        }
    }

    fn watch(&self, room: &mut RoomCore, me: MemberId, now: Instant) -> Result<Verdict, RoomError> {
        let settled = room.state_hash().map(|(sequence, _)| sequence);
        Ok(self.game.scopes.borrow_mut().sees(self.peer, me, settled, look(room, now)?))
    }

    fn host(&mut self, room: &mut RoomCore, me: MemberId, now: Instant) -> Result<Verdict, RoomError> {
        let game = Rc::clone(&self.game);
        let host = game.note(self.peer, room, now)?;
        let players: Vec<MemberId> = room.players().iter().map(|player| player.id).collect();
        let mut world = room.world(now)?;
        for player in &players {
            let is_at_home = |entity: &EntityId| world.owner(*entity) == Ok(Some(*player));
            if !world.entities().iter().any(is_at_home) {
                let home = world.spawn(Some(*player))?;
                world.insert(home, &game.tank(&mut self.rng))?;
            }
        }
        if game.is_busy.get() {
            self.churn(&mut world, &players)?;
        }
        let mut answers = Vec::new();
        world.scope(game.every, |world, player, entity| {
            let is_in = game.admits(world, player, entity);
            answers.push((player, entity, is_in));
            is_in
        })?;
        let left = look(room, now)?;
        game.scopes.borrow_mut().ends_step(host, (me, &players), &answers, &left);
        Ok(Ok(()))
    }

    /// Changes the world: tanks are written, change hands, come and go.
    fn churn(&mut self, world: &mut WorldAccess<'_>, players: &[MemberId]) -> Result<(), RoomError> {
        let entities = world.entities();
        if entities.len() < TANKS + players.len() {
            let entity = world.spawn(None)?;
            return world.insert(entity, &self.game.tank(&mut self.rng));
        }
        for _ in 0..3 {
            let entity = self.rng.pick(&entities);
            let tank = self.game.tank(&mut self.rng);
            match world.component::<Tank>(entity)? {
                // Mostly it stays in its team.
                Some(old) if !self.rng.per_mille(100) => {
                    world.insert(entity, &Tank { team: old.team, ..tank })?
                }
                _ => world.insert(entity, &tank)?,
            }
        }
        let entity = self.rng.pick(&entities);
        let owner = world.owner(entity)?;
        let is_of_gone = owner.is_some_and(|owner| !players.contains(&owner));
        match self.rng.below(60) {
            0 if !is_of_gone || !self.game.keeps => world.despawn(entity)?,
            1 if owner.is_none() => world.transfer(entity, Some(self.rng.pick(players)))?,
            2 if !is_of_gone => world.transfer(entity, None)?,
            _ => {}
        }
        Ok(())
    }
}
