//! Boards that the game's own service or the rules of games write, and the webhook at the end of a season.

use crate::hall::{Hall, Setup, told_service};
use core::time::Duration;
use parlor_server::Time;
use parlor_server::admission::SigningKey;
use parlor_server::embed::unix_s;
use parlor_services::store::Role;
use parlor_services::{RECEIPT_LIFE_S_MAX, ScoreReceipt, WebhookConfig, operator_token};
use parlor_testing::within;
use serde_json::{Value, json};

impl Hall {
    async fn define_written(&self, board: &str, definition: Value) {
        let input = json!({ "board": board, "definition": definition });
        self.good("POST", "/admin/boards", &self.operator(Role::Admin), input).await;
    }

    async fn scores(&self, path: &str, token: &str) -> Vec<i64> {
        let page = self.good("GET", path, token, json!({})).await;
        page["entries"].as_array().unwrap().iter().map(|entry| entry["score"].as_i64().unwrap()).collect()
    }
}

fn receipt(account: &str, board: &str, score: i64, id: &str) -> ScoreReceipt {
    let iat = unix_s();
    ScoreReceipt {
        sub: account.to_owned(),
        aud: "tanks".to_owned(),
        env: "production".to_owned(),
        board: board.to_owned(),
        score,
        sub_score: 0,
        extra: None,
        jti: id.to_owned(),
        iat,
        exp: iat + RECEIPT_LIFE_S_MAX,
    }
}

fn carried(score: i64, receipt: &str) -> Value {
    json!({ "score": score, "receipt": receipt })
}

#[tokio::test]
async fn threat_26_t3_a_receipt_is_good_once_for_its_player_and_its_score_also_after_a_restart() {
    let hall = Hall::open().await;
    hall.define_written("judged", json!({ "keep": "sum" })).await;
    hall.define_written("other", json!({})).await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let path = "/boards/judged/scores";
    let first = receipt(&ada_id, "judged", 7, "one").signed(hall.key());
    let submitted = hall.good("POST", path, &ada, carried(7, &first)).await;
    assert_eq!((&submitted["score"], &submitted["again"]), (&json!(7), &json!(false)));
    // Sent again because the answer was lost, it counts no second time.
    let again = hall.good("POST", path, &ada, carried(7, &first)).await;
    assert_eq!((&again["score"], &again["again"]), (&json!(7), &json!(true)));
    let second = receipt(&ada_id, "judged", 5, "two").signed(hall.key());
    assert_eq!(hall.good("POST", path, &ada, carried(5, &second)).await["score"], 12);
    // Its entry remembers the newest four, and the store each one until it is over.
    for number in 0..4 {
        let more = receipt(&ada_id, "judged", 0, &format!("more {number}")).signed(hall.key());
        hall.good("POST", path, &ada, carried(0, &more)).await;
    }
    let hall = hall.again(false).await;
    assert_eq!(hall.bad("POST", path, &ada, carried(7, &first)).await, "receipt_used");
    assert_eq!(hall.scores("/boards/judged", &ada).await, [12]);

    let mut wrong = Vec::new();
    let good = || receipt(&bob_id, "judged", 3, "bobs");
    let now_s = unix_s();
    let changes: [fn(&mut ScoreReceipt, u64); 13] = [
        |receipt, _| receipt.sub = "somebody".into(),
        |receipt, _| receipt.aud = "chess".into(),
        |receipt, _| receipt.env = "beta".into(),
        |receipt, _| receipt.board = "other".into(),
        |receipt, _| receipt.score = 4,
        |receipt, _| receipt.sub_score = 1,
        |receipt, _| receipt.extra = Some(json!({ "a": 1 })),
        |receipt, _| receipt.jti = String::new(),
        |receipt, _| receipt.jti = "x".repeat(65),
        |receipt, _| receipt.exp += 1,
        |receipt, now_s| (receipt.iat, receipt.exp) = (now_s - 3_601, now_s - 1),
        |receipt, now_s| (receipt.iat, receipt.exp) = (now_s + 600, now_s + 700),
        |receipt, _| (receipt.iat, receipt.exp) = (receipt.exp, receipt.iat),
    ];
    for change in changes {
        let mut changed = good();
        change(&mut changed, now_s);
        wrong.push(changed.signed(hall.key()));
    }
    let stranger = SigningKey::generate().unwrap();
    wrong.push(good().signed(&stranger));
    // Other things that the operator's key signs are no receipts, and a changed letter is another one.
    wrong.push(hall.operator(Role::Server));
    wrong.push(operator_token(&stranger, Role::Server, "ops", "tanks", "production"));
    wrong.push(good().signed(hall.key()).replace('.', "x."));
    wrong.push("nonsense".to_owned());
    for wrong in &wrong {
        assert_eq!(hall.bad("POST", path, &bob, carried(3, wrong)).await, "bad_receipt", "{wrong}");
    }
    assert_eq!(hall.bad("POST", path, &ada, carried(3, &good().signed(hall.key()))).await, "bad_receipt");
    assert_eq!(hall.bad("POST", path, &bob, json!({ "score": 3 })).await, "server_only");
    assert_eq!(hall.scores("/boards/judged", &bob).await, [12], "none of them has changed anything");
    assert_eq!(hall.good("POST", path, &bob, carried(3, &good().signed(hall.key()))).await["rank"], 2);
}

