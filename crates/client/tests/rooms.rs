//! Several rooms and matches at once in one process, over real sockets; and what each player may see there.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::schema::{Kind, Schema};
use parlor::{
    ClosedReason, EntityId, Event, Impairment, LeaveReason, MemberId, Recipient, Refusal, Room, RoomBuilder,
    TransportPreference, WorldAccess, replicated,
};
use parlor_testing::Hall;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use support::Patience;
use until::until;

fn open<K>(hall: &Hall, builder: RoomBuilder<K>) -> Room {
    let mut room = builder.registry(hall.registry.clone()).open();
    until(&mut room, |event| matches!(event, Event::Open { .. }).then_some(()));
    room
}

fn code(room: &Room) -> String {
    room.code().expect("it is open").to_string()
}

/// Two rooms and two matches of one process.
fn opened(hall: &Hall) -> Vec<Room> {
    vec![
        open(hall, Room::host("tanks").name("ada")),
        open(hall, Room::host("tanks").name("ada").transport(TransportPreference::WebSocket)),
        open(hall, Room::create_match("duels").name("ada")),
        open(hall, Room::create_match("duels").name("ada").transport(TransportPreference::WebSocket)),
    ]
}

fn app(index: usize) -> &'static str {
    if index < 2 { "tanks" } else { "duels" }
}

/// Somebody joins each of them.
fn joined(hall: &Hall, rooms: &mut [Room], name: &str) -> Vec<Room> {
    let mut guests = Vec::new();
    for (index, room) in rooms.iter_mut().enumerate() {
        let guest = open(hall, Room::join(app(index), &code(room)).name(name));
        until(room, |event| {
            matches!(event, Event::PlayerJoined(player) if player.name == name).then_some(())
        });
        guests.push(guest);
    }
    guests
}

fn names(room: &Room) -> Vec<&str> {
    room.players().iter().map(|player| player.name.as_str()).collect()
}

fn refusal(hall: &Hall, app: &str, code: &str) -> ClosedReason {
    let mut room = Room::join(app, code).server(&hall.address()).open();
    until(&mut room, |event| match event {
        Event::Closed(why) => Some(why),
        _ => None,
    })
}

/// Waits until the server has no such room.
fn is_over(hall: &Hall, code: &str) {
    let code = code.parse().expect("it is a code");
    let patience = Patience::new();
    while hall.runtime.block_on(hall.server().room(code)).is_some() {
        patience.look_again(|| format!("{code} is there still"));
    }
}

#[test]
fn n1_a_process_opens_rooms_and_matches_and_each_is_joined_by_its_id_until_the_last_leaves() {
    let hall = Hall::start();
    let mut rooms = opened(&hall);
    let codes: BTreeSet<String> = rooms.iter().map(code).collect();
    assert_eq!(codes.len(), 4, "each has an id of its own");
    let mut guests = joined(&hall, &mut rooms, "bob");
    for (index, guest) in guests.iter().enumerate() {
        assert_eq!(names(guest), ["ada", "bob"]);
        assert_eq!(guest.info().host_id.is_some(), index < 2, "members of a match are equal");
    }
    // Who opened a match leaves it, and it is joined all the same; the other rooms notice nothing.
    rooms.remove(2).leave();
    until(&mut guests[2], |event| matches!(event, Event::PlayerLeft { .. }).then_some(()));
    let cy = open(&hall, Room::join("duels", &code(&guests[2])).name("cy"));
    assert_eq!(names(&cy), ["bob", "cy"]);
    for room in &rooms {
        assert_eq!(room.player_count(), 2);
    }
}

