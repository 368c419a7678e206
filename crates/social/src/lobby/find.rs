//! Searches for lobbies.

use super::{Access, Lobbies, Lobby, Person};
use crate::limits::LOBBIES_LOOKED_MAX;
use crate::properties::{Filter, Properties, Property};
use core::cmp::Reverse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fields of a lobby that a filter may name, with an `@` before them.
pub const FIELDS: &[&str] = &["name", "members", "max", "free", "ready", "friends"];

/// The order of what is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchOrder {
    /// The newest first.
    #[default]
    Newest,
    /// Those with most members first.
    Fullest,
}

/// What is searched for.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Only lobbies of this bucket.
    pub bucket: Option<String>,
    /// Conditions on properties, and on [`FIELDS`] of the lobby itself.
    pub filter: Filter,
    /// At least so many free seats.
    pub free_seats: usize,
    /// Only lobbies in which friends sit.
    pub of_friends: bool,
    /// Numbers that properties shall be near to. The sum of the differences decides, before the order.
    pub near: Properties,
    /// The order.
    pub order: SearchOrder,
    /// How many at most.
    pub count: usize,
    /// Only lobbies older than the one with this number.
    pub before: Option<u64>,
}

/// What was found.
#[derive(Debug)]
pub struct Found<'a> {
    /// The lobbies.
    pub lobbies: Vec<&'a Lobby>,
    /// [`Search::before`] to go on, if there are lobbies that were not looked at.
    pub next: Option<u64>,
}

impl Lobbies {
    /// Searches the newest lobbies, at most [`LOBBIES_LOOKED_MAX`] of them.
    pub fn find(&self, by: &Person, search: &Search) -> Found<'_> {
        let is_exact = search.near.is_empty() && search.order == SearchOrder::Newest;
        let (mut found, mut next, mut looked) = (Vec::new(), None, 0);
        for lobby in self.newest(search) {
            if looked >= LOBBIES_LOOKED_MAX || is_exact && found.len() >= search.count {
                next = Some(lobby.number + 1);
                break;
            }
            looked += 1;
            // Of an order, who may be found is decided last: for a few of them.
            if fits(lobby, by, search) && (!is_exact || may_find(lobby, by)) {
                found.push(lobby);
            }
        }
        if !is_exact {
            found.sort_by_cached_key(|lobby| {
                let full = if search.order == SearchOrder::Fullest { lobby.members.len() } else { 0 };
                (distance(lobby, &search.near), Reverse(full), Reverse(lobby.number))
            });
            found = found.into_iter().filter(|lobby| may_find(lobby, by)).take(search.count).collect();
        }
        Found { lobbies: found, next }
    }

    /// Open lobbies, the newest first: those of the bucket, or of all.
    fn newest(&self, search: &Search) -> Box<dyn Iterator<Item = &Lobby> + '_> {
        let before = search.before.unwrap_or(u64::MAX);
        match &search.bucket {
            Some(bucket) => {
                let of_bucket = (bucket.clone(), 0)..(bucket.clone(), before);
                Box::new(self.buckets.range(of_bucket).rev().filter_map(|(_, number)| self.all.get(number)))
            }
            None => {
                let all = self.all.range(..before).rev().map(|(_, lobby)| lobby);
                Box::new(all.filter(|lobby| lobby.is_open()))
            }
        }
    }
}

fn may_find(lobby: &Lobby, by: &Person) -> bool {
    let may = match lobby.access {
        Access::Public => true,
        Access::Friends => by.friends.contains(&lobby.owner),
        Access::Private => false,
    };
    may && !lobby.barred.contains(&by.player)
        && lobby.members.iter().all(|member| !by.blocked.contains(&member.player))
}

fn friends(lobby: &Lobby, by: &Person) -> usize {
    lobby.members.iter().filter(|member| by.friends.contains(&member.player)).count()
}

fn fits(lobby: &Lobby, by: &Person, search: &Search) -> bool {
    if lobby.free() < search.free_seats.max(1) || search.of_friends && friends(lobby, by) == 0 {
        return false;
    }
    let number = |count: usize| Some(Property::Number(i64::try_from(count).unwrap_or(i64::MAX)));
    search.filter.iter().all(|(name, condition)| {
        let field = match name.strip_prefix('@') {
            None => return condition.admits(lobby.properties.get(name)),
            Some("name") => Some(Property::Text(lobby.name.clone())),
            Some("members") => number(lobby.members.len()),
            Some("max") => number(lobby.max.into()),
            Some("free") => number(lobby.free()),
            Some("ready") => number(lobby.ready()),
            Some("friends") => number(friends(lobby, by)),
            Some(_) => None,
        };
        condition.admits(field.as_ref())
    })
}

/// The sum of the differences from numbers; a lobby without one of them is farthest away.
fn distance(lobby: &Lobby, near: &Properties) -> u64 {
    let one = |(name, wanted): (&String, &Property)| match (lobby.properties.get(name), wanted) {
        (Some(Property::Number(number)), Property::Number(wanted)) => number.abs_diff(*wanted),
        _ => u64::MAX / 64,
    };
    near.iter().map(one).fold(0, u64::saturating_add)
}

impl Lobby {
    /// How many of a player's friends sit in it.
    pub fn friends_of(&self, by: &Person) -> usize {
        friends(self, by)
    }

    /// Whether a player may know of it: as a member, as one who is invited, or by a search.
    pub fn may_be_seen_by(&self, by: &Person) -> bool {
        self.member(&by.player).is_some()
            || self.invited.contains(&by.player)
            || self.is_open() && may_find(self, by)
    }
}
