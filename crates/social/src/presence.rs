//! Presence: which players are here, and which friends are notified.
//!
//! A player is here from its first connection until [`LINGER`] after its last: a network that comes and goes tells
//! nobody. Only friendships of two players who are both here are remembered.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Time from a player's last connection until it is away.
pub const LINGER: Duration = Duration::from_secs(10);

/// What a player says of itself. `S` is whatever the caller tells friends.
#[derive(Debug)]
struct Here<K, S> {
    friends: BTreeSet<K>,
    /// Former friends, until its own list of friends was read: the list may still have them.
    parted: Option<BTreeSet<K>>,
    status: S,
    is_visible: bool,
    /// When it is away, if it has no connection.
    away_at: Option<Duration>,
}

/// Something to tell a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceNews<K, S> {
    /// Who is notified.
    pub to: K,
    /// About whom.
    pub about: K,
    /// What it says of itself; `None` if it is away.
    pub status: Option<S>,
}

/// Who is here, among the players of one realm. `K` is a player's key.
#[derive(Debug)]
pub struct Presence<K, S> {
    here: BTreeMap<K, Here<K, S>>,
    timers: BTreeSet<(Duration, K)>,
    news: VecDeque<PresenceNews<K, S>>,
}

impl<K, S> Default for Presence<K, S> {
    fn default() -> Self {
        Presence { here: BTreeMap::new(), timers: BTreeSet::new(), news: VecDeque::new() }
    }
}

impl<K: Clone + Ord, S: Clone + Default + PartialEq> Presence<K, S> {
    /// A player has a connection. Returns whether its list of friends is to be read, for [`meet`](Self::meet).
    pub fn come(&mut self, player: &K) -> bool {
        if let Some(here) = self.here.get_mut(player) {
            if let Some(at) = here.away_at.take() {
                self.timers.remove(&(at, player.clone()));
            }
            return false;
        }
        let here = Here {
            friends: BTreeSet::new(),
            parted: Some(BTreeSet::new()),
            status: S::default(),
            is_visible: true,
            away_at: None,
        };
        self.here.insert(player.clone(), here);
        true
    }

    /// A player's list of friends was read. It and those of them that are here learn of each other.
    pub fn meet(&mut self, player: &K, friends: impl IntoIterator<Item = K>) {
        let Some(here) = self.here.get_mut(player) else { return };
        let parted = here.parted.take().unwrap_or_default();
        for friend in friends {
            if !parted.contains(&friend) {
                self.befriend(player, &friend);
            }
        }
    }

    /// Two players are friends from here on.
    pub fn befriend(&mut self, one: &K, other: &K) {
        if one == other || !self.here.contains_key(one) || !self.here.contains_key(other) {
            return;
        }
        for (player, friend) in [(one, other), (other, one)] {
            let Some(here) = self.here.get_mut(player) else { continue };
            if here.friends.insert(friend.clone()) {
                self.tell(player, friend);
            }
        }
    }

    /// Two players are friends no longer.
    pub fn part(&mut self, one: &K, other: &K) {
        for (player, friend) in [(one, other), (other, one)] {
            let Some(here) = self.here.get_mut(player) else { continue };
            here.friends.remove(friend);
            if let Some(parted) = &mut here.parted {
                parted.insert(friend.clone());
            }
        }
    }

    /// A player has lost its last connection.
    pub fn go(&mut self, player: &K, now: Duration) {
        let Some(here) = self.here.get_mut(player) else { return };
        if here.away_at.is_none() {
            let at = now + LINGER;
            here.away_at = Some(at);
            self.timers.insert((at, player.clone()));
        }
    }

    /// A player says something of itself, or hides. Returns whether it is here.
    pub fn set(&mut self, player: &K, status: S, is_visible: bool) -> bool {
        let Some(here) = self.here.get_mut(player) else { return false };
        if (&here.status, here.is_visible) == (&status, is_visible) {
            return true;
        }
        (here.status, here.is_visible) = (status, is_visible);
        for friend in here.friends.clone() {
            self.tell(&friend, player);
        }
        true
    }

    /// Whether a player is here, and what it says of itself, as a friend sees it.
    pub fn status(&self, player: &K) -> Option<&S> {
        self.here.get(player).filter(|here| here.is_visible).map(|here| &here.status)
    }

    /// Whether a player is here, whatever friends see.
    pub fn is_here(&self, player: &K) -> bool {
        self.here.contains_key(player)
    }

    /// Number of players who are here.
    pub fn len(&self) -> usize {
        self.here.len()
    }

    /// Whether nobody is here.
    pub fn is_empty(&self) -> bool {
        self.here.is_empty()
    }

