//! The life of a room: joining, leaving, and its end.

use parlor_client_core::{ClosedReason, Event, Options, ReasonCode, Role, TransportStatus};
use parlor_hub::HubEvent;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::{CloseReason, MemberId};
use parlor_sim::{Link, PeerId, SEEDS, Sim, for_seeds};

fn joined(events: &[Event]) -> Vec<(u32, String, bool, bool)> {
    let players = events.iter().filter_map(|event| match event {
        Event::PlayerJoined(player) => Some((player.id.0, player.name.clone(), player.is_host, player.is_me)),
        _ => None,
    });
    players.collect()
}

fn left(events: &[Event]) -> Vec<(u32, String, LeaveReason)> {
    let players = events.iter().filter_map(|event| match event {
        Event::PlayerLeft { id, name, reason } => Some((id.0, name.clone(), reason.clone())),
        _ => None,
    });
    players.collect()
}

fn closed(sim: &Sim, peer: PeerId) -> Option<CloseReason> {
    match sim.closed(peer)? {
        ClosedReason::Session(reason) => Some(reason),
        other => panic!("it was never open: {other}"),
    }
}

/// A room with a host and this many guests, over random links.
fn room(sim: &mut Sim, seed: u64, guests: usize) -> (PeerId, Vec<PeerId>) {
    let mut rng = parlor_sim::Rng::new(seed ^ 0xface);
    let options = Options { name: "host".into(), ..Options::host("tanks") };
    let host = sim.host(options, Link::any(&mut rng));
    let code = sim.code(host);
    let guests = (0..guests).map(|_| sim.join(code, Link::any(&mut rng))).collect();
    sim.run_for(1_000);
    (host, guests)
}

#[test]
fn a4_a_guest_joins_by_the_code_in_lower_case_and_both_see_both() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let mut rng = parlor_sim::Rng::new(seed);
        let host = sim.host(Options { name: "ada".into(), ..Options::host("tanks") }, Link::any(&mut rng));
        let Some(Event::Open { code }) = sim.events(host).first() else { panic!("{:?}", sim.events(host)) };
        let typed = code.to_string().to_lowercase().parse().unwrap();
        let options = Options { name: "bob".into(), ..Options::join("tanks", typed) };
        let guest = sim.enter(options, Link::any(&mut rng));
        sim.run_for(2_000);
        let (ada, bob) = ((0, "ada".to_owned(), true), (1, "bob".to_owned(), false));
        let seen = |peer, me| {
            let Some(Event::Open { code: seen }) = sim.events(peer).first() else { panic!("not open first") };
            assert_eq!(*seen, typed);
            let all: Vec<_> = joined(sim.events(peer));
            assert!(all.iter().all(|(id, .., is_me)| *is_me == (*id == me)));
            all.into_iter().map(|(id, name, is_host, _)| (id, name, is_host)).collect::<Vec<_>>()
        };
        assert_eq!(seen(host, 0), [ada.clone(), bob.clone()]);
        assert_eq!(seen(guest, 1), [bob, ada]);
        assert_eq!((sim.room(host).player_count(), sim.room(guest).player_count()), (2, 2));
        assert_eq!((sim.room(host).info().role, sim.room(guest).info().role), (Role::Host, Role::Client));
        assert_eq!(sim.room(guest).info().transport_status, Some(TransportStatus::RelayReady));
        assert!(sim.room(guest).ping().is_some() && sim.room(host).ping().unwrap().is_zero());
    });
}

#[test]
fn a_newcomer_is_told_of_itself_first_and_then_of_all() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let (_, guests) = room(&mut sim, seed, 3);
        let ids: Vec<u32> = joined(sim.events(guests[2])).iter().map(|(id, ..)| *id).collect();
        assert_eq!(ids, [3, 0, 1, 2]);
    });
}

