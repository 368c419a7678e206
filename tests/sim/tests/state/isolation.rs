//! Threat 13: nothing of one room reaches another.

use parlor_client_core::Options;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{ChannelId, Lane, MemberId};
use parlor_sim::{Link, PeerId, Rng, SEEDS, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use parlor_sync::value::Value;

const ROOMS: usize = 3;

/// A mark in everything that a member of a room sends.
fn canary(room: usize) -> String {
    format!("canary-of-room-{room}")
}

struct Member {
    peer: PeerId,
    room: usize,
}

fn options(options: Options, room: usize, rng: &mut Rng) -> Options {
    let mut options = Options { name: format!("{} {}", canary(room), rng.below(100)), ..options };
    options.channel(16, Lane::ReliableUnordered).expect("the number is free");
    options
}

fn to(rng: &mut Rng) -> Recipient {
    let member = MemberId(u32::try_from(rng.below(6)).expect("it is small"));
    rng.pick(&[
        Recipient::Authority,
        Recipient::Others,
        Recipient::Everyone,
        Recipient::Member(member),
        Recipient::Members(vec![member]),
    ])
}

/// A random action of a member. Forbidden ones are refused here or in the hub.
fn operate(sim: &mut Sim, member: &Member, rng: &mut Rng) {
    let text = canary(member.room);
    let lane = rng.pick(&[Lane::ReliableOrdered, Lane::ReliableUnordered, Lane::Unreliable]);
    let (kind, to, stamp) = (rng.below(9), to(rng), rng.per_mille(300));
    let whom = MemberId(u32::try_from(rng.below(6)).expect("it is small"));
    let audience = rng.pick(&[Audience::All, Audience::members([whom])]);
    let key = format!("{text}/{}", rng.below(8));
    sim.act(member.peer, |room, now| {
        let _ = match kind {
            0 | 1 => room.send(lane, to, &text, &text, stamp, now),
            2 => room.send_raw(ChannelId(16), to, text.clone().into(), stamp, now),
            3 => room.send_input(&text),
            4 | 5 => room.set(&key, &text, audience),
            6 => room.set_player_data(whom, "color", Some(&Value::Text(text.clone()))),
            7 if now.as_micros() % 7 == 0 => room.kick(whom, &text),
            _ if now.as_micros() % 29 == 0 => {
                room.leave(now);
                Ok(())
            }
            _ => Ok(()),
        };
    });
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn threat_13_no_byte_of_a_room_reaches_another() {
    for_seeds(SEEDS, |seed| {
        let (mut sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let mut members = Vec::new();
        let mut codes = Vec::new();
        for room in 0..ROOMS {
            let peer = sim.host(options(Options::host("tanks"), room, &mut rng), Link::any(&mut rng));
            codes.push(sim.code(peer));
            members.push(Member { peer, room });
        }
        for _ in 0..150 {
            if rng.per_mille(60) {
                let room = rng.index(ROOMS);
                let join = options(Options::join("tanks", codes[room]), room, &mut rng);
                let link = Link::any(&mut rng);
                members.push(Member { peer: sim.enter(join, link), room });
            }
            let index = rng.index(members.len());
            operate(&mut sim, &members[index], &mut rng);
            sim.run_for(rng.below(30));
        }
        sim.run_for(1_000);
        let mut own = 0;
        for member in &members {
            for packet in sim.received(member.peer) {
                for room in 0..ROOMS {
                    let found = contains(&packet.bytes, &canary(room));
                    own += usize::from(found);
                    assert!(!found || room == member.room, "room {room} in a packet to room {}", member.room);
                }
            }
        }
        assert!(own > 0, "the search finds what is there: {own}");
    });
}
