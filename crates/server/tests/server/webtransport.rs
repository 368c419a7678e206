//! WebTransport at a whole server: admission, certificates, and `/web.json`.

use parlor_server::{Config, IdentitySource};
use parlor_testing::{TestServer, within};
use parlor_transport::quic::webtransport::close;
use parlor_transport::{CloseCode, Identity};

const GAME: &str = "https://game.example";
const STRANGER: &str = "https://evil.example";

/// The rule for pages is that of WebSockets: own pages, named ones, and programs.
#[tokio::test]
async fn threat_53_a_page_of_another_origin_gets_no_webtransport_unless_it_is_named() {
    let named = |config: &mut Config, _: &_| config.web_origins = vec![GAME.into()];
    for (server, game) in [(TestServer::start().await, 403), (TestServer::start_with(named).await, 200)] {
        let own = format!("http://{}", server.addr());
        for (origin, status) in [(Some(STRANGER), 403), (Some("null"), 403), (Some(GAME), game)] {
            assert_eq!(server.web(origin).await.unwrap().status, status, "{origin:?}");
        }
        assert_eq!(server.web(Some(&own)).await.unwrap().status, 200);
        assert_eq!(server.web(None).await.unwrap().status, 200, "a program");
    }
}

/// `/web.json` has the hashes of the certificate for pages. Native clients still get the identity.
#[tokio::test]
async fn pages_are_told_how_to_connect_and_are_shown_the_certificate_of_the_hash() {
    let server = TestServer::start().await;
    let told = server.get("/web.json").await;
    let json = told.json();
    let hashes = server.server.web_hashes();
    assert_eq!(json["webtransport"]["port"], server.server.local_port());
    assert_eq!(json["webtransport"]["path"], "/wt");
    assert_eq!(json["webtransport"]["hashes"].as_array().unwrap().len(), 2);
    assert_eq!((&json["websocket"], &json["shards"]), (&"/ws".into(), &1.into()));
    assert_eq!(json["protocol"], serde_json::json!([1, 1]));
    assert!(json["services"].is_null(), "it has no store");
    assert!(!hashes.contains(&server.server.fingerprint().unwrap()));
    assert_eq!(server.web(None).await.unwrap().status, 200);
    assert!(server.quic_link().await.is_ok(), "others are shown the identity");
    // A folder keeps both over a restart.
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |config: &mut Config, _: &_| {
        config.identity = IdentitySource::Development { folder: Some(folder.path().to_owned()) };
    };
    let first = TestServer::start_with(in_folder).await.server.web_hashes();
    assert_eq!(TestServer::start_with(in_folder).await.server.web_hashes(), first);
}

/// An authority's certificate is for pages too, and needs no hash.
#[tokio::test]
async fn with_a_certificate_of_files_there_are_no_hashes() {
    let folder = tempfile::tempdir().unwrap();
    let pem = Identity::generate(&["localhost"]).unwrap().to_pem();
    let [certificate, key] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, pem.certificates).unwrap();
    std::fs::write(&key, pem.key).unwrap();
    let files = |config: &mut Config, _: &_| config.identity = IdentitySource::Files { certificate, key };
    let server = TestServer::start_with(files).await;
    assert!(server.server.web_hashes().is_empty());
    let told = server.get("/web.json").await;
    assert_eq!(told.json()["webtransport"]["hashes"], serde_json::json!([]));
}

/// A session that says nothing is closed in its time, as every link.
#[tokio::test]
async fn threat_19_a_session_without_a_hello_is_closed_in_its_time() {
    let server = TestServer::start().await;
    let mut page = server.web(None).await.unwrap();
    let rest = within(page.answers.read_to_end(1_000)).await.unwrap();
    let capsule = close(CloseCode::DONE.0.into(), "misbehaved");
    assert!(rest.ends_with(&capsule), "{rest:?}");
}
