//! Keyed state, inputs, messages, players, matches; and the ends of rooms.

use crate::support::{Net, fault, give, list, map, ok, taken, taken_one, text};
use bytes::Bytes;
use parlor_proto::LinkKind;
use parlor_sync::value::Value;
use parlor_wasm::exports::{driver, figures, play, state};
use std::time::Duration;

#[allow(clippy::cast_possible_truncation)] // it is small
fn tick_number() -> i64 {
    play::tick_number() as i64
}

/// The value of a key in a page.
fn get(net: &Net, page: usize, key: &'static str) -> Option<Value> {
    net.at(page, move || (ok(state::get(give([key.into()]))) == 1).then(taken_one))
}

#[test]
fn the_host_moves_a_dot_by_a_guests_input_and_both_see_it() {
    let mut net = Net::new();
    let host = net.host([("name", "ada".into())]);
    net.each_step(host, || {
        if ok(play::inputs()) == 0 {
            return;
        }
        let all = taken();
        for pair in all.chunks(2) {
            let [Value::Int(member), input] = pair else { panic!("{pair:?}") };
            let Some(Value::Int(dx)) = input.field("dx") else { panic!("{input}") };
            let key = format!("dot/{member}");
            let x = match ok(state::get(give([key.as_str().into()]))) {
                1 => taken_one(),
                _ => Value::Int(0),
            };
            let Value::Int(x) = x else { panic!("{x}") };
            ok(state::set(give([key.into(), (x + dx).into()])));
        }
    });
    let guest = net.join(host, [("name", "bob".into())]);
    net.each_step(guest, || _ = ok(play::send_input(give([map([("dx", 3.into())])]))));
    net.until(
        "the guest sees its dot move",
        |net| matches!(get(net, guest, "dot/1"), Some(Value::Int(x)) if x >= 30),
    );
    net.each_step(guest, || ());
    net.each_step(host, || ());
    net.pass(Duration::from_millis(500));
    assert_eq!(get(&net, host, "dot/1"), get(&net, guest, "dot/1"));
    let hash = |page| net.at(page, || (ok(state::state_hash()), parlor_wasm::memory::read()));
    assert_eq!(hash(host), hash(guest), "the same state at the same sequence");
    assert!(net.at(guest, || play::input_ack(1)) > 0.0);
    assert_eq!(net.at(host, || play::flags()) & 3, 3, "open, and the host");
    assert_eq!(net.at(guest, || play::flags()) & 3, 1);
    let changed = list(["dot/1".into()]);
    assert!(net.pages[guest].events.iter().any(|event| event.field("changed") == Some(&changed)));
}

#[test]
fn whole_numbers_move_as_all_others_unless_the_page_says_otherwise() {
    let mut net = Net::new();
    let host = net.host([]);
    let smooth = net.join(host, []);
    let whole = net.join(host, [("reals", false.into())]);
    net.each_step(host, || {
        // Ten a tick: between two ticks there is something to see.
        ok(state::set(give(["x".into(), (10 * tick_number()).into()])));
    });
    net.pass(Duration::from_secs(2));
    let shown = |net: &Net, page: usize| {
        let now = net.now_us();
        net.at(page, move || {
            assert_eq!(ok(state::interpolated(give(["x".into()]), now)), 1);
            taken_one()
        })
    };
    let mut fractions = 0;
    for _ in 0..20 {
        net.pass(Duration::from_millis(7));
        let Value::Float(x) = shown(&net, smooth) else { panic!("{}", shown(&net, smooth)) };
        fractions += u32::from(x.fract() != 0.0);
        assert!(matches!(shown(&net, whole), Value::Int(_)), "{}", shown(&net, whole));
    }
    assert!(fractions >= 15, "it stood between whole numbers {fractions} times of 20");
}

