//! The distribution of the room's state from the host to all members.

use crate::harness::{HOST, House, Label, Pos, RATE, schema, settings, setup};
use bytes::Bytes;
use parlor_hub::room::{Input, Setup};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{EntityId, LinkKind, MemberId, PeerMisbehaved, channel};
use parlor_sync::audience::Audience;
use parlor_sync::limits::BASELINE_AGE_MAX;
use parlor_sync::schema::Schema;
use rand_chacha::rand_core::Rng;
use std::collections::BTreeSet;
use std::time::Duration;

fn house(seed: u64, guests: u32) -> House {
    House::new(seed, RoomKind::PlayerHosted, &schema(), guests)
}

/// Changes the host's world at random. Only member 1 sees entities whose slot is a multiple of four.
fn play(house: &mut House, entities: &mut Vec<EntityId>) {
    let mut random = || house.rng.next_u32();
    let (verb, which, amount) = (random() % 10, random() as usize, random());
    let world = &mut house.host.world;
    let chosen = (!entities.is_empty()).then(|| which % entities.len());
    match (verb, chosen) {
        (0..=2, _) if entities.len() < 40 => {
            let entity = world.spawn(None).expect("there is room");
            if entity.slot.is_multiple_of(4) {
                world.set_audience(entity, Audience::members([MemberId(1)])).expect("it is there");
            }
            world.insert(entity, &Label { text: format!("thing {amount}") }).expect("it fits");
            entities.push(entity);
        }
        (3, Some(at)) => world.despawn(entities.swap_remove(at)).expect("it is there"),
        (4, Some(at)) => {
            let owner = (amount % 4 != 0).then_some(MemberId(amount % 4));
            world.set_owner(entities[at], owner).expect("it is there");
        }
        (5, Some(at)) => {
            world.remove::<Label>(entities[at]).expect("it is there");
        }
        _ => {}
    }
    for (number, entity) in (0u16..).zip(entities.iter()) {
        let along = |axis: u16| (house.now.as_millis() % 10_000) as f32 / 50.0 + f32::from(number * axis);
        let pos = Pos { at: [along(1), along(2), -along(3)] };
        house.host.world.insert(*entity, &pos).expect("it fits");
    }
}

#[test]
fn every_guest_ends_with_what_the_host_shows_it_whatever_is_lost() {
    for seed in 0..8 {
        eprintln!("seed {seed}");
        let mut house = house(seed, 2);
        house.loss_per_mille = 250;
        let mut entities = Vec::new();
        house.run(Duration::from_secs(3), |house| play(house, &mut entities));
        let late = house.join();
        house.run(Duration::from_secs(2), |house| play(house, &mut entities));
        house.leave(MemberId(2));
        house.run(Duration::from_secs(1), |house| play(house, &mut entities));
        house.settle();
        house.assert_all_equal();
        assert!(house.host.world.entities().count() > 3 && house.faults.is_empty(), "{:?}", house.faults);
        assert!(house.room.counters().updates > 50);
        assert!(!house.end(late).seen.is_empty());
        house.assert_replays();
    }
}

/// A room with a guest on a lossless, ordered network, and two entities that the guest has. The returned
/// function writes the entity of a number.
fn quiet_house() -> (House, impl Fn(&mut House, usize)) {
    let mut house = house(1, 1);
    house.jitter_ms = 1;
    let spawned: Vec<EntityId> =
        (0..2).map(|_| house.host.world.spawn(None).expect("there is room")).collect();
    let write = move |house: &mut House, which: usize| {
        let text = format!("as of {:?}", house.now);
        house.host.world.insert(spawned[which], &Label { text }).expect("it fits");
    };
    (0..2).for_each(|which| write(&mut house, which));
    house.settle();
    house.assert_all_equal();
    (house, write)
}

const A_MOMENT: Duration = Duration::from_millis(100);

#[test]
fn what_a_guest_ignored_because_it_came_too_late_is_sent_again_though_nothing_else_happens() {
    let (mut house, write) = quiet_house();
    // The host's later updates overtake it, until it is too old to serve as a baseline.
    house.detour = RATE.interval() * (BASELINE_AGE_MAX + 20);
    write(&mut house, 0);
    house.run(A_MOMENT, |_| {});
    house.detour = Duration::ZERO;
    house.run(RATE.interval() * (BASELINE_AGE_MAX + 5), |_| {});
    write(&mut house, 1);
    let old = house.end(MemberId(1)).replica.counters().old;
    house.settle();
    assert_eq!(house.end(MemberId(1)).replica.counters().old, old + 1, "one packet came too late");
    house.assert_all_equal();
    assert!(!house.room.has_waiting());
    house.assert_replays();
}

