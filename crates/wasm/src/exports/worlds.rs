//! For the game: the entities of the world, own states, and looking back.

use crate::boundary::{Fault, Part, ask, entity, member, some_member, tell, whole};
use crate::room::{Room, put};
use parlor_client_core::binding::{self, Row, describe_component, put_columns, put_row};
use parlor_client_core::{Describe, RoomError};
use parlor_proto::MemberId;
use parlor_sync::audience::Audience;
use parlor_sync::schema::{Component, ComponentId, Schema};
use parlor_sync::value::Value;
use std::sync::Arc;
use std::time::Duration;

exports! {
    /// The components of the room's schema.
    fn components() -> i32 {
        ask(|room, out| {
            let schema = schema_of(room)?;
            for component in schema.components() {
                put(out, [&describe_component(component)])?;
            }
            Ok(schema.components().len())
        })
    }

    /// The number of a component.
    fn component(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let name: String = given.parts()?;
            let id = schema_of(room)?.find(&name);
            let missing = || format!("the room's schema has no component \"{name}\"");
            Ok(i32::from(id.ok_or_else(|| Fault::new("no_such_component", &missing()))?.0))
        })
    }

    /// All entities.
    fn entities() -> i32 {
        ask(|room, out| {
            let now = room.at(0.0)?;
            let entities = room.core.world(now)?.entities();
            entities.iter().for_each(|entity| out.extend(entity.to_bits().to_le_bytes()));
            Ok(entities.len())
        })
    }

    /// Whether there is an entity.
    fn has_entity(bits: i32) -> i32 {
        ask(|room, _| {
            let now = room.at(0.0)?;
            Ok(room.core.world(now)?.contains(entity(bits)))
        })
    }

    /// The owner of an entity.
    fn owner(bits: i32) -> i32 {
        ask(|room, _| {
            let now = room.at(0.0)?;
            Ok(room.core.world(now)?.owner(entity(bits))?)
        })
    }

    /// Spawns an entity.
    fn spawn(owner: i32) -> f64 {
        ask(|room, _| {
            let (owner, now) = (some_member(owner)?, room.at(0.0)?);
            Ok(f64::from(room.write().world(now)?.spawn(owner)?.to_bits()))
        })
    }

    /// Despawns an entity.
    fn despawn(bits: i32) -> i32 {
        ask(|room, _| {
            let now = room.at(0.0)?;
            Ok(room.write().world(now)?.despawn(entity(bits))?)
        })
    }

    /// Gives an entity to another owner.
    fn transfer(bits: i32, owner: i32) -> i32 {
        ask(|room, _| {
            let (owner, now) = (some_member(owner)?, room.at(0.0)?);
            Ok(room.write().world(now)?.transfer(entity(bits), owner)?)
        })
    }

    /// Puts an entity into a zone.
    fn zone(bits: i32, zone: f64) -> i32 {
        ask(|room, _| {
            let zone = u32::try_from(whole(zone, u32::MAX.into())?).unwrap_or(u32::MAX);
            let now = room.at(0.0)?;
            Ok(room.write().world(now)?.set_zone(entity(bits), zone)?)
        })
    }

    /// Sets who sees an entity.
    fn audience(bits: i32, len: i32) -> i32 {
        tell(len, |room, given, _| {
            let ReadAudience(audience) = given.parts()?;
            let now = room.at(0.0)?;
            Ok(room.write().world(now)?.set_audience(entity(bits), audience)?)
        })
    }

    /// A component of an entity.
    fn row(bits: i32, component: i32, which: i32, now: f64) -> i32 {
        ask(|room, out| {
            let (id, is_shown, now) = (component_id(component)?, is_shown(which)?, room.at(now)?);
            binding::read_row(&mut room.core.world(now)?, entity(bits), id, is_shown, out)
        })
    }

    /// Sets a component of an entity.
    fn write_row(bits: i32, component: i32, len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (id, now) = (component_id(component)?, room.at(now)?);
            binding::write_row(&mut room.write().world(now)?, entity(bits), id, given.bytes())
        })
    }

    /// Removes a component of an entity.
    fn remove_row(bits: i32, component: i32) -> i32 {
        ask(|room, _| {
            let (id, now) = (component_id(component)?, room.at(0.0)?);
            Ok(room.write().world(now)?.remove_row(entity(bits), id)?)
        })
    }

    /// A component of all entities.
    fn columns(component: i32, which: i32, now: f64) -> i32 {
        ask(|room, out| {
            let (id, is_shown, now) = (component_id(component)?, is_shown(which)?, room.at(now)?);
            let Room { core, columns, .. } = room;
            binding::read_columns(&mut core.world(now)?, id, is_shown, columns, out)
        })
    }

    /// Sets a component of many entities.
    fn write_columns(component: i32, len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (id, now) = (component_id(component)?, room.at(now)?);
            binding::write_columns(&mut room.write().world(now)?, id, given.bytes())
        })
    }

    /// The entities whose components changed.
    fn changes() -> i32 {
        ask(|room, out| {
            let changes = room.core.take_changes();
            for (entity, mask) in &changes {
                out.extend(entity.to_bits().to_le_bytes());
                out.extend(mask.to_le_bytes());
            }
            Ok(changes.len())
        })
    }

    /// A component of all entities as a player saw it.
    fn rewind(player: i32, component: i32, now: f64) -> i32 {
        ask(|room, out| {
            let (member, id) = (member(player)?, component_id(component)?);
            room.at(now)?;
            let Room { core, columns, .. } = room;
            let (back, is_beyond) = core.rewind(member, |past| {
                past.columns(id, columns)?;
                Ok::<_, RoomError>((past.back(), past.is_beyond()))
            })??;
            out.extend((back.as_secs_f64() * 1e6).to_le_bytes());
            out.extend(f64::from(u8::from(is_beyond)).to_le_bytes());
            put_columns(out, columns);
            Ok(columns.entities.len())
        })
    }

    /// The newest update of the world.
    fn world_update() -> i32 {
        ask(|room, out| {
            let update = room.core.world_update().map(|update| update.describe());
            crate::room::put_some(out, update)
        })
    }

    /// Sets this player's own state.
    fn set_own(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let Some(own) = &room.own else {
                return Err(Fault::new("bounds", "this room was opened without the option `own`"));
            };
            let row = Row::read(given.bytes(), &own.component, own.fields)?;
            let fields = own.fields;
            Ok(room.write().write_own(|writer| row.write(writer, fields))?)
        })
    }

    /// Lets the next own state be a jump.
    fn teleport_own() -> i32 {
        ask(|room, _| Ok(room.core.teleport_own()?))
    }

    /// The own state of a player, at a moment of room time.
    fn remote_state(player: i32, at: f64, now: f64) -> i32 {
        ask(|room, out| {
            let (player, now) = (member(player)?, room.at(now)?);
            let at = if at < 0.0 { None } else { Some(Duration::from_micros(whole(at.floor(), 1 << 53)?)) };
            let Some(own) = &room.own else {
                return Err(Fault::new("bounds", "this room was opened without the option `own`"));
            };
            let (mine, fields) = (&own.component, own.fields);
            let read = room.core.remote_row(player, at, now, |row| {
                let theirs = row.component();
                let is_same = theirs.name() == mine.name() && is_same_kind(theirs, mine, fields);
                if is_same {
                    put_row(out, row, fields);
                }
                is_same
            });
            Ok(read.unwrap_or_default())
        })
    }

    /// The hash of a schema's description, to compare with a room's.
    fn room_schema_hash() -> i32 {
        ask(|room, out| {
            out.extend(schema_of(room)?.hash().to_le_bytes());
            Ok(())
        })
    }
}

