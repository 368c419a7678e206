//! The host of the demo.

use super::Walker;
use crate::game::{Dir, Input};
use crate::party::Member;
use anyhow::Context;
use parlor::{ClosedReason, EntityId, Event, MemberId, Room};
use parlor_sim::walkers::{SIDE_M, Walkers};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How fast a steered walker walks and, with the dash held, runs, in metres a second.
const WALK_MPS: f32 = 6.0;
const RUN_MPS: f32 = 18.0;
/// The key under which everybody reads how many walkers there are.
pub(super) const TOTAL: &str = "total";

/// The host: it moves all walkers, and those that members steer as they say.
#[derive(Debug)]
pub(crate) struct Crowd {
    room: Room,
    walkers: Walkers,
    dt_s: f64,
    entities: Vec<EntityId>,
    steered: BTreeMap<MemberId, Steered>,
    closed: Option<ClosedReason>,
}

/// A walker that a member steers.
#[derive(Clone, Copy, Debug)]
struct Steered {
    entity: EntityId,
    position: [f32; 3],
    heading: f32,
}

impl Crowd {
    /// `count` walkers from a seed, in a room of `hz` steps a second.
    pub(crate) fn new(room: Room, seed: u64, count: usize, hz: u16) -> Self {
        Crowd {
            room,
            walkers: Walkers::new(seed, count),
            dt_s: 1.0 / f64::from(hz),
            entities: Vec::new(),
            steered: BTreeMap::new(),
            closed: None,
        }
    }

    /// Records the room, which must be open.
    ///
    /// # Errors
    /// Why it cannot be recorded.
    pub(crate) fn record(&mut self, path: &std::path::Path) -> anyhow::Result<()> {
        Ok(self.room.record(path)?)
    }

    /// Walkers, those that members steer included.
    fn len(&self) -> usize {
        self.entities.len() + self.steered.len()
    }

    fn welcome(&mut self, member: MemberId) -> anyhow::Result<()> {
        let position = self.somewhere(member);
        let entity = self.room.spawn(Some(member))?;
        self.steered.insert(member, Steered { entity, position, heading: 0.0 });
        Ok(())
    }

    fn farewell(&mut self, member: MemberId) -> anyhow::Result<()> {
        if let Some(steered) = self.steered.remove(&member) {
            self.room.despawn(steered.entity)?;
        }
        Ok(())
    }

    /// Members begin where some walker is, so that there is something to see.
    fn somewhere(&self, member: MemberId) -> [f32; 3] {
        #[expect(clippy::cast_possible_truncation, reason = "metres")]
        match self.walkers.len() {
            0 => [SIDE_M as f32 / 2.0; 3],
            count => self.walkers.get(member.0 as usize % count).0.map(|metres| metres as f32),
        }
    }

    fn step(&mut self) -> anyhow::Result<()> {
        self.walkers.step(self.dt_s);
        if self.entities.is_empty() {
            self.entities =
                (0..self.walkers.len()).map(|_| self.room.spawn(None)).collect::<Result<_, _>>()?;
        }
        for (member, Input { dir, dash }) in self.room.inputs::<Input>()? {
            if let Some(steered) = self.steered.get_mut(&member) {
                #[expect(clippy::cast_possible_truncation, reason = "a step is short")]
                steered.step(dir, dash, self.dt_s as f32);
            }
        }
        let total = self.len();
        self.room.set(TOTAL, &total)?;
        let (walkers, entities, steered) = (&self.walkers, &self.entities, &self.steered);
        self.room.world(|world| {
            for (index, entity) in entities.iter().enumerate() {
                let (position, rotation) = walkers.get(index);
                #[expect(clippy::cast_possible_truncation, reason = "finer than it is sent")]
                let walker = Walker {
                    position: position.map(|metres| metres as f32),
                    rotation: rotation.map(|part| part as f32),
                };
                world.insert(*entity, &walker)?;
            }
            for Steered { entity, position, heading } in steered.values() {
                world.insert(*entity, &Walker::upright(*position, *heading))?;
            }
            Ok::<(), parlor::RoomError>(())
        })??;
        Ok(())
    }
}

impl Member for Crowd {
    fn room(&self) -> &Room {
        &self.room
    }

    fn closed(&self) -> Option<&ClosedReason> {
        self.closed.as_ref()
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            match event {
                Event::PlayerJoined(player) if !player.is_me => self.welcome(player.id)?,
                Event::PlayerLeft { id, .. } => self.farewell(id)?,
                Event::Closed(reason) => self.closed = Some(reason),
                _ => {}
            }
        }
        while self.room.tick() {
            self.step().context("the walkers cannot go on")?;
        }
        Ok(())
    }

    /// What the host sends its server.
    fn report(&mut self) -> Value {
        let Some(sent) = self.room.world_diagnostics() else { return Value::Null };
        let session = self.room.diagnostics();
        json!({
            "entities": self.len(),
            "packets": sent.packets,
            "bytes": sent.bytes,
            "entries": sent.entries,
            "bytes_per_entity": sent.bytes_per_entity,
            "baseline_age_ticks_mean": sent.baseline_age_ticks_mean,
            "baseline_age_ticks_max": sent.baseline_age_ticks_max,
            "staleness_ticks_max": sent.staleness_ticks_max,
            "lost": sent.lost,
            "held_back": sent.held_back,
            "rtt_ms": session.rtt.map(|rtt| rtt.as_secs_f64() * 1_000.0),
            "ticks_dropped": session.ticks_dropped,
            "in_flight_bytes": sent.in_flight_bytes,
            "budget_bytes": sent.budget_bytes,
        })
    }

    fn leave(self) {
        self.room.leave();
    }
}

impl Steered {
    fn step(&mut self, dir: Dir, dash: bool, dt_s: f32) {
        let (x, y) = dir.vector();
        if dir == Dir::Stay {
            return;
        }
        let metres = if dash { RUN_MPS } else { WALK_MPS } * dt_s;
        self.heading = y.atan2(x) / std::f32::consts::TAU;
        #[expect(clippy::cast_possible_truncation, reason = "metres")]
        let side = SIDE_M as f32;
        for (at, way) in self.position.iter_mut().zip([x, y]) {
            *at = (*at + way * metres).clamp(0.0, side);
        }
    }
}
