//! Tickets of one node for rooms of another, and tokens of the game for all nodes.

use crate::common::{Node, nodes_with};
use crate::directory::follow;
use parlor_proto::wire::handshake::{Auth, Hello, Refusal};
use parlor_server::admission::{PermitFor, Policy, SigningKey, TokenRequest};
use parlor_testing::{creating, joining};
use serde_json::{Value, json};

async fn ticket(node: &Node, player: &str, what: Value) -> Auth {
    let ticket = node.good("POST", "/admission", player, what).await;
    Auth::Token(ticket["token"].as_str().unwrap().to_owned().into())
}

#[tokio::test]
async fn threat_03_a_ticket_of_any_node_is_good_once_at_the_node_of_its_room_and_nowhere_else() {
    let required = |_, setup: &mut crate::common::Setup| {
        setup.config.admission = Some(Policy { key: None, is_required: true });
    };
    let Some(nodes) = nodes_with(2, required).await else { return };
    let (ada, bob) = (nodes[0].player("ada").await.0, nodes[1].player("bob").await.0);
    let auth = ticket(&nodes[0], &ada, json!({ "create": true })).await;
    let open = Hello { auth, ..creating(None, None, 4) };
    let (_host, opened, at) = follow(&nodes, 0, &open).await;
    let code = opened.unwrap();
    assert_eq!(at, 0, "a ticket to open is for the node that gave it out");
    // To open a room it is good at no other node.
    let auth = ticket(&nodes[0], &ada, json!({ "create": true })).await;
    let (_, refused, at) = follow(&nodes, 1, &Hello { auth, ..open.clone() }).await;
    assert_eq!((refused, at), (Err(Refusal::Unauthorized), 1));
    for node in 0..2 {
        let auth = ticket(&nodes[node], &bob, json!({ "room": code.as_str() })).await;
        let join = Hello { auth, ..joining(code, None) };
        let (_guest, joined, at) = follow(&nodes, 1, &join).await;
        assert_eq!((joined, at), (Ok(code), 0), "node {node}");
        for first in 0..2 {
            let (_, again, _) = follow(&nodes, first, &join).await;
            assert_eq!(again, Err(Refusal::Unauthorized), "a second time");
        }
    }
    let (_, anonymous, _) = follow(&nodes, 1, &joining(code, None)).await;
    assert_eq!(anonymous, Err(Refusal::Unauthorized));
    nodes.end().await;
}

#[tokio::test]
async fn threat_03_a_token_of_the_game_opens_one_room_in_the_whole_cluster() {
    let (folder, key) = (tempfile::tempdir().unwrap(), SigningKey::generate().unwrap());
    key.write_new(&folder.path().join("admission")).unwrap();
    let public = folder.path().join("admission.pub");
    let policy = |_, setup: &mut crate::common::Setup| {
        setup.config.admission = Some(Policy { key: Some(public.clone()), is_required: true });
    };
    let Some(nodes) = nodes_with(2, policy).await else { return };
    let token = || {
        let what = PermitFor::Create(None);
        let request = TokenRequest { user: "ada", app: "tanks", environment: "", what };
        Auth::Token(key.token(&request).unwrap().into())
    };
    let opening = Hello { auth: token(), ..creating(None, None, 4) };
    let (_host, opened, at) = follow(&nodes, 0, &opening).await;
    assert!(opened.is_ok() && at == 0, "{opened:?} at {at}");
    // The other node has never seen it.
    for node in [1, 0] {
        let (_, again, _) = follow(&nodes, node, &opening).await;
        assert_eq!(again, Err(Refusal::Unauthorized), "at node {node}");
    }
    // Another one is good there. What both have opened is remembered until it is over.
    let (_host, opened, at) = follow(&nodes, 1, &Hello { auth: token(), ..opening }).await;
    assert!(opened.is_ok() && at == 1, "{opened:?} at {at}");
    let count = format!("SELECT count(*) FROM {}.used_tokens", nodes.scratch.schema);
    let count: i64 = nodes.scratch.operator.query_one(&count, &[]).await.unwrap().get(0);
    assert_eq!(count, 2);
    nodes.end().await;
}
