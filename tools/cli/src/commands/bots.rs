//! `parlor bots`: scripted members for a room.

use crate::args::BotsArgs;
use crate::player::Player;
use crate::{headless, player};
use anyhow::{Context, bail};
use parlor::Room;
use parlor_terminal::connect_options::ConnectArgs;
use parlor_terminal::nearby;
use parlor_terminal::print::{print_json, say};
use parlor_terminal::run_until::stop_flag;
use serde_json::json;
use std::collections::BTreeMap;

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or kept a bot out of the room.
pub(crate) fn run(args: &BotsArgs) -> anyhow::Result<()> {
    let room = args.join.room().context("say which room to fill: `parlor bots CODE`, or --join CODE")?;
    let (tokens, count) = (args.tokens.len(), usize::from(args.count));
    if tokens != 0 && tokens != count {
        bail!(
            "{tokens} tokens are given for {count} bots: each needs one of its own, because a token is good once"
        );
    }
    let invite = nearby::invite(player::APP, room, &args.connect)?;
    let stop = stop_flag()?;
    let mut players = Vec::new();
    let mut names = Vec::new();
    for number in 1..=args.count {
        let name = format!("bot {number}");
        let builder = Room::join(player::APP, &invite).lead().name(&name);
        let token = args.tokens.get(usize::from(number) - 1);
        let builder = token.iter().fold(builder, |builder, token| builder.token(token));
        let impair = args.connect.impair.map(|impairment| impairment.apart(number.into()));
        // A file has the packets of one client: the first bot.
        let packet_log = args.connect.packet_log.clone().filter(|_| number == 1);
        let connect = ConnectArgs { impair, packet_log, ..args.connect.clone() };
        let room = headless::apply(builder, &connect, &args.headless)?.open();
        let pilot = headless::pilot(&args.headless, number.into(), args.skill)?;
        let mut player = Player::new(room, pilot);
        player.speak_as(&name, &args.headless);
        players.push(player);
        names.push(name);
    }
    headless::play(&mut players, &names, &args.headless, None, &stop)?;
    if !args.headless.json {
        tell_ends(&players, &names);
    }
    headless::finish(players, &names, &args.headless, |reports| match args.headless.json {
        true => print_json(&json!({ "command": "bots", "bots": reports })),
        false => Ok(()),
    })
}

/// Says how it ended for each. What kept several out of the room is one line; if it kept out all of them it is the command's own error.
fn tell_ends(players: &[Player], names: &[String]) {
    let mut kept_out: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (player, name) in players.iter().zip(names) {
        match player.closed() {
            Some(reason) if player.room().local_id().is_none() => {
                kept_out.entry(reason.to_string()).or_default().push(name);
            }
            Some(reason) => say(&format!("{name}: {reason}")),
            None => say(&format!("{name}: leaves after {} steps", player.seen().steps)),
        }
    }
    for (reason, kept_out) in kept_out.iter().filter(|(_, kept_out)| kept_out.len() < players.len()) {
        say(&format!("{}: {reason}", kept_out.join(", ")));
    }
}
