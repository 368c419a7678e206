//! What beginners do wrong. Each mistake does not compile, or gets a sentence that says what is wrong and what to do.
//!
//! | | does not compile |
//! |---|---|
//! | 1 | a guest writes state |
//! | 2 | an input outside of a step |
//! | 3 | `poll` within a step |
//! | 4 | an option of another kind of room |
//!
//! | | gets a warning in the log |
//! |---|---|
//! | 5 | no `poll` |
//! | 6 | a loop that blocks |
//!
//! | | closes the room with a sentence |
//! |---|---|
//! | 7 | no such step rate |
//! | 8 | more seats than there are |
//! | 9 | a name that is too long |
//! | 10 | a server that is no address |
//! | 11 | a code that is none |
//! | 12 | a code that is taken |
//! | 13 | no server, or a room that is not there |
//! | 14 | two games, one code |
//! | 15 | no secret, or a wrong one |
//! | 16 | another schema than the host's |
//! | 17 | a room that is full |
//! | 18 | a prediction of what is not in the schema |
//!
//! | | is an error with a sentence |
//! |---|---|
//! | 19 | a call before the room is open |
//! | 20 | a message to a player that is not there |
//! | 21 | a message that is too large, or of no kind |
//! | 22 | a channel that is not declared |
//! | 23 | data of a match in another room |
//! | 24 | a key or value out of bounds |
//! | 25 | a component that is not in the schema |
//! | 26 | an own state without a template |
//! | 27 | an action on another's entity |
//! | 28 | a guest writes a component that it does not predict |
//! | 29 | an input that is too large |

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::schema::{Kind, Schema};
use parlor::{Event, HostBuilder, JoinBuilder, MemberId, Recipient, Registry, Room, RoomBuilder, replicated};
use std::fmt::{Debug, Display};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use support::Patience;
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Metadata, Subscriber};
use until::until;

struct Tank {
    at: [f32; 2],
}
replicated!(Tank as "tank" => { at: Kind::vector2(0.0, 64.0, 1.0 / 64.0) });
struct Mine {
    at: [f32; 2],
}
replicated!(Mine as "mine" => { at: Kind::vector2(0.0, 64.0, 1.0 / 64.0) });

const TANK: Tank = Tank { at: [0.0; 2] };

fn schema() -> Schema {
    Schema::builder().replicate::<Tank>().build().expect("one component")
}

struct Machine {
    registry: Registry,
    _folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Machine { registry: Registry::at(folder.path().join("registry")), _folder: folder }
    }

    fn host(&self) -> HostBuilder {
        Room::host("tanks").registry(self.registry.clone())
    }

    fn join(&self, room: &Room) -> JoinBuilder {
        self.join_by(&room.code().expect("it is open").to_string())
    }

    fn join_by(&self, code: &str) -> JoinBuilder {
        Room::join("tanks", code).registry(self.registry.clone())
    }

    /// A room with a guest.
    #[track_caller]
    fn pair(&self) -> (Room, Room) {
        let host = open(self.host().schema(schema()));
        let guest = open(self.join(&host).schema(schema()));
        (host, guest)
    }
}

#[track_caller]
fn open<K>(builder: RoomBuilder<K>) -> Room {
    let mut room = builder.open();
    until(&mut room, |event| match event {
        Event::PlayerJoined(player) if player.is_me => Some(()),
        Event::Closed(why) => panic!("{why}"),
        _ => None,
    });
    room
}

/// The sentence with which a room closes that cannot open says all of this.
#[track_caller]
fn closes<K>(builder: RoomBuilder<K>, parts: &[&str]) {
    let why = until(&mut builder.open(), |event| match event {
        Event::Closed(why) => Some(why.to_string()),
        _ => None,
    });
    says(why, parts);
}

/// A sentence that says all of this.
#[track_caller]
fn says(sentence: impl Display, parts: &[&str]) {
    let sentence = sentence.to_string();
    eprintln!("{sentence}");
    for part in parts {
        assert!(sentence.contains(part), "{sentence:?} does not say {part:?}");
    }
}

