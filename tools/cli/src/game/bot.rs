//! A player that plays by itself, from data that a person would see.

use super::scene::{Bird, Scene};
use super::state::{Dir, FIELD_HEIGHT, FIELD_WIDTH, Input, Motion, ticks_until};
use parlor_impair::Rng;

/// How far ahead of a dasher it is dangerous, and how far a dash at a rich magpie carries.
const DASH_REACH: f32 = 8.0;
/// How far from the line of a dash one is still hit.
const DASH_BREADTH: f32 = 2.2;
/// The fewest gems that are worth a dash at who carries them.
const RICH: u32 = 4;

/// A bot. It goes for near gems to which no other player is nearer, steps out of the way of dashers, and
/// dashes at the rich.
#[derive(Clone, Debug)]
pub(crate) struct Bot {
    rng: Rng,
    skill: f32,
    dir: Dir,
    think_at: u32,
    wander: (f32, f32),
}

impl Bot {
    /// A bot with a character of its own. `skill` from 0 (slow, overlooks much) to 1 (quick, misses nothing).
    pub(crate) fn new(seed: u64, skill: f32) -> Bot {
        let mut rng = Rng::new(seed);
        let wander = (rng.between(0.0, FIELD_WIDTH), rng.between(0.0, FIELD_HEIGHT));
        let skill = if skill.is_finite() { skill.clamp(0.0, 1.0) } else { 0.5 };
        Bot { rng, skill, dir: Dir::Stay, think_at: 0, wander }
    }

    /// What it wants in the tick that this scene shows. To be called once per tick; between two thoughts it flies on.
    pub(crate) fn think(&mut self, scene: &Scene, my_id: u32) -> Input {
        let Some(me) = scene.players.get(&my_id) else { return Input::default() };
        if self.dir != Dir::Stay && ticks_until(self.think_at, scene.tick) > 0 {
            return Input { dir: self.dir, dash: false };
        }
        let pause = self.rng.between(1.0, 3.0) + (1.0 - self.skill) * self.rng.between(2.0, 12.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 15")]
        let pause = pause as u32;
        self.think_at = scene.tick.wrapping_add(pause);
        let attentive = self.rng.chance(0.3 + 0.7 * self.skill);
        if let Some(dir) = self.dodge(scene, my_id, me).filter(|_| attentive) {
            self.dir = dir;
            return Input { dir, dash: false };
        }
        if let Some(dir) = prey(scene, my_id, me).filter(|_| attentive) {
            self.dir = dir;
            return Input { dir, dash: true };
        }
        let target = self.target(scene, my_id, me);
        self.dir = steer(place(me), target, self.dir);
        Input { dir: self.dir, dash: false }
    }

    /// The way out of the line of a magpie that dashes at it, or could.
    fn dodge(&mut self, scene: &Scene, my_id: u32, me: &Bird) -> Option<Dir> {
        if me.state.score < 2 || me.state.safe {
            return None;
        }
        let threat = others(scene, my_id).find(|other| {
            let armed = other.state.motion == Motion::Dashing
                || ticks_until(other.state.dash_ready_at, scene.tick) == 0
                    && other.state.motion != Motion::Dizzy;
            armed && in_line(place(other), other.state.heading, place(me))
        })?;
        let ((x, y), (from_x, from_y)) = (place(me), place(threat));
        let dir = match threat.state.heading {
            Dir::Up | Dir::Down if x >= from_x => Dir::Right,
            Dir::Up | Dir::Down => Dir::Left,
            _ if y >= from_y => Dir::Down,
            _ => Dir::Up,
        };
        // At a wall the other side is the only one.
        Some(match dir {
            Dir::Right if x > FIELD_WIDTH - 4.0 => Dir::Left,
            Dir::Left if x < 4.0 => Dir::Right,
            Dir::Down if y > FIELD_HEIGHT - 4.0 => Dir::Up,
            Dir::Up if y < 4.0 => Dir::Down,
            free => free,
        })
    }

    /// Where to fly: the gem, or the rich magpie, that promises most for its distance; else about the field.
    fn target(&mut self, scene: &Scene, my_id: u32, me: &Bird) -> (f32, f32) {
        let mine = place(me);
        let mut best = (0.0, None);
        for gem in scene.gems.values() {
            // Who is not attentive overlooks some.
            if self.rng.chance(0.25 * (1.0 - self.skill)) {
                continue;
            }
            let way = distance(mine, (gem.x, gem.y));
            let contested =
                others(scene, my_id).any(|other| distance(place(other), (gem.x, gem.y)) < way - 2.0);
            let promise = worth(gem.worth) / (way + 2.0) * if contested { 0.4 } else { 1.0 };
            if promise > best.0 {
                best = (promise, Some((gem.x, gem.y)));
            }
        }
        let armed = ticks_until(me.state.dash_ready_at, scene.tick) == 0;
        for other in
            others(scene, my_id).filter(|other| armed && other.state.score >= RICH && !other.state.safe)
        {
            let promise =
                worth(other.state.score / 3) * self.skill / (2.0 * distance(mine, place(other)) + 6.0);
            if promise > best.0 {
                best = (promise, Some(place(other)));
            }
        }
        if distance(mine, self.wander) < 4.0 {
            self.wander =
                (self.rng.between(3.0, FIELD_WIDTH - 3.0), self.rng.between(3.0, FIELD_HEIGHT - 3.0));
        }
        best.1.unwrap_or(self.wander)
    }
}

/// The direction in which a dash now would hit a rich magpie.
fn prey(scene: &Scene, my_id: u32, me: &Bird) -> Option<Dir> {
    if ticks_until(me.state.dash_ready_at, scene.tick) > 0 {
        return None;
    }
    let hit = |dir: &Dir| {
        others(scene, my_id).any(|other| {
            other.state.score >= RICH && !other.state.safe && in_line(place(me), *dir, place(other))
        })
    };
    [me.state.heading, Dir::Up, Dir::Right, Dir::Down, Dir::Left]
        .into_iter()
        .filter(|dir| *dir != Dir::Stay)
        .find(hit)
}

/// Whether a dash from here in this direction hits there.
fn in_line(from: (f32, f32), dir: Dir, to: (f32, f32)) -> bool {
    let ((x, y), (dx, dy)) = (dir.vector(), (to.0 - from.0, to.1 - from.1));
    let along = dx * x + dy * y;
    let across = (dx * y - dy * x).abs();
    dir != Dir::Stay && (0.0..=DASH_REACH).contains(&along) && across < DASH_BREADTH
}

/// The next direction towards a place: along the longer way, but not back and forth between two that are alike.
fn steer(from: (f32, f32), to: (f32, f32), last: Dir) -> Dir {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let across = if dx < 0.0 { Dir::Left } else { Dir::Right };
    let down = if dy < 0.0 { Dir::Up } else { Dir::Down };
    if last == across && dx.abs() > 1.0 || last == down && dy.abs() > 1.0 {
        return last;
    }
    if dx.abs() > dy.abs() { across } else { down }
}

fn others(scene: &Scene, my_id: u32) -> impl Iterator<Item = &Bird> {
    scene.players.iter().filter(move |(id, _)| **id != my_id).map(|(_, bird)| bird)
}

fn place(bird: &Bird) -> (f32, f32) {
    (bird.state.x, bird.state.y)
}

fn distance(a: (f32, f32), b: (f32, f32)) -> f32 {
    ((a.0 - b.0) * (a.0 - b.0) + (a.1 - b.1) * (a.1 - b.1)).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "a bot need not tell 16 million gems from one more")]
