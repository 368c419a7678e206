use super::*;
use crate::limits::{INPUT_AHEAD_TICKS, INPUT_BEHIND_TICKS, INPUTS_KEPT_TICKS, INPUTS_SENT_MAX};
use crate::value::Value;
use parlor_proto::limits::{INPUT_BYTES_MAX, INPUT_MESSAGE_BYTES_MAX};
use proptest::prelude::*;

const RATE: TickRate = TickRate::DEFAULT;

fn encoded(number: i64) -> Bytes {
    Value::from(number).encode(INPUT_BYTES_MAX).unwrap()
}

fn text(bytes: usize) -> Bytes {
    let text = "x".repeat(bytes - 3);
    let encoded = Value::from(text.as_str()).encode(INPUT_BYTES_MAX).unwrap();
    assert_eq!(encoded.len(), bytes);
    encoded
}

/// A message that arrives during the step `due`.
fn arrival(due: u32) -> Arrival {
    Arrival { at: RATE.begins(Tick(due)), tick: Tick(due) }
}

/// A message with inputs for the steps from `newest` down.
fn message(newest: u32, numbers: &[i64]) -> Bytes {
    let mut own = OwnInputs::new();
    for (number, back) in numbers.iter().rev().zip((0..numbers.len()).rev()) {
        own.record(Tick(newest).offset(-i32::try_from(back).unwrap()), None, encoded(*number));
    }
    own.message(numbers.len() - 1).unwrap()
}

