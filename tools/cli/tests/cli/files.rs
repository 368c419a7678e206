//! A server whose limit of open files is below its limit of connections.

use crate::support::Machine;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn a_server_without_files_says_so_at_its_start_and_then_once_a_second_and_goes_on() {
    let machine = Machine::new();
    let server = machine.start_with_files(64, &["serve", "--port", "0", "--log", "warn"]);
    let port = server.says("Parlor ").rsplit(' ').next().expect("the port ends the line").to_owned();
    let address = format!("127.0.0.1:{port}");
    let warned = server.complains("");
    assert!(warned.contains("ulimit -n") && warned.contains("limit=64"), "{warned}");

    // They wait in the system's queue where the server does not take them.
    let connections: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(&address).expect("the port is open")).collect();
    let first = server.complains("");
    assert!(first.contains("could not be accepted") && first.contains("unsaid=0"), "{first}");
    // It was tried again all the time, and said once a second.
    let second = server.complains("");
    let unsaid = second.split_once("unsaid=").and_then(|(_, rest)| rest.split(' ').next());
    let unsaid: u64 = unsaid.and_then(|unsaid| unsaid.parse().ok()).unwrap_or_else(|| panic!("{second}"));
    // Tried every 50 ms, and not in a circle without a pause, which would be thousands.
    assert!((1..=40).contains(&unsaid), "{second}");

    drop(connections);
    let mut stream = TcpStream::connect(&address).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is no zero");
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
