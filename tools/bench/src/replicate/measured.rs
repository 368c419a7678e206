//! One walk, and its costs.

use super::super::account::{CpuTime, cpu_time};
use super::super::args::ReplicateArgs;
use super::super::machine::Cores;
use super::super::network::{self, Counted};
use super::super::recording::Recording;
use super::super::server::Process;
use super::super::stand::changes_per_tick;
use super::client::Clients;
use super::{RECORDED_SECONDS, UPDATES_MIN, host};
use anyhow::Context;
use parlor::Impairment;
use parlor_transport::discovery::ServerAddress;
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the world goes on before it is measured: connections settle.
pub(super) const SETTLE: Duration = Duration::from_secs(3);

/// How often it is looked how far behind clients are: at all phases of a tick in turn.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(37);

/// A walk that is shared.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Ticks each second.
    pub hz: u16,
    /// Walkers.
    pub entities: u32,
    /// Of 100 walkers those that move.
    pub moving_percent: u32,
    /// Who receives all of it.
    pub clients: u32,
    /// From one client to the next, how much later its acknowledgements arrive.
    pub apart: Duration,
    /// How long is measured.
    pub span: Duration,
    /// What the walkers are drawn from.
    pub seed: u64,
}

impl Walk {
    /// What the command line says; rate and motion are for each row.
    pub(super) fn new(args: &ReplicateArgs) -> Self {
        Walk {
            hz: 30,
            entities: args.entities,
            moving_percent: 100,
            clients: args.clients,
            apart: Duration::ZERO,
            span: Duration::from_secs_f64(args.seconds),
            seed: args.common.seed,
        }
    }

    pub(super) fn recording(&self) -> Recording {
        let (count, hz) = (self.entities as usize, u32::from(self.hz));
        Recording::new(self.seed, count, self.moving_percent, hz, RECORDED_SECONDS)
    }

    /// What the row is void for, if clients decoded so few changes of each walker in a second that some were left out.
    ///
    /// # Errors
    /// The walkers cannot be quantized.
    pub(super) fn lacks(&self, updates_per_entity_per_second: f64) -> anyhow::Result<Option<String>> {
        let expected = changes_per_tick(&self.recording())? * f64::from(self.hz);
        let percent = updates_per_entity_per_second * 100.0 / expected;
        let is_lacking = updates_per_entity_per_second < expected * UPDATES_MIN;
        Ok(is_lacking.then(|| format!("only {percent:.1}% of the changes arrived")))
    }
}

/// What was measured of a walk, by ours and by the load of a peer.
#[derive(Debug, Deserialize)]
pub(crate) struct Load {
    /// What the server sent, with headers of IP and UDP, for each client and second.
    pub bytes_per_second_per_client: f64,
    /// The same in packets.
    pub packets_per_second_per_client: f64,
    /// Changes of a walker that a client decoded in a second.
    pub updates_per_entity_per_second: f64,
    /// What the scheduler notes of both ends, in the time that it took.
    pub server_cpu_us: u64,
    /// See above.
    pub server_waited_us: u64,
    /// See above.
    pub generator_cpu_us: u64,
    /// See above.
    pub took_us: u64,
}

/// What has been counted up to a moment.
struct Moment {
    at: Instant,
    bytes: u64,
    packets: u64,
    updates: u64,
    server: CpuTime,
    generator: CpuTime,
}

impl Moment {
    fn now(counted: &Counted, clients: &Clients, server: u32) -> anyhow::Result<Self> {
        Ok(Moment {
            at: Instant::now(),
            bytes: counted.bytes.load(Ordering::Relaxed),
            packets: counted.packets.load(Ordering::Relaxed),
            updates: clients.updates,
            server: cpu_time(server)?,
            generator: cpu_time(std::process::id())?,
        })
    }
}

