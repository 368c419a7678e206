//! The JSON socket: the operations over one WebSocket, and what happens in a player's rooms as it happens.
//!
//! ```text
//! → {"id": 1, "op": "turn.read", "input": {"room": "r…"}, "token": "…"}     the token counts for all that follows
//! ← {"id": 1, "output": {…}}   or   {"id": 1, "error": {"code", "sentence", "path"?, "retry_after_ms"?}}
//! ← {"event": {"seq", "kind", "at_ms", "notice"}}                           as the inbox has it
//! ```
//!
//! Messages are answered one after another, in order. Whoever sends faster than it may is read more slowly.

use super::Services;
use super::failure::{Failure, Kind};
use super::feeds::{Feed, Feeds};
use super::json;
use super::table::{Answer, Caller};
use super::tokens::Identity;
use crate::pace::Pace;
use crate::store::Role;
use core::time::Duration;
use futures_util::{SinkExt, StreamExt};
use parlor_hub::Origin;
use parlor_transport::websocket::Io;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role as End, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// How long a client may do nothing until it has signed in.
const SIGN_IN_TIME: Duration = Duration::from_secs(30);
/// How often a silent client is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a client may be silent: it answers pings.
const SILENCE_MAX: Duration = Duration::from_secs(75);
/// How long a client may take to take a message.
const SEND_TIME: Duration = Duration::from_secs(10);
/// Longest id of a message, as JSON.
const ID_BYTES_MAX: usize = 64;
/// Buffers of the library, for each direction.
const BUFFER_BYTES: usize = 4 * 1024;

/// Serves a socket until it is over. `token` is what the request for it brought.
pub(crate) async fn serve(io: impl Io, origin: Origin, token: Option<String>, services: &Services) {
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_write_buffer_size(8 * 1024 * 1024)
        .max_message_size(Some(json::INPUT_BYTES_MAX))
        .max_frame_size(Some(json::INPUT_BYTES_MAX));
    let socket = WebSocketStream::from_raw_socket(io, End::Server, Some(config)).await;
    let session = Session { services: services.clone(), origin, identity: None, feed: None };
    // On the threads of the services, and no longer than whoever waits here.
    let mut tasks = JoinSet::new();
    tasks.spawn_on(session.run(socket, token), services.handle());
    let _ = tasks.join_next().await;
}

/// What a client has said so far.
struct Session {
    services: Services,
    origin: Origin,
    identity: Option<Identity>,
    feed: Option<Feed>,
}

/// What a client sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    id: Value,
    op: String,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default)]
    token: Option<String>,
}

/// What a sign-in gives, of which the rest is the client's.
#[derive(Deserialize)]
struct SignedIn {
    access_token: String,
}

/// Why a socket ends.
enum Over {
    /// The client is gone, or does not listen.
    Gone,
    /// It is told why.
    Closed(CloseCode, &'static str),
}

impl Session {
    async fn run<S: Io>(mut self, mut socket: WebSocketStream<S>, token: Option<String>) {
        let end = match token.map(|token| self.use_token(&token)) {
            Some(Err(failure)) => {
                let _ = send(&mut socket, refusal(&Value::Null, &failure)).await;
                Over::Closed(CloseCode::Policy, "the token is not good")
            }
            Some(Ok(())) | None => self.talk(&mut socket).await,
        };
        if let Over::Closed(code, reason) = end {
            let frame = CloseFrame { code, reason: reason.into() };
            let _ = timeout(SEND_TIME, socket.close(Some(frame))).await;
        }
    }

