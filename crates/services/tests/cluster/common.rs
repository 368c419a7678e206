//! Nodes on a schema of their own, and what they share.

use core::ops::{Deref, Index};
use parlor_server::Config;
use parlor_server::admission::SigningKey;
use parlor_services::store::Role;
use parlor_services::{ClusterConfig, OnlineConfig, operator_token};
use parlor_testing::{Scratch, Service, TestServer, local, postgres, within};
use parlor_transport::discovery::Registry;
use tempfile::TempDir;

/// What a node's server is told.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) online: OnlineConfig,
}

/// A node.
pub(crate) struct Node(Service);

impl Deref for Node {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

/// Nodes `a`, `b` and so on, on one store.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    pub(crate) scratch: Scratch,
    key: SigningKey,
    folder: TempDir,
}

/// Starts so many nodes, if there is a PostgreSQL.
pub(crate) async fn nodes(count: usize) -> Option<Nodes> {
    nodes_with(count, |_, _| {}).await
}

/// The same, each with a changed configuration: `change` gets its number.
pub(crate) async fn nodes_with(count: usize, change: impl Fn(usize, &mut Setup)) -> Option<Nodes> {
    let scratch = postgres().await?;
    let (key, folder) = (SigningKey::generate().unwrap(), tempfile::tempdir().unwrap());
    key.write_new(&folder.path().join("operator")).unwrap();
    let mut nodes = Nodes { nodes: Vec::new(), scratch, key, folder };
    for _ in 0..count {
        nodes.start(&change).await;
    }
    Some(nodes)
}

impl Nodes {
    /// Starts one more node.
    pub(crate) async fn start(&mut self, change: impl Fn(usize, &mut Setup)) {
        let number = self.nodes.len();
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(folder.path().join("registry"));
        let name = char::from(b'a' + u8::try_from(number).unwrap()).to_string();
        let mut setup = Setup {
            config: Config { registry: Some(registry.clone()), ..local() },
            online: OnlineConfig {
                operator_key: Some(self.folder.path().join("operator.pub")),
                cluster: Some(ClusterConfig::new(name.parse().unwrap())),
                ..OnlineConfig::new(&self.scratch.address)
            },
        };
        change(number, &mut setup);
        let server = parlor_services::start(setup.config, setup.online).await.unwrap();
        self.nodes.push(Node(Service::of(TestServer { server, registry, folder }).await));
    }

    /// A token of an operator of the game, good at each node.
    pub(crate) fn operator(&self, role: Role) -> String {
        operator_token(&self.key, role, "ops", "tanks", "production")
    }

    /// Takes the node that started first out of them.
    pub(crate) fn take_first(&mut self) -> Service {
        self.nodes.remove(0).0
    }

    /// Ends the node with this number. Those after it have one less from here on.
    pub(crate) async fn stop_number(&mut self, number: usize) {
        let Node(service) = self.nodes.remove(number);
        within(service.server.server.shutdown()).await;
    }

    /// Takes the node that started last out of them.
    pub(crate) fn take_last(&mut self) -> Service {
        self.nodes.pop().unwrap().0
    }

    /// Ends the last node.
    pub(crate) async fn stop(&mut self) {
        let Node(service) = self.nodes.pop().unwrap();
        within(service.server.server.shutdown()).await;
    }

    /// Ends them and removes the schema.
    pub(crate) async fn end(self) {
        for Node(service) in self.nodes {
            within(service.server.server.shutdown()).await;
        }
        self.scratch.remove().await;
    }
}

impl Index<usize> for Nodes {
    type Output = Node;

    fn index(&self, number: usize) -> &Node {
        &self.nodes[number]
    }
}
