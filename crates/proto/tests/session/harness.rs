//! Two sessions with a link between them, on virtual time. All randomness comes from one seed.

use bytes::Bytes;
use parlor_proto::random::SplitMix64;
use parlor_proto::session::{Answer, DeliveryId, Event, Outgoing, SendError, Session};
use parlor_proto::wire::handshake::{
    Authority, Hello, Intent, Limits, Resume, ResumeToken, RoomKind, RoomSettings, Welcome,
};
use parlor_proto::{
    Carrier, ChannelId, CloseReason, Epoch, Instant, Lane, LinkKind, MemberId, Packet, RoomId, SessionId,
    Tick, TickRate, channel, limits,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

/// Numbers that look random and depend on a seed only.
#[derive(Clone, Debug)]
pub(crate) struct Rng(SplitMix64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.draw()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn between(&mut self, range: (u64, u64)) -> u64 {
        range.0 + self.below(range.1 - range.0 + 1)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("it is an index")]
    }
}

/// Default number of seeds of a scenario.
const SEEDS: u64 = 64;
/// `PARLOR_SEEDS` counts the simulator's whole worlds, which are checked against a model of everything and
/// are cheap. The scenarios here have one topic and cost as much, so they get one seed for this many worlds.
const WORLDS_PER_SEED: u64 = 10;

/// Runs a scenario with each seed, and prints how to repeat a failed one. `PARLOR_SEEDS` is the number of
/// whole worlds that the simulator runs, of which this gets its share; `PARLOR_SEED` selects one seed.
pub(crate) fn for_seeds(scenario: impl Fn(u64)) {
    struct Say(u64);
    impl Drop for Say {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let thread = std::thread::current();
                let test = thread.name().unwrap_or_default();
                eprintln!(
                    "failed with seed {0}; again: PARLOR_SEED={0} cargo test -p parlor-proto --test session {test} -- --exact",
                    self.0
                );
            }
        }
    }
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("PARLOR_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PARLOR_SEEDS").map_or(SEEDS, |worlds| (worlds / WORLDS_PER_SEED).max(SEEDS)),
    };
    for seed in seeds {
        let _say = Say(seed);
        scenario(seed);
    }
}

/// The network conditions of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// One-way latency, in µs; its range reorders datagrams.
    pub(crate) latency_us: (u64, u64),
    /// Lost datagrams of 1,000.
    pub(crate) lost: u64,
    /// Duplicated datagrams of 1,000.
    pub(crate) doubled: u64,
}

pub(crate) const PERFECT: Conditions = Conditions { latency_us: (20_000, 20_000), lost: 0, doubled: 0 };

/// The index of an end.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// The payload of a test's message, which can be checked without a lookup.
pub(crate) fn payload(id: u64, len: usize) -> Bytes {
    static NOISE: OnceLock<Vec<u8>> = OnceLock::new();
    let noise = NOISE.get_or_init(|| {
        let mut rng = Rng::new(0);
        (0..limits::PAYLOAD_BYTES_MAX / 4).flat_map(|_| rng.next().to_le_bytes()).collect()
    });
    let start = usize::try_from(id % 1_000).expect("it is small");
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend(&noise[start..start + len.saturating_sub(8)]);
    bytes.into()
}

fn id_of(payload: &Bytes) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().expect("each message begins with its id"))
}

/// A message sent by a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) id: u64,
    pub(crate) channel: ChannelId,
    pub(crate) key: u32,
    pub(crate) tracked: bool,
}

/// An end and its observations.
pub(crate) struct End {
    pub(crate) session: Session,
    attached: bool,
    /// Its clock minus the world's.
    pub(crate) ahead_us: u64,
    pub(crate) sent: Vec<Sent>,
    /// Channel, key and id of each message, in order of arrival.
    pub(crate) got: Vec<(ChannelId, u32, u64)>,
    pub(crate) fates: BTreeMap<u64, bool>,
    pub(crate) welcome: Option<Welcome>,
    /// The tokens that it got.
    pub(crate) resumed: Vec<ResumeToken>,
    pub(crate) closed: Option<CloseReason>,
    /// When packets were sent, in µs of the world.
    pub(crate) left_at: Vec<u64>,
}

