//! Rooms of a node that was killed go on at another one.

use crate::faults::{hello, judges};
use core::time::Duration;
use parlor_cluster::{Cluster, Node};
use parlor_proto::session::{Event, Rejection};
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::handshake::{
    Claim, Hello, Intent, Refusal, ResumeRefusal, RoomKind, RoomSettings, Seat, Welcome, capability,
};
use parlor_proto::{MemberId, RoomCode};
use parlor_testing::{Client, creating, joining, within};
use std::time::Instant;

/// How long a room may take to be open again, on a busy machine.
const OPEN_AGAIN: Duration = Duration::from_secs(5);

/// A member with what it needs to claim its seat.
struct Member {
    client: Client,
    welcome: Welcome,
    seat: Seat,
}

fn moves(hello: Hello) -> Hello {
    Hello { capabilities: capability::MOVES | capability::RETURNS, ..hello }
}

async fn enter(node: &Node, asked: Hello) -> Member {
    let (mut client, event) = hello(node, moves(asked)).await;
    let Event::Welcome(welcome) = event else { panic!("{event:?}") };
    let Event::Seat(seat) = client.event().await else { panic!("a node gives seats") };
    Member { client, welcome: *welcome, seat: *seat }
}

fn claim(seat: &Seat, welcome: &Welcome) -> Hello {
    let claim = Claim {
        pass: seat.pass.clone(),
        token: welcome.resume.expect("seats are kept"),
        term: seat.term,
        room_time_us: Some(60_000_000),
        order: 0,
    };
    moves(Hello::new("tanks", Intent::Claim(Box::new(claim))))
}

/// Claims a seat at a node until the node has an answer.
async fn claim_at(node: &Node, seat: &Seat, welcome: &Welcome) -> Result<Member, Rejection> {
    within(async {
        loop {
            let (mut client, event) = hello(node, claim(seat, welcome)).await;
            match event {
                Event::Welcome(welcome) => {
                    let Event::Seat(seat) = client.event().await else { panic!("a node gives seats") };
                    return Ok(Member { client, welcome: *welcome, seat: *seat });
                }
                Event::Rejected(Rejection::RetryAfter(retry)) => {
                    assert!(retry.after <= Duration::from_secs(1));
                }
                Event::Rejected(rejection) => return Err(rejection),
                event => panic!("{event:?}"),
            }
        }
    })
    .await
}

/// Waits until a room's roster is in the store with so many members.
async fn is_stored(cluster: &Cluster, code: RoomCode, members: i64) {
    let statement = format!(
        "SELECT members FROM {}.live_rooms WHERE code = $1 AND roster IS NOT NULL",
        cluster.scratch.schema
    );
    within(async {
        loop {
            let rows = cluster.scratch.operator.query(&statement, &[&code.as_str()]).await.unwrap();
            if rows.first().is_some_and(|row| row.get::<_, i64>(0) == members) {
                return;
            }
        }
    })
    .await;
}

async fn open_room(cluster: &Cluster, node: &Node, kind: RoomKind) -> Vec<Member> {
    let hello = match kind {
        // A chosen code is not sent to a less busy node.
        RoomKind::Match => creating(None, None, 4),
        _ => creating(Some("HELLO7".parse().unwrap()), None, 4),
    };
    let settings = RoomSettings { kind, ..settings_of(&hello) };
    let mut host = enter(node, Hello { intent: Intent::Create(settings), ..hello }).await;
    let code = host.welcome.code;
    let mut members = Vec::new();
    for _ in 0..2 {
        members.push(enter(node, joining(code, None)).await);
        host.client.joined(1).await;
    }
    is_stored(cluster, code, 3).await;
    std::iter::once(host).chain(members).collect()
}

fn settings_of(hello: &Hello) -> RoomSettings {
    match &hello.intent {
        Intent::Create(settings) => settings.clone(),
        intent => panic!("{intent:?}"),
    }
}

