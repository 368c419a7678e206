//! The random actions of a storm.

use super::play::publish;
use super::report::{is_usual, refused};
use super::ships::with_ships;
use super::{MEMBERS_MAX, Opened, ROOMS_MAX, World};
use crate::link::Link;
use crate::model::messages::{KIND, LETTER_BYTES_MIN, content};
use crate::model::{Channel, SentMessage, Trouble, Verdict};
use crate::peer::PeerId;
use crate::sim::APP;
use parlor_client_core::{Options, PathMode, RoomCore, Wish};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{ChannelId, Instant, Lane, MemberId, RoomCode, TickRate, limits};
use parlor_sync::value::Value;
use std::num::NonZeroU64;
use std::time::Duration;

/// A client of the world, and its present trouble.
pub(super) struct Client {
    pub(super) peer: PeerId,
    pub(super) is_silent: bool,
    pub(super) is_stalled: bool,
    pub(super) is_blocked: bool,
    /// Whether it was silent for a while once.
    pub(super) has_been_silent: bool,
}

/// Size of the largest messages, and the minimum interval between them.
const LARGE_LETTER_BYTES: usize = 60_000;
const LARGE_LETTER_INTERVAL: Duration = Duration::from_secs(1);

const LANES: [Lane; 4] =
    [Lane::ReliableOrdered, Lane::ReliableUnordered, Lane::Unreliable, Lane::UnreliableSequenced];
/// The game's own channels: their numbers begin here, in the order of the lanes.
const RAW_FIRST: u8 = limits::APP_CHANNEL_FIRST;

impl World {
    /// Performs one random action.
    pub(super) fn something_happens(&mut self) -> Verdict {
        match self.rng.below(1_000) {
            0..20 => self.open_room(),
            20..220 => self.ask_in(),
            220..720 => self.talk(),
            720..770 => self.set_data(),
            770..795 => self.kick(),
            795..805 => self.leave(),
            805..812 => self.crash(),
            812..818 => self.cut(),
            818..848 => self.toggle_silence(),
            848..878 => self.toggle_stall(),
            878..908 => self.toggle_block(),
            908..948 => self.relink(),
            948..950 => self.shut_down(),
            950..954 => self.crash_hub(),
            954..974 => self.spoil_paths(),
            _ => Ok(()),
        }
    }

    fn options(&mut self, options: Options) -> Options {
        let name = self.rng.pick(&["ada", "grace", "edsger", "barbara", ""]);
        // Members' decoded states are compared with the host's writes, so the host's own hashes are not
        // needed.
        let hash_every = NonZeroU64::new(1).filter(|_| matches!(options.intent, Wish::Join { .. }));
        let wanted = [
            PathMode::Auto,
            PathMode::Auto,
            PathMode::Mesh,
            PathMode::Mesh,
            PathMode::Local,
            PathMode::Relay,
        ];
        let paths = self.paths.as_mut().map_or(PathMode::Relay, |rng| rng.pick(&wanted));
        let mut options = Options { name: name.to_owned(), hash_every, paths, ..options };
        for (number, lane) in (RAW_FIRST..).zip(LANES) {
            options.channel(number, lane).expect("the number is the game's own and free");
        }
        if self.has_ships { with_ships(options) } else { options }
    }

    fn enter(&mut self, mut options: Options) -> PeerId {
        let link = Link::worse(&mut self.rng);
        if options.name.is_empty() {
            options.name = format!("nobody {}", self.clients.len());
        }
        let peer = self.sim.enter(options.clone(), link);
        self.model.borrow_mut().entered(peer, &options);
        self.let_play(peer);
        self.clients.push(Client {
            peer,
            is_silent: false,
            is_stalled: false,
            is_blocked: false,
            has_been_silent: false,
        });
        peer
    }

    pub(super) fn open_room(&mut self) -> Verdict {
        if self.rooms.len() >= ROOMS_MAX {
            return Ok(());
        }
        let code: Option<RoomCode> = self.rng.per_mille(300).then(|| "MYROOM".parse().expect("it is a code"));
        let secret = self.rng.per_mille(200).then(|| "sesame".to_owned());
        // Often the room has seats for all that ask.
        let max = if self.rng.per_mille(700) { self.members_max + 1 } else { 2 + self.rng.below(3) };
        let wish = Wish::Host {
            code,
            max_players: u16::try_from(max.min(MEMBERS_MAX)).expect("a room is small"),
            tick_rate: TickRate::new(self.rng.pick(&[10, 20, 30, 60])).expect("that many are allowed"),
            dedicated: false,
        };
        let options = Options { intent: wish, secret: secret.clone(), ..Options::host(APP) };
        let options = self.options(options);
        let host = self.enter(options);
        self.rooms.push(Opened { host, code: None, secret, asked: 0 });
        Ok(())
    }

