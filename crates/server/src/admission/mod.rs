//! Admission by tokens: a game's own service decides who may enter, where, and as which user (threat 3).
//!
//! A token is a JWT signed with Ed25519. The issuing service holds the private key, and a server only the
//! public one, which cannot sign. A token names the user ([`Claims::sub`]), the game, the environment, and a
//! room or a new one. It is valid for a minute at most and once.
//!
//! A server with accounts issues such tokens itself to signed-in players: *tickets* (`ticket.rs`). Its key
//! and the service's are separate and of different algorithms. The token's `typ` decides which of the two may
//! have signed it.
//!
//! [`SigningKey`] makes keys and tokens, for experiments and for services written in Rust.

pub(crate) mod crypto;
pub(crate) mod issue;
mod ledger;
#[cfg(test)]
mod tests;
pub(crate) mod ticket;

pub use issue::{KeyError, PermitFor, SigningKey, TokenRequest};

use crate::mutex::lock;
use crate::time::Time;
use core::time::Duration;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use ledger::{Ledger, NotEntered};
use parlor_hub::admission_policy::{Admitted, UsedToken};
use parlor_proto::limits;
use parlor_proto::wire::handshake::{Auth, Hello, Intent, Refusal, RoomSettings};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use thiserror::Error;
use ticket::Tickets;

/// Longest life of a token, in seconds.
pub const TOKEN_LIFE_S_MAX: u64 = 60;
/// Largest difference between a server's and a token issuer's clock, in seconds.
pub const CLOCK_SKEW_S_MAX: u64 = 5;
/// Longest user and id of a token, in bytes.
pub const CLAIM_BYTES_MAX: usize = limits::USER_BYTES_MAX;
/// Used tokens remembered for each issuer: 20,000 a second with the longest life. Each takes about 50 bytes.
pub const TOKENS_REMEMBERED_MAX: usize = 1_300_000;

const _: () = assert!(TOKENS_REMEMBERED_MAX as u64 == 20_000 * (TOKEN_LIFE_S_MAX + CLOCK_SKEW_S_MAX));

/// Prefix of the `typ` of tokens made by a server or its operators. Tokens of a game's own service have
/// another one, or none.
const OWN_KINDS: &str = "parlor-";

/// Which players need a token, and who issues it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The public key (PEM, Ed25519) of the game's own service, which issues tokens. Without it only tickets
    /// of the server's own accounts are accepted, if there are any.
    pub key: Option<PathBuf>,
    /// Whether a token is required. Otherwise it is optional, but must be valid if present.
    pub is_required: bool,
}

/// The claims of a token. Others are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The user: 1 to [`CLAIM_BYTES_MAX`] bytes without control characters. The game defines its meaning.
    pub sub: String,
    /// The game.
    pub aud: String,
    /// Its environment; may be missing if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub env: String,
    /// The code of the room. With [`create`](Self::create) the code that a new room must have; any if
    /// missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// Whether the token is for opening a room instead of joining one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub create: bool,
    /// Time of issue, in seconds since 1970.
    pub iat: u64,
    /// Expiry, in seconds since 1970: at most [`TOKEN_LIFE_S_MAX`] after [`iat`](Self::iat).
    pub exp: u64,
    /// Its id, unique among all tokens: 1 to [`CLAIM_BYTES_MAX`] bytes.
    pub jti: String,
}

/// Why a token is rejected. The log has the reason; the client learns only that it was rejected.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum TokenError {
    #[error("there is none, and this server requires one")]
    Missing,
    #[error("it is not a token with these claims that the key signed: {0}")]
    NotSigned(String),
    #[error("this server has no key for tokens of its kind")]
    NoKey,
    #[error("its account was banned")]
    Banned,
    #[error("its {0} has a length or a letter that it must not have")]
    Field(&'static str),
    #[error("it is for another game or environment")]
    Audience,
    #[error("it is for another room, or not for what was asked")]
    Room,
    #[error("it is good for longer than {TOKEN_LIFE_S_MAX} s, or for no time")]
    Life,
    #[error("it is over")]
    Expired,
    #[error("it comes from the future: the clocks differ by more than {CLOCK_SKEW_S_MAX} s")]
    Future,
    #[error("it is older than this server's start, so that nobody knows whether it was used")]
    BeforeStart,
    #[error("it was used before")]
    Used,
    #[error("{TOKENS_REMEMBERED_MAX} tokens were used within a minute: this server takes no more at once")]
    Full,
}

