//! Operations on live rooms: the rooms in memory, which games use over QUIC and WebSocket. Each shard answers
//! for its own rooms, between packets.

use super::accounts::{DONE, Done};
use super::failure::{Failure, Kind};
use super::page::Limit;
use super::table::Caller;
use super::{Services, live_elsewhere, rooms};
use crate::store::{AccountId, LiveListing};
use core::time::Duration;
use parlor_hub::{MemberSummary, NotThere, RoomPage, RoomQuery, RoomSummary, UserSeats};
use parlor_proto::{MemberId, RoomCode, limits};
use parlor_server::Time;
use parlor_server::embed::{Clock, Shards, Stopped};
use parlor_server::realm::{ENVIRONMENT, Realm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Access to the live rooms.
pub(super) struct Live {
    shards: Shards,
    clock: Clock,
    time: Time,
}

/// A part of the list to return.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListLive {
    /// `next` of the part before.
    after: Option<String>,
    /// The maximum number of rooms.
    #[serde(default)]
    limit: Limit,
}

/// A part of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct LiveRooms {
    /// In the order of their codes; without a cluster, shard by shard.
    rooms: Vec<LiveRoom>,
    /// `after` for the next part, which may be empty: one request examines a limited number of rooms. Missing in the last part.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A live room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct LiveRoom {
    /// Its code.
    code: String,
    /// What decides its state: a player's process, a process without a player, or the server.
    #[schemars(extend("enum" = ["player_hosted", "dedicated", "match"]))]
    kind: Cow<'static, str>,
    /// Its game.
    app: String,
    /// The game's environment; empty if its members name none, which counts as production.
    environment: String,
    /// When it opened, in milliseconds since 1970.
    opened_at_ms: u64,
    /// Members: players, spectators, and a host without a player.
    members: usize,
    /// Members whose connection is lost and whose seat is kept.
    away: usize,
    /// Players.
    players: usize,
    /// The maximum number of players.
    max_players: u16,
    /// Spectators.
    spectators: usize,
    /// Whether joining needs a secret beside the code.
    has_secret: bool,
}

/// The code of a live room.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedRoom {
    /// Its code.
    code: String,
}

/// A live room and its members.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct LiveRoomDetails {
    /// The room.
    room: LiveRoom,
    /// Its members, in order of joining.
    members: Vec<LiveMember>,
}

/// A member of a live room.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct LiveMember {
    /// Its number in the room.
    id: u32,
    /// Its display name.
    name: String,
    /// Its account, or the user that the game's own token names; null for an anonymous member.
    user: Option<String>,
    /// Its current or last kind of connection.
    #[schemars(extend("enum" = ["quic", "websocket", "memory"]))]
    link: Cow<'static, str>,
    /// Whether it has a connection.
    connected: bool,
    /// Its round-trip time in milliseconds; null until measured.
    rtt_ms: Option<u32>,
    /// Whether it is the host.
    is_host: bool,
    /// Whether it is a spectator.
    is_spectator: bool,
}

/// A live room to end.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLive {
    /// Its code.
    code: String,
    /// The reason, which its members receive. At most 200 bytes.
    #[schemars(length(max = limits::REASON_BYTES_MAX))]
    reason: Option<String>,
}

/// A member to remove.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveMember {
    /// The room's code.
    code: String,
    /// The member's number in the room.
    member: u32,
    /// The reason, which all members receive. At most 200 bytes.
    #[schemars(length(max = limits::REASON_BYTES_MAX))]
    reason: Option<String>,
}

pub(super) async fn list(services: Services, caller: Caller, input: ListLive) -> Result<LiveRooms, Failure> {
    let realm = services.realm_of(&caller)?;
    let after = input.after.as_deref().map(|text| code("after", text)).transpose()?;
    if let Some(cluster) = services.cluster() {
        let query = live_elsewhere::query(&realm, after, input.limit.rows());
        let (rooms, next) = cluster.directory().list(query).await?;
        return Ok(LiveRooms { rooms: rooms.into_iter().map(LiveRoom::from).collect(), next });
    }
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
    let realm = services.realm_of(&caller)?;
    if let Some(node) = live_elsewhere::node_of(&services, &realm, code).await? {
        return live_elsewhere::read(&services, &node, &realm, code).await;
    }
    read_here(&services, &realm, code).await
}

