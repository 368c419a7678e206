//! The bus over NATS: the few words of its protocol that publish and subscribe need.
//!
//! ```text
//! ← INFO {…}                              the server's first line
//! → CONNECT {…}   SUB SUBJECT 1           after TLS, if the address or the server wants it
//! → PUB SUBJECT LEN ⏎ payload             ← MSG SUBJECT 1 LEN ⏎ payload
//! → PING   ← PONG, and the other way round
//! ← -ERR 'why'                            the server closes after most of them
//! ```
//!
//! Nothing is kept for later: what cannot be sent is lost, as the bus permits.

use super::address::BusAddress;
use super::envelope::{Key, PAYLOAD_MAX};
use super::{BusError, Carrier, Received, Session};
use bytes::{Buf, BytesMut};
use core::fmt::Write;
use core::str;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parlor_transport::websocket::Io;
use parlor_transport::{Trust, tls};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum length of a line: that of NATS, for all but the server's `INFO`, which lists its cluster.
const LINE_MAX: usize = 32 * 1024;

/// A NATS server as a carrier.
pub(super) struct Nats {
    address: BusAddress,
    trust: Option<Trust>,
    /// One for all hints of a cluster: the numbers of a sender's hints are complete.
    subject: String,
}

/// A connection to it.
struct Connection {
    io: Box<dyn Io>,
    /// Read, and not yet understood.
    input: BytesMut,
    /// Not yet sent.
    output: BytesMut,
    subject: String,
    /// Whether a `PING` is not yet answered.
    awaits_pong: bool,
}

/// What the server says of itself.
#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    tls_required: bool,
    #[serde(default)]
    max_payload: Option<usize>,
}

/// Something that the server sent.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Info(String),
    Payload(Vec<u8>),
    Ping,
    Pong,
    Nothing,
    Error(String),
}

fn away(error: impl core::fmt::Display) -> BusError {
    BusError::Away(format!("NATS: {error}"))
}

impl Nats {
    pub(super) fn new(address: &BusAddress, key: &Key) -> Result<Self, BusError> {
        let trust = address.protection.trust().map_err(|(path, error)| {
            BusError::Unusable(format!("the certificates in {} cannot be read: {error}", path.display()))
        })?;
        let subject = format!("parlor.{}.hints", key.name());
        Ok(Nats { address: address.clone(), trust, subject })
    }

    async fn connect(&self) -> Result<Connection, BusError> {
        let BusAddress { host, port, user, .. } = &self.address;
        let tcp = TcpStream::connect((host.as_str(), *port)).await.map_err(away)?;
        tcp.set_nodelay(true).map_err(away)?;
        let remote = tcp.peer_addr().map_err(away)?;
        let mut connection = Connection {
            io: Box::new(tcp),
            input: BytesMut::new(),
            output: BytesMut::new(),
            subject: self.subject.clone(),
            awaits_pong: false,
        };
        let Said::Info(info) = connection.next().await? else {
            return Err(away("it does not say what it is: is it a NATS server?"));
        };
        let info: Info = serde_json::from_str(&info).map_err(away)?;
        if info.max_payload.is_some_and(|max| max < PAYLOAD_MAX) {
            return Err(away(format_args!("its max_payload is below the {PAYLOAD_MAX} bytes of a hint")));
        }
        match &self.trust {
            Some(trust) => {
                let Connection { io, input, .. } = connection;
                if !input.is_empty() {
                    return Err(away("it speaks before TLS begins"));
                }
                let io = tls::connect(io, remote, host, trust).await.map_err(away)?;
                connection = Connection { io: Box::new(io), input, ..connection };
            }
            None if info.tls_required => {
                return Err(away("it wants TLS: name it tls://… instead of nats://…"));
            }
            None => {}
        }
        let mut hello = json!({
            "verbose": false, "pedantic": false, "echo": false, "lang": "rust", "name": "parlor",
            "version": env!("CARGO_PKG_VERSION"), "protocol": 0, "tls_required": self.trust.is_some(),
        });
        if let Some((user, password)) = user {
            hello["user"] = user.as_str().into();
            hello["pass"] = password.as_str().into();
        }
        let words = format!("CONNECT {hello}\r\nSUB {} 1\r\nPING\r\n", connection.subject);
        connection.output.extend_from_slice(words.as_bytes());
        connection.flush().await?;
        // An answer shows that user and password are right.
        loop {
            match connection.next().await? {
                Said::Pong => return Ok(connection),
                Said::Error(error) => return Err(away(error)),
                _ => {}
            }
        }
    }
}

