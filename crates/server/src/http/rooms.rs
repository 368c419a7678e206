//! `GET /rooms/{code}`: data of a room, for join pages and browser games. A room with a secret is not shown,
//! because the answer would confirm a guessed code.

use super::asked::AskedFrom;
use super::facts::Context;
use crate::node::{ElsewhereRoom, FoundElsewhere};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::response::{IntoResponse, Response};
use core::time::Duration;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderName, RETRY_AFTER};
use parlor_hub::RoomSummary;
use parlor_proto::RoomCode;
use serde_json::{Value, json};

/// Why a room's data is not shown.
pub(super) enum NoRoom {
    /// The code is not valid.
    BadCode(String),
    /// No room has the code, or the room has a secret, so its existence is private.
    NotFound(RoomCode),
    /// Too many wrong guesses; the client must wait this long.
    Wait(Duration),
    /// The shard has stopped.
    GoingDown,
    /// It is not known whether another node has the room.
    Unknown,
}

/// A room of this server, or of another node of its cluster.
pub(super) struct ShownRoom {
    pub(super) code: RoomCode,
    pub(super) app: String,
    pub(super) players: u64,
    pub(super) max_players: u64,
    /// Where its hub is, if that is at another node.
    pub(super) address: Option<String>,
}

impl NoRoom {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            NoRoom::BadCode(_) => StatusCode::BAD_REQUEST,
            NoRoom::NotFound(_) => StatusCode::NOT_FOUND,
            NoRoom::Wait(_) => StatusCode::TOO_MANY_REQUESTS,
            NoRoom::GoingDown | NoRoom::Unknown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The `Retry-After` header, if the client must wait.
    pub(super) fn retry_after(&self) -> Option<[(HeaderName, String); 1]> {
        match self {
            NoRoom::Wait(after) => Some([(RETRY_AFTER, whole_seconds(*after).to_string())]),
            NoRoom::BadCode(_) | NoRoom::NotFound(_) | NoRoom::GoingDown | NoRoom::Unknown => None,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            NoRoom::BadCode(_) => "bad_code",
            NoRoom::NotFound(_) => "no_such_room",
            NoRoom::Wait(_) => "retry_after",
            NoRoom::GoingDown => "going_down",
            NoRoom::Unknown => "unavailable",
        }
    }

    /// What happened and what to do, for a person.
    pub(super) fn sentence(&self) -> String {
        match self {
            NoRoom::BadCode(why) => why.clone(),
            NoRoom::NotFound(code) => {
                format!(
                    "there is no room {code} on this server: check the code, and that the room is still open. A room \
                     with a secret is not shown: its invite link leads to it"
                )
            }
            NoRoom::Wait(after) => {
                let seconds = whole_seconds(*after);
                format!("too many wrong room codes came from your network: ask again in {seconds} s")
            }
            NoRoom::GoingDown => "the server is going down: ask again in a moment".to_owned(),
            NoRoom::Unknown => {
                "the server cannot ask its store where the room is: ask again in a moment".to_owned()
            }
        }
    }
}

/// Rounds up, so the wait suffices.
fn whole_seconds(after: Duration) -> u64 {
    after.as_secs() + u64::from(after.subsec_nanos() > 0)
}

/// Finds the room of a path.
pub(super) async fn find(
    context: &Context,
    AskedFrom(origin): AskedFrom,
    path: Result<Path<String>, PathRejection>,
) -> Result<ShownRoom, NoRoom> {
    let Path(text) = path.map_err(|rejection| NoRoom::BadCode(rejection.body_text()))?;
    let code: RoomCode = text.parse().map_err(|error| NoRoom::BadCode(format!("{error}")))?;
    let guess = context.access.guess(origin).map_err(NoRoom::Wait)?;
    match context.shards.room(code).await {
        Ok(Some(room)) if !room.needs_secret => {
            guess.was_right();
            Ok(shown(room))
        }
        Ok(None) => match elsewhere(context, code).await {
            FoundElsewhere::Room(room) if !room.needs_secret => {
                guess.was_right();
                let ElsewhereRoom { code, app, players, max_players, address, .. } = room;
                Ok(ShownRoom { code, app, players, max_players, address: Some(address) })
            }
            FoundElsewhere::Room(_) | FoundElsewhere::Nowhere => {
                guess.was_wrong();
                Err(NoRoom::NotFound(code))
            }
            FoundElsewhere::Later => {
                guess.was_right();
                Err(NoRoom::Unknown)
            }
        },
        Ok(Some(_)) => {
            guess.was_wrong();
            Err(NoRoom::NotFound(code))
        }
        Err(_) => {
            guess.was_right();
            Err(NoRoom::GoingDown)
        }
    }
}

/// Finds the room at other nodes, if there are any.
async fn elsewhere(context: &Context, code: RoomCode) -> FoundElsewhere {
    match &context.node {
        Some(node) => node.find_elsewhere(code).await,
        None => FoundElsewhere::Nowhere,
    }
}

pub(super) async fn room(
    State(context): State<Context>,
    Extension(from): Extension<AskedFrom>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let (status, retry_after, body) = match find(&context, from, path).await {
        Ok(room) => (StatusCode::OK, None, describe(&context, &room)),
        Err(none) => {
            // The common shape of errors: docs/online.md.
            let mut error = json!({ "code": none.code(), "sentence": none.sentence() });
            if let NoRoom::Wait(after) = none {
                error["retry_after_ms"] = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).into();
            }
            (none.status(), none.retry_after(), json!({ "error": error }))
        }
    };
    (status, [(CACHE_CONTROL, "no-store")], retry_after, Json(body)).into_response()
}

fn shown(room: RoomSummary) -> ShownRoom {
    ShownRoom {
        code: room.code,
        app: room.app,
        players: room.players as u64,
        max_players: room.max_players.into(),
        address: None,
    }
}

/// Describes a room. Whoever connects to this server is sent on to another node by itself.
fn describe(context: &Context, room: &ShownRoom) -> Value {
    let facts = &context.facts;
    let mut about = json!({
        "code": room.code.as_str(),
        "app": room.app,
        "players": room.players,
        "max_players": room.max_players,
        "server": { "port": facts.port, "quic": true, "websocket": "/ws" },
        "invite": facts.invite(room.code, None).link("parlor"),
    });
    if let Some(fingerprint) = facts.fingerprint {
        about["fingerprint"] = fingerprint.to_string().into();
    }
    if let Some(address) = &room.address {
        about["address"] = address.as_str().into();
    }
    about
}
