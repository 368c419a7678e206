//! How many packets a room costs.

use parlor_client_core::{Event, Options, Wish};
use parlor_proto::Lane;
use parlor_proto::wire::envelope::Recipient;
use parlor_sim::{Link, PeerId, Sim};

fn room(sim: &mut Sim, guests: usize, link: Link) -> (PeerId, Vec<PeerId>) {
    let mut options = Options::host("tanks");
    if let Wish::Host { max_players, .. } = &mut options.intent {
        *max_players = 16;
    }
    let host = sim.host(options, link);
    let code = sim.code(host);
    let guests: Vec<PeerId> = (0..guests).map(|_| sim.join(code, link)).collect();
    sim.run_for(5_000);
    (host, guests)
}

#[test]
fn what_is_drained_together_leaves_as_one_packet_for_each_receiver() {
    for link in [Link::quic(), Link::websocket()] {
        for lane in [Lane::ReliableOrdered, Lane::Unreliable, Lane::UnreliableSequenced] {
            let mut sim = Sim::new(1);
            let (host, guests) = room(&mut sim, 7, link);
            let everybody: Vec<PeerId> = std::iter::once(host).chain(guests.iter().copied()).collect();
            everybody.iter().for_each(|peer| drop(sim.take_events(*peer)));
            let before: Vec<u64> = everybody.iter().map(|peer| sim.traffic(*peer).down).collect();
            for guest in &guests {
                sim.act_quietly(*guest, |room, now| {
                    room.send(lane, Recipient::Others, "n", &1, false, now).unwrap();
                    room.send(lane, Recipient::Others, "n", &2, false, now).unwrap();
                });
            }
            // They arrive 20 ms later, and acknowledgements another 25.
            sim.run_for(21);
            for (peer, before) in everybody.iter().zip(before) {
                let packets = sim.traffic(*peer).down - before;
                assert_eq!(packets, 1, "{lane:?} over {link:?} to {peer}");
            }
            sim.run_for(100);
            let each = if lane == Lane::UnreliableSequenced { 1 } else { 2 };
            for (peer, senders) in everybody.iter().zip([7, 6, 6, 6, 6, 6, 6, 6]) {
                let messages = sim.events(*peer).iter().filter(|it| matches!(it, Event::Message(_))).count();
                assert_eq!(messages, senders * each);
            }
        }
    }
}

#[test]
fn an_idle_room_costs_two_packets_a_second_at_most() {
    for link in [Link::quic(), Link::quic().jitter_ms(15), Link::websocket().jitter_ms(15)] {
        let mut sim = Sim::new(2);
        let (host, guests) = room(&mut sim, 3, link);
        sim.run_for(10_000);
        let all = [host, guests[0], guests[1], guests[2]];
        let before = all.map(|peer| sim.traffic(peer));
        sim.run_for(30_000);
        for (peer, before) in all.into_iter().zip(before) {
            let (up, down) = (sim.traffic(peer).up - before.up, sim.traffic(peer).down - before.down);
            assert!(up <= 61 && down <= 61, "{up} up and {down} down in 30 s over {link:?}");
        }
    }
}

#[test]
fn a_message_is_sent_once_whatever_it_is_addressed_to() {
    let mut sim = Sim::new(3);
    let (_, guests) = room(&mut sim, 15, Link::quic());
    let before = sim.traffic(guests[0]).up;
    sim.act(guests[0], |room, now| {
        room.send(Lane::ReliableOrdered, Recipient::Everyone, "n", &1, false, now).unwrap()
    });
    assert_eq!(sim.traffic(guests[0]).up - before, 1);
}
