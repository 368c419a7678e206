//! `parlor play`: Magpies on a terminal.

use crate::args::PlayArgs;
use crate::find::{self, Lead, OpenRoom};
use crate::headless;
use crate::player::{self, Pilot, Player, shown};
use crate::report::Report;
use crate::view::{Command, Controls, HudModel, MemberLine, Stage, draw};
use crate::web;
use anyhow::{Context, ensure};
use arboard::Clipboard;
use parlor::online::Account;
use parlor::{CloseReason, ClosedReason, LinkKind, Room, RoomBuilder, Transport, kind};
use parlor_terminal::costs;
use parlor_terminal::own_server::OwnServer;
use parlor_terminal::print::{print_json, say};
use parlor_terminal::run_until::{End, stop_flag};
use parlor_terminal::screen::Screen;
use parlor_terminal::{connect_options, nearby};
use parlor_transport::discovery::Invite;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or kept the player out of the room.
pub(crate) fn run(args: &PlayArgs) -> anyhow::Result<()> {
    ensure!(!args.watch || args.join.room().is_some(), "--watch needs the code or link of a room");
    let name = connect_options::name(args.name.as_deref());
    let own = match (args.join.room(), &args.find) {
        (Some(_), _) | (_, Some(_)) => None,
        (None, None) => OwnServer::unless_configured(args.port, &args.connect, Some(web::pages(None)))?,
    };
    let stop = stop_flag()?;
    let pilot = match &args.headless.script {
        None if !args.headless.headless => Pilot::Hands(Controls::default()),
        _ => headless::pilot(&args.headless, 0, 0.6)?,
    };
    let (room, opened) = match (&args.find, args.join.room()) {
        (Some(queue), _) => found(args, &name, queue, &stop)?,
        (None, Some(invite)) => (join(args, &name, invite, None)?, None),
        (None, None) => (host(args, &name, own.as_ref(), None)?, None),
    };
    if args.headless.headless {
        let mut first = Player::new(room, pilot);
        first.opens_for_others(opened);
        let mut players = vec![first];
        for player in &mut players {
            player.record(args.record.clone());
            player.speak_as(&name, &args.headless);
            own.iter().for_each(|_| player.take_room_along());
        }
        let names = [name];
        let own_port = own.as_ref().and_then(OwnServer::port);
        headless::play(&mut players, &names, &args.headless, own_port, &stop)?;
        return headless::finish(players, &names, &args.headless, |reports| {
            report(reports, args.headless.json)
        });
    }
    let mut player = Player::new(room, pilot);
    player.opens_for_others(opened);
    player.record(args.record.clone());
    own.iter().for_each(|_| player.take_room_along());
    let end = End::after(args.headless.seconds, &stop);
    let shown = show(&mut player, own.as_ref(), &end);
    let closed = player.closed().map(ToString::to_string);
    headless::finish(vec![player], &[name], &args.headless, |reports| {
        shown?;
        if !args.headless.json {
            closed.iter().for_each(|reason| say(reason));
        }
        report(reports, args.headless.json)
    })
}

/// Joins a room by its code or link.
fn join(args: &PlayArgs, name: &str, invite: &str, account: Option<&Account>) -> anyhow::Result<Room> {
    let invite = nearby::invite(player::APP, invite, &args.connect)?;
    // Each input counts in the step that it was made in: no dash is lost because two came between two steps of the
    // host.
    let builder = Room::join(player::APP, &invite);
    let builder = if args.watch { builder.spectate() } else { builder.lead() };
    open(account.into_iter().fold(builder, |builder, account| builder.account(account)), args, name)
}

/// Hosts a room.
fn host(
    args: &PlayArgs,
    name: &str,
    own: Option<&OwnServer>,
    account: Option<&Account>,
) -> anyhow::Result<Room> {
    let builder = Room::host(player::APP).max_players(args.max_players).host_migration();
    let builder = args.code.iter().fold(builder, |builder, code| builder.code(code));
    let builder = args.spectator_delay.into_iter().fold(builder, RoomBuilder::spectator_delay);
    let builder = account.into_iter().fold(builder, |builder, account| builder.account(account));
    open(own.iter().fold(builder, |builder, own| own.place(builder)), args, name)
}

/// The room of a match that the server has found. Whoever opens it says so to the others.
fn found(
    args: &PlayArgs,
    name: &str,
    queue: &str,
    stop: &AtomicBool,
) -> anyhow::Result<(Room, Option<OpenRoom>)> {
    let account = find::account(args, name)?;
    Ok(match find::find(&account, queue, args.max_players, stop)? {
        Lead::Open(opened) => (host(args, name, None, Some(&account))?, Some(opened)),
        Lead::Join(code) => (join(args, name, &code, Some(&account))?, None),
    })
}

