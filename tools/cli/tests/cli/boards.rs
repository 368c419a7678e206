//! Boards in a terminal: an operator defines one, and players submit to it.

use crate::support::Machine;
use std::fs;

#[test]
fn t3_an_operator_defines_a_board_and_players_submit_to_it_in_a_terminal() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
    let (key, data, file) = (path("operator"), path("data"), path("boards.toml"));
    assert!(machine.run(&["token", "--new-key", &key]).status.success());
    let (_server, at) = machine.serve(&["--data", &data, "--operator-key", &format!("{key}.pub")]);
    let says = |args: &[&str]| {
        let output = machine.run(args);
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.success(), String::from_utf8_lossy(&text).trim().to_owned())
    };
    let admin = |task: &[&str]| {
        says(&[&["admin", "--server", &at, "--key", &key, "--app", "tanks"][..], task].concat())
    };
    let player = |name: &str, task: &[&str]| {
        says(&[&["board", "--server", &at, "--app", "tanks", "--name", name][..], task].concat())
    };
    fs::write(
        &file,
        "[board.laps]\ntitle = \"Fastest lap\"\norder = \"least\"\nwriters = \"players\"\nmin = 10\n\n[board.wins]\nkeep = \"sum\"\n",
    )
    .expect("a file");
    let (is_done, text) = admin(&["define", &file]);
    assert!(
        is_done && text.contains("board laps: version 1") && text.contains("board wins: version 1"),
        "{text}"
    );
    assert!(player("ada", &["list"]).1.contains("laps  least  best  players  Fastest lap"));
    assert!(player("ada", &["submit", "laps", "71"]).1.contains("a better score: 71, rank 1 of 1"));
    assert!(player("bob", &["submit", "laps", "64"]).1.contains("rank 1 of 2"));
    let (is_done, top) = player("ada", &["top", "laps"]);
    assert!(is_done);
    let lines: Vec<Vec<&str>> = top.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[..2], [["1", "64", "bob"], ["2", "71", "ada"]]);
    let (_, around) = player("ada", &["around", "laps", "--count", "1"]);
    assert_eq!(around.lines().next(), top.lines().nth(1).map(str::trim));
    let (is_done, text) = player("ada", &["submit", "laps", "-1"]);
    assert!(!is_done && text.contains("10 to"), "{text}");
    let (is_done, text) = player("ada", &["submit", "wins", "1"]);
    assert!(!is_done && text.contains("the game's own service"), "{text}");
    assert!(player("ada", &["seasons", "laps"]).1.contains("0  2 entries"));
    assert_eq!(player("ada", &["remove", "laps"]), (true, "removed".to_owned()));

    fs::write(&file, "[board.laps]\nsort = \"least\"\n").expect("a file");
    let (is_done, text) = admin(&["define", &file]);
    assert!(!is_done && text.contains("sort"), "{text}");
    fs::write(&file, "[tank.laps]\n").expect("a file");
    let (is_done, text) = admin(&["define", &file]);
    assert!(!is_done && text.contains("tank"), "{text}");
    assert_eq!(admin(&["delete-board", "laps"]), (true, "done".to_owned()));
    assert!(!player("ada", &["list"]).1.contains("laps"));
    // The same file defines statistics and what they unlock.
    fs::write(
        &file,
        "[achievement.centurion]\nstatistic = \"kills\"\nat = 100\n\n[statistic.kills]\n\n[ladder.duel]\ntitle = \"Duels\"\n\n[queue.duel]\nskill = { ladder = \"duel\" }\n",
    )
    .expect("a file");
    let expected = "statistic kills: version 1\nachievement centurion: version 1\nladder duel: version 1\nqueue duel: version 1";
    assert_eq!(admin(&["define", &file]), (true, expected.to_owned()));
    assert_eq!(admin(&["undefine", "ladder", "duel"]), (true, "done".to_owned()));
    let (is_done, text) = admin(&["undefine", "ladder", "duel"]);
    assert!(!is_done && text.contains("there is no ladder duel"), "{text}");
}
