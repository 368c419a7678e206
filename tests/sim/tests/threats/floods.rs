//! Threat 12: a sender that floods harms only itself.

use crate::world::{Reading, World};
use bytes::Bytes;
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::envelope::{Recipient, Sender};
use parlor_proto::{ConnectionId, channel, limits};
use std::time::Duration;

const TICK_MS: u64 = 33;
/// Bytes of a busy game per tick, and the factor of the flood.
const BYTES: usize = 2_000;
const TIMES: usize = 100;

fn filled(bytes: usize) -> Bytes {
    vec![7; bytes].into()
}

/// Messages of each member that reached a peer.
fn count(world: &mut World, peer: ConnectionId, members: usize) -> (Vec<usize>, Vec<ToMember>) {
    let (said, control) = world.take_said(peer);
    let mut counts = vec![0; members];
    for it in &said {
        if let Sender::Member(member) = it.from {
            counts[member.0 as usize] += 1;
        }
    }
    (counts, control)
}

#[test]
fn threat_12_a_sender_at_a_hundredfold_loses_its_own_messages_and_nobody_elses() {
    let mut world = World::new(1);
    let members = world.room(7);
    let flooder = members[7];
    members.iter().for_each(|member| drop(world.take_messages(*member)));
    let ticks = 90;
    for tick in 0..ticks {
        for member in &members {
            // A sender before the flood is at the head of every queue, and the first to be dropped from a
            // full one.
            let times = if *member == flooder { TIMES } else { 1 };
            for _ in 0..times {
                let sent = world.send(*member, channel::MESSAGE_UNRELIABLE, Recipient::Others, filled(BYTES));
                sent.expect("an unreliable message is taken");
            }
            if *member != flooder && tick % 3 == 0 {
                let sent = world.send(*member, channel::MESSAGE_ORDERED, Recipient::Others, filled(100));
                sent.expect("its queue is empty");
            }
        }
        world.pass(Duration::from_millis(TICK_MS));
    }
    world.pass(Duration::from_secs(1));
    for (at, member) in members.iter().enumerate() {
        let (came, control) = count(&mut world, *member, members.len());
        for (id, came) in came.into_iter().enumerate().filter(|(id, _)| *id != at) {
            if id != 7 {
                assert_eq!(came, ticks + ticks / 3, "from {id} to {at}");
                continue;
            }
            let seconds = ticks as u64 * TICK_MS / 1_000 + 1;
            let most = (limits::PAYLOAD_BYTES_MAX as u64 + seconds * 128 * 1024) / BYTES as u64 + 1;
            assert!(came as u64 <= most, "{came} of the flood came to {at}, more than {most}");
            assert!(came > ticks, "what it may send does come: {came}");
        }
        let told = control.iter().filter(|it| **it == ToMember::Throttled).count();
        assert_eq!(told, usize::from(*member == flooder), "the sender is told, once");
        assert!(world.is_in(*member));
    }
}

#[test]
fn threat_12_a_room_has_a_budget_of_its_own() {
    let mut world = World::new(2);
    let members = world.room(15);
    members.iter().for_each(|member| drop(world.take_messages(*member)));
    for _ in 0..40 {
        for member in &members {
            for _ in 0..3 {
                let _ = world.send(*member, channel::MESSAGE_UNRELIABLE, Recipient::Others, filled(10_000));
            }
        }
        world.pass(Duration::from_millis(50));
    }
    let came: usize = members.iter().map(|member| world.take_said(*member).0.len()).sum();
    let most = (8 + 3 * 8) * 1024 * 1024 / 10_000;
    assert!(came <= most, "{came} messages were passed on, more than {most}");
    assert!(came > most / 3, "what the room may send does come: {came}");
}

