//! Joining, leaving, kicks and the host role.

use crate::harness::{Table, code, config, id, refused};
use parlor_turn::{Actor, Code, Create, Effect, Kick, NoticeKind, Op, Phase, RuleSets, Topic, Visibility};
use serde_json::{Value, json};

fn turns() -> Value {
    json!({ "turn_based": true, "players": { "min": 2, "max": 3 } })
}

#[test]
fn who_sits_already_stays_and_nothing_changes() {
    let mut table = Table::new(&json!({}), &["bob"]);
    let version = table.room.version();
    table.join("bob").expect("a repeated request is answered like the first");
    assert_eq!(table.room.version(), version);
    assert_eq!(table.room.players().len(), 2);
}

#[test]
fn a_full_room_takes_nobody() {
    let mut table = Table::new(&json!({ "players": { "max": 2 } }), &["bob"]);
    assert!(!table.room.is_joinable());
    assert_eq!(code(table.join("cleo")), Code::RoomFull);
    table.leave("bob").expect("anybody may");
    assert!(table.room.is_joinable());
    table.join("cleo").expect("a seat is free");
}

#[test]
fn the_creator_may_want_fewer_seats_and_not_more() {
    let config = config(&json!({ "players": { "min": 2, "max": 4 }, "auto_start": false }));
    let create = Create { max_players: Some(2), ..Create::default() };
    let mut table = Table::created(config.clone(), create, 1, RuleSets::none(), &["bob"]);
    assert_eq!(code(table.join("cleo")), Code::RoomFull);
    for seats in [1, 5] {
        let create = Create { max_players: Some(seats), ..Create::default() };
        assert_eq!(refused(created(&config, create)), (Code::BadInput, "max_players".to_owned()));
    }
    let create = Create { metadata: Some(json!([])), ..Create::default() };
    assert_eq!(refused(created(&config, create)), (Code::BadInput, "metadata".to_owned()));
    let create = Create { player_name: Some("\n".to_owned()), ..Create::default() };
    assert_eq!(refused(created(&config, create)), (Code::BadInput, "player_name".to_owned()));
}

fn created(config: &parlor_turn::Config, create: Create) -> Result<(), parlor_turn::Refusal> {
    use parlor_turn::{Context, NewRoom, RoomId, TurnRoom};
    let rules = RuleSets::none();
    let with = Context { now: crate::harness::BEGIN, seed: [1; 32], rules: &rules };
    let new = NewRoom {
        id: RoomId::new("r").expect("an id"),
        code: "ABCDEF".parse().expect("a code"),
        configured_by: parlor_turn::ConfiguredBy::Creator,
        creator: id("ada"),
        create,
    };
    TurnRoom::create(new, config.clone(), &with).map(|_| ())
}

#[test]
fn what_the_creator_says_goes_over_the_configuration() {
    let config = config(&json!({ "metadata": { "a": 1, "b": 2 }, "name": "Usual" }));
    let create = Create {
        name: Some("Mine".to_owned()),
        visibility: Some(Visibility::Private),
        metadata: Some(json!({ "b": null, "c": 3 })),
        ..Create::default()
    };
    let table = Table::created(config, create, 1, RuleSets::none(), &[]);
    let view = table.view();
    assert_eq!(view["name"], "Mine");
    assert_eq!(view["visibility"], "private");
    assert_eq!(view["metadata"], json!({ "a": 1, "c": 3 }));
    assert_eq!(view["code"], "K7QMAB");
    assert_eq!(view["status"], "active");
    assert!(!table.room.is_joinable(), "a private room is not offered to strangers");
}

#[test]
fn a_game_with_turns_takes_nobody_in_and_one_without_does() {
    let mut table = Table::new(&turns(), &["bob"]);
    assert_eq!(table.room.phase(), Phase::Playing);
    assert!(!table.room.is_joinable());
    assert_eq!(code(table.join("cleo")), Code::GameStarted);

    let mut table = Table::new(&json!({ "players": { "min": 2, "max": 3 } }), &["bob"]);
    assert_eq!(table.room.phase(), Phase::Playing);
    assert!(table.room.is_joinable());
    table.join("cleo").expect("rooms without turns are come and go");
    table.put("cleo", json!({ "x": 1 })).expect("she is in the game");

    let mut late = turns();
    late["late_join"] = json!(true);
    let mut table = Table::new(&late, &["bob"]);
    table.join("cleo").expect("the configuration says so");
    assert_eq!(table.order().last(), Some(&"cleo"), "who comes late is last in the order");
}

