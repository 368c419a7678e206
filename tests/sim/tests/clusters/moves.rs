//! Rooms move to another node with the sessions of their members.

use super::{Room, moment, some_link};
use parlor_client_core::{Event, LinkState, Options};
use parlor_hub::Unmovable;
use parlor_sim::{APP, Link, Rng, for_seeds};

/// How long members have to connect to the other node.
const WARM_MS: u64 = 500;

impl Room {
    /// Moves the room, and returns what each member is told until it is whole at `to` and some seconds more.
    fn moves(&mut self, to: usize, meanwhile: impl FnOnce(&mut Self)) -> Vec<Vec<Event>> {
        self.announce(to);
        self.sim.run_for(WARM_MS);
        self.goes(to, meanwhile)
    }

    /// As [`moves`](Self::moves), for a room whose move was announced.
    fn goes(&mut self, to: usize, meanwhile: impl FnOnce(&mut Self)) -> Vec<Vec<Event>> {
        self.members.iter().for_each(|peer| drop(self.sim.take_events(*peer)));
        // Sometimes longer than it takes until the room would say something by itself.
        let takes_ms = self.sim.now().as_micros() % 3 * 600 + 5;
        self.sim.give(self.code, to, (true, takes_ms)).expect("it was announced");
        meanwhile(self);
        // Until a member has heard of it, and for a second more, its game knows of no lost link.
        self.sim.run_for(1_200);
        // A server that died is asked until a greeting must have had its answer.
        for _ in 0..2_000 {
            self.sim.run_for(10);
            if self.is_together() {
                break;
            }
        }
        let places: Vec<_> = self
            .members
            .iter()
            .map(|peer| {
                (self.sim.node(*peer), self.sim.room(*peer).link_state(), self.sim.room(*peer).player_count())
            })
            .collect();
        assert!(self.is_together(), "it is not open again: {places:?} {}", self.sim.excerpt(300));
        self.sim.run_for(3_000);
        self.members.iter().map(|peer| self.sim.take_events(*peer)).collect()
    }

