//! Tanks: everybody drives a tank in a terminal. A world of entities, and a player's own tank is predicted.
//!
//! `cargo run` hosts a room and shows its code; `cargo run -- CODE` joins it. `cargo test` plays it on a bad network.

use crossterm::event::{self, Event as Key, KeyCode};
use crossterm::{cursor, execute, queue, style::Print, terminal};
use parlor::schema::{Kind, Schema, SchemaError};
use parlor::{EntityId, Event, Room, Step, replicated};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;

/// The game's name: only players of the same game share a room.
const GAME: &str = env!("CARGO_PKG_NAME");
const WIDTH: f32 = 60.0;
const HEIGHT: f32 = 18.0;

/// What a player wants in a step.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Drive {
    turn: i8,
    gas: bool,
}

#[derive(Clone, Debug)]
struct Tank {
    at: [f32; 2],
    heading: f32,
}
replicated!(Tank as "tank" => {
    at: Kind::vector2(0.0, 64.0, 1.0 / 64.0),
    heading: Kind::angle(256),
});

fn main() -> Result<(), Box<dyn Error>> {
    let mut room = match Room::from_args(GAME) {
        Some(join) => join.schema(schema()?).predict::<Tank>().open(),
        None => Room::host(GAME).schema(schema()?).max_players(8).open(),
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

fn schema() -> Result<Schema, SchemaError> {
    Schema::builder().replicate::<Tank>().build()
}

fn play(room: &mut Room) -> Result<(), Box<dyn Error>> {
    let mut wish = Drive::default();
    loop {
        while event::poll(Duration::ZERO)? {
            let Key::Key(key) = event::read()? else { continue };
            match key.code {
                KeyCode::Left => wish.turn = -1,
                KeyCode::Right => wish.turn = 1,
                KeyCode::Up => wish.gas = true,
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
fn frame(room: &mut Room, wish: &mut Drive) -> Result<(), Box<dyn Error>> {
    while let Some(event) = room.poll() {
        match (event, room.as_host()) {
            (Event::PlayerJoined(player), Some(mut host)) => {
                let tank = host.spawn(Some(player.id))?;
                host.insert(tank, &Tank { at: [WIDTH / 2.0, HEIGHT / 2.0], heading: 0.0 })?;
            }
            (Event::PlayerLeft { id, .. }, Some(mut host)) => {
                for tank in host.world().entities() {
                    if host.world().owner(tank)? == Some(id) {
                        host.despawn(tank)?;
                    }
                }
            }
            (Event::Closed(why), _) => return Err(why.into()),
            _ => {}
        }
    }
    while let Some(mut step) = room.step() {
        step.send_input(&std::mem::take(wish))?;
        // The same lines run at the host, for all tanks, and at a guest, for its own: that is prediction.
        for tank in step.world().entities() {
            drive(&mut step, tank)?;
        }
    }
    Ok(())
}

/// Moves a tank by the input of its owner.
fn drive(step: &mut Step<'_>, tank: EntityId) -> Result<(), Box<dyn Error>> {
    let Some(owner) = step.world().owner(tank)? else { return Ok(()) };
    let Some(Drive { turn, gas }) = step.input(owner) else { return Ok(()) };
    let Some(Tank { at: [x, y], heading }) = step.world().component(tank)? else { return Ok(()) };
    // A player may send any number, so it is clamped. An integer cannot be NaN.
    let (heading, speed) = (heading + 0.3 * f32::from(turn.clamp(-1, 1)), if gas { 0.8 } else { 0.0 });
    let at =
        [(x + speed * heading.cos()).clamp(0.0, WIDTH), (y + speed * heading.sin() / 2.0).clamp(0.0, HEIGHT)];
    Ok(step.insert(tank, &Tank { at, heading })?)
}

fn draw(room: &Room) -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    let code = room.code().map_or_else(|| "…".to_owned(), |code| code.to_string());
    let title = format!("{GAME}  room {code}  players {}  arrows drive, q leaves", room.player_count());
    queue!(out, terminal::Clear(terminal::ClearType::All), cursor::MoveTo(0, 0), Print(title))?;
    for tank in room.world().entities() {
        let Some(Tank { at: [x, y], heading }) = room.world().interpolated(tank)? else { continue };
        let eighth = (heading.to_degrees() / 45.0).round().rem_euclid(8.0) as usize;
        let arrow = ['→', '↘', '↓', '↙', '←', '↖', '↑', '↗'][eighth];
        queue!(out, cursor::MoveTo(x as u16, y as u16 + 2), Print(arrow))?;
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

    /// Where the tanks of a room are, by their owners.
    fn tanks(room: &Room) -> Result<Vec<(u32, [f32; 2])>, Box<dyn Error>> {
        let mut found = Vec::new();
        for tank in room.world().entities() {
            if let (Some(owner), Some(Tank { at, .. })) =
                (room.world().owner(tank)?, room.world().component(tank)?)
            {
                found.push((owner.0, at));
            }
        }
        found.sort_by_key(|(owner, _)| *owner);
        Ok(found)
    }

    #[test]
    fn both_see_the_same_over_a_bad_network() -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        let mut host = Room::host(GAME).schema(schema()?).open();
        while !host.is_connected() {
            assert!(began.elapsed() < PATIENCE, "the room does not open");
            frame(&mut host, &mut Drive::default())?;
            std::thread::yield_now();
        }
        let code = host.code().ok_or("an open room has a code")?.to_string();
        let bad = "latency=75ms,loss=5%,seed=7".parse()?;
        let mut guest = Room::join(GAME, &code).schema(schema()?).predict::<Tank>().impairment(bad).open();
        loop {
            assert!(began.elapsed() < PATIENCE, "{:?} at the host, {:?}", tanks(&host)?, tanks(&guest)?);
            frame(&mut host, &mut Drive::default())?;
            // It drives against the right wall, and its own tank is predicted there.
            frame(&mut guest, &mut Drive { turn: 0, gas: true })?;
            let (there, here) = (tanks(&host)?, tanks(&guest)?);
            if there == here && there.iter().any(|(owner, at)| *owner == 1 && at[0] >= WIDTH) {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }
}
