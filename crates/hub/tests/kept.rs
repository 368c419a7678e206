//! Seats that are kept for lost connections: bounded per address and in total.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_hub::{Config, Hub, KeptSeats, Origin, Output, StateMemory};
use parlor_proto::session::{Event, Outgoing, Session};
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::wire::handshake::{Hello, Intent, RoomKind, RoomSettings};
use parlor_proto::{ConnectionId, Instant, LinkKind, RoomCode, channel};
use std::collections::BTreeMap;
use std::time::Duration;

/// A hub with matches, and their members.
struct House {
    hub: Hub,
    now: Instant,
    next: u64,
    members: BTreeMap<ConnectionId, Session>,
    /// The match that each address has opened.
    codes: BTreeMap<Origin, RoomCode>,
}

const HONEST: Origin = Origin(99 << 16);

impl House {
    fn new(kept: KeptSeats, memory: StateMemory) -> Self {
        let hub = Hub::new(Config { kept, memory, ..Config::new([3; 32]) });
        let now = Instant::from_millis(1_000);
        House { hub, now, next: 0, members: BTreeMap::new(), codes: BTreeMap::new() }
    }

    /// Joins the address's own match, and opens it if there is none.
    fn enter(&mut self, origin: Origin) -> ConnectionId {
        self.enter_match_of(origin, origin)
    }

    fn enter_match_of(&mut self, opener: Origin, origin: Origin) -> ConnectionId {
        let settings = RoomSettings::new(RoomKind::Match, 256);
        let intent = match self.codes.get(&opener).copied() {
            Some(code) => Intent::Join { code, secret: None },
            None => Intent::Create(settings),
        };
        let connection = ConnectionId(self.next);
        self.next += 1;
        self.hub.handle_connected(connection, LinkKind::WebSocket, origin, self.now);
        let session = Session::client(Hello::new("tanks", intent), LinkKind::WebSocket, self.now);
        self.members.insert(connection, session);
        if let Some(code) = self.settle() {
            self.codes.insert(opener, code);
        }
        assert!(self.members[&connection].is_open());
        connection
    }

    fn hang_up(&mut self, connection: ConnectionId) {
        self.members.remove(&connection);
        self.hub.handle_disconnected(connection, self.now);
        self.settle();
    }

    /// Lets a moment pass, in which everything arrives. Returns the code of the match that somebody entered.
    fn settle(&mut self) -> Option<RoomCode> {
        let mut code = None;
        self.now += Duration::from_millis(5);
        loop {
            let mut is_quiet = true;
            for (connection, session) in &mut self.members {
                if session.poll_timeout().is_some_and(|at| at <= self.now) {
                    session.handle_timeout(self.now);
                }
                while let Some(packet) = session.poll_packet(self.now) {
                    is_quiet = false;
                    self.hub.handle_packet(*connection, packet, self.now);
                }
                while let Some(event) = session.poll_event() {
                    match event {
                        Event::Welcome(welcome) => code = Some(welcome.code),
                        Event::Closed(reason) => panic!("{reason:?}"),
                        _ => {}
                    }
                }
            }
            self.hub.handle_timeout(self.now);
            self.hub.flush(self.now);
            while let Some(output) = self.hub.poll_output() {
                if let Output::Packet { connection, packet } = output
                    && let Some(session) = self.members.get_mut(&connection)
                {
                    is_quiet = false;
                    session.handle_packet(packet, self.now).unwrap();
                }
            }
            if is_quiet {
                return code;
            }
        }
    }

    /// The members of an address's match whose seats are kept.
    fn kept(&self, opener: Origin) -> Vec<u32> {
        let members = self.hub.room_details(self.codes[&opener]).unwrap().members;
        members.iter().filter(|member| !member.connected).map(|member| member.id.0).collect()
    }

    fn says(&mut self, who: ConnectionId, bytes: usize) {
        let payload = MatchData { op: 1, payload: vec![7; bytes].into() }.encode();
        let upward = Upward { to: Recipient::Others, stamp: false, payload };
        let session = self.members.get_mut(&who).unwrap();
        session.send(Outgoing::new(channel::MATCH_DATA, upward.encode())).unwrap();
        self.settle();
    }
}

fn numbers(range: core::ops::Range<u32>) -> Vec<u32> {
    range.collect()
}

#[test]
fn threat_45_seats_kept_for_one_address_are_so_many_and_the_newest() {
    let mut house = House::new(KeptSeats { origin: 20, all: 1_000 }, StateMemory::default());
    let (host, honest) = (house.enter(HONEST), house.enter(HONEST));
    house.hang_up(honest);
    let greedy = Origin(1 << 16);
    for number in 1..=1_000 {
        let connection = house.enter(greedy);
        house.hang_up(connection);
        assert_eq!(house.kept(greedy), numbers(number.max(20) - 20..number));
        assert_eq!(house.kept(HONEST), [1], "the seat of another address stays");
    }
    assert_eq!((house.hub.stats().seats_freed_early, house.hub.connection_count()), (980, 1));
    // The rest goes with the grace period.
    for _ in 0..30 {
        house.now += Duration::from_secs(1);
        house.settle();
    }
    assert_eq!((house.hub.room_count(), house.kept(HONEST)), (1, vec![]));
    assert!(house.members[&host].is_open());
}

#[test]
fn threat_45_seats_kept_for_all_addresses_are_so_many_and_the_largest_address_pays() {
    let mut house = House::new(KeptSeats { origin: 40, all: 60 }, StateMemory::default());
    house.enter(HONEST);
    for _ in 0..5 {
        let honest = house.enter(HONEST);
        house.hang_up(honest);
    }
    let greedy = [1, 2, 3, 4].map(|number| Origin(number << 16));
    for number in 0..400 {
        let connection = house.enter(greedy[number % 4]);
        house.hang_up(connection);
        let opened = greedy.iter().filter(|origin| house.codes.contains_key(origin));
        let kept = 5 + opened.map(|origin| house.kept(*origin).len()).sum::<usize>();
        assert_eq!(kept, (6 + number).min(60));
        assert_eq!(house.kept(HONEST), numbers(1..6), "few are kept for that address");
    }
}

#[test]
fn threat_45_sessions_without_a_connection_have_a_bound_in_bytes() {
    const MIB: usize = 1 << 20;
    // A quarter is for kept sessions: 2 MiB of an address, 4 MiB of all.
    let memory = StateMemory { room: 8 * MIB, origin: 8 * MIB, all: 16 * MIB };
    let mut house = House::new(KeptSeats { origin: 1_000, all: 1_000 }, memory);
    let (speaker, honest) = (house.enter(HONEST), house.enter(HONEST));
    house.hang_up(honest);
    for number in 0..45 {
        let greedy = house.enter_match_of(HONEST, Origin((1 + number % 3) << 16));
        house.hang_up(greedy);
    }
    assert_eq!(house.kept(HONEST), numbers(1..47), "without messages they fit");
    let mut most = 0;
    for _ in 0..6 {
        house.now += Duration::from_millis(200);
        house.says(speaker, 20_000);
        let bytes = house.hub.stats().state_bytes;
        most = most.max(bytes);
        // The room itself takes less than 1 MiB.
        assert!(bytes <= 5 * MIB, "{bytes} bytes");
    }
    assert!(most > 3 * MIB, "{most}: the bound was reached");
    let kept = house.kept(HONEST);
    assert!(kept.len() * 6 * 20_000 <= 4 * MIB && kept.len() > 20, "{kept:?}");
    assert_eq!(kept[0], 1, "the honest seat is the oldest, and its address has the least");
}
