//! `parlor play`: Magpies on a terminal.

use super::{print_json, say};
use crate::args::PlayArgs;
use crate::costs;
use crate::headless::{self, End};
use crate::lan;
use crate::own_server::OwnServer;
use crate::reach;
use crate::report::Report;
use crate::seat::{self, Pilot, Seat, shown};
use crate::view::{Command, Controls, HudModel, MemberLine, Screen, Stage, draw};
use anyhow::Context;
use parlor::{LinkKind, Room, Transport};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or kept the player out of the room.
pub(crate) fn run(args: &PlayArgs) -> anyhow::Result<()> {
    let name = reach::name(args.name.as_deref());
    let own = match &args.join {
        Some(_) => None,
        None => OwnServer::unless_configured(args.port, &args.reach)?,
    };
    let builder = match &args.join {
        // Each input counts in the step that it was made in: no dash is lost because two came between two steps of the host.
        Some(invite) => Room::guest(seat::APP, &lan::invite(seat::APP, invite, &args.reach)?).lead(),
        None => {
            let builder = Room::host(seat::APP).max_players(args.max_players).host_migration();
            let builder = args.code.iter().fold(builder, |builder, code| builder.code(code));
            own.iter().fold(builder, |builder, own| own.place(builder))
        }
    };
    let builder = args.token.iter().fold(builder, |builder, token| builder.token(token));
    let builder = reach::apply(builder.name(&name), &args.reach, &args.headless)?;
    let stop = headless::stop_flag()?;
    if args.headless.headless {
        let pilot = headless::pilot(&args.headless, 0, 0.6)?;
        let mut seats = vec![Seat::new(builder.open(), pilot)];
        for seat in &mut seats {
            seat.record(args.record.clone());
            seat.speak_as(&name, &args.headless);
        }
        let names = [name];
        headless::play(&mut seats, &names, &args.headless, &stop)?;
        let reports = headless::finish(seats, &names, &args.headless)?;
        return report(&reports, args.headless.json);
    }
    let pilot = match &args.headless.script {
        Some(_) => headless::pilot(&args.headless, 0, 0.6)?,
        None => Pilot::Hands(Controls::default()),
    };
    let mut seat = Seat::new(builder.open(), pilot);
    seat.record(args.record.clone());
    let end = End::after(args.headless.seconds, &stop);
    let shown = show(&mut seat, own.as_ref(), &end);
    let closed = seat.closed().map(ToString::to_string);
    let reports = headless::finish(vec![seat], &[name], &args.headless)?;
    shown?;
    if !args.headless.json {
        closed.iter().for_each(|reason| say(reason));
    }
    report(&reports, args.headless.json)
}

fn report(reports: &[Report], json: bool) -> anyhow::Result<()> {
    let (Some(report), true) = (reports.first(), json) else { return Ok(()) };
    let mut object = serde_json::to_value(report)?;
    if let Value::Object(fields) = &mut object {
        fields.insert("command".into(), json!("play"));
    }
    print_json(&object)
}

/// Longest time between two pictures.
const FRAME: Duration = Duration::from_millis(16);
/// How long a notice stands.
const NOTICE: Duration = Duration::from_secs(4);

/// Shows the game until the player or the room has had enough.
fn show(seat: &mut Seat, own: Option<&OwnServer>, end: &End) -> anyhow::Result<()> {
    let mut screen = Screen::open().context("there is no terminal to play on: use --headless")?;
    let mut hud = HudModel::default();
    let mut meter = Meter::new();
    loop {
        if seat.closed().is_none() {
            seat.turn()?;
        }
        describe(&mut hud, seat, own);
        meter.measure(&mut hud, seat.room());
        let scene = seat.scene();
        screen.draw(|frame, depth| draw(frame, &hud, &scene, depth))?;
        for key in screen.keys(seat.rest().min(FRAME))? {
            match seat.press(key) {
                Some(Command::Quit) => return Ok(()),
                Some(Command::Help) => hud.help = !hud.help,
                Some(Command::Net) => hud.costs = if hud.costs.is_some() { None } else { Some(Vec::new()) },
                Some(Command::Copy) if copy(seat.room(), own) => {
                    seat.note("the invite link is copied".into())
                }
                Some(Command::Copy) => seat.note("there is no clipboard here: ? shows the link".into()),
                None => {}
            }
        }
        // Who never got in is told why at the prompt, where it can be read and copied.
        let never_in = seat.closed().is_some() && seat.room().local_id().is_none();
        if end.is_here() || never_in {
            return Ok(());
        }
    }
}

fn copy(room: &Room, own: Option<&OwnServer>) -> bool {
    let link = own.and_then(|own| own.invite(room));
    match link {
        Some(link) => arboard::Clipboard::new().and_then(|mut clipboard| clipboard.set_text(link)).is_ok(),
        None => room.copy_invite(),
    }
}

fn describe(hud: &mut HudModel, seat: &Seat, own: Option<&OwnServer>) {
    let room = seat.room();
    let info = room.info();
    hud.stage = match (seat.closed(), room.is_connected()) {
        (Some(reason), _) => Stage::Closed(reason.to_string()),
        (None, true) => seat.reconnecting().map_or(Stage::Open, Stage::Reconnecting),
        (None, false) => {
            Stage::Connecting(info.connectivity.server.unwrap_or_else(|| "looking for a server".into()))
        }
    };
    hud.code = info.code.filter(|_| room.is_connected()).map(|code| code.to_string());
    hud.join_command = hud.code.as_ref().map(|code| format!("parlor play --join {code}")).unwrap_or_default();
    hud.invite = own.and_then(|own| own.invite(room)).or_else(|| room.invite_link());
    hud.me = info.local_id.map(|id| id.0);
    hud.host = info.host_id.map(|id| id.0);
    hud.members = room
        .players()
        .into_iter()
        .map(|player| {
            let transport = match player.transport {
                Transport::Local if player.is_host => "host",
                Transport::Local => "you",
                Transport::Direct => "direct",
                Transport::Relay(LinkKind::WebSocket) => "ws",
                Transport::Relay(LinkKind::Memory) => "with the server",
                Transport::Relay(LinkKind::Quic) => "quic",
            };
            let line = MemberLine {
                name: shown(&player.name, player.id),
                ping_ms: if player.is_host { Some(0) } else { player.rtt_ms },
                transport: transport.into(),
            };
            (player.id.0, line)
        })
        .collect();
    if let Some(costs) = &mut hud.costs {
        *costs = costs::rows(room);
    }
    hud.impairment =
        room.impairment().filter(|impairment| !impairment.is_none()).map(|impairment| impairment.to_string());
    hud.notice =
        seat.seen().notice.as_ref().filter(|(_, at)| at.elapsed() < NOTICE).map(|(text, _)| text.clone());
}

/// Feeds the net graph once a second.
struct Meter {
    at: Instant,
    updates: u64,
}

impl Meter {
    fn new() -> Self {
        Meter { at: Instant::now(), updates: 0 }
    }

    fn measure(&mut self, hud: &mut HudModel, room: &Room) {
        if self.at.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.at = Instant::now();
        let diagnostics = room.diagnostics();
        let updates =
            if room.is_host() { diagnostics.updates_published } else { diagnostics.updates_decoded };
        hud.figures.push_updates(u32::try_from(updates - self.updates).unwrap_or(u32::MAX));
        self.updates = updates;
        if let Some(rtt) = diagnostics.rtt {
            hud.figures.push_rtt_ms(u32::try_from(rtt.as_millis()).unwrap_or(u32::MAX));
        }
        hud.figures.rows = costs::link(room);
    }
}
