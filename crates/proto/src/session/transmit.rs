//! The send path: the content of the next packet.

use super::outbox::Packing;
use super::{Session, State};
use crate::limits;
use crate::link::{Carrier, LinkKind, Packet};
use crate::time::{Instant, Tick};
use crate::wire::frame::Frame;
use crate::wire::header::Header;

impl Session {
    /// Returns the next packet for the connection; `None` when nothing is due. Call it only while the
    /// connection is writable, and until it returns `None`. Meanwhile queued messages are combined, and
    /// replaced by newer state.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        let link = self.link?;
        if self.is_finished() {
            return None;
        }
        if matches!(self.state, State::Resuming { .. }) {
            return self.resume_packet();
        }
        let packet = self
            .greeting_apart()
            .or_else(|| self.older_ack(link))
            .or_else(|| if link.has_datagrams() { self.next_apart(now) } else { self.next_combined(now) })?;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += packet.bytes.len() as u64;
        if core::mem::replace(&mut self.messages_spoken, self.stats.messages_sent) != self.stats.messages_sent
        {
            self.spoke_at = Some(now);
        }
        Some(packet)
    }

    /// A Resume frame alone, with an empty header: the other end does not know the session yet.
    fn resume_packet(&mut self) -> Option<Packet> {
        let resume = self.outbox.control.pop_front()?;
        let mut packing = Packing::new(Carrier::Stream, &Header::default());
        packing.put(&resume);
        let packet = packing.finish();
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += packet.bytes.len() as u64;
        Some(packet)
    }

    /// On a link with datagrams: reliable messages on streams, the rest in datagrams.
    fn next_apart(&mut self, now: Instant) -> Option<Packet> {
        // A stream of its own could overtake the Welcome or Close frame.
        let isolates = self.peer_is_open && self.state == State::Open;
        if isolates && self.outbox.next_is_unordered() {
            let mut packing = self.begin(Carrier::Isolated);
            self.outbox.fill_isolated(&mut packing);
            return Some(packing.finish());
        }
        if self.has_greeting() || self.outbox.has_reliable() || self.has_goodbye() {
            let mut packing = self.begin(Carrier::Stream);
            self.fill_greeting(&mut packing);
            self.outbox.fill_reliable(&mut packing, isolates);
            self.fill_goodbye(&mut packing);
            return Some(packing.finish());
        }
        if self.time_due || self.outbox.has_unreliable() {
            let mut packing = self.begin_numbered(Carrier::Datagram);
            self.fill_time(&mut packing, now);
            self.fill_unreliable(&mut packing, now);
            return Some(packing.finish());
        }
        self.is_ack_due(now).then(|| self.begin(Carrier::Datagram).finish())
    }

    /// On a link with one stream: all messages together.
    fn next_combined(&mut self, now: Instant) -> Option<Packet> {
        let is_numbered = self.time_due || self.outbox.has_unreliable();
        let is_due = is_numbered
            || self.has_greeting()
            || self.outbox.has_reliable()
            || self.has_goodbye()
            || self.is_ack_due(now);
        if !is_due {
            return None;
        }
        let mut packing =
            if is_numbered { self.begin_numbered(Carrier::Stream) } else { self.begin(Carrier::Stream) };
        self.fill_greeting(&mut packing);
        self.fill_time(&mut packing, now);
        self.outbox.fill_reliable(&mut packing, false);
        if is_numbered {
            self.fill_unreliable(&mut packing, now);
        }
        self.fill_goodbye(&mut packing);
        Some(packing.finish())
    }

    /// An older acknowledgement that newer packets no longer cover. A link in order needs none.
    fn older_ack(&mut self, link: LinkKind) -> Option<Packet> {
        if !link.has_datagrams() {
            return None;
        }
        let ack = self.received.take_snapshot()?;
        let header = Header { ack: Some(ack), ..self.header(None) };
        Some(Packing::new(Carrier::Datagram, &header).finish())
    }

    fn is_ack_due(&self, now: Instant) -> bool {
        self.ack_due || self.ack_by.is_some_and(|by| by <= now)
    }

    /// A packet with frames that arrive reliably, or whose loss does not matter.
    fn begin(&mut self, carrier: Carrier) -> Packing {
        self.begin_with(carrier, None)
    }

    /// A packet with frames that may be lost: its number lets the peer detect duplicates and acknowledge it.
    fn begin_numbered(&mut self, carrier: Carrier) -> Packing {
        #[allow(clippy::cast_possible_truncation)] // the wire carries the low half
        self.begin_with(carrier, Some(self.in_flight.next_number() as u16))
    }

    fn begin_with(&mut self, carrier: Carrier, sequence: Option<u16>) -> Packing {
        if self.acks_held_from.is_none() || sequence.is_some() {
            self.told_reliable = self.told_reliable.max(self.may_tell_reliable());
        }
        let packing = Packing::new(carrier, &self.header(sequence));
        self.received.acked();
        (self.ack_by, self.ack_due, self.unacked_bytes) = (None, false, 0);
        packing
    }

    fn header(&self, sequence: Option<u16>) -> Header {
        let told = self.told_reliable;
        Header {
            sequence,
            ack: self.received.ack(),
            reliable_ack: (told > 0).then_some(told),
            tick: self.tick.filter(|_| sequence.is_some()).map(Tick::to_wire),
            epoch: self.epoch,
        }
    }

    fn fill_time(&mut self, packing: &mut Packing, now: Instant) {
        if std::mem::take(&mut self.time_due) {
            packing.put(&Frame::Time(self.timesync.frame(now)));
        }
    }

    fn fill_unreliable(&mut self, packing: &mut Packing, now: Instant) {
        let mut fates = Vec::new();
        let parts = self.outbox.fill_unreliable(packing, &mut self.in_flight, &mut fates);
        self.in_flight.note(now, parts, &mut fates);
        self.report(fates);
    }

    fn has_greeting(&self) -> bool {
        self.outbox.control.front().is_some_and(|frame| !matches!(frame, Frame::Close(_)))
    }

    fn fill_greeting(&mut self, packing: &mut Packing) {
        while self.has_greeting()
            && let Some(greeting) = self.outbox.control.pop_front()
        {
            packing.put(&greeting);
        }
    }

    /// The greeting alone, without an acknowledgement, before the messages of an earlier session go on: the other end
    /// takes up that session once it has the greeting.
    fn greeting_apart(&mut self) -> Option<Packet> {
        if !self.greets_apart || !self.has_greeting() {
            return None;
        }
        self.greets_apart = false;
        let header = Header { reliable_ack: None, ..self.header(None) };
        let mut packing = Packing::new(Carrier::Stream, &header);
        self.fill_greeting(&mut packing);
        Some(packing.finish())
    }

    /// Whether the Close frame may be sent, which is the last one.
    fn has_goodbye(&self) -> bool {
        let is_first = matches!(self.outbox.control.front(), Some(Frame::Close(_)));
        is_first && !self.outbox.has_ungiven()
    }

    fn fill_goodbye(&mut self, packing: &mut Packing) {
        if self.has_goodbye()
            && packing.has_room(limits::REASON_BYTES_MAX + 8)
            && let Some(goodbye) = self.outbox.control.pop_front()
        {
            packing.put(&goodbye);
        }
    }
}