#[tokio::test]
async fn threat_26_t3_of_one_receipt_in_many_requests_one_counts() {
    let hall = Hall::open().await;
    for board in ["a", "b"] {
        hall.define_written(board, json!({})).await;
    }
    let (ada, ada_id) = hall.player("ada").await;
    let signed = receipt(&ada_id, "a", 9, "once").signed(hall.key());
    let asked = (0..8).map(|_| hall.call("POST", "/boards/a/scores", Some(&ada), carried(9, &signed)));
    let answers = futures_util::future::join_all(asked).await;
    let fresh = answers.iter().filter(|(_, answer)| answer["again"] == json!(false)).count();
    assert_eq!(fresh, 1, "{answers:?}");
    // The same id for another score is no other receipt. A service gives each an id of its own.
    let same_id = receipt(&ada_id, "b", 9, "once").signed(hall.key());
    assert_eq!(hall.bad("POST", "/boards/b/scores", &ada, carried(9, &same_id)).await, "receipt_used");
}

#[tokio::test]
async fn threat_26_t3_rules_write_their_boards_with_the_move_that_ends_the_game_and_no_player_does() {
    let hall = Hall::open().await;
    let wins = json!({ "writers": "rules", "keep": "sum" });
    hall.define_written("draughts.wins", wins).await;
    let ((ada, _), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let forged =
        hall.bad("POST", "/boards/draughts.wins/scores", &ada, json!({ "score": 1, "id": "x" })).await;
    assert_eq!(forged, "server_only");
    // Not with a receipt either: those are for boards of the service.
    let signed = receipt(&bob_id, "draughts.wins", 1, "r").signed(hall.key());
    let refused = hall.bad("POST", "/boards/draughts.wins/scores", &bob, carried(1, &signed)).await;
    assert_eq!(refused, "server_only");
    let play = async |hall: &Hall, config: Value| {
        let opened = hall.good("POST", "/rooms", &ada, json!({ "config": config })).await;
        let room = opened["room"]["id"].as_str().unwrap().to_owned();
        hall.good("POST", &format!("/rooms/{room}/join"), &bob, json!({})).await;
        hall.good("POST", &format!("/rooms/{room}/resign"), &ada, json!({})).await;
    };
    for wins in 1..=2 {
        play(&hall, json!({ "rules": "draughts", "auto_start": true })).await;
        assert_eq!(hall.scores("/boards/draughts.wins", &ada).await, [wins]);
    }
    // A room without rules awards nothing, whatever its players say.
    play(&hall, json!({ "auto_start": true, "players": { "min": 2, "max": 2 } })).await;
    assert_eq!(hall.scores("/boards/draughts.wins", &ada).await, [2]);
    // A board that others write, or that is not there, takes no award, and the game ends all the same.
    hall.define_written("draughts.wins", json!({ "writers": "server", "keep": "sum" })).await;
    play(&hall, json!({ "rules": "draughts", "auto_start": true })).await;
    assert_eq!(hall.scores("/boards/draughts.wins", &ada).await, [2]);
    hall.good(
        "POST",
        "/admin/boards/delete",
        &hall.operator(Role::Admin),
        json!({ "board": "draughts.wins" }),
    )
    .await;
    play(&hall, json!({ "rules": "draughts", "auto_start": true })).await;
    for kind in ["statistic", "achievement"] {
        let input = json!({ "kind": kind, "name": "x", "definition": { "writers": "rules" } });
        assert_eq!(
            hall.bad("POST", "/admin/definitions", &hall.operator(Role::Admin), input).await,
            "bad_input"
        );
    }
}

#[tokio::test]
async fn t3_the_end_of_a_season_is_told_once_though_the_server_is_killed() {
    let (url, mut told) = told_service().await;
    let key = b"a key of some length".to_vec();
    let webhook = WebhookConfig { url, key, allows_private: true };
    let time = Time::default();
    let change = |setup: &mut Setup| {
        setup.config.time = time.clone();
        setup.online.webhook = Some(webhook.clone());
    };
    let hall = Hall::changed(change).await;
    let weekly = json!({ "writers": "players", "reset": "0 4 * * 1", "tell": 2 });
    hall.define_written("week", weekly).await;
    hall.define_written("silent", json!({ "writers": "players", "reset": "0 4 * * 1" })).await;
    // A later definition adds the webhook for a season's end, while the season runs.
    hall.define_written("late", json!({ "writers": "players" })).await;
    let mut ids = Vec::new();
    for (name, score) in [("ada", 5), ("bob", 9), ("cyd", 1)] {
        let (token, id) = hall.player(name).await;
        for board in ["week", "silent", "late"] {
            hall.good("POST", &format!("/boards/{board}/scores"), &token, json!({ "score": score })).await;
        }
        ids.push(id);
    }
    hall.define_written("late", json!({ "writers": "players", "reset": "0 5 * * 1", "tell": 100 })).await;
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let later = Time::default();
    let hall = hall
        .again_with(
            false,
            |_| {},
            |setup| {
                change(setup);
                setup.config.time = later.clone();
            },
        )
        .await;
    later.pass(week + Duration::from_secs(60));
    let mut calls = std::collections::BTreeMap::new();
    // The service says no to the first call, so one comes twice.
    while calls.len() < 2 {
        let request = within(told.recv()).await.unwrap();
        let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        calls.insert(body["board"].as_str().unwrap().to_owned(), body);
    }
    let week = &calls["week"];
    assert_eq!(
        (&week["kind"], &week["app"], &week["entries"]),
        (&json!("season_ended"), &json!("tanks"), &json!(3))
    );
    assert_eq!(week["to"], json!([ids[1], ids[0]]));
    let best = json!({ "account": ids[1], "rank": 1, "score": 9, "sub": 0 });
    assert_eq!((&week["first"][0], week["first"].as_array().unwrap().len()), (&best, 2));
    assert_eq!(calls["late"]["first"].as_array().unwrap().len(), 3);
    assert!(!calls.contains_key("silent"));
    // Nothing is left to tell, and a new season begins with the next score.
    let count = |what: &str| -> i64 {
        let store = rusqlite::Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
        store.query_row(&format!("SELECT COUNT(*) FROM {what}"), [], |row| row.get(0)).unwrap()
    };
    within(async {
        while count("webhooks") > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(count("board_seasons WHERE ends_ms IS NOT NULL"), 0);
    let (dan, _) = hall.player("dan").await;
    hall.good("POST", "/boards/week/scores", &dan, json!({ "score": 2 })).await;
    assert_eq!(hall.scores("/boards/week", &dan).await, [2]);
}

#[tokio::test]
async fn t3_an_end_that_moves_is_told_when_it_comes_and_what_cannot_end_is_refused() {
    let (url, mut told) = told_service().await;
    let key = b"a key of some length".to_vec();
    let time = Time::default();
    let hall = Hall::changed(|setup| {
        setup.config.time = time.clone();
        setup.online.webhook = Some(WebhookConfig { url, key, allows_private: true });
    })
    .await;
    let admin = hall.operator(Role::Admin);
    for (definition, field) in [
        (json!({ "tell": 3 }), "definition.tell"),
        (json!({ "tell": 101, "reset": "0 4 * * 1" }), "definition.tell"),
    ] {
        let input = json!({ "board": "b", "definition": definition });
        let (_, answer) = hall.call("POST", "/admin/boards", Some(&admin), input).await;
        assert_eq!(answer["error"]["path"], field, "{answer}");
    }
    hall.define_written("b", json!({ "writers": "players", "reset": "0 * * * *", "tell": 1 })).await;
    let (ada, ada_id) = hall.player("ada").await;
    hall.good("POST", "/boards/b/scores", &ada, json!({ "score": 3 })).await;
    // The schedule changes before the season's end: it goes on until the new one's next reset.
    hall.define_written("b", json!({ "writers": "players", "reset": "0 0 1 1 *", "tell": 1 })).await;
    let (day, year) = (Duration::from_secs(24 * 60 * 60), Duration::from_secs(366 * 24 * 60 * 60));
    let listed = hall.good("GET", "/boards", &ada, json!({})).await["boards"][0].clone();
    let new_year_ms = listed["ends_ms"].as_u64().unwrap();
    time.pass(year + day);
    let request = within(told.recv()).await.unwrap();
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["first"], json!([{ "account": ada_id, "rank": 1, "score": 3, "sub": 0 }]));
    assert_eq!(body["ends_ms"], new_year_ms);
}

#[tokio::test]
async fn t3_friends_are_ranked_among_themselves_with_their_ranks_among_all() {
    let hall = Hall::open().await;
    hall.define_written("kills", json!({ "writers": "players" })).await;
    let mut players = Vec::new();
    for (name, score) in [("ada", 5), ("bob", 9), ("cyd", 7), ("dan", 1)] {
        let (token, id) = hall.player(name).await;
        hall.good("POST", "/boards/kills/scores", &token, json!({ "score": score })).await;
        players.push((token, id));
    }
    let (ada, _) = &players[0];
    assert_eq!(hall.scores("/boards/kills/friends", ada).await, [5], "alone");
    // Dan is asked and has not answered.
    for (friend, accepts) in [(1, true), (3, false)] {
        let (token, id) = &players[friend];
        hall.good("POST", "/friends", ada, json!({ "account": id })).await;
        if accepts {
            hall.good("POST", "/friends/accept", token, json!({ "account": players[0].1 })).await;
        }
    }
    let page = hall.good("GET", "/boards/kills/friends", ada, json!({})).await;
    let ranks: Vec<u64> =
        page["entries"].as_array().unwrap().iter().map(|entry| entry["rank"].as_u64().unwrap()).collect();
    assert_eq!((ranks, &page["entries_total"]), (vec![1, 3], &json!(4)));
    assert_eq!(hall.scores("/boards/kills/friends?count=1", ada).await, [9]);
    assert_eq!(hall.bad("GET", "/boards/nothing/friends", ada, json!({})).await, "no_such_board");
    assert_eq!(
        hall.bad("GET", "/boards/kills/friends", &hall.operator(Role::Server), json!({})).await,
        "forbidden"
    );
}
