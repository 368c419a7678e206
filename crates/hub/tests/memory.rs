//! Memory of room state, as counted by the hub and by the allocator. A separate test binary, because it
//! counts the allocations of the whole process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_hub::room::{Input, Room, Setup};
use parlor_hub::{Config, Hub, Origin, Output, StateMemory};
use parlor_proto::session::{DeliveryId, Event, Outgoing, Rejection, Session};
use parlor_proto::wire::control::{PlayerData, ToHub};
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::wire::handshake::{Hello, Intent, Refusal, RoomKind, RoomSettings};
use parlor_proto::{
    ChannelId, ChannelTable, CloseReason, ConnectionId, EntityId, Epoch, Instant, LinkKind, MemberId, RoomId,
    Tick, TickRate, channel, limits,
};
use parlor_sync::audience::Viewer;
use parlor_sync::schema::{Component, Kind, Schema};
use parlor_sync::world::{Encodings, Publisher, PublisherConfig, World};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One test at a time, so that each counts only its own allocations.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes allocated at this moment.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

const LANES: usize = 32;
const ENTITIES: usize = 250;

/// Limits for all rooms of an address and in total. One room may hold less than its host publishes within its
/// history.
const MEMORY: StateMemory = StateMemory { room: 2 << 20, origin: 5 << 20, all: 9 << 20 };

fn schema() -> Arc<Schema> {
    let fields = (0..LANES).fold(Component::builder("it"), |component, at| {
        component.field(&format!("field {at}"), Kind::int(0, 1_000_000))
    });
    Arc::new(Schema::builder().component(fields.build()).build().unwrap())
}

fn settings(schema: bytes::Bytes) -> RoomSettings {
    RoomSettings { schema, ..RoomSettings::new(RoomKind::PlayerHosted, 4) }
}

/// A host that publishes plain state, all of which changes at each step.
struct Host {
    session: Session,
    world: World,
    entities: Vec<EntityId>,
    publisher: Publisher,
    encodings: Encodings,
    tick: u32,
    end: Option<Event>,
}

struct House {
    hub: Hub,
    now: Instant,
    next: u64,
    hosts: BTreeMap<ConnectionId, Host>,
}

impl House {
    fn new(memory: StateMemory) -> Self {
        let hub = Hub::new(Config { memory, ..Config::new([3; 32]) });
        House { hub, now: Instant::from_millis(1_000), next: 0, hosts: BTreeMap::new() }
    }

    /// Opens a room from an address.
    fn open(&mut self, origin: Origin) -> ConnectionId {
        let schema = schema();
        let settings = settings(schema.encode());
        let connection = ConnectionId(self.next);
        self.next += 1;
        self.hub.handle_connected(connection, LinkKind::WebSocket, origin, self.now);
        let hello = Hello { name: "eve".into(), ..Hello::new("tanks", Intent::Create(settings)) };
        let mut world = World::new(schema, TickRate::DEFAULT);
        let host = Host {
            session: Session::client(hello, LinkKind::WebSocket, self.now),
            entities: (0..ENTITIES).map(|_| world.spawn(None).unwrap()).collect(),
            world,
            publisher: Publisher::new(Viewer::Everything, PublisherConfig::within_process()),
            encodings: Encodings::new(),
            tick: 0,
            end: None,
        };
        self.hosts.insert(connection, host);
        self.settle();
        connection
    }

    /// Every host changes its whole state.
    fn publish(&mut self) {
        self.now += Duration::from_millis(50);
        for host in self.hosts.values_mut().filter(|host| host.end.is_none()) {
            host.publish(self.now);
        }
        self.settle();
    }

    fn settle(&mut self) {
        let sessions = self.hosts.iter_mut().map(|(connection, host)| (*connection, &mut host.session));
        exchange(&mut self.hub, sessions.collect(), self.now);
        for host in self.hosts.values_mut() {
            while let Some(event) = host.session.poll_event() {
                if matches!(event, Event::Closed(_) | Event::Rejected(_)) {
                    host.end = Some(event);
                }
            }
        }
    }

