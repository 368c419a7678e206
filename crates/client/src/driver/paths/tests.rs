//! A direct path over real sockets: it comes up in play, the relay falls still, the path is cut, and the relay goes on.

use crate::{Event, LinkKind, MemberId, PathMode, Room, RoomBuilder, TransportPreference, TransportStatus};
use parlor_proto::wire::envelope::Sender;
use parlor_testing::{Hall, exchange};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Only a hang takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rooms on a hall's server, and what the server says of them.
trait Rooms {
    fn open<K>(&self, builder: RoomBuilder<K>) -> Room;
    fn relayed(&self) -> u64;
}

impl Rooms for Hall {
    fn open<K>(&self, builder: RoomBuilder<K>) -> Room {
        let mut room = builder.registry(self.registry.clone()).open();
        let began = Instant::now();
        while room.code().is_none() || !room.is_connected() {
            let _ = room.poll();
            assert!(began.elapsed() < PATIENCE, "{:?}", room.info());
            std::thread::yield_now();
        }
        room
    }

    /// Messages that the server has relayed, to each that it relayed them to.
    fn relayed(&self) -> u64 {
        let stats = self.runtime.block_on(exchange(
            self.addr(),
            "GET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        ));
        stats.json()["messages_relayed"].as_u64().expect("it counts them")
    }
}

/// Whether a guest plays over its path, which is a local one on this machine.
fn is_direct(room: &Room) -> bool {
    room.info().transport_status == Some(TransportStatus::DirectUdpReady)
}

/// Two games that count at each other, reliably and in order.
struct Play {
    hall: Hall,
    host: Room,
    guest: Room,
    /// Numbers that the host and the guest have sent, and heard.
    sent: [u64; 2],
    heard: [u64; 2],
    /// Inputs of the guest that the host has seen.
    inputs: u64,
}

impl Play {
    fn new(host: PathMode, guest: PathMode) -> Self {
        let hall = Hall::start();
        let host = hall.open(Room::host("tanks").paths(host));
        let code = host.code().expect("it is open").to_string();
        let guest = hall.open(Room::join("tanks", &code).paths(guest));
        Play { hall, host, guest, sent: [0; 2], heard: [0; 2], inputs: 0 }
    }

    /// One frame of both.
    fn frame(&mut self) {
        let rooms = [&mut self.host, &mut self.guest];
        for ((room, sent), heard) in rooms.into_iter().zip(&mut self.sent).zip(&mut self.heard) {
            while let Some(event) = room.poll() {
                match event {
                    Event::Message(message) => {
                        let number: u64 = message.read().expect("a number was sent");
                        assert_eq!(number, *heard, "each once, and in order");
                        *heard += 1;
                    }
                    Event::Closed(why) => panic!("{why}"),
                    _ => {}
                }
            }
            while let Some(mut step) = room.step() {
                step.send_input(&*sent).expect("it is open");
                let me = step.local_id();
                let other = step.players().iter().map(|player| player.id).find(|id| Some(*id) != me);
                if let Some(other) = other {
                    step.send(other, "count", sent).expect("it is open");
                    *sent += 1;
                }
                let Some(mut host) = step.host() else { continue };
                if let Some((_, number)) = host.inputs::<u64>().into_iter().find(|(id, _)| Some(*id) != me) {
                    self.inputs = number;
                }
            }
        }
        std::thread::yield_now();
    }

    /// Plays until something is so.
    #[track_caller]
    fn until(&mut self, what: impl Fn(&Play) -> bool) {
        let began = Instant::now();
        while !what(self) {
            self.frame();
            assert!(
                began.elapsed() < PATIENCE,
                "it does not come: {:?} {:?} {:?} {:?}",
                (self.sent, self.heard, self.inputs),
                self.host.info(),
                self.guest.info(),
                self.guest.players()
            );
        }
    }

    fn is_direct(&self) -> bool {
        is_direct(&self.guest)
    }

    /// Plays on until thirty more of everything have passed.
    fn go_on(&mut self) {
        let (heard, inputs) = (self.heard, self.inputs);
        self.until(|play| {
            play.heard[0] > heard[0] + 30 && play.heard[1] > heard[1] + 30 && play.inputs > inputs + 30
        });
    }
}

impl Play {
    /// Plays until what passes goes directly, all of it; how much the server had relayed by then.
    #[track_caller]
    fn until_the_relay_is_still(&mut self) -> u64 {
        // A machine that stands still for a second loses the path, as it may; then there is another one.
        const CHANCES: usize = 4;
        for _ in 0..CHANCES {
            self.until(Play::is_direct);
            // What went by the relay before the change of way is through once more has come by the other.
            self.go_on();
            let relayed = self.hall.relayed();
            self.go_on();
            if self.hall.relayed() == relayed {
                return relayed;
            }
        }
        panic!("messages go through the relay: {:?}", self.guest.info());
    }
}

#[test]
fn a_direct_path_carries_what_the_relay_did_and_gives_it_back_when_it_breaks() {
    let mut play = Play::new(PathMode::Auto, PathMode::Auto);
    let relayed = play.until_the_relay_is_still();
    // The guest's link closes, and its core is told nothing: it hears nothing any more.
    play.guest.shared.paths().clear();
    play.until(|play| !play.is_direct());
    play.go_on();
    assert!(play.hall.relayed() > relayed, "the relay carries the room");
}

#[test]
fn who_wants_the_relay_has_it() {
    for (host, guest) in [(PathMode::Auto, PathMode::Relay), (PathMode::Relay, PathMode::Auto)] {
        let mut play = Play::new(host, guest);
        play.go_on();
        assert!(!play.is_direct());
        assert!(play.host.shared.paths().is_empty() && play.guest.shared.paths().is_empty());
    }
}

/// What each of several has heard last of each other.
type Heard = BTreeMap<(usize, MemberId), u64>;

/// One frame of rooms of which each counts at all others.
fn count_at_all(rooms: &mut [Room], sent: &mut [u64], heard: &mut Heard) {
    for (place, room) in rooms.iter_mut().enumerate() {
        while let Some(event) = room.poll() {
            match event {
                Event::Message(message) => {
                    let Sender::Member(from) = message.from else { panic!("members alone talk here") };
                    let number: u64 = message.read().expect("a number was sent");
                    let before = heard.insert((place, from), number);
                    assert!(
                        before.is_none_or(|before| number == before + 1),
                        "{place} of {from:?}: {number} after {before:?}"
                    );
                }
                Event::Closed(why) => panic!("{why}"),
                _ => {}
            }
        }
        while let Some(mut step) = room.step() {
            if let Some(mut host) = step.host() {
                host.set("count", &sent[place]).expect("it is open");
            }
            step.broadcast("count", &sent[place]).expect("it is open");
            sent[place] += 1;
        }
    }
    std::thread::yield_now();
}

#[test]
fn one_room_has_members_by_quic_by_websocket_and_with_a_path_to_the_host() {
    let hall = Hall::start();
    let host = hall.open(Room::host("tanks").paths(PathMode::Auto));
    let code = host.code().expect("it is open").to_string();
    let guest = || Room::join("tanks", &code);
    let guests = [guest().paths(PathMode::Auto), guest(), guest().transport(TransportPreference::WebSocket)];
    let mut rooms = vec![host];
    rooms.extend(guests.map(|guest| hall.open(guest)));
    let (mut sent, mut heard) = (vec![0; rooms.len()], Heard::new());
    let began = Instant::now();
    let mut aim: Option<Heard> = None;
    // From the moment at which the path stands, thirty more of everybody to everybody.
    loop {
        count_at_all(&mut rooms, &mut sent, &mut heard);
        let all = rooms.len() * (rooms.len() - 1);
        if aim.is_none() && heard.len() == all && is_direct(&rooms[1]) {
            aim = Some(heard.iter().map(|(who, number)| (*who, number + 30)).collect());
        }
        if aim.as_ref().is_some_and(|aim| aim.iter().all(|(who, number)| heard[who] >= *number)) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "it does not come: {heard:?} {:?}", rooms[1].info());
    }
    let link = |room: &Room| room.info().connectivity.link;
    assert_eq!((link(&rooms[2]), link(&rooms[3])), (Some(LinkKind::Quic), Some(LinkKind::WebSocket)));
    assert!(rooms[2..].iter().all(|room| !is_direct(room)));
}
