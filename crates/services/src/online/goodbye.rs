//! Shutdown of the JSON sockets: each gets a close frame with the reason.

use core::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum time for the close frames, so that a client that does not read cannot delay the shutdown.
const GOODBYE_TIME: Duration = Duration::from_secs(1);

/// Notifies all listeners.
#[derive(Debug, Default)]
pub(super) struct Goodbye(watch::Sender<bool>);

/// A listener, until it is dropped.
#[derive(Debug)]
pub(super) struct Listener(watch::Receiver<bool>);

impl Goodbye {
    pub(super) fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }

    /// Notifies all listeners, and waits until they are gone.
    pub(super) async fn say(&self) {
        self.0.send_replace(true);
        if timeout(GOODBYE_TIME, self.0.closed()).await.is_err() {
            tracing::debug!("some JSON sockets did not take the goodbye");
        }
    }
}

impl Listener {
    /// Waits for the notification. May be cancelled.
    pub(super) async fn wait(&mut self) {
        // Each listener holds the services and so the sender.
        let _ = self.0.wait_for(|is_said| *is_said).await;
    }
}
