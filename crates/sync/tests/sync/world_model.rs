//! An authority, its hub and three members over links that lose, repeat, reorder and delay packets, against a
//! model that keeps every state. `PARLOR_SEED` selects a seed; `PARLOR_SEEDS` sets the number of seeds.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use core::time::Duration;
use parlor_impair::Rng;
use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::schema::{Component, ComponentId, Condition, Kind, Schema};
use parlor_sync::world::{
    Audience, Encodings, EntityId, Outcome, Publisher, PublisherConfig, Replica, Sent, Viewer, Views, World,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MEMBERS: u32 = 3;
const SEEDS: u64 = 1_000;
const ENTITIES: usize = 7;

/// Lanes and blobs of a component.
type Form = (Vec<i32>, Vec<Bytes>);

#[derive(Clone, Debug, PartialEq)]
struct Entity {
    owner: Option<MemberId>,
    room: u32,
    audience: Audience,
    components: BTreeMap<u8, Form>,
}

/// A member, an entity, a component and its value.
type Shown = (u32, EntityId, u8, Vec<i32>, Vec<Bytes>);

type Snapshot = BTreeMap<EntityId, Entity>;

fn schema() -> Schema {
    let component = |name: &str, kind: Kind, condition| {
        Component::builder(name).field("it", kind).condition(condition).build()
    };
    let place = Component::builder("place")
        .field("at", Kind::vector3(-64.0, 64.0, 1.0 / 64.0))
        .field("turn", Kind::rotation(9))
        .build();
    Schema::bare()
        .component(place)
        .component(component("own", Kind::int(0, 1_000), Condition::OwnerOnly))
        .component(component("others", Kind::int(-5, 5), Condition::NotOwner))
        .component(component("label", Kind::text(60), Condition::Everyone))
        .component(component("flag", Kind::Bool, Condition::Everyone))
        .build()
        .unwrap()
}

const CONDITIONS: [Condition; 5] = [
    Condition::Everyone,
    Condition::OwnerOnly,
    Condition::NotOwner,
    Condition::Everyone,
    Condition::Everyone,
];

/// The part of a state that `viewer` sees.
fn view(of: &Snapshot, viewer: Viewer) -> Snapshot {
    let Viewer::Member(member) = viewer else { return of.clone() };
    let rooms: Vec<u32> = of.values().filter(|it| it.owner == Some(member)).map(|it| it.room).collect();
    let seen =
        of.iter().filter(|(_, it)| it.audience.admits(viewer) && (it.room == 0 || rooms.contains(&it.room)));
    let seen = seen.map(|(id, it)| {
        let admitted = |id: &u8| CONDITIONS[usize::from(*id)].admits(it.owner == Some(member));
        let components = it.components.iter().filter(|(id, _)| admitted(id));
        let components = components.map(|(id, form)| (*id, form.clone())).collect();
        (*id, Entity { owner: it.owner, room: 0, audience: Audience::All, components })
    });
    seen.collect()
}

/// The state of a world.
fn held(world: &World) -> Snapshot {
    let entities = world.entities().map(|id| {
        let components = (0..5).filter_map(|number| Some((number, form(world, id, number)?)));
        let entity = Entity {
            owner: world.owner(id).unwrap(),
            room: world.zone(id).unwrap(),
            audience: world.audience(id).unwrap().clone(),
            components: components.collect(),
        };
        (id, entity)
    });
    entities.collect()
}

fn form(world: &World, id: EntityId, component: u8) -> Option<Form> {
    let row = world.read_row(id, ComponentId(component)).unwrap();
    row.map(|(lanes, blobs)| (lanes.to_vec(), blobs.to_vec()))
}

/// A replica, and its state according to its events.
struct Reader {
    replica: Replica,
    viewer: Viewer,
    told: Snapshot,
    /// Despawned entities. At a reader of everything none of them returns.
    gone: BTreeSet<EntityId>,
}

impl Reader {
    fn new(viewer: Viewer) -> Self {
        let (schema, rate) = (Arc::new(schema()), TickRate::DEFAULT);
        let replica = match viewer {
            Viewer::Everything => Replica::of_everything(schema, rate),
            Viewer::Member(_) => Replica::new(schema, rate),
        };
        Reader { replica, viewer, told: Snapshot::new(), gone: BTreeSet::new() }
    }

    /// Applies a packet, and follows its events.
    fn apply(&mut self, bytes: Bytes) -> bool {
        let Outcome::Taken(applied) = self.replica.apply(bytes).unwrap() else { return false };
        for id in &applied.despawned {
            assert!(self.told.remove(id).is_some(), "{id} went and was not there");
            self.gone.insert(*id);
        }
        let world = self.replica.world();
        let empty = Entity { owner: None, room: 0, audience: Audience::All, components: BTreeMap::new() };
        for id in applied.spawned {
            assert!(self.told.insert(id, empty.clone()).is_none(), "{id} came and was there");
            let is_new = self.viewer != Viewer::Everything || !self.gone.contains(&id);
            assert!(is_new, "the id of {id} was given twice");
        }
        for (id, mask) in applied.changed {
            let entity = self.told.get_mut(&id).unwrap();
            entity.owner = world.owner(id).unwrap();
            entity.room = world.zone(id).unwrap();
            entity.audience = world.audience(id).unwrap().clone();
            for number in (0..5).filter(|number| mask >> number & 1 == 1) {
                match form(world, id, number) {
                    Some(form) => entity.components.insert(number, form),
                    None => entity.components.remove(&number),
                };
            }
        }
        assert_eq!(self.told, held(world), "what was told is not what is held");
        true
    }
}

#[derive(Default)]
struct Link {
    flying: Vec<(Bytes, Sent)>,
    /// Fates that the sender does not know yet.
    fates: Vec<(Sent, bool)>,
}

struct Room {
    rng: Rng,
    host: World,
    up: Publisher,
    encodings: Encodings,
    hub: Reader,
    views: Views,
    members: Vec<Reader>,
    /// Link 0 is from the host to the hub, link n from the hub to member n − 1.
    links: Vec<Link>,
    now_state: Snapshot,
    past: BTreeMap<u32, Snapshot>,
    /// States of ticks from which another host continued with less.
    replaced: Vec<(u32, Snapshot)>,
    /// What each member was allowed to see of each component.
    shown: BTreeSet<Shown>,
    tick: u32,
    now: Instant,
    settled: u64,
    /// The number of entries that were updates.
    updates: u64,
}

impl Room {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut views = Views::new(&schema());
        for id in 0..MEMBERS {
            views.add(MemberId(id), config(&mut rng));
        }
        let viewers = (0..MEMBERS).map(|id| Viewer::Member(MemberId(id)));
        Room {
            host: World::new(Arc::new(schema()), TickRate::DEFAULT),
            up: Publisher::new(Viewer::Everything, config(&mut rng)),
            encodings: Encodings::new(),
            hub: Reader::new(Viewer::Everything),
            views,
            members: viewers.map(Reader::new).collect(),
            links: (0..=MEMBERS).map(|_| Link::default()).collect(),
            now_state: Snapshot::new(),
            past: BTreeMap::new(),
            replaced: Vec::new(),
            shown: BTreeSet::new(),
            tick: u32::try_from(rng.below(100)).unwrap(),
            now: Instant::ZERO,
            settled: 0,
            updates: 0,
            rng,
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..25 => self.change(),
            25..38 => self.commit(),
            38..53 => self.flush(),
            53..78 => self.arrive(),
            78..83 => self.lose(),
            83..98 => self.report(),
            98 => self.forge(),
            _ => match self.rng.below(5) {
                0 | 1 => self.migrate(),
                2 | 3 => self.restart(),
                _ => {}
            },
        }
    }

    fn change(&mut self) {
        let ids: Vec<EntityId> = self.now_state.keys().copied().collect();
        if ids.is_empty() || (ids.len() < ENTITIES && self.rng.below(8) == 0) {
            let owner = self.member();
            // Slots are scarce for a while after many despawns.
            let id = self.host.spawn(owner).unwrap();
            let entity = Entity { owner, room: 0, audience: Audience::All, components: BTreeMap::new() };
            assert!(self.now_state.insert(id, entity).is_none());
            return;
        }
        let id = self.rng.pick(&ids);
        let entity = self.now_state.get_mut(&id).unwrap();
        match self.rng.below(16) {
            0 => {
                self.host.despawn(id).unwrap();
                self.now_state.remove(&id);
                assert!(self.host.set_zone(id, 1).is_err());
            }
            1 => {
                let owner = match self.rng.below(4) {
                    0 => None,
                    id => Some(MemberId(u32::try_from(id).unwrap() - 1)),
                };
                entity.owner = owner;
                self.host.set_owner(id, owner).unwrap();
            }
            2 => {
                entity.room = u32::try_from(self.rng.below(3)).unwrap();
                self.host.set_zone(id, entity.room).unwrap();
            }
            3 => {
                let bits = self.rng.below(12);
                entity.audience = match bits {
                    8.. => Audience::All,
                    bits => Audience::members((0..MEMBERS).filter(|id| bits >> id & 1 == 1).map(MemberId)),
                };
                self.host.set_audience(id, entity.audience.clone()).unwrap();
            }
            4 => {
                let number = u8::try_from(self.rng.below(5)).unwrap();
                let had = entity.components.remove(&number).is_some();
                assert_eq!(self.host.remove_row(id, ComponentId(number)).unwrap(), had);
            }
            _ => self.set(id),
        }
    }

    fn set(&mut self, id: EntityId) {
        let number = u8::try_from(self.rng.below(5)).unwrap();
        let entity = self.now_state.get_mut(&id).unwrap();
        let mut draw = |span: u64| i32::try_from(self.rng.below(span)).unwrap();
        let (lanes, blobs) = match number {
            0 => {
                // Mostly small motions.
                let before =
                    entity.components.get(&0).map_or([4_000; 3], |(lanes, _)| [lanes[0], lanes[1], lanes[2]]);
                let mut lanes: Vec<i32> =
                    before.iter().map(|lane| (lane + draw(9) - 4).clamp(0, 8_192)).collect();
                let (turn, _) = self.host.schema().components()[0].rest_row();
                lanes.extend_from_slice(&turn[3..]);
                (lanes, vec![])
            }
            1 => (vec![draw(1_001)], vec![]),
            2 => (vec![draw(11)], vec![]),
            3 => {
                let len = usize::try_from(draw(3) * 20).unwrap();
                (vec![], vec![Bytes::from(format!("{:len$}", draw(4)))])
            }
            _ => (vec![draw(2)], vec![]),
        };
        let changed = entity.components.get(&number) != Some(&(lanes.clone(), blobs.clone()));
        assert_eq!(self.host.write_row(id, ComponentId(number), &lanes, &blobs).unwrap(), changed);
        entity.components.insert(number, (lanes, blobs));
    }

    fn member(&mut self) -> Option<MemberId> {
        let number = self.rng.below(u64::from(MEMBERS) + 1);
        (number > 0).then(|| MemberId(u32::try_from(number - 1).unwrap()))
    }

    fn commit(&mut self) {
        let on = match self.rng.below(40) {
            0 => 30 + self.rng.below(200),
            1..4 => 2 + self.rng.below(20),
            _ => 1,
        };
        self.tick += u32::try_from(on).unwrap();
        self.host.commit(Tick(self.tick)).unwrap();
        assert!(self.host.commit(Tick(self.tick)).is_err());
        self.past.insert(self.tick, self.now_state.clone());
        self.now += Duration::from_millis(33);
        assert_eq!(held(&self.host), self.now_state);
    }

    fn flush(&mut self) {
        if self.rng.below(2) == 0 {
            let polls = 1 + self.rng.below(4);
            for _ in 0..polls {
                let Some(packet) = self.up.poll(&self.host, &mut self.encodings, self.now) else { break };
                self.links[0].flying.push(packet);
            }
        }
        self.flush_views();
    }

    fn flush_views(&mut self) {
        let world = self.hub.replica.world();
        let state = held(world);
        for id in state.keys() {
            for member in (0..MEMBERS).map(MemberId) {
                let seen = view(&state, Viewer::Member(member)).remove(id);
                for (number, (lanes, blobs)) in seen.into_iter().flat_map(|it| it.components) {
                    self.shown.insert((member.0, *id, number, lanes, blobs));
                }
            }
        }
        let links = &mut self.links;
        self.views.flush(world, self.now, |member, bytes, sent| {
            links[member.0 as usize + 1].flying.push((bytes, sent));
        });
    }

    fn arrive(&mut self) {
        let link = self.rng.index(self.links.len());
        if self.links[link].flying.is_empty() {
            return;
        }
        // Mostly in order.
        let flying = self.links[link].flying.len();
        let which = if self.rng.below(3) == 0 { self.rng.index(flying) } else { 0 };
        let (bytes, sent) = self.links[link].flying[which].clone();
        // Some arrive twice, and some are reported lost.
        if self.rng.below(10) > 0 {
            self.links[link].flying.remove(which);
        }
        self.take(link, bytes);
        let believed = self.rng.below(12) > 0;
        self.links[link].fates.push((sent, believed));
    }

    fn take(&mut self, link: usize, bytes: Bytes) {
        let reader = if link == 0 { &mut self.hub } else { &mut self.members[link - 1] };
        if !reader.apply(bytes) {
            return;
        }
        let world = reader.replica.world();
        if let Viewer::Member(member) = reader.viewer {
            for (id, entity) in held(world) {
                for (number, (lanes, blobs)) in entity.components {
                    let seen = (member.0, id, number, lanes, blobs);
                    assert!(self.shown.contains(&seen), "{member} has {seen:?}, which it never might see");
                }
            }
        }
        if let Some(Tick(tick)) = reader.replica.settled() {
            self.settled += 1;
            let was = |state: &Snapshot| held(world) == view(state, reader.viewer);
            // Packets that the hub made before a migration have the state before it.
            let is_of_before = link > 0 && self.replaced.iter().any(|(at, state)| *at == tick && was(state));
            if !is_of_before {
                let expected = view(&self.past[&tick], reader.viewer);
                assert_eq!(held(world), expected, "link {link} settled at tick {tick}");
            }
        }
    }

    fn lose(&mut self) {
        let link = self.rng.index(self.links.len());
        let Link { flying, fates } = &mut self.links[link];
        if !flying.is_empty() {
            let (_, sent) = flying.remove(self.rng.index(flying.len()));
            fates.push((sent, false));
        }
    }

    fn report(&mut self) {
        let link = self.rng.index(self.links.len());
        let fates = &mut self.links[link].fates;
        let many = self.rng.below(6);
        for _ in 0..many {
            if fates.is_empty() {
                break;
            }
            let (sent, delivered) = fates.remove(self.rng.index(fates.len()));
            match link.checked_sub(1) {
                Some(member) => self.views.fate(MemberId(u32::try_from(member).unwrap()), sent, delivered),
                None if delivered => self.up.delivered(sent),
                None => self.up.lost(sent),
            }
        }
    }

    /// Restarts a link, at one end or at both.
    fn restart(&mut self) {
        let link = self.rng.index(self.links.len());
        let both = self.rng.below(2) == 0;
        let (publisher, reader) = match link {
            0 => (&mut self.up, &mut self.hub),
            _ => {
                let member = MemberId(u32::try_from(link - 1).unwrap());
                (self.views.publisher_mut(member).unwrap(), &mut self.members[link - 1])
            }
        };
        if both {
            publisher.restart();
            reader.replica.restart();
            self.links[link] = Link::default();
        } else {
            publisher.begin_transfer();
        }
    }

    /// Acknowledges packets that were never sent.
    fn forge(&mut self) {
        let sent = Sent(self.rng.draw() >> self.rng.below(64));
        let is_flying = |link: &Link| link.flying.iter().any(|(_, it)| *it == sent);
        if !self.links.iter().any(is_flying) {
            self.up.delivered(Sent(u64::MAX - sent.0 % 1_000));
            self.views.fate(MemberId(9), sent, true);
            self.views.fate(MemberId(1), Sent(u64::MAX - sent.0 % 1_000), false);
        }
    }

    /// The host is lost; a member that gets everything from the hub continues. Members notice nothing.
    fn migrate(&mut self) {
        let used = self.hub.replica.hand_over();
        let hub = self.hub.replica.world();
        let mut down = Publisher::new(Viewer::Everything, PublisherConfig::new(10_000_000));
        let mut heir = Replica::of_everything(Arc::new(schema()), TickRate::DEFAULT);
        let mut encodings = Encodings::new();
        while let Some((bytes, sent)) = down.poll(hub, &mut encodings, self.now) {
            assert!(matches!(heir.apply(bytes), Ok(Outcome::Taken(_))));
            down.delivered(sent);
        }
        assert_eq!(heir.settled(), hub.tick());
        // Lost changes of the last ticks never happened.
        self.now_state = held(hub);
        let before = core::mem::replace(&mut self.hub.told, held(hub));
        self.hub.gone.extend(before.into_keys().filter(|id| !self.now_state.contains_key(id)));
        self.host = heir.into_successor(used);
        assert_eq!(held(&self.host), self.now_state);
        let first = self.rng.below(3) << 24;
        self.up = Publisher::of_successor(&self.host, config(&mut self.rng)).numbered_from(first);
        self.encodings = Encodings::new();
        self.links[0] = Link::default();
        if let Some(Tick(tick)) = hub.tick() {
            self.past.retain(|label, _| *label <= tick);
            let before = self.past.insert(tick, self.now_state.clone());
            self.replaced.extend(before.map(|before| (tick, before)));
            self.tick = tick;
        }
    }

    /// Delivers everything in flight and sends everything due, until there is nothing left.
    fn settle(&mut self) {
        self.commit();
        for link in 0..self.links.len() {
            for round in 0.. {
                self.now += Duration::from_secs(1);
                for (sent, delivered) in core::mem::take(&mut self.links[link].fates) {
                    self.tell(link, sent, delivered);
                }
                // The newest arrives first.
                while let Some((bytes, sent)) = self.links[link].flying.pop() {
                    self.take(link, bytes);
                    self.tell(link, sent, true);
                }
                if link == 0 {
                    while let Some(packet) = self.up.poll(&self.host, &mut self.encodings, self.now) {
                        self.links[0].flying.push(packet);
                    }
                } else {
                    self.flush_views();
                }
                if self.links[link].flying.is_empty() {
                    break;
                }
                assert!(round < 100, "link {link} does not come to rest");
            }
        }
        assert!(self.hub.replica.settled().is_some(), "the hub is not settled");
        assert_eq!(held(self.hub.replica.world()), self.now_state);
        let hash = |world: &World, viewer| world.hash(viewer);
        assert_eq!(hash(self.hub.replica.world(), Viewer::Everything), hash(&self.host, Viewer::Everything));
        for member in &self.members {
            let (world, viewer) = (member.replica.world(), member.viewer);
            assert!(member.replica.settled().is_some(), "{viewer:?} is not settled");
            assert_eq!(held(world), view(&self.now_state, viewer));
            let Viewer::Member(id) = viewer else { unreachable!() };
            assert_eq!(self.views.publisher(id).unwrap().hash(self.hub.replica.world()), hash(world, viewer));
            assert_eq!(member.replica.counters().refused, 0);
            let figures = self.views.diagnostics(id, self.hub.replica.world()).unwrap();
            self.updates += figures.entries - figures.spawns - figures.despawns;
        }
    }

    fn tell(&mut self, link: usize, sent: Sent, delivered: bool) {
        match link.checked_sub(1) {
            Some(member) => self.views.fate(MemberId(u32::try_from(member).unwrap()), sent, delivered),
            None if delivered => self.up.delivered(sent),
            None => self.up.lost(sent),
        }
    }
}

