//! What went wrong, for a program and for a person.

use super::session::SessionError;
use parlor_transport::discovery::AddressError;
use serde::Deserialize;
use std::time::Duration;
use thiserror::Error;

/// What a server says when it does not do something.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Error)]
#[error("{sentence}")]
pub struct OnlineError {
    /// For programs; docs/online.md and docs/turn-rooms.md list them.
    pub code: String,
    /// For people; says what to do.
    pub sentence: String,
    /// The field that is wrong.
    #[serde(default)]
    pub path: Option<String>,
    /// When to ask again, in milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

impl OnlineError {
    pub(super) fn new(code: &str, sentence: impl Into<String>) -> Self {
        OnlineError { code: code.to_owned(), sentence: sentence.into(), path: None, retry_after_ms: None }
    }

    /// When to ask again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(Duration::from_millis)
    }
}

/// Why a room could not be had, or asked for something.
#[derive(Debug, Error)]
pub enum RoomFailure {
    /// The server's address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The saved session cannot be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The room was not read yet: wait for [`Event::Connected`](super::Event::Connected).
    #[error("the room was not read yet: wait for Event::Connected")]
    NotThere,
    /// It is over: [`Event::Closed`](super::Event::Closed) said why.
    #[error("this room is closed: Event::Closed said why")]
    Closed,
    /// A move waits for its answer.
    #[error("a move waits for its answer: wait for Event::MoveMade or Event::MoveRejected")]
    MovePending,
    /// As much waits as may.
    #[error("too much waits for an answer: poll, and ask again later")]
    Full,
    /// A value is not JSON, or not of the type that was asked for.
    #[error("a value cannot be taken as JSON: {0}")]
    Value(#[from] serde_json::Error),
}
