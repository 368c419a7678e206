//! The list of guards: what is taken out, and the test that must fail then.

use std::fs;
use std::ops::Range;
use std::path::Path;

/// The list, in the workspace's root.
const LIST: &str = "xtask/guards.toml";

/// A guard and the test that covers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) threat: i64,
    pub(super) file: String,
    pub(super) find: String,
    pub(super) replace: String,
    pub(super) test: Test,
}

/// A test, as cargo selects it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Test {
    pub(super) package: String,
    pub(super) target: String,
    pub(super) name: String,
    /// Whether it needs PostgreSQL. Without that it would pass.
    pub(super) postgres: bool,
}

pub(super) fn list(root: &Path) -> Result<Vec<Guard>, String> {
    let text = fs::read_to_string(root.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Guard>, String> {
    let list: toml::Table = text.parse().map_err(|error| format!("{LIST}: {error}"))?;
    let guards = list.get("guard").and_then(toml::Value::as_array);
    let guards = guards.ok_or_else(|| format!("{LIST} has no [[guard]]"))?;
    guards.iter().enumerate().map(|(at, guard)| parse_guard(guard).map_err(|why| fault(at, &why))).collect()
}

fn fault(at: usize, why: &str) -> String {
    format!("{LIST}: guard {} {why}", at + 1)
}

fn parse_guard(guard: &toml::Value) -> Result<Guard, String> {
    let may_be_empty = |name: &str| {
        let text = guard.get(name).and_then(toml::Value::as_str);
        text.map(str::to_owned).ok_or_else(|| format!("has no `{name}`"))
    };
    let text = |name: &str| {
        may_be_empty(name)
            .and_then(|text| if text.is_empty() { Err(format!("has an empty `{name}`")) } else { Ok(text) })
    };
    let threat = guard.get("threat").and_then(toml::Value::as_integer);
    let postgres = guard.get("postgres").and_then(toml::Value::as_bool).unwrap_or(false);
    let test = Test { package: text("package")?, target: text("target")?, name: text("test")?, postgres };
    let (find, replace) = (text("find")?, may_be_empty("replace")?);
    if find == replace {
        return Err("replaces its text with the same".to_owned());
    }
    Ok(Guard { threat: threat.ok_or("has no `threat`")?, file: text("file")?, find, replace, test })
}

/// Where a guard stands in its file's text.
pub(super) fn place(guard: &Guard, source: &str) -> Result<Range<usize>, String> {
    let places: Vec<usize> = source.match_indices(&guard.find).map(|(at, _)| at).collect();
    match places[..] {
        [at] => Ok(at..at + guard.find.len()),
        _ => Err(format!("`{}` stands {} times in {}, not once", guard.find, places.len(), guard.file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"
        [[guard]]
        threat = 4
        file = "a.rs"
        find = "if it {"
        replace = "if false {"
        package = "p"
        target = "lib"
        test = "t"
    "#;

    #[test]
    fn a_list_is_read() {
        let guards = parse(ONE).unwrap();
        let test = Test { package: "p".into(), target: "lib".into(), name: "t".into(), postgres: false };
        let (file, find, replace) = ("a.rs".into(), "if it {".into(), "if false {".into());
        assert_eq!(guards, [Guard { threat: 4, file, find, replace, test }]);
    }

    #[test]
    fn what_a_list_lacks_is_named() {
        for name in ["threat", "file", "find", "replace", "package", "target", "test"] {
            let lines = ONE.lines().filter(|line| !line.trim_start().starts_with(&format!("{name} =")));
            let why = parse(&lines.collect::<Vec<&str>>().join("\n")).unwrap_err();
            assert!(why.contains("guard 1") && why.contains(name), "{why}");
        }
        assert!(parse("").is_err() && parse("guard =").is_err());
        assert!(parse(&ONE.replace("if false {", "if it {")).unwrap_err().contains("the same"));
    }

    #[test]
    fn a_text_that_is_not_there_once_is_refused() {
        let guard = &parse(ONE).unwrap()[0];
        assert_eq!(place(guard, "x if it { y").unwrap(), 2..9);
        assert!(place(guard, "x").unwrap_err().contains("0 times"));
        assert!(place(guard, "if it { if it {").unwrap_err().contains("2 times"));
    }

    #[test]
    fn each_guard_of_the_list_stands_once_in_its_file_and_its_test_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let guards = list(root).unwrap();
        for guard in &guards {
            let source = fs::read_to_string(root.join(&guard.file)).unwrap();
            place(guard, &source).unwrap_or_else(|why| panic!("threat {}: {why}", guard.threat));
            let number = format!("threat_{:02}_", guard.threat);
            assert!(guard.test.name.contains(&number), "{} is for threat {}", guard.test.name, guard.threat);
        }
        for threat in [2, 3, 4, 7, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 27, 28, 29, 30] {
            assert!(guards.iter().any(|guard| guard.threat == threat), "no guard for threat {threat}");
        }
    }
}