#[tokio::test]
async fn rooms_of_a_killed_node_are_open_again_with_the_same_members() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, mut b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&a).await;
    for (round, kind) in [RoomKind::PlayerHosted, RoomKind::Match].into_iter().enumerate() {
        if round > 0 {
            b = cluster.start("b").await;
            b.until_sees("a", "serving").await;
            a.until_sees("b", "serving").await;
        }
        // The first round's room is at `a` by now, so `b` is the less busy one.
        let members = open_room(&cluster, &b, kind).await;
        let code = members[0].welcome.code;
        assert_eq!(members[0].seat.elsewhere.len(), 1);
        b.kill().await;
        let since = Instant::now();
        let mut claimed = Vec::new();
        for member in &members {
            let again =
                claim_at(&a, &member.seat, &member.welcome).await.unwrap_or_else(|no| panic!("{no:?}"));
            if claimed.is_empty() {
                assert!(since.elapsed() < OPEN_AGAIN, "{:?}", since.elapsed());
            }
            assert_eq!((again.welcome.code, again.welcome.member), (code, member.welcome.member));
            assert_eq!(again.welcome.authority, member.welcome.authority);
            assert_eq!((again.seat.uid, again.seat.term), (member.seat.uid, 2));
            assert!(again.welcome.epoch > member.welcome.epoch);
            let time = again.welcome.now.saturating_since(again.welcome.opened);
            if again.welcome.member == MemberId(0) {
                assert_eq!(time, Duration::from_secs(60), "room time goes on");
            }
            claimed.push(again);
        }
        for Member { client, welcome, .. } in &mut claimed {
            client.joined(3).await;
            assert_eq!(client.control().await, ToMember::Reopened { gap: true, epoch: welcome.epoch });
        }
        let (host, guests) = claimed.split_at_mut(1);
        host[0].client.say("are you there?").await;
        for guest in guests {
            assert_eq!(guest.client.heard().await.1, "are you there?");
        }
        let (_, place) = a.ask("GET", &format!("/admin/where/{code}")).await;
        assert_eq!((&place["node"], &place["term"]), (&"a".into(), &2.into()));
        is_stored(&cluster, code, 3).await;
    }
    a.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test]
async fn threat_39_a_claim_of_a_living_nodes_room_leaves_it_there() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&a).await;
    let mut members = open_room(&cluster, &b, RoomKind::PlayerHosted).await;
    let code = members[0].welcome.code;
    for _ in 0..4 {
        let (_, event) = hello(&a, claim(&members[0].seat, &members[0].welcome)).await;
        assert!(matches!(event, Event::Rejected(Rejection::RetryAfter(_))), "{event:?}");
    }
    let (_, place) = a.ask("GET", &format!("/admin/where/{code}")).await;
    assert_eq!((&place["node"], &place["term"]), (&"b".into(), &1.into()));
    let (host, guests) = members.split_at_mut(1);
    // Itself, the host, and who came after it: the claims were no news to them.
    guests[0].client.joined(3).await;
    host[0].client.say("are you there?").await;
    assert_eq!(guests[0].client.heard().await.1, "are you there?");
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test]
async fn a_draining_node_takes_no_room_of_a_killed_one() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, mut b, c) = (cluster.start("a").await, cluster.start("b").await, cluster.start("c").await);
    judges(&a).await;
    let members = open_room(&cluster, &b, RoomKind::PlayerHosted).await;
    let (status, ordered) = c.ask("POST", "/admin/nodes/c/drain").await;
    assert_eq!(status, 200, "{ordered}");
    c.until("it drains", |nodes| nodes["standing"] == "draining").await;
    b.kill().await;
    c.until_sees("b", "gone").await;
    let Member { seat, welcome, .. } = &members[0];
    let (_, event) = hello(&c, claim(seat, welcome)).await;
    assert!(matches!(event, Event::Rejected(Rejection::RetryAfter(_))), "{event:?}");
    let again = claim_at(&a, seat, welcome).await.unwrap();
    assert_eq!((again.welcome.member, again.seat.term), (welcome.member, 2));
    // From there on it sends members to the room.
    let Member { seat, welcome, .. } = &members[1];
    let (_, event) = hello(&c, claim(seat, welcome)).await;
    assert!(matches!(event, Event::Rejected(Rejection::Redirect(_))), "{event:?}");
    a.end().await;
    c.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test]
async fn a_room_that_ended_is_reopened_by_nobody() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, mut b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&a).await;
    let mut members = open_room(&cluster, &b, RoomKind::PlayerHosted).await;
    let host = members.remove(0);
    host.client.leave().await;
    within(async {
        let statement = format!("SELECT count(*) FROM {}.live_rooms", cluster.scratch.schema);
        while cluster.scratch.operator.query_one(&statement, &[]).await.unwrap().get::<_, i64>(0) > 0 {}
    })
    .await;
    b.kill().await;
    a.until_sees("b", "gone").await;
    let gone = Refusal::Resume { why: ResumeRefusal::Gone };
    for (seat, welcome) in
        members.iter().map(|member| (&member.seat, &member.welcome)).chain([(&host.seat, &host.welcome)])
    {
        let refused = claim_at(&a, seat, welcome).await.err();
        assert_eq!(refused, Some(Rejection::Refused(gone.clone())));
    }
    a.end().await;
    cluster.scratch.remove().await;
}
