//! Options by name, with the names of the TypeScript API.

use super::{Fault, Record, mismatch, read_schema, read_template, unknown_word};
use crate::options::{Options, Protocol, Wish};
use parlor_proto::code::CodeError;
use parlor_proto::{Lane, RoomCode, TickRate};
use parlor_sync::interpolation::WholeNumbers;
use parlor_sync::value::Value;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Takes the options of a room out of a record, and sets those that are there. `silence_ms` is the host's silence
/// before another takes over, where migration is asked for without one. What a binding takes beyond these it reads
/// before or after; then come [`Record::end`] and [`Options::check`].
///
/// # Errors
/// [`Fault`] with the path of the option that is wrong.
pub fn read_options(record: &mut Record, options: &mut Options, silence_ms: u32) -> Result<(), Fault> {
    new_room(record, &mut options.intent)?;
    who(record, options)?;
    terms(record, options, silence_ms)?;
    simulation(record, options)?;
    drawing(record, options)?;
    channels(record, options)?;
    if let Some(value) = record.value("schema") {
        options.schema = Some(Arc::new(read_schema(value, "schema")?));
    }
    if let Some(own) = record.record("own")? {
        options.template = Some(read_template(own)?);
    }
    options.predicted.extend(record.texts("predict")?);
    for name in record.texts("actions")? {
        options.actions.define_outside(&name).map_err(|message| Fault::new("bad_options", &message))?;
    }
    Ok(())
}

/// What only who opens a room or match decides.
fn new_room(record: &mut Record, intent: &mut Wish) -> Result<(), Fault> {
    match intent {
        Wish::Host { code, max_players, tick_rate, dedicated } => {
            *code = read_code(record)?.or(*code);
            record.set_int("maxPlayers", max_players)?;
            set_tick_rate(record, tick_rate)?;
            record.set_bool("dedicated", dedicated)?;
        }
        Wish::Match { max_players, tick_rate, label, keep } => {
            record.set_int("maxPlayers", max_players)?;
            set_tick_rate(record, tick_rate)?;
            record.set_text("label", label)?;
            record.set_bool("keep", keep)?;
        }
        Wish::Join { .. } | Wish::Resume { .. } => {}
    }
    Ok(())
}

/// The code of a room that a record names.
///
/// # Errors
/// [`Fault`] if it is none.
pub fn read_code(record: &mut Record) -> Result<Option<RoomCode>, Fault> {
    let Some(text) = record.text("code")? else { return Ok(None) };
    match text.parse() {
        Ok(code) => Ok(Some(code)),
        Err(error) => Err(record.fault("code", &CodeError::to_string(&error))),
    }
}

fn set_tick_rate(record: &mut Record, to: &mut TickRate) -> Result<(), Fault> {
    if let Some(hz) = record.int("tickHz")? {
        *to = TickRate::new(hz).ok_or_else(|| record.fault("tickHz", "it may be 1 to 240"))?;
    }
    Ok(())
}

/// Who this player is.
fn who(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    record.set_text("environment", &mut options.environment)?;
    record.set_text("name", &mut options.name)?;
    if let Some(secret) = record.text("secret")? {
        options.secret = Some(secret);
    }
    if let Some(token) = record.text("token")? {
        options.token = Some(token);
    }
    Ok(())
}

/// How the room lives with lost members and a lost host.
fn terms(record: &mut Record, options: &mut Options, silence_ms: u32) -> Result<(), Fault> {
    let silence = Duration::from_millis(silence_ms.into());
    match record.value("hostMigration") {
        None => {}
        Some(Value::Bool(migrates)) => options.host_timeout = migrates.then_some(silence),
        Some(value) => {
            let mut given = Record::new(value, "hostMigration")?;
            options.host_timeout = Some(silence);
            given.set_some_ms("silenceMs", &mut options.host_timeout)?;
            given.end()?;
        }
    }
    record.set_ms("migrationGraceMs", &mut options.migration_grace)?;
    options.migration_pause = record.bool("migrationPause")?.or(options.migration_pause);
    record.set_some_ms("presenceMs", &mut options.presence)?;
    record.set_some_ms("graceMs", &mut options.grace)?;
    record.set_bool("reconnect", &mut options.reconnect)?;
    record.set_bool("spectate", &mut options.spectate)?;
    record.set_int("spectators", &mut options.spectators)?;
    record.set_ms("spectatorDelayMs", &mut options.spectator_delay)
}

fn simulation(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    record.set_bool("lead", &mut options.lead)?;
    record.set_int("simulationDelay", &mut options.simulation_delay_ticks)?;
    record.set_int("resimulate", &mut options.resimulate_ticks)?;
    let rewind_max = options.rewind_max;
    record.set_ms("rewindMaxMs", &mut options.rewind_max)?;
    options.rewind_max = options.rewind_max.min(rewind_max);
    if let Some(every) = record.int("hashEvery")? {
        let every = NonZeroU64::new(every).ok_or_else(|| record.fault("hashEvery", "it must be above 0"))?;
        options.hash_every = Some(every);
    }
    options.protocol = match record.text("protocol")?.as_deref() {
        None => options.protocol,
        Some("both") => Protocol::Both,
        Some("reliable") => Protocol::Reliable,
        Some("unreliable") => Protocol::Unreliable,
        Some(word) => {
            return Err(unknown_word("protocol", word, "\"reliable\", \"unreliable\", \"both\""));
        }
    };
    Ok(())
}

fn drawing(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    if record.bool("reals")?.unwrap_or(true) {
        options.drawing.whole_numbers = WholeNumbers::MoveAsReals;
    }
    if let Some(mut delay) = record.record("renderDelay")? {
        delay.set_ms("minMs", &mut options.drawing.delay.shortest)?;
        delay.set_ms("maxMs", &mut options.drawing.delay.longest)?;
        delay.end()?;
    }
    if let Some(mut smoothing) = record.record("smoothing")? {
        smoothing.set_ms("fadeMs", &mut options.smoothing.fade)?;
        options.smoothing.leap = smoothing.number("leap")?.or(options.smoothing.leap);
        smoothing.end()?;
    }
    Ok(())
}

fn channels(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    let Some(mut channels) = record.record("channels")? else { return Ok(()) };
    for (name, value) in channels.all() {
        let number: u8 = name
            .parse()
            .map_err(|_| channels.fault(&name, "a channel is a number in the range of the game's own"))?;
        let Value::Text(word) = &value else { return Err(mismatch(&channels.at(&name), "a lane", &value)) };
        let lane = lane_of(word).ok_or_else(|| unknown_word(&channels.at(&name), word, LANES))?;
        options.channel(number, lane).map_err(|error| channels.fault(&name, &error.to_string()))?;
    }
    Ok(())
}

const LANES: &str = "\"unreliable\", \"sequenced\", \"reliable\", \"ordered\"";

fn lane_of(word: &str) -> Option<Lane> {
    Some(match word {
        "unreliable" => Lane::Unreliable,
        "sequenced" => Lane::UnreliableSequenced,
        "reliable" => Lane::ReliableUnordered,
        "ordered" => Lane::ReliableOrdered,
        _ => return None,
    })
}
