//! Keyed state of a host, its hub and three members, over links that lose, repeat and reorder packets,
//! against a model that keeps every state.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::inputs::Report;
use parlor_sync::keyed::{Hints, KeyReader, Keys};
use parlor_sync::schema::Schema;
use parlor_sync::value::Value;
use parlor_sync::world::{Encodings, Outcome, Publisher, PublisherConfig, Replica, Sent, World};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

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
    /// The publisher of this link sends, if there is anything.
    Poll {
        link: usize,
    },
    /// A packet in flight arrives, and its sender may learn of it; it may arrive again.
    Arrive {
        link: usize,
        which: usize,
        reported: bool,
        again: bool,
    },
    /// A packet is reported lost. If the report is wrong, the packet still arrives later.
    Lose {
        link: usize,
        which: usize,
        seemingly: bool,
    },
    /// The members' updates are complete and marked as a transfer for a while.
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
    /// Delivered packets whose sender does not know it yet.
    unreported: Vec<Sent>,
}

struct Member {
    replica: Replica,
    reader: KeyReader,
    /// Everything that it was ever allowed to see.
    shown: BTreeSet<(String, String)>,
}

struct Story {
    host: World,
    keys: Keys,
    hub: Replica,
    /// Link 0 is from the host to the hub, link n from the hub to member n − 1.
    links: Vec<Link>,
    members: Vec<Member>,
    /// The state at each committed tick, and the tick whose inputs were acknowledged then.
    past: BTreeMap<u32, (Snapshot, u32)>,
    now: Snapshot,
    tick: u32,
    acked: u32,
    clock: Instant,
}

impl Story {
    fn new() -> Self {
        let (schema, rate) = (Arc::new(Schema::default()), TickRate::DEFAULT);
        let viewers = (0..MEMBERS).map(|id| Viewer::Member(MemberId(id)));
        let links = [Viewer::Everything].into_iter().chain(viewers);
        let publisher = |viewer| Publisher::new(viewer, PublisherConfig::default());
        let (mut host, mut keys) = (World::new(Arc::clone(&schema), rate), Keys::new());
        keys.declare(&mut host, "key 1", Hints::none().angle("a").unwrap()).unwrap();
        let member = || Member {
            replica: Replica::new(Arc::clone(&schema), rate),
            reader: KeyReader::new(),
            shown: BTreeSet::new(),
        };
        Story {
            host,
            keys,
            hub: Replica::of_everything(Arc::clone(&schema), rate),
            links: links
                .map(|it| Link { publisher: publisher(it), flying: Vec::new(), unreported: Vec::new() })
                .collect(),
            members: (0..MEMBERS).map(|_| member()).collect(),
            past: BTreeMap::new(),
            now: Snapshot::new(),
            tick: 0,
            acked: 0,
            clock: Instant::ZERO,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Set { key, value, audience } => self.set(key, value, audience),
            Step::Remove { key } => {
                let key = name(key);
                let removed = self.keys.remove(&mut self.host, &key).unwrap();
                assert_eq!(removed, self.now.remove(&key).is_some());
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
        let value = Value::from(format!("value {key} {value}"));
        let set = (value.clone(), audience.clone());
        let changed = self.now.get(&name(key)) != Some(&set);
        assert_eq!(self.keys.set(&mut self.host, &name(key), &value, audience).unwrap(), changed);
        self.now.insert(name(key), set);
    }

    fn commit(&mut self, acks: bool) {
        self.tick += 1;
        if acks {
            self.acked = self.tick;
        }
        let used = (0..MEMBERS)
            .map(|id| (MemberId(id), Report { tick: Tick(self.acked), ..Report::default() }))
            .collect();
        self.keys.acknowledge(&mut self.host, &used).unwrap();
        self.keys.close(&mut self.host).unwrap();
        if !self.host.is_dirty() {
            let (now, _) = &self.past[&self.host.tick().unwrap().0];
            return assert_eq!(&self.now, now);
        }
        self.host.commit(Tick(self.tick)).unwrap();
        self.past.insert(self.tick, (self.now.clone(), self.acked));
        for (id, member) in (0..MEMBERS).zip(&mut self.members) {
            let seen = visible(&self.now, Viewer::Member(MemberId(id)));
            member.shown.extend(seen.into_iter().map(|(key, value)| (key.to_owned(), value.to_string())));
        }
    }

    fn poll(&mut self, link: usize) {
        self.clock += Duration::from_millis(33);
        let world = if link == 0 { &self.host } else { self.hub.world() };
        let Link { publisher, flying, .. } = &mut self.links[link];
        flying.extend(publisher.poll(world, &mut Encodings::default(), self.clock));
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
            assert_ne!(self.hub.apply(bytes).unwrap(), Outcome::Waiting);
        } else {
            let Member { replica, reader, .. } = &mut self.members[link - 1];
            let outcome = replica.apply(bytes).unwrap();
            assert_ne!(outcome, Outcome::Waiting);
            if let Outcome::Taken(applied) = outcome {
                reader.observe(replica.world(), &applied);
            }
        }
        if reported {
            self.links[link].publisher.delivered(sent);
        } else {
            self.links[link].unreported.push(sent);
        }
        self.check();
    }

    /// Checks that a reader that is settled at a tick holds the state of that tick, as far as it may see it,
    /// and that no reader ever holds anything else.
    fn check(&self) {
        if let Some(tick) = self.hub.settled() {
            assert_eq!(self.hub.world().len(), self.past[&tick.0].0.len() + MEMBERS as usize);
        }
        for (id, member) in (0..MEMBERS).zip(&self.members) {
            let held: BTreeMap<&str, &Value> =
                member.reader.iter().map(|(key, value)| (&**key, &**value)).collect();
            for (key, value) in &held {
                assert!(
                    member.shown.contains(&((*key).to_owned(), value.to_string())),
                    "{key} = {value} leaked"
                );
            }
            assert_eq!(member.reader.unreadable(), 0);
            let Some(tick) = member.replica.settled() else { continue };
            let (past, acked) = &self.past[&tick.0];
            assert_eq!(held, visible(past, Viewer::Member(MemberId(id))), "member {id} at {tick}");
            assert_eq!(member.reader.input_ack(), Some(Tick(*acked)));
            let hints = member.reader.shown("key 1").map(|shown| shown.hints.iter().len());
            assert!(hints.is_none_or(|count| count == 1));
        }
    }

    /// Delivers everything in flight and sends everything due, until there is nothing left.
    fn settle(&mut self) {
        self.commit(true);
        for link in 0..self.links.len() {
            let Link { publisher, unreported, .. } = &mut self.links[link];
            unreported.drain(..).for_each(|sent| publisher.delivered(sent));
            for _ in 0..8 {
                self.poll(link);
                // Packets reported lost are still in flight; the newest arrives first.
                while !self.links[link].flying.is_empty() {
                    self.arrive(link, self.links[link].flying.len() - 1, true, false);
                }
            }
            self.poll(link);
            assert!(self.links[link].flying.is_empty(), "link {link} does not come to rest");
        }
        for (id, member) in (0..MEMBERS).zip(&self.members) {
            assert_eq!(member.replica.settled(), Some(Tick(self.tick)), "member {id}");
            assert_eq!(member.reader.hash(), self.keys.hash(Viewer::Member(MemberId(id))));
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_replica_is_what_there_was(steps in steps()) {
        let mut story = Story::new();
        for step in &steps {
            story.step(step);
        }
        story.settle();
    }
}
