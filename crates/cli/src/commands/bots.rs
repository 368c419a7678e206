//! `parlor bots`: scripted members for somebody's room.

use super::{print_json, say};
use crate::args::{BotsArgs, ReachArgs};
use crate::{headless, lan, reach, seat};
use anyhow::bail;
use parlor::Room;
use serde_json::json;

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or kept a bot out of the room.
pub(crate) fn run(args: &BotsArgs) -> anyhow::Result<()> {
    let (tokens, count) = (args.tokens.len(), usize::from(args.count));
    if tokens != 0 && tokens != count {
        bail!(
            "{tokens} tokens are given for {count} bots: each needs one of its own, because a token is good once"
        );
    }
    let invite = lan::invite(seat::APP, &args.join, &args.reach)?;
    let stop = headless::stop_flag()?;
    let mut seats = Vec::new();
    let mut names = Vec::new();
    for number in 1..=args.count {
        let name = format!("bot {number}");
        let builder = Room::guest(seat::APP, &invite).lead().name(&name);
        let token = args.tokens.get(usize::from(number) - 1);
        let builder = token.iter().fold(builder, |builder, token| builder.token(token));
        let impair = args.reach.impair.map(|impairment| impairment.apart(number.into()));
        let reach = ReachArgs { impair, ..args.reach.clone() };
        let room = reach::apply(builder, &reach, &args.headless)?.open();
        let pilot = headless::pilot(&args.headless, number.into(), args.skill)?;
        let mut seat = seat::Seat::new(room, pilot);
        seat.speak_as(&name, &args.headless);
        seats.push(seat);
        names.push(name);
    }
    headless::play(&mut seats, &names, &args.headless, &stop)?;
    if !args.headless.json {
        for (seat, name) in seats.iter().zip(&names) {
            match seat.closed() {
                Some(reason) => say(&format!("{name}: {reason}")),
                None => say(&format!("{name}: leaves after {} steps", seat.seen().steps)),
            }
        }
    }
    let reports = headless::finish(seats, &names, &args.headless)?;
    if args.headless.json {
        print_json(&json!({ "command": "bots", "bots": reports }))?;
    }
    Ok(())
}
