//! Rooms in memory that every node finds.

use crate::common::{Node, Nodes, nodes};
use core::time::Duration;
use parlor_proto::session::{Event, Rejection};
use parlor_proto::wire::handshake::{Hello, Intent, Refusal, RoomKind, RoomSettings};
use parlor_proto::{CloseReason, RoomCode};
use parlor_services::store::Role;
use parlor_testing::{Client, creating, joining, within};
use serde_json::{Value, json};

/// A member that follows what the nodes say: it is seated, or refused.
pub(crate) async fn follow(
    nodes: &Nodes,
    first: usize,
    hello: &Hello,
) -> (Client, Result<RoomCode, Refusal>, usize) {
    let mut at = first;
    within(async {
        loop {
            let mut client = nodes[at].server.quic(hello.clone()).await;
            match client.event().await {
                Event::Welcome(welcome) => return (client, Ok(welcome.code), at),
                Event::Rejected(Rejection::Refused(refusal)) => return (client, Err(refusal), at),
                Event::Rejected(Rejection::Redirect(redirect)) => at = at_address(nodes, &redirect.address),
                // Its lease, or its look at the others, may be a moment away.
                Event::Rejected(Rejection::RetryAfter(retry)) => {
                    assert!(retry.after <= Duration::from_secs(1));
                    tokio::task::yield_now().await;
                }
                event => panic!("{event:?}"),
            }
        }
    })
    .await
}

fn address(node: &Node) -> String {
    node.server.server.addresses()[0].to_string()
}

fn at_address(nodes: &Nodes, at: &str) -> usize {
    (0..2).find(|number| address(&nodes[*number]) == at).unwrap_or_else(|| panic!("{at} is no node"))
}

