//! Over real sockets: a host whose process is no more has its room back by its ticket, and a host hands its part
//! over.

#[path = "support/opened.rs"]
mod opened;
#[path = "support/proxy.rs"]
mod proxy;
mod support;
#[path = "support/until.rs"]
mod until;

use opened::opened;
use parlor::schema::{Kind, Schema};
use parlor::{
    CloseReason, ClosedReason, Event, HandOverRefusal, MemberId, Recipient, Refusal, ResumeRefusal,
    ResumeTicket, Room, RoomError, TransportPreference, replicated,
};
use parlor_testing::Hall;
use proxy::Proxy;
use std::collections::BTreeMap;
use support::Patience;
use until::until;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tank {
    fuel: u16,
}
replicated!(Tank as "tank" => { fuel: Kind::int(0, 1_000) });

fn schema() -> Schema {
    Schema::builder().replicate::<Tank>().build().expect("it is a schema")
}

/// One frame of a game that counts what each player told its host.
fn frame(room: &mut Room) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = room.poll() {
        if let (Event::Message(message), Some(mut host)) = (&event, room.as_host()) {
            let (number, from): (u64, _) = (message.read().expect("it is a number"), message.from);
            let key = format!("told/{from:?}");
            let next: u64 = host.state().get(&key).expect("it is a number").unwrap_or(0);
            assert_eq!(number, next, "each message of {from:?} comes once, in its order");
            host.set(&key, &(next + 1)).expect("it is small");
        }
        events.push(event);
    }
    while let Some(mut step) = room.step() {
        if let Some(mut host) = step.host() {
            let steps: u64 = host.state().get("steps").expect("it is a number").unwrap_or(0);
            host.set("steps", &(steps + 1)).expect("it is small");
        }
    }
    events
}

fn steps(room: &Room) -> u64 {
    room.state().get("steps").expect("it is a number").unwrap_or(0)
}

/// Frames of all rooms until something is so.
#[track_caller]
fn play_until(rooms: &mut [Room], mut is_so: impl FnMut(&mut [Room]) -> bool) -> Vec<Vec<Event>> {
    let mut told: Vec<Vec<Event>> = rooms.iter().map(|_| Vec::new()).collect();
    let patience = Patience::new();
    while !is_so(rooms) {
        for (room, told) in rooms.iter_mut().zip(&mut told) {
            told.extend(frame(room));
        }
        patience.look_again(|| format!("{:?}", rooms.iter().map(Room::info).collect::<Vec<_>>()));
    }
    told
}

/// A host whose way to its server can be cut, and that does not try again: so its process is as good as dead.
fn mortal_host(hall: &Hall, migrates: bool) -> (Room, Proxy) {
    let proxy = Proxy::new(hall.addr());
    let host = Room::host("tanks").name("ada").schema(schema()).max_players(3);
    let host = if migrates { host.host_migration() } else { host };
    let host = host.server(&hall.address_by(proxy.port)).transport(TransportPreference::WebSocket);
    (opened(hall, host.reconnect(false)), proxy)
}

/// Kills a host: what it had is gone with it, but for its ticket.
fn kill(mut host: Room, proxy: &Proxy) -> ResumeTicket {
    let saved = host.resume_ticket().expect("the server keeps seats").to_string();
    proxy.cut(true);
    until(&mut host, |event| matches!(event, Event::Closed(_)).then_some(()));
    drop(host);
    proxy.cut(false);
    saved.parse().expect("it is a ticket")
}

fn resume(hall: &Hall, ticket: &ResumeTicket) -> Room {
    let next = Room::resume("tanks", ticket).schema(schema()).registry(hall.registry.clone());
    next.transport(TransportPreference::WebSocket).open()
}

fn why_closed(room: &mut Room) -> ClosedReason {
    until(room, |event| match event {
        Event::Closed(why) => Some(why),
        _ => None,
    })
}

