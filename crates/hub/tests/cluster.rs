//! A hub of a cluster: what waits for the store, and what a node without its lease decides.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

#[path = "returns/house.rs"]
#[allow(dead_code, reason = "shared with the tests of members that return")]
mod house;

use house::{GRACE, House};
use parlor_hub::cluster::tenure::Standing;
use parlor_hub::{ClusterConfig, ClusterView, Entered, EnteredRoom, Located, Output};
use parlor_proto::session::Rejection;
use parlor_proto::wire::control::{HandOver, HandOverRefusal, ToHub, ToMember};
use parlor_proto::wire::handshake::{Intent, Refusal, RoomKind, RoomSettings};
use parlor_proto::{CloseReason, ConnectionId, Epoch, MemberId, RoomCode};
use std::sync::Arc;
use std::time::Duration;

/// How many codes are drawn for one room.
const DRAWS_MAX: usize = 4;
/// How long rooms go on at a node that is cut off.
const LAPSED_MAX: Duration = Duration::from_secs(10 * 60);
const HOST_TIMEOUT_MS: u32 = 500;

/// A hub whose node decides.
fn house(waiting_max: usize) -> House {
    let mut house =
        House::with(|config| config.cluster = Some(ClusterConfig { waiting_max, pass_key: None }));
    stand(&mut house, Standing::Held);
    house
}

fn stand(house: &mut House, standing: Standing) {
    let view = ClusterView { standing, load_permille: 0, others: Arc::default(), rooms_elsewhere: 0 };
    house.hub.handle_view(view, house.now);
    house.settle();
}

/// A room whose host role another player may get.
fn settings() -> RoomSettings {
    RoomSettings { host_timeout_ms: Some(HOST_TIMEOUT_MS), ..RoomSettings::new(RoomKind::PlayerHosted, 4) }
}

/// What the hub last asked to enter.
fn entered(house: &mut House) -> (ConnectionId, EnteredRoom) {
    match house.asked.pop() {
        Some(Output::Enter { connection, room }) => (connection, room),
        asked => panic!("{asked:?}"),
    }
}

fn answer(house: &mut House, connection: ConnectionId, answer: Entered) {
    house.hub.handle_entered(connection, answer, house.now);
    house.settle();
}

/// Opens a room that the store takes.
fn open(house: &mut House) -> (ConnectionId, RoomCode) {
    let host = house.greet(Intent::Create(settings()), None);
    let (connection, room) = entered(house);
    assert_eq!(connection, host);
    answer(house, host, Entered::Done);
    assert_eq!(house.welcome(host).code, room.code);
    (host, room.code)
}

/// A room of a host and two guests.
fn room(house: &mut House) -> (ConnectionId, [ConnectionId; 2], RoomCode) {
    let (host, code) = open(house);
    let guests = [house.join(code, None), house.join(code, None)];
    house.pass(Duration::from_secs(4));
    (host, guests, code)
}

fn is_put_off(house: &House, connection: ConnectionId) -> bool {
    matches!(&house.ends[&connection].rejected, Some(Rejection::RetryAfter(retry)) if retry.after == Duration::from_secs(1))
}

/// The hosts that a member was told of, by their epochs.
fn named(house: &House, connection: ConnectionId) -> Vec<(Epoch, MemberId)> {
    let heard = &house.ends[&connection].heard;
    let named = heard.iter().filter_map(|message| match message {
        ToMember::Authority(handover) => Some((handover.epoch, handover.member)),
        _ => None,
    });
    named.collect()
}

#[test]
fn so_many_hellos_wait_for_the_store_and_the_next_is_put_off() {
    let most = ClusterConfig::default().waiting_max;
    assert_eq!(most, 1_024);
    let mut house = house(most);
    // Those of openings and those of joins count alike.
    for number in 0..most {
        match number % 2 {
            0 => house.greet(Intent::Create(settings()), None),
            _ => house.join("HELLO7".parse().unwrap(), None),
        };
    }
    assert_eq!(house.asked.len(), most);
    let late = [house.join("HELLO7".parse().unwrap(), None), house.greet(Intent::Create(settings()), None)];
    assert_eq!(house.asked.len(), most, "the store is asked no more");
    assert!(late.iter().all(|late| is_put_off(&house, *late)));
    // An answer makes room for the next.
    let first = ConnectionId(1);
    house.hub.handle_located(first, Located::At("b.example:7700".into()), house.now);
    house.settle();
    assert!(
        matches!(&house.ends[&first].rejected, Some(Rejection::Redirect(to)) if to.address == "b.example:7700")
    );
    house.join("HELLO7".parse().unwrap(), None);
    assert_eq!(house.asked.len(), most + 1);
}

