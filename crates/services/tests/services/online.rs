//! The services over the store: every operation, for every role, with every kind of invalid input.

use crate::hall::{Hall, told_service};
use parlor_services::WebhookConfig;
use parlor_services::store::Role;
use parlor_testing::{creating, within};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// Who may use which operation: `a` stands for anybody, `p`, `s` and `m` for players, the game's service and the administrator.
const TABLE: &[(&str, &str)] = &[
    ("account.delete", "p"),
    ("account.export", "p"),
    ("account.link", "p"),
    ("account.me", "p"),
    ("account.rename", "p"),
    ("account.sign_out_everywhere", "p"),
    ("account.unlink", "p"),
    ("achievement.list", "psm"),
    ("achievement.write", "ps"),
    ("admin.backup", "m"),
    ("admin.ban", "m"),
    ("admin.bans", "m"),
    ("admin.define", "sm"),
    ("admin.define_board", "sm"),
    ("admin.definitions", "sm"),
    ("admin.delete_account", "m"),
    ("admin.delete_board", "sm"),
    ("admin.drain", "m"),
    ("admin.end_live_room", "m"),
    ("admin.end_lobby", "m"),
    ("admin.export_account", "m"),
    ("admin.lift_ban", "m"),
    ("admin.live_room", "sm"),
    ("admin.live_rooms", "sm"),
    ("admin.lobbies", "sm"),
    ("admin.move_live_room", "m"),
    ("admin.nodes", "sm"),
    ("admin.remove_member", "m"),
    ("admin.rooms", "sm"),
    ("admin.set_role", "m"),
    ("admin.status", "sm"),
    ("admin.undefine", "sm"),
    ("admin.undrain", "m"),
    ("admin.where", "sm"),
    ("admission.ticket", "p"),
    ("auth.custom", "s"),
    ("auth.device", "a"),
    ("auth.email", "a"),
    ("auth.guest", "a"),
    ("auth.refresh", "a"),
    ("auth.sign_out", "a"),
    ("board.around", "psm"),
    ("board.friends", "p"),
    ("board.list", "psm"),
    ("board.of", "psm"),
    ("board.remove", "psm"),
    ("board.seasons", "psm"),
    ("board.submit", "ps"),
    ("board.submit_many", "s"),
    ("board.top", "psm"),
    ("friend.accept", "p"),
    ("friend.ask", "p"),
    ("friend.block", "p"),
    ("friend.code", "p"),
    ("friend.list", "p"),
    ("friend.new_code", "p"),
    ("friend.remove", "p"),
    ("friend.unblock", "p"),
    ("inbox.acknowledge", "p"),
    ("inbox.read", "p"),
    ("lobby.create", "p"),
    ("lobby.decline", "p"),
    ("lobby.find", "p"),
    ("lobby.invite", "p"),
    ("lobby.join", "p"),
    ("lobby.kick", "p"),
    ("lobby.leave", "p"),
    ("lobby.mine", "p"),
    ("lobby.promote", "p"),
    ("lobby.read", "p"),
    ("lobby.room", "p"),
    ("lobby.say", "p"),
    ("lobby.update", "p"),
    ("lobby.update_me", "p"),
    ("match.forget", "sm"),
    ("match.kept", "psm"),
    ("match.list", "psm"),
    ("match.log", "psm"),
    ("matchmaking.again", "p"),
    ("matchmaking.confirm", "p"),
    ("matchmaking.enter", "p"),
    ("matchmaking.leave", "p"),
    ("matchmaking.offer", "ps"),
    ("matchmaking.opened", "p"),
    ("matchmaking.queues", "psm"),
    ("matchmaking.read", "p"),
    ("matchmaking.withdraw", "ps"),
    ("presence.set", "p"),
    ("rating.read", "psm"),
    ("rating.report", "s"),
    ("save.before", "p"),
    ("save.get", "p"),
    ("save.list", "p"),
    ("save.remove", "p"),
    ("save.set", "p"),
    ("statistic.list", "psm"),
    ("statistic.totals", "psm"),
    ("statistic.write", "ps"),
    ("storage.list", "psm"),
    ("storage.read", "psm"),
    ("storage.remove", "ps"),
    ("storage.write", "ps"),
    ("turn.create", "p"),
    ("turn.delete", "psm"),
    ("turn.end", "psm"),
    ("turn.join", "p"),
    ("turn.join_by_code", "p"),
    ("turn.join_or_create", "p"),
    ("turn.kick", "psm"),
    ("turn.leave", "p"),
    ("turn.list", "psm"),
    ("turn.messages", "psm"),
    ("turn.mine", "p"),
    ("turn.pause", "psm"),
    ("turn.propose", "p"),
    ("turn.read", "psm"),
    ("turn.resign", "p"),
    ("turn.resume", "psm"),
    ("turn.rules", "psm"),
    ("turn.say", "p"),
    ("turn.start", "p"),
    ("turn.subscribe", "p"),
    ("turn.unsubscribe", "p"),
    ("turn.update", "p"),
    ("turn.validate", "p"),
];

