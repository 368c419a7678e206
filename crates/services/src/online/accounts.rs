//! Accounts: creation, sign-in, and linked credentials.

use super::charges::Rates;
use super::failure::{Failure, Kind};
use super::password::{BYTES_MAX as PASSWORD_BYTES_MAX, CHARS_MIN as PASSWORD_CHARS_MIN};
use super::secrets;
use super::table::Caller;
use super::{Services, bans};
use crate::store::{
    Account, AccountId, AccountKind, Credential, CredentialKind, EndedSignIn, Role, Rotated, Rotation,
    SignIn, SignInId, StoreError,
};
use core::time::Duration;
use parlor_hub::Origin;
use parlor_hub::budget::Rate;
use parlor_server::realm::{ENVIRONMENT, Realm};
use ring::digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Life of an unused sign-in.
const REFRESH_LIFE: Duration = Duration::from_secs(60 * 24 * 60 * 60);
/// How long the previous refresh token returns its successor again, while that is unused.
const REFRESH_GRACE: Duration = Duration::from_secs(30);
/// Shortest id of a device, in characters, and longest, in bytes. It gives access to the account, so it must
/// be unguessable.
const DEVICE_CHARS_MIN: usize = 16;
const DEVICE_BYTES_MAX: usize = 128;
/// Longest id that a game's service gives to its player, in bytes.
const CUSTOM_BYTES_MAX: usize = 128;
/// Longest e-mail address, in bytes (RFC 5321).
const EMAIL_BYTES_MAX: usize = 254;
/// Pattern for the name of a game or an environment.
const REALM_PATTERN: &str = r"^[^/\u0000-\u001f\u007f-\u009f]{1,64}$";
/// Longest display name, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Limits the accounts that one address creates. Many players share one address (a school, a mobile network),
/// but none may fill the store: one address creates at most 17,280 a day.
pub(super) const NEW_ACCOUNTS: Rates = Rates {
    of_address: Rate { burst: 120, interval: Duration::from_secs(5) },
    of_neighbourhood: Rate { burst: 480, interval: Duration::from_millis(1_250) },
    what: "accounts were made",
};

/// In which game, and as what others shall see it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AsGuest {
    /// The game.
    #[schemars(regex(pattern = REALM_PATTERN))]
    app: String,
    /// Its environment, such as `staging`; what is in one is never seen from another.
    #[serde(default = "production")]
    #[schemars(regex(pattern = REALM_PATTERN))]
    environment: String,
    /// What others see, if the account is made by this; it can be changed later.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
}

/// By the id of a device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ByDevice {
    /// The game.
    #[schemars(regex(pattern = REALM_PATTERN))]
    app: String,
    /// Its environment.
    #[serde(default = "production")]
    #[schemars(regex(pattern = REALM_PATTERN))]
    environment: String,
    /// What others see, if the account is made by this.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    /// A random id that the device has made and keeps secret: it gives access to the account.
    #[schemars(length(min = DEVICE_CHARS_MIN, max = DEVICE_BYTES_MAX))]
    device: String,
}

/// By an id that the game has given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ByCustomId {
    /// The player, as the game knows it.
    #[schemars(length(min = 1, max = CUSTOM_BYTES_MAX))]
    custom: String,
    /// What others see, if the account is made by this.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
}

/// By an e-mail address and a password.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ByEmail {
    /// The game.
    #[schemars(regex(pattern = REALM_PATTERN))]
    app: String,
    /// Its environment.
    #[serde(default = "production")]
    #[schemars(regex(pattern = REALM_PATTERN))]
    environment: String,
    /// The address. The server sends no mail to it.
    #[schemars(length(min = 3, max = EMAIL_BYTES_MAX))]
    email: String,
    /// The password.
    #[schemars(length(min = PASSWORD_CHARS_MIN, max = PASSWORD_BYTES_MAX))]
    password: String,
    /// Makes the account, if the address has none.
    #[serde(default)]
    create: bool,
    /// What others see, if the account is made by this.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
}

/// By the refresh token of the last answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ByRefresh {
    /// The game that the sign-in was for.
    #[schemars(regex(pattern = REALM_PATTERN))]
    app: String,
    /// Its environment.
    #[serde(default = "production")]
    #[schemars(regex(pattern = REALM_PATTERN))]
    environment: String,
    /// The token; it is valid once.
    refresh_token: String,
}

