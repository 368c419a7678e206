//! The operator API of a hub, against a plain list of the rooms that were opened.

use parlor_hub::{
    Config, Hub, MemberSummary, NotThere, Origin, Output, ROOMS_LOOKED_AT_MAX, RoomPage, RoomQuery,
};
use parlor_impair::Rng;
use parlor_proto::session::{Event, Session};
use parlor_proto::wire::control::{LeaveReason, ToMember};
use parlor_proto::wire::handshake::{Hello, Intent, RoomKind, RoomSettings};
use parlor_proto::{CloseReason, ConnectionId, Instant, LinkKind, MemberId, RoomCode, channel};
use std::collections::BTreeMap;

/// A hub and the sessions of its members.
struct House {
    hub: Hub,
    now: Instant,
    members: BTreeMap<ConnectionId, Session>,
    /// The events that each received.
    seen: BTreeMap<ConnectionId, Vec<Event>>,
}

impl House {
    fn new() -> Self {
        let hub = Hub::new(Config::new([3; 32]));
        House { hub, now: Instant::from_millis(1_000), members: BTreeMap::new(), seen: BTreeMap::new() }
    }

    fn enter(&mut self, hello: Hello) -> (ConnectionId, RoomCode) {
        let connection = ConnectionId(self.members.len() as u64);
        self.hub.handle_connected(connection, LinkKind::WebSocket, Origin(connection.0 << 16), self.now);
        self.members.insert(connection, Session::client(hello, LinkKind::WebSocket, self.now));
        self.settle();
        let code = self.seen[&connection].iter().find_map(|event| match event {
            Event::Welcome(welcome) => Some(welcome.code),
            _ => None,
        });
        (connection, code.expect("it is let in"))
    }

    fn open(&mut self, app: &str, environment: &str) -> (ConnectionId, RoomCode) {
        let settings = RoomSettings::new(RoomKind::PlayerHosted, 4);
        let environment = environment.to_owned();
        self.enter(Hello { environment, name: "ada".into(), ..Hello::new(app, Intent::Create(settings)) })
    }

    fn join(&mut self, code: RoomCode, name: &str) -> ConnectionId {
        let hello = Hello::new("tanks", Intent::Join { code, secret: None });
        self.enter(Hello { name: name.into(), environment: "live".into(), ..hello }).0
    }

