//! The pure crates have no clock, randomness, thread, lock, socket, `async` or global, outside tests.

use super::deps;
use super::house::{House, Violation};
use super::lexer::Kind;
use super::source::{NamedPath, Origin, Source};

const RULE: &str = "purity";

/// Where pure code is: a directory, and the file that may stand in its place.
const PURE: [(&str, &str); 8] = [
    ("crates/proto/src/", ""),
    ("crates/sync/src/", ""),
    ("crates/hub/src/", ""),
    ("crates/turn/src/", ""),
    ("crates/social/src/", ""),
    ("crates/impair/src/", ""),
    ("crates/client-core/src/", ""),
    ("crates/transport/src/rate/", "crates/transport/src/rate.rs"),
];

/// A module or crate that pure code does not name.
struct Ban {
    path: &'static [&'static str],
    /// What below it is harmless. With any of these, naming the module itself is harmless, too.
    except: &'static [&'static str],
    why: &'static str,
}

const CLOCK: &str = "it reads a clock: take `now: Instant` (parlor_proto::time) as an argument";
const THREAD: &str = "threads make runs differ: the caller decides where a machine runs";
const SHARED: &str = "locks, atomics and globals hide state: own it, and take `&mut self`; `Arc` is fine";
const SYSTEM: &str = "the operating system belongs to the caller: take an input, give an `Output`";
const SOCKET: &str = "sockets live in parlor-transport; where only an address is meant, core::net has it";
const ASYNC: &str = "machines are driven by `handle_*` and `poll_*`, never by `async`";
const RANDOM: &str = "randomness comes from a seed that is passed in: rand_chacha";
const HASHER: &str = "its order differs from run to run: use a BTreeMap or BTreeSet, or name a fixed hasher";

const BANS: &[Ban] = &[
    Ban { path: &["std", "time"], except: &["Duration"], why: CLOCK },
    Ban { path: &["std", "thread"], except: &[], why: THREAD },
    Ban { path: &["std", "sync"], except: &["Arc", "Weak"], why: SHARED },
    Ban { path: &["std", "net"], except: &[], why: SOCKET },
    Ban { path: &["std", "fs"], except: &[], why: SYSTEM },
    Ban { path: &["std", "env"], except: &[], why: SYSTEM },
    Ban { path: &["std", "process"], except: &[], why: SYSTEM },
    Ban { path: &["std", "os"], except: &[], why: SYSTEM },
    Ban { path: &["std", "io", "stdin"], except: &[], why: SYSTEM },
    Ban { path: &["std", "io", "stdout"], except: &[], why: SYSTEM },
    Ban { path: &["std", "io", "stderr"], except: &[], why: SYSTEM },
    Ban { path: &["std", "future"], except: &[], why: ASYNC },
    Ban { path: &["std", "task"], except: &[], why: ASYNC },
    Ban { path: &["std", "hash", "RandomState"], except: &[], why: HASHER },
    Ban { path: &["std", "hash", "DefaultHasher"], except: &[], why: HASHER },
    Ban { path: &["std", "collections", "hash_map", "RandomState"], except: &[], why: HASHER },
    Ban { path: &["std", "collections", "hash_map", "DefaultHasher"], except: &[], why: HASHER },
    Ban { path: &["tokio"], except: &[], why: ASYNC },
    Ban { path: &["futures_util"], except: &[], why: ASYNC },
    Ban { path: &["parlor_transport"], except: &[], why: SOCKET },
    Ban { path: &["rand"], except: &[], why: RANDOM },
    Ban { path: &["getrandom"], except: &[], why: RANDOM },
];

/// Macros that pure code does not call.
const MACROS: [(&str, &str); 6] = [
    ("thread_local", SHARED),
    ("println", "printing is the caller's: give an `Event`"),
    ("print", "printing is the caller's: give an `Event`"),
    ("eprintln", "printing is the caller's: give an `Event`"),
    ("eprint", "printing is the caller's: give an `Event`"),
    ("dbg", "printing is the caller's: give an `Event`"),
];

/// Names that are sources of randomness under whatever path.
const RANDOM_NAMES: [&str; 6] = ["thread_rng", "ThreadRng", "OsRng", "SysRng", "from_entropy", "from_os_rng"];

/// Checks all pure code of the house.
pub(super) fn check(house: &House) -> Vec<Violation> {
    let foreign = deps::impure_dependencies(house, "crates/transport/Cargo.toml");
    let mut violations = Vec::new();
    for (directory, file) in PURE {
        let is_inside = |source: &&Source| source.path.starts_with(directory) || source.path == file;
        let mut inside = house.sources.iter().filter(is_inside).peekable();
        if inside.peek().is_none() {
            // Otherwise a directory that moves would silently escape the rule.
            let message = "pure code is expected here; if it moved, tell xtask/src/tidy/purity.rs";
            violations.push(Violation::new(directory, RULE, message));
        }
        violations.extend(inside.flat_map(|source| source_violations(source, &foreign)));
    }
    violations
}

