//! Access tokens: an account's identity, in a game and environment, for a quarter of an hour.
//!
//! An access token is a JWT with a pinned algorithm (Ed25519) and its own `typ`, so admission tokens cannot
//! replace it. The services sign players' tokens with a key in their store. Operators and the game's own
//! service sign theirs with a private key; the server has only the public half (`--operator-key`). So a
//! compromised server cannot make such tokens.

use super::failure::{Failure, Kind};
use super::role::word;
use super::verified::Verified;
use crate::store::{Role, SignInId};
use core::time::Duration;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use parlor_server::Time;
use parlor_server::admission::{CLAIM_BYTES_MAX, CLOCK_SKEW_S_MAX, SigningKey};
use parlor_server::embed::{install_crypto, unix_s};
use parlor_server::realm::Realm;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Life of a player's access token.
pub(super) const ACCESS_LIFE: Duration = Duration::from_secs(15 * 60);
/// Longest life of an operator's token, in seconds.
pub const OPERATOR_LIFE_S_MAX: u64 = 60 * 60;

const ACCESS: &str = "parlor-access";
const OPERATOR: &str = "parlor-operator";

/// Who signed a token, and so what its `sub` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Signer {
    /// This server, for an account.
    #[default]
    Server,
    /// A holder of the operator's key, under any name.
    Operator,
}

/// An authenticated identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The account; for an operator any name, which is logged.
    pub(crate) sub: String,
    /// Its role.
    #[serde(with = "word")]
    pub(crate) role: Role,
    /// The game.
    pub(crate) aud: String,
    /// Its environment; may be missing if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) env: String,
    /// Time of issue, in seconds since 1970.
    pub(crate) iat: u64,
    /// Expiry, in seconds since 1970.
    pub(crate) exp: u64,
    /// The sign-in for which it was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sid: Option<String>,
    /// Its signer, by the token's header.
    #[serde(skip)]
    pub(crate) signer: Signer,
}

/// Returns an operator's token, which is valid for [`OPERATOR_LIFE_S_MAX`] seconds from now. `sub` is the
/// operator's name in the log.
pub fn operator_token(key: &SigningKey, role: Role, sub: &str, app: &str, environment: &str) -> String {
    operator_token_at(key, role, sub, app, environment, unix_s())
}

fn operator_token_at(
    key: &SigningKey,
    role: Role,
    sub: &str,
    app: &str,
    environment: &str,
    now_s: u64,
) -> String {
    let claims = Identity {
        sub: sub.to_owned(),
        role,
        aud: app.to_owned(),
        env: environment.to_owned(),
        iat: now_s,
        exp: now_s.saturating_add(OPERATOR_LIFE_S_MAX),
        sid: None,
        signer: Signer::Operator,
    };
    key.sign_as(OPERATOR, &claims)
}

/// Signs and verifies access tokens.
pub(super) struct Tokens {
    own: Arc<SigningKey>,
    verify_own: DecodingKey,
    verify_operator: Option<DecodingKey>,
    validation: Validation,
    verified: Verified,
}

impl Tokens {
    /// `operator` is the public key of operators' tokens.
    pub(super) fn new(own: Arc<SigningKey>, operator: Option<&[u8]>) -> Self {
        install_crypto();
        let mut validation = Validation::new(Algorithm::EdDSA);
        // Times are checked below, by a clock that tests can set. The audience is the realm of an operation.
        validation.required_spec_claims.clear();
        (validation.validate_exp, validation.validate_aud) = (false, false);
        let verify_own = DecodingKey::from_ed_der(own.public());
        let verify_operator = operator.map(DecodingKey::from_ed_der);
        Tokens { own, verify_own, verify_operator, validation, verified: Verified::default() }
    }

    /// Returns a token for an account with a sign-in.
    pub(super) fn sign(
        &self,
        (account, role): (&str, Role),
        sign_in: &SignInId,
        realm: &Realm,
        now_s: u64,
    ) -> (String, Identity) {
        let claims = Identity {
            sub: account.to_owned(),
            role,
            aud: realm.app().to_owned(),
            env: realm.environment().to_owned(),
            iat: now_s,
            exp: now_s.saturating_add(ACCESS_LIFE.as_secs()),
            sid: Some(sign_in.as_str().to_owned()),
            signer: Signer::Server,
        };
        (self.own.sign_as(ACCESS, &claims), claims)
    }

    /// Returns the identity of a valid token.
    pub(super) fn verify(&self, token: &str, time: &Time) -> Result<Identity, Failure> {
        self.verify_by(token, |identity| identity.now_s(time))
    }

