//! Rate control for game traffic on one path: a machine without a clock, with sent, acknowledged and lost
//! packets as inputs.
//!
//! Its congestion signal is a standing queue, not a lost packet. Wireless networks lose packets at random. A
//! window that a loss halves (RFC 9002 §7, RFC 9438) wastes half of a game's bandwidth at 1% loss. For a game
//! a queue is the greater harm.
//!
//! - *Delay.* The base round trip is the minimum of the last 10 to 20 seconds. The standing queue is the
//!   minimum of the last round trip minus the base ([`delay`]; base and current delay as in LEDBAT, RFC 6817,
//!   the standing round trip as in Copa, Arun and Balakrishnan 2018). Beyond [`QUEUE_MAX`] the window is set
//!   slightly below what the path holds without a queue. The queue then drains, and all flows that share it
//!   see the base round trip, which is LEDBAT's remedy for latecomers that mistake a queue for distance
//!   (LEDBAT++, draft-irtf-iccrg-ledbat-plus-plus). The first time, the window drops to its minimum for a
//!   round trip: the others' queue, and the one from doubling, hide the base round trip from a latecomer
//!   (LEDBAT++'s initial slowdown).
//! - *Fairness.* A smaller window tolerates a longer queue. So of several flows through one bottleneck the
//!   largest yields first, and all grow alike. Congestion control is per flow; flows of one endpoint may
//!   share a bottleneck or not, which the endpoint cannot know.
//! - *Growth.* Doubling per round trip until the first queue; then one packet per round trip, and faster the
//!   longer there is no queue (Copa's velocity). Only a used window grows (RFC 9002 §7.8).
//! - *Persistent delay.* If the queue persists although the window stays at its minimum, this flow does not
//!   cause it: the path became longer, or others fill it. It then counts as part of the base.
//! - *The budget.* The bytes per second that a sender may produce are the window divided by its round trip
//!   ([`RateControl::bytes_per_second`]), so that no packets are made that cannot be sent.
//! - *Loss* ([`loss`]) matters beyond [`loss::HEAVY_PERCENT`], twice in a row, as with a shallow queue. The
//!   window then shrinks by half the lost share, as in Google's congestion control (draft-ietf-rmcat-gcc §6).
//!   After persistent congestion (RFC 9002 §7.6: everything is lost for a long time) it restarts at the
//!   minimum and doubles back to its old size.
//! - *Floor.* Even with a full window one packet is sent each [`FLOOR_INTERVAL`]. A game without any packets
//!   is over, and these packets probe an interrupted path, instead of probes with doubling intervals.
//! - *Unreported packets.* The library does not report some sent packets to the machine (`quinn-proto` 0.11:
//!   a first datagram that is smaller than the next) until an acknowledgement corrects it. On an interrupted
//!   path there is none, and the floor would be below the bytes in flight. A refused floor is raised until it
//!   is not ([`RateControl::window_bytes`]).

mod delay;
mod loss;
#[cfg(test)]
mod tests;

use core::time::Duration;
use delay::DelayFilter;
use loss::LossMeter;
use parlor_proto::time::Instant;

/// The standing queue that counts as congestion for a large window. A receiver may delay an acknowledgement
/// for as long, and such a round trip looks the same.
const QUEUE_MAX: Duration = Duration::from_millis(25);
/// What a small window tolerates in addition: this time, divided by its packets. The flow with more than its
/// share then yields first, even if its packets come first in each tick, so that others always wait for them.
const QUEUE_SHARE: Duration = Duration::from_millis(240);
/// Minimum length of a round: a tick and a half, so that the burst of a tick is not a standing queue.
const ROUND_MIN: Duration = Duration::from_millis(50);
/// Interval of packets that are sent regardless of the window: about a tick.
pub(crate) const FLOOR_INTERVAL: Duration = Duration::from_millis(33);
/// Room for the floor's packet: itself, the margin that a caller wants, and a probe for larger packets, which
/// is never reported.
const FLOOR_ROOM_PACKETS: u64 = 3;
/// For each such time that the floor's packet is refused, one more packet is assumed in flight and
/// unreported.
const REFUSED_STEP: Duration = Duration::from_millis(4);
/// Maximum number of these: the unreported packets of a second.
const UNTOLD_PACKETS_MAX: u64 = 32;
/// Full-size packets in the initial window: a tenth of a second of 3 Mbit/s and a tick's burst.
pub(crate) const INITIAL_WINDOW_PACKETS: u64 = 40;
/// Full-size packets in the minimum window.
const WINDOW_PACKETS_MIN: u64 = 4;
/// Maximum window, in bytes: 80 Mbit/s at 100 ms. No game sends more.
const WINDOW_BYTES_MAX: u64 = 1024 * 1024;

/// The window after a queue, as a percentage of what the path holds.
const DRAIN_PERCENT: u64 = 96;
/// The window after a router marked a packet instead of dropping it (RFC 8511).
const MARKED_PERCENT: u64 = 85;
/// Rounds at the minimum window after which a queue counts as another's.
const ROUNDS_AT_LEAST_MAX: u32 = 4;
/// Rounds without a queue until growth doubles.
const ROUNDS_PER_DOUBLING: u32 = 3;
/// Maximum growth after the start, in packets per round.
const GROWTH_PACKETS_MAX: u64 = 16;