/// One more way to sign in: one of these.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    /// The id of a device.
    #[schemars(length(min = DEVICE_CHARS_MIN, max = DEVICE_BYTES_MAX))]
    device: Option<String>,
    /// An e-mail address; with a password.
    #[schemars(length(min = 3, max = EMAIL_BYTES_MAX))]
    email: Option<String>,
    /// The password of the address. Linked again, the address gets another one.
    #[schemars(length(min = PASSWORD_CHARS_MIN, max = PASSWORD_BYTES_MAX))]
    password: Option<String>,
}

/// A way to sign in that is to go: one of these.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Unlink {
    /// The id of a device.
    #[schemars(length(min = DEVICE_CHARS_MIN, max = DEVICE_BYTES_MAX))]
    device: Option<String>,
    /// An e-mail address.
    #[schemars(length(min = 3, max = EMAIL_BYTES_MAX))]
    email: Option<String>,
}

/// Another name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rename {
    /// What others see.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
}

/// An account, as its owner sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct AccountView {
    /// Its id.
    id: String,
    /// How it came to be.
    #[schemars(extend("enum" = ["guest", "device", "custom", "email"]))]
    kind: String,
    /// What it may do.
    #[schemars(extend("enum" = ["player", "server", "admin"]))]
    role: String,
    /// What others see.
    name: String,
    /// When it was made, in milliseconds since 1970.
    created_ms: u64,
}

/// An account and the kinds of ways to sign in to it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct OwnAccount {
    /// The account.
    account: AccountView,
    /// How one can sign in to it: kinds, and the addresses of those that are e-mail.
    credentials: Vec<CredentialView>,
}

/// A way to sign in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CredentialView {
    /// Which.
    #[schemars(extend("enum" = ["device", "custom", "email"]))]
    kind: String,
    /// The address or the game's own id. That of a device is not kept, only its hash.
    value: Option<String>,
}

/// The result of a sign-in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct SignedIn {
    /// As whom.
    account: AccountView,
    /// What other operations want: `Authorization: Bearer ACCESS_TOKEN`. On the JSON socket it counts from here on.
    pub(super) access_token: String,
    /// Its life, in seconds.
    expires_in_s: u64,
    /// Gives the next access token; valid once, and a secret.
    refresh_token: String,
}

/// It is done.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct Done {
    /// Always true.
    #[schemars(extend("const" = true))]
    pub(super) done: bool,
}

pub(super) const DONE: Done = Done { done: true };

/// Nothing beside the token.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

fn production() -> String {
    ENVIRONMENT.to_owned()
}

/// Creates an account that only its tokens lead to.
pub(super) async fn guest(services: Services, caller: Caller, input: AsGuest) -> Result<SignedIn, Failure> {
    let realm = services.realm(&input.app, &input.environment)?;
    if !services.is_open() {
        return Err(closed());
    }
    let account = new_account(&services, caller.origin, AccountKind::Guest, check_given_name(input.name)?)?;
    services.store().create_account(&realm, &account, None).await?;
    sign_in(&services, &realm, account).await
}

pub(super) async fn device(services: Services, caller: Caller, input: ByDevice) -> Result<SignedIn, Failure> {
    let realm = services.realm(&input.app, &input.environment)?;
    let credential = device_credential(&input.device)?;
    let name = check_given_name(input.name)?;
    let account = if services.is_open() {
        find_or_make(&services, &realm, caller.origin, AccountKind::Device, credential, name).await?
    } else {
        // Without creation the answer reveals whether the id is a device's.
        let guess = services.guess_of_stranger(&caller)?;
        let found = services.store().credential_owner(&realm, credential.kind, &credential.value).await;
        guess.settle_by(&found);
        found?.ok_or_else(closed)?.account
    };
    sign_in(&services, &realm, account).await
}

/// Signs in a player that the game's own service has authenticated.
pub(super) async fn custom(
    services: Services,
    caller: Caller,
    input: ByCustomId,
) -> Result<SignedIn, Failure> {
    let realm = services.realm_of(&caller)?;
    if !(1..=CUSTOM_BYTES_MAX).contains(&input.custom.len()) || input.custom.chars().any(char::is_control) {
        let sentence = format!("it may have 1 to {CUSTOM_BYTES_MAX} bytes, none a control character");
        return Err(Failure::field("custom", sentence));
    }
    let name = check_given_name(input.name)?;
    let credential = Credential { kind: CredentialKind::Custom, value: input.custom, secret_hash: None };
    // The game's own service is responsible for their number.
    let account =
        find_or_make(&services, &realm, Origin::LOCAL, AccountKind::Custom, credential, name).await?;
    sign_in(&services, &realm, account).await
}