#[tokio::test]
async fn threat_32_every_operation_is_for_whom_the_table_says() {
    let hall = Hall::open().await;
    let operations = hall.document.operations();
    let names: Vec<&str> = operations.iter().map(|(name, ..)| *name).collect();
    assert_eq!(
        names,
        TABLE.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "the table has all operations"
    );
    let (player, _) = hall.player("ada").await;
    let (server, admin) = (hall.operator(Role::Server), hall.operator(Role::Admin));
    let roles = [(None, ' '), (Some(&player), 'p'), (Some(&server), 's'), (Some(&admin), 'm')];
    let mut socket = hall.socket().await;
    for ((name, method, path), (_, allowed)) in operations.iter().zip(TABLE) {
        let path =
            path.replace("{room}", "r0").replace("{proposal}", "1").replace("{match}", "ABCDEFGHJKLMNPQR");
        let path = path.replace("{code}", "ZZZZ").replace("{member}", "1").replace("{board}", "b");
        let path = path.replace("{statistic}", "s").replace("{achievement}", "a").replace("{ladder}", "l");
        let path = path.replace("{lobby}", "l0").replace("{ticket}", "t0");
        for (token, letter) in roles {
            let may = *allowed == "a" || allowed.contains(letter);
            let (status, answer) = hall.call(method, &path, token.map(String::as_str), json!({})).await;
            let code = answer["error"]["code"].as_str().unwrap_or_default();
            let refused = if token.is_none() { (401, "signed_out") } else { (403, "forbidden") };
            assert_eq!(!may, (status, code) == refused, "{name} for {letter:?}: {status} {answer}");
            assert!(status < 500, "{name} for {letter:?}: {status} {answer}");
        }
        // The socket is made of the same table.
        if *allowed != "a" {
            assert_eq!(socket.ask(name, json!({})).await["error"]["code"], "signed_out", "{name}");
        }
    }
}

