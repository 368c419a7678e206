//! A room, its host and its guests on virtual time. The network loses, delays and reorders unreliable
//! packets.

use bytes::Bytes;
use parlor_hub::room::{Input, Output, Room, Setup, log};
use parlor_proto::session::{DeliveryId, Outgoing};
use parlor_proto::wire::action::{Action, AskedBy};
use parlor_proto::wire::control::{LeaveReason, ToHub, ToMember};
use parlor_proto::wire::handshake::{RoomKind, RoomSettings};
use parlor_proto::wire::replica::{OwnState, StateOf};
use parlor_proto::{
    ChannelId, ChannelTable, Epoch, Instant, LinkKind, MemberId, PeerMisbehaved, RoomId, Tick, TickRate,
    channel,
};
use parlor_sync::audience::Viewer;
use parlor_sync::replicator::Template;
use parlor_sync::schema::{ComponentId, Interpolation, Kind, Schema};
use parlor_sync::world::{Encodings, Publisher, PublisherConfig, Replica, Sent, World};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const HOST: MemberId = MemberId(0);
pub(crate) const RATE: TickRate = TickRate::DEFAULT;
const STEP: Duration = Duration::from_millis(10);

/// A position.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pos {
    pub(crate) at: [f32; 3],
}

parlor_sync::replicated!(Pos as "pos" => { at: Kind::vector3(-512.0, 512.0, 1.0 / 64.0) });

/// A name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Label {
    pub(crate) text: String,
}

parlor_sync::replicated!(Label as "label" => { text: Kind::text(64).interpolation(Interpolation::None) });

pub(crate) fn schema() -> Schema {
    Schema::builder().replicate::<Pos>().replicate::<Label>().build().expect("it is within bounds")
}

pub(crate) fn setup(settings: RoomSettings) -> Setup {
    Setup {
        id: RoomId(1),
        code: "K7QM".parse().expect("it is a code"),
        app: "tanks".into(),
        environment: String::new(),
        settings,
        channels: ChannelTable::default(),
        opened: Instant::ZERO,
        state_bytes_per_second: 192 * 1024,
        spectators: 2,
    }
}

pub(crate) fn settings(kind: RoomKind, schema: &Schema) -> RoomSettings {
    RoomSettings { tick_rate: RATE, schema: schema.encode(), ..RoomSettings::new(kind, 8) }
}

/// A world with its publisher to the hub.
pub(crate) struct Stream {
    pub(crate) world: World,
    publisher: Publisher,
    encodings: Encodings,
    /// The schema of a member's own state, until the hub has it.
    schema: Option<Bytes>,
}

impl Stream {
    fn new(schema: Arc<Schema>) -> Self {
        let config = PublisherConfig::new(512 * 1024);
        Stream {
            world: World::new(schema, RATE),
            publisher: Publisher::new(Viewer::Everything, config),
            encodings: Encodings::default(),
            schema: None,
        }
    }
}

/// A member's process.
pub(crate) struct End {
    /// Its view of the room's state, written by the host.
    pub(crate) replica: Replica,
    /// The size of each state packet received.
    pub(crate) packets: Vec<usize>,
    /// The own states of others.
    pub(crate) states: BTreeMap<MemberId, (Bytes, Replica)>,
    /// Bytes received of them.
    pub(crate) state_bytes: usize,
    pub(crate) control: Vec<ToMember>,
    pub(crate) asked: Vec<AskedBy>,
    pub(crate) own: Option<Stream>,
    /// The last packet of its own state, as sent.
    pub(crate) said: Option<Bytes>,
    /// Every entity that it ever saw.
    pub(crate) seen: BTreeSet<u16>,
}

enum Event {
    Up { from: MemberId, channel: ChannelId, payload: Bytes },
    Down { to: MemberId, message: Outgoing },
    FateUp { from: MemberId, channel: ChannelId, number: u64, delivered: bool },
    FateDown { to: MemberId, delivery_id: DeliveryId, delivered: bool },
}

