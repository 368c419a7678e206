//! A link to which the shard sends, and its unsent packets.

use crate::quic::Quic;
use parlor_proto::{Carrier, LinkKind, Packet, limits};
use parlor_transport::quic::engine::Id;
use parlor_transport::{CloseCode, LinkSender, SendError};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::timeout;

/// The hub is updated when a path's capacity changes by one part in this many.
const PATH_NEWS_PART: u32 = 16;

/// A link as the shard sees it.
#[derive(Debug)]
pub(super) struct Peer {
    wire: Wire,
    /// Packets that the link did not accept, oldest first. The hub sends no more while there are any, so this
    /// holds at most what one session may queue.
    backlog: VecDeque<Packet>,
    /// The fault that the hub found.
    pub(super) fault: Option<String>,
    /// Whether anything arrived from it.
    pub(super) has_spoken: bool,
    /// The path's bytes per second, as last reported to the hub.
    told: Option<u32>,
}

/// How a link is reached.
#[derive(Debug)]
pub(super) enum Wire {
    /// A link with its own tasks.
    Link(Arc<LinkSender>),
    /// A link of the shard's own port: QUIC or WebTransport.
    Quic(Id, LinkKind),
}

/// The result of sending.
#[derive(Debug)]
pub(super) enum SendResult {
    /// The link accepted all packets.
    All,
    /// Some packets wait, and the wait has already begun.
    Queued,
    /// The link is full: wait until it accepts packets of this carrier. The shard's own port reports that by
    /// itself.
    Waiting {
        /// The link, unless it is of the shard's own port.
        sender: Option<Arc<LinkSender>>,
        /// The carrier to wait for.
        carrier: Carrier,
    },
}

impl PartialEq for SendResult {
    fn eq(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
    }
}

impl Wire {
    pub(super) fn kind(&self) -> LinkKind {
        match self {
            Wire::Link(sender) => sender.kind(),
            Wire::Quic(_, kind) => *kind,
        }
    }

    /// Returns the packet if the link does not accept it now. A link that ended accepts everything: the shard
    /// learns of its end elsewhere.
    fn hand_over(&self, packet: Packet, quic: &mut Option<Quic>) -> Result<(), Packet> {
        let sent = match (self, quic) {
            (Wire::Link(sender), _) => sender.send(packet),
            (Wire::Quic(id, _), Some(quic)) => quic.send(*id, packet),
            (Wire::Quic(..), None) => Ok(()),
        };
        settle(sent)
    }
}

impl Peer {
    pub(super) fn new(wire: Wire) -> Self {
        Peer { wire, backlog: VecDeque::new(), fault: None, has_spoken: false, told: None }
    }

    /// Sends a packet, after the queued ones.
    pub(super) fn send(&mut self, packet: Packet, quic: &mut Option<Quic>) -> SendResult {
        if !self.backlog.is_empty() {
            self.backlog.push_back(packet);
            return SendResult::Queued;
        }
        match self.wire.hand_over(packet, quic) {
            Ok(()) => SendResult::All,
            Err(packet) => self.wait(packet),
        }
    }

    /// The path's bytes per second, if it changed enough for the hub.
    pub(super) fn news_of_path(&mut self, quic: Option<&Quic>) -> Option<u32> {
        let carries = match (&self.wire, quic) {
            (Wire::Link(sender), _) => sender.bytes_per_second(),
            (Wire::Quic(id, _), Some(quic)) => quic.bytes_per_second(*id),
            (Wire::Quic(..), None) => None,
        };
        let carries = u32::try_from(carries?).unwrap_or(u32::MAX);
        let is_news = self.told.is_none_or(|told| carries.abs_diff(told) > told / PATH_NEWS_PART);
        is_news.then(|| *self.told.insert(carries))
    }

    /// Sends queued packets, as many as the link accepts.
    pub(super) fn send_backlog(&mut self, quic: &mut Option<Quic>) -> SendResult {
        while let Some(packet) = self.backlog.pop_front() {
            if let Err(packet) = self.wire.hand_over(packet, quic) {
                return self.wait(packet);
            }
        }
        SendResult::All
    }

