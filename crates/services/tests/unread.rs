//! Memory for connections that request much and read nothing: a whole server on real sockets.
//!
//! The allocator counts for the whole process, so this file has one test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use futures_util::SinkExt;
use parlor_server::{Config, Server};
use parlor_services::{OnlineConfig, OnlineMemory};
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Only a hang lasts this long.
const HANG: Duration = Duration::from_secs(60);
const MEMORY: OnlineMemory =
    OnlineMemory { unread_each: 6 << 20, unread_all: 64 << 20, turn_rooms: 64 << 20, boards: 64 << 20 };
const CONNECTIONS: usize = 50;
/// More than the system's own buffers take of a connection.
const ASKED: usize = 40;

const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A connection from an address of this machine, which takes little at once.
async fn connect(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

async fn ask(
    from: Ipv4Addr,
    to: SocketAddr,
    method: &str,
    path: &str,
    token: &str,
    body: &Value,
) -> (u16, String) {
    let asking = async {
        let mut stream = connect(from, to).await;
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n"
        );
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    };
    timeout(HANG, asking).await.unwrap()
}

async fn sign_in(to: SocketAddr, name: &str) -> String {
    let input = json!({ "app": "tanks", "device": format!("the device of {name:>10}") });
    let body = input.to_string();
    let mut stream = connect(ATTACKER, to).await;
    let head = format!(
        "POST /v1/auth/device HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}",
        body.len()
    );
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    answer["access_token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn figure(metrics: SocketAddr, name: &str) -> usize {
    let (_, text) = ask(ATTACKER, metrics, "GET", "/metrics", "", &Value::Null).await;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

async fn server(folder: &std::path::Path) -> Server {
    let store = folder.join("parlor.db").to_str().unwrap().to_owned();
    let config = Config {
        listen: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        limits_local: true,
        handshakes_per_second: 10_000,
        handshakes_per_second_all: 10_000,
        metrics: Some((Ipv4Addr::LOCALHOST, 0).into()),
        // All of 127.0.0.0/8 is reached.
        ..Config::default()
    };
    let online = OnlineConfig { memory: MEMORY, ..OnlineConfig::new(store) };
    parlor_services::start(config, online).await.unwrap()
}

#[tokio::test]
async fn threat_44_fifty_connections_that_ask_for_much_and_read_nothing_are_held_to_their_budget() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path()).await;
    let (to, metrics) = ((Ipv4Addr::LOCALHOST, server.local_port()).into(), server.metrics_addr().unwrap());
    let mut token = String::new();
    for number in 0..10 {
        token = sign_in(to, &format!("{number}")).await;
        for _ in 0..2 {
            let about = json!({ "about": "x".repeat(15 * 1024) });
            let input = json!({ "config": { "auto_start": false }, "metadata": about });
            assert_eq!(ask(HONEST, to, "POST", "/v1/rooms", &token, &input).await.0, 200);
        }
    }
    let list = || ask(HONEST, to, "GET", "/v1/rooms?limit=1000", &token, &Value::Null);
    assert_eq!(list().await.0, 200);
    ALLOCATOR.reset_peak_usage();
    let calm = ALLOCATOR.current_usage();

    let (mut sockets, mut requests) = (Vec::new(), Vec::new());
    for number in 0..CONNECTIONS {
        let mut stream = connect(ATTACKER, to).await;
        if number % 2 == 0 {
            let (mut socket, _) = client_async("ws://localhost/v1/socket", stream).await.unwrap();
            for id in 0..ASKED {
                let asked =
                    json!({ "id": id, "op": "turn.list", "input": { "limit": 1000 }, "token": token });
                socket.feed(Message::Text(asked.to_string().into())).await.unwrap();
            }
            socket.flush().await.unwrap();
            sockets.push(socket);
        } else {
            let request = format!(
                "GET /v1/rooms?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
            );
            stream.write_all(request.repeat(ASKED).as_bytes()).await.unwrap();
            requests.push(stream);
        }
    }
    // Until what they may hold is held.
    let is_full = async { while figure(metrics, "parlor_held_refused_total{what=\"unread\"}").await == 0 {} };
    timeout(HANG, is_full).await.unwrap();
    // Others are served meanwhile, with whole answers.
    for _ in 0..5 {
        let (status, body) = list().await;
        assert!(status == 200 && body.len() > 250_000, "{status}: {} bytes", body.len());
    }
    let most = figure(metrics, "parlor_unread_bytes_most").await;
    let peak = ALLOCATOR.peak_usage().saturating_sub(calm);
    println!("{most} bytes were held for answers at most, {peak} more than before in all");
    assert!(most > MEMORY.unread_each / 2, "the attack was one: {most}");
    assert!(most <= MEMORY.unread_each + (1 << 20), "{most} bytes");
    assert!(peak <= 64 << 20, "{peak} bytes");

    drop((sockets, requests));
    let is_given_back = async { while figure(metrics, "parlor_held_bytes{what=\"unread\"}").await > 0 {} };
    timeout(HANG, is_given_back).await.unwrap();
    let (status, _) = ask(ATTACKER, to, "GET", "/v1/rooms?limit=1000", &token, &Value::Null).await;
    assert_eq!(status, 200, "who held too much may ask again");
    server.shutdown().await;
}