    /// Breaks a host's connection. Its room is kept for a while, in case it returns.
    fn hang_up(&mut self, connection: ConnectionId) {
        self.hosts.remove(&connection);
        self.hub.handle_disconnected(connection, self.now);
        self.settle();
    }

    fn bytes(&self) -> usize {
        self.hub.stats().state_bytes
    }
}

/// Carries packets until there are none.
fn exchange(hub: &mut Hub, mut sessions: BTreeMap<ConnectionId, &mut Session>, now: Instant) {
    loop {
        let mut is_quiet = true;
        for (connection, session) in &mut sessions {
            while let Some(packet) = session.poll_packet(now) {
                is_quiet = false;
                hub.handle_packet(*connection, packet, now);
            }
        }
        hub.handle_timeout(now);
        hub.flush(now);
        while let Some(output) = hub.poll_output() {
            is_quiet = false;
            if let Output::Packet { connection, packet } = output
                && let Some(session) = sessions.get_mut(&connection)
            {
                session.handle_packet(packet, now).expect("the hub is honest");
            }
        }
        if is_quiet {
            return;
        }
    }
}

impl Host {
    fn publish(&mut self, now: Instant) {
        self.tick += 1;
        let id = self.world.schema().find("it").unwrap();
        for entity in &self.entities {
            self.world.write_row(*entity, id, &[self.tick.cast_signed(); LANES], &[]).unwrap();
        }
        self.world.commit(Tick(self.tick)).unwrap();
        while let Some((payload, sent)) = self.publisher.poll(&self.world, &mut self.encodings, now) {
            self.publisher.delivered(sent);
            let delivery_id = Some(DeliveryId::of_state(sent.0));
            if self.session.send(Outgoing { channel: channel::STATE, key: 0, payload, delivery_id }).is_err()
            {
                return;
            }
        }
    }
}

#[test]
fn threat_45_what_a_room_is_counted_for_is_what_it_takes() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut house = House::new(StateMemory::default());
    house.open(Origin(1 << 16));
    let (mut host_before, mut before) = (0, 0);
    for step in 0..160 {
        if step == 10 {
            host_before = house.hosts.values().map(|host| host.world.memory_bytes()).sum();
            before = allocated() - house.bytes();
        }
        house.publish();
    }
    let host: usize = house.hosts.values().map(|host| host.world.memory_bytes()).sum();
    let taken = allocated() - before - (host - host_before);
    let counted = house.bytes();
    println!("{counted} bytes are counted, {taken} are taken");
    assert!(counted > 4 << 20, "{counted}");
    assert!(taken < counted + counted / 8, "{taken} of {counted}");
    assert!(counted < taken + taken / 3, "{taken} of {counted}");
}

