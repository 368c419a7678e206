//! Cubes that fall onto a plane and are pushed about by a larger one, from a seed: what `parlor-bench cubes` codes.
//!
//! `cubes-scene SEED FRAMES` writes to standard output, all numbers little-endian:
//!
//! ```text
//! magic "CUBES\0\0\1" (8 bytes) · cubes u32 · frames each second u32 · frames u32
//! then for each frame, for each cube, 53 bytes:
//!   position x y z            3 × f32, metres; z is up, the plane is z = 0
//!   rotation x y z w          4 × f32, a unit quaternion
//!   linear velocity x y z     3 × f32, m/s
//!   angular velocity x y z    3 × f32, rad/s
//!   flags u8                  1: the cube is awake (it moves, or touches what does)
//! ```
//!
//! Cube 0 is the larger one. The same seed gives the same bytes on every machine (rapier's `enhanced-determinism`).

use anyhow::Context;
use parlor_impair::Rng;
use rapier3d::prelude::*;
use std::io::{BufWriter, ErrorKind, Write};

/// Cubes in each direction of the field on which they fall.
const FIELD: u64 = 30;
/// Metres from cube to cube, before they are strewn.
const SPACING: f32 = 0.8;
/// Edges in metres.
const SMALL: f32 = 0.4;
const LARGE: f32 = 1.6;
const HZ: u32 = 60;
/// How long the larger cube keeps its way, in frames.
const WAY_FRAMES: u64 = 90;
/// How fast it wants to go, in m/s.
const WAY_SPEED: f32 = 7.0;

fn main() -> anyhow::Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let [seed, frames] = numbers[..] else { anyhow::bail!("cubes-scene SEED FRAMES") };
    let written = write_frames(seed, u32::try_from(frames).context("too many frames")?);
    match written {
        // Whoever read has enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn write_frames(seed: u64, frames: u32) -> std::io::Result<()> {
    let mut scene = Scene::new(seed);
    let mut out = BufWriter::new(std::io::stdout().lock());
    out.write_all(b"CUBES\0\0\x01")?;
    for number in [u32::try_from(scene.cubes.len()).expect("there are 901"), HZ, frames] {
        out.write_all(&number.to_le_bytes())?;
    }
    for _ in 0..frames {
        scene.step();
        for cube in &scene.cubes {
            write_cube(&mut out, &scene.world.bodies[*cube])?;
        }
    }
    out.flush()
}

fn write_cube(out: &mut impl Write, body: &RigidBody) -> std::io::Result<()> {
    let (at, turned, moves, spins) = (body.translation(), body.rotation(), body.linvel(), body.angvel());
    let place = [at.x, at.y, at.z, turned.x, turned.y, turned.z, turned.w];
    let motion = [moves.x, moves.y, moves.z, spins.x, spins.y, spins.z];
    for number in place.iter().chain(&motion) {
        out.write_all(&number.to_le_bytes())?;
    }
    out.write_all(&[u8::from(!body.is_sleeping())])
}

/// The plane, the cubes, and where the larger one wants to go.
struct Scene {
    world: PhysicsWorld,
    cubes: Vec<RigidBodyHandle>,
    random: Rng,
    frame: u64,
    way: [f32; 2],
}

impl Scene {
    fn new(seed: u64) -> Self {
        let mut random = Rng::new(seed);
        let mut world = PhysicsWorld::new();
        world.gravity = Vector::new(0.0, 0.0, -9.81);
        world.integration_parameters.dt = 1.0 / HZ as f32;
        world.insert(
            RigidBodyBuilder::fixed().translation(Vector::new(0.0, 0.0, -1.0)),
            ColliderBuilder::cuboid(200.0, 200.0, 1.0),
        );
        let mut cubes = Vec::new();
        cubes.push(insert(&mut world, [0.0, 0.0, 12.0], [0.0; 3], LARGE));
        let middle = (FIELD - 1) as f32 / 2.0;
        for number in 0..FIELD * FIELD {
            let [x, y] = [number % FIELD, number / FIELD].map(|n| (n as f32 - middle) * SPACING);
            let at = [
                x + between(&mut random, -0.3, 0.3),
                y + between(&mut random, -0.3, 0.3),
                between(&mut random, 1.0, 11.0),
            ];
            let turned = [(); 3].map(|()| between(&mut random, -1.5, 1.5));
            cubes.push(insert(&mut world, at, turned, SMALL));
        }
        Scene { world, cubes, random, frame: 0, way: [0.0; 2] }
    }

    fn step(&mut self) {
        if self.frame % WAY_FRAMES == 0 {
            self.choose_way();
        }
        self.frame += 1;
        let [x, y] = self.way;
        let large = &mut self.world.bodies[self.cubes[0]];
        let (moves, mass) = (large.linvel(), large.mass());
        // It accelerates towards the speed that it wants, as hard as friction lets a runner.
        let push = Vector::new((x - moves.x).clamp(-1.0, 1.0), (y - moves.y).clamp(-1.0, 1.0), 0.0);
        large.apply_impulse(push * (mass * 20.0 / HZ as f32), true);
        self.world.step();
    }

    /// A point of the field to go to, and now and then a jump.
    fn choose_way(&mut self) {
        let half = FIELD as f32 * SPACING / 2.0;
        let [x, y] = [(); 2].map(|()| between(&mut self.random, -half, half));
        let large = &mut self.world.bodies[self.cubes[0]];
        let at = large.translation();
        let [dx, dy] = [x - at.x, y - at.y];
        let distance = (dx * dx + dy * dy).sqrt().max(1.0);
        self.way = [dx, dy].map(|part| part / distance * WAY_SPEED);
        if self.random.per_mille(300) {
            let mass = large.mass();
            large.apply_impulse(Vector::new(0.0, 0.0, 6.0 * mass), true);
        }
    }
}

fn insert(world: &mut PhysicsWorld, at: [f32; 3], turned: [f32; 3], edge: f32) -> RigidBodyHandle {
    let body = RigidBodyBuilder::dynamic().translation(Vector::from(at)).rotation(Vector::from(turned));
    let half = edge / 2.0;
    world.insert(body, ColliderBuilder::cuboid(half, half, half)).0
}

fn between(random: &mut Rng, low: f32, high: f32) -> f32 {
    // 24 bits are what an f32 holds exactly.
    low + (random.draw() >> 40) as f32 / (1_u32 << 24) as f32 * (high - low)
}
