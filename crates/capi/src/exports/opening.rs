//! Opening, joining and leaving rooms.
#![allow(unsafe_code)] // the attributes, and the pointers that are passed on: see the head of the crate

use crate::boundary::{Done, Failure, call, give, some_text, text};
use crate::handles;
use crate::options::{own_server, record, set};
use crate::types::parlor_result::PARLOR_OK;
use crate::types::{PARLOR_NO_ROOM, parlor_result, parlor_room};
use parlor::{ResumeTicket, Room};
use std::ffi::c_char;

/// Opens a room of the game `app` with this process as its host. `options` is JSON (docs/engines.md has the names), or
/// NULL. It returns at once: events tell how it goes, PARLOR_EVENT_OPEN with the code to share, or
/// PARLOR_EVENT_CLOSED. The caller owns `*room` and ends it with parlor_leave or parlor_stop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_host(
    app: *const c_char,
    options: *const c_char,
    room: *mut parlor_room,
) -> parlor_result {
    // SAFETY: rule 1.
    unsafe {
        open(room, || {
            let (app, mut options) = (text("app", app)?, record(some_text("options", options)?)?);
            let builder = own_server(Room::host(app), &mut options)?;
            Ok(set(builder, options)?.open())
        })
    }
}

/// Joins a room or match of the game `app`. `invite` is its code, its invite link, or the id of a match. As
/// parlor_host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_join(
    app: *const c_char,
    invite: *const c_char,
    options: *const c_char,
    room: *mut parlor_room,
) -> parlor_result {
    // SAFETY: rule 1.
    unsafe {
        open(room, || {
            let builder = Room::join(text("app", app)?, text("invite", invite)?);
            Ok(set(builder, record(some_text("options", options)?)?)?.open())
        })
    }
}

/// Joins the only room of the game `app` at an address, without a code. As parlor_host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_join_at(
    app: *const c_char,
    address: *const c_char,
    port: u16,
    options: *const c_char,
    room: *mut parlor_room,
) -> parlor_result {
    // SAFETY: rule 1.
    unsafe {
        open(room, || {
            let builder = Room::join_at(text("app", app)?, text("address", address)?, port);
            Ok(set(builder, record(some_text("options", options)?)?)?.open())
        })
    }
}

/// Opens a match of the game `app`: a room without a host, whose members are equal and send each other
/// parlor_send_data. The code of its PARLOR_EVENT_OPEN is the id by which others join. As parlor_host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_create_match(
    app: *const c_char,
    options: *const c_char,
    room: *mut parlor_room,
) -> parlor_result {
    // SAFETY: rule 1.
    unsafe {
        open(room, || {
            let builder = Room::create_match(text("app", app)?);
            Ok(set(builder, record(some_text("options", options)?)?)?.open())
        })
    }
}

/// Takes the seat that an earlier process of this player had, by the ticket that parlor_ticket gave it. As parlor_host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_resume(
    app: *const c_char,
    ticket: *const c_char,
    options: *const c_char,
    room: *mut parlor_room,
) -> parlor_result {
    // SAFETY: rule 1.
    unsafe {
        open(room, || {
            let ticket = text("ticket", ticket)?.parse::<ResumeTicket>();
            let ticket = ticket.map_err(|error| Failure::argument("ticket", &error.to_string()))?;
            let builder = Room::resume(text("app", app)?, &ticket);
            Ok(set(builder, record(some_text("options", options)?)?)?.open())
        })
    }
}

/// Opens a room, and gives its handle out.
///
/// # Safety
/// As of [`give`], of `room`.
unsafe fn open(room: *mut parlor_room, make: impl FnOnce() -> Result<Room, Failure>) -> parlor_result {
    call(|| {
        // First, so that no room is opened whose handle would be lost.
        // SAFETY: the caller's promise.
        unsafe { give("room", room, PARLOR_NO_ROOM) }?;
        let handle = handles::keep(make()?);
        // SAFETY: the caller's promise.
        unsafe { give("room", room, handle) }.map(|()| PARLOR_OK)
    })
}

/// Leaves the room and frees its handle. Waits at most a second for what is still to be sent. When the host leaves, the
/// room ends, or another player becomes the host (option `hostMigration`).
#[unsafe(no_mangle)]
pub extern "C" fn parlor_leave(room: parlor_room) -> parlor_result {
    end(room, Room::leave)
}

/// Ends the room for all if this process is the host; otherwise leaves it. As parlor_leave.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_stop(room: parlor_room) -> parlor_result {
    end(room, Room::stop)
}

fn end(room: parlor_room, leave: impl FnOnce(Room)) -> parlor_result {
    call(|| -> Done {
        leave(handles::take(room)?);
        Ok(PARLOR_OK)
    })
}
