use crate::faults::{hello, room};
use parlor_cluster::Cluster;
use parlor_proto::CloseReason;
use parlor_proto::session::Event;
use parlor_testing::{creating, joining};

#[tokio::test]
async fn a_node_that_is_asked_to_end_drains_until_its_last_room_is_over() {
    let Some(cluster) = Cluster::new().await else { return };
    // A limit that the test does not reach.
    let mut a = cluster.start_with("a", &["--drain-time", "3600"]).await;
    let b = cluster.start("b").await;
    let (host, mut guest, code) = room(&a).await;
    assert_eq!(a.ready().await.0, 200);
    a.signal("TERM").await;
    b.until_sees("a", "draining").await;
    a.until("it drains", |nodes| nodes["standing"] == "draining").await;
    let (status, answer) = a.ready().await;
    assert_eq!((status, &answer["ready"]), (503, &false.into()), "{answer}");
    // It is as before for those who are there, and who come to its rooms.
    let (third, joined) = hello(&a, joining(code, None)).await;
    assert!(matches!(joined, Event::Welcome(_)), "{joined:?}");
    let (_, opened) = hello(&a, creating(None, None, 4)).await;
    assert!(
        matches!(&opened, Event::Rejected(rejected) if format!("{rejected:?}").contains("Redirect")),
        "{opened:?}"
    );
    third.leave().await;
    host.leave().await;
    assert_eq!(guest.closed().await, CloseReason::HostLeft);
    a.ended().await;
    b.until_sees("a", "gone").await;
    b.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test]
async fn a_second_signal_ends_a_draining_node_at_once() {
    let Some(cluster) = Cluster::new().await else { return };
    let mut a = cluster.start_with("a", &["--drain-time", "3600"]).await;
    let (mut host, _guest, _) = room(&a).await;
    a.signal("TERM").await;
    a.until("it drains", |nodes| nodes["standing"] == "draining").await;
    a.signal("TERM").await;
    assert_eq!(host.closed().await, CloseReason::ServerShutdown);
    a.ended().await;
    cluster.scratch.remove().await;
}
