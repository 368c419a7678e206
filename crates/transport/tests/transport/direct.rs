//! Direct paths between two players on real sockets of this machine, and attackers.

use crate::common::hub::{DEADLINE, Hub, PATH};
use crate::common::nat::Nat;
use crate::common::{HANG, LOCALHOST, identity, packet, within};
use core::net::SocketAddr;
use core::time::Duration;
use parlor_proto::{Carrier, LinkKind};
use parlor_transport::direct::{Attempt, CANDIDATES_MAX, Direct, PROBES_MAX, PathError, Role};
use parlor_transport::impaired::Conditions;
use parlor_transport::quic::{ALPN_DIRECT, Dialer};
use parlor_transport::{CloseCode, Fingerprint, Identity, Link, LinkClosed};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, ConnectionId, Endpoint, ServerConfig};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_secs(1);

/// Checks that two ends belong to one connection, on all carriers.
async fn assert_connected(member: &mut Link, host: &mut Link) {
    assert_eq!((member.kind(), host.kind()), (LinkKind::Quic, LinkKind::Quic));
    for carrier in [Carrier::Datagram, Carrier::Stream, Carrier::Isolated] {
        member.send(packet(carrier, "from the member")).expect("it stands");
        assert_eq!(host.recv().await, Ok(packet(carrier, "from the member")));
        host.send(packet(carrier, "from the host")).expect("it stands");
        assert_eq!(member.recv().await, Ok(packet(carrier, "from the host")));
    }
}

#[tokio::test]
async fn two_players_agree_on_one_connection_whoever_can_reach_whom() {
    within(async {
        let hub = Hub::start();
        let (member, host) = (hub.player().await, hub.player().await);
        let (both, only_member, only_host) = ((true, true), (true, false), (false, true));
        for (member_dials, host_dials) in [both, only_member, only_host, both] {
            let to_host: &[SocketAddr] = if member_dials { &[host.at] } else { &[] };
            let to_member: &[SocketAddr] = if host_dials { &[member.at] } else { &[] };
            let (mut here, mut there) = hub.introduce((&member, to_host), (&host, to_member)).await;
            assert_eq!(
                (here.remote(), there.remote()),
                (host.at, member.at),
                "the sockets that the hub knows"
            );
            assert_connected(&mut here, &mut there).await;
            here.sender.close(CloseCode::DONE, "back to the relay");
            let reason = "back to the relay".to_owned();
            assert_eq!(there.recv().await, Err(LinkClosed::ByPeer { code: CloseCode::DONE, reason }));
        }
    })
    .await;
}

#[tokio::test]
async fn a_path_comes_up_among_dead_candidates_and_under_loss() {
    within(async {
        let hub = Hub::start();
        let bad = "latency=5ms,jitter=3ms,loss=10%,seed=11".parse().expect("it is one");
        let member = hub.player_with(Dialer::impaired(Conditions::new(bad))).await;
        let host = hub.player().await;
        let silent = UdpSocket::bind(LOCALHOST).await.unwrap();
        let dead = silent.local_addr().unwrap();
        let (here, mut there) = hub.introduce((&member, &[dead, host.at]), (&host, &[dead, member.at])).await;
        here.send(packet(Carrier::Stream, "through")).unwrap();
        assert_eq!(there.recv().await, Ok(packet(Carrier::Stream, "through")));
    })
    .await;
}

#[tokio::test]
async fn a_host_opens_many_paths_at_once() {
    within(async {
        let hub = Hub::start();
        let host = hub.player().await;
        let mut members = Vec::new();
        for _ in 0..4 {
            members.push(hub.player().await);
        }
        let opening = members.iter().enumerate().map(|(at, member)| {
            let id = PATH + at as u64;
            let dials = Attempt { id, ..hub.attempt(Role::Dial, host.direct.fingerprint(), &[host.at]) };
            let accepts =
                Attempt { id, ..hub.attempt(Role::Accept, member.direct.fingerprint(), &[member.at]) };
            let (member, host) = (&member.direct, &host.direct);
            async move { tokio::join!(member.open(&dials), host.open(&accepts)) }
        });
        for (here, there) in futures_util::future::join_all(opening).await {
            assert_connected(&mut here.expect("a path"), &mut there.expect("a path")).await;
        }
    })
    .await;
}

