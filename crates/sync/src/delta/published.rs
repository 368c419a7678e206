//! Tests `testdata/priors.txt` and the table of models in PROTOCOL.md: another implementation gets
//! [`priors`](super::priors) and [`layout`](super::layout) from these alone.

use super::layout::{self, blob, head};
use super::priors::{PRIORS, SYMBOLS};
use crate::coder::{Bit, NUMBER_MODELS, SYMBOLS as SYMBOL_COUNT, Symbols};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const FAMILIES: [&str; 3] = ["motion", "rate", "turn"];

/// The decision models by their names in PROTOCOL.md, with the first index and the count of each.
fn decisions() -> Vec<(String, usize, usize)> {
    let models: Vec<(String, usize, usize)> = [
        ("head.next", head::NEXT, 2),
        ("head.same", head::SAME, 2),
        ("head.kind", head::KIND, 2),
        ("head.ages_same", head::AGES_SAME, 2),
        ("head.history", head::HISTORY, 3),
        ("head.mask", head::MASK, 1),
        ("head.meta", head::META, 1),
        ("head.meta_parts", head::META_PARTS, 3),
        ("head.changed_same", head::CHANGED_SAME, 1),
        ("head.in_mask", head::IN_MASK, 64),
        ("head.changed", head::CHANGED, 64),
        ("head.gap", head::GAP, NUMBER_MODELS),
        ("head.row_age", head::ROW_AGE, NUMBER_MODELS),
        ("head.age", head::AGE, NUMBER_MODELS),
        ("head.age_step", head::AGE_STEP, NUMBER_MODELS),
        ("flag", layout::FLAG, layout::FLAG_LEN),
        ("choice", layout::CHOICE, layout::CHOICE_LEN),
        ("numbers", layout::NUMBERS, layout::NUMBERS_LEN),
        ("rotation", layout::TURN, layout::TURN_LEN),
        ("blob.same", layout::BLOB + blob::SAME, 1),
        ("blob.same_byte", layout::BLOB + blob::SAME_BYTE, 8),
        ("blob.prefix", layout::BLOB + blob::PREFIX, NUMBER_MODELS),
        ("blob.suffix", layout::BLOB + blob::SUFFIX, NUMBER_MODELS),
        ("blob.middle", layout::BLOB + blob::MIDDLE, NUMBER_MODELS),
        ("blob.byte", layout::BLOB + blob::BYTE, 256),
    ]
    .map(|(name, first, count)| (name.to_owned(), first, count))
    .to_vec();
    models
}

/// The content of `testdata/priors.txt`.
fn published() -> String {
    let mut out = String::from(
        "# The models that every body begins with, a part of PROTOCOL.md. A line is one model:\n\
         #   name index p n, of a decision; those that are not here begin with 32768 0\n\
         #   name index n w1 w2 .. w15, of a choice of sixteen; w0 is 0\n",
    );
    for (name, first, count) in decisions() {
        for (index, model) in PRIORS[first..first + count].iter().enumerate() {
            if *model != Bit::EVEN {
                let _ = writeln!(out, "{name} {index} {} {}", model.probability(), model.count());
            }
        }
    }
    for (family, models) in FAMILIES.iter().zip(SYMBOLS.chunks(layout::FAMILY_SYMBOLS)) {
        for (index, model) in models.iter().enumerate() {
            let _ = writeln!(out, "{family}.size {index} {}{}", model.count(), weights(model));
        }
    }
    out
}

/// The weights from the second symbol on, each preceded by a blank.
fn weights(model: &Symbols) -> String {
    // A symbol's range besides its weight.
    let floor = (32_768 - u64::from(Symbols::TOTAL.unsigned_abs())) / SYMBOL_COUNT as u64;
    (1..SYMBOL_COUNT).map(|at| format!(" {}", model.span(at).0 - floor * at as u64)).collect()
}

#[test]
fn the_models_have_names_and_places_of_their_own() {
    let mut models = decisions();
    models.sort_by_key(|(_, first, _)| *first);
    let mut end = 0;
    for (name, first, count) in models {
        assert_eq!(first, end, "{name} begins where another one ends");
        end += count;
    }
    assert_eq!(end, layout::COUNT);
}

/// `PARLOR_GOLDEN=write` rewrites the file, which changes the protocol.
#[test]
fn the_published_priors_are_those_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/priors.txt");
    let text = published();
    if std::env::var_os("PARLOR_GOLDEN").is_some_and(|how| how == "write") {
        std::fs::write(path, &text).expect("testdata can be written");
    }
    let file = std::fs::read_to_string(path).expect("testdata/priors.txt is there");
    let differs = file.lines().zip(text.lines()).position(|(was, is)| was != is);
    assert_eq!(differs, None, "the first line that differs (from 0); PARLOR_GOLDEN=write writes it anew");
    assert_eq!(file.len(), text.len());
}

#[test]
fn the_documented_models_are_those_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../PROTOCOL.md");
    let document = std::fs::read_to_string(path).expect("PROTOCOL.md is there");
    let rows =
        document.lines().skip_while(|line| *line != "| models | how many | what they decide |").skip(2);
    let mut documented = BTreeMap::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let names: Vec<&str> = cells[0].split(", ").collect();
        let counts: Vec<usize> = match cells[1].strip_suffix(" each") {
            Some(count) => vec![count.parse().expect("a number"); names.len()],
            None => cells[1].split(", ").map(|count| count.parse().expect("a number")).collect(),
        };
        assert_eq!(names.len(), counts.len(), "{row}");
        documented.extend(names.into_iter().map(str::to_owned).zip(counts));
    }
    let sizes = FAMILIES.map(|family| (format!("{family}.size"), layout::FAMILY_SYMBOLS));
    let code = decisions().into_iter().map(|(name, _, count)| (name, count));
    assert_eq!(documented, code.chain(sizes).collect::<BTreeMap<_, _>>());
}
