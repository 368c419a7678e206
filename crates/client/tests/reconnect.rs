//! Connections over real sockets that break: through a proxy that can cut them.

#[path = "support/proxy.rs"]
mod proxy;
mod support;
#[path = "support/until.rs"]
mod until;

use parlor::{
    CloseReason, ClosedReason, Event, Impairment, JoinBuilder, LeaveReason, LinkState, MemberId,
    ReconnectPolicy, Refusal, ResumeRefusal, Room, TransportPreference,
};
use parlor_testing::Hall;
use proxy::Proxy;
use std::time::{Duration, Instant};
use until::until;

/// Rooms on a hall's server.
trait Rooms {
    fn host(&self) -> Room;
    fn guest_at(&self, code: &str, port: u16) -> JoinBuilder;
}

impl Rooms for Hall {
    fn host(&self) -> Room {
        let mut host =
            Room::host("tanks").name("ada").registry(self.registry.clone()).server(&self.address()).open();
        until(&mut host, |event| matches!(event, Event::Open { .. }).then_some(()));
        host
    }

    fn guest_at(&self, code: &str, port: u16) -> JoinBuilder {
        Room::join("tanks", code).name("bob").registry(self.registry.clone()).server(&self.address_by(port))
    }
}

/// A host, a guest whose WebSocket goes through a proxy, and the guest's id.
fn host_and_guest(
    hall: &Hall,
    change: impl FnOnce(JoinBuilder) -> JoinBuilder,
) -> (Room, Room, MemberId, Proxy) {
    let mut host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let proxy = Proxy::new(hall.addr());
    let guest = hall.guest_at(&code, proxy.port).transport(TransportPreference::WebSocket);
    let mut guest = change(guest).open();
    until(&mut guest, |event| matches!(event, Event::Open { .. }).then_some(()));
    let id = until(&mut host, |event| match event {
        Event::PlayerJoined(player) if !player.is_me => Some(player.id),
        _ => None,
    });
    (host, guest, id, proxy)
}

fn number(event: Event) -> Option<u64> {
    match event {
        Event::Message(message) => Some(message.read().expect("it is a number")),
        _ => None,
    }
}

#[test]
fn a_connection_that_was_cut_is_made_again_and_nothing_is_missed() {
    let hall = Hall::start();
    let (mut host, mut guest, id, proxy) = host_and_guest(&hall, |guest| guest);
    let first = guest.resume_ticket().expect("the server keeps seats");
    proxy.cut(true);
    until(&mut guest, |event| matches!(event, Event::ConnectionLost { .. }).then_some(()));
    until(&mut host, |event| matches!(event, Event::PlayerLost { id: who, .. } if who == id).then_some(()));
    assert_eq!(guest.link_state(), LinkState::Reconnecting);
    for count in 0..20u64 {
        host.send(id, "count", &count).expect("it waits");
        guest.broadcast("count", &count).expect("it waits");
    }
    until(&mut guest, |event| matches!(event, Event::Reconnecting { attempt: 2.. }).then_some(()));
    proxy.cut(false);
    until(&mut guest, |event| (event == Event::Reconnected { state_resynced: false }).then_some(()));
    for count in 0..20u64 {
        assert_eq!(until(&mut guest, number), count);
        assert_eq!(until(&mut host, number), count);
    }
    assert_eq!((guest.local_id(), guest.link_state()), (Some(id), LinkState::Connected));
    assert_ne!(guest.resume_ticket(), Some(first), "each ticket is good once");
}

