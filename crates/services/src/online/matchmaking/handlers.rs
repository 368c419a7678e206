//! The operations on searches and offers.

use super::views::{
    ConfirmMatch, EnterQueue, OfTicket, OfferAnswer, OfferSeats, OpenedRoom, QueueList, QueueView,
    TicketAnswer, TicketView, WithdrawOffer,
};
use super::{POOLS_MAX, Pools, no_such_ticket, refused};
use crate::online::Services;
use crate::online::accounts::{DONE, Done, Nothing};
use crate::online::failure::{Failure, Kind};
use crate::online::properties::{bad_property, checked};
use crate::online::secrets;
use crate::online::table::Caller;
use crate::store::AccountId;
use core::time::Duration;
use parlor_server::realm::Realm;
use parlor_social::limits::{GROUP_MAX, TICKETS_EACH};
use parlor_social::{
    Ended, EnterRefused, LobbyKind, Name, Offer, OfferRefused, OfferedBy, Players, Pool, PoolStats, Queue,
    RATING_START, Seeker, Ticket, check_filter,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Lifetime of an offer, as sent to clients.
const OFFER_HOLDS: Duration = Duration::from_secs(60);

impl Services {
    /// A queue by its name. On a server for development one that nobody has defined is a queue for as many players as a
    /// search says.
    async fn queue(
        &self,
        realm: &Realm,
        name: &str,
        players: Option<Players>,
    ) -> Result<(Name, Queue), Failure> {
        let known = self.definitions().of(self, realm).await?;
        let found = Name::new(name).ok();
        if let Some((name, queue)) = found.as_ref().and_then(|name| known.queues.get_key_value(name)) {
            return Ok((name.clone(), (**queue).clone()));
        }
        let is_development = self.definitions().made.is_some();
        match found.filter(|_| is_development) {
            Some(name) => Ok((name, Queue { players: players.unwrap_or_default(), ..Queue::default() })),
            None => {
                let sentence = format!("there is no queue {name:.80}: matchmaking.queues lists them");
                Err(Failure::new(Kind::NotFound, "no_such_queue", sentence).at("queue"))
            }
        }
    }

    /// Those who search: the player alone, or its whole party.
    async fn who_searches(
        &self,
        caller: &Caller,
        party: Option<&str>,
        queue: &Queue,
    ) -> Result<(Vec<Seeker>, BTreeSet<Arc<str>>), Failure> {
        let (realm, player) = &self.account_of(caller)?;
        let members: Vec<AccountId> = match party {
            None => vec![player.clone()],
            Some(party) => {
                let members = self.with_lobbies(realm, |lobbies| {
                    let is_mine = |lobby: &&parlor_social::Lobby| {
                        lobby.kind == LobbyKind::Party && lobby.member(player.as_str()).is_some()
                    };
                    let party = lobbies.get(party).filter(is_mine)?;
                    let mut members: Vec<Arc<str>> =
                        party.members.iter().map(|member| Arc::clone(&member.player)).collect();
                    members.sort_by_key(|member| *member != party.owner);
                    Some((&*party.owner == player.as_str(), members))
                });
                let (is_owner, members) = members.ok_or_else(|| {
                    let sentence = "you are in no such party: lobby.mine has yours";
                    Failure::new(Kind::NotFound, "no_such_lobby", sentence).at("party")
                })?;
                if !is_owner {
                    let sentence = "the owner of the party searches for all of it";
                    return Err(Failure::new(Kind::Forbidden, "not_owner", sentence).at("party"));
                }
                members.iter().map(|member| AccountId::new(member)).collect::<Result<_, _>>()?
            }
        };
        if let Some(away) = members.iter().find(|member| !self.is_connected(caller, realm, member, party)) {
            let sentence = if away == player {
                "only players with an open socket search: connect to /v1/socket first"
            } else {
                "a member of your party has no connection at present"
            };
            return Err(Failure::new(Kind::Conflict, "not_here", sentence));
        }
        let ladder = queue.skill.as_ref().and_then(|skill| Name::new(&skill.ladder).ok());
        let ratings = match ladder {
            Some(ladder) => self.store().ratings(realm, &ladder, members.clone()).await?,
            None => vec![RATING_START; members.len()],
        };
        let (mut seekers, mut avoid) = (Vec::with_capacity(members.len()), BTreeSet::new());
        for (member, rating) in members.iter().zip(ratings) {
            let account = self.store().account(realm, member).await?;
            let blocked = self.store().blocked_with(realm, member).await?;
            avoid.extend(blocked.iter().map(|other| Arc::from(other.as_str())));
            seekers.push(Seeker {
                player: member.as_str().into(),
                name: account.map_or(String::new(), |account| account.display_name),
                skill: rating.points(),
                doubt: rating.uncertainty(),
                rtt_ms: match caller.via.as_ref().filter(|_| member == player) {
                    Some(via) => via.rtt_ms,
                    None => self.feeds().rtt_ms(realm, member),
                },
            });
        }
        // Members of one party stay together, also if one has blocked another.
        for seeker in &seekers {
            avoid.remove(&seeker.player);
        }
        Ok((seekers, avoid))
    }
}

impl Services {
    /// Whether a player has a connection, at this node or another one, as far as known.
    fn is_connected(&self, caller: &Caller, realm: &Realm, player: &AccountId, party: Option<&str>) -> bool {
        if let Some(via) = &caller.via
            && caller.identity.as_ref().is_some_and(|identity| identity.sub == player.as_str())
        {
            return via.is_here;
        }
        // A party knows which of its members are here.
        let is_in_party = |party: &str| {
            self.with_lobbies(realm, |lobbies| {
                let member = lobbies.get(party).and_then(|party| party.member(player.as_str()));
                member.is_some_and(|member| member.away_at.is_none())
            })
        };
        self.feeds().has(realm, player) || self.cluster().is_some() && party.is_some_and(is_in_party)
    }
}

/// Charges of each operation, also where another node does it.
pub(in crate::online) mod charges {
    use super::{Caller, Failure, Services};
    use crate::online::homes::question;

    pub(in crate::online) fn entries(services: &Services, caller: &Caller) -> Result<(), Failure> {
        services.charged(caller, &services.matchmaking().entries)
    }

    /// The game's own service is not charged for its offers where the home is.
    pub(in crate::online) fn offered(services: &Services, caller: &Caller) -> Result<(), Failure> {
        if caller.is_player() { words(services, caller) } else { question(services, caller) }
    }

    pub(in crate::online) fn words(services: &Services, caller: &Caller) -> Result<(), Failure> {
        services.charge_word(caller)
    }
}

pub(crate) async fn queues(services: Services, caller: Caller, _: Nothing) -> Result<QueueList, Failure> {
    let realm = services.realm_of(&caller)?;
    let known = services.definitions().of(&services, &realm).await?;
    Ok(services.with_pools(&realm, |pools| {
        let running = pools.iter().map(|(name, pool)| (name.clone(), pool.queue().clone()));
        let defined = known.queues.iter().map(|(name, queue)| (name.clone(), (**queue).clone()));
        let all: std::collections::BTreeMap<Name, Queue> = running.chain(defined).collect();
        let view = |(name, queue): (Name, Queue)| {
            let none = PoolStats { waiting: 0, found: 0, wait_ms: None, offers: 0 };
            let PoolStats { waiting, found, wait_ms, offers } = pools.get(&name).map_or(none, Pool::stats);
            let Players { min: min_players, max: max_players, .. } = queue.players;
            QueueView {
                queue: name.to_string(),
                title: queue.title,
                min_players,
                max_players,
                waiting,
                found,
                wait_ms,
                offers,
            }
        };
        QueueList { queues: all.into_iter().map(view).collect() }
    }))
}

pub(crate) async fn enter(
    services: Services,
    caller: Caller,
    input: EnterQueue,
) -> Result<TicketAnswer, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    charges::entries(&services, &caller)?;
    checked("properties", &input.properties)?;
    let filter = input.filter.unwrap_or_default();
    check_filter(&filter, &[]).map_err(|error| bad_property("filter", error))?;
    if let Some(players) = &input.players {
        players.check().map_err(|(field, sentence)| Failure::field(format!("players.{field}"), sentence))?;
    }
    let (name, queue) = services.queue(&realm, &input.queue, input.players).await?;
    let (members, avoid) = services.who_searches(&caller, input.party.as_deref(), &queue).await?;
    let any = Players { min: 2, max: GROUP_MAX, multiple: 1 };
    let now = services.matching_time();
    let again = caller.via.as_ref().and_then(|via| via.again.as_ref());
    let waited = again.map_or(Duration::ZERO, |again| Duration::from_millis(again.waited_ms));
    let ticket = Ticket {
        id: again.map_or_else(|| secrets::id('t'), |again| Ok(again.ticket.clone()))?.into(),
        members,
        party: input.party.as_deref().map(Arc::from),
        players: input.players.unwrap_or(any),
        properties: Arc::new(input.properties),
        filter: Arc::new(filter),
        avoid: Arc::new(avoid),
        since: now.saturating_sub(waited),
    };
    let answer = services.with_pools(&realm, |pools| {
        if again.is_some() && pools.get(&name).is_some_and(|pool| pool.ticket(&ticket.id).is_some()) {
            // The answer was lost when it came here first.
            return seen(pools, &name, &ticket.id, player.as_str(), now);
        }
        for member in &ticket.members {
            let searches = pools.values().filter(|pool| pool.ticket_of(&member.player).is_some()).count();
            if searches >= TICKETS_EACH {
                let sentence =
                    format!("a player searches in {TICKETS_EACH} queues at the same time: leave one");
                return Err(Failure::new(Kind::Conflict, "too_many_tickets", sentence));
            }
        }
        if pools.len() >= POOLS_MAX && !pools.contains_key(&name) {
            return Err(full());
        }
        let id = Arc::clone(&ticket.id);
        let pool = pools.entry(name.clone()).or_insert_with(|| Pool::new(queue));
        pool.enter(ticket, now).map_err(not_taken)?;
        seen(pools, &name, &id, player.as_str(), now)
    })?;
    // A connection may have gone while the player was looked up.
    for member in answer.view.members() {
        if let Ok(member) = AccountId::new(member)
            && !services.is_connected(&caller, &realm, &member, input.party.as_deref())
        {
            services.is_in_searches(&realm, &member, false);
        }
    }
    Ok(answer)
}

