//! A shard: one task that owns one hub and a UDP port. Each cycle it reads all waiting inputs, lets the hub
//! pack once, and sends the outputs. So a receiver gets one packet for many messages.

mod events;
mod handle;
#[cfg(test)]
mod node_tests;
mod peer;
#[cfg(test)]
mod tests;

pub(crate) use handle::{Census, Numbers, Shard};
pub use handle::{Shards, Stopped};

use crate::clock::Clock;
use crate::match_log_queue::{HubMatch, MatchLogQueue};
use crate::node::{Answer, NodeShard};
use crate::quic::{GOING_DOWN, Quic, QuicEvent};
use crate::recorder::Recorder;
use core::time::Duration;
pub(crate) use events::Directory;
use events::Events;
use handle::{INPUTS_MAX, Input};
use parlor_hub::{Hub, Origin, Output};
use parlor_proto::{ConnectionId, Instant, Packet};
use parlor_transport::CloseCode;
use parlor_transport::alarm::Alarm;
use peer::{Peer, SendResult, Wire};
use rustc_hash::FxHashMap;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

/// Maximum number of inputs before the hub packs, so that a flood does not delay the other members.
const TURN_INPUTS_MAX: usize = 256;
/// How late timers of QUIC may run. On a busy shard packets arrive earlier, and one turn handles both.
const TIMER_SLACK: Duration = Duration::from_millis(2);
/// Maximum wait for goodbyes at a shard's stop.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(1);

/// The task's state.
struct Driver {
    clock: Clock,
    hub: Hub,
    inputs: mpsc::Receiver<Input>,
    /// The shard's own port, if it has one.
    quic: Option<Quic>,
    alarm: Alarm,
    peers: FxHashMap<ConnectionId, Peer>,
    /// Links with a pending event: they accept packets again, or they ended.
    waiting: JoinSet<Waited>,
    events: Events,
    beside: Beside,
    /// When a stopping shard stops waiting.
    stops_at: Option<tokio::time::Instant>,
}

/// What has to do with a shard's rooms beside it.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) recorder: Option<Recorder>,
    pub(crate) match_logs: Option<MatchLogQueue>,
    /// The shard's part in its cluster.
    pub(crate) node: Option<NodeShard>,
}

/// The event of a waiting link.
enum Waited {
    /// The link accepts packets again.
    Writable(ConnectionId),
    /// The link ended after all its packets.
    Parted,
}

/// A shard's inputs, for [`run`].
pub(crate) struct Inputs(mpsc::Receiver<Input>);

/// The handle of a shard, and its inputs.
pub(crate) fn channel() -> (Shard, Inputs) {
    let (sender, inputs) = mpsc::channel(INPUTS_MAX);
    (Shard::new(sender), Inputs(inputs))
}

/// Runs a shard until [`Shard::shut_down`], or until all handles are gone.
pub(crate) async fn run(
    hub: Hub,
    clock: Clock,
    inputs: Inputs,
    quic: Option<Quic>,
    directory: Directory,
    beside: Beside,
) {
    let driver = Driver {
        clock,
        hub,
        inputs: inputs.0,
        quic,
        alarm: Alarm::new(),
        peers: FxHashMap::default(),
        waiting: JoinSet::new(),
        events: Events::new(directory),
        beside,
        stops_at: None,
    };
    driver.run().await;
}

