//! A hub announces its shutdown.

use parlor_client_core::{ClosedReason, Event, Options};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{CloseReason, Lane};
use parlor_sim::{Link, Rng, SEEDS, Sim, for_seeds};

#[test]
fn everybody_is_told_and_nobody_comes_in() {
    for_seeds(SEEDS, |seed| {
        let (mut sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let mut members = Vec::new();
        for _ in 0..3 {
            let host = sim.host(Options::host("tanks"), Link::any(&mut rng));
            let code = sim.code(host);
            members.extend([host, sim.join(code, Link::any(&mut rng))]);
        }
        let code = sim.code(members[0]);
        // One client is still joining.
        let late = sim.enter(Options::join("tanks", code), Link::quic());
        sim.run_for(25);
        sim.act(members[1], |room, now| {
            room.send(Lane::ReliableOrdered, Recipient::Authority, "last words", &1, false, now).unwrap();
        });
        // Long enough to arrive even after a few losses.
        sim.run_for(2_500);
        sim.shut_down();
        let host = sim.enter(Options::host("tanks"), Link::quic());
        let guest = sim.enter(Options::join("tanks", code), Link::websocket());
        sim.run_for(2_000);
        for member in members.iter().copied().chain([late]) {
            assert_eq!(sim.closed(member), Some(ClosedReason::Session(CloseReason::ServerShutdown)));
        }
        for peer in [host, guest] {
            let Some(ClosedReason::RetryAfter(retry)) = sim.closed(peer) else {
                panic!("{:?}", sim.closed(peer))
            };
            assert!(!retry.after.is_zero());
        }
        let last = sim.events(members[0]).iter().filter(|event| matches!(event, Event::Message(_))).count();
        assert_eq!(last, 1, "what was said before still arrives");
        assert_eq!((sim.hub().room_count(), sim.hub().connection_count()), (0, 0));
        // The timers of removed connections lapse when due.
        sim.run_for(10_000);
        assert_eq!(sim.hub().poll_timeout(), None, "no timer is left behind");
    });
}
