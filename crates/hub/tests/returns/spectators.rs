//! Spectators in a hub: their seats, and that they take none of the players'.

use crate::house::{GRACE, House};
use parlor_hub::{Config, HubEvent};
use parlor_proto::session::{Outgoing, Rejection};
use parlor_proto::wire::control::{LeaveReason, PlayerData, ToHub, ToMember};
use parlor_proto::wire::handshake::{Hello, Intent, Refusal, RoomKind, RoomSettings, capability};
use parlor_proto::{ChannelId, CloseReason, ConnectionId, MemberId, RoomCode, channel, limits};
use std::time::Duration;

const SPECTATES: u64 = capability::RETURNS | capability::SPECTATES;

impl House {
    /// Opens a room with the default number of seats for spectators.
    fn open_watched(&mut self, kind: RoomKind, max_players: u16) -> (ConnectionId, RoomCode) {
        let intent = Intent::Create(RoomSettings::new(kind, max_players));
        let host = self.greet_as(Hello { capabilities: SPECTATES, ..Hello::new("tanks", intent) }, None);
        (host, self.welcome(host).code)
    }

    fn watch(&mut self, code: RoomCode, user: Option<&str>) -> ConnectionId {
        let intent = Intent::Join { code, secret: None };
        self.greet_as(Hello { capabilities: SPECTATES, ..Hello::new("tanks", intent) }, user)
    }

    fn is_full(&self, connection: ConnectionId, refusal: Refusal) -> bool {
        self.ends[&connection].rejected == Some(Rejection::Refused(refusal))
    }

    /// What an end was told of members that joined: their ids, and whether they are spectators.
    fn told(&self, connection: ConnectionId) -> Vec<(u32, bool)> {
        let (mut told, mut spectators) = (Vec::new(), Vec::new());
        for message in &self.ends[&connection].heard {
            match message {
                ToMember::Spectators(members) => spectators.clone_from(members),
                ToMember::Joined(info) => told.push((info.id.0, spectators.contains(&info.id))),
                _ => {}
            }
        }
        told
    }

    fn counts(&self, code: RoomCode) -> (usize, usize) {
        let room = self.hub.room(code).expect("the room is there");
        (room.players, room.spectators)
    }

    fn say(&mut self, connection: ConnectionId, channel: ChannelId, payload: &'static [u8]) {
        let end = self.ends.get_mut(&connection).expect("it is there");
        end.session.send(Outgoing::new(channel, payload.into())).expect("it is open");
        self.settle();
    }
}

#[test]
fn threat_45_m1_spectators_and_players_have_seats_of_their_own() {
    let mut house = House::new();
    let (host, code) = house.open_watched(RoomKind::PlayerHosted, 2);
    let watching: Vec<ConnectionId> =
        (0..limits::SPECTATORS_DEFAULT).map(|_| house.watch(code, None)).collect();
    let guest = house.join(code, None);
    assert!(house.welcome(watching[0]).spectates() && !house.welcome(guest).spectates());
    assert!(!house.welcome(host).spectates(), "who opens a room plays");
    assert_eq!(house.counts(code), (2, watching.len()));
    let (no_player, no_watcher) = (house.join(code, None), house.watch(code, None));
    assert!(house.is_full(no_player, Refusal::RoomFull { max: 2 }));
    assert!(house.is_full(no_watcher, Refusal::SpectatorsFull { max: limits::SPECTATORS_DEFAULT }));
    // A seat that is free again is one of its part.
    house.leave(watching[3]);
    let no_player = house.join(code, None);
    assert!(house.is_full(no_player, Refusal::RoomFull { max: 2 }));
    let next = house.watch(code, None);
    house.leave(guest);
    let no_watcher = house.watch(code, None);
    assert!(house.is_full(no_watcher, Refusal::SpectatorsFull { max: limits::SPECTATORS_DEFAULT }));
    let other = house.join(code, None);
    assert_eq!(house.counts(code), (2, watching.len()));
    // Each member knows the spectator.
    for (end, me) in [(host, 0), (next, house.member(next).0), (other, house.member(other).0)] {
        let told = house.told(end);
        assert!(told.contains(&(me, end == next)) && told.contains(&(0, false)), "{told:?}");
        let watcher = house.member(next).0;
        assert!(told.contains(&(watcher, true)), "{told:?}");
    }
}