/// Opens what a builder leads to, as the player of the command line.
fn open<K: kind::Hosted>(builder: RoomBuilder<K>, args: &PlayArgs, name: &str) -> anyhow::Result<Room> {
    let builder = args.token.iter().fold(builder, |builder, token| builder.token(token));
    Ok(headless::apply(builder.name(name), &args.connect, &args.headless)?.open())
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
fn show(player: &mut Player, own: Option<&OwnServer>, end: &End) -> anyhow::Result<()> {
    let mut screen = Screen::open().context("there is no terminal to play on: use --headless")?;
    let mut hud = HudModel::default();
    let mut meter = Meter::new();
    // Some desktops forget a text with the clipboard that it was copied by.
    let mut clipboard = None;
    loop {
        if player.closed().is_none() {
            player.turn()?;
        }
        describe(&mut hud, player, own);
        meter.measure(&mut hud, player.room());
        let mut scene = player.scene();
        if let Some(host) = gone_host(player) {
            scene.players.remove(&host);
        }
        screen.draw(|frame, depth| draw(frame, &hud, &scene, depth))?;
        for key in screen.keys(player.rest().min(FRAME))? {
            match player.press(key) {
                Some(Command::Quit) => return Ok(()),
                Some(Command::Help) => hud.help = !hud.help,
                Some(Command::Net) => hud.costs = if hud.costs.is_some() { None } else { Some(Vec::new()) },
                Some(Command::Copy) => {
                    player.note(match invite(player.room(), own).map(|link| copy(&mut clipboard, link)) {
                        Some(true) => "the invite link is copied".into(),
                        Some(false) => "there is no clipboard here: ? shows the link".into(),
                        None => "the host's invite link is the one that works elsewhere".into(),
                    })
                }
                None => {}
            }
        }
        // Who never got in is told why at the prompt, where it can be read and copied.
        let never_in = player.closed().is_some() && player.room().local_id().is_none();
        if end.is_here() || never_in {
            return Ok(());
        }
    }
}

/// The host of a room that is over because its host is not there any more.
fn gone_host(player: &Player) -> Option<u32> {
    let is_gone =
        matches!(player.closed(), Some(ClosedReason::Session(CloseReason::HostLeft | CloseReason::HostGone)));
    player.room().info().host_id.filter(|_| is_gone).map(|host| host.0)
}

/// The link by which a player on another machine gets in. None where this process knows of none: the server of a guest on the
/// host's own machine is known to that guest by an address that leads nowhere else.
fn invite(room: &Room, own: Option<&OwnServer>) -> Option<String> {
    own.and_then(|own| own.invite(room)).or_else(|| leads_elsewhere(room.invite_link()?))
}

fn leads_elsewhere(link: String) -> Option<String> {
    let invite: Invite = link.parse().ok()?;
    invite.server.map(|_| link)
}

fn copy(clipboard: &mut Option<Clipboard>, link: String) -> bool {
    if clipboard.is_none() {
        *clipboard = Clipboard::new().ok();
    }
    clipboard.as_mut().is_some_and(|clipboard| clipboard.set_text(link).is_ok())
}

fn describe(hud: &mut HudModel, player: &Player, own: Option<&OwnServer>) {
    let room = player.room();
    let info = room.info();
    hud.stage = match (player.closed(), room.is_connected()) {
        (Some(reason), _) => Stage::Closed(reason.to_string()),
        (None, true) => player.reconnecting().map_or(Stage::Open, Stage::Reconnecting),
        (None, false) => {
            Stage::Connecting(info.connectivity.relay.unwrap_or_else(|| "looking for a server".into()))
        }
    };
    hud.code = info.code.filter(|_| room.is_connected()).map(|code| code.to_string());
    hud.join_command = hud.code.as_ref().map(|code| format!("parlor play --join {code}")).unwrap_or_default();
    hud.invite = invite(room, own);
    let code = info.code.filter(|_| room.is_connected());
    let own_room = own.and_then(OwnServer::port).zip(code);
    hud.page = own_room.map(|(port, code)| web::room_on_this_machine(port, code));
    hud.me = info.local_id.map(|id| id.0);
    hud.watches = room.is_spectator();
    let gone = gone_host(player);
    hud.host = info.host_id.map(|id| id.0).filter(|host| gone != Some(*host));
    hud.members = room
        .players()
        .iter()
        .filter(|player| gone != Some(player.id.0))
        .map(|player| {
            let transport = match player.transport {
                Transport::Local if player.is_host => "host",
                Transport::Local => "you",
                Transport::Direct => "direct",
                Transport::Relay(LinkKind::WebSocket) => "ws",
                Transport::Relay(LinkKind::Memory) => "with the server",
                Transport::Relay(LinkKind::Quic) => "quic",
                Transport::Relay(LinkKind::WebTransport) => "web",
                Transport::Relay(LinkKind::Unknown(_)) => "relay",
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
        player.seen().notice.as_ref().filter(|(_, at)| at.elapsed() < NOTICE).map(|(text, _)| text.clone());
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
        // Another server's stream counts from zero again.
        let new = updates.saturating_sub(self.updates);
        hud.figures.push_updates(u32::try_from(new).unwrap_or(u32::MAX));
        self.updates = updates;
        if let Some(rtt) = diagnostics.rtt {
            hud.figures.push_rtt_ms(u32::try_from(rtt.as_millis()).unwrap_or(u32::MAX));
        }
        hud.figures.rows = costs::link(room);
    }
}

#[cfg(test)]
mod tests {
    use super::leads_elsewhere;

    #[test]
    fn an_invite_without_a_server_is_not_shown() {
        assert_eq!(leads_elsewhere("parlor://join/K7QM?secret=x".into()), None);
        let link = "parlor://join/K7QM?server=192.168.1.7:40123".to_owned();
        assert_eq!(leads_elsewhere(link.clone()), Some(link));
    }
}
