//! Events of a recording as lines: for a person, and one JSON object each.

use crate::dump::{name, value};
use crate::player::shown;
use parlor::EntityId;
use parlor::recording::{Playback, Step, What};
use parlor_proto::{Instant, MemberId};
use parlor_sync::keyed::KeyReader;
use parlor_sync::schema::{ComponentId, INPUT_ACK, KEYED_KEY};
use parlor_sync::world::{Applied, World};
use serde_json::{Map, Value, json};

/// A line or an object for a step that was just played; none for what a person would not want to know.
pub(crate) fn record(step: &Step, playback: &Playback, is_json: bool) -> Option<String> {
    if is_json { Some(object(step, playback).to_string()) } else { line(step, playback) }
}

fn line(step: &Step, playback: &Playback) -> Option<String> {
    let text = match &step.what {
        What::Came(member) => format!("{} is here", player(playback, *member)),
        What::Left(member) => format!("{} left", shown("", *member)),
        What::Mark { tick, agrees: true, hash } => {
            format!("{tick}: {}, hash {hash:016x} agrees", census(playback))
        }
        What::Mark { tick, agrees: false, hash } => {
            format!("{tick}: {}, HASH {hash:016x} DIFFERS from what was recorded", census(playback))
        }
        What::Ended(ended) => ended.to_string(),
        What::Changed { .. } => return None,
    };
    Some(format!("{:>9.3} s  {text}", seconds(step.at)))
}

fn object(step: &Step, playback: &Playback) -> Value {
    let mut object = match &step.what {
        What::Came(member) => {
            json!({ "what": "came", "member": member.0, "name": playback.players().get(member) })
        }
        What::Left(member) => json!({ "what": "left", "member": member.0 }),
        What::Mark { tick, hash, agrees } => {
            json!({ "what": "mark", "tick": tick.0, "hash": format!("{hash:016x}"), "agrees": agrees })
        }
        What::Ended(ended) => json!({ "what": "ended", "why": ended.to_string() }),
        What::Changed { applied, keys } => {
            let values = keys.changed.iter().map(|change| &*change.key);
            json!({
                "what": "changed",
                "tick": applied.tick.0,
                "whole": applied.settled,
                "entities": entities(playback, applied),
                "gone": gone(applied),
                "keys": key_values(playback, values),
                "removed": keys.removed.iter().map(|key| json!(**key)).collect::<Vec<_>>(),
            })
        }
    };
    object["at_us"] = json!(step.at.as_micros());
    object
}

/// What there is when a spectator comes.
pub(crate) fn joining(playback: &Playback, is_json: bool) -> String {
    if !is_json {
        let players: Vec<String> = playback.players().keys().map(|it| player(playback, *it)).collect();
        return format!(
            "{:>9.3} s  a spectator comes: {}, {}",
            seconds(playback.at()),
            players.join(", "),
            census(playback)
        );
    }
    let world = playback.world();
    let all = world.into_iter().flat_map(|world| world.entities().map(|it| (it, u64::MAX)));
    let entities = world.map(|world| parts(world, all)).unwrap_or_default();
    let keys = playback.keys().into_iter().flat_map(|keys| keys.iter().map(|(key, _)| &**key));
    json!({
        "what": "spectator",
        "at_us": playback.at().as_micros(),
        "tick": world.and_then(World::tick).map(|tick| tick.0),
        "players": playback.players().iter().map(|(id, name)| (id.to_string(), json!(name))).collect::<Map<_, _>>(),
        "entities": entities,
        "keys": key_values(playback, keys),
    })
    .to_string()
}

fn seconds(at: Instant) -> f64 {
    at.saturating_since(Instant::ZERO).as_secs_f64()
}

fn player(playback: &Playback, member: MemberId) -> String {
    shown(playback.players().get(&member).map_or("", String::as_str), member)
}

/// How much there is.
fn census(playback: &Playback) -> String {
    let entities =
        playback.world().map_or(0, |world| world.entities().filter(|it| is_of_game(world, *it)).count());
    let keys = playback.keys().map_or(0, KeyReader::len);
    let players = count(playback.players().len(), "player", "players");
    format!("{players}, {}, {}", count(entities, "entity", "entities"), count(keys, "key", "keys"))
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn is_of_game(world: &World, entity: EntityId) -> bool {
    world.mask(entity).is_ok_and(|mask| mask & (KEYED_KEY.bit() | INPUT_ACK.bit()) == 0)
}

fn key_values<'a>(playback: &Playback, names: impl Iterator<Item = &'a str>) -> Map<String, Value> {
    let Some(keys) = playback.keys() else { return Map::new() };
    names.map(|key| (key.to_owned(), json!(keys.get(key)))).collect()
}

fn entities(playback: &Playback, applied: &Applied) -> Map<String, Value> {
    playback.world().map(|world| parts(world, applied.changed.iter().copied())).unwrap_or_default()
}

/// Of entities with components, one bit each, those that the game has; each with its owner.
fn parts(world: &World, entities: impl Iterator<Item = (EntityId, u64)>) -> Map<String, Value> {
    let of_game = entities.filter(|(entity, _)| is_of_game(world, *entity));
    of_game.map(|(entity, mask)| (name(entity), part(world, entity, mask))).collect()
}

fn part(world: &World, entity: EntityId, mask: u64) -> Value {
    let mut components = Map::new();
    for id in ComponentId::in_mask(mask & world.mask(entity).unwrap_or(0)) {
        let (Some(component), Ok(Some((lanes, blobs)))) =
            (world.schema().get(id), world.read_row(entity, id))
        else {
            continue;
        };
        let fields = component.fields().iter().enumerate();
        let fields =
            fields.map(|(at, field)| (field.name.clone(), value::field(component, lanes, blobs, at)));
        components.insert(component.name().to_owned(), fields.collect::<Map<_, _>>().into());
    }
    json!({ "owner": world.owner(entity).ok().flatten().map(|owner| owner.0), "components": components })
}

fn gone(applied: &Applied) -> Vec<String> {
    applied.despawned.iter().map(|entity| name(*entity)).collect()
}