/// A room of this server, and its members.
pub(super) async fn read_here(
    services: &Services,
    realm: &Realm,
    code: RoomCode,
) -> Result<LiveRoomDetails, Failure> {
    let live = services.live();
    let details = live.shards.room_details(code).await.map_err(going_down)?;
    let details = details.filter(|details| is_of(&details.room, realm));
    let details = details.ok_or_else(|| rooms::no_such_room(code.as_str()))?;
    let members = details.members.into_iter().map(member).collect();
    Ok(LiveRoomDetails { room: seen(&details.room, live), members })
}

pub(super) async fn end(services: Services, caller: Caller, input: EndLive) -> Result<Done, Failure> {
    let reason = reason(input.reason)?;
    let (realm, by) = services.account_of(&caller)?;
    let code = code("code", &input.code)?;
    match live_elsewhere::node_of(&services, &realm, code).await? {
        Some(node) => live_elsewhere::end(&services, &node, &realm, code, &reason).await?,
        None => end_here(&services, &realm, code, reason.clone()).await?,
    }
    tracing::info!(%code, %by, ?reason, "a room was ended");
    Ok(DONE)
}

/// Ends a room of this server.
pub(super) async fn end_here(
    services: &Services,
    realm: &Realm,
    code: RoomCode,
    reason: String,
) -> Result<(), Failure> {
    must_be_here(services, realm, code).await?;
    services.live().shards.end_room(code, reason).await.map_err(going_down)?.map_err(|_| gone(code))
}

pub(super) async fn remove(services: Services, caller: Caller, input: RemoveMember) -> Result<Done, Failure> {
    let reason = reason(input.reason)?;
    let (realm, by) = services.account_of(&caller)?;
    let code = code("code", &input.code)?;
    let member = MemberId(input.member);
    match live_elsewhere::node_of(&services, &realm, code).await? {
        Some(node) => live_elsewhere::remove(&services, &node, &realm, (code, member), &reason).await?,
        None => remove_here(&services, &realm, (code, member), reason.clone()).await?,
    }
    tracing::info!(%code, %member, %by, ?reason, "a member was removed");
    Ok(DONE)
}

/// Removes a member of a room of this server.
pub(super) async fn remove_here(
    services: &Services,
    realm: &Realm,
    (code, member): (RoomCode, MemberId),
    reason: String,
) -> Result<(), Failure> {
    must_be_here(services, realm, code).await?;
    let removed = services.live().shards.remove_member(code, member, reason).await.map_err(going_down)?;
    removed.map_err(|not_there| match not_there {
        NotThere::Room => gone(code),
        NotThere::Member => {
            let sentence = format!("the room {code} has no member {member}: read it again");
            Failure::new(Kind::NotFound, "no_such_member", sentence).at("member")
        }
    })
}

/// The kind of a live room, of this server or of another node.
pub(super) async fn kind_of_room(
    services: &Services,
    realm: &Realm,
    code: RoomCode,
) -> Result<Option<&'static str>, Failure> {
    let room = services.live().shards.room(code).await.map_err(going_down)?;
    match room.filter(|room| is_of(room, realm)) {
        Some(room) => Ok(Some(room.kind.as_str())),
        None => live_elsewhere::kind(services, realm, code).await,
    }
}

/// The kind of a live room in which this account has a seat.
pub(super) async fn kind_of_own_room(
    services: &Services,
    realm: &Realm,
    account: &AccountId,
    code: RoomCode,
) -> Result<Option<&'static str>, Failure> {
    let details = services.live().shards.room_details(code).await.map_err(going_down)?;
    let details = details.filter(|details| is_of(&details.room, realm));
    let sits = |member: &MemberSummary| member.user.as_deref() == Some(account.as_str());
    if let Some(details) = details {
        return Ok(details.members.iter().any(sits).then_some(details.room.kind.as_str()));
    }
    let Some(node) = live_elsewhere::node_of(services, realm, code).await? else { return Ok(None) };
    let details = live_elsewhere::read(services, &node, realm, code).await?;
    let sits = details.members.iter().any(|member| member.user.as_deref() == Some(account.as_str()));
    if sits { live_elsewhere::kind(services, realm, code).await } else { Ok(None) }
}

