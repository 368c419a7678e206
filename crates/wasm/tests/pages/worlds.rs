//! Worlds: rows, columns, prediction, looking back, own states; and rollback.

use crate::support::{Net, fault, give, give_bytes, list, map, ok, taken, taken_one};
use parlor_sync::value::Value;
use parlor_wasm::exports::{figures, play, rollback, worlds};
use parlor_wasm::memory;
use std::time::Duration;

/// The component "ball": a position of two numbers, a name.
fn ball() -> Value {
    let at = map([
        ("name", "at".into()),
        ("kind", "vec2".into()),
        ("min", (-100).into()),
        ("max", 100.into()),
        ("step", 0.125.into()),
    ]);
    let label = map([("name", "label".into()), ("kind", "text".into()), ("bytesMax", 16.into())]);
    map([("name", "ball".into()), ("fields", list([at, label]))])
}

fn schema() -> (&'static str, Value) {
    ("schema", map([("components", list([ball()]))]))
}

/// The bytes of a row of "ball".
fn row(x: f64, y: f64, label: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = [x, y].iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(u32::try_from(label.len()).expect("it is short").to_le_bytes());
    bytes.extend(label.as_bytes());
    bytes
}

fn number(bytes: &[u8], at: usize) -> f64 {
    f64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn word(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn ball_id() -> i32 {
    ok(worlds::component(give(["ball".into()])))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is an entity's 32 bits
fn spawn(owner: i32) -> i32 {
    let entity = worlds::spawn(owner);
    assert!(entity >= 0.0, "{:?}", taken());
    (entity as u32).cast_signed()
}

/// What columns of "ball" hold: entity, owner, x, y, label.
fn read_columns(bytes: &[u8]) -> Vec<(i32, i32, f64, f64, String)> {
    let count = usize::try_from(word(bytes, 0)).expect("a count");
    let mut blob = 8 + 8 * count + 16 * count;
    let rows = (0..count).map(|index| {
        let length = usize::try_from(word(bytes, blob)).expect("a length");
        let label = String::from_utf8(bytes[blob + 4..blob + 4 + length].to_vec()).expect("a text");
        blob += 4 + length;
        let numbers = 8 + 8 * count + 8 * index;
        (
            word(bytes, 8 + 4 * index),
            word(bytes, 8 + 4 * count + 4 * index),
            number(bytes, numbers),
            number(bytes, numbers + 8 * count),
            label,
        )
    });
    let rows = rows.collect();
    assert_eq!(blob, bytes.len(), "nothing else is in columns");
    rows
}

#[test]
fn rows_and_columns_of_the_host_come_to_a_guest() {
    let mut net = Net::new();
    let host = net.host([schema()]);
    let guest = net.join(host, [schema()]);
    let entities = net.at(host, || {
        let id = ball_id();
        let entities = [spawn(-2), spawn(1), spawn(0)];
        for (at, entity) in (1..).map(f64::from).zip(entities) {
            ok(worlds::write_row(entity, id, give_bytes(&row(at, -at, "ball")), 0.0));
        }
        assert_eq!((ok(worlds::entities()), memory::read().len()), (3, 12));
        assert_eq!(entities.map(|entity| worlds::owner(entity)), [-2, 1, 0]);
        entities
    });
    net.until("the guest has all three", |net| net.at(guest, || worlds::entities()) == 3);
    let now = net.now_us();
    let read = move || {
        let id = ball_id();
        assert_eq!(ok(worlds::columns(id, 0, now)), 3);
        read_columns(&memory::read())
    };
    let seen = net.at(guest, read);
    let expected = [(-2, 1.0), (1, 2.0), (0, 3.0)].into_iter().zip(entities);
    let expected: Vec<_> =
        expected.map(|((owner, at), entity)| (entity, owner, at, -at, "ball".to_owned())).collect();
    assert_eq!(seen, expected);
    assert_eq!(net.at(guest, || ok(worlds::changes())), 3);
    // Columns go in as they came out.
    net.at(host, move || {
        let id = ball_id();
        ok(worlds::columns(id, 0, now));
        let mut columns = memory::read();
        columns[8 + 24..8 + 32].copy_from_slice(&50.5f64.to_le_bytes());
        assert_eq!(ok(worlds::write_columns(id, give_bytes(&columns), now)), 3);
        ok(worlds::despawn(entities[2]));
    });
    net.until("the guest sees two", |net| net.at(guest, || worlds::entities()) == 2);
    net.at(guest, move || {
        let id = ball_id();
        assert_eq!(ok(worlds::row(entities[0], id, 0, now)), 1);
        assert_eq!(memory::read(), row(50.5, -1.0, "ball"));
        assert_eq!(
            (worlds::has_entity(entities[2]), worlds::row(entities[2], id, 0, now), fault()),
            (0, -1, "world".into())
        );
        assert_eq!(
            (worlds::write_row(entities[0], id, give_bytes(&row(0.0, 0.0, "")), now), fault()),
            (-1, "not_host".into())
        );
        assert_eq!(ok(worlds::world_update()), 1);
    });
    net.at(host, move || {
        let id = ball_id();
        assert_eq!(ok(worlds::remove_row(entities[0], id)), 1);
        assert_eq!(ok(worlds::row(entities[0], id, 0, now)), 0);
        ok(worlds::transfer(entities[0], 1));
        ok(worlds::zone(entities[0], 7.0));
        ok(worlds::audience(entities[1], give([list([0.into()])])));
    });
    net.until("one is hidden", |net| net.at(guest, || worlds::entities()) == 1);
}

#[test]
fn what_moves_is_shown_between_two_ticks() {
    let mut net = Net::new();
    let host = net.host([schema()]);
    let guest = net.join(host, [schema()]);
    let entity = net.at(host, || spawn(-2));
    net.each_step(host, move || {
        let x = play::tick_number() % 800.0 / 8.0;
        ok(worlds::write_row(entity, ball_id(), give_bytes(&row(x, 0.0, "")), 0.0));
    });
    net.pass(Duration::from_secs(2));
    let shown = |net: &Net, which: i32| {
        let now = net.now_us();
        net.at(guest, move || {
            assert_eq!(ok(worlds::columns(ball_id(), which, now)), 1);
            read_columns(&memory::read())[0].2
        })
    };
    let mut between = 0;
    for _ in 0..20 {
        net.pass(Duration::from_millis(7));
        assert_eq!(shown(&net, 0) * 8.0 % 1.0, 0.0, "as written, it stands on a step");
        between += u32::from(shown(&net, 1) * 8.0 % 1.0 != 0.0);
    }
    assert!(between >= 15, "it was shown between two steps {between} times of 20");
}

#[test]
fn x11_a_guest_predicts_its_own_and_the_host_confirms() {
    let mut net = Net::new();
    let more = || [schema(), ("predict", list(["ball".into()]))];
    let host = net.host(more());
    let guest = net.join(host, more());
    // The same step at both: each ball moves as its owner wants.
    let step = || {
        let id = ball_id();
        ok(play::send_input(give([1.into()])));
        let me = play::me();
        let is_host = play::flags() & 2 != 0;
        ok(worlds::columns(id, 0, 0.0));
        for (entity, owner, x, _, _) in read_columns(&memory::read()) {
            if owner < 0 || !is_host && owner != me {
                continue;
            }
            let wants = match ok(play::input(owner)) {
                1 => taken_one(),
                _ => Value::Int(0),
            };
            let dx = if wants == 1.into() { 0.125 } else { 0.0 };
            ok(worlds::write_row(entity, id, give_bytes(&row((x + dx) % 100.0, 0.0, "")), 0.0));
        }
    };
    net.at(host, || {
        let entity = spawn(1);
        ok(worlds::write_row(entity, ball_id(), give_bytes(&row(0.0, 0.0, "")), 0.0));
    });
    net.each_step(host, step);
    net.each_step(guest, step);
    net.pass(Duration::from_secs(3));
    let figures = net.at(guest, || (ok(figures::diagnostics()), taken_one()).1);
    let prediction = figures.field("prediction").expect("there are counters");
    assert!(matches!(prediction.field("confirmed"), Some(Value::Int(20..))), "{prediction}");
    let x = |page: usize| {
        net.at(page, || {
            ok(worlds::columns(ball_id(), 0, 0.0));
            read_columns(&memory::read())[0].2
        })
    };
    assert!(x(guest) > x(host), "the guest is ahead: {} and {}", x(guest), x(host));
    // The host looks back at what the guest saw: its own ball as it is.
    let now = net.now_us();
    net.at(host, move || {
        assert_eq!(ok(worlds::rewind(1, ball_id(), now)), 1);
        let past = memory::read();
        assert!(number(&past, 0) >= 0.0 && number(&past, 8) <= 1.0);
        assert_eq!(read_columns(&past[16..]).len(), 1);
        assert_eq!((worlds::rewind(9, ball_id(), now), fault()), (-1, "no_such_player".into()));
    });
}

#[test]
fn the_host_looks_back_at_what_a_guest_saw() {
    let mut net = Net::new();
    let host = net.host([schema()]);
    let guest = net.join(host, [schema()]);
    let entity = net.at(host, || spawn(-2));
    net.each_step(host, move || {
        let x = play::tick_number() % 800.0 / 8.0;
        ok(worlds::write_row(entity, ball_id(), give_bytes(&row(x, 0.0, "")), 0.0));
    });
    net.each_step(guest, move || {
        ok(worlds::row(entity, ball_id(), 1, 0.0));
        ok(play::send_input(give([0.into()])));
    });
    net.pass(Duration::from_secs(2));
    let now = net.now_us();
    let (back, then, present) = net.at(host, move || {
        assert_eq!(ok(worlds::rewind(1, ball_id(), now)), 1);
        let past = memory::read();
        let then = read_columns(&past[16..])[0].2;
        ok(worlds::columns(ball_id(), 0, now));
        (number(&past, 0), then, read_columns(&memory::read())[0].2)
    });
    assert!(back > 0.0 && then < present, "{back} us back it was at {then}, and is at {present}");
}

#[test]
fn each_decides_of_its_own_state_and_others_see_it() {
    let mut net = Net::new();
    let own = || {
        let Value::Map(mut own) = ball() else { unreachable!() };
        own.insert(
            "tolerance",
            map([("at", map([("offBy", 0.125.into()), ("lateByMs", 50.into()), ("priority", 512.into())]))]),
        );
        ("own", Value::Map(own))
    };
    let host = net.host([own()]);
    let guest = net.join(host, [own()]);
    let plain = net.join(host, []);
    net.each_step(guest, || ok(worlds::set_own(give_bytes(&row(12.0, 3.5, "me")))).min(0).clone_into(&mut 0));
    net.until("the host has it", |net| {
        let now = net.now_us();
        net.at(host, move || ok(worlds::remote_state(1, -1.0, now))) == 1
    });
    let now = net.now_us();
    let seen = net.at(host, move || {
        ok(worlds::remote_state(1, -1.0, now));
        memory::read()
    });
    assert_eq!(seen, row(12.0, 3.5, "me"));
    net.at(guest, move || {
        assert_eq!(ok(worlds::remote_state(1, -1.0, now)), 1);
        assert_eq!(memory::read(), row(12.0, 3.5, "me"));
        ok(worlds::teleport_own());
    });
    let refused = net.at(plain, move || (worlds::set_own(give_bytes(&row(0.0, 0.0, ""))), fault()));
    assert_eq!(refused, (-1, "bounds".into()));
}

#[test]
fn x11_a_rollback_lane_has_the_same_state_at_both_ends() {
    let mut net = Net::new();
    let host = net.host([("tickHz", 60.into())]);
    let guest = net.join(host, []);
    #[allow(clippy::cast_possible_truncation)] // it is small
    let begin = net.at(host, || play::tick_number() as i64) + 30;
    let config = || {
        let players = list([0.into(), 1.into()]);
        map([("players", players), ("begin", begin.into()), ("inputDelay", 2.into())])
    };
    let advance = |pressed: i64, now_us: f64| {
        while ok(rollback::lane_step(give([pressed.into()]), now_us)) == 1 {
            loop {
                match ok(rollback::lane_request()) {
                    0 => break,
                    3 | 4 => {
                        assert!(rollback::lane_tick() >= 0.0);
                        let mut sum = match ok(rollback::lane_get(give(["sum".into()]))) {
                            1 => taken_one(),
                            _ => Value::Int(0),
                        };
                        for player in [0, 1] {
                            if ok(rollback::lane_input(player)) > 0
                                && let (Value::Int(sum), Value::Int(input)) = (&mut sum, taken_one())
                            {
                                *sum = (3 * *sum + input) % 1_000_003;
                            }
                        }
                        ok(rollback::lane_set(give(["sum".into(), sum])));
                    }
                    // The lane's keys are all the state that there is.
                    1 => _ = ok(rollback::lane_saved(rollback::lane_tick(), 0, 0)),
                    _ => {}
                }
            }
        }
    };
    for page in [host, guest] {
        let config = config();
        net.at(page, move || ok(rollback::lane_begin(give([config]))));
    }
    for frame in 0..240 {
        net.pass(Duration::from_millis(15));
        let now = net.now_us();
        for (page, pressed) in [(host, frame / 7 % 3), (guest, frame / 5 % 4)] {
            net.at(page, move || advance(pressed, now));
        }
    }
    net.pass(Duration::from_millis(500));
    let settled = |page: usize| {
        net.at(page, || {
            assert_eq!(ok(rollback::lane_settled(give(["sum".into()]))), 1);
            taken()
        })
    };
    let figures = net.at(guest, || (ok(rollback::lane_diagnostics()), taken_one()).1);
    assert!(matches!(figures.field("steps"), Some(Value::Int(100..))), "{figures}");
    for page in [host, guest] {
        assert_eq!(net.at(page, || rollback::lane_event()), 0, "no desync");
        assert_eq!(net.at(page, || (ok(rollback::lane_states()), taken().len())), (1, 2));
    }
    let (at_host, at_guest) = (settled(host), settled(guest));
    assert_eq!(at_host.len(), 2);
    if at_host[0] == at_guest[0] {
        assert_eq!(at_host, at_guest);
    }
    assert_eq!(figures.field("desyncs"), Some(&0.into()));
    net.at(host, || {
        ok(rollback::lane_end());
        assert_eq!((ok(rollback::lane_states()), rollback::lane_diagnostics()), (0, 0));
    });
}
