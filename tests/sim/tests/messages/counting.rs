//! A room with host migration whose game counts its steps: what a change of the host loses or repeats shows.

use parlor_client_core::{Options, RoomCore, Wish};
use parlor_hub::Config;
use parlor_proto::MemberId;
use parlor_proto::wire::handshake::Resume;
use parlor_sim::{APP, Link, PeerId, Sim};
use parlor_sync::keyed::Audience;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

const SILENCE: Duration = Duration::from_millis(250);

/// The actions of hosts: the writers of each epoch, and the steps that they ran, in order.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    pub(crate) writers: BTreeMap<u32, BTreeSet<PeerId>>,
    pub(crate) steps: Vec<(PeerId, u32)>,
}

/// The options of a process that has a seat's ticket only.
pub(crate) fn by_ticket(proof: Resume) -> Options {
    let mut options = Options::host(APP);
    options.intent = Wish::Resume { session: proof.session, token: proof.token };
    options
}

pub(crate) struct Room {
    pub(crate) sim: Sim,
    pub(crate) peers: Vec<PeerId>,
    pub(crate) deeds: Rc<RefCell<Deeds>>,
}

/// A room whose game counts steps and sums inputs. It runs unchanged on any host: all of its state is the
/// room's.
pub(crate) fn room(seed: u64, players: usize, link: Link, grace: Duration) -> Room {
    room_that_pauses(None, (seed, players), link, grace)
}

/// The same whose steps pause in a migration, or go on.
pub(crate) fn room_that_pauses(
    pauses: Option<bool>,
    (seed, players): (u64, usize),
    link: Link,
    grace: Duration,
) -> Room {
    let mut drawn = [7; 32];
    drawn[..8].copy_from_slice(&seed.to_le_bytes());
    let mut sim = Sim::with_hub(seed, Config { record: true, grace, ..Config::new(drawn) });
    let mut options = Options::host(APP);
    (options.host_timeout, options.migration_pause) = (Some(SILENCE), pauses);
    if let Wish::Host { max_players, .. } = &mut options.intent {
        *max_players = 8;
    }
    let host = sim.host(options, link);
    let code = sim.code(host);
    let mut peers = vec![host];
    for number in 1..players {
        let options = Options { migration_pause: pauses, ..Options::join(APP, code) };
        peers.push(sim.enter(options, link));
        sim.run_until(30_000, "it is in", |sim| sim.room(peers[number]).player_count() > 0);
    }
    let deeds = Rc::new(RefCell::new(Deeds::default()));
    for peer in &peers {
        let (peer, deeds) = (*peer, Rc::clone(&deeds));
        sim.play(peer, move |room, _| play(room, peer, &deeds));
    }
    sim.run_for(1_500);
    for peer in &peers {
        sim.take_events(*peer);
    }
    Room { sim, peers, deeds }
}

fn play(room: &mut RoomCore, peer: PeerId, deeds: &RefCell<Deeds>) {
    let tick = room.tick_number().expect("the room is open");
    // The call fails once the room is over, and while the connection is too slow.
    let _: Result<(), _> = room.send_input(&tick.0);
    if !room.is_host() {
        return;
    }
    let mut deeds = deeds.borrow_mut();
    deeds.writers.entry(room.info().epoch.0).or_default().insert(peer);
    deeds.steps.push((peer, tick.0));
    let count: u64 = room.get("count").expect("it is a number").unwrap_or(0);
    room.set("count", &(count + 1), Audience::All).expect("the host writes");
    // State with a single recipient must survive a migration among other members.
    let secret = Audience::members([MemberId(2)]);
    room.set("secret", &(count + 1), secret).expect("the host writes");
    for (member, wanted) in room.inputs::<u32>().expect("the host reads inputs") {
        room.set(&format!("of/{}", member.0), &wanted, Audience::All).expect("the host writes");
    }
}

impl Room {
    pub(crate) fn host(&self) -> Option<PeerId> {
        self.peers.iter().copied().find(|peer| self.is_host(*peer))
    }

    pub(crate) fn is_host(&self, peer: PeerId) -> bool {
        !self.sim.is_crashed(peer) && self.sim.room(peer).is_connected() && self.sim.room(peer).is_host()
    }

    pub(crate) fn count(&self, peer: PeerId, key: &str) -> u64 {
        self.sim.room(peer).get(key).expect("it is a number").unwrap_or(0)
    }

    /// Begins a player's process anew, with nothing but its ticket. Returns false if it has none.
    pub(crate) fn begin_anew(&mut self, peer: PeerId) -> bool {
        let Some(proof) = self.sim.room(peer).resume_proof() else { return false };
        self.sim.restart(peer, by_ticket(proof));
        true
    }

    /// Checks that each step that was run is in the state once.
    pub(crate) fn expect_each_step_once(&self, host: PeerId) {
        let deeds = self.deeds.borrow();
        let ticks: BTreeSet<u32> = deeds.steps.iter().map(|(_, tick)| *tick).collect();
        assert_eq!(ticks.len(), deeds.steps.len(), "no step is run twice: {:?}", deeds.steps);
        assert_eq!(self.count(host, "count"), deeds.steps.len() as u64, "each step counts");
    }

    /// Checks for split brain: no epoch has two writers, and no step was run by two hosts that were both
    /// heard.
    pub(crate) fn expect_no_split_brain(&self) {
        for (epoch, writers) in &self.deeds.borrow().writers {
            assert!(writers.len() == 1, "under epoch {epoch} these wrote: {writers:?}");
        }
    }

    /// Checks that all connected members have the host's state.
    pub(crate) fn expect_one_world(&mut self, host: PeerId) {
        self.sim.play(host, |_, _| ());
        self.sim.run_for(2_000);
        let count = self.count(host, "count");
        for peer in self.peers.clone() {
            if self.sim.is_crashed(peer) || !self.sim.room(peer).is_connected() {
                continue;
            }
            assert_eq!(self.count(peer, "count"), count, "{peer:?}");
            let knows_secret = self.sim.room(peer).local_id() == Some(MemberId(2)) || peer == host;
            assert_eq!(self.count(peer, "secret") != 0, knows_secret, "{peer:?}");
        }
    }
}
