//! The hub's indexes of users and labels, against a search of all rooms.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

#[path = "common/named.rs"]
mod named;

use core::str;
use named::Named;
use parlor_hub::admission_policy::{AdmitAll, GuessLimits, Guesses};
use parlor_hub::{Config, Hub, MatchFilter, Origin, Output, RoomPage, RoomQuery, USER_SEATS_MAX, UserSeats};
use parlor_impair::Rng;
use parlor_proto::session::{Event, Session};
use parlor_proto::wire::handshake::{Auth, Hello, Intent, RoomKind, RoomSettings};
use parlor_proto::{CloseReason, ConnectionId, Instant, LinkKind, RoomCode};
use std::collections::BTreeMap;
use std::time::Duration;

struct House {
    hub: Hub,
    now: Instant,
    next: u64,
    members: BTreeMap<ConnectionId, Session>,
}

/// What a member comes in as.
#[derive(Clone, Copy)]
struct As<'a> {
    app: &'a str,
    environment: &'a str,
    user: Option<&'a str>,
}

impl House {
    fn new() -> Self {
        let policy = Named(AdmitAll::new(Guesses::new(GuessLimits::default(), || 7)));
        let hub = Hub::with_policy(Config::new([3; 32]), Box::new(policy));
        House { hub, now: Instant::from_millis(1_000), next: 0, members: BTreeMap::new() }
    }

    fn enter(&mut self, who: As<'_>, intent: Intent) -> Option<(ConnectionId, RoomCode)> {
        let connection = ConnectionId(self.next);
        self.next += 1;
        let auth = who.user.map_or(Auth::Anonymous, |user| Auth::Token(user.to_owned().into()));
        let hello = Hello { auth, environment: who.environment.into(), ..Hello::new(who.app, intent) };
        self.hub.handle_connected(connection, LinkKind::WebSocket, Origin::LOCAL, self.now);
        let mut session = Session::client(hello, LinkKind::WebSocket, self.now);
        self.exchange(connection, &mut session);
        let code = core::iter::from_fn(|| session.poll_event()).find_map(|event| match event {
            Event::Welcome(welcome) => Some(welcome.code),
            _ => None,
        })?;
        self.members.insert(connection, session);
        Some((connection, code))
    }

    fn open(&mut self, who: As<'_>, kind: RoomKind, label: &str, secret: Option<&str>) -> RoomCode {
        let settings = RoomSettings {
            secret: secret.map(str::to_owned),
            host_timeout_ms: (kind == RoomKind::PlayerHosted && label == "a").then_some(500),
            label: if kind == RoomKind::Match { label.to_owned() } else { String::new() },
            ..RoomSettings::new(kind, 6)
        };
        self.enter(who, Intent::Create(settings)).unwrap().1
    }

    fn exchange(&mut self, connection: ConnectionId, session: &mut Session) {
        while let Some(packet) = session.poll_packet(self.now) {
            self.hub.handle_packet(connection, packet, self.now);
        }
        let now = self.now;
        self.turn(&mut |to, packet| {
            if to == connection {
                session.handle_packet(packet, now).unwrap();
            }
        });
    }

    /// Flushes the hub. Other members' packets are dropped: only the hub's own books matter here.
    fn turn(&mut self, to: &mut dyn FnMut(ConnectionId, parlor_proto::Packet)) {
        self.hub.handle_timeout(self.now);
        self.hub.flush(self.now);
        while let Some(output) = self.hub.poll_output() {
            if let Output::Packet { connection, packet } = output {
                to(connection, packet);
            }
        }
    }

    /// All pages of a query.
    fn list(&self, query: &RoomQuery) -> Vec<RoomCode> {
        let (mut query, mut all) = (query.clone(), Vec::new());
        loop {
            let RoomPage { rooms, next, .. } = self.hub.rooms(&query);
            all.extend(rooms.iter().map(|room| room.code));
            match next {
                Some(next) => query.after = Some(next),
                None => return all,
            }
        }
    }

    fn everything(&self) -> Vec<RoomCode> {
        self.list(&RoomQuery { limit: usize::MAX, ..RoomQuery::default() })
    }

    /// A user's seats, found by asking every room.
    fn searched(&self, seats: &UserSeats) -> usize {
        let details = self.everything().into_iter().filter_map(|code| self.hub.room_details(code));
        let of_realm = details.filter(|details| {
            details.room.app == seats.app
                && (seats.environments.is_empty() || seats.environments.contains(&details.room.environment))
        });
        let members = of_realm.flat_map(|details| details.members);
        members.filter(|member| member.user.as_deref() == Some(&seats.user)).count()
    }

    fn labelled(&self, app: &str, label: &str) -> RoomQuery {
        let matches = Some(MatchFilter { label: Some(label.into()), ..MatchFilter::default() });
        RoomQuery { app: Some(app.into()), matches, limit: 3, ..RoomQuery::default() }
    }
}