#[tokio::test]
async fn an_account_is_made_found_linked_and_renamed() {
    let hall = Hall::open().await;
    let (ada, id) = hall.player("ada").await;
    assert_eq!(hall.player("ada").await.1, id, "the same device is the same player");
    assert_ne!(hall.player("bob").await.1, id);
    let me = hall.good("GET", "/account", &ada, json!({})).await;
    assert_eq!((&me["account"]["name"], &me["account"]["kind"]), (&json!("ada"), &json!("device")));
    assert!(me["credentials"][0]["value"].is_null(), "of a device nothing is told: {me}");
    hall.good("PATCH", "/account", &ada, json!({ "name": "Ada" })).await;

    let email = json!({ "email": " Ada@Example.com", "password": "correct horse" });
    hall.good("POST", "/account/credentials", &ada, email).await;
    let sign_in =
        |address: &str, password: &str| json!({ "app": "tanks", "email": address, "password": password });
    let (status, answer) =
        hall.call("POST", "/auth/email", None, sign_in("ada@example.com", "correct horse")).await;
    assert_eq!(
        (status, &answer["account"]["id"], &answer["account"]["name"]),
        (200, &json!(id), &json!("Ada"))
    );
    for (address, password) in [("ada@example.com", "wrong horses"), ("eve@example.com", "correct horse")] {
        let (status, answer) = hall.call("POST", "/auth/email", None, sign_in(address, password)).await;
        assert_eq!((status, &answer["error"]["code"]), (401, &json!("wrong_password")), "the same for both");
    }
    let device = json!({ "device": format!("the device of {:>10}", "ada") });
    hall.good("POST", "/account/credentials/remove", &ada, device).await;
    assert_eq!(
        hall.bad("POST", "/account/credentials/remove", &ada, json!({ "email": "ada@example.com" })).await,
        "last_credential"
    );
    assert_ne!(hall.player("ada").await.1, id, "the device leads elsewhere");

    let (status, guest) = hall.call("POST", "/auth/guest", None, json!({ "app": "tanks" })).await;
    assert_eq!((status, &guest["account"]["kind"]), (200, &json!("guest")));
    let other =
        json!({ "app": "tanks", "environment": "staging", "device": format!("the device of {:>10}", "bob") });
    let (_, other) = hall.call("POST", "/auth/device", None, other).await;
    assert_ne!(other["account"]["id"], json!(hall.player("bob").await.1), "environments do not mix");
    let server = hall.operator(Role::Server);
    let custom = hall.good("POST", "/auth/custom", &server, json!({ "custom": "7", "name": "cid" })).await;
    let again = hall.good("POST", "/auth/custom", &server, json!({ "custom": "7" })).await;
    assert_eq!(
        (&again["account"]["id"], &again["account"]["name"]),
        (&custom["account"]["id"], &json!("cid"))
    );
}

#[tokio::test]
async fn a_refresh_token_is_good_once_and_its_reuse_ends_the_sign_in() {
    let hall = Hall::open().await;
    let (_, first) = hall.call("POST", "/auth/guest", None, json!({ "app": "tanks" })).await;
    let refresh = |token: &Value| json!({ "app": "tanks", "refresh_token": token });
    let (status, second) = hall.call("POST", "/auth/refresh", None, refresh(&first["refresh_token"])).await;
    assert_eq!((status, &second["account"]["id"]), (200, &first["account"]["id"]));
    let (status, third) = hall.call("POST", "/auth/refresh", None, refresh(&second["refresh_token"])).await;
    assert_eq!(status, 200, "{third}");
    // The first comes again after its successor was used: two have it.
    let (status, stolen) = hall.call("POST", "/auth/refresh", None, refresh(&first["refresh_token"])).await;
    assert_eq!((status, &stolen["error"]["code"]), (401, &json!("refresh_token_reused")), "{stolen}");
    let (status, _) = hall.call("POST", "/auth/refresh", None, refresh(&third["refresh_token"])).await;
    assert_eq!(status, 401, "the sign-in is over for both");
    let (_, again) = hall.call("POST", "/auth/guest", None, json!({ "app": "tanks" })).await;
    assert_eq!(hall.call("POST", "/auth/sign-out", None, refresh(&again["refresh_token"])).await.0, 200);
    let (_, lost) = hall.call("POST", "/auth/guest", None, json!({ "app": "tanks" })).await;
    hall.good("POST", "/account/sign-out-everywhere", lost["access_token"].as_str().unwrap(), json!({}))
        .await;
    assert_eq!(hall.call("POST", "/auth/refresh", None, refresh(&lost["refresh_token"])).await.0, 401);
    assert_eq!(hall.call("POST", "/auth/refresh", None, refresh(&again["refresh_token"])).await.0, 401);
    for nonsense in ["", ".", "s0.x", "x"] {
        assert_eq!(hall.call("POST", "/auth/refresh", None, refresh(&json!(nonsense))).await.0, 401);
    }
}

#[tokio::test]
async fn a_closed_server_lets_nobody_make_an_account() {
    let hall = Hall::with(false, None).await;
    for (path, input) in [
        ("/auth/guest", json!({ "app": "tanks" })),
        ("/auth/device", json!({ "app": "tanks", "device": "0123456789abcdef" })),
        ("/auth/email", json!({ "app": "tanks", "email": "a@b", "password": "12345678", "create": true })),
    ] {
        let (status, answer) = hall.call("POST", path, None, input).await;
        assert_eq!((status, &answer["error"]["code"]), (403, &json!("closed")), "{path}: {answer}");
    }
    let player =
        hall.good("POST", "/auth/custom", &hall.operator(Role::Server), json!({ "custom": "7" })).await;
    hall.good("GET", "/account", player["access_token"].as_str().unwrap(), json!({})).await;
}

