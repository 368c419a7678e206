//! TCP, UDP, WebSocket and HTTP over real sockets of this machine, polled as a game polls them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod fetch;
mod http;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/wait.rs"]
mod wait;

use futures_util::{SinkExt, StreamExt};
use parlor::net::{self, Closed, Connection, Event, Options, SendError, Trust};
use parlor_proto::random::SplitMix64;
use parlor_transport::tls::{Sniffed, sniff};
use parlor_transport::{Identity, ServerTls};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, LazyLock};
use support::PATIENCE;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use wait::wait;

/// The other ends of all tests.
static SERVERS: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// A server on this machine that gives each connection to `serve`.
fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = SERVERS.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let addr = listener.local_addr().unwrap();
    SERVERS.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream));
        }
    });
    addr
}

#[track_caller]
fn open(mut connection: Connection) -> Connection {
    assert_eq!(wait(|| connection.poll()), Event::Open);
    connection
}

/// The rest of a connection: the bytes that came, and how it ended. The end comes once.
#[track_caller]
fn rest(connection: &mut Connection) -> (Vec<u8>, Closed) {
    let mut bytes = Vec::new();
    let closed = wait(|| match connection.poll()? {
        Event::Open => None,
        Event::Message(piece) => {
            bytes.extend_from_slice(&piece);
            None
        }
        Event::Text(text) => {
            bytes.extend_from_slice(text.as_bytes());
            None
        }
        Event::Closed(closed) => Some(closed),
    });
    connection.close();
    assert!((0..1_000).all(|_| connection.poll().is_none()), "nothing comes after the end");
    assert_eq!(connection.send("x"), Err(SendError::Closed));
    (bytes, closed)
}

mod tcp {
    use super::*;

