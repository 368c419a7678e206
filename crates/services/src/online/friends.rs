//! The operations on friends and presence. docs/friends.md describes each.

use super::Services;
use super::accounts::{DONE, Done, Nothing};
use super::budgets::AccountBudgets;
use super::callers::account_id;
use super::charges::{Charges, Rates};
use super::failure::{Failure, Kind};
use super::here::Status;
use super::page::Limit;
use super::rooms::draw_code;
use super::table::Caller;
use crate::store::{AccountId, Friend, FriendChange, Saying, StoreError};
use core::time::Duration;
use parlor_hub::budget::Rate;
use parlor_server::embed::Clock;
use parlor_server::realm::Realm;
use parlor_social::{FriendRefused, FriendState, FriendStep};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Requests to other players.
const ASKS: Rate = Rate { burst: 20, interval: Duration::from_secs(30) };
/// Those of all accounts of an address: one address can create many.
const ASKS_OF_ADDRESSES: Rates = Rates {
    of_address: Rate { burst: 120, interval: Duration::from_secs(5) },
    of_neighbourhood: Rate { burst: 480, interval: Duration::from_millis(1_250) },
    what: "requests to players came",
};
/// Other changes of lists and codes.
const CHANGES: Rate = Rate { burst: 20, interval: Duration::from_secs(1) };
/// What a player says of itself.
const SAYINGS: Rate = Rate { burst: 5, interval: Duration::from_secs(1) };
/// Longest status, in characters, and longest text by which friends come to a player, in bytes.
const STATUS_CHARS_MAX: usize = 64;
const JOIN_BYTES_MAX: usize = 64;
/// Attempts to draw a code that nobody has.
const DRAWS: usize = 8;

/// What accounts and addresses owe.
pub(super) struct Friends {
    asks: AccountBudgets,
    asks_of_addresses: Charges,
    changes: AccountBudgets,
    sayings: AccountBudgets,
}

impl Friends {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(clock: Clock, mut random: impl FnMut() -> u64) -> Self {
        Friends {
            asks: AccountBudgets::new(ASKS, clock, &mut random),
            changes: AccountBudgets::new(CHANGES, clock, &mut random),
            sayings: AccountBudgets::new(SAYINGS, clock, &mut random),
            asks_of_addresses: Charges::new(ASKS_OF_ADDRESSES, clock, random),
        }
    }
}

/// Which part of the list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFriends {
    /// Only those in this state.
    #[schemars(schema_with = "optional_state")]
    state: Option<String>,
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// A part of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct FriendList {
    /// In the order of their accounts.
    friends: Vec<FriendView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Another player on the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct FriendView {
    /// Its account.
    account: String,
    /// Its name.
    name: String,
    /// What it is to the player: `asked` by it, or `asks` it.
    #[schemars(schema_with = "state")]
    state: &'static str,
    /// Since when, in milliseconds since 1970.
    since_ms: u64,
    /// Whether a friend has a connection to this server, and shows it.
    online: bool,
    /// What it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// How friends come to it: a room's code, or a lobby's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    join: Option<String>,
}

/// Whom the player asks: one of both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskFriend {
    /// The other's account.
    account: Option<String>,
    /// The other's code.
    code: Option<String>,
}

/// Another player.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OtherPlayer {
    /// Its account.
    account: String,
}

/// What another player is from here on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct FriendChanged {
    /// The other's account.
    account: String,
    /// What it is to the player; missing for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "state")]
    state: Option<&'static str>,
}

/// A player's code.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct FriendCode {
    /// By which others find the player.
    code: String,
}

/// What a player says of itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetPresence {
    /// For people, for example what the player does.
    #[schemars(length(max = STATUS_CHARS_MAX))]
    status: Option<String>,
    /// How friends come to the player: a room's code, or a lobby's id.
    #[schemars(length(max = JOIN_BYTES_MAX))]
    join: Option<String>,
    /// Whether friends see that the player is here; default: yes.
    visible: Option<bool>,
}

fn words() -> [&'static str; 4] {
    FriendState::ALL.map(FriendState::as_str)
}

