//! The operations on turn rooms. docs/turn-rooms.md describes each.

use super::search::{Search, Wanted, hash};
use super::{change, look, no_such_room, open};
use crate::online::Services;
use crate::online::accounts::Nothing;
use crate::online::failure::{Failure, Kind};
use crate::online::page::Limit;
use crate::online::table::Caller;
use crate::store::{Page, Role, RoomId, RoomListing};
use parlor_proto::RoomCode;
use parlor_server::realm::Realm;
use parlor_social::limits::ID_BYTES_MAX;
use parlor_turn::limits::{NAME_CHARS_MAX, PLAYERS_MAX, REASON_CHARS_MAX, WORD_PATTERN};
use parlor_turn::{
    Actor, Config, ConfiguredBy, Create, Criteria, Mode, Op, PlayerId, ProposalId, RoomView, Summary,
    Visibility,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

type Object = Map<String, Value>;

/// A room that shall be opened.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateRoom {
    /// The mode of the game, where the server has games of its operator's.
    #[schemars(regex(pattern = WORD_PATTERN))]
    pub(super) mode: Option<String>,
    /// How the room is set up: docs/turn-rooms.md has all fields. Where the server has games of its operator's, leave it out.
    #[schemars(with = "Option<Config>")]
    pub(super) config: Option<Value>,
    /// The creator's name, as the others read it; that of the account if missing.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub(super) player_name: Option<String>,
    /// The room's name; the game's if missing.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub(super) name: Option<String>,
    /// Whether it is listed: `public` or `private`.
    pub(super) visibility: Option<Visibility>,
    /// Seats, between the configuration's least and most.
    #[schemars(range(min = 1, max = PLAYERS_MAX))]
    pub(super) max_players: Option<u16>,
    /// Merged into the configuration's.
    #[schemars(with = "Option<Object>")]
    pub(super) metadata: Option<Value>,
    /// The code that players join by, where the configuration lets its creator choose one; drawn if missing.
    #[schemars(length(min = 4, max = 32))]
    pub(super) code: Option<String>,
    /// Names this request: if its answer is lost and it is sent again with the same id, the answer is the room
    /// that the first one opened.
    #[schemars(length(min = 1, max = ID_BYTES_MAX))]
    pub(super) id: Option<String>,
}

/// Which part of a list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListRooms {
    /// The game; that of the token if missing.
    game: Option<String>,
    /// What a room must be to be listed, over being public and having a seat. In a query, this object as JSON.
    #[schemars(with = "Option<Criteria>")]
    criteria: Option<Value>,
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// Which part of one's own list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartOfList {
    /// What the last part gave as `next`.
    after: Option<String>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
}

/// By a code.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinByCode {
    /// The code, as typed.
    code: String,
    /// The player's name, as the others read it; that of the account if missing.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
}

/// A room.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InRoom {
    /// Its id.
    #[schemars(with = "parlor_turn::RoomId")]
    pub(super) room: String,
}

/// A seat in a room.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinRoom {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// The player's name, as the others read it; that of the account if missing.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
}

/// The player to remove.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KickPlayer {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// The player's account.
    #[schemars(with = "PlayerId")]
    player: String,
    /// The reason, which all players see.
    #[schemars(length(min = 1, max = REASON_CHARS_MAX))]
    reason: Option<String>,
}

/// How the game begins.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartGame {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// All players in the order of their turns; drawn if missing.
    #[schemars(with = "Option<Vec<PlayerId>>")]
    turn_order: Option<Vec<String>>,
    /// The players' roles, if the configuration says `assigned`.
    roles: Option<BTreeMap<String, String>>,
}

/// A move.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProposeMove {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// The type of the move.
    #[serde(rename = "type")]
    #[schemars(regex(pattern = WORD_PATTERN))]
    kind: String,
    /// What belongs to it.
    #[serde(default)]
    #[schemars(with = "Option<Object>")]
    data: Option<Value>,
    /// The state that it is made for: a move that comes too late or twice is refused.
    state_version: Option<u64>,
    /// What it changes of the state, where no rules decide.
    #[schemars(with = "Option<Object>")]
    state: Option<Value>,
}

/// A word on another's move.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValidateMove {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// The move.
    proposal: u64,
    /// Whether it is right.
    accept: bool,
    /// The reason against it, which all players see.
    #[schemars(length(min = 1, max = REASON_CHARS_MAX))]
    reason: Option<String>,
}

/// How a game ends.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndGame {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// The winner, if there is one.
    #[schemars(with = "Option<PlayerId>")]
    winner: Option<String>,
    /// Why.
    #[schemars(length(min = 1, max = REASON_CHARS_MAX))]
    reason: Option<String>,
}

