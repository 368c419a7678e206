//! `parlor dump`: the log of a room or of a client's packets, message by message, as text or JSON.

use crate::args::DumpArgs;
use crate::dump::{Dump, Filter, Record};
use anyhow::{Context, bail};
use bytes::Bytes;
use parlor_client_core::PacketLogReader;
use parlor_hub::room::log;
use parlor_proto::{Instant, MemberId, TickRate};
use parlor_terminal::print::{print_json, say};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Runs the command.
///
/// # Errors
/// If the file cannot be read or is no log, or what is asked for cannot be.
pub(crate) fn run(args: &DumpArgs) -> anyhow::Result<()> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        bail!("--from {from} is not before --to {to}");
    }
    let file = args.file.display();
    let bytes = Bytes::from(std::fs::read(&args.file).with_context(|| format!("{file} cannot be read"))?);
    let filter = Filter {
        member: args.member.map(MemberId),
        entity: args.entity,
        from: args.from.map(Duration::from_secs_f64),
        until: args.to.map(Duration::from_secs_f64),
    };
    if PacketLogReader::is_log(&bytes) {
        return packets(args, bytes, filter);
    }
    let mut replay = log::replay(bytes).with_context(|| format!("{file} cannot be shown"))?;
    let setup = replay.room().setup().clone();
    let schema = setup.schema().context("the schema in the log cannot be used")?;
    let rate = setup.settings.tick_rate;
    if args.json {
        print_json(&json!({
            "what": "room", "code": setup.code.to_string(), "app": setup.app, "hz": rate.hz(),
            "components": schema.components().iter().map(|component| component.name()).collect::<Vec<_>>(),
        }))?;
    } else {
        say(&format!("room {} of {:?}, {} Hz", setup.code, setup.app, rate.hz()));
    }
    let mut dump = Dump::new(Arc::new(schema), rate, setup.opened, filter);
    let torn = dump.log(&mut replay, &mut |record| show(args, record))?;
    finish(args, &dump, torn.map(|error| error.to_string()))
}

/// The packet log of a client.
fn packets(args: &DumpArgs, bytes: Bytes, filter: Filter) -> anyhow::Result<()> {
    let file = args.file.display();
    let mut log = PacketLogReader::new(bytes).with_context(|| format!("{file} cannot be shown"))?;
    if args.json {
        print_json(&json!({ "what": "packets", "app": log.app() }))?;
    } else {
        say(&format!("packets of a client of {:?}", log.app()));
    }
    // The log says later what the room is like.
    let mut dump = Dump::new(Arc::default(), TickRate::DEFAULT, Instant::ZERO, filter);
    let torn = dump.packets(&mut log, &mut |record| show(args, record))?;
    finish(args, &dump, torn.map(|error| error.to_string()))
}

fn show(args: &DumpArgs, record: &Record) -> anyhow::Result<()> {
    if args.json {
        return print_json(&record.json());
    }
    record.lines().iter().for_each(|line| say(line));
    Ok(())
}

/// Shows the sums, and why the log ends early, if so.
fn finish(args: &DumpArgs, dump: &Dump, torn: Option<String>) -> anyhow::Result<()> {
    if args.json {
        return print_json(&json!({ "what": "sums", "sums": dump.tally().json(), "torn": torn }));
    }
    dump.tally().lines().iter().for_each(|line| say(line));
    if let Some(torn) = torn {
        say(&format!("the log ends early: {torn}"));
    }
    Ok(())
}