/// Whether the first fields of two components have the same kinds: a peer can send any.
fn is_same_kind(a: &Component, b: &Component, fields: usize) -> bool {
    let kinds =
        |of: &Component| of.fields().iter().take(fields).map(|field| field.kind.clone()).collect::<Vec<_>>();
    kinds(a) == kinds(b)
}

fn schema_of(room: &mut Room) -> Result<Arc<Schema>, Fault> {
    let now = room.at(0.0)?;
    Ok(Arc::clone(room.core.world(now)?.schema()))
}

fn component_id(number: i32) -> Result<ComponentId, Fault> {
    let id = u8::try_from(number).map(ComponentId);
    id.map_err(|_| Fault::new("no_such_component", "a component is a number from 0 to 63"))
}

fn is_shown(which: i32) -> Result<bool, Fault> {
    match which {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Fault::bad_call("which row to read is 0 or 1")),
    }
}

/// An audience that came in.
struct ReadAudience(Audience);

impl Part for ReadAudience {
    const WANTED: &'static str = "\"all\" or a list of members";
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "all" => Some(ReadAudience(Audience::All)),
            Value::List(_) => {
                let members: Vec<MemberId> = Part::of(value)?;
                Some(ReadAudience(Audience::members(members)))
            }
            _ => None,
        }
    }
}
