//! Messages between members.

use bytes::Bytes;
use parlor_client_core::{Event, Options, RoomError};
use parlor_proto::wire::envelope::{Recipient, Sender};
use parlor_proto::{ApiMisuse, ChannelId, Lane, MemberId, limits};
use parlor_sim::{Link, PeerId, Rng, SEEDS, Sim, for_seeds};

const LANES: [Lane; 4] =
    [Lane::ReliableOrdered, Lane::ReliableUnordered, Lane::Unreliable, Lane::UnreliableSequenced];

/// A host and guests, by member id.
fn room(sim: &mut Sim, guests: usize, link: impl FnMut() -> Link) -> Vec<PeerId> {
    room_with(sim, guests, link, |_| ())
}

fn room_with(
    sim: &mut Sim,
    guests: usize,
    mut link: impl FnMut() -> Link,
    change: impl Fn(&mut Options),
) -> Vec<PeerId> {
    let mut options = Options::host("tanks");
    change(&mut options);
    if let parlor_client_core::Wish::Host { max_players, .. } = &mut options.intent {
        *max_players = 16;
    }
    let host = sim.host(options, link());
    let code = sim.code(host);
    let mut peers = vec![host];
    for _ in 0..guests {
        let mut options = Options::join("tanks", code);
        change(&mut options);
        peers.push(sim.enter(options, link()));
        sim.run_for(1_500);
    }
    let count = peers.len();
    sim.run_until(5_000, "all see all", |sim| {
        peers.iter().all(|peer| sim.room(*peer).player_count() == count)
    });
    peers.iter().for_each(|peer| drop(sim.take_events(*peer)));
    peers
}

/// Sender, kind, number and stamp of each received message.
fn heard(sim: &mut Sim, peer: PeerId) -> Vec<(u32, String, u64, Option<u64>)> {
    let messages = sim.take_events(peer).into_iter().filter_map(|event| match event {
        Event::Message(message) => {
            let Sender::Member(from) = message.from else { panic!("the hub says nothing of its own") };
            let number = message.read::<u64>().expect("every message is a number");
            Some((from.0, message.kind, number, message.order))
        }
        _ => None,
    });
    messages.collect()
}

#[test]
fn every_lane_reaches_every_kind_of_addressee() {
    for link in [Link::quic(), Link::websocket()] {
        let mut sim = Sim::new(1);
        let peers = room(&mut sim, 3, || link);
        for lane in LANES {
            for sender in [0, 2] {
                let cases: [(Recipient, &[u32]); 6] = [
                    (Recipient::Authority, &[0]),
                    (Recipient::Others, if sender == 0 { &[1, 2, 3] } else { &[0, 1, 3] }),
                    (Recipient::Member(MemberId(3)), &[3]),
                    (Recipient::Member(MemberId(sender)), if sender == 0 { &[0] } else { &[2] }),
                    (Recipient::Members(vec![MemberId(3), MemberId(1), MemberId(3)]), &[1, 3]),
                    (Recipient::Everyone, &[0, 1, 2, 3]),
                ];
                for (to, expected) in cases {
                    let peer = peers[sender as usize];
                    let sent = to.clone();
                    sim.act(peer, |room, now| room.send(lane, sent, "hi", &7u64, false, now).unwrap());
                    sim.run_for(200);
                    for (id, peer) in (0..).zip(&peers) {
                        let heard = heard(&mut sim, *peer);
                        let meant = expected.contains(&id).then(|| (sender, "hi".to_owned(), 7, None));
                        assert_eq!(heard, Vec::from_iter(meant), "{lane:?} to {to:?} at {id}");
                    }
                }
            }
        }
    }
}

