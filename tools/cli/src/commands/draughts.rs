//! `parlor draughts`: two terminals play in a room that outlives both and the server.

use crate::args::DraughtsArgs;
use crate::draughts::{APP, Command, Game, HELP, word};
use crate::services;
use crate::typed::{lines, shown};
use anyhow::{Context, bail};
use core::fmt::Display;
use parlor::online::{self, Event, Phase, TurnRoom};
use parlor_terminal::connect_options;
use parlor_terminal::print::say;
use parlor_terminal::run_until::stop_flag;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

/// Time between two polls, shorter than any player's move.
const NAP: Duration = Duration::from_millis(20);

/// Runs the command until the game is over, or the player goes away.
///
/// # Errors
/// What was wrong with the arguments, or why the room cannot be had.
pub(crate) fn run(args: &DraughtsArgs) -> anyhow::Result<()> {
    let server = services::server(args.server.as_deref())?;
    let name = connect_options::name(args.name.as_deref());
    let session = services::session_file(args.session.as_deref(), &server, &name)?;
    let sign_in = online::sign_in(&server).name(&name).rules(APP).session_file(&session);
    let sign_in = match &args.ca {
        Some(file) => sign_in.trust(services::roots(file)?),
        None => sign_in,
    };
    let room = match args.join.room() {
        Some(room) => sign_in.join(APP, room)?,
        None => sign_in.join_or_create(APP)?,
    };
    let stop = stop_flag()?;
    let lines = lines();
    let mut table = Table { room, server, is_known: false };
    while !stop.load(Ordering::Relaxed) {
        while let Some(event) = table.room.poll() {
            if table.tell(event)? {
                return Ok(());
            }
        }
        match lines.try_recv() {
            Ok(line) => {
                if table.obey(&line)? {
                    return Ok(());
                }
            }
            // Without anybody who types, somebody may still watch.
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => std::thread::sleep(NAP),
        }
    }
    Ok(())
}

/// The room, and what was said about it.
struct Table {
    room: TurnRoom,
    server: String,
    is_known: bool,
}

impl Table {
    /// Says what happened. True when the game is over.
    fn tell(&mut self, event: Event) -> anyhow::Result<bool> {
        match event {
            Event::Connected { room, code } => self.welcome(&room, code.as_deref())?,
            Event::Lost { why } => say(&format!("connection lost, it is made again by itself: {why}")),
            Event::PlayerJoined { player, name } if Some(player.as_str()) != self.room.me() => {
                say(&format!("{} is here", shown(&name)));
            }
            Event::PlayerLeft { player, how } => {
                say(&format!("{}: {}", self.name(&player), how.replace('_', " ")))
            }
            Event::GameStarted => say(&format!("the game begins: {}", self.sides())),
            Event::TurnStarted { player, is_me, .. } => self.turn(&player, is_me)?,
            Event::MoveMade { player, data, .. } => {
                say(&format!("{} moves {}", self.name(&player), path(&data)))
            }
            Event::MoveRejected { error, .. } | Event::Failed { error, .. } => self.not_done(&error),
            Event::GameOver { winner, reason } => {
                self.show_board()?;
                let reason = shown(&reason.replace('_', " "));
                match winner {
                    Some(winner) => say(&format!("game over: {} wins, {reason}", self.name(&winner))),
                    None => say(&format!("game over: nobody wins, {reason}")),
                }
                return Ok(true);
            }
            Event::Closed(error) => bail!("{error} ({})", error.code),
            _ => {}
        }
        Ok(false)
    }

    fn welcome(&mut self, room: &str, code: Option<&str>) -> anyhow::Result<()> {
        let view = self.room.view().context("a room that is connected was read")?;
        if view.rules.as_deref() != Some(APP) {
            bail!("room {room} is no game of draughts: it is one of {}", shown(&view.game));
        }
        if std::mem::replace(&mut self.is_known, true) {
            say("connected again");
            return Ok(());
        }
        say(&format!("room {}", code.unwrap_or(room)));
        if view.phase == Phase::Waiting {
            let (server, room) = (&self.server, code.unwrap_or(room));
            say(&format!("waiting for somebody: parlor draughts --server {server} --room {room} --name bob"));
        } else {
            say(&format!("the game goes on: {}", self.sides()));
        }
        say(HELP);
        Ok(())
    }

    fn turn(&self, player: &str, is_me: bool) -> anyhow::Result<()> {
        self.show_board()?;
        if is_me {
            say(&format!("your turn: {}", self.moves()?));
        } else {
            say(&format!("turn of {}", self.name(player)));
        }
        Ok(())
    }

    /// Does what was typed. True when the player goes away.
    fn obey(&mut self, line: &str) -> anyhow::Result<bool> {
        let done = match Command::read(line) {
            Command::Move(path) => self.room.propose("move", &json!({ "path": path })),
            Command::Resign => self.room.resign(),
            Command::Moves => {
                say(&self.moves()?);
                Ok(())
            }
            Command::Board => {
                self.show_board()?;
                Ok(())
            }
            Command::Quit => return Ok(true),
            Command::Nothing => Ok(()),
            Command::Unknown => {
                say(&format!("not understood. {HELP}"));
                Ok(())
            }
        };
        if let Err(failure) = done {
            self.not_done(&failure);
        }
        Ok(false)
    }

    /// Says why something was not done, with names instead of the server's ids.
    fn not_done(&self, why: &impl Display) {
        let players = self.room.players().iter();
        let why = players.fold(why.to_string(), |why, player| why.replace(&player.id, &shown(&player.name)));
        say(&format!("not done: {why}"));
    }

    /// The game, once it has begun.
    fn game(&self) -> anyhow::Result<Option<Game>> {
        let view = self.room.view().filter(|view| view.phase != Phase::Waiting);
        view.map(|view| Game::read(&view.state)).transpose()
    }

    fn show_board(&self) -> anyhow::Result<()> {
        let Some(game) = self.game()? else { return Ok(()) };
        let side = self.room.me().and_then(|me| game.side(me));
        say(&game.picture(side.unwrap_or(parlor_turn::draughts::Side::White)));
        Ok(())
    }

    fn moves(&self) -> anyhow::Result<String> {
        let Some(game) = self.game()? else { return Ok("the game has not begun".to_owned()) };
        Ok(game.moves().iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    /// The players of both sides.
    fn sides(&self) -> String {
        let Ok(Some(game)) = self.game() else { return "nobody has a side".to_owned() };
        let players = self.room.players().iter();
        let sides = players.filter_map(|player| {
            let side = game.side(&player.id)?;
            Some(format!("{} has {}", shown(&player.name), word(side)))
        });
        sides.collect::<Vec<_>>().join(", ")
    }

    fn name(&self, player: &str) -> String {
        let found = self.room.view().and_then(|view| view.player(player));
        shown(found.map_or(player, |player| &player.name))
    }
}

/// Squares as players write them: a step to the next row is a move, farther is a capture.
fn path(data: &Value) -> String {
    let squares = data["path"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let squares: Vec<u64> = squares.collect();
    let row = |square: &u64| square.saturating_sub(1) / 4;
    let takes = squares.windows(2).any(|pair| row(&pair[0]).abs_diff(row(&pair[1])) != 1);
    squares.iter().map(u64::to_string).collect::<Vec<_>>().join(if takes { "x" } else { "-" })
}
