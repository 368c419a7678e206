//! The rules. Only the authority has a [`World`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::scene::{Bird, Scene};
use super::state::{
    Badge, Dir, FIELD_HEIGHT, FIELD_WIDTH, GemState, HZ, Input, Key, Motion, Phase, PlayerState, RoundState,
    Value, ticks_until,
};
use parlor_impair::Rng;

/// How near a magpie's middle comes to the edge, and half of how near two must come for a knock.
const RADIUS: f32 = 1.3;
/// How near a magpie picks up a gem.
const REACH: f32 = 1.9;
/// Units per tick.
const SPEED: f32 = 15.0 / HZ as f32;
/// Units per tick of a dash.
const DASH_SPEED: f32 = 44.0 / HZ as f32;
/// How much of the way to the wished speed a magpie gains per tick: its turns are round, not square.
const AGILITY: f32 = 0.28;
/// What a dizzy magpie and a flying gem keep of their speed per tick.
const SLIDE: f32 = 0.86;
/// Ticks of a dash.
const DASH_TICKS: u32 = HZ / 5;
/// Ticks from one dash to the next.
const DASH_EVERY: u32 = HZ * 8 / 5;
/// Ticks that a knocked magpie does not obey.
const DIZZY_TICKS: u32 = HZ / 2;
/// Ticks that a knocked magpie cannot be knocked again.
const SAFE_TICKS: u32 = HZ * 3 / 2;
/// Ticks that a knocked-off gem cannot be picked up.
const AIR_TICKS: u32 = HZ * 2 / 5;
/// Ticks of a round.
const ROUND_TICKS: u32 = HZ * 60;
/// Ticks that the winner is shown.
const OVER_TICKS: u32 = HZ * 5;
/// Most gems that one knock scatters.
const KNOCK_MOST: u32 = 8;
/// Most gems that a leaver leaves; they are worth the more.
const LEFT_BEHIND_MOST: u32 = 8;
/// Most gems on the field; beyond it, what is dropped is one gem that is worth the more.
const GEMS_MOST: usize = 120;
/// Numbers for gems. They are not reused soon, lest a reader take a new gem for an old one that moved and draw its way;
/// and they are few, so that the room's keys stay bounded.
const GEM_NUMBERS: u16 = 256;

/// A magpie and what only the authority knows of it.
#[derive(Clone, Debug)]
struct Body {
    state: PlayerState,
    badge: Badge,
    velocity: (f32, f32),
    /// The direction of its last input; it holds when an input is late.
    wish: Dir,
    motion_until: u32,
    safe_until: u32,
}

/// A gem and its flight.
#[derive(Clone, Debug)]
struct Gem {
    state: GemState,
    velocity: (f32, f32),
    loose_at: u32,
}

/// What to do to the room's keyed state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Publication {
    /// Keys to remove, first.
    pub gone: Vec<String>,
    /// All values to set; those that did not change are among them.
    pub set: Vec<(String, Value)>,
}

/// The whole game. It depends on nothing but its seed, the calls and their order.
#[derive(Clone, Debug)]
pub(crate) struct World {
    rng: Rng,
    tick: u32,
    bodies: BTreeMap<u32, Body>,
    gems: BTreeMap<u16, Gem>,
    round: RoundState,
    next_gem: u16,
    spawn_at: u32,
    published: Vec<Key>,
}

impl World {
    /// An empty field at tick 0.
    pub(crate) fn new(seed: u64) -> World {
        World {
            rng: Rng::new(seed),
            tick: 0,
            bodies: BTreeMap::new(),
            gems: BTreeMap::new(),
            round: RoundState::default(),
            next_gem: 0,
            spawn_at: 0,
            published: Vec::new(),
        }
    }

