//! What the rate control does to games that share a path.

mod bottleneck;

use super::*;
use bottleneck::{Bottleneck, Game, PACKET_BYTES, Path};

const ROUND_TRIPS_MS: [u64; 3] = [10, 50, 100];

fn game(rate_bps: u64) -> Game {
    Game { rate_bps, tick_hz: 30, starts: Instant::ZERO }
}

fn path(round_trip_ms: u64) -> Path {
    Path { delay: Duration::from_millis(round_trip_ms / 2), ..Path::default() }
}

fn seconds(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1_000)
}

fn percentile(mut of: Vec<Duration>, percent: usize) -> Duration {
    of.sort_unstable();
    of[(of.len() - 1) * percent / 100]
}

/// The queue that stands: what is left of it at its lowest in each tenth of a second.
fn standing(waits: &[Duration]) -> Vec<Duration> {
    waits.chunks(100).map(|waits| *waits.iter().min().unwrap()).collect()
}

#[test]
fn a_stream_of_3_mbit_gets_through_sparse_loss_at_once() {
    for (loss_percent, round_trip_ms) in [(0, 50), (1, 50), (3, 50), (10, 50), (1, 100), (10, 100)] {
        for seed in 0..2 {
            let context = format!("{loss_percent}% loss, {round_trip_ms} ms, seed {seed}");
            let path = Path { loss_percent, ..path(round_trip_ms) };
            let mut net = Bottleneck::new(path, seed, &[game(3_000_000)]);
            net.run_until(seconds(20));
            let flow = &net.flows[0];
            let delivered_permille = flow.arrived.len() as u64 * 1_000 / flow.offered;
            // Chance alone varies by three in a thousand at 10%.
            assert!(
                delivered_permille >= 985 - 10 * loss_percent,
                "{delivered_permille} in 1,000: {context}"
            );
            let p90 = percentile(flow.arrived.iter().map(|(_, age)| *age).collect(), 90);
            assert!(p90 <= path.delay + Duration::from_millis(10), "90% within {p90:?}: {context}");
        }
    }
}

#[test]
fn a_bottleneck_is_used_and_its_queue_does_not_stand() {
    for round_trip_ms in ROUND_TRIPS_MS {
        for (ack_packets, ack_delay_ms) in [(2, 25), (10, 20), (30, 25)] {
            let context = format!("{round_trip_ms} ms, acks of {ack_packets} within {ack_delay_ms} ms");
            let ack_delay = Duration::from_millis(ack_delay_ms);
            let path = Path { rate_bps: 2_000_000, ack_packets, ack_delay, ..path(round_trip_ms) };
            let mut net = Bottleneck::new(path, 1, &[game(6_000_000)]);
            net.run_until(seconds(25));
            let rate_bps = net.flows[0].rate_bps(seconds(5), seconds(25));
            assert!(rate_bps >= 1_700_000, "{rate_bps} of 2,000,000: {context}");
            let standing = percentile(standing(&net.waits[5_000..]), 95);
            assert!(standing <= Duration::from_millis(50), "{standing:?} stand: {context}");
        }
    }
}

#[test]
fn two_games_share_a_bottleneck_whoever_came_first() {
    for round_trip_ms in ROUND_TRIPS_MS {
        for later_ms in [17, 1_013, 10_009] {
            let path = Path { rate_bps: 4_000_000, ..path(round_trip_ms) };
            let late = Game { starts: Instant::from_millis(later_ms), ..game(4_000_000) };
            let mut net = Bottleneck::new(path, 1, &[game(4_000_000), late]);
            net.run_until(seconds(40));
            let rates: Vec<u64> =
                net.flows.iter().map(|flow| flow.rate_bps(seconds(20), seconds(40))).collect();
            let (sum, squares) =
                (rates.iter().sum::<u64>(), rates.iter().map(|rate| rate * rate).sum::<u64>());
            // Jain's index is 1 if all have the same.
            let jain_percent = sum * sum * 100 / (2 * squares);
            assert!(jain_percent >= 80, "{rates:?}: {round_trip_ms} ms, {later_ms} ms later");
            assert!(sum >= 3_400_000, "{rates:?}: {round_trip_ms} ms, {later_ms} ms later");
        }
    }
}

