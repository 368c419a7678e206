//! Publishes state like a host's client, without a game.

use bytes::Bytes;
use parlor_proto::{Instant, Tick, TickRate};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::keyed::Keys;
use parlor_sync::schema::Schema;
use parlor_sync::value::Value;
use parlor_sync::world::{Encodings, Publisher, PublisherConfig, World};
use std::sync::Arc;
use std::time::Duration;

/// Writes keyed state and makes packets of it, for tests that act as a host. It assumes that every packet
/// arrives.
#[derive(Debug)]
pub struct Author {
    world: World,
    keys: Keys,
    publisher: Publisher,
    tick: Tick,
    now: Instant,
}

impl Author {
    /// An author that has written nothing.
    pub fn new() -> Self {
        let unbounded =
            PublisherConfig { in_flight_bytes_max: usize::MAX, ..PublisherConfig::new(1024 * 1024 * 1024) };
        Author {
            world: World::new(Arc::new(Schema::default()), TickRate::DEFAULT),
            keys: Keys::new(),
            publisher: Publisher::new(Viewer::Everything, unbounded),
            tick: Tick(0),
            now: Instant::ZERO,
        }
    }

    /// Sets a key.
    ///
    /// # Panics
    /// If the state exceeds its bounds.
    pub fn set(&mut self, key: &str, value: &Value, audience: Audience) {
        self.keys.set(&mut self.world, key, value, audience).expect("it is within the bounds");
    }

    /// Ends a step. Returns the packets with its changes.
    ///
    /// # Panics
    /// If the world has no more ticks.
    pub fn packets(&mut self) -> Vec<Bytes> {
        self.tick = self.tick.next();
        self.now += Duration::from_secs(1);
        self.keys.close(&mut self.world).expect("the keys are its own");
        if self.world.is_dirty() {
            self.world.commit(self.tick).expect("ticks ascend");
        }
        let mut packets = Vec::new();
        while let Some((packet, sent)) = self.publisher.poll(&self.world, &mut Encodings::default(), self.now)
        {
            self.publisher.delivered(sent);
            packets.push(packet);
        }
        packets
    }
}

impl Default for Author {
    fn default() -> Self {
        Self::new()
    }
}
