//! Rooms in the server's own process: their links need no socket.

use crate::access::Access;
use crate::connection;
use crate::shard::Shard;
use core::future::pending;
use core::net::Ipv4Addr;
use parlor_transport::inside::Entrance;
use tokio::task::JoinSet;

/// Accepts links. Each has a task that ends with this one. They do not count against the limit of
/// connections: their process could start any number of servers.
pub(crate) async fn accept(mut entrance: Entrance, access: Access, shard: Shard) {
    let mut links = JoinSet::new();
    loop {
        tokio::select! {
            link = entrance.next() => {
                // All senders are gone. Existing links go on.
                let Some(link) = link else { break };
                let (origin, shard) = (access.origin(Ipv4Addr::LOCALHOST.into()), shard.clone());
                links.spawn(async move { connection::serve(link, origin, &shard).await });
            }
            Some(ended) = links.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the task of a link of this process failed; please report this");
                }
            }
        }
    }
    while links.join_next().await.is_some() {}
    pending().await
}
