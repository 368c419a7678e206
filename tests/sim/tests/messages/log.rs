//! A room is replayed from its log.

use bytes::Bytes;
use parlor_client_core::{Options, Wish};
use parlor_hub::room::log::{self, LogError};
use parlor_hub::room::{Input, Output, Room, Setup};
use parlor_proto::session::DeliveryId;
use parlor_proto::wire::control::{LeaveReason, PlayerData, Presence, ToHub};
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::wire::handshake::{RoomKind, RoomSettings};
use parlor_proto::{
    ChannelId, ChannelTable, CloseReason, Epoch, Instant, Lane, LinkKind, MemberId, RoomId, TickRate, channel,
};
use parlor_sim::{Author, Link, Rng, SEEDS, Sim, for_seeds};
use parlor_sync::audience::Audience;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The room's outputs for each input, and the log.
struct Run {
    steps: Vec<(Instant, Input, Option<String>, Vec<Output>)>,
    log: Vec<u8>,
    /// Where the head and each entry end.
    ends: Vec<usize>,
}

fn setup(rng: &mut Rng) -> Setup {
    let kind = rng.pick(&[RoomKind::PlayerHosted, RoomKind::Dedicated, RoomKind::Match]);
    let code = rng.pick(&["MYROOM", "K7QM", "AURA2P"]).parse().expect("it is a code");
    Setup {
        id: RoomId(rng.below(1 << 40)),
        code,
        app: "tanks".into(),
        environment: rng.pick(&["", "test"]).into(),
        settings: RoomSettings {
            code: Some(code),
            secret: rng.per_mille(500).then(|| "sesame".into()),
            tick_rate: TickRate::new(60).expect("60 is a rate"),
            label: if kind == RoomKind::Match { "duel" } else { "" }.into(),
            keep: kind == RoomKind::Match && rng.per_mille(500),
            ..RoomSettings::new(kind, 8)
        },
        channels: ChannelTable::default(),
        opened: Instant::from_micros(rng.below(1 << 40)),
        state_bytes_per_second: 192 * 1024,
        spectators: rng.pick(&[0, 3]),
    }
}

/// A packet of the host's state, in which it has changed a key.
fn update(author: &mut Author, rng: &mut Rng) -> Bytes {
    let audience = rng.pick(&[Audience::All, Audience::members([MemberId(1)])]);
    author.set(&format!("key/{}", rng.below(9)), &rng.draw().to_string().into(), audience);
    author.packets().swap_remove(0)
}

fn message(rng: &mut Rng, author: &mut Author) -> Input {
    let member = |rng: &mut Rng| MemberId(u32::try_from(rng.below(6)).expect("it is small"));
    let garbage: Vec<u8> = (0..rng.below(40)).map(|_| rng.draw().to_le_bytes()[0]).collect();
    let (from, channel, payload) = match rng.below(6) {
        0 => (MemberId(0), channel::STATE, update(author, rng)),
        1 => (member(rng), channel::INPUT, garbage.into()),
        2 => {
            let to = [
                Recipient::Authority,
                Recipient::Others,
                Recipient::Member(member(rng)),
                Recipient::Everyone,
            ];
            let upward = Upward { to: rng.pick(&to), stamp: rng.per_mille(500), payload: garbage.into() };
            (member(rng), channel::MESSAGE_ORDERED, upward.encode())
        }
        3 => {
            let (member, value) = (member(rng), rng.per_mille(700).then(|| garbage.into()));
            let data = PlayerData { member, key: rng.pick(&["a", "b"]).into(), value };
            (member, channel::CONTROL, ToHub::SetData(data).encode())
        }
        4 => {
            let kick = ToHub::Kick { member: member(rng), reason: "because".into() };
            (MemberId(u32::from(rng.per_mille(100))), channel::CONTROL, kick.encode())
        }
        _ => (member(rng), ChannelId(u8::try_from(rng.below(20)).expect("it is small")), garbage.into()),
    };
    Input::Message { from, channel, key: 7, payload, epoch: Epoch(0) }
}

