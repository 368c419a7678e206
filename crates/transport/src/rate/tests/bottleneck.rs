//! Senders that share one bottleneck, on virtual time in small steps: a pacer, acknowledgements and loss
//! detection as in QUIC (RFC 9002), around the real [`RateControl`].

use crate::rate::RateControl;
use core::time::Duration;
use parlor_impair::Rng;
use parlor_proto::time::Instant;
use std::collections::VecDeque;

pub(super) const PACKET_BYTES: u64 = 1_200;
const STEP: Duration = Duration::from_micros(500);
const STEP_US: u64 = 500;

/// The path from all senders to their receivers, and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// In bits per second.
    pub(super) rate_bps: u64,
    /// Maximum queued bytes.
    pub(super) queue_bytes_max: u64,
    /// One-way delay, without the queue.
    pub(super) delay: Duration,
    /// Random loss, in both directions.
    pub(super) loss_percent: u64,
    /// Nothing arrives between these two.
    pub(super) outage: Option<(Instant, Instant)>,
    /// The receiver acknowledges after this many packets or this long.
    pub(super) ack_packets: usize,
    pub(super) ack_delay: Duration,
}

impl Default for Path {
    fn default() -> Self {
        Path {
            rate_bps: 100_000_000,
            queue_bytes_max: 500_000,
            delay: Duration::from_millis(25),
            loss_percent: 0,
            outage: None,
            ack_packets: 10,
            ack_delay: Duration::from_millis(25),
        }
    }
}

/// A game's traffic: this much each tick, of which only the newest tick is worth sending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Game {
    pub(super) rate_bps: u64,
    pub(super) tick_hz: u64,
    pub(super) starts: Instant,
    /// Its reaction to congestion.
    pub(super) holds_back: HoldsBack,
}

/// A game's reaction to congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoldsBack {
    /// Unsent packets are replaced by the next tick.
    Replacing,
    /// Packets go through the library's buffer, and none are made while it is full.
    FullBuffer,
    /// As above, and no more are made than the control allows.
    Rate,
}

/// Packets in the library's buffer, beside the rest of the tick that filled it.
const BUFFER_PACKETS: usize = 7;
/// The budget that a game may save up, in time.
const SAVED_MAX: Duration = Duration::from_millis(125);

/// One sender and its receiver.
pub(super) struct Flow {
    game: Game,
    pub(super) control: RateControl,
    next_tick: Instant,
    /// Bytes that the game may produce.
    allowance: f64,
    waiting: VecDeque<Instant>,
    in_flight: VecDeque<Sent>,
    next_number: u64,
    largest_acked: Option<u64>,
    srtt_us: u64,
    tokens: f64,
    received: Vec<u64>,
    first_unacked: Option<Instant>,
    acks: VecDeque<(Instant, Vec<u64>)>,
    /// Packets that the game made.
    pub(super) offered: u64,
    /// When each packet was sent.
    pub(super) sent: Vec<Instant>,
    /// When each packet arrived, and how long after it was made.
    pub(super) arrived: Vec<(Instant, Duration)>,
}

struct Sent {
    number: u64,
    at: Instant,
}

struct Passing {
    flow: usize,
    number: u64,
    made: Instant,
    arrives: Instant,
}

pub(super) struct Bottleneck {
    pub(super) path: Path,
    pub(super) now: Instant,
    pub(super) flows: Vec<Flow>,
    queue: VecDeque<Passing>,
    credit_bits: u64,
    passing: VecDeque<Passing>,
    random: Rng,
    /// The current queueing delay, once each millisecond.
    pub(super) waits: Vec<Duration>,
}

impl Flow {
    fn new(game: Game) -> Self {
        Flow {
            game,
            control: RateControl::new(game.starts, PACKET_BYTES),
            next_tick: game.starts,
            allowance: 0.0,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_number: 0,
            largest_acked: None,
            srtt_us: 100_000,
            tokens: (10 * PACKET_BYTES) as f64,
            received: Vec::new(),
            first_unacked: None,
            acks: VecDeque::new(),
            offered: 0,
            sent: Vec::new(),
            arrived: Vec::new(),
        }
    }