#[test]
fn only_the_host_turns_players_out_and_they_do_not_come_back() {
    let mut table = Table::new(&json!({}), &["bob", "cleo"]);
    assert_eq!(code(table.kick("bob", "cleo")), Code::NotHost);
    assert_eq!(refused(table.kick("ada", "ada")), (Code::BadInput, "player".to_owned()));
    assert_eq!(refused(table.kick("ada", "dan")), (Code::NoSuchPlayer, "player".to_owned()));
    table.told();
    table
        .by("ada", Op::Kick(Kick { player: id("bob"), reason: Some("noise".to_owned()) }))
        .expect("the host may");
    let told = table.told();
    assert_eq!(told[0].kind, NoticeKind::PlayerKicked);
    assert_eq!(told[0].body, json!({ "player": "bob", "reason": "noise" }));
    assert_eq!(told[0].to, [id("ada"), id("cleo"), id("bob")], "who is turned out is told, too");
    assert_eq!(code(table.join("bob")), Code::Kicked);
    assert_eq!(code(table.put("bob", json!({}))), Code::NotInRoom);
    assert_eq!(code(table.leave("bob")), Code::NotInRoom);
    // The operator has the host's rights.
    table.apply(&Actor::Server, Op::Kick(Kick { player: id("ada"), reason: None })).expect("the server may");
    assert_eq!(table.room.host(), Some(&id("cleo")));
}

#[test]
fn when_the_host_leaves_the_one_who_is_there_longest_is_the_host() {
    let mut table = Table::new(&json!({}), &["bob", "cleo"]);
    table.told();
    table.leave("ada").expect("anybody may");
    assert_eq!(table.kinds(), [NoticeKind::PlayerLeft, NoticeKind::HostChanged]);
    assert_eq!(table.room.host(), Some(&id("bob")));
    table.join("ada").expect("she may come back to a room that waits");
    assert_eq!(table.room.host(), Some(&id("bob")), "and is a player like others");
    table.kick("bob", "ada").expect("so the new host can turn her out");
    assert_eq!(table.view()["created_by"], "ada");
}

#[test]
fn a_room_that_everybody_left_is_over_and_takes_nobody() {
    let mut table = Table::new(&json!({}), &["bob"]);
    table.leave("bob").expect("anybody may");
    table.leave("ada").expect("anybody may");
    assert_eq!(table.room.phase(), Phase::Ended);
    assert_eq!(table.result(), Some((None, "abandoned")));
    assert_eq!(table.view()["status"], "archived");
    assert!(!table.room.is_joinable() && table.room.next_deadline().is_none());
    assert_eq!(code(table.join("bob")), Code::WrongPhase);
}

#[test]
fn r6_leaving_and_being_turned_out_repair_the_order() {
    let mut table = Table::playing(
        &json!({ "turn_based": true, "players": { "min": 2, "max": 4 } }),
        &["bob", "cleo", "ada", "dan"],
    );
    table.put("bob", json!({})).expect("it is his turn");
    assert_eq!(table.current(), "cleo");
    table.leave("bob").expect("anybody may");
    assert_eq!((table.current(), table.order()), ("cleo", vec!["cleo", "ada", "dan"]));
    assert_eq!(
        code(table.join("bob")),
        Code::OutOfGame,
        "with turns, leaving is the end of the game for him"
    );
    table.put("cleo", json!({})).expect("it is her turn");
    table.put("ada", json!({})).expect("it is her turn");
    table.kick("ada", "dan").expect("the host may");
    assert_eq!(
        (table.current(), table.order()),
        ("cleo", vec!["cleo", "ada"]),
        "after the last comes the first"
    );
    table.leave("cleo").expect("anybody may");
    assert_eq!(table.result(), Some((Some("ada"), "player_left")));
    assert_eq!(table.room.phase(), Phase::Ended);
}

#[test]
fn leaving_a_game_without_turns_ends_nothing() {
    let mut table = Table::playing(&json!({ "players": { "max": 3 } }), &["ada", "bob"]);
    table.leave("bob").expect("anybody may");
    assert_eq!(table.room.phase(), Phase::Playing);
    table.join("bob").expect("and come back");
    table.put("bob", json!({ "x": 1 })).expect("and play on");
}

