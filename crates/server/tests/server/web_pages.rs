//! Games that browsers play from the server.

use parlor_proto::wire::handshake::Hello;
use parlor_server::{WebFile, WebGame, WebPages};
use parlor_testing::{Answer, TestServer, creating};

/// What is compressed does not matter to the server: here it is text, so that answers can be read.
const FILES: &[WebFile] = &[
    WebFile { path: "/", content_type: "text/html; charset=utf-8", gzip: b"the page" },
    WebFile { path: "/arena", content_type: "text/html; charset=utf-8", gzip: b"the arena" },
    WebFile { path: "/admin", content_type: "text/html; charset=utf-8", gzip: b"for operators" },
    WebFile { path: "/draughts", content_type: "text/html; charset=utf-8", gzip: b"the board" },
    WebFile { path: "/assets/play.0a1b2c3d.js", content_type: "text/javascript", gzip: b"the script" },
];

async fn start() -> TestServer {
    let magpies = WebGame { app: "magpies", path: "/" };
    let arena = WebGame { app: "arena", path: "/arena" };
    let games = vec![magpies, arena];
    TestServer::start_with(|config, _| {
        config.web_pages = WebPages { games, others: &["/admin"], files: FILES }
    })
    .await
}

/// Asks as a browser whose user opens an address.
async fn navigate(server: &TestServer, path: &str, coding: &str) -> Answer {
    let headers = format!(
        "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Encoding: {coding}\r\n\
         Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document"
    );
    server.ask_as_page(&format!("GET {path}"), &headers).await
}

#[tokio::test]
async fn a_browser_gets_the_page_and_a_program_the_text() {
    let server = start().await;
    let page = navigate(&server, "/", "gzip, deflate, br").await;
    assert_eq!((page.status(), page.body()), (200, "the page"));
    for line in [
        "content-encoding: gzip",
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval';",
        "connect-src 'self' ws: wss: https:;",
        "frame-ancestors 'self'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-cache",
        "vary: accept, accept-encoding",
        "connection: close",
    ] {
        assert!(page.head().contains(line), "{line}: {page:?}");
    }
    let text = server.get("/").await;
    assert!(text.head().contains("text/plain"), "{text:?}");
    assert!(
        text.body().contains("In a browser, / plays magpies.\nIn a browser, /arena plays arena.\n"),
        "{text:?}"
    );
    let none = navigate(&TestServer::start().await, "/", "gzip").await;
    assert!(none.head().contains("text/plain") && !none.body().contains("In a browser"), "{none:?}");
}

#[tokio::test]
async fn each_game_has_its_page_and_no_other_file_is_one() {
    let server = start().await;
    let page = navigate(&server, "/arena", "gzip").await;
    assert_eq!((page.status(), page.body()), (200, "the arena"));
    assert!(page.head().contains("script-src 'self' 'wasm-unsafe-eval'"), "{page:?}");
    let told = server.get("/web.json").await;
    let games = r#""games":[{"app":"magpies","path":"/"},{"app":"arena","path":"/arena"}]"#;
    assert!(told.body().contains(games), "{told:?}");
    assert!(!told.body().contains("/admin"), "it is no game");
    let page = navigate(&server, "/admin", "gzip").await;
    assert_eq!((page.status(), page.body()), (200, "for operators"));
    assert!(page.head().contains("content-security-policy: default-src 'none'"), "{page:?}");
    // The board's file is there, but not its game: this server does not serve the app.
    for path in ["/draughts", "/arena/", "/arena/x", "/nothing"] {
        assert_eq!(navigate(&server, path, "gzip").await.status(), 404, "{path}");
    }
    assert_eq!(
        server
            .ask_as_page("POST /arena", "Accept-Encoding: gzip\r\nSec-Fetch-Site: same-origin")
            .await
            .status(),
        404
    );
}

#[tokio::test]
async fn its_assets_are_kept_for_good_and_nothing_else_is_found() {
    let server = start().await;
    let headers =
        "Accept: */*\r\nAccept-Encoding: gzip\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Dest: script";
    let script = server.ask_as_page("GET /assets/play.0a1b2c3d.js", headers).await;
    assert_eq!((script.status(), script.body()), (200, "the script"));
    for line in
        ["cache-control: public, max-age=31536000, immutable", "content-type: text/javascript", "nosniff"]
    {
        assert!(script.head().contains(line), "{line}: {script:?}");
    }
    assert_eq!(server.ask_as_page("GET /assets/play.js", headers).await.status(), 404);
    assert_eq!(server.ask_as_page("GET /assets/", headers).await.status(), 404);
    // A page of another site may not run it.
    let strange = headers.replace("same-origin", "cross-site");
    assert_eq!(server.ask_as_page("GET /assets/play.0a1b2c3d.js", &strange).await.status(), 403);
}

#[tokio::test]
async fn who_takes_no_gzip_is_told() {
    let server = start().await;
    for coding in ["identity", "gzip;q=0", "br"] {
        let refused = navigate(&server, "/", coding).await;
        assert_eq!(refused.status(), 406, "{coding}");
        assert!(refused.body().contains("curl --compressed"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_join_link_leads_into_the_game_of_its_room() {
    let server = start().await;
    let mut rooms = Vec::new();
    for app in ["magpies", "tanks", "arena"] {
        let mut host = server.quic(Hello { app: app.into(), ..creating(None, None, 4) }).await;
        let code = host.welcome().await.code;
        rooms.push((host, code));
    }
    let [magpies, tanks, arena] = [rooms[0].1, rooms[1].1, rooms[2].1];
    let page = navigate(&server, &format!("/join/{magpies}"), "gzip").await;
    assert_eq!((page.status(), page.body()), (200, "the page"));
    assert!(page.head().contains("script-src 'self' 'wasm-unsafe-eval'"), "{page:?}");
    let page = navigate(&server, &format!("/join/{arena}"), "gzip").await;
    assert_eq!((page.status(), page.body()), (200, "the arena"));
    let other = navigate(&server, &format!("/join/{tanks}"), "gzip").await;
    assert!(other.body().contains("A room of <b>tanks</b>"), "{other:?}");
    let program = server.get(&format!("/join/{magpies}")).await;
    assert!(program.body().contains("A room of <b>magpies</b>"), "{program:?}");
    assert_eq!(navigate(&server, "/join/NOROOM", "gzip").await.status(), 404);
}