#[test]
fn m1_a_room_takes_as_many_spectators_as_its_opener_says() {
    let mut house = House::new();
    // An older client opens it: its host does not know spectators.
    let (host, code) = house.open(2);
    let none = house.watch(code, None);
    assert!(house.is_full(none, Refusal::SpectatorsFull { max: 0 }));
    house.tell(host, &ToHub::Spectators { most: 1 });
    let watcher = house.watch(code, None);
    assert!(house.welcome(watcher).spectates());
    let none = house.watch(code, None);
    assert!(house.is_full(none, Refusal::SpectatorsFull { max: 1 }));
    // Fewer remove nobody.
    house.tell(host, &ToHub::Spectators { most: 0 });
    assert_eq!(house.counts(code), (1, 1));
    let none = house.watch(code, None);
    assert!(house.is_full(none, Refusal::SpectatorsFull { max: 0 }));
    // Nobody else says it.
    let guest = house.join(code, None);
    house.tell(guest, &ToHub::Spectators { most: 9 });
    assert!(matches!(house.ends[&guest].over, Some(CloseReason::Misbehaved { .. })));
    // All members together are as many as any room has.
    let (_, code) = house.open_watched(RoomKind::Match, 255);
    let _ = house.watch(code, None);
    let none = house.watch(code, None);
    assert!(house.is_full(none, Refusal::SpectatorsFull { max: 1 }));
}

