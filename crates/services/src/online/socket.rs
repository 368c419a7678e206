//! The JSON socket: operations over one WebSocket, and a player's notices as they happen.
//!
//! ```text
//! → {"id": 1, "op": "turn.read", "input": {"room": "r…"}, "token": "…"}     the token holds for all that follow
//! ← {"id": 1, "output": {…}}   or   {"id": 1, "error": {"code", "sentence", "path"?, "retry_after_ms"?, "current"?, "checks"?}}
//! ← {"event": {"seq", "kind", "at_ms", "notice"}}                           as the inbox has it
//! ← {"watched": {"kind", "at_ms", "notice"}}                              of a room that it subscribed to and has no seat in
//! ← {"news": {"topic", …}}                                                  what is so now, the newest of each topic
//! ```
//!
//! Messages are answered in order, one after another. A client that sends too fast is read more slowly.
//!
//! A socket with a player's token also sends the player's notices. It closes when that token expires, unless
//! the client has sent a newer one or signed in again on it, and when the token's sign-in ends.

use super::Services;
use super::bans::BANNED;
use super::failure::{Failure, Kind};
use super::feeds::{End, Feed, FeedOwner, Feeds, Heard};
use super::goodbye::Listener;
use super::json;
use super::table::Caller;
use super::tokens::Identity;
use super::unread::Share;
use crate::store::Role;
use bytes::Bytes;
use core::time::Duration;
use futures_util::{SinkExt, StreamExt};
use parlor_hub::Origin;
use parlor_server::Time;
use parlor_server::embed::{GOING_DOWN, Pace};
use parlor_transport::websocket::Io;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role as Side, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// How often a silent client is pinged.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Round trips that are measured right after the sign-in; the shortest counts.
const TRIPS: u32 = 5;
/// How long a client may be silent. Clients answer pings.
const SILENCE_MAX: Duration = Duration::from_secs(75);
/// Time limits for sending a part of a message, and a whole one.
const SEND_TIME: Duration = Duration::from_secs(10);
const SEND_TIME_ALL: Duration = Duration::from_secs(60);
/// Bytes of a message per frame.
const PART_BYTES: usize = 16 * 1024;
/// Longest id of a message, in bytes of JSON.
const ID_BYTES_MAX: usize = 64;
/// Size of the library's buffer for each direction, in bytes.
const BUFFER_BYTES: usize = 4 * 1024;

/// Why a socket closes with its feed.
const TOKEN_OVER: &str = "the access token is over: connect again with a new one";
const SIGNED_OUT: &str = "signed out: sign in again";
const CUT_OFF: &str = "cut off: connect again, and read the inbox";

/// Serves a socket until it closes. `token` is that of its HTTP request.
pub(crate) async fn serve(io: impl Io, origin: Origin, token: Option<String>, services: &Services) {
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_write_buffer_size(8 * PART_BYTES)
        .max_message_size(Some(json::INPUT_BYTES_MAX))
        .max_frame_size(Some(json::INPUT_BYTES_MAX));
    let socket = WebSocketStream::from_raw_socket(io, Side::Server, Some(config)).await;
    let session =
        SocketState { services: services.clone(), origin, identity: None, feed: None, is_banned: false };
    // On the threads of the services, and cancelled with the caller.
    let mut tasks = JoinSet::new();
    tasks.spawn_on(session.run(socket, token), services.handle());
    let _ = tasks.join_next().await;
}

/// Measures round trips by pings with unpredictable bytes: nobody can answer one before it came.
#[derive(Default)]
struct RoundTrips {
    /// The ping that has no answer yet.
    asked: Option<([u8; 8], Instant)>,
    /// Round trips that were measured.
    count: u32,
}

impl RoundTrips {
    /// The bytes of a new ping.
    fn ask(&mut self) -> tokio_tungstenite::tungstenite::Bytes {
        let bytes = super::secrets::random().unwrap_or_default();
        self.asked = Some((bytes, Instant::now()));
        bytes.to_vec().into()
    }