    #[test]
    fn t1_bytes_go_both_ways() {
        let addr = server(|mut stream| async move {
            let (mut read, mut write) = stream.split();
            tokio::io::copy(&mut read, &mut write).await.unwrap();
        });
        let mut echo = open(net::tcp("127.0.0.1", addr.port()));
        let sent: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[1]).collect();
        sent.chunks(50_000).for_each(|piece| echo.send(piece.to_vec()).unwrap());
        let mut came = Vec::new();
        while came.len() < sent.len() {
            match wait(|| echo.poll()) {
                Event::Message(piece) => came.extend_from_slice(&piece),
                other => panic!("{other:?}"),
            }
        }
        assert!(came == sent);
        echo.close();
        assert_eq!(rest(&mut echo).1, Closed::Here);
    }

    #[test]
    fn what_was_sent_before_closing_still_arrives() {
        let (report, reported) = sync_channel(1);
        let addr = server(move |mut stream| {
            let report = report.clone();
            async move {
                let mut all = Vec::new();
                stream.read_to_end(&mut all).await.unwrap();
                report.send(all.len()).unwrap();
            }
        });
        // Not even open yet: it is opened, said and done.
        let mut connection = net::tcp("127.0.0.1", addr.port());
        for _ in 0..20 {
            connection.send(vec![7; 100_000]).unwrap();
        }
        connection.close();
        assert_eq!(connection.poll(), Some(Event::Closed(Closed::Here)));
        assert_eq!(connection.poll(), None);
        assert_eq!(reported.recv_timeout(PATIENCE), Ok(2_000_000));
    }

    #[test]
    fn a_goodbye_comes_after_all_bytes() {
        let addr = server(|mut stream| async move { stream.write_all(&[5; 500_000]).await.unwrap() });
        let (bytes, closed) = rest(&mut net::tcp("localhost", addr.port()));
        assert_eq!((bytes.len(), closed), (500_000, Closed::Peer { code: None, reason: String::new() }));
    }

    #[test]
    fn a_full_queue_says_so_and_what_was_taken_arrives() {
        let (go, may_read) = tokio::sync::oneshot::channel::<()>();
        let may_read = std::sync::Mutex::new(Some(may_read));
        let (report, reported) = sync_channel(1);
        let addr = server(move |mut stream| {
            let (may_read, report) = (may_read.lock().unwrap().take().unwrap(), report.clone());
            async move {
                may_read.await.unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).await.unwrap();
                report.send(all).unwrap();
            }
        });
        let options = Options::default().queue_bytes_max(64 * 1024).message_bytes_max(32 * 1024);
        let mut connection = open(options.tcp("127.0.0.1", addr.port()));
        let too_large = SendError::TooLarge { bytes: 32 * 1024 + 1, bytes_max: 32 * 1024 };
        assert_eq!(connection.send(vec![0; 32 * 1024 + 1]), Err(too_large));
        let mut taken = Vec::new();
        // Beyond the queue and the system's buffers nothing is taken, for as long as the other end reads nothing.
        for number in 0..4_096_u32 {
            let message = [number.to_le_bytes()[0]; 16 * 1024];
            match connection.send(message.to_vec()) {
                Ok(()) => taken.extend_from_slice(&message),
                Err(error) => assert_eq!(error, SendError::Full),
            }
        }
        assert!(taken.len() < 32 * 1024 * 1024, "{} bytes were taken", taken.len());
        go.send(()).unwrap();
        wait(|| connection.send("last").ok());
        taken.extend_from_slice(b"last");
        connection.close();
        assert!(reported.recv_timeout(PATIENCE).unwrap() == taken);
    }

    #[test]
    fn nobody_there_is_told_by_name() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        for (host, word) in [("127.0.0.1", "unreachable"), ("no such host", "unknown_host")] {
            let (_, closed) = rest(&mut net::tcp(host, port));
            match closed {
                Closed::NotOpened(error) => assert_eq!(error.as_str(), word, "{error}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn however_it_ends_the_end_comes_once() {
        let seeds = std::env::var("PARLOR_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40);
        let addr = server(|mut stream| async move {
            let mut what = [0];
            match stream.read(&mut what).await.map(|_| what[0]) {
                // In order, or with a reset: there is something that it does not read.
                Ok(0) => stream.shutdown().await.unwrap_or_default(),
                Ok(1) => drop(stream),
                _ => {
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                }
            }
        });
        for seed in 0..seeds {
            let mut random = SplitMix64::new(seed);
            let mut connection = net::tcp("127.0.0.1", addr.port());
            let what = u8::try_from(random.draw() % 3).unwrap();
            let mut closes_in = if what == 2 { random.draw() % 200 } else { random.draw() % 20_000 };
            connection.send(vec![what; 1 + usize::try_from(random.draw() % 100_000).unwrap()]).unwrap();
            let mut ends = 0;
            wait(|| {
                if closes_in == 0 {
                    connection.close();
                }
                closes_in = closes_in.saturating_sub(1);
                ends += u32::from(matches!(connection.poll(), Some(Event::Closed(_))));
                (ends > 0).then_some(())
            });
            connection.close();
            let more = (0..100).filter_map(|_| connection.poll()).count();
            assert_eq!((ends, more), (1, 0), "seed {seed}");
        }
    }
}

mod udp {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn t1_a_bound_socket_hears_anybody_and_sends_to_anybody() {
        let mut socket = net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = socket.local_addr().unwrap();
        let mut other = net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to("from a game", addr).unwrap();
        stranger.send_to(b"from elsewhere", addr).unwrap();
        let mut heard = [(); 2].map(|()| wait(|| socket.recv_from().unwrap()));
        heard.sort();
        let mut sent = [
            ("from a game".into(), other.local_addr().unwrap()),
            ("from elsewhere".into(), stranger.local_addr().unwrap()),
        ];
        sent.sort();
        assert_eq!(heard, sent);
        for (bytes, from) in heard {
            socket.send_to(bytes, from).unwrap();
        }
        let mut buffer = [0; 100];
        assert_eq!(stranger.recv_from(&mut buffer).unwrap(), (14, addr));
        assert_eq!(wait(|| other.recv_from().unwrap()), ("from a game".into(), addr));
        let too_large = socket.send_to(vec![0; net::UDP_MESSAGE_BYTES_MAX + 1], addr);
        assert!(matches!(too_large, Err(SendError::TooLarge { .. })));
        // What nobody takes is no end, and the next one is heard.
        let gone = stranger.local_addr().unwrap();
        drop(stranger);
        socket.send_to("hello?", gone).unwrap();
        other.send_to("here", addr).unwrap();
        assert_eq!(wait(|| socket.recv_from().unwrap()).0, "here");
    }

    #[test]
    fn t1_a_socket_is_bounded_and_says_why_it_cannot_be_bound() {
        let mut socket =
            Options::default().queue_bytes_max(10_000).bind_udp((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = socket.local_addr().unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..25 {
            stranger.send_to(&[1; 1_000], addr).unwrap();
        }
        wait(|| (socket.dropped() == 16).then_some(()));
        assert_eq!(std::iter::from_fn(|| socket.recv_from().unwrap()).count(), 9);
        let refused = net::UdpSocket::bind(addr).unwrap_err();
        assert_eq!(refused.as_str(), "not_bound");
        assert!(refused.to_string().contains(&addr.to_string()), "{refused}");
        drop(socket);
        // The port is free again as soon as the task has let it go.
        wait(|| net::UdpSocket::bind(addr).ok());
    }

    #[test]
    fn t1_datagrams_go_both_ways() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut connection = open(net::udp("127.0.0.1", peer.local_addr().unwrap().port()));
        connection.send("ping").unwrap();
        let mut buffer = [0; 100];
        let (len, from) = peer.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"ping");
        // Another address is not heard, whatever it says.
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"forged", from).unwrap();
        peer.send_to(b"pong", from).unwrap();
        assert_eq!(wait(|| connection.poll()), Event::Message("pong".into()));
        let too_large = connection.send(vec![0; net::UDP_MESSAGE_BYTES_MAX + 1]);
        assert!(matches!(too_large, Err(SendError::TooLarge { .. })));
        connection.close();
        assert_eq!(rest(&mut connection).1, Closed::Here);
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let options = Options::default().queue_bytes_max(10_000);
        let mut connection = open(options.udp("127.0.0.1", peer.local_addr().unwrap().port()));
        connection.send("here").unwrap();
        let (_, from) = peer.recv_from(&mut [0; 8]).unwrap();
        for _ in 0..25 {
            peer.send_to(&[1; 1_000], from).unwrap();
        }
        // Once as many are dropped, nothing is under way that could take the room of what is read.
        wait(|| (connection.dropped() == 16).then_some(()));
        let waiting = std::iter::from_fn(|| connection.poll()).count();
        assert_eq!(waiting, 9, "datagrams of 1000 bytes, and what each takes beside, in 10000");
    }

    #[test]
    fn nobody_there_is_no_end() {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = gone.local_addr().unwrap();
        drop(gone);
        let mut connection = open(net::udp("127.0.0.1", addr.port()));
        // The system reports that nobody is there, to one or the other of these.
        for _ in 0..10 {
            connection.send("hello?").unwrap();
        }
        let peer = wait(|| UdpSocket::bind(addr).ok());
        let mut buffer = [0; 100];
        peer.set_nonblocking(true).unwrap();
        let from = wait(|| {
            connection.send("hello?").unwrap();
            peer.recv_from(&mut buffer).ok()
        });
        peer.send_to(b"yes", from.1).unwrap();
        assert_eq!(wait(|| connection.poll()), Event::Message("yes".into()));
    }
}

/// Echoes messages; says goodbye when it is asked to.
async fn echo(io: impl AsyncRead + AsyncWrite + Unpin) {
    let mut socket = tokio_tungstenite::accept_async(io).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        if message == Message::Text("bye".into()) {
            let frame = CloseFrame { code: 4_007.into(), reason: "as you wish".into() };
            socket.send(Message::Close(Some(frame))).await.unwrap();
        } else if message.is_text() || message.is_binary() {
            socket.send(message).await.unwrap();
        }
    }
}

