//! Connections that stay open for the next request to the services.

use crate::crowd::tcp_from;
use crate::hall::Hall;
use core::net::Ipv4Addr;
use core::time::Duration;
use parlor_testing::within;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

type Connection = BufReader<TcpStream>;

/// How long a server waits for a head.
const HEAD_TIME: Duration = Duration::from_secs(1);
/// A longer wait than any head may take, and a shorter one than an exchange may.
const LONGER: Duration = Duration::from_secs(5);

/// A server with services that lets two connections stay.
async fn hall() -> Hall {
    Hall::changed(|setup| setup.config.connections_max = 8).await
}

async fn connect(hall: &Hall) -> Connection {
    BufReader::new(TcpStream::connect(hall.server.addr()).await.unwrap())
}

/// Asks, and gives the answer's head in lower case once the body is there too.
async fn ask(connection: &mut Connection, line: &str) -> String {
    within(async {
        let request = format!("{line}\r\nHost: localhost\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(connection.read_line(&mut head).await.unwrap() > 0, "it hung up after {head:?}");
        }
        let head = head.to_ascii_lowercase();
        let length = head.split_once("content-length: ").map(|(_, rest)| rest.split_once("\r\n").unwrap().0);
        let mut body = vec![0; length.expect("answers say how long they are").parse().unwrap()];
        connection.read_exact(&mut body).await.unwrap();
        head
    })
    .await
}

fn closes(head: &str) -> bool {
    head.contains("connection: close\r\n")
}

async fn is_closed(connection: &mut Connection) {
    assert_eq!(within(connection.read(&mut [0])).await.unwrap_or(0), 0, "nothing comes unasked");
}

const SERVICES: &str = "GET /v1/openapi.json HTTP/1.1";

#[tokio::test]
async fn a_connection_to_the_services_stays_for_the_next_request_and_no_other_does() {
    let hall = hall().await;
    let mut connection = connect(&hall).await;
    for _ in 0..5 {
        assert!(!closes(&ask(&mut connection, SERVICES).await));
    }
    let refused = ask(&mut connection, "GET /v1/account HTTP/1.1").await;
    assert!(refused.contains(" 401 ") && !closes(&refused), "{refused}");
    // What leads elsewhere is answered there too, as the last.
    assert!(closes(&ask(&mut connection, "GET /health HTTP/1.1").await));
    is_closed(&mut connection).await;
    let mut old = connect(&hall).await;
    let head = ask(&mut old, "GET /v1/openapi.json HTTP/1.0").await;
    assert!(!head.contains("keep-alive"), "{head}");
    is_closed(&mut old).await;
}

#[tokio::test]
async fn threat_19_a_connection_that_stays_is_hung_up_on_while_it_is_idle() {
    let hall = Hall::changed(|setup| setup.config.handshake_time = HEAD_TIME).await;
    let mut connection = connect(&hall).await;
    assert!(!closes(&ask(&mut connection, SERVICES).await));
    let closed = tokio::time::timeout(LONGER, is_closed(&mut connection)).await;
    assert!(closed.is_ok(), "it is idle for longer than a head may take");
}

#[tokio::test]
async fn threat_19_no_more_than_a_quarter_of_all_connections_stay() {
    let hall = hall().await;
    let (mut first, mut second, mut third) =
        (connect(&hall).await, connect(&hall).await, connect(&hall).await);
    let mut stayed = 0;
    for connection in [&mut first, &mut second, &mut third] {
        stayed += usize::from(!closes(&ask(connection, SERVICES).await));
    }
    assert_eq!(stayed, 2, "of eight");
    // Whoever goes leaves its place to others.
    drop((first, second, third));
    within(async {
        loop {
            let mut next = connect(&hall).await;
            if !closes(&ask(&mut next, SERVICES).await) {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn threat_19_one_address_has_its_share_of_connections_that_stay() {
    let hall = Hall::changed(|setup| {
        // 64 may stay, and of one address 16.
        (setup.config.limits_local, setup.config.connections_max) = (true, 256);
        (setup.config.handshakes_per_second, setup.config.handshakes_per_second_all) = (10_000, 10_000);
    })
    .await;
    let mut all = Vec::new();
    for (address, connections, stay) in [(1, 30, 16), (2, 10, 10)] {
        let from = Ipv4Addr::new(127, 0, 9 + address, 1);
        let mut stayed = 0;
        for _ in 0..connections {
            let mut connection = BufReader::new(tcp_from(from, hall.server.addr()).await);
            stayed += usize::from(!closes(&ask(&mut connection, SERVICES).await));
            all.push(connection);
        }
        assert_eq!(stayed, stay, "of {connections} of {from}");
    }
}
