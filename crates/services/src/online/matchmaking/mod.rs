//! The matchmaker: the searches of all realms, and news about them. docs/matchmaking.md describes each operation.
//!
//! `views.rs` has what is asked and answered, `handlers.rs` the operations.

mod handlers;
mod views;

pub(in crate::online) use handlers::charges;
pub(super) use handlers::{again, confirm, enter, leave, offer, opened, queues, read, withdraw};

use super::Services;
use super::budgets::AccountBudgets;
use super::by_realm::{ByRealm, Machine};
use super::failure::{Failure, Kind};
use crate::store::AccountId;
use core::time::Duration;
use parlor_hub::budget::Rate;
use parlor_server::embed::Clock;
use parlor_server::realm::Realm;
use parlor_social::limits::MATCHING_SLICE;
use parlor_social::{Ended, HandOutRefused, Name, Pool, Queue, TicketState};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use views::TicketView;

/// Searches of a player that begin.
const ENTRIES: Rate = Rate { burst: 10, interval: Duration::from_secs(1) };
/// What else a player says of its searches.
const WORDS: Rate = Rate { burst: 20, interval: Duration::from_millis(500) };
/// The longest that the task sleeps: the clock of the services may be moved.
const SLEEP_MAX: Duration = Duration::from_secs(5);
/// Maximum number of queues of a realm that are in memory.
const POOLS_MAX: usize = 1_000;
/// A search that began at another node may have waited for longer than this one runs, up to this.
const WAITED_MAX: Duration = Duration::from_secs(60 * 60);

/// The queues of a realm in which somebody searches.
type Pools = BTreeMap<Name, Pool>;

impl Machine for Pools {
    fn is_empty(&self) -> bool {
        Pools::is_empty(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.values().filter_map(Pool::next_timeout).min()
    }
}

/// The searches of all realms.
pub(super) struct Matchmaking {
    realms: ByRealm<Pools>,
    changed: Notify,
    entries: AccountBudgets,
    words: AccountBudgets,
}

impl Matchmaking {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(clock: Clock, mut random: impl FnMut() -> u64) -> Self {
        Matchmaking {
            realms: ByRealm::default(),
            changed: Notify::new(),
            entries: AccountBudgets::new(ENTRIES, clock, &mut random),
            words: AccountBudgets::new(WORDS, clock, random),
        }
    }
}

impl Services {
    /// Works on the queues of a realm, and tells what has changed.
    fn with_pools<T>(&self, realm: &Realm, work: impl FnOnce(&mut Pools) -> T) -> T {
        let matchmaking = self.matchmaking();
        let done = matchmaking.realms.with(realm, |pools| {
            let done = work(pools);
            self.tell_tickets(realm, pools);
            pools.retain(|_, pool| !pool.is_empty());
            done
        });
        matchmaking.changed.notify_one();
        done
    }

    /// Tells the members of tickets what has become of them. Whoever has found a match searches nowhere else.
    fn tell_tickets(&self, realm: &Realm, pools: &mut Pools) {
        let now = self.matching_time();
        loop {
            let mut others = Vec::new();
            for (name, pool) in pools.iter_mut() {
                while let Some(id) = pool.poll_changed() {
                    let Some((ticket, state)) = pool.ticket(&id) else { continue };
                    let is_found = matches!(state, TicketState::Found(_));
                    for member in &ticket.members {
                        let Ok(player) = AccountId::new(&member.player) else { continue };
                        let view = TicketView::of(name, ticket, state, &member.player, now);
                        let ends = is_found || matches!(state, TicketState::Ended(_));
                        self.tell_at_home(realm, &player, &format!("search/{id}"), &view.as_news(&id), ends);
                        if is_found {
                            others.push((Arc::clone(&member.player), name.clone()));
                        }
                    }
                }
            }
            if others.is_empty() {
                return;
            }
            for (player, found_in) in others {
                for (_, pool) in pools.iter_mut().filter(|(name, _)| **name != found_in) {
                    if let Some(ticket) = pool.ticket_of(&player).cloned() {
                        pool.leave(&ticket, Ended::FoundElsewhere, now);
                    }
                }
            }
        }
    }

    /// A player has a connection, or none.
    pub(super) fn is_in_searches(&self, realm: &Realm, player: &AccountId, is_here: bool) {
        let now = self.matching_time();
        if self.matchmaking().realms.has(realm) {
            self.with_pools(realm, |pools| {
                for pool in pools.values_mut() {
                    pool.set_here(player.as_str(), is_here, now);
                }
            });
        }
    }

