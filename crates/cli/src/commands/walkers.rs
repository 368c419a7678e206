//! `parlor walkers`: a thousand walkers, and what a member sees of them.

use super::{print_json, say};
use crate::args::WalkersArgs;
use crate::costs;
use crate::own_server::{self, OwnServer};
use crate::view::{Command, Controls, Screen, draw_walkers};
use crate::walkers::{self, Crowd, Steering, Viewer};
use crate::{headless, lan, reach};
use anyhow::{Context, bail};
use parlor::{Room, RoomBuilder};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest time between two pictures, or without a screen between two looks at what came.
const FRAME: Duration = Duration::from_millis(16);

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or kept somebody out of the room.
pub(crate) fn run(args: &WalkersArgs) -> anyhow::Result<()> {
    let stop = headless::stop_flag()?;
    let mut party = Party::gather(args)?;
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let is_over = || end.is_some_and(|end| Instant::now() >= end) || stop.load(Ordering::Relaxed);
    let shown = if args.headless { party.run(&is_over, args.updates) } else { party.show(&is_over) };
    let report = party.report();
    party.leave();
    shown?;
    if args.json {
        return print_json(&report);
    }
    for viewer in report["viewers"].as_array().into_iter().flatten() {
        say(&viewer.to_string());
    }
    Ok(())
}

/// Everybody of the demo who is in this process.
struct Party {
    /// Without one, somebody else hosts.
    crowd: Option<Crowd>,
    viewers: Vec<Viewer>,
    /// After its rooms.
    _server: Option<OwnServer>,
}

impl Party {
    /// Opens the room, if this process hosts, and seats its viewers.
    fn gather(args: &WalkersArgs) -> anyhow::Result<Party> {
        let mut party = Party { crowd: None, viewers: Vec::new(), _server: None };
        let mut address = None;
        let invite = match &args.join {
            Some(invite) => lan::invite(walkers::APP, invite, &args.reach)?,
            None => {
                let server = if own_server::is_needed(&args.reach) {
                    Some(OwnServer::start(args.port, &args.reach)?)
                } else {
                    None
                };
                address = server.as_ref().map(|server| server.address.clone());
                party._server = server;
                let builder = Room::host(walkers::APP).max_players(16).tick_hz(args.hz).name("host");
                let room = place(builder, args, address.as_deref())?.open();
                let crowd = Crowd::new(room, args.seed, args.walkers.into(), args.hz);
                let crowd = party.crowd.insert(crowd);
                let code = crowd.open()?;
                args.record.iter().try_for_each(|path| crowd.record(path))?;
                code
            }
        };
        for number in 1..=args.viewers {
            let builder = Room::guest(walkers::APP, &invite).name(&format!("viewer {number}"));
            let room = place(builder, args, address.as_deref())?.open();
            let steering = match (number, args.headless) {
                (1, false) => Steering::Hands(Controls::default()),
                _ => Steering::Squares,
            };
            party.viewers.push(Viewer::new(room, steering));
        }
        Ok(party)
    }

    /// One round for everybody.
    fn turn(&mut self) -> anyhow::Result<()> {
        if let Some(crowd) = &mut self.crowd {
            crowd.turn()?;
        }
        self.viewers.iter_mut().filter(|viewer| viewer.closed().is_none()).try_for_each(Viewer::turn)
    }

    /// Until the next step of anybody is due.
    fn rest(&self) -> Duration {
        let rooms = self.crowd.iter().map(Crowd::room).chain(self.viewers.iter().map(Viewer::room));
        rooms.map(Room::until_next_tick).min().unwrap_or(FRAME).clamp(Duration::from_millis(1), FRAME)
    }

    /// Why it is over for somebody, if it is.
    fn closed(&self) -> Option<String> {
        let crowd = self.crowd.iter().filter_map(Crowd::closed);
        crowd.chain(self.viewers.iter().filter_map(Viewer::closed)).map(ToString::to_string).next()
    }

    /// Without a screen, until it is over or every viewer has seen so many changes.
    fn run(&mut self, is_over: &dyn Fn() -> bool, updates: Option<u64>) -> anyhow::Result<()> {
        let has_enough = |viewer: &Viewer| updates.is_some_and(|updates| viewer.figures().updates >= updates);
        while !is_over() && !self.viewers.iter().all(has_enough) {
            self.turn()?;
            if let Some(why) = self.closed() {
                bail!("the room is over: {why}");
            }
            std::thread::sleep(self.rest());
        }
        Ok(())
    }

    /// On a screen, through the eyes of the first viewer.
    fn show(&mut self, is_over: &dyn Fn() -> bool) -> anyhow::Result<()> {
        let mut screen = Screen::open().context("there is no terminal to draw on: use --headless")?;
        while !is_over() {
            self.turn()?;
            if let Some(why) = self.closed() {
                bail!("the room is over: {why}");
            }
            let (sent, rest) = (self.crowd.as_ref().map(|crowd| costs::rows(crowd.room())), self.rest());
            let Some(viewer) = self.viewers.first_mut() else { return Ok(()) };
            let mut ground = viewer.ground();
            if let Some(sent) = sent {
                ground.figures.extend([("", String::new()), ("the host sends", String::new())]);
                ground.figures.extend(sent);
            }
            ground.notice = match viewer.room().code() {
                Some(code) => format!("parlor walkers --join {code} · arrows walk, SPACE runs, Q leaves"),
                None => "connecting".into(),
            };
            screen.draw(|frame, depth| draw_walkers(frame, &ground, depth))?;
            for key in screen.keys(rest)? {
                if viewer.press(key) == Some(Command::Quit) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn report(&self) -> Value {
        let code = self.crowd.iter().find_map(|crowd| crowd.room().code()).map(|code| code.to_string());
        json!({
            "command": "walkers",
            "code": code,
            "host": self.crowd.as_ref().map(Crowd::report),
            "viewers": self.viewers.iter().map(Viewer::figures).collect::<Vec<_>>(),
        })
    }

    fn leave(self) {
        self.viewers.into_iter().for_each(Viewer::leave);
        self.crowd.into_iter().for_each(Crowd::leave);
    }
}

/// Applies what all rooms of the demo have in common.
fn place(builder: RoomBuilder, args: &WalkersArgs, own: Option<&str>) -> anyhow::Result<RoomBuilder> {
    let builder = builder.schema(walkers::schema()?);
    let builder = own.into_iter().fold(builder, |builder, address| builder.server(address));
    reach::connect(builder, &args.reach)
}
