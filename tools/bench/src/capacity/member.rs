//! The members of the rooms, and their counters.

use crate::histogram::Histogram;
use crate::host_world::{move_walkers, schema};
use crate::load::Way;
use crate::member::{APP, Counted};
use crate::pacer::Clock;
use crate::player::{Game, Played, play};
use crate::stamp;
use anyhow::{Context, bail};
use parlor::{Event, Recipient};
use parlor_client_core::{Options, RoomCore, Wish};
use parlor_proto::{ChannelId, Instant, Lane, RoomCode, TickRate, limits};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Steps of a room, each second.
pub(super) const RATE_HZ: u16 = 30;
/// Entities of a host's world.
pub(super) const WALKERS: usize = 24;
/// On which channel members chat, reliably.
const CHAT: u8 = limits::APP_CHANNEL_FIRST;
/// A member chats every so many steps.
const STEPS_A_LINE: u32 = 10 * RATE_HZ as u32;
/// Steps of which a room remembers when the host wrote them.
const STEPS_REMEMBERED: usize = 10 * RATE_HZ as usize;
/// Rooms that are filled at once: few enough that no server takes it for an attack.
const FILLING_MAX: usize = 4;
/// How long a member may take to get its seat.
const PATIENCE: Duration = Duration::from_secs(20);

/// What all members count. They share one thread.
pub(super) struct Count {
    clock: Clock,
    is_counting: Cell<bool>,
    seen: RefCell<Seen>,
}

/// What was counted: of what should have come, how much came.
pub(super) struct Seen {
    pub(super) ages: Histogram,
    pub(super) states: (u64, u64),
    pub(super) chat: (u64, u64),
}

impl Count {
    pub(super) fn new(clock: Clock) -> Self {
        let seen = Seen { ages: Histogram::new(), states: (0, 0), chat: (0, 0) };
        Count { clock, is_counting: Cell::new(false), seen: RefCell::new(seen) }
    }

    /// What is written from here on counts.
    pub(super) fn start(&self) {
        self.is_counting.set(true);
    }

    /// What is written from here on counts no more; what counts already may still arrive.
    pub(super) fn stop(&self) {
        self.is_counting.set(false);
    }

    pub(super) fn seen(&self) -> std::cell::Ref<'_, Seen> {
        self.seen.borrow()
    }

    /// A host wrote a state that so many others should get. Says whether it counts.
    pub(super) fn state_written(&self, others: u64) -> bool {
        let counts = self.is_counting.get();
        if counts {
            self.seen.borrow_mut().states.1 += others;
        }
        counts
    }

    /// A state that counts came, of this age.
    pub(super) fn state_came(&self, age: Duration) {
        let mut seen = self.seen.borrow_mut();
        seen.states.0 += 1;
        seen.ages.note(age);
    }

    fn chat_written(&self, others: u64) -> Counted {
        if !self.is_counting.get() {
            return Counted::No;
        }
        self.seen.borrow_mut().chat.1 += others;
        Counted::Yes
    }
}

/// When a room's host wrote the states that count, by their steps.
type Written = Rc<RefCell<VecDeque<(u32, Instant)>>>;

/// All members, who play until this is dropped.
pub(super) struct Members {
    playing: JoinSet<()>,
    lost: Rc<Cell<usize>>,
}

impl Members {
    /// Fills rooms, a few at once; then every member has its seat.
    ///
    /// # Errors
    /// Why a member did not get its seat.
    pub(super) async fn fill(count: &Rc<Count>, way: &Way, rooms: u32, size: u16) -> anyhow::Result<Self> {
        let mut members = Members { playing: JoinSet::new(), lost: Rc::default() };
        let mut filling: JoinSet<anyhow::Result<JoinSet<()>>> = JoinSet::new();
        for _ in 0..rooms {
            if filling.len() == FILLING_MAX {
                members.take(&mut filling).await?;
            }
            filling.spawn_local(fill_room(Rc::clone(count), way.clone(), size, Rc::clone(&members.lost)));
        }
        while !filling.is_empty() {
            members.take(&mut filling).await?;
        }
        Ok(members)
    }

    /// How many are in their rooms no more.
    pub(super) fn lost(&self) -> usize {
        self.lost.get()
    }

    async fn take(&mut self, filling: &mut JoinSet<anyhow::Result<JoinSet<()>>>) -> anyhow::Result<()> {
        let Some(filled) = filling.join_next().await else { return Ok(()) };
        let mut room = filled.context("filling a room failed")??;
        self.playing.spawn_local(async move { while room.join_next().await.is_some() {} });
        Ok(())
    }
}

