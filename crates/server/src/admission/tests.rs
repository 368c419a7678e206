//! Tokens that must be rejected, and the few that must be accepted.

use super::ticket::TicketKey;
use super::*;
use crate::realm::Realm;
use data_encoding::BASE64URL_NOPAD;
use parlor_proto::RoomCode;
use parlor_proto::wire::handshake::RoomKind;
use serde_json::{Value, json};

const NOW_S: u64 = 1_800_000_000;

fn key() -> SigningKey {
    SigningKey::generate().unwrap()
}

/// Tokens of a server that started at a given time, by a clock that the test sets.
struct Judged {
    tokens: Tokens,
    started_s: u64,
}

impl Judged {
    fn new(service: Option<&[u8]>, is_required: bool, started_s: u64) -> Judged {
        Judged { tokens: Tokens::with_key(service, is_required, Time::default()), started_s }
    }

    fn admit_at(&self, hello: &Hello, now_s: u64) -> Result<Admitted, TokenError> {
        let now = Now { now_s, started_s: self.started_s, steady_s: now_s };
        self.tokens.admit_by(hello, now, now)
    }
}

impl core::ops::Deref for Judged {
    type Target = Tokens;

    fn deref(&self) -> &Tokens {
        &self.tokens
    }
}

fn tokens(key: &SigningKey) -> Judged {
    Judged::new(Some(key.public()), true, NOW_S - 1_000)
}

fn code(text: &str) -> RoomCode {
    text.parse().unwrap()
}

fn claims() -> Claims {
    Claims {
        sub: "user-1".into(),
        aud: "tanks".into(),
        env: "production".into(),
        room: Some("K7QM".into()),
        create: false,
        iat: NOW_S - 1,
        exp: NOW_S + 30,
        jti: "one".into(),
    }
}

fn join(room: &str, token: impl Into<Vec<u8>>) -> Hello {
    hello(Intent::Join { code: code(room), secret: None }, token)
}

fn create(room: Option<&str>, token: impl Into<Vec<u8>>) -> Hello {
    let settings = RoomSettings { code: room.map(code), ..RoomSettings::new(RoomKind::PlayerHosted, 4) };
    hello(Intent::Create(settings), token)
}

fn hello(intent: Intent, token: impl Into<Vec<u8>>) -> Hello {
    let auth = Auth::Token(token.into().into());
    Hello { environment: "production".into(), auth, ..Hello::new("tanks", intent) }
}

#[test]
fn a_token_lets_its_user_in_once() {
    let key = key();
    let tokens = tokens(&key);
    let token = key.sign(&claims());
    let admitted = Some("user-1".into());
    let user = tokens.admit_at(&join("K7QM", token.clone()), NOW_S).map(|admitted| admitted.user);
    assert_eq!(user, Ok(admitted));
    assert_eq!(tokens.admit_at(&join("K7QM", token), NOW_S), Err(TokenError::Used));
}

#[test]
fn threat_03_a_hundred_thousand_replays_are_refused() {
    let key = key();
    let tokens = tokens(&key);
    let token = key.sign(&claims());
    let hello = join("K7QM", token);
    assert!(tokens.admit_at(&hello, NOW_S).is_ok());
    // Replays within its validity, and long after.
    let replays = (0..100_000_u64).filter(|replay| tokens.admit_at(&hello, NOW_S + replay / 1_000).is_ok());
    assert_eq!(replays.count(), 0);
}

#[test]
fn threat_03_a_token_is_good_for_one_room_one_game_and_one_purpose() {
    let key = key();
    let tokens = tokens(&key);
    let token = key.sign(&claims());
    let game = |app: &str, environment: &str| Hello {
        app: app.into(),
        environment: environment.into(),
        ..join("K7QM", token.clone())
    };
    for (hello, rejected) in [
        (join("K7QN", token.clone()), TokenError::Room),
        (create(Some("K7QM"), token.clone()), TokenError::Room),
        (create(None, token.clone()), TokenError::Room),
        (game("golf", "production"), TokenError::Audience),
        (game("tanks", "development"), TokenError::Audience),
        (game("tanks/production", ""), TokenError::Audience),
    ] {
        assert_eq!(tokens.admit_at(&hello, NOW_S), Err(rejected), "{hello:?}");
    }
    // The attempt elsewhere did not consume it.
    assert!(tokens.admit_at(&join("k7qm", token), NOW_S).is_ok());
}

