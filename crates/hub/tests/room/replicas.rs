//! Members' own states.

use crate::harness::{House, Pos, RATE, schema, settings, setup};
use bytes::Bytes;
use parlor_hub::room::Setup;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::wire::replica::OwnState;
use parlor_proto::{MemberId, PeerMisbehaved, channel};
use parlor_sync::audience::Viewer;
use parlor_sync::replicator::{Template, Tolerance};
use parlor_sync::schema::{ComponentId, Kind, RowWriter, Schema};
use rand_chacha::rand_core::Rng;
use std::collections::BTreeMap;
use std::time::Duration;

fn template() -> Template {
    Template::of::<Pos>().build().expect("it is a template")
}

/// Writes a member's own state: at `x`.
fn write(house: &mut House, member: MemberId, x: f32) {
    write_row(house, member, |row| row.set(0, &[x, 0.0, 0.0]));
}

fn write_row(house: &mut House, member: MemberId, fields: impl FnOnce(&mut RowWriter<'_>)) {
    let Some(own) = &mut house.end(member).own else { panic!("{member} has a state") };
    let entity = own.world.entities().next().expect("it has one entity");
    let component = own.world.schema().get(ComponentId(0)).expect("it has one component").clone();
    let (mut lanes, mut blobs) = (vec![0; component.lanes()], vec![Bytes::new(); component.blobs()]);
    let mut row = RowWriter::new(&component, &mut lanes, &mut blobs);
    fields(&mut row);
    row.finish().expect("it fits");
    own.world.write_row(entity, ComponentId(0), &lanes, &blobs).expect("it fits");
}

fn written(house: &mut House, member: MemberId) -> Vec<i32> {
    let own = house.end(member).own.as_ref().expect("it has a state");
    let entity = own.world.entities().next().expect("it has one entity");
    own.world.read_row(entity, ComponentId(0)).expect("it is there").expect("it was written").0.to_vec()
}

const MEMBERS: [MemberId; 4] = [MemberId(0), MemberId(1), MemberId(2), MemberId(3)];

fn four(seed: u64, schema: &Schema) -> House {
    let mut house = House::new(seed, RoomKind::PlayerHosted, schema, 3);
    MEMBERS.iter().for_each(|member| house.own(*member, &template()));
    house
}

#[test]
fn everybody_ends_with_the_states_of_all_others_whatever_is_lost() {
    for seed in 0..8 {
        eprintln!("seed {seed}");
        let mut house = four(seed, &schema());
        house.loss_per_mille = 250;
        let mut late = None;
        for second in 0..3 {
            house.run(Duration::from_secs(1), |house| {
                for member in MEMBERS {
                    let x = (house.now.as_millis() % 5_000) as f32 / 100.0 * (member.0 + 1) as f32;
                    write(house, member, x);
                }
            });
            if second == 1 {
                late = Some(house.join());
            }
        }
        house.settle();
        assert!(house.faults.is_empty(), "{:?}", house.faults);
        let expected: BTreeMap<MemberId, Vec<i32>> =
            MEMBERS.iter().map(|member| (*member, written(&mut house, *member))).collect();
        let everybody = MEMBERS.into_iter().chain(late);
        for reader in everybody {
            for (source, lanes) in expected.iter().filter(|(source, _)| **source != reader) {
                assert_eq!(house.end(reader).state_of(*source).as_ref(), Some(lanes), "{source} at {reader}");
            }
            assert!(house.end(reader).state_of(reader).is_none(), "nobody is sent its own");
        }
        house.assert_replays();
    }
}

#[test]
fn who_is_far_is_sent_less_often_and_what_came_last_still_arrives() {
    let near_by = Schema::builder().replicate::<Pos>().interest("pos", "at", 100.0, 120.0).build();
    let mut house = four(1, &near_by.expect("it is within bounds"));
    house.jitter_ms = 1;
    // Members 0 and 1 stand together, 3 is far away.
    house.run(Duration::from_secs(4), |house| {
        let wobble = (house.tick().0 % 7) as f32;
        for (member, x) in [(0, 0.0), (1, 0.0), (2, 50.0), (3, 400.0)] {
            write(house, MemberId(member), x + wobble);
        }
    });
    let packets = |house: &mut House, reader: u32, source: u32| {
        let (_, replica) = &house.end(MemberId(reader)).states[&MemberId(source)];
        replica.counters().taken
    };
    let (near, middle, far) =
        (packets(&mut house, 0, 1), packets(&mut house, 0, 2), packets(&mut house, 0, 3));
    let steps = u64::from(RATE.hz()) * 4;
    assert!(near > steps * 8 / 10, "{near} of {steps}");
    assert!(middle < near * 3 / 4 && far < middle / 2 && far >= 4 * 3, "{near}, {middle}, {far}");
    house.settle();
    let last = written(&mut house, MemberId(3));
    assert_eq!(house.end(MemberId(0)).state_of(MemberId(3)), Some(last));
    assert!(!house.room.has_waiting());
}

#[test]
fn who_leaves_is_forgotten() {
    let mut house = four(2, &schema());
    MEMBERS.iter().for_each(|member| write(&mut house, *member, 1.0));
    house.settle();
    house.leave(MemberId(3));
    house.settle();
    let late = house.join();
    house.settle();
    assert!(house.end(late).states.keys().eq(&MEMBERS[..3]));
}

/// The violations that the hub detects for messages on the channel.
fn faults(say: impl Fn(&mut House)) -> Vec<(MemberId, PeerMisbehaved)> {
    let mut house = four(3, &schema());
    MEMBERS.iter().for_each(|member| write(&mut house, *member, 1.0));
    house.settle();
    say(&mut house);
    house.settle();
    // The others are not affected.
    write(&mut house, MemberId(0), 2.0);
    house.settle();
    let last = written(&mut house, MemberId(0));
    assert_eq!(house.end(MemberId(1)).state_of(MemberId(0)), Some(last));
    house.faults
}

#[test]
fn who_breaks_its_own_stream_is_at_fault_alone() {
    let own = |schema: Option<Bytes>, packet: &[u8]| {
        OwnState { schema, packet: Bytes::copy_from_slice(packet) }.encode()
    };
    let other = Template::builder("other").build().expect("it is a template").form().schema().encode();
    let bad = [
        own(None, &[0x80; 30]),
        own(None, &[]),
        own(Some(other), &[4, 0, 0, 0, 0, 9, 0, 0, 0]),
        own(Some(Schema::default().encode()), &[4, 0, 0, 0, 0, 9, 0, 0, 0]),
        Bytes::from_static(&[2]),
    ];
    for message in bad {
        let faults = faults(|house| house.say(MemberId(2), channel::REPLICAS, message.clone()));
        assert!(
            matches!(
                &faults[..],
                [(MemberId(2), PeerMisbehaved::BadState { .. } | PeerMisbehaved::Malformed { .. })]
            ),
            "{message:?}: {faults:?}"
        );
    }
}

#[test]
fn a_stream_without_a_schema_or_with_one_that_is_no_template_is_refused() {
    for schema in [None, Some(Bytes::from_static(b"no schema")), Some(Schema::default().encode())] {
        let mut house = House::new(4, RoomKind::PlayerHosted, &Schema::default(), 2);
        let packet = Bytes::from_static(&[4, 0, 0, 0, 0, 9, 0, 0, 0]);
        house.say(MemberId(2), channel::REPLICAS, OwnState { schema, packet }.encode());
        house.run(Duration::from_secs(1), |_| {});
        assert!(matches!(&house.faults[..], [(MemberId(2), PeerMisbehaved::BadState { .. })]));
    }
}

#[test]
fn a_state_of_more_than_one_entity_is_refused() {
    let faults = faults(|house| {
        let own = house.end(MemberId(2)).own.as_mut().expect("it has a state");
        own.world.spawn(None).expect("there is room");
    });
    assert!(
        matches!(&faults[..], [(MemberId(2), PeerMisbehaved::BadState { detail })] if detail.contains("entity"))
    );
}

#[test]
fn threat_12_a_flood_of_states_ends_its_senders_session_alone() {
    let large = Template::builder("large").field("bytes", Kind::bytes(2_000), Tolerance::default());
    let large = large.build().expect("it is a template");
    let mut house = four(5, &schema());
    let sender = house.join();
    house.own(sender, &large);
    house.run(Duration::from_secs(4), |house| {
        write(house, MemberId(0), house.tick().0 as f32);
        let mut noise = vec![0; 1_000];
        house.rng.fill_bytes(&mut noise);
        write_row(house, sender, |row| row.set(0, &noise));
    });
    assert_eq!(house.faults, [], "this much is allowed");
    let said = house.end(sender).said.clone().expect("it said something");
    assert!(said.len() > 1_000);
    (0..200).for_each(|_| house.say(sender, channel::REPLICAS, said.clone()));
    write(&mut house, MemberId(0), -1.0);
    house.settle();
    assert_eq!(house.faults, [(sender, PeerMisbehaved::TooMuchState)]);
    let last = written(&mut house, MemberId(0));
    assert_eq!(house.end(MemberId(1)).state_of(MemberId(0)), Some(last), "the others lose nothing");
}

#[test]
fn threat_12_the_states_of_all_others_together_fit_a_receivers_budget() {
    let bytes_per_second = 16_000;
    let large = Template::builder("large").field("bytes", Kind::bytes(2_000), Tolerance::default());
    let large = large.build().expect("it is a template");
    let settings = settings(RoomKind::PlayerHosted, &schema());
    let narrow = Setup { state_bytes_per_second: bytes_per_second, ..setup(settings) };
    let mut house = House::of(6, narrow, 3);
    MEMBERS.iter().for_each(|member| house.own(*member, &large));
    house.run(Duration::from_secs(5), |house| {
        for member in MEMBERS {
            let mut noise = vec![0; 700];
            house.rng.fill_bytes(&mut noise);
            write_row(house, member, |row| row.set(0, &noise));
        }
    });
    let expected = MEMBERS.map(|member| house.end(member).state_bytes);
    let most = bytes_per_second as usize * 6 * 11 / 10;
    assert!(expected.iter().all(|bytes| (most / 2..most).contains(bytes)), "{expected:?}, at most {most}");
    for (reader, source) in [(0, 1), (0, 2), (0, 3), (3, 0)] {
        let (_, replica) = &house.end(MemberId(reader)).states[&MemberId(source)];
        assert!(replica.counters().taken > 20, "everybody gets something of everybody");
    }
    house.settle();
    for (reader, source) in [(0, 3), (1, 0), (3, 2)].map(|(a, b)| (MemberId(a), MemberId(b))) {
        let replica = &house.end(reader).states[&source].1;
        assert_eq!(replica.world().hash(Viewer::Member(reader)), house.own_hash(source, reader));
    }
    assert!(house.faults.is_empty());
}
