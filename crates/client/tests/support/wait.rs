//! Waiting for anything that is polled.

use crate::support::Patience;

/// Polls until something comes.
#[track_caller]
pub(crate) fn wait<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let patience = Patience::new();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        patience.look_again(|| "nothing came".to_owned());
    }
}