#[test]
fn keys_are_read_by_prefix_and_hidden_ones_are_not() {
    let mut net = Net::new();
    let host = net.host([]);
    let guest = net.join(host, []);
    let other = net.join(host, []);
    net.at(host, || {
        for (key, x) in [("a/1", 1), ("a/2", 2), ("b/1", 3)] {
            ok(state::set(give([key.into(), x.into()])));
        }
        ok(state::set_for(give([list([1.into()]), "a/secret".into(), "psst".into()])));
        ok(state::declare(give([
            "a/".into(),
            map([("snap", list(["".into()])), ("period", map([("turn", 360.into())]))]),
        ])));
    });
    net.until("all see a/2", |net| get(net, guest, "a/2").is_some() && get(net, other, "a/2").is_some());
    let entries = |net: &Net, page: usize, what: i32| {
        let now = net.now_us();
        net.at(page, move || (ok(state::entries(give(["a/".into()]), what, now)), taken()))
    };
    let secret = [Value::from("a/secret"), "psst".into()];
    let seen: Vec<Value> = ["a/1".into(), 1.into(), "a/2".into(), 2.into()].into();
    assert_eq!(entries(&net, other, 0), (2, seen.clone()));
    assert_eq!(entries(&net, guest, 0), (3, [seen, secret.into()].concat()));
    assert_eq!(entries(&net, other, 3), (2, vec!["a/1".into(), "a/2".into()]));
    assert_eq!(net.at(host, || ok(state::remove(give(["a/1".into()])))), 1);
    net.until("it is gone", |net| get(net, guest, "a/1").is_none());
    net.at(guest, || {
        ok(state::set_predicted(give(["a/2".into(), 7.into()])));
        assert_eq!(ok(state::predicted(give(["a/2".into()]))), 1);
        assert_eq!(taken_one(), 7.into());
    });
}

#[test]
fn messages_and_bytes_reach_whom_they_are_sent_to() {
    let mut net = Net::new();
    let channels = || ("channels", map([("32", "unreliable".into())]));
    let host = net.host([channels()]);
    let [guest, other] = [net.join(host, [channels()]), net.join(host, [channels()])];
    let now = net.now_us();
    net.at(guest, move || {
        ok(play::send(0, 0, give(["host".into(), "chat".into(), "hello".into()]), now));
        ok(play::send(4, 1, give(["all".into(), "vote".into(), map([("yes", true.into())])]), now));
        ok(play::send(1, 0, give([list([2.into()]), "ping".into(), Value::Null]), now));
        ok(play::send(
            3,
            0,
            give([map([("except", list([0.into(), 1.into()]))]), "aside".into(), 1.5.into()]),
            now,
        ));
        ok(play::send_bytes(32, 0, give(["others".into(), Bytes::from_static(b"\0\xff").into()]), now));
    });
    net.pass(Duration::from_millis(300));
    let kinds = |page: usize| -> Vec<&str> {
        let of_kind = net.pages[page].events.iter().filter(|event| text(event, "type") == "message");
        of_kind.map(|event| text(event, "kind")).collect()
    };
    assert_eq!(kinds(host), ["chat", "vote"]);
    assert_eq!(kinds(guest), ["vote"]);
    let mut others = kinds(other);
    others.sort_unstable();
    assert_eq!(others, ["aside", "ping", "vote"]);
    let vote = net.pages[host].last("message").expect("it came");
    assert_eq!((vote.field("from"), vote.field("order")), (Some(&1.into()), Some(&0.into())));
    let bytes = net.pages[other].last("bytes").expect("they came");
    assert_eq!(bytes.field("bytes"), Some(&Value::Bytes(Bytes::from_static(b"\0\xff"))));
}

#[test]
fn players_come_with_their_data_and_go_with_a_reason() {
    let mut net = Net::new();
    let host = net.host([("name", "ada".into()), ("maxPlayers", 3.into())]);
    let guest = net.join(host, [("name", "bob".into())]);
    net.at(guest, || ok(play::set_player_data(1, give(["color".into(), "red".into()]))));
    net.until("the host knows the color", |net| net.pages[host].last("playerData").is_some());
    let players = net.at(host, || (ok(play::players()), taken()));
    assert_eq!(players.0, 2);
    let bob = &players.1[1];
    assert_eq!((text(bob, "name"), text(bob, "link")), ("bob", "quic"));
    assert_eq!(bob.field("data"), Some(&map([("color", "red".into())])));
    net.at(guest, || ok(play::set_player_data(1, give(["color".into()]))));
    net.until("it is removed", |net| {
        net.pages[host].last("playerData").is_some_and(|event| event.field("value").is_none())
    });
    net.at(host, || ok(play::kick(1, give(["be kind".into()]))));
    net.until("the guest is out", |net| net.pages[guest].last("closed").is_some());
    let closed = net.pages[guest].last("closed").expect("it is over");
    assert_eq!((text(closed, "code"), text(closed, "reason")), ("kicked", "be kind"));
    assert_eq!(text(net.pages[host].last("playerLeft").expect("it left"), "reason"), "kicked");
    assert_eq!(net.at(guest, || play::flags()) & 0b1_0001, 0b1_0000, "closed, and not open");
    assert_eq!(net.at(guest, || (play::leave(1e9), driver::is_finished())), (0, 1));
}

