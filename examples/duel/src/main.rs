//! Duel: two fencers in a terminal, five touches win. Rollback: every process runs each step at once, with a guess of what the
//! other player does, and runs it again when the guess was wrong.
//!
//! `cargo run` hosts a room and shows its code; `cargo run -- CODE` joins it. `cargo test` plays it on a bad network.

use crossterm::event::{self, Event as Key, KeyCode};
use crossterm::{cursor, execute, queue, style::Print, terminal};
use parlor::{Event, MemberId, RollbackConfig, RollbackRequest, Room, Tick, rollback::no_input};
use serde::{Deserialize, Serialize};
use std::io::{Write, stdout};
use std::{error::Error, time::Duration};

/// The game's name: only players of the same game share a room.
const GAME: &str = env!("CARGO_PKG_NAME");
const LENGTH: i32 = 44;
const REACH: i32 = 6;
const TOUCHES: u32 = 5;

/// What a fencer does. A player may wish for all of it but to be open.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Act {
    Guard,
    Left,
    Right,
    Lunge,
    Parry,
    Open,
}

/// A fencer, who does something for a rest of steps. The state has integers alone: it is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Fencer {
    x: i32,
    act: Act,
    rest: u32,
    touches: u32,
}

fn start([left, right]: [u32; 2]) -> [Fencer; 2] {
    let fencer = |x, touches| Fencer { x, act: Act::Open, rest: 30, touches };
    [fencer(8, left), fencer(LENGTH - 8, right)]
}

