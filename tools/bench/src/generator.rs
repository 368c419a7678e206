//! The load generator: members of many rooms on one thread, which send at their own pace and count what they
//! receive.

use super::member::{Counted, Member, Seat, Speech, Wish};
use super::pace::{Beat, Beats, Pace};
use super::pacer::{Agenda, Clock, Timer};
use super::tally::Tally;
use anyhow::Context;
use parlor_proto::{Instant, Packet, RoomCode};
use parlor_transport::{Link, LinkReceiver};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::timeout;

/// How long a member may take to get its seat.
const SEAT_PATIENCE: Duration = Duration::from_secs(10);
/// Packets that are taken from a link at once.
const BATCH: usize = 64;

/// Members on this thread. Cheap to clone; must be used in one `LocalSet`. Members that have not left are gone without a
/// goodbye when the last clone is.
#[derive(Clone)]
pub(crate) struct Crowd {
    shared: Rc<Shared>,
    _keeper: Rc<Keeper>,
}

/// The task that keeps time, which ends with the crowd.
struct Keeper(AbortHandle);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Shared {
    clock: Clock,
    timer: Timer,
    state: RefCell<State>,
}

/// Nothing of it is borrowed across an `await`.
struct State {
    members: Vec<Option<Member>>,
    agenda: Agenda,
    tally: Tally,
    /// Whether what is sent counts.
    is_counting: bool,
    /// Why members were lost unexpectedly.
    lost: Vec<String>,
}

/// What a crowd gives for a seat that it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seated {
    /// The member's number in the crowd.
    pub who: usize,
    /// The room's code, where the server has codes.
    pub code: Option<RoomCode>,
}

impl Crowd {
    /// Returns an empty crowd.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let state = State {
            members: Vec::new(),
            agenda: Agenda::default(),
            tally: Tally::default(),
            is_counting: false,
            lost: Vec::new(),
        };
        let shared = Shared { clock: Clock::start(), timer: Timer::new()?, state: RefCell::new(state) };
        let shared = Rc::new(shared);
        let keeper = spawn_local(Rc::clone(&shared).keep_time()).abort_handle();
        Ok(Crowd { shared, _keeper: Rc::new(Keeper(keeper)) })
    }

    /// Takes a seat over a link that stands.
    ///
    /// # Errors
    /// It was not let in, or not in time.
    pub(crate) async fn seat(&self, link: Link, wish: Wish) -> anyhow::Result<Seated> {
        let (answer, answered) = oneshot::channel();
        let (sender, receiver) = link.split();
        let who = {
            let mut state = self.shared.state.borrow_mut();
            let who = state.members.len();
            let member = Member::new(sender, wish, answer, self.shared.clock.now());
            state.members.push(Some(member));
            state.attend(who, self.shared.clock.now());
            who
        };
        self.shared.arm();
        spawn_local(Rc::clone(&self.shared).listen(who, receiver));
        let answered =
            timeout(SEAT_PATIENCE, answered).await.context("a member got no answer to its hello")?;
        match answered.context("a member was lost before it had its seat")? {
            Ok(Seat { code }) => Ok(Seated { who, code }),
            Err(away) => Err(anyhow::Error::new(away).context("a member was not let in")),
        }
    }

    /// Lets every member send at this rate from here on.
    pub(crate) fn start_sending(&self, rate_hz: f32, pace: Pace, seed: u64) {
        let mut state = self.shared.state.borrow_mut();
        let now = self.shared.clock.now();
        let mut beats = Beats::new(pace, seed);
        let period = Duration::from_secs_f32(1.0 / rate_hz);
        for who in 0..state.members.len() {
            let Some(member) = &mut state.members[who] else { continue };
            let Beat { phase, stretch } = beats.next(member.room());
            member.start_sending(now + period.mul_f32(phase), period.mul_f32(stretch));
            state.attend(who, now);
        }
        drop(state);
        self.shared.arm();
    }

    /// Counts what is sent from here on, with room for so many arrivals.
    pub(crate) fn start_counting(&self, arrivals: usize) {
        let mut state = self.shared.state.borrow_mut();
        state.tally = Tally::for_arrivals(arrivals);
        state.is_counting = true;
    }

    /// Counts no further messages; those that were counted may still arrive.
    pub(crate) fn stop_counting(&self) {
        self.shared.state.borrow_mut().is_counting = false;
    }

    /// What was counted, and why members were lost.
    pub(crate) fn take_tally(&self) -> (Tally, Vec<String>) {
        let mut state = self.shared.state.borrow_mut();
        (std::mem::take(&mut state.tally), std::mem::take(&mut state.lost))
    }

    /// Sends a member away; it says goodbye.
    pub(crate) fn leave(&self, who: usize) {
        if let Some(member) = self.shared.state.borrow_mut().members[who].take() {
            member.leave(self.shared.clock.now());
        }
    }

    /// Lets all members leave.
    pub(crate) fn leave_all(&self) {
        let count = self.shared.state.borrow().members.len();
        (0..count).for_each(|who| self.leave(who));
    }
}

