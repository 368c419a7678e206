//! What lies between a client and the hub.

use crate::rng::Rng;
use parlor_proto::{Carrier, Instant, LinkKind};
use std::time::Duration;

/// The way between a client and the hub, the same in both directions.
///
/// On a link with datagrams these are lost, repeated and overtake each other, as its numbers say; packets of the stream
/// stay in order and arrive all, later for each time that they were lost; isolated ones are late by themselves. On a
/// WebSocket everything is one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it is.
    pub kind: LinkKind,
    latency: Duration,
    jitter: Duration,
    loss: u64,
    duplicates: u64,
}

/// Time that a sender takes to notice that a packet was lost, beside a round trip.
const RETRANSMISSION: Duration = Duration::from_millis(30);
/// Losses in a row after which a packet of a stream arrives all the same.
const LOSSES_MAX: u32 = 8;

impl Link {
    /// Datagrams and streams, 20 ms one way, and nothing goes wrong.
    #[must_use]
    pub const fn quic() -> Self {
        Link::of(LinkKind::Quic)
    }

    /// One stream for everything, 20 ms one way, and nothing goes wrong.
    #[must_use]
    pub const fn websocket() -> Self {
        Link::of(LinkKind::WebSocket)
    }

    const fn of(kind: LinkKind) -> Self {
        Link { kind, latency: Duration::from_millis(20), jitter: Duration::ZERO, loss: 0, duplicates: 0 }
    }

    /// How long a packet takes one way, at least.
    #[must_use]
    pub const fn latency_ms(self, ms: u64) -> Self {
        Link { latency: Duration::from_millis(ms), ..self }
    }

    /// How much longer it may take, evenly. This is what lets datagrams overtake each other.
    #[must_use]
    pub const fn jitter_ms(self, ms: u64) -> Self {
        Link { jitter: Duration::from_millis(ms), ..self }
    }

    /// How many of 1,000 packets are lost. A stream sends them again.
    #[must_use]
    pub const fn loss(self, per_mille: u64) -> Self {
        Link { loss: per_mille, ..self }
    }

    /// How many of 1,000 datagrams come twice.
    #[must_use]
    pub const fn duplicates(self, per_mille: u64) -> Self {
        Link { duplicates: per_mille, ..self }
    }

    /// A link of any kind and quality that a game can still be played over.
    #[must_use]
    pub fn any(rng: &mut Rng) -> Self {
        let kind = rng.pick(&[Link::quic(), Link::quic(), Link::websocket()]);
        let (latency, jitter) = (1 + rng.below(120), rng.below(60));
        kind.latency_ms(latency).jitter_ms(jitter).loss(rng.pick(&[0, 10, 50])).duplicates(rng.pick(&[0, 20]))
    }

    /// How long a packet takes if nothing goes wrong.
    #[must_use]
    pub fn latency(&self) -> Duration {
        self.latency
    }
}

/// One direction of a link.
#[derive(Debug, Default)]
pub(crate) struct Way {
    /// When the last packet of the stream arrives: no later one arrives earlier.
    stream_until: Instant,
}

impl Way {
    /// When a packet that leaves now arrives: not at all, once, or twice.
    pub(crate) fn arrivals(
        &mut self,
        link: &Link,
        carrier: Carrier,
        now: Instant,
        rng: &mut Rng,
    ) -> Vec<Instant> {
        let mut at = now + link.latency + jitter(link, rng);
        if carrier == Carrier::Datagram {
            assert!(link.kind.has_datagrams(), "a session sends no datagrams over {:?}", link.kind);
            let lost = rng.per_mille(link.loss);
            let twice = rng.per_mille(link.duplicates);
            let again = twice.then(|| now + link.latency + jitter(link, rng));
            return (!lost).then_some(at).into_iter().chain(again).collect();
        }
        for _ in 0..LOSSES_MAX {
            if !rng.per_mille(link.loss) {
                break;
            }
            at += link.latency * 2 + RETRANSMISSION;
        }
        if carrier == Carrier::Stream {
            at = at.max(self.stream_until);
            self.stream_until = at;
        }
        vec![at]
    }

    /// When the end of the connection arrives: after all that was sent on the stream.
    pub(crate) fn end(&self, link: &Link, now: Instant) -> Instant {
        (now + link.latency).max(self.stream_until)
    }
}

fn jitter(link: &Link, rng: &mut Rng) -> Duration {
    let most = u64::try_from(link.jitter.as_micros()).expect("a jitter is short");
    Duration::from_micros(rng.below(most + 1))
}