pub(super) async fn email(services: Services, caller: Caller, input: ByEmail) -> Result<SignedIn, Failure> {
    let realm = services.realm(&input.app, &input.environment)?;
    let address = address(&input.email)?;
    check_password(&input.password)?;
    let name = check_given_name(input.name)?;
    let guess = services.guess_of_stranger(&caller)?;
    let found = services.store().credential_owner(&realm, CredentialKind::Email, &address).await;
    let owner = match found {
        Ok(owner) => owner,
        Err(error) => {
            guess.was_right();
            return Err(error.into());
        }
    };
    if owner.is_none() && input.create && services.is_open() {
        guess.was_right();
        let account = new_account(&services, caller.origin, AccountKind::Email, name)?;
        let secret_hash = Some(services.passwords().hash(caller.origin, input.password).await?);
        let credential = Credential { kind: CredentialKind::Email, value: address, secret_hash };
        services.store().create_account(&realm, &account, Some(&credential)).await?;
        return sign_in(&services, &realm, account).await;
    }
    let kept = owner.as_ref().and_then(|owner| owner.secret_hash.clone());
    let compared = services.passwords().is_right(caller.origin, input.password, kept).await;
    let owner = compared.map(|is_right| owner.filter(|_| is_right));
    guess.settle_by(&owner);
    match owner? {
        Some(owner) => sign_in(&services, &realm, owner.account).await,
        // The same answer whether the account exists or not: membership is private.
        None if input.create && !services.is_open() => Err(closed()),
        None => {
            let sentence = "there is no account with this address and password; `create` makes one";
            Err(Failure::new(Kind::SignedOut, "wrong_password", sentence))
        }
    }
}

/// Returns the next access token, and consumes the refresh token. For a short time the used token returns the
/// same successor again. A later use proves that two clients have it, and ends the sign-in.
pub(super) async fn refresh(services: Services, _: Caller, input: ByRefresh) -> Result<SignedIn, Failure> {
    let realm = services.realm(&input.app, &input.environment)?;
    let (sign_in, secret) = input.refresh_token.split_once('.').ok_or_else(bad_refresh_token)?;
    let sign_in = SignInId::new(sign_in).map_err(|_| bad_refresh_token())?;
    let next = services.refresh_key().successor(&sign_in, secret);
    let now_ms = services.time().now_ms();
    let rotation = Rotation {
        sign_in: sign_in.clone(),
        presented_hash: hash(secret),
        next_hash: hash(&next),
        now_ms,
        expires_ms: now_ms.saturating_add(ms(REFRESH_LIFE)),
        grace_ms: ms(REFRESH_GRACE),
    };
    match services.store().rotate_token(&realm, &rotation).await? {
        Rotated::Next(account) => {
            services.must_not_be_banned(&realm, &account.id).await?;
            Ok(signed_in(&services, &realm, &account, &sign_in, &next))
        }
        Rotated::Reused(account) => {
            bans::sign_out(&services, &realm, &account, Some(&sign_in));
            tracing::warn!(%account, ?realm, "a refresh token was used again: its sign-in is over");
            let sentence = "this refresh token was used before, so somebody else may have it: sign in again";
            Err(Failure::new(Kind::SignedOut, "refresh_token_reused", sentence))
        }
        Rotated::Unknown => Err(bad_refresh_token()),
    }
}

fn bad_refresh_token() -> Failure {
    let sentence = "this refresh token is not good, or not any more: sign in again";
    Failure::new(Kind::SignedOut, "bad_refresh_token", sentence)
}

/// Ends a sign-in and the feeds of its access tokens.
pub(super) async fn sign_out(services: Services, _: Caller, input: ByRefresh) -> Result<Done, Failure> {
    let realm = services.realm(&input.app, &input.environment)?;
    let Some((id, secret)) = input.refresh_token.split_once('.') else { return Ok(DONE) };
    // An unknown sign-in has ended.
    let Ok(id) = SignInId::new(id) else { return Ok(DONE) };
    match services.store().end_sign_in(&realm, &id, &hash(secret)).await? {
        EndedSignIn::Ended(account) => bans::sign_out(&services, &realm, &account, Some(&id)),
        EndedSignIn::Unknown => {}
        // The id alone must not end a sign-in.
        EndedSignIn::OtherToken => return Err(bad_refresh_token()),
    }
    Ok(DONE)
}