/// A line of a transcript.
#[derive(Debug, PartialEq)]
pub(crate) enum Happened {
    Packet(Packet),
    Event(Event),
}

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) now_us: u64,
    pub(crate) kind: LinkKind,
    pub(crate) conditions: Conditions,
    pub(crate) ends: [End; 2],
    /// By time of arrival and a number that keeps the order of equal times: the receiver, the connection, the
    /// packet.
    under_way: BTreeMap<(u64, u64), (usize, u64, Packet)>,
    connection: u64,
    /// How often the server resumed the client.
    pub(crate) connections: u8,
    stream_until: [u64; 2],
    serial: u64,
    next_id: u64,
    /// Every packet and event so far, with its time and its end.
    pub(crate) transcript: Vec<(u64, usize, Happened)>,
    /// Nothing arrives.
    pub(crate) is_cut: bool,
    /// The server's welcome: keep-alive and silence, in ms.
    pub(crate) terms: Limits,
}

pub(crate) fn hello() -> Hello {
    Hello {
        name: "ada".into(),
        ..Hello::new("tanks", Intent::Create(RoomSettings::new(RoomKind::PlayerHosted, 4)))
    }
}

pub(crate) fn welcome(now: Instant, limits: Limits) -> Welcome {
    Welcome {
        version: limits::VERSION_MAX,
        session: SessionId(7),
        capabilities: 0,
        room: RoomId(1),
        code: "K7QM".parse().expect("a code"),
        kind: RoomKind::PlayerHosted,
        member: MemberId(0),
        authority: Authority::Member(MemberId(0)),
        epoch: Epoch(1),
        tick_rate: TickRate::DEFAULT,
        opened: now,
        now,
        max_players: 4,
        limits,
        resume: None,
        grace_ms: 0,
        gone_ms: None,
        schema: Bytes::new(),
        members: 1,
    }
}

impl World {
    pub(crate) fn new(seed: u64, kind: LinkKind, conditions: Conditions) -> World {
        let mut rng = Rng::new(seed);
        let end = |session, ahead_us| End {
            session,
            attached: true,
            ahead_us,
            sent: Vec::new(),
            got: Vec::new(),
            fates: BTreeMap::new(),
            welcome: None,
            closed: None,
            resumed: Vec::new(),
            left_at: Vec::new(),
        };
        let ahead = [rng.below(1 << 40), rng.below(1 << 40)];
        let client = Session::client(hello(), kind, Instant::from_micros(ahead[CLIENT]));
        let server = Session::server(kind, Instant::from_micros(ahead[SERVER]));
        World {
            rng,
            now_us: 0,
            kind,
            conditions,
            ends: [end(client, ahead[CLIENT]), end(server, ahead[SERVER])],
            under_way: BTreeMap::new(),
            connection: 0,
            connections: 0,
            stream_until: [0; 2],
            serial: 0,
            next_id: 0,
            transcript: Vec::new(),
            is_cut: false,
            terms: Limits::of_this_build(),
        }
    }

    /// A world with a session that is open at both ends.
    pub(crate) fn open(seed: u64, kind: LinkKind, conditions: Conditions) -> World {
        let mut world = World::new(seed, kind, conditions);
        world.run_ms(2_000);
        assert!(world.ends.iter().all(|end| end.session.is_open()), "{:?}", world.ends[CLIENT].closed);
        world
    }

    /// An end's clock.
    pub(crate) fn clock(&self, end: usize) -> Instant {
        Instant::from_micros(self.now_us + self.ends[end].ahead_us)
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        let until = self.now_us + ms * 1_000;
        loop {
            self.pump();
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let due =
                |end: &End| end.session.poll_timeout().map(|at| at.as_micros().saturating_sub(end.ahead_us));
            let next = [arrival, due(&self.ends[0]), due(&self.ends[1])].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now_us = self.now_us.max(next);
            self.deliver();
            for end in [CLIENT, SERVER] {
                let now = self.clock(end);
                if self.ends[end].session.poll_timeout().is_some_and(|at| at <= now) {
                    self.ends[end].session.handle_timeout(now);
                    let next = self.ends[end].session.poll_timeout();
                    assert!(next.is_none_or(|at| at > now), "{next:?} is due again at {now}");
                }
            }
        }
        self.now_us = until;
        self.pump();
    }

    /// Takes the packets and events of both ends.
    fn pump(&mut self) {
        for end in [CLIENT, SERVER] {
            let now = self.clock(end);
            loop {
                self.take_events(end);
                let Some(packet) = self.ends[end].session.poll_packet(now) else { break };
                self.carry(end, packet);
            }
            self.take_events(end);
        }
    }