fn input(rng: &mut Rng, room: &Room, author: &mut Author) -> Input {
    let member =
        MemberId(u32::try_from(rng.below(u64::from(room.next_member().0) + 1)).expect("it is small"));
    match rng.below(20) {
        0 | 1 if room.has_seat(false) => Input::Join {
            name: format!("player {}", rng.below(100)),
            user: rng.per_mille(500).then(|| format!("user {}", rng.below(100))),
            link: rng.pick(&[LinkKind::Quic, LinkKind::WebSocket, LinkKind::Memory]),
            spectates: false,
        },
        // Half of the rooms take spectators.
        19 if room.has_seat(true) && rng.per_mille(500) => {
            Input::Join { name: "watcher".into(), user: None, link: LinkKind::Quic, spectates: true }
        }
        2 if member != MemberId(0) => Input::Leave {
            member,
            reason: rng.pick(&[
                LeaveReason::Left,
                LeaveReason::TimedOut,
                LeaveReason::Kicked { reason: "x".into() },
                LeaveReason::Unknown { code: 99 },
            ]),
        },
        2 if rng.per_mille(500) => Input::Forget { member },
        8 if member != MemberId(0) => Input::Lost { member, reason: LeaveReason::ConnectionLost },
        9 if room.has_free_seat(false) => Input::Returned {
            member,
            name: format!("player {}", rng.below(100)),
            user: None,
            link: LinkKind::Quic,
        },
        10 if rng.per_mille(300) => Input::Away { member, reason: LeaveReason::TimedOut },
        3 => {
            let number = rng.below(300);
            let delivery_id =
                rng.pick(&[DeliveryId::of_state(number), DeliveryId::of_replica(MemberId(2), number)]);
            Input::Fate { member, delivery_id: delivery_id.0, delivered: rng.per_mille(800) }
        }
        4 if rng.per_mille(200) => {
            let bytes_per_second = u32::try_from(rng.below(300_000)).expect("it is small");
            Input::Path { member, bytes_per_second }
        }
        4 if rng.per_mille(500) => Input::Writable { member, writable: rng.per_mille(500) },
        4 => {
            let rtt_ms = rng.per_mille(800).then(|| u32::try_from(rng.below(500)).expect("it is small"));
            Input::Measured(Presence { member, connected: true, slow: rng.per_mille(300), rtt_ms })
        }
        5..8 => Input::Flush,
        _ => message(rng, author),
    }
}

fn run(seed: u64, count: usize) -> Run {
    let mut rng = Rng::new(seed);
    let setup = setup(&mut rng);
    let log = log::head(&setup);
    let mut run = Run { steps: Vec::new(), ends: vec![log.len()], log };
    let (mut room, mut now) =
        (Room::new(setup).expect("its schema is one of a room"), Instant::from_millis(rng.below(1 << 30)));
    let mut author = Author::new();
    for index in 0..count {
        let input = match index {
            0 => Input::Join { name: "host".into(), user: None, link: LinkKind::Quic, spectates: false },
            _ if index + 1 == count => Input::End { reason: CloseReason::ServerShutdown },
            _ => input(&mut rng, &room, &mut author),
        };
        now += Duration::from_micros(rng.below(50_000));
        run.log.extend(log::entry(now, &input));
        run.ends.push(run.log.len());
        let refused = room.handle(input.clone(), now).err().map(|(member, how)| format!("{member}: {how}"));
        let outputs = std::iter::from_fn(|| room.poll_output()).collect();
        run.steps.push((now, input, refused, outputs));
    }
    run
}

#[test]
fn a_replay_gives_the_same_outputs_one_for_one() {
    for_seeds(SEEDS, |seed| {
        let run = run(seed, 300);
        let kinds = run.steps.iter().flat_map(|(.., outputs)| outputs);
        let sends = |output: &&Output| matches!(output, Output::Send { .. });
        assert!(kinds.clone().filter(sends).count() > 50);
        let state = |output: &&Output| matches!(output, Output::Send { message, .. } if message.channel == channel::STATE);
        let replay = log::replay(run.log.into()).unwrap();
        let is_match = replay.room().setup().settings.kind == RoomKind::Match;
        assert!(is_match || kinds.filter(state).count() > 5);
        assert!(run.steps.iter().any(|(_, _, refused, _)| refused.is_some()));
        let mut steps = run.steps.into_iter();
        for step in replay {
            let step = step.unwrap();
            assert_eq!(Some((step.at, step.input, step.refused, step.outputs)), steps.next());
        }
        assert_eq!(steps.next(), None);
    });
}