    /// Ends all searches of a player, because its account is gone or banned.
    pub(super) fn leaves_all_searches(&self, realm: &Realm, player: &AccountId) {
        let now = self.matching_time();
        self.with_pools(realm, |pools| {
            for pool in pools.values_mut() {
                if let Some(ticket) = pool.ticket_of(player.as_str()).cloned() {
                    pool.leave(&ticket, Ended::Left, now);
                }
            }
        });
    }

    /// The members of a party have changed: it no longer searches.
    pub(super) fn party_has_changed(&self, realm: &Realm, party: &str) {
        let now = self.matching_time();
        if !self.matchmaking().realms.has(realm) {
            return;
        }
        self.with_pools(realm, |pools| {
            for pool in pools.values_mut() {
                if let Some(ticket) = pool.ticket_of_party(party).cloned() {
                    pool.leave(&ticket, Ended::PartyChanged, now);
                }
            }
        });
    }

    /// The time of the matchmaker. It began long before this server.
    fn matching_time(&self) -> Duration {
        self.time().steady() + WAITED_MAX
    }

    /// Whether somebody searches in a realm here.
    pub(super) fn has_searches(&self, realm: &Realm) -> bool {
        self.matchmaking().realms.has(realm)
    }

    /// Drops the searches of a realm without a word.
    pub(super) fn drop_searches(&self, realm: &Realm) {
        self.matchmaking().realms.drop_realm(realm);
    }

    /// The players who search in a realm.
    pub(super) fn players_of_searches(&self, realm: &Realm) -> Vec<String> {
        let all =
            |pools: &Pools| pools.values().flat_map(Pool::players).map(|player| player.to_string()).collect();
        self.matchmaking().realms.read(realm, all).unwrap_or_default()
    }

    /// Takes over what another node has defined of the queues of a realm.
    pub(super) async fn follow_queues(&self, realm: &Realm) {
        let Ok(known) = self.definitions().of(self, realm).await else { return };
        let queues = self.matchmaking().realms.read(realm, |pools| {
            let changed = pools.iter().filter_map(|(name, pool)| {
                let queue = known.queues.get(name).map(|queue| &**queue);
                // A queue that nobody has defined is one of a server for development.
                let is_gone = queue.is_none() && self.definitions().made.is_none();
                let is_other = queue.is_some_and(|queue| queue != pool.queue());
                (is_gone || is_other).then(|| (name.clone(), queue.cloned()))
            });
            changed.collect::<Vec<_>>()
        });
        for (name, queue) in queues.into_iter().flatten() {
            self.queue_has_changed(realm, &name, queue.as_ref());
        }
    }

    /// The definition of a queue has changed, or is gone.
    pub(super) fn queue_has_changed(&self, realm: &Realm, name: &Name, queue: Option<&Queue>) {
        let now = self.matching_time();
        self.with_pools(realm, |pools| {
            let Some(pool) = pools.get_mut(name) else { return };
            match queue {
                Some(queue) => pool.redefine(queue.clone(), now),
                None => pool.end_all(Ended::QueueGone, now),
            }
        });
    }
}

/// Makes matches.
pub(super) async fn watch(services: Services) {
    loop {
        let matchmaking = services.matchmaking();
        let moved = services.time().moved();
        let now = services.matching_time();
        // A node that may be the home no more decides nothing.
        let due = matchmaking.realms.due(now);
        for realm in due.iter().filter(|realm| services.is_home(realm)) {
            loop {
                let is_done = services.with_pools(realm, |pools| {
                    pools.values_mut().try_fold(MATCHING_SLICE, |left, pool| pool.work(left, now)).is_some()
                });
                tokio::task::yield_now().await;
                if is_done {
                    break;
                }
            }
        }
        let next = matchmaking.realms.next_timeout();
        let sleep = next.map_or(SLEEP_MAX, |at| at.saturating_sub(now).min(SLEEP_MAX));
        tokio::select! {
            () = tokio::time::sleep(sleep) => {}
            () = matchmaking.changed.notified() => {}
            () = moved => {}
        }
    }
}

fn no_such_ticket() -> Failure {
    let sentence = "there is no such search of yours: begin one with matchmaking.enter";
    Failure::new(Kind::NotFound, "no_such_ticket", sentence).at("ticket")
}

fn refused(refused: HandOutRefused) -> Failure {
    match refused {
        HandOutRefused::NoSuchTicket => no_such_ticket(),
        HandOutRefused::NotAsked => {
            Failure::new(Kind::Conflict, "not_asked", refused.to_string()).at("ticket")
        }
    }
}
