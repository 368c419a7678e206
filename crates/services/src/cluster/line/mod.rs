//! The line: questions from node to node, over HTTP/1.1 and TLS 1.3 on a port of their own.
//!
//! Both ends show a certificate that was made at their start. Its fingerprint is in the table of nodes, and the other
//! end accepts no other one: the handshake fails for a stranger, before a byte of HTTP is read.
//!
//! A question is `POST /line/v1/KIND` with a body, and its answer is a body, or a [`Refusal`]. Both are bounded, and
//! so is the time of each question. A question is asked at most once: if its answer is lost, the asker cannot know
//! whether it was heard.

mod ask;
mod serve;

use super::nodes::{LineAddress, NodesView};
use crate::store::NodeName;
use ask::Connections;
use bytes::Bytes;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parlor_transport::{Identity, IdentityError, MutualTls};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serve::Listener;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// Where the questions are, before their kinds.
const PATH: &str = "/line/v1/";
/// Maximum bytes of a question, and of an answer.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// Time limit of a question.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// The answer to a question.
pub(crate) type Answer = Result<Bytes, Refusal>;

/// A refusal of the node that was asked: a status of HTTP, and a body by which the asker knows more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// From 400 to 599.
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Refusal {
    /// A refusal with a sentence for the log of the asker.
    pub(crate) fn new(status: u16, sentence: impl Into<String>) -> Self {
        Refusal { status, body: Bytes::from(sentence.into()) }
    }
}

/// Reads a question that is JSON.
pub(crate) fn read<T: DeserializeOwned>(question: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(question)
        .map_err(|error| Refusal::new(400, format!("the question is wrong: {error}")))
}

/// Writes an answer that is JSON.
pub(crate) fn write(answer: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(answer).map_err(|error| Refusal::new(500, error.to_string()))?;
    Ok(Bytes::from(text))
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum AskError {
    /// No such node serves.
    #[error("no node {0} serves")]
    NoSuchNode(NodeName),
    /// It could not be reached: it did not hear the question.
    #[error("the line to node {node} is away: {detail}")]
    Away {
        /// The node.
        node: NodeName,
        /// Why.
        detail: String,
    },
    /// The answer did not come, or not in time. The node may have heard the question.
    #[error("node {node} did not answer: {detail}")]
    NoAnswer {
        /// The node.
        node: NodeName,
        /// Why.
        detail: String,
    },
    /// The node refused.
    #[error("the node refused with {}: {}", .0.status, String::from_utf8_lossy(&.0.body))]
    Refused(Refusal),
}

/// Why the line could not be opened.
#[derive(Debug, Error)]
pub enum LineError {
    /// Other nodes could not know where it is.
    #[error("the line {0} names no address: give it one of this machine's that the other nodes reach")]
    Unspecified(SocketAddr),
    /// The port is not free.
    #[error("the line {addr} could not be opened: {error}")]
    Port {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// No certificate could be made.
    #[error("the line has no certificate: {0}")]
    Certificate(#[from] IdentityError),
}

/// Answers questions of one kind. It gets the asking node and the question's body.
type Handler = Box<dyn Fn(NodeName, Bytes) -> BoxFuture<'static, Answer> + Send + Sync>;

/// The questions that a node answers.
#[derive(Default)]
pub(crate) struct Handlers(BTreeMap<&'static str, Handler>);

impl Handlers {
    /// Answers questions of this kind, a path without a slash at its ends. A question runs on the line's runtime, and
    /// ends unfinished if its asker goes.
    pub(crate) fn on<F: Future<Output = Answer> + Send + 'static>(
        &mut self,
        kind: &'static str,
        answer: impl Fn(NodeName, Bytes) -> F + Send + Sync + 'static,
    ) {
        self.0.insert(kind, Box::new(move |from, body| answer(from, body).boxed()));
    }

    async fn answer(&self, kind: &str, from: NodeName, body: Bytes) -> Answer {
        match self.0.get(kind) {
            Some(handler) => handler(from, body).await,
            None => {
                Err(Refusal::new(404, format!("this node answers no question {kind:?}: its build differs")))
            }
        }
    }
}

/// A node's end of the lines to all others. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Line(Arc<Inner>);

struct Inner {
    address: LineAddress,
    connections: Connections,
}

/// An open port that answers nothing yet.
pub(crate) struct OpenLine {
    line: Line,
    listener: Listener,
}

impl OpenLine {
    /// Opens the port. `nodes` says who may ask, and where they are asked.
    ///
    /// # Errors
    /// [`LineError`] says what to do.
    pub(crate) async fn open(addr: SocketAddr, nodes: NodesView) -> Result<Self, LineError> {
        if addr.ip().is_unspecified() {
            return Err(LineError::Unspecified(addr));
        }
        let identity = Identity::generate(&["parlor-node"])?;
        let known = nodes.clone();
        let tls = MutualTls::new(&identity, move |shown| known.get().with_certificate(shown).is_some());
        let failed = |error| LineError::Port { addr, error };
        let listener = tokio::net::TcpListener::bind(addr).await.map_err(failed)?;
        let address =
            LineAddress { addr: listener.local_addr().map_err(failed)?, fingerprint: identity.fingerprint() };
        let connections = Connections::new(tls.clone(), nodes.clone());
        let line = Line(Arc::new(Inner { address, connections }));
        Ok(OpenLine { line, listener: Listener { listener, tls, nodes } })
    }

    /// The line, for questions to others.
    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    /// Answers questions until this is cancelled.
    pub(crate) async fn serve(self, handlers: Handlers) {
        self.listener.serve(handlers).await;
    }
}

impl Line {
    /// Where other nodes reach this one.
    pub(crate) fn address(&self) -> LineAddress {
        self.0.address
    }

    /// Asks a node, which must not be this one.
    ///
    /// # Errors
    /// [`AskError`] says whether the node may have heard the question.
    pub(crate) async fn ask(
        &self,
        node: &NodeName,
        kind: &'static str,
        question: Bytes,
    ) -> Result<Bytes, AskError> {
        self.0.connections.ask(ANSWER_TIME, node, kind, question).await
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("address", &self.0.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