#[test]
fn threat_45_hosts_that_publish_at_the_limit_and_come_again_take_what_all_may_and_give_it_back() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut house = House::new(MEMORY);
    let start = allocated();
    let addresses = [1, 2, 3].map(|number| Origin(number << 16));
    let (mut too_large, mut for_memory, mut put_off, mut full) = (0, 0, 0, 0);
    // Half of the hosts publish until they are removed. The others disconnect and abandon their rooms.
    for round in 0..6_u32 {
        let rooms = addresses.iter().flat_map(|origin| [*origin; 3]);
        let mut hosts: Vec<ConnectionId> = rooms.map(|origin| house.open(origin)).collect();
        let steps = if round % 2 == 0 { 60 } else { 30 };
        for _ in 0..steps {
            house.publish();
            // A packet may take a room beyond a limit, and then a room ends.
            assert!(house.bytes() <= MEMORY.all, "{} bytes", house.bytes());
            let worlds: usize = house.hosts.values().map(|host| host.world.memory_bytes()).sum();
            let taken = allocated().saturating_sub(start + worlds);
            assert!(taken < MEMORY.all + (8 << 20), "{taken} bytes are taken in all");
        }
        for connection in hosts.drain(..) {
            match house.hosts[&connection].end.as_ref() {
                Some(Event::Closed(CloseReason::Misbehaved { detail })) => {
                    assert!(detail.contains("more memory than one room may"), "{detail}");
                    too_large += 1;
                }
                Some(Event::Closed(CloseReason::RoomEnded { reason })) => {
                    assert!(reason.contains("take all the memory that"), "{reason}");
                    for_memory += 1;
                }
                Some(Event::Rejected(Rejection::RetryAfter(retry))) => {
                    assert!(retry.detail.contains("opened from your network"), "{}", retry.detail);
                    put_off += 1;
                }
                Some(Event::Rejected(Rejection::Refused(Refusal::ServerFull))) => full += 1,
                None => {}
                other => panic!("{other:?}"),
            }
            house.hang_up(connection);
        }
    }
    println!("{too_large} rooms too large, {for_memory} ended, {put_off} put off, {full} found it full");
    assert!(too_large > 0 && for_memory > 0 && put_off + full > 0, "every bound was reached");

    // An uninvolved address can open a room once the abandoned ones end.
    house.now += Duration::from_secs(60);
    house.settle();
    assert_eq!((house.hub.room_count(), house.bytes()), (0, 0), "everything is given back");
    let left = allocated().saturating_sub(start);
    assert!(left < 1 << 20, "{left} bytes are still there");
    let honest = house.open(Origin(9 << 16));
    house.publish();
    assert!(house.hosts[&honest].end.is_none());
}

#[test]
fn threat_45_a_room_within_its_bound_stays_while_another_address_takes_all_there_is() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut house = House::new(MEMORY);
    let honest = house.open(Origin(9 << 16));
    (0..5).for_each(|_| house.publish());
    let mut greedy = Vec::new();
    for round in 0..12_u64 {
        let origin = Origin((1 + round % 4) << 16);
        greedy.push(house.open(origin));
        for _ in 0..8 {
            // The honest host continues with its state.
            house.now += Duration::from_millis(50);
            for host in &greedy {
                let host = house.hosts.get_mut(host).unwrap();
                if host.end.is_none() {
                    host.publish(house.now);
                }
            }
            house.settle();
        }
    }
    house.publish();
    assert!(house.hosts[&honest].end.is_none(), "{:?}", house.hosts[&honest].end);
    let ended = greedy.iter().filter(|host| house.hosts[host].end.is_some()).count();
    assert!(ended > 3, "{ended} of those who took too much are gone");
}

/// A room with a host and a guest.
fn room() -> Room {
    let setup = Setup {
        id: RoomId(1),
        code: "K7QM".parse().unwrap(),
        app: "tanks".into(),
        environment: String::new(),
        settings: settings(bytes::Bytes::new()),
        channels: ChannelTable::default(),
        opened: Instant::ZERO,
        state_bytes_per_second: 192 * 1024,
        spectators: 0,
    };
    let mut room = Room::new(setup).unwrap();
    for name in ["ada", "bob"] {
        let join = Input::Join { name: name.into(), user: None, link: LinkKind::WebSocket, spectates: false };
        tell(&mut room, join, Instant::ZERO);
    }
    room
}

fn tell(room: &mut Room, input: Input, now: Instant) {
    room.handle(input, now).unwrap();
    while room.poll_output().is_some() {}
}

/// A small message of the guest, in a large packet.
fn in_large_packet(channel: ChannelId, message: &[u8]) -> Input {
    let mut packet = message.to_vec();
    packet.resize(limits::STREAM_PACKET_BYTES_MAX, 0);
    let payload = bytes::Bytes::from(packet).slice(..message.len());
    Input::Message { from: MemberId(1), channel, key: 0, payload, epoch: Epoch(0) }
}