/// One step of the bout: who lunges hits what is near, but not who parries, and is open for a moment after it.
fn step(fencers: &mut [Fencer; 2], wishes: [Act; 2]) {
    if fencers.iter().any(|fencer| fencer.touches == TOUCHES) {
        return;
    }
    let gap = fencers[1].x - fencers[0].x;
    for ((fencer, wish), ahead) in fencers.iter_mut().zip(wishes).zip([1, -1]) {
        (fencer.act, fencer.rest) = match (fencer.act, wish) {
            (act, _) if fencer.rest > 1 => (act, fencer.rest - 1),
            (Act::Lunge | Act::Parry, _) => (Act::Open, 9),
            (_, Act::Lunge) => (Act::Lunge, 5),
            (_, Act::Parry) => (Act::Parry, 9),
            _ => (Act::Guard, 0),
        };
        let walked = i32::from(wish == Act::Right) - i32::from(wish == Act::Left);
        let may_walk = fencer.act == Act::Guard && (gap > 4 || walked != ahead);
        fencer.x = (fencer.x + if may_walk { walked } else { 0 }).clamp(0, LENGTH);
    }
    let [left, right] = fencers;
    match (left.act, right.act) {
        _ if gap > REACH => {}
        (Act::Lunge, Act::Parry) => (left.act, left.rest) = (Act::Open, 20),
        (Act::Parry, Act::Lunge) => (right.act, right.rest) = (Act::Open, 20),
        // Of two at once none counts.
        (Act::Lunge, Act::Lunge) => *fencers = start([left.touches, right.touches]),
        (Act::Lunge, _) => *fencers = start([left.touches + 1, right.touches]),
        (_, Act::Lunge) => *fencers = start([left.touches, right.touches + 1]),
        _ => {}
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut room = match Room::from_args(GAME) {
        Some(join) => join.open(),
        None => Room::host(GAME).max_players(2).open(),
    };
    terminal::enable_raw_mode()?;
    execute!(stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
    let played = play(&mut room);
    execute!(stdout(), terminal::LeaveAlternateScreen, cursor::Show)?;
    terminal::disable_raw_mode()?;
    room.leave();
    // What `main` returns is printed as code; this is for a person.
    played.inspect_err(|why| eprintln!("{GAME}: {why}")).or(Ok(()))
}

fn play(room: &mut Room) -> Result<(), Box<dyn Error>> {
    let mut wish = Act::Guard;
    loop {
        while event::poll(Duration::ZERO)? {
            let Key::Key(key) = event::read()? else { continue };
            wish = match key.code {
                KeyCode::Left => Act::Left,
                KeyCode::Right => Act::Right,
                KeyCode::Up => Act::Lunge,
                KeyCode::Down => Act::Parry,
                KeyCode::Esc | KeyCode::Char('q') => return Ok(()),
                _ => wish,
            };
        }
        frame(room, &mut wish)?;
        draw(room)?;
        std::thread::sleep(room.until_next_tick().min(Duration::from_millis(30)));
    }
}

/// Handles what came, and runs the steps that are due. The first of them takes the wish.
fn frame(room: &mut Room, wish: &mut Act) -> Result<(), Box<dyn Error>> {
    while let Some(event) = room.poll() {
        match event {
            Event::PlayerLeft { .. } => return Err("the other fencer has left".into()),
            Event::Closed(why) => return Err(why.into()),
            _ => {}
        }
    }
    while room.step().is_some() {}
    let [left, right] = room.players() else { return Ok(()) };
    let (players, lane) = ([left.id, right.id], room.rollback());
    if lane.diagnostics().is_none() {
        return begin(room, players);
    }
    while lane.step(wish)? {
        *wish = Act::Guard;
        while let Some(request) = lane.request() {
            // What is under a key of the lane is saved and loaded by itself.
            let RollbackRequest::Advance { .. } = request else { continue };
            let mut fencers = lane.get("fencers")?.unwrap_or(start([0, 0]));
            let wishes = [lane.input(players[0])?, lane.input(players[1])?];
            step(&mut fencers, wishes.map(|input| input.map_or(Act::Guard, |(wish, _)| wish)));
            lane.set("fencers", &fencers)?;
        }
    }
    Ok(())
}

/// Begins the bout in the step that the host names: it is the same for both.
fn begin(room: &mut Room, players: [MemberId; 2]) -> Result<(), Box<dyn Error>> {
    let (named, now) = (room.state().get::<u32>("begin")?, room.tick_number());
    if let (None, Some(Tick(now)), Some(mut host)) = (named, now, room.as_host()) {
        host.set("begin", &now.wrapping_add(30))?;
    }
    let Some(begin) = named else { return Ok(()) };
    // A wish is a single press: the best guess is that the other made none.
    let config = RollbackConfig { predictor: no_input, ..RollbackConfig::new(players, Tick(begin)) };
    Ok(room.rollback().begin(&config)?)
}

fn draw(room: &Room) -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    let code = room.code().map_or_else(|| "…".to_owned(), |code| code.to_string());
    let players = room.player_count();
    let title = format!("{GAME}  room {code}  players {players}  ←→ walk  ↑ lunge  ↓ parry  q leaves");
    let fencers = room.rollback().get("fencers")?.unwrap_or(start([0, 0]));
    let [left, right] = fencers.map(|fencer| fencer.touches);
    queue!(out, terminal::Clear(terminal::ClearType::All), cursor::MoveTo(0, 0), Print(title))?;
    queue!(out, cursor::MoveTo(0, 2), Print(format!("touches {left} : {right} of {TOUCHES}")))?;
    queue!(out, cursor::MoveTo(0, 7), Print("▔".repeat(60)))?;
    for (Fencer { x, act, .. }, facing) in fencers.into_iter().zip([1, -1]) {
        let figure = match act {
            Act::Lunge => ["  o", " ─┼────", "─ Λ"],
            Act::Parry => ["o │", "┼─│", "Λ"],
            Act::Open => ["o", "┼ ·", "Λ  ·"],
            _ => ["o", "┼──", "Λ"],
        };
        for (row, line) in (4..).zip(figure) {
            for (column, glyph) in (0..).zip(line.chars()) {
                queue!(out, cursor::MoveTo((8 + x + facing * column) as u16, row), Print(glyph))?;
            }
        }
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::time::Instant;

    /// Only a fault takes this long.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn a_parry_leaves_the_other_open_and_five_touches_win() {
        let mut fencers = start([0, 4]);
        let mut run = |steps, wishes| (0..steps).for_each(|_| step(&mut fencers, wishes));
        run(60, [Act::Right, Act::Left]);
        run(2, [Act::Guard, Act::Parry]);
        run(1, [Act::Lunge, Act::Guard]);
        run(16, [Act::Guard, Act::Guard]);
        run(1, [Act::Guard, Act::Lunge]);
        assert_eq!(fencers, start([0, 5]));
    }

    #[test]
    fn both_see_the_same_bout_over_a_bad_network() -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        let mut host = Room::host(GAME).open();
        while !host.is_connected() {
            assert!(began.elapsed() < PATIENCE, "the room does not open");
            frame(&mut host, &mut Act::Guard)?;
            std::thread::yield_now();
        }
        let code = host.code().ok_or("an open room has a code")?.to_string();
        let mut guest = Room::join(GAME, &code).impairment("latency=75ms,loss=5%,seed=7".parse()?).open();
        let mut settled: [HashMap<u32, [Fencer; 2]>; 2] = Default::default();
        let is_touched = |seen: &HashMap<_, [Fencer; 2]>| seen.values().any(|fencers| fencers[1].touches > 0);
        while !settled.iter().all(is_touched) {
            assert!(began.elapsed() < PATIENCE, "{:?} and {:?}", host.diagnostics(), guest.diagnostics());
            // The host walks, and the guest comes and lunges.
            let wish = if began.elapsed().as_millis() % 200 < 100 { Act::Left } else { Act::Lunge };
            for (room, seen, mut wish) in [(&mut host, 0, Act::Right), (&mut guest, 1, wish)] {
                frame(room, &mut wish)?;
                if let Some((Tick(tick), fencers)) = room.rollback().settled("fencers")? {
                    settled[seen].insert(tick, fencers);
                }
                assert_eq!(room.rollback().event(), None);
            }
            std::thread::yield_now();
        }
        let both = settled[0].iter().filter_map(|(tick, there)| Some((there, settled[1].get(tick)?)));
        assert!(both.clone().count() > 20 && both.clone().all(|(there, here)| there == here));
        let rolled_back = |room: &Room| room.rollback().diagnostics().map_or(0, |seen| seen.rollbacks);
        assert!(
            rolled_back(&host) + rolled_back(&guest) > 0,
            "nothing was guessed wrong: the test shows nothing"
        );
        Ok(())
    }
}
