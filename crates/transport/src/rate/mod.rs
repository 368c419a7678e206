//! How much of a game's traffic may be under way on one path: a machine without a clock, fed with what was sent,
//! acknowledged and lost.
//!
//! What it takes for congestion is a queue that stands, not a packet that is missing. Wireless networks lose packets at
//! random; a window that a loss halves (RFC 9002 §7, RFC 9438) gives half of a game's stream away at one loss in a
//! hundred, and to a game the queue is the greater harm.
//!
//! - *Delay.* The shortest round trip of the last 10 to 20 seconds is the path's own, and what the shortest of the last
//!   round trip has beyond it is the queue that stands ([`delay`]; base and current delay as in LEDBAT, RFC 6817, the
//!   standing round trip as in Copa, Arun and Balakrishnan 2018). Beyond [`QUEUE_MAX`] the window becomes what the path
//!   holds without a queue and a little less, so that the queue drains and everybody who shares it sees its bottom, which
//!   is LEDBAT's cure for the latecomer who takes the others' queue for distance (LEDBAT++,
//!   draft-irtf-iccrg-ledbat-plus-plus). The first time the window becomes its least for a round trip, because the queue of the
//!   others, and what doubling made of it, hides the path's own round trip from who comes later (LEDBAT++'s initial slowdown).
//! - *Shares.* The smaller a window, the longer the queue that it tolerates, so of several flows through one bottleneck the
//!   largest yields first, and all grow alike. No flow knows of the others: those of one endpoint share a bottleneck or do
//!   not, and nothing there could tell.
//! - *Growth.* Doubling per round trip until the first queue; then one packet per round trip, and faster the longer no
//!   queue is seen (Copa's velocity). Only a window that was used grows (RFC 9002 §7.8).
//! - *A delay that yields to nothing.* When the window has stayed at its least and the queue stands all the same, it is
//!   not this flow's: the path became longer, or others fill it. It counts as the path's own from then on.
//! - *The budget.* What whoever makes packets may make in a second is the window by the time that it takes to go round
//!   ([`RateControl::bytes_per_second`]), so that packets that could not go are not made.
//! - *Loss* ([`loss`]) matters beyond [`loss::HEAVY_PERCENT`], twice in a row, as a shallow queue has it: then the window
//!   shrinks by half the lost share, as in Google's congestion control (draft-ietf-rmcat-gcc §6). When everything of a
//!   long time is lost (RFC 9002 §7.6, persistent congestion), it starts again at the least and doubles back to what it was.
//! - *Floor.* Even with a full window one packet goes each [`FLOOR_INTERVAL`]: a game that hears nothing is over, and
//!   the probes of a path that was interrupted are these packets, instead of ones that double their distance.
//! - *What is not told.* The library leaves out some of what it sends when it tells the machine (`quinn-proto` 0.11: a first
//!   datagram that is smaller than the next), until an acknowledgement sets that right. On a path that is cut none comes, and the
//!   floor would be below what is under way. A floor that is refused rises until it is not ([`RateControl::window_bytes`]).

mod delay;
mod loss;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use core::time::Duration;
use delay::DelayFilter;
use loss::LossMeter;
use parlor_proto::time::Instant;

