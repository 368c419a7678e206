//! Answers to HTTP.

use parlor_proto::wire::handshake::Hello;
use parlor_testing::{TestServer, creating, joining};
use parlor_transport::discovery::Invite;

#[tokio::test]
async fn a_room_is_described() {
    let server =
        TestServer::start_with(|config, _| config.public_host = Some("play.example.com".into())).await;
    let mut host = server.quic(creating(None, None, 4)).await;
    let code = host.welcome().await.code;
    let fingerprint = server.server.fingerprint().unwrap();
    let port = server.server.local_port();

    let answer = server.get(&format!("/rooms/{}", code.as_str().to_lowercase())).await;
    assert_eq!(answer.status(), 200);
    let invite = server.server.invite(code, None);
    assert_eq!(
        answer.json(),
        serde_json::json!({
            "code": code.as_str(), "app": "tanks", "players": 1, "max_players": 4,
            "server": { "port": port, "quic": true, "websocket": "/ws" },
            "fingerprint": fingerprint.to_string(), "invite": invite.link("parlor"),
        })
    );
    let read: Invite = answer.json()["invite"].as_str().unwrap().parse().unwrap();
    let address = read.server.clone().unwrap();
    assert_eq!((address.host.as_str(), address.port), ("play.example.com", port));
    assert_eq!((address.fingerprint, &read.secret), (Some(fingerprint), &None));
    let told = server.server.invite(code, Some("sesame"));
    assert_eq!(told, Invite { secret: Some("sesame".into()), ..read });

    let mut guest = server.quic(joining(code, None)).await;
    guest.welcome().await;
    assert_eq!(server.get(&format!("/rooms/{code}")).await.json()["players"], 2);
}

#[tokio::test]
async fn threat_53_stats_are_answered_to_this_machine_and_not_through_a_proxy() {
    let server =
        TestServer::start_with(|config, _| config.public_host = Some("play.example.com".into())).await;
    let ask = async |lines: &str| {
        let request = format!("GET /stats HTTP/1.1\r\n{lines}Connection: close\r\n\r\n");
        server.ask(&request).await.status()
    };
    assert_eq!(ask("Host: localhost\r\n").await, 200);
    // A proxy of this machine, by the name that it serves or by what it says of who asks.
    assert_eq!(ask("Host: play.example.com\r\n").await, 404);
    for header in ["X-Forwarded-For: 192.0.2.7", "Forwarded: for=192.0.2.7", "X-Real-IP: 192.0.2.7"] {
        assert_eq!(ask(&format!("Host: localhost\r\n{header}\r\n")).await, 404, "{header}");
    }
}

#[tokio::test]
async fn errors_have_one_shape() {
    let server = TestServer::start().await;
    for (path, status, code) in [
        ("/rooms/NOROOM", 404, "no_such_room"),
        ("/rooms/K7", 400, "bad_code"),
        ("/rooms/%3Cscript%3E", 400, "bad_code"),
        ("/rooms/%ff%ff%ff%ff", 400, "bad_code"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.json()["error"]["code"], code, "{path}");
        assert!(!answer.json()["error"]["sentence"].as_str().unwrap().is_empty());
    }
    assert_eq!(server.get("/nonsense").await.status(), 404);
    assert_eq!(server.get("/rooms/").await.status(), 404);
    assert_eq!(
        server.ask("POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").await.status(),
        405
    );
}

#[tokio::test]
async fn the_front_says_what_this_is() {
    let server = TestServer::start().await;
    let front = server.get("/").await;
    assert_eq!(front.status(), 200);
    assert!(front.head().contains("text/plain"));
    assert!(front.body().contains(env!("CARGO_PKG_VERSION")), "{front:?}");
    assert!(front.body().contains(&server.server.fingerprint().unwrap().to_string()));
    let health = server.get("/health").await;
    assert_eq!((health.status(), health.body()), (200, "ok\n"));
}

#[tokio::test]
async fn a_join_page_shows_the_room_and_no_markup_of_others() {
    let server = TestServer::start().await;
    let nasty = "<script>'\"&";
    let mut host = server.quic(Hello { app: nasty.into(), ..creating(None, None, 4) }).await;
    let code = host.welcome().await.code;
    let page = server.get(&format!("/join/{code}")).await;
    assert_eq!(page.status(), 200);
    assert!(page.head().contains("content-security-policy: default-src 'none'"), "{page:?}");
    assert!(page.body().contains(code.as_str()) && page.body().contains("1 of 4 players"));
    assert!(page.body().contains("&lt;script&gt;&#39;&quot;&amp;"), "{page:?}");
    assert!(!page.body().contains("<script"));
    let link = server.server.invite(code, None).link("parlor").replace('&', "&amp;");
    assert!(page.body().contains(&format!("href=\"{link}\"")), "{page:?}");
    assert_eq!(server.get("/join/NOROOM").await.status(), 404);
    let bad = server.get("/join/%3Cscript%3E").await;
    assert_eq!(bad.status(), 400);
    assert!(!bad.body().contains("<script"), "{bad:?}");
}

#[tokio::test]
async fn an_upgrade_that_is_not_parlors_is_told_why() {
    let server = TestServer::start().await;
    let upgrade = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (request, status, word) in [
        (format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\n\r\n"), 400, "Sec-WebSocket-Protocol: parlor"),
        (
            format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat\r\n\r\n"),
            400,
            "Sec-WebSocket-Protocol: parlor",
        ),
        (format!("{upgrade}Sec-WebSocket-Version: 13\r\n\r\n"), 400, "Sec-WebSocket-Key"),
        (format!("{upgrade}{key}Sec-WebSocket-Version: 8\r\n\r\n"), 426, "version 13"),
        ("GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 426, "WebSocket"),
    ] {
        let answer = server.ask(&request).await;
        assert_eq!(answer.status(), status, "{request}");
        assert!(answer.body().contains(word), "{answer:?}");
    }
}

#[tokio::test]
async fn a_server_without_services_has_nothing_of_theirs() {
    let server = TestServer::start().await;
    assert_eq!(server.get("/v1/openapi.json").await.status(), 404);
}