    /// Delivers all packets in transit.
    fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            for (connection, session) in &mut self.members {
                while let Some(packet) = session.poll_packet(self.now) {
                    is_quiet = false;
                    self.hub.handle_packet(*connection, packet, self.now);
                }
                while let Some(event) = session.poll_event() {
                    self.seen.entry(*connection).or_default().push(event);
                }
            }
            self.hub.handle_timeout(self.now);
            self.hub.flush(self.now);
            while let Some(output) = self.hub.poll_output() {
                is_quiet = false;
                if let Output::Packet { connection, packet } = output {
                    let session = self.members.get_mut(&connection).expect("it was connected");
                    session.handle_packet(packet, self.now).expect("the hub is honest");
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn why_closed(&self, connection: ConnectionId) -> Option<&CloseReason> {
        self.seen[&connection].iter().find_map(|event| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        })
    }

    fn left(&self, connection: ConnectionId) -> Vec<(MemberId, LeaveReason)> {
        let messages = self.seen[&connection].iter().filter_map(|event| match event {
            Event::Message(message) if message.channel == channel::CONTROL => {
                ToMember::decode(message.payload.clone()).expect("the hub writes it well")
            }
            _ => None,
        });
        let left = messages.filter_map(|message| match message {
            ToMember::Left { member, reason } => Some((member, reason)),
            _ => None,
        });
        left.collect()
    }

    /// Returns all pages of a list; each page examines a bounded number of rooms.
    fn list(&self, query: &RoomQuery) -> Vec<RoomCode> {
        let (mut all, mut query) = (Vec::new(), query.clone());
        loop {
            let RoomPage { rooms, next, .. } = self.hub.rooms(&query);
            assert!(rooms.len() <= query.limit.min(ROOMS_LOOKED_AT_MAX));
            all.extend(rooms.iter().map(|room| room.code));
            match next {
                Some(next) => query.after = Some(next),
                None => return all,
            }
        }
    }
}

#[test]
fn lists_are_what_was_opened_in_parts_of_any_size() {
    let mut house = House::new();
    let mut random = Rng::new(11);
    let apps = ["tanks", "chess", "rare"];
    let mut opened: BTreeMap<RoomCode, (&str, &str)> = BTreeMap::new();
    for number in 0..700u32 {
        let app = if number == 350 { "rare" } else { apps[usize::from(number % 3 == 0)] };
        let environment = ["live", "", "staging"][(number % 3) as usize];
        opened.insert(house.open(app, environment).1, (app, environment));
    }
    let page = house.hub.rooms(&RoomQuery { limit: usize::MAX, ..RoomQuery::default() });
    assert_eq!(page.rooms.len(), ROOMS_LOOKED_AT_MAX, "whoever asks for everything gets a part");
    for _ in 0..40 {
        let draw = |random: &mut Rng, max: u64| usize::try_from(random.below(max)).expect("it is small");
        let app = [None, Some("tanks"), Some("chess"), Some("rare"), Some("none")][draw(&mut random, 5)];
        let environments = [&[][..], &["live"], &["live", ""], &["staging"]][draw(&mut random, 4)];
        let limit = [1, 7, 100, 300, usize::MAX][draw(&mut random, 5)];
        let query = RoomQuery {
            app: app.map(str::to_owned),
            environments: environments.iter().map(|name| (*name).to_owned()).collect(),
            matches: None,
            after: None,
            limit,
            rosters: false,
        };
        let wanted = |of: &(&str, &str)| {
            app.is_none_or(|app| app == of.0) && (environments.is_empty() || environments.contains(&of.1))
        };
        let expected: Vec<RoomCode> =
            opened.iter().filter(|(_, of)| wanted(of)).map(|(code, _)| *code).collect();
        assert_eq!(house.list(&query), expected, "{query:?}");
    }
}

#[test]
fn a_room_says_who_is_in_it() {
    let mut house = House::new();
    let (_, code) = house.open("tanks", "live");
    let bob = house.join(code, "bob");
    let details = house.hub.room_details(code).expect("it lives");
    assert_eq!((details.room.members, details.room.away, details.room.players), (2, 0, 2));
    assert_eq!((details.room.app.as_str(), details.room.environment.as_str()), ("tanks", "live"));
    assert_eq!(details.room.opened, house.now);
    let member = |id, name: &str, connected, is_host| MemberSummary {
        id: MemberId(id),
        name: name.to_owned(),
        user: None,
        link: LinkKind::WebSocket,
        connected,
        rtt_ms: None,
        is_host,
        spectates: false,
    };
    assert_eq!(details.members, [member(0, "ada", true, true), member(1, "bob", true, false)]);
    house.hub.handle_disconnected(bob, house.now);
    house.settle();
    let details = house.hub.room_details(code).expect("it lives");
    assert_eq!((details.room.members, details.room.away), (2, 1));
    assert_eq!(details.members[1], member(1, "bob", false, false));
    assert_eq!(house.hub.room_details("ZZZZ".parse().expect("a code")), None);
}

#[test]
fn a_room_that_is_ended_tells_its_members_why() {
    let mut house = House::new();
    let (ada, code) = house.open("tanks", "live");
    let bob = house.join(code, "bob");
    let (cid, other) = house.open("tanks", "live");
    house.hub.end_room(code, "closing time".into(), house.now).expect("it lives");
    house.settle();
    let ended = CloseReason::RoomEnded { reason: "closing time".into() };
    assert_eq!((house.why_closed(ada), house.why_closed(bob)), (Some(&ended), Some(&ended)));
    assert_eq!(house.hub.end_room(code, String::new(), house.now), Err(NotThere::Room));
    assert!(house.hub.room(code).is_none() && house.hub.room(other).is_some());
    assert_eq!(house.why_closed(cid), None, "another room goes on");
}

#[test]
fn a_member_is_removed_and_all_are_told() {
    let mut house = House::new();
    let (ada, code) = house.open("tanks", "live");
    let (bob, cid) = (house.join(code, "bob"), house.join(code, "cid"));
    let remove = |house: &mut House, member| {
        let done = house.hub.remove_member(code, MemberId(member), "he cheats".into(), house.now);
        house.settle();
        done
    };
    assert_eq!(remove(&mut house, 1), Ok(()));
    assert_eq!(house.why_closed(bob), Some(&CloseReason::Kicked { reason: "he cheats".into() }));
    let told = [(MemberId(1), LeaveReason::Kicked { reason: "he cheats".into() })];
    assert_eq!((&house.left(ada)[..], &house.left(cid)[..]), (&told[..], &told[..]));
    assert_eq!(remove(&mut house, 1), Err(NotThere::Member), "it has gone");
    // A disconnected member's seat can be freed too.
    house.hub.handle_disconnected(cid, house.now);
    house.settle();
    assert_eq!(remove(&mut house, 2), Ok(()));
    assert_eq!(house.left(ada).len(), 2);
    // Without its host a room that cannot migrate ends, and members see the actual reason.
    let dan = house.join(code, "dan");
    assert_eq!(remove(&mut house, 0), Ok(()));
    assert_eq!(house.why_closed(ada), Some(&CloseReason::Kicked { reason: "he cheats".into() }));
    assert_eq!(house.why_closed(dan), Some(&CloseReason::HostLeft));
    assert_eq!(remove(&mut house, 0), Err(NotThere::Room));
}
