//! What shows the game and reads the keys: a terminal.

use crate::{GAME, Gem, Push, Score, Skater};
use bevy_app::{App, AppExit, First, Last, ScheduleRunnerPlugin};
use bevy_ecs::prelude::*;
use crossterm::event::{self, Event as Key, KeyCode};
use crossterm::style::{Color, Print, SetForegroundColor};
use crossterm::{cursor, execute, queue, terminal};
use parlor::{Event, MemberId};
use parlor_bevy::{Interpolated, Owned, Owner, RoomCommands, RoomEvent, RoomResource};
use std::io::{Write, stdout};
use std::time::Duration;

/// Runs the app until its player leaves.
pub fn run(app: &mut App) -> Result {
    terminal::enable_raw_mode()?;
    execute!(stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
    app.add_plugins(ScheduleRunnerPlugin::run_loop(Duration::from_millis(16)))
        .add_systems(First, keys)
        .add_systems(Last, draw)
        .run();
    execute!(stdout(), terminal::LeaveAlternateScreen, cursor::Show)?;
    Ok(terminal::disable_raw_mode()?)
}

/// A key is one push: a terminal does not say when it is released.
fn keys(mut push: ResMut<Push>, mut commands: Commands, mut exit: MessageWriter<AppExit>) -> Result {
    while event::poll(Duration::ZERO)? {
        let Key::Key(key) = event::read()? else { continue };
        match key.code {
            KeyCode::Left => push.x = -1,
            KeyCode::Right => push.x = 1,
            KeyCode::Up => push.y = -1,
            KeyCode::Down => push.y = 1,
            KeyCode::Esc | KeyCode::Char('q') => {
                commands.leave_room();
                exit.write(AppExit::Success);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Draws a frame.
fn draw(
    room: Option<Res<RoomResource>>,
    mut events: MessageReader<RoomEvent>,
    mut ended: Local<String>,
    skaters: Query<(&Interpolated<Skater>, &Score, &Owner, Has<Owned>)>,
    gems: Query<&Gem>,
) -> Result {
    for RoomEvent(event) in events.read() {
        if let Event::Closed(why) = event {
            *ended = why.to_string();
        }
    }
    let (code, players) = room.map_or((None, 0), |room| (room.code(), room.player_count()));
    let place = code.map_or_else(|| format!("… {}", *ended), |code| format!("room {code}"));
    let mut title = format!("{GAME}  {place}  players {players}  arrows push, q leaves ");
    let mut symbols: Vec<_> = gems.iter().map(|gem| (gem.at, Color::Cyan, '◆')).collect();
    for (skater, score, owner, is_own) in &skaters {
        let letter = owner.0.map_or('?', |MemberId(id)| char::from(b'A' + (id % 26) as u8));
        symbols.push((skater.at, if is_own { Color::Green } else { Color::Reset }, letter));
        title += &format!(" {letter}:{}", score.gems);
    }
    let mut out = stdout().lock();
    queue!(out, terminal::Clear(terminal::ClearType::All), cursor::MoveTo(0, 0), Print(title))?;
    for ([x, y], color, symbol) in symbols {
        queue!(out, SetForegroundColor(color), cursor::MoveTo(x as u16, y as u16 + 2), Print(symbol))?;
    }
    queue!(out, SetForegroundColor(Color::Reset))?;
    Ok(out.flush()?)
}
