//! Members without a screen.

use crate::args::HeadlessArgs;
use crate::game::{Bot, Script};
use crate::player::{Pilot, Player};
use crate::report::{HASH_EVERY, Report};
use crate::web;
use anyhow::Context;
use parlor::{RoomBuilder, kind};
use parlor_terminal::connect_options::{self, ConnectArgs};
use parlor_terminal::run_until::End;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Longest sleep between two looks, so that Ctrl-C is noticed.
const NAP_MAX: Duration = Duration::from_millis(50);

/// The input of a member without a screen: the script, if there is one, otherwise a bot.
pub(crate) fn pilot(args: &HeadlessArgs, seed: u64, skill: f32) -> anyhow::Result<Pilot> {
    let Some(file) = &args.script else { return Ok(Pilot::Bot(Bot::new(seed, skill))) };
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("the script {} cannot be read", file.display()))?;
    let script: Script =
        text.parse().with_context(|| format!("the script {} cannot be used", file.display()))?;
    Ok(Pilot::Script { script, began: None })
}

/// Applies the options about the server and the report to a room's builder.
///
/// # Errors
/// What is wrong with an option.
pub(crate) fn apply<K: kind::Hosted>(
    builder: RoomBuilder<K>,
    connect: &ConnectArgs,
    args: &HeadlessArgs,
) -> anyhow::Result<RoomBuilder<K>> {
    connect_options::apply(builder.hash_every(args.hash_at.unwrap_or(HASH_EVERY)), connect)
}

/// Plays until the time is over, every member's room has ended, or Ctrl-C is pressed. Says on standard error which room it is, and
/// who of the players becomes its host; with a server in this process also where browsers play.
///
/// # Errors
/// If a member cannot go on.
pub(crate) fn play(
    players: &mut [Player],
    names: &[String],
    args: &HeadlessArgs,
    own_port: Option<u16>,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let end = End::after(args.seconds, stop);
    let mut announced = false;
    loop {
        for player in players.iter_mut().filter(|player| player.closed().is_none()) {
            player.turn()?;
        }
        if !announced && let Some(code) = players.iter().find_map(Player::open_code) {
            announced = true;
            // Standard output is for the report; whoever starts a host wants the code before it ends.
            let _ = writeln!(std::io::stderr(), "room {code}");
            if let Some(port) = own_port {
                let page = web::room_on_this_machine(port, code);
                let _ = writeln!(std::io::stderr(), "play in a browser: {page}");
            }
        }
        for (player, name) in players.iter_mut().zip(names) {
            if player.take_promotion() {
                let _ = writeln!(std::io::stderr(), "host {name}");
            }
        }
        let has_enough = |player: &Player| {
            player.closed().is_some() || args.updates.is_some_and(|n| player.updates() >= n)
        };
        if end.is_here() || players.iter().all(has_enough) {
            return Ok(());
        }
        let rest = players.iter().filter(|player| player.closed().is_none()).map(Player::rest).min();
        std::thread::sleep(rest.unwrap_or(NAP_MAX).clamp(Duration::from_millis(1), NAP_MAX));
    }
}

/// Reports on players and leaves. `show` is given the reports, with --json also those of a room that never was.
///
/// # Errors Why the room never opened for one of them, or the error of `show`.
pub(crate) fn finish(
    players: Vec<Player>,
    names: &[String],
    args: &HeadlessArgs,
    show: impl FnOnce(&[Report]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let reports =
        players.iter().zip(names).map(|(player, name)| player.report(name, args.hash_at)).collect::<Vec<_>>();
    let failed = players.iter().find_map(|player| match player.closed() {
        // A room that was never open is a failure; one that ended is not.
        Some(reason) if player.room().local_id().is_none() => Some(reason.clone()),
        _ => None,
    });
    players.into_iter().for_each(Player::leave);
    if failed.is_none() || args.json {
        show(&reports)?;
    }
    failed.map_or(Ok(()), |reason| Err(reason.into()))
}
