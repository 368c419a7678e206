//! Statistics, achievements and ratings over the services: who may write, what is refused, and what follows from a
//! write.

use crate::hall::Hall;
use parlor_services::store::Role;
use serde_json::{Value, json};

impl Hall {
    async fn defines(&self, kind: &str, name: &str, definition: Value) {
        let server = self.operator(Role::Server);
        let input = json!({ "kind": kind, "name": name, "definition": definition });
        self.good("POST", "/admin/definitions", &server, input).await;
    }
}

fn add(statistic: &str, number: i64, id: &str) -> Value {
    json!({ "writes": [{ "statistic": statistic, "add": number, "id": id }] })
}

#[tokio::test]
async fn t4_a_statistic_unlocks_an_achievement_and_a_board_follows() {
    let hall = Hall::open().await;
    let server = hall.operator(Role::Server);
    let board = json!({ "board": "kills", "definition": { "keep": "last" } });
    hall.good("POST", "/admin/boards", &server, board).await;
    hall.defines("statistic", "kills", json!({ "writers": "players", "board": "kills", "totals": true }))
        .await;
    let goal = json!({ "title": "Centurion", "hidden": true, "points": 10, "statistic": "kills", "at": 3 });
    hall.defines("achievement", "centurion", goal).await;
    let (ada, id) = hall.player("ada").await;
    let (bob, _) = hall.player("bob").await;
    let first = hall.good("POST", "/statistics", &ada, add("kills", 2, "1")).await;
    assert_eq!((&first["statistics"][0]["value"], &first["unlocked"]), (&json!(2), &json!([])));
    let locked = hall.good("GET", "/achievements", &ada, json!({})).await;
    let shown = &locked["achievements"][0];
    assert_eq!(
        (&shown["title"], &shown["progress"], &shown["goal"], &shown["unlocked_ms"]),
        (&Value::Null, &json!(2), &json!(3), &Value::Null),
        "it is hidden: {shown}"
    );
    let second = hall.good("POST", "/statistics", &ada, add("kills", 1, "2")).await;
    assert_eq!(second["unlocked"], json!(["centurion"]));
    let again = hall.good("POST", "/statistics", &ada, add("kills", 1, "2")).await;
    assert_eq!(
        (&again["statistics"][0]["value"], &again["statistics"][0]["again"], &again["unlocked"]),
        (&json!(3), &json!(true), &json!([]))
    );
    // The game's own service writes for anyone, and may read anyone's.
    let mut by_server = add("kills", 1, "3");
    by_server["account"] = json!(id);
    hall.good("POST", "/statistics", &server, by_server).await;
    let hall = hall.again(true).await;
    let shown = hall.good("GET", "/achievements", &ada, json!({})).await["achievements"][0].clone();
    assert_eq!(
        (&shown["title"], &shown["unlocked_by"], &shown["players"]),
        (&json!("Centurion"), &json!(1), &json!(1))
    );
    assert!(shown["unlocked_ms"].is_u64(), "{shown}");
    let others = hall.good("GET", "/achievements", &bob, json!({})).await;
    assert_eq!(others["achievements"][0]["title"], Value::Null, "hidden to who has not unlocked it");
    let top = hall.good("GET", "/boards/kills", &bob, json!({})).await;
    assert_eq!((&top["entries"][0]["score"], &top["entries"][0]["name"]), (&json!(4), &json!("ada")));
    let own = hall.good("GET", &format!("/statistics?account={id}"), &server, json!({})).await;
    assert_eq!(
        (&own["statistics"][0]["statistic"], &own["statistics"][0]["value"]),
        (&json!("kills"), &json!(4))
    );
    let totals = hall.good("GET", "/statistics/kills/totals", &bob, json!({})).await;
    assert_eq!(
        (
            &totals["all"]["total"],
            &totals["all"]["players"],
            &totals["all"]["writes"],
            &totals["days"][0]["total"]
        ),
        (&json!(4), &json!(1), &json!(3), &json!(4))
    );
    let export = hall.good("GET", "/account/export?after=statistics", &ada, json!({})).await;
    assert_eq!(
        export["entries"],
        json!([{ "statistic": "kills", "value": 4, "changed_ms": own["statistics"][0]["changed_ms"] }])
    );
}

