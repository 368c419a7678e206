//! A host, its hub and three members over links that lose, repeat and reorder, against a model that remembers every
//! state there was.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use parlor_proto::{Instant, MemberId, Tick};
use parlor_sync::keyed::{
    Audience, Hints, Outcome, Publisher, Replica, Sent, StateSequence, StateStamp, Store, Update, Viewer,
};
use parlor_sync::value::Value;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEYS: u8 = 6;
const MEMBERS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    Set {
        key: u8,
        value: u8,
        audience: u8,
    },
    Remove {
        key: u8,
    },
    Commit {
        acks: bool,
    },
    /// Whoever publishes on this link does so, if there is anything.
    Poll {
        link: usize,
    },
    /// A packet under way arrives, and its sender may learn of it; it may arrive again.
    Arrive {
        link: usize,
        which: usize,
        reported: bool,
        again: bool,
    },
    /// A packet's sender believes it lost. If it only seems so, the packet still arrives one day.
    Lose {
        link: usize,
        which: usize,
        seemingly: bool,
    },
    /// The members' updates are complete and marked for a while.
    Transfer,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let link = 0..=MEMBERS as usize;
    let step = prop_oneof![
        6 => (0..KEYS, 0u8..4, 0u8..16).prop_map(|(key, value, audience)| Step::Set { key, value, audience }),
        2 => (0..KEYS).prop_map(|key| Step::Remove { key }),
        4 => any::<bool>().prop_map(|acks| Step::Commit { acks }),
        6 => link.clone().prop_map(|link| Step::Poll { link }),
        6 => (link.clone(), 0usize..4, any::<bool>(), any::<bool>())
            .prop_map(|(link, which, reported, again)| Step::Arrive { link, which, reported, again }),
        3 => (link, 0usize..4, any::<bool>())
            .prop_map(|(link, which, seemingly)| Step::Lose { link, which, seemingly }),
        1 => Just(Step::Transfer),
    ];
    proptest::collection::vec(step, 1..150)
}

type Snapshot = BTreeMap<String, (Value, Audience)>;

struct Link {
    publisher: Publisher,
    flying: Vec<(Bytes, Sent)>,
}

struct World {
    host: Store,
    hub: Store,
    /// Link 0 leads from the host to the hub, link n from the hub to member n − 1.
    links: Vec<Link>,
    members: Vec<Replica>,
    /// What there was at each sequence.
    past: BTreeMap<StateSequence, Snapshot>,
    now: Snapshot,
    tick: u32,
    /// The tick whose inputs the last commit acknowledged.
    acked: u32,
}

impl World {
    fn new() -> Self {
        let viewers = (0..MEMBERS).map(|id| Viewer::Member(MemberId(id)));
        let links = [Viewer::Everything].into_iter().chain(viewers);
        let mut host = Store::new();
        host.declare("key 1", Hints::none().angle("a").unwrap()).unwrap();
        World {
            host,
            hub: Store::new(),
            links: links.map(|it| Link { publisher: Publisher::new(it), flying: Vec::new() }).collect(),
            members: vec![Replica::new(); MEMBERS as usize],
            past: [(StateSequence::EMPTY, Snapshot::new())].into(),
            now: Snapshot::new(),
            tick: 0,
            acked: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Set { key, value, audience } => self.set(key, value, audience),
            Step::Remove { key } => {
                let key = name(key);
                assert_eq!(self.host.remove(&key), self.now.remove(&key).is_some());
            }
            Step::Commit { acks } => self.commit(acks),
            Step::Poll { link } => self.poll(link),
            Step::Arrive { link, which, reported, again } => self.arrive(link, which, reported, again),
            Step::Lose { link, which, seemingly } => {
                let link = &mut self.links[link];
                if which < link.flying.len() {
                    link.publisher.lost(link.flying[which].1);
                    if !seemingly {
                        link.flying.remove(which);
                    }
                }
            }
            Step::Transfer => self.links[1..].iter_mut().for_each(|link| link.publisher.begin_transfer()),
        }
    }

    fn set(&mut self, key: u8, value: u8, audience: u8) {
        let audience = match audience {
            8.. => Audience::All,
            bits => Audience::members((0..MEMBERS).filter(|id| bits >> id & 1 == 1).map(MemberId)),
        };
        // The value names its key, so that its bytes betray where they must not be.
        let value = Value::from(format!("canary {key} {value}"));
        let set = (value.clone(), audience.clone());
        let changed = self.now.get(&name(key)) != Some(&set);
        assert_eq!(self.host.set(&name(key), &value, audience).unwrap(), changed);
        self.now.insert(name(key), set);
    }