#[test]
fn threat_12_a_fast_reliable_sender_is_held_back_and_no_guest_that_reads_is_closed() {
    // To all of them, and to one.
    for to_one in [false, true] {
        let mut world = World::new(3);
        let members = world.room(6);
        // Three attackers that cooperate, and guests that receive everything a fifth of a second later.
        let (guests, flooders) = (&members[1..4], &members[4..7]);
        guests.iter().for_each(|guest| world.read(*guest, Reading::Later));
        let mut refused = [0; 3];
        for _ in 0..60 {
            for (flooder, refused) in flooders.iter().zip(&mut refused) {
                let id = world.peer(guests[0]).member.expect("it is in").1;
                let to = if to_one { Recipient::Member(id) } else { Recipient::Others };
                for _ in 0..60 {
                    let sent = world.send(*flooder, channel::MESSAGE_UNORDERED, to.clone(), filled(BYTES));
                    *refused += u32::from(sent.is_err());
                }
            }
            for _ in 0..4 {
                world.pass(Duration::from_millis(50));
            }
            guests.iter().for_each(|guest| world.deliver(*guest));
        }
        assert!(members.iter().all(|member| world.is_in(*member)), "nobody is closed");
        assert!(refused.iter().all(|count| *count > 60), "each is told that it sends too much: {refused:?}");
    }
}

#[test]
fn threat_12_player_data_is_within_the_same_budget() {
    let mut world = World::new(4);
    let members = world.room(3);
    let guests = &members[..3];
    guests.iter().for_each(|guest| world.read(*guest, Reading::Later));
    let me = world.peer(members[3]).member.expect("it is in").1;
    let mut refused = 0;
    for _ in 0..100 {
        for key in (0..8).cycle().take(40) {
            let value = Some(filled(900));
            let data = parlor_proto::wire::control::PlayerData { member: me, key: format!("k{key}"), value };
            let set = parlor_proto::wire::control::ToHub::SetData(data);
            let message = parlor_proto::session::Outgoing::new(channel::CONTROL, set.encode());
            refused += u32::from(world.say(members[3], message).is_err());
        }
        world.pass(Duration::from_millis(20));
        world.pass(Duration::from_millis(20));
        guests.iter().for_each(|guest| world.deliver(*guest));
    }
    assert!(members.iter().all(|member| world.is_in(*member)), "nobody is closed");
    assert!(refused > 100, "it sets its data far faster than that is passed on, and is told: {refused}");
}

#[test]
fn what_is_within_reason_waits_and_all_of_it_comes_in_order() {
    let mut world = World::new(5);
    let members = world.room(15);
    members.iter().for_each(|member| drop(world.take_messages(*member)));
    // At the start of a match all send their pictures to all: too much for one moment, but legitimate.
    for member in &members {
        for part in 0..4u8 {
            let payload = vec![part; 4_000].into();
            world
                .send(*member, channel::MESSAGE_ORDERED, Recipient::Others, payload)
                .expect("its queue is empty");
        }
    }
    for _ in 0..100 {
        world.pass(Duration::from_millis(20));
    }
    for member in &members {
        let (said, control) = world.take_said(*member);
        assert_eq!(said.len(), 15 * 4);
        for other in 0..16u32 {
            let parts: Vec<u8> = said
                .iter()
                .filter(|it| matches!(it.from, Sender::Member(member) if member.0 == other))
                .map(|it| it.payload[0])
                .collect();
            assert!(parts.is_empty() || parts == [0, 1, 2, 3], "{parts:?}");
        }
        assert!(!control.contains(&ToMember::Throttled));
        assert!(world.is_in(*member));
    }
}

#[test]
fn a_message_of_full_size_passes_on_every_lane() {
    let mut world = World::new(6);
    let members = world.room(15);
    members.iter().for_each(|member| drop(world.take_messages(*member)));
    for lane in [channel::MESSAGE_UNRELIABLE, channel::MESSAGE_ORDERED, channel::MESSAGE_UNORDERED] {
        let payload = filled(limits::MESSAGE_BYTES_MAX + limits::LABEL_BYTES_MAX);
        world.send(members[3], lane, Recipient::Others, payload).expect("it is as large as a message may be");
        for _ in 0..100 {
            world.pass(Duration::from_millis(20));
        }
        for member in members.iter().filter(|member| **member != members[3]) {
            assert_eq!(world.take_said(*member).0.len(), 1, "{lane} to {member}");
        }
    }
}
