//! Options from a map, with the names of the TypeScript API.

use crate::boundary::Fault;
use crate::record::{Record, mismatch, unknown_word};
use crate::schema;
use crate::ticket;
use parlor_client_core::{Options, Protocol, Wish};
use parlor_proto::{Lane, RoomCode, TickRate};
use parlor_sync::interpolation::WholeNumbers;
use parlor_sync::value::Value;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Silence of a host in a browser before another takes over: a page can be held up for longer than a process.
const HOST_SILENCE_MS: u32 = 750;

/// Reads the options with which a room is opened or joined.
pub(crate) fn read(value: Value) -> Result<Options, Fault> {
    let mut record = Record::new(value, "")?;
    let app = record.text("app")?;
    let app = record.need("app", app)?;
    let mut options = Options::host(&app);
    options.intent = intent(&mut record)?;
    who(&mut record, &mut options)?;
    terms(&mut record, &mut options)?;
    simulation(&mut record, &mut options)?;
    drawing(&mut record, &mut options)?;
    channels(&mut record, &mut options)?;
    if let Some(value) = record.value("schema") {
        options.schema = Some(Arc::new(schema::schema(value, "schema")?));
    }
    if let Some(own) = record.record("own")? {
        options.template = Some(schema::template(own)?);
    }
    options.predicted = record.texts("predict")?;
    for name in record.texts("actions")? {
        options.actions.define_outside(&name).map_err(|message| Fault::new("bad_options", &message))?;
    }
    record.end()?;
    options.check().map_err(|message| Fault::new("bad_options", &message))?;
    Ok(options)
}

fn intent(record: &mut Record) -> Result<Wish, Fault> {
    let intent = record.text("intent")?;
    let intent = record.need("intent", intent)?;
    let code = record
        .text("code")?
        .map(|code| code.parse::<RoomCode>().map_err(|error| record.fault("code", &error.to_string())));
    let code = code.transpose()?;
    Ok(match intent.as_str() {
        "host" => Wish::Host {
            code,
            max_players: record.int("maxPlayers")?.unwrap_or(4),
            tick_rate: tick_rate(record)?,
            dedicated: record.bool("dedicated")?.unwrap_or_default(),
        },
        "match" => Wish::Match {
            max_players: record.int("maxPlayers")?.unwrap_or(16),
            tick_rate: tick_rate(record)?,
            label: record.text("label")?.unwrap_or_default(),
            keep: record.bool("keep")?.unwrap_or_default(),
        },
        "join" => Wish::Join { code: record.need("code", code)? },
        "resume" => {
            let text = record.text("ticket")?;
            let (session, token) = ticket::read(&record.need("ticket", text)?)
                .ok_or_else(|| record.fault("ticket", "this is no ticket of a room"))?;
            Wish::Resume { session, token }
        }
        word => {
            let known = "\"host\", \"join\", \"match\", \"resume\"";
            return Err(unknown_word("intent", word, known));
        }
    })
}

fn tick_rate(record: &mut Record) -> Result<TickRate, Fault> {
    match record.int("tickHz")? {
        None => Ok(TickRate::DEFAULT),
        Some(hz) => TickRate::new(hz).ok_or_else(|| record.fault("tickHz", "it may be 1 to 240")),
    }
}

/// Who this player is.
fn who(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    options.environment = record.text("environment")?.unwrap_or_default();
    options.name = record.text("name")?.unwrap_or_default();
    options.secret = record.text("secret")?;
    options.token = record.text("token")?;
    Ok(())
}

/// How the room lives with lost members and a lost host.
fn terms(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    options.host_timeout = match record.value("hostMigration") {
        None | Some(Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(ms(HOST_SILENCE_MS)),
        Some(value) => {
            let mut given = Record::new(value, "hostMigration")?;
            let silence = given.int("silenceMs")?.unwrap_or(HOST_SILENCE_MS);
            given.end()?;
            Some(ms(silence))
        }
    };
    if let Some(grace) = record.int("migrationGraceMs")? {
        options.migration_grace = ms(grace);
    }
    options.migration_pause = record.bool("migrationPause")?;
    options.presence = record.int("presenceMs")?.map(ms);
    options.grace = record.int("graceMs")?.map(ms);
    options.reconnect = record.bool("reconnect")?.unwrap_or(true);
    options.spectate = record.bool("spectate")?.unwrap_or_default();
    if let Some(spectators) = record.int("spectators")? {
        options.spectators = spectators;
    }
    options.spectator_delay = ms(record.int("spectatorDelayMs")?.unwrap_or_default());
    Ok(())
}

fn simulation(record: &mut Record, options: &mut Options) -> Result<(), Fault> {
    options.lead = record.bool("lead")?.unwrap_or_default();
    options.simulation_delay_ticks = record.int("simulationDelay")?.unwrap_or_default();
    options.resimulate_ticks = record.int("resimulate")?.unwrap_or_default();
    if let Some(rewind) = record.int("rewindMaxMs")? {
        options.rewind_max = ms(rewind).min(options.rewind_max);
    }
    options.hash_every = match record.int("hashEvery")? {
        None => None,
        Some(every) => {
            Some(NonZeroU64::new(every).ok_or_else(|| record.fault("hashEvery", "it must be above 0"))?)
        }
    };
    options.protocol = match record.text("protocol")?.as_deref() {
        None | Some("both") => Protocol::Both,
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
        options.smoothing.leap = smoothing.number("leap")?;
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