#[test]
fn n2_each_join_lists_who_is_there_and_presence_comes_with_changes_alone() {
    let hall = Hall::start();
    let mut rooms = opened(&hall);
    let mut guests = joined(&hall, &mut rooms, "bob");
    let mut thirds = joined(&hall, &mut rooms, "cy");
    for third in &thirds {
        assert_eq!(names(third), ["ada", "bob", "cy"], "they are known when it is open");
    }
    // A member leaves one room and one match. The others there get the event at once, members elsewhere get none.
    for index in [3, 1] {
        let third = thirds.remove(index);
        let id = third.local_id().expect("it is in");
        third.leave();
        for room in [&mut rooms[index], &mut guests[index]] {
            let reason = until(room, |event| match event {
                Event::PlayerLeft { id: who, reason, .. } if who == id => Some(reason),
                _ => None,
            });
            assert_eq!(reason, LeaveReason::Left);
            assert_eq!(names(room), ["ada", "bob"]);
        }
    }
    // A message that came shows that nothing else did before it.
    for (third, index) in thirds.iter_mut().zip([0, 2]) {
        rooms[index].broadcast("bell", &1).expect("it is open");
        loop {
            match until(third, Some) {
                Event::Message(_) => break,
                Event::PlayerLeft { .. } | Event::PlayerLost { .. } | Event::PlayerBack { .. } => {
                    panic!("nothing changed in room {index}")
                }
                _ => {}
            }
        }
        assert_eq!(names(third), ["ada", "bob", "cy"]);
    }
}

#[test]
fn n3_data_keeps_its_order_in_each_of_them_and_stays_there() {
    const EACH: i64 = 60;
    let hall = Hall::start();
    let mut rooms = opened(&hall);
    let mut guests = joined(&hall, &mut rooms, "bob");
    let mut thirds = joined(&hall, &mut rooms, "cy");
    let thirds_ids: Vec<MemberId> = thirds.iter().map(|room| room.local_id().expect("it is in")).collect();
    for number in 0..EACH {
        for (index, room) in rooms.iter().enumerate() {
            let op = number * 4 + i64::try_from(index).expect("it is small");
            let only = (number % 10 == 9).then_some(thirds_ids[index]);
            let to = only.map_or(Recipient::Others, Recipient::Member);
            if index < 2 {
                room.send(to, "count", &op).expect("it may");
            } else {
                room.send_data(op - (1 << 40), to, vec![7; 300]).expect("it may");
            }
        }
    }
    for (index, (guest, third)) in guests.iter_mut().zip(&mut thirds).enumerate() {
        for (room, sees_all) in [(guest, false), (third, true)] {
            for number in (0..EACH).filter(|number| sees_all || number % 10 != 9) {
                let op = until(room, |event| match event {
                    Event::Message(message) => Some(message.read::<i64>().expect("it is a number")),
                    Event::Data { op, data, .. } => {
                        assert_eq!(data.len(), 300);
                        Some(op + (1 << 40))
                    }
                    _ => None,
                });
                assert_eq!(op, number * 4 + i64::try_from(index).expect("it is small"));
            }
        }
    }
}

#[test]
fn n4_each_ends_with_its_last_member_and_its_id_is_never_valid_again() {
    let hall = Hall::start();
    let mut rooms = opened(&hall);
    let mut guests = joined(&hall, &mut rooms, "bob");
    let codes: Vec<String> = rooms.iter().map(code).collect();
    // Each is left in turn, and the ones that are not go on.
    while let Some(room) = rooms.pop() {
        let index = rooms.len();
        room.leave();
        let is_match = index >= 2;
        until(&mut guests[index], |event| match event {
            Event::PlayerLeft { .. } if is_match => Some(()),
            Event::Closed(_) if !is_match => Some(()),
            _ => None,
        });
        drop(guests.pop());
        is_over(&hall, &codes[index]);
        let why = refusal(&hall, app(index), &codes[index]);
        assert_eq!(why, ClosedReason::Refused(Refusal::NoSuchRoom), "room {index}");
        for (other, guest) in guests.iter().enumerate() {
            assert_eq!(names(guest), ["ada", "bob"], "room {other} goes on");
        }
    }
}

