//! Events, steps and inputs.
#![allow(unsafe_code)] // the attributes, and the pointers that are passed on: see the head of the crate

use crate::boundary::{Failure, Out, bytes, give, json, member, offer, some, text};
use crate::handles::on_room;
use crate::types::parlor_result::{PARLOR_NONE, PARLOR_OK};
use crate::types::{parlor_event, parlor_result, parlor_room, parlor_step_info};
use parlor::{Event, Tick, Value};
use parlor_client_core::Describe;
use std::ffi::c_char;
use std::time::Duration;

/// Gives the next event; PARLOR_NONE if there are no more. All that a game reads changes only in here, so a frame
/// begins with `while (parlor_poll(room, &event) == PARLOR_OK)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_poll(room: parlor_room, event: *mut parlor_event) -> parlor_result {
    on_room(room, |held| {
        // Before the event is taken, so that none is lost to a wrong pointer.
        // SAFETY: rule 1.
        unsafe { give("event", event, parlor_event::NONE) }?;
        held.event = held.room.poll();
        let Some(next) = &held.event else { return Ok(PARLOR_NONE) };
        // SAFETY: rule 1.
        unsafe { give("event", event, parlor_event::of(next)) }.map(|()| PARLOR_OK)
    })
}

/// Gives the last event of parlor_poll as JSON: `{"type": "playerJoined", "player": {…}}`. PARLOR_NONE if it gave none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_event_json(
    room: parlor_room,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let out = unsafe { Out::new(buffer, capacity, length) };
        out.some_json(held.event.as_ref().map(Event::describe).as_ref())
    })
}

/// Gives what the last event brought as JSON: of a message, an action, or player data. PARLOR_NONE if it has no value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_event_value(
    room: parlor_room,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let out = unsafe { Out::new(buffer, capacity, length) };
        out.some_json(held.event.as_ref().and_then(value_of))
    })
}

/// Gives the bytes of the last event: of PARLOR_EVENT_BYTES and PARLOR_EVENT_DATA, and of a message whose value is
/// bytes. PARLOR_NONE if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_event_bytes(
    room: parlor_room,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let out = unsafe { Out::new(buffer, capacity, length) };
        match &held.event {
            Some(Event::Raw { payload: bytes, .. } | Event::Data { data: bytes, .. }) => out.items(bytes),
            event => out.some_bytes(event.as_ref().and_then(value_of)),
        }
    })
}

fn value_of(event: &Event) -> Option<&Value> {
    match event {
        Event::Message(message) => Some(&message.value),
        Event::Action { value, .. } => Some(value),
        Event::PlayerData { value, .. } => value.as_ref(),
        _ => None,
    }
}

/// Begins a fixed step if one is due; PARLOR_NONE if not. State and inputs are sent when none is, so call it until it
/// gives that. `info` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_step(room: parlor_room, info: *mut parlor_step_info) -> parlor_result {
    on_room(room, |held| {
        let Some(step) = held.room.step() else { return Ok(PARLOR_NONE) };
        let (tick, is_replay, is_host) = (step.number().0, step.is_replay(), step.is_host());
        // SAFETY: rule 1.
        unsafe { offer("info", info, parlor_step_info { tick, is_replay, is_host }) }.map(|()| PARLOR_OK)
    })
}

/// Brings the time that has passed in the game, in seconds, for an engine with a time of its own, which may pause. Call
/// it in each frame before parlor_step. From the first call on no step is due without it.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_advance(room: parlor_room, seconds: f64) -> parlor_result {
    on_room(room, |held| {
        let elapsed = Duration::try_from_secs_f64(seconds);
        let text = "a number of seconds of at least 0";
        held.room.advance(elapsed.map_err(|_| Failure::argument("seconds", text))?);
        Ok(PARLOR_OK)
    })
}

/// Whether to show an effect such as a sound: PARLOR_OK the first time that it is asked for under this number within
/// 256 ticks, PARLOR_NONE when the step that brings it is run again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_once(room: parlor_room, effect: *const c_char, number: u64) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let effect = unsafe { text("effect", effect) }?;
        Ok(some(held.room.once(effect, number)))
    })
}

/// Says what this player wants in this step, as JSON of at most 512 bytes when it is encoded. Call it once in each
/// step; in a replay it does nothing. The host's own goes the same way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_send_input(room: parlor_room, input: *const c_char) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let input = unsafe { json("input", input) }?;
        held.room.with_core(|core, _| core.send_input::<Value>(&input))?;
        Ok(PARLOR_OK)
    })
}

/// As parlor_send_input, with bytes: a struct of the game's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_send_input_bytes(
    room: parlor_room,
    data: *const u8,
    length: usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let input = Value::Bytes(unsafe { bytes("data", data, length) }?);
        held.room.with_core(|core, _| core.send_input::<Value>(&input))?;
        Ok(PARLOR_OK)
    })
}

/// Gives what a player wants in this step, as JSON: its newest input. PARLOR_NONE before its first. The host reads
/// everybody's, a guest its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_input(
    room: parlor_room,
    player: i32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        let player = member(player)?;
        let input = held.room.with_core(|core, _| core.input::<Value>(player))?;
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.some_json(input.as_ref())
    })
}

/// As parlor_input, of an input that is bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_input_bytes(
    room: parlor_room,
    player: i32,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        let player = member(player)?;
        let input = held.room.with_core(|core, _| core.input::<Value>(player))?;
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.some_bytes(input.as_ref())
    })
}

/// Gives the newest step whose input of a player the host has used; PARLOR_NONE if none was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_input_ack(room: parlor_room, player: i32, tick: *mut u32) -> parlor_result {
    on_room(room, |held| {
        let Some(Tick(newest)) = held.room.input_ack(member(player)?) else { return Ok(PARLOR_NONE) };
        // SAFETY: rule 1.
        unsafe { give("tick", tick, newest) }.map(|()| PARLOR_OK)
    })
}
