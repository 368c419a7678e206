//! Streams: nothing is lost or reordered, and a loss delays what comes behind it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use core::time::Duration;
use parlor_impair::{Direction, Impairment, RETRANSMISSION, Stalls};
use proptest::prelude::*;

const WRITES: u64 = 100_000;

fn stalls(text: &str) -> Stalls {
    Stalls::new(&text.parse().unwrap(), 0, Direction::There)
}

#[test]
fn a_loss_holds_up_what_is_behind_it() {
    let mut stalls = stalls("latency=50ms,loss=1%,seed=4");
    // So far apart that no write waits for the one before it.
    let late = (0..WRITES).filter(|second| {
        let now = Duration::from_secs(*second * 10);
        let delay = stalls.offer(now, 100) - now - Duration::from_millis(50);
        let again = Duration::from_millis(100) + RETRANSMISSION;
        assert!(delay.as_nanos().is_multiple_of(again.as_nanos()), "{delay:?}");
        !delay.is_zero()
    });
    let late = late.count();
    assert!(late.abs_diff(1_000) <= 160, "{late} of {WRITES} were lost");
    assert!(stalls.counts().lost >= late as u64);
}

#[test]
fn much_at_once_is_lost_as_the_segments_it_is_made_of() {
    let share = |bytes| {
        let mut stalls = stalls("latency=1ms,loss=1%,seed=4");
        let is_late = |second: &u64| {
            let now = Duration::from_secs(*second);
            stalls.offer(now, bytes) > now + Duration::from_millis(1)
        };
        (0..10_000).filter(is_late).count()
    };
    let (one, ten) = (share(1_400), share(14_000));
    assert!(ten > one * 7 && ten < one * 13, "{one} against {ten}");
}

#[test]
fn an_outage_ends_before_anything_arrives() {
    let mut stalls = stalls("outage=1s/3s");
    let ms = Duration::from_millis;
    assert_eq!(stalls.offer(ms(1_999), 10), ms(1_999));
    assert_eq!(stalls.offer(ms(2_000), 10), ms(3_000) + RETRANSMISSION);
    assert_eq!(stalls.offer(ms(2_999), 10), ms(3_000) + RETRANSMISSION);
    assert_eq!(stalls.offer(ms(3_001), 10), ms(3_000) + RETRANSMISSION);
    assert_eq!(stalls.offer(ms(3_100), 10), ms(3_100));
    assert_eq!(stalls.counts().in_outage, 2);
}

#[test]
fn the_rate_holds_and_nothing_overflows() {
    let mut stalls = stalls("rate=8mbit,queue=1500B");
    let last = (0..100).map(|_| stalls.offer(Duration::ZERO, 10_000)).last().unwrap();
    assert_eq!(last, Duration::from_secs(1));
    assert_eq!(stalls.counts().overflowed, 0);
}

#[test]
fn everything_arrives_even_if_everything_is_lost() {
    let mut stalls = stalls("latency=100ms,loss=100%");
    assert_eq!(stalls.offer(Duration::ZERO, 1), Duration::from_millis(100 + 8 * 230));
}

proptest! {
    #[test]
    fn order_is_kept_and_the_same_seed_gives_the_same_answer(
        seed: u64,
        calls in proptest::collection::vec((0u64..50_000, 0usize..20_000), 1..200),
    ) {
        let text = "latency=5ms,jitter=40ms,loss=10%,reorder=20%,rate=5mbit,outage=300ms/2s";
        let impairment = text.parse::<Impairment>().unwrap().seed(seed);
        let new = || Stalls::new(&impairment, 1, Direction::Back);
        let (mut one, mut other) = (new(), new());
        let (mut now, mut last) = (Duration::ZERO, Duration::ZERO);
        for (later_us, bytes) in calls {
            now += Duration::from_micros(later_us);
            let arrives = one.offer(now, bytes);
            prop_assert_eq!(arrives, other.offer(now, bytes));
            prop_assert!(arrives >= last && arrives >= now + Duration::from_millis(5));
            last = arrives;
        }
        prop_assert_eq!(one.counts(), other.counts());
    }
}
