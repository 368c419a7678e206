//! `docs/turn-rooms.md` is complete and its examples are valid.

use parlor_turn::{Code, Config, Game, NoticeKind, RuleSets, limits};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../docs/turn-rooms.md");

/// The first cells of the table under a heading.
fn rows(heading: &str) -> BTreeSet<&'static str> {
    let (_, section) = DOCUMENT.split_once(&format!("\n## {heading}\n")).expect("the heading is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    cells.map(|(name, _)| name).collect()
}

#[test]
fn it_lists_every_code_and_no_other() {
    let codes: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(rows("Refusals"), codes);
}

#[test]
fn it_lists_every_kind_of_notice_and_no_other() {
    let kinds: BTreeSet<&str> = NoticeKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(rows("Notices"), kinds);
    for kind in NoticeKind::ALL {
        assert_eq!(json!(kind), kind.as_str(), "the same word in a document and in the code");
    }
}

#[test]
fn it_lists_every_field_of_a_configuration_and_no_other() {
    let Value::Object(fields) = json!(Config::default()) else { panic!("a configuration is an object") };
    let mut names = BTreeSet::new();
    for (name, value) in &fields {
        match (name.as_str(), value) {
            ("players" | "limits", Value::Object(parts)) => {
                names.extend(parts.keys().map(|part| format!("{name}.{part}")));
            }
            _ => {
                names.insert(name.clone());
            }
        }
    }
    let listed: BTreeSet<String> = rows("Configuration").into_iter().map(str::to_owned).collect();
    assert_eq!(listed, names);
}

#[test]
fn its_numbers_are_those_of_the_code() {
    for (sentence, number) in [
        ("at most {} characters", limits::NAME_CHARS_MAX),
        ("do not fit; at most {}", usize::from(limits::PLAYERS_MAX)),
        ("| `limits.state_bytes` | {} |", limits::STATE_BYTES),
        ("as compact JSON; at most {}", limits::STATE_BYTES_MAX),
        ("| `limits.move_bytes` | {} |", limits::MOVE_BYTES),
        ("patch together; at most {}", limits::MOVE_BYTES_MAX),
        ("JSON may be nested {} deep", limits::JSON_DEPTH_MAX),
        ("Once the room has {}", limits::BARRED_MAX),
        ("at most {} KiB; its creator", limits::DATA_BYTES_MAX / 1024),
        ("a message to all, at most {} KiB", limits::MESSAGE_BYTES_MAX / 1024),
    ] {
        let sentence = sentence.replace("{}", &number.to_string());
        assert!(DOCUMENT.contains(&sentence), "{sentence}");
    }
}

/// The first example of a section, as JSON.
fn example(heading: &str) -> Value {
    let (_, section) = DOCUMENT.split_once(&format!("\n## {heading}\n")).expect("the heading is there");
    let (_, rest) = section.split_once("```json\n").expect("there is an example");
    let (example, _) = rest.split_once("```").expect("it ends");
    serde_json::from_str(example).expect("it is JSON")
}

/// The example configuration is valid as it stands.
#[test]
fn its_example_is_a_configuration() {
    let config = crate::harness::config(&example("Configuration"));
    assert!(config.starts_itself() && config.is_turn_based());
}

/// The example game file is valid too.
#[test]
fn its_game_is_a_game() {
    let game = Game::read("tanks", &example("Games"), &RuleSets::built_in()).expect("a game");
    assert_eq!(game.modes().collect::<Vec<_>>(), ["blitz"]);
}

const COMING_FROM: &str = include_str!("../../../../docs/coming-from.md");

/// Each call, status and property that RUN.game's document names has its line.
#[test]
fn r2_each_call_of_run_has_its_line() {
    let (_, section) = COMING_FROM.split_once("\n## RUN.game\n").expect("the heading is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).collect();
    for named in [
        "createRoomAsync",
        "joinOrCreateRoomAsync",
        "join by code",
        "list a user's rooms",
        "subscribe to data, messages, game events; unsubscribe",
        "update room data, read it",
        "sendRoomMessageAsync",
        "read messages",
        "startRoomGameAsync",
        "proposeMoveAsync",
        "optimisticGameState",
        "lastProposedMoveId",
        "validate a move",
        "resignedBy",
        "isGameOver",
        "leaveRoomAsync",
        "kick",
        "onTurnStart",
        "onGameEnd",
        "context.notificationParams.roomId",
        "admins",
        "paused",
        "archived",
        "versionTag",
        "config.json",
    ] {
        assert!(lines.iter().any(|line| line.contains(named)), "{named} has no line");
    }
    for word in [
        "gameType",
        "rulesPreset",
        "minPlayers",
        "maxPlayers",
        "playerRoles",
        "playerInitialization",
        "matchmaking.defaultCriteria",
        "createOptions",
        "privateMatchDefaults",
        "allowCustomCode",
        "defaultRules.turnBased",
        "defaultRules.allowedMessageTypes",
        "serverGenericValidationStatus",
        "serverCustomValidationStatus",
        "clientConsensusStatus",
        "hostProfileId",
        "roomCode",
        "isPrivate",
        "customMetadata",
    ] {
        assert!(DOCUMENT.contains(word), "{word} stands nowhere");
    }
}