    fn verify_by(&self, token: &str, now_s: impl Fn(&Identity) -> u64) -> Result<Identity, Failure> {
        let claims = match self.verified.find(token) {
            Some(claims) => claims,
            None => {
                let claims = self.verify_signed(token)?;
                self.verified.enter(token, &claims);
                claims
            }
        };
        let now_s = now_s(&claims);
        if claims.iat > now_s.saturating_add(CLOCK_SKEW_S_MAX) {
            return Err(unsigned());
        }
        claims.check_time(now_s)?;
        Ok(claims)
    }

    /// Returns what the operator's key signed as `typ`, if it did. No time is checked.
    pub(super) fn by_operator<T: DeserializeOwned>(&self, typ: &str, token: &str) -> Option<T> {
        let key = self.verify_operator.as_ref()?;
        let head = jsonwebtoken::decode_header(token).ok()?;
        if head.typ.as_deref() != Some(typ) || head.crit.is_some() {
            return None;
        }
        Some(jsonwebtoken::decode::<T>(token, key, &self.validation).ok()?.claims)
    }

    /// Returns the identity of this token, without a check of its expiry.
    fn verify_signed(&self, token: &str) -> Result<Identity, Failure> {
        let head = jsonwebtoken::decode_header(token).map_err(|_| unsigned())?;
        let (key, life_s_max, signer) = match head.typ.as_deref() {
            Some(ACCESS) => (&self.verify_own, ACCESS_LIFE.as_secs(), Signer::Server),
            Some(OPERATOR) => {
                let key = self.verify_operator.as_ref().ok_or_else(no_operator)?;
                (key, OPERATOR_LIFE_S_MAX, Signer::Operator)
            }
            _ => return Err(unsigned()),
        };
        if head.crit.is_some() {
            return Err(unsigned());
        }
        let claims = jsonwebtoken::decode::<Identity>(token, key, &self.validation);
        let is_operators = head.typ.as_deref() == Some(OPERATOR);
        let claims = claims.map_err(|_| if is_operators { other_operator() } else { unsigned() })?.claims;
        let is_text = |text: &str| text.len() <= CLAIM_BYTES_MAX && !text.chars().any(char::is_control);
        if claims.sub.is_empty()
            || ![&claims.sub, &claims.aud, &claims.env].into_iter().all(|text| is_text(text))
        {
            return Err(unsigned());
        }
        let life_s = claims.exp.checked_sub(claims.iat).filter(|life_s| *life_s <= life_s_max);
        if life_s.is_some() { Ok(Identity { signer, ..claims }) } else { Err(unsigned()) }
    }
}

fn unsigned() -> Failure {
    let sentence = "this is no access token of this server: sign in, and send the access_token of the answer";
    Failure::new(Kind::SignedOut, "bad_token", sentence)
}

fn no_operator() -> Failure {
    let sentence = "this server has no operator: start it with --operator-key FILE.pub, the public half of the key that signed this token";
    Failure::new(Kind::SignedOut, "bad_token", sentence)
}

fn other_operator() -> Failure {
    let sentence = "another key signed this operator's token: use the private half of the one that the server has as --operator-key";
    Failure::new(Kind::SignedOut, "bad_token", sentence)
}

impl Identity {
    /// The current time by the clock of its issuer.
    pub(super) fn now_s(&self, time: &Time) -> u64 {
        match self.signer {
            Signer::Operator => time.wall_s(),
            Signer::Server => time.now_s(),
        }
    }

    /// Returns its remaining validity, in whole seconds; zero if it has expired.
    pub(super) fn time_left(&self, time: &Time) -> Duration {
        Duration::from_secs(self.exp.saturating_sub(self.now_s(time)))
    }

    /// Returns the sign-in for which it was issued.
    pub(super) fn sign_in(&self) -> Option<SignInId> {
        self.sid.as_deref().and_then(|sid| SignInId::new(sid).ok())
    }

