//! Tests of the machine against a simulated server. What the TypeScript client does, too, stands in `scenes`.

mod scenes;

use super::*;

fn core() -> Core {
    let who =
        Who { app: "noughts".into(), environment: None, name: Some("ada".into()), device: "d".repeat(32) };
    let want = Want::Found { op: "turn.join_or_create", input: json!({}) };
    Core::new(who, want)
}

/// Returns the machine's next message: its operation and the whole text.
fn says(core: &mut Core) -> (String, Value) {
    let text = core.poll_text().expect("it says something");
    let message: Value = serde_json::from_str(&text).unwrap();
    (message["op"].as_str().unwrap().to_owned(), message)
}

fn answer(core: &mut Core, to: &Value, output: Value) {
    core.handle_text(&json!({ "id": to["id"], "output": output }).to_string());
}

fn refuse(core: &mut Core, to: &Value, code: &str) {
    let error = json!({ "code": code, "sentence": "no", "retry_after_ms": 70 });
    core.handle_text(&json!({ "id": to["id"], "error": error }).to_string());
}

fn events(core: &mut Core) -> Vec<Event> {
    core::iter::from_fn(|| core.poll_event()).collect()
}

fn room(version: u64, state_version: u64, current: &str) -> Value {
    json!({ "room": {
        "id": "r1", "code": "K7QM22", "name": "noughts", "game": "noughts", "phase": "playing", "version": version,
        "players": [], "max_players": 2, "turn_order": ["p1", "p2"], "current_player": current,
        "turn_count": state_version, "state": {}, "state_version": state_version, "metadata": {}, "data": {},
    } })
}

fn notice(seq: u64, kind: &str, body: Value) -> Value {
    json!({ "seq": seq, "kind": kind, "at_ms": 0, "notice": { "room": "r1", "seq": seq, "body": body } })
}

/// A machine that follows a room in which it is this player's turn.
fn following() -> Core {
    let mut core = core();
    core.handle_open();
    let (op, asked) = says(&mut core);
    assert_eq!((op.as_str(), &asked["input"]["name"]), ("auth.device", &json!("ada")));
    answer(&mut core, &asked, json!({ "account": { "id": "p1" }, "access_token": "t" }));
    let (op, asked) = says(&mut core);
    assert_eq!((op.as_str(), &asked["input"]["limit"]), ("inbox.read", &json!(1)));
    answer(&mut core, &asked, json!({ "notices": [], "newest": 4, "dropped": 0 }));
    let (op, asked) = says(&mut core);
    assert_eq!(op, "turn.join_or_create");
    answer(&mut core, &asked, room(3, 1, "p1"));
    let told = events(&mut core);
    assert!(matches!(&told[0], Event::Connected { room, .. } if room == "r1"), "{told:?}");
    assert!(matches!(&told[1], Event::TurnStarted { is_me: true, turn: 2, .. }), "{told:?}");
    assert_eq!((told.len(), core.me(), core.is_following()), (2, Some("p1"), true));
    core
}

#[test]
fn a_request_for_a_room_is_the_same_after_its_answer_was_lost() {
    let mut core = core();
    core.want = Want::Found { op: "turn.create", input: json!({ "id": "first" }) };
    let mut asks = || {
        core.handle_open();
        loop {
            let (op, asked) = says(&mut core);
            let output = match op.as_str() {
                "auth.device" => json!({ "account": { "id": "p1" }, "access_token": "t" }),
                "inbox.read" => json!({ "notices": [], "newest": 4, "dropped": 0 }),
                _ => {
                    core.handle_lost("gone".into());
                    return (op, asked["input"].clone());
                }
            };
            answer(&mut core, &asked, output);
        }
    };
    let first = asks();
    assert_eq!(first, ("turn.create".to_owned(), json!({ "id": "first" })));
    assert_eq!(asks(), first);
}