#[test]
fn a_queue_too_short_to_be_seen_is_found_by_what_it_drops() {
    for loss_percent in [0, 2] {
        // A queue of 30 ms would be yielded to. This one is full at 10.
        let path = Path { rate_bps: 8_000_000, queue_bytes_max: 10_000, loss_percent, ..path(50) };
        let mut net = Bottleneck::new(path, 1, &[game(20_000_000)]);
        net.run_until(seconds(20));
        let since = net.flows[0].sent.iter().filter(|at| **at >= seconds(5)).count() as u64;
        let sent_bps = since * PACKET_BYTES * 8 / 15;
        let arrived_bps = net.flows[0].rate_bps(seconds(5), seconds(20));
        assert!(
            arrived_bps * 100 >= sent_bps * (100 - 2 * loss::HEAVY_PERCENT),
            "{arrived_bps} of {sent_bps}"
        );
        assert!(arrived_bps >= 4_000_000, "{arrived_bps} of 8,000,000");
    }
}

#[test]
fn an_outage_leaves_a_packet_per_tick_and_is_over_when_it_is() {
    let (from, until) = (seconds(10), seconds(14));
    let mut net = Bottleneck::new(Path { outage: Some((from, until)), ..path(50) }, 1, &[game(3_000_000)]);
    net.run_until(seconds(17));
    let flow = &net.flows[0];
    let gaps = flow.sent.windows(2).map(|pair| pair[1].saturating_since(pair[0]));
    let longest = gaps.max().unwrap();
    assert!(longest <= 3 * FLOOR_INTERVAL, "nothing went for {longest:?}");
    let in_it = flow.sent.iter().filter(|at| (seconds(11)..until).contains(at)).count();
    assert!(in_it <= 100, "{in_it} packets in 3 s: a path that answers nothing gets the floor alone");
    let half_a_second_later = Instant::from_millis(until.as_millis() + 500);
    let rate_bps = flow.rate_bps(half_a_second_later, seconds(17));
    assert!(rate_bps >= 2_900_000, "{rate_bps} of 3,000,000");
}

#[test]
fn a_longer_route_is_no_queue_for_long() {
    let mut net = Bottleneck::new(path(50), 1, &[game(3_000_000)]);
    net.run_until(seconds(10));
    net.path.delay = Duration::from_millis(75);
    net.run_until(seconds(20));
    let rate_bps = net.flows[0].rate_bps(seconds(13), seconds(20));
    assert!(rate_bps >= 2_900_000, "{rate_bps} of 3,000,000");
}

#[test]
fn a_mark_shrinks_once_a_round_and_never_below_the_least() {
    let mut control = RateControl::new(Instant::ZERO, PACKET_BYTES);
    let before = control.window_bytes(Instant::ZERO);
    control.handle_marked(Instant::ZERO);
    let after = control.window_bytes(Instant::ZERO);
    assert!(after < before && after > before / 2);
    control.handle_marked(Instant::ZERO);
    assert_eq!(control.window_bytes(Instant::ZERO), after);
    let mut now = Instant::ZERO;
    for _ in 0..50 {
        // Two answered rounds: one that still hears of the larger window, one that may shrink.
        for _ in 0..2 {
            let sent = now;
            control.handle_sent(sent, 100);
            now += ROUND_MIN;
            control.handle_ack(now, sent, 100);
            control.handle_acks_end(now, 0);
        }
        control.handle_marked(now);
    }
    let least = control.window_bytes(now);
    assert_eq!(least, WINDOW_PACKETS_MIN * PACKET_BYTES);
    control.set_packet_bytes(PACKET_BYTES + 200);
    assert_eq!(control.window_bytes(now), WINDOW_PACKETS_MIN * (PACKET_BYTES + 200));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut net = Bottleneck::new(path(50), 1, &[game(300_000)]);
    net.run_until(seconds(10));
    let window = net.flows[0].control.window_bytes(net.now);
    assert_eq!(window, net.flows[0].control.initial_window_bytes());
}
