//! `parlor arena`: drive and shoot, and see what makes it feel as it does.

use super::{print_json, say};
use crate::arena::{self, Bot, Driver, Game, Keeper, Press, Seat, Settings};
use crate::args::ArenaArgs;
use crate::costs::Rows;
use crate::own_server::{self, OwnServer};
use crate::view::{Field, NetGraph, Piece, Screen, draw_arena};
use crate::{headless, lan, reach};
use anyhow::{Context, bail};
use parlor::{Impairment, Room, RoomBuilder};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest time between two pictures, or without a screen between two looks at what came.
const FRAME: Duration = Duration::from_millis(16);
/// How often the net graph is measured.
const GRAPH_EVERY: Duration = Duration::from_millis(250);

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or kept somebody out of the room.
pub(crate) fn run(args: &ArenaArgs) -> anyhow::Result<()> {
    let stop = headless::stop_flag()?;
    let mut party = Party::gather(args)?;
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let is_over = || end.is_some_and(|end| Instant::now() >= end) || stop.load(Ordering::Relaxed);
    let shown = if args.headless { party.run(&is_over) } else { party.show(&is_over) };
    let report = party.report();
    party.leave();
    shown?;
    if args.json {
        return print_json(&report);
    }
    for seat in report["seats"].as_array().into_iter().flatten() {
        say(&seat.to_string());
    }
    Ok(())
}

/// Everybody of the demo who is in this process.
struct Party {
    /// Without one, somebody else hosts.
    keeper: Option<Keeper>,
    /// The first one is shown on the screen.
    seats: Vec<Seat>,
    /// After its rooms.
    _server: Option<OwnServer>,
}

impl Party {
    /// Opens the room, if this process hosts, and seats its players.
    fn gather(args: &ArenaArgs) -> anyhow::Result<Party> {
        let mut party = Party { keeper: None, seats: Vec::new(), _server: None };
        let mut address = None;
        let invite = match &args.join {
            Some(invite) => lan::invite(arena::APP, invite, &args.reach)?,
            None => {
                if own_server::is_needed(&args.reach) {
                    let server = OwnServer::start(args.port, &args.reach)?;
                    address = Some(server.address.clone());
                    party._server = Some(server);
                }
                let builder = Room::host(arena::APP).max_players(9).tick_hz(arena::HZ).name("host");
                let settings = Settings { drones: args.drones, ..Settings::default() };
                let room = place(builder, args, address.as_deref())?.open();
                party.keeper.insert(Keeper::new(room, Game::new(settings))).open()?
            }
        };
        let hands = u64::from(!args.headless);
        for number in 0..hands + u64::from(args.bots) {
            let is_hands = number < hands;
            let name = if is_hands { reach::name(None) } else { format!("bot {number}") };
            let builder = Room::guest(arena::APP, &invite).name(&name);
            // Everybody has bad luck of their own.
            let network = args.reach.impair.unwrap_or(Impairment::none()).apart(number);
            let room = place(builder, args, address.as_deref())?.impairment(network).open();
            let driver = match is_hands {
                true => Driver::hands(),
                false => Driver::Bot(Bot::new(args.seed.wrapping_add(number))),
            };
            let mut game = Game::new(Settings::default());
            game.is_foreseeing = !args.no_prediction;
            party.seats.push(Seat::new(room, game, driver, !args.no_interpolation));
        }
        Ok(party)
    }

    /// One round for everybody.
    fn turn(&mut self) -> anyhow::Result<()> {
        if let Some(keeper) = &mut self.keeper {
            keeper.turn()?;
        }
        self.seats.iter_mut().filter(|seat| seat.closed().is_none()).try_for_each(Seat::turn)?;
        let keeper = self.keeper.iter().filter_map(Keeper::closed);
        match keeper.chain(self.seats.iter().filter_map(Seat::closed)).next() {
            Some(why) => bail!("the room is over: {why}"),
            None => Ok(()),
        }
    }