#[test]
fn each_senders_order_is_kept_and_nothing_is_missing_on_the_reliable_lane() {
    for_seeds(SEEDS, |seed| {
        let (mut sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let mut links = rng.clone();
        let peers = room(&mut sim, 3, || Link::any(&mut links));
        let mut next = [0u64; 4];
        for _ in 0..200 {
            let sender = rng.index(4);
            let number = next[sender];
            next[sender] += 1;
            sim.act(peers[sender], |room, now| {
                room.send(Lane::ReliableOrdered, Recipient::Everyone, "n", &number, false, now).unwrap();
            });
            sim.run_for(rng.below(20));
        }
        sim.run_for(4_000);
        for peer in peers {
            let heard = heard(&mut sim, peer);
            for (sender, count) in (0..).zip(next) {
                let from: Vec<u64> = heard
                    .iter()
                    .filter(|(from, ..)| *from == sender)
                    .map(|(_, _, number, _)| *number)
                    .collect();
                assert_eq!(from, Vec::from_iter(0..count), "from {sender}");
            }
        }
    });
}

#[test]
fn sequenced_messages_never_go_back_and_the_last_one_comes() {
    for_seeds(SEEDS, |seed| {
        let (mut sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let peers = room(&mut sim, 2, || Link::quic().jitter_ms(80).duplicates(50));
        for number in 0..100u64 {
            for peer in &peers {
                sim.act(*peer, |room, now| {
                    room.send(Lane::UnreliableSequenced, Recipient::Others, "n", &number, false, now)
                        .unwrap();
                });
            }
            sim.run_for(rng.below(30));
        }
        sim.run_for(1_000);
        for peer in peers {
            let heard = heard(&mut sim, peer);
            for sender in 0..3 {
                let numbers: Vec<u64> = heard
                    .iter()
                    .filter(|(from, ..)| *from == sender)
                    .map(|(_, _, number, _)| *number)
                    .collect();
                assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
                assert!(numbers.is_empty() || numbers.last() == Some(&99), "{numbers:?}");
            }
        }
    });
}

#[test]
fn stamped_messages_have_one_order_for_all() {
    for_seeds(SEEDS, |seed| {
        let (mut sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let mut links = rng.clone();
        let peers = room(&mut sim, 3, || Link::any(&mut links));
        for number in 0..100u64 {
            let sender = rng.pick(&peers);
            sim.act(sender, |room, now| {
                room.send(Lane::ReliableOrdered, Recipient::Everyone, "n", &number, true, now).unwrap();
            });
            sim.run_for(rng.below(20));
        }
        sim.run_for(4_000);
        let first = heard(&mut sim, peers[0]);
        let orders: Vec<u64> = first.iter().filter_map(|(.., order)| *order).collect();
        assert_eq!(orders, Vec::from_iter(0..100));
        for peer in &peers[1..] {
            assert_eq!(heard(&mut sim, *peer), first);
        }
    });
}

#[test]
fn an_unknown_addressee_is_the_callers_mistake() {
    let mut sim = Sim::new(2);
    let peers = room(&mut sim, 1, Link::quic);
    let wrong = RoomError::Misuse(ApiMisuse::NoSuchPlayer(MemberId(9)));
    for to in [Recipient::Member(MemberId(9)), Recipient::Members(vec![MemberId(0), MemberId(9)])] {
        let result = sim.act(peers[1], |room, now| room.send(Lane::Unreliable, to, "n", &1u64, false, now));
        assert_eq!(result, Err(wrong.clone()));
    }
    let many = Recipient::Members((0..1_000).map(MemberId).collect());
    sim.act(peers[1], |room, now| room.send(Lane::Unreliable, many, "n", &1u64, false, now).unwrap_err());
    let nobody = Recipient::Members(Vec::new());
    sim.act(peers[1], |room, now| room.send(Lane::ReliableOrdered, nobody, "n", &1u64, false, now).unwrap());
    sim.run_for(500);
    assert!(sim.room(peers[1]).is_connected());
}

#[test]
fn a_message_to_someone_who_has_just_left_harms_nobody() {
    for lane in LANES {
        let mut sim = Sim::new(3);
        let peers = room(&mut sim, 2, Link::quic);
        sim.act(peers[2], |room, now| room.leave(now));
        sim.run_for(30);
        sim.act(peers[1], |room, now| {
            room.send(lane, Recipient::Member(MemberId(2)), "n", &1u64, false, now).unwrap();
            room.send(lane, Recipient::Members(vec![MemberId(0), MemberId(2)]), "n", &2u64, false, now)
                .unwrap();
        });
        sim.run_for(500);
        let number = heard(&mut sim, peers[0]);
        assert_eq!(number, [(1, "n".to_owned(), 2, None)], "{lane:?}");
        let log = sim.logs().values().next().unwrap().clone();
        let mut replay = parlor_hub::room::log::replay(log.into()).unwrap();
        replay.by_ref().for_each(|step| drop(step.unwrap()));
        // Sequenced messages replace each other before they leave.
        let sent = if lane == Lane::UnreliableSequenced { 1 } else { 2 };
        assert_eq!(replay.room().counters().unreachable, sent, "{lane:?}");
    }
}

#[test]
fn a_channel_of_the_games_own_carries_bytes() {
    let mut sim = Sim::new(4);
    let declare = |options: &mut Options| {
        options.channel(16, Lane::ReliableOrdered).unwrap();
        options.channel(40, Lane::Unreliable).unwrap();
    };
    let peers = room_with(&mut sim, 2, Link::quic, declare);
    let payload = Bytes::from_static(&[0xff, 0, 1]);
    for channel in [16, 40] {
        sim.act(peers[1], |room, now| {
            room.send_raw(ChannelId(channel), Recipient::Others, payload.clone(), true, now).unwrap();
        });
    }
    for channel in [0, 1, 3, 17, 99] {
        let error = sim.act(peers[1], |room, now| {
            room.send_raw(ChannelId(channel), Recipient::Others, payload.clone(), false, now).unwrap_err()
        });
        assert_eq!(error, RoomError::Misuse(ApiMisuse::NoSuchChannel(ChannelId(channel))));
    }
    sim.run_for(200);
    for peer in [peers[0], peers[2]] {
        let mut events = sim.take_events(peer);
        events.sort_by_key(|event| match event {
            Event::Raw { channel, .. } => channel.0,
            other => panic!("{other:?}"),
        });
        let channels = [ChannelId(16), ChannelId(40)];
        for (event, wanted) in events.iter().zip(channels) {
            let Event::Raw { from, channel, order, payload: got } = event else { panic!("{event:?}") };
            assert_eq!((*from, *channel, got), (Sender::Member(MemberId(1)), wanted, &payload));
            assert!(order.is_some());
        }
        assert_eq!(events.len(), 2);
    }
}

/// A value whose encoding has this many bytes.
fn value_of(bytes: usize) -> parlor_sync::value::Value {
    let head = (1..12).map(|head| parlor_sync::value::Value::Bytes(vec![7; bytes - head].into()));
    let mut fits =
        head.filter(|value| value.encode(usize::MAX).expect("bytes can always be written").len() == bytes);
    fits.next().expect("some head makes it fit")
}

#[test]
fn the_largest_message_passes_on_every_lane_and_no_larger_one_is_taken() {
    for link in [Link::quic(), Link::websocket()] {
        for lane in LANES {
            let mut sim = Sim::new(5);
            let declare = |options: &mut Options| options.channel(16, lane).unwrap();
            let peers = room_with(&mut sim, 2, || link, declare);
            let (largest, larger) =
                (value_of(limits::MESSAGE_BYTES_MAX), value_of(limits::MESSAGE_BYTES_MAX + 1));
            let kind = "k".repeat(limits::LABEL_BYTES_MAX);
            sim.act(peers[1], |room, now| {
                room.send(lane, Recipient::Others, &kind, &largest, true, now).unwrap();
                let error = room.send(lane, Recipient::Others, "k", &larger, true, now).unwrap_err();
                let too_large =
                    ApiMisuse::MessageTooLarge { bytes: limits::MESSAGE_BYTES_MAX + 1, max: 64 * 1024 };
                assert_eq!(error, RoomError::Misuse(too_large));
            });
            // A room forwards one such message at a time.
            sim.run_for(1_000);
            sim.act(peers[1], |room, now| {
                let too_large =
                    ApiMisuse::MessageTooLarge { bytes: limits::MESSAGE_BYTES_MAX + 1, max: 64 * 1024 };
                let raw = |more| Bytes::from(vec![9; limits::MESSAGE_BYTES_MAX + more]);
                room.send_raw(ChannelId(16), Recipient::Others, raw(0), true, now).unwrap();
                let error = room.send_raw(ChannelId(16), Recipient::Others, raw(1), true, now).unwrap_err();
                assert_eq!(error, RoomError::Misuse(too_large));
            });
            sim.run_for(1_000);
            for peer in [peers[0], peers[2]] {
                let events = sim.take_events(peer);
                assert_eq!(events.len(), 2, "{lane:?} over {link:?}");
                for event in events {
                    match event {
                        Event::Message(message) => assert_eq!(message.value, largest),
                        Event::Raw { payload, .. } => assert_eq!(payload.len(), limits::MESSAGE_BYTES_MAX),
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_can_be_sent_before_the_room_is_open_or_after_it_is_closed() {
    let mut sim = Sim::new(6);
    let host = sim.enter(Options::host("tanks"), Link::quic());
    let send = |room: &mut parlor_client_core::RoomCore, now| {
        room.send(Lane::Unreliable, Recipient::Others, "n", &1u64, false, now)
    };
    let early = sim.act(host, send).unwrap_err();
    assert!(matches!(early, RoomError::Misuse(ApiMisuse::NotOpen { .. })), "{early}");
    sim.run_for(500);
    sim.act(host, |room, now| room.leave(now));
    let late = sim.act(host, send).unwrap_err();
    assert!(matches!(late, RoomError::Misuse(ApiMisuse::Closed(_))), "{late}");
}

#[test]
fn what_was_sent_before_leaving_still_arrives() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let peers = room(&mut sim, 1, || Link::quic().jitter_ms(30));
        sim.act(peers[1], |room, now| {
            for number in 0..50u64 {
                room.send(Lane::ReliableOrdered, Recipient::Others, "bye", &number, false, now).unwrap();
            }
            room.leave(now);
        });
        sim.run_for(2_000);
        assert_eq!(heard(&mut sim, peers[0]).len(), 50);
        assert_eq!(sim.room(peers[0]).player_count(), 1);
    });
}

#[test]
fn a_sender_that_is_too_fast_is_told_to_wait_and_loses_nothing() {
    for link in [Link::quic(), Link::websocket()] {
        let mut sim = Sim::new(21);
        let host = sim.host(Options::host("tanks"), link);
        let code = sim.code(host);
        let (fast, reader) = (sim.join(code, link), sim.join(code, link));
        let mut said = 0_u32;
        let mut was_full = false;
        for _ in 0..200 {
            sim.act(fast, |room, now| {
                loop {
                    let text = format!("{said:>20000}");
                    match room.send(Lane::ReliableOrdered, Recipient::Others, "n", &text, false, now) {
                        Ok(()) => said += 1,
                        Err(RoomError::Full) => break was_full = true,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
            sim.run_for(50);
        }
        assert!(was_full, "{said} messages of 20 kB in 10 s never found anything full");
        sim.run_for(10_000);
        for peer in [host, reader] {
            assert_eq!(sim.room(peer).player_count(), 3, "nobody is disconnected for it");
            let got: Vec<u32> = sim
                .events(peer)
                .iter()
                .filter_map(|event| match event {
                    Event::Message(message) => {
                        Some(message.read::<String>().unwrap().trim().parse().unwrap())
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(got, (0..said).collect::<Vec<_>>());
        }
    }
}

#[test]
fn m12_swapped_packets_lose_no_event() {
    for_seeds(4, |seed| {
        let mut sim = Sim::new(seed);
        let link = || Link::quic().latency_ms(30).jitter_ms(60).reordered(500);
        let peers = room(&mut sim, 3, link);
        let rounds = 60u64;
        for number in 0..rounds {
            for peer in &peers {
                sim.act(*peer, |room, now| {
                    for (kind, lane) in [("ordered", Lane::ReliableOrdered), ("any", Lane::ReliableUnordered)]
                    {
                        room.send(lane, Recipient::Others, kind, &number, false, now).expect("it is small");
                    }
                    let me = room.local_id().expect("the room is open");
                    let value = parlor_sync::value::Value::from(i64::try_from(number).expect("it is small"));
                    room.set_player_data(me, "round", Some(&value)).expect("it is its own");
                });
            }
            sim.run_for(40);
        }
        sim.run_for(3_000);
        for (peer, me) in peers.iter().zip(0u32..) {
            let data: Vec<(u32, String)> = sim
                .events(*peer)
                .iter()
                .filter_map(|event| match event {
                    Event::PlayerData { id, value: Some(value), .. } => Some((id.0, value.to_string())),
                    _ => None,
                })
                .collect();
            let all = heard(&mut sim, *peer);
            for from in (0..4).filter(|from| *from != me) {
                let numbers = |kind: &str| -> Vec<u64> {
                    let of = all.iter().filter(|(by, of, ..)| (*by, of.as_str()) == (from, kind));
                    of.map(|(_, _, number, _)| *number).collect()
                };
                assert_eq!(
                    numbers("ordered"),
                    (0..rounds).collect::<Vec<_>>(),
                    "seed {seed}: {from} to {me}"
                );
                let mut any = numbers("any");
                any.sort_unstable();
                assert_eq!(any, (0..rounds).collect::<Vec<_>>(), "seed {seed}: {from} to {me}");
                let told: Vec<&str> =
                    data.iter().filter(|(of, _)| *of == from).map(|(_, value)| value.as_str()).collect();
                let wanted: Vec<String> = (0..rounds).map(|number| number.to_string()).collect();
                assert_eq!(told, wanted, "seed {seed}: data of {from} at {me}");
            }
        }
    });
}
