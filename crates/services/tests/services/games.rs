//! Operators' games: what clients may set of a room, and what they may not.

use crate::hall::{Hall, told_service};
use parlor_server::{Config, IdentitySource};
use parlor_services::{OnlineConfig, WebhookConfig};
use parlor_testing::{TestServer, local, within};
use parlor_transport::Identity;
use parlor_turn::{Attempt, Code, Next, Opening, Outcome, PlayerId, Refusal, RuleSets, Rules};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Words that a stranger wants players to read in the game's name.
const EVIL: &str = "Your account is locked, log in at https://evil.example/login";

/// The file of the game that the tests play.
fn tanks() -> Value {
    json!({ "rooms": {
        "minPlayers": 2, "maxPlayers": 4,
        "defaultRules": { "turnBased": true },
        "privateMatchDefaults": { "allowCustomCode": true },
        "notifications": {
            "onTurnStart": { "title": "Your turn", "body": "{{previousPlayerName}} has moved in {{roomName}}" },
            "onGameEnd": { "title": "Game over", "body": "{{winnerName}}: {{endReason}}" }
        }
    } })
}

fn write(folder: &Path, app: &str, game: &str) {
    // In one step, as operators do it: nobody reads half a file.
    let new = folder.join(format!(".{app}.new"));
    fs::write(&new, game).unwrap();
    fs::rename(new, folder.join(format!("{app}.json"))).unwrap();
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "tanks", &tanks().to_string());
    folder
}

async fn hall(folder: &TempDir) -> Hall {
    Hall::changed(|setup| setup.online.games = Some(folder.path().to_owned())).await
}

/// Ends a hall's server and starts another one on its store.
async fn again(mut hall: Hall, games: &Path) -> Hall {
    let TestServer { server, registry, folder } = hall.service.server;
    within(server.shutdown()).await;
    let store = folder.path().join("parlor.db").to_str().unwrap().to_owned();
    let online = OnlineConfig { games: Some(games.to_owned()), ..OnlineConfig::new(store) };
    let config = Config { registry: Some(registry.clone()), ..local() };
    let server = parlor_services::start(config, online).await.unwrap();
    hall.service.server = TestServer { server, registry, folder };
    hall
}

/// The texts that an account was sent in the game's name.
async fn texts(hall: &Hall, token: &str) -> Vec<(String, String)> {
    let inbox = hall.good("GET", "/inbox?after=0&limit=100", token, json!({})).await;
    let notices = inbox["notices"].as_array().unwrap().iter().filter(|notice| notice["kind"] == "push");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    notices
        .map(|notice| &notice["notice"]["body"])
        .map(|body| (text(&body["title"]), text(&body["body"])))
        .collect()
}

/// What a stranger would set up: each field of a configuration, and something that the game's file does not say.
fn evil_fields() -> Vec<(&'static str, Value)> {
    let text = json!({ "title": EVIL, "body": EVIL });
    vec![
        ("notifications", json!({ "on_turn_start": text })),
        ("notifications", json!({ "on_game_end": text })),
        ("game", json!("other")),
        ("name", json!(EVIL)),
        ("rules", json!("draughts")),
        ("players", json!({ "max": 64 })),
        ("visibility", json!("private")),
        ("turn_based", json!(false)),
        ("auto_start", json!(false)),
        ("late_join", json!(true)),
        ("spectators", json!(true)),
        ("roles", json!(["victim"])),
        ("turn_timeout_ms", json!(1_000)),
        ("on_timeout", json!("skip")),
        ("quorum", json!("all")),
        ("validation_timeout_ms", json!(1_000)),
        ("moves", json!({ "playing": {} })),
        ("state", json!({ "isGameOver": true })),
        ("limits", json!({ "state_bytes": 262_144 })),
        ("clients_may", json!({ "code": true })),
    ]
}

