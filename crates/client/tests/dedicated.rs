//! The program of docs/dedicated.md serves 64 players.

#[path = "../examples/dedicated.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod dedicated;
mod support;

use dedicated::{Dot, Move, serve};
use parlor::{Event, Room};
use parlor_testing::Hall;
use std::sync::mpsc;
use support::{PATIENCE, Patience};

const PLAYERS: u16 = 64;

#[test]
fn a22_sixty_four_players_move_their_dots_and_see_those_of_all() {
    let mut hall = Hall::start_with(|config| config.dedicated = true);
    let room = Room::host("dots").dedicated().max_players(PLAYERS).registry(hall.registry.clone()).open();
    let (codes, code) = mpsc::sync_channel(1);
    let served = std::thread::spawn(move || serve(room, |code| codes.send(code).expect("it is waited for")));
    let code = code.recv_timeout(PATIENCE).expect("the room opens");

    let join = || Room::join("dots", &code).registry(hall.registry.clone()).open();
    let mut players: Vec<Room> = (0..PLAYERS).map(|_| join()).collect();
    let patience = Patience::new();
    loop {
        for room in &mut players {
            while let Some(event) = room.poll() {
                assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            }
            while let Some(mut step) = room.step() {
                // Ten times what the rules allow.
                step.send_input(&Move { dx: 10.0, dy: 0.0 }).expect("the room is open");
            }
        }
        let dots = |room: &Room| room.state().keys().iter().filter(|key| key.starts_with("dot/")).count();
        if players.iter().all(|room| dots(room) == usize::from(PLAYERS)) {
            break;
        }
        patience.look_again(|| format!("{:?}", players.iter().map(dots).collect::<Vec<_>>()));
    }
    let me = players[0].local_id().expect("it is in");
    let host = players[0].players().iter().find(|player| player.is_host).expect("it is a member");
    assert_eq!(
        players[0].state().get::<Dot>(&format!("dot/{}", host.id)).expect("it is a dot"),
        None,
        "it has no player"
    );
    let dot: Dot = players[1].state().get(&format!("dot/{me}")).expect("it is a dot").expect("all are there");
    assert!(dot.x > 0.0 && dot.x.fract() == 0.0, "a step moves it by one: {dot:?}");

    let mut others = players.split_off(1);
    players.pop().expect("the first").leave();
    let patience = Patience::new();
    while others[0].state().get::<Dot>(&format!("dot/{me}")).expect("it is a dot").is_some() {
        others.iter_mut().for_each(|room| while room.poll().is_some() {});
        patience.look_again(|| "the dot of the one who left is still there".to_owned());
    }
    drop(others);
    hall.shut_down();
    assert!(served.join().expect("it does not panic").is_err(), "it says why it ended");
}

#[test]
fn the_page_shows_the_program_as_it_is() {
    let page = include_str!("../../../docs/dedicated.md");
    let program = include_str!("../examples/dedicated.rs");
    assert!(page.contains(program), "copy crates/client/examples/dedicated.rs into docs/dedicated.md");
}
