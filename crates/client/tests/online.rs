//! Turn rooms over real sockets: two games, a server with a store, and a restart between two moves.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

#[path = "support/mod.rs"]
mod support;

use parlor::online::{self, Check, Event, Phase, RoomStatus, SignIn, Topic, TurnRoom};
use parlor_server::{Config, Server};
use parlor_services::OnlineConfig;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::Path;
use support::Patience;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A server whose store outlives it.
struct Host {
    runtime: Runtime,
    server: Option<Server>,
    folder: TempDir,
    /// The operator's games; without them clients say how rooms are set up.
    games: Option<std::path::PathBuf>,
    port: u16,
}

impl Host {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut host = Host { runtime, server: None, folder, games: None, port: 0 };
        host.up();
        host
    }

    /// Has its games from a folder with one file from then on.
    fn has_game(&mut self, app: &str, game: &Value) {
        self.down();
        let games = self.path("games");
        std::fs::create_dir_all(&games).unwrap();
        std::fs::write(games.join(format!("{app}.json")), game.to_string()).unwrap();
        self.games = Some(games);
        self.up();
    }

    fn up(&mut self) {
        let store = self.folder.path().join("parlor.db").to_str().unwrap().to_owned();
        let online = OnlineConfig { games: self.games.clone(), ..OnlineConfig::new(store) };
        let config = Config { listen: Ipv4Addr::LOCALHOST.into(), port: self.port, ..Config::default() };
        let server = self.runtime.block_on(parlor_services::start(config, online)).unwrap();
        self.port = server.local_port();
        self.server = Some(server);
    }

    fn down(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.shutdown());
        }
    }

    fn sign_in(&self, name: &str) -> SignIn {
        online::sign_in(&format!("127.0.0.1:{}", self.port))
            .name(name)
            .session_file(&self.folder.path().join(name))
            .config("turn_based", true)
            .config("players", json!({ "min": 2, "max": 2 }))
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

/// Polls both until one of them is told something that is wanted.
#[track_caller]
fn until<T>(rooms: &mut [&mut TurnRoom], wanted: impl Fn(usize, &Event) -> Option<T>) -> T {
    let patience = Patience::new();
    loop {
        for (at, room) in rooms.iter_mut().enumerate() {
            while let Some(event) = room.poll() {
                assert!(!matches!(event, Event::Closed(_)), "{event:?}");
                if let Some(found) = wanted(at, &event) {
                    return found;
                }
            }
        }
        patience.look_again(|| format!("the rooms stand like this: {rooms:?}"));
    }
}

/// Polls both until something holds.
#[track_caller]
fn wait(rooms: &mut [&mut TurnRoom], holds: impl Fn(&[&mut TurnRoom]) -> bool) {
    let patience = Patience::new();
    while !holds(rooms) {
        for room in rooms.iter_mut() {
            while let Some(event) = room.poll() {
                assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            }
        }
        patience.look_again(|| format!("the rooms stand like this: {rooms:?}"));
    }
}

fn connected(at: usize, event: &Event) -> Option<(usize, String)> {
    let Event::Connected { room, .. } = event else { return None };
    Some((at, room.clone()))
}

#[test]
fn r2_two_players_find_each_other_and_play_to_the_end() {
    let host = Host::start();
    let mut ada = host.sign_in("ada").join_or_create("noughts").unwrap();
    let (_, room) = until(&mut [&mut ada], connected);
    assert_eq!((ada.view().unwrap().phase, ada.my_turn()), (Phase::Waiting, false));
    let mut bob = host.sign_in("bob").join_or_create("noughts").unwrap();
    assert_eq!(until(&mut [&mut bob], connected).1, room, "the room that has a seat");
    wait(&mut [&mut ada, &mut bob], |rooms| {
        rooms.iter().all(|room| room.view().unwrap().phase == Phase::Playing)
    });
    assert_eq!(ada.players().iter().map(|player| player.name.as_str()).collect::<Vec<_>>(), ["ada", "bob"]);

    for cell in 0..4_u64 {
        wait(&mut [&mut ada, &mut bob], |rooms| rooms.iter().filter(|room| room.my_turn()).count() == 1);
        let (mover, other) = if ada.my_turn() { (&mut ada, &mut bob) } else { (&mut bob, &mut ada) };
        // Out of turn nothing happens, and who tries is told.
        other.propose_move("put", &json!({ "cell": 8 }), &json!({ "last": 8 })).unwrap();
        let rejected = |_, event: &Event| match event {
            Event::MoveRejected { error, .. } => Some(error.code.clone()),
            _ => None,
        };
        assert_eq!(until(&mut [other], rejected), "not_your_turn");
        mover.propose_move("put", &json!({ "cell": cell }), &json!({ "last": cell })).unwrap();
        assert!(mover.propose_move("put", &json!({}), &json!({})).is_err(), "one move at a time");
        let made = |_, event: &Event| match event {
            Event::MoveMade { data, .. } => Some(data["cell"].as_u64()),
            _ => None,
        };
        assert_eq!(until(&mut [other], made), Some(cell));
        assert_eq!(until(&mut [mover], made), Some(cell), "its own as well");
        assert_eq!(
            other.state::<Value>().unwrap()["last"],
            cell,
            "the state is never older than what is told"
        );
    }
    wait(&mut [&mut ada, &mut bob], |rooms| rooms.iter().any(|room| room.my_turn()));
    ada.resign().unwrap();
    let over = |_, event: &Event| match event {
        Event::GameOver { winner, .. } => Some(winner.clone()),
        _ => None,
    };
    let winner = bob.me().map(str::to_owned);
    assert_eq!(until(&mut [&mut ada], over), winner);
    assert_eq!(until(&mut [&mut bob], over), winner);
}

#[test]
fn r10_a_game_goes_on_when_its_server_has_restarted() {
    let mut host = Host::start();
    let mut ada = host.sign_in("ada").create("noughts").unwrap();
    let (_, room) = until(&mut [&mut ada], connected);
    let code = ada.view().unwrap().code.clone().unwrap();
    let mut bob = host.sign_in("bob").join("noughts", &code.to_lowercase()).unwrap();
    for turn in 0..6_u64 {
        wait(&mut [&mut ada, &mut bob], |rooms| rooms.iter().any(|room| room.my_turn()));
        let (mover, other) = if ada.my_turn() { (&mut ada, &mut bob) } else { (&mut bob, &mut ada) };
        let before = mover.view().unwrap().state_version;
        if turn % 2 == 0 {
            host.down();
        }
        // Said to a server that may be gone: it is made once all the same.
        mover.propose_move("put", &json!({ "turn": turn }), &json!({ "turn": turn })).unwrap();
        if turn % 2 == 0 {
            let lost = |_, event: &Event| matches!(event, Event::Lost { .. }).then_some(());
            until(&mut [mover], lost);
            host.up();
        }
        wait(&mut [mover, other], |rooms| {
            rooms.iter().all(|room| room.view().is_some_and(|view| view.state["turn"] == turn))
        });
        assert_eq!(mover.view().unwrap().state_version, before + 1, "once");
        assert_eq!(mover.view().unwrap().id, room);
    }
}

#[test]
fn players_who_look_for_the_same_meet() {
    let host = Host::start();
    let seek = |name: &str, mode: &str| {
        let player = host.sign_in(name).criterion("metadata.mode", mode).criterion("max_players", 2);
        player.join_or_create("noughts").unwrap()
    };
    let (mut ada, mut bob, mut cid) = (seek("ada", "free"), seek("bob", "ranked"), seek("cid", "ranked"));
    let (_, free) = until(&mut [&mut ada], connected);
    let (_, ranked) = until(&mut [&mut bob], connected);
    assert_ne!(free, ranked);
    assert_eq!(bob.view().unwrap().metadata, json!({ "mode": "ranked" }));
    assert_eq!(until(&mut [&mut cid], connected).1, ranked);
}

#[test]
fn games_of_the_operator_need_no_word_of_the_clients() {
    let mut host = Host::start();
    let file = json!({
        "turn_based": true, "players": { "min": 2, "max": 4 }, "modes": { "duel": { "players": { "max": 2 } } }
    });
    host.has_game("noughts", &file);
    let sign_in = |name: &str| {
        online::sign_in(&format!("127.0.0.1:{}", host.port)).name(name).session_file(&host.path(name))
    };
    let mut ada = sign_in("ada").mode("duel").join_or_create("noughts").unwrap();
    let (_, room) = until(&mut [&mut ada], connected);
    let view = ada.view().unwrap();
    assert_eq!((view.game.as_str(), view.max_players), ("noughts.duel", 2));
    let mut bob = sign_in("bob").mode("duel").join_or_create("noughts").unwrap();
    assert_eq!(until(&mut [&mut bob], connected).1, room);
    let mut cleo = sign_in("cleo").room_name("Cleo's").private().max_players(3).create("noughts").unwrap();
    until(&mut [&mut cleo], connected);
    let view = cleo.view().unwrap();
    assert_eq!((view.name.as_str(), view.max_players), ("Cleo's", 3));
    let mut eve = sign_in("eve").config("turn_timeout_ms", 1_000).create("noughts").unwrap();
    let patience = Patience::new();
    let error = loop {
        match eve.poll() {
            Some(Event::Closed(error)) => break error,
            _ => patience.look_again(|| format!("{eve:?}")),
        }
    };
    assert_eq!(
        (error.code.as_str(), error.path.as_deref()),
        ("operator_decides", Some("config.turn_timeout_ms"))
    );
}

#[test]
fn a_player_is_the_same_one_after_a_restart_of_its_game() {
    let host = Host::start();
    let mut ada = host.sign_in("ada").create("noughts").unwrap();
    let (_, room) = until(&mut [&mut ada], connected);
    let me = ada.me().unwrap().to_owned();
    let session = ada.session().clone();
    drop(ada);
    let mut again = host.sign_in("ada").join_or_create("noughts").unwrap();
    assert_eq!(until(&mut [&mut again], connected).1, room, "the room in which the player sits comes first");
    assert_eq!(again.me(), Some(me.as_str()));
    let mut moved = online::sign_in(&format!("127.0.0.1:{}", host.port))
        .session(session.to_string().parse().unwrap())
        .resume("noughts", &room)
        .unwrap();
    until(&mut [&mut moved], connected);
    assert_eq!(moved.me(), Some(me.as_str()));
    assert!(is_private(&host.path("ada")));
}

/// The lines of a session's file behind the first: refresh tokens.
fn kept(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_session_goes_on_by_its_newest_refresh_token_and_by_its_device_if_that_is_refused() {
    let host = Host::start();
    let mut ada = host.sign_in("ada").create("noughts").unwrap();
    let (_, room) = until(&mut [&mut ada], connected);
    let me = ada.me().unwrap().to_owned();
    drop(ada);
    let again = || {
        let mut ada = host.sign_in("ada").resume("noughts", &room).unwrap();
        until(&mut [&mut ada], connected);
        assert_eq!(ada.me(), Some(me.as_str()), "the same player");
        kept(&host.path("ada"))
    };
    let first = kept(&host.path("ada"));
    let second = again();
    assert_eq!((first.len(), second.len()), (1, 1), "one game at one server");
    // A token is an id of the sign-in, a dot, and what changes each time.
    let sign_in = |lines: &[String]| lines[0].rsplit_once('.').unwrap().0.to_owned();
    assert_ne!(first, second, "a token is good once");
    assert_eq!(sign_in(&first), sign_in(&second), "it is the same sign-in");
    // Somebody has used what the file keeps: that sign-in is over, and the device begins another.
    let text = std::fs::read_to_string(host.path("ada")).unwrap();
    std::fs::write(host.path("ada"), text.replace(&second[0], &format!("{}x", second[0]))).unwrap();
    let third = again();
    assert_ne!(sign_in(&second), sign_in(&third));
    assert!(is_private(&host.path("ada")));
}

#[test]
fn a_host_says_how_a_game_begins_what_is_said_of_it_and_how_it_ends() {
    let host = Host::start();
    let sign_in =
        |name: &str| host.sign_in(name).config("auto_start", false).config("role_assignment", "assigned");
    let mut ada = sign_in("ada").config("roles", json!(["x", "o"])).create("noughts").unwrap();
    let (_, room) = until(&mut [&mut ada], connected);
    let mut bob = sign_in("bob").join("noughts", &room).unwrap();
    until(&mut [&mut bob], connected);
    let (ada_id, bob_id) = (ada.me().unwrap().to_owned(), bob.me().unwrap().to_owned());
    let updated = |_, event: &Event| match event {
        Event::Updated { player, changed, .. } => Some((player.clone(), changed.clone())),
        _ => None,
    };
    bob.set_data(&json!({ "mood": { "bob": "tense" } })).unwrap();
    let changed = json!({ "data": { "mood": { "bob": "tense" } } });
    assert_eq!(until(&mut [&mut ada, &mut bob], updated), (bob_id.clone(), changed));
    ada.set_data(&json!({ "mood": { "ada": "calm" } })).unwrap();
    ada.set_metadata(&json!({ "league": 3 })).unwrap();
    ada.rename("The final").unwrap();
    ada.set_public(false).unwrap();
    wait(&mut [&mut ada, &mut bob], |rooms| {
        rooms.iter().all(|room| {
            let view = room.view().unwrap();
            view.name == "The final"
                && view.metadata["league"] == 3
                && view.data == json!({ "mood": { "ada": "calm", "bob": "tense" } })
        })
    });
    bob.rename("Mine").unwrap();
    let failed = |_, event: &Event| match event {
        Event::Failed { op, error } => Some((op.clone(), error.code.clone())),
        _ => None,
    };
    assert_eq!(until(&mut [&mut bob], failed), ("turn.update".to_owned(), "not_host".to_owned()));
    ada.start_with(&[&bob_id, &ada_id], &[(&ada_id, "o")]).unwrap();
    wait(&mut [&mut ada, &mut bob], |rooms| rooms[1].my_turn());
    let role = |id: &str| bob.view().unwrap().player(id).unwrap().role.clone();
    assert_eq!((role(&ada_id), role(&bob_id)), (Some("o".to_owned()), Some("x".to_owned())));
    assert_eq!(bob.view().unwrap().turn_order, [bob_id.clone(), ada_id]);
    ada.say("chat", &json!("well played")).unwrap();
    let said = |_, event: &Event| match event {
        Event::Message { body, .. } => Some(body.clone()),
        _ => None,
    };
    assert_eq!(until(&mut [&mut bob], said), "well played");
    ada.end(Some(&bob_id), "agreed").unwrap();
    let over = |_, event: &Event| match event {
        Event::GameOver { winner, reason } => Some((winner.clone(), reason.clone())),
        _ => None,
    };
    assert_eq!(until(&mut [&mut bob], over), (Some(bob_id), "agreed".to_owned()));
}

#[test]
fn r2_who_has_no_seat_watches_by_topic_and_reads_what_was_said() {
    let host = Host::start();
    let sign_in = |name: &str| host.sign_in(name).config("auto_start", false).config("spectators", true);
    let mut ada = sign_in("ada").create("noughts").unwrap();
    let (_, room) = until(&mut [&mut ada], connected);
    let mut bob = sign_in("bob").join("noughts", &room).unwrap();
    until(&mut [&mut bob], connected);
    let mut eve = sign_in("eve").watch("noughts", &room).unwrap();
    until(&mut [&mut eve], connected);
    let said = |_, event: &Event| match event {
        Event::Message { body, number, .. } => Some((body.clone(), *number)),
        _ => None,
    };
    bob.say("chat", &json!("hello")).unwrap();
    assert_eq!(until(&mut [&mut eve, &mut bob], said), (json!("hello"), 1));
    let mut both = [&mut ada, &mut eve];
    wait(&mut both, |rooms| rooms[1].players().len() == 2);
    ada.start().unwrap();
    let begun = |at: usize, event: &Event| (at == 0 && *event == Event::GameStarted).then_some(());
    until(&mut [&mut eve, &mut ada], begun);
    // Without the topic of messages she hears of what else is new.
    eve.unsubscribe(Topic::Messages);
    bob.say("chat", &json!("unheard")).unwrap();
    bob.replace_data(&json!({ "x": 1 })).unwrap();
    let next = |at: usize, event: &Event| match event {
        Event::Message { .. } if at == 0 => Some(None),
        Event::Updated { changed, replaces, .. } if at == 0 => Some(Some((changed.clone(), *replaces))),
        _ => None,
    };
    let changed = json!({ "data": { "x": 1 } });
    assert_eq!(until(&mut [&mut eve, &mut bob], next), Some((changed, true)));
    // The history has what she did not hear.
    eve.read_messages(None, 1).unwrap();
    let history = |_, event: &Event| match event {
        Event::History { messages, next } => Some((messages.clone(), next.clone())),
        _ => None,
    };
    let (messages, next) = until(&mut [&mut eve], history);
    assert_eq!((messages[0].body.clone(), messages[0].name.as_str()), (json!("unheard"), "bob"));
    eve.read_messages(next.as_deref(), 1).unwrap();
    let (messages, next) = until(&mut [&mut eve], history);
    assert_eq!((messages[0].body.clone(), messages[0].number, next), (json!("hello"), 1, None));
    // What players do is not hers to do.
    eve.say("chat", &json!("me, too")).unwrap();
    let failed = |_, event: &Event| match event {
        Event::Failed { error, .. } => Some(error.code.clone()),
        _ => None,
    };
    assert_eq!(until(&mut [&mut eve], failed), "not_in_room");
}

#[test]
fn r9_the_host_names_admins_who_pause_the_room() {
    let host = Host::start();
    let sign_in = |name: &str| host.sign_in(name).config("auto_start", false);
    let mut ada = sign_in("ada").create("noughts").unwrap();
    let (_, room) = until(&mut [&mut ada], connected);
    let mut bob = sign_in("bob").join("noughts", &room).unwrap();
    until(&mut [&mut bob], connected);
    let (ada_id, bob_id) = (ada.me().unwrap().to_owned(), bob.me().unwrap().to_owned());
    ada.set_admins(&[&bob_id]).unwrap();
    wait(&mut [&mut ada, &mut bob], |rooms| {
        rooms.iter().all(|room| room.view().unwrap().admins == [ada_id.clone(), bob_id.clone()])
    });
    bob.set_paused(true).unwrap();
    let paused = |at: usize, event: &Event| match event {
        Event::Paused { is_paused, player } if at == 0 => Some((*is_paused, player.clone())),
        _ => None,
    };
    assert_eq!(until(&mut [&mut ada, &mut bob], paused), (true, Some(bob_id.clone())));
    assert_eq!(ada.view().unwrap().status, RoomStatus::Paused);
    bob.set_paused(false).unwrap();
    assert_eq!(until(&mut [&mut ada, &mut bob], paused), (false, Some(bob_id)));
    ada.start().unwrap();
    wait(&mut [&mut ada, &mut bob], |rooms| rooms.iter().any(|room| room.my_turn()));
    let (mover, other) = if ada.my_turn() { (&mut ada, &mut bob) } else { (&mut bob, &mut ada) };
    // The statuses of a move that the server refuses.
    mover.propose_move("put", &json!({}), &json!({ "isGameOver": true, "winner": "nobody" })).unwrap();
    let rejected = |_, event: &Event| match event {
        Event::MoveRejected { checks, .. } => *checks,
        _ => None,
    };
    let checks = until(&mut [mover, other], rejected);
    assert_eq!((checks.server, checks.rules), (Check::Invalid, Check::NotApplicable));
}

fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0
}

#[test]
fn what_cannot_be_had_is_told_once_with_its_reason() {
    let host = Host::start();
    let ended = |mut room: TurnRoom| {
        let patience = Patience::new();
        loop {
            match room.poll() {
                Some(Event::Closed(error)) => {
                    assert!((0..100).all(|_| room.poll().is_none()), "nothing comes after the end");
                    return error;
                }
                Some(event) => panic!("{event:?}"),
                None => patience.look_again(|| format!("{room:?}")),
            }
        }
    };
    assert_eq!(ended(host.sign_in("ada").join("noughts", "K7QM22").unwrap()).code, "no_such_room");
    assert_eq!(ended(host.sign_in("ada").resume("noughts", "r0").unwrap()).code, "no_such_room");
    let refused =
        ended(host.sign_in("ada").config("players", json!({ "min": 0 })).create("noughts").unwrap());
    assert_eq!((refused.code.as_str(), refused.path.as_deref()), ("bad_config", Some("config.players.min")));
    let refused = ended(host.sign_in("ada").rules("tiddlywinks").create("noughts").unwrap());
    assert!(refused.sentence.contains("draughts"), "it says what there is: {refused}");
    assert!(online::sign_in("http://x").create("noughts").is_err());
}
