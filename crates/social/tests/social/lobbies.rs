//! Lobbies against a few plain lines: who sits where, who owns what, and what a search finds.

use core::time::Duration;
use parlor_social::{
    Access, Filter, Lobbies, LobbyChange, LobbyKind, LobbyNews, LobbyRefused, NewLobby, Person, PlayerKey,
    Properties, Property, Search, SearchOrder,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn key(player: u8) -> PlayerKey {
    format!("p{player}").into()
}

/// Players with even numbers are friends of one another; 4 and 5 have blocked each other.
fn person(player: u8) -> Person {
    let friends = (0..6).filter(|other| player.is_multiple_of(2) && other % 2 == 0 && *other != player);
    let blocked = match player {
        4 => vec![key(5)],
        5 => vec![key(4)],
        _ => Vec::new(),
    };
    Person {
        player: key(player),
        name: format!("player {player}"),
        is_here: true,
        friends: friends.map(key).collect(),
        blocked: blocked.into_iter().collect(),
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn new(id: &str, kind: LobbyKind, access: Access) -> NewLobby {
    NewLobby { id: id.into(), code: format!("C{id}"), kind, access, max: Some(3), ..NewLobby::default() }
}

#[derive(Clone, Debug)]
enum Step {
    Create(u8, LobbyKind, Access),
    Join(u8, usize, bool),
    Leave(u8, usize),
    Invite(u8, usize, u8),
    Kick(u8, usize, u8),
    Promote(u8, usize, u8),
    Lock(u8, usize, bool),
    Here(u8, bool),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (player, lobby) = (0_u8..6, 0_usize..4);
    let kind = prop_oneof![3 => Just(LobbyKind::Lobby), 1 => Just(LobbyKind::Party)];
    let access = prop_oneof![Just(Access::Public), Just(Access::Friends), Just(Access::Private)];
    prop_oneof![
        2 => (player.clone(), kind, access).prop_map(|(by, kind, access)| Step::Create(by, kind, access)),
        4 => (player.clone(), lobby.clone(), any::<bool>()).prop_map(|(by, lobby, code)| Step::Join(by, lobby, code)),
        1 => (player.clone(), lobby.clone()).prop_map(|(by, lobby)| Step::Leave(by, lobby)),
        2 => (player.clone(), lobby.clone(), player.clone()).prop_map(|(by, lobby, other)| Step::Invite(by, lobby, other)),
        1 => (player.clone(), lobby.clone(), player.clone()).prop_map(|(by, lobby, other)| Step::Kick(by, lobby, other)),
        1 => (player.clone(), lobby.clone(), player.clone()).prop_map(|(by, lobby, other)| Step::Promote(by, lobby, other)),
        1 => (player.clone(), lobby, any::<bool>()).prop_map(|(by, lobby, is)| Step::Lock(by, lobby, is)),
        2 => (player, any::<bool>()).prop_map(|(by, is)| Step::Here(by, is)),
        1 => (1_u64..100).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn t5_every_lobby_has_an_owner_who_sits_there_and_nobody_sits_where_it_may_not(
        steps in proptest::collection::vec(step(), 0..120),
    ) {
        let (mut lobbies, mut ids, mut now) = (Lobbies::default(), Vec::<String>::new(), 0);
        let mut versions: BTreeMap<String, u64> = BTreeMap::new();
        let mut kicked: BTreeSet<(String, u8)> = BTreeSet::new();
        for step in steps {
            let of = |ids: &[String], at: usize| ids.iter().rev().nth(at).cloned().unwrap_or_default();
            match step {
                Step::Create(by, kind, access) => {
                    let id = format!("l{}", ids.len());
                    let before = lobbies.of(&key(by)).filter(|lobby| lobby.kind == kind).count();
                    let made = lobbies.create(&person(by), new(&id, kind, access), at(now));
                    let most = if kind == LobbyKind::Party { 1 } else { 4 };
                    prop_assert_eq!(made.is_ok(), before < most);
                    if made.is_ok() {
                        ids.push(id);
                    }
                }
                Step::Join(by, lobby, has_code) => {
                    let id = of(&ids, lobby);
                    let before = lobbies.get(&id).cloned();
                    let joined = lobbies.join(&id, &person(by), Properties::new(), has_code, at(now));
                    let Some(before) = before else {
                        prop_assert_eq!(joined, Err(LobbyRefused::NoSuchLobby));
                        continue;
                    };
                    if joined.is_ok() && before.member(&key(by)).is_none() {
                        let is_invited = before.invited.contains(&key(by));
                        let is_friend = person(by).friends.contains(&before.owner);
                        prop_assert!(before.members.len() < 3);
                        let may = is_invited || has_code || before.access == Access::Public
                            || before.access == Access::Friends && is_friend;
                        prop_assert!(may, "{by} is in {before:?}");
                        prop_assert!(is_invited || !before.is_locked && !kicked.contains(&(id, by)));
                        let blocked = person(by).blocked;
                        prop_assert!(is_invited || before.members.iter().all(|it| !blocked.contains(&it.player)));
                    }
                }
                Step::Leave(by, lobby) => { let _ = lobbies.leave(&of(&ids, lobby), &key(by)); }
                Step::Invite(by, lobby, other) => {
                    let invited = lobbies.invite(&of(&ids, lobby), &person(by), &key(other));
                    prop_assert!(invited.is_err() || person(by).friends.contains(&key(other)));
                }
                Step::Kick(by, lobby, other) => {
                    let id = of(&ids, lobby);
                    let owner = lobbies.get(&id).map(|lobby| lobby.owner.clone());
                    if lobbies.kick(&id, Some(&key(by)), &key(other)).is_ok() {
                        prop_assert_eq!(owner, Some(key(by)));
                        kicked.insert((id, other));
                    }
                }
                Step::Promote(by, lobby, other) => {
                    let id = of(&ids, lobby);
                    let owner = lobbies.get(&id).map(|lobby| lobby.owner.clone());
                    if lobbies.promote(&id, &key(by), &key(other)).is_ok() {
                        prop_assert_eq!(owner, Some(key(by)));
                    }
                }
                Step::Lock(by, lobby, is_locked) => {
                    let change = LobbyChange { is_locked: Some(is_locked), ..LobbyChange::default() };
                    let _ = lobbies.update(&of(&ids, lobby), &key(by), change);
                }
                Step::Here(by, is_here) => lobbies.set_here(&key(by), is_here, at(now)),
                Step::Wait(seconds) => {
                    now += seconds;
                    lobbies.handle_timeout(at(now));
                }
            }
            let mut seats: BTreeMap<PlayerKey, BTreeSet<String>> = BTreeMap::new();
            for lobby in lobbies.after("") {
                prop_assert!(lobby.member(&lobby.owner).is_some(), "{lobby:?} has no owner");
                let version = versions.entry(lobby.id.to_string()).or_default();
                prop_assert!(lobby.version >= *version);
                *version = lobby.version;
                for member in &lobby.members {
                    seats.entry(member.player.clone()).or_default().insert(lobby.id.to_string());
                    prop_assert!(member.away_at.is_none_or(|until| until > at(now)), "a ghost sits in {lobby:?}");
                }
                prop_assert_eq!(lobbies.by_code(&lobby.code).map(|it| it.id.clone()), Some(lobby.id.clone()));
            }
            for player in 0..6 {
                let of: BTreeSet<String> = lobbies.of(&key(player)).map(|it| it.id.to_string()).collect();
                prop_assert_eq!(of, seats.remove(&key(player)).unwrap_or_default());
                for invited in lobbies.invites(&key(player)) {
                    prop_assert!(invited.invited.contains(&key(player)));
                }
                // A search finds exactly those that one may join.
                let search = Search { count: 50, ..Search::default() };
                let found: BTreeSet<String> =
                    lobbies.find(&person(player), &search).lobbies.iter().map(|it| it.id.to_string()).collect();
                let person = person(player);
                let may = lobbies.after("").filter(|it| {
                    it.kind == LobbyKind::Lobby && !it.is_locked && it.members.len() < 3
                        && match it.access {
                            Access::Public => true,
                            Access::Friends => person.friends.contains(&it.owner),
                            Access::Private => false,
                        }
                        && !kicked.contains(&(it.id.to_string(), player))
                        && it.members.iter().all(|member| !person.blocked.contains(&member.player))
                });
                prop_assert_eq!(found, may.map(|it| it.id.to_string()).collect::<BTreeSet<_>>());
            }
            while lobbies.poll_news().is_some() {}
        }
        // Whoever is away for long leaves, and nothing stays.
        for player in 0..6 {
            lobbies.set_here(&key(player), false, at(now));
        }
        lobbies.handle_timeout(at(now + 1_000));
        prop_assert!(lobbies.is_empty() && lobbies.next_timeout().is_none());
        prop_assert_eq!((0..6).filter(|player| lobbies.invites(&key(*player)).next().is_some()).count(), 0);
    }
}

fn with_level(lobbies: &mut Lobbies, id: u8, bucket: &str, level: i64, map: &str) {
    let properties = [("level".to_owned(), Property::Number(level)), ("map".to_owned(), map.into())];
    let lobby = NewLobby {
        bucket: bucket.into(),
        name: format!("lobby {id}"),
        properties: properties.into_iter().collect(),
        ..new(&format!("l{id}"), LobbyKind::Lobby, Access::Public)
    };
    lobbies.create(&Person { player: key(id + 10), ..person(1) }, lobby, at(0)).unwrap();
}

#[test]
fn t5_a_search_has_comparisons_lists_free_seats_and_an_order() {
    let mut lobbies = Lobbies::default();
    for id in 0..20 {
        let map = ["mill", "dust", "lake"][usize::from(id) % 3];
        with_level(&mut lobbies, id, if id < 15 { "coop" } else { "duel" }, id.into(), map);
    }
    lobbies.join("l4", &person(2), Properties::new(), false, at(0)).unwrap();
    lobbies.join("l4", &person(4), Properties::new(), false, at(0)).unwrap();
    lobbies.join("l5", &person(4), Properties::new(), false, at(0)).unwrap();
    let filter = |json: serde_json::Value| serde_json::from_value::<Filter>(json).unwrap();
    let all = || Search { count: 50, ..Search::default() };
    let found = |search: Search| -> Vec<String> {
        lobbies.find(&person(0), &search).lobbies.iter().map(|it| it.id.to_string()).collect()
    };
    let levels = filter(serde_json::json!({ "level": { "ge": 3, "lt": 7 }, "map": ["mill", "dust"] }));
    assert_eq!(found(Search { filter: levels, ..all() }), ["l6", "l3"], "the full one is left out");
    assert_eq!(found(Search { bucket: Some("duel".into()), count: 2, ..all() }), ["l19", "l18"]);
    let rest = lobbies.find(&person(0), &Search { count: 18, ..all() });
    assert_eq!((rest.lobbies.len(), rest.next), (18, Some(2)));
    assert_eq!(found(Search { before: Some(2), ..all() }), ["l0"]);
    assert_eq!(found(Search { order: SearchOrder::Fullest, count: 1, ..all() }), ["l5"]);
    assert_eq!(
        found(Search { free_seats: 2, filter: filter(serde_json::json!({ "@members": 2 })), ..all() }),
        [""; 0]
    );
    assert_eq!(found(Search { of_friends: true, ..all() }), ["l5"], "a friend of 0 sits there");
    let near = [("level".to_owned(), Property::Number(10))].into_iter().collect();
    assert_eq!(found(Search { near, count: 3, ..all() }), ["l10", "l11", "l9"]);
    let named = filter(serde_json::json!({ "@name": "lobby 7", "mod": { "exists": false } }));
    assert_eq!(found(Search { filter: named, ..all() }), ["l7"]);
    assert_eq!(
        found(Search { filter: filter(serde_json::json!({ "level": { "ne": 3 } })), ..all() }).len(),
        18
    );
}

#[test]
fn t5_an_owner_that_goes_is_followed_by_who_is_there_longest_and_here() {
    let mut lobbies = Lobbies::default();
    lobbies.create(&person(0), new("l", LobbyKind::Lobby, Access::Public), at(0)).unwrap();
    lobbies.join("l", &person(1), Properties::new(), false, at(0)).unwrap();
    lobbies.join("l", &person(2), Properties::new(), false, at(0)).unwrap();
    lobbies.set_here(&key(1), false, at(0));
    while lobbies.poll_news().is_some() {}
    lobbies.leave("l", &key(0)).unwrap();
    assert_eq!(lobbies.get("l").unwrap().owner, key(2), "1 is away");
    lobbies.handle_timeout(at(29));
    assert!(lobbies.get("l").unwrap().member(&key(1)).is_some(), "its seat is kept");
    lobbies.handle_timeout(at(30));
    assert!(lobbies.get("l").unwrap().member(&key(1)).is_none());
    let gone: Vec<LobbyNews> = core::iter::from_fn(|| lobbies.poll_news()).collect();
    assert!(
        gone.iter().any(|news| matches!(news, LobbyNews::Gone { player, .. } if *player == key(1))),
        "{gone:?}"
    );
    lobbies.leave("l", &key(2)).unwrap();
    assert_eq!(
        lobbies.join("l", &person(2), Properties::new(), true, at(31)),
        Err(LobbyRefused::NoSuchLobby)
    );
}

#[test]
fn threat_51_lobbies_and_invitations_have_an_end() {
    let mut lobbies = Lobbies::default();
    let create = |lobbies: &mut Lobbies, id: usize, by: u8| {
        lobbies.create(&person(by), new(&format!("l{id}"), LobbyKind::Lobby, Access::Public), at(0))
    };
    for id in 0..4 {
        create(&mut lobbies, id, 0).unwrap();
        create(&mut lobbies, id + 10, 2).unwrap();
        create(&mut lobbies, id + 20, 4).unwrap();
    }
    assert_eq!(create(&mut lobbies, 5, 0), Err(LobbyRefused::TooManyLobbies));
    let mut refused = None;
    for id in (0..4).chain(10..14).chain(20..24) {
        let by = if id < 10 {
            0
        } else if id < 20 {
            2
        } else {
            4
        };
        refused = lobbies
            .invite(&format!("l{id}"), &Person { friends: [key(9)].into(), ..person(by) }, &key(9))
            .err();
    }
    assert_eq!(refused, Some(LobbyRefused::InvitedTooOften));
    assert_eq!(lobbies.invites(&key(9)).count(), 8);
    let large: BTreeMap<String, Option<Property>> =
        (0..40).map(|at| (format!("n{at}"), Some(Property::Number(1)))).collect();
    let change = LobbyChange { properties: large, ..LobbyChange::default() };
    assert_eq!(lobbies.update("l0", &key(0), change), Err(LobbyRefused::TooLarge));
    assert_eq!(lobbies.get("l0").unwrap().properties.len(), 0);
}