    /// A client asks to enter, mostly with the right code and secret.
    fn ask_in(&mut self) -> Verdict {
        let members_max = self.members_max;
        let index = self.rng.index(self.rooms.len());
        let opened = &mut self.rooms[index];
        if opened.code.is_none() {
            opened.code = self.sim.room(opened.host).info().code;
        }
        let Some(code) = opened.code.filter(|_| opened.asked < members_max) else { return Ok(()) };
        opened.asked += 1;
        let secret = opened.secret.clone();
        let (code, secret) = match self.rng.below(20) {
            0 => ("NQSXCH".parse().expect("it is a code"), secret),
            1 => (code, Some("simsalabim".to_owned())),
            _ => (code, secret),
        };
        let spectate = self.rng.per_mille(100);
        let options = self.options(Options { secret, spectate, ..Options::join(APP, code) });
        self.enter(options);
        Ok(())
    }

    /// A random client whose game is in its room, according to itself.
    fn anybody(&mut self) -> Option<usize> {
        let index = self.rng.index(self.clients.len());
        let peer = self.clients[index].peer;
        let is_in = self.sim.room(peer).is_connected() && self.model.borrow().has_seat(peer);
        (is_in && !self.sim.is_crashed(peer)).then_some(index)
    }

    /// Lets a game act between two frames, and reports the action to the model.
    fn act(
        &mut self,
        peer: PeerId,
        act: impl FnOnce(&mut RoomCore, &mut crate::model::Model, Instant) -> Verdict,
    ) -> Verdict {
        let model = self.model.clone();
        self.sim.act(peer, |room, now| {
            let model = &mut *model.borrow_mut();
            publish(model, peer, room)?;
            act(room, model, now)
        })
    }

    fn to(&mut self) -> Recipient {
        let mut member = || MemberId(u32::try_from(self.rng.below(5)).expect("it is small"));
        let (one, other) = (member(), member());
        self.rng.pick(&[
            Recipient::Others,
            Recipient::Others,
            Recipient::Everyone,
            Recipient::Authority,
            Recipient::Member(one),
            Recipient::Members(vec![one, other]),
        ])
    }

    /// A client sends a few messages.
    fn talk(&mut self) -> Verdict {
        let Some(index) = self.anybody() else { return Ok(()) };
        let peer = self.clients[index].peer;
        for _ in 0..self.rng.pick(&[1, 1, 3, 10]) {
            let lane = self.rng.index(LANES.len());
            let number = RAW_FIRST + u8::try_from(lane).expect("there are four lanes");
            let raw = Channel::Raw(ChannelId(number), LANES[lane]);
            let channel = self.rng.pick(&[Channel::Typed(LANES[lane]), raw]);
            let most = self.message_bytes_max();
            let bytes = LETTER_BYTES_MIN + self.rng.index(most);
            // A stamped message takes all later ones with it to the hub.
            let stamps = if self.paths.is_some() { 20 } else { 200 };
            let message = SentMessage { channel, to: self.to(), stamp: self.rng.per_mille(stamps), bytes };
            self.act(peer, |room, model, now| {
                let content = content(model.next_serial(), message.bytes);
                let known = room.players().iter().chain(room.spectators());
                let known: Vec<MemberId> = known.map(|player| player.id).collect();
                let (to, stamp) = (message.to.clone(), message.stamp);
                let sent = match message.channel {
                    Channel::Typed(lane) => room.send(lane, to, KIND, &Value::Bytes(content), stamp, now),
                    Channel::Raw(id, _) => room.send_raw(id, to, content, stamp, now),
                };
                match sent {
                    Ok(()) => model.sends(peer, message, known),
                    Err(error) if is_usual(room, &error) => Ok(()),
                    Err(error) => Err(refused(peer, "send", &error)),
                }
            })?;
        }
        Ok(())
    }

    /// Mostly small; sometimes near the maximum, but rarely enough that the room forwards them.
    fn message_bytes_max(&mut self) -> usize {
        let is_large = self.rng.per_mille(30) && self.large_message_at <= self.sim.now();
        if is_large {
            self.large_message_at = self.sim.now() + LARGE_LETTER_INTERVAL;
            return LARGE_LETTER_BYTES;
        }
        self.rng.pick(&[20, 20, 200, 3_000])
    }

    fn set_data(&mut self) -> Verdict {
        let Some(index) = self.anybody() else { return Ok(()) };
        let peer = self.clients[index].peer;
        let (key, is_gone) = (self.rng.pick(&["color", "team"]), self.rng.per_mille(200));
        let whom = MemberId(u32::try_from(self.rng.below(4)).expect("it is small"));
        self.act(peer, |room, model, _| {
            let whom = if room.is_host() { whom } else { room.local_id().unwrap_or(whom) };
            let value = model.next_data(peer);
            match room.set_player_data(whom, key, Some(&value).filter(|_| !is_gone)) {
                Ok(()) if is_gone => Ok(()),
                Ok(()) => model.sets_data(peer, whom, key),
                Err(error) if is_usual(room, &error) => Ok(()),
                Err(error) => Err(refused(peer, "set player data", &error)),
            }
        })
    }

