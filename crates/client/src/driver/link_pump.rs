//! Moves packets between a link and a room: for the hub, and for each direct path.

use super::handle::Handle;
use parlor_client_core::{PacketWay, PathId, RoomCore};
use parlor_proto::{Carrier, Instant, Packet};
use parlor_transport::{CloseCode, Link, LinkSender, SendError};
use std::time::Duration;

/// Time that the last packets have to leave.
pub(super) const GOODBYE_PATIENCE: Duration = Duration::from_millis(500);
/// Interval at which the capacity of a link is read.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Packets that are handled at once before their effects are sent.
const BATCH: usize = 64;

/// One end of what a link carries: the session with the hub, or a direct path.
pub(super) trait PacketEndpoint: Sync {
    /// The link is connected.
    fn connected(&self, core: &mut RoomCore, link: &LinkSender, now: Instant);
    /// The link carries so many bytes per second.
    fn carries(&self, core: &mut RoomCore, bytes_per_second: u32);
    /// The direct path; `None` for the link to the hub.
    fn path(&self) -> Option<PathId> {
        None
    }
    /// Returns the next packet to send, if there is one.
    fn poll_packet(&self, core: &mut RoomCore, now: Instant) -> Option<Packet>;
    /// A packet arrived.
    fn handle_packet(&self, core: &mut RoomCore, packet: Packet, now: Instant);
    /// The link is over, and this end did not close it.
    fn lost(&self, core: &mut RoomCore, detail: &str, now: Instant);
    /// Whether this end will send nothing more.
    fn is_finished(&self, core: &RoomCore) -> bool;
    /// Whether this endpoint wants its next link at once. Then its first attempt does not wait for the goodbye of this link.
    fn goes_on(&self, _core: &RoomCore) -> bool {
        false
    }
    /// Whether the link itself goes on, for another endpoint.
    fn keeps_link(&self, _core: &RoomCore) -> bool {
        false
    }
    /// When [`handle_timeout`](Self::handle_timeout) is due.
    fn poll_timeout(&self, core: &RoomCore) -> Option<Instant>;
    /// Time has passed.
    fn handle_timeout(&self, core: &mut RoomCore, now: Instant);
}

/// Carries packets until the endpoint or the link is over. Returns the link if it goes on.
pub(super) async fn pump(shared: &Handle, link: Link, endpoint: &impl PacketEndpoint) -> Option<Link> {
    let mut bell = shared.listen();
    let (sender, mut receiver) = link.split();
    endpoint.connected(&mut shared.lock(), &sender, shared.now());
    shared.wake_others(&mut bell);
    let mut held = None;
    let mut packets = Vec::with_capacity(BATCH);
    let mut looks_at = shared.now();
    loop {
        let due = {
            let mut core = shared.lock();
            let now = shared.now();
            if now >= looks_at {
                looks_at = now + LOOK_EVERY;
                if let Some(carries) = sender.bytes_per_second() {
                    endpoint.carries(&mut core, u32::try_from(carries).unwrap_or(u32::MAX));
                }
            }
            held = held.and_then(|packet| offer(&sender, packet));
            while held.is_none()
                && let Some(packet) = endpoint.poll_packet(&mut core, shared.now())
            {
                shared.log(PacketWay::Sent, endpoint.path(), &packet);
                held = offer(&sender, packet);
            }
            if endpoint.is_finished(&core) && held.is_none() {
                if endpoint.keeps_link(&core) {
                    return Some(Link { sender, receiver });
                }
                break;
            }
            shared.note_claim(&core);
            endpoint.poll_timeout(&core)
        };
        let carrier = held.as_ref().map(|packet: &Packet| packet.carrier);
        tokio::select! {
            received = receiver.recv_many(&mut packets, BATCH) => {
                {
                    let mut core = shared.lock();
                    let now = shared.now();
                    for packet in packets.drain(..) {
                        shared.log(PacketWay::Received, endpoint.path(), &packet);
                        endpoint.handle_packet(&mut core, packet, now);
                    }
                    if let Err(closed) = &received {
                        endpoint.lost(&mut core, &closed.to_string(), now);
                    }
                }
                // A packet that came by one link may leave by another.
                shared.wake_others(&mut bell);
                if received.is_err() {
                    return None;
                }
            }
            () = bell.rung() => {}
            () = shared.sleep_until(due), if due.is_some() => {
                endpoint.handle_timeout(&mut shared.lock(), shared.now());
                shared.wake_others(&mut bell);
            }
            () = sender.writable(carrier.unwrap_or(Carrier::Stream)), if carrier.is_some() => {}
        }
    }
    sender.close(CloseCode::DONE, "session over, or goes on elsewhere");
    let goes_on = endpoint.goes_on(&shared.lock());
    let goodbye = async move {
        // The link needs both halves until it is over.
        let _receiver = receiver;
        let _ = tokio::time::timeout(GOODBYE_PATIENCE, sender.closed()).await;
    };
    part(goes_on, goodbye).await;
    None
}

/// Waits until the link is over; or lets it end in the background if the endpoint goes on: a link that is silent does not answer.
async fn part(goes_on: bool, goodbye: impl Future<Output = ()> + Send + 'static) {
    if goes_on {
        tokio::spawn(goodbye);
    } else {
        goodbye.await;
    }
}

/// Sends a packet; gives it back if the link takes none now. Drops a packet for a link that is over: the receiving half reports the
/// end.
fn offer(sender: &LinkSender, packet: Packet) -> Option<Packet> {
    match sender.send(packet) {
        Ok(()) | Err(SendError::Closed(_)) => None,
        Err(SendError::NotWritable(packet)) => Some(packet),
        Err(error @ (SendError::TooLarge { .. } | SendError::NoDatagrams(_))) => {
            unreachable!("a session packs for its link: {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[tokio::test]
    async fn an_endpoint_that_goes_on_does_not_wait_for_a_goodbye() {
        // A silent link, whose goodbye never ends.
        let mut look = Context::from_waker(Waker::noop());
        assert!(pin!(part(true, pending())).poll(&mut look).is_ready());
        assert!(pin!(part(false, pending())).poll(&mut look).is_pending(), "all others wait for it");
    }
}
