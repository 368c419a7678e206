//! `parlor dump`: the log of a room, message by message, as text or JSON.

use crate::args::DumpArgs;
use crate::dump::{Dump, Filter};
use anyhow::{Context, bail};
use parlor_hub::room::log;
use parlor_proto::MemberId;
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
    let bytes = std::fs::read(&args.file).with_context(|| format!("{file} cannot be read"))?;
    let mut replay = log::replay(bytes.into()).with_context(|| format!("{file} cannot be shown"))?;
    let setup = replay.room().setup().clone();
    let schema = setup.schema().context("the schema in the log cannot be used")?;
    let filter = Filter {
        member: args.member.map(MemberId),
        entity: args.entity,
        from: args.from.map(Duration::from_secs_f64),
        until: args.to.map(Duration::from_secs_f64),
    };
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
    let torn = dump.log(&mut replay, &mut |record| {
        if args.json {
            return print_json(&record.json());
        }
        record.lines().iter().for_each(|line| say(line));
        Ok(())
    })?;
    let torn = torn.map(|error| error.to_string());
    if args.json {
        return print_json(&json!({ "what": "sums", "sums": dump.tally().json(), "torn": torn }));
    }
    dump.tally().lines().iter().for_each(|line| say(line));
    if let Some(torn) = torn {
        say(&format!("the log ends early: {torn}"));
    }
    Ok(())
}