#[test]
fn threat_21_m1_a_spectator_that_says_what_players_say_is_turned_out() {
    let said: [(ChannelId, &'static [u8]); 9] = [
        (channel::INPUT, b"\0"),
        (channel::STATE, b"\0"),
        (channel::ACTIONS, b"\0"),
        (channel::REPLICAS, b"\0"),
        (channel::PATH, b"\0\0"),
        (channel::MESSAGE_ORDERED, b"\x01\x04kind\0"),
        (channel::MESSAGE_UNORDERED, b"\x01\x04kind\0"),
        (channel::MESSAGE_UNRELIABLE, b"\x01\x04kind\0"),
        (channel::MATCH_DATA, b"\x01\x02\0"),
    ];
    for (channel, payload) in said {
        let kind = if channel == channel::MATCH_DATA { RoomKind::Match } else { RoomKind::PlayerHosted };
        let mut house = House::new();
        let (host, code) = house.open_watched(kind, 2);
        let watcher = house.watch(code, None);
        house.say(watcher, channel, payload);
        let over = house.ends[&watcher].over.clone();
        assert!(
            matches!(&over, Some(CloseReason::Misbehaved { detail }) if detail.contains("from a spectator")),
            "{channel}: {over:?}"
        );
        assert_eq!((house.counts(code), &house.ends[&host].over), ((1, 0), &None), "{channel}");
    }
    let mut house = House::new();
    let (host, code) = house.open_watched(RoomKind::PlayerHosted, 2);
    let watcher = house.watch(code, None);
    // What a host sets for it is dropped: an older host takes it for a player.
    let member = house.member(watcher);
    let data = |member| PlayerData { member, key: "team".into(), value: Some("red".into()) };
    house.tell(host, &ToHub::SetData(data(member)));
    assert_eq!((house.counts(code), &house.ends[&host].over), ((1, 1), &None));
    let heard = |house: &House, end: ConnectionId| {
        house.ends[&end].heard.iter().any(|message| matches!(message, ToMember::Data(_)))
    };
    assert!(!heard(&house, host) && !heard(&house, watcher));
    house.set_data(watcher, "red");
    assert!(matches!(house.ends[&watcher].over, Some(CloseReason::Misbehaved { .. })));
    assert!(!heard(&house, host));
}

#[test]
fn m1_a_spectator_that_was_lost_returns_as_one_and_takes_no_players_place() {
    let mut house = House::new();
    let (host, code) = house.open_watched(RoomKind::PlayerHosted, 2);
    let (guest, watcher) = (house.join(code, Some("ada")), house.watch(code, Some("bob")));
    let (player, id) = (house.member(guest), house.member(watcher));
    // Within the grace, by its ticket.
    let ticket = house.ticket(watcher);
    house.hang_up(watcher);
    let watcher = house.resume(ticket);
    assert!(house.member(watcher) == id && house.welcome(watcher).spectates());
    // After it, by its ticket and by its user.
    let ticket = house.ticket(watcher);
    house.lose(watcher);
    assert_eq!(house.counts(code), (2, 0));
    let watcher = house.resume(ticket);
    assert!(house.member(watcher) == id && house.welcome(watcher).spectates());
    house.lose(watcher);
    let watcher = house.watch(code, Some("bob"));
    assert!(house.member(watcher) == id && house.welcome(watcher).spectates());
    assert!(house.told(host).ends_with(&[(id.0, true)]));
    // A user that plays is not the spectator that it was, nor the other way round, while its seat is kept and after.
    house.leave(guest);
    for is_kept in [true, false] {
        let old = house.watch(code, Some("cy"));
        let watched = house.member(old);
        if is_kept {
            house.hang_up(old)
        } else {
            house.lose(old)
        }
        let plays = house.join(code, Some("cy"));
        assert_ne!(house.member(plays), watched);
        assert!(!house.welcome(plays).spectates());
        house.leave(plays);
        let again = house.watch(code, Some("cy"));
        assert_eq!((house.member(again), house.welcome(again).spectates()), (watched, true));
        house.leave(again);
    }
    assert_ne!(player, id);
}

#[test]
fn threat_45_m1_spectators_that_come_and_go_push_no_player_out_of_memory() {
    let mut house = House::new();
    let (_, code) = house.open_watched(RoomKind::PlayerHosted, 2);
    let guest = house.join(code, None);
    house.set_data(guest, "red");
    let (id, ticket) = (house.member(guest), house.ticket(guest));
    house.lose(guest);
    for _ in 0..3 * limits::SPECTATORS_DEFAULT {
        let watcher = house.watch(code, None);
        house.hang_up(watcher);
        house.pass(Duration::from_secs(5));
    }
    house.pass(GRACE);
    let again = house.resume(ticket);
    assert_eq!(house.member(again), id);
    assert_eq!(house.joined_with(again, id), Some(Some("red".into())));
}

#[test]
fn m1_a_room_whose_players_are_gone_ends_although_some_watch() {
    // A room with migration: its only heir would be a spectator.
    let settings = RoomSettings {
        host_timeout_ms: Some(limits::HOST_TIMEOUT_MS_DEFAULT),
        ..RoomSettings::new(RoomKind::PlayerHosted, 4)
    };
    for leaves in [true, false] {
        let mut house = House::new();
        let hello = Hello::new("tanks", Intent::Create(settings.clone()));
        let host = house.greet_as(Hello { capabilities: SPECTATES, ..hello }, None);
        let code = house.welcome(host).code;
        let watcher = house.watch(code, None);
        if leaves {
            house.leave(host)
        } else {
            house.lose(host)
        }
        let over = if leaves { CloseReason::HostLeft } else { CloseReason::HostGone };
        assert_eq!(house.ends[&watcher].over, Some(over));
        assert_eq!(house.hub.room_count(), 0);
        let named =
            |it: &ToMember| matches!(it, ToMember::Authority(_) | ToMember::Primary(Some(MemberId(1))));
        assert!(!house.ends[&watcher].heard.iter().any(named), "it is named nothing");
    }
    // A match ends with its last player, not with its spectators.
    let mut house = House::new();
    let (first, code) = house.open_watched(RoomKind::Match, 4);
    let (second, watcher) = (house.join(code, None), house.watch(code, None));
    house.leave(first);
    assert_eq!(house.counts(code), (1, 1));
    house.leave(second);
    let reason = "its last player left".to_owned();
    assert_eq!(house.ends[&watcher].over, Some(CloseReason::RoomEnded { reason }));
    assert_eq!(house.hub.room_count(), 0);
}

#[test]
fn threat_25_m1_the_heir_of_a_room_is_a_player_although_a_spectator_came_first() {
    let settings = RoomSettings {
        host_timeout_ms: Some(limits::HOST_TIMEOUT_MS_DEFAULT),
        ..RoomSettings::new(RoomKind::PlayerHosted, 4)
    };
    let mut house = House::new();
    let hello = Hello::new("tanks", Intent::Create(settings));
    let host = house.greet_as(Hello { capabilities: SPECTATES, ..hello }, None);
    let code = house.welcome(host).code;
    let (watcher, guest) = (house.watch(code, None), house.join(code, None));
    assert!(house.member(watcher) < house.member(guest), "the lowest id takes over");
    house.leave(host);
    for end in [watcher, guest] {
        let heir = house.ends[&end].heard.iter().find_map(|message| match message {
            ToMember::Authority(handover) => Some(handover.member),
            _ => None,
        });
        assert_eq!(heir, Some(house.member(guest)));
        let primary = house.ends[&end].heard.iter().rev().find_map(|message| match message {
            ToMember::Primary(primary) => Some(*primary),
            _ => None,
        });
        assert_eq!(primary, Some(Some(house.member(guest))));
    }
    assert_eq!(house.counts(code), (1, 1));
}

#[test]
fn m1_a_spectator_is_kicked_as_a_player_is() {
    let mut house = House::with(|config: &mut Config| config.kept.all = 10);
    let (host, code) = house.open_watched(RoomKind::PlayerHosted, 2);
    let watcher = house.watch(code, None);
    let (member, ticket) = (house.member(watcher), house.ticket(watcher));
    house.tell(host, &ToHub::Kick { member, reason: "rude".into() });
    let reason = "rude".to_owned();
    assert_eq!(house.ends[&watcher].over, Some(CloseReason::Kicked { reason: reason.clone() }));
    assert!(house.happened.contains(&HubEvent::Left {
        code,
        member,
        reason: LeaveReason::Kicked { reason }
    }));
    let again = house.resume(ticket);
    assert!(house.ends[&again].welcome.is_none());
    assert_eq!(house.counts(code), (1, 0));
}
