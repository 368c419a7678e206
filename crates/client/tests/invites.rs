//! A21: a room is joined by a program's arguments, by a link of the game's own scheme, and from the clipboard. The program
//! that joins is this test program again, which runs [`joining_program`] alone.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::{ClosedReason, Event, Registry, Room};
use parlor_testing::Hall;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use until::until;

/// The folder of the registry that the joining program looks in.
const REGISTRY: &str = "PARLOR_TEST_REGISTRY";

/// The program that joins. Without its environment it is a program of nothing.
#[test]
fn joining_program() {
    let Some(folder) = std::env::var_os(REGISTRY) else { return };
    // The set-up of a game, then the room that its arguments name.
    let registry = Registry::at(PathBuf::from(folder));
    let join = Room::from_args("tanks").expect("at least the name of this test is there");
    let mut room = join.name("bob").registry(registry).open();
    let how = until(&mut room, |event| match event {
        Event::PlayerJoined(player) if player.is_me => Some("joined".to_owned()),
        Event::Closed(why) => Some(format!("{} {why}", why.as_str())),
        _ => None,
    });
    println!("<<{how}>>");
}

/// Starts the program with arguments, behind those that make this test program run it.
fn start(hall: &Hall, arguments: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "--nocapture", "--"]).args(arguments).arg("joining_program");
    command.env(REGISTRY, hall.registry.folder()).env_remove("PARLOR_SERVER");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process")
}

/// Waits for the end of the program, and returns what it said.
fn said(program: Child) -> String {
    let output: Output = program.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text.split_once("<<").and_then(|(_, rest)| rest.split_once(">>"));
    said.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))).0.to_owned()
}

#[track_caller]
fn host(hall: &Hall) -> Room {
    let mut room = Room::host("tanks").registry(hall.registry.clone()).invite_scheme("tanks").open();
    until(&mut room, |event| match event {
        Event::PlayerJoined(player) if player.is_me => Some(()),
        Event::Closed(why) => panic!("{why}"),
        _ => None,
    });
    room
}

#[test]
fn a21_a_program_joins_the_room_that_its_arguments_name_after_its_set_up() {
    let hall = Hall::start();
    let mut room = host(&hall);
    let code = room.code().expect("it is open").to_string();
    let link = room.invite_link().expect("it is open");
    assert_eq!(link, format!("tanks://join/{code}"), "the game's own scheme");
    let (equals, typed) = (format!("--join={code}"), code.to_lowercase());
    for arguments in [&["--join", &code][..], &["--mute", &equals], &["--join", &typed], &["--loud", &link]] {
        let program = start(&hall, arguments);
        let name = until(&mut room, |event| match event {
            Event::PlayerJoined(player) if !player.is_me => Some(player.name),
            _ => None,
        });
        assert_eq!(name, "bob", "{arguments:?}");
        until(&mut room, |event| matches!(event, Event::PlayerLeft { .. }).then_some(()));
        assert_eq!(said(program), "joined", "{arguments:?}");
    }
}

#[test]
fn a21_arguments_that_name_no_room_say_so() {
    let hall = Hall::start();
    let wrong = said(start(&hall, &["--join", "K7QM!"]));
    assert!(wrong.starts_with("bad_address") && wrong.contains(r#""!""#), "{wrong}");
    let absent = said(start(&hall, &["--join", "K7QM"]));
    assert!(absent.starts_with("no_server") && absent.contains("K7QM"), "{absent}");
}

#[test]
fn a21_copying_an_invite_says_whether_it_worked() {
    let hall = Hall::start();
    let mut absent = Room::join("tanks", "K7QM").registry(hall.registry.clone()).open();
    until(&mut absent, |event| matches!(event, Event::Closed(ClosedReason::Connect(_))).then_some(()));
    assert_eq!((absent.invite_link(), absent.copy_invite()), (None, false), "there is nothing to copy");
    let room = host(&hall);
    let is_copied = room.copy_invite();
    // What another program would paste. A machine without a desktop has no clipboard.
    let pasted = arboard::Clipboard::new().and_then(|mut clipboard| clipboard.get_text());
    let expected = if is_copied { room.invite_link() } else { None };
    assert_eq!(pasted.ok(), expected, "copied: {is_copied}");
}
