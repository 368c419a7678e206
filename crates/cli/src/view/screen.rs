//! The terminal itself.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEvent};

use super::draw::draw;
use super::hud::HudModel;
use super::palette::Depth;
use crate::game::Scene;

/// The terminal while the game has it. It is given back when this is dropped, and when the program panics.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    depth: Depth,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If there is none, for example because the output is a file.
    pub(crate) fn open() -> io::Result<Screen> {
        let depth = Depth::from_colorterm(std::env::var("COLORTERM").ok().as_deref());
        Ok(Screen { terminal: ratatui::try_init()?, depth })
    }

    /// Draws one picture.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(crate) fn draw(&mut self, hud: &HudModel, scene: &Scene) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, hud, scene, self.depth)).map(drop)
    }

    /// The keys pressed since the last call, after waiting at most this long for the first.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(crate) fn keys(&mut self, wait: Duration) -> io::Result<Vec<KeyEvent>> {
        let mut keys = Vec::new();
        let mut wait = wait;
        while event::poll(wait)? {
            if let Event::Key(key) = event::read()? {
                keys.push(key);
            }
            wait = Duration::ZERO;
        }
        Ok(keys)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The panic hook has restored it already; doing it twice would put the cursor onto the panic's message.
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}
