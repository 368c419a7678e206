//! `GET /rooms/{code}`: about a room, for join pages and games in browsers. The secret never stands in it.

use super::Context;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL};
use parlor_hub::RoomSummary;
use parlor_proto::RoomCode;
use serde_json::{Value, json};

/// Why there is nothing to tell about a room.
pub(super) enum NoRoom {
    /// No room can have such a code.
    BadCode(String),
    /// No room has it.
    NotFound(RoomCode),
    /// Nobody knows any more.
    GoingDown,
}

impl NoRoom {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            NoRoom::BadCode(_) => StatusCode::BAD_REQUEST,
            NoRoom::NotFound(_) => StatusCode::NOT_FOUND,
            NoRoom::GoingDown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            NoRoom::BadCode(_) => "bad_code",
            NoRoom::NotFound(_) => "no_such_room",
            NoRoom::GoingDown => "going_down",
        }
    }

    pub(super) fn message(&self) -> String {
        match self {
            NoRoom::BadCode(why) => why.clone(),
            NoRoom::NotFound(code) => {
                format!(
                    "there is no room {code} on this server: check the code, and that the room is still open"
                )
            }
            NoRoom::GoingDown => "the server is going down: ask again in a moment".to_owned(),
        }
    }
}

/// The room that a path names.
pub(super) async fn find(
    context: &Context,
    path: Result<Path<String>, PathRejection>,
) -> Result<RoomSummary, NoRoom> {
    let Path(text) = path.map_err(|rejection| NoRoom::BadCode(rejection.body_text()))?;
    let code: RoomCode = text.parse().map_err(|error| NoRoom::BadCode(format!("{error}")))?;
    match context.shard.room(code).await {
        Ok(Some(room)) => Ok(room),
        Ok(None) => Err(NoRoom::NotFound(code)),
        Err(_) => Err(NoRoom::GoingDown),
    }
}

pub(super) async fn room(
    State(context): State<Context>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let (status, body) = match find(&context, path).await {
        Ok(room) => (StatusCode::OK, describe(&context, &room)),
        Err(none) => (none.status(), json!({ "error": { "code": none.code(), "message": none.message() } })),
    };
    // Any page may ask: nothing in here depends on who asks.
    (status, [(ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

fn describe(context: &Context, room: &RoomSummary) -> Value {
    let facts = &context.facts;
    let mut about = json!({
        "code": room.code.as_str(),
        "app": room.app,
        "players": room.players,
        "max_players": room.max_players,
        "needs_secret": room.needs_secret,
        "server": { "port": facts.port, "quic": true, "websocket": "/ws" },
        "invite": facts.invite(room.code, None).link("parlor"),
    });
    if let Some(fingerprint) = facts.fingerprint {
        about["fingerprint"] = fingerprint.to_string().into();
    }
    about
}
