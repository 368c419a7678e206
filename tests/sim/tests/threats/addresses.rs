//! Threat 11: whatever its addresses, an envelope reaches only members of its sender's room.

use crate::world::World;
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::cursor::Write;
use parlor_proto::wire::envelope::Downward;
use parlor_proto::{ChannelId, ConnectionId, channel};
use parlor_sim::{Rng, SEEDS, for_seeds};
use std::collections::BTreeSet;
use std::time::Duration;

/// A generated envelope, with its meaning as far as it is valid.
struct Said {
    bytes: Vec<u8>,
    /// Ids of the members that it names; `None` if it is malformed.
    names: Option<BTreeSet<u32>>,
}

fn id(rng: &mut Rng) -> u64 {
    match rng.below(4) {
        // Members, past members, those of larger rooms, and numbers that are no member ids.
        0..2 => rng.below(6),
        2 => rng.below(300),
        _ => rng.pick(&[u64::from(u32::MAX), 1 << 32, (1 << 62) - 1, 1 << 16]),
    }
}

/// An envelope from the grammar at the head of `proto/src/wire/envelope.rs`, with random mistakes.
fn envelope(rng: &mut Rng, me: u32, members: u32, payload: &[u8]) -> Said {
    let stamp = if rng.per_mille(300) { 0x80 } else { 0 };
    let kind = rng.below(7);
    let mut bytes = Vec::new();
    bytes.put_u8(u8::try_from(kind).expect("it is small") | stamp);
    let everyone = || (0..members).collect::<BTreeSet<u32>>();
    let small = |id: u64| u32::try_from(id).ok();
    let mut names = match kind {
        0 => Some([0].into()),
        1 => Some(everyone().into_iter().filter(|id| *id != me).collect()),
        2 => {
            let id = id(rng);
            bytes.put_varint(id);
            small(id).map(|id| [id].into())
        }
        3 => {
            let mut ids: Vec<u64> = (0..rng.below(5)).map(|_| id(rng)).collect();
            if rng.per_mille(800) {
                ids.sort_unstable();
                ids.dedup();
            }
            let is_ascending = ids.is_sorted_by(|a, b| a < b);
            let declared = if rng.per_mille(900) { ids.len() as u64 } else { rng.below(500) };
            bytes.put_varint(declared);
            ids.iter().for_each(|id| bytes.put_varint(*id));
            let small: Option<BTreeSet<u32>> = ids.iter().map(|id| small(*id)).collect();
            small.filter(|_| is_ascending && declared == ids.len() as u64)
        }
        4 => Some(everyone()),
        _ => None,
    };
    bytes.put(payload);
    if rng.per_mille(50) {
        // Random bytes.
        bytes = (0..rng.below(60)).map(|_| rng.draw().to_le_bytes()[0]).collect();
        names = None;
    }
    Said { bytes, names }
}

/// A room and its members, by id.
fn refill(world: &mut World, rooms: &mut [Vec<ConnectionId>]) {
    for room in rooms.iter_mut() {
        if room.is_empty() || !room.iter().all(|member| world.is_in(*member)) {
            room.iter().for_each(|member| world.cut(*member));
            *room = world.room(3);
        }
    }
    world.settle();
    rooms.iter().flatten().for_each(|member| drop(world.take_messages(*member)));
}

#[test]
fn threat_11_no_envelope_reaches_anybody_but_members_of_the_room() {
    for_seeds(SEEDS, |seed| {
        let (mut world, mut rng) = (World::new(seed), Rng::new(seed));
        let mut rooms = vec![Vec::new(), Vec::new(), Vec::new()];
        let mut reached = 0;
        for number in 0..200u32 {
            world.pass(Duration::from_millis(100));
            refill(&mut world, &mut rooms);
            let (at, me) = (rng.index(rooms.len()), rng.index(4));
            let from = rooms[at][me];
            let payload = [&b"payload-"[..], &number.to_le_bytes()].concat();
            let said = envelope(&mut rng, u32::try_from(me).expect("it is small"), 4, &payload);
            let lane = rng.pick(&[
                channel::MESSAGE_ORDERED,
                channel::MESSAGE_UNORDERED,
                channel::MESSAGE_UNRELIABLE,
            ]);
            let lane: ChannelId = lane;
            let others: BTreeSet<ConnectionId> = rooms
                .iter()
                .enumerate()
                .filter(|(room, _)| *room != at)
                .flat_map(|(_, room)| room)
                .copied()
                .collect();
            world.watch =
                Some(Box::new(move |to, _| assert!(!others.contains(&to), "a packet to another room")));
            world.say(from, Outgoing::new(lane, Bytes::from(said.bytes))).expect("its queue is empty");
            world.settle();
            world.watch = None;
            for (id, member) in rooms[at].iter().enumerate() {
                let id = u32::try_from(id).expect("it is small");
                let got = world.take_messages(*member).into_iter().filter(|it| it.channel == lane);
                let got: Vec<Downward> =
                    got.map(|it| Downward::decode(it.payload).expect("it is well")).collect();
                let is_meant = got.iter().any(|it| it.payload[..] == payload);
                if let Some(names) = &said.names {
                    assert_eq!(is_meant, names.contains(&id), "seed {seed}, message {number} to {id}");
                    reached += usize::from(is_meant);
                }
            }
        }
        assert!(reached > 50, "what is well said arrives: {reached}");
    });
}
