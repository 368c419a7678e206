//! A world and its receivers, in one process and without sockets: the engine's cost alone. Acknowledgements
//! are delayed, differently for each member. What every member decodes is compared with the world.

use super::machine::thread_cpu_time;
use super::recording::{Place, Recording};
use anyhow::{Context, ensure};
use bytes::Bytes;
use parlor_proto::{EntityId, Instant, MemberId, Tick, TickRate};
use parlor_sync::replicated;
use parlor_sync::schema::{ComponentId, Kind, Range, Replicated, RowReader, RowWriter, Schema, Transform};
use parlor_sync::world::{Outcome, PublisherConfig, Replica, Sent, Views, World};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A walker as a game would have it: 1/512 m, and 29 bits of rotation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Walker {
    /// Where it is.
    pub place: Transform,
}

/// Steps of the position, in metres.
const STEP_M: f64 = 1.0 / 512.0;
/// Bits of each part of the rotation.
const ROTATION_BITS: u8 = 9;

replicated!(Walker as "walker" => {
    place: Kind::Transform { position: Range::new(0.0, 512.0, STEP_M), rotation_bits: ROTATION_BITS },
});

impl Walker {
    /// Whether it is where a walker was, each field within its resolution.
    pub(crate) fn is_near(&self, (position, rotation): &Place) -> bool {
        let off = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        // A quaternion and its opposite are the same rotation.
        let turned = off(&self.place.rotation, rotation);
        let turned = turned.min(off(&self.place.rotation, &rotation.map(|part| -part)));
        off(&self.place.position, position) <= POSITION_ERROR_M && turned <= ROTATION_ERROR
    }
}

/// All frames of a recording as the schema has them, each field within its resolution.
///
/// # Errors
/// A field is not.
pub(crate) fn quantized(recording: &Recording) -> anyhow::Result<Vec<Vec<Walker>>> {
    let component = Walker::component();
    let mut lanes = vec![0; component.lanes()];
    let mut quantized = |place: &Place| -> anyhow::Result<Walker> {
        let exact = Walker { place: Transform { position: place.0, rotation: place.1 } };
        let mut row = RowWriter::new(&component, &mut lanes, &mut []);
        exact.write(&mut row);
        row.finish()?;
        let walker = Walker::read(&RowReader::new(&component, &lanes, &[]));
        ensure!(walker.is_near(place), "{exact:?} is quantized as {walker:?}");
        Ok(walker)
    };
    (0..recording.ticks()).map(|tick| recording.at(tick).iter().map(&mut quantized).collect()).collect()
}

/// How many of all walkers change in a tick, on average: what stands still within its resolution does not.
///
/// # Errors
/// A field is quantized wrongly.
pub(crate) fn changes_per_tick(recording: &Recording) -> anyhow::Result<f64> {
    let frames = quantized(recording)?;
    let (mut changes, mut pairs) = (0_u32, 0_u32);
    for (before, after) in frames.iter().zip(frames.iter().skip(1)) {
        for (before, after) in before.iter().zip(after) {
            changes += u32::from(before != after);
            pairs += 1;
        }
    }
    Ok(f64::from(changes) / f64::from(pairs.max(1)))
}

/// How far a position may be off: half a step, and what an f32 itself is off at 512 m.
const POSITION_ERROR_M: f32 = 1.0 / 1_024.0 + 1.0 / 16_384.0;
/// How far a part of a rotation may be off: half a step of the parts that are sent, and what that makes of the largest.
const ROTATION_ERROR: f32 = 0.004;
/// No member's budget holds anything back: what the state takes is measured.
const BYTES_PER_SECOND: u32 = 8_000_000;

/// How a world is shared.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Walkers.
    pub entities: usize,
    /// Of 100 walkers those that move.
    pub moving_percent: u32,
    /// Ticks each second.
    pub hz: u16,
    /// How long each member's acknowledgements take.
    pub delays: Vec<Duration>,
    /// What the walkers are drawn from.
    pub seed: u64,
}

impl Plan {
    /// Of so many members, each acknowledges this much later than the one before.
    pub(crate) fn delays(members: u32, apart: Duration) -> Vec<Duration> {
        (0..members).map(|member| apart * member).collect()
    }
}

