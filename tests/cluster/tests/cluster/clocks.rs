//! Nodes whose times of day are wrong.

use crate::faults::judges;
use crate::games::Game;
use parlor::TransportPreference;
use parlor_cluster::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_whose_times_of_day_differ_by_hours_keep_their_leases_and_their_games() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, b, mut c) = tokio::join!(
        cluster.start("a"),
        cluster.start_wrong_by("b", "+1h"),
        cluster.start_wrong_by("c", "-1h")
    );
    for node in [&a, &b, &c] {
        for name in ["a", "b", "c"] {
            node.until_sees(name, "serving").await;
        }
    }
    judges(&a).await;
    let incarnations = (cluster.row("a", "incarnation").await, cluster.row("b", "incarnation").await);
    let mut game = Game::open(&b, TransportPreference::Quic).await;
    let (status, answer) = game.play_while(a.moving("HELLO7", "c")).await;
    assert_eq!(status, 200, "{answer}");
    game.goes_on(false).await;
    game.heard(true);
    game.forget();
    c.kill().await;
    game.goes_on(true).await;
    game.heard(false);
    assert_eq!(
        (cluster.row("a", "incarnation").await, cluster.row("b", "incarnation").await),
        incarnations,
        "neither was said to be gone"
    );
    drop(game);
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
}