proptest! {
    #[test]
    fn what_was_lost_comes_with_the_next_message(
        steps in proptest::collection::vec((0i64..3, 1u32..4, any::<bool>()), 1..100), begin: u32,
    ) {
        let (mut own, mut buffer, runs) = (OwnInputs::new(), InputBuffer::new(RATE), Runs::default());
        let (mut tick, mut begun) = (Tick(begin), None);
        for (number, on, is_lost) in steps {
            tick = tick.offset(on.cast_signed());
            own.record(tick, None, encoded(number));
            let message = own.message(INPUTS_SENT_MAX - 1).unwrap();
            if is_lost {
                continue;
            }
            let first = message[4];
            prop_assert!(usize::from(first) <= INPUTS_SENT_MAX);
            prop_assert_eq!(buffer.take(message, Arrival { at: RATE.begins(tick), tick }, &runs), Ok(None));
            begun.get_or_insert(tick.offset(1 - i32::from(first)));
            // From the first step received on, as far as inputs are repeated.
            for back in 0..i32::try_from(INPUTS_SENT_MAX).unwrap() {
                let of = tick.offset(-back);
                if begun.is_some_and(|begun| !begun.is_newer_than(of)) {
                    let [held, wanted] = [buffer.at(of), own.at(of)].map(|input| input.map(|it| &it.encoded));
                    prop_assert_eq!(held, wanted, "{} of {}", of, tick);
                }
            }
        }
    }

    #[test]
    fn what_is_acknowledged_is_not_sent_again(count in 1u32..100, acknowledged in 0u32..100) {
        let mut own = OwnInputs::new();
        (1..=count).for_each(|tick| own.record(Tick(tick), None, encoded(i64::from(tick))));
        own.acknowledge(Tick(acknowledged));
        let message = own.message(INPUTS_SENT_MAX - 1).unwrap();
        // The newest one is always sent.
        let open = count.saturating_sub(acknowledged).clamp(1, 32);
        prop_assert_eq!(u32::from(message[4]), open);
    }

    #[test]
    fn the_moment_that_was_drawn_comes_back(tick in 1_000u32..1 << 30, behind_us in 0u64..2_000_000, hz in 1u16..=240) {
        let rate = TickRate::new(hz).unwrap();
        let drawn = rate.begins(Tick(tick)) - Duration::from_micros(behind_us);
        let moment = View::behind(Tick(tick), drawn, rate).moment(Tick(tick), rate);
        // Rounding, and values beyond the range.
        let part_us = 1_000_000 / (u64::from(hz) * u64::from(VIEW_PARTS));
        let most_us = u64::from(View::PARTS_MAX) * 1_000_000 / (u64::from(hz) * u64::from(VIEW_PARTS));
        let off_us = moment.as_micros().abs_diff(drawn.as_micros());
        prop_assert!(off_us <= part_us / 2 + 2 || behind_us > most_us, "{} µs", off_us);
    }

    #[test]
    fn threat_23_whatever_is_sent_is_bounded_and_none_of_it_lies_far_away(
        messages in proptest::collection::vec((any::<u32>(), -400i32..400, any::<bool>(), 1u8..40, any::<bool>()), 1..300),
        begin: u32,
    ) {
        let mut buffer = InputBuffer::new(TickRate::new(240).unwrap());
        let mut runs = Runs::default();
        let mut due = Tick(begin);
        for (anywhere, near, is_near, count, is_whole) in messages {
            due = due.next();
            let now = Instant::from_millis(u64::from(due.0.wrapping_sub(begin)) * 4);
            let tick = if is_near { due.offset(near) } else { Tick(anywhere) };
            let mut bytes = tick.0.to_le_bytes().to_vec();
            bytes.push(count);
            for _ in 0..count {
                bytes.extend([0xff, 0xff, 1, 5]);
            }
            if !is_whole {
                bytes.pop();
            }
            let is_readable = is_whole && usize::from(count) <= INPUTS_SENT_MAX;
            let before = buffer.counters();
            let taken = buffer.take(bytes.into(), Arrival { at: now, tick: due }, &runs);
            let after = buffer.counters();
            prop_assert_eq!(taken.is_ok(), is_readable);
            prop_assert_eq!(after.unreadable - before.unreadable, u64::from(!is_readable));
            let sum = |it: Counters| it.taken + it.repeated + it.ancient + it.far_ahead;
            prop_assert_eq!(sum(after) - sum(before), if is_readable { u64::from(count) } else { 0 });
            prop_assert!(buffer.len() <= (INPUTS_KEPT_TICKS + INPUT_AHEAD_TICKS + 2) as usize);
            // Inputs too far ahead are not stored.
            prop_assert!(buffer.at(due.offset(1_000)).is_none_or(|it| it.tick.since(due) <= 64));
            runs.ran(due, now);
            buffer.ran(due, now);
        }
    }

    #[test]
    fn threat_23_no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), due: u32) {
        let mut buffer = InputBuffer::new(RATE);
        let _ = buffer.take(bytes.into(), Arrival { at: Instant::ZERO, tick: Tick(due) }, &Runs::default());
        prop_assert!(buffer.len() <= INPUTS_SENT_MAX);
    }
}

#[test]
fn a_message_has_the_newest_input_and_at_most_so_many_bytes() {
    let mut own = OwnInputs::new();
    for (tick, bytes) in [(1, 400), (2, 300), (3, 500), (4, 512)] {
        own.record(Tick(tick), None, text(bytes));
    }
    let message = own.message(INPUTS_SENT_MAX - 1).unwrap();
    assert_eq!((message[4], message.len()), (1, 4 + 1 + 2 + 2 + 512), "two have no room");
    own.record(Tick(5), None, text(370));
    let message = own.message(INPUTS_SENT_MAX - 1).unwrap();
    assert_eq!(message[4], 2);
    assert!(message.len() <= INPUT_MESSAGE_BYTES_MAX);
    assert!(own.message(0).unwrap().len() < 400, "without the ones before it");
}

#[test]
fn an_input_that_stays_the_same_costs_three_bytes_to_repeat() {
    let mut own = OwnInputs::new();
    (1..=20).for_each(|tick| own.record(Tick(tick), None, text(100)));
    assert_eq!(own.message(INPUTS_SENT_MAX - 1).unwrap().len(), 4 + 1 + (2 + 2 + 100) + 19 * 3);
}