/// What was counted, over all members.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// Ticks.
    pub ticks: u32,
    /// Processor time to set what changed and to close the batch.
    pub commit: Duration,
    /// Processor time to take acknowledgements in and to make packets.
    pub publish: Duration,
    /// Packets, and their bytes.
    pub packets: u64,
    /// See above.
    pub bytes: u64,
    /// Changes of entities in the world.
    pub changes: u64,
    /// Changes of entities that members decoded.
    pub updates: u64,
}

/// The world, its views, and its members.
pub(crate) struct Stand {
    plan: Plan,
    recording: Recording,
    world: World,
    entities: Vec<EntityId>,
    component: ComponentId,
    views: Views,
    members: Vec<Member>,
    tick: u32,
}

struct Member {
    id: MemberId,
    replica: Replica,
    delay: Duration,
    /// What was received, and when its acknowledgement arrives.
    acks: VecDeque<(Instant, Sent)>,
}

impl Stand {
    /// Returns a world without receivers.
    ///
    /// # Errors
    /// The plan is beyond what a world holds.
    pub(crate) fn new(plan: Plan, recorded_seconds: u32) -> anyhow::Result<Self> {
        let hz = u32::from(plan.hz);
        let recording = Recording::new(plan.seed, plan.entities, plan.moving_percent, hz, recorded_seconds);
        let schema = Arc::new(Schema::builder().replicate::<Walker>().build()?);
        let component = schema.find("walker").context("it was registered")?;
        let rate = TickRate::new(plan.hz).context("rooms have other rates")?;
        let mut world = World::new(Arc::clone(&schema), rate);
        let spawned: Result<Vec<EntityId>, _> = (0..plan.entities).map(|_| world.spawn(None)).collect();
        let mut views = Views::new(&schema);
        let mut members = Vec::new();
        for (number, delay) in (1..).zip(&plan.delays) {
            let id = MemberId(number);
            views.add(id, PublisherConfig::new(BYTES_PER_SECOND));
            let replica = Replica::new(Arc::clone(&schema), rate);
            members.push(Member { id, replica, delay: *delay, acks: VecDeque::new() });
        }
        Ok(Stand { entities: spawned?, recording, world, component, views, members, tick: 0, plan })
    }

    /// Runs so many ticks.
    ///
    /// # Errors
    /// A member decodes something else than the world holds.
    pub(crate) fn run(&mut self, ticks: u32) -> anyhow::Result<Counts> {
        let mut counts = Counts { ticks, ..Counts::default() };
        for _ in 0..ticks {
            self.turn(&mut counts)?;
        }
        Ok(counts)
    }

    fn turn(&mut self, counts: &mut Counts) -> anyhow::Result<()> {
        let now = self.now();
        let began = thread_cpu_time();
        counts.changes += self.write()?;
        let committed = thread_cpu_time();
        let sent = self.publish(now);
        counts.publish += thread_cpu_time() - committed;
        counts.commit += committed - began;
        for (member, bytes, sent) in sent {
            counts.packets += 1;
            counts.bytes += bytes.len() as u64;
            counts.updates += self.receive(member, bytes, sent, now)?;
        }
        self.tick += 1;
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::from_micros(1_000_000 + u64::from(self.tick) * 1_000_000 / u64::from(self.plan.hz))
    }

    /// The authority's part: it writes what moved, and closes the tick. How many entities changed.
    fn write(&mut self) -> anyhow::Result<u64> {
        let at = usize::try_from(self.tick)?;
        let mut changes = 0;
        if self.plan.moving_percent > 0 || at == 0 {
            for (entity, (position, rotation)) in self.entities.iter().zip(self.recording.at(at)) {
                let place = Transform { position: *position, rotation: *rotation };
                changes += u64::from(self.world.insert(*entity, &Walker { place })?);
            }
        }
        self.world.commit(Tick(self.tick + 1))?;
        Ok(changes)
    }

    /// The hub's part: it takes acknowledgements in and makes packets. The number of the member, packet, and its name.
    fn publish(&mut self, now: Instant) -> Vec<(usize, Bytes, Sent)> {
        for member in &mut self.members {
            while let Some((_, sent)) = member.acks.pop_front_if(|(at, _)| *at <= now) {
                self.views.fate(member.id, sent, true);
            }
        }
        let mut packets = Vec::new();
        self.views.flush(&self.world, now, |member, bytes, sent| {
            let index = usize::try_from(member.0).expect("there are few members") - 1;
            packets.push((index, bytes, sent));
        });
        packets
    }