#[tokio::test]
async fn own_candidates_are_of_this_machine_and_never_loopback() {
    let hub = Hub::start();
    let player = hub.player().await;
    for hub in [hub.0.addr, "192.0.2.7:7777".parse().unwrap()] {
        let candidates = player.direct.candidates(hub);
        assert!(candidates.len() <= 4, "{candidates:?}");
        for candidate in candidates {
            assert!(!candidate.ip().is_loopback() && candidate.port() != 0, "{candidate}");
            // It can be bound here, so it belongs to this machine.
            UdpSocket::bind((candidate.ip(), 0)).await.expect("an address of this machine");
        }
    }
}

/// Returns all datagrams that a socket has received so far.
fn drain(socket: &UdpSocket) -> Vec<usize> {
    let mut got = Vec::new();
    let mut buf = [0; 2048];
    while let Ok((bytes, _)) = socket.try_recv_from(&mut buf) {
        got.push(bytes);
    }
    got
}

/// A candidate that points to a third party. The time is virtual, so that the library sends everything it
/// ever would.
#[tokio::test(start_paused = true)]
async fn threat_11_a_candidate_of_a_third_party_gets_a_handful_of_datagrams_once() {
    let hub: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let third = UdpSocket::bind(LOCALHOST).await.unwrap();
    let addr = third.local_addr().unwrap();
    let direct = Direct::new(Arc::new(Dialer::new()), &Identity::of_player());
    let mut got = Vec::new();
    for id in 0..3 {
        let attempt = Attempt {
            id,
            role: if id == 1 { Role::Accept } else { Role::Dial },
            peer: identity().fingerprint(),
            candidates: vec![addr; CANDIDATES_MAX],
            hub,
            deadline: Duration::from_secs(30),
        };
        let error = direct.open(&attempt).await.expect_err("nobody is there");
        assert!(matches!(error, PathError::TimedOut { dialled, .. } if dialled == usize::from(id == 0)));
        // Everything it sends when it gives up is sent by then.
        let mut buf = [0; 2048];
        while let Ok(came) = timeout(Duration::from_secs(30), third.recv_from(&mut buf)).await {
            got.push(came.expect("the socket is open").0);
        }
    }
    assert!((1..=usize::from(PROBES_MAX)).contains(&got.len()), "{got:?}");
    assert!(got.iter().sum::<usize>() <= 4_096, "{got:?}");
}

#[tokio::test]
async fn candidates_that_can_be_nobodys_are_not_tried() {
    let direct = Direct::new(Arc::new(Dialer::new()), &Identity::of_player());
    let here = UdpSocket::bind(LOCALHOST).await.unwrap();
    let forged = ["224.0.0.251:5353", "255.255.255.255:9", "0.0.0.0:9", "192.0.2.1:0"]
        .map(|text| text.parse().unwrap());
    let candidates = [here.local_addr().unwrap()].into_iter().chain(forged).collect();
    let attempt = Attempt {
        id: PATH,
        role: Role::Dial,
        peer: identity().fingerprint(),
        candidates,
        hub: "203.0.113.9:7777".parse().unwrap(),
        deadline: Duration::from_millis(50),
    };
    let error = direct.open(&attempt).await.expect_err("there is nobody to try");
    assert_eq!(error, PathError::TimedOut { waited: attempt.deadline, dialled: 0, last: None });
    assert!(drain(&here).is_empty());
}

/// The initial connection id according to PROTOCOL.md.
fn name(path: u64, dialer: Fingerprint, acceptor: Fingerprint, index: u8) -> ConnectionId {
    let text = [b"parlor direct".as_slice(), &path.to_be_bytes(), &dialer.0, &acceptor.0, &[index]].concat();
    ConnectionId::new(&Sha256::digest(text)[..20])
}

/// A certificate and its key, in the library's types.
fn chain(identity: &Identity) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let pem = identity.to_pem();
    let certificate = CertificateDer::from_pem_slice(pem.certificates.as_bytes()).expect("it is one");
    (vec![certificate], PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).expect("it is one"))
}

