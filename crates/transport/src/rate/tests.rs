//! The effect of the rate control on games that share a path.

mod bottleneck;

use super::*;
use bottleneck::{Bottleneck, Game, HoldsBack, PACKET_BYTES, Path};
use parlor_impair::Rng;

const ROUND_TRIPS_MS: [u64; 3] = [10, 50, 100];

fn game(rate_bps: u64) -> Game {
    Game { rate_bps, tick_hz: 30, starts: Instant::ZERO, holds_back: HoldsBack::Replacing }
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

/// The standing queue: its minimum in each tenth of a second.
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
            // Random variation alone is three in a thousand at 10%.
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

/// Runs games that start one after another, the last of them `later`. Returns the rate of each in the second
/// 20 s, in bits per second, and the standing queue of that time at its 95th percentile.
fn shares(path: Path, seed: u64, count: u64, later: Duration, game: Game) -> (Vec<u64>, Duration) {
    let starts = |number: u64| {
        Instant::ZERO + later * u32::try_from(number).unwrap() / u32::try_from(count - 1).unwrap()
    };
    let games: Vec<Game> = (0..count).map(|number| Game { starts: starts(number), ..game }).collect();
    let mut net = Bottleneck::new(path, seed, &games);
    net.run_until(seconds(40));
    let rates = net.flows.iter().map(|flow| flow.rate_bps(seconds(20), seconds(40))).collect();
    (rates, percentile(standing(&net.waits[20_000..]), 95))
}

fn assert_shared(rates: &[u64], path_bps: u64, context: &str) {
    let (least, most) = (rates.iter().min().unwrap(), rates.iter().max().unwrap());
    assert!(*most <= 2 * *least, "{rates:?}: {context}");
    let sum = rates.iter().sum::<u64>();
    assert!(sum * 100 >= path_bps * 88, "{sum} of {path_bps}: {context}");
}

#[test]
fn two_games_share_a_bottleneck_whoever_came_first() {
    for holds_back in [HoldsBack::Replacing, HoldsBack::Rate] {
        for round_trip_ms in ROUND_TRIPS_MS {
            for later_ms in [17, 1_013, 10_009] {
                let context = format!("{holds_back:?}, {round_trip_ms} ms, {later_ms} ms later");
                let path = Path { rate_bps: 2_000_000, ..path(round_trip_ms) };
                let game = Game { holds_back, ..game(3_000_000) };
                let (rates, standing) = shares(path, 1, 2, Duration::from_millis(later_ms), game);
                assert_shared(&rates, path.rate_bps, &context);
                assert!(standing <= Duration::from_millis(65), "{standing:?} stand: {context}");
            }
        }
    }
}

#[test]
fn games_of_any_kind_share_a_bottleneck() {
    for seed in 0..12 {
        let mut random = Rng::new(seed);
        let count = 2 + random.below(3);
        let path = Path {
            rate_bps: count * (750_000 + random.below(500_000)),
            loss_percent: random.below(2),
            ..path(10 + random.below(90))
        };
        let later = Duration::from_millis(random.below(12_000));
        let tick_hz = [20, 30, 60][usize::try_from(random.below(3)).unwrap()];
        let holds_back = if random.below(2) == 0 { HoldsBack::Replacing } else { HoldsBack::Rate };
        let game = Game { tick_hz, holds_back, ..game(3_000_000) };
        let (rates, _) = shares(path, seed, count, later, game);
        assert_shared(
            &rates,
            path.rate_bps,
            &format!("seed {seed}: {count} of {game:?} on {path:?}, {later:?}"),
        );
    }
}

/// The first fills the queue for the second, and so on: a latecomer must not take the queue for distance.
#[test]
fn who_comes_into_a_full_queue_finds_out_what_is_beneath_it() {
    let path = Path { rate_bps: 4_000_000, ..path(100) };
    let (rates, standing) = shares(path, 1, 4, Duration::from_millis(1_013), game(4_000_000));
    assert_shared(&rates, path.rate_bps, "four within a second");
    assert!(standing <= Duration::from_millis(50), "{standing:?} stand");
}

#[test]
fn a_game_that_makes_what_it_is_told_is_staler_and_not_later() {
    for round_trip_ms in ROUND_TRIPS_MS {
        let flow = |holds_back| {
            let path = Path { rate_bps: 2_000_000, ..path(round_trip_ms) };
            let mut net = Bottleneck::new(path, 1, &[Game { holds_back, ..game(3_000_000) }]);
            net.run_until(seconds(25));
            let flow = net.flows.remove(0);
            let settled = flow.arrived.iter().filter(|(at, _)| *at >= seconds(5));
            let late = percentile(settled.map(|(_, age)| age.saturating_sub(path.delay)).collect(), 50);
            (late, flow.rate_bps(seconds(5), seconds(25)))
        };
        let ((told, rate_bps), (full, _)) = (flow(HoldsBack::Rate), flow(HoldsBack::FullBuffer));
        assert!(told + Duration::from_millis(15) <= full, "{told:?} beside {full:?}: {round_trip_ms} ms");
        assert!(rate_bps >= 1_650_000, "{rate_bps} of 2,000,000: {round_trip_ms} ms");
    }
}

#[test]
fn what_the_path_carries_is_not_known_before_a_round_trip() {
    let mut control = RateControl::new(Instant::ZERO, PACKET_BYTES);
    assert_eq!(control.bytes_per_second(), None);
    let sent = Instant::ZERO;
    let at = sent + Duration::from_millis(100);
    control.handle_sent(sent, PACKET_BYTES);
    control.handle_ack(at, sent, PACKET_BYTES);
    control.handle_acks_end(at, 0);
    let per_round_trip = control.window_bytes(sent, Duration::ZERO);
    assert_eq!(control.bytes_per_second(), Some(10 * per_round_trip));
}

#[test]
fn a_queue_too_short_to_be_seen_is_found_by_what_it_drops() {
    for loss_percent in [0, 2] {
        // It would yield to a queue of 30 ms. This one is full at 10.
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
    let before = control.window_bytes(Instant::ZERO, Duration::ZERO);
    control.handle_marked(Instant::ZERO);
    let after = control.window_bytes(Instant::ZERO, Duration::ZERO);
    assert!(after < before && after > before / 2);
    control.handle_marked(Instant::ZERO);
    assert_eq!(control.window_bytes(Instant::ZERO, Duration::ZERO), after);
    let mut now = Instant::ZERO;
    for _ in 0..50 {
        // Two answered rounds: one that still acknowledges the larger window, one that may shrink.
        for _ in 0..2 {
            let sent = now;
            control.handle_sent(sent, 100);
            now += ROUND_MIN;
            control.handle_ack(now, sent, 100);
            control.handle_acks_end(now, 0);
        }
        control.handle_marked(now);
    }
    let least = control.window_bytes(now, Duration::ZERO);
    assert_eq!(least, WINDOW_PACKETS_MIN * PACKET_BYTES);
    control.set_packet_bytes(PACKET_BYTES + 200);
    assert_eq!(control.window_bytes(now, Duration::ZERO), WINDOW_PACKETS_MIN * (PACKET_BYTES + 200));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut net = Bottleneck::new(path(50), 1, &[game(300_000)]);
    net.run_until(seconds(10));
    let window = net.flows[0].control.window_bytes(net.now, Duration::ZERO);
    assert_eq!(window, net.flows[0].control.initial_window_bytes());
}
