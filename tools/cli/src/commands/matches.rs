//! `parlor match`: terminals in a match, which the server runs and whose members are equal.

mod lists;

use crate::args::MatchArgs;
use crate::services;
use crate::typed::{lines, shown};
use anyhow::bail;
use parlor::online::{self, Account};
use parlor::{
    CloseReason, ClosedReason, Event, Invite, LeaveReason, MemberId, Player, Recipient, Room, RoomBuilder,
    RoomError,
};
use parlor_terminal::connect_options;
use parlor_terminal::nearby;
use parlor_terminal::print::say;
use parlor_terminal::run_until::stop_flag;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

/// Time between two polls, shorter than any player's typing.
const NAP: Duration = Duration::from_millis(10);
/// What can be typed.
const HELP: &str = "a line is sent to all; /to NAME TEXT to one, /op N TEXT with another op code; /who lists who is here, /leave leaves";

/// Runs the command until the match is left or over.
///
/// # Errors
/// What was wrong with the arguments, or why the match cannot be had.
pub(crate) fn run(args: &MatchArgs) -> anyhow::Result<()> {
    let stop = stop_flag()?;
    if args.list {
        return lists::list(&account(args, None)?, &args.label, &stop);
    }
    if let Some(id) = &args.log {
        return lists::log(&account(args, None)?, id, &stop);
    }
    let mut table = Table { room: open(args)?, op: args.op, server: args.connect.server.clone() };
    let typed = lines();
    let mut is_open = false;
    while !stop.load(Ordering::Relaxed) {
        while let Some(event) = table.room.poll() {
            is_open |= matches!(event, Event::Open { .. });
            if table.tell(event)? {
                return Ok(());
            }
        }
        // Steps mean nothing here; what was sent leaves with them.
        while table.room.step().is_some() {}
        // What is typed before there is a match waits for it.
        match if is_open { typed.try_recv() } else { Err(TryRecvError::Empty) } {
            Ok(line) => match Command::read(&line) {
                Command::Leave => break,
                command => table.obey(command),
            },
            // Without anybody who types, somebody may still watch.
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => std::thread::sleep(NAP),
        }
    }
    table.room.leave();
    Ok(())
}

fn open(args: &MatchArgs) -> anyhow::Result<Room> {
    let invite = args.join.room().map(|id| nearby::invite(&args.app, id, &args.connect)).transpose()?;
    match &invite {
        Some(invite) => open_with(Room::join(&args.app, invite), args, Some(invite)),
        None if args.connect.lan => {
            bail!("a match is run by a server: start `parlor serve --lan`, and name it here with --server")
        }
        None => {
            let builder = Room::create_match(&args.app).max_players(args.max_players).label(&args.label);
            open_with(if args.keep { builder.keep() } else { builder }, args, None)
        }
    }
}

/// Opens what a builder leads to, as the player of the command line.
fn open_with<K>(builder: RoomBuilder<K>, args: &MatchArgs, invite: Option<&str>) -> anyhow::Result<Room> {
    let builder = builder.name(&connect_options::name(args.name.as_deref()));
    let builder = args.token.iter().fold(builder, |builder, token| builder.token(token));
    let builder = if args.account { builder.account(&account(args, invite)?) } else { builder };
    Ok(connect_options::apply(builder, &args.connect)?.open())
}

/// The player's account, at the server that is named, that the invite leads to, or that is here.
fn account(args: &MatchArgs, invite: Option<&str>) -> anyhow::Result<Account> {
    // A session that is named may be another server's, and is shown to none that somebody else's link leads to.
    let invite = invite.filter(|_| args.session.is_none()).and_then(|invite| invite.parse::<Invite>().ok());
    let invited = invite.and_then(|invite| invite.server).map(|server| server.to_string());
    let of_environment = || std::env::var("PARLOR_SERVER").ok();
    let server = args.connect.server.clone().or(invited).or_else(of_environment);
    let server = services::server(server.as_deref())?;
    let name = connect_options::name(args.name.as_deref());
    let session = services::session_file(args.session.as_deref(), &server, &name)?;
    let sign_in = online::sign_in(&server).name(&name).session_file(&session);
    let sign_in = match &args.connect.ca {
        Some(file) => sign_in.trust(services::roots(file)?),
        None => sign_in,
    };
    Ok(sign_in.account(&args.app)?)
}

/// What a player typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Command {
    /// Send this to all others.
    Say(String),
    /// Send it to the one whose name the text begins with.
    To(String),
    /// Send it under another op code.
    Op(i64, String),
    /// List who is here.
    Who,
    /// Go away.
    Leave,
    /// Nothing was typed.
    Nothing,
    /// An unknown command.
    Unknown,
}

impl Command {
    fn read(line: &str) -> Self {
        let line = line.trim();
        let Some(rest) = line.strip_prefix('/') else {
            return if line.is_empty() { Command::Nothing } else { Command::Say(line.to_owned()) };
        };
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let rest = rest.trim();
        match word {
            "to" if !rest.is_empty() => Command::To(rest.to_owned()),
            "op" => {
                let (op, text) = rest.split_once(' ').unwrap_or((rest, ""));
                op.parse().map_or(Command::Unknown, |op| Command::Op(op, text.trim().to_owned()))
            }
            "who" => Command::Who,
            "leave" | "quit" => Command::Leave,
            _ => Command::Unknown,
        }
    }
}