async fn fill_room(
    count: Rc<Count>,
    way: Way,
    size: u16,
    lost: Rc<Cell<usize>>,
) -> anyhow::Result<JoinSet<()>> {
    let written = Written::default();
    let mut members = JoinSet::new();
    let mut code = None;
    for seat in 0..size {
        let (opened, is_open) = oneshot::channel();
        let member = Member {
            count: Rc::clone(&count),
            written: Rc::clone(&written),
            others: u64::from(size) - 1,
            opened: Some(opened),
            newest: None,
            says_at: u32::from(seat) * STEPS_A_LINE / u32::from(size),
        };
        members.spawn_local(member.play(way.clone(), code, size, Rc::clone(&lost)));
        let opened = timeout(PATIENCE, is_open).await.context("a member got no seat in time")?;
        code = Some(opened.context("a member was lost before it had its seat")??);
    }
    Ok(members)
}

/// Opens a room, or joins the one with this code.
fn options(code: Option<RoomCode>, size: u16) -> anyhow::Result<Options> {
    let mut options = code.map_or_else(|| Options::host(APP), |code| Options::join(APP, code));
    if code.is_none() {
        let tick_rate = TickRate::new(RATE_HZ).context("rooms have this rate")?;
        options.intent = Wish::Host { code: None, max_players: size, tick_rate, dedicated: false };
    }
    options.schema = Some(schema()?);
    options.lead = true;
    // A member that is lost has failed.
    options.reconnect = false;
    options.channel(CHAT, Lane::ReliableOrdered)?;
    Ok(options)
}

/// One member.
struct Member {
    count: Rc<Count>,
    written: Written,
    /// How many others its room has.
    others: u64,
    opened: Option<oneshot::Sender<anyhow::Result<RoomCode>>>,
    /// The newest step of which it has the state.
    newest: Option<u32>,
    /// In which step of [`STEPS_A_LINE`] it chats.
    says_at: u32,
}

impl Member {
    /// Opens a room or enters the one with this code, and plays until it is over, which counts as a loss.
    async fn play(mut self, way: Way, code: Option<RoomCode>, size: u16, lost: Rc<Cell<usize>>) {
        let ended = self.enter(way, code, size).await;
        if let (Err(error), Some(opened)) = (ended, self.opened.take()) {
            // The caller may have given up.
            let _ = opened.send(Err(error));
        }
        lost.set(lost.get() + 1);
    }

    /// Plays on the shard that has the room.
    ///
    /// # Errors
    /// It was not reached, or was over. Only before it had its seat does anybody read that.
    async fn enter(&mut self, mut way: Way, code: Option<RoomCode>, size: u16) -> anyhow::Result<()> {
        loop {
            let (link, options) = (way.connect_at_last().await?, options(code, size)?);
            let played = play(self.count.clock, link, options, None, self).await;
            let Played::Over { mut core, .. } = played else { return Ok(()) };
            let Some(redirect) = core.take_redirect() else {
                return match core.closed() {
                    Some(reason) => bail!("its room was over before it had its seat: {reason}"),
                    None => Ok(()),
                };
            };
            way = way.redirected(&redirect)?;
        }
    }

    /// # Errors
    /// The room is over, or full for the moment.
    fn run_step(&self, core: &mut RoomCore, now: Instant) -> anyhow::Result<()> {
        let tick = core.tick_number().context("a step has a number")?.0;
        core.send_input(&tick)?;
        if tick % STEPS_A_LINE == self.says_at {
            let line = stamp::write(now, self.count.chat_written(self.others));
            core.send_raw(ChannelId(CHAT), Recipient::Others, line, true, now)?;
        }
        if core.is_host() {
            // Read, as a game would.
            core.inputs::<u32>()?;
            move_walkers(core, WALKERS, tick, now)?;
            if self.count.state_written(self.others) {
                let mut written = self.written.borrow_mut();
                written.push_back((tick, now));
                if written.len() > STEPS_REMEMBERED {
                    written.pop_front();
                }
            }
        }
        Ok(())
    }

    fn state_came(&mut self, tick: u32, now: Instant) {
        // The second half of a state that came in two is no further state.
        if self.newest.replace(tick) == Some(tick) {
            return;
        }
        let written = self.written.borrow();
        if let Some((_, at)) = written.iter().rev().find(|(written, _)| *written == tick) {
            self.count.state_came(now.saturating_since(*at));
        }
    }
}

impl Game for Member {
    fn event(&mut self, core: &mut RoomCore, event: Event, now: Instant) {
        match event {
            Event::Open { code } => {
                if let Some(opened) = self.opened.take() {
                    // The caller may have given up.
                    let _ = opened.send(Ok(code));
                }
            }
            Event::State(update) if !core.is_host() => self.state_came(update.server_tick.0, now),
            Event::Raw { payload, .. } if stamp::read(&payload, now).is_some() => {
                self.count.seen.borrow_mut().chat.0 += 1;
            }
            _ => {}
        }
    }

    fn step(&mut self, core: &mut RoomCore, now: Instant) {
        // Messages that an ended room rejects reached no member, and are counted so.
        let _ = self.run_step(core, now);
    }
}