    fn take_events(&mut self, end: usize) {
        let now = self.clock(end);
        while let Some(event) = self.ends[end].session.poll_event() {
            self.transcript.push((self.now_us, end, Happened::Event(event.clone())));
            let terms = self.terms;
            let this = &mut self.ends[end];
            assert_eq!(this.closed, None, "{event:?} comes after the end");
            match event {
                Event::Hello(_) => {
                    this.session.answer(Answer::Welcome(Box::new(welcome(now, terms))), now);
                }
                Event::Welcome(welcome) => this.welcome = Some(*welcome),
                Event::Rejected(away) => panic!("turned away: {away:?}"),
                Event::Message(message) => {
                    let id = id_of(&message.payload);
                    assert!(message.payload == payload(id, message.payload.len()), "the content is intact");
                    this.got.push((message.channel, message.key, id));
                }
                Event::Delivered(DeliveryId(id)) => assert_eq!(this.fates.insert(id, true), None, "one fate"),
                Event::Lost(DeliveryId(id)) => assert_eq!(this.fates.insert(id, false), None, "one fate"),
                Event::Closed(reason) => this.closed = Some(reason),
                Event::Resumed(token) => {
                    this.resumed.push(token);
                }
                Event::Resume(_) | Event::Seat(_) | Event::Moved(_) | Event::Silent => {
                    panic!("{event:?} of a session that is open and was heard")
                }
            }
        }
    }

    fn carry(&mut self, from: usize, packet: Packet) {
        self.transcript.push((self.now_us, from, Happened::Packet(packet.clone())));
        let max = match packet.carrier {
            Carrier::Datagram => limits::DATAGRAM_BYTES_MAX,
            Carrier::Stream | Carrier::Isolated => limits::STREAM_PACKET_BYTES_MAX,
        };
        assert!(packet.bytes.len() <= max, "{:?} of {} bytes", packet.carrier, packet.bytes.len());
        assert!(self.kind.has_datagrams() || packet.carrier == Carrier::Stream, "{:?}", packet.carrier);
        self.ends[from].left_at.push(self.now_us);
        if !self.ends[from].attached {
            // It has not noticed that the connection is gone.
            return;
        }
        let copies = match packet.carrier {
            Carrier::Datagram if self.rng.below(1_000) < self.conditions.lost => 0,
            Carrier::Datagram if self.rng.below(1_000) < self.conditions.doubled => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let mut at = self.now_us + self.rng.between(self.conditions.latency_us);
            if packet.carrier != Carrier::Datagram && self.rng.below(1_000) < self.conditions.lost {
                // A stream repeats what a datagram would lose.
                at += 3 * self.conditions.latency_us.1;
            }
            if packet.carrier == Carrier::Stream {
                at = at.max(self.stream_until[from]);
                self.stream_until[from] = at;
            }
            self.serial += 1;
            self.under_way.insert((at, self.serial), (1 - from, self.connection, packet.clone()));
        }
    }

    fn deliver(&mut self) {
        while let Some(((at, _), _)) = self.under_way.first_key_value()
            && *at <= self.now_us
        {
            let (_, (to, connection, packet)) = self.under_way.pop_first().expect("there is a first");
            if connection != self.connection || self.is_cut {
                continue;
            }
            let now = self.clock(to);
            if !self.ends[to].attached && to == SERVER {
                self.resume_at_server(packet, now);
                continue;
            }
            self.ends[to].session.handle_packet(packet, now).expect("honest peers understand each other");
            self.take_events(to);
        }
    }

    /// The first packet of a new connection reached the server, which uses a temporary session until it knows
    /// the real one.
    fn resume_at_server(&mut self, packet: Packet, now: Instant) {
        let mut newest = Session::server(self.kind, now);
        newest.handle_packet(packet, now).expect("honest peers understand each other");
        let resume = Resume { session: SessionId(7), token: ResumeToken([1; 32]) };
        assert_eq!(newest.poll_event(), Some(Event::Resume(resume)));
        assert!(newest.is_deciding());
        self.connections += 1;
        let server = &mut self.ends[SERVER];
        server.session.go_on(ResumeToken([self.connections; 32]), self.kind, now);
        server.attached = true;
        self.take_events(SERVER);
    }

    /// Breaks the connection. An end may not notice before the next one is there, and continues to send.
    pub(crate) fn disconnect(&mut self, notices: [bool; 2]) {
        self.connection += 1;
        for end in [CLIENT, SERVER] {
            self.ends[end].attached = false;
            if notices[end] {
                self.ends[end].session.detach();
            }
        }
        self.pump();
    }

