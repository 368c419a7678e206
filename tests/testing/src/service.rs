//! Requests to a server with services, each answer checked against its OpenAPI document.

use crate::client::within;
use crate::document::Document;
use crate::server::{Answer, TestServer};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// A server with services.
pub struct Service {
    /// The server.
    pub server: TestServer,
    /// What it says that it answers.
    pub document: Arc<Document>,
}

impl Service {
    /// Reads the document of a server.
    pub async fn of(server: TestServer) -> Self {
        let document = server.get("/v1/openapi.json").await.json();
        Service { server, document: Arc::new(Document::read(document)) }
    }

    /// The answer to a request without a body or with one, by this token.
    pub async fn ask(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!("{method} /v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}");
        let answer = self.server.ask(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await;
        self.document.check_http(method, path, answer.status(), &answer.json());
        answer
    }

    /// The status and the answer in JSON.
    pub async fn call(&self, method: &str, path: &str, token: Option<&str>, input: Value) -> (u16, Value) {
        let body = if method == "GET" { String::new() } else { input.to_string() };
        let answer = self.ask(method, path, token, &body).await;
        (answer.status(), answer.json())
    }

    /// The answer to what succeeds.
    pub async fn good(&self, method: &str, path: &str, token: &str, input: Value) -> Value {
        let (status, answer) = self.call(method, path, Some(token), input).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    /// The error's code of what is refused.
    pub async fn bad(&self, method: &str, path: &str, token: &str, input: Value) -> String {
        let (status, answer) = self.call(method, path, Some(token), input).await;
        assert!((400..500).contains(&status), "{method} {path}: {answer}");
        answer["error"]["code"].as_str().unwrap().to_owned()
    }

    /// A player's access token and account.
    pub async fn player(&self, name: &str) -> (String, String) {
        let input = json!({ "app": "tanks", "device": format!("the device of {name:>10}"), "name": name });
        let (status, answer) = self.call("POST", "/auth/device", None, input).await;
        assert_eq!(status, 200, "{answer}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&answer["access_token"]), text(&answer["account"]["id"]))
    }

    /// A JSON socket, which has not signed in.
    pub async fn socket(&self) -> Socket {
        let stream = TcpStream::connect(self.server.addr()).await.unwrap();
        let (socket, _) = client_async("ws://localhost/v1/socket", stream).await.unwrap();
        Socket { socket, id: 0, document: self.document.clone() }
    }
}

/// A JSON socket.
pub struct Socket {
    /// The WebSocket.
    pub socket: WebSocketStream<TcpStream>,
    id: u64,
    document: Arc<Document>,
}

impl Socket {
    /// The next text.
    pub async fn hear(&mut self) -> Value {
        within(async {
            loop {
                match self.socket.next().await.unwrap().unwrap() {
                    Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                    Message::Ping(_) | Message::Pong(_) => {}
                    other => panic!("{other:?}"),
                }
            }
        })
        .await
    }

    /// The next message that is no ping.
    pub async fn next_message(&mut self) -> Message {
        within(async {
            loop {
                match self.socket.next().await.unwrap().unwrap() {
                    Message::Ping(_) | Message::Pong(_) => {}
                    message => return message,
                }
            }
        })
        .await
    }

    /// Sends a text.
    pub async fn say(&mut self, text: &str) {
        self.socket.send(Message::Text(text.into())).await.unwrap();
    }

    /// The answer to an operation.
    pub async fn ask(&mut self, op: &str, input: Value) -> Value {
        self.id += 1;
        self.say(&json!({ "id": self.id, "op": op, "input": input }).to_string()).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], self.id, "{answer}");
        self.document.check_socket(op, &answer);
        answer
    }
}

/// A service that is told: it says no the first time, and passes on what it was told.
pub async fn told_service() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, told) = mpsc::channel(64);
    tokio::spawn(async move {
        let mut status = "302 Found\r\nlocation: /elsewhere";
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = String::new();
            let whole = |request: &str| {
                let (head, body) = request.split_once("\r\n\r\n")?;
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
                (body.len() >= length.parse::<usize>().ok()?).then_some(())
            };
            while whole(&request).is_none() {
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).await.unwrap();
                request.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
            }
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            status = "204 No Content";
            if sender.send(request).await.is_err() {
                return;
            }
        }
    });
    (url, told)
}
