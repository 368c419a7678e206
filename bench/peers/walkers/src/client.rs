//! The clients: all of them on one thread, each an app of its own, as often as it takes to acknowledge at once.

use crate::account::{CpuTime, cpu_time};
use crate::network::{self, Counted};
use crate::{Library, POSES_DECODED, Pose, Setting};
use anyhow::ensure;
use bevy::prelude::App;
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often each client's app is updated.
const UPDATE: Duration = Duration::from_millis(8);
/// How long it may take until all clients have all walkers.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the world goes on before it is measured: connections settle.
const SETTLE: Duration = Duration::from_secs(3);

/// What is printed.
#[derive(Debug, Serialize)]
struct Loaded {
    /// What the server sent, with headers of IP and UDP, for each client and second.
    bytes_per_second_per_client: f64,
    packets_per_second_per_client: f64,
    /// Poses that the clients decoded, for each client, walker and second.
    updates_per_entity_per_second: f64,
    server_cpu_us: u64,
    server_waited_us: u64,
    generator_cpu_us: u64,
    generator_waited_us: u64,
    took_us: u64,
}

/// What has been counted up to a moment.
struct Moment {
    at: Instant,
    bytes: u64,
    packets: u64,
    poses: u64,
    server: CpuTime,
    generator: CpuTime,
}

impl Moment {
    fn now(counted: &Counted, server: u32) -> anyhow::Result<Self> {
        Ok(Moment {
            at: Instant::now(),
            bytes: counted.bytes.load(Ordering::Relaxed),
            packets: counted.packets.load(Ordering::Relaxed),
            poses: POSES_DECODED.load(Ordering::Relaxed),
            server: cpu_time(server)?,
            generator: cpu_time(std::process::id())?,
        })
    }
}

/// Connects all clients, waits until they have the world, measures, prints.
pub(crate) fn run<L: Library>(setting: &Setting) -> anyhow::Result<()> {
    let server: SocketAddr = (Ipv4Addr::LOCALHOST, setting.port).into();
    let delays: Vec<Duration> = (0_u32..).zip(0..setting.clients).map(|(n, _)| setting.apart * n).collect();
    let (ways, counted) = network::start(server, &delays)?;
    let mut clients = Vec::new();
    for (number, way) in (1..).zip(ways) {
        clients.push(L::client(setting, number, way)?);
    }
    let began = Instant::now();
    while clients.iter_mut().any(|client| walkers_of(client) < setting.entities) {
        ensure!(
            began.elapsed() < PATIENCE,
            "after {PATIENCE:?} the clients have {:?} walkers of {}",
            clients.iter_mut().map(walkers_of).collect::<Vec<_>>(),
            setting.entities
        );
        update_all(&mut clients, Instant::now() + UPDATE);
    }
    update_all(&mut clients, Instant::now() + SETTLE);
    let before = Moment::now(&counted, setting.pid)?;
    update_all(&mut clients, before.at + setting.span);
    let after = Moment::now(&counted, setting.pid)?;
    println!("{}", serde_json::to_string(&loaded(setting, &before, &after))?);
    Ok(())
}

/// Updates all clients in turns until then.
fn update_all(clients: &mut [App], until: Instant) {
    let mut due = Instant::now();
    while due < until {
        clients.iter_mut().for_each(App::update);
        due = (due + UPDATE).max(Instant::now());
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

fn walkers_of(client: &mut App) -> usize {
    let mut poses = client.world_mut().query::<&Pose>();
    poses.iter(client.world()).count()
}

fn loaded(setting: &Setting, before: &Moment, after: &Moment) -> Loaded {
    let took = after.at - before.at;
    let per_client = |count: u64| count as f64 / took.as_secs_f64() / setting.clients as f64;
    let server = after.server.since(before.server);
    let generator = after.generator.since(before.generator);
    let us = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    Loaded {
        bytes_per_second_per_client: per_client(after.bytes - before.bytes),
        packets_per_second_per_client: per_client(after.packets - before.packets),
        updates_per_entity_per_second: per_client(after.poses - before.poses) / setting.entities as f64,
        server_cpu_us: us(server.ran),
        server_waited_us: us(server.waited),
        generator_cpu_us: us(generator.ran),
        generator_waited_us: us(generator.waited),
        took_us: us(took),
    }
}
