//! What no correct binding does: each is a fault with a name, and the room lives on.

use crate::support::{Net, fault, give, give_bytes, list, map, ok, taken_one, text};
use parlor_proto::LinkKind;
use parlor_proto::random::SplitMix64;
use parlor_sync::value::Value;
use parlor_wasm::exports::{driver, figures, module, play, rollback, state, worlds};
use parlor_wasm::memory;
use std::time::Duration;

/// A call with the length of what was passed.
type Call = fn(i32) -> i32;

/// Every export that reads the in buffer.
const TAKING: &[(&str, Call)] = &[
    ("value_check", |len| module::value_check(len)),
    ("schema_hash", |len| module::schema_hash(len)),
    ("open", |len| module::open(len)),
    ("found", |len| driver::found(len, 0)),
    ("token", |len| driver::token(len)),
    ("packet", |len| driver::packet(2, len, 9e6)),
    ("disconnected", |len| driver::disconnected(len, 9e6)),
    ("failed", |len| driver::failed(len)),
    ("attempt_failed", |len| driver::attempt_failed(len, 9e6)),
    ("attempt_put_off", |len| driver::attempt_put_off(len, 5.0, 9e6)),
    ("attempt_refused", |len| driver::attempt_refused(len, 9e6)),
    ("once", |len| play::once(len, 1.0)),
    ("send_input", |len| play::send_input(len)),
    ("send", |len| play::send(0, 0, len, 9e6)),
    ("send_bytes", |len| play::send_bytes(32, 0, len, 9e6)),
    ("send_data", |len| play::send_data(1.0, 1, len, 9e6)),
    ("act", |len| play::act(0, len)),
    ("act_predicted", |len| play::act_predicted(0, len, 9e6)),
    ("action_done", |len| play::action_done(len, 9e6)),
    ("set_player_data", |len| play::set_player_data(0, len)),
    ("kick", |len| play::kick(1, len)),
    ("set", |len| state::set(len)),
    ("set_for", |len| state::set_for(len)),
    ("remove", |len| state::remove(len)),
    ("declare", |len| state::declare(len)),
    ("get", |len| state::get(len)),
    ("interpolated", |len| state::interpolated(len, 9e6)),
    ("predicted", |len| state::predicted(len)),
    ("set_predicted", |len| state::set_predicted(len)),
    ("entries", |len| state::entries(len, 0, 9e6)),
    ("component", |len| worlds::component(len)),
    ("audience", |len| worlds::audience(0, len)),
    ("write_row", |len| worlds::write_row(0, 2, len, 9e6)),
    ("write_columns", |len| worlds::write_columns(2, len, 9e6)),
    ("set_own", |len| worlds::set_own(len)),
    ("lane_begin", |len| rollback::lane_begin(len)),
    ("lane_step", |len| rollback::lane_step(len, 9e6)),
    ("lane_set", |len| rollback::lane_set(len)),
    ("lane_remove", |len| rollback::lane_remove(len)),
    ("lane_get", |len| rollback::lane_get(len)),
    ("lane_settled", |len| rollback::lane_settled(len)),
];