fn full() -> Failure {
    Failure::unavailable("too many players search at present: try again", Duration::from_secs(10))
}

fn not_taken(refused: EnterRefused) -> Failure {
    let (kind, code, path) = match refused {
        EnterRefused::AlreadyInQueue => (Kind::Conflict, "already_in_queue", "queue"),
        EnterRefused::PartyTooLarge => (Kind::Conflict, "party_too_large", "party"),
        EnterRefused::Players => (Kind::BadInput, "bad_input", "players"),
        EnterRefused::Full => return full(),
    };
    Failure::new(kind, code, refused.to_string()).at(path)
}

/// A ticket as one of its members sees it.
fn seen(pools: &Pools, queue: &Name, id: &str, player: &str, now: Duration) -> Result<TicketAnswer, Failure> {
    let found = pools.get(queue).and_then(|pool| pool.ticket(id));
    let (ticket, state) = found.ok_or_else(no_such_ticket)?;
    if !ticket.members.iter().any(|member| &*member.player == player) {
        return Err(no_such_ticket());
    }
    Ok(TicketAnswer { ticket: id.to_owned(), view: TicketView::of(queue, ticket, state, player, now) })
}

/// The queue of a ticket, if this player is one of its members.
fn queue_of(pools: &Pools, id: &str, player: &str) -> Result<Name, Failure> {
    let is_mine = |pool: &Pool| {
        pool.ticket(id).is_some_and(|(ticket, _)| ticket.members.iter().any(|it| &*it.player == player))
    };
    let found = pools.iter().find(|(_, pool)| is_mine(pool)).map(|(name, _)| name.clone());
    found.ok_or_else(no_such_ticket)
}

