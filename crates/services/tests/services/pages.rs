//! Web pages at a server on the player's own machine: strangers' pages, and a game's own.

use crate::hall::Hall;
use core::net::{Ipv4Addr, SocketAddr};
use parlor_testing::{exchange, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const STRANGER: &str = "Origin: https://evil.example";
const GAME: &str = "https://game.example";
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: parlor";

async fn hall() -> Hall {
    Hall::changed(|setup| {
        setup.config.web_origins = vec![format!("{GAME}/")];
        setup.config.public_host = Some("play.example.com".into());
        setup.config.metrics = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    })
    .await
}

#[tokio::test]
async fn threat_53_a_page_of_a_stranger_is_refused_at_every_entry_by_every_way() {
    let hall = hall().await;
    let server = &hall.server;
    let entries = [
        "GET /",
        "GET /stats",
        "GET /health",
        "GET /ready",
        "GET /rooms/K7QM",
        "GET /join/K7QM",
        "GET /ws",
        "GET /v1/openapi.json",
        "GET /v1/socket",
        "POST /v1/auth/device",
        "OPTIONS /v1/auth/device",
        "GET /nothing",
    ];
    let image = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image";
    let ways = [STRANGER, "Origin: null", "Origin: http://localhost:5173", image];
    for line in entries {
        for way in ways {
            for rest in ["Content-Length: 0", UPGRADE, "Access-Control-Request-Method: POST"] {
                let answer = server.ask_as_page(line, &format!("{way}\r\n{rest}")).await;
                assert_eq!(answer.status(), 403, "{line} {way}: {answer:?}");
                assert!(answer.body().contains("--web-origins"), "{answer:?}");
                assert!(!answer.head().contains("access-control-allow-origin"), "{answer:?}");
            }
        }
        // A name that was made to lead here: for the browser the page is the server's own.
        for rest in ["Sec-Fetch-Site: same-origin", "Origin: http://evil.example:7700", UPGRADE, "X-Y: z"] {
            let head = format!("{line} HTTP/1.1\r\nHost: evil.example:7700\r\n{rest}");
            let answer = server.ask(&format!("{head}\r\n\r\n")).await;
            assert_eq!(answer.status(), 421, "{line} {rest}: {answer:?}");
            assert!(answer.body().contains("--public-host"), "{answer:?}");
        }
    }
    let metrics = server.server.metrics_addr().unwrap();
    for (headers, status) in [
        ("Host: localhost:9770", 200),
        ("Host: evil.example:9770", 421),
        ("Host: localhost:9770\r\nOrigin: https://evil.example", 403),
    ] {
        let request = format!("GET /metrics HTTP/1.1\r\n{headers}\r\n\r\n");
        assert_eq!(exchange(metrics, &request).await.status(), status);
    }
}

#[tokio::test]
async fn a_games_page_may_use_the_services_once_it_is_named() {
    let hall = hall().await;
    let origin = format!("Origin: {GAME}");
    let preflight = format!(
        "{origin}\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type"
    );
    let answer = hall.server.ask_as_page("OPTIONS /v1/auth/device", &preflight).await;
    assert_eq!(answer.status(), 204);
    let head = answer.head();
    for line in [
        "access-control-allow-origin: https://game.example\r\n",
        "access-control-allow-methods: get, post, put, patch, delete\r\n",
        "access-control-allow-headers: authorization, content-type\r\n",
        "vary: origin",
    ] {
        assert!(head.contains(line), "{line} {head}");
    }
    let body = r#"{"app":"tanks","device":"the device of a page"}"#;
    let post = format!("{origin}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let answer = hall.server.ask_as_page("POST /v1/auth/device", &post).await;
    assert_eq!(answer.status(), 200, "{answer:?}");
    assert!(answer.head().contains("access-control-allow-origin: https://game.example\r\n"), "{answer:?}");
    // The JSON socket too, the server's own page, and a proxy of this machine that passes the public name on.
    let mut stream = TcpStream::connect(hall.server.addr()).await.unwrap();
    let upgrade =
        format!("GET /v1/socket HTTP/1.1\r\nHost: play.example.com\r\n{origin}\r\n{UPGRADE}\r\n\r\n");
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    within(stream.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 101");
    assert_eq!(hall.server.ask_as_page("GET /health", "Origin: http://localhost:7700").await.status(), 200);
}