#[test]
fn threat_03_a_token_for_a_new_room_joins_none() {
    let key = key();
    let tokens = tokens(&key);
    let any = |jti: &str| Claims { create: true, room: None, jti: jti.into(), ..claims() };
    let named = |jti: &str| Claims { create: true, jti: jti.into(), ..claims() };
    for hello in [
        create(Some("K7QM"), key.sign(&any("1"))),
        create(Some("K7QM"), key.sign(&named("2"))),
        create(None, key.sign(&any("3"))),
    ] {
        assert!(tokens.admit_at(&hello, NOW_S).is_ok(), "{hello:?}");
    }
    for hello in [
        create(None, key.sign(&named("4"))),
        create(Some("K7QN"), key.sign(&named("5"))),
        join("K7QM", key.sign(&any("6"))),
        join("K7QM", key.sign(&named("7"))),
        join("K7QM", key.sign(&Claims { room: None, ..claims() })),
    ] {
        assert_eq!(tokens.admit_at(&hello, NOW_S), Err(TokenError::Room), "{hello:?}");
    }
}

#[test]
fn threat_03_time_is_kept_with_little_tolerance() {
    let key = key();
    let at = |iat: i64, exp: i64| Claims {
        iat: NOW_S.saturating_add_signed(iat),
        exp: NOW_S.saturating_add_signed(exp),
        jti: format!("{iat} {exp}"),
        ..claims()
    };
    let tokens = tokens(&key);
    for (claims, result) in [
        (at(0, 60), Ok(())),
        (at(-60, 1), Err(TokenError::Life)),
        (at(0, 61), Err(TokenError::Life)),
        (at(0, 0), Err(TokenError::Life)),
        (at(10, -10), Err(TokenError::Life)),
        (at(-40, -4), Ok(())),
        (at(-40, -5), Err(TokenError::Expired)),
        (at(-86_400, -86_370), Err(TokenError::BeforeStart)),
        (at(5, 20), Ok(())),
        (at(6, 20), Err(TokenError::Future)),
        (Claims { iat: u64::MAX - 1, exp: u64::MAX, ..claims() }, Err(TokenError::Future)),
        (Claims { iat: 0, exp: u64::MAX, ..claims() }, Err(TokenError::Life)),
    ] {
        let outcome = tokens.admit_at(&join("K7QM", key.sign(&claims)), NOW_S).map(|_| ());
        assert_eq!(outcome, result, "{claims:?}");
    }
}

#[test]
fn threat_03_a_restart_forgets_no_token() {
    let key = key();
    let hello = join("K7QM", key.sign(&claims()));
    assert!(tokens(&key).admit_at(&hello, NOW_S).is_ok());
    let restarted = Judged::new(Some(key.public()), true, NOW_S);
    assert_eq!(restarted.admit_at(&hello, NOW_S), Err(TokenError::BeforeStart));
    let fresh = key.sign(&Claims { iat: NOW_S, ..claims() });
    assert!(restarted.admit_at(&join("K7QM", fresh), NOW_S).is_ok());
}

/// A token built from its parts, signed by `sign`.
fn forged(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let encode = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = BASE64URL_NOPAD.encode(&sign(message.as_bytes()));
    format!("{message}.{signature}")
}

#[test]
fn threat_03_no_other_algorithm_is_accepted() {
    let key = key();
    let tokens = tokens(&key);
    let claims = serde_json::to_value(claims()).unwrap();
    let hmac = |secret: &[u8], message: &[u8]| {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        ring::hmac::sign(&key, message).as_ref().to_vec()
    };
    let pem = key.public_pem();
    let nothing = |_: &[u8]| Vec::new();
    let mut forgeries = Vec::new();
    for none in ["none", "None", "NONE", "nOnE", ""] {
        forgeries.push(forged(&json!({ "alg": none, "typ": "JWT" }), &claims, nothing));
    }
    // The public key is no secret. A verifier that trusts the header would use it as an HMAC secret.
    for secret in [key.public(), pem.as_bytes(), b""] {
        for algorithm in ["HS256", "EdDSA", "ES256", "RS256"] {
            let header = json!({ "alg": algorithm, "typ": "JWT" });
            forgeries.push(forged(&header, &claims, |message| hmac(secret, message)));
        }
    }
    forgeries.push(forged(&json!({ "alg": "EdDSA" }), &claims, nothing));
    forgeries.push(forged(&json!({ "typ": "JWT" }), &claims, nothing));
    // The forger's own key, also inside the header.
    let own = SigningKey::generate().unwrap();
    forgeries.push(own.sign(&serde_json::from_value(claims.clone()).unwrap()));
    for forgery in forgeries {
        let outcome = tokens.admit_at(&join("K7QM", forgery.clone()), NOW_S);
        assert!(matches!(outcome, Err(TokenError::NotSigned(_))), "{forgery}: {outcome:?}");
    }
}