#[test]
fn what_is_recorded_is_bounded_and_the_last_word_of_a_step_counts() {
    let mut own = OwnInputs::new();
    assert_eq!((own.at(Tick(5)), own.message(3)), (None, None));
    (1..=300).for_each(|tick| own.record(Tick(tick), None, encoded(tick.into())));
    assert_eq!(own.at(Tick(172)), None, "it is forgotten");
    assert_eq!(own.at(Tick(173)).map(|input| input.tick), Some(Tick(173)));
    own.record(Tick(300), None, encoded(-1));
    own.record(Tick(299), None, encoded(-2));
    let read = |tick| own.at(Tick(tick)).map(|input| input.encoded.clone());
    assert_eq!(
        (read(299), read(300), read(9_999)),
        (Some(encoded(299)), Some(encoded(-1)), Some(encoded(-1)))
    );
}

#[test]
fn threat_21_one_input_for_each_step_however_many_come() {
    let (mut buffer, runs) = (InputBuffer::new(RATE), Runs::default());
    for number in 0..10 {
        buffer.take(message(100, &[number]), arrival(98), &runs).unwrap();
    }
    assert_eq!(buffer.at(Tick(100)).unwrap().encoded, encoded(0), "the first stands");
    assert_eq!((buffer.len(), buffer.counters().taken, buffer.counters().repeated), (1, 1, 9));
}

#[test]
fn threat_23_what_is_too_old_or_too_far_ahead_is_ignored_and_counted() {
    let (mut buffer, runs) = (InputBuffer::new(RATE), Runs::default());
    let (behind, ahead) = (1_000 - INPUT_BEHIND_TICKS, 1_000 + INPUT_AHEAD_TICKS);
    for tick in [behind, ahead, behind - 1, ahead + 1, 1, u32::MAX, 1 << 31, 3_000_000_000] {
        buffer.take(message(tick, &[7]), arrival(1_000), &runs).unwrap();
    }
    let counters = buffer.counters();
    assert_eq!(counters.taken, 2);
    assert_eq!(counters.ancient + counters.far_ahead, 6);
    assert!(counters.ancient >= 2 && counters.far_ahead >= 1, "{counters:?}");
}

#[test]
fn who_stops_sending_is_held_to_its_newest_input() {
    let (mut buffer, mut runs) = (InputBuffer::new(RATE), Runs::default());
    buffer.take(message(10, &[7]), arrival(8), &runs).unwrap();
    for tick in 9..5_000 {
        runs.ran(Tick(tick), RATE.begins(Tick(tick)));
        buffer.ran(Tick(tick), RATE.begins(Tick(tick)));
    }
    assert_eq!(buffer.at(Tick(5_000)).unwrap().encoded, encoded(7));
    assert_eq!(buffer.at(Tick(9)), None, "it is not for a step before it");
    assert_eq!(buffer.counters().missing, u64::from(INPUT_BEHIND_TICKS), "then it is not missed any more");
}

#[test]
fn late_and_missing_inputs_are_counted_and_the_oldest_late_one_is_told() {
    let (mut buffer, mut runs) = (InputBuffer::new(RATE), Runs::default());
    let mut run = |buffer: &mut InputBuffer, tick: u32| {
        runs.ran(Tick(tick), RATE.begins(Tick(tick)));
        buffer.ran(Tick(tick), RATE.begins(Tick(tick)));
        runs.clone()
    };
    buffer.take(message(10, &[1]), arrival(8), &Runs::default()).unwrap();
    let runs = [10, 11, 12, 13].map(|tick| run(&mut buffer, tick))[3].clone();
    assert_eq!((buffer.counters().missing, buffer.counters().late), (3, 0));
    assert_eq!(buffer.at(Tick(13)).unwrap().encoded, encoded(1), "the newest that came is used");
    // Those for 12 to 14 arrive while 13 is the newest step run.
    assert_eq!(buffer.take(message(14, &[14, 13, 12]), arrival(13), &runs), Ok(Some(Tick(12))));
    assert_eq!((buffer.counters().missing, buffer.counters().late), (3, 2));
    assert_eq!(buffer.take(message(14, &[14, 13, 12]), arrival(13), &runs), Ok(None), "it is known");
}