    async fn talk<S: Io>(&mut self, socket: &mut WebSocketStream<S>) -> Over {
        let began = Instant::now();
        let (mut heard, mut pinged) = (began, began);
        let mut pace = Pace::new(self.origin);
        loop {
            let next_ping = pinged.max(heard) + PING_EVERY;
            tokio::select! {
                message = socket.next() => {
                    heard = Instant::now();
                    let text = match message {
                        Some(Ok(Message::Text(text))) => text,
                        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                        Some(Ok(Message::Binary(_))) => {
                            return Over::Closed(CloseCode::Unsupported, "messages are JSON, as text");
                        }
                        Some(Err(Error::Capacity(_))) => {
                            return Over::Closed(CloseCode::Size, "a message is longer than any may be");
                        }
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return Over::Gone,
                    };
                    pace.wait().await;
                    let answer = self.answer(text.as_bytes()).await;
                    if send(socket, answer).await.is_err() {
                        return Over::Gone;
                    }
                }
                notice = next_notice(&mut self.feed) => match notice {
                    Some(notice) => {
                        if send(socket, format!("{{\"event\":{notice}}}")).await.is_err() {
                            return Over::Gone;
                        }
                    }
                    None => return Over::Closed(CloseCode::Again, "cut off: connect again, and read the inbox"),
                },
                () = sleep_until(next_ping) => {
                    if heard.elapsed() >= SILENCE_MAX {
                        return Over::Gone;
                    }
                    if self.identity.is_none() && began.elapsed() >= SIGN_IN_TIME {
                        return Over::Closed(CloseCode::Policy, "nobody has signed in");
                    }
                    pinged = Instant::now();
                    let ping = socket.send(Message::Ping(tokio_tungstenite::tungstenite::Bytes::new()));
                    if !matches!(timeout(SEND_TIME, ping).await, Ok(Ok(()))) {
                        return Over::Gone;
                    }
                }
            }
        }
    }

    async fn answer(&mut self, text: &[u8]) -> String {
        let asked = json::parse(text).and_then(|value| {
            let id = value.get("id").filter(|id| id.to_string().len() <= ID_BYTES_MAX).cloned();
            json::read::<Asked>(value).map_err(|failure| (id.clone(), failure)).map_or_else(
                |(id, failure)| Ok(Err((id, failure))),
                |asked| Ok(Ok(Asked { id: id.unwrap_or_default(), ..asked })),
            )
        });
        match asked {
            Ok(Ok(asked)) => {
                let id = asked.id.clone();
                match self.perform(asked).await {
                    Ok(output) => format!("{{\"id\":{id},\"output\":{output}}}"),
                    Err(failure) => refusal(&id, &failure),
                }
            }
            Ok(Err((id, failure))) => refusal(&id.unwrap_or_default(), &failure),
            Err(failure) => refusal(&Value::Null, &failure),
        }
    }

    async fn perform(&mut self, asked: Asked) -> Answer {
        if let Some(token) = &asked.token {
            self.use_token(token)?;
        }
        let now_s = crate::system::unix_s();
        let at = self.services.operations().iter().position(|operation| operation.name == asked.op);
        let at = at.ok_or_else(|| {
            let sentence = format!("there is no operation {:?}: /v1/openapi.json lists them", asked.op);
            Failure::new(Kind::NotFound, "no_such_operation", sentence).at("op")
        })?;
        // Whoever signs in again does so because the token is over.
        let signs_in = asked.op.starts_with("auth.") && asked.op != "auth.custom";
        let identity = self.identity.clone().filter(|_| !signs_in);
        identity.as_ref().map_or(Ok(()), |identity| identity.check_time(now_s))?;
        let caller = Caller { identity, origin: self.origin };
        let input = asked.input.unwrap_or_else(|| json!({}));
        let output = self.services.perform_to_its_end(at, caller, input).await?;
        if signs_in && let Ok(SignedIn { access_token }) = serde_json::from_str(output.get()) {
            self.use_token(&access_token)?;
        }
        Ok(output)
    }

    /// Somebody is who this token says, from here on.
    fn use_token(&mut self, token: &str) -> Result<(), Failure> {
        let identity = self.services.tokens().verify(token, crate::system::unix_s())?;
        let caller = Caller { identity: Some(identity.clone()), origin: self.origin };
        if identity.role == Role::Player {
            let (realm, player) = self.services.account_of(&caller)?;
            if !self.feed.as_ref().is_some_and(|feed| feed.is_of(&realm, &player)) {
                self.feed = Some(Feeds::open(&self.services, realm, player));
            }
        } else {
            self.feed = None;
        }
        self.identity = Some(identity);
        Ok(())
    }
}

/// The next notice of a feed; never, without one.
async fn next_notice(feed: &mut Option<Feed>) -> Option<std::sync::Arc<str>> {
    match feed {
        Some(feed) => feed.next().await,
        None => core::future::pending().await,
    }
}

/// An answer that says no.
fn refusal(id: &Value, failure: &Failure) -> String {
    json!({ "id": id, "error": failure.to_json() }).to_string()
}

async fn send<S: Io>(socket: &mut WebSocketStream<S>, text: String) -> Result<(), ()> {
    let sending = socket.send(Message::Text(text.into()));
    match timeout(SEND_TIME, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(()),
    }
}
