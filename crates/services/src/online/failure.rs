//! Errors of operations, in one shape for HTTP and the JSON socket.

use crate::store::StoreError;
use core::time::Duration;
use hyper::StatusCode;
use parlor_server::realm::InvalidId;
use parlor_turn::Checks;
use serde_json::{Value, json};

/// The refusal's code for an account that waits in too many rooms.
pub(super) const TOO_MANY_ROOMS: &str = "too_many_rooms";

/// Why an operation failed.
///
/// As JSON it is `{"code", "sentence", "path"?, "retry_after_ms"?, "current"?, "checks"?}`. `code` is for programs and stays the
/// same between versions. `sentence` is for people and says what to do. `path` names the wrong field of the
/// input. `current` is what is stored instead, where a caller must choose between that and its own. `checks` says of a
/// refused move which check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    kind: Kind,
    code: &'static str,
    sentence: String,
    path: Option<String>,
    retry_after: Option<Duration>,
    current: Option<Box<Value>>,
    checks: Option<Checks>,
}

/// The kind of a failure. Each has an HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The input is invalid.
    BadInput,
    /// The caller is not authenticated.
    SignedOut,
    /// The caller lacks permission.
    Forbidden,
    /// It does not exist, or the caller may not know of it.
    NotFound,
    /// It exists, and does not support this method.
    Method,
    /// It conflicts with the current state.
    Conflict,
    /// The input is too large.
    TooLarge,
    /// The caller has exceeded a rate limit.
    TooOften,
    /// It cannot be done at present.
    Unavailable,
    /// There is no space for it.
    Full,
    /// A defect of the server.
    Defect,
}

impl Kind {
    /// The HTTP status.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Kind::BadInput => StatusCode::BAD_REQUEST,
            Kind::SignedOut => StatusCode::UNAUTHORIZED,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Method => StatusCode::METHOD_NOT_ALLOWED,
            Kind::Conflict => StatusCode::CONFLICT,
            Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Kind::TooOften => StatusCode::TOO_MANY_REQUESTS,
            Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Full => StatusCode::INSUFFICIENT_STORAGE,
            Kind::Defect => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Failure {
    pub(crate) fn new(kind: Kind, code: &'static str, sentence: impl Into<String>) -> Self {
        Failure {
            kind,
            code,
            sentence: sentence.into(),
            path: None,
            retry_after: None,
            current: None,
            checks: None,
        }
    }

    /// A field of the input is wrong.
    pub(crate) fn field(path: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self::new(Kind::BadInput, "bad_input", sentence).at(path)
    }

    /// A field of the input is missing that this caller must give.
    pub(crate) fn missing(path: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self::new(Kind::BadInput, "missing_field", sentence).at(path)
    }

    /// It cannot be done at present, and may be after this time.
    pub(crate) fn unavailable(sentence: impl Into<String>, retry_after: Duration) -> Self {
        Self::new(Kind::Unavailable, "unavailable", sentence).after(retry_after)
    }

    /// A defect of the server. The log has the details, the answer does not.
    pub(crate) fn defect(what: &str) -> Self {
        tracing::error!(%what, "an operation failed; please report this");
        Self::new(Kind::Defect, "defect", "the server has a defect: its log says more, please report it")
    }

    /// Names the field.
    pub(crate) fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Puts a field before the path: the wrong one is below it.
    pub(crate) fn below(self, field: &str) -> Self {
        let path = match &self.path {
            Some(path) => format!("{field}.{path}"),
            None => field.to_owned(),
        };
        self.at(path)
    }

    /// Adds the time to retry.
    pub(crate) fn after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Adds what is stored instead.
    pub(crate) fn beside(mut self, current: Value) -> Self {
        self.current = Some(Box::new(current));
        self
    }

    /// Adds the checks of a refused move.
    pub(crate) fn checked(self, checks: Option<Checks>) -> Self {
        Failure { checks, ..self }
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.kind.status()
    }

    /// The value of `error` in an answer.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "sentence": self.sentence });
        if let Some(path) = &self.path {
            error["path"] = path.as_str().into();
        }
        if let Some(after) = self.retry_after {
            error["retry_after_ms"] = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).into();
        }
        if let Some(current) = &self.current {
            error["current"] = (**current).clone();
        }
        if let Some(checks) = &self.checks {
            error["checks"] = json!(checks);
        }
        error
    }
}

impl From<InvalidId> for Failure {
    fn from(error: InvalidId) -> Self {
        StoreError::from(error).into()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable { retry_after_ms, reason } => {
                tracing::warn!(%reason, "the store is unavailable");
                let sentence = "the server cannot store anything right now: ask again in a moment";
                Failure::unavailable(sentence, Duration::from_millis(retry_after_ms))
            }
            error @ StoreError::Full { .. } => Failure::new(Kind::Full, "store_full", error.to_string()),
            error @ StoreError::Quota { .. } => Failure::new(Kind::Conflict, "quota", error.to_string()),
            error @ StoreError::Stale { .. } => Failure::new(Kind::Conflict, "stale", error.to_string()),
            error @ StoreError::Taken { .. } => Failure::new(Kind::Conflict, "taken", error.to_string()),
            error @ StoreError::Missing { .. } => {
                Failure::new(Kind::NotFound, "not_found", error.to_string())
            }
            error @ StoreError::LastCredential => {
                Failure::new(Kind::Conflict, "last_credential", error.to_string())
            }
            error @ StoreError::TooManyCredentials { .. } => {
                Failure::new(Kind::Conflict, "too_many_credentials", error.to_string())
            }
            error @ StoreError::TooManyRooms { .. } => {
                Failure::new(Kind::Conflict, TOO_MANY_ROOMS, error.to_string())
            }
            error @ StoreError::Invalid { .. } => {
                Failure::new(Kind::BadInput, "bad_input", error.to_string())
            }
            StoreError::Damaged(what) => Failure::defect(&what),
        }
    }
}