    /// The round trip, if these bytes answer the last ping.
    fn answered(&mut self, bytes: &[u8]) -> Option<Duration> {
        let (_, since) = self.asked.take_if(|(asked, _)| asked == bytes)?;
        self.count += 1;
        Some(since.elapsed())
    }
}

/// The state of a socket.
struct SocketState {
    services: Services,
    origin: Origin,
    identity: Option<Identity>,
    feed: Option<Feed>,
    /// Whether its account was rejected as banned.
    is_banned: bool,
}

/// A message of a client.
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

/// The part of a sign-in's answer that the socket itself uses.
#[derive(Deserialize)]
struct SignedIn {
    access_token: String,
}

/// Why a socket ends.
enum SocketEnd {
    /// The client is gone, or does not read.
    Gone,
    /// The client receives a code and a reason.
    Closed(CloseCode, &'static str),
}

impl SocketState {
    async fn run<S: Io>(mut self, mut socket: WebSocketStream<S>, token: Option<String>) {
        // Held until the socket is closed: the server waits for that.
        let mut closing = self.services.goodbye().listen();
        let used = match token {
            Some(token) => Some(self.use_token(&token).await),
            None => None,
        };
        let end = match used {
            Some(Err(failure)) => {
                let _ = send(&mut socket, refusal(&Value::Null, &failure)).await;
                SocketEnd::Closed(CloseCode::Policy, "the token is not good")
            }
            Some(Ok(())) | None => self.talk(&mut socket, &mut closing).await,
        };
        if let SocketEnd::Closed(code, reason) = end {
            let frame = CloseFrame { code, reason: reason.into() };
            let _ = timeout(SEND_TIME, socket.close(Some(frame))).await;
        }
    }

    async fn talk<S: Io>(&mut self, socket: &mut WebSocketStream<S>, closing: &mut Listener) -> SocketEnd {
        let began = Instant::now();
        // Fixed: no message extends it.
        let sign_in_until = began + self.services.sign_in_time();
        let (mut heard, mut pinged) = (began, began);
        let mut pace = Pace::new(self.origin);
        let mut trips = RoundTrips::default();
        loop {
            let next_ping = pinged.max(heard) + PING_EVERY;
            tokio::select! {
                message = socket.next() => {
                    heard = Instant::now();
                    let text = match message {
                        Some(Ok(Message::Text(text))) => text,
                        Some(Ok(Message::Pong(bytes))) => {
                            if self.ponged(socket, &bytes, &mut trips).await.is_err() {
                                return SocketEnd::Gone;
                            }
                            continue;
                        }
                        Some(Ok(Message::Ping(_) | Message::Frame(_))) => continue,
                        Some(Ok(Message::Binary(_))) => {
                            return SocketEnd::Closed(CloseCode::Unsupported, "messages are JSON, as text");
                        }
                        Some(Err(Error::Capacity(_))) => {
                            return SocketEnd::Closed(CloseCode::Size, "a message is longer than any may be");
                        }
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return SocketEnd::Gone,
                    };
                    pace.wait().await;
                    let (answer, share) = self.answer(text.as_bytes()).await;
                    if send(socket, answer).await.is_err() {
                        return SocketEnd::Gone;
                    }
                    drop(share);
                    if self.begins_to_measure(socket, &mut trips).await.is_err() {
                        return SocketEnd::Gone;
                    }
                    if self.is_banned {
                        return SocketEnd::Closed(CloseCode::Policy, "banned");
                    }
                }
                notice = next_notice(&mut self.feed, self.identity.as_ref(), self.services.time()) => {
                    let heard = match notice {
                        Ok(heard) => heard,
                        Err(over) => return over,
                    };
                    if send(socket, heard.message()).await.is_err() {
                        return SocketEnd::Gone;
                    }
                }
                () = sleep_until(sign_in_until), if self.identity.is_none() => {
                    return SocketEnd::Closed(CloseCode::Policy, "nobody has signed in");
                }
                () = closing.wait() => return SocketEnd::Closed(CloseCode::Away, GOING_DOWN),
                () = sleep_until(next_ping) => {
                    if heard.elapsed() >= SILENCE_MAX {
                        return SocketEnd::Gone;
                    }
                    pinged = Instant::now();
                    if ping(socket, &mut trips).await.is_err() {
                        return SocketEnd::Gone;
                    }
                }
            }
        }
    }

