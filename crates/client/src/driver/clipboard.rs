//! The system's clipboard.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The clipboard, once something was copied. Under X11 and Wayland a text is there as long as the process that copied
/// it serves it, so it stays open until it is dropped, and is handed to the desktop then.
#[derive(Default)]
pub(super) struct Clipboard(Mutex<Option<arboard::Clipboard>>);

impl Clipboard {
    /// Puts a text into it. Returns whether that was possible.
    pub(super) fn take(&self, text: String) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            *open = arboard::Clipboard::new().ok();
        }
        open.as_mut().is_some_and(|clipboard| clipboard.set_text(text).is_ok())
    }
}

impl fmt::Debug for Clipboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clipboard").finish_non_exhaustive()
    }
}
