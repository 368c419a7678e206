//! Operator API for rooms in memory: list, inspect, end, kick. Each shard answers for its own rooms, in its
//! own cycle.

use super::accounts::{DONE, Done};
use super::failure::{Failure, Kind};
use super::page::Limit;
use super::table::Caller;
use super::{Services, rooms};
use crate::store::AccountId;
use core::time::Duration;
use parlor_hub::{MemberSummary, NotThere, ROOMS_LOOKED_AT_MAX, RoomPage, RoomQuery, RoomSummary};
use parlor_proto::{MemberId, RoomCode, limits};
use parlor_server::embed::{Clock, Shards, Stopped, unix_ms};
use parlor_server::realm::{ENVIRONMENT, Realm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way to them.
pub(super) struct Live {
    shards: Shards,
    clock: Clock,
}

/// Which part of the list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListLive {
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// A part of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LiveRooms {
    /// Shard by shard, in the order of their codes.
    rooms: Vec<LiveRoom>,
    /// What to give as `after` for the next part, which may be empty; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A room in memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LiveRoom {
    /// Its code.
    code: String,
    /// Who runs it.
    #[schemars(extend("enum" = ["player_hosted", "dedicated", "match"]))]
    kind: &'static str,
    /// Which game.
    app: String,
    /// Which environment of it; empty if its games name none, which counts as production.
    environment: String,
    /// When it opened, in milliseconds since 1970.
    opened_at_ms: u64,
    /// Members, a host without a player included.
    members: usize,
    /// How many of them have lost their connection; their seats are kept.
    away: usize,
    /// Players.
    players: usize,
    /// Players that it may have.
    max_players: u16,
    /// Whether one needs a secret beside the code.
    has_secret: bool,
}

/// A room in memory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedRoom {
    /// Its code.
    code: String,
}

/// A room in memory, and who is in it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LiveRoomDetails {
    /// The room.
    room: LiveRoom,
    /// Its members, in the order in which they came.
    members: Vec<LiveMember>,
}

/// A member of a room in memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LiveMember {
    /// Its number in the room.
    id: u32,
    /// What it calls itself.
    name: String,
    /// The account as which it came in, or the user that the game's own token names; null for a stranger.
    user: Option<String>,
    /// How it is connected, or was last.
    #[schemars(extend("enum" = ["quic", "websocket", "memory"]))]
    link: &'static str,
    /// Whether it has a connection.
    connected: bool,
    /// How long a packet takes to it and back, in milliseconds; null if that was not measured.
    rtt_ms: Option<u32>,
    /// Whether it is the host.
    is_host: bool,
}

/// A room in memory that shall end.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLive {
    /// Its code.
    code: String,
    /// The reason, which its members see. At most 200 bytes.
    #[schemars(length(max = limits::REASON_BYTES_MAX))]
    reason: Option<String>,
}

/// A member that shall go.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveMember {
    /// The room's code.
    code: String,
    /// The member's number in the room.
    member: u32,
    /// The reason, which all members see. At most 200 bytes.
    #[schemars(length(max = limits::REASON_BYTES_MAX))]
    reason: Option<String>,
}

pub(super) async fn list(services: Services, caller: Caller, input: ListLive) -> Result<LiveRooms, Failure> {
    let realm = services.realm_of(&caller)?;
    let after = input.after.as_deref().map(|text| code("after", text)).transpose()?;
    let live = services.live();
    let page = live.rooms(RoomQuery { after, ..query(&realm, input.limit.rows()) }).await?;
    let rooms = page.rooms.iter().map(|room| seen(room, live)).collect();
    Ok(LiveRooms { rooms, next: page.next.map(|code| code.as_str().to_owned()) })
}

pub(super) async fn read(
    services: Services,
    caller: Caller,
    input: NamedRoom,
) -> Result<LiveRoomDetails, Failure> {
    let code = code("code", &input.code)?;
    let live = services.live();
    let details = live.shards.room_details(code).await.map_err(going_down)?;
    let realm = services.realm_of(&caller)?;
    let details = details.filter(|details| is_of(&details.room, &realm));
    let details = details.ok_or_else(|| rooms::no_such_room(code.as_str()))?;
    let members = details.members.into_iter().map(member).collect();
    Ok(LiveRoomDetails { room: seen(&details.room, live), members })
}

pub(super) async fn end(services: Services, caller: Caller, input: EndLive) -> Result<Done, Failure> {
    let reason = reason(input.reason)?;
    let (code, by) = must_be_there(&services, &caller, &input.code).await?;
    let shards = &services.live().shards;
    shards.end_room(code, reason.clone()).await.map_err(going_down)?.map_err(|_| gone(code))?;
    tracing::info!(%code, %by, ?reason, "a room was ended");
    Ok(DONE)
}