fn worth(gems: u32) -> f32 {
    gems as f32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::game::{HZ, World};

    /// The gems found in one round of 60 s by players 1 and up; player 0 is still.
    fn round(seed: u64, skills: &[f32]) -> (u32, Vec<u32>) {
        let mut world = World::new(seed);
        let ids: Vec<u32> = (1..).take(skills.len()).collect();
        let mut bots: Vec<Bot> =
            ids.iter().zip(skills).map(|(id, skill)| Bot::new(u64::from(*id) + seed, *skill)).collect();
        world.join(0, "still");
        ids.iter().for_each(|id| world.join(*id, "bot"));
        for _ in 0..60 * HZ - 1 {
            let scene = world.scene();
            let inputs: BTreeMap<u32, Input> =
                ids.iter().zip(&mut bots).map(|(id, bot)| (*id, bot.think(&scene, *id))).collect();
            world.step(&inputs);
        }
        let scene = world.scene();
        (scene.players[&0].state.score, ids.iter().map(|id| scene.players[id].state.score).collect())
    }

    #[test]
    fn every_bot_beats_a_still_player() {
        for seed in 0..8 {
            let (still, bots) = round(seed, &[0.0, 0.5, 1.0]);
            assert!(bots.iter().all(|bot| *bot > still), "seed {seed}: still {still}, bots {bots:?}");
        }
    }

    #[test]
    fn skill_pays() {
        let (mut dull, mut sharp) = (0, 0);
        for seed in 0..8 {
            let (_, bots) = round(seed, &[0.1, 0.1, 1.0, 1.0]);
            dull += bots[0] + bots[1];
            sharp += bots[2] + bots[3];
        }
        assert!(sharp > dull, "dull {dull}, sharp {sharp}");
    }

    #[test]
    fn a_bot_that_is_not_on_the_field_wants_nothing() {
        assert_eq!(Bot::new(1, f32::NAN).think(&Scene::default(), 7), Input::default());
    }
}
