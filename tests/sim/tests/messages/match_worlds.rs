//! Whole worlds of matches, checked against a simple model: random games that open, join, leave, send data
//! and lose their connections, on virtual time.

use parlor_client_core::{ClosedReason, Event, Options, Player, RoomError, Wish};
use parlor_hub::Config;
use parlor_hub::room::KeptEntry;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::wire::handshake::Refusal;
use parlor_proto::{ApiMisuse, Lane, MemberId, RoomCode};
use parlor_sim::{APP, Link, PeerId, Rng, SEEDS, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Op of data for all others: the match, the sender's number in the world, and its count.
const COUNTED: i64 = -7;
/// Op of data that may be lost, or has one recipient.
const OTHER: i64 = 1 << 50;

fn a_match(name: &str) -> Options {
    let options = Options::create_match(APP);
    let Wish::Match { tick_rate, label, .. } = options.intent.clone() else { panic!("{options:?}") };
    let intent = Wish::Match { max_players: 32, tick_rate, label, keep: true };
    Options { name: name.into(), intent, ..options }
}

fn bytes(match_number: usize, peer: PeerId, count: u64) -> Vec<u8> {
    format!("{match_number} {peer} {count}").into_bytes()
}

/// Received data: sender, op, order and text.
fn data(events: &[Event]) -> Vec<(MemberId, i64, Option<u64>, String)> {
    let came = events.iter().filter_map(|event| match event {
        Event::Data { from, op, order, data } => {
            Some((*from, *op, *order, String::from_utf8(data.to_vec()).expect("it was text")))
        }
        _ => None,
    });
    came.collect()
}

/// A match as the model knows it.
struct Game {
    id: RoomCode,
    here: BTreeSet<PeerId>,
    all: Vec<PeerId>,
    /// Number of messages that each has sent to all others.
    sent: BTreeMap<PeerId, u64>,
}

struct World {
    sim: Sim,
    rng: Rng,
    games: Vec<Game>,
    ended: Vec<RoomCode>,
    gone: BTreeSet<PeerId>,
    names: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Config { keeps: true, grace: Duration::from_secs(60), ..Config::new(drawn) };
        World {
            sim: Sim::with_hub(seed, config),
            rng: Rng::new(seed ^ 0x6d61_7463),
            games: Vec::new(),
            ended: Vec::new(),
            gone: BTreeSet::new(),
            names: 0,
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("player {}", self.names)
    }

    fn create(&mut self) {
        let name = self.name();
        let peer = self.sim.host(a_match(&name), Link::any(&mut self.rng));
        let id = self.sim.code(peer);
        assert!(self.games.iter().all(|game| game.id != id) && !self.ended.contains(&id));
        self.games.push(Game { id, here: BTreeSet::from([peer]), all: vec![peer], sent: BTreeMap::new() });
    }

    fn join(&mut self, at: usize) {
        let (id, name) = (self.games[at].id, self.name());
        let options = Options { name, ..Options::join(APP, id) };
        let peer = self.sim.enter(options, Link::any(&mut self.rng));
        self.sim.run_until(20_000, "it is in", |sim| !sim.events(peer).is_empty());
        assert!(matches!(self.sim.events(peer)[0], Event::Open { code } if code == id));
        self.games[at].here.insert(peer);
        self.games[at].all.push(peer);
    }

    fn leave(&mut self, at: usize, peer: PeerId) {
        self.sim.act(peer, |room, now| room.leave(now));
        self.games[at].here.remove(&peer);
        self.gone.insert(peer);
    }

    /// A game sends something, if it is still in its room and its queue is not full.
    fn send(&mut self, at: usize, peer: PeerId) {
        let count = self.games[at].sent.get(&peer).copied().unwrap_or_default();
        let others: Vec<MemberId> = self.sim.room(peer).players().iter().map(|player| player.id).collect();
        let one = self.rng.pick(&others);
        let (op, to, reliably) = match self.rng.below(4) {
            0 | 1 => (COUNTED, Recipient::Others, true),
            2 => (OTHER, Recipient::Member(one), true),
            _ => (OTHER, Recipient::Everyone, false),
        };
        let text = bytes(at, peer, count);
        let sent = self.sim.act(peer, |room, now| room.send_data(op, to, text.into(), reliably, now));
        if op == COUNTED {
            sent.expect("it is not much");
            self.games[at].sent.insert(peer, count + 1);
        }
    }

    fn step(&mut self) {
        let at = usize::try_from(self.rng.below(self.games.len() as u64)).expect("they are few");
        let here: Vec<PeerId> = self.games[at].here.iter().copied().collect();
        let peer = self.rng.pick(&here);
        match self.rng.below(30) {
            0 if self.games.len() < 3 => self.create(),
            1 | 2 if here.len() < 6 => self.join(at),
            3 if here.len() > 1 => self.leave(at, peer),
            4 => self.sim.cut(peer),
            5 => {
                self.sim.silence(peer, true);
                let ms = self.rng.below(3_000);
                self.sim.run_for(ms);
                self.sim.silence(peer, false);
            }
            6..=9 => {
                let ms = self.rng.below(400);
                self.sim.run_for(ms);
            }
            _ => self.send(at, peer),
        }
    }

    /// Checks that all remaining members have all of their data in the common order.
    fn check(&self, at: usize) {
        let game = &self.games[at];
        let ids: BTreeMap<PeerId, MemberId> = game
            .all
            .iter()
            .map(|peer| (*peer, self.sim.room(*peer).local_id().expect("it was in")))
            .collect();
        let mut by_order: BTreeMap<u64, (MemberId, String)> = BTreeMap::new();
        for peer in &game.all {
            let came = data(self.sim.events(*peer));
            let mut newest = None;
            let mut counts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
            for (from, op, order, text) in came {
                let words: Vec<&str> = text.splitn(2, ' ').collect();
                assert_eq!(words[0], at.to_string(), "{peer} hears of its own match alone");
                let (who, count) = words[1].rsplit_once(' ').expect("a count is last");
                if let Some(order) = order {
                    assert!(newest.is_none_or(|newest| newest < order), "{peer}: {order} after {newest:?}");
                    newest = Some(order);
                    let said = by_order.entry(order).or_insert_with(|| (from, text.clone()));
                    assert_eq!(*said, (from, text.clone()), "{order} is the same for all");
                }
                if op == COUNTED {
                    counts.entry(who.to_owned()).or_default().push(count.parse().expect("a number"));
                }
            }
            for (sender, sent) in &game.sent {
                let got = counts.remove(&sender.to_string()).unwrap_or_default();
                assert!(got.is_sorted_by(|a, b| a + 1 == *b), "{peer} of {sender}: {got:?}");
                let stayed = game.here.contains(peer) && game.here.contains(sender) && peer != sender;
                let was_first = ids[peer] < ids[sender];
                if stayed && was_first {
                    assert!(got.len() as u64 == *sent, "{peer} has {got:?} of {sent} of {sender}");
                }
                if peer == sender {
                    assert!(got.is_empty(), "what is for others came back");
                }
            }
        }
        self.check_presences(game);
        self.check_kept(game, &ids, &by_order);
    }

    fn check_presences(&self, game: &Game) {
        let names = |players: &[Player]| -> BTreeSet<String> {
            players.iter().map(|player| player.name.clone()).collect()
        };
        let expected: BTreeSet<String> = game
            .here
            .iter()
            .map(|peer| {
                let me = self.sim.room(*peer).local_id().expect("it is in");
                self.sim.room(*peer).player(me).expect("it knows itself").name.clone()
            })
            .collect();
        for peer in &game.here {
            let players = self.sim.room(*peer).players();
            assert_eq!(names(players), expected, "{peer} knows who is there");
            assert_eq!(players.len(), expected.len());
            assert!(players.iter().all(|player| player.connected && !player.is_host));
        }
    }

    /// Checks that the log has the same data at the same positions, and for each player what it received.
    fn check_kept(
        &self,
        game: &Game,
        ids: &BTreeMap<PeerId, MemberId>,
        by_order: &BTreeMap<u64, (MemberId, String)>,
    ) {
        let kept: Vec<_> = self.sim.kept().iter().filter(|(id, ..)| *id == game.id).collect();
        assert!(kept.iter().map(|(_, number, _)| *number).eq(0..kept.len() as u64));
        for peer in &game.all {
            let told = data(self.sim.events(*peer)).into_iter();
            let told: Vec<u64> = told.filter_map(|(_, _, order, _)| order).collect();
            let logged = kept.iter().filter_map(|(_, _, entry)| match entry {
                KeptEntry::Data { order, from, to, payload, .. } if to.contains(&ids[peer]) => {
                    let said = (*from, String::from_utf8(payload.to_vec()).expect("it was text"));
                    assert!(by_order.get(order).is_none_or(|told| *told == said));
                    Some(*order)
                }
                _ => None,
            });
            let logged: Vec<u64> = logged.collect();
            // A player that left may have missed the end.
            let is_same = if game.here.contains(peer) { logged == told } else { logged.starts_with(&told) };
            assert!(is_same, "{peer}: told {told:?}, kept {logged:?}");
        }
    }
}

#[test]
fn worlds_of_matches_are_as_the_model_has_them() {
    let mut data_seen = 0;
    for_seeds(SEEDS / 4, |seed| {
        let mut world = World::new(seed);
        world.create();
        for _ in 0..150 {
            world.step();
        }
        // Every connection resumes, and queued data is delivered.
        world.sim.run_for(60_000);
        for at in 0..world.games.len() {
            world.check(at);
        }
        let came = |peer: &PeerId| data(world.sim.events(*peer)).len();
        data_seen += world.games.iter().flat_map(|game| &game.all).map(came).sum::<usize>();
        for at in 0..world.games.len() {
            let here: Vec<PeerId> = world.games[at].here.iter().copied().collect();
            here.into_iter().for_each(|peer| world.leave(at, peer));
        }
        world.sim.run_for(2_000);
        assert_eq!(world.sim.hub().room_count(), 0);
        for id in world.games.iter().map(|game| game.id) {
            let late = world.sim.join(id, Link::quic());
            let refused = ClosedReason::Refused(Refusal::NoSuchRoom);
            assert_eq!(world.sim.closed(late), Some(refused), "{id} is never valid again");
            let last = world.sim.kept().iter().rfind(|(of, ..)| *of == id).map(|(_, _, entry)| entry.clone());
            assert_eq!(last, Some(KeptEntry::Ended));
        }
    });
    assert!(data_seen > 100, "{data_seen}");
}

#[test]
fn whoever_is_told_that_it_is_open_knows_everybody() {
    for_seeds(SEEDS / 10, |seed| {
        let mut sim = Sim::new(seed);
        let mut rng = Rng::new(seed);
        let host = sim.host(a_large_one(), Link::quic());
        let id = sim.code(host);
        let others: Vec<PeerId> = (0..60).map(|_| sim.enter(named(id, 48), Link::any(&mut rng))).collect();
        sim.run_for(5_000);
        // Large enough to be sent in several packets.
        let about = "x".repeat(600);
        for peer in &others {
            sim.act(*peer, |room, _| {
                let me = room.local_id().expect("it is in");
                room.set_player_data(me, "about", Some(&about.as_str().into())).expect("it is within bounds");
            });
        }
        sim.run_for(5_000);
        let late = sim.enter(named(id, 48), Link::any(&mut rng));
        let count = std::rc::Rc::new(std::cell::Cell::new(0));
        let seen = std::rc::Rc::clone(&count);
        sim.hear(late, move |room, _, event| {
            if matches!(event, Event::Open { .. }) {
                seen.set(room.player_count());
            }
        });
        sim.run_for(5_000);
        assert_eq!(count.get(), others.len() + 2, "all of them, and at once");
        let joined = sim.events(late).iter().filter(|event| matches!(event, Event::PlayerJoined(_)));
        assert_eq!(joined.count(), others.len() + 2);
    });
}

fn a_large_one() -> Options {
    let options = a_match("first");
    let Wish::Match { tick_rate, label, .. } = options.intent else { panic!("it is one") };
    Options { intent: Wish::Match { max_players: 100, tick_rate, label, keep: false }, ..options }
}

fn named(id: RoomCode, len: usize) -> Options {
    Options { name: "n".repeat(len), ..Options::join(APP, id) }
}

#[test]
fn what_wants_a_host_is_refused_in_a_match_and_match_data_elsewhere() {
    let mut sim = Sim::new(1);
    let ada = sim.host(a_large_one(), Link::quic());
    let bob = sim.join(sim.code(ada), Link::quic());
    sim.run_for(200);
    let is_no_host = |result: Result<(), RoomError>| {
        assert!(matches!(result, Err(RoomError::Misuse(ApiMisuse::NoHost { .. }))), "{result:?}");
    };
    for peer in [ada, bob] {
        sim.act(peer, |room, now| {
            is_no_host(room.set("key", &1, Audience::All));
            is_no_host(room.remove("key").map(drop));
            is_no_host(room.send_input(&1));
            is_no_host(room.kick(MemberId(0), "because"));
            is_no_host(room.send(Lane::ReliableOrdered, Recipient::Authority, "x", &1, false, now));
            is_no_host(room.send_data(1, Recipient::Authority, "x".into(), true, now));
            is_no_host(room.set_player_data(
                MemberId(u32::from(room.local_id() == Some(MemberId(0)))),
                "k",
                None,
            ));
            assert_eq!(
                room.send_data(1, Recipient::Member(MemberId(9)), "x".into(), true, now)
                    .unwrap_err()
                    .to_string(),
                "there is no player 9 in this room"
            );
            assert!(room.send_data(1, Recipient::Others, vec![0; 64 * 1024 + 1].into(), true, now).is_err());
            room.send_data(i64::MIN, Recipient::Others, vec![0; 64 * 1024].into(), true, now)
                .expect("it may be so much");
            room.send(Lane::ReliableOrdered, Recipient::Others, "chat", "hello", false, now)
                .expect("messages go too");
            let me = room.local_id().expect("it is in");
            room.set_player_data(me, "team", Some(&"red".into())).expect("its own it may set");
        });
    }
    sim.run_for(3_000);
    for (peer, other) in [(ada, MemberId(1)), (bob, MemberId(0))] {
        let room = sim.room(peer);
        assert_eq!(room.closed(), None, "and nobody was put out for it");
        assert_eq!(room.player(other).unwrap().data::<String>("team").unwrap().as_deref(), Some("red"));
        let large = sim.events(peer).iter().any(|event| {
            matches!(event, Event::Data { from, op: i64::MIN, data, .. } if *from == other && data.len() == 64 * 1024)
        });
        assert!(large && sim.events(peer).iter().any(|event| matches!(event, Event::Message(_))));
    }
    // A room with a host refuses match data; the error names `create_match`.
    let host = sim.host(Options::host(APP), Link::quic());
    sim.act(host, |room, now| {
        let refused = room.send_data(1, Recipient::Everyone, "x".into(), true, now).unwrap_err().to_string();
        assert!(refused.contains("create_match"), "{refused}");
    });
}

#[test]
fn a_hub_that_goes_down_ends_matches_with_its_reason() {
    let mut sim = Sim::new(1);
    let ada = sim.host(a_large_one(), Link::quic());
    let bob = sim.join(sim.code(ada), Link::quic());
    sim.act(ada, |room, now| room.leave(now));
    sim.run_for(500);
    let left = sim.events(bob).iter().find_map(|event| match event {
        Event::PlayerLeft { id, reason, .. } => Some((*id, reason.clone())),
        _ => None,
    });
    assert_eq!(left, Some((MemberId(0), LeaveReason::Left)));
    sim.shut_down();
    sim.run_for(1_000);
    assert_eq!(sim.closed(bob), Some(ClosedReason::Session(parlor_proto::CloseReason::ServerShutdown)));
}