/// Starts a server with its host on the server's core.
///
/// # Errors
/// It does not start.
pub(super) fn start(cores: Cores, walk: &Walk) -> anyhow::Result<(Process, ServerAddress, String)> {
    let binary = std::env::current_exe().context("this binary's own path is not known")?;
    let mut command = Command::new(binary);
    command.arg("serve-walkers");
    for (option, value) in [
        ("--hz", walk.hz.to_string()),
        ("--entities", walk.entities.to_string()),
        ("--moving", walk.moving_percent.to_string()),
        ("--seed", walk.seed.to_string()),
    ] {
        command.args([option, &value]);
    }
    let mut process = Process::start(cores, command)?;
    let said = process.first(host::MARK).context("the server of walkers does not say where it is")?;
    let (address, code) = said.split_once(' ').context("the server of walkers says no code")?;
    let address = address.parse().context("the server of walkers is at an unknown place")?;
    Ok((process, address, code.to_owned()))
}

/// How far behind clients are whose links are so bad, in ticks, of each moving walker at each moment. One more client, who
/// is on a good link, says what there is.
///
/// # Errors
/// What kept it from being measured.
pub(crate) fn staleness_ticks(cores: Cores, walk: &Walk, impairment: Impairment) -> anyhow::Result<Vec<u32>> {
    let (_process, address, code) = start(cores, walk)?;
    let server: SocketAddr = (Ipv4Addr::LOCALHOST, address.port).into();
    let bad = (1..=u64::from(walk.clients)).map(|number| (server, impairment.apart(number)));
    let ways: Vec<_> = std::iter::once((server, Impairment::none())).chain(bad).collect();
    let fingerprint = address.fingerprint.context("the server of walkers has no fingerprint")?;
    let mut clients = Clients::join(&ways, fingerprint, &code, walk.recording())?;
    clients.wait_for_all()?;
    clients.run(SETTLE, |_| {})?;
    let (mut samples, mut due) = (Vec::new(), Instant::now());
    clients.run(walk.span, |clients| {
        if Instant::now() >= due {
            due += SAMPLE_EVERY;
            samples.extend(clients.staleness_ticks());
        }
    })?;
    Ok(samples)
}

/// Measures a walk of ours.
///
/// # Errors
/// What kept it from being measured.
pub(super) fn parlor(cores: Cores, walk: &Walk) -> anyhow::Result<Load> {
    let (process, address, code) = start(cores, walk)?;
    let delays: Vec<Duration> = (0..walk.clients).map(|client| walk.apart * client).collect();
    let server: SocketAddr = (Ipv4Addr::LOCALHOST, address.port).into();
    let (ways, counted) = network::start(server, &delays)?;
    let ways: Vec<(SocketAddr, Impairment)> = ways.into_iter().map(|way| (way, Impairment::none())).collect();
    let fingerprint = address.fingerprint.context("the server of walkers has no fingerprint")?;
    let mut clients = Clients::join(&ways, fingerprint, &code, walk.recording())?;
    clients.wait_for_all()?;
    clients.run(SETTLE, |_| {})?;
    let before = Moment::now(&counted, &clients, process.pid())?;
    clients.run(walk.span, |_| {})?;
    let after = Moment::now(&counted, &clients, process.pid())?;
    let took = after.at - before.at;
    #[expect(clippy::cast_precision_loss, reason = "counters of seconds stay far below 2⁵³")]
    let per_client = |count: u64| count as f64 / took.as_secs_f64() / f64::from(walk.clients);
    let us = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let server = after.server.since(before.server);
    Ok(Load {
        bytes_per_second_per_client: per_client(after.bytes - before.bytes),
        packets_per_second_per_client: per_client(after.packets - before.packets),
        updates_per_entity_per_second: per_client(after.updates - before.updates) / f64::from(walk.entities),
        server_cpu_us: us(server.ran),
        server_waited_us: us(server.waited),
        generator_cpu_us: us(after.generator.since(before.generator).ran),
        took_us: us(took),
    })
}