    /// The next news to tell.
    pub fn poll_news(&mut self) -> Option<PresenceNews<K, S>> {
        self.news.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Those whose time is over are away. Returns them.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<K> {
        let mut away = Vec::new();
        while let Some((at, player)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            let Some(gone) = self.here.remove(&player) else { continue };
            for friend in gone.friends {
                if let Some(here) = self.here.get_mut(&friend) {
                    here.friends.remove(&player);
                    if gone.is_visible {
                        self.news.push_back(PresenceNews { to: friend, about: player.clone(), status: None });
                    }
                }
            }
            away.push(player);
        }
        away
    }

    fn tell(&mut self, to: &K, about: &K) {
        let status = self.status(about).cloned();
        self.news.push_back(PresenceNews { to: to.clone(), about: about.clone(), status });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Machine = Presence<u8, u8>;

    #[derive(Clone, Debug)]
    enum Step {
        Come(u8),
        Go(u8),
        Set(u8, u8, bool),
        Befriend(u8, u8),
        Part(u8, u8),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let player = 0_u8..5;
        prop_oneof![
            3 => player.clone().prop_map(Step::Come),
            2 => player.clone().prop_map(Step::Go),
            2 => (player.clone(), 0_u8..3, any::<bool>()).prop_map(|(of, status, is)| Step::Set(of, status, is)),
            2 => (player.clone(), player.clone()).prop_map(|(one, other)| Step::Befriend(one, other)),
            1 => (player.clone(), player).prop_map(|(one, other)| Step::Part(one, other)),
            2 => (1_u64..15).prop_map(Step::Wait),
        ]
    }

    proptest! {
        #[test]
        fn t2_what_friends_were_told_last_is_who_is_here(steps in proptest::collection::vec(step(), 0..80)) {
            let (mut presence, mut now) = (Machine::default(), Duration::ZERO);
            let mut friends: BTreeSet<(u8, u8)> = BTreeSet::new();
            let mut told: BTreeMap<(u8, u8), u8> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Come(player) => {
                        if presence.come(&player) {
                            // A player who comes knows nothing of before.
                            told.retain(|(to, _), _| *to != player);
                            let of = |pair: &&(u8, u8)| pair.0 == player;
                            let list: Vec<u8> = friends.iter().filter(of).map(|(_, other)| *other).collect();
                            presence.meet(&player, list);
                        }
                    }
                    Step::Go(player) => presence.go(&player, now),
                    Step::Set(player, status, is_visible) => {
                        presence.set(&player, status, is_visible);
                    }
                    Step::Befriend(one, other) if one != other => {
                        friends.extend([(one, other), (other, one)]);
                        presence.befriend(&one, &other);
                    }
                    Step::Befriend(..) => {}
                    Step::Part(one, other) => {
                        friends.remove(&(one, other));
                        friends.remove(&(other, one));
                        told.remove(&(one, other));
                        told.remove(&(other, one));
                        presence.part(&one, &other);
                    }
                    Step::Wait(seconds) => {
                        now += Duration::from_secs(seconds);
                        presence.handle_timeout(now);
                    }
                }
                while let Some(PresenceNews { to, about, status }) = presence.poll_news() {
                    prop_assert!(friends.contains(&(to, about)), "{to} is told of {about}, who is no friend");
                    match status {
                        Some(status) => told.insert((to, about), status),
                        None => told.remove(&(to, about)),
                    };
                }
                for (one, other) in &friends {
                    if presence.here.contains_key(one) {
                        prop_assert_eq!(told.get(&(*one, *other)), presence.status(other), "{} of {}", one, other);
                    }
                }
            }
            now += LINGER;
            for player in 0..5 {
                presence.go(&player, now);
            }
            presence.handle_timeout(now + LINGER);
            prop_assert!(presence.is_empty() && presence.next_timeout().is_none());
        }
    }

    #[test]
    fn t2_a_connection_that_is_back_within_seconds_tells_nobody() {
        let (mut presence, at) = (Machine::default(), Duration::from_secs);
        presence.come(&1);
        presence.come(&2);
        presence.befriend(&1, &2);
        while presence.poll_news().is_some() {}
        presence.go(&1, at(1));
        presence.handle_timeout(at(10));
        assert!(!presence.come(&1));
        presence.handle_timeout(at(60));
        assert_eq!(presence.poll_news(), None);
        presence.go(&1, at(60));
        presence.handle_timeout(at(70));
        assert_eq!(presence.poll_news(), Some(PresenceNews { to: 2, about: 1, status: None }));
    }

    #[test]
    fn t2_who_parts_while_the_list_is_read_stays_parted() {
        let mut presence = Machine::default();
        presence.come(&2);
        presence.come(&1);
        presence.part(&1, &2);
        presence.meet(&1, [2]);
        assert_eq!(presence.poll_news(), None);
    }
}
