//! For the game: keyed state.

use crate::boundary::{Fault, ask, tell};
use crate::room::{put, put_some};
use parlor_client_core::binding::read_hints;
use parlor_proto::MemberId;
use parlor_sync::keyed::Audience;
use parlor_sync::value::Value;

exports! {
    /// Sets a key for all.
    fn set(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let (key, value): (String, Value) = given.parts()?;
            Ok(room.write().set(&key, &value, Audience::All)?)
        })
    }

    /// Sets a key for some.
    fn set_for(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let (members, key, value): (Vec<MemberId>, String, Value) = given.parts()?;
            Ok(room.write().set(&key, &value, Audience::members(members))?)
        })
    }

    /// Removes a key.
    fn remove(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let key: String = given.parts()?;
            Ok(room.write().remove(&key)?)
        })
    }

    /// Declares how the values of keys move.
    fn declare(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let (prefix, hints): (String, Value) = given.parts()?;
            let hints = read_hints(hints)?;
            Ok(room.core.declare(&prefix, hints)?)
        })
    }

    /// The value of a key as the host wrote it.
    fn get(len: i32) -> i32 {
        tell(len, |room, given, out| {
            let key: String = given.parts()?;
            put_some(out, room.core.get::<Value>(&key)?)
        })
    }

    /// The value of a key to show.
    fn interpolated(len: i32, now: f64) -> i32 {
        tell(len, |room, given, out| {
            let (key, now) = (given.parts::<String>()?, room.at(now)?);
            put_some(out, room.core.interpolated::<Value>(&key, now)?)
        })
    }

    /// The value of a key as predicted.
    fn predicted(len: i32) -> i32 {
        tell(len, |room, given, out| {
            let key: String = given.parts()?;
            put_some(out, room.core.predicted::<Value>(&key)?)
        })
    }

    /// Predicts the value of a key.
    fn set_predicted(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let (key, value): (String, Value) = given.parts()?;
            Ok(room.write().set_predicted(&key, &value)?)
        })
    }

    /// All keys with a prefix.
    fn entries(len: i32, what: i32, now: f64) -> i32 {
        tell(len, |room, given, out| {
            let (prefix, now) = (given.parts::<String>()?, room.at(now)?);
            let mut entries = match what {
                0 | 2 | 3 => room.core.entries(&prefix),
                1 => room.core.entries_interpolated(&prefix, now),
                _ => return Err(Fault::bad_call("what to read of keys is 0 to 3")),
            };
            for (key, value) in &mut entries {
                if what == 2 && let Some(predicted) = room.core.predicted::<Value>(key)? {
                    *value = predicted;
                }
                put(out, [&Value::from(key.as_str())])?;
                if what != 3 {
                    put(out, [&*value])?;
                }
            }
            Ok(entries.len())
        })
    }

    /// The sequence and hash of the state.
    fn state_hash() -> i32 {
        ask(|room, out| {
            let hash = room.core.state_hash();
            if let Some((sequence, hash)) = hash {
                out.extend(sequence.to_le_bytes());
                out.extend(hash.to_le_bytes());
            }
            Ok(hash.is_some())
        })
    }
}