#[tokio::test]
async fn r2_a_game_goes_over_rest_from_its_opening_to_its_end() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let config = json!({ "turn_based": true, "auto_start": false, "players": { "min": 2, "max": 3 }, "quorum": "all" });
    let made = hall.good("POST", "/rooms", &ada, json!({ "config": config, "name": "Noughts" })).await;
    let id = made["room"]["id"].as_str().unwrap().to_owned();
    let at = |rest: &str| format!("/rooms/{id}{rest}");
    assert_eq!(hall.good("GET", "/rooms?limit=10", &bob, json!({})).await["rooms"][0]["id"], id.as_str());
    assert_eq!(hall.bad("GET", &at(""), &bob, json!({})).await, "not_in_room");
    let code = json!({ "code": made["room"]["code"] });
    hall.good("POST", "/rooms/join", &bob, code).await;
    hall.good("POST", &at("/join"), &bob, json!({})).await;
    assert_eq!(hall.bad("POST", &at("/start"), &bob, json!({})).await, "not_host");
    let order = json!({ "turn_order": [ada_id, bob_id] });
    hall.good("POST", &at("/start"), &ada, order).await;
    let put = |cell: u64| json!({ "type": "put", "data": { "cell": cell }, "state": { "last": cell } });
    assert_eq!(hall.bad("POST", &at("/moves"), &bob, put(1)).await, "not_your_turn");
    let proposed = hall.good("POST", &at("/moves"), &ada, put(4)).await;
    let proposal = proposed["room"]["proposals"][0]["id"].as_u64().unwrap();
    assert!(proposed["room"]["state"]["last"].is_null() && proposed["room"]["optimistic_state"]["last"] == 4);
    let verdict = at(&format!("/moves/{proposal}/verdict"));
    let stands = hall.good("POST", &verdict, &bob, json!({ "accept": true })).await;
    assert_eq!(stands["room"]["state"]["last"], 4);
    let say = json!({ "type": "chat", "body": "well played" });
    hall.good("POST", &at("/messages"), &bob, say).await;
    hall.good("PATCH", &at(""), &ada, json!({ "data": { "mood": "tense" }, "visibility": "private" })).await;

    let inbox = hall.good("GET", "/inbox?after=0&limit=100", &bob, json!({})).await;
    let kinds: Vec<&str> =
        inbox["notices"].as_array().unwrap().iter().map(|n| n["kind"].as_str().unwrap()).collect();
    for kind in
        ["game_started", "turn_started", "move_proposed", "move_made", "your_turn", "message", "room_updated"]
    {
        assert!(kinds.contains(&kind), "{kind} of {kinds:?}");
    }
    hall.good("POST", "/inbox/acknowledge", &bob, json!({ "up_to": inbox["newest"] })).await;
    assert_eq!(hall.good("GET", "/inbox", &bob, json!({})).await["notices"], json!([]));

    let (server, admin) = (hall.operator(Role::Server), hall.operator(Role::Admin));
    assert_eq!(hall.good("GET", &at(""), &server, json!({})).await["room"]["phase"], "playing");
    assert_eq!(hall.good("GET", "/admin/rooms", &admin, json!({})).await["rooms"][0]["id"], id.as_str());
    let over = hall
        .good("POST", &at("/end"), &server, json!({ "winner": bob_id, "reason": "by the referee" }))
        .await;
    assert_eq!(over["room"]["result"]["winner"], bob_id.as_str());
    assert_eq!(hall.good("GET", "/rooms/mine", &bob, json!({})).await["rooms"][0]["phase"], "ended");
    assert_eq!(hall.good("POST", &at("/leave"), &bob, json!({})).await["room"], Value::Null);

    let config = json!({ "config": { "rules": "draughts" } });
    let first = hall.good("POST", "/rooms/join-or-create", &ada, config.clone()).await;
    let second = hall.good("POST", "/rooms/join-or-create", &bob, config.clone()).await;
    assert_eq!((&second["room"]["id"], &second["room"]["phase"]), (&first["room"]["id"], &json!("playing")));
    let again = hall.good("POST", "/rooms/join-or-create", &ada, config).await;
    assert_eq!(again["room"]["id"], first["room"]["id"], "a game that is not over comes first");
    let room = format!("/rooms/{}", first["room"]["id"].as_str().unwrap());
    let resigned = hall.good("POST", &format!("{room}/resign"), &ada, json!({})).await;
    assert_eq!(resigned["room"]["result"]["winner"], bob_id.as_str());
    let listed = hall.good("GET", "/rules", &ada, json!({})).await;
    assert!(listed["rules"].as_array().unwrap().contains(&json!("draughts")), "{listed}");
    let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "auto_start": false } })).await;
    let room = format!("/rooms/{}", opened["room"]["id"].as_str().unwrap());
    hall.good("POST", &format!("{room}/join"), &bob, json!({})).await;
    hall.good("POST", &format!("{room}/kick"), &ada, json!({ "player": bob_id, "reason": "rude" })).await;
    assert_eq!(hall.bad("POST", &format!("{room}/join"), &bob, json!({})).await, "kicked");
}

