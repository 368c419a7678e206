//! What lies between a client and the hub.

use parlor_impair::{Direction, Impairment, Outage, Path, Rng, Stalls};
use parlor_proto::{Carrier, Instant, LinkKind};
use std::time::Duration;

/// The way between a client and the hub, the same in both directions.
///
/// What it does to packets is an [`Impairment`]: on a link with datagrams these are lost, repeated and overtake each other,
/// as its numbers say; packets of the stream stay in order and arrive all, later for each time that they were lost;
/// isolated ones are late by themselves. On a WebSocket everything is one stream. Where the rate is limited, datagrams and
/// the stream have it each for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it is.
    pub kind: LinkKind,
    impairment: Impairment,
}

const LATENCY: Duration = Duration::from_millis(20);
/// Settings are in parts of 1,000, an impairment in parts of 1,000,000.
const PPM: u32 = 1_000;

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
        Link { kind, impairment: Impairment::none().latency(LATENCY) }
    }

    /// How long a packet takes one way, at least.
    #[must_use]
    pub const fn latency_ms(self, ms: u64) -> Self {
        Link { impairment: self.impairment.latency(Duration::from_millis(ms)), ..self }
    }

    /// How much longer it may take, evenly. This is what lets datagrams overtake each other.
    #[must_use]
    pub const fn jitter_ms(self, ms: u64) -> Self {
        Link { impairment: self.impairment.jitter(Duration::from_millis(ms)), ..self }
    }

    /// How many of 1,000 packets are lost. A stream sends them again.
    #[must_use]
    pub const fn loss(self, per_mille: u32) -> Self {
        Link { impairment: self.impairment.loss_ppm(per_mille * PPM), ..self }
    }

    /// How many of 1,000 datagrams come twice.
    #[must_use]
    pub const fn duplicates(self, per_mille: u32) -> Self {
        Link { impairment: self.impairment.duplicate_ppm(per_mille * PPM), ..self }
    }

    /// How many of 1,000 packets take so much longer that later ones overtake them.
    #[must_use]
    pub const fn reordered(self, per_mille: u32) -> Self {
        Link { impairment: self.impairment.reorder_ppm(per_mille * PPM), ..self }
    }

    /// How much passes, in kbit per second.
    #[must_use]
    pub const fn rate_kbit(self, kbit: u64) -> Self {
        Link { impairment: self.impairment.rate_bits_per_s(kbit * 1_000), ..self }
    }

    /// For how long nothing passes, and how often.
    #[must_use]
    pub const fn outage_ms(self, length: u64, every: u64) -> Self {
        let outage = Outage { length: Duration::from_millis(length), every: Duration::from_millis(every) };
        Link { impairment: self.impairment.outage(outage), ..self }
    }

    /// The same for another kind of connection.
    #[must_use]
    pub const fn as_kind(self, kind: LinkKind) -> Self {
        Link { kind, ..self }
    }

    /// The same, where nothing goes wrong.
    #[must_use]
    pub const fn healed(self) -> Self {
        Link { impairment: Impairment::none().latency(self.impairment.one_way()), ..self }
    }

    /// A link of any kind and quality that a game can still be played over.
    #[must_use]
    pub fn any(rng: &mut Rng) -> Self {
        let kind = rng.pick(&[Link::quic(), Link::quic(), Link::websocket()]);
        let (latency, jitter) = (1 + rng.below(120), rng.below(60));
        kind.latency_ms(latency).jitter_ms(jitter).loss(rng.pick(&[0, 10, 50])).duplicates(rng.pick(&[0, 20]))
    }

    /// A link of any kind, from a clean one to one that nobody would want: a tenth is lost, packets overtake each other,
    /// little passes, and at times nothing.
    #[must_use]
    pub fn worse(rng: &mut Rng) -> Self {
        if rng.per_mille(300) {
            return rng.pick(&[Link::quic(), Link::websocket()]).latency_ms(rng.below(40));
        }
        let link = Link::any(rng).loss(rng.pick(&[0, 20, 50, 100])).reordered(rng.pick(&[0, 0, 50, 200]));
        let link = if rng.per_mille(150) { link.rate_kbit(1_000 + rng.below(4_000)) } else { link };
        if rng.per_mille(150) { link.outage_ms(50 + rng.below(700), 1_000 + rng.below(2_000)) } else { link }
    }

    /// How long a packet takes if nothing goes wrong.
    #[must_use]
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
    /// Isolated packets so far: each is a stream of its own.
    isolated: u64,
    flow: u64,
    /// When the last packet of the stream arrives: no later one arrives earlier.
    stream_until: Instant,
}

impl Way {
    /// A direction of the link of a client; `flow` tells clients apart.
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

    /// What is under way arrives as it would have; from here on it is another link of the same kind.
    pub(crate) fn change(&mut self, link: &Link, seed: u64, now: Instant) {
        let until = self.stream_until;
        *self = Way::new(link, seed, self.flow >> 32, self.direction, now);
        self.stream_until = until;
    }

    /// When a packet that leaves now arrives: not at all, once, or twice.
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

    /// When the end of the connection arrives: after all that was sent on the stream.
    pub(crate) fn end(&self, now: Instant) -> Instant {
        (now + self.link.latency()).max(self.stream_until)
    }
}