/// What is to be said about a room. What is missing stays.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateRoom {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// Its name: the host's and its admins' to set.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    /// Whether it is listed: the same.
    visibility: Option<Visibility>,
    /// Merged into the room's metadata: the same.
    #[schemars(with = "Option<Object>")]
    metadata: Option<Value>,
    /// Merged into the room's data: any player's.
    #[schemars(with = "Option<Object>")]
    data: Option<Value>,
    /// Whether `metadata` and `data` take the place of the old ones, and are not merged into them.
    #[serde(default)]
    replace: bool,
    /// The players that, beside the host, may pause the room and change what is said about it: the host names them.
    #[schemars(with = "Option<Vec<PlayerId>>")]
    admins: Option<Vec<String>>,
}

/// A message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SayInRoom {
    /// The room's id.
    #[schemars(with = "parlor_turn::RoomId")]
    room: String,
    /// What kind of message it is.
    #[serde(rename = "type")]
    #[schemars(regex(pattern = WORD_PATTERN))]
    kind: String,
    /// The message.
    #[serde(default)]
    body: Value,
}

/// A room, as the caller may read it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RoomAnswer {
    /// The room: docs/turn-rooms.md has its fields. Null if the caller may not read it, for instance because
    /// it left.
    #[schemars(with = "Option<RoomView<'static>>")]
    pub(super) room: Option<Box<RawValue>>,
}

/// A part of a list of rooms.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RoomList {
    /// Of each room what lists have of it.
    #[schemars(with = "Vec<Summary<'static>>")]
    rooms: Vec<Box<RawValue>>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(crate) async fn create(
    services: Services,
    caller: Caller,
    input: CreateRoom,
) -> Result<RoomAnswer, Failure> {
    let new = New::read(&services, &caller, input).await?;
    // Before any quota: the room that an earlier request opened counts in them.
    if let Some(answer) = new.opened_before(&services).await? {
        return Ok(answer);
    }
    // A player whose criteria are exactly this metadata finds the room by this hash.
    let metadata = new.create.metadata_with(&new.config)?;
    let criteria =
        Criteria { metadata: metadata.as_object().cloned().unwrap_or_default(), ..Criteria::default() };
    new.open(&services, &caller, hash(new.config.rules.as_deref(), &criteria)).await
}

pub(crate) async fn list(services: Services, caller: Caller, input: ListRooms) -> Result<RoomList, Failure> {
    let realm = services.realm_of(&caller)?;
    let games = services.games();
    let game = input.game.unwrap_or_else(|| games.game_of(realm.app()));
    let criteria = read_criteria(input.criteria.as_ref())?;
    let wanted =
        Wanted { game: &game, criteria: &criteria, rules: None, operators_only: games.are_operators() };
    listed(Search::new(&services, &realm, wanted, input.after).page(input.limit.rows()).await?)
}

pub(crate) async fn mine(services: Services, caller: Caller, input: PartOfList) -> Result<RoomList, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    listed(services.store().rooms_of(&realm, &account, input.after.as_deref(), input.limit.rows()).await?)
}

/// Lists all rooms of the realm, for its operators.
pub(crate) async fn all(services: Services, caller: Caller, input: PartOfList) -> Result<RoomList, Failure> {
    let realm = services.realm_of(&caller)?;
    listed(services.store().all_rooms(&realm, input.after.as_deref(), input.limit.rows()).await?)
}

pub(crate) async fn join_by_code(
    services: Services,
    caller: Caller,
    input: JoinByCode,
) -> Result<RoomAnswer, Failure> {
    let (realm, player) = player(&services, &caller)?;
    let code: RoomCode = input.code.parse().map_err(|error| Failure::field("code", format!("{error}")))?;
    let guess = services.guess_of_account(&caller)?;
    let found = services.store().room_by_code(&realm, code.as_str()).await;
    guess.settle_by(&found);
    let room = found?.ok_or_else(|| no_such_room(code.as_str()))?;
    let name = name_of(&services, &realm, &caller, input.name).await?;
    let seen = change(&services, &realm, &room, &Actor::Player(player), Op::Join(parlor_turn::Join { name }))
        .await?;
    Ok(RoomAnswer { room: seen })
}

pub(crate) async fn read(services: Services, caller: Caller, input: InRoom) -> Result<RoomAnswer, Failure> {
    let (realm, actor) = actor(&services, &caller)?;
    Ok(RoomAnswer { room: Some(look(&services, &realm, &room(&input.room)?, &actor).await?) })
}

pub(crate) async fn join(services: Services, caller: Caller, input: JoinRoom) -> Result<RoomAnswer, Failure> {
    let realm = services.realm_of(&caller)?;
    let name = name_of(&services, &realm, &caller, input.name).await?;
    perform(&services, &caller, &input.room, Op::Join(parlor_turn::Join { name })).await
}

