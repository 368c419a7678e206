//! A demo in one process: the host, if it is hosted here, the members of this process, and their server.

use crate::args::ArenaArgs;
use crate::demo_host::DemoHost;
use crate::player::Player;
use anyhow::bail;
use parlor::{ClosedReason, Room, RoomBuilder};
use parlor_terminal::connect_options::{self, ConnectArgs};
use parlor_terminal::own_server::OwnServer;
use parlor_terminal::print::{print_json, say};
use parlor_terminal::run_until::End;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::Duration;

/// How often it is looked whether a room is open.
const LOOK: Duration = Duration::from_millis(1);
/// Longest time between two pictures, or without a screen between two looks at what came.
const FRAME: Duration = Duration::from_millis(16);

/// A participant of a demo's room.
pub(crate) trait Member: Sized {
    /// The room.
    fn room(&self) -> &Room;

    /// Why it is over, if it is.
    fn closed(&self) -> Option<&ClosedReason>;

    /// One round of a loop: takes what came and runs the steps that are due.
    ///
    /// # Errors
    /// If the room does not take what is written or sent.
    fn turn(&mut self) -> anyhow::Result<()>;

    /// What it did and saw, for a report.
    fn report(&mut self) -> Value;

    /// Leaves the room, which ends it if this is the host.
    fn leave(self);

    /// Waits until the room is open, and gives its code.
    ///
    /// # Errors
    /// Why it does not open.
    fn open(&mut self) -> anyhow::Result<String> {
        loop {
            self.turn()?;
            match (self.closed(), self.room().code().filter(|_| self.room().is_connected())) {
                (Some(reason), _) => bail!("there is no room: {reason}"),
                (None, Some(code)) => return Ok(code.to_string()),
                (None, None) => std::thread::sleep(LOOK),
            }
        }
    }
}

/// All participants of a demo in this process.
pub(crate) struct DemoLoop {
    /// Without one, another process hosts.
    pub(crate) host: Option<DemoHost>,
    /// The first one is shown on the screen.
    pub(crate) members: Vec<Player>,
    /// Goes after its rooms.
    server: Option<OwnServer>,
}

impl DemoLoop {
    /// Returns an empty loop. Starts a server if the room is hosted here and no server is configured.
    ///
    /// # Errors
    /// If that server does not start.
    pub(crate) fn new(args: &ArenaArgs) -> anyhow::Result<Self> {
        let is_hosted = args.join.room().is_none();
        let server =
            if is_hosted { OwnServer::unless_configured(args.port, &args.connect, None)? } else { None };
        Ok(DemoLoop { host: None, members: Vec::new(), server })
    }

    /// Says where a room is to be opened or found: on the demo's own server, or as the command line has it.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub(crate) fn place<K>(
        &self,
        builder: RoomBuilder<K>,
        connect: &ConnectArgs,
    ) -> anyhow::Result<RoomBuilder<K>> {
        let builder = self.server.iter().fold(builder, |builder, own| own.place(builder));
        connect_options::apply(builder, connect)
    }

    /// The room's code, once known.
    pub(crate) fn code(&self) -> Option<String> {
        self.rooms().filter_map(Room::code).map(|code| code.to_string()).next()
    }

    /// Plays until the `end`, or until `pass` has had enough. It lets the time pass that is left until the next step of anybody.
    ///
    /// # Errors
    /// If somebody cannot go on, or why the room is over for anybody.
    pub(crate) fn play(
        &mut self,
        end: &End,
        mut pass: impl FnMut(&mut Self, Duration) -> anyhow::Result<ControlFlow<()>>,
    ) -> anyhow::Result<()> {
        while !end.is_here() {
            self.turn()?;
            let rest = self.rooms().map(Room::until_next_tick).min().unwrap_or(FRAME);
            if pass(self, rest.clamp(Duration::from_millis(1), FRAME))?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Plays without a screen until the `end`, or until it `is_enough`.
    ///
    /// # Errors
    /// If somebody cannot go on, or why the room is over for anybody.
    pub(crate) fn play_unseen(&mut self, end: &End, is_enough: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        self.play(end, |demo, rest| {
            if is_enough(demo) {
                return Ok(ControlFlow::Break(()));
            }
            std::thread::sleep(rest);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Leaves the room and says what came of it: one JSON object, or a line for each player.
    ///
    /// # Errors
    /// How it was `played`, if that went wrong.
    pub(crate) fn finish(mut self, played: anyhow::Result<()>, is_json: bool) -> anyhow::Result<()> {
        let code = self.code();
        let host = self.host.as_mut().map(Member::report);
        let reports: Vec<Value> = self.members.iter_mut().map(Member::report).collect();
        self.members.into_iter().for_each(Member::leave);
        self.host.into_iter().for_each(Member::leave);
        played?;
        if is_json {
            return print_json(
                &json!({ "command": "arena", "code": code, "host": host, "players": reports }),
            );
        }
        reports.iter().for_each(|report| say(&report.to_string()));
        Ok(())
    }

    /// One round for everybody.
    fn turn(&mut self) -> anyhow::Result<()> {
        self.host.iter_mut().try_for_each(Member::turn)?;
        self.members.iter_mut().filter(|member| member.closed().is_none()).try_for_each(Member::turn)?;
        let host = self.host.iter().filter_map(Member::closed);
        match host.chain(self.members.iter().filter_map(Member::closed)).next() {
            Some(why) => bail!("the room is over: {why}"),
            None => Ok(()),
        }
    }

    fn rooms(&self) -> impl Iterator<Item = &Room> {
        self.host.iter().map(Member::room).chain(self.members.iter().map(Member::room))
    }
}
