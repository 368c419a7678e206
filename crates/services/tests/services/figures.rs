//! Metrics for the operator's monitoring, and readiness for load balancers.

use crate::hall::Hall;
use core::net::{Ipv4Addr, SocketAddr};
use parlor_proto::wire::handshake::Hello;
use parlor_services::store::Role;
use parlor_testing::{Answer, TestServer, creating, exchange, within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn get(addr: SocketAddr, path: &str) -> Answer {
    exchange(addr, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await
}

/// The figures of a server, by name and labels.
async fn figure(server: &TestServer, name: &str) -> f64 {
    figure_at(server.server.metrics_addr().unwrap(), name).await
}

pub(crate) async fn figure_at(addr: SocketAddr, name: &str) -> f64 {
    let answer = get(addr, "/metrics").await;
    assert_eq!(answer.status(), 200);
    let line = answer.body().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {}", answer.body())).parse().unwrap()
}

async fn hall() -> Hall {
    Hall::changed(|setup| {
        setup.config.metrics = Some((Ipv4Addr::LOCALHOST, 0).into());
        setup.config.apps = Some(vec!["tanks".into(), "chess".into()]);
    })
    .await
}

#[tokio::test]
async fn figures_say_what_the_server_has_and_did() {
    let hall = hall().await;
    let server = &hall.server;
    let (mut host, mut guest, code) = server.room().await;
    server.assert_goes_on(&mut host, &mut guest, code).await;
    let mut other = server.quic(Hello { app: "nonsense".into(), ..creating(None, None, 4) }).await;
    other.refusal().await;
    hall.good("GET", "/admin/live", &hall.operator(Role::Server), json!({})).await;
    hall.bad("GET", "/admin/live/ZZZZ", &hall.operator(Role::Server), json!({})).await;
    hall.player("ada").await;
    for (name, expected) in [
        ("parlor_rooms{app=\"tanks\",kind=\"player_hosted\"}", 1.0),
        ("parlor_members{app=\"tanks\"}", 2.0),
        ("parlor_members_away", 0.0),
        ("parlor_links{link=\"quic\"}", 1.0),
        ("parlor_links{link=\"websocket\"}", 1.0),
        ("parlor_messages_relayed_total", 2.0),
        ("parlor_hellos_turned_away_total{answer=\"refused\"}", 1.0),
        ("parlor_operations_total{operation=\"admin.live_rooms\",class=\"2xx\"}", 1.0),
        ("parlor_operations_total{operation=\"admin.live_room\",class=\"4xx\"}", 1.0),
        ("parlor_http_requests_total{route=\"operations\",class=\"4xx\"}", 1.0),
        ("parlor_operation_latency_seconds_count", 3.0),
        ("parlor_store_up", 1.0),
        ("parlor_webhooks_waiting", 0.0),
    ] {
        assert_eq!(figure(server, name).await, expected, "{name}");
    }
    for name in [
        "parlor_packets_total{direction=\"in\"}",
        "parlor_packet_bytes_total{direction=\"out\"}",
        "parlor_flush_waits_total",
        "parlor_store_commits_total",
        "parlor_store_commit_seconds_total",
        "parlor_port_connections{port=\"quic\"}",
        "process_start_time_seconds",
    ] {
        assert!(figure(server, name).await > 0.0, "{name}");
    }
    // Who loses its connection keeps its seat.
    drop(guest);
    within(async { while figure(server, "parlor_members_away").await < 1.0 {} }).await;
    assert_eq!(server.get("/metrics").await.status(), 404, "players have no way to them");
    let addr = server.server.metrics_addr().unwrap();
    assert!(get(addr, "/metrics").await.head().contains("application/openmetrics-text"));
    assert_eq!((get(addr, "/v1/account").await.status(), get(addr, "/health").await.status()), (404, 200));
}

#[tokio::test]
async fn whoever_holds_the_port_for_figures_keeps_out_no_player() {
    let hall = hall().await;
    let addr = hall.server.server.metrics_addr().unwrap();
    let mut idle = Vec::new();
    // Whoever opens connections and says nothing keeps out those who come after it, not the players.
    for _ in 0..40 {
        idle.push(TcpStream::connect(addr).await.unwrap());
    }
    assert_eq!(hall.server.get("/health").await.status(), 200);
    drop(idle);
    within(async {
        loop {
            let mut stream = TcpStream::connect(addr).await.unwrap();
            let asked = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
            let mut answer = String::new();
            if asked.is_ok() && stream.read_to_string(&mut answer).await.is_ok() && answer.contains("200 OK")
            {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn threat_30_a_store_that_stands_still_is_named_and_counts_for_whoever_asks() {
    let hall = hall().await;
    let ready = |path: &'static str| async {
        let answer = hall.server.get(path).await;
        (answer.status(), answer.json())
    };
    let (status, body) = ready("/ready?store").await;
    assert_eq!((status, &body["ready"], &body["store"]), (200, &json!(true), &json!("ok")));
    let (ada, _) = hall.player("ada").await;
    let holder = rusqlite::Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(hall.ask("POST", "/rooms", Some(&ada), "{}").await.status(), 503);
    let (status, body) = ready("/ready").await;
    assert_eq!(
        (status, &body["ready"], &body["store"]),
        (200, &json!(true), &json!("unavailable")),
        "{body}"
    );
    let (status, body) = ready("/ready?store").await;
    assert_eq!((status, &body["ready"]), (503, &json!(false)), "{body}");
    assert!(body["why"].as_str().unwrap().contains("the store is unavailable"), "{body}");
    assert_eq!(figure(&hall.server, "parlor_store_up").await, 0.0);
    holder.execute_batch("ROLLBACK").unwrap();
    within(async { while hall.ask("POST", "/rooms", Some(&ada), "{}").await.status() == 503 {} }).await;
    assert_eq!(ready("/ready?store").await.0, 200);
}
