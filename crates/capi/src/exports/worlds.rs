//! Entities and their components.
#![allow(unsafe_code)] // the attributes, and the pointers that are passed on: see the head of the crate

use crate::boundary::{Done, Failure, Out, bytes, give, member, members, offer, some, some_member, text};
use crate::handles::{Held, on_room};
use crate::types::parlor_result::PARLOR_OK;
use crate::types::{PARLOR_NOBODY, parlor_result, parlor_room, parlor_view};
use parlor::schema::ComponentId;
use parlor::{Audience, EntityId, RoomError, WorldAccess};
use parlor_client_core::binding::{Fault, put_columns, read_columns, read_row, write_columns, write_row};
use std::ffi::c_char;

/// A call on the world of an open room.
fn on_world(room: parlor_room, act: impl FnOnce(&mut WorldAccess<'_>) -> Done) -> parlor_result {
    on_room(room, |held| held.room.with_core(|core, now| act(&mut core.world(now)?)))
}

/// Gives the number of a component of the room's schema, once the room is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_component(
    room: parlor_room,
    name: *const c_char,
    component: *mut u8,
) -> parlor_result {
    on_world(room, |world| {
        // SAFETY: rule 1.
        let name = unsafe { text("name", name) }?;
        let missing =
            || Fault::new("no_such_component", &format!("the room's schema has no component \"{name}\""));
        let ComponentId(number) = world.schema().find(name).ok_or_else(missing)?;
        // SAFETY: rule 1.
        unsafe { give("component", component, number) }.map(|()| PARLOR_OK)
    })
}

/// Gives all entities that this process sees. `*count` is how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_entities(
    room: parlor_room,
    entities: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> parlor_result {
    on_world(room, |world| {
        let all: Vec<u32> = world.entities().into_iter().map(EntityId::to_bits).collect();
        // SAFETY: rule 1.
        unsafe { Out::new(entities, capacity, count) }.items(&all)
    })
}

/// Gives the owner of an entity: PARLOR_NOBODY if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_owner(room: parlor_room, entity: u32, owner: *mut i32) -> parlor_result {
    on_world(room, |world| {
        let found = world.owner(EntityId::from_bits(entity))?;
        let number = found.map_or(PARLOR_NOBODY, |owner| owner.0.cast_signed());
        // SAFETY: rule 1.
        unsafe { give("owner", owner, number) }.map(|()| PARLOR_OK)
    })
}

/// Spawns an entity without components, at the host. `owner` may be PARLOR_NOBODY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_spawn(room: parlor_room, owner: i32, entity: *mut u32) -> parlor_result {
    on_world(room, |world| {
        // Before it is spawned, so that none is lost to a wrong pointer.
        // SAFETY: rule 1.
        unsafe { give("entity", entity, 0) }?;
        let spawned = world.spawn(some_member(owner)?)?.to_bits();
        // SAFETY: rule 1.
        unsafe { give("entity", entity, spawned) }.map(|()| PARLOR_OK)
    })
}

/// Takes an entity away, at the host.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_despawn(room: parlor_room, entity: u32) -> parlor_result {
    on_world(room, |world| {
        world.despawn(EntityId::from_bits(entity))?;
        Ok(PARLOR_OK)
    })
}

/// Gives an entity to another owner, at the host. `owner` may be PARLOR_NOBODY.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_transfer(room: parlor_room, entity: u32, owner: i32) -> parlor_result {
    on_world(room, |world| {
        world.transfer(EntityId::from_bits(entity), some_member(owner)?)?;
        Ok(PARLOR_OK)
    })
}

/// Puts an entity into a zone, at the host: only who owns an entity there sees it. 0 is everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_set_zone(room: parlor_room, entity: u32, zone: u32) -> parlor_result {
    on_world(room, |world| {
        world.set_zone(EntityId::from_bits(entity), zone)?;
        Ok(PARLOR_OK)
    })
}

