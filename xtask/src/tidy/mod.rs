//! The rules of the house that no compiler knows. Each rule is a function from the checkout to violations.

mod code;
mod deps;
mod docs;
mod lexer;
mod purity;
mod size;
mod source;

use std::fmt;
use std::path::{Path, PathBuf};

use source::Source;

/// A rule that is broken somewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// A path from the workspace's root, with the line where there is one.
    place: String,
    /// The rule's name.
    rule: &'static str,
    /// What is wrong and what to do about it.
    message: String,
}

impl Violation {
    fn new(place: impl fmt::Display, rule: &'static str, message: impl Into<String>) -> Violation {
        Violation { place: place.to_string(), rule, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [{}] {}", self.place, self.rule, self.message)
    }
}

/// All violations in the checkout at `root`, in the order of their places.
pub(crate) fn check(root: &Path) -> Vec<Violation> {
    let house = match House::read(root) {
        Ok(house) => house,
        Err(violation) => return vec![violation],
    };
    let rules = [
        deps::one_way,
        deps::pure_manifests,
        deps::inherited,
        purity::check,
        code::check,
        size::check,
        docs::dependencies,
        docs::links,
        docs::tests,
    ];
    let mut violations: Vec<Violation> = rules.iter().flat_map(|rule| rule(&house)).collect();
    violations.sort();
    violations.dedup();
    violations
}

/// What the rules look at, read once.
struct House {
    root: PathBuf,
    /// The workspace's manifest.
    workspace: toml::Table,
    /// The manifests of `crates/*` and of xtask.
    manifests: Vec<deps::Manifest>,
    /// All Rust source that is ours.
    sources: Vec<Source>,
    /// All text files whose length is looked at, with their number of lines.
    lengths: Vec<(String, usize)>,
    /// The documents at the root and in `docs/`.
    documents: Vec<docs::Document>,
}

impl House {
    fn read(root: &Path) -> Result<House, Violation> {
        let paths = files(root);
        let mut house = House {
            root: root.to_path_buf(),
            workspace: table(root, "Cargo.toml")?,
            manifests: Vec::new(),
            sources: Vec::new(),
            lengths: Vec::new(),
            documents: Vec::new(),
        };
        for path in paths {
            house.take(path)?;
        }
        source::mark_test_files(&mut house.sources);
        Ok(house)
    }

    fn take(&mut self, path: String) -> Result<(), Violation> {
        if deps::is_member(&path) {
            self.manifests.push(deps::Manifest { table: table(&self.root, &path)?, path });
        } else if docs::is_document(&path) {
            self.documents.push(docs::Document { text: text(&self.root, &path)?, path });
        } else if size::is_measured(&path) {
            let text = text(&self.root, &path)?;
            self.lengths.push((path.clone(), text.lines().count()));
            if has_extension(&path, "rs") {
                self.sources.push(Source::new(path, &text));
            }
        }
        Ok(())
    }
}

/// Paths of all files from `root`, with `/` between their parts, except what git or a build puts there.
fn files(root: &Path) -> Vec<String> {
    const NOT_OURS: [&str; 6] = ["target", "node_modules", "dist", "pkg", "corpus", "artifacts"];
    let mut files = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        // A directory can vanish while others work in the checkout; what is gone breaks no rule.
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path();
            if name.starts_with('.') || NOT_OURS.contains(&name.as_str()) || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(relative) = path.strip_prefix(root) {
                files.push(relative.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    files.sort();
    files
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

fn text(root: &Path, path: &str) -> Result<String, Violation> {
    std::fs::read_to_string(root.join(path))
        .map_err(|error| Violation::new(path, "readable", format!("cannot be read: {error}")))
}

fn table(root: &Path, path: &str) -> Result<toml::Table, Violation> {
    text(root, path)?
        .parse()
        .map_err(|error| Violation::new(path, "readable", format!("is not valid TOML: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo test` keeps the house tidy without anyone asking for it.
    #[test]
    fn the_house_is_tidy() {
        let violations: Vec<String> =
            check(&crate::workspace_root()).iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
    }

    /// The rules would find nothing in an empty list, too.
    #[test]
    fn the_rules_see_the_house() {
        let house = House::read(&crate::workspace_root()).unwrap();
        assert!(house.manifests.iter().any(|manifest| manifest.path == "crates/proto/Cargo.toml"));
        assert!(house.sources.iter().any(|source| source.path == "xtask/src/tidy/mod.rs"));
        assert!(house.documents.iter().any(|document| document.path == "STYLE.md"));
    }

    #[test]
    fn a_checkout_without_a_manifest_is_a_violation() {
        let violations = check(Path::new("/no/such/checkout"));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].to_string().starts_with("Cargo.toml: [readable] cannot be read"));
    }
}
