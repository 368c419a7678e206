//! Connections over real sockets that break: through a proxy that can cut them.

#[path = "support/proxy.rs"]
mod proxy;
mod support;
#[path = "support/until.rs"]
mod until;

use parlor::{
    CloseReason, ClosedReason, Event, Impairment, JoinBuilder, LinkState, Room, TransportPreference,
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

fn number(event: Event) -> Option<u64> {
    match event {
        Event::Message(message) => Some(message.read().expect("it is a number")),
        _ => None,
    }
}

#[test]
fn a_connection_that_was_cut_is_made_again_and_nothing_is_missed() {
    let hall = Hall::start();
    let mut host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let proxy = Proxy::new(hall.addr());
    let mut guest = hall.guest_at(&code, proxy.port).transport(TransportPreference::WebSocket).open();
    until(&mut guest, |event| matches!(event, Event::Open { .. }).then_some(()));
    let id = until(&mut host, |event| match event {
        Event::PlayerJoined(player) if !player.is_me => Some(player.id),
        _ => None,
    });
    let first = guest.resume_ticket().expect("the server keeps seats");
    proxy.cut(true);
    until(&mut guest, |event| matches!(event, Event::ConnectionLost { .. }).then_some(()));
    until(&mut host, |event| (event == Event::PlayerLost { id }).then_some(()));
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
    let mut host = hall.host();
    let code = host.code().expect("it is open").to_string();
    let proxy = Proxy::new(hall.addr());
    let mut guest =
        hall.guest_at(&code, proxy.port).transport(TransportPreference::WebSocket).reconnect(false).open();
    until(&mut guest, |event| matches!(event, Event::Open { .. }).then_some(()));
    let id = guest.local_id().expect("it is open");
    let saved = guest.resume_ticket().expect("the server keeps seats").to_string();
    proxy.cut(true);
    let closed = until(&mut guest, |event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    });
    assert!(matches!(closed, ClosedReason::Session(_)), "{closed:?}");
    until(&mut host, |event| (event == Event::PlayerLost { id }).then_some(()));
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
