//! Lists of rooms, and the search of a seeker.
//!
//! The store knows a room's game, whether it can be joined, and a hash of its search criteria. A seeker with
//! the same criteria finds it by that hash, however many other rooms there are. All other criteria are in a
//! room's summary and are checked here, the newest room first, in parts, up to a limit of rooms and of bytes.
//! Searches skip rooms whose players are all away.

use crate::online::Services;
use crate::online::failure::Failure;
use crate::store::{PAGE_BYTES_MAX, Page, RoomId, RoomListing};
use parlor_server::realm::Realm;
use parlor_turn::{ConfiguredBy, Criteria, Listed, Phase};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Number, Value, json};

/// Maximum number of rooms that one page of a list examines.
pub(super) const LOOKED_AT_MAX: usize = 1_000;
/// Maximum bytes of their summaries, except for those of the last part.
const LOOKED_AT_BYTES_MAX: usize = 2 << 20;
/// Maximum number of rooms that a seeker examines by hash, and as many by game.
const SEEKER_ROOMS_MAX: usize = 200;
/// Maximum bytes of their summaries, except for those of the last part.
const SEEKER_BYTES_MAX: usize = 1 << 20;
/// Maximum number of rooms that a seeker examines under its game's opening lock: few were opened since its
/// search began.
const TURN_ROOMS_MAX: usize = 64;
/// Maximum bytes of their summaries, except for those of the last part.
const TURN_BYTES_MAX: usize = 256 << 10;
/// Rooms requested from the store at once, where some may not match.
const PART: usize = 200;
/// The same while a seeker has its game's turn.
const TURN_PART: usize = 8;

/// The criteria for rooms.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) game: &'a str,
    pub(super) criteria: &'a Criteria,
    /// The rules that a room must have; `Some(None)` for a room without rules. `None` for a list: any rules
    /// match.
    pub(super) rules: Option<Option<&'a str>>,
    /// Excludes rooms that players configured: for servers whose operator configures the games.
    pub(super) operators_only: bool,
}

/// The part of a summary that searches check.
#[derive(Deserialize)]
struct Choice {
    game: String,
    #[serde(default)]
    configured_by: ConfiguredBy,
    phase: Phase,
    #[serde(flatten)]
    listed: Listed,
}

impl Wanted<'_> {
    /// Whether a room that the player is in matches and goes on.
    pub(super) fn goes_on_in(&self, room: &RoomListing) -> bool {
        self.choose(room).is_some_and(|choice| choice.phase != Phase::Ended)
    }

    /// Returns the room's choice if it matches. A room with an unreadable summary does not match.
    fn choose(&self, room: &RoomListing) -> Option<Choice> {
        let choice: Choice = serde_json::from_slice(&room.summary).ok()?;
        let is_wanted = choice.game == self.game
            && (!self.operators_only || choice.configured_by == ConfiguredBy::Operator)
            && self.rules.is_none_or(|rules| rules == choice.listed.rules.as_deref())
            && self.criteria.admit(&choice.listed);
        is_wanted.then_some(choice)
    }

    fn is_any(&self) -> bool {
        self.criteria.is_empty() && self.rules.is_none() && !self.operators_only
    }
}

/// The hash of a seeker's rules and criteria. It does not depend on how numbers are written.
pub(super) fn hash(rules: Option<&str>, criteria: &Criteria) -> [u8; 32] {
    let Criteria { name, max_players, metadata, .. } = criteria;
    let metadata: Value = metadata.iter().map(|(field, value)| (field.clone(), one_form(value))).collect();
    let wanted = json!([rules, name, max_players, metadata]).to_string();
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, wanted.as_bytes()).as_ref());
    hash
}

/// The value in a single form: 3 for 3.0.
fn one_form(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(one_form_of(number)),
        Value::Array(values) => values.iter().map(one_form).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(field, value)| (field.clone(), one_form(value))).collect()
        }
        other => other.clone(),
    }
}

