//! Checks of the documents: a reason for each dependency, and links that resolve.

use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

use super::house::{Document, House, Violation};

const DEPENDENCIES: &str = "docs/dependencies.md";

/// Each dependency from outside is named, as `` `name` ``, in a line of docs/dependencies.md that says what
/// for.
pub(super) fn dependencies(house: &House) -> Vec<Violation> {
    const RULE: &str = "reasons";
    let Some(document) = house.documents.iter().find(|document| document.path == DEPENDENCIES) else {
        let message = "is missing: it has a reason for each dependency";
        return vec![Violation::new(DEPENDENCIES, RULE, message)];
    };
    let unexplained =
        outside_dependencies(&house.workspace).into_iter().filter(|name| !has_line(document, name));
    unexplained
        .map(|name| {
            let message = format!("has no line for `{name}`: say what it is for");
            Violation::new(DEPENDENCIES, RULE, message)
        })
        .collect()
}

fn outside_dependencies(workspace: &Table) -> Vec<&str> {
    let table = workspace.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let entries = table.and_then(Value::as_table).into_iter().flatten();
    entries.filter(|(_, value)| value.get("path").is_none()).map(|(name, _)| name.as_str()).collect()
}

fn has_line(document: &Document, name: &str) -> bool {
    document.text.contains(&format!("`{name}`"))
}

/// Each relative link of a document leads to a file.
pub(super) fn links(house: &House) -> Vec<Violation> {
    house.documents.iter().flat_map(|document| broken_links(&house.root, document)).collect()
}

/// Each test that a document names, `` `threat_04_…` ``, exists.
pub(super) fn tests(house: &House) -> Vec<Violation> {
    let is_there = |name: &str| house.sources.iter().any(|source| source.has_function(name));
    let mut violations = Vec::new();
    for document in &house.documents {
        for name in named_tests(&document.text).filter(|name| !is_there(name)) {
            let message = format!("names the test `{name}`, which is not there");
            violations.push(Violation::new(&document.path, "tests", message));
        }
    }
    violations
}

/// The document with a row for each capability.
const CAPABILITIES: &str = "docs/coming-from.md";
/// Ids of capabilities: a letter, and the numbers from 1 on.
const IDS: [(char, u32); 6] = [('A', 22), ('M', 15), ('T', 12), ('N', 6), ('R', 10), ('X', 16)];
/// Ids without a row: what is not there yet.
const IDS_OPEN: [&str; 4] = ["X4", "X5", "X10", "X13"];

/// Each capability has a row whose last column names a test with the capability's id in its name.
pub(super) fn capabilities(house: &House) -> Vec<Violation> {
    let document = house.documents.iter().find(|document| document.path == CAPABILITIES);
    let text = document.map_or("", |document| document.text.as_str());
    let is_there = |name: &str| house.sources.iter().any(|source| source.has_function(name));
    let ids = IDS.into_iter().flat_map(|(letter, count)| (1..=count).map(move |at| format!("{letter}{at}")));
    let shown = ids.filter(|id| !IDS_OPEN.contains(&id.as_str()));
    let wrong = shown.filter_map(|id| Some((row_fault(text, &id, is_there)?, id)));
    wrong.map(|(fault, id)| Violation::new(CAPABILITIES, "capabilities", format!("{id}: {fault}"))).collect()
}

/// What is wrong with a capability's row, if anything.
fn row_fault(text: &str, id: &str, is_there: impl Fn(&str) -> bool) -> Option<String> {
    let Some(row) = text.lines().find(|line| line.starts_with(&format!("| {id} |"))) else {
        return Some("has no row".to_owned());
    };
    let column = row.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
    let tests: Vec<&str> = column.split('`').skip(1).step_by(2).collect();
    let has_id = |name: &&&str| name.split('_').any(|word| word.eq_ignore_ascii_case(id));
    match tests.iter().find(|name| !has_id(name) || !is_there(name)) {
        Some(name) => Some(format!("`{name}` is no test with this id in its name")),
        None if tests.is_empty() => Some("names no test".to_owned()),
        None => None,
    }
}