#[test]
fn a_process_that_is_no_more_gives_its_seat_to_the_next() {
    let hall = Hall::start();
    let (mut host, mut guest, id, proxy) = host_and_guest(&hall, |guest| guest.reconnect(false));
    let saved = guest.resume_ticket().expect("the server keeps seats").to_string();
    proxy.cut(true);
    let closed = until(&mut guest, |event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    });
    assert!(matches!(closed, ClosedReason::Session(_)), "{closed:?}");
    until(&mut host, |event| matches!(event, Event::PlayerLost { id: who, .. } if who == id).then_some(()));
    host.send(id, "count", &7u64).expect("it waits");
    proxy.cut(false);
    let ticket = saved.parse().expect("it is a ticket");
    let mut next = Room::resume("tanks", &ticket)
        .registry(hall.registry.clone())
        .transport(TransportPreference::WebSocket)
        .open();
    assert_eq!(until(&mut next, number), 7);
    assert_eq!(next.local_id(), Some(id));
    assert_eq!(next.player_count(), 2);
    until(&mut host, |event| (event == Event::PlayerBack { id }).then_some(()));
}

#[test]
fn an_outage_of_three_seconds_costs_nothing_that_is_reliable() {
    let hall = Hall::start();
    let mut host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let guest = hall.guest_at(&code, hall.addr().port()).impairment(Impairment::none());
    let mut guest = guest.open();
    until(&mut guest, |event| matches!(event, Event::Open { .. }).then_some(()));
    let id = guest.local_id().expect("it is open");
    until(&mut host, |event| matches!(event, Event::PlayerJoined(player) if player.id == id).then_some(()));
    let nothing = Impairment::none().loss_ppm(1_000_000);
    guest.set_impairment(nothing).expect("it was put on one");
    for count in 0..50u64 {
        host.send(id, "count", &count).expect("the room is open");
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        host.poll();
        assert!(guest.poll().and_then(number).is_none(), "nothing gets through");
        std::thread::yield_now();
    }
    guest.set_impairment(Impairment::none()).expect("it was put on one");
    for count in 0..50u64 {
        assert_eq!(until(&mut guest, number), count);
    }
}

#[test]
fn a_hub_in_the_hosts_process_that_is_silent_is_a_host_that_is_gone() {
    let hall = Hall::start_with(|config| config.is_of_host = true);
    let host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let proxy = Proxy::new(hall.addr());
    let mut by_tcp = hall.guest_at(&code, proxy.port).transport(TransportPreference::WebSocket).open();
    let mut by_udp = hall.guest_at(&code, hall.addr().port()).impairment(Impairment::none()).open();
    for guest in [&mut by_tcp, &mut by_udp] {
        until(guest, |event| matches!(event, Event::Open { .. }).then_some(()));
    }
    // One connection breaks and is refused from then on; on the other nothing comes any more.
    proxy.cut(true);
    by_udp.set_impairment(Impairment::none().loss_ppm(1_000_000)).expect("it was put on one");
    for guest in [&mut by_tcp, &mut by_udp] {
        let closed = until(guest, |event| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        });
        assert_eq!(closed, ClosedReason::Session(CloseReason::HostGone));
    }
}

/// Waits until the host's players have lost somebody for good.
fn lost_for_good(host: &mut Room, id: MemberId) -> LeaveReason {
    until(host, |event| match event {
        Event::PlayerLeft { id: who, reason, .. } if who == id => Some(reason),
        _ => None,
    })
}

/// Waits until somebody is there, and returns what it says its team is.
fn team_of(room: &mut Room, id: MemberId) -> Option<String> {
    until(room, |event| match event {
        Event::PlayerJoined(player) if player.id == id => Some(player.data("team").expect("it is a text")),
        _ => None,
    })
}

fn with_short_grace() -> Hall {
    Hall::start_with(|config| config.grace = Duration::from_millis(500))
}

