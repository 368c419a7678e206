//! Forbidden code: `unsafe`, unfinished parts and disabled tests. In tests also waits for the wall clock,
//! which are slow on a fast machine and wrong on a slow one, and in the core of pages texts with `Debug`.

use super::house::{House, Violation};
use super::lexer::Kind;
use super::source::Source;

/// Files that may use `unsafe`, each with a soundness proof beside the code.
const UNSAFE_ALLOWED: &[&str] = &[
    "crates/capi/src/boundary.rs",
    "crates/capi/src/exports/library.rs",
    "crates/capi/src/exports/messages.rs",
    "crates/capi/src/exports/opening.rs",
    "crates/capi/src/exports/play.rs",
    "crates/capi/src/exports/reading.rs",
    "crates/capi/src/exports/state.rs",
    "crates/capi/src/exports/worlds.rs",
    "tests/faultdisk/src/vfs.rs",
];

/// Files that may have the attribute `unsafe(no_mangle)`, and nothing else that is unsafe: what a page calls.
const EXPORTS_ALLOWED: &[&str] = &["crates/wasm/src/exports/mod.rs"];

/// The simulator is a test tool as a whole: it runs on virtual time.
const TEST_CRATES: [&str; 1] = ["tests/sim/"];

/// Crates of the core of pages, which is compiled without the code of `Debug`.
const CORE: [&str; 4] =
    ["crates/proto/src/", "crates/sync/src/", "crates/client-core/src/", "crates/wasm/src/"];

/// Macros whose texts no page sees: a panic is a trap there.
const PANICS: [&str; 10] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "prop_assert",
    "prop_assert_eq",
    "unreachable",
];

const SLEEPS: [&[&str]; 5] = [
    &["std", "thread", "sleep"],
    &["std", "thread", "sleep_until"],
    &["tokio", "time", "sleep"],
    &["tokio", "time", "sleep_until"],
    &["tokio", "time", "Sleep"],
];

/// Checks all code of the house.
pub(super) fn check(house: &House) -> Vec<Violation> {
    house.sources.iter().flat_map(source_violations).collect()
}

fn source_violations(source: &Source) -> Vec<Violation> {
    let words = (0..source.tokens.len()).filter_map(|index| {
        let (rule, message) = banned_word(source, index)?;
        Some(Violation::new(source.place(source.tokens[index].line), rule, message))
    });
    words.chain(sleeps(source)).chain(debug_texts(source)).collect()
}

/// Whether this is the attribute of an exported function, where there may be some.
fn is_export(source: &Source, index: usize) -> bool {
    let is_attribute = source.text(index + 1) == "(" && source.text(index + 2) == "no_mangle";
    is_attribute && EXPORTS_ALLOWED.contains(&source.path.as_str())
}

fn banned_word(source: &Source, index: usize) -> Option<(&'static str, String)> {
    let token = &source.tokens[index];
    if token.kind != Kind::Word {
        return None;
    }
    let is_macro = source.text(index + 1) == "!" && source.text(index + 2) != "=";
    match token.text.as_str() {
        "unsafe" if is_export(source, index) => None,
        "unsafe" if !UNSAFE_ALLOWED.contains(&source.path.as_str()) => {
            let message =
                "`unsafe` needs a proof beside it and its file in UNSAFE_ALLOWED (xtask/src/tidy/code.rs)";
            Some(("unsafe", message.to_owned()))
        }
        name @ ("todo" | "unimplemented") if is_macro => Some((
            "unfinished",
            format!("`{name}!`: finish it, or return an error that says what is missing"),
        )),
        "ignore" if is_attribute(source, index) => {
            let message = "a test that never runs shows nothing: make it fit, or scale it by PARLOR_SEEDS";
            Some(("ignored", message.to_owned()))
        }
        _ => None,
    }
}

/// `#[ignore]`, `#[ignore = "why"]` and `#[cfg_attr(condition, ignore)]`.
fn is_attribute(source: &Source, index: usize) -> bool {
    let before = |back: usize| index.checked_sub(back).map_or("", |at| source.text(at));
    let alone = before(1) == "[" && before(2) == "#";
    let conditional = before(1) == "," && (2..12).any(|back| before(back) == "cfg_attr");
    alone || conditional
}

fn sleeps(source: &Source) -> Vec<Violation> {
    let tests_only = TEST_CRATES.iter().any(|directory| source.path.starts_with(directory));
    let paths = source.paths().into_iter().filter(|path| tests_only || path.in_test);
    let message = "a test does not sleep: use virtual time, or wait for the event itself";
    paths
        .filter(|path| SLEEPS.iter().any(|sleep| path.segments == *sleep))
        .map(|path| Violation::new(source.place(path.line), "sleep", message))
        .collect()
}

