use super::*;
use crate::inputs::{Arrival, InputBuffer, OwnInputs, Report, Runs};
use crate::value::Value;
use parlor_impair::Rng;
use proptest::prelude::*;

const RATE: TickRate = TickRate::DEFAULT;
const INTERVAL: Duration = Duration::from_nanos(33_333_333);

/// A member and an authority with the same clock, and a one-way delay between them.
struct Play {
    rng: Rng,
    way_ms: u64,
    jitter_ms: u64,
    loss_per_mille: u64,
    lead: Lead,
    own: OwnInputs,
    buffer: InputBuffer,
    runs: Runs,
    /// The newest step of each.
    member: Tick,
    authority: Tick,
    up: Vec<(u64, bytes::Bytes)>,
    down: Vec<(u64, Report)>,
}

/// Takes the messages that have arrived.
fn due<T>(under_way: &mut Vec<(u64, T)>, ms: u64) -> Vec<T> {
    let (due, later) = std::mem::take(under_way).into_iter().partition(|(at, _)| *at <= ms);
    *under_way = later;
    Vec::into_iter(due).map(|(_, it)| it).collect()
}

impl Play {
    fn new(seed: u64, way_ms: u64, jitter_ms: u64, loss_per_mille: u64) -> Self {
        let begin = Instant::from_millis(10_000);
        let lead = Lead::new(RATE, begin, Duration::from_millis(2 * way_ms));
        Play {
            rng: Rng::new(seed),
            way_ms,
            jitter_ms,
            loss_per_mille,
            member: RATE.tick_at(lead.time(begin)),
            authority: RATE.tick_at(begin),
            lead,
            own: OwnInputs::new(),
            buffer: InputBuffer::new(RATE),
            runs: Runs::default(),
            up: Vec::new(),
            down: Vec::new(),
        }
    }

    fn arrives(&mut self, ms: u64) -> Option<u64> {
        let is_lost = self.rng.below(1_000) < self.loss_per_mille;
        (!is_lost).then(|| ms + self.way_ms + self.rng.below(self.jitter_ms + 1))
    }

    /// Advances by `ms` milliseconds.
    fn pass(&mut self, ms: u64) {
        let now = Instant::from_millis(ms);
        for report in due(&mut self.down, ms) {
            self.own.acknowledge(report.tick);
            if self.lead.report(report.tick, report.margin_ms) {
                self.member = RATE.tick_at(self.lead.time(now));
            }
        }
        self.lead.advance(now);
        while RATE.tick_at(self.lead.time(now)).is_newer_than(self.member) {
            self.member = self.member.next();
            self.lead.ran(self.member);
            let encoded = Value::from(i64::from(self.member.0)).encode(99).unwrap();
            self.own.record(self.member, None, encoded);
            let message = self.own.message(31).unwrap();
            if let Some(at) = self.arrives(ms) {
                self.up.push((at, message));
            }
        }
        for message in due(&mut self.up, ms) {
            self.buffer.take(message, Arrival { at: now, tick: RATE.tick_at(now) }, &self.runs).unwrap();
        }
        if RATE.tick_at(now).is_newer_than(self.authority) {
            self.authority = self.authority.next();
            self.buffer.ran(self.authority, now);
            self.runs.ran(self.authority, now);
            if let Some(used) = self.buffer.at(self.authority).map(|input| input.tick) {
                let report = self.buffer.report(used, now);
                if let Some(at) = self.arrives(ms) {
                    self.down.push((at, report));
                }
            }
        }
    }
}

#[test]
fn inputs_are_in_time_and_not_much_too_early() {
    // Delay, jitter, loss; the longest lead needed after a while, and late inputs in the second half of a
    // minute.
    for (way_ms, jitter_ms, loss, longest_ms, late_max) in
        [(0, 0, 0, 55, 0), (20, 0, 0, 55, 0), (40, 10, 0, 85, 0), (75, 40, 0, 155, 0), (40, 20, 50, 195, 3)]
    {
        for seed in 0..4 {
            let mut play = Play::new(seed, way_ms, jitter_ms, loss);
            let mut late = 0;
            for ms in 10_000..70_000 {
                play.pass(ms);
                if ms == 40_000 {
                    late = play.buffer.counters().missing;
                }
            }
            let what = format!("{way_ms} ms, jitter {jitter_ms} ms, {loss} of 1,000 lost, seed {seed}");
            let late = play.buffer.counters().missing - late;
            assert!(late <= late_max, "{late} late with {what}");
            let lead_ms = play.lead.lead().as_millis();
            assert!((33..=longest_ms).contains(&lead_ms), "{lead_ms} ms of lead with {what}");
        }
    }
}

#[test]
fn a_guess_that_is_too_short_is_mended_by_the_first_report() {
    let mut play = Play::new(1, 100, 0, 0);
    play.lead = Lead::new(RATE, Instant::from_millis(10_000), Duration::ZERO);
    play.member = RATE.tick_at(play.lead.time(Instant::from_millis(10_000)));
    (10_000..10_300).for_each(|ms| play.pass(ms));
    assert_eq!(play.lead.jumps(), 1);
    let before = play.buffer.counters().missing;
    (10_300..15_000).for_each(|ms| play.pass(ms));
    // Inputs sent before it are late, and none after it.
    assert!(play.buffer.counters().missing - before <= 3);
    assert_eq!(play.lead.jumps(), 1);
}

