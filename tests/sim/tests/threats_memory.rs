//! Threats that show in memory use.
//!
//! The allocator counts for the whole process, so this file has one test.

#[path = "threats/world.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod world;

use bytes::Bytes;
use parlor_hub::HubEvent;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::{ChannelId, ConnectionId, MemberId, channel};
use parlor_sim::Author;
use parlor_sync::audience::Audience;
use parlor_sync::value::Value;
use peak_alloc::PeakAlloc;
use std::time::Duration;
use world::{Reading, World};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const ROOMS: usize = 7;
const GUESTS: usize = 15;
const KIB: usize = 1024;
/// How often a host changes its state, and what of.
const TURNS: usize = 6;
const KEYS: usize = 3;
const VALUE_BYTES: usize = 15_000;

/// Rooms whose guests all stop reading, and the memory in use before.
struct Stage {
    world: World,
    rooms: Vec<Vec<ConnectionId>>,
    authors: Vec<Author>,
    before: usize,
    turn: u32,
}

impl Stage {
    fn new() -> Self {
        let mut world = World::new(1);
        let rooms: Vec<Vec<ConnectionId>> = (0..ROOMS).map(|_| world.room(GUESTS)).collect();
        for _ in 0..30 {
            world.pass(Duration::from_millis(100));
        }
        rooms.iter().flatten().for_each(|member| drop(world.take_messages(*member)));
        let authors = (0..ROOMS).map(|_| Author::new()).collect();
        rooms.iter().flat_map(|room| &room[1..]).for_each(|guest| world.read(*guest, Reading::Never));
        Stage { world, rooms, authors, before: ALLOCATOR.current_usage(), turn: 0 }
    }

    /// Each host sends a separate message to each of its guests.
    fn say(&mut self, lane: ChannelId, bytes: usize) {
        for room in self.rooms.clone() {
            for guest in 1..=GUESTS {
                let to = Recipient::Member(MemberId(u32::try_from(guest).expect("it is small")));
                let upward = Upward { to, stamp: false, payload: Bytes::from(vec![7; bytes]) };
                let message = Outgoing::new(lane, upward.encode());
                if self.world.say(room[0], message.clone()).is_err() {
                    // Its own queue is full until the hub has acknowledged the message.
                    self.world.settle();
                    self.world.say(room[0], message).expect("there is room in its queue");
                }
            }
        }
    }

    fn publish(&mut self) {
        self.turn += 1;
        for (at, author) in self.authors.iter_mut().enumerate() {
            for key in 0..KEYS {
                let value = Value::Bytes(vec![self.turn.to_le_bytes()[0]; VALUE_BYTES].into());
                author.set(&format!("key/{key}"), &value, Audience::All);
            }
            for payload in author.packets() {
                let _ = self.world.say(self.rooms[at][0], Outgoing::new(channel::STATE, payload));
            }
        }
    }

    /// Lets time pass. Meanwhile no guest may cost more than a quarter of a mebibyte.
    fn pass(&mut self, ms: u64, what: &str) {
        self.world.pass(Duration::from_millis(ms));
        self.rooms.iter().for_each(|room| drop(self.world.take_messages(room[0])));
        let held = ALLOCATOR.current_usage().saturating_sub(self.before);
        let each = held / (ROOMS * GUESTS);
        assert!(each <= 256 * KIB, "{what}: {each} bytes are held for each that has stopped reading");
    }

    fn still_in(&self) -> usize {
        self.rooms.iter().flat_map(|room| &room[1..]).filter(|guest| self.world.is_in(**guest)).count()
    }
}

#[test]
fn threat_20_a_hundred_that_stop_reading_cost_a_quarter_mebibyte_each() {
    for large in [60_000, 9_000, 1] {
        let mut stage = Stage::new();
        for _ in 0..TURNS {
            stage.publish();
            stage.say(channel::MESSAGE_UNRELIABLE, large);
            stage.say(channel::MESSAGE_SEQUENCED, large);
            stage.pass(500, "unreliable messages");
        }
        assert_eq!(stage.still_in(), ROOMS * GUESTS, "what may be lost costs nobody its seat");
        let held = ALLOCATOR.current_usage().saturating_sub(stage.before);
        assert!(held > ROOMS * GUESTS * 32 * KIB, "something waits for them: {held} bytes in all");
        // As fast as a host may, so that the host is not at fault.
        let pause_ms = (large as u64 / 200).max(20);
        for turn in 0..600 {
            stage.say(channel::MESSAGE_ORDERED, large);
            if turn % 8 == 0 {
                stage.say(channel::MESSAGE_UNRELIABLE, large);
            }
            if large == 1 {
                (0..12).for_each(|_| stage.say(channel::MESSAGE_ORDERED, large));
            }
            stage.pass(pause_ms, "reliable messages");
            if stage.still_in() == 0 {
                break;
            }
        }
        assert_eq!(stage.still_in(), 0, "what must not be lost does");
        let mut too_slow = 0;
        for hub_event in &stage.world.hub_events {
            if let HubEvent::Left { reason, .. } = hub_event {
                assert_eq!(*reason, LeaveReason::TooSlow, "with messages of {large} bytes, {too_slow} were");
                too_slow += 1;
            }
        }
        assert_eq!(too_slow, ROOMS * GUESTS);
        assert!(stage.rooms.iter().all(|room| stage.world.is_in(room[0])), "the hosts are not at fault");
        stage.pass(1_000, "they are gone");
        let held = ALLOCATOR.current_usage().saturating_sub(stage.before);
        // Each room, and its author here, keeps the state of its last steps.
        let states = ROOMS * 2 * TURNS * KEYS * VALUE_BYTES;
        assert!(held <= ROOMS * GUESTS * 16 * KIB + states, "{held} bytes are left of them");
    }
}