    /// Checks that it has not expired.
    pub(super) fn check_time(&self, now_s: u64) -> Result<(), Failure> {
        if now_s < self.exp {
            return Ok(());
        }
        let sentence = "this access token is over: get another one with the refresh token, or sign in again";
        Err(Failure::new(Kind::SignedOut, "token_expired", sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::BASE64URL_NOPAD;
    use serde_json::{Value, json};

    const NOW_S: u64 = 1_800_000_000;

    fn key() -> Arc<SigningKey> {
        Arc::new(SigningKey::generate().unwrap())
    }

    fn realm() -> Realm {
        Realm::new("tanks", "beta").unwrap()
    }

    fn sign(tokens: &Tokens) -> (String, Identity) {
        tokens.sign(("p1", Role::Player), &SignInId::new("s1").unwrap(), &realm(), NOW_S)
    }

    impl Tokens {
        fn verify_at(&self, token: &str, now_s: u64) -> Result<Identity, Failure> {
            self.verify_by(token, |_| now_s)
        }
    }

    fn code(tokens: &Tokens, token: &str, now_s: u64) -> &'static str {
        tokens.verify_at(token, now_s).unwrap_err().code()
    }

    #[test]
    fn a_token_says_who_somebody_is_until_it_is_over() {
        let tokens = Tokens::new(key(), None);
        let (token, identity) = sign(&tokens);
        assert_eq!(tokens.verify_at(&token, NOW_S), Ok(identity.clone()));
        assert_eq!(tokens.verify_at(&token, identity.exp - 1), Ok(identity.clone()));
        assert_eq!(code(&tokens, &token, identity.exp), "token_expired");
        assert_eq!(code(&tokens, &token, NOW_S - 60), "bad_token", "it comes from the future");
    }

    #[test]
    fn threat_32_a_token_that_was_verified_before_is_judged_by_its_time_each_time() {
        let tokens = Tokens::new(key(), None);
        let (token, identity) = sign(&tokens);
        for _ in 0..2 {
            assert_eq!(code(&tokens, &token, NOW_S - 60), "bad_token", "it comes from the future");
            assert_eq!(tokens.verify_at(&token, NOW_S), Ok(identity.clone()));
            assert_eq!(code(&tokens, &token, identity.exp), "token_expired");
        }
        // A server with another key does not accept it.
        assert_eq!(code(&Tokens::new(key(), None), &token, NOW_S), "bad_token");
    }

    #[test]
    fn threat_32_a_token_is_good_for_what_it_was_made_for_alone() {
        let (own, operator) = (key(), key());
        let stolen = SigningKey::from_kept(own.to_kept()).unwrap();
        let tokens = Tokens::new(own, Some(operator.public()));
        let admin = operator_token_at(&operator, Role::Admin, "ops", "tanks", "", NOW_S);
        assert_eq!(tokens.verify_at(&admin, NOW_S).map(|identity| identity.role), Ok(Role::Admin));
        let claims = json!({ "sub": "p1", "role": "admin", "aud": "tanks", "iat": NOW_S, "exp": NOW_S + 60 });
        // The server's own key signs no operators, an operator's key no players, and no key another `typ` or
        // none.
        for (key, typ) in [
            (&stolen, OPERATOR),
            (&operator, ACCESS),
            (&stolen, "JWT"),
            (&stolen, ""),
            (&operator, "jwt"),
            (&key(), ACCESS),
        ] {
            assert_eq!(code(&tokens, &key.sign_as(typ, &claims), NOW_S), "bad_token", "{typ}");
        }
        let long =
            json!({ "sub": "p1", "role": "admin", "aud": "tanks", "iat": NOW_S, "exp": NOW_S + 4_000 });
        assert_eq!(code(&tokens, &operator.sign_as(OPERATOR, &long), NOW_S), "bad_token");
        assert_eq!(code(&Tokens::new(key(), None), &admin, NOW_S), "bad_token", "there is no operator's key");
    }

    #[test]
    fn threat_32_no_other_algorithm_and_no_changed_token_is_accepted() {
        let tokens = Tokens::new(key(), None);
        let (token, _) = sign(&tokens);
        let parts: Vec<&str> = token.split('.').collect();
        let text = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        for alg in ["none", "HS256", "RS256", "ES256"] {
            let head = text(&json!({ "alg": alg, "typ": ACCESS }));
            for signature in [parts[2], ""] {
                assert_eq!(code(&tokens, &format!("{head}.{}.{signature}", parts[1]), NOW_S), "bad_token");
            }
        }
        let admin = json!({ "sub": "p1", "role": "admin", "aud": "tanks", "iat": NOW_S, "exp": NOW_S + 60 });
        assert_eq!(code(&tokens, &format!("{}.{}.{}", parts[0], text(&admin), parts[2]), NOW_S), "bad_token");
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last letter of a part may have unused bits.
            let is_same = tokens.verify_at(&changed, NOW_S) == tokens.verify_at(&token, NOW_S);
            assert!(!is_same || parts.iter().any(|part| changed.contains(part)), "letter {at}");
        }
        for nonsense in ["", ".", "..", "a.b.c", &"x".repeat(10_000)] {
            assert_eq!(code(&tokens, nonsense, NOW_S), "bad_token");
        }
    }
}
