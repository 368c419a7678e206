//! Tickets: the tokens that a server issues itself, to players who have signed in to an account of its store.
//!
//! A ticket has the claims of any admission token, with the account as its user. Issuer and verifier are one
//! server: the signature is HMAC-SHA256 with a secret key that the server draws when it starts. So tickets
//! are invalid at other servers and after a restart, when used ones are no longer known. Verification costs a
//! fraction of Ed25519.

use super::{
    CLOCK_SKEW_S_MAX, Claims, KeyError, Now, PermitFor, Signer, TOKEN_LIFE_S_MAX, TokenError, issue,
};
use crate::mutex::lock;
use crate::realm::{Realm, environment_of};
use crate::system;
use data_encoding::HEXLOWER;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use parlor_hub::admission_policy::UsedToken;
use parlor_proto::wire::handshake::Hello;
use ring::hmac;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The `typ` of a ticket.
pub(super) const TYP: &str = "parlor-ticket";

/// Issues tickets. Cheap to clone.
#[derive(Clone)]
pub struct TicketKey(Arc<[u8; 32]>);

impl core::fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TicketKey").finish_non_exhaustive()
    }
}

impl TicketKey {
    /// Draws a key that no other server has.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn generate() -> Result<Self, KeyError> {
        Ok(TicketKey(Arc::new(random()?)))
    }

    /// The key of one process of a cluster, by the secret that all nodes share and what names the process alone. Any
    /// node issues tickets for it, and no other one accepts them.
    pub fn of_process(secret: &[u8], process: &str) -> Self {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), process.as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(tag.as_ref());
        TicketKey(Arc::new(key))
    }

    /// Returns a ticket that is valid once, for [`TOKEN_LIFE_S_MAX`] seconds from `now_s` on.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn ticket(
        &self,
        realm: &Realm,
        account: &str,
        what: PermitFor,
        now_s: u64,
    ) -> Result<String, KeyError> {
        let (room, create) = match what {
            PermitFor::Join(code) => (Some(code), false),
            PermitFor::Create(code) => (code, true),
        };
        let claims = Claims {
            sub: account.to_owned(),
            aud: realm.app().to_owned(),
            env: realm.environment().to_owned(),
            room: room.map(|code| code.as_str().to_owned()),
            create,
            iat: now_s,
            exp: now_s.saturating_add(TOKEN_LIFE_S_MAX),
            jti: HEXLOWER.encode(&random::<16>()?),
        };
        Ok(self.sign_as(TYP, &claims))
    }

    pub(super) fn sign_as(&self, typ: &str, claims: &Claims) -> String {
        let header = Header { typ: Some(typ.to_owned()), ..Header::new(Algorithm::HS256) };
        issue::sign(&header, claims, &EncodingKey::from_secret(&self.0[..]))
    }
}

/// Verifies tickets, and remembers used ones and banned accounts.
#[derive(Debug)]
pub struct Tickets {
    signer: Signer,
    /// Accounts that were banned, and when their last ticket expires, in seconds of the services' time. Until
    /// then a ticket may be on its way.
    barred: Mutex<HashMap<(Realm, String), u64>>,
}

impl Tickets {
    /// The tickets that `key` issues.
    pub fn of(key: &TicketKey) -> Self {
        let signer = Signer::new("tickets", Algorithm::HS256, DecodingKey::from_secret(&key.0[..]));
        Tickets { signer, barred: Mutex::default() }
    }

    /// Invalidates this account's tickets issued before `now_s`.
    pub fn bar(&self, realm: Realm, account: String, now_s: u64) {
        let mut barred = lock(&self.barred);
        barred.retain(|_, until_s| *until_s > now_s);
        barred.insert((realm, account), now_s.saturating_add(TOKEN_LIFE_S_MAX + CLOCK_SKEW_S_MAX));
    }

    /// Accepts the account's tickets again.
    pub fn unbar(&self, realm: Realm, account: String) {
        lock(&self.barred).remove(&(realm, account));
    }

    pub(super) fn admit(
        &self,
        token: &[u8],
        hello: &Hello,
        now: Now,
    ) -> Result<(String, UsedToken), TokenError> {
        let claims = self.signer.open(token)?;
        claims.check_fields()?;
        // A hello without an environment means the default environment.
        claims.check_audience(hello, |named| claims.env == environment_of(named))?;
        claims.check_time(now)?;
        if self.is_barred(&claims, now.now_s) {
            return Err(TokenError::Banned);
        }
        self.signer.use_up(claims, now)
    }

    fn is_barred(&self, claims: &Claims, now_s: u64) -> bool {
        let key = Realm::new(&claims.aud, &claims.env).map(|realm| (realm, claims.sub.clone()));
        key.is_ok_and(|key| lock(&self.barred).get(&key).is_some_and(|until_s| now_s < *until_s))
    }
}

fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    system::random().map_err(|error| KeyError::NoRandomness(error.to_string()))
}