/// A client with any initial id, and any certificate or none.
fn knocking(name: ConnectionId, roots: &Identity, shows: Option<&Identity>) -> ClientConfig {
    let mut store = rustls::RootCertStore::empty();
    store.add(chain(roots).0.remove(0)).expect("it is one");
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has it")
        .with_root_certificates(store);
    let mut tls = match shows {
        Some(identity) => {
            let (chain, key) = chain(identity);
            tls.with_client_auth_cert(chain, key).expect("they belong together")
        }
        None => tls.with_no_client_auth(),
    };
    tls.alpn_protocols = vec![ALPN_DIRECT.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("it is TLS 1.3")));
    config.initial_dst_cid_provider(Arc::new(move || name));
    config
}

/// Announces the path of a connection, as the deciding end does. Returns the expected answer.
async fn say_word(connection: &Connection) -> Vec<u8> {
    let word = [&[2][..], &PATH.to_be_bytes()].concat();
    // A rejected client may learn of it at any point.
    if let Ok(mut stream) = connection.open_uni().await {
        let _ = stream.write_all(&word).await;
        let _ = stream.finish();
    }
    word
}

#[tokio::test]
async fn threat_13_only_the_peer_that_the_hub_named_gets_in() {
    within(async {
        let hub = Hub::start();
        let own = identity();
        let dialer = Arc::new(Dialer::new());
        let host = Direct::new(Arc::clone(&dialer), &own);
        let to_hub = dialer.connect(hub.0.addr, "localhost", &hub.0.trust, HANG);
        let (_here, there) = tokio::join!(to_hub, hub.0.accept());
        let at = there.remote();
        let peer = identity();
        let attempt = Attempt { deadline: SHORT, ..hub.attempt(Role::Accept, peer.fingerprint(), &[]) };
        // An attacker that read the ids on the wire begins like the peer, but cannot present its certificate.
        let client = Endpoint::client(LOCALHOST).unwrap();
        let knock = async {
            for (index, shows) in [(0, None), (1, Some(&own)), (2, Some(&identity()))] {
                let name = name(PATH, peer.fingerprint(), host.fingerprint(), index);
                let config = knocking(name, &own, shows);
                let connecting = client.connect_with(config, at, "localhost").unwrap();
                // A client is done before its certificate is checked; then it learns of its rejection.
                if let Ok(connection) = connecting.await {
                    say_word(&connection).await;
                    let _ = connection.closed().await;
                }
            }
        };
        let (opened, ()) = tokio::join!(host.open(&attempt), knock);
        let Err(PathError::TimedOut { last: Some(last), .. }) = opened else { panic!("{opened:?}") };
        assert!(last.contains("certificate"), "{last}");
        // Control: the same with the right certificate is accepted.
        let attempt = Attempt { deadline: DEADLINE, ..attempt };
        let enter = async {
            let name = name(PATH, peer.fingerprint(), host.fingerprint(), 0);
            let connecting = client.connect_with(knocking(name, &own, Some(&peer)), at, "localhost").unwrap();
            let connection = connecting.await.unwrap();
            let word = say_word(&connection).await;
            let answer = connection.accept_uni().await.unwrap().read_to_end(64).await.unwrap();
            assert_eq!(answer, word);
        };
        let (opened, ()) = tokio::join!(host.open(&attempt), enter);
        opened.expect("the peer gets in");
    })
    .await;
}

#[tokio::test]
async fn threat_13_an_impostor_at_a_candidate_is_not_the_host() {
    within(async {
        let hub = Hub::start();
        let member = hub.player().await;
        let (real, impostor) = (identity(), identity());
        let (chain, key) = chain(&impostor);
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        tls.alpn_protocols = vec![ALPN_DIRECT.to_vec()];
        let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
        let endpoint = Endpoint::server(config, LOCALHOST).unwrap();
        let addr = endpoint.local_addr().unwrap();
        let attempt = Attempt { deadline: SHORT, ..hub.attempt(Role::Dial, real.fingerprint(), &[addr]) };
        let answering = async { endpoint.accept().await.unwrap().await };
        let (opened, answered) = tokio::join!(member.direct.open(&attempt), answering);
        assert!(answered.is_err(), "the member takes no other certificate");
        let Err(PathError::TimedOut { last: Some(last), .. }) = opened else { panic!("{opened:?}") };
        assert!(last.contains(&real.fingerprint().to_string()), "{last}");
    })
    .await;
}

