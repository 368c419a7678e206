//! What the doctor says of a machine and of a server that are well, and of each that is not.

use crate::support::Machine;
use parlor_transport::Identity;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;

/// A look, and whether it found no problem.
struct Look {
    is_well: bool,
    report: Value,
}

/// Looks with these arguments. Only the authorities in `roots` are trusted, if it is a file.
fn look_with(machine: &Machine, roots: Option<&str>, args: &[&str]) -> Look {
    let mut command = machine.command(&[&["doctor", "--json"], args].concat());
    if let Some(roots) = roots {
        command.env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR");
    }
    let output =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("the binary was built");
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}, {}", String::from_utf8_lossy(&output.stderr)));
    Look { is_well: output.status.success(), report }
}

fn look(machine: &Machine, args: &[&str]) -> Look {
    look_with(machine, None, args)
}

impl Look {
    fn checks(&self) -> impl Iterator<Item = &Value> {
        self.report["checks"].as_array().expect("a list").iter()
    }

    fn verdicts(&self, check: &str) -> Vec<&str> {
        let of = self.checks().filter(|found| found["check"] == check);
        of.map(|found| found["verdict"].as_str().expect("a word")).collect()
    }

    /// That a check found a problem, which these words say, and what to do in these words.
    #[track_caller]
    fn has_problem(&self, check: &str, found: &str, todo: &str) {
        self.has("problem", check, found, todo);
        assert!(!self.is_well, "{:#}", self.report);
    }

    #[track_caller]
    fn has(&self, verdict: &str, check: &str, found: &str, todo: &str) {
        let says =
            |entry: &Value, key: &str, word: &str| entry[key].as_str().unwrap_or_default().contains(word);
        let is_it = |entry: &&Value| {
            entry["check"] == check
                && entry["verdict"] == verdict
                && says(entry, "found", found)
                && says(entry, "todo", todo)
        };
        assert!(self.checks().any(|entry| is_it(&entry)), "{verdict} {check} {found:?}: {:#}", self.report);
    }
}

fn path(machine: &Machine, name: &str) -> String {
    machine.path(name).to_str().expect("a plain path").to_owned()
}

/// Writes a certificate and its key for a name, and gives their paths.
fn certified(machine: &Machine, name: &str, identity: &Identity) -> [String; 2] {
    let files = [path(machine, &format!("{name}.pem")), path(machine, &format!("{name}-key.pem"))];
    fs::write(&files[0], identity.to_pem().certificates).expect("a file");
    fs::write(&files[1], identity.to_pem().key).expect("a file");
    fs::set_permissions(&files[1], fs::Permissions::from_mode(0o600)).expect("it is ours");
    files
}

fn for_name(name: &str) -> Identity {
    Identity::generate(&[name]).expect("a name")
}

fn port_of(address: &str) -> &str {
    address.rsplit(':').next().expect("a port")
}

#[test]
fn a_machine_that_can_have_a_server_is_well_and_stays_as_it_is() {
    let machine = Machine::new();
    let [certificate, key] = certified(&machine, "chain", &for_name("localhost"));
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
    let (data, port) = (path(&machine, "data"), free.expect("a port").port());
    let config = path(&machine, "server.toml");
    fs::write(&config, format!("port = {port}\npublic-host = \"localhost\"\ndata = {data:?}\n"))
        .expect("a file");
    let args = ["--config", &config, "--certificate", &certificate, "--key", &key];
    let look = look_with(&machine, Some(&certificate), &args);
    assert!(look.is_well, "{:#}", look.report);
    look.has("ok", "settings", "", "");
    look.has("ok", "ports", &format!("{port}/tcp, {port}/udp"), "");
    look.has("ok", "certificate", "for localhost, trusted here", "");
    look.has("ok", "public host", "localhost is", "");
    look.has("ok", "store", "the first start makes it", "");
    look.has("ok", "data", "can be made", "");
    for check in ["open files", "udp buffers", "cores", "memory", "disk", "clock"] {
        assert_eq!(look.verdicts(check).len(), 1, "{check}: {:#}", look.report);
    }
    assert!(!machine.path("data").exists(), "a look makes nothing");
}