#[test]
fn a_server_that_cannot_is_asked_again_later_and_one_that_will_not_is_not() {
    let mut core = following();
    core.propose(json!({ "type": "put" }), 1);
    let (_, asked) = says(&mut core);
    refuse(&mut core, &asked, "unavailable");
    assert_eq!((core.take_pause(), core.has_pending_move()), (Some(Duration::from_millis(70)), true));

    let mut core = following();
    core.propose(json!({ "type": "put" }), 1);
    let (_, asked) = says(&mut core);
    refuse(&mut core, &asked, "illegal_move");
    assert!(
        matches!(&events(&mut core)[..], [Event::MoveRejected { error, .. }] if error.code == "illegal_move")
    );
    let (op, asked) = says(&mut core);
    assert_eq!(op, "turn.read");
    refuse(&mut core, &asked, "not_in_room");
    assert!(matches!(&events(&mut core)[..], [Event::Closed(_)]) && core.is_closed());
    core.handle_lost("gone".into());
    assert!(events(&mut core).is_empty(), "nothing comes after the end");
}

#[test]
fn a_token_that_is_over_is_had_anew_by_the_refresh_token_and_by_the_device_where_that_is_refused() {
    let mut core = following();
    assert_eq!(core.take_renewed(), Some(None), "this server gave none");
    core.set_refresh(Some("s1.a".into()));
    core.request(Request { op: "turn.leave", input: json!({ "room": "r1" }), again: true });
    let (_, asked) = says(&mut core);
    refuse(&mut core, &asked, "token_expired");
    let (op, asked) = says(&mut core);
    assert_eq!((op.as_str(), &asked["input"]["refresh_token"]), ("auth.refresh", &json!("s1.a")));
    assert!(asked["input"]["device"].is_null(), "{asked}");
    let signed_in = json!({ "account": { "id": "p1" }, "access_token": "u", "refresh_token": "s1.b" });
    answer(&mut core, &asked, signed_in);
    assert_eq!(core.take_renewed(), Some(Some("s1.b".into())), "the newest is to be kept");
    assert_eq!(core.take_renewed(), None, "once");
    core.handle_lost("gone".into());
    core.handle_open();
    let (_, asked) = says(&mut core);
    refuse(&mut core, &asked, "token_expired");
    for code in ["refresh_token_reused", "bad_refresh_token"] {
        let (op, asked) = says(&mut core);
        assert_eq!(op, "auth.refresh");
        refuse(&mut core, &asked, code);
        assert_eq!(core.take_renewed(), Some(None), "what is good no more is not kept");
        let (op, asked) = says(&mut core);
        assert_eq!((op.as_str(), &asked["input"]["device"]), ("auth.device", &json!("d".repeat(32))));
        core.set_refresh(Some("s2.a".into()));
        refuse(&mut core, &asked, "unavailable");
        assert!(core.take_pause().is_some());
        core.handle_lost("it shall wait".into());
        core.handle_open();
    }
    let (_, asked) = says(&mut core);
    refuse(&mut core, &asked, "banned");
    assert!(core.is_closed(), "who is banned does not come in by the device either");
}

#[test]
fn an_inbox_is_told_to_forget_what_the_game_has_polled_and_nothing_else() {
    let mut core = following();
    let newest = 4 + ACKNOWLEDGE_EVERY;
    for seq in 5..=newest {
        core.handle_text(&json!({ "event": notice(seq, "message", json!({ "player": "p2" })) }).to_string());
    }
    let (op, asked) = says(&mut core);
    assert_eq!(op, "turn.read");
    answer(&mut core, &asked, room(4, 1, "p1"));
    let (_, asked) = says(&mut core);
    assert!(matches!(core.poll_event(), Some(Event::Message { .. })));
    assert!(core.poll_text().is_none(), "the rest was not told");
    answer(&mut core, &asked, room(4, 1, "p1"));
    assert_eq!(events(&mut core).len() as u64, ACKNOWLEDGE_EVERY - 1);
    let (op, asked) = says(&mut core);
    assert_eq!((op.as_str(), &asked["input"]["up_to"]), ("inbox.acknowledge", &json!(newest)));
    answer(&mut core, &asked, json!({ "done": true }));
    assert!(events(&mut core).is_empty() && core.poll_text().is_none(), "once");
}