    fn bytes_in_flight(&self) -> u64 {
        self.in_flight.len() as u64 * PACKET_BYTES
    }

    fn tick(&mut self, now: Instant) {
        while self.next_tick <= now {
            let packets = self.game.rate_bps.div_ceil(8 * PACKET_BYTES * self.game.tick_hz);
            let interval = Duration::from_micros(packets * PACKET_BYTES * 8_000_000 / self.game.rate_bps);
            self.next_tick += interval;
            self.offered += packets;
            match self.game.holds_back {
                // An unsent tick is worthless once there is a newer one.
                HoldsBack::Replacing => {
                    self.waiting.clear();
                    self.waiting.extend((0..packets).map(|_| now));
                }
                HoldsBack::FullBuffer => self.fill(packets, now),
                HoldsBack::Rate => {
                    let allowed = self.allow(interval).min(packets);
                    self.allowance -= (allowed * PACKET_BYTES) as f64;
                    self.fill(allowed, now);
                }
            }
        }
    }

    fn fill(&mut self, packets: u64, now: Instant) {
        if self.waiting.len() < BUFFER_PACKETS {
            self.waiting.extend((0..packets).map(|_| now));
        }
    }

    /// The number of packets that the control allows after this time.
    fn allow(&mut self, interval: Duration) -> u64 {
        let rate = self.control.bytes_per_second().map_or(f64::MAX, |rate| rate as f64 * 15.0 / 16.0);
        let rate = rate.min(self.game.rate_bps as f64 / 8.0);
        let saved_max = (rate * SAVED_MAX.as_secs_f64()).max(2.0 * PACKET_BYTES as f64);
        self.allowance = (self.allowance + rate * interval.as_secs_f64()).min(saved_max);
        (1..).take_while(|packets| (packets * PACKET_BYTES) as f64 <= self.allowance).count() as u64
    }

    /// Returns the packets that are sent now.
    fn send(&mut self, now: Instant) -> Vec<(u64, Instant)> {
        let window = self.control.window_bytes(now, Duration::ZERO);
        self.tokens += window as f64 * 1.25 * STEP_US as f64 / self.srtt_us as f64;
        self.tokens = self.tokens.min((10 * PACKET_BYTES) as f64);
        let mut gone = Vec::new();
        while !self.waiting.is_empty() {
            let window = self.control.window_bytes(now, Duration::ZERO);
            if self.bytes_in_flight() + PACKET_BYTES >= window || self.tokens < PACKET_BYTES as f64 {
                break;
            }
            self.tokens -= PACKET_BYTES as f64;
            let made = self.waiting.pop_front().unwrap();
            self.control.handle_sent(now, PACKET_BYTES);
            self.in_flight.push_back(Sent { number: self.next_number, at: now });
            self.sent.push(now);
            gone.push((self.next_number, made));
            self.next_number += 1;
        }
        gone
    }

    /// Handles a received packet. Returns the acknowledgement that is due.
    fn receive(&mut self, now: Instant, number: u64, made: Instant) {
        self.arrived.push((now, now.saturating_since(made)));
        self.received.push(number);
        self.first_unacked.get_or_insert(now);
    }

    fn due_ack(&mut self, now: Instant, path: &Path) -> Option<Vec<u64>> {
        let waited = now.saturating_since(self.first_unacked?);
        if self.received.len() < path.ack_packets && waited < path.ack_delay {
            return None;
        }
        self.first_unacked = None;
        Some(std::mem::take(&mut self.received))
    }

    fn handle_ack(&mut self, now: Instant, numbers: &[u64]) {
        let mut newest = None;
        for number in numbers {
            let Some(at) = self.in_flight.iter().position(|sent| sent.number == *number) else { continue };
            let sent = self.in_flight.remove(at).unwrap();
            self.control.handle_ack(now, sent.at, PACKET_BYTES);
            newest = Some(sent.at);
        }
        let Some(newest) = newest else { return };
        self.control.handle_acks_end(now, self.bytes_in_flight());
        let sample = now.as_micros() - newest.as_micros();
        self.srtt_us = if self.largest_acked.is_none() { sample } else { (7 * self.srtt_us + sample) / 8 };
        self.largest_acked = self.largest_acked.max(numbers.iter().max().copied());
        self.detect_loss(now);
    }