#[test]
fn threat_03_a_token_that_was_changed_anywhere_is_refused() {
    let key = key();
    let tokens = tokens(&key);
    let token = key.sign(&claims());
    for at in 0..token.len() {
        for change in [1_u8, 2, 0x20] {
            let mut changed = token.clone().into_bytes();
            changed[at] ^= change;
            let outcome = tokens.admit_at(&join("K7QM", changed), NOW_S);
            assert!(matches!(outcome, Err(TokenError::NotSigned(_))), "byte {at} by {change}: {outcome:?}");
        }
        let cut = tokens.admit_at(&join("K7QM", &token.as_bytes()[..at]), NOW_S);
        assert!(matches!(cut, Err(TokenError::NotSigned(_))), "{cut:?}");
    }
    // Another user's name under this user's signature.
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let other = serde_json::to_string(&Claims { sub: "user-2".into(), ..claims() }).unwrap();
    parts[1] = BASE64URL_NOPAD.encode(other.as_bytes());
    let stolen = tokens.admit_at(&join("K7QM", parts.join(".")), NOW_S);
    assert!(matches!(stolen, Err(TokenError::NotSigned(_))), "{stolen:?}");
    assert!(tokens.admit_at(&join("K7QM", token), NOW_S).is_ok());
}

#[test]
fn threat_03_claims_that_are_missing_or_of_another_kind_are_refused() {
    let key = key();
    let tokens = tokens(&key);
    let pair = |message: &[u8]| {
        crypto::install();
        let private = jsonwebtoken::EncodingKey::from_ed_der(key.private());
        BASE64URL_NOPAD
            .decode(jsonwebtoken::crypto::sign(message, &private, Algorithm::EdDSA).unwrap().as_bytes())
            .unwrap()
    };
    let header = json!({ "alg": "EdDSA", "typ": "JWT" });
    let whole = serde_json::to_value(claims()).unwrap();
    for name in ["sub", "aud", "iat", "exp", "jti"] {
        for value in
            [None, Some(json!(null)), Some(json!("60")), Some(json!(-1)), Some(json!([])), Some(json!(1.5))]
        {
            let mut odd = whole.clone();
            match value {
                None => odd.as_object_mut().unwrap().remove(name),
                Some(value) => odd.as_object_mut().unwrap().insert(name.to_owned(), value),
            };
            let outcome = tokens.admit_at(&join("K7QM", forged(&header, &odd, pair)), NOW_S);
            assert!(outcome.is_err() || odd["sub"] == "60" || odd["jti"] == "60", "{odd}");
        }
    }
    for (name, text) in
        [("sub", String::new()), ("sub", "x".repeat(65)), ("sub", "a\nb".into()), ("jti", "x".repeat(65))]
    {
        let mut odd = whole.clone();
        odd[name] = text.into();
        let outcome = tokens.admit_at(&join("K7QM", forged(&header, &odd, pair)), NOW_S);
        assert_eq!(outcome, Err(TokenError::Field(name)));
    }
    let critical = json!({ "alg": "EdDSA", "typ": "JWT", "crit": ["exp"], "exp": 1 });
    let outcome = tokens.admit_at(&join("K7QM", forged(&critical, &whole, pair)), NOW_S);
    assert!(matches!(outcome, Err(TokenError::NotSigned(_))), "{outcome:?}");
}

#[test]
fn without_a_token_one_comes_in_only_where_it_is_optional() {
    let key = key();
    let anonymous = Hello { auth: Auth::Anonymous, ..join("K7QM", "") };
    let wrong = join("K7QM", "a.b.c");
    for is_required in [true, false] {
        let tokens = Judged::new(Some(key.public()), is_required, 0);
        let expected = if is_required { Err(TokenError::Missing) } else { Ok(Admitted::default()) };
        assert_eq!(tokens.admit_at(&anonymous, NOW_S), expected);
        assert!(matches!(tokens.admit_at(&wrong, NOW_S), Err(TokenError::NotSigned(_))));
    }
}