    /// A member's part: how many entities changed.
    fn receive(&mut self, member: usize, bytes: Bytes, sent: Sent, now: Instant) -> anyhow::Result<u64> {
        let member = &mut self.members[member];
        member.acks.push_back((now + member.delay, sent));
        let Outcome::Taken(applied) = member.replica.apply(bytes)? else {
            anyhow::bail!("a member takes a packet for an old one");
        };
        for (entity, _) in &applied.changed {
            let world = self.world.read_row(*entity, self.component)?.map(|(lanes, _)| lanes);
            let replica = member.replica.world().read_row(*entity, self.component)?.map(|(lanes, _)| lanes);
            ensure!(world.is_some() && world == replica, "a member decodes {entity} otherwise than it is");
        }
        Ok(applied.changed.len() as u64)
    }

    /// Compares all that every member holds with what the walkers did, each field within its resolution.
    ///
    /// # Errors
    /// What differs.
    pub(crate) fn compare(&self) -> anyhow::Result<()> {
        let at = usize::try_from(self.tick.saturating_sub(1))?;
        for member in &self.members {
            // A world in which nothing moves says nothing of its ticks.
            let settled = member
                .replica
                .settled()
                .filter(|tick| self.plan.moving_percent == 0 || Some(*tick) == self.world.tick());
            ensure!(settled.is_some(), "a member is not up to date");
            for (entity, place) in self.entities.iter().zip(self.recording.at(at)) {
                let walker: Walker = member.replica.world().get(*entity)?.context("a walker is missing")?;
                ensure!(walker.is_near(place), "{entity} is at {walker:?}, not at {place:?}");
            }
        }
        Ok(())
    }

    /// How many bodies were coded so far, and how often one of them served another member too.
    pub(crate) fn encodings(&self) -> (u64, u64) {
        self.views.encodings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand(moving_percent: u32, apart_ms: u64) -> Stand {
        let delays = Plan::delays(4, Duration::from_millis(apart_ms));
        let plan = Plan { entities: 30, moving_percent, hz: 30, delays, seed: 5 };
        Stand::new(plan, 3).expect("a world holds that")
    }

    #[test]
    fn every_member_gets_every_change_of_what_moves() {
        let mut stand = stand(100, 40);
        stand.run(30).expect("it runs");
        let counts = stand.run(60).expect("it runs");
        stand.compare().expect("all hold what is");
        // A walker that stands still for a moment has no change.
        assert!((1_600..=1_800).contains(&counts.changes), "{counts:?}");
        assert_eq!(counts.updates, 4 * counts.changes, "{counts:?}");
        assert!(counts.bytes > 0 && counts.commit > Duration::ZERO && counts.publish > Duration::ZERO);
    }

    /// In the plain form a walker is its slot, and its place and rotation as numbers of 32 bits.
    #[test]
    fn x14_what_moves_takes_a_fifth_of_its_plain_bytes() {
        const PLAIN_BYTES: u64 = 2 + 3 * 4 + 4 * 4;
        let mut stand = stand(100, 40);
        stand.run(30).expect("it runs");
        let counts = stand.run(60).expect("it runs");
        assert!(5 * counts.bytes <= counts.updates * PLAIN_BYTES, "{counts:?}");
    }

    #[test]
    fn what_stands_still_costs_nothing() {
        let mut stand = stand(0, 40);
        stand.run(30).expect("it runs");
        let counts = stand.run(60).expect("it runs");
        stand.compare().expect("all hold what is");
        assert_eq!((counts.updates, counts.packets, counts.bytes), (0, 0, 0));
    }

    #[test]
    fn who_acknowledges_alike_is_coded_once() {
        let [alike, apart] = [0, 40].map(|apart_ms| {
            let mut stand = stand(100, apart_ms);
            stand.run(60).expect("it runs");
            stand.encodings()
        });
        assert!(alike.0 * 3 < apart.0 * 2 && alike.1 > apart.1, "{alike:?} {apart:?}");
    }
}