#[test]
fn a_token_is_renewed_before_it_is_over_and_nothing_else_happens() {
    let mut core = following();
    core.set_refresh(Some("s1.a".into()));
    core.take_renewed();
    core.renew();
    let (op, asked) = says(&mut core);
    assert_eq!((op.as_str(), &asked["input"]["refresh_token"]), ("auth.refresh", &json!("s1.a")));
    // Notices that arrive meanwhile raise events as usual.
    core.handle_text(&json!({ "event": notice(5, "message", json!({ "player": "p2" })) }).to_string());
    let (op, read) = says(&mut core);
    assert_eq!(op, "turn.read");
    let renewed = json!({
        "account": { "id": "p1" }, "access_token": "u", "refresh_token": "s1.b", "expires_in_s": 900,
    });
    answer(&mut core, &asked, renewed);
    assert_eq!(core.take_renewed(), Some(Some("s1.b".into())));
    assert_eq!(core.good_for.take(), Some(Duration::from_secs(900)));
    answer(&mut core, &read, room(4, 1, "p1"));
    assert!(matches!(&events(&mut core)[..], [Event::Message { .. }]));
    assert!(core.is_following() && core.poll_text().is_none());
    // A server that cannot do it now is asked when the old token is over.
    core.renew();
    let (_, asked) = says(&mut core);
    refuse(&mut core, &asked, "forbidden");
    assert!(core.is_following() && events(&mut core).is_empty());
}

#[test]
fn r2_a_watched_room_is_subscribed_to_anew_after_an_outage() {
    let mut core = core();
    core.want = Want::Watched("r1".into());
    core.handle_open();
    let (_, asked) = says(&mut core);
    answer(&mut core, &asked, json!({ "account": { "id": "p9" }, "access_token": "t" }));
    let subscribes = |core: &mut Core, current: &str, version: u64| {
        let (op, asked) = says(core);
        assert_eq!(op, "inbox.read");
        answer(core, &asked, json!({ "notices": [], "newest": 4, "dropped": 0 }));
        let (op, asked) = says(core);
        let input = json!({ "room": "r1", "topics": ["data", "messages", "game"] });
        assert_eq!((op.as_str(), &asked["input"]), ("turn.subscribe", &input));
        answer(core, &asked, room(version, version, current));
        events(core)
    };
    let told = subscribes(&mut core, "p1", 1);
    assert!(matches!(&told[..], [Event::Connected { .. }, Event::TurnStarted { is_me: false, turn: 2, .. }]));

    // A notice has no number of an inbox. It is told once the room was read.
    let said = json!({ "player": "p1", "type": "chat", "body": "hi", "number": 1 });
    let watched = |kind: &str, body: &Value| json!({ "watched": { "kind": kind, "at_ms": 0, "notice": { "room": "r1", "seq": 7, "body": body } } });
    core.handle_text(&watched("message", &said).to_string());
    assert_eq!(events(&mut core), []);
    let (op, asked) = says(&mut core);
    assert_eq!(op, "turn.read");
    answer(&mut core, &asked, room(2, 1, "p1"));
    assert!(matches!(&events(&mut core)[..], [Event::Message { number: 1, .. }]));

    // Another topic less: what is asked for is less, and what comes all the same is not told.
    core.set_topic(Topic::Messages, false);
    let (op, asked) = says(&mut core);
    assert_eq!((op.as_str(), &asked["input"]["topics"]), ("turn.subscribe", &json!(["data", "game"])));
    answer(&mut core, &asked, room(2, 1, "p1"));
    core.handle_text(&watched("message", &said).to_string());
    let (_, asked) = says(&mut core);
    answer(&mut core, &asked, room(3, 1, "p1"));
    assert_eq!(events(&mut core), []);
    core.set_topic(Topic::Messages, true);
    let (_, asked) = says(&mut core);
    answer(&mut core, &asked, room(3, 1, "p1"));

    // Nobody kept what happened during an outage: the view says how far the game is.
    core.handle_lost("gone".into());
    assert!(matches!(&events(&mut core)[..], [Event::Lost { .. }]));
    core.handle_open();
    let told = subscribes(&mut core, "p2", 4);
    assert!(matches!(&told[..], [Event::Connected { .. }, Event::TurnStarted { turn: 5, .. }]), "{told:?}");
    core.handle_text(&watched("unsubscribed", &json!({})).to_string());
    assert!(matches!(&events(&mut core)[..], [Event::Closed(error)] if error.code == "not_in_room"));
}
