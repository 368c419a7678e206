//! A room whose host may die, and what its members see.

use anyhow::Context;
use parlor::{Audience, Event};
use parlor_client_core::{Options, RoomCore, Wish};
use parlor_hub::Config;
use parlor_proto::{Instant, TickRate};
use parlor_sim::{APP, Link, PeerId, Sim};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// Steps in a second.
pub(super) const HZ: u16 = 30;
/// For how long a host may be silent: what a game has that sets nothing.
pub(super) const SILENCE_MS: u64 = 250;

/// What all members wrote and saw.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Who wrote under each epoch.
    writers: BTreeMap<u32, BTreeSet<usize>>,
    /// The author of each tick's state, as observed.
    authors: BTreeMap<u32, BTreeSet<usize>>,
    /// At each player: when it last saw a state of each host, and when first, on its own clock.
    seen: BTreeMap<(usize, usize), (Instant, Instant)>,
    /// Inputs of each player in the newest observed state.
    used: BTreeMap<u32, u64>,
    newest: Option<u32>,
    inputs_lost: u64,
    longest_pause: Duration,
}

impl Log {
    /// Epochs under which more than one wrote, and ticks of which there are two states.
    pub(super) fn split_brains(&self) -> u64 {
        let doubled = self.writers.values().chain(self.authors.values()).filter(|by| by.len() > 1);
        doubled.count() as u64
    }

    /// Inputs in an observed state of a host that are missing in a later state.
    pub(super) fn inputs_lost(&self) -> u64 {
        self.inputs_lost
    }

    /// How long `player` saw nothing between the states of two hosts.
    pub(super) fn pause(&self, player: usize, old: usize, new: usize) -> Option<Duration> {
        let (_, last) = self.seen.get(&(player, old))?;
        let (first, _) = self.seen.get(&(player, new))?;
        Some(first.saturating_since(*last))
    }

    /// How long a player saw nothing at most between two states of one host.
    pub(super) fn longest_pause(&self) -> Duration {
        self.longest_pause
    }

    /// Notes the state that `player` reads.
    fn note(&mut self, player: usize, room: &RoomCore, now: Instant) {
        let Ok(Some(Written { author, tick, used })) = room.get::<Written>("written") else { return };
        self.authors.entry(tick).or_default().insert(author);
        let seen = self.seen.entry((player, author)).or_insert((now, now));
        self.longest_pause = self.longest_pause.max(now.saturating_since(seen.1));
        seen.1 = now;
        // A late member reads old state: only a tick that no member has seen shows losses.
        if self.newest.is_some_and(|newest| tick <= newest) {
            return;
        }
        self.newest = Some(tick);
        for (member, most) in &self.used {
            self.inputs_lost += most.saturating_sub(used.get(member).copied().unwrap_or(0));
        }
        self.used = used;
    }
}

/// A host's writes of a step, in one value, so that no member sees a part of it.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    author: usize,
    tick: u32,
    /// How many inputs of each player were used.
    used: BTreeMap<u32, u64>,
}

/// A room and its players; the first one opened it.
pub(super) struct Game {
    pub(super) sim: Sim,
    pub(super) peers: Vec<PeerId>,
    pub(super) log: Rc<RefCell<Log>>,
}

impl Game {
    /// A room that has been played in for so long that its links are measured.
    ///
    /// # Errors
    /// If somebody does not get in.
    pub(super) fn gather(players: usize, link: Link, silence_ms: u64, seed: u64) -> anyhow::Result<Game> {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        let mut sim = Sim::with_hub(seed, Config::new(drawn));
        let tick_rate = TickRate::new(HZ).context("there is such a rate")?;
        let max_players = u16::try_from(players).context("a room has few players")?;
        let intent = Wish::Host { code: None, max_players, tick_rate, dedicated: false };
        let host_timeout = Some(Duration::from_millis(silence_ms));
        let host = sim.host(Options { intent, host_timeout, ..Options::host(APP) }, link);
        let mut game = Game { sim, peers: Vec::new(), log: Rc::default() };
        game.seat(host);
        let code = game.sim.code(host);
        for _ in 1..players {
            let peer = game.sim.join(code, link);
            game.seat(peer);
        }
        game.sim.run_for(3_000);
        Ok(game)
    }

    /// Runs a member of the room.
    fn seat(&mut self, peer: PeerId) {
        let player = self.peers.len();
        self.peers.push(peer);
        let own = Rc::clone(&self.log);
        self.sim.play(peer, move |room, now| play(player, room, now, &own));
        let own = Rc::clone(&self.log);
        self.sim.hear(peer, move |room, now, event| {
            if let Event::State(_) = event {
                own.borrow_mut().note(player, room, now);
            }
        });
    }

    /// Who is the host, as it thinks itself.
    pub(super) fn host(&self) -> Option<usize> {
        (0..self.peers.len()).find(|player| self.is_host(*player))
    }

    pub(super) fn is_host(&self, player: usize) -> bool {
        let peer = self.peers[player];
        !self.sim.is_crashed(peer) && self.sim.room(peer).is_connected() && self.sim.room(peer).is_host()
    }

    /// Known changes of the host.
    pub(super) fn migrations(&self) -> u64 {
        let epochs = self.peers.iter().map(|peer| self.sim.room(*peer).info().epoch.0);
        epochs.max().unwrap_or(0).into()
    }
}

/// One step, the same at every host: inputs are counted in the room's state.
fn play(player: usize, room: &mut RoomCore, now: Instant, log: &RefCell<Log>) {
    let Some(tick) = room.tick_number() else { return };
    // It is refused once the room is over, and of no use while the connection takes nothing.
    let _: Result<(), _> = room.send_input(&tick.0);
    if !room.is_host() {
        return;
    }
    let before: Option<Written> = room.get("written").ok().flatten();
    let mut used = before.map(|written| written.used).unwrap_or_default();
    let mut newest: BTreeMap<u32, u32> = room.get("newest").ok().flatten().unwrap_or_default();
    for (member, wanted) in room.inputs::<u32>().unwrap_or_default() {
        if newest.get(&member.0).is_none_or(|before| *before < wanted) {
            newest.insert(member.0, wanted);
            *used.entry(member.0).or_default() += 1;
        }
    }
    let written = Written { author: player, tick: tick.0, used };
    let written = room
        .set("written", &written, Audience::All)
        .and_then(|()| room.set("newest", &newest, Audience::All));
    if written.is_ok() {
        let mut log = log.borrow_mut();
        log.writers.entry(room.info().epoch.0).or_default().insert(player);
        log.seen.entry((player, player)).or_insert((now, now)).1 = now;
    }
}