#[tokio::test]
async fn a_ban_counts_at_once_and_until_it_is_lifted() {
    let hall = Hall::open().await;
    let (ada, id) = hall.player("ada").await;
    let admin = hall.operator(Role::Admin);
    let mut socket = hall.socket().await;
    let account = socket
        .ask("auth.device", json!({ "app": "tanks", "device": format!("the device of {:>10}", "ada") }));
    assert_eq!(account.await["output"]["account"]["id"], id.as_str());
    hall.good("POST", "/admin/bans", &admin, json!({ "account": id, "reason": "cheated", "for_s": 3_600 }))
        .await;
    assert_eq!(hall.bad("GET", "/account", &ada, json!({})).await, "banned");
    let sign_in = json!({ "app": "tanks", "device": format!("the device of {:>10}", "ada") });
    let (status, answer) = hall.call("POST", "/auth/device", None, sign_in.clone()).await;
    assert_eq!((status, &answer["error"]["code"]), (403, &json!("banned")));
    let gone = socket.next_message().await;
    assert!(matches!(gone, Message::Close(_)), "{gone:?}");
    assert_eq!(hall.good("GET", "/admin/bans", &admin, json!({})).await["bans"][0]["account"], id.as_str());
    hall.good("POST", "/admin/bans/lift", &admin, json!({ "account": id })).await;
    hall.good("GET", "/account", &ada, json!({})).await;
    assert_eq!(hall.bad("POST", "/admin/bans/lift", &admin, json!({ "account": id })).await, "not_found");
}

#[tokio::test]
async fn whoever_runs_the_server_gives_roles_and_makes_backups() {
    let hall = Hall::open().await;
    let (ada, id) = hall.player("ada").await;
    let admin = hall.operator(Role::Admin);
    hall.good("POST", "/rooms", &ada, json!({})).await;
    let status = hall.good("GET", "/admin/status", &admin, json!({})).await;
    assert!(status["store_writes"].as_u64() > Some(1), "{status}");
    let made = hall.good("POST", "/admin/backup", &admin, json!({})).await;
    let file = made["file"].as_str().unwrap();
    let copy = rusqlite::Connection::open(file).unwrap();
    let rooms: i64 = copy.query_row("SELECT count(*) FROM rooms", [], |row| row.get(0)).unwrap();
    assert_eq!(rooms, 1);
    hall.good("POST", "/admin/roles", &admin, json!({ "account": id, "role": "server" })).await;
    assert_eq!(hall.bad("GET", "/admin/status", &ada, json!({})).await, "token_expired", "it was a player's");
    let (again, _) = hall.player("ada").await;
    hall.good("GET", "/admin/status", &again, json!({})).await;
    assert_eq!(
        hall.bad("POST", "/admin/roles", &admin, json!({ "account": id, "role": "king" })).await,
        "bad_input"
    );
}