/// The standing queue that is congestion to a large window. A receiver may hold an acknowledgement back for as long, and a
/// round trip that contains such a wait looks no different.
const QUEUE_MAX: Duration = Duration::from_millis(25);
/// What a small window tolerates beyond that: this, by its packets. Whoever has more than its share then yields first, even if
/// its packets are the first of each tick, so that those of others always wait for them and its own for none.
const QUEUE_SHARE: Duration = Duration::from_millis(240);
/// A round is at least so long: a tick and a half, so that the burst of a tick is no standing queue.
const ROUND_MIN: Duration = Duration::from_millis(50);
/// How often a packet goes whatever the window says: about a tick.
pub(crate) const FLOOR_INTERVAL: Duration = Duration::from_millis(33);
/// Room for the packet of the floor: itself, what a caller wants left beyond it, and a probe for larger packets, which no
/// caller tells of.
const FLOOR_ROOM_PACKETS: u64 = 3;
/// For each time so long that the packet of the floor is refused, one more packet is under way than was told.
const REFUSED_STEP: Duration = Duration::from_millis(4);
/// That many at most: what a second's ticks leave out.
const UNTOLD_PACKETS_MAX: u64 = 32;
/// Packets of full size that the window holds at the start: a tenth of a second of 3 Mbit/s and a tick's burst.
pub(crate) const INITIAL_WINDOW_PACKETS: u64 = 40;
/// Packets of full size that the window always holds.
const WINDOW_PACKETS_MIN: u64 = 4;
/// Largest window, in bytes: 80 Mbit/s at 100 ms. No game sends more.
const WINDOW_BYTES_MAX: u64 = 1024 * 1024;

/// How much of what the path holds remains after a queue was seen, in percent.
const DRAIN_PERCENT: u64 = 96;
/// How much remains after a router marked a packet instead of dropping it (RFC 8511).
const MARKED_PERCENT: u64 = 85;
/// Rounds at the least window after which a queue is not this flow's.
const ROUNDS_AT_LEAST_MAX: u32 = 4;
/// Rounds without a queue until growth becomes twice as fast.
const ROUNDS_PER_DOUBLING: u32 = 3;
/// Fastest growth after the start, in packets per round.
const GROWTH_PACKETS_MAX: u64 = 16;

/// The machine. All sizes are in bytes as they are on the wire, without UDP and IP.
#[derive(Clone, Debug)]
pub(crate) struct RateControl {
    packet_bytes: u64,
    window: u64,
    /// Below it the window doubles per round trip.
    slow_start_until: u64,
    in_flight: u64,
    last_sent: Instant,
    delay: DelayFilter,
    /// How long the window takes to go round, as of late.
    round_trip: Option<Duration>,
    loss: LossMeter,
    round: Round,
    bottom: Bottom,
    /// The window before it began to yield.
    calm_window: u64,
    /// Round trips in which the window was used and no queue was seen.
    calm_rounds: u32,
    /// Round trips with a queue while the window was at its least.
    rounds_at_least: u32,
}

/// Whether the path was seen with nothing of this flow in its queue, since this flow first filled it.
#[derive(Clone, Copy, Debug)]
enum Bottom {
    Unseen,
    /// The window is at its least until a round trip shows the path as it is; then it becomes this.
    Draining {
        window: u64,
    },
    Seen,
}

/// A round trip: until a packet is acknowledged that was sent in it, and at least [`ROUND_MIN`].
#[derive(Clone, Copy, Debug)]
struct Round {
    started: Instant,
    window_at_start: u64,
    /// Most that was under way at once.
    in_flight_max: u64,
    /// It began with a smaller window than the packets had that it hears of: it says nothing about this one.
    shrank: bool,
    /// A packet that was sent in it is acknowledged.
    is_answered: bool,
}

impl RateControl {
    /// A machine for a path that takes packets of `packet_bytes`.
    pub(crate) fn new(now: Instant, packet_bytes: u64) -> Self {
        RateControl {
            packet_bytes,
            window: INITIAL_WINDOW_PACKETS * packet_bytes,
            slow_start_until: WINDOW_BYTES_MAX,
            in_flight: 0,
            last_sent: now,
            delay: DelayFilter::new(now),
            round_trip: None,
            loss: LossMeter::default(),
            round: Round::new(now, INITIAL_WINDOW_PACKETS * packet_bytes, 0, false),
            bottom: Bottom::Unseen,
            calm_window: INITIAL_WINDOW_PACKETS * packet_bytes,
            calm_rounds: 0,
            rounds_at_least: 0,
        }
    }

