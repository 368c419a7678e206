use core::time::Duration;
use parlor_cluster::{Cluster, Node, Postgres};
use parlor_proto::RoomCode;
use parlor_proto::session::{Event, Rejection};
use parlor_proto::wire::handshake::Hello;
use parlor_testing::{Client, creating, dial, joining, within};
use parlor_transport::discovery::ServerAddress;
use std::time::Instant;

/// How long a node may take to notice what happened to it: its lease, and a moment for a busy machine.
const NOTICED: Duration = Duration::from_secs(10);

/// Says hello to a node.
pub(crate) async fn hello(node: &Node, hello: Hello) -> (Client, Event) {
    let nodes = node.nodes().await;
    let own = nodes["nodes"].as_array().unwrap().iter().find(|own| own["id"] == node.name.as_str()).unwrap();
    let address: ServerAddress = own["address"].as_str().unwrap().parse().unwrap();
    let mut client = Client::new(dial(node.addr(), address.fingerprint.unwrap()).await.unwrap(), hello);
    let event = client.event().await;
    (client, event)
}

/// A room of a host and a guest at a node that holds its lease.
pub(crate) async fn room(node: &Node) -> (Client, Client, RoomCode) {
    // A chosen code is not sent to a less busy node.
    let chosen = "HELLO7".parse().unwrap();
    let (mut host, opened) = hello(node, creating(Some(chosen), None, 4)).await;
    assert!(matches!(opened, Event::Welcome(_)), "{opened:?}");
    let (mut guest, joined) = hello(node, joining(chosen, None)).await;
    assert!(matches!(joined, Event::Welcome(_)), "{joined:?}");
    host.joined(2).await;
    guest.joined(2).await;
    (host, guest, chosen)
}

/// Asserts that a room's members hear each other.
async fn goes_on(host: &mut Client, guest: &mut Client) {
    host.say("are you there?").await;
    assert_eq!(guest.heard().await.1, "are you there?");
    guest.say("yes").await;
    assert_eq!(host.heard().await.1, "yes");
}

/// Whether a node admits nobody and opens nothing.
async fn decides_nothing(node: &Node, code: RoomCode) {
    for asked in [creating(None, None, 4), joining(code, None)] {
        let (_, event) = hello(node, asked).await;
        assert!(matches!(event, Event::Rejected(Rejection::RetryAfter(_))), "{event:?}");
    }
}

#[tokio::test]
async fn a_killed_node_is_gone_within_a_second_and_a_bit() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, mut b) = (cluster.start("a").await, cluster.start("b").await);
    a.until_sees("b", "serving").await;
    // It judges others once its own heartbeats were answered for as long as a lease is.
    judges(&a).await;
    let (_host, _guest, code) = room(&b).await;
    b.kill().await;
    let since = Instant::now();
    a.until_sees("b", "gone").await;
    assert!(since.elapsed() < Duration::from_secs(3), "before its lease was over: by its lock");
    // Its room is not said to be nowhere: it may come back.
    let (_, joined) = hello(&a, joining(code, None)).await;
    assert!(matches!(joined, Event::Rejected(Rejection::RetryAfter(_))), "{joined:?}");
    let (_, place) = a.ask("GET", &format!("/admin/where/{code}")).await;
    assert_eq!((&place["node"], &place["is_served"]), (&"b".into(), &false.into()));
    let again = cluster.start("b").await;
    a.until_sees("b", "serving").await;
    again.end().await;
    a.until_sees("b", "gone").await;
    a.end().await;
    cluster.scratch.remove().await;
}

/// Waits until a node's heartbeats were answered for as long as a lease is.
pub(crate) async fn judges(node: &Node) {
    let since = Instant::now();
    node.until("it has its lease for 4 s", |nodes| {
        nodes["standing"] == "held" && since.elapsed() > Duration::from_secs(4)
    })
    .await;
}

