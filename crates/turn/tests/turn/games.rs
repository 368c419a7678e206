//! Game files.

use crate::harness::Table;
use parlor_turn::{Code, Config, Create, Criteria, Game, RuleSets, Visibility};
use serde_json::{Value, json};

fn game(file: &Value) -> Game {
    Game::read("tanks", file, &RuleSets::built_in()).expect("a game")
}

/// A room's configuration, as JSON.
fn set_up(file: &Value, mode: Option<&str>, visibility: Option<Visibility>) -> Value {
    json!(game(file).mode(mode).expect("a mode").config(visibility, None).expect("a configuration"))
}

/// RUN.game's own example of all fields, and a part of another service.
fn runs_example() -> Value {
    json!({
        "rooms": {
            "gameType": "chess",
            "rulesPreset": "blitz_v1",
            "minPlayers": 2,
            "maxPlayers": 2,
            "playerRoles": ["white", "black"],
            "playerInitialization": "random",
            "matchmaking": { "defaultCriteria": { "hasSpace": true, "isPrivate": false } },
            "createOptions": {
                "maxPlayers": 2, "isPrivate": false, "customMetadata": { "timeControl": "blitz" }
            },
            "privateMatchDefaults": {
                "allowCustomCode": true,
                "createOptions": { "isPrivate": true, "maxPlayers": 4 }
            },
            "defaultRules": {
                "turnBased": true,
                "allowedMessageTypes": {
                    "playing": {
                        "piece_move": { "requiredFields": ["from", "to"] },
                        "resign": { "requiredFields": ["resignedBy"] }
                    }
                }
            },
            "notifications": {
                "onTurnStart": { "title": "Your turn!", "body": "It's your move in {{roomName}}" },
                "onGameEnd": { "title": "Game over", "body": "{{winnerName}} won in {{roomName}}" }
            }
        },
        "leaderboard": { "other": "services have their part of the file" }
    })
}

#[test]
fn r1_the_example_of_run_is_read_unchanged_and_says_the_same_as_one_in_our_words() {
    let ours = json!({
        "game": "chess",
        "players": { "min": 2, "max": 2, "usual": 2 },
        "roles": ["white", "black"],
        "role_assignment": "random",
        "visibility": "public",
        "metadata": { "timeControl": "blitz" },
        "turn_based": true,
        "moves": { "playing": {
            "piece_move": { "required_fields": ["from", "to"] }, "resign": { "required_fields": ["resignedBy"] }
        } },
        "notifications": {
            "on_turn_start": { "title": "Your turn!", "body": "It's your move in {{roomName}}" },
            "on_game_end": { "title": "Game over", "body": "{{winnerName}} won in {{roomName}}" }
        },
        "private": { "players": { "usual": 4, "max": 4 }, "clients_may": { "code": true } }
    });
    let mut plain = runs_example();
    plain["rooms"]["rulesPreset"] = json!("default");
    assert_eq!(game(&plain), game(&ours));
    let private = set_up(&runs_example(), None, Some(Visibility::Private));
    assert_eq!((&private["players"]["max"], &private["clients_may"]["code"]), (&json!(4), &json!(true)));
    let public = set_up(&runs_example(), None, None);
    assert_eq!((&public["players"]["max"], &public["clients_may"]["code"]), (&json!(2), &json!(false)));
}

#[test]
fn r1_a_preset_of_run_that_no_server_has_leaves_the_files_own_rules() {
    let read = game(&runs_example());
    let mode = read.mode(None).expect("a mode");
    assert_eq!(mode.unknown_preset(), Some("blitz_v1"));
    let config = mode.config(None, None).expect("a configuration");
    assert_eq!((config.rules.as_deref(), config.game()), (None, "chess"));
    assert!(config.moves.playing.as_ref().is_some_and(|moves| moves.contains_key("piece_move")));
    // One that is a rule set here judges the moves, and one that is looked for everywhere is no criterion.
    let known = json!({ "rooms": { "rulesPreset": "draughts" } });
    assert_eq!(set_up(&known, None, None)["rules"], "draughts");
    assert_eq!(game(&known).mode(None).expect("a mode").unknown_preset(), None);
    let sought = json!({ "rooms": {
        "rulesPreset": "blitz_v1", "matchmaking": { "defaultCriteria": { "rulesPreset": "blitz_v1" } }
    } });
    let read = game(&sought);
    assert!(read.mode(None).expect("a mode").criteria(None).expect("criteria").is_empty());
}