#[test]
fn a_drawn_code_that_another_node_has_is_drawn_again_a_few_times() {
    let mut house = house(8);
    let host = house.greet(Intent::Create(settings()), None);
    let mut codes = Vec::new();
    for draw in 1..=DRAWS_MAX {
        let (connection, room) = entered(&mut house);
        assert!(connection == host && !codes.contains(&room.code), "{codes:?}, {}", room.code);
        codes.push(room.code);
        assert_eq!(house.ends[&host].rejected, None, "draw {draw}");
        answer(&mut house, host, Entered::Taken);
    }
    assert!(is_put_off(&house, host) && house.asked.is_empty());
    // The room and its place are not kept: the next one opens, under a free code.
    let (_, code) = open(&mut house);
    assert_eq!(house.hub.room_count(), 1);
    assert!(house.hub.room(code).is_some() && codes.iter().all(|code| house.hub.room(*code).is_none()));
    // A chosen one is refused at once.
    let chosen = RoomSettings { code: Some("HELLO7".parse().unwrap()), ..settings() };
    let host = house.greet(Intent::Create(chosen), None);
    entered(&mut house);
    answer(&mut house, host, Entered::Taken);
    assert_eq!(house.ends[&host].rejected, Some(Rejection::Refused(Refusal::CodeTaken)));
}

#[test]
fn what_waits_for_a_client_that_left_is_given_up() {
    let mut house = house(2);
    let opener = house.greet(Intent::Create(settings()), None);
    let (_, room) = entered(&mut house);
    let joiner = house.join("HELLO7".parse().unwrap(), None);
    house.asked.clear();
    house.hang_up(opener);
    house.hang_up(joiner);
    // It counts until the store has answered: else a client that comes and goes could ask without a bound.
    let late = house.join("HELLO7".parse().unwrap(), None);
    assert!(is_put_off(&house, late));
    answer(&mut house, opener, Entered::Done);
    house.hub.handle_located(joiner, Located::Here, house.now);
    house.settle();
    // Nobody is in the room: its row goes, and it is not here.
    assert!(
        matches!(&house.asked[..], [Output::Left { code, uid }] if (*code, *uid) == (room.code, room.uid))
    );
    assert_eq!(house.hub.room_count(), 0);
    house.asked.clear();
    house.join("HELLO7".parse().unwrap(), None);
    assert_eq!(house.asked.len(), 1, "there is room again");
}

#[test]
fn threat_34_a_node_without_its_lease_admits_nobody_and_opens_nothing() {
    let mut house = house(8);
    let (host, guests, code) = room(&mut house);
    for standing in [Standing::Joining, Standing::Lapsed, Standing::Ousted] {
        stand(&mut house, standing);
        let joins = house.join(code, None);
        let opens = house.greet(Intent::Create(settings()), None);
        assert!(is_put_off(&house, joins) && is_put_off(&house, opens), "{standing:?}");
    }
    assert_eq!(house.members(code), [0, 1, 2]);
    // Its members resume their sessions.
    let ticket = house.ticket(guests[0]);
    house.hang_up(guests[0]);
    let back = house.resume(ticket);
    assert_eq!(house.member(back), MemberId(1));
    assert!(house.ends[&host].over.is_none());
}

#[test]
fn threat_34_what_the_store_answers_after_the_lease_opens_and_admits_nothing() {
    let mut house = house(8);
    let opens = house.greet(Intent::Create(settings()), None);
    let (_, room) = entered(&mut house);
    let joins = house.join("HELLO7".parse().unwrap(), None);
    house.asked.clear();
    stand(&mut house, Standing::Lapsed);
    answer(&mut house, opens, Entered::Done);
    house.hub.handle_located(joins, Located::Here, house.now);
    house.settle();
    assert!(is_put_off(&house, opens) && is_put_off(&house, joins));
    assert_eq!(house.hub.room_count(), 0);
    assert!(
        matches!(&house.asked[..], [Output::Left { code, uid }] if (*code, *uid) == (room.code, room.uid))
    );
}

#[test]
fn threat_34_a_lapsed_node_names_no_host_in_place_of_a_silent_one_until_it_decides_again() {
    let mut house = house(8);
    let (host, guests, code) = room(&mut house);
    stand(&mut house, Standing::Lapsed);
    // It is silent: its link is there, and nothing comes.
    let silent = house.ends.remove(&host);
    house.pass(Duration::from_secs(5));
    assert_eq!(named(&house, guests[0]), []);
    stand(&mut house, Standing::Held);
    house.pass(Duration::from_secs(1));
    assert_eq!(named(&house, guests[0]), [(Epoch(1), MemberId(1))]);
    assert_eq!(named(&house, guests[1]), [(Epoch(1), MemberId(1))]);
    assert!(house.hub.room(code).is_some());
    drop(silent);
}