#[tokio::test]
async fn threat_52_no_text_of_a_stranger_reaches_players_in_the_games_name() {
    let (url, mut told) = told_service().await;
    let games = folder();
    let hall = Hall::changed(|setup| {
        let online = &mut setup.online;
        online.games = Some(games.path().to_owned());
        online.webhook = Some(WebhookConfig { url, key: vec![7; 16], allows_private: true });
    })
    .await;
    let ((eve, eve_id), (bob, bob_id)) = (hall.player("eve").await, hall.player("bob").await);
    for (field, value) in evil_fields() {
        for path in ["/rooms", "/rooms/join-or-create"] {
            let input = json!({ "config": { field: value.clone() } });
            assert_eq!(hall.bad("POST", path, &eve, input.clone()).await, "operator_decides", "{input}");
        }
    }
    assert_eq!(hall.good("GET", "/rooms/mine", &eve, json!({})).await["rooms"], json!([]), "none was opened");

    let named = json!({ "name": EVIL, "player_name": EVIL, "metadata": { "text": EVIL } });
    let opened = hall.good("POST", "/rooms", &eve, named).await;
    assert_eq!(opened["room"]["configured_by"], "operator");
    let id = opened["room"]["id"].as_str().unwrap().to_owned();
    let joined = hall.good("POST", "/rooms/join-or-create", &bob, json!({})).await;
    assert_eq!(joined["room"]["id"], id.as_str(), "a room as the operator has set it up is given to others");
    let moves = format!("/rooms/{id}/moves");
    let first = joined["room"]["current_player"].as_str().unwrap().to_owned();
    let by = |player: &str| if player == eve_id { &eve } else { &bob };
    let other = if first == eve_id { &bob_id } else { &eve_id };
    hall.good("POST", &moves, by(&first), json!({ "type": "put" })).await;
    let (mut mover, mut reader) = (other.clone(), first);
    if mover != eve_id {
        hall.good("POST", &moves, by(&mover), json!({ "type": "put" })).await;
        (mover, reader) = (reader, mover);
    }
    assert_eq!((&mover, &reader), (&eve_id, &bob_id));
    let over = json!({ "type": "put", "state": { "isGameOver": true, "winner": eve_id, "endReason": EVIL } });
    hall.good("POST", &moves, &eve, over).await;
    let shown = "Your account is locked, log in at https evil example login";
    let sent = texts(&hall, &bob).await;
    assert_eq!(sent.last().unwrap(), &("Game over".to_owned(), format!("{shown}: completed")));
    for (title, body) in &sent {
        assert!(
            ["Your turn", "Game over"].contains(&title.as_str()) && !body.contains("evil.example"),
            "{body}"
        );
    }
    // The service that passes texts on to phones is told the same.
    loop {
        let request = within(told.recv()).await.unwrap();
        let call: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        if call["kind"] == "push" {
            let body = &call["notice"]["body"];
            assert!(!body.to_string().contains("evil.example"), "{call}");
            if body["title"] == "Game over" {
                return;
            }
        }
    }
}

