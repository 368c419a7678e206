//! What games do in each of their steps, and report to the model.

use super::ships::{count, keep_ships};
use super::{Objection, SharedModel, World, is_usual, object, refused};
use crate::model::{Key, Model, Verdict};
use crate::peer::PeerId;
use parlor_client_core::{RoomCore, RoomError};
use parlor_impair::Rng;
use parlor_proto::{Instant, MemberId};
use parlor_sync::keyed::Audience;
use parlor_sync::value::Value;

/// Names of keys that a host writes: few, so that they are rewritten, removed and set again.
const KEYS: u64 = 12;

/// A game's behaviour while its world is busy.
struct Player {
    peer: PeerId,
    rng: Rng,
    model: SharedModel,
    /// Keys that a step changes at most.
    writes_max: u64,
    /// Steps with an input, per 1,000.
    inputs_per_mille: u64,
    /// Steps with a predicted action, per 1,000; `None` without them.
    actions_per_mille: Option<u64>,
}

impl World {
    /// Lets a game play, from its first step on.
    pub(super) fn let_play(&mut self, peer: PeerId) {
        let mut player = Player {
            peer,
            rng: Rng::new(self.rng.draw()),
            model: SharedModel::clone(&self.model),
            writes_max: self.rng.pick(&[1, 2, 4]),
            inputs_per_mille: self.rng.pick(&[0, 200, 1_000]),
            actions_per_mille: self.has_ships.then(|| Rng::new(self.rng.draw()).pick(&[50, 300, 1_000])),
        };
        let (objection, is_busy) = (Objection::clone(&self.objection), self.is_busy.clone());
        self.sim.play(peer, move |room, now| {
            let verdict = player.step(room, *is_busy.borrow(), now);
            object(&objection, verdict);
        });
    }
}

impl Player {
    fn step(&mut self, room: &mut RoomCore, is_busy: bool, now: Instant) -> Verdict {
        let model = SharedModel::clone(&self.model);
        let model = &mut *model.borrow_mut();
        // The model learns of a seat only after the slice of time.
        if !model.has_seat(self.peer) || room.is_replay() {
            return Ok(());
        }
        publish(model, self.peer, room)?;
        if self.actions_per_mille.is_some() && room.is_host() {
            keep_ships(model, self.peer, room, now)?;
        }
        if !is_busy {
            return Ok(());
        }
        if room.is_host() {
            self.read_inputs(model, room)?;
            for _ in 0..self.rng.below(self.writes_max + 1) {
                self.write(model, room)?;
            }
        } else if let Some(per_mille) = self.actions_per_mille {
            if self.rng.per_mille(per_mille) {
                let is_unlucky = self.rng.per_mille(200);
                count(model, self.peer, room, is_unlucky, now)?;
            }
        } else if self.rng.per_mille(self.inputs_per_mille) {
            self.put_in(model, room)?;
        }
        Ok(())
    }

    fn read_inputs(&self, model: &mut Model, room: &mut RoomCore) -> Verdict {
        let inputs =
            room.inputs::<(u32, u64)>().map_err(|error| refused(self.peer, "read inputs", &error))?;
        inputs.into_iter().try_for_each(|(member, input)| model.reads(self.peer, member, input))
    }

    fn put_in(&self, model: &mut Model, room: &mut RoomCore) -> Verdict {
        let me = room.local_id().map_or(0, |me| me.0);
        let input = (me, model.next_input(self.peer));
        let tick = room.tick_number().unwrap_or_default();
        match room.send_input(&input) {
            Ok(()) => model.puts_in(self.peer, tick),
            Err(error) if is_usual(room, &error) => Ok(()),
            Err(error) => Err(refused(self.peer, "send an input", &error)),
        }
    }

    fn number(&mut self) -> i64 {
        i64::try_from(self.rng.draw() >> 1).expect("the highest bit is gone")
    }

    fn write(&mut self, model: &mut Model, room: &mut RoomCore) -> Verdict {
        let key = format!("key/{}", self.rng.below(KEYS));
        if self.rng.per_mille(200) {
            let gone = room.remove(&key).map_err(|error| refused(self.peer, "remove a key", &error))?;
            return if gone { model.writes(self.peer, Key::Gone(key)) } else { Ok(()) };
        }
        let len = self.rng.pick(&[0, 8, 30, 400]);
        let text = "x".repeat(self.rng.index(len + 1));
        let value = Value::List(vec![Value::Int(self.number()), Value::Text(text)]);
        let audience = match self.rng.below(6) {
            0 => Audience::members([MemberId(1)]),
            1 => Audience::members([MemberId(0), MemberId(2)]),
            _ => Audience::All,
        };
        set(model, self.peer, room, key, value, audience)
    }
}

/// Reports a host's published sequence to the model. Must come before the host's next write.
pub(super) fn publish(model: &mut Model, host: PeerId, room: &RoomCore) -> Verdict {
    match room.state_hash().filter(|_| room.is_host()) {
        Some((sequence, _)) => model.publishes(host, sequence),
        None => Ok(()),
    }
}

/// Sets a key, in the room and in the model.
pub(super) fn set(
    model: &mut Model,
    host: PeerId,
    room: &mut RoomCore,
    key: String,
    value: Value,
    audience: Audience,
) -> Verdict {
    match room.set(&key, &value, audience.clone()) {
        Ok(()) => model.writes(host, Key::Set(key, value, audience)),
        // The state is full: nothing has changed.
        Err(RoomError::State(_)) => Ok(()),
        Err(error) => Err(refused(host, "set a key", &error)),
    }
}