/// Checks one file. `foreign` are the crates its package depends on for its impure parts.
fn source_violations(source: &Source, foreign: &[String]) -> Vec<Violation> {
    let paths = source.paths();
    let in_paths = paths.iter().filter(|path| !path.in_test).filter_map(|path| {
        let what = path.segments.join("::");
        let why = banned_path(path, foreign).or_else(|| random_order(source, path))?;
        Some((path.line, what, why))
    });
    let in_words =
        (0..source.tokens.len()).filter(|&index| !source.tokens[index].in_test).filter_map(|index| {
            let (what, why) = banned_word(source, index)?;
            Some((source.tokens[index].line, what, why))
        });
    let describe = |(line, what, why): (usize, String, &str)| {
        Violation::new(source.place(line), RULE, format!("`{what}` in pure code: {why}"))
    };
    in_paths.chain(in_words).map(describe).collect()
}

/// Why the path is banned. A use whose import is already reported is not reported again: after
/// `use std::time;`, `time::Instant` is the code's fault; after `use std::time::Instant;` it was the
/// import's.
fn banned_path(path: &NamedPath, foreign: &[String]) -> Option<&'static str> {
    let why = banned_segments(&path.segments, foreign)?;
    match &path.origin {
        Origin::Code { import: Some(import), .. } if banned_segments(import, foreign).is_some() => None,
        _ => Some(why),
    }
}

fn banned_segments(segments: &[String], foreign: &[String]) -> Option<&'static str> {
    let segments = normalized(segments);
    let ban = BANS.iter().find(|ban| ban.covers(&segments)).map(|ban| ban.why);
    let is_foreign = segments.len() > 1 && foreign.iter().any(|name| name == segments[0]);
    ban.or(is_foreign.then_some(SYSTEM))
}

/// Maps `core` and `alloc` to `std`, except that `core::net` has addresses and no sockets.
fn normalized(segments: &[String]) -> Vec<&str> {
    let mut segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    if matches!(segments[0], "core" | "alloc") && segments.get(1) != Some(&"net") {
        segments[0] = "std";
    }
    segments
}

impl Ban {
    fn covers(&self, segments: &[&str]) -> bool {
        if let [parent @ .., "*"] = segments
            && self.path.starts_with(parent)
        {
            return true;
        }
        if !segments.starts_with(self.path) {
            return false;
        }
        match segments.get(self.path.len()) {
            // A crate's name alone may be a variable's or a field's; a module's full path cannot.
            None => self.except.is_empty() && self.path.len() > 1,
            Some(below) => !self.except.contains(below),
        }
    }
}

/// Why a hash map or set has no fixed order: its type names no hasher, or it is made by a function that
/// brings the random one.
fn random_order(source: &Source, path: &NamedPath) -> Option<&'static str> {
    let Origin::Code { end, .. } = &path.origin else { return None };
    let segments = normalized(&path.segments);
    let at = segments.iter().position(|segment| matches!(*segment, "HashMap" | "HashSet"))?;
    if segments[0] != "std" {
        return None;
    }
    let with_hasher = if segments[at] == "HashMap" { 3 } else { 2 };
    let open = end + usize::from(source.text(*end) == "::");
    let is_random = match segments.get(at + 1) {
        Some(function) => matches!(*function, "new" | "with_capacity" | "from"),
        None => source.text(open) == "<" && generic_arguments(source, open) < with_hasher,
    };
    is_random.then_some(HASHER)
}