impl Services {
    /// Does something with a ticket as one of its members, and gives how it then stands.
    fn with_ticket(
        &self,
        caller: &Caller,
        id: &str,
        work: impl FnOnce(&mut Pool, &str, Duration) -> Result<(), Failure>,
    ) -> Result<TicketAnswer, Failure> {
        let (realm, player) = self.account_of(caller)?;
        let now = self.matching_time();
        self.with_pools(&realm, |pools| {
            let name = queue_of(pools, id, player.as_str())?;
            let pool = pools.get_mut(&name).ok_or_else(no_such_ticket)?;
            work(pool, player.as_str(), now)?;
            seen(pools, &name, id, player.as_str(), now)
        })
    }

    fn charge_word(&self, caller: &Caller) -> Result<(), Failure> {
        self.charged(caller, &self.matchmaking().words)
    }
}

pub(crate) async fn read(
    services: Services,
    caller: Caller,
    input: OfTicket,
) -> Result<TicketAnswer, Failure> {
    services.with_ticket(&caller, &input.ticket, |_, _, _| Ok(()))
}

pub(crate) async fn leave(
    services: Services,
    caller: Caller,
    input: OfTicket,
) -> Result<TicketAnswer, Failure> {
    services.charge_word(&caller)?;
    services.with_ticket(&caller, &input.ticket, |pool, _, now| {
        pool.leave(&input.ticket, Ended::Left, now);
        Ok(())
    })
}

