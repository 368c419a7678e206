//! The attempts of one path: all dials and accepted connections, until both ends agree on one.

use super::accept_filter::Expected;
use super::agree::{be_chosen, choose};
use super::{Attempt, Direct, PathError, Role, tls};
use core::net::SocketAddr;
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use quinn::{Connection, ConnectionId, ServerConfig};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until, timeout};

/// How long the deciding end waits for a connection of its own once it has one from the other end.
const OWN_PATIENCE: Duration = Duration::from_millis(300);

/// Which end dialled a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Here,
    There,
}

type Handshake<'a> = BoxFuture<'a, Result<(Made, Connection), String>>;

/// The state of an attempt.
pub(super) struct Race<'a> {
    direct: &'a Direct,
    attempt: &'a Attempt,
    dialled: usize,
    expected: Expected,
    accepting: Arc<ServerConfig>,
    handshakes: FuturesUnordered<Handshake<'a>>,
    /// The last error.
    last: Option<String>,
}

impl<'a> Race<'a> {
    pub(super) fn new(
        direct: &'a Direct,
        attempt: &'a Attempt,
        dials: Vec<(SocketAddr, ConnectionId)>,
        expected: Expected,
    ) -> Self {
        let dialled = dials.len();
        let handshakes = dials.into_iter().map(|(to, name)| dial(direct, attempt, to, name).boxed());
        Race {
            direct,
            attempt,
            dialled,
            expected,
            accepting: Arc::new(tls::accepting(&direct.own, attempt.peer)),
            handshakes: handshakes.collect(),
            last: None,
        }
    }

    /// Returns the connection that both ends keep. The others are closed.
    pub(super) async fn run(mut self) -> Result<Connection, PathError> {
        let waited = self.attempt.deadline;
        let agreed = match self.attempt.role {
            Role::Dial => timeout(waited, self.decide()).await,
            Role::Accept => timeout(waited, self.follow()).await,
        };
        agreed.map_err(|_| PathError::TimedOut { waited, dialled: self.dialled, last: self.last.take() })
    }

    /// Selects the first connection dialled by this end, or one of the other end if none of its own follows
    /// soon.
    async fn decide(&mut self) -> Connection {
        let mut spare = VecDeque::new();
        let mut spare_at: Option<Instant> = None;
        loop {
            let patience_ends = spare_at.map(|since| since + OWN_PATIENCE);
            let best = tokio::select! {
                (made, connection) = self.next_established() => match made {
                    Made::Here => Some(connection),
                    Made::There => {
                        spare.push_back(connection);
                        spare_at.get_or_insert_with(Instant::now);
                        None
                    }
                },
                () = sleep_until(patience_ends.unwrap_or_else(Instant::now)), if patience_ends.is_some() => {
                    let next = spare.pop_front();
                    spare_at = spare_at.filter(|_| !spare.is_empty());
                    next
                }
            };
            let Some(connection) = best else { continue };
            match choose(&connection, self.attempt.id).await {
                Ok(()) => return connection,
                Err(error) => self.last = Some(error.to_string()),
            }
        }
    }

    /// Selects the connection that the other end announces.
    async fn follow(&mut self) -> Connection {
        let path = self.attempt.id;
        let mut waiting = FuturesUnordered::new();
        loop {
            let over = tokio::select! {
                (_, connection) = self.next_established() => {
                    waiting.push(async move { be_chosen(&connection, path).await.map(|()| connection) });
                    continue;
                }
                Some(over) = waiting.next(), if !waiting.is_empty() => over,
            };
            match over {
                Ok(connection) => return connection,
                Err(error) => self.last = Some(error.to_string()),
            }
        }
    }

    /// Returns the next connection with the peer. Cancel-safe.
    async fn next_established(&mut self) -> (Made, Connection) {
        loop {
            let outcome = tokio::select! {
                Some(incoming) = self.expected.next() => {
                    // The peer dialled this end, so the return path is open for this end's dials.
                    let accepting = Arc::clone(&self.accepting);
                    self.handshakes.push(accept(incoming, accepting).boxed());
                    continue;
                }
                Some(outcome) = self.handshakes.next(), if !self.handshakes.is_empty() => outcome,
                else => core::future::pending().await,
            };
            match outcome {
                Ok((made, connection)) => {
                    self.direct.answered(connection.remote_address());
                    return (made, connection);
                }
                Err(detail) => self.last = Some(detail),
            }
        }
    }
}

async fn dial(
    direct: &Direct,
    attempt: &Attempt,
    to: SocketAddr,
    name: ConnectionId,
) -> Result<(Made, Connection), String> {
    let failed = |detail: String| format!("to {to}: {detail}");
    let socket = direct.dialer.socket(to.is_ipv6()).map_err(|error| failed(error.to_string()))?;
    socket.probes.watch(name);
    let config = tls::dialing(&direct.own, attempt.peer, name);
    // The name is neither checked nor sent: see `tls`.
    let connecting =
        socket.endpoint.connect_with(config, to, "peer").map_err(|error| failed(error.to_string()))?;
    let connection = connecting.await.map_err(|error| failed(error.to_string()))?;
    Ok((Made::Here, connection))
}

async fn accept(incoming: quinn::Incoming, config: Arc<ServerConfig>) -> Result<(Made, Connection), String> {
    let from = incoming.remote_address();
    let failed = |error: quinn::ConnectionError| format!("from {from}: {error}");
    let connection = incoming.accept_with(config).map_err(failed)?.await.map_err(failed)?;
    Ok((Made::There, connection))
}
