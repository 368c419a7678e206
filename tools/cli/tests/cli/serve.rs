//! A server as its operator runs it: its start, its log, and its end.

use crate::support::{Machine, Running};
use parlor_testing::series_in;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// A server that logs, and its address.
fn serve(machine: &Machine, args: &[&str]) -> (Running, String) {
    let server = machine.start(&[&["serve", "--port", "0"], args].concat());
    let port = server.says("Parlor ").rsplit(' ').next().expect("the port ends the line").to_owned();
    (server, format!("127.0.0.1:{port}"))
}

#[test]
fn a_server_says_where_everything_is_and_ends_well_when_it_is_told_to() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
    assert!(machine.run(&["token", "--new-key", &path("operator")]).status.success());
    let (key, data) = (path("operator.pub"), path("data"));
    let args = ["--data", &data, "--operator-key", &key, "--metrics", "127.0.0.1:0", "--log", "info"];
    let (mut server, address) = serve(&machine, &args);
    for (start, word) in [
        ("  health   ", "/ready"),
        ("  metrics  ", "http://127.0.0.1:"),
        ("  services ", "/v1"),
        ("  store    ", "parlor.db"),
        ("  operator ", "operator.pub"),
        ("  backups  ", "backups"),
    ] {
        assert!(server.says(start).contains(word), "{start}");
    }
    let host = machine.start(&["play", "--server", &address, "--headless", "--seconds", "300", "--json"]);
    while !server.complains("").contains("member joined") {}
    // As a service manager and a container stop it.
    server.terminate();
    assert!(server.ends_well(), "SIGTERM is no failure");
    assert!(host.report()["closed"].to_string().contains("server_shutdown"), "the room is told");
}

