//! The binary `arena` as users run it, without a screen.

use serde_json::Value;
use std::process::{Command, Output};
use tempfile::TempDir;

fn arena(folder: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arena"));
    command.args(args).current_dir(folder).env("PARLOR_REGISTRY", folder.path().join("registry"));
    for name in ["PARLOR_SERVER", "PARLOR_SECRET", "PARLOR_CA", "PARLOR_IMPAIR"] {
        command.env_remove(name);
    }
    command.output().expect("the binary was built")
}

#[test]
fn bots_play_and_their_room_is_recorded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = arena(&folder, &["--headless", "--steps", "120", "--json", "--record", "arena.prec"]);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let players = report["players"].as_array().expect("a list");
    assert_eq!(players.len(), 2, "{report}");
    let steps = |of: &Value| of["steps"].as_u64().expect("a number");
    assert!(players.iter().all(|player| steps(player) >= 120) && steps(&report["host"]) >= 60, "{report}");
    assert!(folder.path().join("arena.prec").metadata().expect("it was recorded").len() > 1_000);
}

#[test]
fn wrong_input_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = |args: &[&str], words: &[&str]| {
        let output = arena(&folder, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{args:?} succeeded");
        assert!(words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    };
    refused(&["K7QM", "--headless"], &["no room K7QM", "parlor serve"]);
    refused(&["--join", "K7QM", "--headless"], &["no room K7QM", "parlor serve"]);
    refused(&["K7QM", "--drones", "2"], &["--drones"]);
    refused(&["--headless", "--bots", "8"], &["0..=7"]);
    refused(&["--steps", "3"], &["--headless"]);
    refused(&["--headless", "--record", "no/such/folder/a.prec", "--steps", "1"], &["no/such/folder/a.prec"]);
}