/// How many arguments stand in the angle brackets that open at `open`.
fn generic_arguments(source: &Source, open: usize) -> usize {
    let (mut depth, mut count) = (0_usize, 1);
    for index in open..source.tokens.len() {
        match source.text(index) {
            // The arrow of a function type closes nothing.
            ">" if source.text(index - 1) == "-" => {}
            "<" | "(" | "[" => depth += 1,
            ">" | ")" | "]" => depth = depth.saturating_sub(1),
            // A comma behind the last argument starts no further one.
            "," if depth == 1 && source.text(index + 1) != ">" => count += 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    count
}

/// The keyword, macro or name at `index` that pure code does not use, and why.
fn banned_word(source: &Source, index: usize) -> Option<(String, &'static str)> {
    let token = &source.tokens[index];
    if token.kind != Kind::Word {
        return None;
    }
    let word = token.text.as_str();
    let is_macro = source.text(index + 1) == "!" && source.text(index + 2) != "=";
    if let Some((_, why)) = MACROS.iter().find(|(name, _)| is_macro && *name == word) {
        return Some((format!("{word}!"), why));
    }
    match word {
        "async" => Some(("async".to_owned(), ASYNC)),
        "await" if index > 0 && source.text(index - 1) == "." => Some((".await".to_owned(), ASYNC)),
        "static" if source.text(index + 1) == "mut" => Some(("static mut".to_owned(), SHARED)),
        _ if RANDOM_NAMES.contains(&word) => Some((word.to_owned(), RANDOM)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(text: &str) -> Vec<String> {
        let source = Source::new("crates/proto/src/x.rs".to_owned(), text);
        let found = source_violations(&source, &["quinn".to_owned()]);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn impure_code_is_flagged() {
        let impure = [
            "use std::time::Instant;",
            "use std::{fmt, time::{Duration, SystemTime}};",
            "use std::time; fn f() { time::Instant::now(); }",
            "use std::time as t; fn f() { t::Instant::now(); }",
            "use std as s; fn f() { s::thread::yield_now(); }",
            "fn f() -> ::std::time::Instant { x }",
            "fn f() { std::thread::spawn(g); }",
            "use std::thread;",
            "use std::sync::{Arc, Mutex};",
            "use std::sync::*;",
            "use std::*;",
            "use core::sync::atomic::AtomicU64;",
            "static X: std::sync::OnceLock<u8> = std::sync::OnceLock::new();",
            "use std::sync; static X: sync::LazyLock<u8> = y;",
            "fn f(s: std::net::UdpSocket) {}",
            "fn f() { std::fs::read(x); }",
            "fn f() { std::env::var(x); }",
            "fn f() { std::process::exit(1) }",
            "use std::io::stdout;",
            "use tokio::sync::mpsc;",
            "fn f() { tokio::spawn(g); }",
            "fn f(c: quinn::Connection) {}",
            "use quinn::Connection;",
            "async fn f() {}",
            "fn f() { g(async move { 1 }) }",
            "fn f() { x.await }",
            "use std::future::Future;",
            "fn f() { rand::random() }",
            "fn f() { rand_core::OsRng }",
            "fn f() { let r = thread_rng(); }",
            "fn f() { getrandom::fill(x) }",
            "use std::collections::HashMap; struct A { b: HashMap<u8, u8> }",
            "use std::collections::HashMap; fn f() { let a = HashMap::new(); }",
            "fn f() { std::collections::HashMap::<u8, fn(u8, u8) -> u8>::new() }",
            "use std::collections::{HashSet as Set}; fn f(s: Set<(u8, u8)>) {}",
            "use std::collections::HashMap; fn f() { x.collect::<HashMap<_, _,>>() }",
            "use std::collections::*;",
            "use std::hash::RandomState;",
            "static mut X: u8 = 0;",
            "thread_local! { static X: u8 = 0; }",
            "fn f() { println!(\"x\") }",
            "fn f() { std::eprintln!(\"x\") }",
            "fn f() { dbg!(x) }",
            "#[cfg(any(test, feature = \"x\"))] use std::time::Instant;",
            "#[cfg(test)] mod tests {} use std::time::Instant;",
        ];
        for text in impure {
            assert!(!violations(text).is_empty(), "this passed: {text}");
        }
    }

    #[test]
    fn pure_code_is_not() {
        let pure = [
            "// std::time::Instant\n/// println!\n/* tokio::spawn */ const A: &str = \"std::thread async\";",
            "use crate::time::Instant; fn f(now: Instant) { now.since(Instant::ZERO); }",
            "use std::time::Duration; use core::time; fn f(d: time::Duration) {}",
            "use std::sync::Arc; fn f(a: Arc<u8>, b: std::sync::Weak<u8>) {}",
            "use std::sync::{self, Arc}; fn f(a: sync::Arc<u8>) {}",
            "use std::collections::{BTreeMap, BTreeSet, VecDeque};",
            "use std::collections::HashMap; type Map<K, V> = HashMap<K, V, Fixed>; fn f() { Map::default() }",
            "use std::collections::{HashMap, hash_map::Entry}; fn f(m: HashMap<(u8, u8), Vec<u8>, Fixed,>) {}",
            "use std::collections::HashSet; fn f() -> HashSet<u8, Fixed> { HashSet::default() }",
            "use core::net::IpAddr;",
            "fn f() { crate::rand::next(self.rand, thread, tokio) }",
            "fn f(thread: u8, quinn: u8) { thread; self.tokio.time() }",
            "fn f() { if print != x && r#async {} write!(w, \"{}\", await_it) }",
            "static TABLE: [u8; 2] = [1, 2];",
            "#[cfg(test)] mod tests { use std::time::Instant; use std::collections::HashMap; }",
            "use crate::time::Instant; fn f(i: Instant) {} #[cfg(test)] mod tests { use std::time::Instant; }",
            "#[test] fn f() { println!(\"{:?}\", std::time::Instant::now()); }",
            "use rand_chacha::ChaCha8Rng;",
            "fn f() -> impl Iterator + use<'_> { x }",
        ];
        for text in pure {
            assert_eq!(violations(text), Vec::<String>::new(), "in: {text}");
        }
    }

    #[test]
    fn a_violation_names_its_line_and_the_way_out() {
        let found =
            violations("use std::fmt;\nuse std::time::Instant;\nfn f() -> Instant { Instant::now() }");
        assert_eq!(found.len(), 1, "said once, at the import: {found:?}");
        assert!(found[0].starts_with("crates/proto/src/x.rs:2: [purity] `std::time::Instant`"));
        assert!(found[0].contains("as an argument"));
    }

    #[test]
    fn each_ban_can_fail() {
        for ban in BANS {
            let text = format!("use {}::something;", ban.path.join("::"));
            assert!(violations(&text).iter().any(|found| found.contains(ban.why)), "{text}");
        }
    }
}
