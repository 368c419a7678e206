//! Lobbies and parties: the lobbies of all realms, and news about them. docs/lobbies.md describes each operation.
//!
//! `views.rs` has what is asked and answered, `handlers.rs` the operations.

mod handlers;
mod views;

pub(in crate::online) use handlers::charges;
pub(super) use handlers::{
    all, create, decline, end, find, invite, join, kick, leave, mine, promote, read, room, say, update,
    update_me,
};

use super::Services;
use super::budgets::AccountBudgets;
use super::by_realm::{ByRealm, Machine};
use super::charges::{Charges, Rates};
use super::failure::{Failure, Kind};
use super::table::Caller;
use crate::store::AccountId;
use core::time::Duration;
use parlor_hub::budget::Rate;
use parlor_server::embed::Clock;
use parlor_server::realm::Realm;
use parlor_social::{Lobbies, LobbyNews, LobbyRefused, Person};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use views::LobbyView;

/// Lobbies that a player enters or creates.
const ENTRIES: Rate = Rate { burst: 10, interval: Duration::from_secs(1) };
/// Those that all accounts of an address create.
const CREATED: Rates = Rates {
    of_address: Rate { burst: 120, interval: Duration::from_secs(1) },
    of_neighbourhood: Rate { burst: 480, interval: Duration::from_millis(250) },
    what: "lobbies were made",
};
/// Changes.
const CHANGES: Rate = Rate { burst: 20, interval: Duration::from_millis(100) };
/// Searches.
const SEARCHES: Rate = Rate { burst: 10, interval: Duration::from_millis(500) };
/// Invitations.
const INVITES: Rate = Rate { burst: 10, interval: Duration::from_secs(5) };
/// Questions to another node that cost nothing where the answer is.
const QUESTIONS: Rate = Rate { burst: 20, interval: Duration::from_millis(100) };
/// What members say.
const SAYINGS: Rate = Rate { burst: 5, interval: Duration::from_millis(500) };

/// The lobbies of all realms.
pub(super) struct AllLobbies {
    realms: ByRealm<Lobbies>,
    entries: AccountBudgets,
    created: Charges,
    changes: AccountBudgets,
    searches: AccountBudgets,
    invites: AccountBudgets,
    sayings: AccountBudgets,
    pub(super) questions: AccountBudgets,
}

impl AllLobbies {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(clock: Clock, mut random: impl FnMut() -> u64) -> Self {
        let mut budget = |rate| AccountBudgets::new(rate, clock, &mut random);
        AllLobbies {
            realms: ByRealm::default(),
            entries: budget(ENTRIES),
            changes: budget(CHANGES),
            searches: budget(SEARCHES),
            invites: budget(INVITES),
            sayings: budget(SAYINGS),
            questions: budget(QUESTIONS),
            created: Charges::new(CREATED, clock, random),
        }
    }

    /// When the next member loses its seat.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.realms.next_timeout()
    }
}

impl Machine for Lobbies {
    fn is_empty(&self) -> bool {
        Lobbies::is_empty(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Lobbies::next_timeout(self)
    }
}

impl Services {
    /// Works on the lobbies of a realm, and tells what has changed.
    pub(super) fn with_lobbies<T>(&self, realm: &Realm, work: impl FnOnce(&mut Lobbies) -> T) -> T {
        self.lobbies().realms.with(realm, |lobbies| {
            let done = work(lobbies);
            while let Some(news) = lobbies.poll_news() {
                self.tell_lobby_news(realm, lobbies, &news);
            }
            done
        })
    }

    fn tell_lobby_news(&self, realm: &Realm, lobbies: &Lobbies, news: &LobbyNews) {
        let tell = |player: &str, topic: &str, news: serde_json::Value, ends: bool| {
            if let Ok(player) = AccountId::new(player) {
                self.tell_at_home(realm, &player, topic, &news, ends);
            }
        };
        match news {
            LobbyNews::Changed(id) => {
                let Some(lobby) = lobbies.get(id) else { return };
                let topic = format!("lobby/{id}");
                let news = json!({ "topic": topic, "lobby": LobbyView::of_member(lobby) });
                for member in &lobby.members {
                    tell(&member.player, &topic, news.clone(), false);
                }
            }
            LobbyNews::Gone { lobby, player, why } => {
                let topic = format!("lobby/{lobby}");
                tell(player, &topic, json!({ "topic": topic, "gone": why.as_str() }), true);
            }
            LobbyNews::Invited(player) => {
                tell(player, "invitations", json!({ "topic": "invitations" }), false);
            }
            LobbyNews::PartyChanged(party) => self.party_has_changed(realm, party),
        }
    }

