//! Dependency direction between the crates, and the few dependencies that pure crates may have.

use toml::{Table, Value};

use super::house::{House, Manifest, Violation};

const RULE: &str = "dependencies";

/// A crate of the repository, and the crates of the repository that it may depend on.
struct Place {
    name: &'static str,
    may: &'static [&'static str],
    /// Beyond `may` and [`ANY_TEST_MAY`], in tests.
    tests_may: &'static [&'static str],
}

/// The crates. `ARCHITECTURE.md` has the reason for each arrow.
const HOUSE: &[Place] = &[
    Place { name: "parlor-proto", may: &[], tests_may: &[] },
    Place { name: "parlor-sync", may: &["parlor-proto"], tests_may: &["parlor-impair"] },
    Place { name: "parlor-hub", may: &["parlor-proto", "parlor-sync"], tests_may: &["parlor-impair"] },
    Place { name: "parlor-turn", may: &["parlor-proto"], tests_may: &[] },
    Place { name: "parlor-social", may: &[], tests_may: &[] },
    Place { name: "parlor-impair", may: &["parlor-proto"], tests_may: &[] },
    Place { name: "parlor-transport", may: &["parlor-proto", "parlor-impair"], tests_may: &[] },
    Place { name: "parlor-client-core", may: &["parlor-proto", "parlor-sync"], tests_may: &[] },
    Place {
        name: "parlor-wasm",
        may: &["parlor-proto", "parlor-sync", "parlor-client-core"],
        tests_may: &["parlor-hub"],
    },
    Place {
        name: "parlor",
        may: &["parlor-proto", "parlor-sync", "parlor-client-core", "parlor-transport", "parlor-server"],
        tests_may: &["parlor-services", "parlor-testing"],
    },
    Place {
        name: "parlor-server",
        may: &["parlor-proto", "parlor-hub", "parlor-transport"],
        tests_may: &["parlor-testing"],
    },
    Place {
        name: "parlor-services",
        may: &[
            "parlor-proto",
            "parlor-hub",
            "parlor-turn",
            "parlor-social",
            "parlor-transport",
            "parlor-server",
        ],
        tests_may: &["parlor-faultdisk", "parlor-testing"],
    },
    Place {
        name: "parlor-capi",
        may: &["parlor-proto", "parlor-sync", "parlor-client-core", "parlor"],
        tests_may: &["parlor-testing"],
    },
    Place { name: "parlor-bevy", may: &["parlor"], tests_may: &["parlor-server", "parlor-testing"] },
    Place {
        name: "parlor-demos",
        may: &["parlor-proto", "parlor-impair", "parlor-client-core", "parlor", "parlor-terminal"],
        tests_may: &[],
    },
    Place {
        name: "parlor-terminal",
        may: &["parlor", "parlor-server", "parlor-transport"],
        tests_may: &["parlor-proto"],
    },
    Place { name: "parlor-cli", may: &INSTALLED, tests_may: &["parlor-testing"] },
    Place { name: "parlor-bench", may: &EVERYTHING, tests_may: &[] },
    Place {
        name: "parlor-sim",
        may: &["parlor-proto", "parlor-sync", "parlor-hub", "parlor-impair", "parlor-client-core"],
        tests_may: &[],
    },
    Place { name: "parlor-cluster-model", may: &["parlor-hub"], tests_may: &[] },
    Place { name: "parlor-faultdisk", may: &[], tests_may: &[] },
    Place {
        name: "parlor-testing",
        may: &["parlor-proto", "parlor-transport", "parlor-server"],
        tests_may: &[],
    },
    Place {
        name: "parlor-cluster",
        may: &["parlor-server", "parlor-services", "parlor-testing"],
        tests_may: &["parlor", "parlor-proto", "parlor-transport"],
    },
    Place { name: "parlor-nat", may: &[], tests_may: &[] },
    Place { name: "xtask", may: &[], tests_may: &[] },
];

/// Crates that users install: they may not contain the simulator or a demo.
const INSTALLED: [&str; 12] = [
    "parlor-proto",
    "parlor-sync",
    "parlor-hub",
    "parlor-turn",
    "parlor-social",
    "parlor-impair",
    "parlor-transport",
    "parlor-client-core",
    "parlor",
    "parlor-server",
    "parlor-services",
    "parlor-terminal",
];

const EVERYTHING: [&str; 14] = [
    "parlor-proto",
    "parlor-sync",
    "parlor-hub",
    "parlor-turn",
    "parlor-social",
    "parlor-impair",
    "parlor-transport",
    "parlor-client-core",
    "parlor",
    "parlor-server",
    "parlor-services",
    "parlor-sim",
    "parlor-demos",
    "parlor-terminal",
];

/// What any crate's tests may use: real sockets, and the simulator.
const ANY_TEST_MAY: [&str; 2] = ["parlor-transport", "parlor-sim"];

/// The crates whose every dependency is pure.
const PURE: [&str; 7] = [
    "parlor-proto",
    "parlor-sync",
    "parlor-hub",
    "parlor-turn",
    "parlor-social",
    "parlor-impair",
    "parlor-client-core",
];
/// External crates that pure code may use: they compute, without I/O.
const PURE_ALLOWED: [&str; 15] = [
    "bytes",
    "chrono",
    "croner",
    "hashbrown",
    "hmac",
    "schemars",
    "serde",
    "serde_json",
    "serde_path_to_error",
    "sha2",
    "skillratings",
    "thiserror",
    "xxhash-rust",
    "rand_chacha",
    "rustc-hash",
];

