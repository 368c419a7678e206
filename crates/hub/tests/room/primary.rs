//! The choice of the primary, and the receivers of messages to it.

use crate::harness::{HOST, House, schema};
use parlor_hub::room::{Input, Output};
use parlor_proto::wire::control::{Presence, ToMember};
use parlor_proto::wire::envelope::{Recipient, Upward};
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{Epoch, MemberId, channel};

const ADA: MemberId = MemberId(1);
const BOB: MemberId = MemberId(2);

/// The primary last announced to a member.
fn told(house: &mut House, member: MemberId) -> Option<MemberId> {
    let primary = |message: &ToMember| match message {
        ToMember::Primary(primary) => Some(*primary),
        _ => None,
    };
    house.end(member).control.iter().filter_map(primary).next_back().flatten()
}

/// The receivers of a message to the primary.
fn reached(house: &mut House) -> Vec<MemberId> {
    let upward = Upward { to: Recipient::Primary, stamp: false, payload: "hello".into() };
    let (from, channel, payload) = (BOB, channel::MESSAGE_ORDERED, upward.encode());
    let said = Input::Message { from, channel, key: 0, payload, epoch: Epoch(0) };
    house.room.handle(said, house.now).expect("it may be said");
    match house.room.poll_output() {
        Some(Output::Send { to, .. }) => to,
        Some(other) => panic!("{other:?}"),
        None => Vec::new(),
    }
}

fn measured(house: &mut House, member: MemberId, slow: bool) {
    house.tell(Input::Measured(Presence { member, connected: true, slow, rtt_ms: Some(30) }));
}

#[test]
fn the_first_player_is_the_primary_until_it_lags_or_leaves() {
    let mut house = House::new(1, RoomKind::PlayerHosted, &schema(), 2);
    house.settle();
    for member in [HOST, ADA, BOB] {
        assert_eq!(told(&mut house, member), Some(HOST));
    }
    assert_eq!(reached(&mut house), [HOST]);
    for _ in 0..60 {
        measured(&mut house, HOST, true);
        measured(&mut house, ADA, false);
        measured(&mut house, BOB, false);
    }
    house.settle();
    for member in [HOST, ADA, BOB] {
        assert_eq!(told(&mut house, member), Some(ADA));
    }
    assert_eq!(reached(&mut house), [ADA]);
    house.leave(ADA);
    house.settle();
    assert_eq!(told(&mut house, HOST), Some(BOB));
    assert_eq!(reached(&mut house), [BOB]);
    let late = house.join();
    house.settle();
    assert_eq!(told(&mut house, late), Some(BOB));
}

#[test]
fn a_dedicated_host_is_never_the_primary() {
    let mut house = House::new(2, RoomKind::Dedicated, &schema(), 0);
    house.settle();
    assert_eq!(told(&mut house, HOST), None);
    let player = house.join();
    house.settle();
    assert_eq!(told(&mut house, HOST), Some(player));
    house.leave(player);
    house.settle();
    assert_eq!(told(&mut house, HOST), None);
    assert!(matches!(house.end(HOST).control.last(), Some(ToMember::Primary(None))));
}