#[tokio::test]
async fn t4_achievements_in_steps_are_written_by_whom_they_name() {
    let hall = Hall::open().await;
    let (ada, id) = hall.player("ada").await;
    hall.defines("achievement", "walker", json!({ "writers": "players", "count": 10 })).await;
    hall.defines("achievement", "judge", json!({ "title": "Judge" })).await;
    let steps = json!({ "add": 4, "id": "1" });
    let four = hall.good("POST", "/achievements/walker", &ada, steps.clone()).await;
    assert_eq!((&four["achievement"]["progress"], &four["unlocked"]), (&json!(4), &json!(false)));
    let again = hall.good("POST", "/achievements/walker", &ada, steps).await;
    assert_eq!(again["achievement"]["progress"], json!(4));
    let done = hall.good("POST", "/achievements/walker", &ada, json!({ "to": 20 })).await;
    assert_eq!((&done["achievement"]["progress"], &done["unlocked"]), (&json!(10), &json!(true)));
    let reset = hall.good("POST", "/achievements/walker", &ada, json!({ "reset": true })).await;
    assert_eq!(reset["achievement"]["unlocked_ms"], Value::Null);
    assert_eq!(hall.bad("POST", "/achievements/judge", &ada, json!({ "unlock": true })).await, "server_only");
    let server = hall.operator(Role::Server);
    let unlock = json!({ "unlock": true, "account": id });
    assert_eq!(hall.good("POST", "/achievements/judge", &server, unlock).await["unlocked"], json!(true));
    // On a server for development what players unlock is there from then on.
    assert_eq!(
        hall.good("POST", "/achievements/first", &ada, json!({ "unlock": true })).await["unlocked"],
        json!(true)
    );
    assert_eq!(
        hall.bad("POST", "/achievements/other", &ada, json!({ "to": 3 })).await,
        "no_such_achievement"
    );
    let list = hall.good("GET", "/achievements?limit=2", &ada, json!({})).await;
    let names: Vec<&Value> =
        list["achievements"].as_array().unwrap().iter().map(|it| &it["achievement"]).collect();
    assert_eq!((names, &list["next"]), (vec![&json!("first"), &json!("judge")], &json!("judge")));
    let rest = hall.good("GET", "/achievements?after=judge", &ada, json!({})).await;
    assert_eq!((&rest["achievements"][0]["achievement"], &rest["next"]), (&json!("walker"), &Value::Null));
}

