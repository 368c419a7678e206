//! One seat of the arena: the step that the host and every member run, and the data for drawing.
//!
//! It knows neither terminal nor sockets: [`Table`] is a room of either kind, so the demo and
//! `parlor-bench feel` play the same game.

use super::rules::{HEALTH, HZ, Life, Order, SIDES_M, Shot, Tank};
use super::table::{Past, Table};
use parlor::{EntityId, MemberId, RoomError, WorldAccess, WorldReader};
use std::collections::BTreeMap;
use std::f32::consts::TAU;

/// Where tanks begin.
const STARTS_M: [[f32; 2]; 8] = [
    [10.0, 10.0],
    [86.0, 54.0],
    [10.0, 54.0],
    [86.0, 10.0],
    [48.0, 8.0],
    [48.0, 56.0],
    [10.0, 32.0],
    [86.0, 32.0],
];
/// Drones fly in circles around the middle, each a little farther out, and need so many steps for one turn each.
const DRONE_STEPS: u32 = 12 * HZ as u32;
const DRONE_RADIUS_M: f32 = 16.0;
const DRONE_APART_M: f32 = 5.0;

/// What a game may be set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Targets without a driver.
    pub drones: u8,
    /// By how much a hit changes the velocity of what was hit, in metres per second.
    pub knock_mps: f32,
    /// Whether hits count, so that a tank begins anew after five of them.
    pub is_mortal: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { drones: 3, knock_mps: 6.0, is_mortal: true }
    }
}

/// What a shot met, as one seat had it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The shooter.
    pub by: MemberId,
    /// The count of its shots.
    pub number: u16,
    /// What it met.
    pub met: Option<EntityId>,
    /// How far from the edge of the nearest target it passed, in or out, in metres.
    pub margin_m: Option<f32>,
    /// Where it came from and went, to be drawn.
    pub shot: Shot,
    /// At the host: whether the shooter saw more than can be gone back to.
    pub is_beyond: bool,
}

/// One tank on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Which.
    pub entity: EntityId,
    /// Its driver, if it has one.
    pub owner: Option<MemberId>,
    /// Where it is.
    pub tank: Tank,
    /// How it does.
    pub life: Life,
}

/// The rules at one seat.
#[derive(Debug, Default)]
pub struct Game {
    /// What may be switched.
    pub settings: Settings,
    /// Whether a member runs its own tank at once, and does not wait for what the host says.
    pub is_foreseeing: bool,
    /// Shots that were fired since they were taken: at the host everybody's, at a member its own, each once.
    pub verdicts: Vec<Verdict>,
    /// What comes from outside of the rules: whose tank is to be pushed in the next step, and how fast.
    pushes: Vec<(MemberId, [f32; 2])>,
}

impl Game {
    /// A game that foresees.
    pub fn new(settings: Settings) -> Self {
        Game { settings, is_foreseeing: true, ..Game::default() }
    }

    /// At the host: pushes a player's tank in the next step, unpredictably.
    pub fn push(&mut self, player: MemberId, velocity_mps: [f32; 2]) {
        self.pushes.push((player, velocity_mps));
    }

    /// One step of the host, which does not drive: all tanks, and the hits.
    ///
    /// # Errors
    /// If the room is not open, or does not take what is written.
    pub fn decide(&mut self, room: &mut impl Table) -> Result<(), RoomError> {
        let me = room.me();
        let players = room.players().into_iter().filter(|player| Some(*player) != me);
        // An order that cannot be read is its sender's fault, and as good as none.
        let orders: BTreeMap<MemberId, Order> =
            players.map(|player| (player, room.order(player).unwrap_or_default())).collect();
        let (step, pushes) = (room.step_number(), std::mem::take(&mut self.pushes));
        let fired = room.world(|world| self.advance(world, step, &orders, &pushes))??;
        for (by, entity, shot) in fired {
            let Past { tanks, is_beyond } = room.seen_by(by, entity)?;
            let verdict = Verdict { is_beyond, ..verdict(by, shot, &tanks) };
            if let Some(met) = verdict.met {
                room.world(|world| self.count_hit(world, entity, met, &shot))??;
            }
            self.verdicts.push(verdict);
        }
        Ok(())
    }

