//! Matchmaking: seats a player in a room that meets its criteria, or opens one.
//!
//! A search is bounded in rooms, bytes and attempts to join. It runs outside of any lock, so a search among
//! useless rooms delays only its own player (threat 51). A seeker without a result takes its game's opening
//! lock.
//! There it joins a room that was opened since its search began, or opens one. In a cluster that lock is the store's. So one of several concurrent
//! seekers opens a room, and the others join it.

use super::handlers::{CreateRoom, New, RoomAnswer, read_criteria};
use super::opening::{Right, STORED_WITHIN_MS};
use super::search::{LOOKED_AT_MAX, Search, Wanted, hash};
use super::{change, look};
use crate::online::Services;
use crate::online::failure::{Failure, Kind, TOO_MANY_ROOMS};
use crate::online::table::Caller;
use crate::store::{AccountId, GATHERING_ROOMS_MAX, StoreError};
use parlor_turn::limits::{NAME_CHARS_MAX, PLAYERS_MAX, WORD_PATTERN};
use parlor_turn::{Actor, Config, Criteria, Op, Visibility};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// Maximum number of rooms that one search tries to join. Each attempt loads a room.
const JOINS_MAX: usize = 32;
/// Maximum queue of a room that a seeker joins under its game's opening lock. A busier room would delay all
/// seekers.
const WAITING_UNDER_LOCK_MAX: usize = 32;

/// What a player looks for, and the room that is opened if there is none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinOrCreate {
    /// What a room must be to be joined, over being public and having a seat. The room that is opened is so, too.
    #[schemars(with = "Option<Criteria>")]
    criteria: Option<Value>,
    /// The mode of the game, where the server has games of its operator's.
    #[schemars(regex(pattern = WORD_PATTERN))]
    mode: Option<String>,
    /// How a room is set up that is opened: docs/turn-rooms.md has all fields. One that is joined has the same `game` and `rules`.
    /// Where the server has games of its operator's, leave it out.
    #[schemars(with = "Option<Config>")]
    config: Option<Value>,
    /// The player's name, as the others read it; that of the account if missing.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    player_name: Option<String>,
    /// The name of a room that is opened; the game's if missing.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    /// Whether a room that is opened is listed: `public` or `private`.
    visibility: Option<Visibility>,
    /// Seats of a room that is opened, between the configuration's least and most.
    #[schemars(range(min = 1, max = PLAYERS_MAX))]
    max_players: Option<u16>,
    /// Merged into the configuration's.
    #[schemars(with = "Option<Object>")]
    metadata: Option<Value>,
}

/// Seats the player in a room that meets the criteria. In this order: a room of this game that it is in; the
/// newest room with a free seat and a present player; a new room.
///
/// # Errors
/// `too_often` if the account is already searching, or its address too much; `too_many_rooms` if it waits in
/// too many rooms for another one.
pub(crate) async fn join_or_create(
    services: Services,
    caller: Caller,
    input: JoinOrCreate,
) -> Result<RoomAnswer, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let _searching = services.seekers().begin(caller.origin, &realm, &account)?;
    let asked_for = read_criteria(input.criteria.as_ref())?;
    let JoinOrCreate { mode, config, player_name, name, visibility, max_players, metadata, .. } = input;
    let asked = CreateRoom {
        mode,
        config,
        player_name,
        name,
        visibility,
        max_players,
        metadata,
        code: None,
        id: None,
    };
    let mut new = New::read(&services, &caller, asked).await?;
    let criteria = match &new.mode {
        Some(mode) => mode.criteria(input.criteria.as_ref())?,
        None => asked_for,
    };
    new.create = criteria.met_by(new.create, &new.config)?;
    let seeker = Seeker {
        services: &services,
        new: &new,
        criteria: &criteria,
        actor: Actor::Player(new.player.clone()),
        hash: hash(new.config.rules.as_deref(), &criteria),
    };
    if let Some(answer) = seeker.own_room(&account).await? {
        return Ok(answer);
    }
    // The player could not enter any room, found or new.
    if services.store().waiting_rooms_of(&realm, &account).await? >= GATHERING_ROOMS_MAX {
        return Err(StoreError::TooManyRooms { max: GATHERING_ROOMS_MAX }.into());
    }
    let now_ms = || services.time().now_ms();
    let opening_lock = services.seekers().opening_lock(&realm, new.config.game());
    let mut unseen_since_ms = opening_lock.unseen_since_ms(now_ms);
    if services.cluster().is_some() {
        // Another node may have been opening one since then.
        unseen_since_ms = unseen_since_ms.min(now_ms().saturating_sub(STORED_WITHIN_MS));
    }
    if let Some(answer) = seeker.seat(None).await? {
        return Ok(answer);
    }
    let _opening = opening_lock.enter(now_ms).await;
    let right = Right::take(services.store(), services.cluster().map(AsRef::as_ref), opening_lock).await?;
    let answer = async {
        if let Some(answer) = seeker.seat(Some(unseen_since_ms)).await? {
            return Ok(answer);
        }
        right.must_last()?;
        new.open(&services, &caller, seeker.hash).await
    };
    let answer = answer.await;
    right.give_back().await;
    answer
}