/// A room and all its members.
pub(crate) struct House {
    pub(crate) room: Room,
    pub(crate) now: Instant,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) loss_per_mille: u32,
    /// Greater than 0.
    pub(crate) jitter_ms: u32,
    /// Extra delay of state that the room sends.
    pub(crate) detour: Duration,
    /// How many of the room's next state packets are lost.
    pub(crate) doomed: u32,
    pub(crate) host: Stream,
    pub(crate) ends: BTreeMap<MemberId, End>,
    pub(crate) faults: Vec<(MemberId, PeerMisbehaved)>,
    /// The room's log, and its outputs.
    log: Vec<u8>,
    outputs: Vec<Output>,
    wire: BTreeMap<(Instant, u64), Event>,
    events: u64,
}

impl House {
    pub(crate) fn new(seed: u64, kind: RoomKind, schema: &Schema, guests: u32) -> House {
        House::of(seed, setup(settings(kind, schema)), guests)
    }

    pub(crate) fn of(seed: u64, setup: Setup, guests: u32) -> House {
        let schema = setup.schema().expect("the schema is one of a room");
        let log = log::head(&setup);
        let mut house = House {
            room: Room::new(setup).expect("the schema is one of a room"),
            now: Instant::ZERO,
            rng: ChaCha8Rng::seed_from_u64(seed),
            loss_per_mille: 0,
            jitter_ms: 80,
            detour: Duration::ZERO,
            doomed: 0,
            host: Stream::new(Arc::new(schema)),
            ends: BTreeMap::new(),
            faults: Vec::new(),
            log,
            outputs: Vec::new(),
            wire: BTreeMap::new(),
            events: 0,
        };
        (0..=guests).for_each(|_| {
            house.join();
        });
        house
    }

    pub(crate) fn join(&mut self) -> MemberId {
        let member = self.room.next_member();
        let schema = Arc::clone(self.host.world.schema());
        let end = End {
            replica: Replica::new(schema, RATE),
            packets: Vec::new(),
            states: BTreeMap::new(),
            state_bytes: 0,
            control: Vec::new(),
            asked: Vec::new(),
            own: None,
            said: None,
            seen: BTreeSet::new(),
        };
        self.ends.insert(member, end);
        self.tell(Input::Join {
            name: format!("member {member}"),
            user: None,
            link: LinkKind::Memory,
            spectates: false,
        });
        member
    }

    pub(crate) fn leave(&mut self, member: MemberId) {
        self.ends.remove(&member);
        self.tell(Input::Leave { member, reason: LeaveReason::Left });
    }

    pub(crate) fn end(&mut self, member: MemberId) -> &mut End {
        self.ends.get_mut(&member).expect("the test knows who is there")
    }

    /// Passes an input to the room and sends its outputs.
    pub(crate) fn tell(&mut self, input: Input) {
        self.log.extend(log::entry(self.now, &input));
        if let Err((member, how)) = self.room.handle(input, self.now) {
            self.faults.push((member, how));
            self.ends.remove(&member);
            self.tell(Input::Leave { member, reason: LeaveReason::Misbehaved });
        }
        while let Some(output) = self.room.poll_output() {
            if let Output::Send { to, message } = &output {
                to.iter().for_each(|to| self.send_down(*to, message));
            }
            self.outputs.push(output);
        }
    }

    fn chance(&mut self, per_mille: u32) -> bool {
        self.rng.next_u32() % 1_000 < per_mille
    }

    fn delay(&mut self) -> Duration {
        Duration::from_millis((10 + self.rng.next_u32() % self.jitter_ms).into())
    }

    fn at(&mut self, after: Duration, event: Event) {
        self.events += 1;
        self.wire.insert((self.now + after, self.events), event);
    }

    fn send_down(&mut self, to: MemberId, message: &Outgoing) {
        let row = ChannelTable::default();
        let row = row.get(message.channel).expect("it is built in");
        if row.lane.is_reliable() {
            return self.at(Duration::from_millis(40), Event::Down { to, message: message.clone() });
        }
        let delivery_id = message.delivery_id.expect("the room wants to know what becomes of state");
        let is_doomed = self.doomed > 0;
        self.doomed -= u32::from(is_doomed);
        if self.chance(self.loss_per_mille) || is_doomed {
            return self
                .at(Duration::from_millis(150), Event::FateDown { to, delivery_id, delivered: false });
        }
        let after = self.delay() + self.detour;
        self.at(after, Event::Down { to, message: message.clone() });
        self.at(after + Duration::from_millis(40), Event::FateDown { to, delivery_id, delivered: true });
    }