#[test]
fn a_log_that_was_cut_replays_up_to_the_cut() {
    for_seeds(SEEDS / 10, |seed| {
        let run = run(seed, 40);
        for cut in 0..run.log.len() {
            let log = Bytes::copy_from_slice(&run.log[..cut]);
            let replay = match log::replay(log) {
                Ok(replay) => replay,
                Err(LogError::NotALog | LogError::Malformed { entry: 0, .. }) if cut < run.ends[0] => {
                    continue;
                }
                Err(error) => panic!("cut at {cut}: {error}"),
            };
            let whole = run.ends.iter().filter(|end| **end <= cut).count() - 1;
            let (mut good, mut error) = (0, None);
            for step in replay {
                match step {
                    Ok(step) => {
                        assert_eq!(step.outputs, run.steps[good].3);
                        good += 1;
                    }
                    Err(found) => error = Some(found),
                }
            }
            assert_eq!(good, whole, "cut at {cut}");
            let is_clean = run.ends.contains(&cut);
            match error {
                None => assert!(is_clean, "cut at {cut}"),
                Some(LogError::Malformed { entry, .. }) => {
                    assert!(!is_clean && entry == whole as u64, "cut at {cut}, entry {entry}");
                }
                Some(error) => panic!("cut at {cut}: {error}"),
            }
        }
    });
}

#[test]
fn garbage_is_a_named_error_and_never_a_panic() {
    for_seeds(SEEDS * 4, |seed| {
        let mut rng = Rng::new(seed);
        let mut log = run(seed % 5, 60).log;
        for _ in 0..=rng.below(8) {
            let at = rng.index(log.len());
            match rng.below(3) {
                0 => log[at] ^= 1 << rng.below(8),
                1 => log[at] = rng.draw().to_le_bytes()[0],
                _ => drop(log.splice(at..(at + rng.index(9)).min(log.len()), [0xff])),
            }
        }
        let replayed = catch_unwind(AssertUnwindSafe(|| {
            log::replay(log.clone().into()).map(|replay| replay.filter_map(Result::err).count())
        }));
        match replayed.expect("a log never makes it panic") {
            Ok(errors) => assert!(errors <= 1, "there are no steps after an error"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        assert_eq!(log::replay(Bytes::from_static(b"#!/bin/sh")).unwrap_err(), LogError::NotALog);
        assert_eq!(log::replay(Bytes::from_static(b"PARLORLOG\x63")).unwrap_err(), LogError::Version(0x63));
    });
}

#[test]
fn a_hub_records_what_its_rooms_were_told() {
    for_seeds(SEEDS / 2, |seed| {
        let (mut sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let mut options = Options::host("tanks");
        let intent = Wish::Host {
            code: None,
            max_players: 4,
            tick_rate: TickRate::new(20).unwrap(),
            dedicated: false,
        };
        (options.intent, options.secret) = (intent, Some("sesame".into()));
        let host = sim.host(options, Link::any(&mut rng));
        let join = Options { secret: Some("sesame".into()), ..Options::join("tanks", sim.code(host)) };
        let guests = [(); 2].map(|()| sim.enter(join.clone(), Link::any(&mut rng)));
        sim.play(host, |room, _| {
            room.set("tick", &room.tick_number().unwrap().0, Audience::All).unwrap();
        });
        sim.run_for(2_000);
        sim.act(guests[1], |room, now| {
            room.send(Lane::Unreliable, Recipient::Others, "n", &1, true, now).unwrap()
        });
        sim.run_for(500);
        sim.act(guests[0], |room, now| room.leave(now));
        sim.run_for(2_000);
        let stays = sim.room(guests[1]).local_id().unwrap();
        let log = sim.logs().values().next().unwrap().clone();
        let mut replay = log::replay(log.into()).unwrap();
        let sends = replay.by_ref().map(|step| step.unwrap().outputs.len()).sum::<usize>();
        assert!(sends > 50, "{sends} outputs");
        let room = replay.room();
        assert_eq!(room.member_ids().collect::<Vec<_>>(), [MemberId(0), stays]);
        assert_eq!(room.setup().code, sim.code(host));
        assert_eq!(room.setup().settings.tick_rate.hz(), 20);
        assert_eq!(room.setup().settings.secret.as_deref(), Some("sesame"));
        assert!(room.counters().updates > 20);
        assert_eq!(room.len(), sim.hub().room(sim.code(host)).unwrap().players);
    });
}