/// The match, and who plays in it here.
struct Table {
    room: Room,
    /// The op code of what is typed.
    op: i64,
    server: Option<String>,
}

impl Table {
    /// Prints an event. Returns true when the match is over for this player.
    fn tell(&mut self, event: Event) -> anyhow::Result<bool> {
        match event {
            Event::Open { code } => self.welcome(&code.to_string())?,
            Event::PlayerJoined(player) if !player.is_me => say(&format!("{} is here", called(&player))),
            Event::PlayerLeft { name, reason: LeaveReason::Left, .. } => {
                say(&format!("{} has left", shown(&name)));
            }
            Event::PlayerLeft { name, reason, .. } => say(&format!("{} {reason}", shown(&name))),
            Event::PlayerLost { id, .. } => {
                say(&format!("{} has lost its connection and may come back", self.name(id)));
            }
            Event::PlayerBack { id } => say(&format!("{} is back", self.name(id))),
            Event::ConnectionLost { detail, .. } => {
                say(&format!("connection lost, it is made again by itself: {}", shown(&detail)));
            }
            Event::Reconnected { .. } => say("connected again"),
            Event::Reopened { gap: true } => {
                say("another server goes on with the match; the last lines may be lost")
            }
            Event::Throttled => say("so much was sent that some of it was dropped"),
            Event::Data { from, op, data, .. } => self.heard(from, op, &data),
            Event::Closed(ClosedReason::Session(CloseReason::Left)) => return Ok(true),
            Event::Closed(ClosedReason::Session(reason)) => {
                say(&format!("the match is over: {reason}"));
                return Ok(true);
            }
            Event::Closed(why) => bail!("{why}"),
            _ => {}
        }
        Ok(false)
    }

    fn welcome(&self, id: &str) -> anyhow::Result<()> {
        if self.room.info().host_id.is_some() {
            bail!("{id} is no match: somebody hosts it");
        }
        say(&format!("match {id}"));
        if self.room.player_count() < 2 {
            let server = self.server.iter().map(|server| format!(" --server {server}")).collect::<String>();
            say(&format!("waiting for somebody: parlor match {id}{server} --name bob"));
        }
        say(HELP);
        Ok(())
    }

    fn heard(&self, from: MemberId, op: i64, data: &[u8]) {
        let (name, text) = (self.name(from), shown(&String::from_utf8_lossy(data)));
        if op == self.op {
            say(&format!("{name}: {text}"));
        } else {
            say(&format!("{name} (op {op}): {text}"));
        }
    }

    fn obey(&mut self, command: Command) {
        let sent = match command {
            Command::Say(text) => self.room.send_data(self.op, Recipient::Others, text),
            Command::Op(op, text) => self.room.send_data(op, Recipient::Others, text),
            Command::To(rest) => self.whisper(&rest),
            Command::Who => {
                let list: Vec<String> = self.room.players().iter().map(called).collect();
                say(&format!("here: {}", list.join(", ")));
                Ok(())
            }
            Command::Nothing | Command::Leave => Ok(()),
            Command::Unknown => {
                say(&format!("not understood. {HELP}"));
                Ok(())
            }
        };
        if let Err(why) = sent {
            say(&format!("not sent: {why}"));
        }
    }

    /// Sends to the one whose name comes first; of several names that fit, the longest.
    fn whisper(&mut self, rest: &str) -> Result<(), RoomError> {
        let others = self.room.players().iter();
        let meant = others.filter(|player| !player.is_me && addressed(rest, &player.name).is_some());
        let Some(player) = meant.max_by_key(|player| player.name.len()) else {
            say("not sent: nobody here has this name; /who lists who is");
            return Ok(());
        };
        let text = addressed(rest, &player.name).unwrap_or_default().to_owned();
        self.room.send_data(self.op, player.id, text)
    }

    fn name(&self, player: MemberId) -> String {
        self.room.player(player).map_or_else(|| format!("player {player}"), |player| shown(&player.name))
    }
}

/// What follows a name with which a text begins.
fn addressed<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(name).filter(|_| !name.is_empty())?;
    rest.strip_prefix(' ').map(str::trim)
}

/// What a player calls itself, and who the server says it is.
fn called(player: &Player) -> String {
    match &player.user {
        Some(user) => format!("{} [{}]", shown(&player.name), shown(user)),
        None => shown(&player.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_data_unless_they_begin_with_a_slash() {
        for (line, command) in [
            ("hello all", Command::Say("hello all".into())),
            ("  ", Command::Nothing),
            ("/op -7 go on ", Command::Op(-7, "go on".into())),
            ("/op 7", Command::Op(7, String::new())),
            ("/op seven", Command::Unknown),
            ("/to bob hello", Command::To("bob hello".into())),
            ("/to", Command::Unknown),
            ("/who", Command::Who),
            ("/leave", Command::Leave),
            ("/dance", Command::Unknown),
        ] {
            assert_eq!(Command::read(line), command, "{line}");
        }
    }

    #[test]
    fn a_name_may_have_spaces() {
        assert_eq!(addressed("bob the second hello", "bob"), Some("the second hello"));
        assert_eq!(addressed("bob the second hello", "bob the second"), Some("hello"));
        assert_eq!(addressed("bobby hello", "bob"), None);
        assert_eq!(addressed(" hello", ""), None);
    }
}
