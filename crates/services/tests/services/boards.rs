//! Boards over the services: who may write, what is refused, and ranks that outlive the server.

use crate::hall::Hall;
use futures_util::future::join_all;
use parlor_services::store::Role;
use serde_json::{Value, json};

impl Hall {
    async fn define(&self, board: &str, definition: Value) {
        let server = self.operator(Role::Server);
        self.good("POST", "/admin/boards", &server, json!({ "board": board, "definition": definition }))
            .await;
    }

    /// Ranks and scores on a page, in its order.
    async fn page(&self, path: &str, token: &str) -> Vec<(u64, i64)> {
        let page = self.good("GET", path, token, json!({})).await;
        let entries = page["entries"].as_array().unwrap().iter();
        entries.map(|entry| (entry["rank"].as_u64().unwrap(), entry["score"].as_i64().unwrap())).collect()
    }

    /// The code and the path of a refusal.
    async fn refused(&self, method: &str, path: &str, token: &str, input: Value) -> (String, String) {
        let (status, answer) = self.call(method, path, Some(token), input).await;
        assert!((400..500).contains(&status), "{method} {path}: {answer}");
        let text = |field: &str| answer["error"][field].as_str().unwrap_or_default().to_owned();
        (text("code"), text("path"))
    }
}

fn code(code: &str, path: &str) -> (String, String) {
    (code.to_owned(), path.to_owned())
}

#[tokio::test]
async fn t3_players_submit_and_see_their_ranks_which_outlive_the_server() {
    let hall = Hall::open().await;
    hall.define("laps", json!({ "title": "Laps", "order": "least", "writers": "players" })).await;
    let mut players = Vec::new();
    for (name, score) in [("ada", 71), ("bob", 64), ("cyd", 71), ("dan", 90)] {
        let (token, id) = hall.player(name).await;
        let extra = json!({ "car": name });
        let input = json!({ "score": score, "extra": extra });
        let answer = hall.good("POST", "/boards/laps/scores", &token, input).await;
        assert_eq!((&answer["score"], &answer["improved"]), (&json!(score), &json!(true)));
        players.push((token, id));
    }
    let (ada, ada_id) = &players[0];
    // A worse one changes nothing, and a better one its rank.
    let worse = hall.good("POST", "/boards/laps/scores", ada, json!({ "score": 80 })).await;
    assert_eq!((&worse["score"], &worse["improved"], &worse["rank"]), (&json!(71), &json!(false), &json!(2)));
    let smallest = json!({ "score": i64::MIN });
    let refused = hall.refused("POST", "/boards/laps/scores", ada, smallest).await;
    assert_eq!(refused, code("out_of_range", "score"), "also where the entry is known");
    let (dan, _) = &players[3];
    let better = hall.good("POST", "/boards/laps/scores", dan, json!({ "score": 60 })).await;
    assert_eq!((&better["rank"], &better["entries"]), (&json!(1), &json!(4)));

    let expected = [(1, 60), (2, 64), (3, 71), (3, 71)];
    let check = async |hall: &Hall| {
        assert_eq!(hall.page("/boards/laps", ada).await, expected);
        assert_eq!(hall.page("/boards/laps?from=2&count=2", ada).await, expected[1..3]);
        assert_eq!(hall.page("/boards/laps/around?count=2", ada).await, expected[1..3]);
        let path = format!("/boards/laps/around?count=1&account={ada_id}");
        assert_eq!(hall.page(&path, &hall.operator(Role::Server)).await, [(3, 71)]);
        let of = json!({ "accounts": [ada_id, players[3].1, "nobody"] });
        let page = hall.good("POST", "/boards/laps/of", ada, of).await;
        assert_eq!((&page["entries"][0]["rank"], &page["entries"][1]["rank"]), (&json!(1), &json!(3)));
        assert_eq!(page["entries"].as_array().unwrap().len(), 2);
        let own = &page["entries"][1];
        assert_eq!((&own["name"], &own["extra"]), (&json!("ada"), &json!({ "car": "ada" })));
        assert_eq!((&own["account"], &page["entries_total"]), (&json!(ada_id), &json!(4)));
    };
    check(&hall).await;
    let listed = hall.good("GET", "/boards", ada, json!({})).await;
    assert_eq!(listed["boards"][0]["title"], "Laps");
    // By a kill: nothing of the order is kept, and all of it is there again.
    let hall = hall.again(false).await;
    check(&hall).await;
    hall.good("POST", "/boards/laps/remove", ada, json!({})).await;
    assert_eq!(hall.page("/boards/laps", ada).await, [(1, 60), (2, 64), (3, 71)]);
    assert_eq!(hall.refused("GET", "/boards/laps/around", ada, json!({})).await.0, "no_such_entry");
    assert_eq!(hall.refused("POST", "/boards/laps/remove", ada, json!({})).await.0, "no_such_entry");
}

