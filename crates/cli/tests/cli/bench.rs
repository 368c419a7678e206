//! Benches at tiny settings: that the figures add up, not what they are.

use crate::support::Machine;
use serde_json::Value;

fn count(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name} is no count in {row}"))
}

fn figure(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} is no figure in {row}"))
}

#[test]
fn the_figures_of_a_relay_add_up() {
    let machine = Machine::new();
    let args = ["bench", "relay", "--json", "--seconds", "0.5", "--rooms", "1", "--quantum", "0,20"];
    let report = machine.start(&args).report();
    assert_eq!((report["bench"].as_str(), count(&report, "members_per_room")), (Some("relay"), 8));
    assert_eq!(report["build"], if cfg!(debug_assertions) { "debug" } else { "release" });
    let rows = report["rows"].as_array().expect("a list");
    let told: Vec<_> =
        rows.iter().map(|row| (row["transport"].as_str(), count(row, "flush_quantum_ms"))).collect();
    assert_eq!(told, [(Some("quic"), 0), (Some("quic"), 20), (Some("wss"), 0), (Some("wss"), 20)]);
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

/// What docs/performance.md says of void rows.
fn is_valid(row: &Value) -> bool {
    let delivered = figure(row, "delivered_percent");
    figure(row, "generator_cpu_percent") <= 80.0 && delivered >= 99.9 && count(row, "members_lost") == 0
}

#[test]
fn the_figures_of_turns_add_up() {
    let machine = Machine::new();
    let args = ["bench", "turns", "--json", "--rooms", "6", "--connections", "4", "--seconds", "0.5"];
    let report = machine.start(&args).report();
    assert_eq!(report["bench"], "turns");
    let row = &report["rows"][0];
    assert_eq!((count(row, "rooms"), count(row, "connections")), (6, 4));
    assert!(count(row, "moves") >= 4, "{row}");
    assert!(count(row, "move_us_p50") <= count(row, "move_us_p99"), "{row}");
    assert!(figure(row, "moves_per_second") > 0.0 && figure(row, "server_cpu_us_per_move") > 0.0, "{row}");
}
