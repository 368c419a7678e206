//! The UDP port: QUIC connections, by the protocol that they negotiated.

use crate::connection;
use crate::door::Door;
use crate::gate::Gate;
use crate::handshakes::Verdict;
use crate::shard::Shard;
use core::time::Duration;
use parlor_transport::quic::{Accepted, Incoming, Listener};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Takes connections until the listener is closed. Each has a task that ends with this one.
pub(crate) async fn accept(listener: Arc<Listener>, gate: Gate, door: Door, shard: Shard, time: Duration) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            incoming = listener.accept() => {
                let Some(incoming) = incoming else { break };
                // Before any cryptography is done for it.
                match door.handshake(incoming.remote().ip(), incoming.is_proven()) {
                    Verdict::Begin => {}
                    Verdict::Prove => {
                        incoming.ask_for_proof();
                        continue;
                    }
                    Verdict::Refuse => {
                        gate.turn_away();
                        incoming.refuse();
                        continue;
                    }
                }
                match gate.enter() {
                    Some(pass) => {
                        let (door, shard) = (door.clone(), shard.clone());
                        connections.spawn(async move {
                            serve(incoming, &door, &shard, time).await;
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

async fn serve(incoming: Incoming, door: &Door, shard: &Shard, time: Duration) {
    // Boxed, so that the task of a link does not hold the place of its handshake as long as it lives.
    match Box::pin(incoming.handshake_within(time)).await {
        Ok(Accepted::Parlor(link)) => {
            // By the address that the handshake ended with.
            let origin = door.origin(link.remote().ip());
            connection::serve(link, origin, shard).await;
        }
        // The listener offers only what is served here.
        Ok(accepted) => {
            tracing::error!(?accepted, "a protocol without a server was negotiated; please report this")
        }
        Err(error) => tracing::debug!(%error, "a QUIC client did not get in"),
    }
}