/// Removes an account from all live rooms of its realm; returns how many seats it had. Hubs find the seats by
/// an index, so concurrent deletions cost no more than the seats (threat 50). Ban the account first, or it
/// may join again meanwhile.
pub(super) async fn remove_account(
    services: &Services,
    realm: &Realm,
    account: &AccountId,
    reason: &str,
) -> Result<usize, Failure> {
    let (app, environments) = (realm.app().to_owned(), environments(realm));
    let seats = UserSeats { app, environments, user: account.as_str().to_owned() };
    services.live().shards.remove_user(seats, cut(reason).to_owned()).await.map_err(going_down)
}

/// Cuts a reason to the length that the wire allows.
fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(limits::REASON_BYTES_MAX)]
}

impl Live {
    pub(super) fn new(shards: Shards, clock: Clock, time: Time) -> Self {
        Live { shards, clock, time }
    }

    /// Lists a part of the rooms.
    pub(super) async fn rooms(&self, query: RoomQuery) -> Result<RoomPage, Failure> {
        self.shards.rooms(query).await.map_err(going_down)
    }

    /// Returns when a room opened, in milliseconds since 1970.
    pub(super) fn opened_at_ms(&self, room: &RoomSummary) -> u64 {
        let age_ms = self.clock.now().saturating_since(room.opened).as_millis();
        self.time.wall_ms().saturating_sub(u64::try_from(age_ms).unwrap_or(u64::MAX))
    }
}

/// Checks that a room of the game and environment has the code. The answer for another game's room is the same as for
/// an unknown code.
pub(super) async fn must_be_here(services: &Services, realm: &Realm, code: RoomCode) -> Result<(), Failure> {
    let room = services.live().shards.room(code).await.map_err(going_down)?;
    room.filter(|room| is_of(room, realm)).map(|_| ()).ok_or_else(|| gone(code))
}

fn gone(code: RoomCode) -> Failure {
    rooms::no_such_room(code.as_str())
}

fn is_of(room: &RoomSummary, realm: &Realm) -> bool {
    room.app == realm.app() && environments(realm).contains(&room.environment)
}

/// Returns a query for the rooms of a realm, from the first on.
pub(super) fn query(realm: &Realm, limit: usize) -> RoomQuery {
    let (app, environments) = (Some(realm.app().to_owned()), environments(realm));
    RoomQuery { app, environments, limit, ..RoomQuery::default() }
}

/// Returns the names that live rooms have for a realm's environment.
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
        kind: room.kind.as_str().into(),
        app: room.app.clone(),
        environment: room.environment.clone(),
        opened_at_ms: live.opened_at_ms(room),
        members: room.members,
        away: room.away,
        players: room.players,
        max_players: room.max_players,
        spectators: room.spectators,
        has_secret: room.needs_secret,
    }
}

impl From<LiveListing> for LiveRoom {
    fn from(listing: LiveListing) -> Self {
        let counts = listing.counts;
        let many = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        LiveRoom {
            code: listing.code,
            kind: listing.kind.into(),
            app: listing.app,
            environment: listing.environment,
            opened_at_ms: listing.opened_ms,
            members: many(counts.members),
            away: many(counts.away),
            players: many(counts.players),
            max_players: u16::try_from(listing.max_players).unwrap_or(u16::MAX),
            spectators: many(counts.spectators),
            has_secret: listing.has_secret,
        }
    }
}

fn member(member: MemberSummary) -> LiveMember {
    LiveMember {
        id: member.id.0,
        name: member.name,
        user: member.user,
        link: member.link.as_str().into(),
        connected: member.connected,
        rtt_ms: member.rtt_ms,
        is_host: member.is_host,
        is_spectator: member.spectates,
    }
}
