use super::super::{Audience, Outcome, Replica, StateStamp, Update};
use super::*;
use crate::value::Value;

const ME: MemberId = MemberId(1);
const OTHER: MemberId = MemberId(2);

/// A store with a publisher for `ME`.
struct World {
    store: Store,
    publisher: Publisher,
    sent: Vec<(Sent, StateSequence)>,
}

impl World {
    fn new() -> Self {
        World { store: Store::new(), publisher: Publisher::new(Viewer::Member(ME)), sent: Vec::new() }
    }

    fn set(&mut self, key: &str, value: impl Into<Value>, audience: Audience) -> &mut Self {
        self.store.set(key, &value.into(), audience).unwrap();
        self
    }

    fn commit(&mut self) -> &mut Self {
        self.store.commit(StateStamp::default()).unwrap();
        self
    }

    fn poll(&mut self) -> Option<Update> {
        let (bytes, sent) = self.publisher.poll_update(&self.store)?;
        let update = Update::decode(bytes).unwrap();
        self.sent.push((sent, update.head.sequence));
        Some(update)
    }

    /// The last update of this sequence was delivered.
    fn delivered(&mut self, sequence: u64) {
        let (sent, _) = self.sent.iter().rfind(|(_, brings)| brings.0 == sequence).unwrap();
        self.publisher.delivered(*sent);
    }

    /// The last update of this sequence was lost.
    fn lost(&mut self, sequence: u64) {
        let (sent, _) = self.sent.iter().rfind(|(_, brings)| brings.0 == sequence).unwrap();
        self.publisher.lost(*sent);
    }
}

fn ids(update: &Update) -> (Vec<u32>, Vec<u32>) {
    (update.removed.iter().map(|id| id.0).collect(), update.entries.iter().map(|entry| entry.id.0).collect())
}

#[test]
fn nothing_is_sent_without_news() {
    let mut world = World::new();
    assert_eq!(world.poll(), None);
    world.set("a", 1, Audience::All).commit();
    assert_eq!(world.poll().unwrap().head.source, Source::Complete);
    assert_eq!(world.poll(), None);
    // What others see is none of the receiver's business, nor is who else sees what it sees.
    world.set("b", 1, Audience::members([OTHER])).commit();
    world.set("a", 1, Audience::members([ME])).commit();
    assert_eq!(world.poll(), None);
}

#[test]
fn a_receiver_that_sees_nothing_learns_that_there_is_nothing() {
    let mut world = World::new();
    world.set("a", 1, Audience::members([OTHER])).commit();
    let update = world.poll().unwrap();
    assert_eq!((update.head.source, update.entries.len()), (Source::Complete, 0));
    assert_eq!(world.poll(), None);
}

#[test]
fn updates_are_relative_to_what_was_delivered() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).set("b", 1, Audience::All).commit();
    world.poll().unwrap();
    world.set("a", 2, Audience::All).commit();
    assert_eq!(world.poll().unwrap().head.baseline, StateSequence::EMPTY);
    world.delivered(1);
    world.set("b", 2, Audience::All).commit();
    let update = world.poll().unwrap();
    assert_eq!((update.head.baseline, ids(&update)), (StateSequence(1), (vec![], vec![0, 1])));
    assert!(update.entries.iter().all(|entry| entry.declared.is_none()));
    world.delivered(2);
    world.set("b", 3, Audience::All).commit();
    assert_eq!(ids(&world.poll().unwrap()), (vec![], vec![1]));
    assert_eq!(world.publisher.in_flight(), 2);
}

#[test]
fn only_the_newest_loss_is_made_up_for() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).commit();
    world.poll().unwrap();
    world.delivered(1);
    world.set("a", 2, Audience::All).commit();
    world.poll().unwrap();
    world.set("b", 3, Audience::All).commit();
    world.poll().unwrap();
    world.lost(2);
    assert_eq!(world.poll(), None);
    world.lost(3);
    assert_eq!(ids(&world.poll().unwrap()), (vec![], vec![0, 1]));
    world.lost(2);
    assert_eq!(world.poll(), None, "a loss is reported once");
    world.delivered(3);
    assert_eq!(world.publisher.baseline(), Some(StateSequence(3)));
}