/// A server with TLS that gives what is inside to `serve`, and its certificate as PEM.
fn secure<F>(serve: impl Fn(Box<dyn Inside>) -> F + Clone + Send + Sync + 'static) -> (SocketAddr, String)
where
    F: Future<Output = ()> + Send + 'static,
{
    let identity = Identity::generate(&["localhost"]).unwrap();
    let tls = Arc::new(ServerTls::new(&identity));
    let addr = server(move |stream| {
        let (tls, serve) = (Arc::clone(&tls), serve.clone());
        async move {
            let remote = stream.peer_addr().unwrap();
            if let Ok(Sniffed::Tls(stream)) = sniff(stream, remote, &tls).await {
                serve(stream).await;
            }
        }
    });
    (addr, identity.to_pem().certificates)
}

trait Inside: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Inside for T {}

mod websocket {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let addr = server(echo);
        let mut socket = open(net::websocket(&format!("ws://{addr}/any?thing")));
        let long = "ä".repeat(400_000);
        socket.send_text("text").unwrap();
        socket.send(vec![1, 2, 3]).unwrap();
        socket.send("").unwrap();
        socket.send_text(&long).unwrap();
        let expected = [
            Event::Text("text".into()),
            Event::Message(vec![1, 2, 3].into()),
            Event::Message("".into()),
            Event::Text(long),
        ];
        for expected in expected {
            assert!(wait(|| socket.poll()) == expected);
        }
        socket.send_text("bye").unwrap();
        let goodbye = Closed::Peer { code: Some(4_007), reason: "as you wish".into() };
        assert_eq!(rest(&mut socket).1, goodbye);
    }

    #[test]
    fn a_certificate_is_verified() {
        let (addr, certificate) = secure(echo);
        let url = format!("wss://localhost:{}/", addr.port());
        let trusting = Options::default().trust(Trust::Roots(certificate.clone()));
        let mut socket = open(trusting.clone().websocket(&url));
        socket.send_text("safe").unwrap();
        assert_eq!(wait(|| socket.poll()), Event::Text("safe".into()));
        // The system trusts nobody who vouches for it; and it is for another name.
        for mut refused in [net::websocket(&url), trusting.websocket(&format!("wss://{addr}/"))] {
            match rest(&mut refused).1 {
                Closed::NotOpened(error) => assert_eq!(error.as_str(), "untrusted", "{error}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_websocket_is_told_by_name() {
        let page = http::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
        let (secured, _) = secure(echo);
        let plain = server(|mut stream| async move {
            let _ = stream.write_all(b"220 mail is welcome here\r\n").await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
        for (url, word) in [
            (format!("ws://{page}/"), "not_websocket"),
            (format!("wss://localhost:{}/", plain.port()), "no_tls"),
            (format!("ws://{secured}/"), "not_websocket"),
            (format!("http://{page}/"), "bad_url"),
        ] {
            match rest(&mut net::websocket(&url)).1 {
                Closed::NotOpened(error) => assert_eq!(error.as_str(), word, "{url}: {error}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn threat_16_a_message_beyond_the_limit_ends_the_connection() {
        let addr = server(|stream| async move {
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            socket.send(Message::Binary(vec![0; 1_000].into())).await.unwrap();
            socket.send(Message::Binary(vec![0; 1_001].into())).await.unwrap_or_default();
            while let Some(Ok(_)) = socket.next().await {}
        });
        let options = Options::default().message_bytes_max(1_000);
        let mut socket = open(options.websocket(&format!("ws://{addr}/")));
        assert!(matches!(
            socket.send(vec![0; 1_001]),
            Err(SendError::TooLarge { bytes: 1_001, bytes_max: 1_000 })
        ));
        let (bytes, closed) = rest(&mut socket);
        assert_eq!((bytes.len(), closed), (1_000, Closed::TooLarge { bytes_max: 1_000 }));
    }
}