#[tokio::test]
async fn threat_01_strangers_get_no_answer_while_a_path_is_opened() {
    within(async {
        let hub = Hub::start();
        let host = hub.player().await;
        let nat = Nat::before(host.at).await;
        let attempt = Attempt { deadline: HANG, ..hub.attempt(Role::Accept, identity().fingerprint(), &[]) };
        let client = Endpoint::client(LOCALHOST).unwrap();
        let stranger = async {
            let wrong = name(PATH + 1, identity().fingerprint(), host.direct.fingerprint(), 0);
            let config = knocking(wrong, &identity(), None);
            let connecting = client.connect_with(config, nat.addr, "localhost").unwrap();
            let knocks = async {
                // The library retries several times.
                while nat.passed().0 < 3 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                answer = connecting => panic!("{answer:?}"),
                () = knocks => {}
            }
        };
        tokio::select! {
            opened = host.direct.open(&attempt) => panic!("{opened:?}"),
            () = stranger => {}
        }
        // An expected peer is answered, after everything that came before.
        let member = hub.player().await;
        let (mut here, mut there) = hub.introduce((&member, &[host.at]), (&host, &[])).await;
        assert_connected(&mut here, &mut there).await;
        assert_eq!(nat.passed().1, 0);
    })
    .await;
}

/// Sends datagrams that are never repeated, each after the answer to the one before. A loss hangs.
async fn assert_echo(member: &mut Link, host: &mut Link, number: u32) {
    let ping = packet(Carrier::Datagram, number.to_be_bytes().to_vec());
    member.send(ping.clone()).expect("it stands");
    assert_eq!(host.recv().await, Ok(ping.clone()));
    host.send(ping.clone()).expect("it stands");
    assert_eq!(member.recv().await, Ok(ping));
}

#[tokio::test]
async fn threat_06_a_member_whose_address_changes_loses_not_even_a_datagram() {
    within(async {
        let hub = Hub::start();
        let (member, host) = (hub.player().await, hub.player().await);
        let nat = Nat::before(host.at).await;
        let (mut here, mut there) = hub.introduce((&member, &[nat.addr]), (&host, &[])).await;
        let mut number = 0;
        for _ in 0..30 {
            let before = nat.outside();
            nat.rebind().await;
            assert_ne!(nat.outside(), before);
            // The first answer takes only one round trip.
            for _ in 0..5 {
                assert_echo(&mut here, &mut there, number).await;
                number += 1;
            }
            assert_eq!(there.remote(), nat.outside(), "the host follows");
        }
        assert_connected(&mut here, &mut there).await;
    })
    .await;
}

#[tokio::test]
async fn threat_05_forged_sources_move_no_path() {
    within(async {
        let hub = Hub::start();
        let (member, host) = (hub.player().await, hub.player().await);
        let nat = Nat::before(host.at).await;
        let (mut here, mut there) = hub.introduce((&member, &[nat.addr]), (&host, &[])).await;
        let forger = UdpSocket::bind(LOCALHOST).await.unwrap();
        for number in 0..50 {
            assert_echo(&mut here, &mut there, number).await;
            for mut datagram in nat.seen() {
                // A copy of what the member sent, and one that is changed after the connection id.
                forger.send_to(&datagram, host.at).await.unwrap();
                let last = datagram.len() - 1;
                datagram[last] ^= 1;
                forger.send_to(&datagram, host.at).await.unwrap();
            }
            assert_echo(&mut here, &mut there, 1_000 + number).await;
            assert_eq!(there.remote(), nat.outside());
        }
        assert!(drain(&forger).is_empty(), "nothing goes where nobody showed to be");
    })
    .await;
}

#[tokio::test]
async fn nobody_gets_in_once_an_attempt_is_over() {
    within(async {
        let hub = Hub::start();
        let (member, host) = (hub.player().await, hub.player().await);
        let accepts = hub.attempt(Role::Accept, member.direct.fingerprint(), &[]);
        let accepts = Attempt { deadline: Duration::from_millis(1), ..accepts };
        assert!(matches!(host.direct.open(&accepts).await, Err(PathError::TimedOut { .. })));
        let dials = hub.attempt(Role::Dial, host.direct.fingerprint(), &[host.at]);
        let dials = Attempt { deadline: Duration::from_millis(700), ..dials };
        let error = member.direct.open(&dials).await.expect_err("the door is closed");
        assert_eq!(error, PathError::TimedOut { waited: dials.deadline, dialled: 1, last: None });
    })
    .await;
}