#[test]
fn everybody_hears_who_left_and_why() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let (host, guests) = room(&mut sim, seed, 3);
        let code = sim.code(host);
        let fifth = || Options::join("tanks", code);
        sim.act(guests[0], |room, now| room.leave(now));
        sim.run_for(1_500);
        assert_eq!(closed(&sim, guests[0]), Some(CloseReason::Left));

        sim.act(host, |room, _| room.kick(MemberId(2), "team killing").unwrap());
        sim.run_for(1_500);
        let kicked = CloseReason::Kicked { reason: "team killing".into() };
        assert_eq!(closed(&sim, guests[1]), Some(kicked.clone()));
        assert_eq!(sim.events(guests[1]).last(), Some(&Event::Closed(ClosedReason::Session(kicked))));

        sim.cut(guests[2]);
        sim.run_for(1_500);
        assert!(matches!(closed(&sim, guests[2]), Some(CloseReason::ConnectionLost { .. })));

        let last = sim.enter(fifth(), Link::quic());
        sim.run_for(1_500);
        sim.crash(last);
        sim.run_for(7_000);
        assert_eq!(left(sim.events(host)).len(), 3, "silence is not the end at once");
        sim.run_for(3_000);
        let name = |id: u32| format!("player {id}");
        let expected = [
            (1, name(1), LeaveReason::Left),
            (2, name(2), LeaveReason::Kicked { reason: "team killing".into() }),
            (3, name(3), LeaveReason::ConnectionLost),
            (4, name(4), LeaveReason::TimedOut),
        ];
        assert_eq!(left(sim.events(host)), expected);
        assert_eq!(left(sim.events(guests[1]))[..], expected[..1]);
        assert_eq!(sim.room(host).player_count(), 1);
        assert_eq!(sim.hub().connection_count(), 1);
    });
}

#[test]
fn an_id_is_never_given_again() {
    for_seeds(10, |seed| {
        let mut sim = Sim::new(seed);
        let (host, _) = room(&mut sim, seed, 0);
        let code = sim.code(host);
        for id in 1..20 {
            let guest = sim.join(code, Link::quic());
            assert_eq!(sim.room(guest).local_id(), Some(MemberId(id)));
            sim.act(guest, |room, now| room.leave(now));
            sim.run_for(200);
        }
    });
}

#[test]
fn when_the_host_leaves_the_room_is_over_for_all_and_its_code_is_free() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let (host, guests) = room(&mut sim, seed, 3);
        let code = sim.code(host);
        sim.act(host, |room, now| room.leave(now));
        sim.run_for(1_500);
        assert_eq!(closed(&sim, host), Some(CloseReason::Left));
        for guest in guests {
            assert_eq!(closed(&sim, guest), Some(CloseReason::HostLeft));
            assert!(left(sim.events(guest)).is_empty());
            assert_eq!(sim.room(guest).info().last_reason_code, Some(ReasonCode::PeerLeft));
        }
        assert_eq!((sim.hub().room_count(), sim.hub().connection_count()), (0, 0));
        let mut options = Options::host("tanks");
        options.intent = parlor_client_core::Wish::Host {
            code: Some(code),
            max_players: 2,
            tick_rate: parlor_proto::TickRate::DEFAULT,
            dedicated: false,
        };
        let next = sim.host(options, Link::quic());
        assert_eq!(sim.code(next), code);
    });
}

#[test]
fn a_host_that_dies_is_gone_after_a_while_and_the_room_with_it() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let (host, guests) = room(&mut sim, seed, 2);
        sim.crash(host);
        sim.run_for(7_000);
        assert!(guests.iter().all(|guest| sim.room(*guest).is_connected()));
        sim.run_for(3_000);
        for guest in guests {
            assert_eq!(closed(&sim, guest), Some(CloseReason::HostGone));
        }
        let ended = |hub_event: &HubEvent| {
            matches!(hub_event, HubEvent::RoomEnded { reason: CloseReason::HostGone, .. })
        };
        assert!(sim.hub_events().iter().any(ended));
        assert_eq!((sim.hub().room_count(), sim.hub().connection_count()), (0, 0));
    });
}

#[test]
fn a_client_that_hears_nothing_gives_up_by_itself() {
    let mut sim = Sim::new(1);
    let (_, guests) = room(&mut sim, 1, 1);
    sim.silence(guests[0], true);
    sim.run_for(9_000);
    assert_eq!(closed(&sim, guests[0]), Some(CloseReason::TimedOut));
    assert_eq!(sim.room(guests[0]).info().last_reason_code, Some(ReasonCode::ControlHeartbeatTimeout));
    assert_eq!(sim.room(guests[0]).info().transport_status, Some(TransportStatus::Error));
}