    /// A player has a connection, or none.
    pub(super) fn is_in_lobbies(&self, realm: &Realm, player: &AccountId, is_here: bool) {
        let now = self.time().steady();
        if self.lobbies().realms.has(realm) {
            self.with_lobbies(realm, |lobbies| lobbies.set_here(player.as_str(), is_here, now));
        }
    }

    /// Takes a player out of all lobbies, because its account is gone or banned.
    pub(super) fn leaves_all_lobbies(&self, realm: &Realm, player: &AccountId) {
        self.with_lobbies(realm, |lobbies| lobbies.forget(player.as_str()));
    }

    /// Ends the seats that are lost by now.
    pub(super) fn end_lost_seats(&self, now: Duration) {
        // A node that may be the home no more decides nothing.
        for realm in self.lobbies().realms.due(now).into_iter().filter(|realm| self.is_home(realm)) {
            self.with_lobbies(&realm, |lobbies| lobbies.handle_timeout(now));
        }
    }

    /// Whether a realm has lobbies here.
    pub(super) fn has_lobbies(&self, realm: &Realm) -> bool {
        self.lobbies().realms.has(realm)
    }

    /// Drops the lobbies of a realm without a word.
    pub(super) fn drop_lobbies(&self, realm: &Realm) {
        self.lobbies().realms.drop_realm(realm);
    }

    /// The players in the lobbies of a realm.
    pub(super) fn players_of_lobbies(&self, realm: &Realm) -> Vec<String> {
        let all = |lobbies: &Lobbies| {
            let members = lobbies.after("").flat_map(|lobby| &lobby.members);
            members.map(|member| member.player.to_string()).collect()
        };
        self.lobbies().realms.read(realm, all).unwrap_or_default()
    }

    /// The calling player as lobbies know it.
    pub(super) async fn person(&self, caller: &Caller) -> Result<Person, Failure> {
        let (realm, player) = &self.account_of(caller)?;
        let is_here = caller.via.as_ref().map_or_else(|| self.feeds().has(realm, player), |via| via.is_here);
        let keys = |ids: Vec<AccountId>| -> BTreeSet<Arc<str>> {
            ids.iter().map(|id| Arc::from(id.as_str())).collect()
        };
        let account = self.store().account(realm, player).await?;
        Ok(Person {
            player: player.as_str().into(),
            name: account.map_or(String::new(), |account| account.display_name),
            is_here,
            friends: keys(self.store().friend_ids(realm, player).await?),
            blocked: keys(self.store().blocked_with(realm, player).await?),
        })
    }
}

/// The server's refusal.
fn refused(refused: LobbyRefused) -> Failure {
    let (kind, code) = match refused {
        LobbyRefused::NoSuchLobby => (Kind::NotFound, "no_such_lobby"),
        LobbyRefused::NotInLobby => (Kind::Forbidden, "not_in_lobby"),
        LobbyRefused::NotOwner => (Kind::Forbidden, "not_owner"),
        LobbyRefused::NoSuchPlayer => (Kind::NotFound, "no_such_player"),
        LobbyRefused::Full => (Kind::Conflict, "lobby_full"),
        LobbyRefused::Locked => (Kind::Conflict, "locked"),
        LobbyRefused::Kicked => (Kind::Forbidden, "kicked"),
        LobbyRefused::AlreadyInParty => (Kind::Conflict, "already_in_party"),
        LobbyRefused::TooManyLobbies => (Kind::Conflict, "too_many_lobbies"),
        LobbyRefused::NotFriends => (Kind::Forbidden, "not_friends"),
        LobbyRefused::InvitedTooOften => (Kind::Conflict, "asked_too_often"),
        LobbyRefused::TooLarge => (Kind::TooLarge, "too_large"),
        LobbyRefused::Stale(_) => (Kind::Conflict, "stale"),
        LobbyRefused::Seats(_) | LobbyRefused::Seated(_) => (Kind::BadInput, "bad_input"),
        LobbyRefused::NoPlace => (Kind::Unavailable, "unavailable"),
    };
    let failure = Failure::new(kind, code, refused.to_string());
    match refused {
        LobbyRefused::Stale(_) => failure.at("version"),
        LobbyRefused::Seats(_) | LobbyRefused::Seated(_) => failure.at("max"),
        LobbyRefused::NoPlace => failure.after(Duration::from_secs(10)),
        _ => failure,
    }
}
