//! Tanks: everybody drives a tank in a terminal. A world of entities, and a player's own tank is predicted.
//!
//! `cargo run` hosts a room and shows its code; `cargo run -- CODE` joins it.

use crossterm::event::{self, Event as Key, KeyCode};
use crossterm::{cursor, execute, queue, style::Print, terminal};
use parlor::schema::{Kind, Schema, SchemaError};
use parlor::{EntityId, Event, Room, Step, replicated};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;

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
    let mut room = match Room::from_args("tanks") {
        Some(join) => join.schema(schema()?).predict::<Tank>().open(),
        None => Room::host("tanks").schema(schema()?).max_players(8).open(),
    };
    terminal::enable_raw_mode()?;
    execute!(stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
    let played = play(&mut room);
    execute!(stdout(), terminal::LeaveAlternateScreen, cursor::Show)?;
    terminal::disable_raw_mode()?;
    room.leave();
    // What `main` returns is printed as code; this is for a person.
    played.inspect_err(|why| eprintln!("tanks: {why}")).or(Ok(()))
}

fn schema() -> Result<Schema, SchemaError> {
    Schema::builder().replicate::<Tank>().build()
}

fn play(room: &mut Room) -> Result<(), Box<dyn Error>> {
    let mut wish = Drive::default();
    loop {
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
        while let Some(mut step) = room.step() {
            step.send_input(&std::mem::take(&mut wish))?;
            // The same lines run at the host, for all tanks, and at a guest, for its own: that is prediction.
            for tank in step.world().entities() {
                drive(&mut step, tank)?;
            }
        }
        draw(room)?;
        std::thread::sleep(room.until_next_tick().min(Duration::from_millis(30)));
    }
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
    let title = format!("tanks  room {code}  players {}  arrows drive, q leaves", room.player_count());
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
