//! Web pages at a server on the player's own machine: strangers' pages, and a game's own.

use futures_util::future::join_all;
use parlor_server::{Config, Server, StartError};
use parlor_testing::{TestServer, creating, local};
use parlor_transport::discovery::Registry;

/// As many guesses as a page of a stranger made in six seconds, where nothing kept it from them.
const GUESSES: usize = 13_559;
/// How many of them it has under way at once.
const AT_ONCE: usize = 64;
const STRANGER: &str = "Origin: https://evil.example";
const GAME: &str = "https://game.example";

#[tokio::test]
async fn threat_53_a_page_of_a_stranger_guesses_nothing_however_often_it_asks() {
    let server = TestServer::start().await;
    let mut host = server.quic(creating(None, None, 4)).await;
    let code = host.welcome().await.code;
    let guessing = (0..AT_ONCE).map(|first| {
        let server = &server;
        async move {
            for number in (first..GUESSES).step_by(AT_ONCE) {
                // The right code is among them.
                let guess = if number % 100 == 0 { code.to_string() } else { format!("NO{number}NE") };
                let way = ["/rooms", "/join"][number % 2];
                let answer = server.ask_as_page(&format!("GET {way}/{guess}"), STRANGER).await;
                assert_eq!(answer.status(), 403, "{answer:?}");
            }
        }
    });
    join_all(guessing).await;
    // Programs of this machine did not notice.
    assert_eq!(server.get(&format!("/rooms/{code}")).await.json()["players"], 1);
}

#[tokio::test]
async fn threat_53_what_an_allowed_page_asks_on_this_machine_has_the_budgets_of_an_address() {
    let server = TestServer::start_with(|config, _| {
        config.web_origins = vec![GAME.into()];
        config.handshakes_per_second = 100;
    })
    .await;
    let mut host = server.quic(creating(None, None, 4)).await;
    let code = host.welcome().await.code;
    let origin = format!("Origin: {GAME}");
    let (mut looked_up, mut refused) = (0, 0);
    for number in 10..200 {
        match server.ask_as_page(&format!("GET /rooms/NO{number}NE"), &origin).await.status() {
            404 => looked_up += 1,
            status => {
                assert_eq!(status, 429);
                refused += 1;
            }
        }
    }
    assert!((20..30).contains(&looked_up) && refused > 100, "{looked_up} looked up, {refused} refused");
    // A page that a person opened from elsewhere has the same budget, and so has a hello over its WebSocket.
    let followed = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document";
    assert_eq!(server.ask_as_page(&format!("GET /join/{code}"), followed).await.status(), 429);
    // Programs have none.
    for number in 10..60 {
        assert_eq!(server.get(&format!("/rooms/NO{number}NE")).await.status(), 404);
    }
    assert_eq!(server.get(&format!("/rooms/{code}")).await.json()["players"], 1);
}

#[tokio::test]
async fn threat_53_pages_on_this_machine_begin_no_more_connections_than_an_address_may() {
    let server = TestServer::start_with(|config, _| config.handshakes_per_second = 1).await;
    let own = "Origin: http://localhost:7700";
    let asked = join_all((0..200).map(|_| server.ask_as_page("GET /health", own))).await;
    let served = asked.iter().filter(|answer| answer.status() == 200).count();
    assert!((5..100).contains(&served), "{served} of 200");
    assert!(asked.iter().all(|answer| matches!(answer.status(), 200 | 429)));
    assert_eq!(server.get("/health").await.status(), 200);
}

#[tokio::test]
async fn an_origin_that_no_browser_sends_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        registry: Some(Registry::at(folder.path())),
        web_origins: vec!["https://game.example/play".into()],
        ..local()
    };
    match Server::start(config).await {
        Err(error @ StartError::WebOrigin { .. }) => {
            assert!(error.to_string().contains("https://game.example/play"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}
