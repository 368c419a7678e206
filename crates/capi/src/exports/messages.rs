//! Messages, data of matches, and actions.
#![allow(unsafe_code)] // the attributes, and the pointers that are passed on: see the head of the crate

use crate::boundary::{Failure, bytes, json, members, text};
use crate::handles::on_room;
use crate::types::parlor_lane::*;
use crate::types::parlor_recipient::*;
use crate::types::parlor_result::PARLOR_OK;
use crate::types::parlor_send_flag::{PARLOR_SEND_NUMBERED, PARLOR_SEND_TIMED};
use crate::types::{parlor_lane, parlor_recipient, parlor_result, parlor_room};
use parlor::{EntityId, Lane, MemberId, Recipient};
use parlor_client_core::MessageOptions;
use parlor_proto::ChannelId;
use std::ffi::c_char;

/// Sends a message of this kind, with a JSON value. `to` is a parlor_recipient; `members` are those that it names, NULL
/// otherwise. `lane` is a parlor_lane, `flags` a sum of parlor_send_flag. Receivers get PARLOR_EVENT_MESSAGE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_send(
    room: parlor_room,
    to: i32,
    members: *const i32,
    count: usize,
    lane: i32,
    flags: u32,
    kind: *const c_char,
    value: *const c_char,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let to = unsafe { recipient(to, members, count) }?;
        // SAFETY: rule 1.
        let (kind, value) = unsafe { (text("kind", kind)?, json("value", value)?) };
        let (lane, rest) =
            (self::lane(lane)?, flags & !(PARLOR_SEND_NUMBERED as u32 | PARLOR_SEND_TIMED as u32));
        if rest != 0 {
            return Err(Failure::argument("flags", "they are a sum of parlor_send_flag"));
        }
        let stamp = flags & PARLOR_SEND_NUMBERED as u32 != 0;
        let is_timed = flags & PARLOR_SEND_TIMED as u32 != 0;
        held.room.with_core(|core, now| {
            let usual = if stamp { Lane::ReliableOrdered } else { core.protocol().lane() };
            let event_time = core.server_time(now).filter(|_| is_timed);
            let options = MessageOptions { lane: lane.unwrap_or(usual), stamp, event_time };
            core.send_with(&options, to, kind, &value, now)
        })?;
        Ok(PARLOR_OK)
    })
}

/// Sends bytes on a channel of the game's own, which the option `channels` declares with its lane. `to` and `members` as
/// of parlor_send. Receivers get PARLOR_EVENT_BYTES.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_send_bytes(
    room: parlor_room,
    to: i32,
    members: *const i32,
    count: usize,
    channel: u8,
    data: *const u8,
    length: usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (to, data) = unsafe { (recipient(to, members, count)?, bytes("data", data, length)?) };
        held.room.with_core(|core, now| core.send_raw(ChannelId(channel), to, data, false, now))?;
        Ok(PARLOR_OK)
    })
}

/// Sends data to players of a match: a number that says what it is, and bytes. Reliable data reaches all in the same
/// order; the rest may be lost. `to` and `members` as of parlor_send. Receivers get PARLOR_EVENT_DATA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_send_data(
    room: parlor_room,
    to: i32,
    members: *const i32,
    count: usize,
    op: i64,
    is_reliable: bool,
    data: *const u8,
    length: usize,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (to, data) = unsafe { (recipient(to, members, count)?, bytes("data", data, length)?) };
        held.room.with_core(|core, now| core.send_data(op, to, data, is_reliable, now))?;
        Ok(PARLOR_OK)
    })
}

/// Asks the host to let something happen to an entity of this player's own. The host gets PARLOR_EVENT_ACTION.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_act(
    room: parlor_room,
    entity: u32,
    name: *const c_char,
    value: *const c_char,
) -> parlor_result {
    on_room(room, |held| {
        // SAFETY: rule 1.
        let (name, value) = unsafe { (text("name", name)?, json("value", value)?) };
        held.room.with_core(|core, _| core.act(EntityId::from_bits(entity), name, &value))?;
        Ok(PARLOR_OK)
    })
}

/// # Safety
/// As of [`members`].
unsafe fn recipient(to: i32, named: *const i32, count: usize) -> Result<Recipient, Failure> {
    // SAFETY: the caller's promise.
    let named: Vec<MemberId> = unsafe { members(named, count) }?;
    let to = parlor_recipient::of(to)?;
    if !matches!(to, PARLOR_TO_MEMBERS | PARLOR_TO_EXCEPT) && !named.is_empty() {
        let text = "they are named, and only PARLOR_TO_MEMBERS and PARLOR_TO_EXCEPT take names";
        return Err(Failure::argument("members", text));
    }
    Ok(match to {
        PARLOR_TO_HOST => Recipient::Authority,
        PARLOR_TO_OTHERS => Recipient::Others,
        PARLOR_TO_ALL => Recipient::Everyone,
        PARLOR_TO_PRIMARY => Recipient::Primary,
        PARLOR_TO_MEMBERS => named.into(),
        PARLOR_TO_EXCEPT => Recipient::Except(named),
    })
}

/// The lane that a number names; none for the room's.
fn lane(lane: i32) -> Result<Option<Lane>, Failure> {
    Ok(match parlor_lane::of(lane)? {
        PARLOR_LANE_DEFAULT => None,
        PARLOR_LANE_UNRELIABLE => Some(Lane::Unreliable),
        PARLOR_LANE_SEQUENCED => Some(Lane::UnreliableSequenced),
        PARLOR_LANE_RELIABLE => Some(Lane::ReliableUnordered),
        PARLOR_LANE_ORDERED => Some(Lane::ReliableOrdered),
    })
}