impl TokenError {
    fn answer(&self) -> Refusal {
        match self {
            TokenError::Full => Refusal::ServerFull,
            _ => Refusal::Unauthorized,
        }
    }
}

/// Verifies tokens and remembers used ones. All shards share it. None waits for another's verification: only
/// the ledgers have locks.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// The issuer of the game's own service.
    service: Option<Signer>,
    /// The tickets of this server's accounts.
    tickets: OnceLock<Tickets>,
    is_required: bool,
    time: Time,
    /// The start on the steady clock.
    started: Duration,
}

/// The times by which a token is judged.
#[derive(Clone, Copy, Debug)]
struct Now {
    /// The issuer's clock, in seconds since 1970.
    now_s: u64,
    /// When this server started, by the issuer's clock as it is set now.
    started_s: u64,
    /// The steady clock, in seconds. Used ids expire by it, because the other clock may leap.
    steady_s: u64,
}

/// An accepted issuer, and its used tokens. Each issuer has its own ledger, so the tokens of one take no room
/// from another's.
#[derive(Debug)]
struct Signer {
    /// Its name among the issuers: two may give one id.
    issuer: &'static str,
    key: DecodingKey,
    validation: Validation,
    used: Mutex<Ledger>,
}

impl Tokens {
    /// Without a policy every player is admitted, and no token is accepted until there are
    /// [tickets](Self::accept_tickets).
    pub(crate) fn new(policy: Option<&Policy>, time: Time) -> Result<Self, KeyError> {
        let key = policy.and_then(|policy| policy.key.as_deref());
        let public = key.map(issue::read_public).transpose()?;
        let is_required = policy.is_some_and(|policy| policy.is_required);
        Ok(Self::with_key(public.as_ref().map(|key| &key[..]), is_required, time))
    }

    fn with_key(service: Option<&[u8]>, is_required: bool, time: Time) -> Self {
        Tokens {
            service: service
                .map(|public| Signer::new("service", Algorithm::EdDSA, DecodingKey::from_ed_der(public))),
            tickets: OnceLock::new(),
            is_required,
            started: time.steady(),
            time,
        }
    }

    /// Accepts tickets of the server's own accounts from now on.
    pub(crate) fn accept_tickets(&self, tickets: Tickets) {
        // The only store is opened once, so this never replaces tickets.
        let _ = self.tickets.set(tickets);
    }

    /// The tickets, if there are accounts.
    pub(crate) fn tickets(&self) -> Option<&Tickets> {
        self.tickets.get()
    }

    /// Checks whether the hello's token permits its request, and consumes the token.
    pub(crate) fn admit(&self, hello: &Hello) -> Result<Admitted, Refusal> {
        // The time of day is read before the steady clock. So the start computed from both is never too late,
        // and a token of the first second is accepted.
        let (wall_ms, own_s) = (u128::from(self.time.wall_ms()), self.time.now_s());
        let steady = self.time.steady();
        let running_ms = steady.saturating_sub(self.started).as_millis();
        let seconds = |ms: u128| u64::try_from(ms / 1_000).unwrap_or(u64::MAX);
        let started_s = seconds(wall_ms.saturating_sub(running_ms));
        let steady_s = steady.as_secs();
        // A game's own service and this server share the time of day.
        let wall = Now { now_s: seconds(wall_ms), started_s, steady_s };
        // Tickets are the services' own, and their key is drawn at the start, so none is older.
        let own = Now { now_s: own_s, started_s: 0, steady_s };
        self.admit_by(hello, wall, own).map_err(|rejected| {
            tracing::info!(app = ?hello.app, why = %rejected, "a token was not accepted");
            rejected.answer()
        })
    }

    fn admit_by(&self, hello: &Hello, wall: Now, own: Now) -> Result<Admitted, TokenError> {
        let token = match &hello.auth {
            Auth::Token(token) => token,
            Auth::Anonymous if self.is_required => return Err(TokenError::Missing),
            Auth::Anonymous => return Ok(Admitted::default()),
        };
        let head = jsonwebtoken::decode_header(token).map_err(not_signed)?;
        if head.crit.is_some() {
            return Err(TokenError::NotSigned("it demands an extension".to_owned()));
        }
        // The header selects the key. The signature covers the header and proves it.
        let (user, token) = match head.typ.as_deref() {
            Some(ticket::TYP) => {
                let tickets = self.tickets.get().ok_or(TokenError::NoKey)?;
                tickets.admit(token, hello, own)?
            }
            Some(kind) if kind.starts_with(OWN_KINDS) => return Err(TokenError::NoKey),
            _ => {
                let service = self.service.as_ref().ok_or(TokenError::NoKey)?;
                let claims = service.open(token)?;
                claims.check_fields()?;
                claims.check_audience(hello, |environment| environment == claims.env)?;
                claims.check_time(wall)?;
                service.use_up(claims, wall)?
            }
        };
        Ok(Admitted { user: Some(user), token: Some(token) })
    }
}

