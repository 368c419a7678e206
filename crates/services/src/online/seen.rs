//! Which players were here recently: those with a request within the last minute, or with an open socket. A room
//! whose players are all away is not returned by searches.

use crate::store::AccountId;
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use std::collections::HashMap;
use std::sync::Mutex;

/// A player without a socket is away after this time without a request.
const AWAY_AFTER: Duration = Duration::from_secs(60);
/// Interval at which other nodes are told of a player who makes requests.
const TELL_EVERY: Duration = Duration::from_secs(30);
/// Whom other nodes were told of for longer is away.
pub(super) const AWAY_ELSEWHERE_AFTER: Duration = AWAY_AFTER.saturating_add(TELL_EVERY);
/// Maximum number of remembered players. Beyond it others count as away.
const REMEMBERED_MAX: usize = 65_536;

type Key = (Realm, AccountId);

/// When each player was here last, on the services' steady clock.
#[derive(Debug)]
pub(super) struct Seen {
    seen: Mutex<HashMap<Key, Last>>,
    started: Duration,
}

/// A player.
#[derive(Clone, Copy, Debug)]
struct Last {
    seen: Duration,
    /// When the other nodes of a cluster were told.
    told: Duration,
}

/// What a request of a player changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    /// Whether it was away before.
    pub(super) was_away: bool,
    /// Whether other nodes of a cluster are to be told that it is here.
    pub(super) is_news: bool,
}

impl Seen {
    /// Returns an empty record; `now` is the steady time of the services' start.
    pub(super) fn new(now: Duration) -> Self {
        Seen { seen: Mutex::default(), started: now }
    }

    /// Records a request of a player.
    pub(super) fn note(&self, key: Key, now: Duration) -> Noted {
        let mut seen = lock(&self.seen);
        if seen.len() >= REMEMBERED_MAX && !seen.contains_key(&key) {
            seen.retain(|_, last| now.saturating_sub(last.seen) < AWAY_AFTER);
            if seen.len() >= REMEMBERED_MAX {
                return Noted::default();
            }
        }
        let before = seen.get(&key).copied();
        let was_away = before.is_none_or(|last| now.saturating_sub(last.seen) >= AWAY_AFTER);
        let is_news = before.is_none_or(|last| now.saturating_sub(last.told) >= TELL_EVERY);
        let told = before.filter(|_| !is_news).map_or(now, |last| last.told);
        seen.insert(key, Last { seen: now, told });
        Noted { was_away, is_news }
    }

    /// An unknown player may have been present just before the server's start.
    pub(super) fn has_seen(&self, key: &Key, now: Duration) -> bool {
        let last = lock(&self.seen).get(key).map_or(self.started, |last| last.seen);
        now.saturating_sub(last) < AWAY_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threat_51_who_was_here_is_remembered_for_a_minute_and_in_bounded_memory() {
        let key = |number: usize| {
            let account = AccountId::new(&format!("p{number}")).unwrap();
            (Realm::new("tanks", "production").unwrap(), account)
        };
        let at = Duration::from_secs;
        let seen = Seen::new(at(100));
        assert!(seen.has_seen(&key(0), at(159)) && !seen.has_seen(&key(0), at(160)));
        assert_eq!(seen.note(key(0), at(200)), Noted { was_away: true, is_news: true });
        assert_eq!(seen.note(key(0), at(229)), Noted { was_away: false, is_news: false });
        assert_eq!(seen.note(key(0), at(259)), Noted { was_away: false, is_news: true });
        assert!(seen.has_seen(&key(0), at(318)) && !seen.has_seen(&key(0), at(319)));
        for number in 0..REMEMBERED_MAX + 10 {
            seen.note(key(number), at(400));
        }
        assert_eq!(lock(&seen.seen).len(), REMEMBERED_MAX);
        assert!(seen.note(key(REMEMBERED_MAX + 5), at(460)).was_away, "those who are away make room");
        assert_eq!(lock(&seen.seen).len(), 1);
    }
}
