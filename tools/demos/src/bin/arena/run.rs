//! Opens or joins the room, plays, and reports.

use crate::args::ArenaArgs;
use crate::demo_host::DemoHost;
use crate::demo_loop::{DemoLoop, Member};
use crate::picture::{Field, NetGraph, Piece, draw};
use crate::player::{Driver, Player, Press};
use anyhow::Context;
use parlor::{Impairment, Room, RoomBuilder, kind};
use parlor_demos::arena::{self, Bot, Game, Settings};
use parlor_terminal::costs::{self, Rows};
use parlor_terminal::run_until::{End, stop_flag};
use parlor_terminal::screen::Screen;
use parlor_terminal::{connect_options, nearby};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often the net graph is measured.
const GRAPH_EVERY: Duration = Duration::from_millis(250);

/// Runs the command.
///
/// # Errors Invalid arguments, or the reason why a member could not join.
pub(crate) fn run(args: &ArenaArgs) -> anyhow::Result<()> {
    let stop = stop_flag()?;
    let mut demo = gather(args)?;
    let end = End::after(args.seconds, &stop);
    let has_enough = |player: &Player| args.steps.is_some_and(|steps| player.steps() >= steps);
    let played = if args.headless {
        demo.play_unseen(&end, |demo| demo.members.iter().all(has_enough))
    } else {
        show(&mut demo, &end)
    };
    demo.finish(played, args.json)
}

/// Opens the room, if this process hosts, and seats its players.
fn gather(args: &ArenaArgs) -> anyhow::Result<DemoLoop> {
    let mut demo = DemoLoop::new(args)?;
    let invite = match args.join.room() {
        Some(invite) => nearby::invite(arena::APP, invite, &args.connect)?,
        None => {
            let builder = Room::host(arena::APP).max_players(9).tick_hz(arena::HZ).name("host");
            let room = demo.place(furnished(builder)?, &args.connect)?.open();
            let settings = Settings { drones: args.drones, ..Settings::default() };
            let host = demo.host.insert(DemoHost::new(room, Game::new(settings)));
            let code = host.open()?;
            args.record.iter().try_for_each(|path| host.record(path))?;
            code
        }
    };
    let hands = u64::from(!args.headless);
    for number in 0..hands + u64::from(args.bots) {
        let is_hands = number < hands;
        let name = if is_hands { connect_options::name(None) } else { format!("bot {number}") };
        let builder = Room::join(arena::APP, &invite).name(&name);
        // Everybody has bad luck of their own.
        let network = args.connect.impair.unwrap_or(Impairment::none()).apart(number);
        let room = demo.place(furnished(builder)?, &args.connect)?.impairment(network).open();
        let driver = match is_hands {
            true => Driver::hands(),
            false => Driver::Bot(Bot::new(args.seed.wrapping_add(number))),
        };
        let mut game = Game::new(Settings::default());
        game.is_foreseeing = !args.no_prediction;
        demo.members.push(Player::new(room, game, driver, !args.no_interpolation));
    }
    Ok(demo)
}

/// What all rooms of the demo have in common.
fn furnished<K: kind::Hosted>(builder: RoomBuilder<K>) -> anyhow::Result<RoomBuilder<K>> {
    Ok(builder.schema(arena::schema()?).predict::<arena::Tank>())
}

/// On a screen, through the eyes of the first player.
fn show(demo: &mut DemoLoop, end: &End) -> anyhow::Result<()> {
    let mut screen = Screen::open().context("there is no terminal to draw on: use --headless")?;
    let (mut graph, mut measured) = (NetGraph::default(), Instant::now());
    demo.play(end, |demo, rest| {
        let code = demo.code();
        let Some(player) = demo.members.first_mut() else { return Ok(ControlFlow::Break(())) };
        if measured.elapsed() >= GRAPH_EVERY {
            measured = Instant::now();
            measure(&mut graph, player.room());
        }
        let field = field(player, code);
        screen.draw(|frame, depth| draw(frame, &field, &graph, depth))?;
        for key in screen.keys(rest)? {
            if player.press(key)? == Some(Press::Quit) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// What is on the screen of a player.
fn field(player: &mut Player, code: Option<String>) -> Field {
    let me = player.room().local_id();
    let pieces = player.look().into_iter().map(|seen| Piece {
        at: seen.tank.position,
        aim: seen.tank.aim,
        health: seen.life.health,
        player: seen.owner.map(|owner| owner.0),
        is_me: seen.owner.is_some() && seen.owner == me,
    });
    let pieces = pieces.collect();
    let shots = player.flashes().map(|verdict| (verdict.shot, verdict.met.is_some())).collect();
    Field { pieces, shots, rows: rows(player), code }
}

/// Names and values beside the field.
fn rows(player: &Player) -> Rows {
    let counted = player.room().diagnostics();
    let (is_foreseeing, is_smooth) = player.switches();
    let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let network = player.room().impairment().filter(|network| *network != Impairment::none());
    let mut rows = vec![
        ("P prediction", on(is_foreseeing)),
        ("I interpolation", on(is_smooth)),
        ("N network", network.map_or_else(|| "as it is".to_owned(), |network| network.to_string())),
        ("", String::new()),
        costs::round_trip(player.room()),
    ];
    rows.extend(costs::link(player.room()));
    rows.push(("corrections", counted.prediction.corrections.to_string()));
    rows.push(("steps again", counted.steps_replayed.to_string()));
    rows
}

/// Adds what is measured now to the graph.
fn measure(graph: &mut NetGraph, room: &Room) {
    let net = room.diagnostics();
    let rtt_ms = net.rtt.map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3);
    graph.push([rtt_ms, net.jitter_ms, net.buffer_delay_ms, net.lead_ms], net.steps_replayed);
}
