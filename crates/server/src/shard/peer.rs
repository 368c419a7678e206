//! The sending half of a link, and what it did not take yet.

use parlor_proto::{Carrier, Packet, limits};
use parlor_transport::{CloseCode, LinkSender, SendError};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::timeout;

/// A link as the shard sees it.
#[derive(Debug)]
pub(super) struct Peer {
    sender: Arc<LinkSender>,
    /// What the link did not take, oldest first. The hub gives no more while anything is in here, so it holds at most what
    /// one session lets wait.
    backlog: VecDeque<Packet>,
    /// What the hub found wrong with it.
    pub(super) fault: Option<String>,
    /// Whether anything ever came from it.
    pub(super) has_spoken: bool,
}

/// What became of packets.
#[derive(Debug)]
pub(super) enum Sent {
    /// The link took everything.
    All,
    /// Some of it waits already.
    Queued,
    /// The link is full: wait until it takes packets of this carrier.
    Waiting {
        /// The link.
        sender: Arc<LinkSender>,
        /// What it must take.
        carrier: Carrier,
    },
}

impl PartialEq for Sent {
    fn eq(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
    }
}

impl Peer {
    pub(super) fn new(sender: LinkSender) -> Self {
        Peer { sender: Arc::new(sender), backlog: VecDeque::new(), fault: None, has_spoken: false }
    }

    /// Sends a packet, after those that wait.
    pub(super) fn send(&mut self, packet: Packet) -> Sent {
        self.backlog.push_back(packet);
        if self.backlog.len() == 1 { self.send_backlog() } else { Sent::Queued }
    }

    /// Sends what waits, as far as the link takes it.
    pub(super) fn send_backlog(&mut self) -> Sent {
        while let Some(packet) = self.backlog.pop_front() {
            if let Err(packet) = hand_over(&self.sender, packet) {
                let carrier = packet.carrier;
                self.backlog.push_front(packet);
                return Sent::Waiting { sender: Arc::clone(&self.sender), carrier };
            }
        }
        Sent::All
    }

    /// Closes the link at once.
    pub(super) fn close(&self, code: CloseCode, reason: &str) {
        self.sender.close(code, reason);
    }

    /// Closes the link when it has taken what waits for it, or does not in time. The future is over when the link is; the
    /// closing begins now if nothing waits.
    pub(super) fn part(self, code: CloseCode, reason: String) -> impl Future<Output = ()> + Send + 'static {
        let Peer { sender, backlog, .. } = self;
        if backlog.is_empty() {
            sender.close(code, &reason);
        }
        async move {
            if timeout(limits::CLOSE_LINGER, hand_over_all(&sender, backlog)).await.is_err() {
                tracing::debug!(remote = %sender.remote(), "a peer did not take its last packets");
            }
            sender.close(code, &reason);
            sender.closed().await;
        }
    }
}

/// Gives the packet back if the link does not take it now. A link that is over takes everything: its other half tells the
/// shard.
fn hand_over(sender: &LinkSender, packet: Packet) -> Result<(), Packet> {
    match sender.send(packet) {
        Ok(()) | Err(SendError::Closed(_)) => Ok(()),
        Err(SendError::NotWritable(packet)) => Err(packet),
        Err(error @ (SendError::TooLarge { .. } | SendError::NoDatagrams(_))) => {
            debug_assert!(false, "a session keeps to the limits of its link: {error}");
            tracing::error!(remote = %sender.remote(), %error, "a packet could not be sent; please report this");
            Ok(())
        }
    }
}

async fn hand_over_all(sender: &LinkSender, backlog: VecDeque<Packet>) {
    for packet in backlog {
        let mut next = packet;
        while let Err(packet) = hand_over(sender, next) {
            sender.writable(packet.carrier).await;
            next = packet;
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
        let mut peer = Peer::new(sender);
        let mut sent: Vec<u8> = Vec::new();
        let waiting = loop {
            let number = u8::try_from(sent.len()).unwrap();
            sent.push(number);
            match peer.send(packet(number)) {
                Sent::All => {}
                Sent::Queued => panic!("nothing waits before"),
                Sent::Waiting { sender, carrier } => break (sender, carrier),
            }
        };
        assert_eq!(peer.send(packet(200)), Sent::Queued);
        assert_eq!(peer.send(packet(201)), Sent::Queued);
        sent.extend([200, 201]);
        assert_eq!(theirs.recv().await.unwrap().bytes[0], 0);
        waiting.0.writable(waiting.1).await;
        assert!(matches!(peer.send_backlog(), Sent::Waiting { .. }), "there was room for one");
        let parting = tokio::spawn(peer.part(CloseCode::DONE, "over".into()));
        for number in &sent[1..] {
            assert_eq!(theirs.recv().await.unwrap().bytes[0], *number);
        }
        let reason = "over".to_owned();
        assert_eq!(theirs.recv().await, Err(LinkClosed::ByPeer { code: CloseCode::DONE, reason }));
        parting.await.unwrap();
    }
}
