//! What a room reports about itself is true: before it is open, after a reconnect, and after its end.

use parlor_client_core::{ClosedReason, Event, LinkState, Options, ReasonCode};
use parlor_hub::Config;
use parlor_proto::CloseReason;
use parlor_sim::{APP, Link, Sim};
use std::time::Duration;

#[test]
fn a_room_is_connected_while_it_is_open_and_not_before_or_after() {
    let mut sim = Sim::new(1);
    let host = sim.enter(Options::host(APP), Link::quic());
    assert_eq!(sim.room(host).link_state(), LinkState::Connecting);
    sim.run_for(1_000);
    assert_eq!(sim.room(host).link_state(), LinkState::Connected);
    let none = sim.enter(Options::join(APP, "NOROOM".parse().expect("a code")), Link::quic());
    sim.run_for(1_000);
    assert!(matches!(sim.closed(none), Some(ClosedReason::Refused(_))));
    assert_eq!(sim.room(none).link_state(), LinkState::Lost, "it never was");
    let code = sim.code(host);
    let guest = sim.join(code, Link::quic());
    sim.act(guest, |room, now| room.leave(now));
    sim.run_for(1_000);
    assert_eq!(sim.room(guest).link_state(), LinkState::Lost);
}

#[test]
fn a17_a_room_that_is_there_after_all_did_not_expire() {
    let mut sim = Sim::keeping_seats(2, Duration::from_secs(2));
    let host = sim.host(Options::host(APP), Link::quic());
    let code = sim.code(host);
    let guest = sim.join(code, Link::quic());
    sim.run_for(1_000);
    sim.unplug(guest, true);
    sim.cut(guest);
    sim.run_for(5_000);
    sim.unplug(guest, false);
    sim.run_for(10_000);
    let events = sim.take_events(guest);
    assert!(events.contains(&Event::Reconnected { state_resynced: true }), "{events:?}");
    let room = sim.room(guest);
    assert_eq!(room.link_state(), LinkState::Connected);
    assert_ne!(room.info().last_reason_code, Some(ReasonCode::RoomExpired));
}

#[test]
fn a_hub_in_the_hosts_process_goes_down_because_the_host_left() {
    for (is_of_host, reason) in [(true, CloseReason::HostLeft), (false, CloseReason::ServerShutdown)] {
        let mut sim = Sim::with_hub(3, Config { record: true, is_of_host, ..Config::new([3; 32]) });
        let host = sim.host(Options::host(APP), Link::quic());
        let code = sim.code(host);
        let guest = sim.join(code, Link::quic());
        sim.shut_down();
        sim.run_for(1_000);
        assert_eq!(sim.closed(guest), Some(ClosedReason::Session(reason)));
    }
}