    /// Takes the answer to a ping. The first ones follow each other at once.
    async fn ponged<S: Io>(
        &self,
        socket: &mut WebSocketStream<S>,
        bytes: &[u8],
        trips: &mut RoundTrips,
    ) -> Result<(), ()> {
        let (Some(rtt), Some(feed)) = (trips.answered(bytes), &self.feed) else { return Ok(()) };
        feed.measured(rtt);
        if trips.count < TRIPS { ping(socket, trips).await } else { Ok(()) }
    }

    /// Measures the round trip once somebody has signed in.
    async fn begins_to_measure<S: Io>(
        &self,
        socket: &mut WebSocketStream<S>,
        trips: &mut RoundTrips,
    ) -> Result<(), ()> {
        let is_first = self.feed.is_some() && trips.asked.is_none() && trips.count == 0;
        if is_first { ping(socket, trips).await } else { Ok(()) }
    }

    /// Returns the answer to a message, and its memory charge, to hold until it is sent.
    async fn answer(&mut self, text: &[u8]) -> (String, Option<Share>) {
        match self.services.hold_input(self.origin, text) {
            Ok(share) => {
                let (answer, mut share) = self.answer_within(text, share).await;
                match share.as_mut().map(|share| share.fit(answer.len())) {
                    Some(Err(full)) => (refusal(&id_of(text), &full.into()), None),
                    Some(Ok(())) | None => (answer, share),
                }
            }
            Err(failure) => (refusal(&id_of(text), &failure), None),
        }
    }

    async fn answer_within(&mut self, text: &[u8], share: Share) -> (String, Option<Share>) {
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
                match self.perform(asked, share).await {
                    Ok((output, share)) => (format!("{{\"id\":{id},\"output\":{output}}}"), Some(share)),
                    Err(failure) => {
                        self.is_banned = failure.code() == BANNED && self.is_refused_itself().await;
                        (refusal(&id, &failure), None)
                    }
                }
            }
            Ok(Err((id, failure))) => (refusal(&id.unwrap_or_default(), &failure), None),
            Err(failure) => (refusal(&Value::Null, &failure), None),
        }
    }

    async fn perform(&mut self, asked: Asked, share: Share) -> Result<(Box<RawValue>, Share), Failure> {
        if let Some(token) = &asked.token {
            self.use_token(token).await?;
        }
        let at = self.services.operations().iter().position(|operation| operation.name == asked.op);
        let at = at.ok_or_else(|| {
            let sentence = format!("there is no operation {:?}: /v1/openapi.json lists them", asked.op);
            Failure::new(Kind::NotFound, "no_such_operation", sentence).at("op")
        })?;
        // Clients sign in again because their token has expired.
        let signs_in = asked.op.starts_with("auth.") && asked.op != "auth.custom";
        let identity = self.identity.clone().filter(|_| !signs_in);
        if let Some(identity) = &identity {
            identity.check_time(identity.now_s(self.services.time()))?;
        }
        let share = self.services.hold_answer(at, share)?;
        let feed = self.feed.as_ref().map(Feed::number);
        let caller = Caller { identity, origin: self.origin, feed, via: None };
        let input = asked.input.unwrap_or_else(|| json!({}));
        let (output, share) = self.services.perform_to_its_end(at, caller, input, share).await?;
        if signs_in && let Ok(SignedIn { access_token }) = serde_json::from_str(output.get()) {
            self.use_token(&access_token).await?;
        }
        Ok((output, share))
    }

    /// Whether the socket's own account is refused, and not one that it queried.
    async fn is_refused_itself(&self) -> bool {
        let caller = Caller { identity: self.identity.clone(), origin: self.origin, feed: None, via: None };
        self.services.must_be_in_good_standing(&caller).await.is_err()
    }

    /// Sets the identity to that of a token, and opens its feed if it is a player's.
    async fn use_token(&mut self, token: &str) -> Result<(), Failure> {
        let identity = self.services.tokens().verify(token, self.services.time())?;
        let caller = Caller { identity: Some(identity.clone()), origin: self.origin, feed: None, via: None };
        let (realm, player) = self.services.account_of(&caller)?;
        let has_feed = identity.role == Role::Player;
        let owner = FeedOwner { realm, player, sign_in: identity.sign_in() };
        let is_open = has_feed && self.feed.as_ref().is_some_and(|feed| feed.is_of(&owner));
        // Opened before the lookup of the ban: a later ban closes it.
        let feed = match has_feed && !is_open {
            true => {
                let newest = self.services.newest_notice(&owner).await?;
                Some(Feeds::open(&self.services, owner, self.origin, newest))
            }
            false => None,
        };
        self.services.must_be_in_good_standing(&caller).await?;
        if !is_open {
            self.feed = feed;
        }
        self.identity = Some(identity);
        Ok(())
    }
}

