//! A shared world as people see it: the demo of a thousand walkers, and the log of its room.

use crate::support::Machine;
use serde_json::Value;

fn number(report: &Value, field: &str) -> f64 {
    report[field].as_f64().unwrap_or_else(|| panic!("{field} in {report}"))
}

#[test]
fn of_a_thousand_walkers_a_viewer_is_sent_those_that_are_near() {
    let machine = Machine::new();
    let demo =
        machine.start(&["walkers", "--headless", "--viewers", "2", "--updates", "2000", "--json"]).report();
    let viewers = demo["viewers"].as_array().expect("a list");
    assert_eq!(viewers.len(), 2, "{demo}");
    assert_eq!(number(&demo["host"], "entities"), 1_002.0);
    for viewer in viewers {
        assert!(number(viewer, "updates") >= 2_000.0, "{viewer}");
        assert_eq!(number(viewer, "total"), 1_002.0, "{viewer}");
        // Within 72 m of a walker lie 6% of the area, and walkers stand closer here and there.
        let most = number(viewer, "visible_max");
        assert!((5.0..200.0).contains(&most), "{viewer}");
        assert!(number(viewer, "came") >= most, "{viewer}");
    }
}

#[test]
#[cfg(unix)]
fn a_rooms_log_is_told_packet_by_packet() {
    let machine = Machine::new();
    let logs = machine.path("logs");
    let logs_text = logs.to_str().expect("a plain path");
    let (server, address) = machine.serve(&["--room-log", logs_text]);
    let on = ["--headless", "--walkers", "20", "--server", &address, "--updates", "50"];
    assert!(machine.start(&[&["walkers"], &on[..]].concat()).succeeds());
    server.terminate();
    assert!(server.succeeds());
    let log = std::fs::read_dir(&logs).expect("the folder").next().expect("a log").expect("its name").path();
    let log = log.to_str().expect("a plain path");

    let dump = |args: &[&str]| -> Vec<Value> {
        let output = machine.run(&[&["dump", log, "--json"], args].concat());
        let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
    };
    let all = dump(&[]);
    assert!(all.iter().all(|record| record.get("unreadable").is_none()));
    let entities = |records: &[Value], way: &str| -> Vec<Value> {
        let packets = records.iter().filter(|it| it["way"] == way && it["channel"] == "state");
        packets.flat_map(|packet| packet["state"]["entries"].as_array().expect("a list").clone()).collect()
    };
    let (up, down) = (entities(&all, "up"), entities(&all, "down"));
    assert!(up.len() >= 100 && !down.is_empty() && down.len() < up.len(), "{} {}", up.len(), down.len());
    let is_walker = |entry: &&Value| entry["components"].get("walker").is_some();
    let walker = up.iter().find(is_walker).expect("the host sends walkers");
    let position = walker["components"]["walker"]["position"]["value"].as_array().expect("three numbers");
    assert_eq!(position.len(), 3, "{walker}");

    let name = walker["entity"].as_str().expect("a name");
    let of_one = dump(&["--entity", name]);
    assert!(entities(&of_one, "up").iter().all(|entry| entry["entity"] == *name));
    let to_one = dump(&["--member", "1", "--from", "0.5"]);
    let is_meant = |record: &Value| record["member"].is_null() || record["member"] == 1;
    assert!(to_one.iter().all(is_meant) && to_one.len() < all.len());
    let text = machine.run(&["dump", log, "--entity", name]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(&format!("entity {name}")) && text.contains("position ["), "{text}");
    assert!(text.contains("fields, rotation"), "it ends with sums: {text}");
}
