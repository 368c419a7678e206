//! The input of the rules (the checkout's files) and their output (violations).

use std::fmt;
use std::path::{Path, PathBuf};

use super::source::{self, Source};

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// A path from the workspace's root, with the line where there is one.
    pub(super) place: String,
    /// The rule's name.
    pub(super) rule: &'static str,
    /// What is wrong and what to do about it.
    pub(super) message: String,
}

impl Violation {
    pub(super) fn new(place: impl fmt::Display, rule: &'static str, message: impl Into<String>) -> Violation {
        Violation { place: place.to_string(), rule, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [{}] {}", self.place, self.rule, self.message)
    }
}

/// The manifest of a package of the workspace.
pub(super) struct Manifest {
    /// From the workspace's root.
    pub(super) path: String,
    pub(super) table: toml::Table,
}

/// A document for people.
pub(super) struct Document {
    /// From the workspace's root.
    pub(super) path: String,
    pub(super) text: String,
}

/// The checkout, read once.
pub(super) struct House {
    pub(super) root: PathBuf,
    /// The workspace's manifest.
    pub(super) workspace: toml::Table,
    /// The manifests of `crates/*`, `tests/*`, `tools/*` and xtask.
    pub(super) manifests: Vec<Manifest>,
    /// All Rust source that is ours.
    pub(super) sources: Vec<Source>,
    /// All text files whose length is looked at, with their number of lines.
    pub(super) lengths: Vec<(String, usize)>,
    /// The documents at the root and in `docs/`.
    pub(super) documents: Vec<Document>,
}

impl House {
    pub(super) fn read(root: &Path) -> Result<House, Violation> {
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
        if is_manifest(&path) {
            self.manifests.push(Manifest { table: table(&self.root, &path)?, path });
        } else if is_document(&path) {
            self.documents.push(Document { text: text(&self.root, &path)?, path });
        } else if is_measured(&path) {
            let text = text(&self.root, &path)?;
            self.lengths.push((path.clone(), text.lines().count()));
            if has_extension(&path, "rs") {
                self.sources.push(Source::new(path, &text));
            }
        }
        Ok(())
    }
}

/// Whether `path` is the manifest of a package of the workspace.
fn is_manifest(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates" | "tests" | "tools", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
}

/// Markdown at the root and in `docs/`.
fn is_document(path: &str) -> bool {
    has_extension(path, "md") && (!path.contains('/') || path.starts_with("docs/"))
}

/// Whether a file's length is looked at: code that people write.
fn is_measured(path: &str) -> bool {
    ["rs", "ts", "mjs"].iter().any(|extension| has_extension(path, extension))
}

/// Paths of all files from `root`, with `/` between their parts, except what git or a build puts there.
fn files(root: &Path) -> Vec<String> {
    const NOT_OURS: [&str; 6] = ["target", "node_modules", "dist", "pkg", "corpus", "artifacts"];
    let mut files = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        // A directory can vanish while another process works in the checkout; a missing one violates no rule.
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

pub(super) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

fn text(root: &Path, path: &str) -> Result<String, Violation> {
    std::fs::read_to_string(root.join(path))
        .map_err(|error| Violation::new(path, "readable", format!("cannot be read: {error}")))
}

pub(super) fn table(root: &Path, path: &str) -> Result<toml::Table, Violation> {
    text(root, path)?
        .parse()
        .map_err(|error| Violation::new(path, "readable", format!("is not valid TOML: {error}")))
}