/// Repeats a question until its answer is this: what is listed is a second old.
async fn until(node: &Node, path: &str, token: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    within(async {
        loop {
            let answer = node.good("GET", path, token, json!({})).await;
            if is_it(&answer) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn a_code_leads_to_its_room_from_every_node() {
    let Some(nodes) = nodes(2).await else { return };
    let chosen: RoomCode = "HELLO7".parse().unwrap();
    let (mut host, opened, _) = follow(&nodes, 0, &creating(Some(chosen), None, 4)).await;
    assert_eq!(opened, Ok(chosen));
    // Its room is where it was asked for: a chosen code is not sent elsewhere.
    let mut guests = Vec::new();
    for from in [1, 0] {
        let (guest, joined, at) = follow(&nodes, from, &joining(chosen, None)).await;
        assert_eq!((joined, at), (Ok(chosen), 0));
        guests.push(guest);
    }
    host.joined(3).await;
    let unknown = joining("HELLO8".parse().unwrap(), None);
    let other_game = Hello { app: "boats".into(), ..joining(chosen, None) };
    let other_environment = Hello { environment: "staging".into(), ..joining(chosen, None) };
    for hello in [unknown, other_game, other_environment] {
        let (_, refused, _) = follow(&nodes, 1, &hello).await;
        assert!(matches!(refused, Err(Refusal::NoSuchRoom)), "{refused:?}");
    }
    nodes.end().await;
}

#[tokio::test]
async fn two_nodes_open_no_rooms_under_one_code() {
    let Some(nodes) = nodes(2).await else { return };
    let chosen: RoomCode = "HELLO7".parse().unwrap();
    let hello = creating(Some(chosen), None, 4);
    let ((_host, first, _), (_, second, _)) =
        tokio::join!(follow(&nodes, 0, &hello), follow(&nodes, 1, &hello));
    let taken = |opened: &Result<RoomCode, Refusal>| matches!(opened, Err(Refusal::CodeTaken));
    assert!(first.is_ok() && taken(&second) || second.is_ok() && taken(&first), "{first:?} {second:?}");
    nodes.end().await;
}

#[tokio::test]
async fn a_room_that_ended_leaves_its_code_to_another_node() {
    let Some(nodes) = nodes(2).await else { return };
    let chosen: RoomCode = "HELLO7".parse().unwrap();
    let (host, opened, _) = follow(&nodes, 0, &creating(Some(chosen), None, 4)).await;
    assert!(opened.is_ok());
    host.leave().await;
    let (_again, at) = within(async {
        loop {
            match follow(&nodes, 1, &creating(Some(chosen), None, 4)).await {
                (host, Ok(_), at) => return (host, at),
                (_, Err(Refusal::CodeTaken), _) => tokio::task::yield_now().await,
                (_, Err(refusal), _) => panic!("{refusal:?}"),
            }
        }
    })
    .await;
    assert_eq!(at, 1);
    nodes.end().await;
}

#[tokio::test]
async fn operators_see_and_end_rooms_of_every_node_at_each() {
    let Some(nodes) = nodes(2).await else { return };
    let (admin, server) = (nodes.operator(Role::Admin), nodes.operator(Role::Server));
    let chosen: RoomCode = "HELLO7".parse().unwrap();
    let (mut host, _, _) = follow(&nodes, 0, &creating(Some(chosen), None, 4)).await;
    let (mut guest, _, _) = follow(&nodes, 1, &joining(chosen, None)).await;
    host.joined(2).await;
    for node in [&nodes[0], &nodes[1]] {
        let list = until(node, "/admin/live", &server, |list| list["rooms"][0]["members"] == 2).await;
        let room = &list["rooms"][0];
        assert_eq!(
            (&room["code"], &room["kind"], &room["app"]),
            (&json!("HELLO7"), &json!("player_hosted"), &json!("tanks"))
        );
        assert_eq!(room["environment"], "production");
        let details = node.good("GET", "/admin/live/HELLO7", &server, json!({})).await;
        assert_eq!(details["members"].as_array().unwrap().len(), 2, "{details}");
        let place = node.good("GET", "/admin/where/HELLO7", &server, json!({})).await;
        assert_eq!(
            (&place["node"], &place["term"], &place["is_served"]),
            (&json!("a"), &json!(1), &json!(true))
        );
        assert_eq!(place["address"], address(&nodes[0]));
    }
    let other = &nodes[1];
    assert_eq!(other.bad("GET", "/admin/live/HELLO8", &server, json!({})).await, "no_such_room");
    assert_eq!(other.bad("GET", "/admin/where/HELLO8", &server, json!({})).await, "no_such_room");
    let remove = "/admin/live/HELLO7/members/9/remove";
    assert_eq!(other.bad("POST", remove, &admin, json!({})).await, "no_such_member");
    other.good("POST", "/admin/live/HELLO7/members/1/remove", &admin, json!({ "reason": "bye" })).await;
    assert!(matches!(guest.closed().await, CloseReason::Kicked { .. }));
    other.good("POST", "/admin/live/HELLO7/end", &admin, json!({ "reason": "all of you" })).await;
    assert!(matches!(host.closed().await, CloseReason::RoomEnded { .. }));
    until(other, "/admin/live", &server, |list| list["rooms"].as_array().unwrap().is_empty()).await;
    nodes.end().await;
}

#[tokio::test]
async fn players_list_the_matches_of_every_node_and_pages_show_rooms_at_each() {
    let Some(nodes) = nodes(2).await else { return };
    let (ada, _) = nodes[0].player("ada").await;
    let settings = RoomSettings { label: "duel".into(), ..RoomSettings::new(RoomKind::Match, 2) };
    let hello = Hello { intent: Intent::Create(settings), ..creating(None, None, 2) };
    let (_member, opened, at) = follow(&nodes, 0, &hello).await;
    let code = opened.unwrap();
    for node in [&nodes[0], &nodes[1]] {
        let is_listed = |list: &Value| list["matches"][0]["members"] == 1;
        let list = until(node, "/matches?label=duel&open_seats=true", &ada, is_listed).await;
        assert_eq!(list["matches"][0]["id"], code.as_str());
        let none = node.good("GET", "/matches?label=chess", &ada, json!({})).await;
        assert_eq!(none["matches"], json!([]));
        let full = node.good("GET", "/matches?min_members=2", &ada, json!({})).await;
        assert_eq!(full["matches"], json!([]));
        let shown = node.server.get(&format!("/rooms/{code}")).await;
        assert_eq!((shown.status(), &shown.json()["players"]), (200, &json!(1)));
        let page = node.server.get(&format!("/join/{code}")).await;
        assert_eq!(page.status(), 200);
    }
    let other = &nodes[1 - at];
    assert_eq!(other.server.get(&format!("/rooms/{code}")).await.json()["address"], address(&nodes[at]));
    assert_eq!(other.server.get("/rooms/HELLO8").await.status(), 404);
    nodes.end().await;
}