    /// Until the next step of anybody is due.
    fn rest(&self) -> Duration {
        let rooms = self.keeper.iter().map(Keeper::room).chain(self.seats.iter().map(Seat::room));
        rooms.map(Room::until_next_tick).min().unwrap_or(FRAME).clamp(Duration::from_millis(1), FRAME)
    }

    /// Without a screen, until it is over.
    fn run(&mut self, is_over: &dyn Fn() -> bool) -> anyhow::Result<()> {
        while !is_over() {
            self.turn()?;
            std::thread::sleep(self.rest());
        }
        Ok(())
    }

    /// On a screen, through the eyes of the first player.
    fn show(&mut self, is_over: &dyn Fn() -> bool) -> anyhow::Result<()> {
        let mut screen = Screen::open().context("there is no terminal to draw on: use --headless")?;
        let (mut graph, mut measured) = (NetGraph::default(), Instant::now());
        while !is_over() {
            self.turn()?;
            let rest = self.rest();
            let code = self.code();
            let Some(seat) = self.seats.first_mut() else { return Ok(()) };
            if measured.elapsed() >= GRAPH_EVERY {
                measured = Instant::now();
                measure(&mut graph, seat.room());
            }
            let field = field(seat, code);
            screen.draw(|frame, depth| draw_arena(frame, &field, &graph, depth))?;
            for key in screen.keys(rest)? {
                if seat.press(key)? == Some(Press::Quit) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn code(&self) -> Option<String> {
        let rooms = self.keeper.iter().map(Keeper::room).chain(self.seats.iter().map(Seat::room));
        rooms.filter_map(Room::code).map(|code| code.to_string()).next()
    }

    fn report(&mut self) -> Value {
        json!({
            "command": "arena",
            "code": self.code(),
            "host": self.keeper.as_ref().map(Keeper::report),
            "seats": self.seats.iter_mut().map(Seat::report).collect::<Vec<_>>(),
        })
    }

    fn leave(self) {
        self.seats.into_iter().for_each(Seat::leave);
        self.keeper.into_iter().for_each(Keeper::leave);
    }
}

/// Applies what all rooms of the demo have in common.
fn place(builder: RoomBuilder, args: &ArenaArgs, own: Option<&str>) -> anyhow::Result<RoomBuilder> {
    let builder = builder.schema(arena::schema()?).predict::<arena::Tank>();
    let builder = own.into_iter().fold(builder, |builder, address| builder.server(address));
    reach::connect(builder, &args.reach)
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
    let net = seat.room().diagnostics();
    let (is_foreseeing, is_smooth) = seat.switches();
    let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let network = seat.room().impairment().filter(|network| *network != Impairment::none());
    vec![
        ("P prediction", on(is_foreseeing)),
        ("I interpolation", on(is_smooth)),
        ("N network", network.map_or_else(|| "as it is".to_owned(), |network| network.to_string())),
        ("", String::new()),
        (
            "round trip",
            net.rtt.map_or_else(|| "–".to_owned(), |rtt| format!("{:.0} ms", rtt.as_secs_f64() * 1e3)),
        ),
        ("jitter", format!("{:.0} ms", net.jitter_ms)),
        ("lost", format!("{} of {}", net.session.packets_lost, net.session.packets_sent)),
        ("drawn behind", format!("{:.0} ms", net.buffer_delay_ms)),
        ("lead", format!("{:.0} ms", net.lead_ms)),
        ("dilation", format!("{:+.1}%", (net.dilation - 1.0) * 100.0)),
        ("corrections", net.prediction.corrections.to_string()),
        ("steps again", net.steps_replayed.to_string()),
        ("inputs late", net.inputs_late.to_string()),
    ]
}

/// Adds what is measured now to the graph.
fn measure(graph: &mut NetGraph, room: &Room) {
    let net = room.diagnostics();
    let rtt_ms = net.rtt.map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3);
    graph.push([rtt_ms, net.jitter_ms, net.buffer_delay_ms, net.lead_ms], net.steps_replayed);
}