#[tokio::test]
async fn threat_26_t4_no_player_writes_what_the_server_writes_and_wrong_numbers_change_nothing() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let (_, bob) = hall.player("bob").await;
    let server = hall.operator(Role::Server);
    hall.defines("statistic", "wins", json!({})).await;
    hall.defines("statistic", "level", json!({ "writers": "players", "keep": "most", "min": 1, "max": 60 }))
        .await;
    hall.defines("achievement", "high", json!({ "writers": "players", "statistic": "level", "at": 10 }))
        .await;
    let set = |number: i64| json!({ "writes": [{ "statistic": "level", "set": number }] });
    for (token, input, status, code, path) in [
        (&ada, add("wins", 1, "1"), 403, "server_only", "writes[0].statistic"),
        (&server, add("wins", 1, "1"), 400, "missing_field", "account"),
        (
            &ada,
            json!({ "writes": [{ "statistic": "level", "add": 1, "id": "1" }] }),
            400,
            "bad_input",
            "writes[0].add",
        ),
        (&ada, set(61), 400, "out_of_range", "writes[0].set"),
        (&ada, set(0), 400, "out_of_range", "writes[0].set"),
        (&ada, json!({ "writes": [{ "statistic": "level" }] }), 400, "missing_field", "writes[0].add"),
        (
            &ada,
            json!({ "writes": [{ "statistic": "level", "set": 1.5 }] }),
            400,
            "bad_input",
            "writes[0].set",
        ),
        (
            &ada,
            json!({ "writes": [{ "statistic": "level", "set": 1e300 }] }),
            400,
            "bad_input",
            "writes[0].set",
        ),
        (
            &ada,
            json!({ "writes": [{ "statistic": "a b", "set": 1 }] }),
            404,
            "no_such_statistic",
            "writes[0].statistic",
        ),
        (&ada, json!({ "writes": [{ "statistic": "new", "add": 1 }] }), 400, "missing_field", "writes[0].id"),
        (&ada, json!({ "writes": [] }), 400, "bad_input", "writes"),
        (
            &ada,
            json!({ "writes": [{ "statistic": "level", "set": 2 }], "account": bob }),
            400,
            "bad_input",
            "account",
        ),
    ] {
        let (found, answer) = hall.call("POST", "/statistics", Some(token), input).await;
        let error = &answer["error"];
        assert_eq!((found, &error["code"], &error["path"]), (status, &json!(code), &json!(path)), "{answer}");
    }
    assert_eq!(hall.bad("POST", "/achievements/high", &ada, json!({ "unlock": true })).await, "goal_decides");
    assert_eq!(hall.bad("POST", "/achievements/high", &ada, json!({})).await, "missing_field");
    let list = hall.good("GET", "/statistics", &ada, json!({})).await;
    assert_eq!(list["statistics"], json!([]));
}

#[tokio::test]
async fn threat_26_t4_a_refused_write_leaves_the_others_of_its_request_unwritten() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let server = hall.operator(Role::Server);
    hall.defines("statistic", "level", json!({ "writers": "players", "keep": "most", "max": 60 })).await;
    let set = |number: i64| json!({ "writes": [{ "statistic": "level", "set": number }] });
    // The last that is refused leaves the first unwritten.
    let both = json!({ "writes": [{ "statistic": "level", "set": 5 }, { "statistic": "level", "set": 99 }] });
    assert_eq!(hall.bad("POST", "/statistics", &ada, both).await, "out_of_range");
    assert_eq!(hall.good("GET", "/statistics", &ada, json!({})).await["statistics"], json!([]));
    let nobody = json!({ "writes": [{ "statistic": "level", "set": 5 }], "account": "pnobody" });
    assert_eq!(hall.bad("POST", "/statistics", &server, nobody).await, "no_such_player");
    let mut refused = String::new();
    for _ in 0..60 {
        let (status, answer) = hall.call("POST", "/statistics", Some(&ada), set(5)).await;
        if status != 200 {
            assert!(answer["error"]["retry_after_ms"].is_u64(), "{answer}");
            refused = answer["error"]["code"].as_str().unwrap().to_owned();
            break;
        }
    }
    assert_eq!(refused, "too_often");
}

