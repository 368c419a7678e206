//! An accepted link: forwards its packets to the shard until it ends.

use crate::shard::Shard;
use parlor_hub::Origin;
use parlor_proto::Packet;
use parlor_transport::{Link, LinkClosed};

/// Maximum number of packets of one link in a batch. With the shard's queue this bounds what waits in all.
const BATCH_PACKETS_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Serves a link until it ends. The shard owns the sending half and may close it, which ends this too.
pub(crate) async fn serve(link: Link, origin: Origin, shard: &Shard) {
    let (remote, kind) = (link.remote(), link.kind());
    let (sender, mut receiver) = link.split();
    let Ok(connection) = shard.connected(sender, origin).await else { return };
    tracing::debug!(connection = connection.0, %remote, kind = kind.as_str(), "connected");
    let end = loop {
        let mut packets = Vec::new();
        match receive(&mut receiver, &mut packets).await {
            Ok(()) => {
                if shard.packets(connection, packets).await.is_err() {
                    return;
                }
            }
            Err(end) => break end,
        }
    };
    // A peer's close reason is its own text, so it is logged escaped.
    tracing::debug!(connection = connection.0, end = ?end.to_string(), "disconnected");
    // A stopped shard has already forgotten the connection.
    let _ = shard.disconnected(connection, &end).await;
}

/// Waits for a packet, and takes those that are already there.
async fn receive(
    receiver: &mut parlor_transport::LinkReceiver,
    packets: &mut Vec<Packet>,
) -> Result<(), LinkClosed> {
    let mut bytes = 0;
    receiver.recv_many(packets, 1).await?;
    loop {
        bytes += packets.last().map_or(0, |packet| packet.bytes.len());
        if packets.len() >= BATCH_PACKETS_MAX || bytes >= BATCH_BYTES_MAX {
            return Ok(());
        }
        // The next call reports the end of the link, after these packets.
        let Ok(Some(packet)) = receiver.try_recv() else { return Ok(()) };
        packets.push(packet);
    }
}
