//! Typed lines of a terminal command, and sanitized text of other players.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, sync_channel};

/// Lines that may wait.
const LINES_MAX: usize = 64;

/// What is typed, line by line. The thread ends with the process, because a blocked read cannot be
/// interrupted.
pub(crate) fn lines() -> Receiver<String> {
    let (sender, receiver) = sync_channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What others named or said, without what could move a terminal's cursor.
pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}