    fn kick(&mut self) -> Verdict {
        let index = self.rng.index(self.rooms.len());
        let host = self.rooms[index].host;
        let whom = MemberId(1 + u32::try_from(self.rng.below(4)).expect("it is small"));
        if !self.sim.room(host).is_connected() || self.sim.is_crashed(host) {
            return Ok(());
        }
        let reason = self.rng.pick(&["", "team killing"]);
        self.act(host, |room, model, _| match room.kick(whom, reason) {
            Ok(()) => model.kicks(host, whom, reason),
            Err(error) if is_usual(room, &error) => Ok(()),
            Err(error) => Err(refused(host, "kick", &error)),
        })
    }

    fn leave(&mut self) -> Verdict {
        let index = self.rng.index(self.clients.len());
        let peer = self.clients[index].peer;
        if self.sim.is_crashed(peer) {
            return Ok(());
        }
        self.model.borrow_mut().leaves(peer)?;
        self.sim.act(peer, |room, now| room.leave(now));
        Ok(())
    }

    fn crash(&mut self) -> Verdict {
        let index = self.rng.index(self.clients.len());
        let peer = self.clients[index].peer;
        self.model.borrow_mut().befalls(peer, Trouble::Network)?;
        self.sim.crash(peer);
        Ok(())
    }

    fn cut(&mut self) -> Verdict {
        let Some(index) = self.anybody().filter(|index| !self.clients[*index].is_silent) else {
            return Ok(());
        };
        let peer = self.clients[index].peer;
        self.model.borrow_mut().befalls(peer, Trouble::Network)?;
        self.sim.cut(peer);
        Ok(())
    }

    fn toggle_silence(&mut self) -> Verdict {
        let Some(index) = self.anybody() else { return Ok(()) };
        let client = &mut self.clients[index];
        (client.is_silent, client.has_been_silent) = (!client.is_silent, true);
        let (peer, is_silent) = (client.peer, client.is_silent);
        self.model.borrow_mut().befalls(peer, Trouble::Network)?;
        self.sim.silence(peer, is_silent);
        Ok(())
    }

    fn toggle_stall(&mut self) -> Verdict {
        let Some(index) = self.anybody() else { return Ok(()) };
        let client = &mut self.clients[index];
        client.is_stalled = !client.is_stalled;
        let (peer, is_stalled) = (client.peer, client.is_stalled);
        self.model.borrow_mut().befalls(peer, Trouble::Slow)?;
        self.sim.stall(peer, is_stalled);
        Ok(())
    }

    fn toggle_block(&mut self) -> Verdict {
        let Some(index) = self.anybody() else { return Ok(()) };
        let client = &mut self.clients[index];
        client.is_blocked = !client.is_blocked;
        let (peer, is_blocked) = (client.peer, client.is_blocked);
        self.model.borrow_mut().befalls(peer, Trouble::Slow)?;
        self.sim.block(peer, is_blocked);
        Ok(())
    }

    /// A client moves to another network.
    fn relink(&mut self) -> Verdict {
        let index = self.rng.index(self.clients.len());
        let peer = self.clients[index].peer;
        let kind = self.sim.link(peer).kind;
        let link = Link::worse(&mut self.rng).as_kind(kind);
        self.sim.relink(peer, link);
        Ok(())
    }

    /// Breaks, silences or restores all paths between clients.
    fn spoil_paths(&mut self) -> Verdict {
        let Some(rng) = &mut self.paths else { return Ok(()) };
        if rng.per_mille(300) {
            self.sim.break_paths();
        } else {
            self.are_paths_silent = !self.are_paths_silent;
            self.sim.silence_paths(self.are_paths_silent);
        }
        Ok(())
    }

    fn shut_down(&mut self) -> Verdict {
        if !self.grace.is_zero() {
            // Lost clients would be given up after the world's end.
            return Ok(());
        }
        if !self.is_down {
            self.is_down = true;
            self.hold_against()?;
            self.model.borrow_mut().shuts_down();
            self.sim.shut_down();
        }
        Ok(())
    }

    fn crash_hub(&mut self) -> Verdict {
        if !self.grace.is_zero() {
            // Returning clients would find another hub, and be in no room that the model knows.
            return Ok(());
        }
        self.hold_against()?;
        self.is_down = false;
        self.model.borrow_mut().hub_dies();
        self.clients.iter_mut().for_each(|client| client.has_been_silent = true);
        self.sim.crash_hub();
        Ok(())
    }
}