#[test]
fn a_match_has_no_host_and_orders_what_its_players_send() {
    let mut net = Net::new();
    let fixed = [("app", "dots".into()), ("intent", "match".into()), ("maxPlayers", 2.into())];
    let first = net.open(map(fixed), LinkKind::WebSocket);
    net.until("the match is open", |net| net.pages[first].last("open").is_some());
    let second = net.join(first, []);
    let now = net.now_us();
    for page in [first, second] {
        net.at(page, move || {
            ok(play::send_data(-3.0, 1, give(["all".into(), Bytes::from_static(b"move").into()]), now))
        });
    }
    net.pass(Duration::from_millis(300));
    let orders = |page: usize| -> Vec<(Option<&Value>, Option<&Value>)> {
        let data = net.pages[page].events.iter().filter(|event| text(event, "type") == "data");
        data.map(|event| (event.field("from"), event.field("order"))).collect()
    };
    assert_eq!(orders(first).len(), 2);
    assert_eq!(orders(first), orders(second), "both have the same order");
    assert_eq!(net.at(first, || play::flags()) & 32, 32);
    assert_eq!(net.at(first, || (state::set(give(["k".into(), 1.into()])), fault())), (-1, "no_host".into()));
    assert_eq!(net.at(first, || play::host()), -2);
}

#[test]
fn the_next_player_goes_on_when_the_host_is_gone() {
    let mut net = Net::new();
    let host = net.host([("hostMigration", map([("silenceMs", 500.into())]))]);
    let more = || ("hostMigration", true.into());
    let [heir, third] = [net.join(host, [more()]), net.join(host, [more()])];
    net.at(host, || ok(state::set(give(["score".into(), 41.into()]))));
    net.until("both have the score", |net| [heir, third].iter().all(|it| get(net, *it, "score").is_some()));
    net.pages[host].is_linked = false;
    net.until("there is another host", |net| net.pages[third].last("hostChanged").is_some());
    assert_eq!(net.pages[heir].last("hostMigration").and_then(|it| it.field("isMe")), Some(&true.into()));
    assert_eq!(net.at(third, || play::host()), 1);
    net.at(heir, || {
        assert_eq!(play::flags() & 2, 2, "it is the host");
        ok(state::set(give(["score".into(), 42.into()])));
    });
    net.until("the others see what the heir writes", |net| get(net, third, "score") == Some(42.into()));
}

#[test]
fn a_link_that_breaks_is_made_again_and_nothing_reliable_is_lost() {
    let mut net = Net::new();
    let host = net.host([]);
    let guest = net.join(host, []);
    net.cut(guest);
    let now = net.now_us();
    net.at(host, move || ok(play::send(4, 0, give(["others".into(), "meanwhile".into(), 1.into()]), now)));
    net.until("the page is to dial", |net| {
        let now = net.now_us();
        net.at(guest, move || driver::next_attempt() <= now)
    });
    assert_eq!(net.at(guest, || play::flags()) & 8, 8, "it is reconnecting");
    let now = net.now_us();
    net.at(guest, move || ok(driver::attempt_begins(now)));
    net.connect(guest);
    net.until("the message comes", |net| net.pages[guest].last("message").is_some());
    assert_eq!(
        net.pages[guest].last("reconnected").and_then(|it| it.field("stateResynced")),
        Some(&false.into())
    );
    assert_eq!(net.at(guest, || (driver::next_attempt(), driver::is_coming_back())), (f64::INFINITY, 0));
}

#[test]
fn a_page_that_was_reloaded_has_its_seat_back_by_its_ticket() {
    let mut net = Net::new();
    let host = net.host([]);
    let guest = net.join(host, [("name", "bob".into())]);
    net.pass(Duration::from_millis(200));
    let ticket = net.at(guest, || {
        assert_eq!(ok(driver::ticket()), 1);
        taken_one()
    });
    net.cut(guest);
    let again = [("app", "dots".into()), ("intent", "resume".into()), ("ticket", ticket)];
    let back = net.open(map(again), LinkKind::WebSocket);
    net.until("the seat is taken", |net| net.pages[back].last("open").is_some());
    assert_eq!(net.at(back, || play::me()), 1, "it is who it was");
    assert_eq!(text(net.pages[host].last("playerBack").expect("it is back"), "type"), "playerBack");
}