impl Shared {
    async fn listen(self: Rc<Self>, who: usize, mut receiver: LinkReceiver) {
        let mut packets = Vec::with_capacity(BATCH);
        loop {
            let received = receiver.recv_many(&mut packets, BATCH).await;
            let now = self.clock.now();
            self.state.borrow_mut().hear(who, packets.drain(..), now);
            self.arm();
            if let Err(end) = received {
                self.state.borrow_mut().lose(who, &end.to_string());
                return;
            }
        }
    }

    async fn keep_time(self: Rc<Self>) {
        loop {
            let fired = self.timer.fired().await;
            if let Err(error) = fired {
                return self.fail(&error);
            }
            // One at a time, each with its own time: a message bears the moment at which it was sent.
            loop {
                let mut state = self.state.borrow_mut();
                let now = self.clock.now();
                let Some((at, who)) = state.agenda.pop_due(now) else { break };
                state.wake(who, at, now);
            }
            self.arm();
        }
    }

    /// Sets the timer for what comes next.
    fn arm(&self) {
        let next = self.state.borrow().agenda.next_at();
        if let Err(error) = self.timer.arm(next, self.clock) {
            self.fail(&error);
        }
    }

    fn fail(&self, error: &io::Error) {
        self.state.borrow_mut().lost.push(format!("the generator's timer failed: {error}"));
    }
}

impl State {
    /// Something came for a member.
    fn hear(&mut self, who: usize, packets: impl Iterator<Item = Packet>, now: Instant) {
        let Some(member) = &mut self.members[who] else { return };
        for packet in packets {
            member.hear(packet, now, |latency_us| self.tally.arrived(latency_us));
        }
        self.attend(who, now);
    }

    /// A member's time has come, unless it has been attended to since.
    fn wake(&mut self, who: usize, at: Instant, now: Instant) {
        let Some(member) = &mut self.members[who] else { return };
        if member.wakes_at() == Some(at) {
            member.awake();
            self.attend(who, now);
        }
    }

    /// Lets a member do what is due, and notes when it has something to do next.
    fn attend(&mut self, who: usize, now: Instant) {
        let counted = if self.is_counting { Counted::Yes } else { Counted::No };
        let Some(member) = &mut self.members[who] else { return };
        match member.attend(now, counted) {
            Ok(Speech { messages, others }) => {
                if self.is_counting {
                    (0..messages).for_each(|_| self.tally.sent(others));
                }
            }
            Err(why) => return self.lose(who, &why),
        }
        if let Some(at) = member.next_wake(now) {
            self.agenda.add(at, who);
        }
    }

    fn lose(&mut self, who: usize, why: &str) {
        if let Some(member) = self.members[who].take()
            && let Some(why) = member.lost(why)
        {
            self.lost.push(why);
        }
    }
}