impl Signer {
    /// Accepts only this algorithm, whatever a token's header names.
    fn new(issuer: &'static str, algorithm: Algorithm, key: DecodingKey) -> Self {
        crypto::install();
        let mut validation = Validation::new(algorithm);
        // Times and audience are checked below, by a clock that tests can set and against the hello.
        validation.required_spec_claims.clear();
        (validation.validate_exp, validation.validate_aud) = (false, false);
        Signer { issuer, key, validation, used: Mutex::new(Ledger::new(TOKENS_REMEMBERED_MAX)) }
    }

    /// Returns a token's claims if the key signed it.
    fn open(&self, token: &[u8]) -> Result<Claims, TokenError> {
        Ok(jsonwebtoken::decode(token, &self.key, &self.validation).map_err(not_signed)?.claims)
    }

    /// Consumes a valid token and returns its user, and what other servers know it by.
    fn use_up(&self, claims: Claims, now: Now) -> Result<(String, UsedToken), TokenError> {
        let left_s = claims.exp.saturating_add(CLOCK_SKEW_S_MAX).saturating_sub(now.now_s);
        let digest = ledger::digest_of(self.issuer, &claims.jti);
        lock(&self.used).enter(digest, now.steady_s.saturating_add(left_s), now.steady_s).map_err(|not| {
            match not {
                NotEntered::Known => TokenError::Used,
                NotEntered::Full => TokenError::Full,
            }
        })?;
        Ok((claims.sub, UsedToken { digest, remember: Duration::from_secs(left_s) }))
    }
}

fn not_signed(error: jsonwebtoken::errors::Error) -> TokenError {
    TokenError::NotSigned(error.to_string())
}

impl Claims {
    fn check_fields(&self) -> Result<(), TokenError> {
        for (name, text) in [("sub", &self.sub), ("jti", &self.jti)] {
            if !(1..=CLAIM_BYTES_MAX).contains(&text.len()) || text.chars().any(char::is_control) {
                return Err(TokenError::Field(name));
            }
        }
        Ok(())
    }

    /// Checks that game, environment and room are those of the hello.
    fn check_audience(
        &self,
        hello: &Hello,
        is_environment: impl FnOnce(&str) -> bool,
    ) -> Result<(), TokenError> {
        if self.aud != hello.app || !is_environment(&hello.environment) {
            return Err(TokenError::Audience);
        }
        let room = self.room.as_deref().map(str::parse).transpose().map_err(|_| TokenError::Field("room"))?;
        let is_for_this = match &hello.intent {
            Intent::Join { code, .. } => !self.create && room == Some(*code),
            Intent::Create(RoomSettings { code, .. }) => self.create && (room.is_none() || room == *code),
            // A seat's own token or pass proves it, without a policy. A path leads to a member and needs none either.
            Intent::Resume(_) | Intent::Path(_) | Intent::Claim(_) => false,
        };
        if is_for_this { Ok(()) } else { Err(TokenError::Room) }
    }

    fn check_time(&self, Now { now_s, started_s, .. }: Now) -> Result<(), TokenError> {
        let Claims { iat, exp, .. } = *self;
        if exp <= iat || exp - iat > TOKEN_LIFE_S_MAX {
            return Err(TokenError::Life);
        }
        if iat > now_s.saturating_add(CLOCK_SKEW_S_MAX) {
            return Err(TokenError::Future);
        }
        // Tokens used before the start are not remembered.
        if iat < started_s {
            return Err(TokenError::BeforeStart);
        }
        if exp.saturating_add(CLOCK_SKEW_S_MAX) <= now_s { Err(TokenError::Expired) } else { Ok(()) }
    }
}

const _: () = {
    // A token with every claim at its longest, in base64, with header and signature.
    let claims = 2 * CLAIM_BYTES_MAX + 2 * limits::LABEL_BYTES_MAX + 256;
    assert!(claims * 2 <= limits::TOKEN_BYTES_MAX, "every token fits into a hello");
};
