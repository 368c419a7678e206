//! What beginners do wrong, and the sentence that each gets: it says what is wrong and what to do. What does not compile stands in the
//! documentation of the crate, beside what it should have been.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::schema::{Kind, Schema};
use parlor::{Event, HostBuilder, JoinBuilder, MemberId, Recipient, Registry, Room, RoomBuilder, replicated};
use std::fmt::Display;
use support::Patience;
use tempfile::TempDir;
use until::until;

struct Tank {
    at: [f32; 2],
}
replicated!(Tank as "tank" => { at: Kind::vector2(0.0, 64.0, 1.0 / 64.0) });
struct Mine {
    at: [f32; 2],
}
replicated!(Mine as "mine" => { at: Kind::vector2(0.0, 64.0, 1.0 / 64.0) });

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
        let code = room.code().expect("it is open").to_string();
        Room::join("tanks", &code).registry(self.registry.clone())
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

/// Why a room closes that cannot open.
#[track_caller]
fn closed<K>(builder: RoomBuilder<K>) -> String {
    until(&mut builder.open(), |event| match event {
        Event::Closed(why) => Some(why.to_string()),
        _ => None,
    })
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

#[test]
fn options_that_are_out_of_bounds_close_the_room_with_the_bounds() {
    let machine = Machine::new();
    let host = || machine.host();
    says(closed(host().tick_hz(0)), &["tick_hz is 0", "1 to 240"]);
    says(closed(host().max_players(40)), &["40", "2 to 16"]);
    says(closed(host().code("O0")), &["code", "O0"]);
    says(closed(host().name(&"x".repeat(90))), &["name", "48"]);
    says(closed(host().server("not a server")), &["server", "not a server"]);
    says(closed(host().predict::<Tank>()), &["tank", "schema"]);
    says(
        closed(Room::join("tanks", "what?").registry(machine.registry.clone())),
        &["room code", "letters and digits", "'?'"],
    );
}

#[test]
fn a_room_that_is_not_there_or_does_not_fit_says_why() {
    let machine = Machine::new();
    let nowhere = Room::join("tanks", "K7QM").registry(machine.registry.clone());
    says(closed(nowhere), &["K7QM", "parlor serve", "PARLOR_SERVER"]);
    let host = open(machine.host().schema(schema()).secret("word").max_players(2));
    let code = host.code().expect("it is open").to_string();
    let chess = Room::join("chess", &code).registry(machine.registry.clone());
    says(closed(chess), &[&code, "tanks", "chess"]);
    says(closed(machine.join(&host).schema(schema())), &["secret"]);
    let mines = Schema::builder().replicate::<Mine>().build().expect("one component");
    says(closed(machine.join(&host).secret("word").schema(mines)), &["schema"]);
    let _second = open(machine.join(&host).secret("word").schema(schema()));
    says(closed(machine.join(&host).secret("word").schema(schema())), &["all 2 seats", "taken"]);
    says(closed(machine.host().dedicated().server("127.0.0.1:1").max_players(300)), &["300", "2 to 255"]);
}

#[test]
fn what_a_room_cannot_do_now_is_an_error_that_says_when() {
    let machine = Machine::new();
    let early = machine.host().open();
    says(
        early.broadcast("chat", "hello").expect_err("it is not open"),
        &["wait for Event::Open", "send a message"],
    );
    let mut host = open(machine.host().schema(schema()));
    let mut guest = open(machine.join(&host).schema(schema()));
    let (here, away) = (guest.local_id().expect("it is in"), MemberId(99));
    assert!(guest.as_host().is_none(), "a guest cannot write");

    says(host.send(away, "chat", "hello").expect_err("nobody"), &["99"]);
    says(host.broadcast("chat", &"x".repeat(70_000)).expect_err("too large"), &["70", "65536"]);
    says(host.broadcast("", "hello").expect_err("no kind"), &["kind", "1 to"]);
    says(host.send_raw(16, Recipient::Others, "x").expect_err("not declared"), &["16", "channel"]);
    says(host.send_data(1, Recipient::Others, "x").expect_err("no match"), &["match", "Room::create_match"]);
    says(host.own_state().set(&Tank { at: [0.0; 2] }).expect_err("no template"), &["template"]);

    let mut as_host = host.as_host().expect("it is the host");
    says(as_host.set(&"k".repeat(99), &1).expect_err("a long key"), &["99", "64"]);
    says(as_host.set("map", &vec![0u8; 20_000]).expect_err("a large value"), &["map", "16384"]);
    says(as_host.set("x", &f32::NAN).expect_err("no number"), &["finite"]);
    let tank = as_host.spawn(Some(here)).expect("there is room");
    says(as_host.insert(tank, &Mine { at: [0.0; 2] }).expect_err("not in the schema"), &["mine", "schema"]);
    says(host.act(tank, "fire", &1).expect_err("another's"), &["own"]);
    let patience = Patience::new();
    while guest.world().entities().is_empty() {
        for room in [&mut host, &mut guest] {
            while room.poll().is_some() {}
            while room.step().is_some() {}
        }
        patience.look_again(|| "the tank is not seen".to_owned());
    }
    let mut step = loop {
        if let Some(step) = guest.step() {
            break step;
        }
        patience.look_again(|| "no step is due".to_owned());
    };
    says(step.insert(tank, &Tank { at: [0.0; 2] }).expect_err("a guest predicts nothing"), &["host"]);
    says(step.send_input(&"x".repeat(900)).expect_err("a large input"), &["512"]);
}