#[test]
fn r3_what_run_says_of_the_start_holds() {
    let by_hand = json!({ "rooms": { "minPlayers": 9, "maxPlayers": 4 } });
    let read = set_up(&by_hand, None, None);
    assert_eq!((&read["auto_start"], &read["players"]["min"]), (&json!(false), &json!(1)));
    // The default most is 4.
    let above_default = set_up(&json!({ "rooms": { "minPlayers": 5 } }), None, None);
    assert_eq!((&above_default["auto_start"], &above_default["players"]["max"]), (&json!(false), &json!(4)));
    let by_itself = set_up(&json!({ "rooms": { "minPlayers": 2 } }), None, None);
    assert_eq!(by_itself["auto_start"], true);
    let in_order = json!({ "rooms": { "playerInitialization": "first-come-first-served" } });
    assert_eq!(set_up(&in_order, None, None)["role_assignment"], "first_come");
}

#[test]
fn r1_what_is_wrong_in_a_file_is_named_as_the_file_spells_it() {
    let rooms = |rooms: Value| json!({ "rooms": rooms });
    for (file, path) in [
        (json!({ "players": { "min": 0 } }), "players.min"),
        (json!({ "players": { "mni": 2 } }), "players.mni"),
        (json!({ "playres": {} }), "playres"),
        (json!({ "state": [1] }), "state"),
        (json!({ "criteria": { "metadata": 7 } }), "criteria.metadata"),
        (json!({ "private": { "players": { "max": 99 } } }), "private.players.max"),
        (json!({ "private": 7 }), "private"),
        (json!({ "clients_may": { "nmae": true } }), "clients_may.nmae"),
        (json!({ "modes": { "blitz": { "turn_timeout_ms": 1 } } }), "modes.blitz.turn_timeout_ms"),
        (json!({ "modes": { "a b": {} } }), "modes.a b"),
        (json!({ "modes": { "blitz": { "game": "tanks" } } }), "modes.blitz"),
        (json!({ "maxPlayers": 3, "players": { "max": 4 } }), "players.max"),
        (rooms(json!(7)), "rooms"),
        (rooms(json!({ "maxPlayers": 99 })), "rooms.maxPlayers"),
        (rooms(json!({ "minPlayers": "two" })), "rooms.minPlayers"),
        (rooms(json!({ "rulesPreset": 7 })), "rooms.rulesPreset"),
        (json!({ "rules": "blitz_v1" }), "rules"),
        (rooms(json!({ "playerRoles": ["white", "white"] })), "rooms.playerRoles[1]"),
        (rooms(json!({ "playerInitialization": "best" })), "rooms.playerInitialization"),
        (
            rooms(json!({ "matchmaking": { "defaultCriteria": { "hasSpace": false } } })),
            "rooms.matchmaking.defaultCriteria.hasSpace",
        ),
        (rooms(json!({ "matchmaking": { "criteria": {} } })), "rooms.matchmaking.criteria"),
        (rooms(json!({ "createOptions": { "maxPlayers": 9 } })), "rooms.createOptions.maxPlayers"),
        (rooms(json!({ "createOptions": { "isPrivate": "no" } })), "rooms.createOptions.isPrivate"),
        (
            rooms(json!({ "privateMatchDefaults": { "allowCustomCode": 1 } })),
            "rooms.privateMatchDefaults.allowCustomCode",
        ),
        (rooms(json!({ "defaultRules": { "maxPlayers": 3 }, "maxPlayers": 4 })), "rooms.maxPlayers"),
        (
            rooms(
                json!({ "defaultRules": { "allowedMessageTypes": { "playing": { "put": { "requiredFields": [7] } } } } }),
            ),
            "rooms.defaultRules.allowedMessageTypes.playing.put.requiredFields[0]",
        ),
        (
            rooms(json!({ "notifications": { "onTurnStart": { "title": "{{password}}", "body": "x" } } })),
            "rooms.notifications.onTurnStart.title",
        ),
    ] {
        let refusal = Game::read("tanks", &file, &RuleSets::built_in()).expect_err(&file.to_string());
        assert_eq!(
            (refusal.code, refusal.path.as_deref()),
            (Code::BadConfig, Some(path)),
            "{file}: {refusal}"
        );
        assert!(refusal.sentence.len() > 10, "{refusal}");
    }
    let whole = Game::read("tanks", &json!([]), &RuleSets::built_in()).expect_err("no object");
    assert_eq!((whole.code, whole.path), (Code::BadConfig, None));
}

