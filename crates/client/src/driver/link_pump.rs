//! Moves packets between a link and a room: for the hub, and for each direct path.

use super::handle::Handle;
use parlor_client_core::RoomCore;
use parlor_proto::{Carrier, Instant, Packet};
use parlor_transport::{CloseCode, Link, LinkSender, SendError};
use std::time::Duration;

/// How long the last packets may take to leave.
pub(super) const GOODBYE_PATIENCE: Duration = Duration::from_millis(500);
/// How often it is looked what a link carries.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Packets taken at once before what they caused is sent.
const BATCH: usize = 64;

/// What a link carries packets for: the session with the hub, or a direct path.
pub(super) trait PacketEndpoint: Sync {
    /// The link stands.
    fn connected(&self, core: &mut RoomCore, link: &LinkSender, now: Instant);
    /// The link carries so many bytes per second.
    fn carries(&self, core: &mut RoomCore, bytes_per_second: u32);
    /// The next packet that leaves, if there is one.
    fn poll_packet(&self, core: &mut RoomCore, now: Instant) -> Option<Packet>;
    /// A packet came.
    fn handle_packet(&self, core: &mut RoomCore, packet: Packet, now: Instant);
    /// The link is over, and not because this end closed it.
    fn lost(&self, core: &mut RoomCore, detail: &str, now: Instant);
    /// Whether nothing more will leave.
    fn is_finished(&self, core: &RoomCore) -> bool;
    /// Whether the next link of this endpoint is wanted at once: then nobody waits for the goodbye of the last.
    fn goes_on(&self, _core: &RoomCore) -> bool {
        false
    }
    /// When [`handle_timeout`](Self::handle_timeout) is due.
    fn poll_timeout(&self, core: &RoomCore) -> Option<Instant>;
    /// Time has passed.
    fn handle_timeout(&self, core: &mut RoomCore, now: Instant);
}

/// Carries packets until the endpoint or the link is over.
pub(super) async fn pump(shared: &Handle, link: Link, endpoint: &impl PacketEndpoint) {
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
                held = offer(&sender, packet);
            }
            if endpoint.is_finished(&core) && held.is_none() {
                break;
            }
            endpoint.poll_timeout(&core)
        };
        let carrier = held.as_ref().map(|packet: &Packet| packet.carrier);
        tokio::select! {
            received = receiver.recv_many(&mut packets, BATCH) => {
                {
                    let mut core = shared.lock();
                    let now = shared.now();
                    packets.drain(..).for_each(|packet| endpoint.handle_packet(&mut core, packet, now));
                    if let Err(closed) = &received {
                        endpoint.lost(&mut core, &closed.to_string(), now);
                    }
                }
                // What came by one way may leave by another.
                shared.wake_others(&mut bell);
                if received.is_err() {
                    return;
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
    let parted = async move {
        // Both halves are there until the link is over.
        let _receiver = receiver;
        let _ = tokio::time::timeout(GOODBYE_PATIENCE, sender.closed()).await;
    };
    if goes_on {
        tokio::spawn(parted);
    } else {
        parted.await;
    }
}

/// Hands a packet over; gives it back if the link takes none now. One for a link that is over goes nowhere: the
/// receiving half tells of the end.
fn offer(sender: &LinkSender, packet: Packet) -> Option<Packet> {
    match sender.send(packet) {
        Ok(()) | Err(SendError::Closed(_)) => None,
        Err(SendError::NotWritable(packet)) => Some(packet),
        Err(error @ (SendError::TooLarge { .. } | SendError::NoDatagrams(_))) => {
            unreachable!("a session packs for its link: {error}")
        }
    }
}