    fn detect_loss(&mut self, now: Instant) {
        let Some(largest) = self.largest_acked else { return };
        let too_old = now - Duration::from_micros(self.srtt_us * 9 / 8);
        let is_lost =
            |sent: &Sent| sent.number + 3 <= largest || (sent.number < largest && sent.at <= too_old);
        let lost: Vec<Instant> =
            self.in_flight.iter().filter(|sent| is_lost(sent)).map(|sent| sent.at).collect();
        let (Some(first), Some(last)) = (lost.first(), lost.last()) else { return };
        self.in_flight.retain(|sent| !is_lost(sent));
        let timeouts = Duration::from_micros(3 * (self.srtt_us * 3 / 2 + 25_000));
        let is_persistent = last.saturating_since(*first) > timeouts;
        self.control.handle_lost(now, lost.len() as u64 * PACKET_BYTES, is_persistent);
    }

    /// Bits per second received between the two.
    pub(super) fn rate_bps(&self, from: Instant, until: Instant) -> u64 {
        let count = self.arrived.iter().filter(|(at, _)| *at >= from && *at < until).count() as u64;
        count * PACKET_BYTES * 8 * 1_000_000 / (until.as_micros() - from.as_micros())
    }
}

impl Bottleneck {
    pub(super) fn new(path: Path, seed: u64, games: &[Game]) -> Self {
        Bottleneck {
            path,
            now: Instant::ZERO,
            flows: games.iter().map(|game| Flow::new(*game)).collect(),
            queue: VecDeque::new(),
            credit_bits: 0,
            passing: VecDeque::new(),
            random: Rng::new(seed),
            waits: Vec::new(),
        }
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        while self.now < end {
            self.step();
            self.now += STEP;
        }
    }

    fn step(&mut self) {
        let (now, path) = (self.now, self.path);
        for index in 0..self.flows.len() {
            self.flows[index].tick(now);
            for (number, made) in self.flows[index].send(now) {
                let waiting = self.queue.len() as u64 * PACKET_BYTES;
                if waiting + PACKET_BYTES <= path.queue_bytes_max {
                    self.queue.push_back(Passing { flow: index, number, made, arrives: now });
                }
            }
        }
        self.serve();
        while self.passing.front().is_some_and(|packet| packet.arrives <= now) {
            let packet = self.passing.pop_front().unwrap();
            if !self.is_lost() {
                self.flows[packet.flow].receive(now, packet.number, packet.made);
            }
        }
        for index in 0..self.flows.len() {
            if let Some(ack) = self.flows[index].due_ack(now, &path)
                && !self.is_lost()
            {
                self.flows[index].acks.push_back((now + path.delay, ack));
            }
            let flow = &mut self.flows[index];
            while flow.acks.front().is_some_and(|(at, _)| *at <= now) {
                let (_, ack) = flow.acks.pop_front().unwrap();
                flow.handle_ack(now, &ack);
            }
            flow.detect_loss(now);
        }
        if now.as_micros().is_multiple_of(1_000) {
            let wait_us = self.queue.len() as u64 * PACKET_BYTES * 8 * 1_000_000 / path.rate_bps;
            self.waits.push(Duration::from_micros(wait_us));
        }
    }

    /// Sends what the bottleneck's rate allows in one step.
    fn serve(&mut self) {
        self.credit_bits += self.path.rate_bps * STEP_US / 1_000_000;
        while self.credit_bits >= PACKET_BYTES * 8 {
            let Some(mut packet) = self.queue.pop_front() else {
                self.credit_bits = 0;
                break;
            };
            self.credit_bits -= PACKET_BYTES * 8;
            packet.arrives = self.now + self.path.delay;
            self.passing.push_back(packet);
        }
    }

    fn is_lost(&mut self) -> bool {
        let draw = self.random.below(100);
        let is_away = self.path.outage.is_some_and(|(from, until)| self.now >= from && self.now < until);
        is_away || draw < self.path.loss_percent
    }
}
