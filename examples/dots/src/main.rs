//! Dots: everybody moves a letter in a terminal. State is a value for each player, which the host writes.
//!
//! `cargo run` hosts a room and shows its code; `cargo run -- CODE` joins it. `cargo test` plays it on a bad network.

use crossterm::event::{self, Event as Key, KeyCode};
use crossterm::{cursor, execute, queue, style::Print, terminal};
use parlor::{Event, MemberId, Room, RoomError};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;

/// The game's name: only players of the same game share a room.
const GAME: &str = env!("CARGO_PKG_NAME");
const WIDTH: i32 = 40;
const HEIGHT: i32 = 16;

/// What a player wants in a step.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Move {
    dx: i32,
    dy: i32,
}

/// What everybody sees of a player, under the key `dot/ID`.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Dot {
    x: i32,
    y: i32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut room = match Room::from_args(GAME) {
        Some(join) => join.open(),
        None => Room::host(GAME).max_players(8).host_migration().open(),
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
    let mut wish = Move::default();
    loop {
        while event::poll(Duration::ZERO)? {
            let Key::Key(key) = event::read()? else { continue };
            match key.code {
                KeyCode::Left => wish.dx = -1,
                KeyCode::Right => wish.dx = 1,
                KeyCode::Up => wish.dy = -1,
                KeyCode::Down => wish.dy = 1,
                KeyCode::Esc | KeyCode::Char('q') => return Ok(()),
                _ => {}
            }
        }
        frame(room, &mut wish)?;
        draw(room)?;
        std::thread::sleep(room.until_next_tick().min(Duration::from_millis(30)));
    }
}

/// Handles what came, and runs the steps that are due. The first of them takes the wish.
fn frame(room: &mut Room, wish: &mut Move) -> Result<(), Box<dyn Error>> {
    while let Some(event) = room.poll() {
        match event {
            Event::PlayerLeft { id, .. } => {
                if let Some(mut host) = room.as_host() {
                    host.remove(&key_of(id))?;
                }
            }
            Event::Closed(why) => return Err(why.into()),
            _ => {}
        }
    }
    while let Some(mut step) = room.step() {
        step.send_input(&std::mem::take(wish))?;
        if let Some(mut host) = step.host() {
            for (player, Move { dx, dy }) in host.inputs() {
                let key = key_of(player);
                let start = Dot { x: WIDTH / 2, y: HEIGHT / 2 };
                let Dot { x, y } = host.state().get(&key)?.unwrap_or(start);
                // A player may send anything, so what it wants is clamped.
                let (x, y) = (x + dx.clamp(-1, 1), y + dy.clamp(-1, 1));
                host.set(&key, &Dot { x: x.clamp(0, WIDTH - 1), y: y.clamp(0, HEIGHT - 1) })?;
            }
        }
    }
    Ok(())
}

fn key_of(player: MemberId) -> String {
    format!("dot/{player}")
}

fn draw(room: &Room) -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    let code = room.code().map_or_else(|| "…".to_owned(), |code| code.to_string());
    let title = format!("{GAME}  room {code}  players {}  arrows move, q leaves", room.player_count());
    queue!(out, terminal::Clear(terminal::ClearType::All), cursor::MoveTo(0, 0), Print(title))?;
    for player in room.players() {
        let dot: Result<Option<Dot>, RoomError> = room.state().get(&key_of(player.id));
        let Some(Dot { x, y }) = dot? else { continue };
        let letter = char::from(b'A' + (player.id.0 % 26) as u8);
        queue!(out, cursor::MoveTo(x as u16, y as u16 + 2), Print(letter))?;
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Only a fault takes this long.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn both_see_the_same_over_a_bad_network() -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        let mut host = Room::host(GAME).open();
        while !host.is_connected() {
            assert!(began.elapsed() < PATIENCE, "the room does not open");
            frame(&mut host, &mut Move::default())?;
            std::thread::yield_now();
        }
        let code = host.code().ok_or("an open room has a code")?.to_string();
        let mut guest = Room::join(GAME, &code).impairment("latency=75ms,loss=5%,seed=7".parse()?).open();
        let mut seen = [0, 0];
        while seen != [WIDTH - 1; 2] {
            assert!(began.elapsed() < PATIENCE, "the guest's dot stopped at {seen:?}");
            frame(&mut host, &mut Move::default())?;
            // It drives against the right wall.
            frame(&mut guest, &mut Move { dx: 1, dy: 0 })?;
            for (room, x) in [&host, &guest].into_iter().zip(&mut seen) {
                let dot: Option<Dot> = room.state().get("dot/1")?;
                *x = dot.map_or(0, |dot| dot.x);
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}
