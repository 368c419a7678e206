//! Accounts in realtime rooms, over real sockets.

#[path = "support/proxy.rs"]
mod proxy;
mod support;
#[path = "support/until.rs"]
mod until;

use parlor::online::{self, Account, AccountError, Happened, MatchFilter, Pending};
use parlor::{
    ClosedReason, ConnectFailureKind, Event, HostBuilder, MemberId, Recipient, Room, RoomBuilder,
    TransportPreference,
};
use parlor_server::Config;
use parlor_services::OnlineConfig;
use parlor_testing::{Hall, exchange};
use proxy::Proxy;
use std::num::NonZeroU16;
use std::time::Duration;
use support::Patience;
use until::until;

/// A server with accounts. Anybody may make one where it is open.
fn start(is_open: bool, change: impl FnOnce(&mut Config)) -> Hall {
    Hall::start_by(|mut config, folder| {
        change(&mut config);
        let store = folder.join("parlor.db").to_str().expect("its name is UTF-8").to_owned();
        parlor_services::start(config, OnlineConfig { is_open, ..OnlineConfig::new(store) })
    })
}

fn with_accounts() -> Hall {
    start(true, |_| {})
}

fn account(hall: &Hall, name: &str) -> Account {
    account_at(&hall.address(), name)
}

fn account_at(server: &str, name: &str) -> Account {
    online::sign_in(server).name(name).account("tanks").expect("the address is one")
}

/// A turn room that the account has opened.
fn turn_room(hall: &Hall, account: &Account) -> online::TurnRoom {
    let sign_in = online::sign_in(&hall.address()).session(account.session().clone());
    let mut room = sign_in.create("tanks").expect("the address is one");
    let patience = Patience::new();
    while !room.is_connected() {
        while let Some(event) = room.poll() {
            assert!(!matches!(event, online::Event::Closed(_)), "{event:?}");
        }
        patience.look_again(|| format!("{room:?}"));
    }
    room
}

fn opened<K>(builder: RoomBuilder<K>) -> Room {
    let mut room = builder.open();
    until(&mut room, |event| match event {
        Event::Closed(why) => panic!("{why}"),
        event => matches!(event, Event::Open { .. }).then_some(()),
    });
    room
}

fn closed<K>(builder: RoomBuilder<K>) -> ClosedReason {
    until(&mut builder.open(), |event| match event {
        Event::Closed(why) => Some(why),
        _ => None,
    })
}

fn asked<T>(mut pending: Pending<T>) -> Result<T, AccountError> {
    let patience = Patience::new();
    loop {
        if let Some(answer) = pending.poll() {
            assert!(pending.poll().is_none(), "it comes once");
            return answer;
        }
        patience.look_again(|| "no answer came".into());
    }
}

fn code(room: &Room) -> String {
    room.code().expect("it is open").to_string()
}

/// Who somebody is, as a player of the room sees it.
fn user(room: &Room, id: MemberId) -> Option<String> {
    room.player(id).expect("it is there").user.clone()
}

fn comes(room: &mut Room, id: MemberId) {
    until(room, |event| matches!(event, Event::PlayerJoined(player) if player.id == id).then_some(()));
}

#[test]
fn two_accounts_in_a_room_know_each_other() {
    let hall = with_accounts();
    let (ada, bob) = (account(&hall, "ada"), account(&hall, "bob"));
    let mut host = opened(Room::host("tanks").name("ada").account(&ada));
    let guest = opened(Room::join("tanks", &code(&host)).name("bob").account(&bob));
    let (a, b) = (host.local_id().expect("it is in"), guest.local_id().expect("it is in"));
    comes(&mut host, b);
    let (is_ada, is_bob) = (user(&guest, a).expect("it has one"), user(&host, b).expect("it has one"));
    assert_ne!(is_ada, is_bob);
    assert_eq!((user(&host, a), user(&guest, b)), (Some(is_ada.clone()), Some(is_bob)), "all see the same");
    let anybody = opened(Room::join("tanks", &code(&host)).name("ada").server(&hall.address()));
    assert_eq!(user(&anybody, anybody.local_id().expect("it is in")), None, "a name is nobody's");

    // The same account elsewhere is the same player, in a match as well, and to whoever has its session.
    let duel = opened(Room::create_match("tanks").account(&ada));
    assert_eq!(user(&duel, duel.local_id().expect("it is in")), Some(is_ada.clone()));
    let again = online::sign_in(&hall.address()).session(ada.session().clone());
    let again = again.account("tanks").expect("the address is one");
    let other = opened(Room::join("tanks", &code(&duel)).account(&again));
    assert_eq!(user(&other, other.local_id().expect("it is in")), Some(is_ada));
}

#[test]
fn an_account_follows_a_room_to_another_shard() {
    let hall = start(true, |config| config.shards = NonZeroU16::new(2).expect("it is not 0"));
    let (ada, bob) = (account(&hall, "ada"), account(&hall, "bob"));
    let mut servers = std::collections::BTreeSet::new();
    // Which shard a room is on is drawn: as many until both had one.
    while servers.len() < 2 {
        let host = opened(Room::host("tanks").account(&ada));
        let guest = opened(Room::join("tanks", &code(&host)).account(&bob));
        assert!(user(&guest, guest.local_id().expect("it is in")).is_some());
        servers.insert(guest.info().connectivity.relay);
    }
}

