//! The bodies of the fuzz targets of sharing a world: each takes any bytes and panics if a promise is broken.

use bytes::Bytes;
use core::time::Duration;
use parlor_proto::{EntityId, Instant, MemberId, Tick, TickRate};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::delta::{EntryHead, Past, Reader, Tables, Writer};
use parlor_sync::limits::{
    PACKET_ENTRIES_MAX, PACKET_OUTPUT_BYTES_MAX, RECORD_BYTES_MAX, RECORDING_HEAD_BYTES_MAX,
};
use parlor_sync::recording::{self, Ended, Head, Playback, Record};
use parlor_sync::schema::{
    Component, ComponentId, Condition, Kind, LaneKind, Range, RowReader, RowWriter, Schema,
};
use parlor_sync::world::{Encodings, Publisher, PublisherConfig, Replica, Sent, World};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

/// The bytes of a schema: what can be read is written the same, and rows of it keep their one form.
pub fn schema(bytes: &[u8]) {
    let Ok(schema) = Schema::decode(Bytes::copy_from_slice(bytes)) else { return };
    assert_eq!(schema.encode(), bytes, "a schema has one form");
    for component in schema.components() {
        assert_eq!(schema.find(component.name()).and_then(|id| schema.get(id)), Some(component));
        let (rest, blobs) = component.rest_row();
        component.check_row(&rest, &blobs).expect("a row at rest is in order");
        // The bytes of the schema are lanes as good as others.
        let noise = bytes.iter().cycle().scan(1u32, |state, byte| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(u32::from(*byte));
            Some(*state >> 1)
        });
        let pairs = component.lane_kinds().iter().zip(noise);
        let lanes: Vec<i32> = pairs
            .map(|(kind, noise)| i32::try_from(noise % (kind.span + 1)).expect("a span is 31 bits wide"))
            .collect();
        let once = again(component, &lanes, &blobs);
        component.check_row(&once, &blobs).expect("what is quantized is in order");
        assert_eq!(again(component, &once, &blobs), once, "what was quantized stays what it is");
    }
}

/// The row that reading `lanes` and quantizing that gives.
fn again(component: &Component, lanes: &[i32], blobs: &[Bytes]) -> Vec<i32> {
    let reader = RowReader::new(component, lanes, blobs);
    let (mut lanes, mut blobs) = (lanes.to_vec(), blobs.to_vec());
    let mut writer = RowWriter::new(component, &mut lanes, &mut blobs);
    for field in 0..component.fields().len() {
        writer.set_numbers(field, reader.field(field).numbers());
    }
    writer.finish().expect("what was read can be written");
    lanes
}

/// One component with all kinds of fields.
pub static KINDS: LazyLock<Schema> = LazyLock::new(|| {
    let metres = Range::new(-256.0, 256.0, 1.0 / 512.0);
    let kinds = Component::builder("kinds")
        .field("bool", Kind::Bool)
        .field("int", Kind::int(-20, 1 << 20))
        .field("float", Kind::float(-1.0, 1.0, 0.001))
        .field("angle", Kind::angle(1024))
        .field("flat", Kind::vector2(-10.0, 10.0, 0.01))
        .field("direction", Kind::unit_vector(10))
        .field("transform", Kind::Transform { position: metres, rotation_bits: 9 })
        .field("body", Kind::Body { position: metres, rotation_bits: 11, velocity: metres, spin: metres })
        .field("enum", Kind::Enum { names: ["idle", "run", "fly"].map(str::to_owned).to_vec() })
        .field("text", Kind::text(40))
        .field("any", Kind::any(32))
        .build();
    Schema::bare().component(kinds).build().expect("it is in order")
});

/// Several components, one of them for owners alone.
pub static GAME: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let place = Component::builder("place").field("at", Kind::vector3(-512.0, 512.0, 0.01)).build();
    let purse = Component::builder("purse")
        .condition(Condition::OwnerOnly)
        .field("coins", Kind::int(0, 1_000_000))
        .build();
    let note = Component::builder("note").field("text", Kind::text(2_000)).build();
    let builder = Schema::builder().component(place).component(purse).component(note);
    Arc::new(builder.build().expect("it is in order"))
});

