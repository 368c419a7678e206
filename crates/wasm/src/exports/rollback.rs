//! For the game: the rollback lane.

use crate::boundary::{Fault, ask, member, tell, whole};
use crate::room::{put, put_some};
use parlor_client_core::binding::Record;
use parlor_client_core::{Describe, RollbackConfig, RollbackRequest};
use parlor_proto::Tick;
use parlor_sync::rollback::InputStatus;
use parlor_sync::value::Value;

exports! {
    /// Begins a lane.
    fn lane_begin(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let config = read_config(given.parts()?)?;
            Ok(room.core.rollback(&config)?)
        })
    }

    /// Begins a step of the lane.
    fn lane_step(len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (input, now) = (given.parts::<Value>()?, room.at(now)?);
            Ok(room.core.rollback_step(&input, now)?)
        })
    }

    /// What to do next for the lane.
    fn lane_request() -> i32 {
        ask(|room, _| {
            let (kind, tick) = match room.write().lane_mut().next_request() {
                None => return Ok(0),
                Some(RollbackRequest::Save { tick }) => (1, tick),
                Some(RollbackRequest::Load { tick }) => (2, tick),
                Some(RollbackRequest::Advance { tick, is_replay: false }) => (3, tick),
                Some(RollbackRequest::Advance { tick, is_replay: true }) => (4, tick),
            };
            room.lane_tick = tick;
            Ok(kind)
        })
    }

    /// The tick of the last request.
    fn lane_tick() -> f64 {
        ask(|room, _| Ok(f64::from(room.lane_tick.0)))
    }

    /// A player's input in the step that runs.
    fn lane_input(player: i32) -> i32 {
        ask(|room, out| {
            let Some((value, status)) = room.core.lane().input::<Value>(member(player)?)? else {
                return Ok(0);
            };
            put(out, [&value])?;
            Ok(match status {
                InputStatus::Known => 1,
                InputStatus::Predicted => 2,
                InputStatus::Missed => 3,
            })
        })
    }

    /// Notes the checksum of the game's own state.
    fn lane_saved(tick: f64, low: i32, high: i32) -> i32 {
        ask(|room, _| {
            let checksum = u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned());
            room.core.lane_mut().saved(tick_of(tick)?, checksum);
            Ok(())
        })
    }

    /// Sets a key of the lane.
    fn lane_set(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let (key, value): (String, Value) = given.parts()?;
            Ok(room.write().lane_mut().set(&key, &value)?)
        })
    }

    /// Removes a key of the lane.
    fn lane_remove(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let key: String = given.parts()?;
            Ok(room.write().lane_mut().remove(&key))
        })
    }

    /// The value of a key of the lane.
    fn lane_get(len: i32) -> i32 {
        tell(len, |room, given, out| {
            let key: String = given.parts()?;
            put_some(out, room.core.lane().get::<Value>(&key)?)
        })
    }

    /// All keys of the lane.
    fn lane_states() -> i32 {
        ask(|room, out| {
            let states = room.core.lane().states();
            for (key, value) in &states {
                put(out, [&Value::from(key.as_str()), value])?;
            }
            Ok(states.len())
        })
    }

    /// The value of a key in the newest settled state.
    fn lane_settled(len: i32) -> i32 {
        tell(len, |room, given, out| {
            let key: String = given.parts()?;
            let Some((tick, value)) = room.core.lane().settled::<Value>(&key)? else { return Ok(false) };
            put(out, [&Value::from(tick.0), &value])?;
            Ok(true)
        })
    }

    /// The next event of the lane.
    fn lane_event() -> i32 {
        ask(|room, out| {
            let event = room.core.lane_mut().poll_event().map(|event| event.describe());
            put_some(out, event)
        })
    }

    /// Counters of the lane.
    fn lane_diagnostics() -> i32 {
        ask(|room, out| {
            let diagnostics = room.core.lane().diagnostics().map(|diagnostics| diagnostics.describe());
            put_some(out, diagnostics)
        })
    }

    /// Ends the lane.
    fn lane_end() -> i32 {
        ask(|room, _| {
            room.write().lane_mut().end();
            Ok(())
        })
    }
}

fn tick_of(number: f64) -> Result<Tick, Fault> {
    Ok(Tick(u32::try_from(whole(number, u32::MAX.into())?).unwrap_or(u32::MAX)))
}

fn read_config(value: Value) -> Result<RollbackConfig, Fault> {
    let mut record = Record::new(value, "")?;
    let (players, begin) = (record.members("players")?, record.int("begin")?);
    let (players, begin) = (record.need("players", players)?, record.need("begin", begin)?);
    let mut config = RollbackConfig::new(players, Tick(begin));
    config.session = record.int("session")?.unwrap_or(config.session);
    config.input_delay = record.int("inputDelay")?.unwrap_or(config.input_delay);
    config.window = record.int("window")?.unwrap_or(config.window);
    config.patience = record.int("patience")?.unwrap_or(config.patience);
    config.spectator_delay = record.int("spectatorDelay")?.unwrap_or(config.spectator_delay);
    record.end()?;
    Ok(config)
}