/// A call of which nothing goes in, and its name.
type Ask = (&'static str, fn() -> f64);

/// Every other export that needs a room.
const ASKING: &[Ask] = &[
    ("admission", || driver::admission().into()),
    ("connected", || driver::connected(1, 9e6).into()),
    ("next_packet", || driver::next_packet(9e6).into()),
    ("timeout", || driver::timeout(9e6).into()),
    ("next_timeout", || driver::next_timeout()),
    ("next_attempt", || driver::next_attempt()),
    ("attempt_begins", || driver::attempt_begins(9e6).into()),
    ("redirect", || driver::redirect().into()),
    ("passed_over", || driver::passed_over().into()),
    ("path_carries", || driver::path_carries(1e5).into()),
    ("wrote", || driver::wrote(1.0, 1.0, 2.0, 0).into()),
    ("is_finished", || driver::is_finished().into()),
    ("is_coming_back", || driver::is_coming_back().into()),
    ("wants_driver", || driver::wants_driver().into()),
    ("ticket", || driver::ticket().into()),
    ("poll", || play::poll(9e6).into()),
    ("tick", || play::tick(9e6).into()),
    ("tick_number", || play::tick_number()),
    ("tick_hz", || play::tick_hz().into()),
    ("until_next_tick", || play::until_next_tick(9e6)),
    ("next_due", || play::next_due(9e6)),
    ("is_replay", || play::is_replay().into()),
    ("flags", || play::flags().into()),
    ("version", || play::version()),
    ("server_time", || play::server_time(9e6)),
    ("ping", || play::ping()),
    ("host_ping", || play::host_ping()),
    ("me", || play::me().into()),
    ("host", || play::host().into()),
    ("leave", || play::leave(9e6).into()),
    ("stop", || play::stop(9e6).into()),
    ("input", || play::input(0).into()),
    ("inputs", || play::inputs().into()),
    ("input_ack", || play::input_ack(0)),
    ("action_request", || play::action_request().into()),
    ("players", || play::players().into()),
    ("own_primary", || play::own_primary().into()),
    ("state_hash", || state::state_hash().into()),
    ("components", || worlds::components().into()),
    ("entities", || worlds::entities().into()),
    ("has_entity", || worlds::has_entity(0).into()),
    ("owner", || worlds::owner(0).into()),
    ("spawn", || worlds::spawn(-2)),
    ("despawn", || worlds::despawn(0).into()),
    ("transfer", || worlds::transfer(0, -2).into()),
    ("zone", || worlds::zone(0, 1.0).into()),
    ("row", || worlds::row(0, 2, 0, 9e6).into()),
    ("remove_row", || worlds::remove_row(0, 2).into()),
    ("columns", || worlds::columns(2, 1, 9e6).into()),
    ("changes", || worlds::changes().into()),
    ("rewind", || worlds::rewind(0, 2, 9e6).into()),
    ("world_update", || worlds::world_update().into()),
    ("teleport_own", || worlds::teleport_own().into()),
    ("remote_state", || worlds::remote_state(0, -1.0, 9e6).into()),
    ("room_schema_hash", || worlds::room_schema_hash().into()),
    ("lane_request", || rollback::lane_request().into()),
    ("lane_tick", || rollback::lane_tick()),
    ("lane_input", || rollback::lane_input(0).into()),
    ("lane_saved", || rollback::lane_saved(1.0, 0, 0).into()),
    ("lane_states", || rollback::lane_states().into()),
    ("lane_event", || rollback::lane_event().into()),
    ("lane_diagnostics", || rollback::lane_diagnostics().into()),
    ("lane_end", || rollback::lane_end().into()),
    ("info", || figures::info().into()),
    ("diagnostics", || figures::diagnostics().into()),
    ("world_diagnostics", || figures::world_diagnostics(9e6).into()),
    ("recording_start", || figures::recording_start().into()),
    ("recording_take", || figures::recording_take().into()),
    ("recording_stop", || figures::recording_stop().into()),
    ("recording_figures", || figures::recording_figures().into()),
];

fn options() -> Value {
    map([("app", "dots".into()), ("intent", "host".into())])
}

#[test]
fn an_instance_without_a_room_says_so_to_every_call() {
    for (name, call) in
        TAKING.iter().filter(|(name, _)| !["value_check", "schema_hash", "open"].contains(name))
    {
        assert_eq!((call(give(["x".into()])), fault()), (-1, "not_open".into()), "{name}");
    }
    for (name, call) in ASKING {
        assert_eq!((call(), fault()), (-1.0, "not_open".into()), "{name}");
    }
}

#[test]
fn a_room_that_is_not_open_yet_answers_every_call() {
    ok(module::open(give([options()])));
    for (name, call) in ASKING.iter().filter(|(name, _)| !["leave", "stop"].contains(name)) {
        if call() == -1.0 && !memory::read().is_empty() {
            assert!(!fault().is_empty(), "{name}");
        }
    }
    let calls: [(Call, &str); 4] = [
        (|len| state::set(len), "not_open"),
        (|len| play::set_player_data(0, len), "not_open"),
        // It takes one value, and the other takes three.
        (|len| play::send_input(len), "bad_call"),
        (|len| play::send(0, 0, len, 1e6), "bad_value"),
    ];
    for (call, code) in calls {
        assert_eq!((call(give(["k".into(), 1.into()])), fault()), (-1, code.into()));
    }
    assert_eq!((module::open(give([options()])), fault()), (-1, "already_open".into()));
}

#[test]
fn lengths_that_were_not_reserved_are_refused() {
    ok(module::open(give([options()])));
    for len in [1, 7, i32::MAX, -1, i32::MIN] {
        for (name, call) in TAKING {
            assert_eq!(module::in_reserve(0), module::in_reserve(0));
            assert_eq!((call(len), fault()), (-1, "bad_call".into()), "{name} of {len} bytes");
        }
    }
    assert_eq!((module::in_reserve(-1), module::in_reserve(i32::MAX)), (0, 0));
    // What was passed counts for one call.
    let len = give(["k".into()]);
    assert_eq!((state::get(len), state::get(len), fault()), (0, -1, "bad_call".into()));
}

#[test]
fn numbers_out_of_range_are_refused() {
    ok(module::open(give([options()])));
    for now in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300] {
        let calls = [play::poll(now), play::tick(now), driver::timeout(now), driver::next_packet(now)];
        assert_eq!((calls, fault()), ([-1; 4], "bad_call".into()), "{now}");
        assert_eq!((driver::path_carries(-now.abs()), fault()), (-1, "bad_call".into()), "{now}");
    }
    let calls: [Ask; 6] = [
        ("connected", || driver::connected(9, 1.0).into()),
        ("packet by none", || driver::packet(0, give_bytes(b"\0"), 1.0).into()),
        ("packet by a fourth", || driver::packet(4, give_bytes(b"\0"), 1.0).into()),
        ("input of -1", || play::input(-1).into()),
        ("input of nobody", || play::input(-2).into()),
        ("entries", || state::entries(give(["".into()]), 4, 1.0).into()),
    ];
    for (name, call) in calls {
        assert_eq!((call(), fault()), (-1.0, "bad_call".into()), "{name}");
    }
}

