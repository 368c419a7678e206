//! One link, one minute: a host beside its hub, and two members who drive, turn and shoot, on virtual time.
//!
//! The first member is undisturbed; the other one is pushed every few seconds. The seed determines
//! everything, packet for packet.

use super::figures::Counted;
use super::link::Quality;
use super::watch::{HostLog, MemberLog};
use anyhow::{Context, ensure};
use parlor::schema::Replicated;
use parlor::{EntityId, MemberId};
use parlor_client_core::{Options, Wish};
use parlor_demos::arena::{self, Bot, Core, Game, Order, Settings, Table, Tank};
use parlor_hub::Config;
use parlor_proto::TickRate;
use parlor_sim::{Link, PeerId, Sim};
use std::sync::Arc;
use std::time::Duration;

/// Pictures in a second.
const FRAME_HZ: u64 = 60;
/// How far into a picture's time the two members draw, in µs: not at once.
const PHASES_US: [u64; 2] = [5_000, 11_000];
/// How long the game runs before anything counts: links are measured, buffers filled, the lead found.
const WARM_UP_US: u64 = 5_000_000;
/// Time for pending events at the end. There are no shots meanwhile.
const DRAIN_US: u64 = 2_000_000;
/// How often the second member is pushed, and how long after the warm-up first.
const PUSH_EVERY_US: u64 = 3_000_000;
const PUSH_FIRST_US: u64 = 1_000_000;
/// How fast a push is: too fast to be made up for in one step.
const PUSH_MPS: f32 = 7.0;
/// How long after joining the clock must be right.
const CLOCK_AFTER_US: u64 = 1_000_000;
/// How long the host waits at least until it looks again whether a step is due.
const HOST_REST: Duration = Duration::from_micros(1);

/// Nothing but the pushes disturbs what a member foresees.
const SETTINGS: Settings = Settings { drones: 3, knock_mps: 0.0, is_mortal: false };

/// What was played.
pub(super) struct Played {
    pub(super) host: HostLog,
    pub(super) members: [Member; 2],
    /// At the host, from the end of the warm-up on.
    pub(super) counted: Counted,
    pub(super) pushes: u64,
    /// See [`Sim::trace_hash`].
    pub(super) trace: u64,
}

/// The game at the host.
struct Host {
    peer: PeerId,
    game: Game,
    log: HostLog,
    /// When it looks next whether a step is due.
    due_us: u64,
    /// What the room's clock said in the last step, and when that was.
    clock: Option<(Duration, u64)>,
}

/// The game at a member.
pub(super) struct Member {
    peer: PeerId,
    game: Game,
    bot: Bot,
    pub(super) id: MemberId,
    pub(super) tank: Option<EntityId>,
    pub(super) log: MemberLog,
    /// What was counted from the end of the warm-up on.
    pub(super) counted: Counted,
}

struct Minute {
    sim: Sim,
    host: Host,
    members: [Member; 2],
    /// Time since all members were present.
    at_us: u64,
    /// Pictures that were drawn, by both members in turns.
    pictures: usize,
    /// Whether what happens counts.
    counts: bool,
}

/// Plays so many microseconds on such a link.
///
/// # Errors Why a member could not play.
pub(super) fn play(rtt_ms: u32, quality: Quality, span_us: u64, seed: u64) -> anyhow::Result<Played> {
    let mut minute = Minute::begin(quality.link(rtt_ms), seed)?;
    minute.run(WARM_UP_US)?;
    minute.counts = true;
    let count = |minute: &Minute, peer| Counted::of(minute.sim.room(peer));
    let before = minute.members.each_ref().map(|member| count(&minute, member.peer));
    let host_before = count(&minute, minute.host.peer);
    let (mut pushes, end) = (0, WARM_UP_US + span_us);
    let mut push_at = WARM_UP_US + PUSH_FIRST_US;
    while push_at + PUSH_EVERY_US / 2 < end {
        minute.run(push_at)?;
        minute.push();
        (pushes, push_at) = (pushes + 1, push_at + PUSH_EVERY_US);
    }
    minute.run(end)?;
    minute.counts = false;
    minute.run(end + DRAIN_US)?;
    for (member, before) in minute.members.iter_mut().zip(before) {
        member.counted = Counted::of(minute.sim.room(member.peer)).since(before);
    }
    let counted = count(&minute, minute.host.peer).since(host_before);
    let Minute { sim, host, members, .. } = minute;
    ensure!(members.iter().all(|member| member.tank.is_some()), "a member was given no tank");
    Ok(Played { host: host.log, members, counted, pushes, trace: sim.trace_hash() })
}

