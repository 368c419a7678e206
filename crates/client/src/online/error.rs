//! Errors, for programs and for people.

use super::session::SessionError;
use crate::modules::ModuleDisabled;
use parlor_transport::discovery::AddressError;
use serde::Deserialize;
use std::time::Duration;
use thiserror::Error;

/// A server's refusal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Error)]
#[error("{sentence}")]
pub struct OnlineError {
    /// The code, for programs; docs/online.md and docs/turn-rooms.md list them.
    pub code: String,
    /// The message, for people; says what to do.
    pub sentence: String,
    /// The path of the invalid field.
    #[serde(default)]
    pub path: Option<String>,
    /// When to retry, in milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// What is stored instead, where the player must choose: see [`current_save`](Self::current_save).
    #[serde(default)]
    pub current: Option<serde_json::Value>,
}

impl OnlineError {
    pub(super) fn new(code: &str, sentence: impl Into<String>) -> Self {
        OnlineError {
            code: code.to_owned(),
            sentence: sentence.into(),
            path: None,
            retry_after_ms: None,
            current: None,
        }
    }

    /// When to retry.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(Duration::from_millis)
    }
}

/// Why a room could not be opened, or a request could not be sent.
#[derive(Debug, Error)]
pub enum RoomFailure {
    /// The module is switched off.
    #[error(transparent)]
    Module(#[from] ModuleDisabled),
    /// The server's address is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The saved session cannot be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The room was not read yet: wait for [`Event::Connected`](super::Event::Connected).
    #[error("the room was not read yet: wait for Event::Connected")]
    NotThere,
    /// The room is closed: [`Event::Closed`](super::Event::Closed) gave the reason.
    #[error("this room is closed: Event::Closed said why")]
    Closed,
    /// A move is still pending.
    #[error("a move waits for its answer: wait for Event::MoveMade or Event::MoveRejected")]
    MovePending,
    /// Too many requests are pending.
    #[error("too much waits for an answer: poll, and ask again later")]
    Full,
    /// A value is not JSON, or does not match the requested type.
    #[error("a value cannot be taken as JSON: {0}")]
    Value(#[from] serde_json::Error),
}