/// Waits for the next notice or news of a feed, or for the end of the permission. Without a feed it waits forever.
/// Cancel safe.
async fn next_notice(
    feed: &mut Option<Feed>,
    identity: Option<&Identity>,
    time: &Time,
) -> Result<Heard, SocketEnd> {
    let (Some(feed), Some(identity)) = (feed, identity) else { return core::future::pending().await };
    loop {
        let left = identity.time_left(time);
        if left.is_zero() {
            return Err(SocketEnd::Closed(CloseCode::Policy, TOKEN_OVER));
        }
        match timeout(left, feed.next()).await {
            Ok(Ok(notice)) if !identity.time_left(time).is_zero() => return Ok(notice),
            Ok(Err(End::CutOff)) => return Err(SocketEnd::Closed(CloseCode::Again, CUT_OFF)),
            Ok(Err(End::SignedOut)) => return Err(SocketEnd::Closed(CloseCode::Policy, SIGNED_OUT)),
            // The clock that judges the token decides.
            Ok(Ok(_)) | Err(_) => {}
        }
    }
}

/// Sends a ping that measures the round trip.
async fn ping<S: Io>(socket: &mut WebSocketStream<S>, trips: &mut RoundTrips) -> Result<(), ()> {
    let ping = socket.send(Message::Ping(trips.ask()));
    if matches!(timeout(SEND_TIME, ping).await, Ok(Ok(()))) { Ok(()) } else { Err(()) }
}

/// Returns the answer to a refused message.
fn refusal(id: &Value, failure: &Failure) -> String {
    json!({ "id": id, "error": failure.to_json() }).to_string()
}

/// Sends a text in parts: the connection buffers at most one part, and each may take [`SEND_TIME`].
async fn send<S: Io>(socket: &mut WebSocketStream<S>, text: String) -> Result<(), ()> {
    let sending = async {
        let mut rest = Bytes::from(text);
        let mut kind = Data::Text;
        loop {
            let part = rest.split_to(rest.len().min(PART_BYTES));
            let frame = Frame::message(part, OpCode::Data(kind), rest.is_empty());
            match timeout(SEND_TIME, socket.send(Message::Frame(frame))).await {
                Ok(Ok(())) if rest.is_empty() => return Ok(()),
                Ok(Ok(())) => kind = Data::Continue,
                Ok(Err(_)) | Err(_) => return Err(()),
            }
        }
    };
    timeout(SEND_TIME_ALL, sending).await.unwrap_or(Err(()))
}

/// Returns the id of a message for which there is no memory; null if it is not a number.
fn id_of(text: &[u8]) -> Value {
    #[derive(Deserialize)]
    struct Id {
        id: Option<u64>,
    }
    serde_json::from_slice::<Id>(text).ok().and_then(|asked| asked.id).map_or(Value::Null, Value::from)
}
