//! Rooms whose host is a process without a player.

use crate::harness::{HOST, House, Label, schema, settings, setup};
use parlor_hub::room::{Input, Room};
use parlor_proto::wire::control::{PlayerData, ToHub};
use parlor_proto::wire::handshake::{RoomKind, RoomSettings};
use parlor_proto::{Epoch, Instant, LinkKind, MemberId, channel, limits};
use parlor_sync::schema::Schema;

fn full(max_players: u16) -> Room {
    let settings = RoomSettings { max_players, ..settings(RoomKind::Dedicated, &Schema::default()) };
    let mut room = Room::new(setup(settings)).expect("the schema is one of a room");
    while room.has_seat(false) {
        let join = Input::Join {
            name: "a".repeat(limits::NAME_BYTES_MAX),
            user: None,
            link: LinkKind::Quic,
            spectates: false,
        };
        room.handle(join, Instant::ZERO).expect("a seat is free");
    }
    room
}

#[test]
fn the_host_has_a_seat_beside_the_players() {
    let room = full(255);
    assert_eq!((room.len(), room.players()), (256, 255));
    let room = full(2);
    assert_eq!((room.len(), room.players()), (3, 2));
}

#[test]
fn what_a_newcomer_is_told_of_a_full_room_fits_what_may_wait_for_it() {
    let mut room = full(255);
    let most = limits::player_data_bytes_max(256);
    for member in 0..255 {
        let data =
            PlayerData { member: MemberId(member), key: "k".into(), value: Some(vec![7; most - 1].into()) };
        let (from, channel) = (MemberId(member), channel::CONTROL);
        let mut payload = ToHub::SetData(data).encode();
        let at = Instant::from_millis(u64::from(member) * 500);
        let input = |payload| Input::Message { from, channel, key: 0, payload, epoch: Epoch(0) };
        room.handle(input(payload.clone()), at).expect("it may have so much");
        if member == 0 {
            payload = ToHub::SetData(PlayerData {
                member: MemberId(member),
                key: "l".into(),
                value: Some(vec![7; 1].into()),
            })
            .encode();
            room.handle(input(payload), at).expect_err("it may not have more");
        }
        room.handle(Input::Flush, at).expect("nobody is at fault");
    }
    let late = Instant::from_millis(3_600_000);
    room.handle(Input::Flush, late).expect("nobody is at fault");
    room.handle(
        Input::Leave { member: MemberId(255), reason: parlor_proto::wire::control::LeaveReason::Left },
        late,
    )
    .expect("it was there");
    while room.poll_output().is_some() {}
    let newcomer = room.next_member();
    room.handle(
        Input::Join {
            name: "a".repeat(limits::NAME_BYTES_MAX),
            user: None,
            link: LinkKind::Quic,
            spectates: false,
        },
        late,
    )
    .expect("a seat is free");
    let (mut waiting_bytes, mut messages) = (0, 0);
    while let Some(output) = room.poll_output() {
        if let parlor_hub::room::Output::Send { to, message } = output
            && to == [newcomer]
            && message.channel == channel::CONTROL
        {
            waiting_bytes += message.payload.len() + limits::WAITING_MESSAGE_BYTES;
            messages += 1;
        }
    }
    assert_eq!(messages, 256 + 1, "one for each, and who is the primary");
    assert!(
        waiting_bytes > 256 * most && waiting_bytes < limits::RELIABLE_QUEUE_BYTES_MAX,
        "{waiting_bytes}"
    );
}

#[test]
fn its_state_reaches_the_players() {
    let mut house = House::new(3, RoomKind::Dedicated, &schema(), 3);
    house.loss_per_mille = 100;
    let entity = house.host.world.spawn(Some(MemberId(1))).expect("there is room");
    house.run(std::time::Duration::from_secs(1), |house| {
        let text = format!("at {}", house.tick());
        house.host.world.insert(entity, &Label { text }).expect("it fits");
    });
    house.settle();
    house.assert_all_equal();
    house.leave(HOST);
    assert!(house.room.has_ended());
}