/// What a body says of one entity.
#[derive(Debug, PartialEq)]
struct Entry {
    head: EntryHead,
    /// Components, each with what it is.
    rows: Vec<(ComponentId, Vec<i32>, Vec<Bytes>)>,
}

/// A body, once it is decrypted, against rows that its reader has: it is refused, or within bounds; and what was read from it
/// can be written, and read again. The first byte says of which schema it is.
pub fn delta(bytes: &[u8]) {
    let [form, body @ ..] = bytes else { return };
    let schema: &Schema = if form & 1 == 0 { &KINDS } else { &GAME };
    let tables = Tables::new(schema, TickRate::DEFAULT);
    let everything = form & 2 != 0;
    let Some(entries) = read_body(schema, &tables, everything, body) else { return };
    let mut writer = Writer::new();
    writer.begin(&tables, everything);
    for Entry { head, rows } in &entries {
        writer.head(&tables, head);
        for (id, lanes, blobs) in rows {
            let history = history(schema, head, *id);
            writer.component(&tables, *id, &pasts(head, &history), lanes, blobs);
        }
    }
    let mut again = Vec::new();
    writer.finish(&tables, &mut again);
    assert_eq!(read_body(schema, &tables, everything, &again), Some(entries), "what was read is read again");
}

fn read_body(schema: &Schema, tables: &Tables, everything: bool, body: &[u8]) -> Option<Vec<Entry>> {
    let mut reader = Reader::new(tables, body, everything);
    let (mut entries, mut output_bytes) = (Vec::<Entry>::new(), 0);
    while let Some(head) = reader.head().ok()? {
        let mut rows = Vec::new();
        for (id, component) in (0..).map(ComponentId).zip(schema.components()) {
            if head.changed & id.bit() == 0 {
                continue;
            }
            let (mut lanes, mut blobs) = (vec![0; component.lanes()], vec![Bytes::new(); component.blobs()]);
            let history = history(schema, &head, id);
            reader.component(id, &pasts(&head, &history), &mut lanes, &mut blobs).ok()?;
            let spans = component.lane_kinds().iter().map(|lane| lane.span);
            assert!(
                lanes
                    .iter()
                    .zip(spans)
                    .all(|(lane, span)| u32::try_from(*lane).is_ok_and(|lane| lane <= span))
            );
            assert!(blobs.iter().zip(component.blob_bytes_max()).all(|(blob, most)| blob.len() <= most));
            output_bytes += lanes.len() * 4 + blobs.iter().map(Bytes::len).sum::<usize>();
            rows.push((id, lanes, blobs));
        }
        assert!(entries.iter().all(|other| other.head.slot != head.slot), "a slot has one entry");
        entries.push(Entry { head, rows });
        assert!(entries.len() <= PACKET_ENTRIES_MAX && output_bytes <= PACKET_OUTPUT_BYTES_MAX);
    }
    Some(entries)
}

/// Lanes and blobs.
pub type Row = (Vec<i32>, Vec<Bytes>);

/// What a component was at the rows that an entry builds on: always the same for the same slot and age.
pub fn history(schema: &Schema, head: &EntryHead, id: ComponentId) -> Vec<Row> {
    let component = schema.get(id).expect("it is one of the schema's");
    let ages = &head.ages[..usize::from(head.history)];
    ages.iter().map(|age| row_of(component, u32::from(head.slot) << 8 ^ age)).collect()
}

/// The history as the coder wants it.
pub fn pasts<'a>(head: &EntryHead, history: &'a [Row]) -> Vec<Past<'a>> {
    history.iter().zip(head.ages).map(|((lanes, blobs), age)| Past { age, lanes, blobs }).collect()
}

/// A row in order, out of a seed; seeds that are near give rows that are near.
pub fn row_of(component: &Component, seed: u32) -> Row {
    let (_, mut blobs) = component.rest_row();
    let lane = |(at, kind): (u32, &LaneKind)| {
        let wide = u64::from(seed >> 6) * 2_654_435_761 + u64::from(seed & 63) * u64::from(at + 1);
        i32::try_from(wide % (u64::from(kind.span) + 1)).expect("a span is 31 bits wide")
    };
    let lanes: Vec<i32> = (0..).zip(component.lane_kinds()).map(lane).collect();
    for (field, kind) in component.fields().iter().map(|field| &field.kind).enumerate() {
        if let (Kind::Text { .. }, Some(at)) = (kind, component.field_blob(field)) {
            blobs[at] = "so it was ".bytes().cycle().take(seed as usize % 40).collect();
        }
    }
    (again(component, &lanes, &blobs), blobs)
}