#[test]
fn threat_33_no_name_of_a_player_forges_a_line_of_the_log() {
    let machine = Machine::new();
    // What a terminal obeys and is no control character to Unicode's letters, and what ends texts of JSON.
    let name = "ada\", \"level\":\"ERROR\\n\u{202e}\u{2028}\u{200b}";
    for format in ["json", "text"] {
        let (mut server, address) = serve(&machine, &["--log-format", format, "--log", "info"]);
        let play = ["play", "--server", &address, "--headless", "--updates", "2", "--json", "--name", name];
        assert!(machine.run(&play).status.success());
        // A name with control characters is refused, and the log says so in one line too.
        let bad =
            ["play", "--server", &address, "--headless", "--seconds", "20", "--name", "eve\n\u{1b}[2JERROR"];
        assert!(!machine.run(&bad).status.success());
        server.terminate();
        assert!(server.ends_well());
        let lines = server.rest_of_complaints();
        assert!(lines.iter().any(|line| line.contains("member joined")), "{lines:#?}");
        for line in &lines {
            let is_plain = |letter: char| !letter.is_control() && !"\u{202e}\u{2028}".contains(letter);
            if format == "json" {
                let entry: Value =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert!(entry["level"] == "INFO" || entry["level"] == "WARN", "{line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            } else {
                assert!(line.chars().all(is_plain), "{line:?}");
                assert!(
                    line.contains(" INFO ") || line.contains(" WARN "),
                    "each line begins with its own time: {line:?}"
                );
            }
        }
    }
}

/// The head of what is answered to a browser that opens an address.
fn opened(page: &str) -> String {
    let (place, path) =
        page.strip_prefix("http://localhost:").and_then(|rest| rest.split_once('/')).expect("here");
    let port: u16 = place.parse().expect("a port");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: localhost:{port}\r\nAccept: text/html\r\nAccept-Encoding: gzip\r\n\
         Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers and closes");
    let text = String::from_utf8_lossy(&answer);
    text.split_once("\r\n\r\n").expect("a head").0.to_owned()
}

#[test]
fn the_printed_addresses_open_the_page_in_a_browser() {
    let is_page = |head: &str| head.starts_with("HTTP/1.1 200 ") && head.contains("wasm-unsafe-eval");
    let machine = Machine::new();
    let (server, _) = serve(&machine, &[]);
    let page = server.says("  browser  play magpies in a browser: ");
    assert!(is_page(&opened(&page)), "{}", opened(&page));
    let (other, address) = serve(&machine, &["--app", "tanks"]);
    let port = address.rsplit(':').next().expect("a port");
    let text = opened(&format!("http://localhost:{port}/"));
    assert!(text.contains("text/plain"), "a server of other games has no page for this one: {text}");
    drop(other);

    let host = machine.start(&["play", "--headless", "--seconds", "300"]);
    let code = host.complains("room ");
    let page = host.complains("play in a browser: ");
    assert!(page.ends_with(&format!("/join/{code}")), "{page}");
    assert!(is_page(&opened(&page)), "{}", opened(&page));
}

/// The series of a server's metrics, and the names of their labels.
fn series(metrics: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.split("\",").filter_map(|label| Some(label.split_once("=\"")?.0.to_owned()));
        all.entry(name.to_owned()).or_default().extend(labels);
    }
    all
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_what_a_server_has() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
    assert!(machine.run(&["token", "--new-key", &path("operator")]).status.success());
    let (key, data) = (path("operator.pub"), path("data"));
    let args = ["--data", &data, "--operator-key", &key, "--metrics", "127.0.0.1:0", "--log", "info"];
    let (server, address) = serve(&machine, &args);
    let metrics = server.says("  metrics  ").trim().to_owned();
    // Some figures appear with their first count.
    let _host = machine.start(&["play", "--server", &address, "--headless", "--seconds", "300", "--json"]);
    while !server.complains("").contains("member joined") {}
    let status =
        ["admin", "--server", &address, "--key", &path("operator"), "--app", "magpies", "--json", "status"];
    let said = machine.run(&status);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let authority = metrics.trim_start_matches("http://").split('/').next().expect("it is an address");
    let mut stream = TcpStream::connect(authority).expect("it listens");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("it has a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let there = series(body);

    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    let dashboard = std::fs::read_to_string(format!("{deploy}/grafana.json")).expect("it is there");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("it is JSON");
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().expect("it has panels") {
        for target in panel["targets"].as_array().expect("it asks for something") {
            let (query, legend) =
                (target["expr"].as_str().expect("a query"), target["legendFormat"].as_str());
            let found: Vec<&str> = series_in(query).collect();
            assert!(!found.is_empty(), "{query}");
            let legend = legend.expect("it has a legend");
            let named = legend.split("{{").skip(1).map(|rest| rest.split("}}").next().expect("it ends"));
            for label in named.filter(|label| *label != "instance") {
                let has = there.get(found[0]).is_some_and(|labels| labels.contains(label));
                assert!(has, "{} has no label {label:?}: {there:?}", found[0]);
            }
            for name in found {
                asked += 1;
                assert!(there.contains_key(name), "there is no {name} for the dashboard");
            }
        }
    }
    let alerts = std::fs::read_to_string(format!("{deploy}/alerts.yml")).expect("it is there");
    for name in alerts.lines().filter(|line| line.contains("expr:")).flat_map(series_in) {
        asked += 1;
        assert!(there.contains_key(name), "there is no {name} for the alerts");
    }
    assert!(asked > 40, "{asked}");
}

/// The names of variables of the server in a text, and those that it says are the server's in its help.
fn variables_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("PARLOR_")).collect()
}

#[test]
fn the_files_for_compose_and_kubernetes_name_variables_that_a_server_reads() {
    let help = Machine::new().run(&["serve", "--help"]);
    let help = String::from_utf8(help.stdout).expect("it is text");
    let known = variables_in(&help);
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    for (file, least) in [("compose.yaml", 6), ("kubernetes/statefulset.yaml", 9)] {
        let text = std::fs::read_to_string(format!("{deploy}/{file}")).expect("it is there");
        let named = variables_in(&text);
        assert!(named.len() >= least, "{file}: {named:?}");
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}, which no option of a server reads");
    }
}
