//! Own states of players over real sockets, as a game sees them.

#[path = "support/opened.rs"]
mod opened;
mod support;
#[path = "support/until.rs"]
mod until;

use opened::opened;
use parlor::replicator::{Template, Tolerance};
use parlor::schema::Kind;
use parlor::{Event, Lane, Room, SendOptions, TransportPreference, replicated};
use parlor_testing::Hall;
use std::time::Duration;
use support::Patience;

/// Metres per second of the first player's car; each next one has one more.
const SPEED: f64 = 3.0;

#[derive(Debug)]
struct Car {
    place: [f64; 2],
    gear: u8,
}
replicated!(Car as "car" => {
    place: Kind::vector2(-4_096.0, 4_096.0, 1.0 / 64.0),
    gear: Kind::int(0, 6),
});

fn template() -> Template {
    let template = Template::of::<Car>().tolerance("place", Tolerance::off_by(0.1));
    template.build().expect("it is in order")
}

/// A host over QUIC, a guest over QUIC, and one over WebSocket.
fn race(hall: &Hall) -> [Room; 3] {
    let host = opened(hall, Room::host("race").name("ada").template(template()));
    let code = host.code().expect("it is open").to_string();
    let join = |name: &str, transport: TransportPreference| {
        opened(hall, Room::join("race", &code).name(name).template(template()).transport(transport))
    };
    [host, join("bo", TransportPreference::Quic), join("cy", TransportPreference::WebSocket)]
}

/// Runs what is due of all, with each car at the place of the step's time. Returns the events of each.
fn drive(rooms: &mut [Room; 3]) -> [Vec<Event>; 3] {
    let mut index = 0.0;
    rooms.each_mut().map(|room| {
        let speed = SPEED + index;
        index += 1.0;
        let events = std::iter::from_fn(|| room.poll()).collect();
        while let Some(step) = room.step() {
            let s = f64::from(step.number().0) / 30.0;
            step.own_state().set(&Car { place: [speed * s, 0.0], gear: 2 }).expect("it fits");
        }
        events
    })
}

/// Drives until something is so.
#[track_caller]
fn drive_until<T>(
    rooms: &mut [Room; 3],
    what: &str,
    mut look: impl FnMut(&[Room; 3], [Vec<Event>; 3]) -> Option<T>,
) -> T {
    let patience = Patience::new();
    loop {
        let events = drive(rooms);
        if let Some(seen) = look(rooms, events) {
            return seen;
        }
        patience.look_again(|| format!("{what} of {:?}", rooms.each_ref().map(|room| room.player_count())));
    }
}

/// How far each sees each other from where it is now, in metres; `None` while one does not see another.
fn errors(rooms: &[Room; 3]) -> Option<Vec<f64>> {
    let mut errors = Vec::new();
    for reader in rooms {
        for (index, driver) in rooms.iter().enumerate() {
            let id = driver.local_id()?;
            let s = reader.server_time()?.as_secs_f64();
            let car: Car = reader.own_state().of(id)?;
            assert_eq!(car.gear, 2);
            errors.push((car.place[0] - (SPEED + index as f64) * s).abs());
        }
    }
    Some(errors)
}

#[test]
fn t7_each_player_sends_its_own_state_over_real_sockets() {
    let hall = Hall::start();
    let mut rooms = race(&hall);
    // Twice, seconds of the room's time apart: they move, and the others go on seeing it.
    for after in [0, 2] {
        let then = rooms[0].server_time().expect("it is open") + Duration::from_secs(after);
        drive_until(&mut rooms, "all see where all are", |rooms, _| {
            let is_later = rooms[0].server_time()? >= then;
            // A step's way, the tolerance, and some ms between clocks.
            let see = errors(rooms)?.iter().all(|error| *error < 0.5);
            (is_later && see).then_some(())
        });
    }
    let [host, guest, _] = &rooms;
    let of_guest = guest.local_id().expect("it is open");
    let (earlier, later) = (Duration::from_secs(1), Duration::from_millis(1_250));
    let [a, b] = [earlier, later].map(|moment| {
        let car: Car = host.own_state().at(of_guest, moment).expect("it is seen");
        car.place[0]
    });
    assert!(a <= b, "it goes forward: {a} and {b}");
}

#[test]
fn t8_an_event_tells_over_real_sockets_when_it_happened() {
    let hall = Hall::start();
    let mut rooms = race(&hall);
    let happened = rooms[2].server_time().expect("it is open");
    let timed = SendOptions::lane(Lane::ReliableUnordered).happened_at(happened);
    rooms[2].send_with(timed, parlor::Recipient::Others, "horn", &1).expect("the room is open");
    rooms[2].send_with(timed.timed(), parlor::Recipient::Others, "horn", &2).expect("the room is open");
    rooms[2].broadcast("horn", &3).expect("the room is open");
    let mut heard = [Vec::new(), Vec::new()];
    drive_until(&mut rooms, "the horns", |_, [host, guest, _]| {
        for (heard, events) in heard.iter_mut().zip([host, guest]) {
            heard.extend(events.into_iter().filter_map(|event| match event {
                Event::Message(message) => Some((message.read::<u8>().ok()?, message.event_time)),
                _ => None,
            }));
        }
        heard.iter().all(|heard| heard.len() == 3).then_some(())
    });
    for mut heard in heard {
        heard.sort();
        let millis = |time: Option<Duration>| time.map(|time| time.as_millis());
        assert_eq!((heard[0].0, millis(heard[0].1)), (1, Some(happened.as_millis())));
        assert!(heard[1].1 >= heard[0].1, "the call was after it: {heard:?}");
        assert_eq!(heard[2], (3, None));
    }
}

#[test]
fn t9_each_player_knows_how_states_travel_between_it_and_each_other() {
    let hall = Hall::start();
    let mut rooms = race(&hall);
    drive_until(&mut rooms, "measurements", |rooms, _| {
        for reader in rooms {
            for other in rooms {
                let (me, id) = (reader.local_id()?, other.local_id()?);
                let flows = reader.own_state::<Car>().diagnostics(id);
                if me == id {
                    assert_eq!((flows.down, flows.up), (None, None));
                    continue;
                }
                for flow in [flows.down?, flows.up?] {
                    let latency = flow.latency;
                    assert!(latency.best <= latency.mean && latency.mean <= latency.worst, "{flow:?}");
                    assert!((0.0..=1.0).contains(&flow.loss) && flow.bytes_per_second >= 0.0, "{flow:?}");
                }
            }
        }
        Some(())
    });
}
