//! A world of members who return, and of entities that a filter of the game hides: one room, whose host may change.
//!
//! Connections are lost for less than the grace, for longer, and for longer than the room remembers. Processes die, and
//! others begin with their tickets. Meanwhile what each member may see changes all the time. It is checked against two
//! models: the [roster](crate::model) says whose each id is, the scopes what each member may see. In the end everything
//! heals: who is known returns as who it was, and every member sees what its scope admits.

mod acts;
mod play;

use super::report::{EXCERPT_LINES, Objection, Outcome, refused};
use crate::link::Link;
use crate::model::roster::{Roster, Slice};
use crate::model::scopes::Scopes;
use crate::model::{Counts, Divergence, Verdict, ensure};
use crate::peer::PeerId;
use crate::sim::Sim;
use acts::Client;
use parlor_client_core::Event;
use parlor_hub::Config;
use parlor_hub::room::log;
use parlor_impair::Rng;
use parlor_proto::{Instant, LinkKind, MemberId, RoomCode};
use play::{Game, look};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Worlds of this kind, per 1,000 seeds.
const PER_MILLE: u64 = 200;
/// Silence after which a member counts as lost.
const PRESENCE: Duration = Duration::from_secs(1);
/// Time in which all that can return has returned, beside the presence and the grace.
const HEAL_MS: u64 = 8_000;

/// Whether a seed's world is of this kind.
pub(super) fn is_one(seed: u64) -> bool {
    Rng::new(seed ^ 0x7265_7475).per_mille(PER_MILLE)
}

/// Runs such a world of a seed.
///
/// # Panics
/// If the world diverges from its models: with the seed, the divergence, and the end of the transcript.
pub fn run(seed: u64) -> Outcome {
    let mut world = World::new(seed);
    if let Err(divergence) = world.storm().and_then(|()| world.settle()) {
        let excerpt = world.sim.excerpt(EXCERPT_LINES);
        panic!("seed {seed} diverges at {} µs: {divergence}\n{excerpt}", world.sim.now().as_micros());
    }
    Outcome { trace_hash: world.sim.trace_hash(), counts: world.counts() }
}

