//! A1, A5: a game's `parlor.toml`. A process reads it once, so each game here is a process of its own: this test program
//! again, which runs [`game`] alone.

mod support;
#[path = "support/until.rs"]
mod until;
#[path = "support/wait.rs"]
mod wait;

use parlor::lan::{self, Network};
use parlor::net::{self, Closed, NetError};
use parlor::{ClosedReason, Event, Module, PathMode, Registry, Room, Settings, SettingsError, online};
use parlor_testing::Hall;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use until::until;
use wait::wait;

/// What the game does: the name of one of [`GAMES`].
const GAME: &str = "PARLOR_TEST_GAME";
/// The folder of its registry.
const REGISTRY: &str = "PARLOR_TEST_REGISTRY";

/// A game's name, and what it does and says.
type Game = (&'static str, fn(&Registry) -> String);

const GAMES: [Game; 10] = [
    ("host", |registry| outcome(Room::host("tanks").registry(registry.clone()).open())),
    ("host in code", |registry| {
        let room = Room::host("tanks").registry(registry.clone());
        outcome(
            room.name("code")
                .max_players(3)
                .tick_hz(50)
                .paths(PathMode::Relay)
                .join_page("https://c.example"),
        )
    }),
    ("host nearby", |registry| {
        outcome(Room::host("tanks").registry(registry.clone()).lan(Network::default()).open())
    }),
    ("join", |registry| outcome(Room::join("tanks", "K7QM").registry(registry.clone()).open())),
    ("join at", |registry| outcome(Room::join_at("tanks", "127.0.0.1", 9).registry(registry.clone()).open())),
    ("match", |registry| outcome(Room::create_match("duels").registry(registry.clone()).open())),
    ("net", |_| {
        let refused = |closed| match closed {
            net::Event::Closed(Closed::NotOpened(error)) => error,
            other => panic!("{other:?}"),
        };
        let mut errors: Vec<NetError> =
            [net::tcp("127.0.0.1", 9), net::udp("127.0.0.1", 9), net::websocket("ws://127.0.0.1:9/")]
                .into_iter()
                .map(|mut connection| refused(wait(|| connection.poll())))
                .collect();
        let (streamed, _upload) = net::Options::default().fetch_streamed("PUT", "http://127.0.0.1:9/");
        let requests =
            [net::get("http://127.0.0.1:9/"), net::fetch("DELETE", "http://127.0.0.1:9/", ""), streamed];
        errors.extend(
            requests.into_iter().map(|mut request| wait(|| request.poll_response()).expect_err("off")),
        );
        let codes: Vec<_> = errors.iter().map(NetError::as_str).collect();
        format!("{} {}", codes.join(" "), errors[0])
    }),
    ("lan", |_| lan::discover("tanks").expect_err("off").to_string()),
    ("online", |_| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("session");
        let sign_in = online::sign_in("127.0.0.1:9").session_file(&file);
        let account = sign_in.clone().account("tanks").map(drop).expect_err("off").to_string();
        let room = sign_in.join_or_create("tanks").map(drop).expect_err("off").to_string();
        assert!(!file.exists(), "nothing was begun");
        format!("{account} {room}")
    }),
    ("install", |_| {
        let mine: Settings = "[modules]\nnetwork = false".parse().expect("it is right");
        mine.clone().install().expect("nothing was read");
        assert_eq!(mine.install(), Err(SettingsError::InUse));
        Module::Net.require().expect_err("off").to_string()
    }),
];

/// How a room opens: what it is and has, or why it does not.
fn outcome(room: impl Into<Begun>) -> String {
    let Begun(mut room) = room.into();
    until(&mut room, |event| match event {
        Event::Closed(why) => {
            let code = why.as_str();
            assert!(matches!(why, ClosedReason::Connect(_)), "{why:?}");
            Some(format!("closed {code} {why}"))
        }
        Event::PlayerJoined(player) if player.is_me => Some(format!("open as {}", player.name)),
        _ => None,
    }) + &describe(&room)
}

/// A room, or the options of one.
struct Begun(Room);

impl From<Room> for Begun {
    fn from(room: Room) -> Self {
        Begun(room)
    }
}

impl From<parlor::HostBuilder> for Begun {
    fn from(builder: parlor::HostBuilder) -> Self {
        Begun(builder.open())
    }
}

fn describe(room: &Room) -> String {
    let info = room.info();
    let link = room.invite_link().unwrap_or_default();
    let page = room.join_page().unwrap_or_default();
    let (server, players) = (info.connectivity.relay, info.max_players.unwrap_or_default());
    let hz = room.tick_hz().unwrap_or_default();
    format!("\nserver {server:?}\nlink {link}\npage {page}\nplayers {players}\nhz {hz}\n")
}

/// The game. Without its environment it is a game of nothing.
#[test]
fn game() {
    let Ok(name) = std::env::var(GAME) else { return };
    let registry = Registry::at(PathBuf::from(std::env::var_os(REGISTRY).expect("a folder")));
    let (_, play) = GAMES.iter().find(|(known, _)| *known == name).expect("a game of that name");
    println!("<<{}>>", play(&registry));
}

/// A folder with a game in it.
struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new() -> Self {
        Folder { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn with(text: &str) -> Self {
        let folder = Folder::new();
        folder.write("parlor.toml", text);
        folder
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("the folder is ours");
        path
    }

    /// Runs a game in this folder with these variables, and returns what it says.
    fn run(&self, game: &str, variables: &[(&str, &Path)]) -> String {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["game", "--exact", "--nocapture"]).current_dir(self.folder.path());
        command.env_remove("PARLOR_SERVER").env_remove("PARLOR_SETTINGS");
        command.env(GAME, game).env(REGISTRY, self.folder.path().join("registry"));
        command.envs(variables.iter().copied());
        let output = command.output().expect("a process");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = text.split_once("<<").and_then(|(_, rest)| rest.split_once(">>"));
        let errors = String::from_utf8_lossy(&output.stderr);
        said.unwrap_or_else(|| panic!("{game}: {text}{errors}")).0.to_owned()
    }
}