#[tokio::test]
async fn t4_a_definition_names_what_is_wrong_with_it() {
    let hall = Hall::open().await;
    let (server, ada) = (hall.operator(Role::Server), hall.player("ada").await.0);
    hall.good("POST", "/admin/boards", &server, json!({ "board": "sums", "definition": { "keep": "sum" } }))
        .await;
    let define =
        |kind: &str, definition: Value| json!({ "kind": kind, "name": "it", "definition": definition });
    for (input, code, path) in [
        (define("wish", json!({})), "bad_input", "kind"),
        (json!({ "kind": "ladder", "name": "a b" }), "bad_input", "name"),
        (define("ladder", json!(7)), "bad_input", "definition"),
        (define("ladder", json!({ "titel": "x" })), "bad_input", "definition.titel"),
        (define("ladder", json!({ "title": "x".repeat(300) })), "bad_input", "definition.title"),
        (define("statistic", json!({ "keep": "all" })), "bad_input", "definition.keep"),
        (define("statistic", json!({ "board": "none" })), "no_such_board", "definition.board"),
        (define("statistic", json!({ "board": "sums" })), "bad_input", "definition.board"),
        (define("achievement", json!({ "statistic": "none", "at": 1 })), "bad_input", "definition.statistic"),
        (define("achievement", json!({ "count": 0 })), "bad_input", "definition.count"),
    ] {
        let (_, answer) = hall.call("POST", "/admin/definitions", Some(&server), input).await;
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["path"]), (&json!(code), &json!(path)), "{answer}");
    }
    let good = define("ladder", json!({ "title": "Duels" }));
    assert_eq!(hall.good("POST", "/admin/definitions", &server, good.clone()).await["version"], json!(1));
    let stale = json!({ "kind": "ladder", "name": "it", "version": 7 });
    assert_eq!(hall.bad("POST", "/admin/definitions", &server, stale).await, "stale");
    let hall = hall.again(true).await;
    let list = hall.good("GET", "/admin/definitions", &server, json!({})).await;
    assert_eq!(
        list["definitions"],
        json!([{ "kind": "ladder", "name": "it", "version": 1, "definition": { "title": "Duels" } }])
    );
    assert_eq!(hall.good("GET", "/ratings/it", &ada, json!({})).await["points"], json!(2500));
    let which = json!({ "kind": "ladder", "name": "it" });
    hall.good("POST", "/admin/definitions/delete", &server, which.clone()).await;
    assert_eq!(hall.bad("POST", "/admin/definitions/delete", &server, which).await, "not_found");
    assert_eq!(hall.bad("GET", "/ratings/it", &ada, json!({})).await, "no_such_ladder");
}

#[tokio::test]
async fn threat_26_n5_a_result_is_rated_once_and_by_the_service_alone() {
    let hall = Hall::open().await;
    let server = hall.operator(Role::Server);
    let ((ada, ada_id), (_, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    hall.defines("ladder", "duel", json!({ "title": "Duels" })).await;
    let result = json!({ "id": "m1", "teams": [
        { "players": [ada_id], "place": 1 }, { "players": [bob_id], "place": 2 },
    ] });
    assert_eq!(hall.bad("POST", "/ratings/duel/results", &ada, result.clone()).await, "forbidden");
    let rated = hall.good("POST", "/ratings/duel/results", &server, result.clone()).await;
    assert!(rated["ratings"][0]["growth"].as_i64().unwrap() > 0, "{rated}");
    let hall = hall.again(false).await;
    let again = hall.good("POST", "/ratings/duel/results", &server, result).await;
    assert_eq!((&again["again"], &again["ratings"]), (&json!(true), &json!([])));
    let own = hall.good("GET", "/ratings/duel", &ada, json!({})).await;
    assert_eq!((&own["points"], &own["games"]), (&rated["ratings"][0]["rating"]["points"], &json!(1)));
    let players = |first: &str, second: &str| {
        json!({ "id": "m2", "teams": [
        { "players": [first], "place": 1 }, { "players": [second], "place": 2 },
    ] })
    };
    for (input, code, path) in [
        (players(&ada_id, &ada_id), "bad_input", "teams[1].players[0]"),
        (players(&ada_id, "pnobody"), "no_such_player", "teams"),
        (json!({ "id": "", "teams": [] }), "bad_input", "id"),
        (json!({ "id": "m2", "teams": [{ "players": [ada_id], "place": 1 }] }), "bad_input", "teams"),
        (
            json!({ "id": "m2", "teams": [{ "players": [ada_id], "place": 0 }] }),
            "bad_input",
            "teams[0].place",
        ),
    ] {
        let (_, answer) = hall.call("POST", "/ratings/duel/results", Some(&server), input).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["path"]),
            (&json!(code), &json!(path)),
            "{answer}"
        );
    }
    assert_eq!(hall.good("GET", "/ratings/duel", &ada, json!({})).await["games"], json!(1));
}