#[tokio::test]
async fn threat_34_a_node_that_was_stopped_decides_nothing_until_it_has_asked() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&b).await;
    let incarnation = cluster.row("a", "incarnation").await;
    let (mut host, mut guest, code) = room(&a).await;
    a.signal("STOP").await;
    b.until_sees("a", "gone").await;
    assert!(cluster.row("a", "incarnation").await > incarnation);
    // Nobody may answer for it: its way to the store is cut before it goes on.
    a.relay.cut();
    a.signal("CONT").await;
    let standing = a.nodes().await["standing"].clone();
    assert!(standing == "lapsed" || standing == "ousted", "{standing}");
    decides_nothing(&a, code).await;
    // Its members go on.
    goes_on(&mut host, &mut guest).await;
    a.relay.mend();
    a.until("it is a node again", |nodes| nodes["standing"] == "held").await;
    assert!(cluster.row("a", "incarnation").await > incarnation + 1);
    // Its room is its own again, and found from the other node.
    let place = within(async {
        loop {
            let (status, place) = b.ask("GET", &format!("/admin/where/{code}")).await;
            assert_eq!(status, 200, "{place}");
            if place["is_served"] == true {
                return place;
            }
        }
    })
    .await;
    assert_eq!((&place["node"], &place["term"]), (&"a".into(), &2.into()));
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test]
async fn a_node_without_its_store_relays_and_decides_nothing_and_a_return_declares_nobody_gone() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&a).await;
    let incarnations = (cluster.row("a", "incarnation").await, cluster.row("b", "incarnation").await);
    let (mut host, mut guest, code) = room(&a).await;
    let since = Instant::now();
    a.relay.cut();
    b.relay.cut();
    for node in [&a, &b] {
        node.until("it has lapsed", |nodes| nodes["standing"] == "lapsed").await;
    }
    assert!(since.elapsed() < NOTICED, "{:?}", since.elapsed());
    decides_nothing(&a, code).await;
    goes_on(&mut host, &mut guest).await;
    // Until both leases are over in the store.
    within(async {
        let lease = "lease_until - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        while cluster.row("a", lease).await > 0 || cluster.row("b", lease).await > 0 {}
    })
    .await;
    a.relay.mend();
    b.relay.mend();
    for node in [&a, &b] {
        node.until("it has its lease again", |nodes| nodes["standing"] == "held").await;
    }
    judges(&a).await;
    assert_eq!(
        (cluster.row("a", "incarnation").await, cluster.row("b", "incarnation").await),
        incarnations,
        "each gave the other the time to come back"
    );
    let (_third, event) = hello(&a, joining(code, None)).await;
    assert!(matches!(event, Event::Welcome(_)), "{event:?}");
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test]
async fn a_lost_lock_is_taken_again_and_the_node_goes_on() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&b).await;
    let (mut host, mut guest, code) = room(&a).await;
    assert_eq!(cluster.end_lock_session("a").await, 1);
    goes_on(&mut host, &mut guest).await;
    let (_third, _) = within(async {
        loop {
            match hello(&a, joining(code, None)).await {
                (guest, Event::Welcome(welcome)) => return (guest, welcome),
                (_, Event::Rejected(Rejection::RetryAfter(_))) => {}
                (_, event) => panic!("{event:?}"),
            }
        }
    })
    .await;
    host.joined(1).await;
    a.until("it has its lease", |nodes| nodes["standing"] == "held").await;
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test]
async fn a_restart_of_the_database_ends_no_room_and_declares_nobody_gone() {
    let Some(mut server) = Postgres::start().await else { return };
    let mut cluster = Cluster::at(&server).await;
    let (a, b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&a).await;
    let incarnations = (cluster.row("a", "incarnation").await, cluster.row("b", "incarnation").await);
    let (mut host, mut guest, code) = room(&a).await;
    server.restart().await;
    cluster.connect_again(&server).await;
    for node in [&a, &b] {
        node.until("it has lapsed", |nodes| nodes["standing"] == "lapsed").await;
    }
    // All locks were free at once.
    decides_nothing(&a, code).await;
    goes_on(&mut host, &mut guest).await;
    for node in [&a, &b] {
        node.until("it has its lease again", |nodes| nodes["standing"] == "held").await;
    }
    let up_ms = cluster.database_up_ms().await;
    assert!(up_ms >= 3_000, "decided after {up_ms} ms: nobody is sure of the locks yet");
    judges(&b).await;
    assert_eq!((cluster.row("a", "incarnation").await, cluster.row("b", "incarnation").await), incarnations);
    let (_third, joined) = hello(&a, joining(code, None)).await;
    assert!(matches!(joined, Event::Welcome(_)), "{joined:?}");
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
    server.end().await;
}

#[tokio::test]
async fn a_cut_line_delays_questions_between_nodes_and_nothing_else() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, b) = (cluster.start("a").await, cluster.start("b").await);
    a.until_sees("b", "serving").await;
    b.until_sees("a", "serving").await;
    let line = cluster.relay_line("a").await;
    let (mut host, mut guest, code) = room(&a).await;
    let path = format!("/admin/live/{code}");
    // It asks `a`, which has the room.
    let until = async |status: u16| {
        within(async { while b.ask("GET", &path).await.0 != status {} }).await;
    };
    until(200).await;
    line.cut();
    // Once `b` has read the other way to `a`, its questions are not heard.
    until(503).await;
    goes_on(&mut host, &mut guest).await;
    for node in [&a, &b] {
        let nodes = node.nodes().await;
        assert_eq!(nodes["standing"], "held", "{nodes}");
        let all = nodes["nodes"].as_array().unwrap();
        assert!(all.iter().all(|node| node["state"] == "serving"), "{nodes}");
    }
    // Rooms are found in the store.
    let (_, joined) = hello(&b, joining(code, None)).await;
    assert!(matches!(joined, Event::Rejected(Rejection::Redirect(_))), "{joined:?}");
    line.mend();
    until(200).await;
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
}