#[test]
fn a1_a_module_that_is_switched_off_refuses_wherever_it_is_entered() {
    for (key, code, games) in [
        ("multiplayer", "optional_module_multiplayer_disabled", &["host", "join", "join at", "match"][..]),
        ("network", "optional_module_net_disabled", &["net"]),
        ("lan", "optional_module_lan_disabled", &["lan", "host nearby", "join at"]),
        ("online", "optional_module_online_disabled", &["online"]),
        ("server", "optional_module_server_disabled", &["host"]),
    ] {
        let folder = Folder::with(&format!("[modules]\n{key} = false\n"));
        for game in games {
            let said = folder.run(game, &[]);
            assert!(said.contains(code), "{game}: {said}");
            // It says how to switch it on, and where.
            assert!(
                said.contains(&format!("`{key} = true`")) && said.contains("parlor.toml"),
                "{game}: {said}"
            );
        }
    }
    let off = Folder::with("[modules]\nnetwork = false\n").run("net", &[]);
    assert_eq!(
        off.matches("optional_module_net_disabled").count(),
        7,
        "each of the calls, and the text: {off}"
    );
}

#[test]
fn a1_other_modules_go_on() {
    let folder =
        Folder::with("[modules]\nnetwork = false\nlan = false\nonline = false\nmultiplayer = true\n");
    assert!(folder.run("host", &[]).starts_with("open"));
    assert!(Folder::new().run("host", &[]).starts_with("open"), "without a file everything is on");
}

#[test]
fn a1_settings_that_are_wrong_open_nothing() {
    let folder = Folder::with("[multiplayer]\nmax_player = 4\n");
    for game in ["host", "join", "net", "lan", "online"] {
        let said = folder.run(game, &[]);
        assert!(said.contains("wrong_settings") && said.contains("line 2"), "{game}: {said}");
        assert!(said.contains("max_player`") && said.contains("max_players"), "{game}: {said}");
        assert!(said.contains("parlor.toml"), "{game}: {said}");
    }
}

#[test]
fn a1_the_file_is_that_of_the_code_or_the_environment_or_the_folder() {
    let folder = Folder::with("[modules]\nmultiplayer = false\n");
    let other = folder.write("other.toml", "[modules]\nlan = false\n");
    assert!(folder.run("host", &[]).contains("multiplayer_disabled"));
    assert!(folder.run("host", &[("PARLOR_SETTINGS", &other)]).starts_with("open"));
    assert!(folder.run("lan", &[("PARLOR_SETTINGS", &other)]).contains("other.toml"));
    let said = folder.run("host", &[("PARLOR_SETTINGS", Path::new("absent.toml"))]);
    assert!(
        said.contains("wrong_settings") && said.contains("absent.toml"),
        "a file that is named is there: {said}"
    );
    let said = folder.run("install", &[("PARLOR_SETTINGS", &other)]);
    assert!(said.contains("optional_module_net_disabled") && said.contains("the game's code"), "{said}");
}

#[test]
fn a5_code_wins_over_the_file_and_the_file_over_the_defaults() {
    let text = "[server]\njoin_page = \"https://f.example/\"\n[multiplayer]\nname = \"file\"\nmax_players = 6\n\
                tick_rate = 20\ninvite_scheme = \"tanks\"\n";
    let said = Folder::with(text).run("host", &[]);
    for part in ["open as file", "players 6\n", "link tanks://", "page https://f.example/join/"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = Folder::with(text).run("host in code", &[]);
    for part in ["open as code", "players 3\n", "link tanks://", "page https://c.example/join/"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = Folder::new().run("host", &[]);
    for part in ["open as \n", "players 4\n", "link parlor://", "page \n"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn m1_and_m10_a_file_has_a_preset_and_how_to_reconnect() {
    let text = "[multiplayer]\npreset = \"action\"\n[multiplayer.reconnect_policy]\nattempts = ";
    let folder = Folder::with(&format!("{text}2\n"));
    assert!(folder.run("host", &[]).contains("hz 60\n"));
    assert!(folder.run("host in code", &[]).contains("hz 50\n"), "code wins");
    let said = Folder::with(&format!("{text}0\n")).run("host", &[]);
    let parts = ["wrong_settings", "line 3", "attempts is 0; it may be 1 to 1000"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn a5_the_environment_wins_over_the_server_of_the_file() {
    let (first, second) = (Hall::start(), Hall::start());
    let folder = Folder::with(&format!("[server]\nrelay = \"{}\"\n", first.address()));
    let is_at = |said: &str, hall: &Hall| said.starts_with("open") && said.contains(&hall.addr().to_string());
    for game in ["host", "match"] {
        let said = folder.run(game, &[]);
        assert!(is_at(&said, &first), "{said}");
        let said = folder.run(game, &[("PARLOR_SERVER", Path::new(&second.address()))]);
        assert!(is_at(&said, &second), "{said}");
    }
    folder.write(
        "parlor.toml",
        &format!("[server]\naddress = \"{}\"\n[multiplayer]\nmode = \"local\"", first.address()),
    );
    let said = folder.run("host", &[]);
    assert!(said.starts_with("open") && !is_at(&said, &first), "this machine alone: {said}");
}