struct World {
    sim: Sim,
    rng: Rng,
    grace: Duration,
    remember: Duration,
    code: Option<RoomCode>,
    /// Clients that may ask to enter.
    clients_max: usize,
    /// Whether another member takes the role of a lost host.
    migrates: bool,
    has_paths: bool,
    are_paths_silent: bool,
    clients: Vec<Client>,
    roster: Roster,
    game: Rc<Game>,
    objection: Objection,
    /// The newest value of player data.
    data: i64,
    settled: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x7265_7473);
        let grace = Duration::from_millis(rng.pick(&[800, 1_500, 2_500]));
        let remember = Duration::from_millis(rng.pick(&[600_000, 600_000, 600_000, 2_500, 0]));
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Config { record: true, grace, remember, ..Config::new(drawn) };
        let mut sim = Sim::with_hub(seed, config);
        let has_paths = rng.per_mille(300);
        if has_paths {
            let link = Link::worse(&mut rng).as_kind(LinkKind::Quic).latency_ms(1 + rng.below(30));
            sim.direct(Some(link));
        }
        let clients_max = rng.pick(&[3, 4, 5, 6]);
        let max_players = if rng.per_mille(700) { clients_max } else { 2 + rng.index(clients_max - 2) };
        let migrates = rng.per_mille(750);
        let mut world = World {
            sim,
            grace,
            remember,
            code: None,
            clients_max,
            migrates,
            has_paths,
            are_paths_silent: false,
            clients: Vec::new(),
            roster: Roster::new(max_players, remember),
            game: Rc::new(Game {
                every: rng.pick(&[1, 1, 2, 7]),
                phase: Cell::new(0),
                serial: Cell::new(0),
                is_busy: Cell::new(true),
                keeps: rng.per_mille(800),
                scopes: RefCell::new(Scopes::new(1)),
            }),
            objection: Rc::new(RefCell::new(Ok(()))),
            data: 0,
            settled: 0,
            rng,
        };
        *world.game.scopes.borrow_mut() = Scopes::new(world.game.every);
        world.open(max_players);
        world
    }

    fn storm(&mut self) -> Verdict {
        self.pass(400)?;
        let mut left_ms = 3_000 + self.rng.below(5_000);
        while left_ms > 0 {
            let slice_ms = self.rng.below(60).min(left_ms - 1) + 1;
            left_ms -= slice_ms;
            self.something_happens()?;
            self.pass(slice_ms)?;
        }
        Ok(())
    }

    /// Lets time pass, and checks what happened against the models.
    fn pass(&mut self, ms: u64) -> Verdict {
        let from = self.sim.now();
        self.sim.run_for(ms);
        self.objection.borrow().clone()?;
        let slice = Slice { from, to: self.sim.now() };
        self.code = self.code.or_else(|| self.sim.room(self.clients[0].peer).info().code);
        if let Some(details) = self.code.and_then(|code| self.sim.hub().room_details(code)) {
            let host = details.members.iter().find(|member| member.is_host);
            host.into_iter().for_each(|host| self.roster.hosts(host.id));
        }
        for event in self.sim.take_hub_events() {
            self.roster.happened(&event, slice)?;
        }
        for Client { peer, .. } in &self.clients {
            let events = self.sim.take_events(*peer);
            events.iter().try_for_each(|event| self.roster.told(*peer, event))?;
        }
        self.compare_scopes()?;
        self.come_back(slice.to)
    }

    /// Notes what hosts published at last, and compares what members saw since.
    fn compare_scopes(&mut self) -> Verdict {
        for Client { peer, .. } in &self.clients {
            let room = self.sim.room(*peer);
            if room.is_host() && room.is_connected() && !self.sim.is_crashed(*peer) {
                let noted = self.sim.act_quietly(*peer, |room, now| self.game.note(*peer, room, now));
                noted.map_err(|error| refused(*peer, "look at its world", &error))?;
            }
        }
        self.game.scopes.borrow_mut().compare(self.migrates)
    }

    /// Lets everything heal, and checks the result.
    fn settle(&mut self) -> Verdict {
        self.game.is_busy.set(false);
        if self.are_paths_silent {
            self.sim.silence_paths(false);
        }
        for index in 0..self.clients.len() {
            self.recover(index);
        }
        let wait = PRESENCE + self.grace;
        let end_ms = u64::try_from(wait.as_millis()).expect("it is some seconds") + HEAL_MS;
        for _ in 0..end_ms.div_ceil(100) {
            self.pass(100)?;
        }
        self.all_know_where_they_are()?;
        if let Some((host, me)) = self.host() {
            self.game.scopes.borrow_mut().compare(false)?;
            for (member, who) in self.roster.members().collect::<Vec<_>>() {
                self.settled += 1;
                if who != host {
                    self.sees_its_scope(host, who, member)?;
                    self.acts_on_its_own(host, who, member)?;
                }
            }
            ensure(self.roster.member(host) == Some(me), || format!("{host} hosts as {me}"))?;
        }
        self.logs_run_again()
    }

    /// The host and its id.
    fn host(&self) -> Option<(PeerId, MemberId)> {
        let details = self.code.and_then(|code| self.sim.hub().room_details(code))?;
        let id = details.members.iter().find(|member| member.is_host)?.id;
        self.roster.members().find(|(member, _)| *member == id).map(|(member, who)| (who, member))
    }

    /// Each living game is in the room under its id and sees the others with their data, or knows that it is out.
    fn all_know_where_they_are(&self) -> Verdict {
        let members: Vec<MemberId> = self.roster.members().map(|(member, _)| member).collect();
        let host = self.host();
        for Client { peer, .. } in &self.clients {
            let room = self.sim.room(*peer);
            let seat = self.roster.member(*peer);
            if self.sim.is_crashed(*peer) {
                ensure(seat.is_none(), || format!("{peer} died and has a seat as {seat:?}"))?;
                continue;
            }
            let Some(me) = seat else {
                ensure(self.roster.knows_the_end(*peer), || format!("{peer} is out and was never told"))?;
                continue;
            };
            let players: Vec<MemberId> = room.players().iter().map(|player| player.id).collect();
            ensure(room.is_connected() && room.local_id() == Some(me) && players == members, || {
                format!("{peer} is {me} among {members:?} and sees {:?} among {players:?}", room.local_id())
            })?;
            let Some((host, _)) = host else { return Err(Divergence::new("there is no host".to_owned())) };
            let data = |of: PeerId| {
                let players = self.sim.room(of).players();
                let data = |key, value: &parlor_sync::value::Value| (String::from(key), value.clone());
                let all =
                    players.iter().map(|it| it.all_data().map(|(key, value)| data(key, value)).collect());
                all.collect::<Vec<Vec<_>>>()
            };
            room.players().iter().try_for_each(|player| self.roster.keeps_its_data(player))?;
            ensure(data(*peer) == data(host), || format!("{peer} sees other player data than {host}"))?;
        }
        Ok(())
    }

    /// A member sees what its scope admits and what is its own, and knows that it is all.
    fn sees_its_scope(&mut self, host: PeerId, who: PeerId, me: MemberId) -> Verdict {
        let game = Rc::clone(&self.game);
        let meant = self.sim.act(host, |room, now| {
            let world = look(room, now)?;
            let access = room.world(now)?;
            let is_meant =
                |seen: &crate::model::scopes::Seen| seen.1 == Some(me) || game.admits(&access, me, seen.0);
            Ok::<_, parlor_client_core::RoomError>(world.into_iter().filter(is_meant).collect::<Vec<_>>())
        });
        let meant = meant.map_err(|error| refused(host, "look at its world", &error))?;
        let seen = self.sim.act(who, look).map_err(|error| refused(who, "look at its world", &error))?;
        let settled = self.sim.room(who).state_hash().map(|(sequence, _)| sequence);
        ensure(seen == meant && settled.is_some(), || {
            format!("{who}, who is {me}, sees {seen:?} at {settled:?} in the end, not {meant:?}")
        })
    }

    /// What was a member's own is its own again: it may act on it, and the host is asked.
    fn acts_on_its_own(&mut self, host: PeerId, who: PeerId, me: MemberId) -> Verdict {
        let seen = self.sim.act(who, look).map_err(|error| refused(who, "look at its world", &error))?;
        let own: Vec<_> = seen.into_iter().filter(|(_, owner, _)| *owner == Some(me)).collect();
        for (entity, ..) in &own {
            let acted = self.sim.act(who, |room, _| room.act(*entity, "wave", &0));
            acted.map_err(|error| refused(who, "act on its own", &error))?;
        }
        self.sim.take_events(host);
        self.sim.run_for(700);
        let is_it = |event: &Event, wanted| matches!(event, Event::Action { from, entity, .. } if (*from, *entity) == (me, wanted));
        let asked = self.sim.take_events(host);
        let missed = own.iter().find(|(wanted, ..)| !asked.iter().any(|event| is_it(event, *wanted)));
        ensure(missed.is_none() && !own.is_empty(), || {
            format!("{who}, who is {me}, has {own:?}, and {host} was not asked for {missed:?}")
        })
    }

    /// The room's log gives the same members again.
    fn logs_run_again(&self) -> Verdict {
        for file in self.sim.log_files() {
            let wrong = |error: &dyn std::error::Error| Divergence::new(format!("the room's log: {error}"));
            let mut replay = log::replay(file.durable().into()).map_err(|error| wrong(&error))?;
            for step in replay.by_ref() {
                step.map_err(|error| wrong(&error))?;
            }
            let logged: Vec<MemberId> = replay.room().member_ids().collect();
            let members: Vec<MemberId> = self.roster.members().map(|(member, _)| member).collect();
            ensure(logged == members, || format!("the log ends with {logged:?}, not {members:?}"))?;
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        let scopes = self.game.scopes.borrow();
        Counts {
            rooms: 1,
            returned: self.roster.returned,
            returns_refused: self.roster.refused,
            migrations: scopes.migrations(),
            in_scope: scopes.seen,
            scopes: scopes.compared,
            settled: self.settled,
            logs: 1,
            ..Counts::default()
        }
    }

    /// Lets those come back whose time it is.
    fn come_back(&mut self, now: Instant) -> Verdict {
        for index in 0..self.clients.len() {
            if self.clients[index].back_at.is_some_and(|at| at <= now) {
                self.comes_back(index);
            }
        }
        Ok(())
    }
}
