//! Moves that are interrupted at each step: a node is killed, or cut from its store. The room is at one node
//! afterwards, and no message comes twice.

use crate::faults::judges;
use crate::games::Game;
use parlor::TransportPreference;
use parlor_cluster::{Cluster, Gate, Node, Step};
use parlor_testing::within;
use serde_json::Value;
use tokio::task::JoinHandle;

/// A game at the first of three nodes that moves to the second one: the commit of a step of that waits.
struct Interrupted {
    cluster: Cluster,
    nodes: [Node; 3],
    game: Game,
    gate: Gate,
    moving: JoinHandle<(u16, Value)>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const FROM: usize = 0;
const TO: usize = 1;
const THIRD: usize = 2;

/// Three nodes that see each other, and may say that one is dead.
async fn three(cluster: &Cluster) -> [Node; 3] {
    let [a, b, c] = NAMES;
    let nodes: [Node; 3] = tokio::join!(cluster.start(a), cluster.start(b), cluster.start(c)).into();
    for node in &nodes {
        for name in NAMES {
            node.until_sees(name, "serving").await;
        }
    }
    judges(&nodes[THIRD]).await;
    nodes
}

impl Interrupted {
    async fn at(step: Step, transport: TransportPreference) -> Option<Self> {
        let cluster = Cluster::new().await?;
        let nodes = three(&cluster).await;
        let mut game = Game::open(&nodes[FROM], transport).await;
        let gate = cluster.gate(step).await;
        let moving = tokio::spawn(nodes[FROM].moving("HELLO7", NAMES[TO]));
        game.play_while(gate.reached()).await;
        Some(Interrupted { cluster, nodes, game, gate, moving })
    }

    async fn opens_the_gate(&mut self) {
        self.game.play_while(self.gate.open()).await;
    }

    /// Asserts that the room is at one of these nodes, and ends.
    async fn ends(mut self, at: &[usize]) {
        self.moving.abort();
        let asked = &self.nodes[at[0]];
        let place = within(async {
            loop {
                let (status, place) = asked.ask("GET", "/admin/where/HELLO7").await;
                if status == 200 && place["is_served"] == true {
                    return place;
                }
            }
        });
        let place = self.game.play_while(place).await;
        assert!(at.iter().any(|node| place["node"] == NAMES[*node]), "{place}");
        let Interrupted { cluster, nodes, game, .. } = self;
        drop((game, nodes));
        cluster.scratch.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_dies_once_it_gave_a_room_away_takes_nothing_with_it() {
    for transport in [TransportPreference::Quic, TransportPreference::WebSocket] {
        let Some(mut it) = Interrupted::at(Step::Give, transport).await else { return };
        it.nodes[FROM].kill().await;
        it.opens_the_gate().await;
        it.game.goes_on(false).await;
        it.game.heard(true);
        it.ends(&[TO]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_whose_node_dies_before_it_gave_it_away_is_reopened() {
    let Some(mut it) = Interrupted::at(Step::Give, TransportPreference::Quic).await else { return };
    it.nodes[FROM].kill().await;
    it.gate.undo().await;
    it.opens_the_gate().await;
    it.game.goes_on(true).await;
    it.game.heard(false);
    it.ends(&[TO, THIRD]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_goes_on_though_its_old_node_does_not_hear_that_it_was_given_away() {
    let Some(mut it) = Interrupted::at(Step::Give, TransportPreference::Quic).await else { return };
    it.nodes[FROM].relay.cut();
    it.opens_the_gate().await;
    it.game.goes_on(false).await;
    it.nodes[FROM].relay.mend();
    let held = it.nodes[FROM].until("it holds its lease", |nodes| nodes["standing"] == "held");
    it.game.play_while(held).await;
    it.game.goes_on_here().await;
    it.game.heard(true);
    it.ends(&[TO]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_was_not_given_away_goes_on_where_it_is() {
    for transport in [TransportPreference::Quic, TransportPreference::WebSocket] {
        let Some(mut it) = Interrupted::at(Step::Give, transport).await else { return };
        it.gate.undo().await;
        it.opens_the_gate().await;
        let (status, answer) = it.game.play_while(&mut it.moving).await.unwrap();
        assert_eq!(status, 503, "{answer}");
        it.game.goes_on_here().await;
        it.game.heard(true);
        it.ends(&[FROM]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_was_given_to_a_node_that_died_loses_nothing() {
    for transport in [TransportPreference::Quic, TransportPreference::WebSocket] {
        let Some(mut it) = Interrupted::at(Step::Give, transport).await else { return };
        it.nodes[TO].kill().await;
        it.opens_the_gate().await;
        it.game.goes_on(false).await;
        it.game.heard(true);
        it.ends(&[FROM, THIRD]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_whose_new_node_dies_before_it_took_it_loses_nothing() {
    let Some(mut it) = Interrupted::at(Step::Take, TransportPreference::Quic).await else { return };
    it.nodes[TO].kill().await;
    it.gate.undo().await;
    it.opens_the_gate().await;
    it.game.goes_on(false).await;
    it.game.heard(true);
    it.ends(&[FROM, THIRD]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_whose_new_node_dies_once_it_took_it_is_reopened() {
    let Some(mut it) = Interrupted::at(Step::Take, TransportPreference::Quic).await else { return };
    it.nodes[TO].kill().await;
    it.opens_the_gate().await;
    it.game.goes_on(true).await;
    it.game.heard(false);
    it.ends(&[FROM, THIRD]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_reopened_though_its_new_node_does_not_hear_that_it_took_it() {
    let Some(mut it) = Interrupted::at(Step::Take, TransportPreference::Quic).await else { return };
    it.nodes[TO].relay.cut();
    it.opens_the_gate().await;
    it.game.goes_on(true).await;
    it.nodes[TO].relay.mend();
    let held = it.nodes[TO].until("it holds its lease", |nodes| nodes["standing"] == "held");
    it.game.play_while(held).await;
    it.game.goes_on_here().await;
    it.game.heard(false);
    it.ends(&[FROM, TO, THIRD]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_does_not_move_to_a_node_of_another_build() {
    let Some(cluster) = Cluster::new().await else { return };
    let [a, b, c] = three(&cluster).await;
    c.end().await;
    cluster.change_build("b").await;
    a.until("it sees the build", |nodes| {
        let nodes = nodes["nodes"].as_array().unwrap();
        nodes.iter().any(|node| node["build"] == "other")
    })
    .await;
    let mut game = Game::open(&a, TransportPreference::Quic).await;
    let (status, answer) = game.play_while(a.moving("HELLO7", "b")).await;
    assert_eq!(status, 404, "{answer}");
    assert!(answer.to_string().contains("another build"), "{answer}");
    game.goes_on_here().await;
    // Whoever asks the other one is sent to the room.
    let joined = crate::faults::hello(&b, parlor_testing::joining("HELLO7".parse().unwrap(), None));
    let (_, joined) = game.play_while(joined).await;
    assert!(format!("{joined:?}").contains("Redirect"), "{joined:?}");
    drop(game);
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
}