fn named_tests(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| {
        word.strip_prefix("threat_").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

fn broken_links(root: &Path, document: &Document) -> Vec<Violation> {
    let directory = Path::new(&document.path).parent().unwrap_or(Path::new(""));
    let leads_nowhere = |target: &str| match within(&directory.join(target)) {
        Some(path) => !root.join(path).exists(),
        None => true,
    };
    let broken = targets(&document.text).into_iter().filter(|(_, target)| leads_nowhere(target));
    broken
        .map(|(line, target)| {
            let place = format!("{}:{line}", document.path);
            Violation::new(
                place,
                "links",
                format!("the link to `{target}` leads to no file of this checkout"),
            )
        })
        .collect()
}

/// The path without `..`; `None` if it leaves the checkout.
fn within(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if !inside.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            Component::Normal(part) => inside.push(part),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(inside)
}

/// The relative link targets of a text, without their anchors, each with its line. Code is skipped.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut in_fence = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        if in_fence || is_fence {
            continue;
        }
        let prose = without_code(line);
        let of_line = inline_targets(&prose).chain(reference_target(&prose));
        found.extend(of_line.filter_map(relative).map(|target| (index + 1, target.to_owned())));
    }
    found
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// What stands in `](…)`.
fn inline_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// What stands behind `[name]: `.
fn reference_target(line: &str) -> Option<&str> {
    let (_, target) = line.strip_prefix('[')?.split_once("]: ")?;
    Some(target)
}

/// The file a target names, if it names one of ours.
fn relative(target: &str) -> Option<&str> {
    let target = target.split_whitespace().next()?;
    let target = target.trim_start_matches('<').trim_end_matches('>');
    let file = target.split('#').next().unwrap_or_default();
    let has_scheme = file.split('/').next().is_some_and(|first| first.contains(':'));
    (!file.is_empty() && !has_scheme).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document { path: "docs/x.md".to_owned(), text: text.to_owned() }
    }

    fn broken(text: &str) -> usize {
        broken_links(&crate::workspace_root(), &document(text)).len()
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        assert_eq!(broken("see [it](nowhere.md) and [it](../nowhere.md#there)"), 2);
        assert_eq!(broken("[it]: nowhere.md"), 1);
        assert_eq!(broken("[out](../../etc/passwd) [root](/etc/passwd)"), 2);
        assert_eq!(broken("`code` [it](nowhere.md \"with a title\") `code`"), 1);
    }

    #[test]
    fn links_that_lead_somewhere_are_not() {
        assert_eq!(broken("[it](../Cargo.toml) [it](../Cargo.toml#workspace) [it](../crates/proto/)"), 0);
        assert_eq!(broken("[web](https://example.org/x) [mail](mailto:a@b) [here](#anchor)"), 0);
        assert_eq!(broken("```\n[code](nowhere.md)\n```\n`[code](nowhere.md)`"), 0);
    }

    #[test]
    fn tests_are_found_by_their_names() {
        let text = "| `threat_04_it_holds`, `threat_5_x` | threats, `threat_model` |";
        assert_eq!(named_tests(text).collect::<Vec<_>>(), ["threat_04_it_holds", "threat_5_x"]);
    }

    #[test]
    fn a_capability_without_its_test_is_found() {
        let fault = |row: &str| row_fault(row, "A4", |name| name.starts_with("a4_") || name == "x1_y");
        assert_eq!(fault("| A4 | codes | [guide](guide.md) | `a4_a_code`, `a4_other` |"), None);
        assert_eq!(fault("| A40 | codes | | `a4_a_code` |"), Some("has no row".to_owned()));
        assert_eq!(fault("| A4 | `codes` | | |"), Some("names no test".to_owned()));
        assert!(fault("| A4 | | | `a4_a_code`, `x1_y` |").is_some_and(|fault| fault.contains("x1_y")));
        assert!(fault("| A4 | | | `gone_a4` |").is_some_and(|fault| fault.contains("gone_a4")));
    }

    #[test]
    fn a_dependency_without_its_reason_is_found() {
        let workspace: Table =
            "[workspace.dependencies]\nours = { path = \"x\" }\nbytes = \"1\"".parse().unwrap();
        assert_eq!(outside_dependencies(&workspace), ["bytes"]);
        assert!(has_line(&document("- `bytes`: buffers"), "bytes"));
        assert!(!has_line(&document("bytes, and `bytes_utils`"), "bytes"));
    }
}
