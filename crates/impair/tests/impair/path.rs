//! Datagrams: the settings are applied exactly, and random decisions depend on the seed alone.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use core::time::Duration;
use parlor_impair::{Arrivals, Direction, Impairment, Outage, Path, Rng};
use proptest::prelude::*;

const PACKETS: u64 = 100_000;
const BYTES: usize = 1_000;

fn path(text: &str) -> Path {
    Path::new(&text.parse().unwrap(), 0, Direction::There)
}

/// One packet each millisecond.
fn stream(path: &mut Path, packets: u64) -> Vec<Arrivals> {
    (0..packets).map(|ms| path.offer(Duration::from_millis(ms), BYTES)).collect()
}

fn assert_near(found: u64, expected: u64, tolerance: u64) {
    assert!(found.abs_diff(expected) <= tolerance, "{found} is not within {tolerance} of {expected}");
}

#[test]
fn chance_comes_as_often_as_it_is_set() {
    // Five standard deviations of 100,000 draws are at most 350 at these probabilities.
    let mut path = path("latency=50ms,loss=5%,duplicate=2%,reorder=1%,seed=42");
    let arrivals = stream(&mut path, PACKETS);
    let counts = path.counts();
    assert_eq!(counts.offered, PACKETS);
    assert_near(counts.lost, 5_000, 350);
    assert_near(counts.duplicated, 2_000 * 95 / 100, 250);
    let arrived = |times| arrivals.iter().filter(|arrivals| arrivals.count() == times).count() as u64;
    assert_eq!(arrived(0), counts.lost);
    assert_eq!(arrived(2), counts.duplicated);
    let late = |(ms, arrivals): (usize, &Arrivals)| {
        arrivals.into_iter().next().is_some_and(|at| at > Duration::from_millis(ms as u64 + 50))
    };
    let late = arrivals.iter().enumerate().filter(|&packet| late(packet)).count();
    assert_near(late as u64, 1_000 * 95 / 100, 200);
}

#[test]
fn nothing_wrong_changes_nothing() {
    let mut path = Path::new(&Impairment::none(), 3, Direction::Back);
    for (ms, arrivals) in stream(&mut path, 1_000).into_iter().enumerate() {
        assert!(arrivals.into_iter().eq([Duration::from_millis(ms as u64)]));
    }
}

#[test]
fn latency_and_jitter_are_bounds_and_jitter_overtakes() {
    let mut path = path("latency=100ms,jitter=30ms,seed=1");
    let delays: Vec<Duration> = (0..PACKETS)
        .map(|ms| {
            let now = Duration::from_millis(ms);
            path.offer(now, BYTES).into_iter().next().unwrap() - now
        })
        .collect();
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*least >= Duration::from_millis(100) && *least < Duration::from_millis(101), "{least:?}");
    assert!(*most <= Duration::from_millis(130) && *most > Duration::from_millis(129), "{most:?}");
    let mean = delays.iter().sum::<Duration>() / u32::try_from(PACKETS).unwrap();
    assert_near(u64::try_from(mean.as_micros()).unwrap(), 115_000, 200);
    assert!(delays.windows(2).any(|pair| pair[1] + Duration::from_millis(1) < pair[0]));
}

#[test]
fn reordered_packets_are_overtaken_by_later_ones() {
    let mut path = path("reorder=2%,seed=1");
    let at: Vec<Duration> =
        stream(&mut path, 10_000).into_iter().map(|arrivals| arrivals.into_iter().next().unwrap()).collect();
    let overtaken = at.windows(10).filter(|window| window[9] < window[0]).count();
    assert_near(overtaken as u64, 200, 80);
}

#[test]
fn outages_swallow_everything_and_nothing_else() {
    let mut path = path("outage=500ms/2s");
    for (ms, arrivals) in stream(&mut path, 10_000).into_iter().enumerate() {
        assert_eq!(arrivals.count(), usize::from(ms % 2_000 < 1_500), "at {ms} ms");
    }
    assert_eq!(path.counts().in_outage, 2_500);
}

