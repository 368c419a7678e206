//! A whole world from one seed: rooms open and end, members come, talk, play, stall, fall silent, crash, are kicked and
//! leave, their links are anything from clean to awful, and the hub itself may go down or die. All the while everything
//! is held against the [model](crate::model).
//!
//! A scenario has two parts. In the *storm*, which takes one to four seconds, anything happens at any time. Then the
//! storm *settles*: links heal, whoever stalled goes on, and the time passes in which the silent are found. In the end
//! whoever stays must have everything that it was owed, and the log of every room must run again.

mod acts;
mod play;

use crate::link::Link;
use crate::model::{Counts, Divergence, Model, Verdict};
use crate::peer::PeerId;
use crate::sim::Sim;
use acts::Client;
use parlor::core::{RoomError, TransportPath};
use parlor::{MemberId, RoomCode};
use parlor_impair::Rng;
use parlor_proto::{ApiMisuse, Instant, LinkKind, limits};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Rooms that open in one world at most, so that what a seed costs is bounded.
const ROOMS_MAX: usize = 3;
/// Members that may come to one room.
const MEMBERS_MAX: u64 = 8;
/// Lines of the transcript that are printed with a divergence.
const EXCERPT_LINES: usize = 80;

/// What came of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A number for all that happened: the same for the same seed.
    pub trace_hash: u64,
    /// How much was held against the model.
    pub counts: Counts,
}

/// Runs the scenario of a seed.
///
/// # Panics
/// If the world diverges from its model: with the seed, what diverged, and the end of the transcript.
#[must_use]
pub fn run(seed: u64) -> Outcome {
    let mut world = World::new(seed);
    let verdict = world.storm().and_then(|()| world.settle());
    if let Err(divergence) = verdict {
        let excerpt = world.sim.excerpt(EXCERPT_LINES);
        panic!("seed {seed} diverges at {} µs: {divergence}\n{excerpt}", world.sim.now().as_micros());
    }
    Outcome { trace_hash: world.sim.trace_hash(), counts: world.model.borrow().counts() }
}

/// The model is also told by the games themselves, from within their steps.
type SharedModel = Rc<RefCell<Model>>;
/// What a game's step objected to. It is looked at when time has passed.
type Objection = Rc<RefCell<Verdict>>;

/// How long seats are kept in worlds where they are: longer than any cut, shorter than what is worth waiting for.
const GRACE: Duration = Duration::from_secs(3);

struct World {
    sim: Sim,
    grace: Duration,
    /// What chance decides of paths beside the hub, in a world where they are wanted.
    paths: Option<Rng>,
    are_paths_silent: bool,
    rng: Rng,
    model: SharedModel,
    objection: Objection,
    /// Whether games still play. Shared with their steps.
    is_busy: Rc<RefCell<bool>>,
    clients: Vec<Client>,
    rooms: Vec<Opened>,
    /// What one room of this world may grow to.
    members_max: u64,
    is_down: bool,
    /// When a large letter may be sent again.
    large_letter_at: Instant,
}

/// What a world remembers of a room that it opened.
struct Opened {
    host: PeerId,
    code: Option<RoomCode>,
    secret: Option<String>,
    /// Clients that asked to come in.
    asked: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0057_0412);
        // Most worlds are small, so that ten thousand take minutes; a large one has what small ones do not.
        let members_max = rng.pick(&[2, 3, 3, 4, 4, 5, 6, MEMBERS_MAX]);
        // In some worlds the hub keeps the seats of those whose connection is lost.
        let grace = rng.pick(&[Duration::ZERO, GRACE]);
        let mut sim = Sim::keeping_seats(seed, grace);
        let paths = World::paths(seed, &mut sim);
        World {
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
            large_letter_at: Instant::ZERO,
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

    /// Lets time pass, and holds what happened against the model.
    fn pass(&mut self, ms: u64) -> Verdict {
        self.sim.run_for(ms);
        self.hold_against()
    }

    /// What a world has of paths between clients: who wants them, and whether they reach each other.
    fn paths(seed: u64, sim: &mut Sim) -> Option<Rng> {
        let mut rng = Rng::new(seed ^ 0x7061_7468);
        let has_paths = rng.per_mille(600);
        if has_paths {
            // The short way. A world lasts a few seconds, and most of them shall have something of it.
            let link = Link::worse(&mut rng).as_kind(LinkKind::Quic).latency_ms(1 + rng.below(30));
            sim.direct(Some(link).filter(|_| rng.per_mille(900)));
        }
        has_paths.then_some(rng)
    }

    fn hold_against(&mut self) -> Verdict {
        self.objection.borrow().clone()?;
        let mut model = self.model.borrow_mut();
        self.sim.take_happenings().iter().try_for_each(|happening| model.happened(happening))?;
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
            let has_state = events.iter().any(|event| matches!(event, parlor::Event::State(_)));
            events.iter().try_for_each(|event| model.told(client.peer, event))?;
            let room = self.sim.room(client.peer);
            if room.local_id() == Some(MemberId(0)) {
                continue;
            }
            if has_state {
                model.decoded(client.peer, &room.state_marks())?;
            }
            if room.is_connected() && room.info().transport_path == TransportPath::DirectUdp {
                model.reads_apart(client.peer)?;
            }
        }
        Ok(())
    }

    /// Lets everything come to rest, and looks at it.
    fn settle(&mut self) -> Verdict {
        *self.is_busy.borrow_mut() = false;
        // If they are silent for good, the hub has what they had.
        if self.are_paths_silent && self.rng.per_mille(500) {
            self.sim.silence_paths(false);
        }
        for index in 0..self.clients.len() {
            self.recover(index);
        }
        // Whoever is silent is found out after that, and then the others must be told.
        let silence_ms = u64::try_from(limits::SILENCE_TIMEOUT.as_millis()).expect("it is some seconds");
        let is_silent =
            self.clients.iter().any(|client| client.has_been_silent || self.sim.is_crashed(client.peer));
        // Then a seat may be kept for its time, and its member may come back.
        let kept_ms = u64::try_from(self.grace.as_millis()).expect("it is some seconds") * 2;
        self.pass(kept_ms + if is_silent { silence_ms + 3_000 } else { 3_000 })?;
        let (sim, model) = (&self.sim, &mut *self.model.borrow_mut());
        model.settled(|who| sim.room(who), |who| !sim.is_crashed(who))?;
        model.replay(sim.log_files())
    }

    /// What holds a client up is over, unless it is dead.
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

/// Whether a game that does nothing wrong may be refused so: its connection is slow, somebody has just left, or the session
/// is over and the game has not read that yet.
fn is_usual(error: &RoomError) -> bool {
    let is_over = |misuse: &ApiMisuse| matches!(misuse, ApiMisuse::NoSuchPlayer(_) | ApiMisuse::Closed(_));
    matches!(error, RoomError::Full) || matches!(error, RoomError::Misuse(misuse) if is_over(misuse))
}

/// What a game was refused that the model thinks it may do.
fn refused(who: PeerId, what: &str, error: &dyn std::error::Error) -> Divergence {
    Divergence::new(format!("{who} may {what} and is refused: {error}"))
}