fn one_form_of(number: &Number) -> Number {
    // Beyond 2⁵³ a float does not represent every integer, so no float is converted.
    #[allow(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
    let whole = |float: f64| (float.fract() == 0.0 && float.abs() < 9.0e15).then_some(float as i64);
    let float = number.as_f64().filter(|_| number.is_f64());
    float.and_then(whole).map_or_else(|| number.clone(), Number::from)
}

/// The limits of a search.
#[derive(Clone, Copy)]
struct Bounds {
    rooms: usize,
    bytes: usize,
    /// Rooms requested from the store at once.
    part: usize,
}

const OF_LIST: Bounds = Bounds { rooms: LOOKED_AT_MAX, bytes: LOOKED_AT_BYTES_MAX, part: PART };
const OF_SEEKER: Bounds = Bounds { rooms: SEEKER_ROOMS_MAX, bytes: SEEKER_BYTES_MAX, part: PART };
const IN_TURN: Bounds = Bounds { rooms: TURN_ROOMS_MAX, bytes: TURN_BYTES_MAX, part: TURN_PART };

/// Iterates over joinable rooms, the newest first.
pub(super) struct Search<'a> {
    services: &'a Services,
    realm: &'a Realm,
    wanted: Wanted<'a>,
    bounds: Bounds,
    /// Only rooms with this hash.
    hash: Option<[u8; 32]>,
    /// Ends at the first room that was opened before this time.
    since_ms: Option<u64>,
    /// The room after which the search continues. `None` at the beginning and at the end.
    after: Option<String>,
    looked_at: usize,
    looked_at_bytes: usize,
    is_over: bool,
}

impl<'a> Search<'a> {
    /// A search for a list.
    pub(super) fn new(
        services: &'a Services,
        realm: &'a Realm,
        wanted: Wanted<'a>,
        after: Option<String>,
    ) -> Self {
        let (bounds, hash, since_ms) = (OF_LIST, None, None);
        let (looked_at, looked_at_bytes, is_over) = (0, 0, false);
        Search { services, realm, wanted, bounds, hash, since_ms, after, looked_at, looked_at_bytes, is_over }
    }

    /// A search of a seeker: among rooms with this hash, or among all of the game. With `since_ms` only among
    /// rooms that were opened from that time on, and within the limits of a turn.
    pub(super) fn of_seeker(
        services: &'a Services,
        realm: &'a Realm,
        wanted: Wanted<'a>,
        hash: Option<[u8; 32]>,
        since_ms: Option<u64>,
    ) -> Self {
        let bounds = if since_ms.is_some() { IN_TURN } else { OF_SEEKER };
        Search { bounds, hash, since_ms, ..Self::new(services, realm, wanted, None) }
    }

    /// The matching rooms among the next `rows`: possibly none, although more follow. `None` after the last
    /// room, or once a limit is reached.
    async fn part(&mut self, rows: usize) -> Result<Option<Vec<RoomListing>>, Failure> {
        let Some(mut found) = self.read(rows).await? else { return Ok(None) };
        if !self.wanted.is_any() {
            found.retain(|room| self.wanted.choose(room).is_some());
        }
        Ok(Some(found))
    }

    async fn read(&mut self, rows: usize) -> Result<Option<Vec<RoomListing>>, Failure> {
        let left = self.bounds.rooms - self.looked_at;
        if self.is_over || left == 0 || self.looked_at_bytes >= self.bounds.bytes {
            return Ok(None);
        }
        let (store, after) = (self.services.store(), self.after.as_deref());
        let page =
            store.joinable_rooms(self.realm, self.wanted.game, self.hash, after, rows.min(left)).await?;
        let mut rooms = page.items;
        self.looked_at += rooms.len();
        self.looked_at_bytes += rooms.iter().map(|room| room.summary.len()).sum::<usize>();
        let is_older = |room: &RoomListing| self.since_ms.is_some_and(|since_ms| room.created_ms < since_ms);
        let older_from = rooms.iter().position(is_older);
        self.is_over = page.next.is_none() || older_from.is_some();
        rooms.truncate(older_from.unwrap_or(rooms.len()));
        self.after = page.next;
        Ok(Some(rooms))
    }

