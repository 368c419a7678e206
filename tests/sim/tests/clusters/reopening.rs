//! A node is killed at any step of a room, and its host or its first member reopens the room at another one.

use super::{GRACE, Room, moment, some_link};
use parlor_client_core::{Event, Options};
use parlor_proto::LinkKind;
use parlor_proto::wire::control::LeaveReason;
use parlor_sim::{APP, Link, for_seeds};
use std::time::Duration;

/// The bound within which a room is open again.
const REOPENED_MS: u64 = 5_000;

impl Room {
    /// Kills the node, and checks the room that is reopened.
    fn survives_the_node(&mut self, has_host: bool) {
        let names = self.names();
        let before = self.sim.room(self.members[0]).tick_number();
        self.members.iter().for_each(|peer| drop(self.sim.take_events(*peer)));
        self.sim.kill(0);
        for _ in 0..REOPENED_MS / 10 {
            self.sim.run_for(10);
            if self.is_whole() {
                break;
            }
        }
        assert!(self.is_whole(), "it is not open again");
        self.heard.borrow_mut().values_mut().for_each(|numbers| numbers.push(0));
        self.sim.run_for(3_000);
        assert_eq!(self.names(), names);
        for peer in self.members.clone() {
            let events = self.sim.take_events(peer);
            let told = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
            assert_eq!(told(|event| matches!(event, Event::Reopened { .. })), 1, "{events:?}");
            let others = told(|event| {
                matches!(event, Event::PlayerLeft { .. } | Event::PlayerJoined(_) | Event::Closed(_))
                    || matches!(event, Event::Despawned { .. } | Event::Reconnected { state_resynced: true })
            });
            assert_eq!(others, 0, "{events:?}");
        }
        self.check_heard();
        let owners: Vec<_> = self.sim.owners().collect();
        assert!(
            owners.iter().zip(1..).all(|(owner, term)| (owner.0, owner.1) == (self.code, term)),
            "{owners:?}"
        );
        assert!(owners.len() == 2 && owners[1].2 != 0, "one owner: {owners:?}");
        let host = self.sim.room(self.members[0]);
        let is_later = host.tick_number().zip(before).is_some_and(|(now, before)| now.is_newer_than(before));
        assert!(is_later && host.is_host() == has_host);
        if has_host {
            self.is_the_hosts_world();
        }
    }

    /// Each number came at most once and in its sender's order, and again after the node's death.
    fn check_heard(&self) {
        let heard = self.heard.borrow();
        assert_eq!(heard.len(), 6);
        for ((peer, from), numbers) in heard.iter() {
            let cut = numbers.iter().position(|number| *number == 0).expect("it was marked");
            let (before, after) = (&numbers[..cut], &numbers[cut + 1..]);
            assert!(!before.is_empty() && !after.is_empty(), "{peer} heard {from} {numbers:?}");
            let all: Vec<u64> = before.iter().chain(after).copied().collect();
            assert!(all.is_sorted_by(|one, next| one < next), "{peer} heard {from} {all:?}");
        }
    }
}

#[test]
fn a_room_whose_node_is_killed_goes_on_with_its_hosts_world() {
    for_seeds(12, |seed| {
        let mut room = Room::open(seed, Options::host(APP), some_link);
        room.sim.run_for(4_000 + moment(seed));
        room.survives_the_node(true);
    });
}

#[test]
fn a_room_whose_node_is_killed_goes_on_over_poor_links() {
    for_seeds(6, |seed| {
        let mut room = Room::open(seed, Options::host(APP), Link::any);
        room.sim.run_for(4_000 + moment(seed));
        room.survives_the_node(true);
    });
}

#[test]
fn a_match_whose_node_is_killed_goes_on_in_its_order() {
    for_seeds(8, |seed| {
        let mut room = Room::open(seed, Options::create_match(APP), some_link);
        room.sim.run_for(4_000 + moment(seed));
        room.survives_the_node(false);
    });
}

#[test]
fn a_node_that_is_slow_keeps_its_rooms() {
    for_seeds(6, |seed| {
        let mut room = Room::open(seed, Options::host(APP), |_| Link::quic());
        room.sim.run_for(10_000);
        room.members.iter().for_each(|peer| drop(room.sim.take_events(*peer)));
        room.sim.stall_hub(Duration::from_millis(1_000 + moment(seed) / 4));
        room.sim.run_for(8_000);
        for peer in &room.members {
            assert_eq!(room.sim.node(*peer), 0);
            let is_told = |event: &Event| !matches!(event, Event::Message(_) | Event::State(_));
            let told: Vec<&Event> = room.sim.events(*peer).iter().filter(|event| is_told(event)).collect();
            assert!(told.is_empty(), "{told:?}");
        }
        assert_eq!(room.sim.owners().count(), 1);
    });
}

#[test]
fn a_room_whose_host_died_with_its_node_is_over() {
    let mut room = Room::open(3, Options::host(APP), |_| Link::quic());
    room.sim.run_for(8_000);
    room.sim.crash(room.members[0]);
    room.sim.kill(0);
    let [_, one, other] = room.members[..] else { unreachable!("they are three") };
    room.sim.run_for(120_000);
    assert!([one, other].iter().all(|peer| room.sim.closed(*peer).is_some()), "nobody else has its world");
    assert_eq!(room.sim.owners().count(), 1);
}

#[test]
fn a_member_that_does_not_come_back_leaves_the_reopened_room() {
    let mut room = Room::open(5, Options::host(APP), |_| Link::quic());
    room.sim.run_for(8_000);
    let gone = room.members[2];
    let id = room.sim.room(gone).local_id().expect("it is in");
    room.sim.crash(gone);
    room.sim.kill(0);
    room.sim.run_for(u64::try_from(GRACE.as_millis()).expect("it is short") + 10_000);
    let host = room.members[0];
    assert_eq!(room.sim.room(host).player_count(), 2, "{}", room.sim.excerpt(400));
    let is_left = |event: &Event| matches!(event, Event::PlayerLeft { id: left, reason: LeaveReason::TimedOut | LeaveReason::ConnectionLost, .. } if *left == id);
    assert_eq!(room.sim.events(host).iter().filter(|event| is_left(event)).count(), 1);
}

#[test]
fn a_room_survives_the_death_of_two_nodes() {
    let mut room = Room::open(7, Options::host(APP), |_| Link::quic().as_kind(LinkKind::Quic));
    room.sim.run_for(10_000);
    room.survives_the_node(true);
    let second = room.sim.node(room.members[0]);
    room.members.clone().into_iter().for_each(|peer| room.talk(peer));
    room.sim.run_for(10_000);
    room.sim.kill(second);
    room.sim.run_for(REOPENED_MS);
    let left = (1..3).find(|node| *node != second).expect("there is a third");
    assert!(room.members.iter().all(|peer| room.sim.node(*peer) == left), "{}", room.sim.excerpt(300));
    assert_eq!(room.sim.owners().map(|(_, term, _)| term).collect::<Vec<_>>(), [1, 2, 3]);
}