/// Packets of a stream as they come from a host, to the hub or to a member: each is refused, or leaves a world that is in order
/// and that can be passed on. The first byte says who reads; each packet has two bytes of its length before it.
pub fn world(bytes: &[u8]) {
    let [form, script @ ..] = bytes else { return };
    let mut script = script;
    let make = if form & 1 == 0 { Replica::new } else { Replica::of_everything };
    let mut replica = make(Arc::clone(&GAME), TickRate::DEFAULT);
    let mut relay = Relay::new(MEMBER);
    while let [high, low, rest @ ..] = script {
        let (packet, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(rest.len()));
        script = rest;
        if replica.apply(Bytes::copy_from_slice(packet)).is_err() {
            return;
        }
        in_order(replica.world());
        relay.pass_on(replica.world());
        // Not more than that: a host that says two things under one label gets what it asked for.
        let is_settled = replica.settled().is_none() || relay.replica.settled().is_some();
        assert!(is_settled, "what is settled is passed on");
    }
}

/// A recording: it is refused with an error that stays, or played. The first byte says whether the rest is the file itself, in
/// pieces of that size, or what its records say, behind right checks: a kind, the gap before it in milliseconds, two bytes of a
/// length, and so many bytes.
pub fn recording(bytes: &[u8]) {
    let [form, script @ ..] = bytes else { return };
    let mut playback = Playback::new();
    if form & 1 == 0 {
        script.chunks(1 + usize::from(form >> 1)).all(|piece| play(&mut playback, piece));
        return;
    }
    let mut writer = recording::Writer::new(&recorded_room());
    let (mut script, mut at) = (script, Instant::ZERO);
    while let [kind, gap, high, low, rest @ ..] = script {
        let (said, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(rest.len()));
        script = rest;
        at += Duration::from_millis((*gap).into());
        writer.write(at, &record(*kind, said));
        if !play(&mut playback, &writer.take()) {
            return;
        }
    }
}

/// What a script says of a record.
fn record(kind: u8, said: &[u8]) -> Record {
    let member = MemberId(u32::from(kind >> 3));
    let number = said.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    match kind % 8 {
        0..=3 => Record::Packet(Bytes::copy_from_slice(said)),
        4 => Record::Mark { tick: Tick(kind.into()), hash: number },
        5 => Record::Came { member, name: String::from_utf8_lossy(said).into_owned() },
        6 => Record::Left { member },
        _ => Record::End(Ended::Stopped),
    }
}

/// Plays what there is; says whether it goes on.
fn play(playback: &mut Playback, piece: &[u8]) -> bool {
    playback.feed(piece);
    loop {
        match playback.step(Instant::from_micros(u64::MAX)) {
            Ok(Some(step)) => assert_eq!(step.at, playback.at()),
            Ok(None) => break,
            Err(error) => {
                playback.feed(piece);
                assert_eq!(playback.step(Instant::ZERO).err(), Some(error), "an error stays");
                assert_eq!(playback.reader().leftover_bytes(), 0, "nothing is kept after one");
                return false;
            }
        }
    }
    let waiting_max = RECORDING_HEAD_BYTES_MAX.max(RECORD_BYTES_MAX) + 64;
    assert!(playback.reader().leftover_bytes() <= waiting_max, "no more waits than a record");
    if let Some(world) = playback.world() {
        in_order(world);
    }
    playback.players().len() <= usize::from(parlor_proto::limits::MEMBERS_MAX_SERVER_RUN)
}

/// The room of recordings that a script makes.
pub fn recorded_room() -> Head {
    Head {
        code: "K7QM".parse().expect("it is a code"),
        app: "tanks".into(),
        environment: String::new(),
        tick_rate: TickRate::DEFAULT,
        schema: Arc::clone(&GAME),
        opened: Instant::from_millis(77),
    }
}