#[test]
fn who_lost_its_seat_comes_in_again_as_the_same_account() {
    let hall = start(true, |config| config.grace = Duration::from_millis(100));
    let mut host = opened(Room::host("tanks").account(&account(&hall, "ada")));
    let proxy = Proxy::new(hall.addr());
    let bob = account_at(&hall.address_by(proxy.port), "bob");
    let mut guest =
        opened(Room::join("tanks", &code(&host)).account(&bob).transport(TransportPreference::WebSocket));
    let first = guest.local_id().expect("it is in");
    comes(&mut host, first);
    let is_bob = user(&host, first);
    assert!(is_bob.is_some());
    proxy.cut(true);
    until(&mut host, |event| matches!(event, Event::PlayerLeft { id, .. } if id == first).then_some(()));
    proxy.cut(false);
    until(&mut guest, |event| match event {
        Event::Closed(why) => panic!("{why}"),
        event => (event == Event::Reconnected { state_resynced: true }).then_some(()),
    });
    let second = guest.local_id().expect("it is in");
    assert_eq!(second, first, "it is the same player");
    comes(&mut host, second);
    assert_eq!(user(&host, second), is_bob);
}

#[test]
fn why_an_account_does_not_come_in_is_said() {
    let without = Hall::start();
    let ClosedReason::Account { code, sentence } =
        closed(Room::host("tanks").account(&account(&without, "ada")))
    else {
        panic!("a server without a store has no accounts");
    };
    assert_eq!(code, "no_accounts");
    assert!(sentence.contains("--data") && sentence.contains("127.0.0.1"), "{sentence}");

    let shut = start(false, |_| {});
    let why = closed(Room::host("tanks").account(&account(&shut, "ada")));
    assert!(matches!(&why, ClosedReason::Account { code, .. } if code == "closed"), "{why:?}");
    assert_eq!(why.as_str(), "account");
}

#[test]
fn an_account_is_shown_to_no_server_but_its_own() {
    let ada = account_at("play.example.com", "ada");
    let why = closed(Room::join("tanks", "K7QM").server("127.0.0.1:1").account(&ada));
    let ClosedReason::Connect(failure) = why else { panic!("{why:?}") };
    assert_eq!(failure.kind, ConnectFailureKind::BadAddress);
    assert!(failure.detail.contains("play.example.com"), "{failure}");
}

#[test]
fn what_does_not_go_with_an_account_is_said_before_the_room_opens() {
    let ada = account_at("127.0.0.1:1", "ada");
    let wrong = |builder: HostBuilder| builder.check().expect_err("it does not").to_string();
    assert!(wrong(Room::host("chess").account(&ada)).contains("one of tanks"));
    assert!(wrong(Room::host("tanks").account(&ada).environment("staging")).contains("staging"));
    assert!(wrong(Room::host("tanks").account(&ada).token("x")).contains("token"));
    Room::host("tanks").account(&ada).environment("production").check().expect("it is the same");
}