impl Minute {
    fn begin(link: Link, seed: u64) -> anyhow::Result<Minute> {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        let mut sim = Sim::with_hub(seed, Config::new(drawn));
        let schema = Arc::new(arena::schema().context("the arena has no schema")?);
        let options = |options: Options| Options {
            schema: Some(Arc::clone(&schema)),
            predicted: vec![Tank::NAME.to_owned()],
            lead: true,
            ..options
        };
        let tick_rate = TickRate::new(arena::HZ).context("the arena has a rate")?;
        let wish = Wish::Host { code: None, max_players: 4, tick_rate, dedicated: false };
        let host = Options { intent: wish, ..Options::host(arena::APP) };
        let host = sim.host(options(host), Link::quic().latency_ms(0));
        let code = sim.code(host);
        let mut join = |number: u64| -> anyhow::Result<Member> {
            let peer = sim.enter(options(Options::join(arena::APP, code)), link);
            sim.run_until(30_000, "a member gets its seat", |sim| sim.room(peer).is_connected());
            let id = sim.room(peer).local_id().context("a member has no number")?;
            Ok(Member {
                peer,
                game: Game::new(SETTINGS),
                bot: Bot::new(seed.wrapping_add(number)),
                id,
                tank: None,
                log: MemberLog::default(),
                counted: Counted::default(),
            })
        };
        let members = [join(1)?, join(2)?];
        // From here on frames are drawn by this bench.
        [host, members[0].peer, members[1].peer].into_iter().for_each(|peer| sim.stall(peer, true));
        let host =
            Host { peer: host, game: Game::new(SETTINGS), log: HostLog::default(), due_us: 0, clock: None };
        Ok(Minute { sim, host, members, at_us: 0, pictures: 0, counts: false })
    }

    /// Runs all members until `until_us`: guests draw display frames, the host sleeps from step to step.
    fn run(&mut self, until_us: u64) -> anyhow::Result<()> {
        loop {
            let (picture, member) = (self.pictures / PHASES_US.len(), self.pictures % PHASES_US.len());
            let picture_us = picture as u64 * 1_000_000 / FRAME_HZ + PHASES_US[member];
            let due_us = picture_us.min(self.host.due_us);
            if due_us >= until_us {
                return Ok(());
            }
            self.sim.pass(Duration::from_micros(due_us - self.at_us));
            self.at_us = due_us;
            if due_us == self.host.due_us {
                self.run_host()?;
            } else {
                self.pictures += 1;
                self.draw(member)?;
            }
        }
    }

    /// Pushes the second member's tank to the middle, where no wall takes the push up.
    fn push(&mut self) {
        let pushed = &self.members[1];
        let at = self.host.log.tanks.iter().rev().find(|((_, entity), _)| Some(*entity) == pushed.tank);
        let Some((_, tank)) = at else { return };
        let way = [arena::SIDES_M[0] / 2.0 - tank.position[0], arena::SIDES_M[1] / 2.0 - tank.position[1]];
        let length = (way[0] * way[0] + way[1] * way[1]).sqrt().max(0.1);
        self.host.game.push(pushed.id, way.map(|part| part / length * PUSH_MPS));
    }

