//! `parlor arena`: drive and shoot, and see what makes it feel as it does.

use crate::arena::{self, Bot, Driver, Game, Keeper, Press, Seat, Settings};
use crate::args::ArenaArgs;
use crate::costs::{self, Rows};
use crate::headless::{self, End};
use crate::lan;
use crate::party::{Member, Party};
use crate::reach;
use crate::view::{Field, NetGraph, Piece, Screen, draw_arena};
use anyhow::Context;
use parlor::{Impairment, Room, RoomBuilder};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often the net graph is measured.
const GRAPH_EVERY: Duration = Duration::from_millis(250);

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or kept somebody out of the room.
pub(crate) fn run(args: &ArenaArgs) -> anyhow::Result<()> {
    let stop = headless::stop_flag()?;
    let mut party = gather(args)?;
    let end = End::after(args.demo.seconds, &stop);
    let played = if args.demo.headless { party.play_unseen(&end, |_| false) } else { show(&mut party, &end) };
    party.finish(played, "arena", "seats", args.demo.json)
}

/// Opens the room, if this process hosts, and seats its players.
fn gather(args: &ArenaArgs) -> anyhow::Result<Party<Keeper, Seat>> {
    let mut party = Party::new(args.join.is_none(), &args.demo)?;
    let invite = match &args.join {
        Some(invite) => lan::invite(arena::APP, invite, &args.demo.reach)?,
        None => {
            let builder = Room::host(arena::APP).max_players(9).tick_hz(arena::HZ).name("host");
            let room = party.place(furnished(builder)?, &args.demo.reach)?.open();
            let settings = Settings { drones: args.drones, ..Settings::default() };
            party.host.insert(Keeper::new(room, Game::new(settings))).open()?
        }
    };
    let hands = u64::from(!args.demo.headless);
    for number in 0..hands + u64::from(args.bots) {
        let is_hands = number < hands;
        let name = if is_hands { reach::name(None) } else { format!("bot {number}") };
        let builder = Room::guest(arena::APP, &invite).name(&name);
        // Everybody has bad luck of their own.
        let network = args.demo.reach.impair.unwrap_or(Impairment::none()).apart(number);
        let room = party.place(furnished(builder)?, &args.demo.reach)?.impairment(network).open();
        let driver = match is_hands {
            true => Driver::hands(),
            false => Driver::Bot(Bot::new(args.seed.wrapping_add(number))),
        };
        let mut game = Game::new(Settings::default());
        game.is_foreseeing = !args.no_prediction;
        party.members.push(Seat::new(room, game, driver, !args.no_interpolation));
    }
    Ok(party)
}

/// What all rooms of the demo have in common.
fn furnished(builder: RoomBuilder) -> anyhow::Result<RoomBuilder> {
    Ok(builder.schema(arena::schema()?).predict::<arena::Tank>())
}

/// On a screen, through the eyes of the first player.
fn show(party: &mut Party<Keeper, Seat>, end: &End) -> anyhow::Result<()> {
    let mut screen = Screen::open().context("there is no terminal to draw on: use --headless")?;
    let (mut graph, mut measured) = (NetGraph::default(), Instant::now());
    party.play(end, |party, rest| {
        let code = party.code();
        let Some(seat) = party.members.first_mut() else { return Ok(ControlFlow::Break(())) };
        if measured.elapsed() >= GRAPH_EVERY {
            measured = Instant::now();
            measure(&mut graph, seat.room());
        }
        let field = field(seat, code);
        screen.draw(|frame, depth| draw_arena(frame, &field, &graph, depth))?;
        for key in screen.keys(rest)? {
            if seat.press(key)? == Some(Press::Quit) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// What is on the screen of a seat.
fn field(seat: &mut Seat, code: Option<String>) -> Field {
    let me = seat.room().local_id();
    let pieces = seat.look().into_iter().map(|seen| Piece {
        at: seen.tank.position,
        aim: seen.tank.aim,
        health: seen.life.health,
        player: seen.owner.map(|owner| owner.0),
        is_me: seen.owner.is_some() && seen.owner == me,
    });
    let pieces = pieces.collect();
    let shots = seat.flashes().map(|verdict| (verdict.shot, verdict.met.is_some())).collect();
    Field { pieces, shots, rows: rows(seat), code }
}

/// Names and values beside the field.
fn rows(seat: &Seat) -> Rows {
    let counted = seat.room().diagnostics();
    let (is_foreseeing, is_smooth) = seat.switches();
    let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let network = seat.room().impairment().filter(|network| *network != Impairment::none());
    let mut rows = vec![
        ("P prediction", on(is_foreseeing)),
        ("I interpolation", on(is_smooth)),
        ("N network", network.map_or_else(|| "as it is".to_owned(), |network| network.to_string())),
        ("", String::new()),
        costs::round_trip(seat.room()),
    ];
    rows.extend(costs::link(seat.room()));
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