    /// Sends a packet of a stream up.
    fn send_up(&mut self, from: MemberId, channel: ChannelId, payload: Bytes, number: u64) {
        if self.chance(self.loss_per_mille) {
            let fate = Event::FateUp { from, channel, number, delivered: false };
            return self.at(Duration::from_millis(150), fate);
        }
        let after = self.delay();
        self.at(after, Event::Up { from, channel, payload });
        let fate = Event::FateUp { from, channel, number, delivered: true };
        self.at(after + Duration::from_millis(40), fate);
    }

    /// Sends a message reliably and in order.
    pub(crate) fn say(&mut self, from: MemberId, channel: ChannelId, payload: Bytes) {
        self.at(Duration::from_millis(40), Event::Up { from, channel, payload });
    }

    pub(crate) fn act(&mut self, from: MemberId, action: &Action) {
        self.say(from, channel::ACTIONS, action.encode());
    }

    pub(crate) fn ask_hub(&mut self, from: MemberId, message: &ToHub) {
        self.say(from, channel::CONTROL, message.encode());
    }

    /// Gives a member a state of its own.
    pub(crate) fn own(&mut self, member: MemberId, template: &Template) {
        let mut own = Stream::new(Arc::clone(template.form().schema()));
        own.publisher.set_config(PublisherConfig::new(32 * 1024));
        own.schema = Some(own.world.schema().encode());
        own.world.spawn(None).expect("it is the first");
        self.end(member).own = Some(own);
    }

    /// Runs virtual time; the game runs at each step of the room.
    pub(crate) fn run(&mut self, duration: Duration, mut game: impl FnMut(&mut House)) {
        let until = self.now + duration;
        while self.now < until {
            let before = RATE.tick_at(self.now);
            self.now += STEP;
            if RATE.tick_at(self.now) != before {
                game(self);
                self.commit();
            }
            while let Some(entry) = self.wire.first_entry()
                && entry.key().0 <= self.now
            {
                let event = entry.remove();
                self.happen(event);
            }
            self.publish();
            self.tell(Input::Flush);
        }
    }

    /// Delivers everything in transit, without loss.
    pub(crate) fn settle(&mut self) {
        self.loss_per_mille = 0;
        self.run(Duration::from_secs(3), |_| {});
    }

    fn commit(&mut self) {
        let tick = RATE.tick_at(self.now);
        let commit = |stream: &mut Stream| {
            if stream.world.is_dirty() || stream.world.tick().is_none() {
                stream.world.commit(tick).expect("ticks go on");
            }
        };
        commit(&mut self.host);
        self.ends.values_mut().filter_map(|end| end.own.as_mut()).for_each(commit);
    }

    fn publish(&mut self) {
        let mut packets = Vec::new();
        let host = &mut self.host;
        if self.ends.contains_key(&HOST) {
            while let Some((bytes, sent)) = host.publisher.poll(&host.world, &mut host.encodings, self.now) {
                packets.push((HOST, channel::STATE, bytes, sent.0));
            }
        }
        for (member, end) in &mut self.ends {
            let Some(own) = &mut end.own else { continue };
            while let Some((packet, sent)) = own.publisher.poll(&own.world, &mut own.encodings, self.now) {
                let state = OwnState { schema: own.schema.clone(), packet };
                end.said = Some(state.encode());
                packets.push((*member, channel::REPLICAS, state.encode(), sent.0));
            }
        }
        for (from, channel, payload, number) in packets {
            self.send_up(from, channel, payload, number);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Up { from, channel, payload } => {
                if self.ends.contains_key(&from) {
                    self.tell(Input::Message { from, channel, key: 0, payload, epoch: Epoch(0) });
                }
            }
            Event::Down { to, message } => {
                if let Some(end) = self.ends.get_mut(&to) {
                    end.hear(&message);
                }
            }
            Event::FateUp { from, channel, number, delivered } => {
                let own = self.ends.get_mut(&from).and_then(|end| end.own.as_mut());
                let stream = if channel == channel::STATE { Some(&mut self.host) } else { own };
                if let Some(stream) = stream {
                    if delivered {
                        stream.schema = None;
                        stream.publisher.delivered(Sent(number));
                    } else {
                        stream.publisher.lost(Sent(number));
                    }
                }
            }
            Event::FateDown { to, delivery_id, delivered } => {
                if self.ends.contains_key(&to) {
                    self.tell(Input::Fate { member: to, delivery_id: delivery_id.0, delivered });
                }
            }
        }
    }