#[test]
fn a_short_outage_ends_nothing() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let mut rng = parlor_sim::Rng::new(seed);
        let host = sim.host(Options::host("tanks"), Link::quic());
        let guest = sim.join(sim.code(host), Link::quic().jitter_ms(rng.below(30)));
        sim.silence(guest, true);
        sim.run_for(5_000);
        sim.silence(guest, false);
        sim.run_for(12_000);
        assert!(sim.room(guest).is_connected() && sim.room(host).is_connected());
        assert_eq!(sim.room(host).player_count(), 2);
    });
}

#[test]
fn who_leaves_while_connecting_is_told_so_once_and_nobody_else_is() {
    for delay in (0..200).step_by(10) {
        let mut sim = Sim::new(delay);
        let host = sim.host(Options::host("tanks"), Link::quic());
        let code = sim.code(host);
        let guest = sim.enter(Options::join("tanks", code), Link::quic().latency_ms(25));
        sim.run_for(delay);
        let was_in = sim.room(host).player_count() == 2;
        sim.act(guest, |room, now| room.leave(now));
        sim.run_for(2_000);
        let closes = sim.events(guest).iter().filter(|event| matches!(event, Event::Closed(_))).count();
        assert_eq!(closes, 1, "after {delay} ms");
        assert_eq!(sim.events(guest).last(), Some(&Event::Closed(ClosedReason::Session(CloseReason::Left))));
        assert_eq!(sim.room(host).player_count(), 1, "after {delay} ms");
        assert_eq!(sim.hub().connection_count(), 1, "after {delay} ms");
        assert!(was_in || delay >= 50 || joined(sim.events(host)).len() == 1, "after {delay} ms");
    }
}

#[test]
fn a_host_that_leaves_with_its_hello_leaves_no_room_behind() {
    for delay in (0..120).step_by(5) {
        let mut sim = Sim::new(delay);
        let host = sim.enter(Options::host("tanks"), Link::quic());
        sim.run_for(delay);
        sim.act(host, |room, now| room.leave(now));
        sim.run_for(2_000);
        assert_eq!((sim.hub().room_count(), sim.hub().connection_count()), (0, 0), "after {delay} ms");
    }
}

#[test]
fn player_data_is_told_to_all_and_to_those_who_come_later() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let (host, guests) = room(&mut sim, seed, 2);
        let color = |text: &str| parlor_sync::value::Value::Text(text.into());
        sim.act(guests[0], |room, _| {
            room.set_player_data(MemberId(1), "color", Some(&color("red"))).unwrap();
            let other = room.set_player_data(MemberId(0), "color", Some(&color("red"))).unwrap_err();
            assert!(other.to_string().contains("only the host may"), "{other}");
        });
        sim.act(host, |room, _| {
            room.set_player_data(MemberId(2), "team", Some(&color("blue"))).unwrap();
        });
        sim.run_for(1_500);
        let late = sim.join(sim.code(host), Link::quic());
        for peer in [host, guests[0], guests[1], late] {
            let read = |id: u32, key: &str| sim.room(peer).player(MemberId(id)).unwrap().data::<String>(key);
            assert_eq!(read(1, "color").unwrap().as_deref(), Some("red"));
            assert_eq!(read(2, "team").unwrap().as_deref(), Some("blue"));
        }
        sim.act(guests[0], |room, _| room.set_player_data(MemberId(1), "color", None).unwrap());
        sim.run_for(1_500);
        assert!(sim.room(late).player(MemberId(1)).unwrap().all_data().next().is_none());
        let gone = Event::PlayerData { id: MemberId(1), key: "color".into(), value: None };
        assert!(sim.events(host).contains(&gone));
    });
}

#[test]
fn clocks_and_ticks_agree_within_a_second_of_joining() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let host = sim.host(Options::host("tanks"), Link::quic().latency_ms(150).jitter_ms(20));
        let code = sim.code(host);
        let guest = sim.join(code, Link::quic().latency_ms(200).jitter_ms(40).loss(50));
        sim.run_for(1_000);
        let time = |sim: &mut Sim, peer| sim.act(peer, |room, now| room.server_time(now).unwrap());
        let (ours, theirs) = (time(&mut sim, host), time(&mut sim, guest));
        let off = ours.abs_diff(theirs);
        assert!(off.as_millis() <= 45, "off by {off:?}");
        sim.run_for(10_000);
        let ticks = [host, guest].map(|peer| sim.room(peer).diagnostics());
        assert!(ticks[0].tick.since(ticks[1].tick).abs() <= 3, "{ticks:?}");
        assert!(ticks.iter().all(|it| it.clock_jumps == 0), "{ticks:?}");
    });
}