#[test]
fn a_guest_whose_last_missing_packet_came_is_told_that_it_has_all_though_nothing_else_happens() {
    let (mut house, write) = quiet_house();
    // While one packet is delayed for long, the next one is lost and its content is sent again.
    house.detour = Duration::from_secs(1);
    write(&mut house, 0);
    house.run(A_MOMENT, |_| {});
    (house.detour, house.doomed) = (Duration::ZERO, 1);
    write(&mut house, 1);
    house.settle();
    assert_eq!(house.doomed, 0, "one packet was lost");
    house.assert_all_equal();
    assert!(!house.room.has_waiting());
    house.assert_replays();
}

#[test]
fn what_is_not_for_a_guest_is_never_sent_to_it() {
    let mut house = house(7, 3);
    house.loss_per_mille = 100;
    let (mut entities, mut hidden) = (Vec::new(), BTreeSet::new());
    house.run(Duration::from_secs(4), |house| {
        play(house, &mut entities);
        let owned = |entity: &&EntityId| house.host.world.owner(**entity).is_ok_and(|owner| owner.is_some());
        // An owner sees its own entity whatever the audience.
        let free = entities.iter().filter(|entity| entity.slot.is_multiple_of(4) && !owned(entity));
        hidden.extend(free.map(|entity| entity.slot));
        for entity in entities.iter().filter(|entity| entity.slot.is_multiple_of(4)) {
            house.host.world.set_owner(*entity, None).expect("it is there");
        }
    });
    house.settle();
    assert!(hidden.len() > 2);
    assert!(!house.end(MemberId(1)).seen.is_disjoint(&hidden), "member 1 sees them");
    for guest in [2, 3] {
        let seen = &house.end(MemberId(guest)).seen;
        assert!(seen.iter().all(|slot| !slot.is_multiple_of(4)) && seen.len() > 2, "{seen:?}");
    }
}

#[test]
fn a_host_that_breaks_the_stream_is_named_and_ends_the_room() {
    for packet in
        [Bytes::new(), Bytes::from_static(&[0x80; 40]), Bytes::from_static(&[4, 0, 0, 0, 0, 9, 0, 0, 0])]
    {
        let mut house = house(1, 1);
        house.say(HOST, channel::STATE, packet.clone());
        house.run(Duration::from_secs(1), |_| {});
        if let Some((member, how)) = house.faults.first() {
            assert!(*member == HOST && matches!(how, PeerMisbehaved::BadState { .. }), "{how:?}");
            assert!(house.room.has_ended());
        } else {
            panic!("{packet:?} was taken for state");
        }
    }
}

#[test]
fn a_guest_that_writes_state_is_at_fault_and_the_others_lose_nothing() {
    let mut house = house(2, 2);
    let mut entities = Vec::new();
    house.run(Duration::from_secs(1), |house| play(house, &mut entities));
    house.say(MemberId(1), channel::STATE, Bytes::from_static(&[4, 0, 0, 0, 0, 9, 0, 0, 0]));
    house.run(Duration::from_secs(1), |house| play(house, &mut entities));
    house.settle();
    assert_eq!(house.faults, [(MemberId(1), PeerMisbehaved::NotAuthority { what: "state" })]);
    house.assert_all_equal();
}

#[test]
fn a_room_in_which_nothing_changes_sends_nothing() {
    let mut house = house(3, 2);
    let mut entities = Vec::new();
    house.run(Duration::from_secs(1), |house| play(house, &mut entities));
    house.settle();
    let updates = house.room.counters().updates;
    let control = house.end(MemberId(1)).control.len();
    assert!(!house.room.has_waiting());
    house.run(Duration::from_secs(5), |_| {});
    assert_eq!(house.room.counters().updates, updates);
    assert_eq!(house.end(MemberId(1)).control.len(), control);
    house.assert_all_equal();
}