fn config(rng: &mut Rng) -> PublisherConfig {
    PublisherConfig {
        bytes_per_second: u32::try_from(rng.pick(&[1_000, 10_000, 1_000_000])).unwrap(),
        packet_bytes: rng.pick(&[50, 80, 940]),
        in_flight_bytes_max: rng.pick(&[300, 1_000, 100_000]),
        // It applies only from the host to the hub.
        is_plain: rng.below(3) == 0,
    }
}

fn run(seed: u64) -> (u64, u64) {
    let mut room = Room::new(seed);
    let steps = 20 + room.rng.below(300);
    for _ in 0..steps {
        room.step();
    }
    room.settle();
    (room.settled, room.updates)
}

#[test]
fn every_settled_replica_is_what_there_was() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("PARLOR_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PARLOR_SEEDS").unwrap_or(SEEDS),
    };
    let (mut settled, mut updates) = (0, 0);
    for seed in seeds.clone() {
        let outcome = std::panic::catch_unwind(|| run(seed));
        match outcome {
            Ok(room) => (settled, updates) = (settled + room.0, updates + room.1),
            Err(panic) => {
                println!("seed {seed} failed: repeat it with PARLOR_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    let rooms = seeds.end - seeds.start;
    println!("{settled} times something settled and {updates} updates were sent in {rooms} rooms");
    assert!(rooms < SEEDS || (settled > 5 * rooms && updates > 4 * rooms), "hardly anything was tried");
}
