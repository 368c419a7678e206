//! A whole world from one seed: rooms open and end; members join, talk, play, stall, fall silent, crash, are
//! kicked and leave. Their links are anything from clean to awful, and the hub itself may shut down or die.
//! Everything is checked against the [model](crate::model).
//!
//! A scenario has two parts. In the *storm*, which takes one to four seconds, anything happens at any time.
//! Then it *settles*: links heal, stalled clients go on, and silent ones time out. In the end every remaining
//! member must have everything that it should, and the log of every room must replay.

mod acts;
mod play;
mod ships;

use crate::link::Link;
use crate::model::{Counts, Divergence, Model, Verdict};
use crate::peer::PeerId;
use crate::sim::Sim;
use acts::Client;
use parlor_client_core::{RoomCore, RoomError, TransportPath};
use parlor_impair::Rng;
use parlor_proto::{ApiMisuse, Instant, LinkKind, MemberId, RoomCode, limits};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Rooms in one world at most, which bounds the cost of a seed.
const ROOMS_MAX: usize = 3;
/// Members in one room at most.
const MEMBERS_MAX: u64 = 8;
/// Lines of the transcript printed with a divergence.
const EXCERPT_LINES: usize = 80;

/// The result of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of the whole run: equal for the same seed.
    pub trace_hash: u64,
    /// Counts of what was checked.
    pub counts: Counts,
}

/// Runs the scenario of a seed.
///
/// # Panics
/// If the world diverges from its model: with the seed, the divergence, and the end of the transcript.
pub fn run(seed: u64) -> Outcome {
    let mut world = World::new(seed);
    let verdict = world.storm().and_then(|()| world.settle());
    if let Err(divergence) = verdict {
        let excerpt = world.sim.excerpt(EXCERPT_LINES);
        panic!("seed {seed} diverges at {} µs: {divergence}\n{excerpt}", world.sim.now().as_micros());
    }
    Outcome { trace_hash: world.sim.trace_hash(), counts: world.model.borrow().counts() }
}

/// Games also report to the model, from within their steps.
type SharedModel = Rc<RefCell<Model>>;
/// The first objection in a game's step, checked after time has passed.
type Objection = Rc<RefCell<Verdict>>;

/// How long seats are kept, in worlds that keep them: longer than any cut, and short enough to wait for.
const GRACE: Duration = Duration::from_secs(3);

struct World {
    sim: Sim,
    grace: Duration,
    /// Randomness of paths, in a world with paths.
    paths: Option<Rng>,
    are_paths_silent: bool,
    /// Whether games have predicted actions.
    has_ships: bool,
    rng: Rng,
    model: SharedModel,
    objection: Objection,
    /// Whether games still play. Shared with their steps.
    is_busy: Rc<RefCell<bool>>,
    clients: Vec<Client>,
    rooms: Vec<Opened>,
    /// Size limit of this world's rooms.
    members_max: u64,
    is_down: bool,
    /// When a large message may be sent again.
    large_message_at: Instant,
}

