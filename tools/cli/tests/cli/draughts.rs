//! Two terminals play draughts in a room that outlives the server.

use crate::support::{Machine, Running};
use parlor_turn::draughts::{Board, Move, Side};
use std::process::Command;

/// Moves after which the server is killed, with the next one under way.
const KILLED_AT: [usize; 3] = [3, 12, 25];
/// No game is longer: the rules end it.
const MOVES_MAX: usize = 2_000;

/// A number below `below`, such that one seed gives one game.
fn draw(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).expect("31 bits fit") % below
}

fn choose(moves: &[Move], seed: &mut u64) -> Move {
    moves[draw(seed, moves.len())].clone()
}

struct Server<'a> {
    machine: &'a Machine,
    data: String,
    port: String,
    running: Option<Running>,
}

impl<'a> Server<'a> {
    fn start(machine: &'a Machine) -> Self {
        let data = machine.path("data").to_str().expect("a plain path").to_owned();
        let mut server = Server { machine, data, port: "0".to_owned(), running: None };
        server.up();
        server
    }

    fn up(&mut self) {
        let args =
            ["serve", "--port", &self.port, "--log", "warn", "--data", &self.data, "--listen", "127.0.0.1"];
        let running = self.machine.start(&args);
        let said = running.says("Parlor ");
        self.port = said.rsplit(' ').next().expect("the port ends the line").to_owned();
        self.running = Some(running);
    }

    /// As `kill -9` does.
    fn kill(&mut self) {
        self.running.take().expect("it runs").kill();
    }

    fn player(&self, name: &str, args: &[&str]) -> Running {
        let server = format!("127.0.0.1:{}", self.port);
        let session = self.machine.path(name);
        let session = session.to_str().expect("a plain path");
        let own = ["draughts", "--server", &server, "--name", name, "--session", session];
        self.machine.start(&[&own[..], args].concat())
    }
}

/// Who is black, from what a player was told.
fn black(said: &str) -> &'static str {
    if said.contains("ada has black") { "ada" } else { "bob" }
}

#[test]
fn r10_two_terminals_play_draughts_through_kills_of_the_server() {
    let mut seed: u64 =
        std::env::var("PARLOR_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_801);
    println!("PARLOR_SEED={seed}");
    let machine = Machine::new();
    let mut server = Server::start(&machine);
    let mut ada = server.player("ada", &[]);
    let code = ada.says("room ");
    ada.says("waiting for somebody");
    let mut bob = server.player("bob", &[&code]);
    assert_eq!(bob.says("room "), code);
    let begins = ada.says("the game begins: ");
    let is_ada_black = black(&begins) == "ada";

    let (mut board, mut side, mut quiet) = (Board::default(), Side::Black, 0);
    for made in 0..MOVES_MAX {
        let moves = board.moves(side);
        if moves.is_empty() || quiet >= 80 {
            break;
        }
        let is_ada = (side == Side::Black) == is_ada_black;
        let (name, mover, other) =
            if is_ada { ("ada", &mut ada, &mut bob) } else { ("bob", &mut bob, &mut ada) };
        let names: Vec<String> = moves.iter().map(Move::to_string).collect();
        println!("move {made}: {name}");
        assert_eq!(mover.says("your turn: "), names.join(" "), "move {made}");
        let chosen = choose(&moves, &mut seed);
        if made == 5 {
            mover.types("1-32");
            assert!(mover.says("not done: ").contains("1-32"), "the rules say no, and the game goes on");
            other.types("1-32");
            assert_eq!(other.says("not done: "), format!("it is the turn of {name}: wait for yours"));
        }
        if KILLED_AT.contains(&made) {
            server.kill();
            mover.types(&chosen.to_string());
            mover.says("connection lost");
            server.up();
            mover.says("connected again");
        } else {
            mover.types(&chosen.to_string());
        }
        assert_eq!(other.says(&format!("{name} moves ")), chosen.to_string(), "move {made}");
        let (after, man_moved) = board.after(&chosen);
        quiet = if chosen.takes.is_empty() && !man_moved { quiet + 1 } else { 0 };
        (board, side) = (after, side.other());
    }
    let over = ada.says("game over: ");
    assert_eq!(bob.says("game over: "), over);
    let winner = if board.moves(side).is_empty() {
        if (side == Side::Black) == is_ada_black { "bob wins" } else { "ada wins" }
    } else {
        "nobody wins"
    };
    assert!(over.starts_with(winner), "{over}");
    assert!(ada.succeeds() && bob.succeeds());
}

#[test]
fn a_player_who_went_away_comes_back_to_the_game() {
    let machine = Machine::new();
    let server = Server::start(&machine);
    let mut ada = server.player("ada", &[]);
    let code = ada.says("room ");
    let mut bob = server.player("bob", &[]);
    assert_eq!(bob.says("room "), code, "whoever waits is found without a code");
    bob.says("the game ");
    ada.types("quit");
    assert!(ada.succeeds());
    let ada = server.player("ada", &[]);
    assert_eq!(ada.says("room "), code);
    ada.says("the game goes on: ");
    bob.types("resign");
    assert!(ada.says("game over: ").starts_with("ada wins"));
    assert!(bob.says("game over: ").starts_with("ada wins"));
    assert!(ada.succeeds() && bob.succeeds());
}

#[test]
fn what_is_wrong_is_said() {
    let machine = Machine::new();
    let server = Server::start(&machine);
    for (args, word) in
        [(vec!["K7QM22"], "no_such_room"), (vec!["--join", "r000000000000000000000000"], "no_such_room")]
    {
        let ada = server.player("ada", &args);
        assert!(ada.complains("parlor: ").contains(word), "{args:?}");
        assert!(!ada.succeeds());
    }
    let said = |command: &mut Command| {
        let output = command.output().expect("the binary was built");
        String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
    };
    let nowhere = said(&mut machine.command(&["draughts", "--name", "ada", "--server", "a b"]));
    assert!(nowhere.contains("HOST:PORT"), "{nowhere}");
    let second = ["serve", "--port", "0", "--data", &server.data];
    let second = said(&mut machine.command(&second));
    assert!(second.contains("in use by another server"), "{second}");
    let key = said(&mut machine.command(&["serve", "--port", "0", "--operator-key", "x"]));
    assert!(key.contains("--data"), "{key}");
}