#[test]
fn modes_have_games_of_their_own_and_what_else_differs() {
    let file = json!({
        "turn_based": true, "turn_timeout_ms": 60_000, "metadata": { "board": 8, "clock": "slow" },
        "modes": { "blitz": { "turn_timeout_ms": 5_000, "metadata": { "clock": "fast" } }, "duel": { "maxPlayers": 2, "game": "duels" } }
    });
    let usual = set_up(&file, None, None);
    assert_eq!((&usual["game"], &usual["turn_timeout_ms"]), (&json!("tanks"), &json!(60_000)));
    let blitz = set_up(&file, Some("blitz"), None);
    assert_eq!((&blitz["game"], &blitz["turn_timeout_ms"]), (&json!("tanks.blitz"), &json!(5_000)));
    assert_eq!(blitz["metadata"], json!({ "board": 8, "clock": "fast" }));
    let duel = set_up(&file, Some("duel"), None);
    assert_eq!((&duel["game"], &duel["players"]["max"]), (&json!("duels"), &json!(2)));
    assert!(game(&file).mode(Some("chess")).is_none());
    assert_eq!(game(&file).modes().collect::<Vec<_>>(), ["blitz", "duel"]);
}

/// A different value, of the same type where possible.
fn another(value: &Value) -> Value {
    match value {
        Value::Bool(is_so) => json!(!is_so),
        Value::Number(number) => json!(number.as_u64().map_or(1, |number| number + 1)),
        Value::Array(_) => json!(["other"]),
        Value::Object(_) => json!({ "other": 1 }),
        Value::String(_) | Value::Null => json!("other"),
    }
}