/// Ends all sign-ins of the account and the feeds of its access tokens, for a player who has lost a device.
pub(super) async fn sign_out_everywhere(
    services: Services,
    caller: Caller,
    _: Nothing,
) -> Result<Done, Failure> {
    let (realm, id) = services.account_of(&caller)?;
    services.store().end_sign_ins_of(&realm, &id).await?;
    bans::sign_out(&services, &realm, &id, None);
    Ok(DONE)
}

pub(super) async fn me(services: Services, caller: Caller, _: Nothing) -> Result<OwnAccount, Failure> {
    let (realm, id) = services.account_of(&caller)?;
    own(&services, &realm, &id).await?.ok_or_else(no_account)
}

/// An account as its owner sees it, if it exists.
pub(super) async fn own(
    services: &Services,
    realm: &Realm,
    id: &AccountId,
) -> Result<Option<OwnAccount>, Failure> {
    let Some(account) = services.store().account(realm, id).await? else { return Ok(None) };
    let credentials = services.store().credentials(realm, id).await?.into_iter();
    let credentials = credentials.map(|(kind, value)| {
        let value = (kind != CredentialKind::Device).then_some(value);
        CredentialView { kind: kind.as_str().to_owned(), value }
    });
    Ok(Some(OwnAccount { account: view(&account), credentials: credentials.collect() }))
}

pub(super) async fn rename(services: Services, caller: Caller, input: Rename) -> Result<Done, Failure> {
    let (realm, id) = services.account_of(&caller)?;
    let name = check_name("name", &input.name)?;
    services.store().rename_account(&realm, &id, &name).await?;
    Ok(DONE)
}

pub(super) async fn link(services: Services, caller: Caller, input: Link) -> Result<Done, Failure> {
    let (realm, id) = services.account_of(&caller)?;
    let (credential, password) = match (input.device, input.email, input.password) {
        (Some(device), None, None) => (device_credential(&device)?, None),
        (None, Some(email), Some(password)) => {
            check_password(&password)?;
            let value = address(&email)?;
            (Credential { kind: CredentialKind::Email, value, secret_hash: None }, Some(password))
        }
        (None, Some(_), None) => {
            return Err(Failure::field("password", "an e-mail address needs a password"));
        }
        _ => return Err(Failure::field("", "name either a `device`, or an `email` and its `password`")),
    };
    // `taken` reveals that the address is in use.
    let guess = services.guess_of_account(&caller)?;
    let linked = link_hashed(&services, &caller, (&realm, &id), credential, password).await;
    match &linked {
        Err(failure) if failure.kind() == Kind::Conflict => guess.was_wrong(),
        _ => guess.was_right(),
    }
    linked.map(|()| DONE)
}

async fn link_hashed(
    services: &Services,
    caller: &Caller,
    (realm, id): (&Realm, &AccountId),
    credential: Credential,
    password: Option<String>,
) -> Result<(), Failure> {
    let secret_hash = match password {
        Some(password) => Some(services.passwords().hash(caller.origin, password).await?),
        None => None,
    };
    let credential = Credential { secret_hash, ..credential };
    Ok(services.store().link_credential(realm, id, &credential).await?)
}

pub(super) async fn unlink(services: Services, caller: Caller, input: Unlink) -> Result<Done, Failure> {
    let (realm, id) = services.account_of(&caller)?;
    let (kind, value) = match (input.device, input.email) {
        (Some(device), None) => (CredentialKind::Device, device_credential(&device)?.value),
        (None, Some(email)) => (CredentialKind::Email, address(&email)?),
        _ => return Err(Failure::field("", "name either a `device` or an `email`")),
    };
    services.store().unlink_credential(&realm, &id, kind, &value).await?;
    Ok(DONE)
}

async fn find_or_make(
    services: &Services,
    realm: &Realm,
    origin: Origin,
    kind: AccountKind,
    credential: Credential,
    name: Option<String>,
) -> Result<Account, Failure> {
    let find = || services.store().credential_owner(realm, credential.kind, &credential.value);
    if let Some(owner) = find().await? {
        return Ok(owner.account);
    }
    let account = new_account(services, origin, kind, name)?;
    match services.store().create_account(realm, &account, Some(&credential)).await {
        Ok(()) => Ok(account),
        // A concurrent request of the same device was first.
        Err(StoreError::Taken { .. }) => Ok(find().await?.ok_or_else(no_account)?.account),
        Err(error) => Err(error.into()),
    }
}

