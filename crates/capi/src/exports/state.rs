//! Keyed state.
#![allow(unsafe_code)] // the attributes, and the pointers that are passed on: see the head of the crate

use crate::boundary::{Failure, Out, bytes, json, members, some, text};
use crate::handles::on_room;
use crate::types::parlor_result::PARLOR_OK;
use crate::types::{parlor_result, parlor_room, parlor_view};
use parlor::{Audience, Room, Value};
use parlor_client_core::binding::read_hints;
use std::ffi::c_char;

/// Sets a key to a JSON value, at the host. All members have it after the step. A key has at most 64 bytes, a value
/// 16 KiB, all of them 60 KiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_set(
    room: parlor_room,
    key: *const c_char,
    value: *const c_char,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (key, value) = unsafe { (text("key", key)?, json("value", value)?) };
        held.room.with_core(|core, _| core.set(key, &value, Audience::All))?;
        Ok(PARLOR_OK)
    })
}

/// Sets a key to bytes: a struct of the game's own. As parlor_set, and never drawn in between.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_set_bytes(
    room: parlor_room,
    key: *const c_char,
    data: *const u8,
    length: usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (key, value) = unsafe { (text("key", key)?, Value::Bytes(bytes("data", data, length)?)) };
        held.room.with_core(|core, _| core.set(key, &value, Audience::All))?;
        Ok(PARLOR_OK)
    })
}

/// Sets a key that only these members see. It is never sent to others. As parlor_set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_set_for(
    room: parlor_room,
    seen_by: *const i32,
    count: usize,
    key: *const c_char,
    value: *const c_char,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (key, value) = unsafe { (text("key", key)?, json("value", value)?) };
        // SAFETY: rule 1.
        let audience = Audience::members(unsafe { members(seen_by, count) }?);
        held.room.with_core(|core, _| core.set(key, &value, audience))?;
        Ok(PARLOR_OK)
    })
}

/// Removes a key, at the host; PARLOR_NONE if there was none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_remove(room: parlor_room, key: *const c_char) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let key = unsafe { text("key", key) }?;
        Ok(some(held.room.with_core(|core, _| core.remove(key))?))
    })
}

/// Declares how the values of all keys that begin with `prefix` move between updates, at the host. `hints` is JSON:
/// `{"angle": [path], "snap": [path], "linear": [path], "period": {path: number}}`, each left out or there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_declare(
    room: parlor_room,
    prefix: *const c_char,
    hints: *const c_char,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (prefix, hints) = unsafe { (text("prefix", prefix)?, json("hints", hints)?) };
        let hints = read_hints(hints)?;
        held.room.with_core(|core, _| core.declare(prefix, hints))?;
        Ok(PARLOR_OK)
    })
}

/// Gives the value of a key as JSON; PARLOR_NONE if there is none. `view` is a parlor_view.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_get(
    room: parlor_room,
    key: *const c_char,
    view: i32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let value = read(&held.room, unsafe { text("key", key) }?, view)?;
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.some_json(value.as_ref())
    })
}

/// Gives the value of a key that is bytes; PARLOR_NONE if there is none. `view` is a parlor_view.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_get_bytes(
    room: parlor_room,
    key: *const c_char,
    view: i32,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let value = read(&held.room, unsafe { text("key", key) }?, view)?;
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.some_bytes(value.as_ref())
    })
}

fn read(room: &Room, key: &str, view: i32) -> Result<Option<Value>, Failure> {
    let view = parlor_view::of(view)?;
    let read = room.with_core(|core, now| match view {
        parlor_view::PARLOR_LATEST => core.get(key),
        parlor_view::PARLOR_DRAWN => core.interpolated(key, now),
        parlor_view::PARLOR_PREDICTED => core.predicted(key),
    });
    Ok(read?)
}

/// Predicts a key: what it will be once the host has used this player's input of this step.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_set_predicted(
    room: parlor_room,
    key: *const c_char,
    value: *const c_char,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (key, value) = unsafe { (text("key", key)?, json("value", value)?) };
        held.room.with_core(|core, _| core.set_predicted(key, &value))?;
        Ok(PARLOR_OK)
    })
}

/// Gives all keys that begin with `prefix`, in ascending order: texts one after another, each with its NUL. `*length`
/// is that of all, their NULs included; 0 for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_keys(
    room: parlor_room,
    prefix: *const c_char,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let prefix = unsafe { text("prefix", prefix) }?;
        let keys = held.room.with_core(|core, _| core.keys());
        let keys = keys.iter().filter(|key| key.starts_with(prefix));
        let letters: Vec<c_char> = keys.flat_map(|key| key.bytes().chain([0])).map(u8::cast_signed).collect();
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.items(&letters)
    })
}
