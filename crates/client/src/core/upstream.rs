//! A stream of packets of a world, on its way up to the hub.

use super::confirmed::Confirmed;
use bytes::Bytes;
use parlor_proto::session::{Outgoing, Session};
use parlor_proto::{Epoch, Instant, Tick};
use parlor_sync::audience::Viewer;
use parlor_sync::world::{Diagnostics, Encodings, Publisher, PublisherConfig, Sent, World};
use std::time::Duration;

/// Bytes that may wait for the connection before more packets are made: what waits grows old.
const WAITING_BYTES_MAX: usize = 16 * 1024;

/// The part of what a path carries that is left for headers and for what else is said.
const HEADERS_PART: u32 = 16;

/// Packets of one stream that may be sent under one epoch, as a power of two; a tag has room for 16 bits of epochs beside.
const NUMBERS_OF_EPOCH_BITS: u32 = 24;

/// The way to the hub.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// Bytes per second that it carries, if that is known.
    pub(super) carries: Option<u32>,
    /// Whether the hub is in the same process, so that bytes cost nothing.
    pub(super) is_inside: bool,
}

/// What there is room for of a state on a path that carries so many bytes per second.
pub(super) fn state_part(carries: u32) -> u32 {
    carries - carries / HEADERS_PART
}

/// Publishes a world that this process writes. The hub sees everything, so that it can give every member its view.
#[derive(Debug)]
pub(super) struct Upstream {
    publisher: Publisher,
    /// Bytes per second at most, whatever the path carries.
    most: u32,
    encodings: Encodings,
    /// How long it takes until what was held back is tried again.
    retry: Duration,
    /// When more may be sent that was held back.
    due: Option<Instant>,
    confirmed: Confirmed,
    sent: u64,
}

impl Upstream {
    pub(super) fn new(bytes_per_second: u32, retry: Duration) -> Self {
        Upstream {
            publisher: Publisher::new(Viewer::Everything, PublisherConfig::new(bytes_per_second)),
            most: bytes_per_second,
            encodings: Encodings::default(),
            retry,
            due: None,
            confirmed: Confirmed::default(),
            sent: 0,
        }
    }

    /// Of a world that this process goes on with under `epoch`, because another one is gone: the hub has all of it as it is.
    pub(super) fn of_successor(world: &World, bytes_per_second: u32, retry: Duration, epoch: Epoch) -> Self {
        let config = PublisherConfig::new(bytes_per_second);
        // Late fates of what this process sent when it was the host before have lower numbers.
        let first = u64::from(epoch.0 & 0xffff) << NUMBERS_OF_EPOCH_BITS;
        let publisher = Publisher::of_successor(world, config).numbered_from(first);
        Upstream { publisher, ..Upstream::new(bytes_per_second, retry) }
    }

    /// Sends the hub what it does not have yet, as messages that `wrap` makes of packets: as much as there is room for on its way.
    pub(super) fn publish(
        &mut self,
        world: &World,
        session: &mut Session,
        way: Way,
        now: Instant,
        mut wrap: impl FnMut(Bytes, Sent) -> Outgoing,
    ) {
        let rate = || way.carries.map_or(self.most, |carries| state_part(carries).min(self.most));
        let config =
            if way.is_inside { PublisherConfig::within_process() } else { PublisherConfig::new(rate()) };
        if self.publisher.config() != config {
            self.publisher.set_config(config);
        }
        while session.unreliable_waiting_bytes() < WAITING_BYTES_MAX {
            let Some((packet, sent)) = self.publisher.poll(world, &mut self.encodings, now) else { break };
            // It fails only when the session is over, and then nothing is owed to anybody.
            if session.send(wrap(packet, sent)).is_err() {
                return;
            }
            if let Some(tick) = world.tick() {
                self.confirmed.sent(sent.0, tick, self.publisher.told_floor());
            }
            self.sent += 1;
        }
        self.due = self.publisher.is_due(world).then(|| now + self.retry);
    }

    /// When [`publish`](Self::publish) may have more to send.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Lets time pass. What is due waits for the next [`publish`](Self::publish), which comes when the connection takes packets.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.due.take_if(|due| *due <= now);
    }

    /// The newest tick of which the hub is known to have everything.
    pub(super) fn confirmed(&self) -> Option<Tick> {
        self.confirmed.tick()
    }

    /// What became of a packet.
    pub(super) fn fate(&mut self, sent: Sent, delivered: bool) {
        self.confirmed.fate(sent.0, delivered);
        if delivered {
            self.publisher.delivered(sent);
        } else {
            self.publisher.lost(sent);
        }
    }

    /// Packets that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn diagnostics(&self, world: &World) -> Diagnostics {
        self.publisher.diagnostics(world)
    }
}
