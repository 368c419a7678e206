//! The terminal itself.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEvent};
use ratatui::{DefaultTerminal, Frame};

use crate::palette::Depth;

/// The terminal while the game has it. It is given back when this is dropped, and when the program panics.
#[derive(Debug)]
pub struct Screen {
    /// Always there but in `drop`.
    terminal: Option<DefaultTerminal>,
    depth: Depth,
    keys: Receiver<io::Result<KeyEvent>>,
}

/// Keys that may wait for the next picture; the terminal keeps what was typed beyond.
const KEYS_MAX: usize = 256;

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If there is none, for example because the output is a file.
    pub fn open() -> io::Result<Screen> {
        let depth = Depth::from_colorterm(std::env::var("COLORTERM").ok().as_deref());
        let terminal = ratatui::try_init()?;
        let (sender, keys) = sync_channel(KEYS_MAX);
        // A thread of its own, because reading from a terminal that has been closed may never return: the game must
        // still leave its room then. The thread ends with the process.
        std::thread::Builder::new().name("keys".into()).spawn(move || read_keys(&sender))?;
        Ok(Screen { terminal: Some(terminal), depth, keys })
    }

    /// Draws one picture, in the colours that the terminal has.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>, Depth)) -> io::Result<()> {
        let terminal = self.terminal.as_mut().expect("the screen is not being dropped");
        terminal.draw(|frame| paint(frame, self.depth)).map(drop)
    }

    /// The keys pressed since the last call, after waiting at most this long for the first.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn keys(&mut self, wait: Duration) -> io::Result<Vec<KeyEvent>> {
        let mut keys = Vec::new();
        match self.keys.recv_timeout(wait) {
            Ok(key) => keys.push(key?),
            Err(RecvTimeoutError::Timeout) => return Ok(keys),
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        while let Ok(key) = self.keys.try_recv() {
            keys.push(key?);
        }
        Ok(keys)
    }
}

/// Forwards keys until the receiver or the terminal is gone.
fn read_keys(keys: &SyncSender<io::Result<KeyEvent>>) {
    loop {
        let read = match event::read() {
            Ok(Event::Key(key)) => Ok(key),
            Ok(_) => continue,
            Err(error) => Err(error),
        };
        let is_over = read.is_err();
        if keys.send(read).is_err() || is_over {
            return;
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The panic hook has restored it already; doing it twice would put the cursor onto the panic's message.
        if std::thread::panicking() {
            return;
        }
        if ratatui::try_restore().is_err() {
            // It was closed, so nobody is left to be told. Dropping it would try to say so on standard error, which is
            // closed as well, and panic before the room is left.
            self.terminal.take().map(Box::new).map(Box::leak);
        }
    }
}