#[test]
fn a_server_that_runs_is_looked_at_as_players_reach_it() {
    let machine = Machine::new();
    let data = path(&machine, "data");
    let (mut server, address) = machine.serve(&["--data", &data]);
    let port = port_of(&address);
    let look_here = || look(&machine, &["--port", port, "--data", &data]);
    let found = look_here();
    assert!(found.is_well, "{:#}", found.report);
    found.has("ok", "ports", "a Parlor server has", "");
    found.has("ok", "store", "layout", "");
    found.has("ok", "certificate", "its fingerprint is that of the address", "");
    found.has("ok", "ready", "its store answers", "");
    found.has("ok", "version", env!("CARGO_PKG_VERSION"), "");
    found.has("ok", "websocket", "", "");
    found.has("ok", &format!("udp {port}"), "round trip", "");
    // The store is looked at as another server finds it.
    look(&machine, &["--port", "0", "--data", &data]).has_problem("store", "in use", "Stop that one");
    // As a container's health check.
    let quick = || look(&machine, &["--port", port, "--quick"]);
    assert!(quick().is_well);
    quick().has("ok", "ready", "", "");
    server.terminate();
    assert!(server.ends_well());
    quick().has_problem(&format!("tcp {port}"), "no server is running there", "parlor doctor");
    let closed = look_here();
    assert!(closed.is_well, "{:#}", closed.report);
    closed.has("ok", "store", "layout", "");
    // A log that a killed server left is merged by the next start, and not by a look.
    let (mut server, _) = machine.serve(&["--data", &data]);
    server.kill();
    let log = fs::metadata(machine.path("data/parlor.db-wal")).expect("a log").len();
    look_here().has("ok", "store", "the next start merges it", "");
    assert_eq!(fs::metadata(machine.path("data/parlor.db-wal")).expect("a log").len(), log);
}

#[test]
fn each_wrong_setting_is_named_with_what_to_do() {
    let machine = Machine::new();
    let [certificate, key] = certified(&machine, "chain", &for_name("play.example.com"));
    let [_, other_key] = certified(&machine, "other", &for_name("play.example.com"));
    let [expired, expired_key] = certified(
        &machine,
        "expired",
        &Identity::generate_web(&["localhost"], 1_600_000_000).expect("a name"),
    );
    let missing = path(&machine, "missing.pem");
    fs::write(machine.path("file"), "").expect("a file");
    let below_a_file = path(&machine, "file/data");
    let base = ["--port", "0", "--public-host", "localhost"];
    let with = |args: &[&str]| look_with(&machine, Some(&certificate), &[&base, args].concat());

    let found = with(&["--certificate", &missing, "--key", &key]);
    found.has_problem("certificate", "missing.pem", "fullchain.pem");
    let found = with(&["--certificate", &certificate, "--key", &other_key]);
    found.has_problem("certificate", "does not belong", "privkey.pem");
    let found = with(&["--certificate", &key, "--key", &key]);
    found.has_problem("certificate", "no certificate in it", "fullchain.pem");
    let found = with(&["--certificate", &certificate, "--key", &key]);
    found.has_problem("certificate", "it is for play.example.com, and not for localhost", "--public-host");
    let found = with(&["--certificate", &expired, "--key", &expired_key]);
    found.has_problem("certificate", "expired", "certbot renew");
    let found = with(&["--certificate", &certificate]);
    found.has_problem("settings", "no key", "docs/serve.md");
    let found = with(&["--data", &below_a_file]);
    found.has_problem("store", "cannot be opened", "user");
    let found = with(&["--data", "/proc/parlor"]);
    found.has_problem("data", "cannot be written to", "install -d");
    let found = with(&["--room-log", &below_a_file]);
    found.has_problem("room log", "cannot be written to", "install -d");
    let found = with(&["--store", "redis://localhost"]);
    found.has_problem("store", "is no store", "docs/store.md");
    // Nothing listens on the discard port.
    let found = with(&["--store", "postgres://parlor@127.0.0.1:9/parlor"]);
    found.has_problem("store", "PostgreSQL", "psql");
    let found = with(&["--shards", "3000"]);
    found.has("warning", "cores", "3000 shards", "--shards");
    let found = with(&["--max-connections", "9000000000"]);
    found.has("warning", "open files", "9000000000", "LimitNOFILE");

    // A private authority, and a key that everybody can read.
    let [private, private_key] = certified(&machine, "private", &for_name("localhost"));
    fs::set_permissions(&private_key, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let found = with(&["--certificate", &private, "--key", &private_key]);
    found.has("warning", "certificate", "not trusted", "fullchain.pem");
    found.has("warning", "key", "644", "chmod o=");
    assert!(found.is_well, "{:#}", found.report);

    fs::create_dir(machine.path("data")).expect("a folder");
    fs::write(machine.path("data/parlor.db"), "no database at all, but long enough to be one?")
        .expect("a file");
    with(&["--data", &path(&machine, "data")]).has_problem("store", "damaged", "");

    let config = path(&machine, "server.toml");
    fs::write(&config, "prot = 7700\n").expect("a file");
    with(&["--config", &config]).has_problem("settings", "prot", "docs/serve.md");
}

#[test]
fn a_port_of_another_program_is_named_with_how_to_find_it() {
    let machine = Machine::new();
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = tcp.local_addr().expect("it is bound").port().to_string();
    let args = ["--listen", "127.0.0.1", "--port", &port];
    look(&machine, &args).has_problem(&format!("tcp {port}"), "another program", "ss -ltnp");
    drop(tcp);
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = udp.local_addr().expect("it is bound").port().to_string();
    let args = ["--listen", "127.0.0.1", "--port", &port];
    look(&machine, &args).has_problem(&format!("udp {port}"), "another program", "ss -lunp");
    let elsewhere = ["--listen", "192.0.2.1", "--port", "7700"];
    look(&machine, &elsewhere).has_problem("tcp 7700", "192.0.2.1", "ip address");
}

/// Passes TCP on to a server, as a firewall that drops UDP does. Gives its port.
fn without_udp(server: String) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Write);
    };
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(there) = TcpStream::connect(&server) else { return };
            let back = (there.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
            thread::spawn(move || copy(client, there));
            thread::spawn(move || copy(back.0, back.1));
        }
    });
    port
}

