//! The attacks: each with as many connections as it needs, waiting only for the server.

use super::{SOURCE, Shared};
use crate::http::{Http, Player, request};
use crate::load::{Way, tcp_from};
use crate::member::APP;
use crate::soak::player::with_channel;
use crate::soak::record::Record;
use bytes::Bytes;
use parlor::{Event, Mode, Recipient};
use parlor_client_core::{Options, RoomCore, Wish};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections that only are.
const CONNECTIONS: usize = 400;
/// Sockets that ping and do not sign in.
const PINGING: usize = 50;
/// Handshakes at the same time, each of which is followed by the next.
const HANDSHAKES: usize = 50;
/// Who asks at the same time, where nothing else is said.
const ASKING: usize = 16;
/// Lists that are read slowly at the same time.
const LISTS: usize = 50;
/// How often the dearest request is made, by each of eight: 200 a second in all.
const DEAREST_EVERY: Duration = Duration::from_millis(40);
const DEAREST: usize = 8;
/// A match that is kept gets so much at a time.
const DATA_BYTES: usize = 32 * 1024;
/// The largest that a room may say of itself.
const METADATA_BYTES: usize = 16 * 1024 - 64;
/// Pause after a closed connection.
const REST: Duration = Duration::from_millis(250);
/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// All ways, and what they have found out.
pub(super) struct Attacks {
    shared: Arc<Shared>,
    websocket: Way,
    quic: Way,
    addr: SocketAddr,
    /// An attacker with an account at this server.
    token: RefCell<Option<String>>,
    counted: Cell<u64>,
}

/// Those that begin the most connections come last: what they use up the others need.
const WAYS: [&str; 10] = [
    "wrong codes",
    "wrong passwords",
    "sign-ups",
    "large rooms",
    "large lists, read slowly",
    "the dearest request",
    "kept matches",
    "sockets without a sign-in",
    "QUIC handshakes",
    "connections",
];

/// The name of the way that has this number.
pub(super) fn way(number: usize) -> &'static str {
    WAYS[number % WAYS.len()]
}

impl Attacks {
    pub(super) fn new(shared: Arc<Shared>, [websocket, quic]: [Way; 2], addr: SocketAddr) -> Self {
        Attacks { shared, websocket, quic, addr, token: RefCell::new(None), counted: Cell::new(0) }
    }

    /// Begins one way; it goes on until what this gives is dropped.
    pub(super) fn begin(self: &Rc<Self>, number: usize) -> JoinSet<()> {
        let way = way(number);
        let many = match way {
            "connections" => CONNECTIONS,
            "sockets without a sign-in" => PINGING,
            "large lists, read slowly" => LISTS,
            "the dearest request" => DEAREST,
            "kept matches" => 4,
            "QUIC handshakes" => HANDSHAKES,
            _ => ASKING,
        };
        let mut under_way = JoinSet::new();
        for _ in 0..many {
            let own = Rc::clone(self);
            under_way.spawn_local(async move { own.keep_on(way).await });
        }
        under_way
    }

    async fn keep_on(&self, way: &'static str) {
        // What stays open needs no other connection, of which an address may begin few.
        let mut http = Http::from_source(self.addr, SOURCE);
        loop {
            let came = match way {
                "connections" => self.hold().await,
                "QUIC handshakes" => self.shake_hands().await,
                "sockets without a sign-in" => self.ping().await,
                "wrong codes" => self.ask_for_code(&mut http).await,
                "wrong passwords" => self.sign_in(&mut http, false).await,
                "sign-ups" => self.sign_in(&mut http, true).await,
                "large rooms" => self.open_large_room(&mut http).await,
                "large lists, read slowly" => self.read_slowly(&mut http).await,
                "the dearest request" => ask_dearly(&mut http).await,
                _ => self.keep_match().await,
            };
            match came {
                Ok(outcome) => self.shared.note(way, outcome),
                Err(_) => {
                    self.shared.note(way, "hung up on".to_owned());
                    http.hang_up();
                    sleep(REST).await;
                }
            }
        }
    }

    /// A number that was not before.
    fn next(&self) -> u64 {
        self.counted.set(self.counted.get() + 1);
        self.counted.get()
    }

    /// A connection that says nothing, until the server hangs up.
    async fn hold(&self) -> anyhow::Result<String> {
        let mut stream = tcp_from(SOURCE, self.addr).await?;
        let mut byte = [0];
        self.shared.note("connections", "opened".to_owned());
        anyhow::ensure!(stream.read(&mut byte).await? > 0, "hung up on");
        Ok("answered".to_owned())
    }

    /// A handshake that leads to nothing.
    async fn shake_hands(&self) -> anyhow::Result<String> {
        let done = timeout(PATIENCE, self.quic.connect()).await?;
        Ok(if done.is_ok() { "done" } else { "refused" }.to_owned())
    }

