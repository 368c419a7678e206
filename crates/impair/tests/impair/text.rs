//! Settings as text: written settings can be parsed, and errors say what to write.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use core::time::Duration;
use parlor_impair::{Impairment, ImpairmentError, Outage};
use proptest::prelude::*;

#[test]
fn a_list_sets_each_thing() {
    let text = "latency=100ms,jitter=30ms,loss=5%,duplicate=1%,reorder=0.25%,rate=1.5mbit,queue=64kB,\
                outage=500ms/10s,seed=7";
    let expected = Impairment::none()
        .latency(Duration::from_millis(100))
        .jitter(Duration::from_millis(30))
        .loss_ppm(50_000)
        .duplicate_ppm(10_000)
        .reorder_ppm(2_500)
        .rate_bits_per_s(1_500_000)
        .queue_bytes(64_000)
        .outage(Outage { length: Duration::from_millis(500), every: Duration::from_secs(10) })
        .seed(7);
    assert_eq!(text.parse(), Ok(expected));
    assert_eq!(" latency = 1.5s , LOSS=1%".parse::<Impairment>().unwrap_err().to_string(), {
        "an impairment has no \"LOSS\": there is latency, jitter, loss, duplicate, reorder, rate, queue, outage, seed"
    });
    assert_eq!("none".parse(), Ok(Impairment::none()));
    assert!(Impairment::none().seed(7).is_none() && !expected.is_none());
}

#[test]
fn what_is_wrong_is_answered_with_what_is_accepted() {
    for (text, words) in [
        ("", &["NAME=VALUE", "latency=100ms", "none"][..]),
        ("latency", &["NAME=VALUE"]),
        ("latency=100ms;loss=5%", &["latency", "100ms;loss=5%", "such as 100ms"]),
        ("latency=100", &["latency may not be 100:", "with its unit", "100ms"]),
        ("latency=-1ms", &["at most 10s"]),
        ("latency=11s", &["latency may not be 11s", "at most 10s"]),
        ("jitter=0.0001ms", &["jitter may not be 0.0001ms"]),
        ("loss=5", &["loss may not be 5:", "such as 5%"]),
        ("loss=100.0001%", &["100.0001%", "0% to 100%"]),
        ("loss=0.00001%", &["4 decimals"]),
        ("loss=.5%", &["such as 5%"]),
        ("rate=2", &["mbit"]),
        ("rate=0kbit", &["1kbit to 10gbit"]),
        ("rate=1mbit,queue=1B", &["queue may not be 1B", "1500B"]),
        ("queue=64kB", &["add rate"]),
        ("outage=1s", &["a slash", "500ms/10s"]),
        ("outage=1s/1s", &["the longer time"]),
        ("outage=0ms/1s", &["at least 1ms"]),
        ("seed=-1", &["whole number"]),
        ("seed=1,seed=2", &["seed is given twice"]),
        ("delay=1ms", &["no \"delay\"", "latency, jitter"]),
        ("latency=99999999999999999999s", &["at most 10s"]),
        ("latency=18446744073709551615s", &["at most 10s"]),
    ] {
        let error = text.parse::<Impairment>().unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{text:?}: {word:?} is not in: {error}");
        }
    }
}

#[test]
fn settings_by_method_are_checked_like_text() {
    let too_much = Impairment::none().loss_ppm(1_000_001);
    let error = too_much.check().unwrap_err();
    assert!(matches!(&error, ImpairmentError::Refused { name: "loss", .. }), "{error}");
    assert_eq!(Impairment::none().loss_ppm(1_000_000).check(), Ok(()));
}

fn impairment() -> impl Strategy<Value = Impairment> {
    let delay = (0u64..=10_000_000).prop_map(Duration::from_micros);
    let ppm = 0u32..=1_000_000;
    let narrow =
        proptest::option::of((1_000u64..=10_000_000_000, proptest::option::of(1_500u64..=64_000_000)));
    let outage = proptest::option::of((1_000u64..1_000_000, 1u64..1_000_000_000));
    (delay.clone(), delay, [ppm.clone(), ppm.clone(), ppm], narrow, outage, any::<u64>()).prop_map(
        |(latency, jitter, [loss, duplicate, reorder], narrow, outage, seed)| {
            let mut all = Impairment::none().latency(latency).jitter(jitter).seed(seed);
            all = all.loss_ppm(loss).duplicate_ppm(duplicate).reorder_ppm(reorder);
            if let Some((rate, queue)) = narrow {
                all = all.rate_bits_per_s(rate);
                all = queue.map_or(all, |bytes| all.queue_bytes(bytes));
            }
            outage.map_or(all, |(length, more)| {
                let (length, every) = (Duration::from_micros(length), Duration::from_micros(length + more));
                all.outage(Outage { length, every })
            })
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_reads_back(impairment in impairment()) {
        prop_assert_eq!(impairment.to_string().parse(), Ok(impairment), "{}", impairment);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z=,./%0-9 ]{0,40}") {
        if let Ok(read) = text.parse::<Impairment>() {
            prop_assert_eq!(read.check(), Ok(()));
        }
    }
}