/// A process that is killed sends nothing any more, and its connection is not closed by its system.
#[test]
fn n2_who_is_killed_is_missed_soon_where_the_room_asks_for_it() {
    let hall = Hall::start();
    let presence = Duration::from_millis(1_500);
    let mut rooms = [
        open(&hall, Room::host("tanks").presence(presence).name("ada")),
        open(&hall, Room::create_match("duels").presence(presence).grace(Duration::ZERO).name("ada")),
        // This one does not ask for it.
        open(&hall, Room::create_match("duels").name("ada")),
    ];
    let victims: Vec<Room> = ["tanks", "duels", "duels"]
        .into_iter()
        .zip(&mut rooms)
        .map(|(app, room)| {
            let guest = Room::join(app, &code(room)).transport(TransportPreference::Quic).reconnect(false);
            let guest = open(&hall, guest.impairment(Impairment::none()));
            let id = guest.local_id().expect("it is in");
            until(room, |event| {
                matches!(event, Event::PlayerJoined(player) if player.id == id).then_some(())
            });
            guest
        })
        .collect();
    let begun = Instant::now();
    for victim in &victims {
        victim.set_impairment(Impairment::none().loss_ppm(1_000_000)).expect("it was put on one");
    }
    let [room, of_match, other] = &mut rooms;
    until(room, |event| {
        matches!(event, Event::PlayerLost { reason: LeaveReason::TimedOut, .. }).then_some(())
    });
    // The match keeps no seat.
    until(of_match, |event| {
        assert!(!matches!(event, Event::PlayerLost { .. }));
        matches!(event, Event::PlayerLeft { reason: LeaveReason::TimedOut, .. }).then_some(())
    });
    // The simulator measures two seconds; here the default of eight is far, even for a slow machine.
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    while let Some(event) = other.poll() {
        assert!(!matches!(event, Event::PlayerLost { .. } | Event::PlayerLeft { .. }), "{event:?}");
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Hand {
    of: u32,
}
replicated!(Hand as "hand" => { of: Kind::int(0, 255) });

fn is_own(world: &WorldAccess<'_>, player: MemberId, entity: EntityId) -> bool {
    world.component::<Hand>(entity).ok().flatten().is_some_and(|hand| hand.of == player.0)
}

/// Lets a host play a step: it shows each player the hands of its own number.
fn play(host: &mut Room) {
    while host.poll().is_some() {}
    while let Some(mut step) = host.step() {
        let Some(mut host) = step.host() else { continue };
        host.scope(1, is_own).expect("it may");
    }
}

#[test]
fn m13_a_player_is_sent_what_the_games_filter_admits_and_nothing_else() {
    let hall = Hall::start();
    let schema = || Schema::builder().replicate::<Hand>().build().expect("it is in order");
    let mut host = open(&hall, Room::host("cards").schema(schema()).tick_hz(60));
    // The filter holds from its first call on.
    host.as_host().expect("it hosts").scope(1, is_own).expect("it may");
    let ways = [TransportPreference::Quic, TransportPreference::WebSocket, TransportPreference::Quic];
    let mut guests: Vec<(Room, BTreeSet<EntityId>)> = Vec::new();
    let mut hands: Vec<(EntityId, u32)> = Vec::new();
    // One after another: what a newcomer is sent first is filtered like everything after that.
    for way in ways {
        for of in 1..=3 {
            let mut writer = host.as_host().expect("it hosts");
            let hand = writer.spawn(None).expect("there is room");
            writer.insert(hand, &Hand { of }).expect("it is its");
            hands.push((hand, of));
        }
        let join = Room::join("cards", &code(&host)).schema(schema()).transport(way);
        guests.push((open(&hall, join), BTreeSet::new()));
        let patience = Patience::new();
        loop {
            play(&mut host);
            let mut is_complete = true;
            for (guest, spawned) in &mut guests {
                while let Some(event) = guest.poll() {
                    if let Event::Spawned { entity } = event {
                        spawned.insert(entity);
                    }
                }
                let me = guest.local_id().expect("it is in").0;
                let own = hands.iter().filter(|(_, of)| *of == me).map(|(hand, _)| *hand);
                let own: BTreeSet<EntityId> = own.collect();
                assert!(spawned.is_subset(&own), "{me} was sent {spawned:?}, and may see {own:?}");
                is_complete &= *spawned == own;
            }
            if is_complete {
                break;
            }
            patience.look_again(|| {
                format!("{:?} of {hands:?}", guests.iter().map(|it| &it.1).collect::<Vec<_>>())
            });
        }
    }
    // A card goes to another: who had it sees it no more, and who has it does.
    let (card, _) = hands[0];
    host.as_host().expect("it hosts").insert(card, &Hand { of: 2 }).expect("it is there");
    let patience = Patience::new();
    loop {
        play(&mut host);
        guests.iter_mut().for_each(|(guest, _)| while guest.poll().is_some() {});
        let seen: Vec<bool> =
            guests.iter().map(|(guest, _)| guest.world().entities().contains(&card)).collect();
        if seen == [false, true, false] {
            break;
        }
        patience.look_again(|| format!("{seen:?}"));
    }
}