/// One line of a manifest's dependencies.
struct Dependency<'a> {
    /// The package's name; `package = "…"` can make it differ from the key.
    name: &'a str,
    value: &'a Value,
    section: Section,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Normal,
    Build,
    Dev,
}

/// Each crate of the house depends only on the crates that [`HOUSE`] lists for it.
pub(super) fn one_way(house: &House) -> Vec<Violation> {
    house.manifests.iter().flat_map(one_way_violations).collect()
}

fn one_way_violations(manifest: &Manifest) -> Vec<Violation> {
    let Some(place) = HOUSE.iter().find(|place| place.name == manifest.name()) else {
        let message = format!(
            "`{}` has no place in the house: add it to HOUSE in xtask/src/tidy/deps.rs and to ARCHITECTURE.md",
            manifest.name()
        );
        return vec![Violation::new(&manifest.path, RULE, message)];
    };
    let ours = |dependency: &Dependency<'_>| HOUSE.iter().any(|place| place.name == dependency.name);
    let mut violations = Vec::new();
    for dependency in manifest.dependencies().into_iter().filter(ours) {
        if !place.allows(&dependency) {
            let message = format!(
                "`{}` may not depend on `{}` ({}): dependencies point one way (ARCHITECTURE.md)",
                place.name,
                dependency.name,
                dependency.section.key()
            );
            violations.push(Violation::new(&manifest.path, RULE, message));
        }
    }
    violations
}

impl Place {
    fn allows(&self, dependency: &Dependency<'_>) -> bool {
        let name = dependency.name;
        let for_tests = name == self.name || self.tests_may.contains(&name) || ANY_TEST_MAY.contains(&name);
        self.may.contains(&name) || (dependency.section == Section::Dev && for_tests)
    }
}

/// What pure crates use from outside is on [`PURE_ALLOWED`].
pub(super) fn pure_manifests(house: &House) -> Vec<Violation> {
    house.manifests.iter().flat_map(pure_violations).collect()
}

fn pure_violations(manifest: &Manifest) -> Vec<Violation> {
    let name = manifest.name();
    if !PURE.contains(&name) {
        return Vec::new();
    }
    let counts = |dependency: &Dependency<'_>| dependency.section != Section::Dev;
    let impure =
        manifest.dependencies().into_iter().filter(counts).filter(|dependency| !dependency.is_pure());
    impure
        .map(|dependency| {
            let message = format!(
                "`{name}` is pure and may not depend on `{}`; what it may use is PURE_ALLOWED in \
                 xtask/src/tidy/deps.rs",
                dependency.name
            );
            Violation::new(&manifest.path, "purity", message)
        })
        .collect()
}

/// The crates, as code names them, that the package at `path` uses only for its impure parts.
pub(super) fn impure_dependencies(house: &House, path: &str) -> Vec<String> {
    let manifest = house.manifests.iter().find(|manifest| manifest.path == path);
    let dependencies = manifest.map(Manifest::dependencies).unwrap_or_default();
    let impure = dependencies.iter().filter(|found| found.section == Section::Normal && !found.is_pure());
    impure.map(|dependency| dependency.name.replace('-', "_")).collect()
}

/// Every crate takes its versions and lints from the workspace, so that each stands in one place.
pub(super) fn inherited(house: &House) -> Vec<Violation> {
    house.manifests.iter().flat_map(inherited_violations).collect()
}

fn inherited_violations(manifest: &Manifest) -> Vec<Violation> {
    let stray = manifest.dependencies().into_iter().filter(|dependency| !dependency.is_inherited());
    let mut messages: Vec<String> = stray
        .map(|dependency| {
            format!("`{0}` must come from the workspace: `{0}.workspace = true`", dependency.name)
        })
        .collect();
    let lints = manifest.table.get("lints").and_then(|lints| lints.get("workspace"));
    if lints.and_then(Value::as_bool) != Some(true) {
        messages.push("the workspace's lints do not apply: add `[lints]` with `workspace = true`".to_owned());
    }
    messages.into_iter().map(|message| Violation::new(&manifest.path, RULE, message)).collect()
}

impl Manifest {
    fn name(&self) -> &str {
        let package = self.table.get("package").and_then(|package| package.get("name"));
        package.and_then(Value::as_str).unwrap_or_default()
    }

    /// All dependencies, those for some platforms included.
    fn dependencies(&self) -> Vec<Dependency<'_>> {
        let targets = self.table.get("target").and_then(Value::as_table);
        let of_targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
        let tables = std::iter::once(&self.table).chain(of_targets);
        tables
            .flat_map(|table| Section::ALL.into_iter().flat_map(|section| section.dependencies(table)))
            .collect()
    }
}

impl Section {
    const ALL: [Section; 3] = [Section::Normal, Section::Build, Section::Dev];

    fn key(self) -> &'static str {
        match self {
            Section::Normal => "dependencies",
            Section::Build => "build-dependencies",
            Section::Dev => "dev-dependencies",
        }
    }

    fn dependencies(self, table: &Table) -> impl Iterator<Item = Dependency<'_>> {
        let entries = table.get(self.key()).and_then(Value::as_table).into_iter().flatten();
        entries.map(move |(key, value)| {
            let package = value.get("package").and_then(Value::as_str);
            Dependency { name: package.unwrap_or(key), value, section: self }
        })
    }
}

impl Dependency<'_> {
    fn flag(&self, name: &str) -> Option<bool> {
        self.value.get(name).and_then(Value::as_bool)
    }

    fn is_inherited(&self) -> bool {
        self.flag("workspace") == Some(true)
    }

    fn is_pure(&self) -> bool {
        PURE.contains(&self.name) || PURE_ALLOWED.contains(&self.name)
    }
}

#[cfg(test)]
mod tests;
