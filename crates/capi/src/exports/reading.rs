//! How the room is, and its players.
#![allow(unsafe_code)] // the attributes, and the pointers that are passed on: see the head of the crate

use crate::boundary::{Failure, Out, give, json, member, some_member, text};
use crate::handles::{Held, on_room};
use crate::types::parlor_result::PARLOR_OK;
use crate::types::{
    PARLOR_NOBODY, parlor_flag, parlor_player, parlor_result, parlor_room, parlor_room_status, parlor_topic,
};
use parlor::{MemberId, Player, Room, Value};
use parlor_client_core::binding::{Fault, describe_component};
use parlor_client_core::{Describe, LinkState};
use std::ffi::c_char;
use std::time::Duration;

/// Gives how the room is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_status(room: parlor_room, status: *mut parlor_room_status) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        unsafe { give("status", status, status_of(&held.room)) }.map(|()| PARLOR_OK)
    })
}

fn status_of(room: &Room) -> parlor_room_status {
    let (replay, rtt) = room.with_core(|core, _| (core.is_replay(), core.diagnostics().rtt));
    let flags = [
        (room.is_connected(), parlor_flag::PARLOR_IS_OPEN),
        (room.is_host(), parlor_flag::PARLOR_IS_HOST),
        (room.is_migrating(), parlor_flag::PARLOR_IS_MIGRATING),
        (room.link_state() == LinkState::Reconnecting, parlor_flag::PARLOR_IS_RECONNECTING),
        (room.closed().is_some(), parlor_flag::PARLOR_IS_CLOSED),
        (replay, parlor_flag::PARLOR_IS_REPLAY),
        (room.is_spectator(), parlor_flag::PARLOR_IS_SPECTATOR),
    ];
    let id = |member: Option<MemberId>| member.map_or(PARLOR_NOBODY, |MemberId(id)| id.cast_signed());
    let seconds = |time: Option<Duration>| time.map_or(-1.0, |time| time.as_secs_f64());
    parlor_room_status {
        flags: flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag as u32).sum(),
        me: id(room.local_id()),
        host: id(room.info().host_id),
        tick: room.tick_number().unwrap_or_default().0,
        tick_hz: room.tick_hz().unwrap_or_default().into(),
        players: u32::try_from(room.player_count()).unwrap_or(u32::MAX),
        until_next_tick: room.until_next_tick().as_secs_f64(),
        server_time: seconds(room.server_time()),
        ping: seconds(rtt),
        host_ping: seconds(room.host_ping()),
    }
}

/// Describes the room by JSON. `topic` is a parlor_topic. PARLOR_NONE if there is nothing yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_describe(
    room: parlor_room,
    topic: i32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        let described = describe(&held.room, topic)?;
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.some_json(described.as_ref())
    })
}

fn describe(room: &Room, topic: i32) -> Result<Option<Value>, Failure> {
    let list = |players: &[Player]| Value::List(players.iter().map(Player::describe).collect());
    Ok(match parlor_topic::of(topic)? {
        parlor_topic::PARLOR_INFO => Some(room.info().describe()),
        parlor_topic::PARLOR_DIAGNOSTICS => Some(room.diagnostics().describe()),
        parlor_topic::PARLOR_WORLD_DIAGNOSTICS => {
            room.world().diagnostics().map(|diagnostics| diagnostics.describe())
        }
        parlor_topic::PARLOR_PLAYERS => Some(list(room.players())),
        parlor_topic::PARLOR_SPECTATORS => Some(list(room.spectators())),
        parlor_topic::PARLOR_COMPONENTS => {
            let schema = room.with_core(|core, now| core.world(now).map(|world| world.schema().clone()))?;
            Some(Value::List(schema.components().iter().map(describe_component).collect()))
        }
    })
}

/// Gives the code of the room, or the id of the match; PARLOR_NONE before it is known. 64 bytes are enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_code(
    room: parlor_room,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let out = unsafe { Out::new(buffer, capacity, length) };
        out.some_text(held.room.code().as_ref().map(|code| code.as_str()))
    })
}

/// Gives the invite link: the code, the secret, and the server unless it is on this machine only. PARLOR_NONE before
/// the room is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_invite_link(
    room: parlor_room,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.some_text(held.room.invite_link().as_deref())
    })
}

/// Gives the ticket with which another process takes this seat (parlor_resume), if this one ends without leaving. It is
/// a secret, and another one after each reconnection. PARLOR_NONE while the room is not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_ticket(
    room: parlor_room,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |held| {
        let ticket = held.room.resume_ticket().map(|ticket| ticket.to_string());
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.some_text(ticket.as_deref())
    })
}

/// Gives all players by id, as of the last parlor_poll. `*count` is how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_players(
    room: parlor_room,
    players: *mut parlor_player,
    capacity: usize,
    count: *mut usize,
) -> parlor_result {
    // SAFETY: rule 1.
    unsafe { give_players(room, Room::players, players, capacity, count) }
}

/// Gives all spectators by id, as parlor_players gives players.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_spectators(
    room: parlor_room,
    spectators: *mut parlor_player,
    capacity: usize,
    count: *mut usize,
) -> parlor_result {
    // SAFETY: rule 1.
    unsafe { give_players(room, Room::spectators, spectators, capacity, count) }
}

/// # Safety
/// As of [`Out::new`].
unsafe fn give_players(
    room: parlor_room,
    of: fn(&Room) -> &[Player],
    buffer: *mut parlor_player,
    capacity: usize,
    count: *mut usize,
) -> parlor_result {
    on_room(room, |Held { room, .. }| {
        let players: Vec<parlor_player> = of(room).iter().map(parlor_player::of).collect();
        // SAFETY: the caller's promise.
        unsafe { Out::new(buffer, capacity, count) }.items(&players)
    })
}

/// Sets a value of player data, JSON that all members see: of this player, or at the host of any. NULL removes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_set_player_data(
    room: parlor_room,
    player: i32,
    key: *const c_char,
    value: *const c_char,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (player, key) = (member(player)?, unsafe { text("key", key) }?);
        // SAFETY: rule 1.
        let value = if value.is_null() { None } else { Some(unsafe { json("value", value) }?) };
        held.room.with_core(|core, _| core.set_player_data(player, key, value.as_ref()))?;
        Ok(PARLOR_OK)
    })
}

/// Removes a player from the room, at the host. The player gets the reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_kick(room: parlor_room, player: i32, reason: *const c_char) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (player, reason) = (member(player)?, unsafe { text("reason", reason) }?);
        held.room.with_core(|core, _| core.kick(player, reason))?;
        Ok(PARLOR_OK)
    })
}

/// Hands the host's part over to another player, at the host of a room with `hostMigration`. PARLOR_NOBODY: to whom the
/// server names.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_hand_over(room: parlor_room, player: i32) -> parlor_result {
    on_room(room, |held| {
        let player = some_member(player)?;
        let host = held.room.as_host();
        let mut host = host.ok_or_else(|| Fault::new("not_host", "only the host hands its part over"))?;
        host.hand_over(player)?;
        Ok(PARLOR_OK)
    })
}