#[tokio::test]
async fn threat_51_nobody_is_led_into_a_room_that_a_stranger_has_set_up() {
    let hall = Hall::open().await;
    let ((eve, eve_id), (bob, bob_id)) = (hall.player("eve").await, hall.player("bob").await);
    let text = json!({ "title": EVIL, "body": EVIL });
    let config = json!({
        "turn_based": true, "auto_start": false, "notifications": { "on_turn_start": text, "on_game_end": text }
    });
    let mut junk = Vec::new();
    for name in ["eve", "eva", "evi", "evy"] {
        let (stranger, _) = hall.player(name).await;
        for _ in 0..16 {
            let opened = hall.good("POST", "/rooms", &stranger, json!({ "config": config })).await;
            assert_eq!(opened["room"]["configured_by"], "creator");
            junk.push(opened["room"]["id"].as_str().unwrap().to_owned());
        }
    }
    let games = folder();
    let hall = again(hall, games.path()).await;

    assert_eq!(hall.good("GET", "/rooms", &bob, json!({})).await["rooms"], json!([]), "none is listed");
    let found = hall.good("POST", "/rooms/join-or-create", &bob, json!({})).await;
    assert!(!junk.iter().any(|id| found["room"]["id"] == id.as_str()), "{found}");
    assert_eq!(found["room"]["configured_by"], "operator");
    let (ada, _) = hall.player("ada").await;
    let second = hall.good("POST", "/rooms/join-or-create", &ada, json!({})).await;
    assert_eq!(second["room"]["id"], found["room"]["id"], "seekers meet");

    // Who goes there on its own account finds the room as it was opened, and is called by nobody's text.
    let at = |rest: &str| format!("/rooms/{}{rest}", junk[0]);
    hall.good("POST", &at("/join"), &bob, json!({})).await;
    hall.good("POST", &at("/start"), &eve, json!({ "turn_order": [eve_id, bob_id] })).await;
    let moved = hall.good("POST", &at("/moves"), &eve, json!({ "type": "put" })).await;
    assert_eq!(moved["room"]["current_player"], bob_id.as_str());
    let over = json!({ "type": "put", "state": { "isGameOver": true } });
    hall.good("POST", &at("/moves"), &bob, over).await;
    let sent = [texts(&hall, &bob).await, texts(&hall, &eve).await].concat();
    assert!(sent.iter().all(|(title, body)| title == "Your turn" && !body.contains("evil")), "{sent:?}");
}

#[tokio::test]
async fn threat_52_a_server_for_production_without_games_opens_no_turn_rooms_and_says_how_to_mend_it() {
    let pem = Identity::generate(&["localhost"]).unwrap().to_pem();
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = (files.path().join("chain.pem"), files.path().join("key.pem"));
    fs::write(&certificate, &pem.certificates).unwrap();
    fs::write(&key, &pem.key).unwrap();
    let hall =
        Hall::changed(|setup| setup.config.identity = IdentitySource::Files { certificate, key }).await;
    let (eve, _) = hall.player("eve").await;
    for path in ["/rooms", "/rooms/join-or-create"] {
        for input in [json!({}), json!({ "config": { "turn_based": true } })] {
            let (status, answer) = hall.call("POST", path, Some(&eve), input).await;
            assert_eq!((status, &answer["error"]["code"]), (403, &json!("no_games")), "{answer}");
            let sentence = answer["error"]["sentence"].as_str().unwrap();
            assert!(sentence.contains("--games FOLDER") && sentence.contains("tanks.json"), "{sentence}");
        }
    }
}

#[tokio::test]
async fn clients_narrow_what_the_file_lets_them() {
    let games = folder();
    let file = json!({ "turn_based": true, "players": { "min": 2, "max": 4 }, "clients_may": { "name": false },
        "modes": { "duel": { "players": { "max": 2 } } } });
    write(games.path(), "tanks", &file.to_string());
    let hall = hall(&games).await;
    let (ada, _) = hall.player("ada").await;
    let open = async |input: Value| hall.good("POST", "/rooms", &ada, input).await["room"].clone();
    let narrow =
        open(json!({ "max_players": 3, "visibility": "private", "metadata": { "league": 1 } })).await;
    assert_eq!((&narrow["max_players"], &narrow["metadata"]), (&json!(3), &json!({ "league": 1 })));
    let same = open(json!({ "config": { "turn_based": true, "players": { "max": 4 } } })).await;
    assert_eq!(same["max_players"], 4, "whoever says the same as the file is heard");
    let duel = open(json!({ "mode": "duel" })).await;
    assert_eq!((&duel["game"], &duel["max_players"]), (&json!("tanks.duel"), &json!(2)));
    let bob = hall.player("bob").await.0;
    let found = hall.good("POST", "/rooms/join-or-create", &bob, json!({ "mode": "duel" })).await;
    assert_eq!(found["room"]["id"], duel["id"], "who looks for a mode finds it");
    for (input, code) in [
        (json!({ "max_players": 5 }), "bad_input"),
        (json!({ "name": "mine" }), "operator_decides"),
        (json!({ "mode": "chess" }), "no_such_mode"),
        (json!({ "code": "PIZZA" }), "operator_decides"),
        (json!({ "config": { "players": { "max": 3 } } }), "operator_decides"),
    ] {
        assert_eq!(hall.bad("POST", "/rooms", &ada, input.clone()).await, code, "{input}");
    }
    let input = json!({ "app": "planes", "device": "the device of somebody" });
    let (_, elsewhere) = hall.call("POST", "/auth/device", None, input).await;
    let token = elsewhere["access_token"].as_str().unwrap();
    assert_eq!(hall.bad("POST", "/rooms", token, json!({})).await, "no_such_game");
}