#[test]
fn a_change_of_audience_does_not_hide_a_change_of_value() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).commit();
    world.poll().unwrap();
    world.delivered(1);
    world.set("a", 2, Audience::All).commit();
    world.poll().unwrap();
    world.set("a", 2, Audience::members([ME])).commit();
    world.lost(2);
    assert_eq!(ids(&world.poll().unwrap()), (vec![], vec![0]));
}

#[test]
fn a_key_that_goes_out_of_sight_is_removed_until_that_is_known() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).set("b", 1, Audience::members([OTHER])).commit();
    world.poll().unwrap();
    world.delivered(1);
    world.set("a", 1, Audience::members([OTHER])).commit();
    assert_eq!(ids(&world.poll().unwrap()), (vec![0], vec![]));
    world.store.remove("a");
    world.store.remove("b");
    world.commit();
    assert_eq!(world.poll(), None, "what it does not see any more may go without a word");
    world.delivered(2);
    world.set("c", 1, Audience::All).commit();
    assert_eq!(ids(&world.poll().unwrap()), (vec![], vec![2]));
}

#[test]
fn a_key_that_comes_back_into_sight_is_named_again() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).commit();
    world.poll().unwrap();
    world.delivered(1);
    world.set("a", 1, Audience::members([])).commit();
    world.poll().unwrap();
    world.set("a", 1, Audience::All).commit();
    let update = world.poll().unwrap();
    assert_eq!(ids(&update), (vec![], vec![0]));
    assert!(update.entries[0].declared.is_some(), "a receiver of the update between has forgotten it");
}

#[test]
fn a_receiver_is_told_of_its_own_inputs_only() {
    let mut world = World::new();
    let mut used = |acks: [(MemberId, u32); 2]| {
        let input_acks = acks.into_iter().map(|(member, tick)| (member, Tick(tick))).collect();
        world.store.commit(StateStamp { input_acks, ..StateStamp::default() }).unwrap();
        world.poll().map(|update| update.head.input_acks)
    };
    assert_eq!(used([(ME, 5), (OTHER, 7)]), Some(vec![(ME, Tick(5))]));
    assert_eq!(used([(ME, 5), (OTHER, 8)]), None);
    assert_eq!(used([(ME, 6), (OTHER, 8)]), Some(vec![(ME, Tick(6))]));
}

#[test]
fn hints_that_come_later_are_told() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).set("b", 1, Audience::All).commit();
    world.poll().unwrap();
    world.delivered(1);
    let hints = super::super::Hints::none().angle("x").unwrap();
    world.store.declare("a", hints.clone()).unwrap();
    world.commit();
    let update = world.poll().unwrap();
    assert_eq!(ids(&update), (vec![], vec![0]));
    assert_eq!(update.entries[0].declared.as_ref().unwrap().hints, hints);
}

#[test]
fn a_store_that_forgot_removals_is_looked_through() {
    let mut world = World::new();
    world.set("old", 1, Audience::All).set("kept", 1, Audience::All).commit();
    world.poll().unwrap();
    world.delivered(1);
    world.store.remove("old");
    for n in 0..=i64::try_from(crate::limits::TOMBSTONES_MAX).unwrap() {
        world.set("a", n, Audience::All).commit();
        world.store.remove("a");
        world.commit();
    }
    assert!(world.store.forgotten > StateSequence(1));
    assert_eq!(ids(&world.poll().unwrap()), (vec![1], vec![]));
}