pub(super) async fn remove(services: Services, caller: Caller, input: RemoveMember) -> Result<Done, Failure> {
    let reason = reason(input.reason)?;
    let (code, by) = must_be_there(&services, &caller, &input.code).await?;
    let (shards, member) = (&services.live().shards, MemberId(input.member));
    let removed = shards.remove_member(code, member, reason.clone()).await.map_err(going_down)?;
    removed.map_err(|not_there| match not_there {
        NotThere::Room => gone(code),
        NotThere::Member => {
            let sentence = format!("the room {code} has no member {member}: read it again");
            Failure::new(Kind::NotFound, "no_such_member", sentence).at("member")
        }
    })?;
    tracing::info!(%code, %member, %by, ?reason, "a member was removed");
    Ok(DONE)
}

/// Takes the seats of an account in all rooms in memory of its realm, and gives how many they were. Rooms are read in parts and one after
/// another, between which their shards do all else; so an account that may come in meanwhile must have been kept out before.
pub(super) async fn remove_account(
    services: &Services,
    realm: &Realm,
    account: &AccountId,
    reason: &str,
) -> Result<usize, Failure> {
    let live = services.live();
    let reason = cut(reason);
    let mut query = query(realm, ROOMS_LOOKED_AT_MAX);
    let mut removed = 0;
    loop {
        let page = live.rooms(query.clone()).await?;
        for room in page.rooms {
            let details = live.shards.room_details(room.code).await.map_err(going_down)?;
            let members = details.into_iter().flat_map(|details| details.members);
            for member in members.filter(|member| member.user.as_deref() == Some(account.as_str())) {
                let done = live.shards.remove_member(room.code, member.id, reason.to_owned());
                // A room or a member that is gone meanwhile is what was wanted.
                removed += usize::from(done.await.map_err(going_down)?.is_ok());
            }
        }
        query.after = page.next;
        if query.after.is_none() {
            return Ok(removed);
        }
    }
}

/// A reason as long as one may be over the wire.
fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(limits::REASON_BYTES_MAX)]
}

impl Live {
    pub(super) fn new(shards: Shards, clock: Clock) -> Self {
        Live { shards, clock }
    }

    /// Some of the rooms.
    pub(super) async fn rooms(&self, query: RoomQuery) -> Result<RoomPage, Failure> {
        self.shards.rooms(query).await.map_err(going_down)
    }

    /// When a room opened, in milliseconds since 1970.
    pub(super) fn opened_at_ms(&self, room: &RoomSummary) -> u64 {
        let age_ms = self.clock.now().saturating_since(room.opened).as_millis();
        unix_ms().saturating_sub(u64::try_from(age_ms).unwrap_or(u64::MAX))
    }
}

/// A room of the operator's own game and environment, and who asks. The code of another game's room says no more than one that
/// no room has.
async fn must_be_there(
    services: &Services,
    caller: &Caller,
    text: &str,
) -> Result<(RoomCode, String), Failure> {
    let (realm, by) = services.account_of(caller)?;
    let code = code("code", text)?;
    let room = services.live().shards.room(code).await.map_err(going_down)?;
    room.filter(|room| is_of(room, &realm)).ok_or_else(|| gone(code))?;
    Ok((code, by.to_string()))
}

fn gone(code: RoomCode) -> Failure {
    rooms::no_such_room(code.as_str())
}

fn is_of(room: &RoomSummary, realm: &Realm) -> bool {
    room.app == realm.app() && environments(realm).contains(&room.environment)
}

/// Asks for the rooms of a realm, from the first on.
pub(super) fn query(realm: &Realm, limit: usize) -> RoomQuery {
    let (app, environments) = (Some(realm.app().to_owned()), environments(realm));
    RoomQuery { app, environments, limit, ..RoomQuery::default() }
}

/// What rooms in memory may call a realm's environment.
fn environments(realm: &Realm) -> Vec<String> {
    let named = realm.environment();
    let unnamed = (named == ENVIRONMENT).then(String::new);
    core::iter::once(named.to_owned()).chain(unnamed).collect()
}

pub(super) fn code(path: &'static str, text: &str) -> Result<RoomCode, Failure> {
    text.parse().map_err(|error| Failure::field(path, format!("{error}")))
}

fn reason(reason: Option<String>) -> Result<String, Failure> {
    let reason = reason.unwrap_or_default();
    if reason.len() > limits::REASON_BYTES_MAX {
        let sentence = format!("a reason has at most {} bytes: say it shorter", limits::REASON_BYTES_MAX);
        return Err(Failure::field("reason", sentence));
    }
    Ok(reason)
}

fn going_down(stopped: Stopped) -> Failure {
    Failure::unavailable(format!("{stopped}: ask again in a moment"), Duration::from_secs(1))
}

fn seen(room: &RoomSummary, live: &Live) -> LiveRoom {
    LiveRoom {
        code: room.code.as_str().to_owned(),
        kind: room.kind.as_str(),
        app: room.app.clone(),
        environment: room.environment.clone(),
        opened_at_ms: live.opened_at_ms(room),
        members: room.members,
        away: room.away,
        players: room.players,
        max_players: room.max_players,
        has_secret: room.needs_secret,
    }
}

fn member(member: MemberSummary) -> LiveMember {
    LiveMember {
        id: member.id.0,
        name: member.name,
        user: member.user,
        link: member.link.as_str(),
        connected: member.connected,
        rtt_ms: member.rtt_ms,
        is_host: member.is_host,
    }
}