#[test]
fn threat_45_player_data_is_counted_and_keeps_no_packet() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut room, start) = (room(), allocated());
    let before = room.memory_bytes();
    let set = |room: &mut Room, number: usize, value: Option<usize>| {
        let value = value.map(|bytes| vec![7; bytes].into());
        let data = PlayerData { member: MemberId(1), key: format!("key {number:02}"), value };
        let now = Instant::from_millis(number as u64 * 1_000);
        tell(room, in_large_packet(channel::CONTROL, &ToHub::SetData(data).encode()), now);
    };
    for number in 0..limits::PLAYER_DATA_KEYS_MAX {
        set(&mut room, number, Some(1));
    }
    let taken = allocated().saturating_sub(start);
    assert!(taken < 64 * 1024, "{taken} bytes are taken by 32 values of a byte");
    for number in 0..limits::PLAYER_DATA_KEYS_MAX {
        set(&mut room, number, Some(200));
    }
    let (counted, taken) = (room.memory_bytes() - before, allocated().saturating_sub(start));
    assert!(counted > 32 * 200, "{counted}");
    assert!(taken < counted + 8 * 1024, "{taken} of {counted}");
    for number in 0..limits::PLAYER_DATA_KEYS_MAX / 2 {
        set(&mut room, number, None);
    }
    assert_eq!(room.memory_bytes() - before, counted / 2);
    let leave = parlor_proto::wire::control::LeaveReason::Left;
    tell(&mut room, Input::Leave { member: MemberId(1), reason: leave }, Instant::from_millis(90_000));
    assert!(room.memory_bytes() < before, "the data goes with its member");
}

#[test]
fn threat_45_messages_that_wait_for_a_budget_keep_no_packet() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut room, start) = (room(), allocated());
    let says = |room: &mut Room, bytes: usize| {
        let upward = Upward { to: Recipient::Others, stamp: false, payload: vec![7; bytes].into() };
        tell(room, in_large_packet(channel::MESSAGE_ORDERED, &upward.encode()), Instant::ZERO);
    };
    // The receiver's budget is used up, and the rest waits.
    (0..2).for_each(|_| says(&mut room, 60_000));
    (0..400).for_each(|_| says(&mut room, 1));
    assert!(room.holds_back(MemberId(1)), "they wait");
    let taken = allocated().saturating_sub(start);
    assert!(taken < 1 << 20, "{taken} bytes are taken by 60 kB and 400 messages of a byte");
}

/// Members of a room that say nothing.
const IDLE_MEMBERS: u64 = 8;
/// Rooms of them. With more, the hub's maps are about as full as with these.
const IDLE_ROOMS: u64 = 100;
/// Maximum bytes that a hub allocates for one of them, with its share of the room.
const IDLE_BYTES_MAX: usize = 5 * 1024;

#[test]
fn a_member_that_says_nothing_takes_few_bytes() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut hub, mut now) = (Hub::new(Config::new([3; 32])), Instant::from_millis(1_000));
    let start = allocated();
    let mut sessions = BTreeMap::new();
    for room in 0..IDLE_ROOMS {
        let mut code = None;
        for member in 0..IDLE_MEMBERS {
            let intent = match code {
                None => Intent::Create(RoomSettings { max_players: 16, ..settings(bytes::Bytes::new()) }),
                Some(code) => Intent::Join { code, secret: None },
            };
            let connection = ConnectionId(room * IDLE_MEMBERS + member);
            hub.handle_connected(connection, LinkKind::Quic, Origin::LOCAL, now);
            let mut session = Session::client(Hello::new("tanks", intent), LinkKind::Quic, now);
            exchange(&mut hub, [(connection, &mut session)].into(), now);
            let Some(Event::Welcome(welcome)) = session.poll_event() else { panic!("it is welcome") };
            code = Some(welcome.code);
            sessions.insert(connection, session);
        }
    }
    for _ in 0..400 {
        now += Duration::from_millis(100);
        for session in sessions.values_mut() {
            session.handle_timeout(now);
            while session.poll_event().is_some() {}
        }
        exchange(&mut hub, sessions.iter_mut().map(|(id, session)| (*id, session)).collect(), now);
    }
    drop(sessions);
    let members = usize::try_from(IDLE_ROOMS * IDLE_MEMBERS).unwrap();
    assert_eq!(hub.stats().connections, members, "they are there");
    let each = (allocated() - start) / members;
    assert!(each <= IDLE_BYTES_MAX, "{each} bytes");
}
