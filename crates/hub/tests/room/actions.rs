//! Members' actions on entities.

use crate::harness::{HOST, House, Label, schema};
use bytes::Bytes;
use parlor_proto::wire::action::{Action, ActionRefusal, AskedBy, Decision, RefusedAction};
use parlor_proto::wire::control::{ToHub, ToMember};
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{EntityId, Epoch, MemberId, PeerMisbehaved};
use parlor_sync::audience::Audience;
use std::time::Duration;

const ADA: MemberId = MemberId(1);
const BOB: MemberId = MemberId(2);

fn open(entity: EntityId) -> Action {
    Action { entity, name: "open".into(), value: Bytes::from_static(&[0x2a]) }
}

/// Two guests, and entities of Ada, of Bob, of no owner, and one that Bob does not see.
fn house() -> (House, [EntityId; 4]) {
    let mut house = House::new(1, RoomKind::PlayerHosted, &schema(), 2);
    let world = &mut house.host.world;
    let entities =
        [Some(ADA), Some(BOB), None, Some(ADA)].map(|owner| world.spawn(owner).expect("there is room"));
    for entity in entities {
        world.insert(entity, &Label { text: "a thing".into() }).expect("it fits");
    }
    world.set_audience(entities[3], Audience::members([])).expect("it is there");
    house.settle();
    (house, entities)
}

fn refusals(house: &mut House, member: MemberId) -> Vec<(EntityId, ActionRefusal)> {
    let control = std::mem::take(&mut house.end(member).control);
    let refused = control.into_iter().filter_map(|message| match message {
        ToMember::ActionRefused(RefusedAction { entity, name, why }) => {
            assert_eq!(name, "open");
            Some((entity, why))
        }
        _ => None,
    });
    refused.collect()
}

#[test]
fn what_a_member_asks_of_its_own_reaches_the_authority_with_its_name() {
    let (mut house, [adas, _, nobodys, hidden]) = house();
    for entity in [adas, hidden] {
        house.act(ADA, &open(entity));
    }
    house.act(HOST, &open(nobodys));
    house.settle();
    let asked = |from, entity| AskedBy { from, epoch: Epoch(0), action: open(entity) };
    assert_eq!(house.end(HOST).asked, [asked(ADA, adas), asked(ADA, hidden), asked(HOST, nobodys)]);
    assert_eq!((house.room.counters().actions, house.room.counters().actions_refused), (3, 0));
    assert_eq!(refusals(&mut house, ADA), []);
}

#[test]
fn what_a_member_asks_of_anothers_is_refused_and_counted() {
    let (mut house, [adas, bobs, nobodys, hidden]) = house();
    let gone = EntityId { slot: bobs.slot, generation: bobs.generation.wrapping_add(1) };
    let far = EntityId { slot: u16::MAX, generation: 0 };
    for entity in [adas, bobs, nobodys, hidden, gone, far] {
        house.act(BOB, &open(entity));
    }
    house.settle();
    assert_eq!(house.end(HOST).asked, [AskedBy { from: BOB, epoch: Epoch(0), action: open(bobs) }]);
    let expected = [
        (adas, ActionRefusal::NotOwner),
        (nobodys, ActionRefusal::NotOwner),
        // "Not owner" would reveal that it exists.
        (hidden, ActionRefusal::NoSuchEntity),
        (gone, ActionRefusal::NoSuchEntity),
        (far, ActionRefusal::NoSuchEntity),
    ];
    assert_eq!(refusals(&mut house, BOB), expected);
    assert_eq!(refusals(&mut house, ADA), [], "it is told to nobody else");
    assert_eq!(house.room.counters().actions_refused, 5);
    assert!(house.faults.is_empty());
    house.assert_replays();
}

#[test]
fn the_gate_follows_a_transfer() {
    let (mut house, [adas, ..]) = house();
    house.host.world.set_owner(adas, Some(BOB)).expect("it is there");
    house.settle();
    house.act(ADA, &open(adas));
    house.act(BOB, &open(adas));
    house.settle();
    assert_eq!(house.end(HOST).asked, [AskedBy { from: BOB, epoch: Epoch(0), action: open(adas) }]);
    assert_eq!(refusals(&mut house, ADA), [(adas, ActionRefusal::NotOwner)]);
}

#[test]
fn the_authority_refuses_through_the_hub_and_nobody_else_does() {
    let (mut house, [adas, ..]) = house();
    let refused = RefusedAction { entity: adas, name: "open".into(), why: ActionRefusal::NotOwner };
    for member in [ADA, MemberId(77)] {
        house.ask_hub(HOST, &ToHub::RefuseAction { member, refused: refused.clone() });
    }
    house.settle();
    assert_eq!(refusals(&mut house, ADA), [(adas, ActionRefusal::NotOwner)]);
    assert_eq!((house.room.counters().actions_refused, house.room.counters().unreachable), (1, 1));
    house.ask_hub(BOB, &ToHub::RefuseAction { member: ADA, refused });
    house.run(Duration::from_secs(1), |_| {});
    let how = PeerMisbehaved::NotAuthority { what: "the refusal of an action" };
    assert_eq!(house.faults, [(BOB, how)]);
    assert_eq!(refusals(&mut house, ADA), []);
}

#[test]
fn an_action_that_cannot_be_read_ends_its_senders_session_alone() {
    let (mut house, [adas, ..]) = house();
    house.say(BOB, parlor_proto::channel::ACTIONS, Bytes::from_static(&[1, 0, 0, 0, 0]));
    house.act(ADA, &open(adas));
    house.settle();
    assert!(matches!(&house.faults[..], [(BOB, PeerMisbehaved::Malformed { what: "an action", .. })]));
    assert_eq!(house.end(HOST).asked.len(), 1);
}

fn decided(house: &mut House, member: MemberId) -> Vec<Vec<Decision>> {
    let control = std::mem::take(&mut house.end(member).control);
    let decided = control.into_iter().filter_map(|message| match message {
        ToMember::ActionsDecided(decisions) => Some(decisions),
        _ => None,
    });
    decided.collect()
}

#[test]
fn m3_decisions_of_the_authority_reach_the_member_alone_and_nobody_else_decides() {
    let (mut house, _) = house();
    let by_game = ActionRefusal::ByGame { reason: "no_ammo".into() };
    let decisions =
        vec![Decision { number: 0, refusal: None }, Decision { number: 1, refusal: Some(by_game) }];
    house.ask_hub(HOST, &ToHub::DecideActions { member: ADA, decisions: decisions.clone() });
    house.settle();
    assert_eq!(decided(&mut house, ADA), std::slice::from_ref(&decisions));
    assert_eq!(decided(&mut house, BOB), [] as [Vec<Decision>; 0]);
    assert_eq!(house.room.counters().actions_refused, 1);
    house.ask_hub(BOB, &ToHub::DecideActions { member: ADA, decisions });
    house.run(Duration::from_secs(1), |_| {});
    let how = PeerMisbehaved::NotAuthority { what: "a decision about actions" };
    assert_eq!(house.faults, [(BOB, how)]);
    assert_eq!(decided(&mut house, ADA), [] as [Vec<Decision>; 0]);
}
