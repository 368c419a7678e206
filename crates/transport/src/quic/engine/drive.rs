//! The engine's use of the library: datagrams in, events, packets out.

use super::connection::{Connection, Events};
use super::inbound::Budget;
use super::port::Blocked;
use super::{EVENTS_MAX, Engine, Event, Id, Incoming};
use crate::closed::{CloseCode, LinkClosed};
use bytes::BytesMut;
use quinn::udp::RecvMeta;
use quinn_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Transmit};
use std::time::Instant;

/// Maximum packets of one connection in a flush; the rest follows in the next.
const FLUSH_TRANSMITS_MAX: usize = 32;
/// Maximum polls of a connection in one flush, after sent packets made room.
const FLUSH_ROUNDS_MAX: usize = 4;

/// The error for a link whose end the owner knows already.
pub(super) fn unknown() -> LinkClosed {
    LinkClosed::Local { code: CloseCode::DONE, reason: String::new() }
}

impl Engine {
    /// Handles one of the port's reads.
    pub(super) fn take_read(&mut self, at: usize, now: Instant) {
        let (meta, bytes) = self.port.read(at);
        let mut bytes = BytesMut::from(bytes);
        while !bytes.is_empty() {
            let datagram = bytes.split_to(meta.stride.clamp(1, bytes.len()));
            self.take_datagram(&meta, datagram, now);
        }
    }

    fn take_datagram(&mut self, meta: &RecvMeta, datagram: BytesMut, now: Instant) {
        let mut response = Vec::new();
        let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        match self.endpoint.handle(now, meta.addr, meta.dst_ip, ecn, datagram, &mut response) {
            Some(DatagramEvent::ConnectionEvent(ConnectionHandle(slot), event)) => {
                if let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) {
                    connection.came(event, now);
                    let id = connection.id;
                    if let Some(remote) = connection.moved() {
                        self.events.push_back(Event::Moved { id, remote });
                    }
                    self.touch(id.slot);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.arrived(incoming),
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit, &response),
            None => {}
        }
    }

    fn arrived(&mut self, incoming: quinn_proto::Incoming) {
        if self.is_shut {
            self.turn_away(incoming);
        } else if self.stats.half_open >= self.limits.refuse_above {
            self.stats.refused += 1;
            self.turn_away(incoming);
        } else if self.stats.half_open >= self.limits.retry_above && incoming.may_retry() {
            self.stats.retried += 1;
            self.retry(incoming);
        } else {
            self.stats.half_open += 1;
            self.events.push_back(Event::Incoming(Incoming(Box::new(incoming))));
        }
    }

    pub(super) fn turn_away(&mut self, incoming: quinn_proto::Incoming) {
        let mut response = Vec::new();
        let transmit = self.endpoint.refuse(incoming, &mut response);
        self.respond(&transmit, &response);
    }

    pub(super) fn retry(&mut self, incoming: quinn_proto::Incoming) {
        let mut response = Vec::new();
        match self.endpoint.retry(incoming, &mut response) {
            Ok(transmit) => self.respond(&transmit, &response),
            Err(error) => {
                tracing::debug!("a client that has shown its address was asked to; it is turned away");
                self.turn_away(error.into_incoming());
            }
        }
    }

    /// Sends the library's answer to a peer without a connection. If the system refuses it, it is lost: the
    /// peer retries.
    pub(super) fn respond(&mut self, transmit: &Transmit, bytes: &[u8]) {
        if let Err(Blocked) = self.port.send(transmit, bytes) {
            tracing::debug!(to = %transmit.destination, "an answer to a stranger was not sent");
        }
    }

    /// Handles a connection's events and received packets.
    pub(super) fn process(&mut self, slot: u32, now: Instant) {
        let Some(connection) = slot_of(&mut self.connections, slot) else { return };
        let is_drained = exchange(&mut self.endpoint, connection);
        listen(connection, now, &mut self.events, &mut self.stats.half_open);
        let budget = match self.events.len() {
            _ if is_drained => Budget::ALL,
            EVENTS_MAX.. => Budget::NONE,
            _ => Budget::TURN,
        };
        let was_handshaking = connection.is_handshaking();
        let has_more = connection.read(budget, now, &mut self.events);
        self.stats.half_open -= usize::from(was_handshaking && !connection.is_handshaking());
        if is_drained {
            self.timers.remove(slot, &mut connection.timer);
            self.connections[slot as usize] = None;
        } else if has_more {
            self.come_again(slot);
        }
    }