#[test]
fn the_server_is_reached_or_the_room_says_why_not() {
    let mut net = Net::new();
    let fixed = |code: &str| [("app", "dots".into()), ("intent", "join".into()), ("code", code.into())];
    let lost = net.open(map(fixed("ZZZZ")), LinkKind::WebSocket);
    net.until("there is no such room", |net| net.pages[lost].last("closed").is_some());
    assert_eq!(text(net.pages[lost].last("closed").expect("it is over"), "code"), "no_such_room");
    let away = net.open(map(fixed("ZZZY")), LinkKind::WebSocket);
    net.at(away, || {
        assert_eq!((ok(driver::admission()), taken_one()), (2, "ZZZY".into()));
        ok(driver::token(give(["a token".into()])));
        ok(driver::failed(give([map([
            ("kind", "untrusted".into()),
            ("detail", "another certificate".into()),
        ])])));
    });
    net.until("it is told", |net| net.pages[away].last("closed").is_some());
    let closed = net.pages[away].last("closed").expect("it is over");
    assert_eq!((text(closed, "code"), text(closed, "message")), ("untrusted", "another certificate"));
}

#[test]
fn figures_say_how_the_room_does_and_a_recording_has_its_bytes() {
    let mut net = Net::new();
    let host = net.host([]);
    let guest = net.join(host, []);
    net.at(host, || {
        ok(figures::recording_start());
        ok(state::set(give(["x".into(), 1.into()])));
    });
    net.pass(Duration::from_secs(1));
    let info = net.at(guest, || (ok(figures::info()), taken_one()).1);
    assert_eq!((text(&info, "role"), text(&info, "link"), text(&info, "server")), ("client", "quic", "test"));
    let figures = net.at(guest, || (ok(figures::diagnostics()), taken_one()).1);
    assert!(matches!(figures.field("updatesDecoded"), Some(Value::Int(1..))), "{figures}");
    assert!(matches!(
        figures.field("session").and_then(|it| it.field("packetsReceived")),
        Some(Value::Int(1..))
    ));
    let world = net.at(host, || (ok(figures::world_diagnostics(2e6)), taken_one()).1);
    assert!(matches!(world.field("packets"), Some(Value::Int(1..))), "{world}");
    let bytes = net.at(host, || {
        let len = ok(figures::recording_take());
        assert_eq!(usize::try_from(len).ok(), Some(parlor_wasm::memory::read().len()));
        len
    });
    assert!(bytes > 0);
    let ended = net.at(host, || {
        ok(figures::recording_stop());
        (ok(figures::recording_figures()), taken_one()).1
    });
    assert!(ended.field("ended").is_some(), "{ended}");
}

#[test]
fn a_socket_that_takes_little_limits_what_the_host_sends() {
    let mut net = Net::new();
    let host = net.host([]);
    let narrow = |net: &Net| {
        let now = net.now_us();
        // 20 kB a second, and more waits.
        net.at(host, move || ok(driver::wrote(2_000.0, now - 100_000.0, now, 1)))
    };
    net.pass(Duration::from_secs(1));
    narrow(&net);
    net.each_step(host, || {
        let tick = tick_number();
        for key in 0..40 {
            // 500 bytes that do not repeat themselves.
            let bytes = (0..500).map(|at| (tick * 31 + key * 17 + at * at).to_le_bytes()[0]);
            let bytes: Vec<u8> = bytes.collect();
            ok(state::set(give([format!("k/{key}").into(), Bytes::from(bytes).into()])));
        }
    });
    let sent = |net: &Net| {
        let figures = net.at(host, || (ok(figures::diagnostics()), taken_one()).1);
        match figures.field("session").and_then(|it| it.field("bytesSent")) {
            Some(Value::Int(bytes)) => *bytes,
            other => panic!("{other:?}"),
        }
    };
    let before = sent(&net);
    for _ in 0..20 {
        net.pass(Duration::from_millis(100));
        narrow(&net);
    }
    let in_two_seconds = sent(&net) - before;
    assert!(in_two_seconds < 80_000, "600 kB a second were written, {in_two_seconds} B were sent in two");
}