#[tokio::test]
async fn threat_26_t3_players_write_only_boards_of_players_and_only_for_themselves() {
    let hall = Hall::open().await;
    for (board, writers) in [("open", "players"), ("closed", "server")] {
        hall.define(board, json!({ "writers": writers, "min": 0, "max": 100 })).await;
    }
    hall.define("tries", json!({ "writers": "players", "attempts": 2 })).await;
    let ((ada, ada_id), (_, bob)) = (hall.player("ada").await, hall.player("bob").await);
    let server = hall.operator(Role::Server);
    let submit = async |token: &str, board: &str, input: Value| {
        hall.refused("POST", &format!("/boards/{board}/scores"), token, input).await
    };
    assert_eq!(submit(&ada, "closed", json!({ "score": 1 })).await, code("server_only", "board"));
    let for_bob = json!({ "score": 1, "account": bob });
    assert_eq!(submit(&ada, "open", for_bob).await, code("bad_input", "account"));
    assert_eq!(submit(&server, "open", json!({ "score": 1 })).await, code("missing_field", "account"));
    for score in [-1, 101, i64::MAX, i64::MIN] {
        assert_eq!(submit(&ada, "open", json!({ "score": score })).await, code("out_of_range", "score"));
    }
    for score in [json!("12"), json!(1.5), json!(1e300), json!(null), json!(u64::MAX)] {
        assert_eq!(submit(&ada, "open", json!({ "score": score })).await, code("bad_input", "score"));
    }
    let sub = json!({ "score": 1, "sub": i64::MIN });
    assert_eq!(submit(&ada, "open", sub).await, code("out_of_range", "sub"));
    let long = json!({ "score": 1, "extra": { "a": "x".repeat(1_100) } });
    assert_eq!(submit(&ada, "open", long).await, code("too_large", "extra"));
    assert_eq!(submit(&ada, "open", json!({ "score": 1, "extra": [1] })).await, code("bad_input", "extra"));
    assert_eq!(submit(&ada, "open", json!({ "score": 1, "id": "" })).await, code("bad_input", "id"));
    assert_eq!(submit(&server, "open", json!({ "score": 1, "account": "p0" })).await.0, "no_such_player");
    assert!(hall.page("/boards/open", &ada).await.is_empty(), "what was refused has changed nothing");
    // What operators judged, players do not undo; nor have they more attempts by it.
    hall.good("POST", "/boards/closed/scores", &server, json!({ "score": 5, "account": ada_id })).await;
    for board in ["closed", "tries"] {
        let path = format!("/boards/{board}/remove");
        assert_eq!(hall.refused("POST", &path, &ada, json!({})).await, code("server_only", "board"));
    }
    let other = json!({ "account": bob });
    assert_eq!(hall.refused("POST", "/boards/open/remove", &ada, other).await, code("bad_input", "account"));
    for _ in 0..2 {
        hall.good("POST", "/boards/tries/scores", &ada, json!({ "score": 1 })).await;
    }
    assert_eq!(submit(&ada, "tries", json!({ "score": 9 })).await, code("no_attempts_left", "board"));
    let removed = json!({ "account": ada_id });
    hall.good("POST", "/boards/closed/remove", &hall.operator(Role::Admin), removed).await;
    assert!(hall.page("/boards/closed", &ada).await.is_empty());
}

