//! Relayed matches through a hub: their ids, who may join, and what a server lists and keeps of them.

use parlor_client_core::{ClosedReason, Event, Options, Wish};
use parlor_hub::room::KeptEntry;
use parlor_hub::{Config, MatchFilter, RoomQuery, Shards};
use parlor_proto::wire::handshake::{Intent, Refusal, RoomKind};
use parlor_proto::{RoomCode, code};
use parlor_sim::{APP, Link, PeerId, SEEDS, Sim, for_seeds};
use std::collections::BTreeSet;
use std::time::Duration;

fn keeping(seed: u8) -> Config {
    Config { keeps: true, ..Config::new([seed; 32]) }
}

fn a_match(label: &str, max_players: u16, keep: bool) -> Options {
    let options = Options::create_match(APP);
    let Wish::Match { tick_rate, .. } = options.intent else { panic!("{:?}", options.intent) };
    Options { intent: Wish::Match { max_players, tick_rate, label: label.into(), keep }, ..options }
}

fn refusal(sim: &Sim, peer: PeerId) -> Option<Refusal> {
    match sim.closed(peer)? {
        ClosedReason::Refused(refusal) => Some(refusal),
        other => panic!("{other}"),
    }
}

#[test]
fn a_match_is_joined_by_its_id_until_it_ends_and_then_never_again() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let ada = sim.host(a_match("", 16, false), Link::quic());
        let id = sim.code(ada);
        assert!(id.is_match_id(), "{id}");
        let typed: RoomCode = id.to_string().to_lowercase().parse().expect("it is an id");
        let bob = sim.join(typed, Link::quic());
        sim.run_for(300);
        for peer in [ada, bob] {
            let (room, info) = (sim.room(peer), sim.room(peer).info());
            assert!(!room.is_host() && info.host_id.is_none());
            assert!(room.players().iter().all(|player| !player.is_host));
            assert_eq!(room.player_count(), 2);
        }
        // The player that opened the match leaves; the match can still be joined.
        sim.act(ada, |room, now| room.leave(now));
        sim.run_for(300);
        assert_eq!(sim.room(bob).player_count(), 1);
        let cy = sim.join(id, Link::quic());
        sim.run_for(300);
        assert_eq!(sim.room(cy).player_count(), 2);
        for peer in [bob, cy] {
            sim.act(peer, |room, now| room.leave(now));
        }
        sim.run_for(1_000);
        assert_eq!(sim.hub().room_count(), 0);
        let late = sim.join(id, Link::quic());
        assert_eq!(refusal(&sim, late), Some(Refusal::NoSuchRoom));
    });
}

#[test]
fn an_id_is_never_chosen() {
    let mut sim = Sim::new(1);
    let ada = sim.host(a_match("", 16, false), Link::quic());
    let id = sim.code(ada);
    sim.act(ada, |room, now| room.leave(now));
    sim.run_for(1_000);
    let mut options = Options::host(APP);
    let Wish::Host { code, .. } = &mut options.intent else { panic!("it hosts") };
    *code = Some(id);
    assert!(options.check().is_err());
    let host = sim.host(options, Link::quic());
    assert!(matches!(refusal(&sim, host), Some(Refusal::BadRequest { .. })));
    // A code chosen for a match is not accepted either.
    let mut hello = parlor_sim::hello(Intent::Join { code: id, secret: None });
    let Wish::Match { tick_rate, .. } = a_match("", 4, false).intent else { panic!("it is one") };
    hello.intent = Intent::Create(parlor_proto::wire::handshake::RoomSettings {
        code: Some("MYROOM".parse().expect("it is a code")),
        tick_rate,
        ..parlor_proto::wire::handshake::RoomSettings::new(RoomKind::Match, 4)
    });
    assert!(hello.check().is_err());
}

