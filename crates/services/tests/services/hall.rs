//! A server with services, and requests to it.

use crate::document::Document;
use futures_util::{SinkExt, StreamExt};
use parlor_server::Config;
use parlor_server::admission::SigningKey;
use parlor_services::store::{OpenError, Role};
use parlor_services::{OnlineConfig, OnlineError, StartError, WebhookConfig, operator_token};
use parlor_testing::{Answer, TestServer, local, within};
use parlor_transport::discovery::Registry;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// A server with a store, an operator's key, and perhaps a service that is told.
pub(crate) struct Hall {
    pub(crate) server: TestServer,
    key: SigningKey,
    pub(crate) document: Arc<Document>,
}

/// What a hall's server is told.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) online: OnlineConfig,
}

impl Hall {
    pub(crate) async fn open() -> Self {
        Self::with(true, None).await
    }

    pub(crate) async fn with(is_open: bool, webhook: Option<WebhookConfig>) -> Self {
        Self::made(is_open, webhook, |_| {}).await
    }

    pub(crate) async fn changed(change: impl FnOnce(&mut Setup)) -> Self {
        Self::made(true, None, change).await
    }

    async fn made(is_open: bool, webhook: Option<WebhookConfig>, change: impl FnOnce(&mut Setup)) -> Self {
        let key = SigningKey::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(folder.path().join("registry"));
        let operator_key = Some(key.write_new(&folder.path().join("operator")).unwrap());
        let backups = Some(folder.path().join("backups"));
        let store = folder.path().join("parlor.db").to_str().unwrap().to_owned();
        let mut setup = Setup {
            config: Config { registry: Some(registry.clone()), ..local() },
            online: OnlineConfig { is_open, operator_key, webhook, backups, ..OnlineConfig::new(store) },
        };
        change(&mut setup);
        let server = parlor_services::start(setup.config, setup.online).await.unwrap();
        let server = TestServer { server, registry, folder };
        let document = server.get("/v1/openapi.json").await.json();
        Hall { server, key, document: Arc::new(Document::read(document)) }
    }

    /// Another server on the same store, after this one has said goodbye or, as by a kill, has not.
    pub(crate) async fn again(self, says_goodbye: bool) -> Self {
        self.again_with(says_goodbye, |_| {}, |_| {}).await
    }

    /// The same, with something done to the store's file between the two, and with a changed configuration.
    pub(crate) async fn again_with(
        self,
        says_goodbye: bool,
        between: impl FnOnce(&std::path::Path),
        change: impl Fn(&mut Setup),
    ) -> Self {
        let TestServer { server, registry, folder } = self.server;
        if says_goodbye {
            server.shutdown().await;
        } else {
            drop(server);
        }
        let setup = || {
            let mut setup = Setup {
                config: Config { registry: Some(registry.clone()), ..local() },
                online: OnlineConfig {
                    operator_key: Some(folder.path().join("operator.pub")),
                    ..OnlineConfig::new(folder.path().join("parlor.db").to_str().unwrap())
                },
            };
            change(&mut setup);
            setup
        };
        between(&folder.path().join("parlor.db"));
        let server = within(async {
            loop {
                let Setup { config, online } = setup();
                match parlor_services::start(config, online).await {
                    Ok(server) => return server,
                    // What was dropped lets go of its file when its threads have ended.
                    Err(StartError::Online(OnlineError::Store(OpenError::InUse { .. }))) => {
                        tokio::task::yield_now().await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        })
        .await;
        Hall { server: TestServer { server, registry, folder }, key: self.key, document: self.document }
    }

    pub(crate) fn operator(&self, role: Role) -> String {
        operator_token(&self.key, role, "ops", "tanks", "production")
    }

    /// A token of an operator with this name, in an environment of the game.
    /// The key of the hall's operator, and so of the game's own service.
    pub(crate) fn key(&self) -> &SigningKey {
        &self.key
    }

    pub(crate) fn operator_named(&self, role: Role, name: &str, environment: &str) -> String {
        operator_token(&self.key, role, name, "tanks", environment)
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!("{method} /v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}");
        let answer = self.server.ask(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await;
        self.document.check_http(method, path, answer.status(), &answer.json());
        answer
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        input: Value,
    ) -> (u16, Value) {
        let body = if method == "GET" { String::new() } else { input.to_string() };
        let answer = self.ask(method, path, token, &body).await;
        (answer.status(), answer.json())
    }

    pub(crate) async fn good(&self, method: &str, path: &str, token: &str, input: Value) -> Value {
        let (status, answer) = self.call(method, path, Some(token), input).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    pub(crate) async fn bad(&self, method: &str, path: &str, token: &str, input: Value) -> String {
        let (status, answer) = self.call(method, path, Some(token), input).await;
        assert!((400..500).contains(&status), "{method} {path}: {answer}");
        answer["error"]["code"].as_str().unwrap().to_owned()
    }

    /// A player's access token and account.
    pub(crate) async fn player(&self, name: &str) -> (String, String) {
        let input = json!({ "app": "tanks", "device": format!("the device of {name:>10}"), "name": name });
        let (status, answer) = self.call("POST", "/auth/device", None, input).await;
        assert_eq!(status, 200, "{answer}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&answer["access_token"]), text(&answer["account"]["id"]))
    }

    /// A player opens a room, and somebody else joins it.
    pub(crate) async fn has_a_guest(&self, player: &str) {
        let opened = self.good("POST", "/rooms", player, json!({ "config": { "auto_start": false } })).await;
        let (guest, _) = self.player("guest").await;
        let join = format!("/rooms/{}/join", opened["room"]["id"].as_str().unwrap());
        self.good("POST", &join, &guest, json!({})).await;
    }

    pub(crate) async fn socket(&self) -> Socket {
        let stream = TcpStream::connect(self.server.addr()).await.unwrap();
        let (socket, _) = client_async("ws://localhost/v1/socket", stream).await.unwrap();
        Socket { socket, id: 0, document: self.document.clone() }
    }
}

/// A JSON socket.
pub(crate) struct Socket {
    pub(crate) socket: WebSocketStream<TcpStream>,
    id: u64,
    document: Arc<Document>,
}

impl Socket {
    pub(crate) async fn hear(&mut self) -> Value {
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
    pub(crate) async fn next_message(&mut self) -> Message {
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

    pub(crate) async fn say(&mut self, text: &str) {
        self.socket.send(Message::Text(text.into())).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, op: &str, input: Value) -> Value {
        self.id += 1;
        self.say(&json!({ "id": self.id, "op": op, "input": input }).to_string()).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], self.id, "{answer}");
        self.document.check_socket(op, &answer);
        answer
    }
}

/// A service that is told: it says no the first time, and passes on what it was told.
pub(crate) async fn told_service() -> (String, tokio::sync::mpsc::Receiver<String>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, told) = tokio::sync::mpsc::channel(64);
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
