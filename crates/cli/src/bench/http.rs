//! The services of a server, asked over plain HTTP as a game's own service would.

use super::member::APP;
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The longest answer that makes sense.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Somebody who has signed in.
pub(crate) struct Player {
    pub account: String,
    pub token: String,
}

/// Plain HTTP over one connection, which stays for the next request if the server lets it.
pub(crate) struct Http {
    addr: SocketAddr,
    kept: Option<BufReader<TcpStream>>,
}

impl Http {
    pub(crate) fn new(addr: SocketAddr) -> Self {
        Http { addr, kept: None }
    }

    /// Somebody with an account, the same one for the same number.
    ///
    /// # Errors
    /// Those of [`post`](Self::post).
    pub(crate) async fn sign_in(&mut self, number: usize) -> anyhow::Result<Player> {
        let device = format!("bench-device-{number:08}");
        let input = json!({ "app": APP, "device": device, "name": format!("player {number}") });
        let answer = self.post("/auth/device", "", &input).await?;
        let token = answer["access_token"].as_str().context("a sign-in gives a token")?.to_owned();
        let account = answer["account"]["id"].as_str().context("an account has an id")?.to_owned();
        Ok(Player { account, token })
    }

    /// The next request is on a connection of its own.
    pub(crate) fn hang_up(&mut self) {
        self.kept = None;
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The server does not answer, or with something else than "200".
    pub(crate) async fn post(&mut self, path: &str, token: &str, body: &Value) -> anyhow::Result<Value> {
        let body = body.to_string();
        let authorization =
            if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let request = format!(
            "POST /v1{path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = match self.kept.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.addr).await.context("the server takes no HTTP")?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        stream.write_all(request.as_bytes()).await?;
        let (mut line, mut status, mut length, mut stays) = (String::new(), None, None, true);
        loop {
            line.clear();
            ensure!(stream.read_line(&mut line).await? > 0, "the server hung up on POST {path}");
            if status.is_none() {
                status = Some(line.split(' ').nth(1).unwrap_or_default().to_owned());
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
        let status = status.unwrap_or_default();
        if status != "200" {
            bail!("POST {path} is answered with {status}: {}", String::from_utf8_lossy(&answer));
        }
        self.kept = stays.then_some(stream);
        Ok(serde_json::from_slice(&answer)?)
    }
}