#[test]
fn the_rate_is_never_exceeded_over_any_window() {
    // 8 Mbit/s are 1,000 B each millisecond. Twice as much is offered, in packets of all sizes, some of them
    // duplicated.
    let mut path = path("latency=20ms,rate=8mbit,queue=30kB,duplicate=5%,seed=3");
    let mut rng = Rng::new(9);
    let mut arrived = Vec::new();
    for ms in 0..3_000 {
        for _ in 0..2 {
            let bytes = 500 + rng.index(1_000);
            let now = Duration::from_millis(ms);
            let last = arrived.len();
            arrived.extend(path.offer(now, bytes).into_iter().map(|at| (at, bytes as u64)));
            // A queue of 30 kB takes 30 ms, and a packet being sent before it 1.5 ms.
            assert!(
                arrived[last..].iter().all(|(at, _)| *at - now <= Duration::from_micros(20_000 + 31_500))
            );
        }
    }
    for first in 0..arrived.len() {
        let mut sum = 0;
        for (at, bytes) in &arrived[first + 1..] {
            sum += bytes;
            let takes = Duration::from_micros(sum);
            assert!(*at - arrived[first].0 >= takes, "{sum} B in {:?}", *at - arrived[first].0);
        }
    }
    let (from, to) = (arrived[0].0, arrived.last().unwrap().0);
    let sum: u64 = arrived[1..].iter().map(|(_, bytes)| bytes).sum();
    assert_near(sum, u64::try_from((to - from).as_micros()).unwrap(), 2_000);
    let counts = path.counts();
    assert!(counts.overflowed > 2_500, "{counts:?}");
    assert_eq!(arrived.len() as u64, counts.arriving());
}

#[test]
fn a_packet_larger_than_the_queue_passes_an_idle_bottleneck() {
    let mut path = path("rate=8kbit,queue=1500B");
    assert!(path.offer(Duration::ZERO, 2_000).into_iter().eq([Duration::from_secs(2)]));
    assert_eq!(path.offer(Duration::ZERO, 1).count(), 0);
    assert!(path.offer(Duration::from_secs(1), 500).into_iter().eq([Duration::from_millis(2_500)]));
}

#[test]
fn directions_and_flows_differ() {
    let impairment: Impairment = "loss=50%,seed=5".parse().unwrap();
    let lost = |flow, direction| {
        let mut path = Path::new(&impairment, flow, direction);
        stream(&mut path, 64).into_iter().fold(0u64, |bits, arrivals| bits << 1 | arrivals.count() as u64)
    };
    let neighbour = impairment.apart(1);
    let mut path = Path::new(&neighbour, 0, Direction::There);
    let apart =
        stream(&mut path, 64).into_iter().fold(0u64, |bits, arrivals| bits << 1 | arrivals.count() as u64);
    let all = [
        apart,
        lost(0, Direction::There),
        lost(0, Direction::Back),
        lost(1, Direction::There),
        lost(1, Direction::Back),
    ];
    for (index, one) in all.iter().enumerate() {
        assert!(all[index + 1..].iter().all(|other| (one ^ other).count_ones() > 10), "{all:x?}");
    }
}

#[test]
fn settings_beyond_their_bounds_do_not_panic() {
    let most = Impairment::none()
        .latency(Duration::MAX)
        .jitter(Duration::MAX)
        .loss_ppm(1)
        .rate_bits_per_s(0)
        .queue_bytes(u64::MAX);
    let mut path = Path::new(&most, u64::MAX, Direction::Back);
    assert!(stream(&mut path, 10).into_iter().flatten().all(|at| at > Duration::from_secs(1 << 40)));
    assert!(path.offer(Duration::MAX, usize::MAX).count() <= 1);
}

proptest! {
    /// Whether the n-th packet is lost or duplicated depends on the seed, and not on time, sizes or outages.
    #[test]
    fn the_same_seed_gives_the_same_answer(
        seed: u64,
        calls in proptest::collection::vec((0u64..50_000, 0usize..2_000), 1..200),
    ) {
        let plain: Impairment = "latency=5ms,jitter=9ms,loss=20%,duplicate=20%,reorder=20%".parse().unwrap();
        let outage = Outage { length: Duration::from_millis(50), every: Duration::from_millis(300) };
        let new = |impairment: Impairment| Path::new(&impairment.seed(seed), 1, Direction::There);
        let (mut one, mut other) = (new(plain.outage(outage)), new(plain.outage(outage)));
        let mut plain = new(plain);
        let mut now = Duration::ZERO;
        for (later_us, bytes) in calls {
            now += Duration::from_micros(later_us);
            let in_outage = one.counts().in_outage;
            let arrivals = one.offer(now, bytes);
            prop_assert_eq!(arrivals, other.offer(now, bytes));
            let expected = plain.offer(Duration::ZERO, 0).count();
            let is_in_outage = one.counts().in_outage > in_outage;
            prop_assert_eq!(arrivals.count(), if is_in_outage { 0 } else { expected });
            prop_assert!(arrivals.into_iter().all(|at| at >= now + Duration::from_millis(5)));
        }
        prop_assert_eq!(one.counts(), other.counts());
    }
}
