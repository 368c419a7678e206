//! The licences of the libraries that are in the binary: their texts, each once, with the libraries that it is for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::files;
use crate::invocation::Invocation;
use crate::process::Failure;

/// How a file begins that has a licence or what one asks for, in capitals.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"];
/// The package of the binary.
const BINARY: &str = "parlor-cli";

/// A library as cargo knows it.
struct Library {
    /// Its name and version.
    name: String,
    /// Its licence as an SPDX expression.
    expression: String,
    authors: Vec<String>,
    /// The licence files that it brings.
    texts: Vec<String>,
}

/// Writes the texts of all libraries in the binary for `triple`; the error is what is missing.
pub(super) fn of(root: &Path, triple: &str) -> Result<String, Failure> {
    let call = Invocation::cargo("metadata --format-version 1 --locked --filter-platform").args(triple);
    let metadata: Value = serde_json::from_slice(&files::output(&call, root)?)
        .map_err(|error| Failure::of(format!("{call}: {error}")))?;
    let linked = linked(&metadata).map_err(Failure::of)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let libraries = packages.filter(|package| package["id"].as_str().is_some_and(|id| linked.contains(id)));
    let libraries: Vec<Library> = libraries.map(read).collect::<Result<_, _>>()?;
    let standard = [("MIT", "LICENSE-MIT"), ("Apache-2.0", "LICENSE-APACHE")];
    let standard: Vec<(&str, String)> = standard
        .into_iter()
        .map(|(name, file)| Ok((name, text_of(&root.join(file))?)))
        .collect::<Result<_, Failure>>()?;
    document(&libraries, &standard).map_err(Failure::of)
}

/// The packages that are linked: those that the binary needs when it runs, and that are not of this workspace.
fn linked(metadata: &Value) -> Result<BTreeSet<String>, String> {
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("cargo metadata has resolved nothing")?;
    let nodes: BTreeMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let own: BTreeSet<&str> =
        metadata["workspace_members"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let binary =
        packages.iter().find(|package| package["name"] == BINARY).and_then(|package| package["id"].as_str());
    let mut waiting = vec![binary.ok_or_else(|| format!("there is no package {BINARY}"))?];
    let mut found: BTreeSet<&str> = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !found.insert(id) {
            continue;
        }
        let needed = nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let is_linked = |dep: &&Value| {
            let kinds = dep["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        waiting.extend(needed.filter(is_linked).filter_map(|dep| dep["pkg"].as_str()));
    }
    Ok(found.into_iter().filter(|id| !own.contains(id)).map(str::to_owned).collect())
}

fn read(package: &Value) -> Result<Library, Failure> {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let manifest = text("manifest_path");
    let folder = Path::new(&manifest).parent().unwrap_or(Path::new(""));
    let files = files::entries(folder)?.into_iter().filter(|path| path.is_file() && is_license(path));
    let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(Library {
        name: format!("{} {}", text("name"), text("version")),
        expression: text("license"),
        authors: authors.map(str::to_owned).collect(),
        texts: files.map(|path| text_of(&path)).collect::<Result<_, _>>()?,
    })
}

fn is_license(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_uppercase();
    NAMES.iter().any(|begin| name.starts_with(begin))
}

fn text_of(path: &Path) -> Result<String, Failure> {
    // The same text with another end of line, or more space around it, is the same.
    Ok(files::read(path)?.replace('\r', "").trim_matches('\n').trim_end().to_owned())
}

/// Joins the texts. A library that brings none is listed with the standard text that its expression names.
fn document(libraries: &[Library], standard: &[(&str, String)]) -> Result<String, String> {
    let mut texts: BTreeMap<&str, Vec<&Library>> = BTreeMap::new();
    let mut without: BTreeMap<&str, Vec<&Library>> = BTreeMap::new();
    for library in libraries {
        for text in &library.texts {
            texts.entry(text).or_default().push(library);
        }
        if library.texts.is_empty() {
            let named = standard.iter().find(|(name, _)| library.expression.contains(name));
            let (name, _) = named.ok_or_else(|| {
                format!("{} is under {:?} and brings no text of it", library.name, library.expression)
            })?;
            without.entry(name).or_default().push(library);
        }
    }
    let mut out = String::from(
        "The program parlor has these libraries in it, and Rust's standard library (MIT OR Apache-2.0) and musl (MIT,\n\
         Copyright © 2005-2020 Rich Felker, et al.). Each licence stands once, below the libraries that it is for.\n",
    );
    for (name, libraries) in &without {
        let text = standard.iter().find(|(other, _)| other == name).map(|(_, text)| text.as_str());
        let _ = write!(out, "\n{}\n\nThese libraries bring no text of {name}; it is:\n\n", "=".repeat(100));
        libraries.iter().for_each(|library| list(&mut out, library));
        let _ = write!(out, "\n{}\n", text.unwrap_or_default());
    }
    for (text, libraries) in &texts {
        let _ = write!(out, "\n{}\n\n", "=".repeat(100));
        libraries.iter().for_each(|library| list(&mut out, library));
        let _ = write!(out, "\n{text}\n");
    }
    Ok(out)
}

fn list(out: &mut String, library: &Library) {
    let authors = if library.authors.is_empty() {
        String::new()
    } else {
        format!(", by {}", library.authors.join(", "))
    };
    let _ = writeln!(out, "{} ({}){authors}", library.name, library.expression);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, expression: &str, texts: &[&str]) -> Library {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Library { name: name.to_owned(), expression: expression.to_owned(), authors: Vec::new(), texts }
    }

    #[test]
    fn each_text_stands_once_with_all_of_its_libraries() {
        let libraries =
            [library("a 1", "MIT", &["text"]), library("b 2", "MIT", &["text"]), library("c 3", "MIT", &[])];
        let document = document(&libraries, &[("MIT", "standard".to_owned())]).unwrap();
        assert_eq!(document.matches("\ntext\n").count(), 1, "{document}");
        assert!(document.contains("a 1 (MIT)\nb 2 (MIT)\n\ntext"), "{document}");
        assert!(document.contains("c 3 (MIT)\n\nstandard"), "{document}");
    }

    #[test]
    fn a_library_without_a_text_is_an_error_unless_its_licence_is_a_usual_one() {
        let refused = document(&[library("d 4", "Zlib", &[])], &[("MIT", String::new())]).unwrap_err();
        assert!(refused.contains("d 4") && refused.contains("Zlib"), "{refused}");
    }

    #[test]
    fn the_binary_has_what_it_needs_when_it_runs_and_not_what_builds_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent");
        let text = of(root, "x86_64-unknown-linux-gnu").expect("each library has a licence");
        assert!(text.contains("\nquinn-proto ") && text.contains("\nrusqlite "), "{text}");
        assert!(
            !text.contains("\nproptest ") && !text.contains("\nparlor-hub "),
            "they are not libraries in it"
        );
    }
}