    /// A world in the middle of a game, from what everybody sees of it: a new host goes on so with another's. Who flew begins
    /// anew to fly, and who was dashing, dizzy or safe is so for the whole time again.
    pub(crate) fn resume(seed: u64, scene: &Scene) -> World {
        let mut world = World::new(seed);
        let tick = scene.tick;
        (world.tick, world.spawn_at, world.round) = (tick, tick, scene.round.clone());
        for (id, Bird { state, badge }) in &scene.players {
            let body = Body {
                state: *state,
                badge: badge.clone(),
                velocity: (0.0, 0.0),
                wish: state.heading,
                motion_until: tick.wrapping_add(match state.motion {
                    Motion::Dashing => DASH_TICKS,
                    Motion::Gliding | Motion::Dizzy => DIZZY_TICKS,
                }),
                safe_until: tick.wrapping_add(SAFE_TICKS),
            };
            world.bodies.insert(*id, body);
            world.published.extend([Key::Player(*id), Key::Badge(*id)]);
        }
        for (number, state) in &scene.gems {
            world.gems.insert(*number, Gem { state: *state, velocity: (0.0, 0.0), loose_at: tick });
            world.next_gem = world.next_gem.max(number.wrapping_add(1));
            world.published.push(Key::Gem(*number));
        }
        world.published.push(Key::Round);
        world
    }

    /// Sets the tick of the last step. A room counts its own ticks and readers compare [`RoundState::ends_at`] with those;
    /// call this before [`World::step`] whenever the room may have skipped some.
    pub(crate) fn set_tick(&mut self, tick: u32) {
        self.tick = tick;
    }

    /// The tick of the last step.
    #[cfg(test)]
    pub(super) fn tick(&self) -> u32 {
        self.tick
    }