#[test]
fn the_host_says_what_the_room_is_and_players_write_its_data() {
    let mut table = Table::new(&json!({}), &["bob"]);
    table.told();
    table.update("ada", json!({ "name": "Den", "metadata": { "level": 3 } })).expect("the host may");
    table.update("bob", json!({ "data": { "chat": { "topic": "x" } } })).expect("any player may");
    table.update("bob", json!({ "data": { "chat": { "who": "bob" } } })).expect("any player may");
    assert_eq!(table.kinds(), [NoticeKind::RoomUpdated; 3]);
    let view = table.view();
    assert_eq!(view["data"], json!({ "chat": { "topic": "x", "who": "bob" } }));
    assert_eq!((&view["name"], &view["metadata"]), (&json!("Den"), &json!({ "level": 3 })));
    for mine in [json!({ "name": "Bob's" }), json!({ "metadata": {} }), json!({ "visibility": "private" })] {
        assert_eq!(code(table.update("bob", mine)), Code::NotHost);
    }
    assert_eq!(refused(table.update("bob", json!({ "data": 3 }))), (Code::BadInput, "data".to_owned()));
    let large = json!({ "data": { "x": "y".repeat(17_000) } });
    assert_eq!(refused(table.update("bob", large)), (Code::TooLarge, "data".to_owned()));
    let version = table.room.version();
    table.update("bob", json!({})).expect("nothing is asked");
    assert_eq!(table.room.version(), version);
    assert_eq!(code(table.update("eve", json!({ "data": {} }))), Code::NotInRoom);
}

#[test]
fn who_is_not_in_the_room_reads_it_only_where_spectators_may() {
    let table = Table::new(&json!({}), &[]);
    assert_eq!(table.view_of("eve").expect_err("it is not hers").code, Code::NotInRoom);
    let mut table = Table::new(&json!({ "spectators": true }), &["bob"]);
    let view = table.view_of("eve").expect("she may watch");
    assert_eq!(view["code"], Value::Null, "without the code, which lets people in");
    assert_eq!(view["player_count"], 2);
    table.kick("ada", "bob").expect("the host may");
    assert!(table.view_of("bob").is_err(), "who was turned out does not watch either");
}

#[test]
fn r2_messages_reach_all_and_are_no_change_of_the_state() {
    let mut table = Table::new(&json!({}), &["bob"]);
    table.told();
    let say = |body: Value| Op::Say(parlor_turn::Say { kind: "chat".to_owned(), body });
    let state = table.room.state_version();
    table.by("bob", say(json!({ "text": "hello" }))).expect("who sits there may");
    let told = table.told();
    assert_eq!(
        told[0].body,
        json!({ "player": "bob", "type": "chat", "body": { "text": "hello" }, "number": 1 })
    );
    assert_eq!(told[0].to, [id("ada"), id("bob")]);
    assert_eq!(table.room.state_version(), state);
    assert_eq!(refused(table.by("bob", say(json!("x".repeat(5_000))))), (Code::TooLarge, "body".to_owned()));
    assert_eq!(code(table.by("eve", say(json!("hi")))), Code::NotInRoom);
}

#[test]
fn r2_what_is_said_goes_into_the_history_with_its_number() {
    let mut table = Table::new(&json!({}), &["bob"]);
    for (number, by) in [(1, "ada"), (2, "bob")] {
        table.effects.clear();
        let say = parlor_turn::Say { kind: "chat".to_owned(), body: json!({ "n": number }) };
        table.by(by, Op::Say(say)).expect("who sits there may");
        let said = table.effects.iter().filter_map(|effect| match effect {
            Effect::Said(said) => Some(json!(said)),
            _ => None,
        });
        let name = by.to_uppercase();
        let expected =
            json!({ "number": number, "player": by, "name": name, "type": "chat", "body": { "n": number } });
        let expected = if by == "ada" { with(expected, "name", json!("ada")) } else { expected };
        assert_eq!(said.collect::<Vec<_>>(), [expected]);
    }
    assert_eq!(table.room.messages(), 2);
}

fn with(mut value: Value, field: &str, other: Value) -> Value {
    value[field] = other;
    value
}

#[test]
fn r2_data_is_merged_or_takes_the_place_of_the_old() {
    let mut table = Table::new(&json!({}), &["bob"]);
    table.update("bob", json!({ "data": { "a": 1, "b": { "c": 2 } } })).expect("any player may");
    table.told();
    table
        .update("bob", json!({ "data": { "b": { "d": 3 }, "e": null }, "replace": true }))
        .expect("any player may");
    assert_eq!(table.view()["data"], json!({ "b": { "d": 3 } }));
    let told = table.told();
    assert_eq!(told[0].body["replaces"], true);
    assert_eq!(told[0].body["changed"], json!({ "data": { "b": { "d": 3 }, "e": null } }));
    table.update("ada", json!({ "metadata": { "x": 1 } })).expect("the host may");
    table.update("ada", json!({ "metadata": { "y": 2 }, "replace": true })).expect("the host may");
    assert_eq!(table.view()["metadata"], json!({ "y": 2 }));
    assert_eq!(table.told()[0].body["replaces"], false);
    let large = json!({ "data": { "x": "y".repeat(17_000) }, "replace": true });
    assert_eq!(refused(table.update("bob", large)), (Code::TooLarge, "data".to_owned()));
}