#[test]
fn a_host_that_is_alone_has_its_room_its_code_and_its_world_back_by_its_ticket() {
    let hall = Hall::start();
    let (mut host, proxy) = mortal_host(&hall, true);
    let code = host.code();
    let tank = {
        let mut host = host.as_host().expect("it hosts");
        host.set("map", "dunes").expect("it is small");
        host.set_for([MemberId(0)], "hand", "ace").expect("it is small");
        let tank = host.spawn(Some(MemberId(0))).expect("there is room");
        host.insert(tank, &Tank { fuel: 77 }).expect("it fits");
        tank
    };
    // It is at the server once another one sees it.
    let witness = Room::join("tanks", &code.expect("it is open").to_string()).schema(schema());
    let mut rooms = [host, opened(&hall, witness.server(&hall.address()))];
    play_until(&mut rooms, |rooms| rooms[1].world().component::<Tank>(tank).is_ok() && steps(&rooms[1]) > 10);
    let [host, witness] = rooms;
    witness.leave();
    let mut rooms = [host];
    play_until(&mut rooms, |rooms| rooms[0].player_count() == 1);
    let [host] = rooms;
    let ticket = kill(host, &proxy);

    let mut rooms = [resume(&hall, &ticket)];
    let told = play_until(&mut rooms, |rooms| rooms[0].is_host() && steps(&rooms[0]) > 20).remove(0);
    let next = &mut rooms[0];
    assert_eq!((next.code(), next.local_id(), next.info().epoch.0), (code, Some(MemberId(0)), 1));
    let itself = MemberId(0);
    let named = Event::HostMigration { previous: Some(itself), new: itself, is_me: true };
    let changed = Event::HostChanged { host: itself, previous: Some(itself) };
    assert!(
        told.contains(&named) && told.contains(&changed) && told.contains(&Event::Spawned { entity: tank })
    );
    let text = |key| next.state().get::<String>(key).expect("it is a text");
    assert_eq!((text("map").as_deref(), text("hand").as_deref()), (Some("dunes"), Some("ace")));
    assert_eq!(next.world().component(tank), Ok(Some(Tank { fuel: 77 })));
    assert_eq!(next.world().owner(tank), Ok(Some(itself)));
    // It is a room like any other: somebody comes, and the next reload is one, too.
    let guest = Room::join("tanks", &code.expect("it is open").to_string()).schema(schema());
    let [next] = rooms;
    let mut rooms = [next, opened(&hall, guest.server(&hall.address()))];
    play_until(&mut rooms, |rooms| rooms[0].player_count() == 2 && steps(&rooms[1]) > 30);
    assert_eq!(rooms[1].world().component(tank), Ok(Some(Tank { fuel: 77 })));
}

#[test]
fn a_host_whose_part_was_taken_comes_back_as_a_player_and_one_without_migration_is_refused() {
    let hall = Hall::start();
    let (host, proxy) = mortal_host(&hall, true);
    let code = host.code().expect("it is open").to_string();
    let guest = Room::join("tanks", &code).schema(schema()).server(&hall.address());
    let mut rooms = [host, opened(&hall, guest)];
    play_until(&mut rooms, |rooms| steps(&rooms[1]) > 10);
    let [host, guest] = rooms;
    let ticket = kill(host, &proxy);
    let mut rooms = [guest, resume(&hall, &ticket)];
    play_until(&mut rooms, |rooms| rooms[0].is_host() && steps(&rooms[1]) > 40);
    assert!(!rooms[1].is_host());
    assert_eq!((rooms[1].local_id(), rooms[1].player_count()), (Some(MemberId(0)), 2));

    let (host, proxy) = mortal_host(&hall, false);
    let ticket = kill(host, &proxy);
    let gone = Refusal::Resume { why: ResumeRefusal::Gone };
    assert_eq!(why_closed(&mut resume(&hall, &ticket)), ClosedReason::Refused(gone));
}

#[test]
fn threat_08_a_hosts_ticket_is_good_once() {
    let hall = Hall::start();
    let (host, proxy) = mortal_host(&hall, true);
    let ticket = kill(host, &proxy);
    let mut rooms = [resume(&hall, &ticket)];
    play_until(&mut rooms, |rooms| rooms[0].is_host() && steps(&rooms[0]) > 10);
    let token = Refusal::Resume { why: ResumeRefusal::Token };
    assert_eq!(why_closed(&mut resume(&hall, &ticket)), ClosedReason::Refused(token));
    assert_eq!(why_closed(&mut rooms[0]), ClosedReason::Session(CloseReason::TokenReused));
}