    /// Whether this player is on the field.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.bodies.contains_key(&id)
    }

    /// The players on the field.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.bodies.keys().copied()
    }

    /// Puts a player on the field at once, away from the others. A second join of the same player changes nothing.
    pub(crate) fn join(&mut self, id: u32, name: &str) {
        if self.has(id) {
            return;
        }
        let (x, y) = self.free_place();
        let badge = Badge { name: name.to_owned(), slot: self.free_slot(), glyph: self.free_glyph(name) };
        let body = Body {
            state: PlayerState { x, y, dash_ready_at: self.tick, ..PlayerState::default() },
            badge,
            velocity: (0.0, 0.0),
            wish: Dir::Stay,
            motion_until: self.tick,
            safe_until: self.tick,
        };
        self.bodies.insert(id, body);
    }

    /// Takes a player from the field; its gems stay on it.
    pub(crate) fn leave(&mut self, id: u32) {
        if let Some(body) = self.bodies.remove(&id)
            && self.round.phase != Phase::Over
        {
            self.scatter(body.state.x, body.state.y, body.state.score, LEFT_BEHIND_MOST);
        }
    }

    /// One tick. A player without an input flies on; inputs of strangers are ignored.
    pub(crate) fn step(&mut self, inputs: &BTreeMap<u32, Input>) {
        self.tick = self.tick.wrapping_add(1);
        for (id, body) in &mut self.bodies {
            let input = inputs.get(id).copied().unwrap_or(Input { dir: body.wish, dash: false });
            body.steer(input, self.tick);
        }
        self.knock();
        self.fly_gems();
        self.collect();
        self.turn_round();
        self.spawn();
    }

    /// What the room's keyed state should be now, and which keys of the last call are gone.
    pub(crate) fn publish(&mut self) -> Publication {
        let values = self.values();
        let gone =
            self.published.iter().filter(|key| !values.contains_key(key)).map(Key::to_string).collect();
        self.published = values.keys().copied().collect();
        Publication { gone, set: values.into_iter().map(|(key, value)| (key.to_string(), value)).collect() }
    }

    /// What a member would see that lost nothing; bots of the authority think from it.
    pub(crate) fn scene(&self) -> Scene {
        let bird = |body: &Body| Bird { state: body.shown(), badge: body.badge.clone() };
        Scene {
            tick: self.tick,
            players: self.bodies.iter().map(|(id, body)| (*id, bird(body))).collect(),
            gems: self.gems.iter().map(|(number, gem)| (*number, gem.shown())).collect(),
            round: self.round.clone(),
        }
    }

    fn values(&self) -> BTreeMap<Key, Value> {
        let mut values = BTreeMap::from([(Key::Round, Value::Round(self.round.clone()))]);
        for (id, body) in &self.bodies {
            values.insert(Key::Player(*id), Value::Player(body.shown()));
            values.insert(Key::Badge(*id), Value::Badge(body.badge.clone()));
        }
        for (number, gem) in &self.gems {
            values.insert(Key::Gem(*number), Value::Gem(gem.shown()));
        }
        values
    }

    /// Every magpie in its burst knocks all that it touches; two that dash into each other are both knocked.
    fn knock(&mut self) {
        let mut knocks = Vec::new();
        for (dasher, from) in &self.bodies {
            for (victim, to) in &self.bodies {
                let touch = near((from.state.x, from.state.y), (to.state.x, to.state.y), 2.0 * RADIUS);
                if dasher != victim && from.state.motion == Motion::Dashing && !to.state.safe && touch {
                    knocks.push((*victim, from.state.heading));
                }
            }
        }
        for (victim, heading) in knocks {
            let Some(body) = self.bodies.get_mut(&victim).filter(|body| !body.state.safe) else { continue };
            let (x, y) = heading.vector();
            body.velocity = (x * DASH_SPEED, y * DASH_SPEED);
            body.state.motion = Motion::Dizzy;
            body.motion_until = self.tick.wrapping_add(DIZZY_TICKS);
            body.state.safe = true;
            body.safe_until = self.tick.wrapping_add(SAFE_TICKS);
            if self.round.phase != Phase::Over {
                let lost = body.state.score.div_ceil(3).min(KNOCK_MOST);
                body.state.score -= lost;
                let (x, y) = (body.state.x, body.state.y);
                self.scatter(x, y, lost, KNOCK_MOST);
            }
        }
    }

    /// Throws gems that are worth `amount` together from a place, in at most `most` pieces.
    fn scatter(&mut self, x: f32, y: f32, amount: u32, most: u32) {
        let room = GEMS_MOST.saturating_sub(self.gems.len()).max(1);
        let pieces = amount.min(most).min(u32::try_from(room).unwrap_or(u32::MAX));
        for piece in 0..pieces {
            // The remainder goes to the first pieces, so that nothing is lost.
            let worth = amount / pieces + u32::from(piece < amount % pieces);
            let (dx, dy) = self.rng.direction();
            let speed = self.rng.between(0.5, 1.3);
            let gem = Gem {
                state: GemState { x, y, worth },
                velocity: (dx * speed, dy * speed),
                loose_at: self.tick.wrapping_add(AIR_TICKS),
            };
            self.add_gem(gem);
        }
    }

    fn add_gem(&mut self, gem: Gem) {
        // Far fewer gems than numbers exist, except when leavers and knocks fall together in one tick beyond all
        // bounds; then the gem joins another.
        for _ in 0..GEM_NUMBERS {
            let number = self.next_gem % GEM_NUMBERS;
            self.next_gem = (number + 1) % GEM_NUMBERS;
            if let Entry::Vacant(place) = self.gems.entry(number) {
                place.insert(gem);
                return;
            }
        }
        if let Some(mut other) = self.gems.first_entry() {
            let worth = &mut other.get_mut().state.worth;
            *worth = worth.saturating_add(gem.state.worth);
        }
    }

    fn fly_gems(&mut self) {
        for gem in self.gems.values_mut() {
            let (vx, vy) = gem.velocity;
            if vx == 0.0 && vy == 0.0 {
                continue;
            }
            let (x, bounce_x) = reflect(gem.state.x + vx, FIELD_WIDTH);
            let (y, bounce_y) = reflect(gem.state.y + vy, FIELD_HEIGHT);
            (gem.state.x, gem.state.y) = (x, y);
            gem.velocity = settle(vx * bounce_x * SLIDE, vy * bounce_y * SLIDE);
        }
    }

    /// Each gem goes to the nearest magpie in reach.
    fn collect(&mut self) {
        if self.round.phase == Phase::Over {
            return;
        }
        let tick = self.tick;
        let bodies = &mut self.bodies;
        self.gems.retain(|_, gem| {
            if ticks_until(gem.loose_at, tick) > 0 {
                return true;
            }
            let place = (gem.state.x, gem.state.y);
            let taker = bodies
                .values_mut()
                .filter(|body| body.state.motion != Motion::Dizzy)
                .map(|body| (distance_squared(place, (body.state.x, body.state.y)), body))
                .filter(|(distance, _)| *distance <= REACH * REACH)
                .min_by(|(a, _), (b, _)| a.total_cmp(b));
            let Some((_, body)) = taker else { return true };
            body.state.score = body.state.score.saturating_add(gem.state.worth);
            false
        });
    }

    fn turn_round(&mut self) {
        let ended = ticks_until(self.round.ends_at, self.tick) == 0;
        match self.round.phase {
            Phase::Waiting if self.bodies.len() >= 2 => self.start_round(),
            Phase::Playing if ended => self.end_round(),
            Phase::Over if ended && self.bodies.len() >= 2 => self.start_round(),
            Phase::Over if ended => {
                self.round =
                    RoundState { number: self.round.number, phase: Phase::Waiting, ..RoundState::default() };
                self.clear_scores();
            }
            Phase::Waiting | Phase::Playing | Phase::Over => {}
        }
    }

    fn start_round(&mut self) {
        self.round = RoundState {
            number: self.round.number.wrapping_add(1),
            phase: Phase::Playing,
            ends_at: self.tick.wrapping_add(ROUND_TICKS),
            ..RoundState::default()
        };
        self.clear_scores();
        for _ in 0..self.gems_wanted() {
            self.add_lying_gem();
        }
    }

    fn end_round(&mut self) {
        let best = self.bodies.values().map(|body| body.state.score).max().unwrap_or(0);
        let winners = self.bodies.iter().filter(|(_, body)| best > 0 && body.state.score == best);
        self.round.winners = winners.map(|(id, _)| *id).collect();
        self.round.best = best;
        self.round.phase = Phase::Over;
        self.round.ends_at = self.tick.wrapping_add(OVER_TICKS);
        self.gems.clear();
    }

    fn clear_scores(&mut self) {
        self.gems.clear();
        self.bodies.values_mut().for_each(|body| body.state.score = 0);
    }

    fn gems_wanted(&self) -> usize {
        (6 + 2 * self.bodies.len()).min(GEMS_MOST / 2)
    }

    fn spawn(&mut self) {
        if self.round.phase == Phase::Over
            || self.gems.len() >= self.gems_wanted()
            || ticks_until(self.spawn_at, self.tick) > 0
        {
            return;
        }
        let players = u32::try_from(self.bodies.len()).unwrap_or(u32::MAX);
        self.spawn_at = self.tick.wrapping_add(HZ / (1 + players).min(HZ / 3));
        self.add_lying_gem();
    }

    fn add_lying_gem(&mut self) {
        let (x, y) = self.free_place();
        let worth = if self.rng.chance(0.08) { 5 } else { 1 };
        self.add_gem(Gem { state: GemState { x, y, worth }, velocity: (0.0, 0.0), loose_at: self.tick });
    }

    /// A place inside the field, away from all magpies if a few tries find one.
    fn free_place(&mut self) -> (f32, f32) {
        let mut place = (0.0, 0.0);
        for _ in 0..6 {
            place = (self.rng.between(2.0, FIELD_WIDTH - 2.0), self.rng.between(2.0, FIELD_HEIGHT - 2.0));
            if !self.bodies.values().any(|body| near(place, (body.state.x, body.state.y), 6.0)) {
                break;
            }
        }
        place
    }

    fn free_slot(&self) -> u8 {
        let taken = |slot: u8| self.bodies.values().any(|body| body.badge.slot == slot);
        (0..=u8::MAX).find(|slot| !taken(*slot)).unwrap_or(u8::MAX)
    }

    /// An unused letter of the name, else any unused one.
    fn free_glyph(&self, name: &str) -> char {
        let taken = |glyph: char| self.bodies.values().any(|body| body.badge.glyph == glyph);
        let own = name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase());
        own.chain('A'..='Z').chain('0'..='9').find(|glyph| !taken(*glyph)).unwrap_or('?')
    }
}

