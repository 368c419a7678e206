//! The UDP port: QUIC connections, by the protocol that they negotiated.

use crate::connection;
use crate::gate::Gate;
use crate::shard::Shard;
use parlor_transport::quic::{Accepted, Incoming, Listener};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Takes connections until the listener is closed. Each has a task that ends with this one.
pub(crate) async fn accept(listener: Arc<Listener>, gate: Gate, shard: Shard) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            incoming = listener.accept() => {
                let Some(incoming) = incoming else { break };
                match gate.enter() {
                    Some(pass) => {
                        let shard = shard.clone();
                        connections.spawn(async move {
                            serve(incoming, &shard).await;
                            drop(pass);
                        });
                    }
                    None => incoming.refuse(),
                }
            }
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the task of a QUIC connection failed; please report this");
                }
            }
        }
    }
}

async fn serve(incoming: Incoming, shard: &Shard) {
    match incoming.handshake().await {
        Ok(Accepted::Parlor(link)) => connection::serve(link, shard).await,
        // The listener offers only what is served here.
        Ok(accepted) => {
            tracing::error!(?accepted, "a protocol without a server was negotiated; please report this")
        }
        Err(error) => tracing::debug!(%error, "a QUIC client did not get in"),
    }
}