fn state(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": words() })
}

fn optional_state(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<Option<&str>> = words().into_iter().map(Some).chain([None]).collect();
    json_schema!({ "type": ["string", "null"], "enum": words })
}

pub(super) async fn list(
    services: Services,
    caller: Caller,
    input: ListFriends,
) -> Result<FriendList, Failure> {
    let (realm, me) = services.account_of(&caller)?;
    let only = input.state.as_deref().map(|word| {
        let known = FriendState::from_word(word);
        known.ok_or_else(|| Failure::field("state", format!("it is one of {}", words().join(", "))))
    });
    let (only, after) = (only.transpose()?, input.after.as_deref());
    let page = services.store().friends_of(&realm, &me, only, after, input.limit.rows()).await?;
    let are_friends = page.items.iter().filter(|friend| friend.state == FriendState::Friend);
    let accounts: Vec<AccountId> = are_friends.map(|friend| friend.account.clone()).collect();
    let mut present = services.presence_of(&realm, &accounts).await;
    let view = |Friend { account, name, state, since_ms }: Friend| {
        let here = present.remove(&account);
        let online = here.is_some();
        let Status { status, join } = here.unwrap_or_default();
        FriendView {
            account: account.to_string(),
            name,
            state: state.as_str(),
            since_ms,
            online,
            status: Some(status).filter(|status| !status.is_empty()),
            join,
        }
    };
    Ok(FriendList { friends: page.items.into_iter().map(view).collect(), next: page.next })
}

pub(super) async fn ask(
    services: Services,
    caller: Caller,
    input: AskFriend,
) -> Result<FriendChanged, Failure> {
    let (realm, me) = services.account_of(&caller)?;
    let friends = services.friends();
    friends.asks.charge(&realm, &me)?;
    friends.asks_of_addresses.charge(caller.origin)?;
    let other = match (input.account, input.code) {
        (Some(account), None) => account_id(&account, "account")?,
        (None, Some(code)) => {
            let guess = services.guess_of_account(&caller)?;
            let found = services.store().friend_code_owner(&realm, &code.trim().to_uppercase()).await;
            guess.settle_by(&found);
            found?.ok_or_else(|| no_such_player("code"))?
        }
        (Some(_), Some(_)) => return Err(Failure::field("code", "either `account` or `code`, not both")),
        (None, None) => return Err(Failure::missing("account", "name the other's account or code")),
    };
    step(&services, (&realm, &me), &other, FriendStep::Ask).await
}

pub(super) async fn accept(
    services: Services,
    caller: Caller,
    input: OtherPlayer,
) -> Result<FriendChanged, Failure> {
    changed(&services, &caller, &input, FriendStep::Accept).await
}

pub(super) async fn remove(
    services: Services,
    caller: Caller,
    input: OtherPlayer,
) -> Result<FriendChanged, Failure> {
    changed(&services, &caller, &input, FriendStep::Remove).await
}

pub(super) async fn block(
    services: Services,
    caller: Caller,
    input: OtherPlayer,
) -> Result<FriendChanged, Failure> {
    changed(&services, &caller, &input, FriendStep::Block).await
}

pub(super) async fn unblock(
    services: Services,
    caller: Caller,
    input: OtherPlayer,
) -> Result<FriendChanged, Failure> {
    changed(&services, &caller, &input, FriendStep::Unblock).await
}

async fn changed(
    services: &Services,
    caller: &Caller,
    input: &OtherPlayer,
    done: FriendStep,
) -> Result<FriendChanged, Failure> {
    let (realm, me) = services.account_of(caller)?;
    services.friends().changes.charge(&realm, &me)?;
    step(services, (&realm, &me), &account_id(&input.account, "account")?, done).await
}

