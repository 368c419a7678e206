//! Manifests that must be refused, and ones that must not.

use std::path::PathBuf;

use super::*;

fn manifest(name: &str, rest: &str) -> Manifest {
    let text = format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{rest}");
    Manifest { path: format!("crates/{name}/Cargo.toml"), table: text.parse().unwrap() }
}

fn house(workspace: &str, manifest: Manifest) -> House {
    House {
        root: PathBuf::new(),
        workspace: workspace.parse().unwrap(),
        manifests: vec![manifest],
        sources: Vec::new(),
        lengths: Vec::new(),
        documents: Vec::new(),
    }
}

/// What the three rules say about one manifest.
fn messages(name: &str, rest: &str) -> Vec<String> {
    let workspace =
        "[workspace.dependencies]\nparlor = { path = \"crates/client\", default-features = false }";
    let house = house(workspace, manifest(name, rest));
    let rules = [one_way, pure_manifests, inherited];
    rules.iter().flat_map(|rule| rule(&house)).map(|violation| violation.to_string()).collect()
}

/// `messages` for a manifest whose `section` inherits one dependency.
fn with(name: &str, section: &str, dependency: &str) -> Vec<String> {
    messages(name, &format!("[{section}]\n{dependency}.workspace = true"))
}

#[test]
fn arrows_that_point_back_are_refused() {
    for (name, section, dependency) in [
        ("parlor-proto", "dependencies", "parlor-sync"),
        ("parlor-hub", "dependencies", "parlor-transport"),
        ("parlor-sync", "build-dependencies", "parlor-hub"),
        ("parlor-transport", "target.'cfg(unix)'.dependencies", "parlor-sync"),
        ("parlor-server", "dependencies", "parlor"),
        ("parlor-server", "dependencies", "parlor-turn"),
        ("parlor-server", "dependencies", "parlor-services"),
        ("parlor-server", "dev-dependencies", "parlor-services"),
        ("parlor-terminal", "dependencies", "parlor-services"),
        ("parlor", "dependencies", "parlor-hub"),
        ("parlor-sim", "dependencies", "parlor-transport"),
        ("parlor-sim", "dependencies", "parlor"),
        ("parlor-client-core", "dependencies", "parlor-transport"),
        ("parlor-hub", "dev-dependencies", "parlor-server"),
        ("xtask", "dependencies", "parlor-proto"),
        ("parlor-impair", "dependencies", "parlor-sync"),
    ] {
        let found = with(name, section, dependency);
        assert!(found.iter().any(|found| found.contains("one way")), "{name} -> {dependency} in {section}");
    }
}

#[test]
fn arrows_that_point_forward_are_not() {
    for (name, section, dependency) in [
        ("parlor-sync", "dependencies", "parlor-proto"),
        ("parlor-server", "dependencies", "parlor-hub"),
        ("parlor-server", "dev-dependencies", "parlor-testing"),
        ("parlor-services", "dependencies", "parlor-server"),
        ("parlor-services", "dependencies", "parlor-turn"),
        ("parlor", "dev-dependencies", "parlor-server"),
        ("parlor-hub", "dev-dependencies", "parlor-sim"),
        ("parlor-proto", "dev-dependencies", "proptest"),
        ("parlor-cli", "dependencies", "parlor-server"),
        ("parlor-sim", "dependencies", "parlor-client-core"),
        ("parlor-transport", "dependencies", "parlor-impair"),
        ("parlor-transport", "dependencies", "quinn"),
    ] {
        assert_eq!(
            with(name, section, dependency),
            Vec::<String>::new(),
            "{name} -> {dependency} in {section}"
        );
    }
}

#[test]
fn a_renamed_dependency_is_seen_through() {
    let renamed = "[dependencies]\nx = { workspace = true, package = \"parlor-hub\" }";
    assert!(messages("parlor-proto", renamed).iter().any(|found| found.contains("parlor-hub")));
}

#[test]
fn a_crate_without_a_place_is_refused() {
    assert!(messages("parlor-extra", "")[0].contains("ARCHITECTURE.md"));
}

#[test]
fn pure_crates_use_only_what_is_pure() {
    assert!(with("parlor-hub", "dependencies", "tokio")[0].contains("is pure"));
    assert!(with("parlor-client-core", "dependencies", "tokio")[0].contains("is pure"));
    assert_eq!(with("parlor-hub", "dependencies", "bytes"), Vec::<String>::new());
    assert_eq!(with("parlor-hub", "dev-dependencies", "tokio"), Vec::<String>::new());
    let optional = "[dependencies]\ntokio = { workspace = true, optional = true }";
    assert!(messages("parlor-sync", optional)[0].contains("is pure"));
}

#[test]
fn versions_and_lints_come_from_the_workspace() {
    assert!(
        messages("parlor-cli", "[dependencies]\nanyhow = \"1\"")[0].contains("`anyhow.workspace = true`")
    );
    let bare = Manifest { path: String::new(), table: "[package]\nname = \"xtask\"".parse().unwrap() };
    assert!(inherited_violations(&bare)[0].to_string().contains("lints"));
}