/// Builds a new account, charged to the caller. `name` is already checked.
fn new_account(
    services: &Services,
    origin: Origin,
    kind: AccountKind,
    name: Option<String>,
) -> Result<Account, Failure> {
    services.new_accounts().charge(origin)?;
    let id = secrets::id('p')?;
    let display_name = name.unwrap_or_else(|| format!("player-{}", id.get(1..7).unwrap_or_default()));
    let id = AccountId::new(&id)?;
    Ok(Account { id, kind, role: Role::Player, display_name, created_ms: services.time().now_ms() })
}

async fn sign_in(services: &Services, realm: &Realm, account: Account) -> Result<SignedIn, Failure> {
    services.must_not_be_banned(realm, &account.id).await?;
    let (id, secret) = (SignInId::new(&secrets::id('s')?)?, secrets::secret()?);
    let now_ms = services.time().now_ms();
    let sign_in = SignIn {
        id: id.clone(),
        account: account.id.clone(),
        token_hash: hash(&secret),
        now_ms,
        expires_ms: now_ms.saturating_add(ms(REFRESH_LIFE)),
    };
    services.store().begin_sign_in(realm, &sign_in).await?;
    Ok(signed_in(services, realm, &account, &id, &secret))
}

fn signed_in(
    services: &Services,
    realm: &Realm,
    account: &Account,
    sign_in: &SignInId,
    secret: &str,
) -> SignedIn {
    let now_s = services.time().now_s();
    let of = (account.id.as_str(), account.role);
    let (access_token, identity) = services.tokens().sign(of, sign_in, realm, now_s);
    let refresh_token = format!("{sign_in}.{secret}");
    let expires_in_s = identity.exp.saturating_sub(now_s);
    SignedIn { account: view(account), access_token, expires_in_s, refresh_token }
}

fn view(account: &Account) -> AccountView {
    AccountView {
        id: account.id.to_string(),
        kind: account.kind.as_str().to_owned(),
        role: account.role.as_str().to_owned(),
        name: account.display_name.clone(),
        created_ms: account.created_ms,
    }
}

/// A device's id is a password without a name: only its hash is stored.
fn device_credential(device: &str) -> Result<Credential, Failure> {
    if device.chars().count() < DEVICE_CHARS_MIN || device.len() > DEVICE_BYTES_MAX {
        let sentence = format!(
            "it has {} bytes; it may have {DEVICE_CHARS_MIN} characters at least and {DEVICE_BYTES_MAX} bytes at most",
            device.len()
        );
        return Err(Failure::field("device", sentence));
    }
    Ok(Credential { kind: CredentialKind::Device, value: secrets::digest(device), secret_hash: None })
}

/// Normalises an address for comparison.
fn address(text: &str) -> Result<String, Failure> {
    let text = text.trim().to_lowercase();
    let is_address = text.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && !host.is_empty() && !host.contains('@') && text.len() <= EMAIL_BYTES_MAX
    });
    let is_plain = !text.chars().any(|letter| letter.is_control() || letter.is_whitespace());
    if is_address && is_plain { Ok(text) } else { Err(Failure::field("email", "this is no e-mail address")) }
}

fn check_password(password: &str) -> Result<(), Failure> {
    if password.chars().count() < PASSWORD_CHARS_MIN || password.len() > PASSWORD_BYTES_MAX {
        let sentence = format!(
            "a password has {PASSWORD_CHARS_MIN} characters at least and {PASSWORD_BYTES_MAX} bytes at most"
        );
        return Err(Failure::field("password", sentence));
    }
    Ok(())
}

/// Checks the name of an account that may be created; errors are returned even if the account exists.
fn check_given_name(name: Option<String>) -> Result<Option<String>, Failure> {
    name.map(|name| check_name("name", &name)).transpose()
}

fn check_name(path: &str, name: &str) -> Result<String, Failure> {
    let is_long = name.chars().count() > NAME_CHARS_MAX;
    let name = name.trim();
    if name.is_empty() || is_long || name.chars().any(char::is_control) {
        let sentence = format!("a name has 1 to {NAME_CHARS_MAX} characters, none a control character");
        return Err(Failure::field(path, sentence));
    }
    Ok(name.to_owned())
}

fn closed() -> Failure {
    let sentence = "this server lets nobody make an account: the game's own service signs its players in";
    Failure::new(Kind::Forbidden, "closed", sentence)
}

fn no_account() -> Failure {
    let sentence = "the account of this token is not there any more: sign in again";
    Failure::new(Kind::SignedOut, "no_such_account", sentence)
}

fn hash(secret: &str) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, secret.as_bytes());
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
