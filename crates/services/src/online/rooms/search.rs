//! Rooms in lists, and searches for rooms.
//!
//! The store has a room's game, whether it can be joined, and a hash of the criteria that it was opened for.
//! So equal searches find it, however many other rooms there are. The rest is in a room's summary, which is
//! read here, newest first and in parts, so that one search never reads all rooms. Rooms whose players are
//! all away are not found until one of them is back.

use crate::online::Services;
use crate::online::failure::Failure;
use crate::store::{PAGE_BYTES_MAX, Page, RoomId, RoomListing};
use parlor_server::realm::Realm;
use parlor_turn::{ConfiguredBy, Criteria, Listed, Phase};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Number, Value, json};

/// Rooms that are looked at for one question, at most.
pub(super) const LOOKED_AT_MAX: usize = 1_000;
/// Rooms that the store is asked for at once, where not all of them will do.
pub(super) const PART: usize = 200;

/// What rooms are chosen by.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) game: &'a str,
    pub(super) criteria: &'a Criteria,
    /// The rules of a room that is joined are those of the room that would be opened, or none as there; a list has rooms of any.
    pub(super) rules: Option<Option<&'a str>>,
    /// If the operator has configured games, searches skip rooms that clients configured.
    pub(super) operators_only: bool,
}

/// What a summary says that rooms are chosen by.
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
    /// Whether a room of a player is one to go on with.
    pub(super) fn goes_on_in(&self, room: &RoomListing) -> bool {
        self.choose(room).is_some_and(|choice| choice.phase != Phase::Ended)
    }

    /// What the room is, if it is wanted. One whose summary cannot be read is not, and other searches
    /// continue.
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

/// The hash of a search: of the rules, and of the criteria however their numbers are written.
pub(super) fn hash(rules: Option<&str>, criteria: &Criteria) -> [u8; 32] {
    let Criteria { name, max_players, metadata, .. } = criteria;
    let metadata: Value = metadata.iter().map(|(field, value)| (field.clone(), one_form(value))).collect();
    let wanted = json!([rules, name, max_players, metadata]).to_string();
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, wanted.as_bytes()).as_ref());
    hash
}

/// The value with 3 for 3.0.
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
    // Beyond 2⁵³ not each whole number is a fraction's value, and none is made one.
    #[allow(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
    let whole = |float: f64| (float.fract() == 0.0 && float.abs() < 9.0e15).then_some(float as i64);
    let float = number.as_f64().filter(|_| number.is_f64());
    float.and_then(whole).map_or_else(|| number.clone(), Number::from)
}

/// Goes through the rooms that can be joined, the newest first.
pub(super) struct Search<'a> {
    services: &'a Services,
    realm: &'a Realm,
    wanted: Wanted<'a>,
    /// Only the rooms that were opened for what has this hash.
    hash: Option<[u8; 32]>,
    /// After which room it goes on; without one from the first, or not at all.
    after: Option<String>,
    looked_at: usize,
    is_over: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        services: &'a Services,
        realm: &'a Realm,
        wanted: Wanted<'a>,
        after: Option<String>,
    ) -> Self {
        Search { services, realm, wanted, hash: None, after, looked_at: 0, is_over: false }
    }

    /// Only rooms that were opened for the same.
    pub(super) fn opened_for(self, hash: [u8; 32]) -> Self {
        Search { hash: Some(hash), ..self }
    }

    /// What is found among the next `rows`, which may be none although more follow. `None` after [`LOOKED_AT_MAX`], or if that was
    /// all.
    pub(super) async fn part(&mut self, rows: usize) -> Result<Option<Vec<RoomListing>>, Failure> {
        let Some(mut found) = self.read(rows).await? else { return Ok(None) };
        if !self.wanted.is_any() {
            found.retain(|room| self.wanted.choose(room).is_some());
        }
        Ok(Some(found))
    }

    async fn read(&mut self, rows: usize) -> Result<Option<Vec<RoomListing>>, Failure> {
        let left = LOOKED_AT_MAX - self.looked_at;
        if self.is_over || left == 0 {
            return Ok(None);
        }
        let (store, after) = (self.services.store(), self.after.as_deref());
        let page =
            store.joinable_rooms(self.realm, self.wanted.game, self.hash, after, rows.min(left)).await?;
        self.looked_at += page.items.len();
        self.is_over = page.next.is_none();
        self.after = page.next;
        Ok(Some(page.items))
    }

    /// The next [`part`](Self::part) without the rooms whose players are all away.
    pub(super) async fn present(&mut self, rows: usize) -> Result<Option<Vec<RoomListing>>, Failure> {
        let Some(page) = self.read(rows).await? else { return Ok(None) };
        let is_here = |room: &RoomListing| self.services.is_any_here(self.realm, &room.players);
        let (here, away): (Vec<_>, Vec<_>) = page.into_iter().partition(is_here);
        self.lay_asleep(away).await?;
        Ok(Some(here.into_iter().filter(|room| self.wanted.choose(room).is_some()).collect()))
    }

    /// No search comes upon these rooms again until one of their players is back.
    async fn lay_asleep(&self, rooms: Vec<RoomListing>) -> Result<(), Failure> {
        if rooms.is_empty() {
            return Ok(());
        }
        let asleep: Vec<(RoomId, u64)> = rooms.iter().map(|room| (room.id.clone(), room.version)).collect();
        self.services.store().rooms_asleep(self.realm, asleep).await?;
        // Who came back meanwhile woke nothing.
        for player in rooms.iter().flat_map(|room| &room.players) {
            if self.services.is_any_here(self.realm, core::slice::from_ref(player)) {
                self.services.store().wake_rooms_of(self.realm, player).await?;
            }
        }
        Ok(())
    }

    /// Up to `limit` rooms. There are fewer, or none, although more follow, if [`LOOKED_AT_MAX`] were looked at or they hold
    /// [`PAGE_BYTES_MAX`].
    pub(super) async fn page(mut self, limit: usize) -> Result<Page<RoomListing>, Failure> {
        let rows = if self.wanted.is_any() { limit } else { PART };
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

/// How many of the first of these rooms one page has: a page of large ones ends early.
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