#[test]
fn threat_34_a_lapsed_node_names_no_host_in_place_of_a_lost_one_until_it_decides_again() {
    let mut house = house(8);
    let (host, guests, code) = room(&mut house);
    stand(&mut house, Standing::Lapsed);
    house.hang_up(host);
    house.pass(Duration::from_secs(5));
    assert_eq!(named(&house, guests[0]), []);
    let is_away = |message: &ToMember| matches!(message, ToMember::Away { member: MemberId(0), .. });
    assert!(!house.ends[&guests[0]].heard.iter().any(is_away));
    stand(&mut house, Standing::Held);
    house.pass(Duration::from_secs(1));
    assert_eq!(named(&house, guests[0]), [(Epoch(1), MemberId(1))]);
    assert_eq!(house.ends[&guests[0]].heard.iter().filter(|it| is_away(it)).count(), 1);
    // From then on it is as anywhere: its seat is freed after the grace.
    house.pass(GRACE);
    assert_eq!(house.members(code), [1, 2]);
}

#[test]
fn a_host_that_is_back_before_the_lease_stays_the_host() {
    let mut house = house(8);
    let (host, guests, code) = room(&mut house);
    let ticket = house.ticket(host);
    stand(&mut house, Standing::Lapsed);
    house.hang_up(host);
    house.pass(Duration::from_secs(2));
    // Its process began anew: it would be its own heir.
    let anew = house.resume(ticket);
    assert!(is_put_off(&house, anew), "{:?}", house.ends[&anew].rejected);
    stand(&mut house, Standing::Held);
    let anew = house.resume(ticket);
    assert_eq!(house.member(anew), MemberId(0));
    assert_eq!(named(&house, guests[0]), [(Epoch(1), MemberId(0))]);
    assert_eq!(house.members(code), [0, 1, 2]);
}

#[test]
fn threat_34_a_room_whose_host_leaves_a_lapsed_node_ends() {
    let mut house = house(8);
    let (host, guests, code) = room(&mut house);
    stand(&mut house, Standing::Lapsed);
    house.leave(host);
    for guest in guests {
        assert_eq!((named(&house, guest), &house.ends[&guest].over), (vec![], &Some(CloseReason::HostLeft)));
    }
    assert!(house.hub.room(code).is_none());
    // While it decides, another one is named.
    stand(&mut house, Standing::Held);
    let (host, guests, _) = room(&mut house);
    house.leave(host);
    assert_eq!(named(&house, guests[0]), [(Epoch(1), MemberId(1))]);
}

#[test]
fn threat_34_a_host_of_a_lapsed_node_hands_its_part_over_later() {
    let mut house = house(8);
    let (host, guests, _) = room(&mut house);
    let hand_over = ToHub::HandOver(HandOver { epoch: Epoch(0), to: None });
    stand(&mut house, Standing::Lapsed);
    house.tell(host, &hand_over);
    assert_eq!(named(&house, guests[0]), []);
    assert!(house.ends[&host].heard.contains(&ToMember::NotHandedOver(HandOverRefusal::TooSoon)));
    stand(&mut house, Standing::Held);
    house.tell(host, &hand_over);
    assert_eq!(named(&house, guests[0]), [(Epoch(1), MemberId(1))]);
}

#[test]
fn the_rooms_of_a_node_that_is_cut_off_end_after_ten_minutes() {
    let mut house = house(8);
    let (host, guests, code) = room(&mut house);
    stand(&mut house, Standing::Lapsed);
    house.pass(LAPSED_MAX - Duration::from_secs(10));
    assert!(house.hub.room(code).is_some());
    // Its lease for a moment begins the time anew.
    stand(&mut house, Standing::Held);
    stand(&mut house, Standing::Ousted);
    house.pass(LAPSED_MAX - Duration::from_secs(10));
    assert!(house.hub.room(code).is_some());
    house.asked.clear();
    house.pass(Duration::from_secs(12));
    assert!(house.hub.room(code).is_none());
    let reason = "this server was cut off from its store for too long".to_owned();
    for member in [host, guests[0], guests[1]] {
        assert_eq!(house.ends[&member].over, Some(CloseReason::RoomEnded { reason: reason.clone() }));
    }
    assert!(matches!(&house.asked[..], [Output::Left { .. }]), "its row goes once the store is back");
}

#[test]
fn a_draining_node_without_another_one_puts_openings_off_and_admits_members() {
    let mut house = house(8);
    let (_, _, code) = room(&mut house);
    stand(&mut house, Standing::Draining);
    let opens = house.greet(Intent::Create(settings()), None);
    assert!(is_put_off(&house, opens));
    let joins = house.join(code, None);
    assert_eq!(house.member(joins), MemberId(3));
}
