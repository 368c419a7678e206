#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to what is wanted")]

use super::*;
use proptest::prelude::*;

/// A coding step.
#[derive(Clone, Debug)]
enum Step {
    Decision { model: usize, bit: bool },
    Plain { count: u32, value: u32 },
    Number(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4usize, any::<bool>()).prop_map(|(model, bit)| Step::Decision { model, bit }),
        // Highly probable ones, so that models reach their limits.
        8 => (4..6usize).prop_map(|model| Step::Decision { model, bit: model == 4 }),
        2 => (0..=32u32, any::<u32>())
            .prop_map(|(count, value)| Step::Plain { count, value: value & ((1u64 << count) - 1) as u32 }),
        1 => (0..32u32, any::<u32>()).prop_map(|(shift, value)| Step::Number((value >> shift).min(u32::MAX - 1))),
    ]
}

struct Models([Bit; 6], [Bit; NUMBER_MODELS]);

impl Models {
    fn new() -> Self {
        Models([Bit::EVEN; 6], [Bit::EVEN; NUMBER_MODELS])
    }

    fn code(&mut self, code: &mut impl Code, step: &Step) -> Step {
        match *step {
            Step::Decision { model, bit } => Step::Decision { model, bit: code.bit(&mut self.0[model], bit) },
            Step::Plain { count, value } => Step::Plain { count, value: code.plain(count, value) },
            Step::Number(value) => Step::Number(number(code, &mut self.1, value)),
        }
    }
}

fn encode(steps: &[Step]) -> Vec<u8> {
    let (mut encoder, mut models, mut out) = (Encoder::new(), Models::new(), Vec::new());
    steps.iter().for_each(|step| _ = models.code(&mut encoder, step));
    let bound = encoder.bytes();
    encoder.finish(&mut out);
    assert!(out.len() <= bound, "{} bytes came of a bound of {bound}", out.len());
    out
}

/// Decodes the same steps from these bytes, if they are a valid body.
fn decode(bytes: &[u8], steps: &[Step]) -> Result<Vec<Step>, BodyError> {
    let (mut decoder, mut models) = (Decoder::new(bytes), Models::new());
    let read = steps.iter().map(|step| models.code(&mut decoder, &blank(step))).collect();
    decoder.finish().map(|()| read)
}

/// The step without the values that a decoder must return.
fn blank(step: &Step) -> Step {
    match *step {
        Step::Decision { model, .. } => Step::Decision { model, bit: false },
        Step::Plain { count, .. } => Step::Plain { count, value: 0 },
        Step::Number(_) => Step::Number(0),
    }
}

fn same(a: &[Step], b: &[Step]) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

proptest! {
    #[test]
    fn what_is_written_is_read(steps in proptest::collection::vec(step(), 0..600)) {
        let bytes = encode(&steps);
        prop_assert!(same(&decode(&bytes, &steps).unwrap(), &steps));
    }

    /// If bytes decode with the same steps, the encoder produces the same bytes from the result.
    #[test]
    fn there_is_one_form_only(
        steps in proptest::collection::vec(step(), 0..60),
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
        change in any::<(proptest::sample::Index, u8)>(),
        tail in proptest::collection::vec(prop_oneof![Just(0), any::<u8>()], 1..6),
    ) {
        let good = encode(&steps);
        let mut changed = good.clone();
        if !changed.is_empty() {
            let at = change.0.index(changed.len());
            changed[at] ^= change.1;
        }
        let longer = [&good[..], &tail].concat();
        if let Ok(read) = decode(&longer, &steps) {
            prop_assert!(!same(&read, &steps), "something behind a body makes it another one, or none");
        }
        for cut in 0..good.len() {
            if let Ok(read) = decode(&good[..cut], &steps) {
                prop_assert!(!same(&read, &steps), "a body that is cut off is not that body");
            }
        }
        for bytes in [bytes, changed, longer] {
            if let Ok(read) = decode(&bytes, &steps) {
                prop_assert_eq!(encode(&read), bytes);
            }
        }
    }

    #[test]
    fn undo_takes_back_what_came_since(
        kept in proptest::collection::vec(step(), 0..200),
        undone in proptest::collection::vec(step(), 0..200),
    ) {
        let (mut encoder, mut models, mut out) = (Encoder::new(), Models::new(), Vec::new());
        kept.iter().for_each(|step| _ = models.code(&mut encoder, step));
        let mark = encoder.mark();
        undone.iter().for_each(|step| _ = models.code(&mut encoder, step));
        encoder.undo(mark);
        encoder.finish(&mut out);
        prop_assert_eq!(out, encode(&kept));
    }
}

#[test]
fn what_is_sure_costs_next_to_nothing() {
    let sure = vec![Step::Decision { model: 0, bit: true }; 10_000];
    assert!(encode(&sure).len() <= 5, "{} bytes", encode(&sure).len());
}

#[test]
fn carries_pass_through_full_bytes() {
    // The upper part of the interval again and again, then its very top: bytes of 255, and a carry into them.
    let mut steps = vec![Step::Plain { count: 16, value: 0xffff }; 40];
    for bits in 0..200 {
        steps.push(Step::Decision { model: 1, bit: bits % 3 == 0 });
        let bytes = encode(&steps);
        assert!(same(&decode(&bytes, &steps).unwrap(), &steps));
    }
}

#[test]
fn an_encoder_that_begins_again_is_like_a_new_one() {
    let (mut encoder, mut model) = (Encoder::new(), Bit::EVEN);
    for round in 0..2 {
        let mut out = Vec::new();
        model = if round == 0 { model } else { Bit::EVEN };
        for i in 0..100 {
            encoder.bit(&mut model, i % 7 == 0);
        }
        encoder.finish(&mut out);
        assert_eq!(
            out,
            encode(&(0..100).map(|i| Step::Decision { model: 0, bit: i % 7 == 0 }).collect::<Vec<_>>())
        );
        encoder.restart();
    }
}