/// Does a step, and notifies both of the new state.
async fn step(
    services: &Services,
    (realm, me): (&Realm, &AccountId),
    other: &AccountId,
    step: FriendStep,
) -> Result<FriendChanged, Failure> {
    if me == other {
        return Err(Failure::new(Kind::Conflict, "yourself", "this is your own account").at("account"));
    }
    let now_ms = services.time().now_ms();
    let done = services.store().befriend(realm, (me, other), step, now_ms).await?;
    let FriendChange { before, after } = done.map_err(refused)?;
    if before != after {
        let friend = Some(FriendState::Friend);
        if (before.mine == friend) != (after.mine == friend) {
            services.has_befriended(realm, (me, other), after.mine == friend);
        }
        // Whoever is blocked learns of nothing but the end of what there was.
        for (account, is_changed) in [(me, true), (other, before.theirs != after.theirs)] {
            if is_changed {
                services.tell_news(realm, account, "friends", &json!({ "topic": "friends" }));
            }
        }
    }
    Ok(FriendChanged { account: other.to_string(), state: after.mine.map(FriendState::as_str) })
}

fn no_such_player(path: &str) -> Failure {
    let sentence = "there is no such player here: check the account or the code";
    Failure::new(Kind::NotFound, "no_such_player", sentence).at(path)
}

fn refused(refused: FriendRefused) -> Failure {
    let (kind, code) = match refused {
        FriendRefused::NoSuchPlayer => return no_such_player("account"),
        FriendRefused::Blocked => (Kind::Conflict, "blocked"),
        FriendRefused::NotAsked => (Kind::Conflict, "not_asked"),
        FriendRefused::Full | FriendRefused::OtherFull => (Kind::Conflict, "friends_full"),
        FriendRefused::AskedTooOften => (Kind::Conflict, "asked_too_often"),
    };
    Failure::new(kind, code, refused.to_string()).at("account")
}

pub(super) async fn code(services: Services, caller: Caller, _: Nothing) -> Result<FriendCode, Failure> {
    draw(&services, &caller, false).await
}

pub(super) async fn new_code(services: Services, caller: Caller, _: Nothing) -> Result<FriendCode, Failure> {
    draw(&services, &caller, true).await
}

async fn draw(services: &Services, caller: &Caller, replace: bool) -> Result<FriendCode, Failure> {
    let (realm, me) = services.account_of(caller)?;
    services.friends().changes.charge(&realm, &me)?;
    for _ in 0..DRAWS {
        let proposed = draw_code()?;
        match services.store().friend_code(&realm, &me, proposed.as_str(), replace).await {
            Err(StoreError::Taken { .. }) => {}
            code => return Ok(FriendCode { code: code? }),
        }
    }
    Err(Failure::unavailable("no free code was drawn: ask again", Duration::from_secs(1)))
}

pub(super) async fn set_presence(
    services: Services,
    caller: Caller,
    input: SetPresence,
) -> Result<Done, Failure> {
    let (realm, me) = services.account_of(&caller)?;
    services.friends().sayings.charge(&realm, &me)?;
    let status = input.status.unwrap_or_default();
    if status.chars().count() > STATUS_CHARS_MAX || status.chars().any(char::is_control) {
        let sentence = format!("it has at most {STATUS_CHARS_MAX} characters, and none that controls");
        return Err(Failure::field("status", sentence));
    }
    let is_text = |join: &String| join.len() <= JOIN_BYTES_MAX && !join.chars().any(char::is_control);
    if input.join.as_ref().is_some_and(|join| !is_text(join)) {
        return Err(Failure::field("join", format!("it has at most {JOIN_BYTES_MAX} bytes")));
    }
    let (join, is_visible) = (input.join.filter(|join| !join.is_empty()), input.visible.unwrap_or(true));
    let saying = Saying { status, join, is_visible, said_ms: services.time().now_ms() };
    if services.says_at(&realm, &me, saying.clone()) || services.says_elsewhere(&realm, &me, saying).await? {
        return Ok(DONE);
    }
    let sentence = "only players with an open socket are here: connect to /v1/socket first";
    Err(Failure::new(Kind::Conflict, "not_here", sentence))
}

/// A friend of an export.
pub(super) fn exported(friend: Friend) -> impl Serialize {
    let Friend { account, state, since_ms, .. } = friend;
    json!({ "account": account.as_str(), "state": state.as_str(), "since_ms": since_ms })
}
