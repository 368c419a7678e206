//! Lobbies, parties and searches of players at several nodes.

use crate::common::{Nodes, nodes, nodes_with};
use core::time::Duration;
use parlor_server::Time;
use parlor_services::store::Role;
use parlor_testing::{Socket, within};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A player with a socket at one node.
pub(crate) struct Player {
    node: usize,
    pub(crate) token: String,
    account: String,
    socket: Socket,
}

impl Player {
    pub(crate) async fn at(nodes: &Nodes, node: usize, name: &str) -> Self {
        let (token, account) = nodes[node].player(name).await;
        let socket = Self::connect(nodes, node, &token).await;
        Player { node, token, account, socket }
    }

    /// A socket that has signed in.
    async fn connect(nodes: &Nodes, node: usize, token: &str) -> Socket {
        let mut socket = nodes[node].socket().await;
        socket.say(&json!({ "id": 0, "op": "account.me", "token": token }).to_string()).await;
        within(async { while !socket.hear().await["output"].is_object() {} }).await;
        socket
    }

    /// The answer to what succeeds, over REST.
    async fn good(&self, nodes: &Nodes, method: &str, path: &str, input: Value) -> Value {
        nodes[self.node].good(method, path, &self.token, input).await
    }

    /// The next news for which this gives something.
    pub(crate) async fn hears<T>(&mut self, mut found: impl FnMut(&Value) -> Option<T>) -> T {
        within(async {
            loop {
                let heard = self.socket.hear().await;
                if let Some(found) = heard.get("news").and_then(&mut found) {
                    return found;
                }
            }
        })
        .await
    }

    /// Waits for a lobby with so many members who are here.
    async fn hears_of_lobby(&mut self, lobby: &str, here: usize) -> Value {
        let topic = format!("lobby/{lobby}");
        self.hears(|news| {
            let lobby = news.get("lobby").filter(|_| news["topic"] == topic.as_str())?;
            let members = lobby["members"].as_array()?.iter();
            (members.filter(|member| member["here"] == true).count() == here).then(|| lobby.clone())
        })
        .await
    }

    /// Waits until its search is in this state.
    async fn hears_of_search(&mut self, state: &str) -> Value {
        self.hears(|news| news.get("search").filter(|search| search["state"] == state).cloned()).await
    }
}