const MEMBER: Viewer = Viewer::Member(MemberId(1));

fn in_order(world: &World) {
    for entity in world.entities() {
        for (id, component) in (0..).map(ComponentId).zip(world.schema().components()) {
            if let Some((lanes, blobs)) = world.read_row(entity, id).expect("it is there") {
                component.check_row(lanes, blobs).expect("what is read is in order");
            }
        }
    }
}

/// Passes a world on, over a network that loses nothing.
struct Relay {
    publisher: Publisher,
    encodings: Encodings,
    replica: Replica,
    now: Instant,
}

impl Relay {
    fn new(viewer: Viewer) -> Self {
        let make = if viewer == Viewer::Everything { Replica::of_everything } else { Replica::new };
        Relay {
            publisher: Publisher::new(viewer, PublisherConfig::new(100_000_000)),
            encodings: Encodings::new(),
            replica: make(Arc::clone(&GAME), TickRate::DEFAULT),
            now: Instant::ZERO,
        }
    }

    fn poll(&mut self, world: &World) -> Option<(Bytes, Sent)> {
        self.now += Duration::from_secs(1);
        self.publisher.poll(world, &mut self.encodings, self.now)
    }

    fn pass_on(&mut self, world: &World) {
        while let Some((packet, sent)) = self.poll(world) {
            self.replica.apply(packet).expect("what is passed on can be read");
            self.publisher.delivered(sent);
        }
    }
}

/// Operations of a [script of baselines](baselines), each a byte, and two more for what and how.
pub mod op {
    /// A new entity.
    pub const SPAWN: u8 = 0;
    /// An entity goes.
    pub const DESPAWN: u8 = 1;
    /// An entity's component is set.
    pub const WRITE: u8 = 2;
    /// An entity's component is taken away.
    pub const REMOVE: u8 = 3;
    /// An entity has another owner.
    pub const OWNER: u8 = 4;
    /// An entity has another audience.
    pub const AUDIENCE: u8 = 5;
    /// A batch is closed, some ticks later.
    pub const COMMIT: u8 = 6;
    /// Packets leave.
    pub const SEND: u8 = 7;
    /// A packet arrives, and its sender hears of it.
    pub const DELIVER: u8 = 8;
    /// A packet arrives, and is still under way.
    pub const REPEAT: u8 = 9;
    /// The sender takes a packet for lost; it may still arrive.
    pub const LOSE: u8 = 10;
    /// A packet is gone that was taken for lost.
    pub const FORGET: u8 = 11;
    /// Another epoch begins.
    pub const TRANSFER: u8 = 12;
    /// A packet is changed on its way, to a reader who is not listened to after that.
    pub const MUTATE: u8 = 13;
    /// The receiver acknowledges what was never sent.
    pub const FORGE: u8 = 14;
    /// How many there are.
    pub const COUNT: u8 = 15;
}

/// A sender, a receiver, and a bad network between them: whatever it does to honest packets, each can be read, and in the end
/// both have the same. The first byte says who receives; then come [operations](op).
pub fn baselines(bytes: &[u8]) {
    let [form, script @ ..] = bytes else { return };
    let viewer = if form & 1 == 0 { MEMBER } else { Viewer::Everything };
    let mut play = Play {
        viewer,
        world: World::new(Arc::clone(&GAME), TickRate::DEFAULT),
        tick: 0,
        entities: Vec::new(),
        relay: Relay::new(viewer),
        under_way: VecDeque::new(),
    };
    for step in script.chunks_exact(3).take(2_000) {
        play.step(step[0] % op::COUNT, usize::from(step[1]), step[2]);
        play.compare();
    }
    play.finish();
}

struct Play {
    viewer: Viewer,
    world: World,
    tick: u32,
    entities: Vec<EntityId>,
    relay: Relay,
    /// Packets, and whether the sender knows what became of them.
    under_way: VecDeque<(Bytes, Sent, bool)>,
}