#[test]
fn options_that_are_wrong_are_named() {
    let with = |name: &str, value: Value| {
        let Value::Map(mut options) = options() else { unreachable!() };
        options.insert(name, value);
        Value::Map(options)
    };
    let cases = [
        (1.into(), "options"),
        (map([("intent", "host".into())]), "app"),
        (with("intent", "hots".into()), "intent"),
        (with("intent", "join".into()), "code"),
        (with("intent", "resume".into()), "ticket"),
        (with("code", "K7-M".into()), "code"),
        (with("ticket", "zz.yy".into()), "ticket"),
        (with("maxPlayers", (-4).into()), "maxPlayers"),
        (with("maxPlayers", 2.5.into()), "maxPlayers"),
        (with("tickHz", 0.into()), "tickHz"),
        (with("name", 7.into()), "name"),
        (with("hostMigration", "yes".into()), "hostMigration"),
        (with("hostMigration", map([("silence", 1.into())])), "hostMigration.silence"),
        (with("channels", map([("x", "ordered".into())])), "channels.x"),
        (with("channels", map([("32", "odd".into())])), "channels.32"),
        (with("channels", map([("1", "ordered".into())])), "channels.1"),
        (with("colour", "red".into()), "colour"),
        (with("predict", list([1.into()])), "predict"),
    ];
    for (options, path) in cases {
        assert_eq!(module::open(give([options.clone()])), -1, "{options}");
        let fault = taken_one();
        // A ticket counts only where a seat is to be resumed.
        assert_eq!(text(&fault, "path"), path, "{options}");
        assert_eq!(text(&fault, "code"), "bad_options", "{options}");
    }
    for options in
        [with("maxPlayers", 400.into()), with("predict", list(["ghost".into()])), with("app", "".into())]
    {
        assert_eq!((module::open(give([options.clone()])), fault()), (-1, "bad_options".into()), "{options}");
    }
    ok(module::open(give([options()])));
}

#[test]
fn garbage_never_panics_whatever_the_room_does() {
    let seed = std::env::var("PARLOR_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    let mut net = Net::new();
    let field = map([("name", "x".into()), ("kind", "bool".into())]);
    let schema = map([("components", list([map([("name", "flag".into()), ("fields", list([field]))])]))]);
    let host = net.host([("schema", schema.clone())]);
    let guest = net.join(host, [("schema", schema)]);
    for page in [host, guest] {
        net.at(page, move || rain(seed, 60));
    }
    net.pass(Duration::from_millis(100));
    // A page of its own, never connected.
    let alone = net.open(map([("app", "dots".into()), ("intent", "match".into())]), LinkKind::Quic);
    net.at(alone, move || rain(seed + 1, 60));
    for page in [host, guest, alone] {
        // Whatever became of the room, it answers.
        assert_eq!(net.at(page, || (ok(figures::info()), taken_one().field("role").is_some())), (1, true));
    }
}

/// Calls everything with bytes by chance, some of them values.
fn rain(seed: u64, rounds: u64) {
    let mut drawn = 0;
    let mut draw = move |below: u64| {
        drawn += 1;
        SplitMix64::nth(seed, drawn) % below
    };
    for _ in 0..rounds {
        for (name, call) in TAKING {
            let len = usize::try_from(draw(40)).expect("it is small");
            let mut bytes: Vec<u8> = (0..len).map(|_| u8::try_from(draw(256)).expect("a byte")).collect();
            for _ in 0..draw(4) {
                let value = match draw(5) {
                    0 => "host".into(),
                    1 => Value::Int(i64::try_from(draw(9)).expect("it is small") - 3),
                    2 => map([("players", list([0.into(), 1.into()])), ("begin", 3.into())]),
                    3 => list([0.into()]),
                    _ => Value::Null,
                };
                value.encode_wrapped(&mut bytes).expect("it is a value");
                bytes.rotate_right(0);
            }
            let start = usize::try_from(draw(2)).expect("it is small") * len;
            if call(give_bytes(&bytes[start..])) == -1 {
                assert!(!fault().is_empty(), "{name}");
            }
        }
        for (name, call) in ASKING {
            // These end the room, and what is to be tried with it.
            if ["leave", "stop", "connected"].contains(name) {
                continue;
            }
            call();
            let _ = memory::read();
        }
    }
}

#[test]
fn a_server_that_talks_nonsense_ends_the_room_and_nothing_else() {
    let mut net = Net::new();
    let host = net.host([]);
    let now = net.now_us();
    net.at(host, move || {
        for bytes in [&b"\xff\xff\xff\xff"[..], b"", &[0xee; 900]] {
            ok(driver::packet(2, give_bytes(bytes), now));
        }
    });
    net.until("it is over", |net| net.pages[host].last("closed").is_some());
    assert_eq!(text(net.pages[host].last("closed").expect("it is"), "code"), "misbehaved");
    assert_eq!(net.at(host, || (state::set(give(["k".into(), 1.into()])), fault())), (-1, "closed".into()));
}
