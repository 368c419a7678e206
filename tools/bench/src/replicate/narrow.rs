//! A walk shared with clients whose links share a bottleneck, or are cut for a while.

use super::super::machine::Cores;
use super::super::network::{self, Passed};
use super::client::Clients;
use super::measured::{SAMPLE_EVERY, SETTLE, Walk, start};
use anyhow::{Context, ensure};
use parlor::Impairment;
use parlor_transport::Fingerprint;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the flows go on together before it is measured how they share.
const SHARED_BEFORE: Duration = Duration::from_secs(10);
/// How often it is looked whether a client has gone on.
const POLL: Duration = Duration::from_millis(1);
/// How long a client may take to go on after its link is back.
const PATIENCE: Duration = Duration::from_secs(20);

/// What went through a narrow place.
pub(crate) struct Shares {
    /// When the measure began, and when it was over.
    pub(crate) span: (Instant, Instant),
    /// All that came to the narrow place meanwhile, and a little before and after.
    pub(crate) passed: Vec<Passed>,
    /// For each flow, of each moving walker at each moment: by how many ticks the client was behind.
    pub(crate) staleness_ticks: Vec<Vec<u32>>,
    /// Bytes per second that a client without a narrow place is sent, with headers.
    pub(crate) wants_bytes_per_second: f64,
}

/// Where a walk is shared.
struct Place {
    _process: super::super::server::Process,
    server: SocketAddr,
    fingerprint: Fingerprint,
    code: String,
}

impl Place {
    fn open(cores: Cores, walk: &Walk) -> anyhow::Result<Self> {
        let (process, address, code) = start(cores, walk)?;
        let server = (Ipv4Addr::LOCALHOST, address.port).into();
        let fingerprint = address.fingerprint.context("the server of walkers has no fingerprint")?;
        Ok(Place { _process: process, server, fingerprint, code })
    }
}

/// Shares a walk with so many clients through one narrow place; each joins so long after the one before.
///
/// # Errors
/// What kept it from being measured.
pub(crate) fn shared(
    cores: Cores,
    walk: &Walk,
    (latency, narrow): (Duration, &Impairment),
    apart: Duration,
) -> anyhow::Result<Shares> {
    let place = Place::open(cores, walk)?;
    let flows = walk.clients as usize;
    let (wide, wanted) = network::start(place.server, &[Duration::ZERO])?;
    let (ways, counted) = network::start_narrow(place.server, flows, latency, narrow)?;
    let good: Vec<_> = wide.into_iter().map(|way| (way, Impairment::none())).collect();
    let mut clients = Clients::join(&good, place.fingerprint, &place.code, walk.recording())?;
    clients.wait_for_all()?;
    for (number, way) in ways.into_iter().enumerate() {
        if number > 0 {
            clients.run(apart, |_| {})?;
        }
        clients.add(way, place.fingerprint, &place.code)?;
    }
    clients.wait_for_all()?;
    clients.run(SETTLE + if flows > 1 { SHARED_BEFORE } else { Duration::ZERO }, |_| {})?;
    counted.take_passed();
    let (began, wanted_before) = (Instant::now(), wanted.bytes.load(Ordering::Relaxed));
    let (mut staleness_ticks, mut due) = (vec![Vec::new(); flows], began);
    clients.run(walk.span, |clients| {
        if Instant::now() >= due {
            due += SAMPLE_EVERY;
            for (flow, samples) in staleness_ticks.iter_mut().enumerate() {
                samples.extend(clients.staleness_ticks_of(flow + 1));
            }
        }
    })?;
    let over = Instant::now();
    #[expect(clippy::cast_precision_loss, reason = "counters of seconds stay far below 2⁵³")]
    let bytes = (wanted.bytes.load(Ordering::Relaxed) - wanted_before) as f64;
    Ok(Shares {
        span: (began, over),
        passed: counted.take_passed(),
        staleness_ticks,
        wants_bytes_per_second: bytes / (over - began).as_secs_f64(),
    })
}

/// Cuts a client's link for so long, again and again. For each cut: how long after the link's return the client had a change of
/// a tick that was not before the return.
///
/// # Errors
/// What kept it from being measured.
pub(crate) fn cut(
    cores: Cores,
    walk: &Walk,
    latency: Duration,
    length: Duration,
    times: u32,
) -> anyhow::Result<Vec<Duration>> {
    let place = Place::open(cores, walk)?;
    let (ways, counted) = network::start_narrow(place.server, 1, latency, &Impairment::none())?;
    let mut all = vec![(place.server, Impairment::none())];
    all.extend(ways.into_iter().map(|way| (way, Impairment::none())));
    let mut clients = Clients::join(&all, place.fingerprint, &place.code, walk.recording())?;
    clients.wait_for_all()?;
    let mut after = Vec::new();
    for number in 0..times {
        // Each at another phase of the probes.
        clients.run(SETTLE + Duration::from_millis(u64::from(number) * 17), |_| {})?;
        counted.is_cut.store(true, Ordering::Relaxed);
        clients.run(length, |_| {})?;
        counted.is_cut.store(false, Ordering::Relaxed);
        let back = Instant::now();
        let then = clients.newest()[0];
        while clients.newest()[1] < then {
            ensure!(back.elapsed() < PATIENCE, "a client did not go on within {PATIENCE:?} after a cut");
            clients.run(POLL, |_| {})?;
        }
        after.push(back.elapsed());
    }
    Ok(after)
}