impl Driver {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(TURN_INPUTS_MAX);
        while !self.is_over() {
            let due = self.due();
            tokio::select! {
                taken = self.inputs.recv_many(&mut batch, TURN_INPUTS_MAX) => {
                    if taken == 0 {
                        break;
                    }
                }
                ready = ready(&mut self.quic), if self.quic.is_some() => {
                    if let Err(error) = ready {
                        tracing::error!(%error, "the UDP port is broken");
                        break;
                    }
                }
                Some(waited) = self.waiting.join_next() => self.waited(waited),
                answer = answered(&mut self.beside.node) => self.answered(answer),
                () = self.alarm.until(due.map(tokio::time::Instant::into_std)), if due.is_some() => {}
            }
            while let Some(waited) = self.waiting.try_join_next() {
                self.waited(waited);
            }
            if let Some(node) = &self.beside.node {
                self.hub.handle_view(node.view(), self.clock.now());
            }
            let now = self.clock.now();
            batch.drain(..).for_each(|input| self.take(input, now));
            if let Err(error) = self.take_quic(now) {
                tracing::error!(%error, "the UDP port is broken");
                break;
            }
            self.hub.handle_timeout(now);
            self.hub.flush(now);
            self.carry_out();
            if let Some(quic) = &mut self.quic {
                quic.flush();
            }
        }
        self.end().await;
    }

    async fn end(self) {
        for peer in self.peers.values() {
            peer.close(CloseCode::GOING_AWAY, GOING_DOWN);
        }
        if let Some(recorder) = self.beside.recorder {
            recorder.finish().await;
        }
        if let Some(quic) = self.quic {
            quic.end().await;
        }
    }

    fn due(&mut self) -> Option<tokio::time::Instant> {
        let hub = self.hub.poll_timeout().map(|at| self.clock.timer_at(at));
        let quic = self.quic.as_ref().and_then(Quic::poll_timeout).map(|at| at + TIMER_SLACK);
        [hub, quic, self.stops_at].into_iter().flatten().min()
    }

    fn is_over(&self) -> bool {
        let has_links = self.quic.as_ref().is_some_and(|quic| quic.links() > 0);
        let is_idle = self.peers.is_empty() && self.waiting.is_empty() && !has_links;
        self.stops_at.is_some_and(|at| is_idle || at <= tokio::time::Instant::now())
    }

    /// Handles the events of the shard's own port.
    fn take_quic(&mut self, now: Instant) -> io::Result<()> {
        let Some(quic) = &mut self.quic else { return Ok(()) };
        quic.turn()?;
        while let Some(came) = self.quic.as_mut().and_then(Quic::poll) {
            match came {
                QuicEvent::Link { connection, id, kind, origin } => {
                    self.connected(connection, Wire::Quic(id, kind), origin, now);
                    if let Some(remote) = self.quic.as_ref().and_then(|quic| quic.remote(id)) {
                        self.hub.handle_address(connection, remote, now);
                    }
                }
                QuicEvent::Packet { connection, packet } => self.packets(connection, [packet], now),
                QuicEvent::Moved { connection, remote } => self.hub.handle_address(connection, remote, now),
                QuicEvent::Room { connection } => self.room(connection),
                QuicEvent::End { connection, is_violation } => {
                    self.disconnected(connection, is_violation, now)
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, input: Input, now: Instant) {
        match input {
            Input::Connected { connection, origin, sender } => {
                self.connected(connection, Wire::Link(Arc::new(sender)), origin, now);
            }
            Input::Packets { connection, packets } => self.packets(connection, packets, now),
            Input::Disconnected { connection, is_violation } => {
                self.disconnected(connection, is_violation, now);
            }
            // The requester may be gone; then the answer is dropped.
            Input::Room { code, answer } => drop(answer.send(self.hub.room(code))),
            Input::Rooms { query, answer } => drop(answer.send(self.hub.rooms(&query))),
            Input::Details { code, answer } => drop(answer.send(self.hub.room_details(code))),
            Input::AnnounceMove { code, address, answer } => {
                let _ = answer.send(self.hub.announce_move(code, &address, now));
            }
            Input::CallMoveOff { code } => self.hub.call_move_off(code, now),
            Input::Seal { code, answer } => drop(answer.send(self.hub.seal(code, now))),
            Input::Unseal { code, term } => self.hub.unseal(code, term, now),
            Input::MoveRoom { code, address, answer } => {
                let _ = answer.send(self.hub.move_room(code, address, now));
            }
            Input::EndRoom { code, reason, answer } => {
                let _ = answer.send(self.hub.end_room(code, reason, now));
            }
            Input::RemoveMember { code, member, reason, answer } => {
                let _ = answer.send(self.hub.remove_member(code, member, reason, now));
            }
            Input::RemoveUser { seats, reason, answer } => {
                let _ = answer.send(self.hub.remove_user(&seats, &reason, now));
            }
            Input::Announce { code, listing } => {
                if let Some(room) = self.hub.room(code) {
                    self.events.announce(&room, listing.as_ref());
                }
            }
            Input::Stats { answer } => drop(answer.send(self.hub.stats())),
            Input::ShutDown => self.shut_down(now),
        }
    }

    fn connected(&mut self, connection: ConnectionId, wire: Wire, origin: Origin, now: Instant) {
        self.hub.handle_connected(connection, wire.kind(), origin, now);
        self.peers.insert(connection, Peer::new(wire));
    }

    fn packets(&mut self, connection: ConnectionId, packets: impl IntoIterator<Item = Packet>, now: Instant) {
        // A closed link may deliver more packets until its task learns of it.
        let Some(peer) = self.peers.get_mut(&connection) else { return };
        peer.has_spoken = true;
        packets.into_iter().for_each(|packet| self.hub.handle_packet(connection, packet, now));
    }

    fn disconnected(&mut self, connection: ConnectionId, is_violation: bool, now: Instant) {
        self.peers.remove(&connection);
        if is_violation {
            self.hub.handle_violation(connection, now);
        } else {
            self.hub.handle_disconnected(connection, now);
        }
    }

    /// Handles a full link that accepts packets again.
    fn room(&mut self, connection: ConnectionId) {
        let Some(peer) = self.peers.get_mut(&connection) else { return };
        let sent = peer.send_backlog(&mut self.quic);
        if sent == SendResult::All {
            self.hub.handle_writable(connection, true, self.clock.now());
        }
        self.sent(connection, sent);
    }

    fn shut_down(&mut self, now: Instant) {
        self.stops_at = Some(tokio::time::Instant::now() + DRAIN_TIME);
        self.hub.shut_down(now);
        // A client that sent nothing has no session, so the hub cannot notify it.
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
            Ok(Waited::Writable(connection)) => self.room(connection),
            Ok(Waited::Parted) => {}
            Err(error) => tracing::error!(%error, "a task that waits for a link failed; please report this"),
        }
    }

    /// Passes in an answer of the store.
    fn answered(&mut self, answer: Answer) {
        if let Some(node) = &self.beside.node {
            self.hub.handle_view(node.view(), self.clock.now());
        }
        let now = self.clock.now();
        match answer {
            Answer::Located(connection, located) => self.hub.handle_located(connection, located, now),
            Answer::Entered(connection, entered) => self.hub.handle_entered(connection, entered, now),
            Answer::Claimed(connection, claimed) => self.hub.handle_claimed(connection, claimed, now),
        }
    }

    /// Carries out the hub's outputs.
    fn carry_out(&mut self) {
        while let Some(output) = self.hub.poll_output() {
            match output {
                Output::Packet { connection, packet } => {
                    let Some(peer) = self.peers.get_mut(&connection) else { continue };
                    let sent = peer.send(packet, &mut self.quic);
                    let carries = peer.news_of_path(self.quic.as_ref());
                    self.sent(connection, sent);
                    if let Some(carries) = carries {
                        self.hub.handle_path(connection, carries, self.clock.now());
                    }
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
                    if let Some(recorder) = &mut self.beside.recorder {
                        recorder.record(room, &bytes);
                    }
                }
                Output::Kept { room, code, app, environment, number, entry } => {
                    if let Some(match_logs) = &mut self.beside.match_logs {
                        let of = HubMatch { room, code, app: &app, environment: &environment };
                        match_logs.keep(of, number, entry);
                    }
                }
                Output::Event(hub_event) => {
                    self.events.tell(hub_event, &mut self.peers, self.beside.recorder.as_mut())
                }
                asked @ (Output::Locate { .. }
                | Output::Enter { .. }
                | Output::Claim { .. }
                | Output::Left { .. }) => {
                    if let Some(node) = &mut self.beside.node {
                        node.ask(asked);
                    }
                }
            }
        }
        if let Some(recorder) = &mut self.beside.recorder {
            recorder.hand_over();
        }
    }

    fn sent(&mut self, connection: ConnectionId, sent: SendResult) {
        if let SendResult::Waiting { sender, carrier } = sent {
            // From here on the hub combines this peer's outputs, and newer state replaces older.
            self.hub.handle_writable(connection, false, self.clock.now());
            if let Some(sender) = sender {
                self.waiting.spawn(async move {
                    sender.writable(carrier).await;
                    Waited::Writable(connection)
                });
            }
        }
    }

    /// Closes a link after its remaining packets.
    fn part(&mut self, connection: ConnectionId, code: CloseCode, reason: String) {
        let parting = self.peers.remove(&connection).and_then(|peer| peer.part(&mut self.quic, code, reason));
        if let Some(parting) = parting {
            self.waiting.spawn(async move {
                parting.await;
                Waited::Parted
            });
        }
    }
}

/// Waits for an answer of the store.
async fn answered(node: &mut Option<NodeShard>) -> Answer {
    match node {
        Some(node) => node.answered().await,
        None => core::future::pending().await,
    }
}

async fn ready(quic: &mut Option<Quic>) -> io::Result<()> {
    match quic {
        Some(quic) => quic.ready().await,
        None => core::future::pending().await,
    }
}
