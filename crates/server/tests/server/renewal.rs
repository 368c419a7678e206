//! A certificate that is replaced while players are in their rooms.

use core::time::Duration;
use futures_util::future::join_all;
use parlor_proto::RoomCode;
use parlor_server::IdentitySource;
use parlor_testing::{Client, HANG, Seen, TestServer, creating, dial, joining, within};
use parlor_transport::{ConnectError, Identity, Trust, websocket};
use std::fs;
use std::path::Path;

const ROOMS: usize = 10;
/// Of each room.
const MEMBERS: usize = 10;

fn write(folder: &Path, identity: &Identity) {
    fs::write(folder.join("chain.pem"), identity.to_pem().certificates).unwrap();
    fs::write(folder.join("key.pem"), identity.to_pem().key).unwrap();
}

fn made() -> Identity {
    Identity::generate(&["localhost", "127.0.0.1"]).unwrap()
}

async fn over_websocket(
    server: &TestServer,
    identity: &Identity,
) -> Result<parlor_transport::Link, ConnectError> {
    websocket::connect(&server.target(true), &Trust::Fingerprint(identity.fingerprint()), HANG).await
}

/// A room, whose members come half over QUIC and half over TLS on TCP.
async fn room(server: &TestServer, identity: &Identity) -> (RoomCode, Vec<Client>) {
    let link = dial(server.addr(), identity.fingerprint()).await.unwrap();
    let mut host = Client::new(link, creating(None, None, u16::try_from(MEMBERS).unwrap() + 2));
    let code = host.welcome().await.code;
    let mut members = vec![host];
    for number in 1..MEMBERS {
        let link = if number % 2 == 0 {
            dial(server.addr(), identity.fingerprint()).await.unwrap()
        } else {
            over_websocket(server, identity).await.unwrap()
        };
        let mut guest = Client::new(link, joining(code, None));
        guest.welcome().await;
        members.push(guest);
    }
    (code, members)
}

/// Waits until somebody hears this, over the link and in the session that it has had since the beginning.
async fn hears(member: &mut Client, text: &str) {
    loop {
        match member.seen().await {
            Seen::Event(parlor_proto::session::Event::Message(message)) => {
                if message.payload.windows(text.len()).any(|part| part == text.as_bytes()) {
                    return;
                }
            }
            Seen::Event(parlor_proto::session::Event::Closed(reason)) => panic!("{reason:?}"),
            Seen::Event(_) => {}
            Seen::Ended(end) => panic!("{end}"),
        }
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_who_comes_and_disturbs_nobody_who_is_there() {
    let (old, new) = (made(), made());
    let server = TestServer::start_with(|config, folder| {
        write(folder.path(), &old);
        let [certificate, key] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
        config.identity = IdentitySource::Files { certificate, key };
        config.certificate_every = Duration::from_millis(5);
    })
    .await;
    let mut rooms = join_all((0..ROOMS).map(|_| room(&server, &old))).await;
    let before = server.server.stats().await;
    assert_eq!(before.connections, ROOMS * MEMBERS);

    write(server.folder.path(), &new);
    // Until the server has looked, it has the old one.
    let link = within(async {
        loop {
            match dial(server.addr(), new.fingerprint()).await {
                Ok(link) => return link,
                Err(ConnectError::WrongFingerprint { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await;
    let mut over_quic = Client::new(link, joining(rooms[0].0, None));
    over_quic.welcome().await;
    let link = over_websocket(&server, &new).await.unwrap();
    let mut over_tcp = Client::new(link, joining(rooms[1].0, None));
    over_tcp.welcome().await;
    for refused in [dial(server.addr(), old.fingerprint()).await, over_websocket(&server, &old).await] {
        assert!(matches!(refused, Err(ConnectError::WrongFingerprint { .. })), "{refused:?}");
    }

    // Everybody who was there is there, and hears and is heard.
    for (_, members) in &mut rooms {
        let (host, guests) = members.split_first_mut().unwrap();
        host.say("to all").await;
        for guest in guests {
            hears(guest, "to all").await;
            guest.say("to the host").await;
            hears(host, "to the host").await;
        }
    }
    assert_eq!(server.server.stats().await.connections, ROOMS * MEMBERS + 2);
}