impl Carrier for Nats {
    fn open(&self) -> BoxFuture<'_, Result<Box<dyn Session>, BusError>> {
        async { Ok(Box::new(self.connect().await?) as Box<dyn Session>) }.boxed()
    }

    fn payload_max(&self) -> usize {
        PAYLOAD_MAX
    }
}

impl Session for Connection {
    fn send<'a>(&'a mut self, payloads: &'a [String]) -> BoxFuture<'a, Result<(), BusError>> {
        async move {
            for payload in payloads {
                // Writing into a buffer does not fail.
                let _ = write!(self.output, "PUB {} {}\r\n{payload}\r\n", self.subject, payload.len());
            }
            self.flush().await
        }
        .boxed()
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Received, BusError>> {
        async {
            loop {
                match self.next().await? {
                    Said::Payload(payload) => return Ok(Received::Payload(payload)),
                    Said::Error(error) => return Err(away(error)),
                    Said::Info(_) | Said::Ping | Said::Pong | Said::Nothing => {}
                }
            }
        }
        .boxed()
    }

    fn check(&mut self) -> BoxFuture<'_, Result<(), BusError>> {
        async {
            if self.awaits_pong {
                return Err(away("it does not answer"));
            }
            self.awaits_pong = true;
            self.output.extend_from_slice(b"PING\r\n");
            self.flush().await
        }
        .boxed()
    }
}

impl Connection {
    /// Sends what waits. Cancel-safe: what was sent waits no longer.
    async fn flush(&mut self) -> Result<(), BusError> {
        while self.output.has_remaining() {
            if self.io.write_buf(&mut self.output).await.map_err(away)? == 0 {
                return Err(away("the connection takes nothing more"));
            }
        }
        self.io.flush().await.map_err(away)
    }

    /// Waits for what the server says next. Cancel-safe.
    async fn next(&mut self) -> Result<Said, BusError> {
        loop {
            if let Some(said) = read(&mut self.input)? {
                match said {
                    Said::Ping => self.output.extend_from_slice(b"PONG\r\n"),
                    Said::Pong => self.awaits_pong = false,
                    _ => {}
                }
                return Ok(said);
            }
            self.flush().await?;
            if self.io.read_buf(&mut self.input).await.map_err(away)? == 0 {
                return Err(away("it ended the connection"));
            }
        }
    }
}

/// Takes the next thing that the server said from the input, if it is complete.
fn read(input: &mut BytesMut) -> Result<Option<Said>, BusError> {
    let Some(len) = input.windows(2).take(LINE_MAX).position(|end| end == b"\r\n") else {
        return if input.len() > LINE_MAX { Err(away("a line without an end")) } else { Ok(None) };
    };
    let line = str::from_utf8(&input[..len]).map_err(away)?;
    let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let said = match word.to_ascii_uppercase().as_str() {
        "MSG" => {
            let size = rest.rsplit([' ', '\t']).next().and_then(|size| size.parse::<usize>().ok());
            let size = size.filter(|size| *size <= PAYLOAD_MAX);
            let size = size.ok_or_else(|| away("a payload larger than any hint"))?;
            if input.len() < len + 2 + size + 2 {
                input.reserve(len + 2 + size + 2 - input.len());
                return Ok(None);
            }
            input.advance(len + 2);
            let payload = input.split_to(size).to_vec();
            input.advance(2);
            return Ok(Some(Said::Payload(payload)));
        }
        "INFO" => Said::Info(rest.to_owned()),
        "PING" => Said::Ping,
        "PONG" => Said::Pong,
        "+OK" => Said::Nothing,
        "-ERR" => Said::Error(rest.to_owned()),
        word => return Err(away(format_args!("{word:?} is no word of its protocol"))),
    };
    input.advance(len + 2);
    Ok(Some(said))
}
