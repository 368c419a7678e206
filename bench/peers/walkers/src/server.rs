//! The server: a world of walkers, one tick for each update of the app.

use crate::recording::{Place, Recording};
use crate::{Library, Pose, Setting};
use bevy::prelude::{DetectChangesMut, Entity};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Of so many seconds the motion is recorded before.
const RECORDED_SECONDS: u32 = 20;

/// Serves until it is killed.
pub(crate) fn run<L: Library>(setting: &Setting) -> anyhow::Result<()> {
    let recording =
        Recording::new(setting.seed, setting.entities, setting.moving_percent, setting.hz, RECORDED_SECONDS);
    // The port is free for a moment before the library takes it: only this bench is about.
    let listen: SocketAddr = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let mut app = L::server(setting, listen)?;
    let spawn = |place: &Place| app.world_mut().spawn((pose(place), L::replicated())).id();
    let entities: Vec<Entity> = recording.at(0).iter().map(spawn).collect();
    app.update();
    println!("listens on {}", listen.port());
    let tick = setting.tick();
    let mut due = Instant::now();
    for number in 1.. {
        due += tick;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if due.elapsed() > Duration::from_millis(500) {
            // A server that is too slow must not run after its clock for ever.
            due = Instant::now();
        }
        if setting.moving_percent > 0 {
            for (entity, place) in entities.iter().zip(recording.at(number)) {
                if let Some(mut current) = app.world_mut().get_mut::<Pose>(*entity) {
                    current.set_if_neq(pose(place));
                }
            }
        }
        app.update();
    }
    Ok(())
}

/// Where a walker stands, quantized.
fn pose((position, rotation): &Place) -> Pose {
    Pose {
        position: position.map(|metres| (metres * 512.0).round().max(0.0) as u32),
        rotation: smallest_three(*rotation),
    }
}

/// The three smaller parts of a quaternion with 9 bits each, above them which one was left out.
fn smallest_three(rotation: [f32; 4]) -> u32 {
    let larger =
        |best: usize, part: usize| if rotation[part].abs() > rotation[best].abs() { part } else { best };
    let largest = (1..4).fold(0, larger);
    let parts = (0..4).filter(|part| *part != largest).map(|part| {
        let share = rotation[part] * rotation[largest].signum() * std::f32::consts::FRAC_1_SQRT_2 + 0.5;
        (share.clamp(0.0, 1.0) * 511.0).round() as u32
    });
    parts.fold(u32::try_from(largest).expect("it is below 4"), |packed, part| packed << 9 | part)
}