/// The machine. All sizes are bytes on the wire, without UDP and IP.
#[derive(Clone, Debug)]
pub(crate) struct RateControl {
    packet_bytes: u64,
    window: u64,
    /// Below it the window doubles per round trip.
    slow_start_until: u64,
    in_flight: u64,
    last_sent: Instant,
    delay: DelayFilter,
    /// The recent round trip of the window.
    round_trip: Option<Duration>,
    loss: LossMeter,
    round: Round,
    bottom: Bottom,
    /// The window before it began to yield.
    calm_window: u64,
    /// Round trips in which the window was used without a queue.
    calm_rounds: u32,
    /// Round trips with a queue at the minimum window.
    rounds_at_least: u32,
}

/// Whether the path was measured without this flow's queue, since this flow first filled it.
#[derive(Clone, Copy, Debug)]
enum Bottom {
    Unseen,
    /// The window is at its minimum until a round trip measures the path; then it is set to this.
    Draining {
        window: u64,
    },
    Seen,
}

/// A round trip: until a packet sent in it is acknowledged, and at least [`ROUND_MIN`].
#[derive(Clone, Copy, Debug)]
struct Round {
    started: Instant,
    window_at_start: u64,
    /// Maximum bytes in flight.
    in_flight_max: u64,
    /// It began with a smaller window than that of the packets acknowledged in it: it does not measure this
    /// one.
    shrank: bool,
    /// A packet sent in it is acknowledged.
    is_answered: bool,
}

impl RateControl {
    /// Creates a machine for a path with packets of `packet_bytes`.
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

    /// Whether nothing was sent for so long that a packet may be sent regardless of the window.
    pub(crate) fn is_floor_due(&self, now: Instant) -> bool {
        now.saturating_since(self.last_sent) >= FLOOR_INTERVAL
    }

    /// Bytes that may be in flight at `now`: the window; or the bytes in flight and a little more if the
    /// floor is due, and more than that if its packet was `refused` for a while.
    pub(crate) fn window_bytes(&self, now: Instant, refused: Duration) -> u64 {
        if self.is_floor_due(now) {
            let room = FLOOR_ROOM_PACKETS * self.packet_bytes;
            self.window.max(self.in_flight + self.untold_bytes(refused) + room)
        } else {
            self.window
        }
    }

    /// Handles that the floor's packet was sent after being refused for a while: as much was in flight
    /// unreported.
    pub(crate) fn handle_refused(&mut self, refused: Duration) {
        self.in_flight += self.untold_bytes(refused);
    }

    fn untold_bytes(&self, refused: Duration) -> u64 {
        (micros(refused) / micros(REFUSED_STEP)).min(UNTOLD_PACKETS_MAX) * self.packet_bytes
    }

    /// Bytes per second that the window allows: the rate for whoever produces packets, so that none are
    /// queued. It is more than the path was seen to carry while the window was not used. `None` before the
    /// first round trip.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        self.round_trip.map(|round_trip| self.window.saturating_mul(1_000_000) / micros(round_trip).max(1))
    }

    /// The initial window.
    pub(crate) fn initial_window_bytes(&self) -> u64 {
        INITIAL_WINDOW_PACKETS * self.packet_bytes
    }

    /// Sets the packet size of the path.
    pub(crate) fn set_packet_bytes(&mut self, packet_bytes: u64) {
        self.packet_bytes = packet_bytes;
        self.window = self.window.max(self.window_min());
    }

    /// Handles that packets were sent.
    pub(crate) fn handle_sent(&mut self, now: Instant, bytes: u64) {
        self.in_flight += bytes;
        self.last_sent = now;
        self.round.in_flight_max = self.round.in_flight_max.max(self.in_flight);
    }

    /// Handles the acknowledgement of a packet sent at `sent`. Calls with the same `now` are one
    /// acknowledgement, which [`handle_acks_end`](Self::handle_acks_end) ends.
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

    /// Handles the end of an acknowledgement, with this much in flight.
    pub(crate) fn handle_acks_end(&mut self, now: Instant, in_flight: u64) {
        self.in_flight = in_flight;
        if self.round.is_answered && now.saturating_since(self.round.started) >= ROUND_MIN {
            self.end_round(now);
        }
    }

    /// Handles lost packets; `is_persistent` if everything of several timeouts is lost.
    pub(crate) fn handle_lost(&mut self, now: Instant, bytes: u64, is_persistent: bool) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if is_persistent {
            // Usually a network that was interrupted and is back unchanged.
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

    /// Handles a router's mark that its queue grows.
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
            // The measurements are from before: one more round trip.
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

    /// Drains the queue, or accepts it as part of the path if it does not drain.
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
        // The bytes in flight per round trip are what the path delivers; a part of them was in the queue.
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

    /// Whether at least `1 / part` of the window was in flight at once, less two packets.
    fn was_used(&self, part: u64) -> bool {
        (self.round.in_flight_max + 2 * self.packet_bytes) * part >= self.window
    }

    /// The standing queue that counts as congestion for this window.
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
