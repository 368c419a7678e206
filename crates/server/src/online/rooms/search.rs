//! Rooms as lists have them, and how those are found that a player looks for. The store knows a room's game and whether it can be
//! joined; all else stands in its summary and is looked at here, in parts, so that one question never reads all rooms.

use crate::online::Services;
use crate::online::failure::Failure;
use crate::store::{Page, Realm, RoomListing};
use parlor_hub::turn::{Criteria, Listed, Phase};
use serde::Deserialize;

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
}

/// What a summary says that rooms are chosen by.
#[derive(Deserialize)]
struct Choice {
    game: String,
    phase: Phase,
    #[serde(flatten)]
    listed: Listed,
}

impl Wanted<'_> {
    /// Whether a room of a player is one to go on with.
    pub(super) fn goes_on_in(&self, room: &RoomListing) -> bool {
        self.choose(room).is_some_and(|choice| choice.phase != Phase::Ended)
    }

    /// What the room is, if it is wanted. One whose summary cannot be read is not; it holds up nobody who looks for another.
    fn choose(&self, room: &RoomListing) -> Option<Choice> {
        let choice: Choice = serde_json::from_slice(&room.summary).ok()?;
        let is_wanted = choice.game == self.game
            && self.rules.is_none_or(|rules| rules == choice.listed.rules.as_deref())
            && self.criteria.admit(&choice.listed);
        is_wanted.then_some(choice)
    }

    fn is_any(&self) -> bool {
        self.criteria.is_empty() && self.rules.is_none()
    }
}

/// Goes through the rooms that can be joined, the oldest first.
pub(super) struct Search<'a> {
    services: &'a Services,
    realm: &'a Realm,
    wanted: Wanted<'a>,
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
        Search { services, realm, wanted, after, looked_at: 0, is_over: false }
    }

    /// What is found among the next `rows`, which may be none although more follow. `None` after [`LOOKED_AT_MAX`], or if that was
    /// all.
    pub(super) async fn part(&mut self, rows: usize) -> Result<Option<Vec<RoomListing>>, Failure> {
        let left = LOOKED_AT_MAX - self.looked_at;
        if self.is_over || left == 0 {
            return Ok(None);
        }
        let (store, after) = (self.services.store(), self.after.as_deref());
        let page = store.joinable_rooms(self.realm, self.wanted.game, after, rows.min(left)).await?;
        self.looked_at += page.items.len();
        self.is_over = page.next.is_none();
        self.after = page.next;
        let mut found = page.items;
        if !self.wanted.is_any() {
            found.retain(|room| self.wanted.choose(room).is_some());
        }
        Ok(Some(found))
    }

    /// Up to `limit` rooms. There are fewer, or none, although more follow, if [`LOOKED_AT_MAX`] were looked at.
    pub(super) async fn page(mut self, limit: usize) -> Result<Page<RoomListing>, Failure> {
        let rows = if self.wanted.is_any() { limit } else { PART };
        let mut items = Vec::new();
        while items.len() < limit
            && let Some(found) = self.part(rows).await?
        {
            items.extend(found);
        }
        let is_cut = items.len() > limit;
        items.truncate(limit);
        let next = if is_cut { items.last().map(RoomListing::cursor) } else { self.after };
        Ok(Page { items, next })
    }
}