#[tokio::test]
async fn threat_26_t3_a_player_submits_no_faster_than_its_budget() {
    let hall = Hall::open().await;
    hall.define("open", json!({ "writers": "players", "keep": "last" })).await;
    let (ada, _) = hall.player("ada").await;
    let began = std::time::Instant::now();
    let all = join_all((0..60).map(|score| {
        let (hall, ada) = (&hall, &ada);
        async move { hall.call("POST", "/boards/open/scores", Some(ada), json!({ "score": score })).await }
    }))
    .await;
    let accepted = all.iter().filter(|(status, _)| *status == 200).count() as u128;
    assert!((20..=21 + began.elapsed().as_millis() / 200).contains(&accepted), "{accepted}");
    let (_, refused) = all.iter().find(|(status, _)| *status == 429).unwrap();
    assert_eq!(refused["error"]["code"], "too_often");
    assert!(refused["error"]["retry_after_ms"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn t3_a_sum_counts_once_also_when_it_is_sent_again_after_a_restart() {
    let hall = Hall::open().await;
    hall.define("kills", json!({ "writers": "players", "keep": "sum" })).await;
    let (ada, _) = hall.player("ada").await;
    let without = hall.refused("POST", "/boards/kills/scores", &ada, json!({ "score": 3 })).await;
    assert_eq!(without, code("missing_field", "id"));
    let send = async |hall: &Hall, id: &str| {
        let answer = hall.good("POST", "/boards/kills/scores", &ada, json!({ "score": 3, "id": id })).await;
        (answer["score"].as_i64().unwrap(), answer["again"].as_bool().unwrap())
    };
    assert_eq!(send(&hall, "one").await, (3, false));
    assert_eq!(send(&hall, "one").await, (3, true));
    assert_eq!(send(&hall, "two").await, (6, false));
    let hall = hall.again(false).await;
    assert_eq!(send(&hall, "one").await, (6, true));
    assert_eq!(send(&hall, "two").await, (6, true));
    assert_eq!(hall.page("/boards/kills", &ada).await, [(1, 6)]);
}

#[tokio::test]
async fn t3_scores_of_many_players_are_stored_all_or_none() {
    let hall = Hall::open().await;
    hall.define("points", json!({ "max": 100, "seats": 2 })).await;
    let server = hall.operator(Role::Server);
    let mut ids = Vec::new();
    for name in ["ada", "bob", "cyd"] {
        ids.push(hall.player(name).await.1);
    }
    let scores = |scores: &[i64]| {
        let all = ids.iter().zip(scores);
        let all = all.map(|(id, score)| json!({ "board": "points", "account": id, "score": score }));
        json!({ "scores": all.collect::<Vec<_>>() })
    };
    let refused = async |input| hall.refused("POST", "/scores", &server, input).await;
    assert_eq!(refused(scores(&[1, 101])).await, code("out_of_range", "scores[1].score"));
    assert_eq!(refused(scores(&[1, 2, 3])).await, code("board_full", "scores[2].board"));
    assert_eq!(refused(json!({ "scores": [] })).await, code("bad_input", "scores"));
    let unknown = json!({ "scores": [{ "board": "no", "account": ids[0], "score": 1 }] });
    assert_eq!(refused(unknown).await, code("no_such_board", "scores[0].board"));
    assert!(hall.page("/boards/points", &server).await.is_empty());
    let done = hall.good("POST", "/scores", &server, scores(&[7, 9])).await;
    assert_eq!((&done["results"][0]["score"], &done["results"][1]["score"]), (&json!(7), &json!(9)));
    assert_eq!(hall.page("/boards/points", &server).await, [(1, 9), (2, 7)]);
}

#[tokio::test]
async fn t3_definitions_are_checked_changed_and_gone() {
    let hall = Hall::open().await;
    let (server, (ada, _)) = (hall.operator(Role::Server), hall.player("ada").await);
    let define = async |input: Value| hall.refused("POST", "/admin/boards", &server, input).await;
    let wrong = json!({ "board": "a b" });
    assert_eq!(define(wrong).await, code("bad_input", "board"));
    for (field, value) in [
        ("reset", json!("0 0 30 2 *")),
        ("reset", json!("* * * * *")),
        ("seasons", json!(65)),
        ("max", json!(i64::MAX)),
        ("attempts", json!(0)),
        ("order", json!("best")),
    ] {
        let path = format!("definition.{field}");
        let input = json!({ "board": "b", "definition": { field: value } });
        assert_eq!(define(input).await, code("bad_input", &path), "{value}");
    }
    hall.define("b", json!({ "writers": "players", "max": 5 })).await;
    hall.good("POST", "/boards/b/scores", &ada, json!({ "score": 5 })).await;
    let stale = json!({ "board": "b", "version": 0 });
    assert_eq!(define(stale).await.0, "stale");
    let change = json!({ "board": "b", "version": 1, "definition": { "writers": "players", "max": 9 } });
    assert_eq!(hall.good("POST", "/admin/boards", &server, change).await["version"], 2);
    hall.good("POST", "/boards/b/scores", &ada, json!({ "score": 9 })).await;
    // Entries are stored as their order has them.
    let turned = json!({ "order": "least", "writers": "players" });
    let turned = json!({ "board": "b", "definition": turned });
    assert_eq!(define(turned.clone()).await, code("bad_input", "definition"));
    assert_eq!(hall.page("/boards/b", &ada).await, [(1, 9)]);
    // A board of another environment is none of this one.
    let staging = hall.operator_named(Role::Server, "service", "staging");
    for (method, path) in
        [("GET", "/boards/b"), ("GET", "/boards/b/seasons"), ("GET", "/boards/b/around?account=p")]
    {
        assert_eq!(hall.refused(method, path, &staging, json!({})).await.0, "no_such_board", "{path}");
    }
    let delete = json!({ "board": "b" });
    assert_eq!(hall.bad("POST", "/admin/boards/delete", &staging, delete.clone()).await, "no_such_board");
    hall.good("POST", "/admin/boards/delete", &server, delete.clone()).await;
    assert_eq!(hall.bad("POST", "/admin/boards/delete", &server, delete).await, "no_such_board");
    assert_eq!(hall.refused("GET", "/boards/b", &ada, json!({})).await, code("no_such_board", "board"));
    // Another one of its name has none of its entries, and any order as long as that is so.
    hall.define("b", json!({ "writers": "players" })).await;
    assert!(hall.page("/boards/b", &ada).await.is_empty());
    hall.good("POST", "/admin/boards", &server, turned).await;
    hall.good("POST", "/boards/b/scores", &ada, json!({ "score": 7 })).await;
    hall.good("POST", "/boards/b/remove", &ada, json!({})).await;
    hall.define("b", json!({ "writers": "players" })).await;
}

#[tokio::test]
async fn t3_a_page_has_bounds_and_a_season_must_be_there() {
    let hall = Hall::open().await;
    hall.define("b", json!({ "writers": "players", "reset": "0 4 * * 1", "utc_offset_minutes": 60 })).await;
    let (ada, _) = hall.player("ada").await;
    for (query, path) in
        [("from=0", "from"), ("count=0", "count"), ("count=101", "count"), ("from=-1", "from")]
    {
        let refused = hall.refused("GET", &format!("/boards/b?{query}"), &ada, json!({})).await;
        assert_eq!(refused, code("bad_input", path), "{query}");
    }
    let answer = hall.good("POST", "/boards/b/scores", &ada, json!({ "score": 5 })).await;
    let season = answer["season"].as_u64().unwrap();
    let page = hall.good("GET", &format!("/boards/b?season={season}"), &ada, json!({})).await;
    assert_eq!((&page["season"], page["entries"].as_array().unwrap().len()), (&json!(season), 1));
    let week_ms = 7 * 24 * 60 * 60 * 1_000;
    assert_eq!(page["ends_ms"], season + week_ms);
    for other in [season + week_ms, season - week_ms, 0] {
        let path = format!("/boards/b?season={other}");
        assert_eq!(hall.refused("GET", &path, &ada, json!({})).await, code("no_such_season", "season"));
    }
    let seasons = hall.good("GET", "/boards/b/seasons", &ada, json!({})).await;
    assert_eq!(seasons["seasons"], json!([{ "season": season, "entries": 1 }]));
    let many: Vec<String> = (0..101).map(|number| format!("p{number}")).collect();
    let refused = hall.refused("POST", "/boards/b/of", &ada, json!({ "accounts": many })).await;
    assert_eq!(refused, code("bad_input", "accounts"));
}

#[tokio::test]
async fn t3_another_schedule_begins_no_season_at_once_nor_after_a_restart() {
    let hall = Hall::open().await;
    hall.define("b", json!({ "writers": "players" })).await;
    let (ada, _) = hall.player("ada").await;
    let submit = async |hall: &Hall, score: i64| {
        hall.good("POST", "/boards/b/scores", &ada, json!({ "score": score })).await["season"].clone()
    };
    assert_eq!(submit(&hall, 1).await, 0);
    // Its last reset is long past, and the next one is far away.
    hall.define("b", json!({ "writers": "players", "reset": "0 0 29 2 *" })).await;
    assert_eq!(submit(&hall, 2).await, 0);
    let listed = hall.good("GET", "/boards", &ada, json!({})).await["boards"][0].clone();
    assert!(listed["season"] == 0 && listed["ends_ms"].is_u64(), "{listed}");
    let hall = hall.again(false).await;
    assert_eq!(submit(&hall, 3).await, 0);
    assert_eq!(hall.page("/boards/b", &ada).await, [(1, 3)]);
    assert_eq!(hall.good("GET", "/boards", &ada, json!({})).await["boards"][0], listed);
    // A board without any entry has the season of its new schedule.
    for definition in
        [json!({ "writers": "players" }), json!({ "writers": "players", "reset": "0 0 29 2 *" })]
    {
        hall.define("empty", definition).await;
    }
    let season =
        hall.good("POST", "/boards/empty/scores", &ada, json!({ "score": 1 })).await["season"].clone();
    assert!(season.as_u64() > Some(0), "{season}");
}

#[tokio::test]
async fn t3_a_deleted_account_leaves_no_entry_and_its_export_has_them() {
    let hall = Hall::open().await;
    for board in ["one", "two"] {
        hall.define(board, json!({ "order": "least" })).await;
    }
    let server = hall.operator(Role::Server);
    let ((ada, ada_id), (_, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    for (board, id) in [("one", &ada_id), ("two", &ada_id), ("one", &bob_id)] {
        let input = json!({ "score": 3, "account": id, "extra": { "run": board } });
        hall.good("POST", &format!("/boards/{board}/scores"), &server, input).await;
    }
    assert_eq!(hall.page("/boards/one", &server).await, [(1, 3), (1, 3)]);
    let (mut after, mut exported) = (String::from("account"), Vec::new());
    loop {
        let part = hall.good("GET", &format!("/account/export?after={after}"), &ada, json!({})).await;
        if part["kind"] == "boards" {
            exported.extend(part["entries"].as_array().unwrap().clone());
        }
        match part["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    let boards: Vec<_> = exported.iter().map(|entry| (&entry["board"], &entry["score"])).collect();
    assert_eq!(boards, [(&json!("one"), &json!(3)), (&json!("two"), &json!(3))]);
    assert_eq!(exported[1]["extra"], json!({ "run": "two" }));
    hall.good("POST", "/account/delete", &ada, json!({ "account": ada_id })).await;
    assert_eq!(hall.page("/boards/one", &server).await, [(1, 3)]);
    assert!(hall.page("/boards/two", &server).await.is_empty());
    // Its entry does not come back: nothing would delete it.
    let input = json!({ "score": 3, "account": ada_id });
    assert_eq!(hall.bad("POST", "/boards/two/scores", &server, input).await, "no_such_player");
}

#[tokio::test]
async fn threat_26_t3_a_cheater_is_banned_and_gone_from_all_boards() {
    let hall = Hall::open().await;
    for board in ["one", "two"] {
        hall.define(board, json!({ "writers": "players" })).await;
    }
    let ((eve, eve_id), (ada, _)) = (hall.player("eve").await, hall.player("ada").await);
    for board in ["one", "two"] {
        for (token, score) in [(&eve, 999), (&ada, 5)] {
            hall.good("POST", &format!("/boards/{board}/scores"), token, json!({ "score": score })).await;
        }
    }
    let ban = |scores: bool| json!({ "account": eve_id, "reason": "cheated", "scores": scores });
    let admin = hall.operator(Role::Admin);
    hall.good("POST", "/admin/bans", &admin, ban(false)).await;
    assert_eq!(hall.page("/boards/one", &ada).await, [(1, 999), (2, 5)], "a ban alone leaves scores");
    hall.good("POST", "/admin/bans", &admin, ban(true)).await;
    for board in ["one", "two"] {
        assert_eq!(hall.page(&format!("/boards/{board}"), &ada).await, [(1, 5)]);
    }
    assert_eq!(hall.bad("POST", "/boards/one/scores", &eve, json!({ "score": 999 })).await, "banned");
}

#[tokio::test]
async fn t3_on_a_server_for_development_a_first_score_makes_its_board() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let answers = join_all((0..4).map(|score| {
        let (hall, ada) = (&hall, &ada);
        async move { hall.good("POST", "/boards/jam/scores", ada, json!({ "score": score })).await }
    }))
    .await;
    assert_eq!(answers.len(), 4);
    assert_eq!(hall.page("/boards/jam", &ada).await, [(1, 3)]);
    assert_eq!(
        hall.bad("GET", "/boards/other", &ada, json!({})).await,
        "no_such_board",
        "a question makes none"
    );
    for (input, why) in [
        (json!({ "score": i64::MAX }), code("out_of_range", "score")),
        (json!({ "score": 1, "sub": i64::MIN }), code("out_of_range", "sub")),
        (json!({ "score": 1, "extra": 1 }), code("bad_input", "extra")),
    ] {
        assert_eq!(hall.refused("POST", "/boards/other/scores", &ada, input).await, why);
    }
    let path = format!("/boards/{}/scores", "x".repeat(65));
    assert_eq!(hall.refused("POST", &path, &ada, json!({ "score": 1 })).await, code("bad_input", "board"));
    let listed = hall.good("GET", "/boards", &ada, json!({})).await;
    assert_eq!(listed["boards"].as_array().unwrap().len(), 1, "nor does a score that is refused");
    // Where only the game's own service makes accounts, only operators make boards.
    let closed = Hall::with(false, None).await;
    let server = closed.operator(Role::Server);
    let custom = json!({ "custom": "ada at the game's service", "name": "ada" });
    let (status, answer) = closed.call("POST", "/auth/custom", Some(&server), custom).await;
    assert_eq!(status, 200, "{answer}");
    let token = answer["access_token"].as_str().unwrap();
    assert_eq!(closed.bad("POST", "/boards/jam/scores", token, json!({ "score": 1 })).await, "no_such_board");
}

#[tokio::test]
async fn t3_boards_speak_over_the_json_socket_too() {
    let hall = Hall::open().await;
    hall.define("b", json!({ "writers": "players" })).await;
    let (ada, _) = hall.player("ada").await;
    let mut socket = hall.socket().await;
    socket.say(&json!({ "id": 0, "op": "board.list", "token": ada }).to_string()).await;
    assert_eq!(socket.hear().await["output"]["boards"][0]["board"], "b");
    let submitted = socket.ask("board.submit", json!({ "board": "b", "score": 4 })).await;
    assert_eq!(submitted["output"]["rank"], 1, "{submitted}");
    let around = socket.ask("board.around", json!({ "board": "b", "count": 3 })).await;
    assert_eq!(around["output"]["entries"][0]["score"], 4);
}

#[tokio::test]
async fn threat_44_t3_a_player_has_so_many_past_seasons_loaded() {
    let hall = Hall::open().await;
    hall.define("b", json!({})).await;
    let (ada, _) = hall.player("ada").await;
    let seasons = |path: &std::path::Path| {
        let store = rusqlite::Connection::open(path).unwrap();
        let insert =
            "INSERT INTO board_seasons (board, season, entries, gone) SELECT number, ?1, 0, 0 FROM boards";
        for season in 1..=7 {
            assert_eq!(store.execute(insert, [season]).unwrap(), 1);
        }
    };
    let hall = hall.again_with(true, seasons, |_| {}).await;
    let ask = async |token: &str, season: u64| {
        let (status, answer) =
            hall.call("GET", &format!("/boards/b?season={season}"), Some(token), json!({})).await;
        assert!(status == 200 || answer["error"]["code"] == "too_often", "{answer}");
        status == 200
    };
    let (began, mut loaded) = (std::time::Instant::now(), 0);
    for season in 1..7 {
        loaded += u128::from(ask(&ada, season).await);
    }
    assert!((4..=4 + began.elapsed().as_millis() / 10_000).contains(&loaded), "{loaded}");
    // What is in memory, or is current, costs nothing; operators have no budget.
    assert!(ask(&ada, 1).await && ask(&ada, 7).await);
    assert!(ask(&hall.operator(Role::Server), 6).await);
}
