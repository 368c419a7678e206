//! The most expensive requests of strangers beside a room on the same shard.
//!
//! The allocator counts for the whole process, so this file has one test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_server::Config;
use parlor_services::OnlineConfig;
use parlor_testing::{TestServer, local, within};
use parlor_transport::discovery::Registry;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What one address asked for in a second.
const REQUESTS: usize = 160;
const CONNECTIONS: usize = 8;
const LISTS: usize = 64;
/// More than the document has, and its head.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A connection that stays, with a buffer of its own, so that reading allocates nothing.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(server: &TestServer) -> Self {
        let stream = TcpStream::connect(server.addr()).await.unwrap();
        Connection { stream, buffer: vec![0; ANSWER_BYTES_MAX] }
    }

    async fn ask(&mut self, request: &str) {
        self.stream.write_all(request.as_bytes()).await.unwrap();
    }

    /// The body of the next answer.
    async fn body(&mut self) -> &[u8] {
        let (mut read, mut whole) = (0, None);
        while whole.is_none_or(|(_, end)| read < end) {
            let more = within(self.stream.read(&mut self.buffer[read..])).await.unwrap();
            assert!(more > 0, "it hung up after {read} bytes");
            read += more;
            whole = whole.or_else(|| body_within(&self.buffer[..read]));
        }
        let (begin, end) = whole.unwrap();
        assert_eq!(read, end, "nothing comes unasked");
        assert!(
            self.buffer.starts_with(b"HTTP/1.1 200 "),
            "{}",
            String::from_utf8_lossy(&self.buffer[..begin])
        );
        &self.buffer[begin..end]
    }
}

/// Where the body begins and ends, once the head is there.
fn body_within(answer: &[u8]) -> Option<(usize, usize)> {
    let begin = answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = core::str::from_utf8(&answer[..begin]).unwrap();
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-length:"));
    let length: usize = line.unwrap().split_once(':').unwrap().1.trim().parse().unwrap();
    Some((begin, begin + length))
}

async fn start() -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::at(folder.path().join("registry"));
    let store = folder.path().join("parlor.db");
    let config = Config { registry: Some(registry.clone()), ..local() };
    let server = parlor_services::start(config, OnlineConfig::new(store.to_str().unwrap())).await.unwrap();
    TestServer { server, registry, folder }
}

#[tokio::test]
async fn threat_50_the_dearest_requests_make_nothing_on_a_rooms_thread_and_the_room_goes_on() {
    let server = start().await;
    let (mut host, mut guest, code) = server.room().await;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(&server).await);
    }
    let request = "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    connections[0].ask(request).await;
    let document = connections[0].body().await.to_vec();
    let counted = Region::new(ALLOCATOR);
    for _ in 0..REQUESTS / CONNECTIONS {
        for connection in &mut connections {
            connection.ask(request).await;
        }
        server.assert_goes_on(&mut host, &mut guest, code).await;
        for connection in &mut connections {
            assert!(connection.body().await == document, "each is answered with the same document");
        }
    }
    let made = counted.change().bytes_allocated;
    assert!(made < REQUESTS * document.len() / 4, "{made} bytes for {REQUESTS} times {}", document.len());

    let sign_in = json!({ "app": "tanks", "device": "the device of a stranger" }).to_string();
    let head = "POST /v1/auth/device HTTP/1.1\r\nHost: localhost\r\nContent-Length:";
    connections[0].ask(&format!("{head} {}\r\n\r\n{sign_in}", sign_in.len())).await;
    let account: Value = serde_json::from_slice(connections[0].body().await).unwrap();
    let token = account["access_token"].as_str().unwrap();
    let list = format!(
        "GET /v1/matches?label=none&limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    for _ in 0..LISTS / CONNECTIONS {
        for connection in &mut connections {
            connection.ask(&list).await;
        }
        server.assert_goes_on(&mut host, &mut guest, code).await;
        for connection in &mut connections {
            let found: Value = serde_json::from_slice(connection.body().await).unwrap();
            assert_eq!(found["matches"], json!([]));
        }
    }
}