#[tokio::test]
async fn a_service_is_told_until_it_has_heard() {
    let (url, mut told) = told_service().await;
    let key = b"a key of some length".to_vec();
    let hall = Hall::with(true, Some(WebhookConfig { url, key: key.clone(), allows_private: true })).await;
    let (ada, id) = hall.player("ada").await;
    hall.has_a_guest(&ada).await;
    let (first, again) = (within(told.recv()).await.unwrap(), within(told.recv()).await.unwrap());
    assert!(
        first.starts_with("POST /hook HTTP/1.1\r\n") && again.starts_with("POST /hook HTTP/1.1\r\n"),
        "{again}"
    );
    let header = |name: &str| {
        let line = again.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("{name} in {again}")).to_owned()
    };
    let body = again.split_once("\r\n\r\n").unwrap().1;
    let signed = format!("{}.{}.{body}", header("parlor-timestamp"), header("parlor-id"));
    let signature = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key), signed.as_bytes());
    let signature: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(header("parlor-signature"), format!("v1={signature}"));
    assert_eq!(first.split_once("\r\n\r\n").unwrap().1, body, "the same again");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["kind"], &body["app"]), (&json!("player_joined"), &json!("tanks")));
    assert!(body["to"].as_array().unwrap().contains(&json!(id)), "{body}");
}

#[tokio::test]
async fn a_private_address_is_told_nothing_unless_it_may_be() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/hook", listener.local_addr().unwrap().port());
    let hall = Hall::with(true, Some(WebhookConfig { url, key: vec![7; 16], allows_private: false })).await;
    let (ada, _) = hall.player("ada").await;
    hall.has_a_guest(&ada).await;
    let server = hall.operator(Role::Server);
    // It was tried, in vain, and waits for the next time.
    let path = hall.server.folder.path().join("parlor.db");
    let reader = rusqlite::Connection::open(path).unwrap();
    let attempts =
        || reader.query_row("SELECT max(attempts) FROM webhooks", [], |row| row.get::<_, Option<i64>>(0));
    within(async {
        while attempts().unwrap() < Some(1) {
            tokio::task::yield_now().await
        }
    })
    .await;
    assert_eq!(hall.good("GET", "/admin/status", &server, json!({})).await["webhooks_waiting"], 1);
    let none = futures_util::FutureExt::now_or_never(listener.accept());
    assert!(none.is_none(), "nobody connected");
}

