//! The key bindings.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::game::{Dir, Input};

/// For how many ticks a pressed dash is sent. Of two inputs that arrive in the same tick only the newest counts, and
/// one may be lost; a dash that is sent again does nothing.
const DASH_HELD_TICKS: u8 = 4;

/// What a key asks of the program rather than of the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Leave the room.
    Quit,
    /// Open the help, or close it.
    Help,
    /// Copy the invite link.
    Copy,
    /// Show what the state costs, or hide it.
    Net,
}

/// The keys' state. Terminals tell when a key is pressed, not when it is let go, so the last direction holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Controls {
    dir: Dir,
    dash_held: u8,
}

impl Controls {
    /// Takes a key; one that is the program's comes back as a command.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Option<Command> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(Command::Quit);
        }
        match key.code {
            KeyCode::Up | KeyCode::Char('w' | 'W') => self.dir = Dir::Up,
            KeyCode::Down | KeyCode::Char('s' | 'S') => self.dir = Dir::Down,
            KeyCode::Left | KeyCode::Char('a' | 'A') => self.dir = Dir::Left,
            KeyCode::Right | KeyCode::Char('d' | 'D') => self.dir = Dir::Right,
            KeyCode::Char(' ') => self.dash_held = DASH_HELD_TICKS,
            KeyCode::Char('?' | 'h' | 'H') => return Some(Command::Help),
            KeyCode::Char('c' | 'C') => return Some(Command::Copy),
            KeyCode::Char('n' | 'N') => return Some(Command::Net),
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Some(Command::Quit),
            _ => {}
        }
        None
    }

    /// The input of the next tick. To be called once per tick.
    pub(crate) fn next_input(&mut self) -> Input {
        let dash = self.dash_held > 0;
        self.dash_held = self.dash_held.saturating_sub(1);
        Input { dir: self.dir, dash }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn a_direction_holds_and_a_dash_ends() {
        let mut controls = Controls::default();
        assert_eq!(controls.next_input(), Input::default());
        assert_eq!(controls.press(key(KeyCode::Char('a'))), None);
        controls.press(key(KeyCode::Char(' ')));
        let inputs: Vec<Input> = (0..6).map(|_| controls.next_input()).collect();
        assert!(inputs.iter().all(|input| input.dir == Dir::Left));
        assert_eq!(inputs.iter().filter(|input| input.dash).count(), 4);
        controls.press(KeyEvent::new_with_kind(KeyCode::Up, KeyModifiers::NONE, KeyEventKind::Release));
        assert_eq!(controls.next_input().dir, Dir::Left);
    }

    #[test]
    fn commands() {
        let mut controls = Controls::default();
        assert_eq!(controls.press(key(KeyCode::Char('?'))), Some(Command::Help));
        assert_eq!(controls.press(key(KeyCode::Esc)), Some(Command::Quit));
        assert_eq!(controls.press(key(KeyCode::Char('n'))), Some(Command::Net));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(controls.press(interrupt), Some(Command::Quit));
        assert_eq!(controls.press(KeyEvent::new(KeyCode::Char('a'), KeyModifiers::CONTROL)), None);
        assert_eq!(controls.next_input(), Input::default());
    }
}