    /// The client has another connection; the server notices with the first packet.
    pub(crate) fn reconnect(&mut self, kind: LinkKind) {
        self.pump();
        self.connection += 1;
        self.stream_until = [self.now_us; 2];
        self.kind = kind;
        self.ends[SERVER].session.detach();
        self.take_events(SERVER);
        let now = self.clock(CLIENT);
        let resume = Resume { session: SessionId(7), token: ResumeToken([1; 32]) };
        self.ends[CLIENT].session.resume(resume, kind, now);
        self.ends[CLIENT].attached = true;
    }

    /// Sends a message of `len` bytes. Returns false if the queue is full.
    pub(crate) fn send(
        &mut self,
        end: usize,
        channel: ChannelId,
        key: u32,
        len: usize,
        tracked: bool,
    ) -> bool {
        let id = self.next_id;
        let delivery_id = tracked.then_some(DeliveryId(id));
        let message = Outgoing { channel, key, payload: payload(id, len), delivery_id };
        match self.ends[end].session.send(message) {
            Ok(()) => {
                self.next_id += 1;
                self.ends[end].sent.push(Sent { id, channel, key, tracked });
                true
            }
            Err(SendError::Full) => false,
            Err(SendError::Misuse(misuse)) => panic!("{misuse}"),
        }
    }

    pub(crate) fn close(&mut self, end: usize, reason: CloseReason) {
        let now = self.clock(end);
        self.ends[end].session.close(reason, now);
    }

    pub(crate) fn set_tick(&mut self, end: usize, tick: u32) {
        self.ends[end].session.set_tick(Tick(tick));
    }

    /// Ids that `end` received on `channel`, in order.
    pub(crate) fn got(&self, end: usize, channel: ChannelId) -> Vec<u64> {
        self.ends[end].got.iter().filter(|got| got.0 == channel).map(|got| got.2).collect()
    }

    /// Ids that `end` sent on `channel`, in order.
    pub(crate) fn sent(&self, end: usize, channel: ChannelId) -> Vec<u64> {
        self.ends[end].sent.iter().filter(|sent| sent.channel == channel).map(|sent| sent.id).collect()
    }

    /// Checks the invariants: only sent messages arrive, none twice, none out of order.
    pub(crate) fn check_safety(&self) {
        for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
            let sent: BTreeMap<u64, &Sent> =
                self.ends[from].sent.iter().map(|sent| (sent.id, sent)).collect();
            let mut seen = BTreeMap::new();
            let mut newest = BTreeMap::new();
            for (channel, key, id) in &self.ends[to].got {
                let sent = sent[id];
                assert_eq!(sent.channel, *channel);
                assert_eq!(seen.insert(*id, ()), None, "message {id} came twice");
                if *channel == channel::MESSAGE_SEQUENCED || *channel == channel::STATE {
                    assert_eq!(sent.key, *key);
                    let before = newest.insert((*channel, *key), *id);
                    assert!(before < Some(*id), "message {id} came after {before:?}, which is newer");
                }
            }
            let (meant, came) =
                (self.sent(from, channel::MESSAGE_ORDERED), self.got(to, channel::MESSAGE_ORDERED));
            assert_eq!(came[..], meant[..came.len()], "ordered messages came in their order");
            for (id, delivered) in &self.ends[from].fates {
                assert!(sent[id].tracked);
                assert!(!delivered || seen.contains_key(id), "message {id} was not delivered");
            }
        }
    }

    /// Checks that all reliable messages have arrived and every fate is known, after the link was good for a
    /// while.
    pub(crate) fn check_settled(&self) {
        self.check_safety();
        for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
            for lane in [channel::MESSAGE_ORDERED, channel::MESSAGE_UNORDERED] {
                let mut came = self.got(to, lane);
                came.sort_unstable();
                assert_eq!(came, self.sent(from, lane), "each reliable message came");
            }
            for sent in self.ends[from].sent.iter().filter(|sent| sent.tracked) {
                assert!(self.ends[from].fates.contains_key(&sent.id), "message {} has no fate", sent.id);
            }
        }
    }
}

/// The channel of a lane.
pub(crate) const LANES: [ChannelId; 4] = [
    channel::typed(Lane::ReliableOrdered),
    channel::typed(Lane::ReliableUnordered),
    channel::typed(Lane::Unreliable),
    channel::typed(Lane::UnreliableSequenced),
];

/// A `Duration` of `ms` milliseconds.
pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
