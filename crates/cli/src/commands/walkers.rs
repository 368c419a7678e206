//! `parlor walkers`: a thousand walkers, and what a member sees of them.

use crate::args::WalkersArgs;
use crate::costs;
use crate::headless::{self, End};
use crate::lan;
use crate::party::{Member, Party};
use crate::view::{Command, Controls, Screen, draw_walkers};
use crate::walkers::{self, Crowd, Steering, Viewer};
use anyhow::Context;
use parlor::Room;
use std::ops::ControlFlow;

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or kept somebody out of the room.
pub(crate) fn run(args: &WalkersArgs) -> anyhow::Result<()> {
    let stop = headless::stop_flag()?;
    let mut party = gather(args)?;
    let end = End::after(args.demo.seconds, &stop);
    let has_enough =
        |viewer: &Viewer| args.updates.is_some_and(|updates| viewer.figures().updates >= updates);
    let played = if args.demo.headless {
        party.play_unseen(&end, |party| party.members.iter().all(has_enough))
    } else {
        show(&mut party, &end)
    };
    party.finish(played, "walkers", "viewers", args.demo.json)
}

/// Opens the room, if this process hosts, and seats its viewers.
fn gather(args: &WalkersArgs) -> anyhow::Result<Party<Crowd, Viewer>> {
    let mut party = Party::new(args.join.is_none(), &args.demo)?;
    let invite = match &args.join {
        Some(invite) => lan::invite(walkers::APP, invite, &args.demo.reach)?,
        None => {
            let builder = Room::host(walkers::APP).max_players(16).tick_hz(args.hz).name("host");
            let room = party.place(builder.schema(walkers::schema()?), &args.demo.reach)?.open();
            let crowd = party.host.insert(Crowd::new(room, args.seed, args.walkers.into(), args.hz));
            let code = crowd.open()?;
            args.record.iter().try_for_each(|path| crowd.record(path))?;
            code
        }
    };
    for number in 1..=args.viewers {
        let builder = Room::guest(walkers::APP, &invite).name(&format!("viewer {number}"));
        let room = party.place(builder.schema(walkers::schema()?), &args.demo.reach)?.open();
        let steering = match (number, args.demo.headless) {
            (1, false) => Steering::Hands(Controls::default()),
            _ => Steering::Squares,
        };
        party.members.push(Viewer::new(room, steering));
    }
    Ok(party)
}

/// On a screen, through the eyes of the first viewer.
fn show(party: &mut Party<Crowd, Viewer>, end: &End) -> anyhow::Result<()> {
    let mut screen = Screen::open().context("there is no terminal to draw on: use --headless")?;
    party.play(end, |party, rest| {
        let sent = party.host.as_ref().map(|crowd| costs::rows(crowd.room()));
        let Some(viewer) = party.members.first_mut() else { return Ok(ControlFlow::Break(())) };
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
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}