/// A room that the world opened.
struct Opened {
    host: PeerId,
    code: Option<RoomCode>,
    secret: Option<String>,
    /// Clients that asked to enter.
    asked: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0057_0412);
        // Most worlds are small, so that ten thousand take minutes; a large one covers what small ones do
        // not.
        let members_max = rng.pick(&[2, 3, 3, 4, 4, 5, 6, MEMBERS_MAX]);
        // In some worlds the hub keeps the seats of members with a lost connection.
        let grace = rng.pick(&[Duration::ZERO, GRACE]);
        let mut sim = Sim::keeping_seats(seed, grace);
        let paths = World::paths(seed, &mut sim);
        let has_ships = Rng::new(seed ^ 0x7368_6970).per_mille(300);
        World {
            has_ships,
            sim,
            grace,
            paths,
            are_paths_silent: false,
            rng,
            model: SharedModel::default(),
            objection: Rc::new(RefCell::new(Ok(()))),
            is_busy: Rc::new(RefCell::new(true)),
            clients: Vec::new(),
            rooms: Vec::new(),
            members_max,
            is_down: false,
            large_message_at: Instant::ZERO,
        }
    }

    fn storm(&mut self) -> Verdict {
        let mut left_ms = 1_000 + self.rng.below(3_000);
        self.open_room()?;
        self.pass(300)?;
        while left_ms > 0 {
            let slice_ms = self.rng.below(60).min(left_ms - 1) + 1;
            left_ms -= slice_ms;
            self.something_happens()?;
            self.pass(slice_ms)?;
        }
        Ok(())
    }

    /// Lets time pass, and checks what happened against the model.
    fn pass(&mut self, ms: u64) -> Verdict {
        self.sim.run_for(ms);
        self.hold_against()
    }

    /// Chooses the paths of a world: which clients want them, and whether they reach each other.
    fn paths(seed: u64, sim: &mut Sim) -> Option<Rng> {
        let mut rng = Rng::new(seed ^ 0x7061_7468);
        let has_paths = rng.per_mille(600);
        if has_paths {
            // A short link: a world lasts a few seconds, and most worlds with paths should use them.
            let link = Link::worse(&mut rng).as_kind(LinkKind::Quic).latency_ms(1 + rng.below(30));
            sim.direct(Some(link).filter(|_| rng.per_mille(900)));
        }
        has_paths.then_some(rng)
    }

    fn hold_against(&mut self) -> Verdict {
        self.objection.borrow().clone()?;
        let mut model = self.model.borrow_mut();
        self.sim.take_hub_events().iter().try_for_each(|hub_event| model.happened(hub_event))?;
        for client in &self.clients {
            let room = self.sim.room(client.peer);
            if room.is_host()
                && let Some((sequence, _)) = room.state_hash()
            {
                model.publishes(client.peer, sequence)?;
            }
        }
        for client in &self.clients {
            let events = self.sim.take_events(client.peer);
            let has_state = events.iter().any(|event| matches!(event, parlor_client_core::Event::State(_)));
            events.iter().try_for_each(|event| model.told(client.peer, event))?;
            let room = self.sim.room(client.peer);
            if room.local_id() == Some(MemberId(0)) {
                continue;
            }
            if has_state {
                model.decoded(client.peer, &room.state_checksums())?;
            }
            if room.is_connected() && room.info().transport_path == TransportPath::DirectUdp {
                model.reads_apart(client.peer)?;
            }
        }
        Ok(())
    }

    /// Lets everything settle, and checks the result.
    fn settle(&mut self) -> Verdict {
        *self.is_busy.borrow_mut() = false;
        // If they stay silent, the hub gets their messages.
        if self.are_paths_silent && self.rng.per_mille(500) {
            self.sim.silence_paths(false);
        }
        for index in 0..self.clients.len() {
            self.recover(index);
        }
        // After that time silent clients time out, and the others must hear of it.
        let silence_ms = u64::try_from(limits::SILENCE_TIMEOUT.as_millis()).expect("it is some seconds");
        let is_silent =
            self.clients.iter().any(|client| client.has_been_silent || self.sim.is_crashed(client.peer));
        // Then a seat may be kept for its time, and its member may return.
        let kept_ms = u64::try_from(self.grace.as_millis()).expect("it is some seconds") * 2;
        self.pass(kept_ms + if is_silent { silence_ms + 3_000 } else { 3_000 })?;
        let (sim, model) = (&self.sim, &mut *self.model.borrow_mut());
        model.settled(|who| sim.room(who), |who| !sim.is_crashed(who))?;
        model.replay(sim.log_files())
    }

    /// Ends a client's trouble, unless it is dead.
    fn recover(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let peer = client.peer;
        if self.sim.is_crashed(peer) {
            return;
        }
        if std::mem::take(&mut client.is_silent) {
            self.sim.silence(peer, false);
        }
        if std::mem::take(&mut client.is_stalled) {
            self.sim.stall(peer, false);
        }
        if std::mem::take(&mut client.is_blocked) {
            self.sim.block(peer, false);
        }
        let link: Link = self.sim.link(peer).healed();
        self.sim.relink(peer, link);
    }
}

/// Keeps the first objection.
fn object(objection: &Objection, verdict: Verdict) {
    let mut first = objection.borrow_mut();
    if first.is_ok() {
        *first = verdict;
    }
}

/// Whether a correct game may get this error: its connection is slow, a member has just left, the session is over
/// and the game has not read that yet, or it watches only.
fn is_usual(room: &RoomCore, error: &RoomError) -> bool {
    match error {
        RoomError::Full | RoomError::Misuse(ApiMisuse::NoSuchPlayer(_) | ApiMisuse::Closed(_)) => true,
        RoomError::Misuse(ApiMisuse::Spectator { .. }) => room.is_spectator(),
        _ => false,
    }
}

/// The divergence for an error that the model does not expect.
fn refused(who: PeerId, what: &str, error: &dyn std::error::Error) -> Divergence {
    Divergence::new(format!("{who} may {what} and is refused: {error}"))
}
