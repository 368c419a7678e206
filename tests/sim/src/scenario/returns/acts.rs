//! The random actions of a storm among members who return.

use super::super::report::{is_usual, refused};
use super::play::with_tanks;
use super::{PRESENCE, World};
use crate::link::Link;
use crate::model::Verdict;
use crate::peer::PeerId;
use crate::sim::APP;
use parlor_client_core::{Options, PathMode, ReconnectPolicy, Wish};
use parlor_proto::wire::handshake::Resume;
use parlor_proto::{Instant, MemberId, TickRate};
use parlor_sync::value::Value;
use std::time::Duration;

/// A client of the world, and its present trouble.
pub(super) struct Client {
    pub(super) peer: PeerId,
    name: String,
    /// The newest ticket of its dead process.
    ticket: Option<Resume>,
    /// When its network works again, or another process begins.
    pub(super) back_at: Option<Instant>,
    is_stalled: bool,
}

/// Silence of a host after which another member is the host.
const HOST_TIMEOUT: Duration = Duration::from_millis(400);

impl World {
    /// Performs one random action.
    pub(super) fn something_happens(&mut self) -> Verdict {
        match self.rng.below(1_000) {
            0..150 => self.ask_in(),
            150..270 => self.set_data(),
            270..340 => {
                let index = self.rng.index(self.clients.len());
                self.lose(index);
            }
            340..390 => {
                let index = self.rng.index(self.clients.len());
                self.kill(index);
            }
            390..410 => return self.kick(),
            410..420 => self.leave(),
            420..440 => self.toggle_stall(),
            440..480 => self.relink(),
            480..500 => self.spoil_paths(),
            500..600 => self.game.phase.set(self.game.phase.get() + 1),
            600..615 => {
                let host = self.host().map(|(host, _)| host);
                if let Some(index) = self.clients.iter().position(|client| Some(client.peer) == host) {
                    if self.rng.per_mille(500) { self.lose(index) } else { self.kill(index) }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn options(&mut self, name: &str, options: Options) -> Options {
        let reconnect_policy =
            ReconnectPolicy { attempts: 40, delay_max: Duration::from_secs(1), ..options.reconnect_policy };
        let paths = if self.has_paths {
            self.rng.pick(&[PathMode::Auto, PathMode::Mesh, PathMode::Mesh, PathMode::Relay])
        } else {
            PathMode::Relay
        };
        with_tanks(Options { name: name.to_owned(), reconnect_policy, paths, ..options })
    }

    fn enter(&mut self, options: Options) {
        let name = format!("player {}", self.clients.len());
        let link = Link::worse(&mut self.rng);
        let options = self.options(&name, options);
        let peer = self.sim.enter(options, link);
        self.roster.asks(peer, &name);
        // A bad network loses connections on its own.
        self.roster.is_troubled(peer);
        self.let_play(peer);
        self.clients.push(Client { peer, name, ticket: None, back_at: None, is_stalled: false });
    }

    pub(super) fn open(&mut self, max_players: usize) {
        let intent = Wish::Host {
            code: None,
            max_players: u16::try_from(max_players).expect("a room is small"),
            tick_rate: TickRate::new(self.rng.pick(&[20, 30, 60])).expect("that many are allowed"),
            dedicated: false,
        };
        let host_timeout = self.migrates.then_some(HOST_TIMEOUT);
        self.enter(Options { intent, host_timeout, presence: Some(PRESENCE), ..Options::host(APP) });
    }

    fn ask_in(&mut self) {
        if let Some(code) = self.code.filter(|_| self.clients.len() < self.clients_max) {
            self.enter(Options::join(APP, code));
        }
    }

    /// How long a loss lasts: less than the grace, longer, or longer than the room may remember.
    fn loss(&mut self) -> Duration {
        let beyond = PRESENCE + self.grace + Duration::from_millis(300);
        let short = Duration::from_millis(100 + self.rng.below(500));
        let long = beyond + Duration::from_millis(self.rng.below(1_500));
        let longest = beyond + self.remember.min(Duration::from_secs(3)) + Duration::from_millis(500);
        self.rng.pick(&[short, long, long, longest])
    }

    /// A client reaches nobody for a while. Its process goes on.
    fn lose(&mut self, index: usize) {
        let peer = self.clients[index].peer;
        if self.clients[index].back_at.is_some() || self.sim.is_crashed(peer) {
            return;
        }
        self.clients[index].back_at = Some(self.sim.now() + self.loss());
        self.sim.unplug(peer, true);
        if self.rng.per_mille(500) { self.sim.cut(peer) } else { self.sim.silence(peer, true) }
    }

    /// A client's process dies. Another one begins later, unless this was its end.
    fn kill(&mut self, index: usize) {
        let peer = self.clients[index].peer;
        if self.clients[index].back_at.is_some() || self.sim.is_crashed(peer) {
            return;
        }
        // A process that has not read its welcome has a ticket that is used up.
        self.clients[index].ticket = self.sim.room(peer).resume_proof();
        self.sim.crash(peer);
        if self.rng.per_mille(500) {
            // The operating system closes its connection.
            self.sim.cut(peer);
        }
        if self.rng.per_mille(850) && self.clients[index].ticket.is_some() {
            self.clients[index].back_at = Some(self.sim.now() + self.loss());
        }
    }

    /// Ends a client's absence.
    pub(super) fn comes_back(&mut self, index: usize) {
        let Client { peer, name, ticket, back_at, .. } = &mut self.clients[index];
        let (peer, name, ticket) = (*peer, name.clone(), *ticket);
        *back_at = None;
        self.sim.unplug(peer, false);
        if !self.sim.is_crashed(peer) {
            return self.sim.silence(peer, false);
        }
        let Some(Resume { session, token }) = ticket else { return };
        let options = Options { intent: Wish::Resume { session, token }, ..Options::host(APP) };
        let options = self.options(&name, options);
        self.roster.asks(peer, &name);
        self.sim.restart(peer, options);
    }

    /// Ends a client's trouble, unless it is dead for good.
    pub(super) fn recover(&mut self, index: usize) {
        let peer = self.clients[index].peer;
        if std::mem::take(&mut self.clients[index].is_stalled) {
            self.sim.stall(peer, false);
        }
        let link = self.sim.link(peer).healed();
        self.sim.relink(peer, link);
        if self.clients[index].back_at.is_some() {
            self.comes_back(index);
        }
    }

    fn set_data(&mut self) {
        let index = self.rng.index(self.clients.len());
        let Client { peer, is_stalled, .. } = self.clients[index];
        if is_stalled {
            return;
        }
        let (key, value) = (self.rng.pick(&["color", "team"]), self.data + 1);
        let set = self.sim.act(peer, |room, _| {
            let me = room.local_id()?;
            room.is_connected().then(|| room.set_player_data(me, key, Some(&Value::Int(value))))
        });
        if let Some(Ok(())) = set {
            self.data = value;
        }
    }

    fn anybody(&mut self) -> PeerId {
        self.clients[self.rng.index(self.clients.len())].peer
    }

    fn kick(&mut self) -> Verdict {
        let Some((host, _)) = self.host() else { return Ok(()) };
        let whom = MemberId(u32::try_from(self.rng.below(5)).expect("it is small"));
        let room = self.sim.room(host);
        if room.local_id() == Some(whom)
            || !room.is_host()
            || !room.is_connected()
            || self.sim.is_crashed(host)
        {
            return Ok(());
        }
        match self.sim.act(host, |room, _| room.kick(whom, "team killing")) {
            Ok(()) => self.roster.kicks(whom),
            Err(error) if is_usual(self.sim.room(host), &error) => {}
            Err(error) => return Err(refused(host, "kick", &error)),
        }
        Ok(())
    }

    fn leave(&mut self) {
        let peer = self.anybody();
        if !self.sim.is_crashed(peer) {
            self.roster.leaves(peer);
            self.sim.act(peer, |room, now| room.leave(now));
        }
    }

    fn toggle_stall(&mut self) {
        let index = self.rng.index(self.clients.len());
        let client = &mut self.clients[index];
        client.is_stalled = !client.is_stalled;
        self.sim.stall(client.peer, client.is_stalled);
    }

    /// A client moves to another network.
    fn relink(&mut self) {
        let peer = self.anybody();
        let kind = self.sim.link(peer).kind;
        let link = Link::worse(&mut self.rng).as_kind(kind);
        self.sim.relink(peer, link);
    }

    fn spoil_paths(&mut self) {
        if self.has_paths && self.rng.per_mille(300) {
            self.sim.break_paths();
        } else if self.has_paths {
            self.are_paths_silent = !self.are_paths_silent;
            self.sim.silence_paths(self.are_paths_silent);
        }
    }
}