const APPS: [&str; 2] = ["tanks", "chess"];
const ENVIRONMENTS: [&str; 2] = ["", "live"];
const USERS: [&str; 4] = ["ada", "bob", "cid", "dan"];
const LABELS: [&str; 3] = ["", "a", "b"];

fn drawn<T: Copy>(random: &mut Rng, from: &[T]) -> T {
    from[usize::try_from(random.below(from.len() as u64)).unwrap()]
}

fn change(house: &mut House, random: &mut Rng) {
    let app = drawn(random, &APPS);
    let user = Some(drawn(random, &USERS)).filter(|_| random.below(4) > 0);
    let who = As { app, environment: drawn(random, &ENVIRONMENTS), user };
    let rooms = house.everything();
    let members: Vec<ConnectionId> = house.members.keys().copied().collect();
    match random.below(12) {
        0..=2 => {
            let kind = drawn(random, &[RoomKind::Match, RoomKind::Match, RoomKind::PlayerHosted]);
            let secret = Some("hush").filter(|_| random.below(4) == 0);
            house.open(who, kind, drawn(random, &LABELS), secret);
        }
        3..=6 if !rooms.is_empty() => {
            let code = drawn(random, &rooms);
            let secret = Some("hush".to_owned());
            house.enter(who, Intent::Join { code, secret });
        }
        7 if !members.is_empty() => {
            let connection = drawn(random, &members);
            house.members.remove(&connection);
            house.hub.handle_disconnected(connection, house.now);
        }
        8 if !members.is_empty() => {
            let connection = drawn(random, &members);
            let mut session = house.members.remove(&connection).unwrap();
            session.close(CloseReason::Left, house.now);
            house.exchange(connection, &mut session);
        }
        9 if !rooms.is_empty() => {
            let code = drawn(random, &rooms);
            let members = house.hub.room_details(code).unwrap().members;
            if random.below(3) == 0 || members.is_empty() {
                house.hub.end_room(code, "over".into(), house.now).unwrap();
            } else {
                let ids: Vec<_> = members.iter().map(|member| member.id).collect();
                house.hub.remove_member(code, drawn(random, &ids), "go".into(), house.now).unwrap();
            }
        }
        // Kept seats, host timeouts and silent sessions come due.
        10 => house.now += Duration::from_millis(random.below(4_000)),
        _ => {
            let environments = Some(who.environment.to_owned()).filter(|_| random.below(2) == 0);
            let environments = environments.into_iter().collect();
            let user = drawn(random, &USERS).to_owned();
            let seats = UserSeats { app: app.into(), environments, user };
            let expected = house.searched(&seats);
            assert!(expected <= USER_SEATS_MAX);
            assert_eq!(house.hub.remove_user(&seats, "go", house.now), expected, "{seats:?}");
            assert_eq!(house.searched(&seats), 0, "{seats:?}");
        }
    }
    house.turn(&mut |_, _| {});
}

#[test]
fn threat_50_indexes_find_what_a_search_of_all_rooms_finds() {
    for seed in 0..8 {
        println!("seed {seed}");
        let (mut house, mut random) = (House::new(), Rng::new(seed));
        for _ in 0..400 {
            change(&mut house, &mut random);
            let (app, label) = (drawn(&mut random, &APPS), drawn(&mut random, &LABELS));
            let found = house.list(&house.labelled(app, label));
            let query = RoomQuery { limit: usize::MAX, ..house.labelled(app, label) };
            let all = RoomQuery { matches: Some(MatchFilter::default()), ..query };
            let rooms = house.list(&all).into_iter().filter_map(|code| house.hub.room(code));
            let searched: Vec<_> = rooms.filter(|room| room.label == label).map(|room| room.code).collect();
            assert_eq!(found, searched, "{app} {label:?}");
        }
    }
}

#[test]
fn threat_50_a_question_for_a_label_looks_at_no_other_match() {
    let mut house = House::new();
    let who = As { app: "tanks", environment: "", user: None };
    for number in 0..2_000 {
        house.open(who, RoomKind::Match, if number % 2 == 0 { "a" } else { "" }, None);
    }
    let rare = house.open(who, RoomKind::Match, "rare", None);
    for (label, looked_at) in [("none", 0), ("rare", 1)] {
        let page = house.hub.rooms(&house.labelled("tanks", label));
        assert_eq!((page.looked_at, page.rooms.len(), page.next), (looked_at, looked_at, None), "{label}");
    }
    assert_eq!(house.list(&house.labelled("tanks", "rare")), [rare]);
    // Their matches of another game are none of this one.
    assert_eq!(house.hub.rooms(&house.labelled("chess", "a")).looked_at, 0);
}