/// Texts with `Debug` that a page could see, where they would have a hole.
fn debug_texts(source: &Source) -> Vec<Violation> {
    let is_core = CORE.iter().any(|directory| source.path.starts_with(directory));
    let shows = |index: &usize| {
        let token = &source.tokens[*index];
        let is_shown = token.kind == Kind::Literal && !token.in_test && has_debug(&token.text);
        is_core && is_shown && !PANICS.contains(&called(source, *index))
    };
    let message =
        "pages have no `Debug`: show it by `Display`, or by `Quoted` or `Millis` of parlor_proto::text";
    (0..source.tokens.len())
        .filter(shows)
        .map(|index| Violation::new(source.place(source.tokens[index].line), "debug", message))
        .collect()
}

/// Whether a text is a format with `{:?}`, `{name:?}`, `{:#?}` or `{:02x?}`.
fn has_debug(text: &str) -> bool {
    let holes = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    holes.into_iter().any(|(hole, _)| hole.split_once(':').is_some_and(|(_, how)| how.ends_with('?')))
}

/// The macro or attribute in whose parentheses a token stands.
fn called(source: &Source, index: usize) -> &str {
    let mut depth = 0;
    for at in (1..index).rev().filter(|&at| source.tokens[at].kind == Kind::Mark) {
        match source.text(at) {
            ")" => depth += 1,
            "(" if depth > 0 => depth -= 1,
            "(" => return source.text(at - if source.text(at - 1) == "!" { 2 } else { 1 }),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_in(path: &str, text: &str) -> Vec<&'static str> {
        let source = Source::new(path.to_owned(), text);
        source_violations(&source).into_iter().map(|violation| violation.rule).collect()
    }

    fn rules(text: &str) -> Vec<&'static str> {
        rules_in("crates/x/src/lib.rs", text)
    }

    #[test]
    fn what_no_code_has_is_flagged() {
        assert_eq!(rules("fn f() { unsafe { g() } }"), ["unsafe"]);
        assert_eq!(rules("unsafe impl Send for A {}"), ["unsafe"]);
        assert_eq!(rules("fn f() { todo!() }"), ["unfinished"]);
        assert_eq!(rules("fn f() { unimplemented!(\"x\") }"), ["unfinished"]);
        assert_eq!(rules("#[test] #[ignore] fn f() {}"), ["ignored"]);
        assert_eq!(rules("#[test] #[ignore = \"slow\"] fn f() {}"), ["ignored"]);
        assert_eq!(rules("#[test] #[cfg_attr(not(unix), ignore)] fn f() {}"), ["ignored"]);
    }

    #[test]
    fn what_a_page_calls_may_be_exported_there_alone() {
        let (exports, export) = (EXPORTS_ALLOWED[0], "#[unsafe(no_mangle)] fn f() {}");
        assert_eq!(rules_in(exports, export), Vec::<&str>::new());
        assert_eq!(rules_in(exports, "fn f() { unsafe { g() } }"), ["unsafe"]);
        assert_eq!(rules(export), ["unsafe"]);
    }

    #[test]
    fn a_test_that_sleeps_is_flagged() {
        assert_eq!(rules("#[test] fn f() { std::thread::sleep(d); }"), ["sleep"]);
        assert_eq!(
            rules("#[cfg(test)] mod tests { use std::thread; fn f() { thread::sleep(d); } }"),
            ["sleep"]
        );
        assert_eq!(rules_in("crates/x/tests/it.rs", "fn f() { tokio::time::sleep(d); }"), ["sleep"]);
        assert_eq!(rules_in("crates/x/tests/it.rs", "use tokio::time::{sleep};"), ["sleep"]);
        assert_eq!(rules_in("tests/sim/src/lib.rs", "fn f() { std::thread::sleep(d); }"), ["sleep"]);
    }

    #[test]
    fn a_text_with_debug_in_the_core_of_pages_is_flagged() {
        let core = "crates/sync/src/lib.rs";
        let texts = [
            "fn f() { format!(\"{:?}\", a) }",
            "fn f() { assert!(a); g(h(1), write!(f, \"{a} {b:#?}\")) }",
            "#[error(\"the name {0:?} is long\")] struct A;",
            "fn f() { format_args!(\"{a:02x?}\") }",
        ];
        for text in texts {
            assert_eq!(rules_in(core, text), ["debug"], "in: {text}");
            assert_eq!(rules(text), Vec::<&str>::new(), "in: {text}");
        }
        let fine = [
            "fn f() { assert!(a == b, \"{a:?}\"); panic!(\"{}{b:?}\", g(c)); }",
            "#[test] fn f() { format!(\"{a:?}\") }",
            "fn f() { format!(\"{a}: {b:>8} why?\") }",
            "// {:?}",
        ];
        for text in fine {
            assert_eq!(rules_in(core, text), Vec::<&str>::new(), "in: {text}");
        }
    }

    #[test]
    fn the_rest_is_not() {
        let fine = [
            "// unsafe, todo!()\nconst A: &str = \"unsafe todo!() #[ignore]\";",
            "fn f() { todo; let ignore = todo != x; g(a, ignore) }",
            "async fn f() { tokio::time::sleep(d).await; std::thread::sleep(d); }",
            "#[test] fn f() { clock.sleep(d); sim::time::sleep(d); }",
        ];
        for text in fine {
            assert_eq!(rules(text), Vec::<&str>::new(), "in: {text}");
        }
    }
}
