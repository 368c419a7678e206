//! Paths and tests that the reader must recognise for the rules to work.

use super::*;

fn source(text: &str) -> Source {
    Source::new("crates/x/src/lib.rs".to_owned(), text)
}

fn paths(text: &str) -> Vec<String> {
    source(text).paths().iter().map(|path| path.segments.join("::")).collect()
}

/// The words of `text` that are not in a test.
fn untested(text: &str) -> Vec<String> {
    let tokens = source(text).tokens.into_iter();
    tokens.filter(|token| !token.in_test && token.kind == Kind::Word).map(|token| token.text).collect()
}

#[test]
fn nested_imports_are_unfolded() {
    let found = paths("use std::{time::{self, Instant as Now}, sync::*}; use ::core::fmt;");
    assert_eq!(found, ["std::time", "std::time::Instant", "std::sync::*", "core::fmt"]);
}

#[test]
fn imports_apply_to_code() {
    let found = paths("use std::time; use std::thread as t; fn f() { time::Instant::now(); t::spawn(x.t); }");
    assert!(found.contains(&"std::time::Instant::now".to_owned()));
    assert!(found.contains(&"std::thread::spawn".to_owned()));
    assert_eq!(found.iter().filter(|path| path.starts_with("std::thread")).count(), 2, "{found:?}");
}

#[test]
fn imports_of_imports_end() {
    assert!(paths("use a::b; use b::c; c::d").contains(&"a::b::c::d".to_owned()));
    assert!(!paths("use a::b; use b::a; a::c").is_empty(), "a circle ends");
}

#[test]
fn a_test_module_ends_where_it_ends() {
    assert_eq!(untested("fn a() {} #[cfg(test)] mod tests { fn b() {} } fn c() {}"), ["fn", "a", "fn", "c"]);
    assert_eq!(untested("#[test] fn a<T, U>(x: [u8; 2]) -> u8 { b } fn c() {}"), ["fn", "c"]);
    assert_eq!(untested("#[tokio::test(start_paused = true)] async fn a() {} struct B;"), ["struct", "B"]);
    assert_eq!(untested("struct A { #[cfg(test)] b: C, d: E }"), ["struct", "A", "d", "E"]);
    assert_eq!(untested("#[cfg(test)] #[derive(Debug)] pub(crate) use a::b; c"), ["c"]);
}

#[test]
fn what_only_may_be_a_test_is_none() {
    assert_eq!(untested("#[cfg(all(test, unix))] fn a() {}"), Vec::<String>::new());
    assert!(untested("#[cfg(any(test, feature = \"x\"))] fn a() {}").contains(&"a".to_owned()));
    assert!(untested("#[cfg(not(test))] fn a() {}").contains(&"a".to_owned()));
    assert!(untested("#[cfg_attr(test, allow(x))] fn a() {}").contains(&"a".to_owned()));
}

#[test]
fn test_files_are_found_through_their_declaration() {
    let mut sources = vec![
        source("#[cfg(test)] mod tests; #[cfg(test)] #[path = \"odd.rs\"] mod even;"),
        Source::new("crates/x/src/tests.rs".to_owned(), "a"),
        Source::new("crates/x/src/tests/more.rs".to_owned(), "a"),
        Source::new("crates/x/src/odd.rs".to_owned(), "a"),
        Source::new("crates/x/src/other.rs".to_owned(), "a"),
        Source::new("crates/y/src/tests.rs".to_owned(), "a"),
        Source::new("crates/y/tests/it.rs".to_owned(), "a"),
    ];
    mark_test_files(&mut sources);
    let in_test: Vec<bool> = sources[1..].iter().map(|source| source.tokens[0].in_test).collect();
    assert_eq!(in_test, [true, true, true, false, false, true]);
}

#[test]
fn broken_code_ends() {
    for text in [
        "use",
        "use a::{",
        "use {,",
        "#[cfg(",
        "#[cfg(test)]",
        "#[test",
        "#![test",
        "\"",
        "r#\"",
        "'",
        "/*",
        "#[cfg(test)] mod",
        "#[]",
    ] {
        let _ = paths(text);
    }
}