    fn run_host(&mut self) -> anyhow::Result<()> {
        let (host, at_us) = (&mut self.host, self.at_us);
        let ids = self.members.each_ref().map(|member| member.id);
        self.sim.act(host.peer, |room, now| {
            while room.poll(now).is_some() {}
            while room.tick(now) {
                let mut room = Core(room, now);
                host.game.decide(&mut room)?;
                host.note(&mut room, ids);
            }
            host.clock = room.server_time(now).map(|time| (time, at_us));
            let rest = room.until_next_tick(now).unwrap_or(HOST_REST).max(HOST_REST);
            host.due_us = at_us + u64::try_from(rest.as_micros()).unwrap_or(u64::MAX);
            Ok(())
        })
    }

    fn draw(&mut self, number: usize) -> anyhow::Result<()> {
        let (member, counts, at_us) = (&mut self.members[number], self.counts, self.at_us);
        let host_clock = self.host.clock;
        self.sim.act(member.peer, |room, now| {
            while room.poll(now).is_some() {}
            while room.tick(now) {
                member.step(&mut Core(room, now), counts)?;
            }
            member.draw(&mut Core(room, now), counts, at_us);
            if let (Some(time), Some((host_time, host_at_us))) = (room.server_time(now), host_clock)
                && at_us >= CLOCK_AFTER_US
            {
                let error = time.abs_diff(host_time + Duration::from_micros(at_us - host_at_us));
                member.log.clock_error_max = member.log.clock_error_max.max(error);
            }
            if counts {
                member.log.delays_us.push(whole_us(room.diagnostics().buffer_delay_ms));
            }
            Ok(())
        })
    }
}

impl Host {
    /// Writes the step down that was run last.
    fn note(&mut self, room: &mut Core<'_>, members: [MemberId; 2]) {
        let step = room.step_number();
        for seen in room.look(false) {
            self.log.tanks.insert((step, seen.entity), seen.tank);
        }
        for member in members {
            // The host's game counts what it cannot read as no order, and so does this.
            let order = room.order(member).unwrap_or_default();
            self.log.orders.insert((step, member), order);
        }
        self.log
            .shots
            .extend(self.game.verdicts.drain(..).map(|verdict| ((verdict.by, verdict.number), verdict)));
    }
}

impl Member {
    /// One step, fresh or again.
    fn step(&mut self, room: &mut Core<'_>, counts: bool) -> anyhow::Result<()> {
        let step = room.step_number();
        if room.0.is_replay() {
            return Ok(self.game.play(room, Order::default())?);
        }
        let seen = room.look(true);
        let others: Vec<[f32; 2]> =
            seen.iter().filter(|it| it.owner != Some(self.id)).map(|it| it.tank.position).collect();
        let mine = seen.iter().find(|it| it.owner == Some(self.id));
        let mut order = self.bot.order(mine.map(|it| it.tank), &others);
        order.fire &= counts;
        self.game.play(room, order)?;
        self.tank = mine.map(|it| it.entity);
        if counts && let Some(entity) = self.tank {
            let tank = room.world(|world| world.component(entity))??;
            // As it was sent: with where a shot comes from.
            self.log.orders.extend(room.order(self.id).map(|order| (step, order)));
            self.log.foreseen.extend(tank.map(|tank| (step, tank)));
        }
        Ok(())
    }

    /// Looks at the picture that is drawn now, and at what is to be shown in it.
    fn draw(&mut self, room: &mut Core<'_>, counts: bool, at_us: u64) {
        self.log.shots.append(&mut self.game.verdicts);
        let drones: Vec<_> = room
            .look(true)
            .into_iter()
            .filter(|seen| seen.owner.is_none())
            .map(|seen| (seen.entity, seen.tank))
            .collect();
        self.log.drones.picture(at_us, &drones, counts);
    }
}

/// Milliseconds as whole microseconds.
fn whole_us(ms: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
    let us = (ms * 1e3).round() as u32;
    us
}
