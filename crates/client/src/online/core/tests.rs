//! Tests of the machine against a simulated server.

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
fn a_notice_is_told_when_the_room_was_read_and_once() {
    let mut core = following();
    let made =
        notice(5, "move_made", json!({ "player": "p2", "type": "put", "data": {}, "state_version": 2 }));
    core.handle_text(&json!({ "event": made }).to_string());
    assert!(events(&mut core).is_empty(), "the room is as it was");
    let (op, asked) = says(&mut core);
    assert_eq!(op, "turn.read");
    // The connection is restored with an old event, and another event arrives while it reads.
    core.handle_text(&json!({ "event": made }).to_string());
    core.handle_text(&json!({ "event": notice(3, "game_started", json!({})) }).to_string());
    core.handle_text(
        &json!({ "event": notice(6, "message", json!({ "player": "p2", "type": "x" })) }).to_string(),
    );
    assert!(core.poll_text().is_none(), "one reading at a time");
    answer(&mut core, &asked, room(5, 2, "p1"));
    let told = events(&mut core);
    assert!(
        matches!(&told[0], Event::MoveMade { player, state_version: 2, .. } if player == "p2"),
        "{told:?}"
    );
    assert_eq!(told.len(), 1, "the turn's own notice is still under way");
    let turn = notice(7, "turn_started", json!({ "player": "p1", "turn": 3 }));
    let (op, asked) = says(&mut core);
    assert_eq!(op, "turn.read");
    core.handle_text(&json!({ "event": turn }).to_string());
    answer(&mut core, &asked, room(6, 2, "p1"));
    assert!(matches!(&events(&mut core)[..], [Event::Message { .. }]));
    let (_, asked) = says(&mut core);
    answer(&mut core, &asked, room(6, 2, "p1"));
    assert!(matches!(&events(&mut core)[..], [Event::TurnStarted { turn: 3, is_me: true, .. }]));
    assert!(core.poll_text().is_none());
}

#[test]
fn a_gap_in_the_notices_is_filled_from_the_inbox() {
    let mut core = following();
    core.handle_text(&json!({ "event": notice(7, "message", json!({})) }).to_string());
    core.handle_text(&json!({ "event": notice(8, "message", json!({})) }).to_string());
    let (op, asked) = says(&mut core);
    assert_eq!((op.as_str(), &asked["input"]["after"]), ("inbox.read", &json!(4)));
    let notices: Vec<Value> = (5..9).map(|seq| notice(seq, "message", json!({ "player": "p2" }))).collect();
    answer(&mut core, &asked, json!({ "notices": notices, "newest": 8, "dropped": 0 }));
    let (_, asked) = says(&mut core);
    answer(&mut core, &asked, room(9, 1, "p1"));
    assert_eq!(events(&mut core).len(), 4);
}

/// Reconnects the machine with `notices` in its inbox and `room` as the room.
fn again(core: &mut Core, notices: &[Value], room: Value) {
    core.handle_lost("gone".into());
    assert!(matches!(&events(core)[..], [Event::Lost { .. }]));
    core.handle_lost("refused".into());
    assert!(events(core).is_empty(), "an outage is told once");
    core.handle_open();
    let (op, asked) = says(core);
    assert_eq!(
        (op.as_str(), &asked["token"], &asked["input"]["after"]),
        ("inbox.read", &json!("t"), &json!(4))
    );
    let newest = 4 + notices.len();
    answer(core, &asked, json!({ "notices": notices, "newest": newest, "dropped": 0 }));
    let (op, asked) = says(core);
    assert_eq!((op.as_str(), &asked["input"]["room"]), ("turn.read", &json!("r1")));
    answer(core, &asked, room);
}

#[test]
fn a_move_whose_answer_was_lost_is_made_again_where_it_was_not_made() {
    let mut core = following();
    core.propose(json!({ "type": "put" }), 1);
    assert_eq!(says(&mut core).0, "turn.propose");
    again(&mut core, &[], room(3, 1, "p1"));
    let (op, asked) = says(&mut core);
    assert_eq!((op.as_str(), core.has_pending_move()), ("turn.propose", true));
    answer(&mut core, &asked, room(4, 2, "p2"));
    assert!(!core.has_pending_move());
    assert!(matches!(&events(&mut core)[..], [Event::Connected { .. }]));
}

#[test]
fn a_move_whose_answer_was_lost_is_not_made_twice() {
    let mut core = following();
    core.propose(json!({ "type": "put" }), 1);
    says(&mut core);
    let made =
        notice(5, "move_made", json!({ "player": "p1", "type": "put", "data": {}, "state_version": 2 }));
    let turn = notice(6, "turn_started", json!({ "player": "p2", "turn": 3 }));
    again(&mut core, &[made, turn], room(4, 2, "p2"));
    assert!(core.poll_text().is_none() && !core.has_pending_move());
    let told = events(&mut core);
    assert!(
        matches!(&told[..], [Event::Connected { .. }, Event::MoveMade { .. }, Event::TurnStarted { .. }]),
        "{told:?}"
    );
}

#[test]
fn a_move_for_a_state_that_is_gone_is_rejected() {
    let mut core = following();
    core.propose(json!({ "type": "put" }), 1);
    says(&mut core);
    again(&mut core, &[], room(9, 5, "p1"));
    assert!(core.poll_text().is_none());
    let told = events(&mut core);
    assert!(
        told.iter()
            .any(|event| matches!(event, Event::MoveRejected { error, .. } if error.code == "stale_state"))
    );
}

#[test]
fn a_token_that_is_over_is_had_anew_and_nothing_is_lost() {
    let mut core = following();
    core.request(Request { op: "turn.resign", input: json!({ "room": "r1" }), again: true });
    let (_, asked) = says(&mut core);
    refuse(&mut core, &asked, "token_expired");
    let (op, asked) = says(&mut core);
    assert_eq!(op, "auth.device");
    answer(&mut core, &asked, json!({ "account": { "id": "p1" }, "access_token": "u" }));
    let (_, asked) = says(&mut core);
    answer(&mut core, &asked, json!({ "notices": [], "newest": 4, "dropped": 0 }));
    let (_, asked) = says(&mut core);
    answer(&mut core, &asked, room(3, 1, "p1"));
    assert_eq!(says(&mut core).0, "turn.resign");
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
fn who_missed_notices_is_told_how_the_game_stands() {
    let mut core = following();
    core.handle_text(&json!({ "event": notice(400, "message", json!({})) }).to_string());
    let (_, asked) = says(&mut core);
    // The inbox has only the newest notice.
    let newest = notice(400, "message", json!({ "player": "p2" }));
    answer(&mut core, &asked, json!({ "notices": [newest], "newest": 400, "dropped": 395 }));
    let (_, asked) = says(&mut core);
    answer(&mut core, &asked, room(90, 50, "p2"));
    let told = events(&mut core);
    assert!(
        matches!(&told[..], [Event::Message { .. }, Event::TurnStarted { turn: 51, is_me: false, .. }]),
        "{told:?}"
    );
}

#[test]
fn nonsense_of_a_server_changes_nothing() {
    let mut core = following();
    for text in
        ["", "[]", "{}", "null", r#"{"id":99,"output":{}}"#, r#"{"event":{"seq":5}}"#, r#"{"id":"x"}"#]
    {
        core.handle_text(text);
    }
    assert!(events(&mut core).is_empty() && core.poll_text().is_none() && core.is_following());
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