/// An error that says all of this.
#[track_caller]
fn fails<T: Debug>(result: Result<T, impl Display>, parts: &[&str]) {
    match result {
        Ok(done) => panic!("it was taken: {done:?}"),
        Err(error) => says(error, parts),
    }
}

/// A documentation test of this crate shows that the line does not compile: `source` is the file that has it.
#[track_caller]
fn does_not_compile(line: &str, source: &str) {
    let tests = source.split("```compile_fail,E0").skip(1).filter_map(|test| test.split("```").next());
    let shown = tests.filter(|test| test.lines().any(|other| other.trim_start_matches("/// ") == line));
    assert_eq!(shown.count(), 1, "no documentation test shows that `{line}` does not compile");
}

/// Keeps a second dispatcher alive. With a single one, tracing asks the default of whatever thread is first whether a line is
/// wanted, and caches the answer for all threads.
static OTHER_DISPATCHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Log::default()));

/// What is logged while this thread does something.
fn logged(what: impl FnOnce(&dyn Fn() -> String)) -> String {
    LazyLock::force(&OTHER_DISPATCHER);
    let log = Log::default();
    let read = || log.0.lock().expect("nobody panics with it").clone();
    tracing::subscriber::with_default(Log(Arc::clone(&log.0)), || what(&read));
    read()
}

#[derive(Default)]
struct Log(Arc<Mutex<String>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Lines(&mut self.0.lock().expect("nobody panics with it")));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Lines<'a>(&'a mut String);

impl Visit for Lines<'_> {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        *self.0 += &format!("{value:?}\n");
    }
}