#[test]
fn what_only_a_match_has_no_other_room_has() {
    let settings = |options: &Options| match &options.intent {
        Wish::Match { max_players, label, .. } => (*max_players, label.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(settings(&Options::create_match(APP)), (16, String::new()));
    for (options, is_right) in [
        (a_match("casual", 256, true), true),
        (a_match("casual", 257, false), false),
        (a_match("casual", 1, false), false),
        (a_match("tab\there", 4, false), false),
        (a_match(&"x".repeat(64), 4, false), true),
        (a_match(&"x".repeat(65), 4, false), false),
        (Options { host_timeout: Some(Duration::from_millis(500)), ..a_match("", 4, false) }, false),
    ] {
        assert_eq!(options.check().is_ok(), is_right, "{:?}", options.intent);
    }
}

#[test]
fn a_hub_that_keeps_no_logs_opens_no_match_that_is_to_be_kept() {
    let mut sim = Sim::new(1);
    let ada = sim.host(a_match("", 4, true), Link::quic());
    assert_eq!(refusal(&sim, ada), Some(Refusal::NotKept));
    assert!(Refusal::NotKept.to_string().contains("parlor serve --data"));
    assert_eq!(sim.hub().room_count(), 0);
    let mut sim = Sim::with_hub(1, keeping(1));
    let ada = sim.host(a_match("duel", 4, true), Link::quic());
    let id = sim.code(ada);
    let bob = sim.host(a_match("", 4, false), Link::quic());
    for peer in [ada, bob] {
        sim.act(peer, |room, now| room.leave(now));
    }
    sim.run_for(1_000);
    let entries: Vec<&KeptEntry> = sim.kept().iter().map(|(_, _, entry)| entry).collect();
    assert!(
        matches!(
            entries[..],
            [
                KeptEntry::Opened { members_max: 4, .. },
                KeptEntry::Joined { .. },
                KeptEntry::Left { .. },
                KeptEntry::Ended
            ]
        ),
        "{entries:?}"
    );
    assert!(sim.kept().iter().all(|(of, ..)| *of == id), "of the other nothing");
}

#[test]
fn a_hub_lists_its_matches_and_none_with_a_secret() {
    let mut sim = Sim::new(1);
    let mut open = |options: Options| {
        let peer = sim.host(options, Link::quic());
        (peer, sim.code(peer))
    };
    let (_, casual) = open(a_match("casual", 2, false));
    let (_, ranked) = open(a_match("ranked", 4, false));
    open(Options { secret: Some("sesame".into()), ..a_match("casual", 4, false) });
    open(Options::host(APP));
    open(Options { environment: "test".into(), ..a_match("casual", 4, false) });
    sim.join(casual, Link::quic());
    let query = |environment: &str, matches: MatchFilter| RoomQuery {
        app: Some(APP.into()),
        environments: vec![environment.into()],
        matches: Some(matches),
        after: None,
        limit: 10,
        rosters: false,
    };
    let any = MatchFilter::default();
    let list = |query: RoomQuery| -> BTreeSet<RoomCode> {
        sim.hub().rooms(&query).rooms.into_iter().map(|room| room.code).collect()
    };
    assert_eq!(list(query("", any.clone())), BTreeSet::from([casual, ranked]));
    let of_label = MatchFilter { label: Some("ranked".into()), ..any.clone() };
    assert_eq!(list(query("", of_label)), BTreeSet::from([ranked]));
    let full = MatchFilter { members_min: 2, ..any.clone() };
    assert_eq!(list(query("", full)), BTreeSet::from([casual]));
    for open in
        [MatchFilter { members_max: Some(1), ..any.clone() }, MatchFilter { has_seat: true, ..any.clone() }]
    {
        assert_eq!(list(query("", open)), BTreeSet::from([ranked]));
    }
    assert!(list(RoomQuery { app: Some("chess".into()), ..query("", any.clone()) }).is_empty());
    assert_eq!(list(query("test", any.clone())).len(), 1);
    let all = RoomQuery { matches: None, ..query("", any) };
    assert_eq!(list(all).len(), 4, "an operator sees those with a secret, and rooms of other kinds");
}

#[test]
fn each_of_several_hubs_opens_matches_that_are_its_own() {
    let addresses: Vec<String> = (0..3).map(|port| format!(":{port}")).collect();
    for own in 1..3 {
        let shards = Shards::new(own, addresses.clone());
        let mut sim = Sim::with_hub(7, Config { shards: shards.clone(), ..keeping(7) });
        let ada = sim.host(a_match("", 4, false), Link::quic());
        let id = sim.code(ada);
        assert!(shards.is_home(id) && id.as_str().len() == code::MATCH_ID_LEN);
        assert!(matches!(sim.events(ada).first(), Some(Event::Open { code }) if *code == id));
    }
}
