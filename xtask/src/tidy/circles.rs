//! Import cycles: files of a crate that import from one another, directly or transitively. To understand one
//! file of a cycle a reader has to read all, so a cycle has at most five files. Longer ones have their reason
//! in a list, which must only get shorter.

use std::collections::{BTreeMap, BTreeSet};

use super::house::{House, Violation, table};
use super::source::{Import, NamedPath, Origin, Source};

const RULE: &str = "circles";
const FILES_MAX: usize = 5;
const ALLOW_FILE: &str = "xtask/tidy-circles.toml";

/// Compares the longest cycle of each crate with the limit and with the list of exceptions.
pub(super) fn check(house: &House) -> Vec<Violation> {
    match table(&house.root, ALLOW_FILE) {
        Ok(allowed) => violations(&circles(&house.sources), &allowed),
        Err(violation) => vec![violation],
    }
}

/// The longest cycle of each crate that has one, by the crate's folder.
type Longest = BTreeMap<String, BTreeSet<String>>;

fn violations(longest: &Longest, allowed: &toml::Table) -> Vec<Violation> {
    let too_long = longest.iter().filter(|(_, circle)| circle.len() > FILES_MAX).filter_map(|(package, circle)| {
        let may = allowed.get(package).and_then(files_of).unwrap_or(FILES_MAX);
        let names: Vec<&str> = circle.iter().map(String::as_str).collect();
        let (count, names) = (circle.len(), names.join(", "));
        (count > may).then(|| {
            let message = format!("{count} files import from one another, over {may}: {names}. Cut the circle, or give the reason in {ALLOW_FILE}");
            Violation::new(package, RULE, message)
        })
    });
    let wrong = allowed.iter().filter_map(|(package, entry)| {
        let has = longest.get(package).map_or(0, BTreeSet::len);
        let reason = entry.get("reason").and_then(toml::Value::as_str).unwrap_or_default();
        let message = match files_of(entry) {
            _ if reason.trim().is_empty() => format!("the entry for {package} gives no reason"),
            None => format!("the entry for {package} does not say how many `files`"),
            Some(files) if has < files => {
                format!("the circle of {package} has {has} files now: lower the entry, or remove it below 6")
            }
            Some(_) => return None,
        };
        Some(Violation::new(ALLOW_FILE, RULE, message))
    });
    too_long.chain(wrong).collect()
}

fn files_of(entry: &toml::Value) -> Option<usize> {
    usize::try_from(entry.get("files")?.as_integer()?).ok()
}

fn circles(sources: &[Source]) -> Longest {
    let mut crates: BTreeMap<String, Files<'_>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        if let Some((package, module)) = place(&source.path) {
            let files = crates.entry(package).or_default();
            // A library and a program in one folder: the program imports the library by its name.
            if !(source.path.ends_with("/main.rs") && files.contains_key(&module)) {
                files.insert(module, File::read(source));
            }
        }
    }
    let longest = crates.into_iter().map(|(package, files)| (package, longest_circle(&files)));
    longest.filter(|(_, circle)| !circle.is_empty()).collect()
}

/// A module's path within its crate; the root's is empty.
type Module = Vec<String>;
/// The files of a crate, by module.
type Files<'a> = BTreeMap<Module, File<'a>>;

/// A file's imports and exports, read once: every path of every other file is looked up here.
struct File<'a> {
    path: &'a str,
    /// What it uses: the paths of its imports and of its code.
    takes: Vec<Vec<String>>,
    /// What it re-exports (`pub use`), by name.
    hands_on: BTreeMap<String, Vec<String>>,
}

impl File<'_> {
    fn read(source: &Source) -> File<'_> {
        let (exports, imports): (Vec<Import>, Vec<Import>) =
            source.imports().into_iter().partition(|import| import.is_export);
        // A single word may be a variable.
        let is_path = |path: &NamedPath| path.segments.len() > 1 && path.origin != Origin::Import;
        let in_code = source.paths().into_iter().filter(|path| !path.in_test && is_path(path));
        let imports = imports.into_iter().filter(|import| !import.in_test).map(|import| import.segments);
        File {
            path: &source.path,
            takes: imports.chain(in_code.map(|path| path.segments)).collect(),
            hands_on: exports.into_iter().map(|export| (export.name, export.segments)).collect(),
        }
    }
}

/// The crate's folder and the module of a file.
fn place(path: &str) -> Option<(String, Module)> {
    let (package, file) = path.split_once("/src/")?;
    let (package, file) = match file.strip_prefix("bin/").and_then(|file| file.split_once('/')) {
        Some((program, file)) => (format!("{package}/src/bin/{program}"), file),
        None => (package.to_owned(), file),
    };
    let mut module: Module = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    let is_root = module.len() == 1 && ["lib", "main"].contains(&module[0].as_str());
    if is_root || module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    Some((package, module))
}