#[test]
fn a_pair_of_keys_is_written_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admission.pem");
    let written = key();
    let public = written.write_new(&path).unwrap();
    assert_eq!(public, folder.path().join("admission.pem.pub"));
    assert_eq!(SigningKey::read(&path).unwrap().public(), written.public());
    assert_eq!(issue::read_public(&public).unwrap(), written.public());
    assert!(matches!(written.write_new(&path), Err(KeyError::Unwritable { .. })), "nothing is written over");
    // A public key in the place of a private one, and the reverse, are detected: a server must not hold the
    // private key.
    assert!(matches!(issue::read_public(&path), Err(KeyError::NotThisKey { expected: "public", .. })));
    assert!(matches!(SigningKey::read(&public), Err(KeyError::NotThisKey { expected: "private", .. })));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_token_that_was_given_out_is_accepted() {
    let key = key();
    let tokens = Judged::new(Some(key.public()), true, 0);
    let request = |what| TokenRequest { user: "ada", app: "tanks", environment: "production", what };
    let joining = key.token(&request(PermitFor::Join(code("K7QM")))).unwrap();
    let opening = key.token(&request(PermitFor::Create(None))).unwrap();
    let admitted = Some("ada".into());
    let user_of = |hello: &Hello| tokens.admit(hello).map(|admitted| admitted.user);
    assert_eq!(user_of(&join("K7QM", joining.clone())), Ok(admitted.clone()));
    assert_eq!(user_of(&create(None, opening)), Ok(admitted));
    assert_eq!(tokens.admit(&join("K7QM", joining)), Err(Refusal::Unauthorized));
}

#[test]
fn a_public_key_of_openssl_is_read() {
    // `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout`; the pair of RFC 8410, section 10.
    let folder = tempfile::tempdir().unwrap();
    let (private, public) = (folder.path().join("key"), folder.path().join("key.pub"));
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
               -----END PRIVATE KEY-----\n";
    std::fs::write(&private, pem).unwrap();
    let pem = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
               -----END PUBLIC KEY-----\n";
    std::fs::write(&public, pem).unwrap();
    assert_eq!(SigningKey::read(&private).unwrap().public(), issue::read_public(&public).unwrap());
    assert_eq!(SigningKey::read(&private).unwrap().public_pem(), pem);
}

/// Tickets of accounts beside the tokens of a game's own service.
fn with_tickets(service: &SigningKey) -> (Judged, TicketKey) {
    let ours = TicketKey::generate().unwrap();
    let tokens = tokens(service);
    tokens.accept_tickets(Tickets::of(&ours));
    (tokens, ours)
}

fn realm() -> Realm {
    Realm::new("tanks", "production").unwrap()
}

fn ticket(key: &TicketKey, what: PermitFor) -> String {
    key.ticket(&realm(), "p1", what, NOW_S).unwrap()
}

#[test]
fn threat_03_a_ticket_lets_its_account_in_once_and_nowhere_else() {
    let service = key();
    let (tokens, ours) = with_tickets(&service);
    let joining = ticket(&ours, PermitFor::Join(code("K7QM")));
    let elsewhere = Hello { app: "golf".into(), ..join("K7QM", joining.clone()) };
    let staging = Hello { environment: "staging".into(), ..join("K7QM", joining.clone()) };
    for (hello, rejected) in [
        (join("K7QN", joining.clone()), TokenError::Room),
        (create(None, joining.clone()), TokenError::Room),
        (elsewhere, TokenError::Audience),
        (staging, TokenError::Audience),
    ] {
        assert_eq!(tokens.admit_at(&hello, NOW_S), Err(rejected), "{hello:?}");
    }
    let late = join("K7QM", ticket(&ours, PermitFor::Join(code("K7QM"))));
    assert_eq!(tokens.admit_at(&late, NOW_S + TOKEN_LIFE_S_MAX + CLOCK_SKEW_S_MAX), Err(TokenError::Expired));
    let admitted = Some("p1".into());
    let user_of = |hello: &Hello| tokens.admit_at(hello, NOW_S).map(|admitted| admitted.user);
    assert_eq!(user_of(&join("K7QM", joining.clone())), Ok(admitted.clone()));
    assert_eq!(tokens.admit_at(&join("K7QM", joining), NOW_S), Err(TokenError::Used));
    // A hello without an environment means the default environment.
    let opening = create(None, ticket(&ours, PermitFor::Create(None)));
    assert_eq!(user_of(&Hello { environment: String::new(), ..opening }), Ok(admitted));
    // The service's tokens are still accepted.
    assert!(tokens.admit_at(&join("K7QM", service.sign(&claims())), NOW_S).is_ok());
}

#[test]
fn threat_03_a_ticket_is_good_at_the_server_that_gave_it_out_alone() {
    let service = key();
    let (here, ours) = with_tickets(&service);
    // Another server, or this one after a restart.
    let (there, _) = with_tickets(&service);
    let hello = join("K7QM", ticket(&ours, PermitFor::Join(code("K7QM"))));
    assert!(matches!(there.admit_at(&hello, NOW_S), Err(TokenError::NotSigned(_))));
    assert!(here.admit_at(&hello, NOW_S).is_ok());
}

