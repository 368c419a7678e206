//! Forbidden code: `unsafe`, unfinished parts and disabled tests. In tests also waits for the wall clock,
//! which are slow on a fast machine and wrong on a slow one.

use super::house::{House, Violation};
use super::lexer::Kind;
use super::source::Source;

/// Files that may use `unsafe`, each with a soundness proof beside the code.
const UNSAFE_ALLOWED: &[&str] = &["tests/faultdisk/src/vfs.rs"];

/// Files that may have the attribute `unsafe(no_mangle)`, and nothing else that is unsafe: what a page calls.
const EXPORTS_ALLOWED: &[&str] = &["crates/wasm/src/exports/mod.rs"];

/// The simulator is a test tool as a whole: it runs on virtual time.
const TEST_CRATES: [&str; 1] = ["tests/sim/"];

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
    words.chain(sleeps(source)).collect()
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