    fn commit(&mut self, acks: bool) {
        self.tick += 1;
        if acks {
            self.acked = self.tick;
        }
        let input_acks = (0..MEMBERS).map(|id| (MemberId(id), Tick(self.acked)));
        let stamp = StateStamp {
            tick: Tick(self.tick),
            server_time: Instant::from_millis(self.tick.into()),
            input_acks: input_acks.collect(),
        };
        if let Some(sequence) = self.host.commit(stamp).unwrap() {
            self.past.insert(sequence, self.now.clone());
        }
        assert_eq!(&self.now, &self.past[&self.host.sequence()]);
    }

    fn poll(&mut self, link: usize) {
        let store = if link == 0 { &self.host } else { &self.hub };
        let Link { publisher, flying } = &mut self.links[link];
        let Some((bytes, sent)) = publisher.poll_update(store) else { return };
        let update = Update::decode(bytes.clone()).unwrap();
        let sequence = update.head.sequence;
        // Nothing outside of the view is in the bytes.
        let viewer = publisher.viewer();
        let seen = visible(&self.past[&sequence], viewer);
        for entry in update.entries {
            assert!(seen.values().any(|value| **value == entry.value));
            assert_eq!(entry.audience.is_some(), viewer == Viewer::Everything);
        }
        for (key, (value, audience)) in &self.past[&sequence] {
            if !audience.admits(viewer) {
                let Value::Text(text) = value else { unreachable!() };
                assert!(!contains(&bytes, text), "{text} leaked");
                assert!(!contains(&bytes, key), "{key} leaked");
            }
        }
        flying.push((bytes, sent));
    }

    fn arrive(&mut self, link: usize, which: usize, reported: bool, again: bool) {
        if which >= self.links[link].flying.len() {
            return;
        }
        let (bytes, sent) = self.links[link].flying[which].clone();
        if !again {
            self.links[link].flying.remove(which);
        }
        if link == 0 {
            let outcome = self.hub.adopt(&Update::decode(bytes).unwrap()).unwrap();
            assert!(!matches!(outcome, Outcome::Gap { .. }));
        } else {
            let outcome = self.members[link - 1].apply(bytes).unwrap();
            assert!(!matches!(outcome, Outcome::Gap { .. }));
        }
        if reported {
            self.links[link].publisher.delivered(sent);
        }
        self.check();
    }

    /// Whoever is at a sequence holds what there was then, as far as it sees it.
    fn check(&self) {
        let past = &self.past[&self.hub.sequence()];
        let hub: BTreeMap<_, _> =
            self.hub.iter().map(|it| (it.key.to_owned(), it.audience.clone())).collect();
        assert_eq!(hub, past.iter().map(|(key, (_, audience))| (key.clone(), audience.clone())).collect());
        for (id, member) in (0..MEMBERS).zip(&self.members) {
            let past = visible(&self.past[&member.sequence()], Viewer::Member(MemberId(id)));
            let held: BTreeMap<&str, &Value> = member.iter().map(|(key, value)| (&**key, &**value)).collect();
            assert_eq!(held, past, "member {id} at {}", member.sequence());
            assert!(member.hints("key 1").is_none_or(|hints| hints.iter().len() == 1));
        }
    }

    /// Everything that is under way arrives, and what is due is sent, until nothing is.
    fn settle(&mut self) {
        self.commit(false);
        for link in 0..self.links.len() {
            for _ in 0..4 {
                self.poll(link);
                // What was reported lost is still in the air; the newest comes first.
                while !self.links[link].flying.is_empty() {
                    self.arrive(link, self.links[link].flying.len() - 1, true, false);
                }
            }
            self.poll(link);
            assert!(self.links[link].flying.is_empty(), "link {link} does not come to rest");
        }
        assert_eq!(self.hub.hash(Viewer::Everything), self.host.hash(Viewer::Everything));
        for (id, member) in (0..MEMBERS).zip(&self.members) {
            let viewer = Viewer::Member(MemberId(id));
            let held: BTreeMap<&str, &Value> = member.iter().map(|(key, value)| (&**key, &**value)).collect();
            assert_eq!(held, visible(&self.now, viewer));
            assert_eq!(member.hash(), self.host.hash(viewer));
            assert_eq!((member.counters().gaps, member.counters().refused), (0, 0));
        }
    }
}

fn name(key: u8) -> String {
    format!("key {key}")
}

fn visible(snapshot: &Snapshot, viewer: Viewer) -> BTreeMap<&str, &Value> {
    let seen = snapshot.iter().filter(|(_, (_, audience))| audience.admits(viewer));
    seen.map(|(key, (value, _))| (key.as_str(), value)).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_replica_is_what_there_was(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.settle();
    }
}
