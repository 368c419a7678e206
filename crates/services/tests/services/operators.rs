//! Banned or demoted accounts and operators are rejected at every operation from then on, on every interface.

use crate::hall::Hall;
use parlor_services::store::Role;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

impl Hall {
    /// Asks for every operation there is with a token, and gives the codes of the refusals.
    async fn codes_of_all(&self, token: &str) -> Vec<String> {
        let mut codes = Vec::new();
        for (name, method, path) in self.document.operations() {
            let path = path
                .replace("{room}", "r0")
                .replace("{proposal}", "1")
                .replace("{code}", "ZZZZ")
                .replace("{board}", "b")
                .replace("{statistic}", "s")
                .replace("{achievement}", "a")
                .replace("{ladder}", "l")
                .replace("{lobby}", "l0")
                .replace("{ticket}", "t0");
            let path = path.replace("{match}", "ABCDEFGHJKLMNPQR").replace("{member}", "1");
            let (_, answer) = self.call(method, &path, Some(token), json!({})).await;
            codes.push(format!("{name}: {}", answer["error"]["code"].as_str().unwrap_or("done")));
        }
        assert!(codes.len() > 40, "{}", codes.len());
        codes
    }

    async fn assert_refused(&self, token: &str, code: &str) {
        let other: Vec<_> = self.codes_of_all(token).await;
        let other: Vec<_> = other.into_iter().filter(|said| !said.ends_with(&format!(": {code}"))).collect();
        assert!(other.is_empty(), "{other:?}");
    }

    async fn works(&self, token: &str) -> bool {
        let (status, _) = self.call("GET", "/admin/status", Some(token), json!({})).await;
        status == 200
    }

    /// Gives an account a role, and its next token.
    async fn promoted(&self, name: &str, role: &str) -> (String, String) {
        let (_, id) = self.player(name).await;
        let change = json!({ "account": id, "role": role });
        self.good("POST", "/admin/roles", &self.operator(Role::Admin), change).await;
        (self.player(name).await.0, id)
    }
}

#[tokio::test]
async fn threat_49_who_is_banned_is_refused_at_every_operation_from_then_on() {
    let hall = Hall::open().await;
    let ops = hall.operator(Role::Admin);
    let (ada, ada_id) = hall.player("ada").await;
    let (eve, eve_id) = hall.promoted("eve", "admin").await;
    let mallory = hall.operator_named(Role::Admin, "mallory", "production");
    let service = hall.operator_named(Role::Server, "service", "production");
    let staging = hall.operator_named(Role::Admin, "mallory", "staging");
    // All of them are known as not banned.
    hall.good("GET", "/account", &ada, json!({})).await;
    assert!(hall.works(&eve).await && hall.works(&mallory).await && hall.works(&service).await);

    let unknown = json!({ "account": "mallory", "reason": "left" });
    assert_eq!(
        hall.bad("POST", "/admin/bans", &ops, unknown).await,
        "not_found",
        "a name that is no account"
    );
    for (name, is_operator) in [(&*ada_id, false), (&*eve_id, false), ("mallory", true), ("service", true)] {
        let ban = json!({ "account": name, "operator": is_operator, "reason": "left" });
        hall.good("POST", "/admin/bans", &ops, ban).await;
    }
    for token in [&ada, &eve, &mallory, &service] {
        hall.assert_refused(token, "banned").await;
    }
    // A ban is of one game and environment, as all is.
    assert!(hall.works(&staging).await && hall.works(&ops).await);
    // Whoever has the key signs under another name, and lifts it.
    hall.good("POST", "/admin/bans/lift", &ops, json!({ "account": "mallory" })).await;
    assert!(hall.works(&mallory).await && !hall.works(&service).await);
}

#[tokio::test]
async fn threat_49_the_last_operator_that_is_banned_is_let_in_by_who_has_the_key() {
    let hall = Hall::open().await;
    let ops = hall.operator(Role::Admin);
    hall.good("POST", "/admin/bans", &ops, json!({ "account": "ops", "operator": true, "reason": "x" }))
        .await;
    let lift = json!({ "account": "ops" });
    assert_eq!(hall.bad("POST", "/admin/bans/lift", &ops, lift.clone()).await, "banned");
    hall.good("POST", "/admin/bans/lift", &hall.operator_named(Role::Admin, "other", ""), lift).await;
    assert!(hall.works(&ops).await);
}

#[tokio::test]
async fn threat_49_who_is_demoted_has_no_right_of_its_old_role_from_then_on() {
    let hall = Hall::open().await;
    let (eve, id) = hall.promoted("eve", "admin").await;
    assert!(hall.works(&eve).await);
    let demote = json!({ "account": id, "role": "player" });
    hall.good("POST", "/admin/roles", &hall.operator(Role::Admin), demote).await;
    hall.assert_refused(&eve, "token_expired").await;
    let (again, _) = hall.player("eve").await;
    assert_eq!(hall.bad("GET", "/admin/status", &again, json!({})).await, "forbidden");
    hall.good("GET", "/account", &again, json!({})).await;
}

#[tokio::test]
async fn threat_49_sockets_of_whoever_is_banned_end_and_none_is_told_anything() {
    let hall = Hall::open().await;
    let ops = hall.operator(Role::Admin);
    let (ada, id) = hall.player("ada").await;
    let mut sockets = Vec::new();
    for token in [ada.clone(), hall.operator_named(Role::Admin, "mallory", "production")] {
        let mut socket = hall.socket().await;
        socket.say(&json!({ "id": 0, "op": "turn.rules", "token": token }).to_string()).await;
        assert!(socket.hear().await["output"].is_object());
        sockets.push(socket);
    }
    for (name, is_operator) in [(&*id, false), ("mallory", true)] {
        let ban = json!({ "account": name, "operator": is_operator, "reason": "left" });
        hall.good("POST", "/admin/bans", &ops, ban).await;
    }
    // The player's is closed at once, the operator's, which is told nothing, when it asks again.
    let mut operators = sockets.pop().unwrap();
    assert_eq!(operators.ask("admin.status", json!({})).await["error"]["code"], "banned");
    for mut socket in [operators, sockets.pop().unwrap()] {
        let last = socket.next_message().await;
        assert!(matches!(last, Message::Close(Some(_))), "{last:?}");
    }
    // A token that is good for some minutes still opens no feed.
    let mut socket = hall.socket().await;
    socket.say(&json!({ "id": 0, "op": "turn.rules", "token": ada }).to_string()).await;
    assert_eq!(socket.hear().await["error"]["code"], "banned");
    assert_eq!(socket.ask("account.me", json!({})).await["error"]["code"], "signed_out");
}