    /// One step of a member, fresh or again. In a fresh one `order` is what this player wants; in one that is run again what
    /// was recorded counts.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub fn play(&mut self, room: &mut impl Table, order: Order) -> Result<(), RoomError> {
        let Some(me) = room.me().filter(|_| self.is_foreseeing) else { return room.send(&order) };
        let mine = room.world(|world| own(world, me))??;
        room.send(&mine.map_or(order, |(_, tank)| tank.aimed(order)))?;
        mine.map_or(Ok(()), |mine| self.foresee(room, me, mine))
    }

    /// A member's own tank, by its own recorded order.
    fn foresee(
        &mut self,
        room: &mut impl Table,
        me: MemberId,
        (entity, mut tank): (EntityId, Tank),
    ) -> Result<(), RoomError> {
        let order = room.order(me).unwrap_or_default();
        let fired = room.world(|world| {
            let shot = tank.step(order);
            world.insert(entity, &tank)?;
            Ok::<_, RoomError>(shot.map(|shot| (shot, targets(world, entity))))
        })??;
        if let Some((shot, seen)) = fired
            && room.is_first("shot", u64::from(shot.number))
        {
            self.verdicts.push(verdict(me, shot, &seen));
        }
        Ok(())
    }

    /// Moves everything; says who fired what.
    fn advance(
        &self,
        world: &mut WorldAccess<'_>,
        step: u32,
        orders: &BTreeMap<MemberId, Order>,
        pushes: &[(MemberId, [f32; 2])],
    ) -> Result<Vec<(MemberId, EntityId, Shot)>, RoomError> {
        let mut tanks = BTreeMap::new();
        let mut drones = Vec::new();
        for entity in world.entities() {
            match world.owner(entity)? {
                None => drones.push(entity),
                Some(player) if orders.contains_key(&player) => drop(tanks.insert(player, entity)),
                Some(_) => world.despawn(entity)?,
            }
        }
        while drones.len() < usize::from(self.settings.drones) {
            let drone = world.spawn(None)?;
            world.insert(drone, &Life::default())?;
            drones.push(drone);
        }
        for (index, drone) in drones.into_iter().enumerate() {
            world.insert(drone, &self.drone(index, step))?;
        }
        let mut fired = Vec::new();
        for (player, order) in orders {
            let entity = match tanks.get(player) {
                Some(entity) => *entity,
                None => spawn(world, *player)?,
            };
            let Some(mut tank) = world.component::<Tank>(entity)? else { continue };
            for (_, push) in pushes.iter().filter(|(pushed, _)| pushed == player) {
                tank.velocity = [tank.velocity[0] + push[0], tank.velocity[1] + push[1]];
            }
            fired.extend(tank.step(*order).map(|shot| (*player, entity, shot)));
            world.insert(entity, &tank)?;
        }
        Ok(fired)
    }

    /// Where a drone is in a step.
    fn drone(&self, index: usize, step: u32) -> Tank {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred steps, a few drones")]
        let (turned, out) = ((step % DRONE_STEPS) as f32 / DRONE_STEPS as f32, index as f32);
        let count = f32::from(self.settings.drones.max(1));
        let (south, east) = ((turned + out / count) * TAU).sin_cos();
        let radius = DRONE_RADIUS_M + DRONE_APART_M * out;
        let speed = radius * TAU * f32::from(HZ) / f32::from(u16::try_from(DRONE_STEPS).unwrap_or(u16::MAX));
        Tank {
            position: [SIDES_M[0] / 2.0 + east * radius, SIDES_M[1] / 2.0 + south * radius],
            velocity: [-south * speed, east * speed],
            ..Tank::default()
        }
    }

    fn count_hit(
        &self,
        world: &mut WorldAccess<'_>,
        by: EntityId,
        met: EntityId,
        shot: &Shot,
    ) -> Result<(), RoomError> {
        if let Some(life) = world.component::<Life>(by)? {
            world.insert(by, &Life { hits: life.hits.saturating_add(1), ..life })?;
        }
        // Shot at as it was a moment ago, it may be gone; and a drone takes no harm.
        if !world.contains(met) || world.owner(met)?.is_none() {
            return Ok(());
        }
        if let (Some(mut tank), Some(mut life)) =
            (world.component::<Tank>(met)?, world.component::<Life>(met)?)
        {
            let (south, east) = shot.aim.sin_cos();
            let knock = self.settings.knock_mps;
            tank.velocity = [tank.velocity[0] + east * knock, tank.velocity[1] + south * knock];
            if self.settings.is_mortal {
                life.health = life.health.saturating_sub(1);
            }
            if life.health == 0 {
                life = Life { health: HEALTH, deaths: life.deaths.saturating_add(1), ..life };
                let start = start(usize::from(life.deaths) + usize::from(met.slot));
                tank = Tank { shots: tank.shots, ..Tank::at(start) };
            }
            world.insert(met, &tank)?;
            world.insert(met, &life)?;
        }
        Ok(())
    }
}

fn start(number: usize) -> [f32; 2] {
    STARTS_M[number % STARTS_M.len()]
}

fn spawn(world: &mut WorldAccess<'_>, player: MemberId) -> Result<EntityId, RoomError> {
    let entity = world.spawn(Some(player))?;
    world.insert(entity, &Tank::at(start(player.0 as usize)))?;
    world.insert(entity, &Life { health: HEALTH, ..Life::default() })?;
    Ok(entity)
}

fn own(world: &WorldAccess<'_>, me: MemberId) -> Result<Option<(EntityId, Tank)>, RoomError> {
    for entity in world.entities() {
        if world.owner(entity)? == Some(me) {
            return Ok(world.component(entity)?.map(|tank| (entity, tank)));
        }
    }
    Ok(None)
}

/// All tanks but one, where they are seen now.
fn targets(world: &mut WorldAccess<'_>, but: EntityId) -> Vec<(EntityId, [f32; 2])> {
    let others = world.entities().into_iter().filter(|entity| *entity != but);
    let seen = others.map(|entity| (entity, world.interpolated_component::<Tank>(entity)));
    seen.filter_map(|(entity, tank)| Some((entity, tank.ok().flatten()?.position))).collect()
}

fn verdict(by: MemberId, shot: Shot, seen: &[(EntityId, [f32; 2])]) -> Verdict {
    let met = shot.meets(seen.iter().copied());
    let margin_m = shot.margin(seen.iter().map(|(_, at)| *at));
    Verdict { by, number: shot.number, met, margin_m, shot, is_beyond: false }
}

/// All tanks as they are to be drawn; raw as the host said last, if they shall not be smoothed.
pub fn look(world: &mut WorldReader<'_>, is_smooth: bool) -> Vec<Seen> {
    let seen = world.entities().into_iter().filter_map(|entity| {
        let owner = world.owner(entity).ok()?;
        let tank: Tank = match is_smooth {
            true => world.interpolated(entity).ok()??,
            false => world.component(entity).ok()??,
        };
        let life = world.component(entity).ok()?.unwrap_or_default();
        Some(Seen { entity, owner, tank, life })
    });
    seen.collect()
}