    /// Replays the room from its log and expects the same outputs.
    pub(crate) fn assert_replays(&self) {
        let mut replay = log::replay(self.log.clone().into()).expect("it is a log");
        let mut outputs = Vec::new();
        for step in &mut replay {
            outputs.extend(step.expect("it is whole").outputs);
        }
        assert_eq!(outputs.len(), self.outputs.len());
        assert!(outputs == self.outputs, "a replay sends the same bytes");
        assert_eq!(replay.room().counters(), self.room.counters());
    }
}

impl End {
    fn hear(&mut self, message: &Outgoing) {
        let payload = message.payload.clone();
        match message.channel {
            channel::STATE => {
                self.packets.push(payload.len());
                self.replica.apply(payload).expect("the hub keeps to the protocol");
                self.seen.extend(self.replica.world().entities().map(|entity| entity.slot));
            }
            channel::REPLICAS => {
                self.state_bytes += payload.len();
                let StateOf { source, state } = StateOf::decode(payload).expect("the hub writes it well");
                let (_, replica) = match (self.states.entry(source), state.schema) {
                    (std::collections::btree_map::Entry::Occupied(entry), schema) => {
                        assert!(schema.is_none_or(|schema| schema == entry.get().0));
                        entry.into_mut()
                    }
                    (std::collections::btree_map::Entry::Vacant(entry), schema) => {
                        let bytes = schema.expect("the first packet brings the schema");
                        let schema = Schema::decode(bytes.clone()).expect("the source wrote it well");
                        entry.insert((bytes, Replica::new(Arc::new(schema), RATE)))
                    }
                };
                replica.apply(state.packet).expect("the hub keeps to the protocol");
            }
            channel::CONTROL => {
                let decoded = ToMember::decode(payload).expect("the hub writes it well");
                self.control.push(decoded.expect("it is of this version"));
            }
            channel::ACTIONS => {
                self.asked.push(AskedBy::decode(payload).expect("the hub writes it well"));
            }
            other => panic!("nothing was said on {other}"),
        }
    }

    /// Its lanes of a member's state.
    pub(crate) fn state_of(&self, source: MemberId) -> Option<Vec<i32>> {
        let (_, replica) = self.states.get(&source)?;
        let entity = replica.world().entities().next()?;
        let row = replica.world().read_row(entity, ComponentId(0)).expect("it is there");
        row.map(|(lanes, _)| lanes.to_vec())
    }
}

impl House {
    /// The hash of a member's own state as another sees it.
    pub(crate) fn own_hash(&self, source: MemberId, reader: MemberId) -> u64 {
        let own = self.ends[&source].own.as_ref().expect("it has a state");
        own.world.hash(Viewer::Member(reader))
    }

    /// The current tick.
    pub(crate) fn tick(&self) -> Tick {
        RATE.tick_at(self.now)
    }

    /// Whether every guest holds exactly what the host shows it.
    pub(crate) fn assert_all_equal(&self) {
        let world = &self.host.world;
        assert_eq!(self.room.world().hash(Viewer::Everything), world.hash(Viewer::Everything), "at the hub");
        for (member, end) in self.ends.iter().filter(|(member, _)| **member != HOST) {
            let viewer = Viewer::Member(*member);
            assert_eq!(end.replica.settled(), world.tick(), "{member} is settled");
            assert_eq!(end.replica.world().hash(viewer), world.hash(viewer), "at {member}");
        }
    }
}
