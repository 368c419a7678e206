//! The network between a client and the hub.

use parlor_impair::{Direction, Impairment, Outage, Path, Rng, Stalls};
use parlor_proto::{Carrier, Instant, LinkKind};
use std::time::Duration;

/// The network between a client and the hub, the same in both directions.
///
/// It impairs packets by an [`Impairment`]. On a link with datagrams these are lost, duplicated and
/// reordered. Packets of the stream stay in order and all arrive, delayed by each loss; isolated ones are
/// delayed individually. On a WebSocket everything is one stream. A rate limit applies to datagrams and the
/// stream separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The kind of link.
    pub kind: LinkKind,
    impairment: Impairment,
}

const LATENCY: Duration = Duration::from_millis(20);
/// Settings are in parts per 1,000, an impairment's in parts per 1,000,000.
const PPM: u32 = 1_000;

impl Link {
    /// Datagrams and streams, 20 ms one way, unimpaired.
    pub const fn quic() -> Self {
        Link::of(LinkKind::Quic)
    }

    /// One stream for everything, 20 ms one way, unimpaired.
    pub const fn websocket() -> Self {
        Link::of(LinkKind::WebSocket)
    }

    const fn of(kind: LinkKind) -> Self {
        Link { kind, impairment: Impairment::none().latency(LATENCY) }
    }

    /// Sets the minimum one-way latency.
    #[must_use]
    pub const fn latency_ms(self, ms: u64) -> Self {
        Link { impairment: self.impairment.latency(Duration::from_millis(ms)), ..self }
    }

    /// Sets the jitter: an evenly distributed extra delay. It reorders datagrams.
    #[must_use]
    pub const fn jitter_ms(self, ms: u64) -> Self {
        Link { impairment: self.impairment.jitter(Duration::from_millis(ms)), ..self }
    }

    /// Sets the loss per 1,000 packets. A stream sends lost packets again.
    #[must_use]
    pub const fn loss(self, per_mille: u32) -> Self {
        Link { impairment: self.impairment.loss_ppm(per_mille * PPM), ..self }
    }

    /// Sets the duplicates per 1,000 datagrams.
    #[must_use]
    pub const fn duplicates(self, per_mille: u32) -> Self {
        Link { impairment: self.impairment.duplicate_ppm(per_mille * PPM), ..self }
    }

    /// Sets the packets per 1,000 that are delayed so much that later ones overtake them.
    #[must_use]
    pub const fn reordered(self, per_mille: u32) -> Self {
        Link { impairment: self.impairment.reorder_ppm(per_mille * PPM), ..self }
    }

    /// Sets the rate limit, in kbit per second.
    #[must_use]
    pub const fn rate_kbit(self, kbit: u64) -> Self {
        Link { impairment: self.impairment.rate_bits_per_s(kbit * 1_000), ..self }
    }

    /// Sets the length and interval of outages.
    #[must_use]
    pub const fn outage_ms(self, length: u64, every: u64) -> Self {
        let outage = Outage { length: Duration::from_millis(length), every: Duration::from_millis(every) };
        Link { impairment: self.impairment.outage(outage), ..self }
    }

    /// The same for another kind of link.
    #[must_use]
    pub const fn as_kind(self, kind: LinkKind) -> Self {
        Link { kind, ..self }
    }

    /// The same without impairments, latency excepted.
    #[must_use]
    pub const fn healed(self) -> Self {
        Link { impairment: Impairment::none().latency(self.impairment.one_way()), ..self }
    }

    /// A random link of any kind that is still playable.
    pub fn any(rng: &mut Rng) -> Self {
        let kind = rng.pick(&[Link::quic(), Link::quic(), Link::websocket()]);
        let (latency, jitter) = (1 + rng.below(120), rng.below(60));
        kind.latency_ms(latency).jitter_ms(jitter).loss(rng.pick(&[0, 10, 50])).duplicates(rng.pick(&[0, 20]))
    }

    /// A random link of any kind, from a clean one to an awful one: a tenth is lost, packets are reordered,
    /// the rate is low, and outages occur.
    pub fn worse(rng: &mut Rng) -> Self {
        if rng.per_mille(300) {
            return rng.pick(&[Link::quic(), Link::websocket()]).latency_ms(rng.below(40));
        }
        let link = Link::any(rng).loss(rng.pick(&[0, 20, 50, 100])).reordered(rng.pick(&[0, 0, 50, 200]));
        let link = if rng.per_mille(150) { link.rate_kbit(1_000 + rng.below(4_000)) } else { link };
        if rng.per_mille(150) { link.outage_ms(50 + rng.below(700), 1_000 + rng.below(2_000)) } else { link }
    }

    /// One-way latency without impairments.
    pub fn latency(&self) -> Duration {
        self.impairment.one_way()
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Way {
    link: Link,
    direction: Direction,
    born: Instant,
    datagrams: Path,
    stream: Stalls,
    /// Isolated packets so far: each is its own stream.
    isolated: u64,
    flow: u64,
    /// When the last packet of the stream arrives: no later one arrives earlier.
    stream_until: Instant,
}

impl Way {
    /// A direction of the link of a client; `flow` distinguishes clients.
    pub(crate) fn new(link: &Link, seed: u64, flow: u64, direction: Direction, now: Instant) -> Self {
        let link = Link { impairment: link.impairment.seed(seed), ..*link };
        // Isolated packets have the numbers after it.
        let own = flow << 32;
        Way {
            link,
            direction,
            born: now,
            datagrams: Path::new(&link.impairment, own, direction),
            stream: Stalls::new(&link.impairment, own, direction),
            isolated: 0,
            flow: own,
            stream_until: now,
        }
    }

    /// Replaces the link by another one of the same kind. Packets in flight arrive as before.
    pub(crate) fn change(&mut self, link: &Link, seed: u64, now: Instant) {
        let until = self.stream_until;
        *self = Way::new(link, seed, self.flow >> 32, self.direction, now);
        self.stream_until = until;
    }

    /// Arrival times of a packet that leaves now: none, one, or two.
    pub(crate) fn arrivals(
        &mut self,
        carrier: Carrier,
        bytes: usize,
        now: Instant,
    ) -> impl Iterator<Item = Instant> + use<> {
        let (since, born) = (now.saturating_since(self.born), self.born);
        let arrivals: [Option<Duration>; 2] = match carrier {
            Carrier::Datagram => {
                let kind = self.link.kind;
                assert!(kind.has_datagrams(), "a session sends no datagrams over {kind:?}");
                let mut arrivals = self.datagrams.offer(since, bytes).into_iter();
                [arrivals.next(), arrivals.next()]
            }
            Carrier::Isolated => {
                self.isolated += 1;
                let flow = self.flow + self.isolated;
                let mut alone = Stalls::new(&self.link.impairment, flow, self.direction);
                [Some(alone.offer(since, bytes)), None]
            }
            Carrier::Stream => {
                let at = self.stream.offer(since, bytes).max(self.stream_until.saturating_since(born));
                self.stream_until = born + at;
                [Some(at), None]
            }
        };
        arrivals.into_iter().flatten().map(move |at| born + at)
    }

    /// When the end of the connection arrives: after everything sent on the stream.
    pub(crate) fn end(&self, now: Instant) -> Instant {
        (now + self.link.latency()).max(self.stream_until)
    }
}