pub(crate) async fn leave(services: Services, caller: Caller, input: InRoom) -> Result<RoomAnswer, Failure> {
    perform(&services, &caller, &input.room, Op::Leave).await
}

pub(crate) async fn resign(services: Services, caller: Caller, input: InRoom) -> Result<RoomAnswer, Failure> {
    perform(&services, &caller, &input.room, Op::Resign).await
}

pub(crate) async fn kick(
    services: Services,
    caller: Caller,
    input: KickPlayer,
) -> Result<RoomAnswer, Failure> {
    let kick = parlor_turn::Kick { player: player_id("player", &input.player)?, reason: input.reason };
    perform(&services, &caller, &input.room, Op::Kick(kick)).await
}

pub(crate) async fn start(
    services: Services,
    caller: Caller,
    input: StartGame,
) -> Result<RoomAnswer, Failure> {
    let order = input.turn_order.map(|order| player_ids("turn_order", &order));
    let roles = input.roles.map(|roles| {
        let given = roles.into_iter().map(|(id, role)| Ok((player_id(&format!("roles.{id}"), &id)?, role)));
        given.collect::<Result<_, Failure>>()
    });
    let start = parlor_turn::Start { turn_order: order.transpose()?, roles: roles.transpose()? };
    perform(&services, &caller, &input.room, Op::Start(start)).await
}

pub(crate) async fn propose(
    services: Services,
    caller: Caller,
    input: ProposeMove,
) -> Result<RoomAnswer, Failure> {
    let ProposeMove { room, kind, data, state_version, state } = input;
    let data = data.unwrap_or_else(|| Value::Object(Map::new()));
    let propose = parlor_turn::Propose { kind, data, state_version, state };
    perform(&services, &caller, &room, Op::Propose(propose)).await
}

pub(crate) async fn validate(
    services: Services,
    caller: Caller,
    input: ValidateMove,
) -> Result<RoomAnswer, Failure> {
    let ValidateMove { room, proposal, accept, reason } = input;
    let validate = parlor_turn::Validate { proposal: ProposalId(proposal), accept, reason };
    perform(&services, &caller, &room, Op::Validate(validate)).await
}

pub(crate) async fn end(services: Services, caller: Caller, input: EndGame) -> Result<RoomAnswer, Failure> {
    let winner = input.winner.map(|winner| player_id("winner", &winner)).transpose()?;
    perform(&services, &caller, &input.room, Op::End(parlor_turn::End { winner, reason: input.reason })).await
}

pub(crate) async fn update(
    services: Services,
    caller: Caller,
    input: UpdateRoom,
) -> Result<RoomAnswer, Failure> {
    let UpdateRoom { room, name, visibility, metadata, data, replace, admins } = input;
    let admins = admins.map(|admins| player_ids("admins", &admins)).transpose()?;
    let update = parlor_turn::Update { name, visibility, metadata, data, replace, admins };
    perform(&services, &caller, &room, Op::Update(update)).await
}

pub(crate) async fn pause(services: Services, caller: Caller, input: InRoom) -> Result<RoomAnswer, Failure> {
    perform(&services, &caller, &input.room, Op::Pause(true)).await
}

pub(crate) async fn resume(services: Services, caller: Caller, input: InRoom) -> Result<RoomAnswer, Failure> {
    perform(&services, &caller, &input.room, Op::Pause(false)).await
}

pub(crate) async fn say(services: Services, caller: Caller, input: SayInRoom) -> Result<RoomAnswer, Failure> {
    let SayInRoom { room, kind, body } = input;
    perform(&services, &caller, &room, Op::Say(parlor_turn::Say { kind, body })).await
}

/// The rule sets that this server has.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RuleList {
    /// Their names, for the field `rules` of a configuration.
    rules: Vec<String>,
}

pub(crate) async fn rules(services: Services, _: Caller, _: Nothing) -> Result<RuleList, Failure> {
    Ok(RuleList { rules: services.rules().names().map(str::to_owned).collect() })
}

async fn perform(services: &Services, caller: &Caller, room_id: &str, op: Op) -> Result<RoomAnswer, Failure> {
    let (realm, actor) = actor(services, caller)?;
    Ok(RoomAnswer { room: change(services, &realm, &room(room_id)?, &actor, op).await? })
}

/// The actor for a caller in a room: a player acts as itself, an operator as the server.
pub(super) fn actor(services: &Services, caller: &Caller) -> Result<(Realm, Actor), Failure> {
    let role = caller.identity.as_ref().map(|identity| identity.role);
    match role {
        Some(Role::Server | Role::Admin) => Ok((services.realm_of(caller)?, Actor::Server)),
        _ => player(services, caller).map(|(realm, player)| (realm, Actor::Player(player))),
    }
}