    /// A JSON socket that pings.
    async fn ping(&self) -> anyhow::Result<String> {
        let mut stream = tcp_from(SOURCE, self.addr).await?;
        let head = "GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        let mut heard = [0; 512];
        let read = stream.read(&mut heard).await?;
        anyhow::ensure!(heard[..read].starts_with(b"HTTP/1.1 101"), "refused");
        self.shared.note("sockets without a sign-in", "opened".to_owned());
        loop {
            // An empty ping with an empty mask.
            stream.write_all(&[0x89, 0x80, 0, 0, 0, 0]).await?;
            if timeout(PATIENCE, stream.read(&mut heard)).await?? == 0 {
                return Ok("hung up on".to_owned());
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// A code that no room has.
    async fn ask_for_code(&self, http: &mut Http) -> anyhow::Result<String> {
        let mut code = String::new();
        let mut number = self.next();
        for _ in 0..6 {
            let letters = b"ABCDEFGHJKMNPQRSTVWXYZ23456789";
            let letter = usize::try_from(number % letters.len() as u64).unwrap_or(0);
            code.push(char::from(letters[letter]));
            number /= letters.len() as u64;
        }
        let answer = http.ask("GET", &format!("/rooms/{code}"), "", "").await?;
        Ok(answer.kind())
    }

    /// With a wrong password, or as a new account.
    async fn sign_in(&self, http: &mut Http, create: bool) -> anyhow::Result<String> {
        let number = self.next();
        let email =
            if create { format!("attacker-{number}@example.com") } else { "soak-90@example.com".to_owned() };
        let body = json!({ "app": APP, "email": email, "password": format!("wrong-{number}-password"),
            "create": create });
        let answer = http.ask("POST", "/v1/auth/email", "", &body.to_string()).await?;
        Ok(answer.kind())
    }

    /// An access token of an account of its own.
    async fn token(&self, http: &mut Http) -> anyhow::Result<String> {
        if let Some(token) = self.token.borrow().clone() {
            return Ok(token);
        }
        let body = json!({ "app": APP, "device": "attackers-device-00000001" });
        let answer = http.post("/auth/device", "", &body).await?;
        let token = Player::read(&answer)?.token;
        *self.token.borrow_mut() = Some(token.clone());
        Ok(token)
    }

    /// The answer to a request with an account.
    async fn asked(&self, http: &mut Http, path: &str, body: &str) -> anyhow::Result<String> {
        let token = self.token(http).await?;
        let answer = http.ask("POST", path, &token, body).await?;
        if answer.status == 401 {
            // Tokens have an end.
            *self.token.borrow_mut() = None;
        }
        Ok(answer.kind())
    }

    /// A waiting room with as much metadata as allowed; no player joins.
    async fn open_large_room(&self, http: &mut Http) -> anyhow::Result<String> {
        let config = json!({ "players": { "min": 2, "max": 2 },
            "metadata": { "junk": "x".repeat(METADATA_BYTES) } });
        self.asked(http, "/v1/rooms", &json!({ "config": config }).to_string()).await
    }

    /// The longest list, a few bytes at a time.
    async fn read_slowly(&self, http: &mut Http) -> anyhow::Result<String> {
        let token = self.token(http).await?;
        let mut stream = tcp_from(SOURCE, self.addr).await?;
        stream.write_all(request("GET", "/v1/rooms?limit=1000", &token, "").as_bytes()).await?;
        let mut few = [0; 16];
        self.shared.note("large lists, read slowly", "asked for".to_owned());
        while stream.read(&mut few).await? > 0 {
            sleep(Duration::from_millis(100)).await;
        }
        Ok("ended".to_owned())
    }

    /// A match that is kept, filled as fast as it goes.
    async fn keep_match(&self) -> anyhow::Result<String> {
        let mut options = with_channel(Options::create_match(APP))?;
        if let Wish::Match { keep, .. } = &mut options.intent {
            *keep = true;
        }
        let link = self.websocket.connect().await?;
        let (sender, mut receiver) = link.split();
        let record = Record::new(1);
        let mut core = RoomCore::new(options, Mode::Auto);
        core.connected(sender.kind(), record.now());
        let (mut packets, mut held) = (Vec::new(), None);
        loop {
            while let Some(event) = core.poll(record.now()) {
                if matches!(event, Event::Open { .. }) {
                    self.shared.note("kept matches", "opened".to_owned());
                }
            }
            if let Some(reason) = core.closed() {
                return Ok(reason.as_str().to_owned());
            }
            // A budget that is used up refuses, and is asked again.
            let _ = core.send_data(1, Recipient::Everyone, Bytes::from(vec![b'x'; DATA_BYTES]), true);
            held = held.and_then(|packet| crate::player::offer(&sender, packet));
            while held.is_none()
                && let Some(packet) = core.poll_packet(record.now())
            {
                held = crate::player::offer(&sender, packet);
            }
            let _ = timeout(Duration::from_millis(20), receiver.recv_many(&mut packets, 64)).await;
            packets.drain(..).for_each(|packet| core.handle_packet(packet, record.now()));
            core.handle_timeout(record.now());
            if let Some(end) = sender.end() {
                return Ok(format!("{end}"));
            }
        }
    }
}

/// What costs the server most and needs no account.
async fn ask_dearly(http: &mut Http) -> anyhow::Result<String> {
    sleep(DEAREST_EVERY).await;
    let answer = timeout(PATIENCE, http.ask("GET", "/v1/openapi.json", "", "")).await??;
    Ok(answer.kind())
}