#[test]
fn threat_03_a_ban_stops_the_tickets_that_are_on_their_way() {
    let service = key();
    let (tokens, ours) = with_tickets(&service);
    let account = "p1".to_owned();
    let hello = || join("K7QM", ticket(&ours, PermitFor::Join(code("K7QM"))));
    tokens.tickets().unwrap().bar(realm(), account.clone(), NOW_S);
    assert_eq!(tokens.admit_at(&hello(), NOW_S), Err(TokenError::Banned));
    // An account with the same id in another environment is another player.
    let staging = Realm::new("tanks", "staging").unwrap();
    tokens.tickets().unwrap().unbar(realm(), account.clone());
    tokens.tickets().unwrap().bar(staging, account, NOW_S);
    assert!(tokens.admit_at(&hello(), NOW_S).is_ok());
}

#[test]
fn threat_32_no_token_is_taken_for_one_of_another_kind() {
    let service = key();
    let (tokens, ours) = with_tickets(&service);
    let says = |jti: &str| Claims { jti: jti.into(), ..claims() };
    // All claims are right, and each token is signed by a key that the server trusts for another kind.
    let of_ours = ["JWT", "", "parlor-access", "parlor-operator", "Parlor-Ticket"];
    let of_service = ["parlor-ticket", "parlor-access", "parlor-operator", "parlor-"];
    let of_ours = of_ours.map(|typ| (typ, ours.sign_as(typ, &says(&format!("ours {typ}")))));
    let of_service = of_service.map(|typ| (typ, service.sign_as(typ, &says(&format!("theirs {typ}")))));
    for (typ, token) in of_ours.into_iter().chain(of_service) {
        let outcome = tokens.admit_at(&join("K7QM", token), NOW_S);
        assert!(matches!(outcome, Err(TokenError::NotSigned(_) | TokenError::NoKey)), "{typ}: {outcome:?}");
    }
    assert!(tokens.admit_at(&join("K7QM", ours.sign_as("parlor-ticket", &says("a"))), NOW_S).is_ok());
    assert!(tokens.admit_at(&join("K7QM", service.sign_as("jwt", &says("b"))), NOW_S).is_ok());
    // Without accounts no ticket is accepted, and without a service's key no token of a service.
    let ticket = join("K7QM", ticket(&ours, PermitFor::Join(code("K7QM"))));
    assert_eq!(self::tokens(&service).admit_at(&ticket, NOW_S), Err(TokenError::NoKey));
    let keyless = Judged::new(None, false, NOW_S - 1_000);
    assert_eq!(keyless.admit_at(&join("K7QM", service.sign(&claims())), NOW_S), Err(TokenError::NoKey));
}

#[test]
fn threat_55_who_was_let_in_is_remembered_whatever_the_time_of_day_does() {
    let key = key();
    let tokens = tokens(&key);
    let hello = join("K7QM", key.sign(&claims()));
    let at = |now_s, steady_s| Now { now_s, started_s: NOW_S - 1_000, steady_s };
    let admit = |now: Now| tokens.admit_by(&hello, now, now);
    assert!(admit(at(NOW_S, 1_000)).is_ok());
    // The clock leaps an hour ahead and back. Only the elapsed time counts.
    assert_eq!(admit(at(NOW_S + 3_600, 1_001)), Err(TokenError::Expired));
    assert!(
        tokens
            .admit_by(
                &join("K7QM", key.sign(&Claims { jti: "two".into(), ..claims() })),
                at(NOW_S, 1_002),
                at(0, 0)
            )
            .is_ok()
    );
    assert_eq!(admit(at(NOW_S, 1_003)), Err(TokenError::Used));
}

#[test]
fn a_token_of_the_first_second_is_accepted_in_the_next() {
    let (service, ours) = (key(), TicketKey::generate().unwrap());
    let time = Time::default();
    let tokens = Tokens::with_key(Some(service.public()), true, time.clone());
    tokens.accept_tickets(Tickets::of(&ours));
    let at_start = |iat| Claims { iat, exp: iat + 30, ..claims() };
    let ticket = ours.sign_as(ticket::TYP, &at_start(time.now_s()));
    let token = service.sign(&at_start(time.wall_s()));
    time.pass(Duration::from_millis(999));
    assert!(tokens.admit(&join("K7QM", ticket)).is_ok());
    assert!(tokens.admit(&join("K7QM", token)).is_ok());
}