#[test]
fn r2_who_watches_is_told_what_all_are_told_and_no_more() {
    let watched = json!({ "spectators": true, "turn_based": true });
    let mut table = Table::playing(&watched, &["ada", "bob"]);
    table.put("ada", json!({ "x": 1 })).expect("her turn");
    let public: Vec<_> = table.told().into_iter().map(|notice| (notice.kind, notice.is_public)).collect();
    let expected =
        [(NoticeKind::MoveMade, true), (NoticeKind::TurnStarted, true), (NoticeKind::YourTurn, false)];
    assert_eq!(public, expected);
    for kind in NoticeKind::ALL {
        assert!(Topic::ALL.contains(&kind.topic()), "{kind:?}");
    }
    let mut closed = Table::playing(&json!({ "turn_based": true }), &["ada", "bob"]);
    closed.put("ada", json!({})).expect("her turn");
    assert!(closed.told().iter().all(|notice| !notice.is_public), "nobody may watch this one");
    // The end of a room that all have left is for those who watch alone.
    table.leave("ada").expect("anybody may");
    table.told();
    table.leave("bob").expect("anybody may");
    assert!(table.told().iter().all(|notice| notice.is_public && notice.to.is_empty()));
}

#[test]
fn r9_who_played_reads_an_archived_room() {
    let mut table = Table::playing(&json!({ "turn_based": true }), &["ada", "bob", "cleo"]);
    table.kick("ada", "cleo").expect("the host may");
    table.leave("ada").expect("anybody may");
    assert!(table.view_of("ada").is_err(), "others play on");
    table.leave("bob").expect("anybody may");
    let view = table.view_of("ada").expect("she played");
    assert_eq!((&view["status"], &view["code"]), (&json!("archived"), &Value::Null));
    assert!(table.view_of("bob").is_ok());
    assert_eq!(table.view_of("cleo").expect_err("she was turned out").code, Code::NotInRoom);
    assert_eq!(table.view_of("eve").expect_err("she was not there").code, Code::NotInRoom);
    let mut never = Table::new(&json!({}), &["bob"]);
    never.leave("bob").expect("anybody may");
    never.leave("ada").expect("anybody may");
    assert!(never.view_of("bob").is_err(), "nobody played");
}

#[test]
fn r9_the_host_names_admins_and_they_help() {
    let mut table = Table::new(&json!({}), &["bob", "cleo", "dan"]);
    assert_eq!(table.view()["admins"], json!(["ada"]));
    assert_eq!(code(table.update("bob", json!({ "admins": ["bob"] }))), Code::NotHost);
    let stranger = table.update("ada", json!({ "admins": ["eve"] }));
    assert_eq!(refused(stranger), (Code::NoSuchPlayer, "admins[0]".to_owned()));
    let twice = table.update("ada", json!({ "admins": ["cleo", "cleo"] }));
    assert_eq!(refused(twice), (Code::BadInput, "admins[1]".to_owned()));
    table.update("ada", json!({ "admins": ["cleo", "ada", "dan"] })).expect("the host may");
    assert_eq!(table.view()["admins"], json!(["ada", "cleo", "dan"]));
    table.update("cleo", json!({ "name": "Den" })).expect("an admin may");
    assert_eq!(code(table.by("cleo", Op::Start(parlor_turn::Start::default()))), Code::NotHost);
    assert_eq!(code(table.kick("cleo", "bob")), Code::NotHost);
    table.leave("dan").expect("anybody may");
    assert_eq!(table.view()["admins"], json!(["ada", "cleo"]));
    table.leave("ada").expect("anybody may");
    assert_eq!(table.room.host(), Some(&id("cleo")), "before Bob, who was there longer");
    assert_eq!(table.view()["admins"], json!(["cleo"]));
}

#[test]
fn a_room_that_turned_out_very_many_takes_nobody_else() {
    let mut table = Table::new(&json!({}), &[]);
    let mut refusals = Vec::new();
    for number in 0..300 {
        let name = format!("p{number}");
        match table.join(&name) {
            Ok(()) => table.kick("ada", &name).expect("the host may"),
            Err(refusal) => refusals.push(refusal.code),
        }
    }
    assert_eq!(
        refusals,
        vec![Code::RoomFull; 300 - 255],
        "255 and the host: the list of those does not grow further"
    );
}
