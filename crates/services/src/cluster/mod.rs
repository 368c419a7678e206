//! Nodes of a cluster: servers that share one PostgreSQL store.
//!
//! A server alone has no [`Cluster`] and runs nothing of this.

use crate::online::ClusterConfig;

/// This server as a node of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {}

impl Cluster {
    pub(crate) fn start(config: &ClusterConfig) -> Self {
        tracing::info!(node = %config.node, "this server is a node of a cluster");
        Cluster {}
    }
}