#[test]
fn threat_52_a_client_says_of_a_games_configuration_nothing_but_what_the_file_says() {
    let game = game(&runs_example());
    let mode = game.mode(None).expect("the game");
    let all = set_up(&runs_example(), None, None);
    mode.config(None, Some(&all)).expect("who says the same is heard");
    mode.config(None, Some(&json!({}))).expect("who says nothing is heard");
    let mut tried = 0;
    for (name, value) in all.as_object().expect("an object") {
        for wrong in [another(value), json!({ "other": 1 }), json!(["other"]), json!("other"), json!(0)] {
            let asked = json!({ name: wrong });
            for visibility in [None, Some(Visibility::Public), Some(Visibility::Private)] {
                let refusal = mode.config(visibility, Some(&asked)).expect_err(&asked.to_string());
                let is_named =
                    refusal.path.as_deref().is_some_and(|path| path.starts_with(&format!("config.{name}")));
                assert!(is_named, "{asked}: {refusal}");
                assert!(
                    matches!(refusal.code, Code::OperatorDecides | Code::BadConfig),
                    "{asked}: {refusal}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried} were tried");
    let text = json!({ "notifications": { "on_turn_start": { "title": "Your account is locked", "body": "log in at …" } } });
    let refusal = mode.config(None, Some(&text)).expect_err("a text of a stranger");
    assert_eq!(refusal.code, Code::OperatorDecides);
    assert_eq!(refusal.path.as_deref(), Some("config.notifications.on_turn_start.body"));
}

#[test]
fn what_clients_may_say_is_the_files_to_allow() {
    let may_nothing = json!({
        "name": "Tanks", "metadata": { "board": 8 },
        "clients_may": { "name": false, "visibility": false, "max_players": false, "metadata": false }
    });
    let read = |written: &Value| Config::read(written, "tanks", &RuleSets::none()).expect("a configuration");
    let (closed, open) = (read(&may_nothing), read(&json!({})));
    let visibility = Some(Visibility::Private);
    for (create, path) in [
        (Create { name: Some("mine".into()), ..Create::default() }, "name"),
        (Create { visibility, ..Create::default() }, "visibility"),
        (Create { max_players: Some(2), ..Create::default() }, "max_players"),
        (Create { metadata: Some(json!({ "board": 9 })), ..Create::default() }, "metadata"),
        (Create { code: Some("PIZZA".parse().expect("a code")), ..Create::default() }, "code"),
    ] {
        let refusal = create.check(&closed).expect_err(path);
        assert_eq!((refusal.code, refusal.path.as_deref()), (Code::OperatorDecides, Some(path)));
        assert_eq!(create.check(&open).is_ok(), path != "code", "{path}");
    }
    let same = Create {
        name: Some("Tanks".into()),
        visibility: Some(Visibility::Public),
        max_players: Some(4),
        metadata: Some(json!({ "board": 8 })),
        ..Create::default()
    };
    same.check(&closed).expect("whoever says the same changes nothing");
    let refusal =
        game(&may_nothing).mode(None).expect("the game").config(visibility, None).expect_err("private");
    assert_eq!((refusal.code, refusal.path.as_deref()), (Code::OperatorDecides, Some("visibility")));
    let mut table = Table::created(closed, Create::default(), 1, RuleSets::none(), &[]);
    for update in
        [json!({ "name": "mine" }), json!({ "visibility": "private" }), json!({ "metadata": { "board": 9 } })]
    {
        let refusal = table.update("ada", update).expect_err("not the host's");
        assert_eq!(refusal.code, Code::OperatorDecides);
    }
}

#[test]
fn criteria_of_the_file_hold_where_a_client_says_nothing() {
    let file = json!({ "matchmaking": { "defaultCriteria": { "customMetadata": { "ranked": true, "league": 1 } } } });
    let game = game(&file);
    let mode = game.mode(None).expect("the game");
    let criteria =
        |asked: Option<Value>| json!(mode.criteria(asked.as_ref()).expect("criteria"))["metadata"].clone();
    assert_eq!(criteria(None), json!({ "ranked": true, "league": 1 }));
    assert_eq!(
        criteria(Some(json!({ "metadata": { "league": 2 } }))),
        json!({ "ranked": true, "league": 2 })
    );
    let _: Criteria = mode.criteria(None).expect("criteria");
}

#[test]
fn threat_52_names_of_strangers_stay_names_in_texts_of_the_game() {
    let texts = json!({
        "turn_based": true, "auto_start": false,
        "notifications": {
            "on_turn_start": { "title": "Your turn", "body": "<{{previousPlayerName}}> <{{roomName}}>" },
            "on_game_end": { "title": "Game over", "body": "<{{winnerName}}> <{{finisherName}}> <{{endReason}}>" }
        }
    });
    for (name, shown) in [
        ("Ada", "Ada"),
        ("J. R. Ewing", "J. R. Ewing"),
        ("https://evil.example/login", "https evil example login"),
        ("mail me@evil.example", "mail me evil example"),
        ("C:\\evil", "C evil"),
        ("a\u{2028}b\u{2029}c", "a b c"),
        ("\u{202e}drowssap ruoy", "drowssap ruoy"),
        ("a\u{200b}\u{feff}b\u{e0041}", "ab"),
        ("  wide \u{a0} \u{3000} open  ", "wide open"),
    ] {
        let config = Config::read(&texts, "tanks", &RuleSets::none()).expect("a configuration");
        let create = Create { player_name: Some(name.into()), name: Some(name.into()), ..Create::default() };
        let mut table = Table::created(config, create, 1, RuleSets::none(), &["bob"]);
        table.start(json!({ "turn_order": ["ada", "bob"] })).expect("her room");
        table.pushed();
        table.put("ada", json!({})).expect("her turn");
        assert_eq!(table.pushed()[0].body, format!("<{shown}> <{shown}>"), "{name:?}");
        let over =
            json!({ "isGameOver": true, "winner": "ada", "endReason": format!("checkmate, see {name}") });
        table.put("bob", over).expect("his turn");
        let said = table.pushed()[0].body.clone();
        assert_eq!(said, format!("<{shown}> <BOB> <completed>"), "a sentence is no reason");
    }
}