/// A player that looks for a room.
struct Seeker<'a> {
    services: &'a Services,
    new: &'a New,
    criteria: &'a Criteria,
    actor: Actor,
    /// The hash of its criteria.
    hash: [u8; 32],
}

impl Seeker<'_> {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            game: self.new.config.game(),
            criteria: self.criteria,
            rules: Some(self.new.config.rules.as_deref()),
            operators_only: self.services.games().are_operators(),
        }
    }

    /// The newest room that it is in and that meets its criteria.
    async fn own_room(&self, account: &AccountId) -> Result<Option<RoomAnswer>, Failure> {
        let (services, realm, wanted) = (self.services, &self.new.realm, self.wanted());
        let mine = services.store().open_rooms_of(realm, account, LOOKED_AT_MAX).await?;
        for room in mine.iter().filter(|room| wanted.goes_on_in(room)) {
            if let Ok(room) = look(services, realm, &room.id, &self.actor).await {
                return Ok(Some(RoomAnswer { room: Some(room) }));
            }
        }
        Ok(None)
    }

    /// Joins a room: one with the same hash, or else any that meets the criteria. With `since_ms`, under the
    /// lock: then it skips busy rooms, and rooms that were opened before that time.
    async fn seat(&self, since_ms: Option<u64>) -> Result<Option<RoomAnswer>, Failure> {
        let (services, realm) = (self.services, &self.new.realm);
        let mut joins_left = JOINS_MAX;
        for hash in [Some(self.hash), None] {
            let mut search = Search::of_seeker(services, realm, self.wanted(), hash, since_ms);
            while let Some(found) = search.present().await? {
                for room in found {
                    let is_busy =
                        || services.room_locks().waiting_for(realm, &room.id) > WAITING_UNDER_LOCK_MAX;
                    if since_ms.is_some() && is_busy() {
                        continue;
                    }
                    let Some(left) = joins_left.checked_sub(1) else { return Ok(None) };
                    joins_left = left;
                    let join = parlor_turn::Join { name: self.new.create.player_name.clone() };
                    match change(services, realm, &room.id, &self.actor, Op::Join(join)).await {
                        Ok(seen) => return Ok(Some(RoomAnswer { room: seen })),
                        Err(failure) if is_of_player(&failure) => return Err(failure),
                        // Another player was faster, or this player may not enter.
                        Err(_) => {}
                    }
                }
            }
        }
        Ok(None)
    }
}

/// Whether another room would refuse too.
fn is_of_player(failure: &Failure) -> bool {
    failure.kind() == Kind::Unavailable || failure.code() == TOO_MANY_ROOMS
}