#[test]
fn m9_who_comes_back_after_the_grace_is_the_same_player() {
    let hall = with_short_grace();
    let (mut host, mut guest, id, proxy) = host_and_guest(&hall, |guest| guest);
    guest.set_player_data(id, "team", "red").expect("it is its own");
    until(&mut host, |event| matches!(event, Event::PlayerData { .. }).then_some(()));
    let tank = host.as_host().expect("it hosts").spawn(Some(id)).expect("there is room");
    proxy.cut(true);
    assert_eq!(lost_for_good(&mut host, id), LeaveReason::ConnectionLost);
    assert!(host.player(id).is_none());
    proxy.cut(false);
    until(&mut guest, |event| (event == Event::Reconnected { state_resynced: true }).then_some(()));
    assert_eq!(team_of(&mut host, id).as_deref(), Some("red"));
    assert_eq!(team_of(&mut guest, id).as_deref(), Some("red"));
    assert_eq!(guest.local_id(), Some(id));
    until(&mut guest, |event| (event == Event::Spawned { entity: tank }).then_some(()));
    guest.act(tank, "fire", &1).expect("it is its own still");
    until(&mut host, |event| matches!(event, Event::Action { from, .. } if from == id).then_some(()));
}

#[test]
fn m9_another_process_is_the_same_player_after_the_grace_by_its_ticket_and_only_once() {
    let hall = with_short_grace();
    let (mut host, guest, id, proxy) = host_and_guest(&hall, |guest| guest.reconnect(false));
    guest.set_player_data(id, "team", "blue").expect("it is its own");
    until(&mut host, |event| matches!(event, Event::PlayerData { .. }).then_some(()));
    let ticket = guest.resume_ticket().expect("the server keeps seats");
    proxy.cut(true);
    lost_for_good(&mut host, id);
    proxy.cut(false);
    let resume = || Room::resume("tanks", &ticket).registry(hall.registry.clone()).open();
    let mut next = resume();
    assert_eq!(team_of(&mut next, id).as_deref(), Some("blue"));
    assert_eq!(team_of(&mut host, id).as_deref(), Some("blue"));
    // It has said something, so that its own ticket is the only one.
    next.broadcast("count", &1u64).expect("it is in");
    until(&mut host, number);
    let why = until(&mut resume(), |event| match event {
        Event::Closed(why) => Some(why),
        _ => None,
    });
    let why_not = Refusal::Resume { why: ResumeRefusal::Token };
    assert_eq!(why, ClosedReason::Refused(why_not));
    let closed = until(&mut next, |event| match event {
        Event::Closed(why) => Some(why),
        Event::Reconnected { .. } => panic!("two processes had its ticket"),
        _ => None,
    });
    assert_eq!(closed, ClosedReason::Session(CloseReason::TokenReused));
}

#[test]
fn m10_m11_m12_a_policy_that_takes_no_resync_ends_the_room_and_says_why() {
    let hall = with_short_grace();
    let policy = ReconnectPolicy {
        attempts: 1_000,
        delay_first: Duration::from_millis(20),
        delay_factor: 1.0,
        accept_state_resync: false,
        ..ReconnectPolicy::default()
    };
    let (mut host, mut guest, id, proxy) = host_and_guest(&hall, |guest| guest.reconnect_policy(policy));
    proxy.cut(true);
    let reason = until(&mut guest, |event| match event {
        Event::ConnectionLost { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(reason, LeaveReason::ConnectionLost);
    // More often than the default, which stops at eight.
    until(&mut guest, |event| matches!(event, Event::Reconnecting { attempt: 12.. }).then_some(()));
    lost_for_good(&mut host, id);
    proxy.cut(false);
    let why = until(&mut guest, |event| match event {
        Event::Closed(why) => Some(why),
        _ => None,
    });
    assert_eq!(why, ClosedReason::Refused(Refusal::Resume { why: ResumeRefusal::GraceOver }));
    // Nobody is there to be removed, and that is no error.
    for _ in 0..2 {
        host.as_host().expect("it hosts").kick(id, "rude").expect("m11: it is gone");
    }
    let wrong = ReconnectPolicy { attempts: 0, ..policy };
    let error = Room::join("tanks", "K7QM").reconnect_policy(wrong).check().expect_err("it never tries");
    assert!(error.to_string().contains("attempts is 0; it may be 1 to 1000"), "{error}");
}
