//! Nodes that come, go, and have names.

use crate::common::{Nodes, Setup, nodes, nodes_with};
use core::net::Ipv4Addr;
use parlor_server::Config;
use parlor_services::store::OpenError;
use parlor_services::{ClusterConfig, OnlineConfig, OnlineError, StartError};
use parlor_testing::{exchange, local, series_in, within};

/// What the table says of a node: its incarnation and its state.
async fn row(nodes: &Nodes, id: &str) -> (i64, String) {
    let statement = format!("SELECT incarnation, state FROM {}.nodes WHERE id = $1", nodes.scratch.schema);
    let row = nodes.scratch.operator.query_one(&statement, &[&id]).await.unwrap();
    (row.get(0), row.get(1))
}

/// Whether the node's lease has been renewed since this was called.
async fn is_renewed(nodes: &Nodes, id: &str) {
    let statement = format!("SELECT lease_until FROM {}.nodes WHERE id = $1", nodes.scratch.schema);
    let lease =
        async || -> i64 { nodes.scratch.operator.query_one(&statement, &[&id]).await.unwrap().get(0) };
    let before = lease().await;
    within(async {
        while lease().await == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_node_serves_while_it_runs_and_has_an_incarnation_for_each_start() {
    let Some(mut nodes) = nodes(2).await else { return };
    let (first, state) = row(&nodes, "a").await;
    assert_eq!(state, "serving");
    is_renewed(&nodes, "a").await;
    is_renewed(&nodes, "b").await;
    within(nodes.take_last().server.server.shutdown()).await;
    let (left, state) = row(&nodes, "b").await;
    assert_eq!(state, "gone");
    nodes.start(|_, _| {}).await;
    let (again, state) = row(&nodes, "b").await;
    assert_eq!((again > left, state.as_str()), (true, "serving"));
    assert_eq!(row(&nodes, "a").await.0, first, "nobody else is concerned");
    nodes.end().await;
}

#[tokio::test]
async fn a_second_node_of_a_name_is_refused_by_what_to_do() {
    let Some(nodes) = nodes(1).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let online = OnlineConfig {
        cluster: Some(ClusterConfig::new("a".parse().unwrap())),
        ..OnlineConfig::new(&nodes.scratch.address)
    };
    let registry = parlor_transport::discovery::Registry::at(folder.path().join("registry"));
    let config = Config { registry: Some(registry), ..local() };
    let refused = within(parlor_services::start(config, online)).await.err().unwrap();
    let StartError::Online(OnlineError::Store(refused @ OpenError::NodeRuns { .. })) = refused else {
        panic!("{refused}");
    };
    let sentence = refused.to_string();
    assert!(sentence.contains("node a") && sentence.contains("another name"), "{sentence}");
    // The one that runs goes on.
    assert_eq!(row(&nodes, "a").await.1, "serving");
    is_renewed(&nodes, "a").await;
    nodes.end().await;
}

#[tokio::test]
async fn the_alerts_for_a_cluster_ask_for_what_a_node_has() {
    let metrics = |_, setup: &mut Setup| setup.config.metrics = Some((Ipv4Addr::LOCALHOST, 0).into());
    let Some(nodes) = nodes_with(1, metrics).await else { return };
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let figures = exchange(nodes[0].server.server.metrics_addr().unwrap(), request).await;
    let has = |name: &str| {
        let mut lines = figures.body().lines();
        lines.any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
    };
    let alerts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/alerts-cluster.yml");
    let alerts = std::fs::read_to_string(alerts).unwrap();
    let mut asked = 0;
    for name in alerts.lines().filter(|line| line.contains("expr:")).flat_map(series_in) {
        asked += 1;
        assert!(has(name), "there is no {name} for the alerts: {}", figures.body());
    }
    assert!(asked >= 7, "{asked}");
    nodes.end().await;
}