    /// Whether nothing went for so long that a packet may go whatever the window says.
    pub(crate) fn is_floor_due(&self, now: Instant) -> bool {
        now.saturating_since(self.last_sent) >= FLOOR_INTERVAL
    }

    /// Bytes that may be under way at `now`: the window, or what is under way and a little more if the floor is due, and more
    /// than that if its packet was `refused` for a while.
    pub(crate) fn window_bytes(&self, now: Instant, refused: Duration) -> u64 {
        if self.is_floor_due(now) {
            let room = FLOOR_ROOM_PACKETS * self.packet_bytes;
            self.window.max(self.in_flight + self.untold_bytes(refused) + room)
        } else {
            self.window
        }
    }

    /// A packet of the floor goes that was refused for a while: so much was under way that was not told.
    pub(crate) fn handle_refused(&mut self, refused: Duration) {
        self.in_flight += self.untold_bytes(refused);
    }

    fn untold_bytes(&self, refused: Duration) -> u64 {
        (micros(refused) / micros(REFUSED_STEP)).min(UNTOLD_PACKETS_MAX) * self.packet_bytes
    }

    /// Bytes per second that the window lets through: what whoever makes packets should not exceed, so that they need not wait
    /// for it. It is more than the path was seen to carry as long as the window was not used. `None` before the first round
    /// trip.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        self.round_trip.map(|round_trip| self.window.saturating_mul(1_000_000) / micros(round_trip).max(1))
    }

    /// The window at the start.
    pub(crate) fn initial_window_bytes(&self) -> u64 {
        INITIAL_WINDOW_PACKETS * self.packet_bytes
    }

    /// The path takes packets of another size.
    pub(crate) fn set_packet_bytes(&mut self, packet_bytes: u64) {
        self.packet_bytes = packet_bytes;
        self.window = self.window.max(self.window_min());
    }

    /// Packets went.
    pub(crate) fn handle_sent(&mut self, now: Instant, bytes: u64) {
        self.in_flight += bytes;
        self.last_sent = now;
        self.round.in_flight_max = self.round.in_flight_max.max(self.in_flight);
    }

    /// A packet was acknowledged that went at `sent`. Calls with the same `now` are one acknowledgement, which
    /// [`handle_acks_end`](Self::handle_acks_end) ends.
    pub(crate) fn handle_ack(&mut self, now: Instant, sent: Instant, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.delay.handle_round_trip(now, now.saturating_since(sent));
        self.loss.handle_acked(bytes);
        self.round.is_answered |= sent >= self.round.started;
        if self.window < self.slow_start_until && self.was_used(2) && !self.round.shrank {
            let doubled = 2 * self.round.window_at_start;
            self.window = (self.window + bytes).min(self.slow_start_until).min(doubled.max(self.window));
        }
    }

    /// The acknowledgement is over; this much is under way.
    pub(crate) fn handle_acks_end(&mut self, now: Instant, in_flight: u64) {
        self.in_flight = in_flight;
        if self.round.is_answered && now.saturating_since(self.round.started) >= ROUND_MIN {
            self.end_round(now);
        }
    }

    /// Packets are lost; `is_persistent` if everything of several timeouts is.
    pub(crate) fn handle_lost(&mut self, now: Instant, bytes: u64, is_persistent: bool) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if is_persistent {
            // Most often a network that was away and is back as it was.
            if self.window > self.window_min() {
                self.slow_start_until = self.window;
            }
            self.window = self.window_min();
            self.bottom = Bottom::Seen;
            self.loss = LossMeter::default();
            self.start_round(now, false);
        } else {
            self.loss.handle_lost(bytes);
        }
    }

    /// A router says that its queue grows.
    pub(crate) fn handle_marked(&mut self, now: Instant) {
        if !self.round.shrank {
            self.shrink_to(now, self.window * MARKED_PERCENT / 100);
        }
    }

    fn end_round(&mut self, now: Instant) {
        if let Some(mean) = self.delay.mean() {
            self.round_trip = Some(self.round_trip.map_or(mean, |before| (before + mean) / 2));
        }
        if let Some(lost_percent) = self.loss.poll_heavy(self.packet_bytes) {
            self.shrink_to(now, self.window * (200 - lost_percent) / 200);
            return;
        }
        let queue = self.delay.queue();
        if self.round.shrank {
            // What is known is from before: one more round trip.
            self.start_round(now, false);
        } else if let Bottom::Draining { window } = self.bottom {
            self.bottom = Bottom::Seen;
            self.window = window.max(self.window_min());
            self.slow_start_until = self.window;
            self.start_round(now, true);
        } else if queue > self.queue_max() {
            self.yield_to(now, queue);
        } else {
            self.rounds_at_least = 0;
            self.grow(queue);
            self.calm_window = self.window;
            self.start_round(now, false);
        }
    }

    /// Drains the queue, or takes it for a part of the way if it does not drain.
    fn yield_to(&mut self, now: Instant, queue: Duration) {
        if self.window == self.window_min() {
            self.rounds_at_least += 1;
            if self.rounds_at_least == ROUNDS_AT_LEAST_MAX {
                self.rounds_at_least = 0;
                self.slow_start_until = self.calm_window;
                self.delay.accept_queue(now);
            }
            self.start_round(now, false);
            return;
        }
        // What was under way per round trip is what the path delivers; a part of it was in the queue.
        let (base, queue) = (micros(self.delay.base()), micros(queue));
        let held = self.window.min(self.round.in_flight_max) * base / (base + queue).max(1);
        let remaining = (held * DRAIN_PERCENT / 100).max(self.window / 3);
        if matches!(self.bottom, Bottom::Unseen) {
            self.bottom = Bottom::Draining { window: remaining };
            self.shrink_to(now, self.window_min());
        } else {
            self.shrink_to(now, remaining);
        }
    }

    fn grow(&mut self, queue: Duration) {
        if queue > QUEUE_MAX / 4 {
            self.calm_rounds = 0;
            self.slow_start_until = self.slow_start_until.min(self.window);
        } else if self.was_used(1) {
            self.calm_rounds += 1;
        }
        if self.window >= self.slow_start_until && self.was_used(1) {
            let packets = 1_u64 << (self.calm_rounds / ROUNDS_PER_DOUBLING).min(GROWTH_PACKETS_MAX.ilog2());
            self.window = (self.window + packets * self.packet_bytes).min(WINDOW_BYTES_MAX);
            self.slow_start_until = self.slow_start_until.min(self.window);
        }
    }

    fn shrink_to(&mut self, now: Instant, window: u64) {
        self.window = window.clamp(self.window_min(), self.window.max(self.window_min()));
        self.slow_start_until = self.window;
        self.calm_rounds = 0;
        self.start_round(now, true);
    }

    fn start_round(&mut self, now: Instant, shrank: bool) {
        self.delay.start_round();
        self.round = Round::new(now, self.window, self.in_flight, shrank);
    }

    /// Whether at least the `1 / part` of the window was under way at once, but for two packets.
    fn was_used(&self, part: u64) -> bool {
        (self.round.in_flight_max + 2 * self.packet_bytes) * part >= self.window
    }

    /// The standing queue that is congestion for a window of this size.
    fn queue_max(&self) -> Duration {
        let packets = (self.window / self.packet_bytes).max(WINDOW_PACKETS_MIN);
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        QUEUE_MAX + QUEUE_SHARE / packets
    }

    fn window_min(&self) -> u64 {
        WINDOW_PACKETS_MIN * self.packet_bytes
    }
}

impl Round {
    fn new(started: Instant, window: u64, in_flight: u64, shrank: bool) -> Self {
        Round { started, window_at_start: window, in_flight_max: in_flight, shrank, is_answered: false }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