    /// The matching rooms of the next part, without rooms whose players are all away. `None` as for
    /// [`part`](Self::part).
    pub(super) async fn present(&mut self) -> Result<Option<Vec<RoomListing>>, Failure> {
        let Some(page) = self.read(self.bounds.part).await? else { return Ok(None) };
        let is_here = |room: &RoomListing| self.services.is_any_here(self.realm, &room.players);
        let unknown = page.iter().filter(|room| !is_here(room)).flat_map(|room| room.players.clone());
        let elsewhere = self.services.present_elsewhere(self.realm, unknown.collect()).await?;
        let is_present =
            |room: &RoomListing| room.players.iter().any(|it| elsewhere.contains(it)) || is_here(room);
        let (here, away): (Vec<_>, Vec<_>) = page.into_iter().partition(is_present);
        self.lay_asleep(away).await?;
        Ok(Some(here.into_iter().filter(|room| self.wanted.choose(room).is_some()).collect()))
    }

    /// Hides these rooms from searches until one of their players is back.
    async fn lay_asleep(&self, rooms: Vec<RoomListing>) -> Result<(), Failure> {
        if rooms.is_empty() {
            return Ok(());
        }
        let asleep: Vec<(RoomId, u64)> = rooms.iter().map(|room| (room.id.clone(), room.version)).collect();
        self.services.store().rooms_asleep(self.realm, asleep).await?;
        // A player that returned meanwhile found no hidden room to show again.
        let players = rooms.iter().flat_map(|room| room.players.clone()).collect();
        let elsewhere = self.services.present_elsewhere(self.realm, players).await?;
        for player in rooms.iter().flat_map(|room| &room.players) {
            if self.services.is_any_here(self.realm, core::slice::from_ref(player))
                || elsewhere.contains(player)
            {
                self.services.store().wake_rooms_of(self.realm, player).await?;
            }
        }
        Ok(())
    }

    /// Up to `limit` rooms. Fewer or none, although more follow, if a limit of lists was reached or the rooms
    /// have [`PAGE_BYTES_MAX`].
    pub(super) async fn page(mut self, limit: usize) -> Result<Page<RoomListing>, Failure> {
        let rows = if self.wanted.is_any() { limit } else { self.bounds.part };
        let (mut items, mut bytes) = (Vec::new(), 0);
        while items.len() < limit
            && bytes < PAGE_BYTES_MAX
            && let Some(found) = self.part(rows).await?
        {
            bytes += found.iter().map(|room| room.summary.len()).sum::<usize>();
            items.extend(found);
        }
        let kept = fitting(&items, limit);
        let is_cut = kept < items.len();
        items.truncate(kept);
        let next = if is_cut { items.last().map(RoomListing::cursor) } else { self.after };
        Ok(Page { items, next })
    }
}

/// The number of these rooms that fit one page: a page of large ones ends early.
fn fitting(items: &[RoomListing], limit: usize) -> usize {
    let mut bytes = 0;
    let has_room = |room: &&RoomListing| {
        let has_room = bytes < PAGE_BYTES_MAX;
        bytes += room.summary.len();
        has_room
    };
    items.iter().take(limit).take_while(has_room).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_for_the_same_has_the_same_hash_and_nobody_else() {
        let criteria = |text: &str| Criteria::read(&serde_json::from_str(text).unwrap()).unwrap();
        let of = |rules, text| hash(rules, &criteria(text));
        let one = of(None, r#"{"metadata":{"a":3,"b":[1.0,{"c":-2}]}}"#);
        assert_eq!(one, of(None, r#"{"metadata":{"b":[1,{"c":-2.0}],"a":3.0}}"#));
        for other in [r#"{"metadata":{"a":3}}"#, r#"{"name":"3"}"#, r#"{"max_players":3}"#, "{}"] {
            assert_ne!(one, of(None, other));
            assert_ne!(of(Some("draughts"), other), of(None, other));
        }
        assert_ne!(of(None, r#"{"metadata":{"a":1.5}}"#), of(None, r#"{"metadata":{"a":1}}"#));
        assert_ne!(
            of(None, r#"{"metadata":{"a":9007199254740993}}"#),
            of(None, r#"{"metadata":{"a":9007199254740992}}"#)
        );
    }
}
