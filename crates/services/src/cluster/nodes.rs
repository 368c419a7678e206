//! The nodes of the cluster, as the store told at the last look.

use crate::store::{NodeLoad, NodeName, NodeRow, NodeState};
use core::net::SocketAddr;
use parlor_transport::Fingerprint;
use parlor_transport::discovery::ServerAddress;
use std::sync::Arc;
use tokio::sync::watch;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) id: NodeName,
    /// Which start of it.
    pub(crate) incarnation: u64,
    pub(crate) state: NodeState,
    /// How long its lease still was at the look.
    pub(crate) lease_left_us: u64,
    /// Where players are sent: `HOST:PORT[#FINGERPRINT]`.
    pub(crate) address: String,
    /// The number of its shards.
    pub(crate) shards: u64,
    /// Where its line is; `None` if no node of this build can read that.
    pub(crate) line: Option<LineAddress>,
    /// Its version.
    pub(crate) build: String,
    pub(crate) load: NodeLoad,
}

impl Node {
    /// Whether it serves. One that is to take no more rooms does.
    pub(crate) fn serves(&self) -> bool {
        self.state != NodeState::Gone
    }
}

/// Where a node's line is, and the certificate that it shows there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineAddress {
    pub(crate) addr: SocketAddr,
    pub(crate) fingerprint: Fingerprint,
}

impl LineAddress {
    /// Its text in the store.
    pub(crate) fn to_text(self) -> String {
        let LineAddress { addr, fingerprint } = self;
        format!("{addr}#{fingerprint}")
    }

    fn parse(text: &str) -> Option<Self> {
        let ServerAddress { host, port, fingerprint } = text.parse().ok()?;
        Some(LineAddress { addr: SocketAddr::new(host.parse().ok()?, port), fingerprint: fingerprint? })
    }
}

/// The nodes at one moment, ordered by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nodes {
    all: Vec<Node>,
}

impl Nodes {
    pub(crate) fn of(rows: Vec<NodeRow>, now_us: u64) -> Self {
        let node = |row: NodeRow| Node {
            state: row.state,
            lease_left_us: row.lease_until_us.saturating_sub(now_us),
            line: LineAddress::parse(&row.facts.line),
            id: row.id,
            incarnation: row.incarnation,
            address: row.facts.address,
            shards: row.facts.shards,
            build: row.facts.build,
            load: row.load,
        };
        Nodes { all: rows.into_iter().map(node).collect() }
    }

    /// All of them, with those that are gone.
    pub(crate) fn all(&self) -> &[Node] {
        &self.all
    }

    /// Those that serve and take what is new.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Node> {
        self.all.iter().filter(|node| node.state == NodeState::Serving)
    }

    /// Those that do what one node does for all: those that take what is new, or all that serve if there are none.
    pub(crate) fn working(&self) -> impl Iterator<Item = &Node> {
        let is_any_open = self.open().next().is_some();
        self.serving().filter(move |node| !is_any_open || node.state == NodeState::Serving)
    }

    /// Those that serve.
    pub(crate) fn serving(&self) -> impl Iterator<Item = &Node> {
        self.all.iter().filter(|node| node.serves())
    }

    /// The node with this name, if it serves.
    pub(crate) fn serving_as(&self, name: &str) -> Option<&Node> {
        let at = self.all.binary_search_by(|node| node.id.as_str().cmp(name)).ok()?;
        Some(&self.all[at]).filter(|node| node.serves())
    }

    /// The node that shows this certificate on its line, if it serves.
    pub(crate) fn with_certificate(&self, fingerprint: Fingerprint) -> Option<&Node> {
        self.serving().find(|node| node.line.is_some_and(|line| line.fingerprint == fingerprint))
    }
}

/// The newest nodes. Cheap to clone and to read.
#[derive(Clone, Debug)]
pub(crate) struct NodesView(watch::Receiver<Arc<Nodes>>);

impl NodesView {
    /// A view, and what updates it.
    pub(crate) fn new() -> (watch::Sender<Arc<Nodes>>, Self) {
        let (sender, receiver) = watch::channel(Arc::default());
        (sender, NodesView(receiver))
    }

    /// The nodes.
    pub(crate) fn get(&self) -> Arc<Nodes> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits for a change of the nodes or their loads. Without further changes it waits forever. Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            core::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NodeFacts;

    fn row(id: &str, line: &str, state: NodeState) -> NodeRow {
        let facts =
            NodeFacts { address: "127.0.0.1:7700".into(), shards: 1, line: line.into(), build: "1".into() };
        NodeRow {
            id: id.parse().unwrap(),
            incarnation: 3,
            state,
            lease_until_us: 5,
            has_lock: true,
            facts,
            load: NodeLoad::default(),
        }
    }

    #[test]
    fn a_node_that_is_gone_is_found_no_more() {
        let certificate = |byte| Fingerprint([byte; 32]);
        let line = |port: u16, byte| LineAddress {
            addr: SocketAddr::from(([127, 0, 0, 1], port)),
            fingerprint: certificate(byte),
        };
        let rows = vec![
            row("a", &line(1, 1).to_text(), NodeState::Serving),
            row("b", &line(2, 2).to_text(), NodeState::Gone),
            row("c", "nonsense", NodeState::Draining),
        ];
        let nodes = Nodes::of(rows, 3);
        assert_eq!(nodes.serving().map(|node| node.id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(nodes.working().map(|node| node.id.as_str()).collect::<Vec<_>>(), ["a"]);
        let draining = vec![row("b", "", NodeState::Gone), row("c", "", NodeState::Draining)];
        let draining = Nodes::of(draining, 3);
        assert_eq!(draining.working().map(|node| node.id.as_str()).collect::<Vec<_>>(), ["c"]);
        let a = nodes.serving_as("a").unwrap();
        assert_eq!((a.line, a.lease_left_us), (Some(line(1, 1)), 2));
        assert_eq!(nodes.serving_as("b"), None);
        assert_eq!(nodes.serving_as("c").unwrap().line, None);
        assert_eq!(nodes.with_certificate(certificate(1)), Some(a));
        assert_eq!(nodes.with_certificate(certificate(2)), None);
        assert_eq!(nodes.all().len(), 3);
    }
}
