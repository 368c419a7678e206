//! The stream of a world's packets up to the hub.

use super::ack_watermark::AckWatermark;
use bytes::Bytes;
use parlor_proto::session::{DeliveryId, Outgoing, Session};
use parlor_proto::{Epoch, Instant, Tick};
use parlor_sync::audience::Viewer;
use parlor_sync::world::{Diagnostics, Encodings, Publisher, PublisherConfig, Sent, World};
use std::time::Duration;

/// Bytes queued for the connection above which no more packets are made: queued state goes stale.
const WAITING_BYTES_MAX: usize = 16 * 1024;

/// The fraction of a path's capacity reserved for headers and other messages.
const HEADERS_PART: u32 = 16;

/// The way to the hub.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// Its capacity in bytes per second, if known.
    pub(crate) carries: Option<u32>,
    /// Whether the hub is in the same process, so that bytes cost nothing.
    pub(crate) is_inside: bool,
}

/// The part of a path's capacity that is available for state, in bytes per second.
pub(crate) fn state_part(carries: u32) -> u32 {
    carries - carries / HEADERS_PART
}

/// Publishes the world that this process writes. The hub sees everything, so that it can give every member
/// its view.
#[derive(Debug)]
pub(crate) struct Upstream {
    publisher: Publisher,
    /// Upper bound in bytes per second, whatever the path's capacity.
    most: u32,
    encodings: Encodings,
    /// Interval until deferred state is tried again.
    retry: Duration,
    /// When deferred state may be sent.
    due: Option<Instant>,
    watermark: AckWatermark,
    sent: u64,
}

impl Upstream {
    pub(crate) fn new(bytes_per_second: u32, retry: Duration) -> Self {
        Self::to(Viewer::Everything, bytes_per_second, retry)
    }

    /// A stream of the view of one receiver.
    pub(crate) fn to(viewer: Viewer, bytes_per_second: u32, retry: Duration) -> Self {
        Upstream {
            publisher: Publisher::new(viewer, PublisherConfig::new(bytes_per_second)),
            most: bytes_per_second,
            encodings: Encodings::default(),
            retry,
            due: None,
            watermark: AckWatermark::default(),
            sent: 0,
        }
    }

    /// Publishes a world that this process continues under `epoch` in place of the previous host. The hub has
    /// all of it already.
    pub(crate) fn of_successor(world: &World, bytes_per_second: u32, retry: Duration, epoch: Epoch) -> Self {
        let config = PublisherConfig::new(bytes_per_second);
        // Late fates from an earlier time as host have lower numbers.
        let first = DeliveryId::first_number(epoch);
        let publisher = Publisher::of_successor(world, config).numbered_from(first);
        Upstream { publisher, ..Upstream::new(bytes_per_second, retry) }
    }

    /// Sends the hub what it lacks, as far as its way has capacity. `wrap` makes messages of packets.
    pub(crate) fn publish(
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
            // This fails only when the session is over; then nothing is owed.
            if session.send(wrap(packet, sent)).is_err() {
                return;
            }
            if let Some(tick) = world.tick() {
                self.watermark.sent(sent.0, tick, self.publisher.told_floor());
            }
            self.sent += 1;
        }
        self.due = self.publisher.is_due(world).then(|| now + self.retry);
    }

    /// When [`publish`](Self::publish) may have more to send.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Lets time pass. What is due waits for the next [`publish`](Self::publish), which comes when the
    /// connection takes packets.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.due.take_if(|due| *due <= now);
    }

    /// The newest tick that the hub is known to have completely.
    pub(crate) fn ack_watermark(&self) -> Option<Tick> {
        self.watermark.tick()
    }

    /// Notes the fate of a packet.
    pub(crate) fn fate(&mut self, sent: Sent, delivered: bool) {
        self.watermark.fate(sent.0, delivered);
        if delivered {
            self.publisher.delivered(sent);
        } else {
            self.publisher.lost(sent);
        }
    }

    /// Packets sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn diagnostics(&self, world: &World) -> Diagnostics {
        self.publisher.diagnostics(world)
    }
}
