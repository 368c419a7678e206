//! A room of players that send on all lanes, and count what arrives.

use parlor_client_core::{Event, Options, PathMode, RoomCore, TransportPath};
use parlor_hub::Config;
use parlor_impair::Rng;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{Lane, MemberId};
use parlor_sim::{APP, Link, PeerId, Sim};
use parlor_sync::keyed::Audience;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const LANES: [Lane; 4] =
    [Lane::ReliableOrdered, Lane::ReliableUnordered, Lane::Unreliable, Lane::UnreliableSequenced];

/// Message numbers by lane, sender and receiver.
pub(crate) type Ledger = BTreeMap<(usize, usize, usize), Vec<u64>>;

/// A room of players that send on all lanes.
pub(crate) struct Room {
    pub(crate) sim: Sim,
    pub(crate) peers: Vec<PeerId>,
    /// Numbers of the messages that were sent, and of those that arrived.
    pub(crate) sent: Ledger,
    pub(crate) came: Ledger,
    pub(crate) number: u64,
    pub(crate) rng: Rng,
}

pub(crate) fn options(mode: PathMode) -> Options {
    let mut options = Options::host(APP);
    options.paths = mode;
    if let parlor_client_core::Wish::Host { max_players, .. } = &mut options.intent {
        *max_players = 8;
    }
    options
}

/// A room of players whose own states have the host's template.
pub(crate) fn room_with(
    seed: u64,
    modes: &[PathMode],
    host: Options,
    relay: Link,
    direct: Option<Link>,
) -> Room {
    let mut drawn = [9; 32];
    drawn[..8].copy_from_slice(&seed.to_le_bytes());
    let grace = Duration::from_secs(20);
    let mut sim = Sim::with_hub(seed, Config { record: true, grace, ..Config::new(drawn) });
    sim.direct(direct);
    let template = host.template.clone();
    let first = sim.host(host, relay);
    let code = sim.code(first);
    let mut peers = vec![first];
    for mode in modes {
        let mut options = Options::join(APP, code);
        options.paths = *mode;
        options.template = template.clone();
        let peer = sim.enter(options, relay);
        sim.run_until(10_000, "it is in", |sim| sim.room(peer).player_count() > 0);
        peers.push(peer);
    }
    for peer in &peers {
        sim.play(*peer, play);
    }
    Room { sim, peers, sent: Ledger::new(), came: Ledger::new(), number: 0, rng: Rng::new(seed ^ 0x5eed) }
}

pub(crate) fn room(seed: u64, modes: &[PathMode], relay: Link, direct: Option<Link>) -> Room {
    room_with(seed, modes, options(PathMode::Auto), relay, direct)
}

pub(crate) fn play(room: &mut RoomCore, _: parlor_proto::Instant) {
    let tick = room.tick_number().expect("the room is open");
    // The call fails once the room is over.
    let _: Result<(), _> = room.send_input(&tick.0);
    if !room.is_host() {
        return;
    }
    room.set("tick", &tick.0, Audience::All).expect("the host writes");
    room.set("still", &7, Audience::All).expect("the host writes");
    let secret = Audience::members([MemberId(2)]);
    room.set("secret", &tick.0, secret).expect("the host writes");
    for (member, wanted) in room.inputs::<u32>().expect("the host reads inputs") {
        room.set(&format!("of/{}", member.0), &wanted, Audience::All).expect("the host writes");
    }
}

impl Room {
    pub(crate) fn member(&self, index: usize) -> MemberId {
        self.sim.room(self.peers[index]).local_id().expect("it is in")
    }

    /// A random player sends a message to one or all others.
    pub(crate) fn say(&mut self) {
        let count = self.peers.len();
        let from = self.rng.index(count);
        let lane = self.rng.index(LANES.len());
        let to_all = self.rng.per_mille(300);
        let to = (from + 1 + self.rng.index(count - 1)) % count;
        let receivers: Vec<usize> =
            if to_all { (0..count).filter(|it| *it != from).collect() } else { vec![to] };
        let address = match (to_all, to) {
            (true, _) => Recipient::Others,
            (false, 0) if self.rng.per_mille(500) => Recipient::Authority,
            (false, to) => Recipient::Member(self.member(to)),
        };
        self.number += 1;
        let number = self.number;
        let text = "x".repeat(if self.rng.per_mille(50) { 3_000 } else { 10 });
        let peer = self.peers[from];
        let said = self.sim.act(peer, |room, now| {
            room.send(LANES[lane], address, "say", &(lane, number, text.as_str()), false, now)
        });
        if said.is_ok() {
            receivers.into_iter().for_each(|to| self.sent.entry((lane, from, to)).or_default().push(number));
        }
    }

    /// Records the events of all games.
    pub(crate) fn listen(&mut self) {
        for to in 0..self.peers.len() {
            for event in self.sim.take_events(self.peers[to]) {
                let Event::Message(message) = event else { continue };
                let parlor_proto::wire::envelope::Sender::Member(from) = message.from else { continue };
                let (lane, number, _): (usize, u64, String) = message.read().expect("it is what was said");
                let from = usize::try_from(from.0).expect("few members");
                self.came.entry((lane, from, to)).or_default().push(number);
            }
        }
    }

    /// Lets time pass while all players send.
    pub(crate) fn talk(&mut self, ms: u64) {
        for _ in 0..ms / 5 {
            if self.rng.per_mille(600) {
                self.say();
            }
            self.sim.run_for(5);
        }
        self.listen();
    }

    /// Waits for messages in flight, and compares.
    pub(crate) fn settle(&mut self) {
        self.sim.run_for(3_000);
        self.listen();
        for (key, sent) in &self.sent {
            let came = self.came.remove(key).unwrap_or_default();
            let mut once = came.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), came.len(), "{key:?}: something came twice\n{}", self.sim.excerpt(60));
            match LANES[key.0] {
                Lane::ReliableOrdered => assert_eq!(&came, sent, "{key:?}\n{}", self.sim.excerpt(60)),
                Lane::ReliableUnordered => assert_eq!(&once, sent, "{key:?}\n{}", self.sim.excerpt(60)),
                Lane::Unreliable => assert!(once.iter().all(|number| sent.contains(number)), "{key:?}"),
                Lane::UnreliableSequenced => assert_eq!(came, once, "{key:?}: an older one came later"),
            }
        }
        assert!(self.came.is_empty(), "nobody hears what was not said to it: {:?}", self.came);
        self.sent.clear();
    }

    /// Connects paths, however long it takes: a lost path is retried after a while.
    pub(crate) fn connect_again(&mut self) {
        let wanted: Vec<PeerId> = self.peers[1..].to_vec();
        self.sim.run_until(40_000, "paths are up again", |sim| {
            wanted.iter().all(|peer| sim.room(*peer).info().transport_path == TransportPath::DirectUdp)
        });
    }

    pub(crate) fn path(&self, index: usize) -> TransportPath {
        self.sim.room(self.peers[index]).info().transport_path
    }

    pub(crate) fn tick(&self, index: usize) -> u32 {
        self.sim.room(self.peers[index]).get("tick").expect("it is a number").unwrap_or(0)
    }

    /// Waits until these members read state over their paths.
    pub(crate) fn connect(&mut self, members: &[usize]) {
        let wanted: Vec<PeerId> = members.iter().map(|index| self.peers[*index]).collect();
        self.sim.run_until(10_000, "paths are up", |sim| {
            wanted.iter().all(|peer| sim.room(*peer).info().transport_path == TransportPath::DirectUdp)
        });
    }
}