impl Body {
    /// Moves by one tick: the input counts unless it is dizzy.
    fn steer(&mut self, input: Input, tick: u32) {
        self.wish = input.dir;
        if self.state.motion != Motion::Gliding && ticks_until(self.motion_until, tick) == 0 {
            self.state.motion = Motion::Gliding;
        }
        if self.state.safe && ticks_until(self.safe_until, tick) == 0 {
            self.state.safe = false;
        }
        if self.state.motion == Motion::Gliding {
            self.obey(input, tick);
        }
        let (vx, vy) = self.velocity;
        let (wx, wy) = match self.state.motion {
            Motion::Gliding => {
                let (x, y) = self.wish.vector();
                (vx + (x * SPEED - vx) * AGILITY, vy + (y * SPEED - vy) * AGILITY)
            }
            Motion::Dashing => {
                let (x, y) = self.state.heading.vector();
                (x * DASH_SPEED, y * DASH_SPEED)
            }
            Motion::Dizzy => (vx * SLIDE, vy * SLIDE),
        };
        self.velocity = settle(wx, wy);
        self.state.x = (self.state.x + self.velocity.0).clamp(RADIUS, FIELD_WIDTH - RADIUS);
        self.state.y = (self.state.y + self.velocity.1).clamp(RADIUS, FIELD_HEIGHT - RADIUS);
    }

