//! Threat 13: no data of one room reaches another, whatever its members do.

use crate::world::World;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::control::{PlayerData, ToHub};
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::{ChannelId, ConnectionId, MemberId, RoomCode, channel};
use parlor_sim::{Author, Rng, SEEDS, for_seeds};
use parlor_sync::audience::Audience;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Things that members do for each seed: a million in the long run.
/// A million in the long run, which has 400 seeds of this.
const OPERATIONS: usize = 2_500;
const ROOMS: usize = 4;
const CANARY: &[u8] = b"canary-";
const DIGITS: usize = 6;

/// A mark in everything that is sent in a room.
fn canary(serial: usize) -> String {
    format!("canary-{serial:0DIGITS$}")
}

/// The canaries in a packet.
fn canaries(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    bytes.windows(CANARY.len() + DIGITS).filter(|window| window.starts_with(CANARY)).map(|window| {
        let digits = std::str::from_utf8(&window[CANARY.len()..]).expect("a canary has digits");
        digits.parse().expect("a canary has digits")
    })
}

/// A room, as its members see it.
struct Place {
    serial: usize,
    host: ConnectionId,
    code: RoomCode,
    members: Vec<ConnectionId>,
    author: Author,
}

#[derive(Default)]
struct Seen {
    /// The room of each connection, by its serial number.
    rooms: BTreeMap<ConnectionId, usize>,
    own: usize,
}

struct Stage {
    world: World,
    rng: Rng,
    next: usize,
    seen: Rc<RefCell<Seen>>,
}

impl Stage {
    fn new(seed: u64) -> Self {
        let seen = Rc::new(RefCell::new(Seen::default()));
        let mut world = World::new(seed);
        let watching = Rc::clone(&seen);
        world.watch = Some(Box::new(move |to, packet| {
            let mut seen = watching.borrow_mut();
            for found in canaries(&packet.bytes) {
                assert_eq!(
                    seen.rooms.get(&to),
                    Some(&found),
                    "a packet to {to} has a canary of another room"
                );
                seen.own += 1;
            }
        }));
        Stage { world, rng: Rng::new(seed), next: 0, seen }
    }

    fn open(&mut self) -> Place {
        let serial = self.next;
        self.next += 1;
        let host = self.world.open(&canary(serial));
        self.seen.borrow_mut().rooms.insert(host, serial);
        self.world.settle();
        let code = self.world.peer(host).member.expect("it is open").0;
        Place { serial, host, code, members: vec![host], author: Author::new() }
    }

    fn join(&mut self, place: &mut Place) {
        let guest = self.world.join_as(place.code, &canary(place.serial));
        self.seen.borrow_mut().rooms.insert(guest, place.serial);
        place.members.push(guest);
    }

    fn to(&mut self) -> Recipient {
        let member = self.member();
        self.rng.pick(&[
            Recipient::Authority,
            Recipient::Others,
            Recipient::Everyone,
            Recipient::Member(member),
            Recipient::Members(vec![member]),
        ])
    }

    fn member(&mut self) -> MemberId {
        MemberId(u32::try_from(self.rng.below(8)).expect("it is small"))
    }

    /// A random action of a member; a forbidden one costs its seat.
    fn operate(&mut self, place: &mut Place) {
        let text = canary(place.serial);
        let from = place.members[self.rng.index(place.members.len())];
        let padding = "x".repeat(self.rng.index(40));
        let raw = [self.rng.draw().to_le_bytes().as_slice(), text.as_bytes(), padding.as_bytes()].concat();
        let whom = self.member();
        let message = match self.rng.below(12) {
            0..5 => {
                let lane = ChannelId(u8::try_from(3 + self.rng.below(4)).expect("it is small"));
                let upward = Upward { to: self.to(), stamp: self.rng.per_mille(300), payload: raw.into() };
                Outgoing { key: 3, ..Outgoing::new(lane, upward.encode()) }
            }
            5 => Outgoing { key: whom.0, ..Outgoing::new(channel::INPUT, raw.into()) },
            6 => return self.publish(place, &text),
            7 => {
                let member = self.world.peer(from).member.map_or(whom, |(_, me)| me);
                let data = PlayerData { member, key: text, value: Some(raw.into()) };
                Outgoing::new(channel::CONTROL, ToHub::SetData(data).encode())
            }
            8 if self.rng.per_mille(100) => {
                let kick = ToHub::Kick { member: whom, reason: text };
                Outgoing::new(channel::CONTROL, kick.encode())
            }
            // Malformed messages on these channels.
            9 if self.rng.per_mille(60) => Outgoing::new(channel::STATE, raw.into()),
            10 if self.rng.per_mille(60) => Outgoing::new(channel::CONTROL, raw.into()),
            11 if self.rng.per_mille(60) => return self.world.leave(from),
            11 if self.rng.per_mille(60) => return self.world.cut(from),
            _ => return self.world.pass(Duration::from_millis(self.rng.below(60))),
        };
        let _ = self.world.say(from, message);
    }

    fn publish(&mut self, place: &mut Place, text: &str) {
        let whom = self.member();
        let audience = self.rng.pick(&[Audience::All, Audience::members([whom])]);
        let (key, value) = (format!("{text}/{}", self.rng.below(6)), format!("{text}{}", self.rng.draw()));
        place.author.set(&key, &value.into(), audience);
        for payload in place.author.packets() {
            let _ = self.world.say(place.host, Outgoing::new(channel::STATE, payload));
        }
    }
}

#[test]
fn threat_13_no_canary_of_a_room_is_in_a_packet_to_another() {
    for_seeds(SEEDS, |seed| {
        let mut stage = Stage::new(seed);
        let mut places: Vec<Place> = (0..ROOMS).map(|_| stage.open()).collect();
        for _ in 0..OPERATIONS {
            let at = stage.rng.index(ROOMS);
            let gone = |member: &ConnectionId, world: &World| !world.is_in(*member);
            let left: Vec<ConnectionId> =
                places[at].members.iter().copied().filter(|member| gone(member, &stage.world)).collect();
            for member in left {
                places[at].members.retain(|other| *other != member);
                stage.world.forget(member);
            }
            if !stage.world.is_known_in(places[at].host) {
                places[at].members.iter().for_each(|member| stage.world.cut(*member));
                places[at] = stage.open();
            }
            if places[at].members.len() < 2 || stage.rng.per_mille(30) && places[at].members.len() < 8 {
                stage.join(&mut places[at]);
                stage.world.settle();
            }
            stage.operate(&mut places[at]);
            if stage.rng.per_mille(500) {
                stage.world.settle();
            }
        }
        stage.world.settle();
        let seen = stage.seen.borrow();
        assert!(seen.own > OPERATIONS, "the search finds what is there: {}", seen.own);
    });
}