    /// Sends a connection's queued packets. If the port refuses, the packet is held and the connection stays
    /// queued.
    pub(super) fn flush_one(&mut self, slot: u32, now: Instant) -> Result<(), Blocked> {
        for _ in 0..FLUSH_ROUNDS_MAX {
            let Some(connection) = slot_of(&mut self.connections, slot) else { return Ok(()) };
            connection.pump(now, &mut self.events);
            if !self.transmit(slot, now)? {
                self.come_again(slot);
                break;
            }
            let Some(connection) = slot_of(&mut self.connections, slot) else { return Ok(()) };
            let half_open = &mut self.stats.half_open;
            let has_said = listen(connection, now, &mut self.events, half_open);
            let was_handshaking = connection.is_handshaking();
            let has_ended = connection.conclude(now, &mut self.events);
            *half_open -= usize::from(was_handshaking && has_ended);
            if !has_said && !has_ended {
                break;
            }
        }
        if let Some(connection) = slot_of(&mut self.connections, slot) {
            connection.is_touched = false;
            let due = connection.due(now);
            self.timers.advance(slot, &mut connection.timer, due);
        }
        Ok(())
    }

    /// Sends the library's packets. Returns `false` if it has more than its share.
    fn transmit(&mut self, slot: u32, now: Instant) -> Result<bool, Blocked> {
        let Some(connection) = slot_of(&mut self.connections, slot) else { return Ok(true) };
        for _ in 0..FLUSH_TRANSMITS_MAX {
            self.out.clear();
            let Some(transmit) =
                connection.library.poll_transmit(now, self.port.segments_max(), &mut self.out)
            else {
                return Ok(true);
            };
            if let Err(blocked) = self.port.send(&transmit, &self.out) {
                self.held = Some(transmit);
                return Err(blocked);
            }
            if connection.has_said_all(&transmit) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Queues the connection for the next turn.
    pub(super) fn come_again(&mut self, slot: u32) {
        if let Some(connection) = slot_of(&mut self.connections, slot)
            && !connection.is_unread
        {
            connection.is_unread = true;
            self.unread.push(slot);
        }
    }

    pub(super) fn touch(&mut self, slot: u32) {
        if let Some(connection) = slot_of(&mut self.connections, slot)
            && !connection.is_touched
        {
            connection.is_touched = true;
            self.touched.push(slot);
        }
    }

    pub(super) fn slot(&mut self, slot: u32) -> Option<&mut Connection> {
        slot_of(&mut self.connections, slot)
    }

    pub(super) fn connection(&mut self, id: Id) -> Option<&mut Connection> {
        self.slot(id.slot).filter(|connection| connection.id == id)
    }

    pub(super) fn peek(&self, id: Id) -> Option<&Connection> {
        let connection = self.connections.get(id.slot as usize)?.as_deref();
        connection.filter(|connection| connection.id == id)
    }

    /// Drops events that the owner does not poll.
    pub(super) fn drop_events(&mut self) {
        while let Some(event) = self.events.pop_front() {
            if let Event::Incoming(incoming) = event {
                self.stats.half_open -= 1;
                self.endpoint.ignore(*incoming.0);
            }
        }
    }
}

fn slot_of(connections: &mut [Option<Box<Connection>>], slot: u32) -> Option<&mut Connection> {
    connections.get_mut(slot as usize)?.as_deref_mut()
}

/// Exchanges events between a connection and the library's endpoint. Returns whether the connection is
/// drained.
fn exchange(endpoint: &mut Endpoint, connection: &mut Connection) -> bool {
    let handle = ConnectionHandle(connection.id.slot as usize);
    let mut is_drained = false;
    while let Some(event) = connection.library.poll_endpoint_events() {
        is_drained |= event.is_drained();
        if let Some(event) = endpoint.handle_event(handle, event) {
            connection.library.handle_event(event);
        }
    }
    is_drained
}

/// Handles a connection's events. Returns whether there were any.
fn listen(connection: &mut Connection, now: Instant, events: &mut Events, half_open: &mut usize) -> bool {
    let was_handshaking = connection.is_handshaking();
    let has_said = connection.listen(now, events);
    *half_open -= usize::from(was_handshaking && !connection.is_handshaking());
    has_said
}