    fn obey(&mut self, input: Input, tick: u32) {
        if input.dir != Dir::Stay {
            self.state.heading = input.dir;
        }
        let ready = ticks_until(self.state.dash_ready_at, tick) == 0;
        if input.dash && ready && self.state.heading != Dir::Stay {
            self.state.motion = Motion::Dashing;
            self.motion_until = tick.wrapping_add(DASH_TICKS);
            self.state.dash_ready_at = tick.wrapping_add(DASH_EVERY);
        }
    }

    fn shown(&self) -> PlayerState {
        PlayerState { x: grain(self.state.x), y: grain(self.state.y), ..self.state }
    }
}

impl Gem {
    fn shown(&self) -> GemState {
        GemState { x: grain(self.state.x), y: grain(self.state.y), ..self.state }
    }
}

/// Rounds to 1/64 unit: finer than any screen, and a magpie that has all but stopped costs nothing.
fn grain(place: f32) -> f32 {
    (place * 64.0).round() / 64.0
}

/// A speed that no one sees is none.
fn settle(vx: f32, vy: f32) -> (f32, f32) {
    if vx * vx + vy * vy < 0.0004 { (0.0, 0.0) } else { (vx, vy) }
}

/// Keeps a place within 0.5 of the walls, and says which way its speed goes on.
fn reflect(place: f32, end: f32) -> (f32, f32) {
    let (low, high) = (0.5, end - 0.5);
    if place < low {
        ((2.0 * low - place).min(high), -1.0)
    } else if place > high {
        ((2.0 * high - place).max(low), -1.0)
    } else {
        (place, 1.0)
    }
}

fn distance_squared(a: (f32, f32), b: (f32, f32)) -> f32 {
    (a.0 - b.0) * (a.0 - b.0) + (a.1 - b.1) * (a.1 - b.1)
}

fn near(a: (f32, f32), b: (f32, f32), distance: f32) -> bool {
    distance_squared(a, b) <= distance * distance
}