#[tokio::test]
async fn threat_48_codes_that_somebody_chooses_are_guesses_when_they_are_taken() {
    let games = folder();
    let hall = Hall::changed(|setup| {
        setup.config.limits_local = true;
        setup.config.handshakes_per_second = 1_000;
        setup.online.games = Some(games.path().to_owned());
    })
    .await;
    let (ada, _) = hall.player("ada").await;
    let asked = |code: &str| json!({ "visibility": "private", "code": code });
    let room = hall.good("POST", "/rooms", &ada, asked("pizza")).await;
    assert_eq!(room["room"]["code"], "PIZZA");
    let mut refused = Vec::new();
    for _ in 0..40 {
        refused.push(hall.bad("POST", "/rooms", &ada, asked("PIZZA")).await);
    }
    let taken = refused.iter().filter(|code| *code == "taken").count();
    assert!(taken <= 20, "{taken} codes were guessed");
    assert_eq!(refused.last().unwrap(), "too_often");
    assert_eq!(hall.bad("POST", "/rooms", &ada, asked("OTHER")).await, "too_often", "a free one too");
    hall.good("POST", "/rooms", &ada, json!({})).await;
}

#[tokio::test]
async fn a_file_that_is_changed_counts_and_one_that_is_wrong_leaves_what_was_good() {
    let games = folder();
    let hall = hall(&games).await;
    let (ada, _) = hall.player("ada").await;
    // An account waits in few rooms at a time, so it leaves each.
    let opens = async || {
        let (status, answer) = hall.call("POST", "/rooms", Some(&ada), json!({})).await;
        if let Some(id) = answer["room"]["id"].as_str() {
            hall.good("POST", &format!("/rooms/{id}/leave"), &ada, json!({})).await;
        }
        (status, answer["room"]["max_players"].clone())
    };
    let old = hall.good("POST", "/rooms", &ada, json!({})).await["room"]["id"].as_str().unwrap().to_owned();
    write(games.path(), "tanks", r#"{ "players": { "max": 6 } }"#);
    within(async { while opens().await.1 != 6 {} }).await;
    let read = hall.good("GET", &format!("/rooms/{old}"), &ada, json!({})).await;
    assert_eq!(
        (&read["room"]["max_players"], &read["room"]["turn_based"]),
        (&json!(4), &json!(true)),
        "as it was"
    );

    write(games.path(), "tanks", r#"{ "players": { "max": 600 } }"#);
    write(games.path(), "duel", "{}");
    let input = json!({ "app": "duel", "device": "the device of somebody" });
    let duellist = hall.call("POST", "/auth/device", None, input).await.1["access_token"].clone();
    let duel = async || hall.call("POST", "/rooms", duellist.as_str(), json!({})).await.0;
    within(async { while duel().await != 200 {} }).await;
    assert_eq!(opens().await, (200, json!(6)), "the last good one counts");

    fs::remove_file(games.path().join("tanks.json")).unwrap();
    within(async { while opens().await.0 == 200 {} }).await;
    assert_eq!(hall.bad("POST", "/rooms", &ada, json!({})).await, "no_such_game");
    hall.good("GET", &format!("/rooms/{old}"), &ada, json!({})).await;
}

#[tokio::test]
async fn a_start_with_a_wrong_file_names_it_and_the_field() {
    for (name, game, said) in [
        ("tanks.json", r#"{ "rooms": { "maxPlayers": 99 } }"#, "tanks.json: rooms.maxPlayers: "),
        (
            "tanks.json",
            r#"{ "modes": { "duel": { "players": { "mni": 1 } } } }"#,
            "tanks.json: modes.duel.players.mni: ",
        ),
        ("tanks.json", "{\n  \"players\": }", "line 2"),
        ("tanks.json", r#"{ "game": "a", "game": "b" }"#, "stands there twice"),
        ("my game.json", "{}", "my game.json is called like no game"),
    ] {
        let games = tempfile::tempdir().unwrap();
        fs::write(games.path().join(name), game).unwrap();
        let error = refused(games.path()).await;
        assert!(error.contains(said) && error.contains(name), "{said}: {error}");
    }
    let missing = refused(Path::new("/there/is/no/such/folder")).await;
    assert!(missing.contains("/there/is/no/such/folder") && missing.contains("Make it"), "{missing}");
}

/// Why no server starts with this folder of games.
async fn refused(games: &Path) -> String {
    let store = tempfile::tempdir().unwrap();
    let store = store.path().join("parlor.db").to_str().unwrap().to_owned();
    let online = OnlineConfig { games: Some(games.to_owned()), ..OnlineConfig::new(store) };
    parlor_services::start(local(), online).await.unwrap_err().to_string()
}

/// Two players take 1 to 3 sticks in turn; who takes the last one has won.
struct Sticks;

impl Rules for Sticks {
    fn name(&self) -> &'static str {
        "sticks"
    }

    fn players(&self) -> std::ops::RangeInclusive<u16> {
        2..=2
    }

    fn open(&self, players: &[PlayerId], _: [u8; 32]) -> Result<Opening, Refusal> {
        Ok(Opening { state: json!({ "left": 4 }), first: players[0].clone() })
    }

    fn check(&self, attempt: &Attempt<'_>) -> Result<Outcome, Refusal> {
        let (left, taken) =
            (attempt.state["left"].as_u64().unwrap(), attempt.data["take"].as_u64().unwrap_or(0));
        if !(1..=3).contains(&taken) || taken > left {
            return Err(Refusal::at(Code::IllegalMove, "data.take", format!("take 1 to 3 of {left}")));
        }
        let other = attempt.players.iter().find(|player| *player != attempt.player).unwrap();
        let winner = Some(attempt.player.clone());
        let next = match left - taken {
            0 => Next::Over { winner, reason: "last_stick".into() },
            _ => Next::Turn(other.clone()),
        };
        Ok(Outcome { state: json!({ "left": left - taken }), next })
    }
}

#[tokio::test]
async fn a_server_that_embeds_parlor_judges_by_rules_of_its_own() {
    let hall = Hall::changed(|setup| {
        setup.online.rules = RuleSets::built_in().with(Box::new(Sticks));
    })
    .await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let listed = hall.good("GET", "/rules", &ada, json!({})).await;
    assert_eq!(listed["rules"], json!(["draughts", "rock-paper-scissors", "sticks"]));
    let sticks = json!({ "config": { "rules": "sticks" } });
    hall.good("POST", "/rooms/join-or-create", &ada, sticks.clone()).await;
    let room = hall.good("POST", "/rooms/join-or-create", &bob, sticks).await["room"].clone();
    let moves = format!("/rooms/{}/moves", room["id"].as_str().unwrap());
    let (first, second) = if room["current_player"] == ada_id.as_str() { (&ada, &bob) } else { (&bob, &ada) };
    let take = |count: u64| json!({ "type": "take", "data": { "take": count } });
    assert_eq!(hall.bad("POST", &moves, first, take(4)).await, "illegal_move");
    hall.good("POST", &moves, first, take(3)).await;
    let over = hall.good("POST", &moves, second, take(1)).await;
    let winner = if second == &ada { ada_id } else { bob_id };
    assert_eq!(over["room"]["result"]["winner"], winner.as_str());
}