#[test]
fn mistakes_01_to_04_do_not_compile() {
    does_not_compile(r#"room.set("round", &3);"#, include_str!("../src/driver/host.rs"));
    does_not_compile("room.send_input(&1i32);", include_str!("../src/driver/step.rs"));
    does_not_compile("step.poll();", include_str!("../src/driver/step.rs"));
    let of_another_kind = r#"let guest = parlor::Room::join("tanks", "K7QM").max_players(4).open();"#;
    does_not_compile(of_another_kind, include_str!("../src/driver/builder.rs"));
    let (_host, mut guest) = Machine::new().pair();
    assert!(guest.as_host().is_none(), "a guest has nothing to write with");
}

#[test]
fn mistake_05_no_poll() {
    let mut room = Machine::new().host().open();
    let patience = Patience::new();
    let said = logged(|log| {
        while log().is_empty() {
            assert!(room.step().is_none(), "it is not open");
            patience.look_again(|| "the log says nothing".to_owned());
        }
    });
    says(said, &["not poll()", "Begin each frame", "room.poll()"]);
}

#[test]
fn mistake_06_a_loop_that_blocks() {
    let mut room = open(Machine::new().host().tick_hz(240));
    let patience = Patience::new();
    let said = logged(|log| {
        // Not the first time for sure: the first measurement of the room's clock skips steps, and drops none.
        while log().is_empty() {
            while room.poll().is_some() {}
            let since = room.server_time().expect("it is open");
            while room.server_time().expect("it is open") < since + Duration::from_millis(200) {
                patience.look_again(|| "the clock stands still, or no step is dropped".to_owned());
            }
            while room.step().is_some() {}
        }
    });
    says(
        said,
        &["blocked", "steps were dropped", "ticks_dropped", "room.until_next_tick()", "another thread"],
    );
    assert!(room.diagnostics().ticks_dropped > 0);
}

#[test]
fn mistakes_07_to_11_options_that_are_out_of_bounds() {
    let machine = Machine::new();
    let host = || machine.host();
    closes(host().tick_hz(0), &["tick_hz is 0", "1 to 240"]);
    closes(host().max_players(40), &["40", "2 to 16"]);
    closes(host().dedicated().server("127.0.0.1:1").max_players(300), &["300", "2 to 255"]);
    closes(host().name(&"x".repeat(90)), &["name", "48"]);
    closes(host().server("not a server"), &["server", "not a server"]);
    closes(host().code("O0"), &["code", "O0"]);
    closes(machine.join_by("what?"), &["room code", "letters and digits", r#""?""#]);
}

#[test]
fn mistake_12_a_code_that_is_taken() {
    let machine = Machine::new();
    let _first = open(machine.host().code("TANKS"));
    closes(machine.host().code("TANKS"), &["another room has this code", "choose another"]);
}

#[test]
fn mistake_13_no_server_or_a_room_that_is_not_there() {
    let machine = Machine::new();
    closes(machine.join_by("K7QM"), &["K7QM", "parlor serve", "PARLOR_SERVER"]);
}

#[test]
fn mistake_14_two_games_one_code() {
    let machine = Machine::new();
    let host = open(machine.host());
    let code = host.code().expect("it is open").to_string();
    let chess = Room::join("chess", &code).registry(machine.registry.clone());
    closes(chess, &[&code, "tanks", "chess"]);
}

#[test]
fn mistake_15_no_secret_or_a_wrong_one() {
    let machine = Machine::new();
    let host = open(machine.host().secret("word"));
    closes(machine.join(&host), &["secret"]);
    closes(machine.join(&host).secret("sword"), &["secret"]);
}

#[test]
fn mistake_16_another_schema_than_the_hosts() {
    let machine = Machine::new();
    let host = open(machine.host().schema(schema()));
    let mines = Schema::builder().replicate::<Mine>().build().expect("one component");
    closes(machine.join(&host).schema(mines), &["schema", "host and guest have the same"]);
}

#[test]
fn mistake_17_a_room_that_is_full() {
    let machine = Machine::new();
    let host = open(machine.host().max_players(2));
    let _second = open(machine.join(&host));
    closes(machine.join(&host), &["all 2 seats", "taken"]);
}

#[test]
fn mistake_18_a_prediction_of_what_is_not_in_the_schema() {
    closes(Machine::new().host().predict::<Tank>(), &["tank", "schema"]);
}

#[test]
fn mistake_19_a_call_before_the_room_is_open() {
    let early = Machine::new().host().open();
    fails(early.broadcast("chat", "hello"), &["wait for Event::Open", "send a message"]);
}

#[test]
fn mistakes_20_to_23_messages() {
    let host = open(Machine::new().host());
    fails(host.send(MemberId(99), "chat", "hello"), &["99"]);
    fails(host.broadcast("chat", &"x".repeat(70_000)), &["70", "65536"]);
    fails(host.broadcast("", "hello"), &["kind", "1 to"]);
    fails(host.send_raw(16, Recipient::Others, "x"), &["16", "channel"]);
    fails(host.send_data(1, Recipient::Others, "x"), &["match", "Room::create_match"]);
}

#[test]
fn mistakes_24_to_26_state() {
    let mut host = open(Machine::new().host().schema(schema()));
    fails(host.own_state().set(&TANK), &["template"]);
    let mut host = host.as_host().expect("it is the host");
    fails(host.set(&"k".repeat(99), &1), &["99", "64"]);
    fails(host.set("map", &vec![0u8; 20_000]), &["map", "16384"]);
    fails(host.set("x", &f32::NAN), &["finite"]);
    let tank = host.spawn(None).expect("there is room");
    fails(host.insert(tank, &Mine { at: [0.0; 2] }), &["mine", "schema"]);
}

#[test]
fn mistakes_27_to_29_entities_and_inputs_of_others() {
    let (mut host, mut guest) = Machine::new().pair();
    let me = guest.local_id();
    let tank = host.as_host().expect("it is the host").spawn(me).expect("there is room");
    fails(host.act(tank, "fire", &1), &["own"]);
    let patience = Patience::new();
    while guest.world().entities().is_empty() {
        for room in [&mut host, &mut guest] {
            while room.poll().is_some() {}
            while room.step().is_some() {}
        }
        patience.look_again(|| "the tank is not seen".to_owned());
    }
    let mut step = loop {
        while guest.poll().is_some() {}
        if let Some(step) = guest.step() {
            break step;
        }
        patience.look_again(|| "no step is due".to_owned());
    };
    fails(step.insert(tank, &TANK), &["host"]);
    fails(step.send_input(&"x".repeat(900)), &["512"]);
}