/// Sets who sees an entity, at the host: these members, or all if `seen_by` is NULL and `count` 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_set_audience(
    room: parlor_room,
    entity: u32,
    seen_by: *const i32,
    count: usize,
) -> parlor_result {
    on_world(room, |world| {
        let is_all = seen_by.is_null() && count == 0;
        // SAFETY: rule 1.
        let audience =
            if is_all { Audience::All } else { Audience::members(unsafe { members(seen_by, count) }?) };
        world.set_audience(EntityId::from_bits(entity), audience)?;
        Ok(PARLOR_OK)
    })
}

/// Gives a component of an entity as a row (see the head); PARLOR_NONE if it has none. `view` is PARLOR_LATEST or
/// PARLOR_DRAWN. A component without texts, bytes and values is an array of double, or a struct of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_read_component(
    room: parlor_room,
    entity: u32,
    component: u8,
    view: i32,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_world(room, |world| {
        let (entity, id, mut row) = (EntityId::from_bits(entity), ComponentId(component), Vec::new());
        if !read_row(world, entity, id, is_drawn(view)?, &mut row)? {
            return Ok(some(false));
        }
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.items(&row)
    })
}

/// Sets a component of an entity from a row: at the host of any, at a guest what it predicts of its own (option
/// `predict`). Numbers beyond the range of their field are moved to its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_write_component(
    room: parlor_room,
    entity: u32,
    component: u8,
    row: *const u8,
    length: usize,
) -> parlor_result {
    on_world(room, |world| {
        // SAFETY: rule 1.
        let row = unsafe { bytes("row", row, length) }?;
        write_row(world, EntityId::from_bits(entity), ComponentId(component), row)?;
        Ok(PARLOR_OK)
    })
}

/// Takes a component from an entity, where parlor_write_component could set it; PARLOR_NONE if it had none.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_remove_component(room: parlor_room, entity: u32, component: u8) -> parlor_result {
    on_world(room, |world| Ok(some(world.remove_row(EntityId::from_bits(entity), ComponentId(component))?)))
}

/// Gives a component of all entities that have it as columns (see the head): for worlds of many. `view` is
/// PARLOR_LATEST or PARLOR_DRAWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_read_columns(
    room: parlor_room,
    component: u8,
    view: i32,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    on_room(room, |Held { room, columns, .. }| {
        let (mut all, is_drawn) = (Vec::new(), is_drawn(view)?);
        room.with_core(|core, now| {
            read_columns(&mut core.world(now)?, ComponentId(component), is_drawn, columns, &mut all)
        })?;
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.items(&all)
    })
}

/// Sets a component of many entities from columns, as parlor_write_component sets one. After an error, those before the
/// entity that it names are set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_write_columns(
    room: parlor_room,
    component: u8,
    columns: *const u8,
    length: usize,
) -> parlor_result {
    on_world(room, |world| {
        // SAFETY: rule 1.
        let columns = unsafe { bytes("columns", columns, length) }?;
        write_columns(world, ComponentId(component), columns)?;
        Ok(PARLOR_OK)
    })
}

/// Gives a component of all entities as a player saw them when it made the input that counts in this step, at the host:
/// to judge a shot by what the shooter aimed at. As parlor_read_columns. `back` is how far that is back, in seconds; it
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_rewind(
    room: parlor_room,
    player: i32,
    component: u8,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
    back: *mut f64,
) -> parlor_result {
    on_room(room, |Held { room, columns, .. }| {
        let player = member(player)?;
        let past = room.with_core(|core, _| {
            core.rewind(player, |past| {
                past.columns(ComponentId(component), columns)?;
                Ok::<_, RoomError>(past.back().as_secs_f64())
            })
        })??;
        let mut all = Vec::new();
        put_columns(&mut all, columns);
        // SAFETY: rule 1.
        unsafe { offer("back", back, past) }?;
        // SAFETY: rule 1.
        unsafe { Out::new(buffer, capacity, length) }.items(&all)
    })
}

/// Whether rows are read for display.
fn is_drawn(view: i32) -> Result<bool, Failure> {
    match parlor_view::of(view)? {
        parlor_view::PARLOR_LATEST => Ok(false),
        parlor_view::PARLOR_DRAWN => Ok(true),
        parlor_view::PARLOR_PREDICTED => {
            let text =
                "a component is read as PARLOR_LATEST, which is predicted where it is, or as PARLOR_DRAWN";
            Err(Failure::argument("view", text))
        }
    }
}
