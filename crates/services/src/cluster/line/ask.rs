//! The asking end of the line.

use super::{AskError, BODY_BYTES_MAX, PATH, Refusal};
use crate::cluster::nodes::{LineAddress, NodesView};
use crate::store::NodeName;
use bytes::Bytes;
use core::time::Duration;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use parlor_server::embed::lock;
use parlor_transport::MutualTls;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// Questions to one node at the same time, each on its own connection. Others wait.
const AT_ONCE: usize = 8;

type Sender = SendRequest<Full<Bytes>>;

/// The connections to other nodes.
pub(super) struct Connections {
    tls: MutualTls,
    nodes: NodesView,
    /// By address and certificate: those of an earlier incarnation are of no use.
    peers: Mutex<HashMap<LineAddress, Arc<Peer>>>,
}

/// The connections to one node.
struct Peer {
    places: Semaphore,
    /// One that no question uses.
    kept: Mutex<Option<Sender>>,
}

/// A question that the node did not hear.
struct NotHeard(String);

impl Connections {
    pub(super) fn new(tls: MutualTls, nodes: NodesView) -> Self {
        Connections { tls, nodes, peers: Mutex::default() }
    }

    pub(super) async fn ask(
        &self,
        limit: Duration,
        node: &NodeName,
        kind: &'static str,
        question: Bytes,
    ) -> Result<Bytes, AskError> {
        let deadline = Instant::now() + limit;
        let away = |detail: String| AskError::Away { node: node.clone(), detail };
        let no_answer = |detail: String| AskError::NoAnswer { node: node.clone(), detail };
        let late = || format!("{} ms have passed", limit.as_millis());
        if question.len() > BODY_BYTES_MAX {
            return Err(away(format!("the question has {} bytes, over {BODY_BYTES_MAX}", question.len())));
        }
        let (address, peer) = self.peer(node)?;
        let place = timeout_at(deadline, peer.places.acquire()).await.map_err(|_| away(late()))?;
        let _place = place.map_err(|_| away("it is closed".to_owned()))?;
        let request = || {
            Request::post(format!("{PATH}{kind}"))
                .header(header::HOST, "parlor-node")
                .body(Full::new(question.clone()))
                .expect("kinds are paths")
        };
        let kept = lock(&peer.kept).take();
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect(address, deadline).await.map_err(|NotHeard(detail)| away(detail))?,
        };
        let mut sent = timeout_at(deadline, sender.try_send_request(request())).await;
        // A kept connection may have ended meanwhile. What it did not send is sent over another one.
        if let Ok(Err(error)) = &mut sent
            && error.take_message().is_some()
        {
            sender = self.connect(address, deadline).await.map_err(|NotHeard(detail)| away(detail))?;
            sent = timeout_at(deadline, sender.try_send_request(request())).await;
        }
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(mut error)) => {
                let is_heard = error.take_message().is_none();
                let detail = error.into_error().to_string();
                return Err(if is_heard { no_answer(detail) } else { away(detail) });
            }
            Err(_) => return Err(no_answer(late())),
        };
        let status = response.status();
        let body = timeout_at(deadline, read(response)).await.map_err(|_| no_answer(late()))?;
        let body = body.map_err(no_answer)?;
        // The answer was read to its end, so the next question may follow.
        *lock(&peer.kept) = Some(sender);
        if status.is_success() {
            Ok(body)
        } else {
            Err(AskError::Refused(Refusal { status: status.as_u16(), body }))
        }
    }

    /// The connections to a node. Drops those to nodes that do not serve.
    fn peer(&self, node: &NodeName) -> Result<(LineAddress, Arc<Peer>), AskError> {
        let nodes = self.nodes.get();
        let found = nodes.serving_as(node.as_str()).ok_or_else(|| AskError::NoSuchNode(node.clone()))?;
        let address = found.line.ok_or_else(|| AskError::Away {
            node: node.clone(),
            detail: "its address cannot be read: its build differs".to_owned(),
        })?;
        let mut peers = lock(&self.peers);
        peers.retain(|address, _| nodes.with_certificate(address.fingerprint).is_some());
        let peer = peers
            .entry(address)
            .or_insert_with(|| Arc::new(Peer { places: Semaphore::new(AT_ONCE), kept: Mutex::default() }));
        Ok((address, Arc::clone(peer)))
    }

    async fn connect(&self, address: LineAddress, deadline: Instant) -> Result<Sender, NotHeard> {
        let LineAddress { addr, fingerprint } = address;
        let connecting = async {
            let stream = TcpStream::connect(addr).await.map_err(|error| NotHeard(error.to_string()))?;
            let stream = self.tls.connect(stream, addr, fingerprint).await;
            let stream = stream.map_err(|error| NotHeard(error.to_string()))?;
            let shaken = http1::handshake(TokioIo::new(stream)).await;
            shaken.map_err(|error| NotHeard(error.to_string()))
        };
        let connected = timeout_at(deadline, connecting).await;
        let (sender, connection) = connected.map_err(|_| NotHeard("nothing came in time".to_owned()))??;
        // It ends when its sender is dropped. Its error is that of the question under way.
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// The body of an answer.
async fn read(response: Response<Incoming>) -> Result<Bytes, String> {
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
    body.map(|body| body.to_bytes()).map_err(|error| error.to_string())
}
