//! Tickets: the tokens that a server gives out itself, to players who have signed in to an account of its store.
//!
//! A ticket has the claims of any token for admission, the account as its user, and one more: which server gave it out, anew with each
//! start. Servers that share a store share its key; without that claim each of them would take a ticket once.

use super::{
    CLOCK_SKEW_S_MAX, Claims, KeyError, PermitFor, Rejected, Signer, SigningKey, TOKEN_LIFE_S_MAX, lock,
};
use crate::online::environment_of;
use crate::store::{AccountId, Realm};
use crate::system;
use data_encoding::HEXLOWER;
use parlor_proto::wire::handshake::Hello;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What a ticket's head says it is.
pub(super) const TYP: &str = "parlor-ticket";

/// What a ticket says.
#[derive(Serialize, Deserialize)]
struct Says {
    /// The server that gave it out.
    iss: String,
    #[serde(flatten)]
    claims: Claims,
}

/// Gives out tickets. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct TicketKey {
    key: Arc<SigningKey>,
    issuer: Arc<str>,
}

impl TicketKey {
    /// `key` is the store's.
    pub(crate) fn new(key: Arc<SigningKey>) -> Result<Self, KeyError> {
        Ok(TicketKey { key, issuer: HEXLOWER.encode(&random::<16>()?).into() })
    }

    /// A ticket that is good once, for [`TOKEN_LIFE_S_MAX`] seconds from `now_s` on.
    pub(crate) fn ticket(
        &self,
        realm: &Realm,
        account: &AccountId,
        what: PermitFor,
        now_s: u64,
    ) -> Result<String, KeyError> {
        let (room, create) = match what {
            PermitFor::Join(code) => (Some(code), false),
            PermitFor::Create(code) => (code, true),
        };
        let claims = Claims {
            sub: account.to_string(),
            aud: realm.app().to_owned(),
            env: realm.environment().to_owned(),
            room: room.map(|code| code.as_str().to_owned()),
            create,
            iat: now_s,
            exp: now_s.saturating_add(TOKEN_LIFE_S_MAX),
            jti: HEXLOWER.encode(&random::<16>()?),
        };
        Ok(self.key.sign_as(TYP, &Says { iss: self.issuer.to_string(), claims }))
    }
}

/// Verifies tickets, and remembers which were used and who must not come in by any.
#[derive(Debug)]
pub(crate) struct Tickets {
    signer: Signer,
    issuer: Arc<str>,
    /// Accounts that were banned while a ticket may be on its way, and when none can be any more, in seconds since 1970.
    barred: Mutex<HashMap<(Realm, AccountId), u64>>,
}

impl Tickets {
    /// Those that `key` gives out.
    pub(crate) fn of(key: &TicketKey) -> Self {
        Tickets {
            signer: Signer::new(key.key.public()),
            issuer: Arc::clone(&key.issuer),
            barred: Mutex::default(),
        }
    }

    /// No ticket of this account that was given out before `now_s` is good any more.
    pub(crate) fn bar(&self, realm: Realm, account: AccountId, now_s: u64) {
        let mut barred = lock(&self.barred);
        barred.retain(|_, until_s| *until_s > now_s);
        barred.insert((realm, account), now_s.saturating_add(TOKEN_LIFE_S_MAX + CLOCK_SKEW_S_MAX));
    }

    /// It may come in again.
    pub(crate) fn unbar(&self, realm: Realm, account: AccountId) {
        lock(&self.barred).remove(&(realm, account));
    }

    pub(super) fn admit(
        &self,
        token: &[u8],
        hello: &Hello,
        now_s: u64,
        started_s: u64,
    ) -> Result<String, Rejected> {
        let Says { iss, claims } = self.signer.open(token)?;
        if iss != *self.issuer {
            return Err(Rejected::OtherServer);
        }
        claims.check_fields()?;
        // A hello that names no environment means the one that accounts have then.
        claims.check_audience(hello, |named| claims.env == environment_of(named))?;
        claims.check_time(now_s, started_s)?;
        if self.is_barred(&claims, now_s) {
            return Err(Rejected::Banned);
        }
        self.signer.use_up(claims, now_s)
    }

    fn is_barred(&self, claims: &Claims, now_s: u64) -> bool {
        let key = Realm::new(&claims.aud, &claims.env).ok().zip(AccountId::new(&claims.sub).ok());
        key.and_then(|key| lock(&self.barred).get(&key).copied()).is_some_and(|until_s| now_s < until_s)
    }
}

fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    system::random().map_err(|error| KeyError::NoRandomness(error.to_string()))
}
