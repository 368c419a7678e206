//! A shard: one task that owns one hub. It takes all inputs that are there, lets the hub pack once, and hands out what
//! came of it, so that a receiver gets one packet however many messages there were.

mod handle;
mod news;
mod peer;
#[cfg(test)]
mod tests;

pub(crate) use handle::{Shard, Shards};

use crate::clock::Clock;
use crate::recorder::Recorder;
use core::time::Duration;
use handle::{INPUTS_MAX, Input};
pub(crate) use news::Directory;
use news::News;
use parlor_hub::{Hub, Output};
use parlor_proto::{ConnectionId, Instant};
use parlor_transport::CloseCode;
use peer::{Peer, Sent};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep_until;

/// Inputs that are taken before the hub packs, even if more are there: a flood must not keep the others waiting.
const TURN_INPUTS_MAX: usize = 256;
/// How long a shard that stops waits for links to take their goodbyes.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(1);
/// What a link is told that is closed because the shard stops.
pub(crate) const GOING_DOWN: &str = "the server is going down";

/// The task's state.
struct Driver {
    clock: Clock,
    hub: Hub,
    inputs: mpsc::Receiver<Input>,
    peers: FxHashMap<ConnectionId, Peer>,
    /// Links of which something is awaited: that they take packets again, or that they are over.
    waiting: JoinSet<Waited>,
    news: News,
    recorder: Option<Recorder>,
    /// When a shard that stops gives up waiting.
    stops_at: Option<tokio::time::Instant>,
}

/// What was waited for.
enum Waited {
    /// The link takes packets again.
    Writable(ConnectionId),
    /// The link is over and all was said on it.
    Parted,
}

/// What a shard is told, for [`run`].
pub(crate) struct Inputs(mpsc::Receiver<Input>);

/// The handle of a shard, and what is told through it.
pub(crate) fn channel() -> (Shard, Inputs) {
    let (sender, inputs) = mpsc::channel(INPUTS_MAX);
    (Shard::new(sender), Inputs(inputs))
}

/// Runs a shard until [`Shard::shut_down`], or until all handles are gone.
pub(crate) async fn run(
    hub: Hub,
    clock: Clock,
    inputs: Inputs,
    directory: Option<Directory>,
    recorder: Option<Recorder>,
) {
    let driver = Driver {
        clock,
        hub,
        inputs: inputs.0,
        peers: FxHashMap::default(),
        waiting: JoinSet::new(),
        news: News::new(directory),
        recorder,
        stops_at: None,
    };
    driver.run().await;
}

