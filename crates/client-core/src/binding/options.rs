//! Options by name, with the names of the TypeScript API.

use super::{Fault, Record, mismatch, read_schema, read_template, unknown_word};
use crate::options::{Options, Protocol, Wish};
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
            *max_players = record.int("maxPlayers")?.unwrap_or(*max_players);
            *tick_rate = read_tick_rate(record)?.unwrap_or(*tick_rate);
            *dedicated = record.bool("dedicated")?.unwrap_or(*dedicated);
        }
        Wish::Match { max_players, tick_rate, label, keep } => {
            *max_players = record.int("maxPlayers")?.unwrap_or(*max_players);
            *tick_rate = read_tick_rate(record)?.unwrap_or(*tick_rate);
            *label = record.text("label")?.unwrap_or(std::mem::take(label));
            *keep = record.bool("keep")?.unwrap_or(*keep);
        }
        Wish::Join { .. } | Wish::Resume { .. } => {}
    }
    Ok(())
}

/// The code that a record names.
fn read_code(record: &mut Record) -> Result<Option<RoomCode>, Fault> {
    let code = record.text("code")?.map(|code| code.parse());
    code.transpose().map_err(|error: parlor_proto::code::CodeError| record.fault("code", &error.to_string()))
}

fn read_tick_rate(record: &mut Record) -> Result<Option<TickRate>, Fault> {
    let rate = record.int("tickHz")?.map(|hz| TickRate::new(hz).ok_or(()));
    rate.transpose().map_err(|()| record.fault("tickHz", "it may be 1 to 240"))
}

/// Who this player is.
fn who(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    if let Some(environment) = record.text("environment")? {
        options.environment = environment;
    }
    if let Some(name) = record.text("name")? {
        options.name = name;
    }
    options.secret = record.text("secret")?.or(options.secret.take());
    options.token = record.text("token")?.or(options.token.take());
    Ok(())
}

/// How the room lives with lost members and a lost host.
fn terms(record: &mut Record, options: &mut Options, silence_ms: u32) -> Result<(), Fault> {
    options.host_timeout = match record.value("hostMigration") {
        None => options.host_timeout,
        Some(Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(ms(silence_ms)),
        Some(value) => {
            let mut given = Record::new(value, "hostMigration")?;
            let silence = given.int("silenceMs")?.unwrap_or(silence_ms);
            given.end()?;
            Some(ms(silence))
        }
    };
    if let Some(grace) = record.int("migrationGraceMs")? {
        options.migration_grace = ms(grace);
    }
    options.migration_pause = record.bool("migrationPause")?.or(options.migration_pause);
    options.presence = record.int("presenceMs")?.map(ms).or(options.presence);
    options.grace = record.int("graceMs")?.map(ms).or(options.grace);
    options.reconnect = record.bool("reconnect")?.unwrap_or(options.reconnect);
    options.spectate = record.bool("spectate")?.unwrap_or(options.spectate);
    if let Some(spectators) = record.int("spectators")? {
        options.spectators = spectators;
    }
    if let Some(delay) = record.int("spectatorDelayMs")? {
        options.spectator_delay = ms(delay);
    }
    Ok(())
}

fn simulation(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    options.lead = record.bool("lead")?.unwrap_or(options.lead);
    if let Some(ticks) = record.int("simulationDelay")? {
        options.simulation_delay_ticks = ticks;
    }
    if let Some(ticks) = record.int("resimulate")? {
        options.resimulate_ticks = ticks;
    }
    if let Some(rewind) = record.int("rewindMaxMs")? {
        options.rewind_max = ms(rewind).min(options.rewind_max);
    }
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
        if let Some(shortest) = delay.int("minMs")? {
            options.drawing.delay.shortest = ms(shortest);
        }
        if let Some(longest) = delay.int("maxMs")? {
            options.drawing.delay.longest = ms(longest);
        }
        delay.end()?;
    }
    if let Some(mut smoothing) = record.record("smoothing")? {
        if let Some(fade) = smoothing.int("fadeMs")? {
            options.smoothing.fade = ms(fade);
        }
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

fn ms(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}
