//! Start, restart and end.

use parlor_hub::room::{self, log::replay};
use parlor_proto::CloseReason;
use parlor_server::{Config, IDENTITY_FILE, IdentitySource, Server, StartError};
use parlor_testing::{Answer, TestServer, exchange, local, within};
use parlor_transport::Identity;
use parlor_transport::discovery::Registry;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_shutdown_tells_the_members_and_leaves_nothing_behind() {
    let TestServer { server, registry, folder } = TestServer::start().await;
    let server = TestServer { server, registry, folder };
    let (mut host, mut guest, code) = server.room().await;
    let (addr, registry) = (server.addr(), server.registry.clone());
    assert_eq!(registry.server(addr.port()).unwrap().fingerprint, server.server.fingerprint().unwrap());
    assert!(registry.room(code).is_some());

    within(server.server.shutdown()).await;
    assert_eq!(host.closed().await, CloseReason::ServerShutdown);
    assert_eq!(guest.closed().await, CloseReason::ServerShutdown);
    host.ended().await;
    guest.ended().await;
    assert_eq!((registry.room(code), registry.servers().len()), (None, 0));
    assert!(TcpStream::connect(addr).await.is_err(), "nobody listens");
}

#[tokio::test]
async fn a_dropped_server_is_gone_and_its_port_is_free() {
    let server = TestServer::start().await;
    let (mut host, mut guest, code) = server.room().await;
    let (port, registry) = (server.addr().port(), server.registry.clone());
    drop(server);
    host.ended().await;
    guest.ended().await;
    let again = within(async {
        loop {
            match Server::start(Config { port, ..local() }).await {
                Ok(server) => return server,
                Err(StartError::Tcp { .. } | StartError::Udp(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    });
    assert_eq!(again.await.local_port(), port);
    assert_eq!((registry.room(code), registry.servers().len()), (None, 0));
}

#[tokio::test]
async fn a_room_log_replays_to_the_end_of_the_room() {
    let server =
        TestServer::start_with(|config, folder| config.room_log = Some(folder.path().join("logs"))).await;
    let (mut host, mut guest, code) = server.room().await;
    server.assert_goes_on(&mut host, &mut guest, code).await;
    let id = server.server.room(code).await.unwrap().id;
    let TestServer { server, folder, .. } = server;
    within(server.shutdown()).await;

    let path = folder.path().join("logs").join(format!("{code}-{}.plog", id.0));
    let mut replayed = replay(std::fs::read(path).unwrap().into()).unwrap();
    let steps: Vec<_> = replayed.by_ref().map(Result::unwrap).collect();
    assert!(replayed.room().has_ended());
    assert_eq!(replayed.room().setup().code, code);
    let said = steps.iter().filter(|step| matches!(step.input, room::Input::Message { .. })).count();
    assert_eq!(said, 2, "a question and its answer");
    let reason = CloseReason::ServerShutdown;
    assert_eq!(steps.last().unwrap().outputs.last(), Some(&room::Output::Ended { reason }));
}

#[tokio::test]
async fn a_second_server_on_the_port_is_told_so() {
    let server = TestServer::start().await;
    let port = server.addr().port();
    let error = Server::start(Config { port, ..local() }).await.unwrap_err();
    assert!(matches!(error, StartError::Tcp { .. }), "{error}");
    assert!(error.to_string().contains(&port.to_string()), "{error}");

    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port();
    let error = Server::start(Config { port, ..local() }).await.unwrap_err();
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

#[tokio::test]
async fn a_development_identity_stays_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let identity = IdentitySource::Development { folder: Some(folder.path().to_owned()) };
    let start = || Server::start(Config { identity: identity.clone(), ..local() });
    let first = start().await.unwrap();
    let fingerprint = first.fingerprint().unwrap();
    within(first.shutdown()).await;
    assert_eq!(start().await.unwrap().fingerprint(), Some(fingerprint));
    let fresh = Server::start(local()).await.unwrap();
    assert_ne!(fresh.fingerprint(), Some(fingerprint));

    std::fs::write(folder.path().join(IDENTITY_FILE), "nonsense").unwrap();
    let error = start().await.unwrap_err();
    assert!(error.to_string().contains("Delete the file"), "{error}");
}

#[tokio::test]
async fn a_certificate_from_files_needs_neither_fingerprint_nor_registry() {
    let folder = tempfile::tempdir().unwrap();
    let pem = Identity::generate(&["localhost"]).unwrap().to_pem();
    let (certificate, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, &pem.certificates).unwrap();
    std::fs::write(&key, &pem.key).unwrap();
    let registry = Registry::at(folder.path().join("registry"));
    let identity = IdentitySource::Files { certificate, key };
    let public_host = Some("localhost".to_owned());
    let config = Config { identity, registry: Some(registry.clone()), public_host, ..local() };
    let server = Server::start(config).await.unwrap();
    assert_eq!(server.fingerprint(), None);
    assert!(registry.servers().is_empty());
    let address = &server.addresses()[0];
    assert_eq!(address.to_string(), format!("localhost:{}", server.local_port()));
}

#[tokio::test]
async fn a_start_that_cannot_be_names_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let cases = [
        (Config { public_host: Some("no host".into()), ..local() }, "no host"),
        (Config { room_log: Some(file.join("logs")), ..local() }, "logs"),
        (Config { listen: "192.0.2.77".parse().unwrap(), ..local() }, "192.0.2.77"),
    ];
    for (config, named) in cases {
        let error = Server::start(config).await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[tokio::test]
async fn a_server_on_all_addresses_has_one_for_each_friend() {
    let server = Server::start(Config { port: 0, ..Config::default() }).await.unwrap();
    let last = server.addresses().last().unwrap();
    assert_eq!((last.host.as_str(), last.port), ("127.0.0.1", server.local_port()));
    assert!(server.addresses().iter().all(|address| address.fingerprint == server.fingerprint()));
    assert!(TcpStream::connect(("127.0.0.1", server.local_port())).await.is_ok(), "IPv4 is among all");
    within(server.shutdown()).await;
}

/// What the operator's port answers.
async fn operators_port(addr: SocketAddr, path: &str) -> Answer {
    exchange(addr, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await
}

#[tokio::test]
async fn a_server_that_goes_down_lives_and_takes_nobody() {
    let TestServer { server, folder, registry } =
        TestServer::start_with(|config, _| config.metrics = Some((Ipv4Addr::LOCALHOST, 0).into())).await;
    let server = TestServer { server, folder, registry };
    let (host, _guest, _) = server.room().await;
    let addr = server.server.metrics_addr().unwrap();
    let answer = operators_port(addr, "/ready").await;
    assert_eq!((answer.status(), &answer.json()["store"]), (200, &json!("none")));
    // A member that reads nothing makes the goodbye last.
    host.pause(true).await;
    let stopping = server.server.shutdown();
    tokio::pin!(stopping);
    let watching = async {
        loop {
            let (ready, health) =
                (operators_port(addr, "/ready").await, operators_port(addr, "/health").await);
            if ready.status() == 503 {
                assert_eq!(
                    (health.status(), &ready.json()["why"]),
                    (200, &json!("the server is going down"))
                );
                return;
            }
        }
    };
    tokio::select! {
        () = &mut stopping => panic!("the goodbye takes a second"),
        () = watching => {}
    }
    within(stopping).await;
    assert!(TcpStream::connect(addr).await.is_err(), "nobody listens");
}