impl Driver {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(TURN_INPUTS_MAX);
        while !self.is_over() {
            let due = self.hub.poll_timeout().map(|at| self.clock.timer_at(at));
            let due = due.into_iter().chain(self.stops_at).min();
            tokio::select! {
                taken = self.inputs.recv_many(&mut batch, TURN_INPUTS_MAX) => {
                    if taken == 0 {
                        break;
                    }
                }
                Some(waited) = self.waiting.join_next() => self.waited(waited),
                () = until(due), if due.is_some() => {}
            }
            while let Some(waited) = self.waiting.try_join_next() {
                self.waited(waited);
            }
            let now = self.clock.now();
            batch.drain(..).for_each(|input| self.take(input, now));
            self.hub.handle_timeout(now);
            self.hub.flush(now);
            self.carry_out();
        }
        for peer in self.peers.values() {
            peer.close(CloseCode::GOING_AWAY, GOING_DOWN);
        }
        if let Some(recorder) = self.recorder {
            recorder.finish().await;
        }
    }

    fn is_over(&self) -> bool {
        let is_idle = self.peers.is_empty() && self.waiting.is_empty();
        self.stops_at.is_some_and(|at| is_idle || at <= tokio::time::Instant::now())
    }

    fn take(&mut self, input: Input, now: Instant) {
        match input {
            Input::Connected { connection, origin, sender } => {
                self.hub.handle_connected(connection, sender.kind(), origin, now);
                self.peers.insert(connection, Peer::new(sender));
            }
            Input::Packets { connection, packets } => {
                // A link that was closed may have brought more before its task learnt of it.
                let Some(peer) = self.peers.get_mut(&connection) else { return };
                peer.has_spoken = true;
                packets.into_iter().for_each(|packet| self.hub.handle_packet(connection, packet, now));
            }
            Input::Disconnected { connection } => {
                self.peers.remove(&connection);
                self.hub.handle_disconnected(connection, now);
            }
            // Whoever asked may be gone by now, and then nobody misses the answer.
            Input::Room { code, answer } => {
                let _ = answer.send(self.hub.room(code));
            }
            Input::Stats { answer } => {
                let _ = answer.send(self.hub.stats());
            }
            Input::ShutDown => self.shut_down(now),
        }
    }

    fn shut_down(&mut self, now: Instant) {
        self.stops_at = Some(tokio::time::Instant::now() + DRAIN_TIME);
        self.hub.shut_down(now);
        // Whoever said nothing yet has no session in which to be told.
        let silent: Vec<ConnectionId> = self
            .peers
            .iter()
            .filter(|(_, peer)| !peer.has_spoken)
            .map(|(connection, _)| *connection)
            .collect();
        for connection in silent {
            self.hub.handle_disconnected(connection, now);
            self.part(connection, CloseCode::GOING_AWAY, GOING_DOWN.to_owned());
        }
    }

    fn waited(&mut self, waited: Result<Waited, JoinError>) {
        match waited {
            Ok(Waited::Writable(connection)) => {
                let Some(peer) = self.peers.get_mut(&connection) else { return };
                let sent = peer.send_backlog();
                if sent == Sent::All {
                    self.hub.handle_writable(connection, true, self.clock.now());
                }
                self.sent(connection, sent);
            }
            Ok(Waited::Parted) => {}
            Err(error) => tracing::error!(%error, "a task that waits for a link failed; please report this"),
        }
    }

    /// Does what the hub wants done.
    fn carry_out(&mut self) {
        while let Some(output) = self.hub.poll_output() {
            match output {
                Output::Packet { connection, packet } => {
                    let Some(peer) = self.peers.get_mut(&connection) else { continue };
                    let sent = peer.send(packet);
                    self.sent(connection, sent);
                }
                Output::Close { connection, reason } => {
                    let fault = self.peers.get_mut(&connection).and_then(|peer| peer.fault.take());
                    let (code, reason) = match fault {
                        Some(fault) => (CloseCode::MISBEHAVED, fault),
                        None => (CloseCode::DONE, reason.to_owned()),
                    };
                    self.part(connection, code, reason);
                }
                Output::Recorded { room, bytes } => {
                    if let Some(recorder) = &mut self.recorder {
                        recorder.record(room, &bytes);
                    }
                }
                Output::Happened(happening) => {
                    self.news.tell(happening, &mut self.peers, self.recorder.as_mut())
                }
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.hand_over();
        }
    }

    fn sent(&mut self, connection: ConnectionId, sent: Sent) {
        if let Sent::Waiting { sender, carrier } = sent {
            // From here on the hub combines what it has for this peer, and newer state replaces older.
            self.hub.handle_writable(connection, false, self.clock.now());
            self.waiting.spawn(async move {
                sender.writable(carrier).await;
                Waited::Writable(connection)
            });
        }
    }

    /// Closes a link once it has taken what is left for it.
    fn part(&mut self, connection: ConnectionId, code: CloseCode, reason: String) {
        if let Some(peer) = self.peers.remove(&connection) {
            let parting = peer.part(code, reason);
            self.waiting.spawn(async move {
                parting.await;
                Waited::Parted
            });
        }
    }
}

async fn until(due: Option<tokio::time::Instant>) {
    if let Some(due) = due {
        sleep_until(due).await;
    }
}