fn player(services: &Services, caller: &Caller) -> Result<(Realm, PlayerId), Failure> {
    let (realm, account) = services.account_of(caller)?;
    let player = PlayerId::new(account.as_str()).map_err(|error| Failure::defect(&error.to_string()))?;
    Ok((realm, player))
}

fn player_id(path: &str, text: &str) -> Result<PlayerId, Failure> {
    PlayerId::new(text).map_err(|error| Failure::field(path, error.to_string()))
}

fn player_ids(path: &str, texts: &[String]) -> Result<Vec<PlayerId>, Failure> {
    texts.iter().enumerate().map(|(at, id)| player_id(&format!("{path}[{at}]"), id)).collect()
}

pub(super) fn room(id: &str) -> Result<RoomId, Failure> {
    parlor_turn::RoomId::new(id).map_err(|error| Failure::field("room", error.to_string()))?;
    Ok(RoomId::new(id)?)
}

async fn name_of(
    services: &Services,
    realm: &Realm,
    caller: &Caller,
    given: Option<String>,
) -> Result<Option<String>, Failure> {
    if given.is_some() {
        return Ok(given);
    }
    let (_, account) = services.account_of(caller)?;
    Ok(services.store().account(realm, &account).await?.map(|account| account.display_name))
}

/// The configuration of a new room, from a player's request.
pub(super) struct New {
    pub(super) realm: Realm,
    pub(super) player: PlayerId,
    /// The operator's mode, if the server has an operator's games.
    pub(super) mode: Option<Arc<Mode>>,
    pub(super) config: Config,
    pub(super) create: Create,
    /// The id of the room, if the request has one by which a repetition is known.
    pub(super) id: Option<RoomId>,
}

impl New {
    pub(super) async fn read(
        services: &Services,
        caller: &Caller,
        input: CreateRoom,
    ) -> Result<New, Failure> {
        let (realm, player) = player(services, caller)?;
        let CreateRoom { mode, config, player_name, name, visibility, max_players, metadata, code, id } =
            input;
        let found = services.games().find(realm.app(), mode.as_deref())?;
        let config = match &found {
            Some(mode) => mode.config(visibility, config.as_ref())?.clone(),
            None => {
                let written = config.unwrap_or_else(|| Value::Object(Map::new()));
                Config::read(&written, realm.app(), services.rules())?
            }
        };
        let code = code.map(|code| code.parse::<RoomCode>());
        let code = code.transpose().map_err(|error| Failure::field("code", error.to_string()))?;
        let id = id.map(|id| services.room_ids().of_request(&realm, &player, &id)).transpose()?;
        let player_name = name_of(services, &realm, caller, player_name).await?;
        let create = Create { player_name, name, visibility, max_players, metadata, code };
        create.check(&config)?;
        Ok(New { realm, player, mode: found, config, create, id })
    }

    /// The room that an earlier request with the same id opened.
    pub(super) async fn opened_before(&self, services: &Services) -> Result<Option<RoomAnswer>, Failure> {
        let Some(id) = &self.id else { return Ok(None) };
        match look(services, &self.realm, id, &Actor::Player(self.player.clone())).await {
            Ok(room) => Ok(Some(RoomAnswer { room: Some(room) })),
            Err(failure) if failure.kind() == Kind::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Opens the room. `wanted` is the hash by which seekers find it.
    pub(super) async fn open(
        &self,
        services: &Services,
        caller: &Caller,
        wanted: [u8; 32],
    ) -> Result<RoomAnswer, Failure> {
        let guess = match self.create.code {
            // The answer `taken` confirms that a room has this code, so it counts as a guess.
            Some(_) => Some(services.guess_of_account(caller)?),
            None => None,
        };
        let by = if self.mode.is_some() { ConfiguredBy::Operator } else { ConfiguredBy::Creator };
        let opened = open(services, self, by, wanted).await;
        if let Some(guess) = guess {
            match &opened {
                Err(failure) if failure.kind() == Kind::Conflict => guess.was_wrong(),
                _ => guess.was_right(),
            }
        }
        Ok(RoomAnswer { room: Some(opened?) })
    }
}

pub(super) fn read_criteria(written: Option<&Value>) -> Result<Criteria, Failure> {
    Ok(written.map(Criteria::read).transpose()?.unwrap_or_default())
}

fn listed(page: Page<RoomListing>) -> Result<RoomList, Failure> {
    let summary = |room: RoomListing| {
        let unread =
            |error| Failure::defect(&format!("the summary of room {} cannot be read: {error}", room.id));
        serde_json::from_slice(&room.summary).map_err(unread)
    };
    let rooms = page.items.into_iter().map(summary).collect::<Result<_, _>>()?;
    Ok(RoomList { rooms, next: page.next })
}