#[test]
fn a_receiver_that_never_answers_costs_no_more_than_a_complete_update() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).commit();
    world.poll().unwrap();
    world.delivered(1);
    let mut sources = Vec::new();
    for n in 0..i64::try_from(REMOVED_MAX + 10).unwrap() {
        world.store.remove("bullet");
        world.commit();
        world.set("bullet", n, Audience::All).commit();
        sources.push(world.poll().unwrap().head.source);
    }
    assert_eq!(sources[..REMOVED_MAX], [Source::Delta; REMOVED_MAX]);
    assert!(world.publisher.gone.len() < 20 && world.publisher.in_flight() <= UPDATES_IN_FLIGHT_MAX);
    assert_eq!(sources.last(), Some(&Source::Complete));
    // What was sent before does not count any more, even if it arrives.
    world.publisher.delivered(world.sent[REMOVED_MAX].0);
    assert_eq!(world.publisher.baseline(), None);
}

#[test]
fn an_update_that_would_not_fit_is_complete() {
    let mut world = World::new();
    for n in 0..4_000 {
        world.store.next_key = KeyId(n * 100); // wide gaps, so that each removal takes two bytes
        world.set(&format!("{n:x}"), Value::Null, Audience::All).commit();
    }
    let mut replica = Replica::new();
    let (bytes, sent) = world.publisher.poll_update(&world.store).unwrap();
    assert!(matches!(replica.apply(bytes), Ok(Outcome::Taken(_))));
    world.publisher.delivered(sent);
    for n in 0..4_000 {
        world.store.remove(&format!("{n:x}"));
    }
    for n in 0..4 {
        world.set(&format!("chunk {n}"), "x".repeat(15_000), Audience::All);
    }
    world.commit();
    let (bytes, _) = world.publisher.poll_update(&world.store).unwrap();
    assert_eq!(Update::decode(bytes.clone()).unwrap().head.source, Source::Complete);
    assert!(matches!(replica.apply(bytes), Ok(Outcome::Taken(_))));
    assert_eq!(replica.hash(), world.store.hash(Viewer::Member(ME)));
}

#[test]
fn what_was_sent_before_a_restart_says_nothing() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).commit();
    world.poll().unwrap();
    world.publisher.restart();
    world.poll().unwrap();
    let before = world.sent[0];
    world.publisher.delivered(before.0);
    world.publisher.lost(before.0);
    assert_eq!((world.publisher.baseline(), world.publisher.in_flight()), (None, 1));
    assert_eq!(world.poll(), None);
    world.delivered(1);
    assert_eq!(world.publisher.baseline(), Some(StateSequence(1)));
}

#[test]
fn a_transfer_says_so_until_it_is_delivered() {
    let mut world = World::new();
    world.set("a", 1, Audience::All).commit();
    world.poll().unwrap();
    world.delivered(1);
    world.publisher.begin_transfer();
    assert_eq!(world.poll().unwrap().head.source, Source::Transfer);
    world.lost(1);
    assert_eq!(world.poll().unwrap().head.source, Source::Transfer);
    world.delivered(1);
    world.set("a", 2, Audience::All).commit();
    assert_eq!(world.poll().unwrap().head.source, Source::Delta);
}

/// A newcomer is not flooded: while a large complete update is under way, nothing else is.
#[test]
fn a_large_complete_update_goes_alone() {
    let mut world = World::new();
    for key in 0..4 {
        world.set(&format!("key {key}"), 1, Audience::All);
    }
    world.store.set("large", &Value::Text("x".repeat(4_000)), Audience::All).unwrap();
    world.commit();
    assert_eq!(world.poll().unwrap().head.source, Source::Complete);
    world.set("key 1", 2, Audience::All).commit();
    assert_eq!((world.poll(), world.publisher.is_due()), (None, false));
    world.lost(1);
    assert!(world.publisher.is_due());
    assert_eq!(world.poll().unwrap().head.source, Source::Complete);
    world.set("key 1", 3, Audience::All).commit();
    assert_eq!(world.poll(), None);
    world.delivered(2);
    assert!(world.publisher.is_due());
    let update = world.poll().unwrap();
    assert_eq!((update.head.source, update.entries.len()), (Source::Delta, 1));
}
