//! The answering end of the line.

use super::{BODY_BYTES_MAX, Handlers, PATH, Refusal};
use crate::cluster::nodes::NodesView;
use bytes::Bytes;
use core::convert::Infallible;
use core::net::IpAddr;
use core::time::Duration;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parlor_server::embed::lock;
use parlor_transport::{Fingerprint, MutualTls};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections of one node. It asks so many questions at once, and one that ended may not have been noticed yet.
const OF_NODE_MAX: usize = 16;
/// Handshakes at the same time, of one address and of all. A stranger gets no further.
const HANDSHAKES_OF_ADDRESS_MAX: usize = 8;
const HANDSHAKES_MAX: usize = 64;
/// Time limit of a handshake, and of a question's body.
const HANDSHAKE_TIME: Duration = Duration::from_secs(3);
const BODY_TIME: Duration = Duration::from_secs(10);
/// Pause after an error of accept, which usually means no free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An open port.
pub(super) struct Listener {
    pub(super) listener: TcpListener,
    pub(super) tls: MutualTls,
    pub(super) nodes: NodesView,
}

impl Listener {
    /// Answers questions until this is cancelled.
    pub(super) async fn serve(self, handlers: Handlers) {
        let Listener { listener, tls, nodes } = self;
        let handlers = Arc::new(handlers);
        let (handshakes, connections) = (Places::<IpAddr>::default(), Places::<Fingerprint>::default());
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, remote)) => {
                        let ip = remote.ip().to_canonical();
                        // Closed before any byte is read.
                        let Some(place) = handshakes.take(ip, HANDSHAKES_OF_ADDRESS_MAX, HANDSHAKES_MAX) else {
                            continue;
                        };
                        let (tls, handlers, nodes) = (tls.clone(), Arc::clone(&handlers), nodes.clone());
                        let connections = connections.clone();
                        tasks.spawn(async move {
                            match timeout(HANDSHAKE_TIME, tls.accept(stream)).await {
                                Ok(Ok((io, client))) => {
                                    drop(place);
                                    let place = connections.take(client, OF_NODE_MAX, usize::MAX);
                                    if place.is_some() {
                                        answer_all(TokioIo::new(io), client, handlers, nodes).await;
                                    }
                                }
                                Ok(Err(error)) => tracing::debug!(%remote, %error, "a stranger at the line was refused"),
                                Err(_) => tracing::debug!(%remote, "a handshake at the line took too long"),
                            }
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection of another node could not be accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "the task of a line failed; please report this");
                    }
                }
            }
        }
    }
}

/// Answers the questions of a connection while its client is a node.
async fn answer_all<S: parlor_transport::websocket::Io>(
    io: TokioIo<S>,
    client: Fingerprint,
    handlers: Arc<Handlers>,
    mut nodes: NodesView,
) {
    let known = nodes.clone();
    let service = service_fn(move |request| {
        let (handlers, known) = (Arc::clone(&handlers), known.clone());
        async move { Ok::<_, Infallible>(answer(request, client, &handlers, &known).await) }
    });
    let mut connection = core::pin::pin!(http1::Builder::new().serve_connection(io, service));
    loop {
        tokio::select! {
            // An error is one of the other end, which notices it too.
            _ = &mut connection => return,
            () = nodes.changed() => {
                if nodes.get().with_certificate(client).is_none() {
                    return;
                }
            }
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    client: Fingerprint,
    handlers: &Handlers,
    nodes: &NodesView,
) -> Response<Full<Bytes>> {
    let answered = async {
        let from = nodes.get().with_certificate(client).map(|node| node.id.clone());
        let from = from.ok_or_else(|| Refusal::new(403, "no node has this certificate any more"))?;
        let (parts, body) = request.into_parts();
        let kind = parts.uri.path().strip_prefix(PATH);
        let kind = kind.ok_or_else(|| Refusal::new(404, "questions are below /line/v1/"))?;
        let read = timeout(BODY_TIME, Limited::new(body, BODY_BYTES_MAX).collect()).await;
        let read = read.map_err(|_| Refusal::new(408, "the question took too long"))?;
        let body = read.map_err(|error| Refusal::new(413, error.to_string()))?.to_bytes();
        let answer = handlers.answer(kind, from, body).await?;
        if answer.len() > BODY_BYTES_MAX {
            return Err(Refusal::new(507, format!("the answer has {} bytes", answer.len())));
        }
        Ok(answer)
    };
    let (status, body) = match answered.await {
        Ok(body) => (StatusCode::OK, body),
        Err(Refusal { status, body }) => {
            (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body)
        }
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
}

/// Counts what is taken of a bounded number of places, for each key.
struct Places<K>(Arc<Mutex<HashMap<K, usize>>>);

impl<K> Default for Places<K> {
    fn default() -> Self {
        Places(Arc::default())
    }
}

impl<K> Clone for Places<K> {
    fn clone(&self) -> Self {
        Places(Arc::clone(&self.0))
    }
}

/// A taken place.
struct Place<K: Eq + Hash + Copy> {
    key: K,
    places: Places<K>,
}

impl<K: Eq + Hash + Copy> Places<K> {
    /// Takes a place, if the key has fewer than `of_key`, and all together fewer than `of_all`.
    fn take(&self, key: K, of_key: usize, of_all: usize) -> Option<Place<K>> {
        let mut taken = lock(&self.0);
        if taken.values().sum::<usize>() >= of_all || taken.get(&key).is_some_and(|count| *count >= of_key) {
            return None;
        }
        *taken.entry(key).or_default() += 1;
        Some(Place { key, places: self.clone() })
    }
}

impl<K: Eq + Hash + Copy> Drop for Place<K> {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.0);
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_all_of_them_have_so_many_places() {
        let places = Places::default();
        let first: Vec<_> = (0..3).filter_map(|_| places.take('a', 2, 4)).collect();
        assert_eq!(first.len(), 2);
        let others: Vec<_> = ['b', 'c', 'd'].into_iter().filter_map(|key| places.take(key, 2, 4)).collect();
        assert_eq!(others.len(), 2);
        drop(first);
        assert!(places.take('d', 2, 4).is_some());
        drop(others);
        assert!(lock(&places.0).is_empty());
    }
}