#[test]
fn a_server_whose_udp_is_blocked_is_told_apart_from_one_that_is_away() {
    let machine = Machine::new();
    let (_server, address) = machine.serve(&[]);
    let port = without_udp(address).to_string();
    let found = look(&machine, &["--server", &format!("127.0.0.1:{port}")]);
    found.has_problem(
        &format!("udp {port}"),
        "does not answer while TCP does",
        &format!("ufw allow {port}/udp"),
    );
    found.has("ok", &format!("tcp {port}"), "", "");
    found.has("ok", "ready", "", "");
    found.has("ok", "websocket", "", "");
    assert_eq!(found.report["problems"], 1, "{:#}", found.report);
}

#[test]
fn a_server_is_trusted_as_its_players_trust_it() {
    let machine = Machine::new();
    let [certificate, key] = certified(&machine, "chain", &for_name("localhost"));
    let (_server, address) = machine.serve(&["--certificate", &certificate, "--key", &key]);
    let port = port_of(&address);
    let by_name = format!("localhost:{port}");
    let found = look(&machine, &["--server", &by_name, "--ca", &certificate]);
    assert!(found.is_well, "{:#}", found.report);
    found.has("ok", "certificate", "for localhost, trusted", "");
    let found = look(&machine, &["--server", &address, "--ca", &certificate]);
    found.has_problem("certificate", "it is for localhost, and not for 127.0.0.1", "Name the server");
    found.has_problem("certificate", "it is for localhost", "development server");
    let [other, _] = certified(&machine, "other", &for_name("localhost"));
    let found = look(&machine, &["--server", &by_name, "--ca", &other]);
    found.has_problem("certificate", "not trusted", "#");
    let wrong = format!("{address}#{}", for_name("localhost").fingerprint());
    look(&machine, &["--server", &wrong]).has_problem("certificate", "another certificate", "Compare");
    look(&machine, &["--server", &address]).has("not_looked_at", "certificate", "loopback", "");
    look(&machine, &["--server", "server.invalid"]).has_problem("name", "server.invalid", "record");
}

#[test]
fn a_person_reads_a_line_for_each_check_and_below_it_what_to_do() {
    let machine = Machine::new();
    let output =
        machine.run(&["doctor", "--port", "0", "--certificate", "missing.pem", "--key", "missing.pem"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("problem  certificate  ")).expect("a line for it");
    assert!(lines[at + 1].trim_start().starts_with("-> --certificate takes"), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("ok       settings     ")), "{text}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), complaint.trim()), (Some(1), "parlor: 1 check found a problem"));
}