    fn wait(&mut self, packet: Packet) -> SendResult {
        let carrier = packet.carrier;
        self.backlog.push_front(packet);
        let sender = match &self.wire {
            Wire::Link(sender) => Some(Arc::clone(sender)),
            Wire::Quic(..) => None,
        };
        SendResult::Waiting { sender, carrier }
    }

    /// Closes the link at once. The shard's own port closes its links itself.
    pub(super) fn close(&self, code: CloseCode, reason: &str) {
        if let Wire::Link(sender) = &self.wire {
            sender.close(code, reason);
        }
    }

    /// Closes the link after its queued packets, or at a time limit. The future ends with the link. If
    /// nothing is queued, closing starts at once. A link of the shard's own port needs no future.
    pub(super) fn part(
        self,
        quic: &mut Option<Quic>,
        code: CloseCode,
        reason: String,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        let Peer { wire, backlog, .. } = self;
        match wire {
            Wire::Quic(id, _) => {
                if let Some(quic) = quic {
                    quic.part(id, backlog, code, &reason);
                }
                None
            }
            Wire::Link(sender) => {
                if backlog.is_empty() {
                    sender.close(code, &reason);
                }
                Some(part_link(sender, backlog, code, reason))
            }
        }
    }
}

async fn part_link(sender: Arc<LinkSender>, backlog: VecDeque<Packet>, code: CloseCode, reason: String) {
    if timeout(limits::CLOSE_LINGER, hand_over_all(&sender, backlog)).await.is_err() {
        tracing::debug!(remote = %sender.remote(), "a peer did not take its last packets");
    }
    sender.close(code, &reason);
    sender.closed().await;
}

async fn hand_over_all(sender: &LinkSender, backlog: VecDeque<Packet>) {
    for packet in backlog {
        let mut next = packet;
        while let Err(packet) = settle(sender.send(next)) {
            sender.writable(packet.carrier).await;
            next = packet;
        }
    }
}

/// Returns the packet if the link may accept it later.
fn settle(sent: Result<(), SendError>) -> Result<(), Packet> {
    match sent {
        Ok(()) | Err(SendError::Closed(_)) => Ok(()),
        Err(SendError::NotWritable(packet)) => Err(packet),
        Err(error @ (SendError::TooLarge { .. } | SendError::NoDatagrams(_))) => {
            debug_assert!(false, "a session keeps to the limits of its link: {error}");
            tracing::error!(%error, "a packet could not be sent; please report this");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use parlor_transport::{LinkClosed, memory};

    fn packet(number: u8) -> Packet {
        Packet { carrier: Carrier::Stream, bytes: Bytes::from(vec![number; 30 * 1024]) }
    }

    #[tokio::test]
    async fn what_a_full_link_does_not_take_goes_first_later_and_before_the_goodbye() {
        let (ours, mut theirs) = memory::pair();
        let (sender, _receiver) = ours.split();
        let mut peer = Peer::new(Wire::Link(Arc::new(sender)));
        let mut sent: Vec<u8> = Vec::new();
        let waiting = loop {
            let number = u8::try_from(sent.len()).unwrap();
            sent.push(number);
            match peer.send(packet(number), &mut None) {
                SendResult::All => {}
                SendResult::Queued => panic!("nothing waits before"),
                SendResult::Waiting { sender, carrier } => break (sender.unwrap(), carrier),
            }
        };
        assert_eq!(peer.send(packet(200), &mut None), SendResult::Queued);
        assert_eq!(peer.send(packet(201), &mut None), SendResult::Queued);
        sent.extend([200, 201]);
        assert_eq!(theirs.recv().await.unwrap().bytes[0], 0);
        waiting.0.writable(waiting.1).await;
        assert!(matches!(peer.send_backlog(&mut None), SendResult::Waiting { .. }), "there was room for one");
        let parting = tokio::spawn(peer.part(&mut None, CloseCode::DONE, "over".into()).unwrap());
        for number in &sent[1..] {
            assert_eq!(theirs.recv().await.unwrap().bytes[0], *number);
        }
        let reason = "over".to_owned();
        assert_eq!(theirs.recv().await, Err(LinkClosed::ByPeer { code: CloseCode::DONE, reason }));
        parting.await.unwrap();
    }
}