impl Play {
    fn step(&mut self, operation: u8, what: usize, how: u8) {
        match operation {
            op::SPAWN..=op::AUDIENCE => self.edit(operation, what, how),
            op::COMMIT => {
                self.tick += if how < 240 { 1 + u32::from(how % 4) } else { u32::from(how) };
                self.world.commit(Tick(self.tick)).expect("it is a later tick");
            }
            op::SEND => {
                for _ in 0..=how % 4 {
                    let Some((packet, sent)) = self.relay.poll(&self.world) else { break };
                    self.under_way.push_back((packet, sent, false));
                }
            }
            op::TRANSFER if how < 32 => self.relay.publisher.begin_transfer(),
            op::FORGE => {
                let sent = Sent(u64::MAX >> (how % 64));
                if self.under_way.iter().all(|(_, other, _)| *other != sent) && sent.0 > 1 << 20 {
                    self.relay.publisher.delivered(sent);
                    self.relay.publisher.lost(sent);
                }
            }
            _ if !self.under_way.is_empty() => self.carry(operation, what % self.under_way.len(), how),
            _ => {}
        }
    }

    fn edit(&mut self, operation: u8, what: usize, how: u8) {
        if operation == op::SPAWN {
            if self.entities.len() < 40 {
                self.entities.push(self.world.spawn(owner_of(how)).expect("there is room"));
            }
            return;
        }
        let Some(at) = what.checked_rem(self.entities.len()) else { return };
        let entity = self.entities[at];
        let id = ComponentId(2 + how % 3);
        let done = match operation {
            op::DESPAWN => {
                self.entities.swap_remove(at);
                self.world.despawn(entity)
            }
            op::WRITE => {
                let component = GAME.get(id).expect("it is one of the schema's");
                let (lanes, blobs) = row_of(component, u32::from(how) << 4 | u32::from(how) >> 2);
                self.world.write_row(entity, id, &lanes, &blobs).map(drop)
            }
            op::REMOVE => self.world.remove_row(entity, id).map(drop),
            op::OWNER => self.world.set_owner(entity, owner_of(how)),
            _ => {
                let members = (0..3).filter(|bit| how >> bit & 1 == 1).map(MemberId);
                let audience = if how & 8 == 0 { Audience::All } else { Audience::members(members) };
                self.world.set_audience(entity, audience)
            }
        };
        done.expect("the entity is there, and the row in order");
    }

    fn carry(&mut self, operation: u8, at: usize, how: u8) {
        let (packet, sent, is_known) = self.under_way[at].clone();
        match operation {
            op::DELIVER | op::REPEAT => {
                self.relay.replica.apply(packet).expect("an honest packet can be read");
            }
            op::MUTATE => {
                let mut packet = packet.to_vec();
                let place = usize::from(how) % packet.len();
                packet[place] ^= 1 << (how % 8);
                let mut other = self.relay.replica.clone();
                if other.apply(packet.into()).is_ok() {
                    in_order(other.world());
                }
            }
            _ => {}
        }
        match operation {
            op::DELIVER if !is_known => self.relay.publisher.delivered(sent),
            op::LOSE if !is_known => {
                self.relay.publisher.lost(sent);
                self.under_way[at].2 = true;
            }
            _ => {}
        }
        if operation == op::DELIVER || (operation == op::FORGET && is_known) {
            self.under_way.remove(at);
        }
    }

    fn compare(&self) {
        if self.relay.replica.settled().is_some_and(|tick| self.world.tick() == Some(tick))
            && !self.world.is_dirty()
        {
            let held = self.relay.replica.world().hash(self.viewer);
            assert_eq!(held, self.world.hash(self.viewer), "who is settled has what the sender has");
        }
    }

    fn finish(mut self) {
        while !self.under_way.is_empty() {
            self.carry(op::DELIVER, 0, 0);
        }
        self.tick += 1;
        self.world.spawn(None).expect("there is room");
        self.world.commit(Tick(self.tick)).expect("it is a later tick");
        self.relay.pass_on(&self.world);
        assert_eq!(self.relay.replica.settled(), Some(Tick(self.tick)), "all there is has come");
        self.compare();
    }
}

fn owner_of(how: u8) -> Option<MemberId> {
    match how % 3 {
        0 => None,
        id => Some(MemberId(id.into())),
    }
}