#[test]
fn a_way_that_becomes_longer_is_followed_without_a_jump() {
    let mut play = Play::new(1, 20, 5, 0);
    (10_000..25_000).for_each(|ms| play.pass(ms));
    let (before_ms, jumps) = (play.lead.lead().as_millis(), play.lead.jumps());
    play.way_ms = 120;
    (25_000..28_000).for_each(|ms| play.pass(ms));
    let missing = play.buffer.counters().missing;
    (28_000..40_000).for_each(|ms| play.pass(ms));
    assert_eq!(play.buffer.counters().missing, missing, "within three seconds it is made up for");
    let longer_ms = play.lead.lead().as_millis() - before_ms;
    assert!((90..=130).contains(&longer_ms), "{longer_ms} ms");
    assert_eq!(play.lead.jumps(), jumps);
    // The delay goes back; the lead follows slowly.
    play.way_ms = 20;
    (40_000..70_000).for_each(|ms| play.pass(ms));
    assert_eq!(play.buffer.counters().missing, missing);
    let back_ms = play.lead.lead().as_millis();
    assert!(back_ms < before_ms + 20, "{back_ms} ms where {before_ms} ms were enough");
}

#[test]
fn a_stall_is_a_break_and_nothing_else_is() {
    let mut lead = Lead::new(RATE, Instant::from_millis(1_000), Duration::from_millis(50));
    (25..=45).for_each(|tick| lead.ran(Tick(tick)));
    lead.report(Tick(30), 5);
    let jumps = lead.jumps();
    for ms in [1_016, 1_266, 1_500] {
        lead.advance(Instant::from_millis(ms));
    }
    assert_eq!(lead.jumps(), jumps);
    lead.report(Tick(45), -60);
    lead.advance(Instant::from_millis(9_000));
    assert_eq!(lead.jumps(), jumps + 1);
    let needed = lead.target_us;
    assert_eq!(lead.lead_us, needed, "it goes on with what is needed");
}

proptest! {
    #[test]
    fn threat_22_whatever_is_reported_and_whatever_the_clock_does_the_lead_is_bounded(
        acts in proptest::collection::vec((0u64..400, 0u32..64, any::<i16>(), 0u8..4), 1..300), hz in 1u16..=240,
    ) {
        let rate = TickRate::new(hz).unwrap();
        let mut now = Instant::from_millis(50_000);
        let mut lead = Lead::new(rate, now, Duration::from_millis(100));
        for (ms, tick, margin_ms, what) in acts {
            let (before, jumps) = (lead.time(now), lead.jumps());
            let passed = Duration::from_millis(ms);
            now += passed;
            match what {
                0 => drop(lead.report(Tick(tick), margin_ms)),
                1 => lead.ran(Tick(tick)),
                // The room's clock is wrong by a day for a moment.
                2 => drop(lead.advance(now + Duration::from_secs(86_400))),
                _ => {}
            }
            lead.advance(now);
            let led = lead.lead();
            // Rounding of a microsecond.
            prop_assert!(led + Duration::from_micros(1) >= rate.interval(), "{:?} of lead", led);
            prop_assert!(led <= LEAD_MAX.max(rate.interval()) || lead.jumps() > jumps, "{:?} of lead", led);
            prop_assert!((0.95..=1.05).contains(&lead.dilation()));
            if lead.jumps() == jumps {
                let on = lead.time(now).saturating_since(before);
                prop_assert!(lead.time(now) >= before, "it ran backwards");
                prop_assert!(on <= passed * 106 / 100 && on + Duration::from_micros(1) >= passed * 94 / 100);
            }
        }
    }
}

#[test]
fn it_is_at_least_a_step_however_early_inputs_are() {
    let mut lead = Lead::new(RATE, Instant::ZERO, Duration::from_millis(700));
    for ms in (0..60_000).step_by(16) {
        lead.advance(Instant::from_millis(ms));
        lead.ran(RATE.tick_at(Instant::from_millis(ms)));
        lead.report(RATE.tick_at(Instant::from_millis(ms)), 500);
    }
    let over = lead.lead().saturating_sub(INTERVAL);
    assert!(
        over < Duration::from_millis(1) && lead.lead() >= RATE.interval() - Duration::from_micros(1),
        "{over:?}"
    );
}

#[test]
fn steps_that_were_not_run_with_this_lead_are_not_its_fault() {
    let mut lead = Lead::new(RATE, Instant::from_millis(1_000), Duration::from_millis(100));
    let guess = lead.lead();
    assert!(!lead.report(Tick(30), -105));
    (40..=60).for_each(|tick| lead.ran(Tick(tick)));
    assert!(!lead.report(Tick(39), -105));
    assert_eq!((lead.lead(), lead.target_us, lead.is_settled), (guess, micros(guess), false));
}

#[test]
fn a_late_input_is_charged_to_the_lead_of_its_own_step() {
    let mut lead = Lead::new(RATE, Instant::from_millis(10_000), Duration::ZERO);
    (300..=305).for_each(|tick| lead.ran(Tick(tick)));
    assert!(lead.report(Tick(303), -120));
    let mended_us = lead.lead_us;
    (310..=328).for_each(|tick| lead.ran(Tick(tick)));
    // The last input with the initial guess was four steps late, so it is in the half second of a report
    // nineteen steps later.
    lead.report(Tick(323), -120);
    assert_eq!(lead.target_us, mended_us);
}
