//! Benches with tiny settings: checks that the figures add up, not their values.

#![cfg(target_os = "linux")]

use serde_json::Value;
use std::process::{Command, Output, Stdio};

/// Runs a bench. The binary `parlor` stands beside it: the tests of the workspace build both.
fn bench(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parlor-bench"));
    command.args(args).arg("--json").stdin(Stdio::null()).output().expect("the binary was built")
}

/// What a bench that succeeds reports.
fn report(args: &[&str]) -> Value {
    let output = bench(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
}

fn count(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name} is no count in {row}"))
}

fn figure(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} is no figure in {row}"))
}

#[test]
fn the_figures_of_a_relay_add_up() {
    let report = report(&["relay", "--seconds", "0.5", "--rooms", "1", "--quantum", "0,20", "--via", "all"]);
    assert_eq!((report["bench"].as_str(), count(&report, "members_per_room")), (Some("relay"), 8));
    assert_eq!(report["build"], if cfg!(debug_assertions) { "debug" } else { "release" });
    let rows = report["rows"].as_array().expect("a list");
    let told: Vec<_> =
        rows.iter().map(|row| (row["transport"].as_str(), count(row, "flush_quantum_ms"))).collect();
    let expected =
        ["quic", "webtransport", "wss"].map(|transport| [(Some(transport), 0), (Some(transport), 20)]);
    assert_eq!(told, expected.concat());
    for row in rows {
        let (sent, delivered) = (count(row, "messages_sent"), count(row, "messages_delivered"));
        assert!(sent > 0, "{row}");
        assert_eq!(count(row, "messages_expected"), 7 * sent, "{row}");
        // A machine with much else to do may lose datagrams, but none comes from nowhere.
        assert!((1..=7 * sent).contains(&delivered), "{row}");
        assert!(count(row, "latency_us_p50") <= count(row, "latency_us_p99"), "{row}");
        assert!(figure(row, "server_cpu_us_per_delivered_message") > 0.0, "{row}");
        assert!(figure(row, "generator_cpu_percent") > 0.0, "{row}");
        assert!(figure(row, "messages_per_packet") > 0.0, "{row}");
        assert_eq!(row["void"].is_null(), is_valid(row), "{row}");
    }
    // The quantum reaches the server.
    for row in rows.iter().filter(|row| row["flush_quantum_ms"] == 20) {
        assert!(figure(row, "flush_wait_us_mean") > 0.0, "{row}");
    }
}

#[test]
fn a_relay_is_measured_alone_and_beside_idle_sessions_in_turns() {
    let options = ["--idle", "8", "--turns", "2", "--settle", "0.1"];
    let load = ["relay", "--seconds", "0.5", "--rooms", "1", "--quantum", "0", "--via", "quic"];
    let report = report(&[&load[..], &options[..]].concat());
    let rows = report["rows"].as_array().expect("a list");
    let idle: Vec<u64> = rows.iter().map(|row| count(row, "idle_sessions")).collect();
    assert_eq!(idle, [0, 8, 0, 8]);
}

/// What docs/performance.md says of void rows.
fn is_valid(row: &Value) -> bool {
    let delivered = figure(row, "delivered_percent");
    figure(row, "generator_cpu_percent") <= 80.0 && delivered >= 99.9 && count(row, "members_lost") == 0
}

#[test]
fn the_figures_of_capacity_add_up() {
    let report = report(&["capacity", "--rooms", "1", "--seconds", "0.5", "--via", "quic"]);
    assert_eq!((report["bench"].as_str(), count(&report, "entities_per_room")), (Some("capacity"), 24));
    let row = &report["rows"][0];
    assert_eq!((count(row, "rooms"), count(row, "players")), (1, 8));
    let delivered = figure(row, "state_delivered_percent");
    // A machine with much else to do may lose states, but none comes twice.
    assert!(delivered > 0.0 && delivered <= 100.0, "{row}");
    assert!(figure(row, "state_age_ms_p50") <= figure(row, "state_age_ms_p99"), "{row}");
    let share = figure(row, "server_cpu_percent") / 100.0;
    assert!((figure(row, "players_per_core") * share - 8.0).abs() < 0.01, "{row}");
}

#[test]
fn rooms_on_two_shards_are_found_by_their_members() {
    // On a machine with one core there is one shard.
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    let shards = cores.to_string();
    let report =
        report(&["capacity", "--rooms", "2", "--seconds", "0.5", "--via", "quic", "--cores", &shards]);
    assert_eq!(report["shards"], cores);
    let row = &report["rows"][0];
    assert_eq!((count(row, "players"), count(row, "members_lost")), (16, 0));
    assert!(figure(row, "steps_per_second") > 0.0, "{row}");
}

#[test]
fn the_figures_of_turns_add_up() {
    let report = report(&["turns", "--rooms", "6", "--connections", "4", "--seconds", "0.5"]);
    assert_eq!(report["bench"], "turns");
    let row = &report["rows"][0];
    assert_eq!((count(row, "rooms"), count(row, "connections")), (6, 4));
    assert!(count(row, "moves") >= 4, "{row}");
    assert!(count(row, "move_us_p50") <= count(row, "move_us_p99"), "{row}");
    assert!(figure(row, "moves_per_second") > 0.0 && figure(row, "server_cpu_us_per_move") > 0.0, "{row}");
}

#[test]
fn the_shortest_soak_says_of_each_criterion_whether_it_can_be_judged() {
    // A machine with much else to do may miss a criterion, and the command fails then.
    let output = bench(&["soak", "--minutes", "0.02"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let row = &report["rows"][0];
    let verdicts = row["verdicts"].as_array().expect("a list");
    assert_eq!(verdicts.len(), 8, "{row}");
    let missed = verdicts.iter().any(|verdict| verdict["is_met"] == false);
    assert_eq!(output.status.success(), !missed, "{said}");
    assert!(
        verdicts[..3].iter().all(|verdict| verdict["is_met"].is_null()),
        "a second shows no trend: {row}"
    );
    assert!(count(row, "resident_bytes_max") > 0 && count(row, "store_bytes_last") > 0, "{row}");
    assert!(!row["looks"].as_array().expect("a list").is_empty(), "{row}");
}

#[test]
fn a_wrong_option_is_refused_with_its_range() {
    let output = bench(&["relay", "--quantum", "21"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("0..=20"), "{said}");
}