#[test]
fn a_guest_is_sent_what_is_near_its_own_and_nothing_else() {
    let near_by = Schema::builder().replicate::<Pos>().replicate::<Label>().interest("pos", "at", 50.0, 60.0);
    let mut house = House::new(11, RoomKind::Dedicated, &near_by.build().expect("it is within bounds"), 2);
    house.loss_per_mille = 150;
    let world = &mut house.host.world;
    let mut put = |x: f32, owner: Option<MemberId>| {
        let entity = world.spawn(owner).expect("there is room");
        world.insert(entity, &Pos { at: [x, 0.0, 0.0] }).expect("it fits");
        entity
    };
    let (eye, rock) = (put(0.0, Some(MemberId(1))), put(10.0, None));
    let (other, tree) = (put(400.0, Some(MemberId(2))), put(410.0, None));
    house.settle();
    let has = |house: &mut House, member: u32| -> Vec<u16> {
        house.end(MemberId(member)).replica.world().entities().map(|entity| entity.slot).collect()
    };
    assert_eq!(has(&mut house, 1), [eye.slot, rock.slot]);
    assert_eq!(has(&mut house, 2), [other.slot, tree.slot]);
    assert_eq!(house.end(MemberId(2)).seen, BTreeSet::from([other.slot, tree.slot]), "never more than that");
    // Member 1 moves there, and learns what it sees on the way and what leaves its view.
    house.loss_per_mille = 150;
    let mut x = 0.0;
    house.run(Duration::from_secs(4), |house| {
        x = (x + 5.0_f32).min(395.0);
        house.host.world.insert(eye, &Pos { at: [x, 0.0, 0.0] }).expect("it fits");
    });
    house.settle();
    assert_eq!(has(&mut house, 1), [eye.slot, other.slot, tree.slot]);
    assert_eq!(has(&mut house, 2), [eye.slot, other.slot, tree.slot]);
    let replica = &house.end(MemberId(2)).replica;
    let there = replica.world().get::<Pos>(eye).expect("it sees it");
    assert_eq!((there, replica.settled()), (Some(Pos { at: [395.0, 0.0, 0.0] }), house.host.world.tick()));
    assert!(house.faults.is_empty());
    house.assert_replays();
}

#[test]
fn x7_a_member_is_sent_no_more_than_its_budget_and_whole_packets() {
    let slow = Setup { state_bytes_per_second: 10_000, ..setup(settings(RoomKind::Dedicated, &schema())) };
    let mut house = House::of(12, slow, 2);
    house.loss_per_mille = 50;
    let world = &mut house.host.world;
    let entities: Vec<EntityId> = (0..400).map(|_| world.spawn(None).expect("there is room")).collect();
    house.run(Duration::from_secs(6), |house| {
        for entity in &entities {
            let at = [0; 3].map(|_| (house.rng.next_u32() % 1_000) as f32 - 500.0);
            house.host.world.insert(*entity, &Pos { at }).expect("it fits");
        }
    });
    for member in [1, 2] {
        let packets = &house.end(MemberId(member)).packets;
        let bytes: usize = packets.iter().sum();
        let most = 10_000 * 7 * 11 / 10;
        assert!(bytes > most / 2 && bytes < most, "{bytes} bytes for {member}, at most {most}");
        assert!(bytes / packets.len() > 500, "{} packets of {bytes} bytes", packets.len());
    }
    house.settle();
    house.settle();
    house.assert_all_equal();
}

#[test]
fn a_member_is_made_no_more_state_than_its_path_carries() {
    let mut house = House::new(13, RoomKind::Dedicated, &schema(), 2);
    let world = &mut house.host.world;
    let entities: Vec<EntityId> = (0..400).map(|_| world.spawn(None).expect("there is room")).collect();
    let sent_in = |house: &mut House, seconds: u64| -> [usize; 2] {
        let sum = |house: &mut House| [1, 2].map(|id| house.end(MemberId(id)).packets.iter().sum::<usize>());
        let before = sum(house);
        house.run(Duration::from_secs(seconds), |house| {
            for entity in &entities {
                let at = [0; 3].map(|_| (house.rng.next_u32() % 1_000) as f32 - 500.0);
                house.host.world.insert(*entity, &Pos { at }).expect("it fits");
            }
        });
        let after = sum(house);
        [after[0] - before[0], after[1] - before[1]]
    };
    sent_in(&mut house, 1);
    house.tell(Input::Path { member: MemberId(1), bytes_per_second: 16_000 });
    sent_in(&mut house, 1);
    let [narrow, wide] = sent_in(&mut house, 4);
    assert!((45_000..=62_000).contains(&narrow), "{narrow} bytes in 4 s at 15,000 a second");
    assert!(wide > 2 * narrow, "the path of another changes nothing: {wide} bytes");
    let member = MemberId(1);
    house.tell(Input::Away { member, reason: LeaveReason::TimedOut });
    house.tell(Input::Back { member, link: LinkKind::Memory });
    sent_in(&mut house, 1);
    let [narrow, wide] = sent_in(&mut house, 4);
    assert!(narrow * 10 > wide * 9, "another link has another path: {narrow} bytes beside {wide}");
    house.settle();
    house.assert_all_equal();
    house.assert_replays();
}