pub(crate) async fn confirm(
    services: Services,
    caller: Caller,
    input: ConfirmMatch,
) -> Result<TicketAnswer, Failure> {
    services.charge_word(&caller)?;
    services.with_ticket(&caller, &input.ticket, |pool, player, now| {
        pool.confirm(&input.ticket, player, input.accept, now).map_err(refused)
    })
}

pub(crate) async fn opened(
    services: Services,
    caller: Caller,
    input: OpenedRoom,
) -> Result<TicketAnswer, Failure> {
    services.charge_word(&caller)?;
    // Whoever is not asked learns nothing of the code.
    services.with_ticket(&caller, &input.ticket, |pool, player, _| {
        pool.must_be_opener(&input.ticket, player).map_err(refused)
    })?;
    let (realm, account) = services.account_of(&caller)?;
    let room = services.own_room(&caller, (&realm, &account), &input.code).await?;
    services.with_ticket(&caller, &input.ticket, |pool, player, now| {
        pool.opened(&input.ticket, player, room, now).map_err(refused)
    })
}

pub(crate) async fn again(
    services: Services,
    caller: Caller,
    input: OfTicket,
) -> Result<TicketAnswer, Failure> {
    services.charge_word(&caller)?;
    services.with_ticket(&caller, &input.ticket, |pool, player, now| {
        pool.again(&input.ticket, player, now).map_err(refused)
    })
}

pub(crate) async fn offer(
    services: Services,
    caller: Caller,
    input: OfferSeats,
) -> Result<OfferAnswer, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    checked("properties", &input.properties)?;
    if input.seats > GROUP_MAX {
        return Err(Failure::field("seats", format!("{GROUP_MAX} are the most")));
    }
    let (name, queue) = services.queue(&realm, &input.queue, None).await?;
    let (by, room) = if caller.is_player() {
        services.charge_word(&caller)?;
        if queue.offers != OfferedBy::Players {
            let sentence = "the game's own service offers the seats of this queue";
            return Err(Failure::new(Kind::Forbidden, "server_only", sentence).at("queue"));
        }
        let room = services.own_room(&caller, (&realm, &account), &input.code).await?;
        (Some(Arc::from(account.as_str())), room)
    } else {
        (None, services.live_room(&realm, &input.code).await?)
    };
    let now = services.matching_time();
    services.with_pools(&realm, |pools| {
        if pools.len() >= POOLS_MAX && !pools.contains_key(&name) {
            return Err(full());
        }
        let pool = pools.entry(name).or_insert_with(|| Pool::new(queue));
        let (seats, skill, properties) = (input.seats, input.points, input.properties);
        let offer = Offer { id: room.code.clone(), by, room, seats, skill, properties };
        pool.offer(offer, now).map_err(offer_refused)
    })?;
    Ok(OfferAnswer { holds_ms: super::views::millis(OFFER_HOLDS) })
}

fn offer_refused(refused: OfferRefused) -> Failure {
    match refused {
        OfferRefused::NotYours => Failure::new(Kind::Forbidden, "not_yours", refused.to_string()).at("code"),
        OfferRefused::Full => full(),
    }
}

pub(crate) async fn withdraw(
    services: Services,
    caller: Caller,
    input: WithdrawOffer,
) -> Result<Done, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let by = caller.is_player().then_some(account.as_str());
    services.with_pools(&realm, |pools| {
        let pool = Name::new(&input.queue).ok().and_then(|name| pools.get_mut(&name));
        pool.map_or(Ok(()), |pool| pool.withdraw(&input.code, by)).map_err(offer_refused)
    })?;
    Ok(DONE)
}