#[test]
fn the_margin_is_the_least_of_half_a_second_and_told_when_it_moves() {
    let (mut buffer, mut runs) = (InputBuffer::new(RATE), Runs::default());
    let mut tick = 100u32;
    // Inputs arrive this many ms before their step; negative is after it.
    let mut steps = |buffer: &mut InputBuffer, count: u32, early_ms: i64| {
        let mut told = None;
        for _ in 0..count {
            tick += 1;
            let begins_ms = i64::try_from(RATE.begins(Tick(tick)).as_millis()).unwrap();
            let at = Instant::from_millis(u64::try_from(begins_ms - early_ms).unwrap());
            let due = RATE.tick_at(at);
            let (arrival, input) = (Arrival { at, tick: due }, message(tick, &[tick.into()]));
            if early_ms >= 0 {
                buffer.take(input, arrival, &runs).unwrap();
            }
            runs.ran(Tick(tick), RATE.begins(Tick(tick)));
            buffer.ran(Tick(tick), RATE.begins(Tick(tick)));
            if early_ms < 0 {
                buffer.take(message(tick, &[tick.into()]), arrival, &runs).unwrap();
            }
            told = Some(buffer.report(Tick(tick), RATE.begins(Tick(tick)).max(at)));
        }
        told.unwrap()
    };
    assert_eq!(steps(&mut buffer, 5, 30).margin_ms, 30);
    assert_eq!(steps(&mut buffer, 1, 20).margin_ms, 20, "less is told at once");
    assert_eq!(steps(&mut buffer, 10, 60).margin_ms, 20, "it is the least of half a second");
    assert_eq!(steps(&mut buffer, 10, 60).margin_ms, 60, "and that is over");
    let late = steps(&mut buffer, 2, -12);
    assert_eq!((late.margin_ms, late.late), (-12, 1), "the second count comes with the next word");
    assert_eq!(steps(&mut buffer, 30, 700), Report { tick: Tick(158), margin_ms: 500, late: 2 });
}

#[test]
fn a_margin_that_trembles_is_told_four_times_a_second() {
    let mut buffer = InputBuffer::new(RATE);
    let (mut runs, mut changes, mut told) = (Runs::default(), 0, None);
    for tick in 100..400u32 {
        let begins = RATE.begins(Tick(tick));
        let at = begins - Duration::from_micros(20_000 + u64::from(tick % 17) * 100);
        buffer.take(message(tick, &[1]), Arrival { at, tick: RATE.tick_at(at) }, &runs).unwrap();
        runs.ran(Tick(tick), begins);
        buffer.ran(Tick(tick), begins);
        let report = buffer.report(Tick(1), begins);
        changes += u32::from(told.replace(report) != Some(report));
    }
    assert!((1..=41).contains(&changes), "{changes} in ten seconds");
}

#[test]
fn what_cannot_be_read_is_the_senders_fault_and_nothing_of_it_is_used() {
    let (mut buffer, runs) = (InputBuffer::new(RATE), Runs::default());
    let head = |count: u8| [&10u32.to_le_bytes()[..], &[count]].concat();
    let cases: [(Vec<u8>, &str); 6] = [
        (head(0), "0 inputs"),
        (head(33), "33 inputs"),
        ([head(1), vec![0, 0, 0]].concat(), "repeats another"),
        ([head(2), vec![0, 0, 1, 5, 0, 0, 1, 0xcd]].concat(), "cannot be read"),
        ([head(2), vec![0, 0, 1, 5]].concat(), "cannot be read"),
        ([head(1), vec![0, 0, 1, 5, 9]].concat(), "cannot be read"),
    ];
    for (number, (bytes, what)) in cases.into_iter().enumerate() {
        let error = buffer.take(bytes.into(), arrival(10), &runs).unwrap_err().to_string();
        assert!(error.contains(what), "{error:?} does not say {what:?}");
        assert_eq!((buffer.len(), buffer.counters().unreadable), (0, number as u64 + 1));
    }
}
