//! Presence at other servers: which friends of players who are here are connected there.
//!
//! A friend may be connected to several servers. What it said last counts.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of a friend.
#[derive(Debug)]
struct Watched<K, S> {
    /// Its friends who are here.
    by: BTreeSet<K>,
    /// By server: what it says of itself, and when it said that.
    at: BTreeMap<String, (u64, S)>,
}

/// Friends at other servers, of the players of one realm who are here. `K` is a player's key, `S` what friends are told.
#[derive(Debug)]
pub struct Elsewhere<K, S> {
    watched: BTreeMap<K, Watched<K, S>>,
    /// The friends of each player who is here.
    friends: BTreeMap<K, BTreeSet<K>>,
}

impl<K, S> Default for Elsewhere<K, S> {
    fn default() -> Self {
        Elsewhere { watched: BTreeMap::new(), friends: BTreeMap::new() }
    }
}

impl<K: Clone + Ord, S: PartialEq> Elsewhere<K, S> {
    /// A player is here and has these friends.
    pub fn come(&mut self, player: &K, friends: impl IntoIterator<Item = K>) {
        self.friends.entry(player.clone()).or_default();
        for friend in friends {
            self.befriend(player, &friend);
        }
    }

    /// A player is here no longer.
    pub fn go(&mut self, player: &K) {
        for friend in self.friends.remove(player).unwrap_or_default() {
            self.forget(player, &friend);
        }
    }

    /// A player who is here has one friend more. Returns whether nothing is known of that one yet. Nothing happens if the
    /// player is not here.
    pub fn befriend(&mut self, player: &K, friend: &K) -> bool {
        let Some(friends) = self.friends.get_mut(player) else { return false };
        friends.insert(friend.clone());
        let new = || Watched { by: BTreeSet::new(), at: BTreeMap::new() };
        let is_new = !self.watched.contains_key(friend);
        self.watched.entry(friend.clone()).or_insert_with(new).by.insert(player.clone());
        is_new
    }

    /// A player has one friend less.
    pub fn part(&mut self, player: &K, friend: &K) {
        if self.friends.get_mut(player).is_some_and(|friends| friends.remove(friend)) {
            self.forget(player, friend);
        }
    }

    /// A friend is connected to a server and says this of itself, or is so no longer. Returns whether its friends who are
    /// here are to be told.
    pub fn put(&mut self, friend: &K, server: &str, saying: Option<(u64, S)>) -> bool {
        let Some(watched) = self.watched.get_mut(friend) else { return false };
        match saying {
            Some(saying) => {
                let before = watched.newest().is_some_and(|newest| *newest == saying.1);
                let is_newer = watched.at.get(server).is_none_or(|known| known.0 <= saying.0);
                if is_newer {
                    watched.at.insert(server.to_owned(), saying);
                }
                is_newer && !before
            }
            None => watched.at.remove(server).is_some(),
        }
    }

    /// The servers to which a friend is connected were read. Returns whether its friends who are here are to be told.
    pub fn replace(&mut self, friend: &K, at: BTreeMap<String, (u64, S)>) -> bool {
        let Some(watched) = self.watched.get_mut(friend) else { return false };
        let is_changed = watched.at != at;
        watched.at = at;
        is_changed
    }

    /// What a friend says of itself; `None` if it is at no other server.
    pub fn status(&self, friend: &K) -> Option<&S> {
        self.watched.get(friend)?.newest()
    }

    /// The friends of a player who are here.
    pub fn friends_here(&self, player: &K) -> impl Iterator<Item = &K> {
        self.watched.get(player).into_iter().flat_map(|watched| &watched.by)
    }

    /// All whom players who are here are friends of.
    pub fn watched(&self) -> impl Iterator<Item = &K> {
        self.watched.keys()
    }

    fn forget(&mut self, player: &K, friend: &K) {
        if let Some(watched) = self.watched.get_mut(friend) {
            watched.by.remove(player);
            if watched.by.is_empty() {
                self.watched.remove(friend);
            }
        }
    }
}

impl<K, S> Watched<K, S> {
    fn newest(&self) -> Option<&S> {
        self.at.values().max_by_key(|(said, _)| *said).map(|(_, saying)| saying)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Machine = Elsewhere<&'static str, &'static str>;

    #[test]
    fn t2_friends_here_are_told_of_what_a_friend_elsewhere_said_last() {
        let mut elsewhere = Machine::default();
        assert!(!elsewhere.put(&"ada", "b", Some((1, "early"))), "nobody here is her friend");
        elsewhere.come(&"bob", ["ada", "eve"]);
        assert!(elsewhere.put(&"ada", "b", Some((1, "hello"))));
        assert!(!elsewhere.put(&"ada", "b", Some((1, "hello"))), "it was told");
        assert!(!elsewhere.put(&"ada", "b", Some((0, "old"))));
        assert!(elsewhere.put(&"ada", "c", Some((2, "new"))));
        assert_eq!(elsewhere.status(&"ada"), Some(&"new"));
        assert!(elsewhere.put(&"ada", "c", None));
        assert_eq!(elsewhere.status(&"ada"), Some(&"hello"), "another device is still there");
        assert!(elsewhere.put(&"ada", "b", None) && !elsewhere.put(&"ada", "b", None));
        assert_eq!(elsewhere.status(&"ada"), None);
        assert_eq!(elsewhere.friends_here(&"ada").collect::<Vec<_>>(), [&"bob"]);
    }

    #[test]
    fn t2_nothing_is_kept_of_whom_nobody_here_knows() {
        let mut elsewhere = Machine::default();
        elsewhere.come(&"bob", ["ada"]);
        elsewhere.come(&"eve", ["ada"]);
        assert!(!elsewhere.befriend(&"eve", &"ada") && elsewhere.befriend(&"eve", &"kim"));
        assert!(!elsewhere.befriend(&"nobody", &"ada"), "who is not here has no friends here");
        let at = |said| BTreeMap::from([("b".to_owned(), said)]);
        assert!(elsewhere.replace(&"ada", at((1, "hello"))) && !elsewhere.replace(&"ada", at((1, "hello"))));
        elsewhere.part(&"eve", &"ada");
        assert_eq!(elsewhere.friends_here(&"ada").count(), 1);
        elsewhere.go(&"bob");
        elsewhere.go(&"eve");
        assert_eq!((elsewhere.watched().count(), elsewhere.friends.len()), (0, 0));
    }
}
