//! Accounts in realtime rooms: only a signed-in player joins under its account.

use crate::hall::Hall;
use parlor_proto::CloseReason;
use parlor_proto::wire::handshake::{Auth, Hello, Refusal};
use parlor_server::admission::Policy;
use parlor_services::store::Role;
use parlor_testing::{creating, joining};
use serde_json::{Value, json};

impl Hall {
    /// A server where nobody comes in without a token, and accounts are all that gives one.
    async fn for_accounts_alone() -> Self {
        Self::changed(|setup| {
            setup.config.admission = Some(Policy { key: None, is_required: true });
        })
        .await
    }

    async fn ticket(&self, player: &str, what: Value) -> Auth {
        let ticket = self.good("POST", "/admission", player, what).await;
        assert_eq!(ticket["expires_in_s"], 60);
        Auth::Token(ticket["token"].as_str().unwrap().to_owned().into())
    }
}

#[tokio::test]
async fn threat_03_a_player_comes_in_as_its_account_once() {
    let hall = Hall::for_accounts_alone().await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let open = hall.ticket(&ada, json!({ "create": true })).await;
    let mut host = hall.server.quic(Hello { auth: open.clone(), ..creating(None, None, 4) }).await;
    let room = host.welcome().await.code;
    let join = hall.ticket(&bob, json!({ "room": room.as_str() })).await;
    let mut guest = hall.server.websocket(true, Hello { auth: join.clone(), ..joining(room, None) }).await;
    guest.welcome().await;
    let elsewhere = hall.ticket(&bob, json!({ "room": "K7QM" })).await;
    let access = Auth::Token(bob.clone().into());
    let operator = Auth::Token(hall.operator(Role::Admin).into());
    for auth in [Auth::Anonymous, open, join, elsewhere, access, operator] {
        let mut thief = hall.server.quic(Hello { auth: auth.clone(), ..joining(room, None) }).await;
        assert_eq!(thief.refusal().await, Refusal::Unauthorized, "{auth:?}");
    }
    assert_eq!(hall.server.server.room(room).await.unwrap().players, 2);
}

#[tokio::test]
async fn threat_32_a_ticket_is_no_access_token() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let Auth::Token(ticket) = hall.ticket(&ada, json!({ "create": true })).await else { unreachable!() };
    let ticket = String::from_utf8(ticket.to_vec()).unwrap();
    assert_eq!(hall.bad("GET", "/account", &ticket, json!({})).await, "bad_token");
}

#[tokio::test]
async fn without_an_admission_key_strangers_come_as_before() {
    let hall = Hall::open().await;
    let mut host = hall.server.quic(creating(None, None, 4)).await;
    let room = host.welcome().await.code;
    let (ada, _) = hall.player("ada").await;
    let auth = hall.ticket(&ada, json!({ "room": room.as_str() })).await;
    let mut guest = hall.server.quic(Hello { auth, ..joining(room, None) }).await;
    guest.welcome().await;
    let mut forger =
        hall.server.quic(Hello { auth: Auth::Token("a.b.c".into()), ..joining(room, None) }).await;
    assert_eq!(forger.refusal().await, Refusal::Unauthorized);
}

#[tokio::test]
async fn threat_03_a_banned_account_gets_no_ticket_and_comes_in_by_none() {
    let hall = Hall::open().await;
    let ((ada, id), admin) = (hall.player("ada").await, hall.operator(Role::Admin));
    let auth = hall.ticket(&ada, json!({ "create": true })).await;
    hall.good("POST", "/admin/bans", &admin, json!({ "account": id, "reason": "cheats" })).await;
    assert_eq!(hall.bad("POST", "/admission", &ada, json!({ "create": true })).await, "banned");
    let mut banned = hall.server.quic(Hello { auth, ..creating(None, None, 4) }).await;
    assert_eq!(banned.refusal().await, Refusal::Unauthorized);
    hall.good("POST", "/admin/bans/lift", &admin, json!({ "account": id })).await;
    let auth = hall.ticket(&ada, json!({ "create": true })).await;
    let mut free = hall.server.quic(Hello { auth, ..creating(None, None, 4) }).await;
    free.welcome().await;
}

#[tokio::test]
async fn what_a_ticket_is_for_must_be_said() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    for what in [json!({}), json!({ "room": "" }), json!({ "room": "!" }), json!({ "create": false })] {
        let (status, answer) = hall.call("POST", "/admission", Some(&ada), what.clone()).await;
        assert_eq!((status, &answer["error"]["path"]), (400, &json!("room")), "{what}: {answer}");
    }
}

#[tokio::test]
async fn threat_03_a_ban_takes_the_seats_that_its_account_has() {
    let hall = Hall::open().await;
    let ((ada, _), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let admin = hall.operator(Role::Admin);
    let auth = hall.ticket(&ada, json!({ "create": true })).await;
    let mut host = hall.server.quic(Hello { auth, ..creating(None, None, 4) }).await;
    let room = host.welcome().await.code;
    let auth = hall.ticket(&bob, json!({ "room": room.as_str() })).await;
    let mut guest = hall.server.websocket(true, Hello { auth, ..joining(room, None) }).await;
    guest.welcome().await;
    let mut stranger = hall.server.quic(joining(room, None)).await;
    stranger.welcome().await;
    let auth = hall.ticket(&bob, json!({ "create": true })).await;
    let mut own = hall.server.quic(Hello { auth, ..creating(None, None, 4) }).await;
    let own_room = own.welcome().await.code;

    let at = format!("/admin/live/{room}");
    let users = async || {
        let shown = hall.good("GET", &at, &admin, json!({})).await;
        let members = shown["members"].as_array().unwrap().clone();
        members.into_iter().map(|member| member["user"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(users().await[1..], [Some(bob_id.clone()), None], "who came by a ticket is named");
    let reason = "é".repeat(150);
    hall.good("POST", "/admin/bans", &admin, json!({ "account": bob_id, "reason": reason })).await;
    let kicked = CloseReason::Kicked { reason: "é".repeat(100) };
    assert_eq!((guest.closed().await, own.closed().await), (kicked.clone(), kicked));
    assert_eq!(users().await.len(), 2, "the others stay");
    assert!(hall.server.server.room(own_room).await.is_none(), "a room that had nobody else is over");
}