#[test]
fn an_account_finds_matches_and_reads_the_log_of_its_own() {
    let hall = with_accounts();
    let (ada, bob) = (account(&hall, "ada"), account(&hall, "bob"));
    let mut duel = opened(Room::create_match("tanks").name("ada").label("a & b").keep().account(&ada));
    let (id, me) = (code(&duel), duel.local_id().expect("it is in"));
    let is_ada = user(&duel, me);
    let under = |label: &str| MatchFilter { label: Some(label.into()), ..MatchFilter::default() };
    let listed = asked(bob.matches(&under("a & b"), None)).expect("it may");
    assert_eq!(listed.items.iter().map(|live| (&*live.id, live.members)).collect::<Vec<_>>(), [(&*id, 1)]);
    assert_eq!(asked(bob.matches(&under("a "), None)).expect("it may").items, []);

    let guest = opened(Room::join("tanks", &id).name("nobody").server(&hall.address()));
    comes(&mut duel, guest.local_id().expect("it is in"));
    duel.send_data(-7, Recipient::Others, "hi".as_bytes()).expect("it may");
    duel.leave();
    guest.leave();
    let patience = Patience::new();
    while asked(ada.kept_matches(None)).expect("it may").items.iter().all(|kept| kept.ended_at_ms.is_none()) {
        patience.look_again(|| "the match does not end".into());
    }
    let log = asked(ada.match_log(&id, 0)).expect("it was in it");
    let joined: Vec<_> = log
        .entries
        .iter()
        .filter_map(|entry| match &entry.what {
            Happened::Joined { name, user, .. } => Some((name.as_str(), user.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(joined, [("ada", is_ada), ("nobody", None)]);
    let said = |entry: &parlor::online::LogEntry| match &entry.what {
        Happened::Data { op, payload, .. } => Some((*op, payload.to_vec())),
        _ => None,
    };
    assert_eq!(log.entries.iter().filter_map(said).collect::<Vec<_>>(), [(-7, b"hi".to_vec())]);
    let Err(AccountError::Refused(error)) = asked(bob.match_log(&id, 0)) else {
        panic!("who was not in it reads nothing");
    };
    assert_eq!(error.code, "no_such_match");
}

#[test]
fn what_a_game_reads_of_matches_is_what_the_services_write() {
    let hall = with_accounts();
    let ask = "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let document = hall.runtime.block_on(exchange(hall.addr(), ask)).json();
    let types = include_str!("../src/online/lists.rs");
    let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    for name in ["LiveMatch", "KeptView", "EntryView", "Happened"] {
        let schema = &document["components"]["schemas"][name];
        let shapes = schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
        for shape in shapes {
            let fields = shape["properties"].as_object().expect("each type has fields");
            for field in fields.keys().filter(|field| *field != "kind") {
                assert!(
                    types.contains(&format!(" {field}: ")),
                    "{name} has {field}, which a game does not read"
                );
            }
            if fields.get("kind").is_some_and(|kind| kind["const"] == "cut") {
                let (_, cut) = types.split_once("    Cut {").expect("a log may be cut");
                let (reasons, _) = cut.split_once("why: String").expect("it says why");
                let written = fields["why"]["description"].as_str().expect("it is described");
                assert_eq!(quoted(reasons), quoted(written));
            }
        }
    }
    assert!(document.to_string().contains("`store full`"), "the reasons were compared");
}

#[test]
fn an_account_finds_the_turn_rooms_it_sits_in() {
    let hall = with_accounts();
    let ada = account(&hall, "ada");
    assert_eq!(asked(ada.turn_rooms(None)).expect("it may").items, []);
    let room = turn_room(&hall, &ada);
    let mine = asked(ada.turn_rooms(None)).expect("it may");
    let view = room.view().expect("it is connected");
    let listed: Vec<_> = mine.items.iter().map(|room| (&room.id, room.phase, room.player_count)).collect();
    assert_eq!((listed, mine.next.as_ref()), (vec![(&view.id, view.phase, 1)], None));
}

#[test]
fn an_account_reads_what_is_stored_about_it_and_is_deleted() {
    let hall = with_accounts();
    let ada = account(&hall, "ada");
    let before = asked(ada.info()).expect("it may");
    assert_eq!(before.name, "ada");
    let (mut kinds, mut after) = (Vec::new(), None);
    loop {
        let part = asked(ada.export(after.as_deref())).expect("it may");
        if part.kind == "account" {
            assert_eq!(part.entries[0]["account"]["id"], before.id);
        }
        kinds.push(part.kind);
        after = part.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(
        kinds,
        [
            "account",
            "sign_ins",
            "rooms",
            "inbox",
            "matches",
            "boards",
            "saves",
            "objects",
            "statistics",
            "achievements",
            "ratings",
            "friends",
            "messages"
        ]
    );
    let room = turn_room(&hall, &ada);
    let id = room.view().expect("it is connected").id.clone();
    asked(ada.delete_room(&id)).expect("it opened it, and nobody else sits there");
    assert_eq!(asked(ada.turn_rooms(None)).expect("it may").items, []);

    asked(ada.delete()).expect("it may");
    assert_eq!(asked(ada.clone().info()), Err(AccountError::Deleted));
    let why = closed(Room::host("tanks").account(&ada));
    assert!(matches!(&why, ClosedReason::Account { code, .. } if code == "no_such_account"), "{why:?}");
    let anew = online::sign_in(&hall.address()).session(ada.session().clone());
    let anew = anew.account("tanks").expect("the address is one");
    assert_ne!(asked(anew.info()).expect("it signs in").id, before.id);
}

#[test]
fn m9_an_account_that_joins_again_after_the_grace_is_the_same_player() {
    let hall = start(true, |config| config.grace = Duration::from_millis(500));
    let ada = account(&hall, "ada");
    let mut host = opened(Room::host("tanks").server(&hall.address()));
    let proxy = Proxy::new(hall.addr());
    let join = |port| {
        let join = Room::join("tanks", &code(&host)).server(&hall.address_by(port)).account(&ada);
        join.transport(TransportPreference::WebSocket).reconnect(false)
    };
    let (first, second) = (join(proxy.port), join(hall.addr().port()));
    let guest = opened(first);
    let id = guest.local_id().expect("it is in");
    comes(&mut host, id);
    guest.set_player_data(id, "team", "red").expect("it is its own");
    until(&mut host, |event| matches!(event, Event::PlayerData { .. }).then_some(()));
    proxy.cut(true);
    until(&mut host, |event| matches!(event, Event::PlayerLeft { id: who, .. } if who == id).then_some(()));
    // It has nothing but its account.
    let again = opened(second);
    assert_eq!(again.local_id(), Some(id));
    comes(&mut host, id);
    let team = host.player(id).expect("it is there").data::<String>("team").expect("it is a text");
    assert_eq!(team.as_deref(), Some("red"));
}