/// Plays until all three have the checksums of twenty ticks: those of one tick are the same.
fn expect_one_state(rooms: &mut [Room]) {
    let patience = Patience::new();
    let mut common = 0;
    while common < 20 {
        for room in rooms.iter_mut() {
            frame(room);
        }
        let of = |room: &Room| room.state().checksums().into_iter().collect::<BTreeMap<u64, u64>>();
        let all = [of(&rooms[0]), of(&rooms[1]), of(&rooms[2])];
        let both = |at: &u64| all[0].contains_key(at) && all[2].contains_key(at);
        let common_ticks: Vec<u64> = all[1].keys().copied().filter(both).collect();
        for at in &common_ticks {
            assert!(all[0][at] == all[1][at] && all[1][at] == all[2][at], "at {at}: {all:?}");
        }
        common = common_ticks.len();
        patience.look_again(|| format!("{common} ticks are at all ends"));
    }
}

/// Asks for a hand-over until the server grants it: right after the last one it refuses, and the host goes on. Returns
/// what each was told.
fn hand_over(
    rooms: &mut [Room],
    (from, to): (usize, usize),
    mut talk: impl FnMut(&mut [Room]),
) -> Vec<Vec<Event>> {
    let (id, before) = (rooms[to].local_id().expect("it is in"), rooms[from].info().epoch);
    let patience = Patience::new();
    loop {
        rooms[from].as_host().expect("it hosts").hand_over(id).expect("nothing is under way");
        let twice = rooms[from].as_host().expect("until then").hand_over(None);
        assert_eq!(twice, Err(RoomError::NotHandedOver { why: HandOverRefusal::UnderWay }));
        let mut told: Vec<Vec<Event>> = rooms.iter().map(|_| Vec::new()).collect();
        let too_soon = Event::HandOverRefused { why: HandOverRefusal::TooSoon };
        while !told[from].contains(&too_soon) {
            if rooms[to].info().epoch != before {
                return told;
            }
            talk(rooms);
            for (room, told) in rooms.iter_mut().zip(&mut told) {
                told.extend(frame(room));
            }
            patience.look_again(|| "nobody is named".into());
        }
        assert!(rooms[from].is_host(), "it keeps its part");
    }
}

/// Each of the three tells the host more and more while its part goes on to another and to a third one: each message
/// comes to something once, and all ends have the same state.
#[test]
fn a_host_hands_over_twice_and_nothing_reliable_is_lost() {
    let hall = Hall::start();
    let host = Room::host("tanks").schema(schema()).host_migration().server(&hall.address());
    let host = opened(&hall, host.hash_every(1));
    let code = host.code().expect("it is open").to_string();
    let join = || Room::join("tanks", &code).schema(schema()).server(&hall.address()).hash_every(1);
    let mut rooms = [host, opened(&hall, join()), opened(&hall, join())];
    play_until(&mut rooms, |rooms| rooms.iter().all(|room| room.player_count() == 3 && steps(room) > 10));
    let mut said = [0u64; 3];
    // One message in each step of the room's time.
    let mut last_at = None;
    let mut talk = |rooms: &mut [Room]| {
        let at = rooms[0].server_time().map(|time| time.as_millis() / 33);
        if std::mem::replace(&mut last_at, at) == at {
            return;
        }
        for (room, said) in rooms.iter().zip(&mut said) {
            room.send(Recipient::Authority, "number", &*said).expect("few wait");
            *said += 1;
        }
    };
    for (from, to) in [(0usize, 2usize), (2, 1)] {
        let told = hand_over(&mut rooms, (from, to), &mut talk);
        assert!(told[to].iter().any(|event| matches!(event, Event::HostMigration { is_me: true, .. })));
        let before = steps(&rooms[to]);
        play_until(&mut rooms, |rooms| {
            rooms[to].is_host() && !rooms[from].is_host() && rooms.iter().all(|it| steps(it) > before + 10)
        });
    }
    let all_told = |room: &Room| {
        let all = room.state().all();
        let told = all.iter().filter(|(key, _)| key.starts_with("told/"));
        let counts: Vec<u64> =
            told.map(|(_, value)| parlor::from_value(value).expect("it is a number")).collect();
        counts == said
    };
    play_until(&mut rooms, |rooms| rooms.iter().all(all_told));
    expect_one_state(&mut rooms);
}