    fn announce(&mut self, to: usize) {
        for _ in 0..100 {
            match self.sim.announce_move(self.code, to) {
                Ok(()) => return,
                // Its members are on their way from the move before.
                Err(Unmovable::Busy) => self.sim.run_for(100),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("it is busy for ever");
    }

    /// Each number of each member came to each other one, once and in order.
    fn heard_all(&self) {
        let heard = self.heard.borrow();
        assert_eq!(heard.len(), 6);
        for ((peer, from), numbers) in heard.iter() {
            let is_next = |pair: &[u64]| pair[1] == pair[0] + 1;
            assert!(numbers.windows(2).all(is_next), "{peer} heard {from}: {numbers:?}");
        }
    }
}

/// What a game is told of a move, beside messages and state.
fn told(events: &[Event]) -> Vec<&Event> {
    events.iter().filter(|event| !matches!(event, Event::Message(_) | Event::State(_))).collect()
}

#[test]
fn a_room_moves_and_nobody_misses_a_word() {
    for_seeds(16, |seed| {
        let mut room = Room::open(seed, Options::host(APP), some_link);
        room.sim.run_for(4_000 + moment(seed));
        let names = room.names();
        for events in room.moves(1, |_| {}) {
            assert_eq!(told(&events), [&Event::Reopened { gap: false }]);
        }
        assert!(room.members.iter().all(|peer| room.sim.node(*peer) == 1));
        assert_eq!(room.names(), names);
        room.heard_all();
        room.is_the_hosts_world();
        assert_eq!(
            room.sim.owners().map(|(_, term, node)| (term, node)).collect::<Vec<_>>(),
            [(1, 0), (2, 1), (3, 1)]
        );
    });
}

#[test]
fn members_are_welcomed_one_way_after_the_move() {
    const WAY_MS: u64 = 50;
    for_seeds(4, |seed| {
        let mut room = Room::open(seed, Options::host(APP), |_| Link::quic().latency_ms(WAY_MS));
        room.sim.run_for(4_000 + moment(seed));
        room.announce(1);
        room.sim.run_for(WARM_MS);
        room.sim.give(room.code, 1, (true, 5)).expect("it was announced");
        // A claim after the close would take two ways more.
        room.sim.run_for(WAY_MS * 3 / 2);
        let nodes: Vec<_> = room.members.iter().map(|peer| room.sim.node(*peer)).collect();
        assert_eq!(nodes, [1, 1, 1]);
        room.sim.run_for(3_000);
        assert!(room.is_together());
        room.heard_all();
    });
}

#[test]
fn a_room_moves_over_poor_links_and_loses_nothing() {
    for_seeds(12, |seed| {
        let mut room = Room::open(seed, Options::host(APP), Link::any);
        room.sim.run_for(4_000 + moment(seed));
        for events in room.moves(1, |_| {}) {
            let gaps = events.iter().filter(|event| matches!(event, Event::Reopened { gap: true })).count();
            assert_eq!(gaps, 0, "{:?}", told(&events));
        }
        room.heard_all();
        room.is_the_hosts_world();
    });
}

#[test]
fn a_match_moves_and_its_order_goes_on() {
    for_seeds(8, |seed| {
        let mut room = Room::open(seed, Options::create_match(APP), some_link);
        room.sim.run_for(4_000 + moment(seed));
        let primary = room.sim.room(room.members[1]).primary();
        for events in room.moves(1, |_| {}) {
            assert_eq!(told(&events), [&Event::Reopened { gap: false }]);
        }
        assert!(room.members.iter().all(|peer| room.sim.room(*peer).primary() == primary));
        room.heard_all();
    });
}

#[test]
fn a_room_moves_again_and_again() {
    for_seeds(4, |seed| {
        let mut room = Room::open(seed, Options::host(APP), some_link);
        room.sim.run_for(2_000 + moment(seed));
        for to in [1, 2, 1, 2] {
            for events in room.moves(to, |_| {}) {
                assert_eq!(told(&events), [&Event::Reopened { gap: false }]);
            }
        }
        room.heard_all();
        room.is_the_hosts_world();
        assert!(room.sim.owners().map(|(_, term, _)| term).is_sorted_by(|one, next| one < next));
    });
}

#[test]
fn a_node_that_dies_when_it_has_given_a_room_away_takes_nothing_along() {
    for_seeds(8, |seed| {
        let mut room = Room::open(seed, Options::host(APP), some_link);
        room.sim.run_for(4_000 + moment(seed));
        // Its word that the room has moved is lost with it.
        for events in room.moves(1, |room| room.sim.kill(0)) {
            assert!(events.contains(&Event::Reopened { gap: false }), "{:?}", told(&events));
            assert!(!events.contains(&Event::Reopened { gap: true }), "{:?}", told(&events));
        }
        room.heard_all();
    });
}

#[test]
fn a_room_whose_new_node_dies_before_it_has_it_goes_on_at_another_one() {
    for_seeds(8, |seed| {
        let mut room = Room::open(seed, Options::host(APP), some_link);
        room.sim.run_for(4_000 + moment(seed));
        room.announce(1);
        room.sim.run_for(WARM_MS);
        room.sim.kill(1);
        for events in room.goes(1, |_| {}) {
            assert!(events.contains(&Event::Reopened { gap: false }), "{:?}", told(&events));
        }
        let nodes: Vec<_> = room.members.iter().map(|peer| room.sim.node(*peer)).collect();
        assert!(nodes[0] != 1 && nodes.iter().all(|node| *node == nodes[0]), "{nodes:?}");
        room.heard_all();
    });
}

#[test]
fn a_room_whose_new_node_dies_at_any_moment_is_at_one_node() {
    for_seeds(16, |seed| {
        let mut room = Room::open(seed, Options::host(APP), some_link);
        room.sim.run_for(6_000);
        let after = Rng::new(seed).below(300);
        room.moves(1, |room| {
            room.sim.run_for(after);
            room.sim.kill(1);
        });
        let heard = room.heard.borrow();
        for numbers in heard.values() {
            assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        }
        let nodes: Vec<_> = room.members.iter().map(|peer| room.sim.node(*peer)).collect();
        assert!(nodes[0] != 1 && nodes.iter().all(|node| *node == nodes[0]), "{nodes:?}");
        assert!(room.sim.owners().map(|(_, term, _)| term).is_sorted_by(|one, next| one < next));
    });
}

#[test]
fn a_move_that_the_store_does_not_take_changes_nothing() {
    for_seeds(8, |seed| {
        let mut room = Room::open(seed, Options::host(APP), some_link);
        room.sim.run_for(4_000 + moment(seed));
        room.announce(1);
        room.sim.run_for(WARM_MS);
        room.sim.give(room.code, 1, (false, moment(seed) / 10)).expect("it was announced");
        room.sim.run_for(8_000);
        for peer in &room.members {
            assert_eq!((room.sim.node(*peer), room.sim.room(*peer).link_state()), (0, LinkState::Connected));
            let lost = |event: &Event| matches!(event, Event::Reopened { .. } | Event::PlayerLeft { .. });
            assert!(!room.sim.events(*peer).iter().any(lost));
        }
        room.heard_all();
        room.is_the_hosts_world();
    });
}

#[test]
fn a_member_that_is_away_during_a_move_comes_back_to_all_it_missed() {
    for_seeds(6, |seed| {
        let mut room = Room::open(seed, Options::host(APP), |_| Link::quic());
        room.sim.run_for(6_000);
        let away = room.members[2];
        room.sim.silence(away, true);
        room.sim.run_for(Rng::new(seed).below(2_000));
        room.announce(1);
        room.sim.run_for(WARM_MS);
        room.sim.give(room.code, 1, (true, 5)).expect("it was announced");
        room.sim.run_for(3_000);
        room.sim.silence(away, false);
        room.sim.run_for(20_000);
        assert!(room.is_together(), "{}", room.sim.excerpt(300));
        room.heard_all();
    });
}
