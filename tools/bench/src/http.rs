//! A client of the services over plain HTTP, like a game's own service.

use super::load::tcp_from;
use super::member::APP;
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The longest answer that makes sense.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A signed-in player.
pub(crate) struct Player {
    pub account: String,
    pub token: String,
    pub refresh_token: String,
}

impl Player {
    /// The account that got tokens from a sign-in or refresh.
    ///
    /// # Errors
    /// It gave none.
    pub(crate) fn read(answer: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(Player {
            account: text(&answer["account"]["id"]).context("an account has an id")?,
            token: text(&answer["access_token"]).context("a sign-in gives a token")?,
            refresh_token: text(&answer["refresh_token"]).context("a sign-in gives a token to refresh it")?,
        })
    }
}

/// What a server answers.
pub(crate) struct Answer {
    /// The status, such as 200.
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    /// The code of a refusal, or the status.
    pub(crate) fn kind(&self) -> String {
        let body: Option<Value> = serde_json::from_slice(&self.body).ok();
        let code = body.as_ref().and_then(|body| body["error"]["code"].as_str());
        match code {
            Some(code) => format!("{} {code}", self.status),
            None => self.status.to_string(),
        }
    }
}

/// Plain HTTP over one connection, which stays for the next request if the server lets it.
pub(crate) struct Http {
    addr: SocketAddr,
    /// The address of this machine from which it connects; any if `None`.
    source: Option<IpAddr>,
    kept: Option<BufReader<TcpStream>>,
}

impl Http {
    pub(crate) fn new(addr: SocketAddr) -> Self {
        Http { addr, source: None, kept: None }
    }

    /// From an address of this machine.
    pub(crate) fn from_source(addr: SocketAddr, source: IpAddr) -> Self {
        Http { source: Some(source), ..Http::new(addr) }
    }

    /// Returns a player with an account; equal numbers give the same account.
    ///
    /// # Errors
    /// Those of [`post`](Self::post).
    pub(crate) async fn sign_in(&mut self, number: usize) -> anyhow::Result<Player> {
        let device = format!("bench-device-{number:08}");
        let input = json!({ "app": APP, "device": device, "name": format!("player {number}") });
        Player::read(&self.post("/auth/device", "", &input).await?)
    }

    /// The next request is on a connection of its own.
    pub(crate) fn hang_up(&mut self) {
        self.kept = None;
    }

    /// Asks for something below `/v1`, and waits for the answer.
    ///
    /// # Errors
    /// The server does not answer, or with something else than "200".
    pub(crate) async fn post(&mut self, path: &str, token: &str, body: &Value) -> anyhow::Result<Value> {
        self.done("POST", path, token, &body.to_string()).await
    }

    /// Asks for what is below `/v1`, and waits for the answer.
    ///
    /// # Errors
    /// As for [`post`](Self::post).
    pub(crate) async fn get(&mut self, path: &str, token: &str) -> anyhow::Result<Value> {
        self.done("GET", path, token, "").await
    }

    async fn done(&mut self, method: &str, path: &str, token: &str, body: &str) -> anyhow::Result<Value> {
        let answer = self.ask(method, &format!("/v1{path}"), token, body).await?;
        if answer.status != 200 {
            let said = String::from_utf8_lossy(&answer.body);
            bail!("{method} {path} is answered with {}: {said}", answer.status);
        }
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Asks, and waits for the answer, whatever it is.
    ///
    /// # Errors
    /// The server does not answer, or not as HTTP has it.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        token: &str,
        body: &str,
    ) -> anyhow::Result<Answer> {
        let mut stream = match self.kept.take() {
            Some(stream) => stream,
            None => BufReader::new(self.connect().await?),
        };
        stream.write_all(request(method, path, token, body).as_bytes()).await?;
        let (mut line, mut status, mut length, mut stays) = (String::new(), None, None, true);
        loop {
            line.clear();
            ensure!(stream.read_line(&mut line).await? > 0, "the server hung up on {method} {path}");
            if status.is_none() {
                status = Some(line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0));
            } else if let Some((name, value)) = line.split_once(':') {
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse::<usize>().ok();
                } else if name.eq_ignore_ascii_case("connection") {
                    stays = !value.trim().eq_ignore_ascii_case("close");
                }
            }
            if line.trim_end().is_empty() {
                break;
            }
        }
        let length =
            length.filter(|length| *length <= ANSWER_BYTES_MAX).context("an answer without a length")?;
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).await?;
        self.kept = stays.then_some(stream);
        Ok(Answer { status: status.unwrap_or(0), body: answer })
    }

    async fn connect(&self) -> anyhow::Result<TcpStream> {
        let stream = match self.source {
            Some(source) => tcp_from(source, self.addr).await?,
            None => TcpStream::connect(self.addr).await.context("the server takes no HTTP")?,
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// A request as it goes over the wire.
pub(crate) fn request(method: &str, path: &str, token: &str, body: &str) -> String {
    let authorization =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}{length}\r\n{body}")
}