/// Waits until all nodes know all others: what is made at one is found at all.
async fn all_know_each_other(nodes: &Nodes, count: usize) {
    let mut probes = Vec::new();
    for node in 0..count {
        for name in ["x", "y"] {
            probes.push(nodes[node].player(&format!("{name}{node}")).await.0);
        }
    }
    let finds = async |node: usize, lobby: &str| {
        let input = json!({ "bucket": "probes" });
        let (_, found) = nodes[node].call("POST", "/lobbies/find", Some(&probes[2 * node]), input).await;
        found["lobbies"].as_array().is_some_and(|all| all.iter().any(|found| found["id"] == lobby))
    };
    within(async {
        for maker in 0..count {
            loop {
                let (input, token) = (json!({ "bucket": "probes" }), &probes[2 * maker + 1]);
                let (_, made) = nodes[maker].call("POST", "/lobbies", Some(token), input).await;
                let Some(lobby) = made["lobby"]["id"].as_str() else { continue };
                let mut is_found = true;
                for node in 0..count {
                    is_found &= finds(node, lobby).await;
                }
                nodes[maker].call("POST", &format!("/lobbies/{lobby}/leave"), Some(token), json!({})).await;
                if is_found {
                    break;
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn members_at_two_nodes_sit_in_one_lobby_and_hear_each_other() {
    let Some(nodes) = nodes(2).await else { return };
    let players = [
        Player::at(&nodes, 0, "ada").await,
        Player::at(&nodes, 1, "bob").await,
        Player::at(&nodes, 0, "cyd").await,
    ];
    all_know_each_other(&nodes, 2).await;
    let [mut ada, mut bob, cyd] = players;
    // One of both nodes is the home, so one of both players is elsewhere, whoever opens.
    for (opener, guest) in [(0, 1), (1, 0)] {
        let pair = [&mut ada, &mut bob];
        let [first, second] = pair;
        let (opener, guest) = if opener < guest { (first, second) } else { (second, first) };
        let opened = opener.good(&nodes, "POST", "/lobbies", json!({ "bucket": "b" })).await;
        let (lobby, code) = (opened["lobby"]["id"].as_str().unwrap(), &opened["lobby"]["code"]);
        assert_eq!(opened["lobby"]["members"][0]["here"], true, "{opened}");
        let found = guest.good(&nodes, "POST", "/lobbies/find", json!({ "bucket": "b" })).await;
        assert_eq!(found["lobbies"][0]["id"], lobby, "{found}");
        guest.good(&nodes, "POST", "/lobbies/join", json!({ "code": code })).await;
        opener.hears_of_lobby(lobby, 2).await;
        guest.hears_of_lobby(lobby, 2).await;
        let say = format!("/lobbies/{lobby}/messages");
        guest.good(&nodes, "POST", &say, json!({ "type": "chat", "body": { "text": "hi" } })).await;
        let said = opener
            .hears(|news| news.get("body").filter(|_| news["from"] == guest.account.as_str()).cloned())
            .await;
        assert_eq!(said["text"], "hi");
        // A refusal of the home is given back as it is.
        let kick = format!("/lobbies/{lobby}/kick");
        let refused =
            nodes[guest.node].bad("POST", &kick, &guest.token, json!({ "account": opener.account })).await;
        assert_eq!(refused, "not_owner");
        let strangers =
            nodes[cyd.node].bad("GET", &format!("/lobbies/{lobby}x"), &cyd.token, json!({})).await;
        assert_eq!(strangers, "no_such_lobby");
        // Whoever loses its connection is away for the others.
        guest.socket.socket.close(None).await.unwrap();
        opener.hears_of_lobby(lobby, 1).await;
        guest.socket = Player::connect(&nodes, guest.node, &guest.token).await;
        opener.hears_of_lobby(lobby, 2).await;
        guest.good(&nodes, "POST", &format!("/lobbies/{lobby}/leave"), json!({})).await;
        opener.hears_of_lobby(lobby, 1).await;
        opener.good(&nodes, "POST", &format!("/lobbies/{lobby}/leave"), json!({})).await;
    }
    nodes.end().await;
}

/// A room whose players are at another node is found as long as they are there.
#[tokio::test]
async fn a_room_is_found_whose_players_are_at_another_node() {
    let times = [Time::default(), Time::default()];
    let clocks = times.clone();
    let changed = nodes_with(2, move |node, setup| setup.config.time = clocks[node].clone()).await;
    let Some(nodes) = changed else { return };
    all_know_each_other(&nodes, 2).await;
    let (ada, bob) = (Player::at(&nodes, 0, "ada").await, Player::at(&nodes, 1, "bob").await);
    let seek = json!({ "config": { "auto_start": false } });
    let opened = ada.good(&nodes, "POST", "/rooms/join-or-create", seek.clone()).await;
    // The store knows within a moment that ada's socket is at the other node.
    let known = format!("SELECT account FROM {}.presence WHERE account = $1", nodes.scratch.schema);
    within(async {
        while nodes.scratch.operator.query(&known, &[&ada.account]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // Nobody counts as here because of the start of a server, and ada's request was long ago.
    for time in &times {
        time.pass(Duration::from_secs(120));
    }
    let found = bob.good(&nodes, "POST", "/rooms/join-or-create", seek).await;
    assert_eq!(found["room"]["id"], opened["room"]["id"]);
    nodes.end().await;
}

#[tokio::test]
async fn what_another_node_is_asked_is_charged_before() {
    let Some(nodes) = nodes(2).await else { return };
    all_know_each_other(&nodes, 2).await;
    for node in 0..2 {
        let (token, _) = nodes[node].player("eve").await;
        let mut codes = Vec::new();
        for _ in 0..40 {
            let (_, answer) = nodes[node].call("POST", "/lobbies/find", Some(&token), json!({})).await;
            codes.push(answer["error"]["code"].as_str().unwrap_or_default().to_owned());
        }
        // At the home and elsewhere: ten at once, and one more each half second.
        let refused = codes.iter().filter(|code| *code == "too_often").count();
        assert!((1..40 - 9).contains(&refused), "{codes:?}");
        assert!(codes.iter().all(|code| code.is_empty() || code == "too_often"), "{codes:?}");
    }
    nodes.end().await;
}

async fn define_queue(nodes: &Nodes, node: usize) {
    let queue =
        json!({ "kind": "queue", "name": "duel", "definition": { "players": { "min": 2, "max": 2 } } });
    nodes[node].good("POST", "/admin/definitions", &nodes.operator(Role::Admin), queue).await;
}

async fn search(nodes: &Nodes, player: &Player) -> String {
    let input = json!({ "queue": "duel" });
    // The other node hears of the queue within a second.
    let entered = within(async {
        loop {
            let (status, answer) =
                nodes[player.node].call("POST", "/matchmaking", Some(&player.token), input.clone()).await;
            if status == 200 {
                return answer;
            }
            let code = &answer["error"]["code"];
            assert!(
                ["no_such_queue", "unavailable", "too_often"].iter().any(|word| code == word),
                "{answer}"
            );
        }
    })
    .await;
    entered["ticket"].as_str().unwrap().to_owned()
}

/// Lets whoever is asked open a room that the home finds at its node, as the game would.
async fn meet(nodes: &Nodes, pair: &mut [&mut Player; 2], tickets: &[String; 2]) {
    let mut opener = None;
    for (at, player) in pair.iter_mut().enumerate() {
        let search = player.hears_of_search("opening").await;
        if search["opens"] == true {
            assert!(opener.replace(at).is_none(), "one opens: {search}");
        }
    }
    let opener = opener.expect("one of both is asked");
    // A turn room does: its seats are in the store.
    let room = pair[opener].good(nodes, "POST", "/rooms", json!({ "config": { "auto_start": false } })).await;
    let opened = json!({ "code": room["room"]["code"] });
    pair[opener].good(nodes, "POST", &format!("/matchmaking/{}/opened", tickets[opener]), opened).await;
    let mut rooms = Vec::new();
    for player in pair.iter_mut() {
        let found = player.hears_of_search("found").await;
        rooms.push(found["found"]["room"]["code"].clone());
        let teams = found["found"]["teams"].to_string();
        assert!(teams.contains("account"), "{found}");
    }
    assert_eq!(rooms[0], rooms[1]);
    assert_eq!(rooms[0], room["room"]["code"]);
}

#[tokio::test]
async fn two_seekers_at_two_nodes_are_matched_once() {
    let Some(nodes) = nodes(2).await else { return };
    let players = [Player::at(&nodes, 0, "ada").await, Player::at(&nodes, 1, "bob").await];
    all_know_each_other(&nodes, 2).await;
    define_queue(&nodes, 0).await;
    let [mut ada, mut bob] = players;
    let tickets = [search(&nodes, &ada).await, search(&nodes, &bob).await];
    meet(&nodes, &mut [&mut ada, &mut bob], &tickets).await;
    for (player, ticket) in [(&ada, &tickets[0]), (&bob, &tickets[1])] {
        let read = player.good(&nodes, "GET", &format!("/matchmaking/{ticket}"), json!({})).await;
        assert_eq!(read["state"], "found", "{read}");
    }
    let queues = ada.good(&nodes, "GET", "/matchmaking/queues", json!({})).await;
    assert_eq!(queues["queues"][0]["found"], 2, "{queues}");
    nodes.end().await;
}

#[tokio::test]
async fn when_the_home_is_stopped_lobbies_end_with_a_word_and_searches_go_on() {
    let Some(mut nodes) = nodes(3).await else { return };
    let names = ["a", "b", "c"];
    let home = parlor_hub::cluster::placement::home(b"home/tanks/production", names).unwrap();
    let home = names.iter().position(|name| *name == home).unwrap();
    let others: Vec<usize> = (0..3).filter(|node| *node != home).collect();
    let players = [Player::at(&nodes, others[0], "ada").await, Player::at(&nodes, others[1], "bob").await];
    all_know_each_other(&nodes, 3).await;
    define_queue(&nodes, others[0]).await;
    let [mut ada, mut bob] = players;
    let opened = ada.good(&nodes, "POST", "/lobbies", json!({})).await;
    let lobby = opened["lobby"]["id"].as_str().unwrap().to_owned();
    let join = json!({ "code": opened["lobby"]["code"] });
    bob.good(&nodes, "POST", "/lobbies/join", join).await;
    for player in [&mut ada, &mut bob] {
        player.hears_of_lobby(&lobby, 2).await;
    }
    let ticket = search(&nodes, &ada).await;
    nodes.stop_number(home).await;
    for player in [&mut ada, &mut bob] {
        player.node -= usize::from(player.node > home);
    }
    let began = Instant::now();
    for player in [&mut ada, &mut bob] {
        let topic = format!("lobby/{lobby}");
        let gone =
            player.hears(|news| news.get("gone").filter(|_| news["topic"] == topic.as_str()).cloned()).await;
        assert_eq!(gone, "ended");
    }
    // They make another one, and the search has not ended.
    within(async {
        loop {
            let (status, answer) =
                nodes[bob.node].call("POST", "/lobbies", Some(&bob.token), json!({})).await;
            if status == 200 {
                let join = json!({ "code": answer["lobby"]["code"] });
                ada.good(&nodes, "POST", "/lobbies/join", join).await;
                return;
            }
            assert_eq!(answer["error"]["code"], "unavailable", "{answer}");
        }
    })
    .await;
    let other = search(&nodes, &bob).await;
    meet(&nodes, &mut [&mut ada, &mut bob], &[ticket, other]).await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    nodes.end().await;
}