fn longest_circle(files: &Files<'_>) -> BTreeSet<String> {
    let imports: BTreeMap<&Module, BTreeSet<&Module>> =
        files.iter().map(|(module, file)| (module, imported(module, file, files))).collect();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        files.keys().map(|module| (module, reach(module, &imports))).collect();
    let circle_of = |module: &Module| -> BTreeSet<String> {
        let others = reached[module].iter().filter(|other| reached[*other].contains(module));
        others.map(|other| files[*other].path.to_owned()).collect()
    };
    // Of equally long cycles the first is chosen, so that the same checkout gives the same list.
    let circles = files.keys().map(circle_of);
    circles
        .fold(BTreeSet::new(), |longest, circle| if circle.len() > longest.len() { circle } else { longest })
}

fn reach<'a>(from: &'a Module, imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> BTreeSet<&'a Module> {
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(module) = waiting.pop() {
        for next in &imports[module] {
            if reached.insert(*next) {
                waiting.push(next);
            }
        }
    }
    reached
}

/// The other files that a file uses. Items that it only re-exports do not count.
fn imported<'a>(module: &Module, file: &File<'_>, files: &'a Files<'_>) -> BTreeSet<&'a Module> {
    let targets = file.takes.iter().filter_map(|segments| target(module, segments, files, 0));
    targets.filter(|other| *other != module).collect()
}

/// The file that a path leads to: the one that defines the item, not one that re-exports it.
fn target<'a>(from: &Module, segments: &[String], files: &'a Files<'_>, depth: usize) -> Option<&'a Module> {
    let path = absolute(from, segments, files)?;
    let length = (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length]))?;
    let (module, file) = files.get_key_value(&path[..length])?;
    match path.get(length).and_then(|item| file.hands_on.get(item)) {
        // A re-export from another crate counts as the file's own.
        Some(export) if depth < 4 => target(module, export, files, depth + 1),
        _ => Some(module),
    }
}

/// A path from the crate's root; `None` for paths of other crates.
fn absolute(from: &Module, segments: &[String], files: &Files<'_>) -> Option<Module> {
    let (first, rest) = segments.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some(from.iter().chain(rest).cloned().collect()),
        "super" => {
            let parent = from.split_last()?.1.to_vec();
            let is_further = rest.first().is_some_and(|next| next == "super");
            if is_further {
                absolute(&parent, rest, files)
            } else {
                Some(parent.iter().chain(rest).cloned().collect())
            }
        }
        _ => {
            let child: Module = from.iter().chain(segments).cloned().collect();
            (files.contains_key(&child[..from.len() + 1])).then_some(child)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(format!("crates/x/src/{path}"), text)).collect();
        let short = |path: String| path.trim_start_matches("crates/x/src/").to_owned();
        let longest = circles(&sources).into_iter();
        longest.map(|(package, circle)| (package, circle.into_iter().map(short).collect())).collect()
    }

    fn circle(files: &[(&str, &str)]) -> Vec<String> {
        found(files).into_iter().flat_map(|(_, circle)| circle).collect()
    }

    #[test]
    fn files_that_import_from_one_another_are_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("a.rs", "use super::b::B; pub struct A;"),
            ("b.rs", "use crate::c::{C, D}; pub struct B;"),
            ("c.rs", "fn c() -> crate::a::A { todo!() }"),
        ];
        assert_eq!(circle(&files), ["a.rs", "b.rs", "c.rs"]);
    }

    #[test]
    fn who_hands_on_what_others_have_is_in_no_circle() {
        let files = [
            ("lib.rs", "mod room; pub use room::{A, B};"),
            ("room/mod.rs", "mod a; mod b; pub use self::a::A; pub use b::B;"),
            ("room/a.rs", "use super::B; pub struct A;"),
            ("room/b.rs", "pub struct B;"),
        ];
        assert_eq!(circle(&files), Vec::<String>::new());
        let files = [
            ("lib.rs", "mod a; use a::A; pub(crate) use other::B;"),
            ("a.rs", "use super::B; pub struct A;"),
        ];
        assert_eq!(circle(&files), Vec::<String>::new());
        // An item that the parent defines belongs to the parent.
        let files =
            [("room/mod.rs", "mod a; use a::A; pub struct B;"), ("room/a.rs", "use super::B; pub struct A;")];
        assert_eq!(circle(&files), ["room/a.rs", "room/mod.rs"]);
    }

    #[test]
    fn what_only_tests_import_is_no_circle() {
        let files = [
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }"),
        ];
        assert_eq!(circle(&files), Vec::<String>::new());
    }

    #[test]
    fn a_long_circle_needs_a_reason_and_an_entry_a_long_circle() {
        let six: BTreeSet<String> = (0..6).map(|file| format!("{file}.rs")).collect();
        let longest = Longest::from([("crates/x".to_owned(), six)]);
        let messages = |allowed: &str| -> Vec<String> {
            violations(&longest, &allowed.parse().unwrap()).iter().map(ToString::to_string).collect()
        };
        assert!(messages("")[0].contains("6 files import from one another, over 5: 0.rs, 1.rs"));
        assert_eq!(messages("\"crates/x\" = { files = 6, reason = \"r\" }"), Vec::<String>::new());
        assert!(messages("\"crates/x\" = { files = 7, reason = \"r\" }")[0].contains("has 6 files now"));
        assert!(messages("\"crates/x\" = { files = 6, reason = \" \" }")[0].contains("gives no reason"));
        assert!(messages("\"crates/x\" = { reason = \"r\" }").iter().any(|said| said.contains("how many")));
    }
}