#[tokio::test]
async fn what_is_wrong_with_an_input_is_named() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    for (body, status, code, path) in [
        ("{", 400, "bad_json", None),
        ("[]", 400, "bad_input", Some("")),
        ("{}", 400, "bad_input", Some("type")),
        (r#"{"type":7}"#, 400, "bad_input", Some("type")),
        (r#"{"type":"put","x":1}"#, 400, "bad_input", Some("x")),
        (r#"{"type":"put","state_version":-1}"#, 400, "bad_input", Some("state_version")),
        (r#"{"type":"put","room":"r1"}"#, 400, "bad_input", Some("room")),
        (r#"{"type":"put","type":"take"}"#, 400, "bad_json", None),
        (r#"{"type":"put"}"#, 404, "no_such_room", None),
        (
            &format!("{{\"type\":\"put\",\"data\":{}1{}}}", "[".repeat(200), "]".repeat(200)),
            400,
            "bad_json",
            None,
        ),
        (&format!("{{\"type\":\"{}\"}}", "x".repeat(70_000)), 413, "too_large", None),
    ] {
        let answer = hall.ask("POST", "/rooms/r0/moves", Some(&ada), body).await;
        let error = &answer.json()["error"];
        assert_eq!((answer.status(), error["code"].as_str()), (status, Some(code)), "{body:.80}: {error}");
        assert_eq!(error["path"].as_str(), path, "{body:.80}: {error}");
        assert!(!error["sentence"].as_str().unwrap().is_empty());
    }
    let deep = json!({ "config": { "moves": { "playing": { "put": { "required": [] } } } } });
    let (_, answer) = hall.call("POST", "/rooms", Some(&ada), deep).await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["path"]),
        (&json!("bad_config"), &json!("config.moves.playing.put.required"))
    );
    for (method, path, status, code) in [
        ("GET", "/nothing", 404, "no_such_path"),
        ("DELETE", "/rooms", 405, "no_such_method"),
        ("GET", "/rooms?limit=x", 400, "bad_input"),
        ("GET", "/rooms?limit=1&limit=2", 400, "bad_input"),
        ("GET", "/rooms?limits=1", 400, "bad_input"),
        ("GET", "/rooms?after=%ff", 400, "bad_input"),
        ("GET", "/rooms?after=nonsense", 400, "bad_input"),
        ("GET", "/rooms/%00", 400, "bad_input"),
        ("POST", "/rooms?name=x", 400, "bad_input"),
    ] {
        let (found, answer) = hall.call(method, path, Some(&ada), json!({})).await;
        assert_eq!(
            (found, answer["error"]["code"].as_str()),
            (status, Some(code)),
            "{method} {path}: {answer}"
        );
    }
    for token in ["", "x", "a.b.c", &ada[..ada.len() - 2]] {
        let answer = hall.ask("GET", "/account", Some(token), "").await;
        assert_eq!((answer.status(), &answer.json()["error"]["code"]), (401, &json!("bad_token")));
        assert!(answer.head().contains("www-authenticate: bearer"), "{answer:?}");
    }
    let (status, answer) = hall.call("POST", "/auth/guest", None, json!({ "app": "a/b" })).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_input")), "{answer}");
}

#[tokio::test]
async fn the_socket_answers_and_tells_what_happens() {
    let hall = Hall::open().await;
    let mut ada = hall.socket().await;
    for (text, code) in [
        ("{", "bad_json"),
        ("[]", "bad_input"),
        (r#"{"id":1,"op":"nothing"}"#, "no_such_operation"),
        (r#"{"id":1,"op":"account.me"}"#, "signed_out"),
        (r#"{"id":1,"op":"account.me","token":"x"}"#, "bad_token"),
        (r#"{"id":1,"op":"auth.guest","input":{"app":7}}"#, "bad_input"),
    ] {
        ada.say(text).await;
        let answer = ada.hear().await;
        assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
    }
    let signed_in = ada.ask("auth.guest", json!({ "app": "tanks", "name": "ada" })).await;
    let me = ada.ask("account.me", json!({})).await;
    assert_eq!(
        me["output"]["account"]["id"], signed_in["output"]["account"]["id"],
        "the answer's token counts"
    );
    let room = ada.ask("turn.create", json!({})).await["output"]["room"]["id"].clone();
    let before = ada.ask("inbox.read", json!({})).await["output"]["newest"].clone();
    let (bob, bob_id) = hall.player("bob").await;
    hall.good("POST", &format!("/rooms/{}/join", room.as_str().unwrap()), &bob, json!({})).await;
    let event = ada.hear().await["event"].clone();
    assert_eq!((&event["kind"], &event["notice"]["room"]), (&json!("player_joined"), &room));
    assert_eq!(event["seq"].as_u64(), before.as_u64().map(|before| before + 1));
    assert_eq!(event["notice"]["body"]["player"], bob_id.as_str());
    let inbox = ada.ask("inbox.read", json!({ "after": before })).await;
    assert_eq!(inbox["output"]["notices"][0], event, "the feed has what the inbox has");
}

#[tokio::test]
async fn threat_30_a_store_that_stands_still_stops_no_realtime_room() {
    let hall = Hall::open().await;
    let (mut host, mut guest, code) = hall.server.room().await;
    let (ada, _) = hall.player("ada").await;
    let path = hall.server.folder.path().join("parlor.db");
    let holder = rusqlite::Connection::open(path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = hall.ask("POST", "/rooms", Some(&ada), "{}").await;
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (503, &json!("unavailable")),
        "{answer:?}"
    );
    assert!(answer.head().contains("retry-after: ") && answer.json()["error"]["retry_after_ms"].is_u64());
    hall.server.assert_goes_on(&mut host, &mut guest, code).await;
    hall.good("GET", "/account", &ada, json!({})).await;
    holder.execute_batch("ROLLBACK").unwrap();
    within(async { while hall.ask("POST", "/rooms", Some(&ada), "{}").await.status() == 503 {} }).await;
    let mut other = hall.server.quic(creating(None, None, 2)).await;
    other.welcome().await;
}
