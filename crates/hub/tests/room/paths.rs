//! Direct paths: which members are introduced, and at which addresses.

use crate::harness::{HOST, schema, settings, setup};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use parlor_hub::room::{Input, Output, Room};
use parlor_proto::limits::{MESH_MEMBERS_MAX, PATH_CANDIDATES_INTERVAL, PATH_CANDIDATES_MAX};
use parlor_proto::wire::control::{LeaveReason, ToHub, ToMember};
use parlor_proto::wire::handshake::{RoomKind, RoomSettings};
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole};
use parlor_proto::{Epoch, Instant, LinkKind, MemberId, PathId, channel};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NOW: Instant = Instant::from_millis(1_000);
const GUEST: MemberId = MemberId(1);
const OTHER: MemberId = MemberId(2);

fn address(text: &str) -> SocketAddr {
    text.parse().expect("it is an address")
}

/// A host and two guests; the last one wants no paths.
fn room(host_timeout_ms: Option<u32>) -> Room {
    let settings = settings(RoomKind::PlayerHosted, &schema());
    let mut room = Room::new(setup(RoomSettings { host_timeout_ms, ..settings })).expect("it is a room");
    for _ in 0..3 {
        tell(
            &mut room,
            Input::Join { name: String::new(), user: None, link: LinkKind::Quic, spectates: false },
            NOW,
        );
    }
    seen(&mut room, HOST, "203.0.113.1:4000");
    seen(&mut room, GUEST, "203.0.113.2:4000");
    offers(&mut room);
    room
}

fn tell(room: &mut Room, input: Input, now: Instant) {
    room.handle(input, now).expect("nobody is at fault");
}

/// A member that wants paths is observed at an address.
fn seen(room: &mut Room, member: MemberId, at: &str) {
    let byte = u8::try_from(member.0).expect("few members");
    let observed = Some(address(at));
    let input = Input::Reachable { member, key: [byte; 32], observed, seed: 7 + u64::from(member.0) };
    tell(room, input, NOW);
}

fn say(room: &mut Room, from: MemberId, message: &ToHub, now: Instant) {
    let (channel, payload) = (channel::CONTROL, message.encode());
    tell(room, Input::Message { from, channel, key: 0, payload, epoch: Epoch(0) }, now);
}

fn name(room: &mut Room, from: MemberId, addresses: Vec<SocketAddr>, now: Instant) {
    say(
        room,
        from,
        &ToHub::Candidates(Candidates { addresses, may_tell_observed: true, wants_all: false }),
        now,
    );
}

/// As [`name`], and wants a path to everybody.
fn name_to_all(room: &mut Room, from: MemberId, addresses: Vec<SocketAddr>, now: Instant) {
    let candidates = Candidates { addresses, may_tell_observed: true, wants_all: true };
    say(room, from, &ToHub::Candidates(candidates), now);
}

/// The paths offered, by receiver.
fn offers(room: &mut Room) -> Vec<(MemberId, PathOffer)> {
    let outputs: Vec<Output> = std::iter::from_fn(|| room.poll_output()).collect();
    let mut offers = Vec::new();
    for output in outputs {
        let Output::Send { to, message } = output else { continue };
        if message.channel == channel::CONTROL
            && let Ok(Some(ToMember::Path(offer))) = ToMember::decode(message.payload.clone())
        {
            offers.extend(to.into_iter().map(|member| (member, offer.clone())));
        }
    }
    offers
}

/// The announced changes of direct paths: receiver, member, and whether it has one.
fn directs(room: &mut Room) -> Vec<(MemberId, MemberId, bool)> {
    let outputs: Vec<Output> = std::iter::from_fn(|| room.poll_output()).collect();
    let mut directs = Vec::new();
    for output in outputs {
        let Output::Send { to, message } = output else { continue };
        if message.channel == channel::CONTROL
            && let Ok(Some(ToMember::Direct { member, direct })) = ToMember::decode(message.payload.clone())
        {
            directs.extend(to.into_iter().map(|to| (to, member, direct)));
        }
    }
    directs
}

#[test]
fn m1_a_spectator_is_offered_no_path_and_learns_no_address() {
    let mut room = room(None);
    let watcher = room.next_member();
    let join = |spectates| Input::Join { name: String::new(), user: None, link: LinkKind::Quic, spectates };
    tell(&mut room, join(true), NOW);
    seen(&mut room, watcher, "203.0.113.9:4000");
    name(&mut room, HOST, vec![address("203.0.113.1:4000")], NOW);
    name(&mut room, watcher, vec![address("203.0.113.9:4000")], NOW);
    assert_eq!(offers(&mut room), []);
    // A player in its place gets one.
    let player = room.next_member();
    tell(&mut room, join(false), NOW);
    seen(&mut room, player, "203.0.113.9:4000");
    name(&mut room, player, vec![address("203.0.113.9:4000")], NOW);
    let peers: BTreeSet<MemberId> = offers(&mut room).into_iter().map(|(to, _)| to).collect();
    assert_eq!(peers, BTreeSet::from([HOST, player]));
}

#[test]
fn t7_members_that_want_a_mesh_are_introduced_to_each_other_and_nobody_else_is() {
    let mut room = room(None);
    let seat = |room: &mut Room| {
        let member = room.next_member();
        let join = Input::Join { name: String::new(), user: None, link: LinkKind::Quic, spectates: false };
        tell(room, join, NOW);
        seen(room, member, &format!("203.0.113.{}:4000", 10 + member.0));
        member
    };
    let (a, b, shy) = (seat(&mut room), seat(&mut room), seat(&mut room));
    let own = |member: MemberId| vec![address(&format!("10.0.0.{}:1", 10 + member.0))];
    name_to_all(&mut room, a, own(a), NOW);
    name(&mut room, shy, own(shy), NOW);
    assert_eq!(offers(&mut room), [], "there is nobody else yet, and the host has said nothing");
    name_to_all(&mut room, b, own(b), NOW);
    let told = offers(&mut room);
    let [(to_a, at_a), (to_b, at_b)] = &told[..] else { panic!("one pair is introduced: {told:?}") };
    assert_eq!((*to_a, at_a.peer, at_a.role), (a, b, PathRole::Accept));
    assert_eq!((*to_b, at_b.peer, at_b.role), (b, a, PathRole::Dial));
    assert!(at_a.id == at_b.id && !at_a.has_authority && !at_b.passes_on);

    // While one end says that the path is up, the two are not introduced again.
    say(&mut room, a, &ToHub::PathUp { id: at_a.id }, NOW);
    let later = NOW + PATH_CANDIDATES_INTERVAL;
    name_to_all(&mut room, b, own(b), later);
    assert_eq!(offers(&mut room), []);
    say(&mut room, a, &ToHub::PathDown { id: at_a.id, was_up: true }, later);
    name_to_all(&mut room, b, own(b), later + PATH_CANDIDATES_INTERVAL);
    let ids: BTreeSet<PathId> = offers(&mut room).into_iter().map(|(_, offer)| offer.id).collect();
    assert!(ids.len() == 1 && !ids.contains(&at_a.id));

    // A stranger's word on their path counts for nothing.
    let id = *ids.first().expect("there is one");
    say(&mut room, shy, &ToHub::PathUp { id }, later);
    name_to_all(&mut room, b, own(b), later + 2 * PATH_CANDIDATES_INTERVAL);
    assert_eq!(offers(&mut room).len(), 2);
}

#[test]
fn threat_13_a_mesh_has_so_many_members_and_the_others_are_relayed_to() {
    let settings = RoomSettings { max_players: 40, ..settings(RoomKind::PlayerHosted, &schema()) };
    let mut room = Room::new(setup(settings)).expect("it is a room");
    let mut members = Vec::new();
    for number in 0..30 {
        let member = room.next_member();
        let join = Input::Join { name: String::new(), user: None, link: LinkKind::Quic, spectates: false };
        tell(&mut room, join, NOW);
        seen(&mut room, member, &format!("203.0.113.{}:4000", 10 + number));
        members.push(member);
    }
    let mut met: BTreeMap<MemberId, BTreeSet<MemberId>> = BTreeMap::new();
    for member in &members[1..] {
        name_to_all(&mut room, *member, vec![address("10.0.0.7:1")], NOW);
        offers(&mut room).into_iter().for_each(|(to, offer)| {
            met.entry(to).or_default().insert(offer.peer);
        });
    }
    assert_eq!(met.len(), MESH_MEMBERS_MAX);
    assert!(met.values().all(|peers| peers.len() == MESH_MEMBERS_MAX - 1));
}

#[test]
fn both_ends_are_introduced_once_both_want_it() {
    for host_timeout_ms in [None, Some(250)] {
        let mut room = room(host_timeout_ms);
        name(&mut room, GUEST, vec![address("10.0.0.2:1")], NOW);
        assert_eq!(offers(&mut room), [], "the host has said nothing yet");
        name(&mut room, HOST, vec![address("10.0.0.1:1")], NOW);
        let told = offers(&mut room);
        let id = told.first().expect("they are introduced").1.id;
        let offer = |peer: MemberId, role, candidates: [&str; 2]| PathOffer {
            id,
            peer,
            fingerprint: [u8::try_from(peer.0).expect("few members"); 32],
            role,
            has_authority: true,
            passes_on: host_timeout_ms.is_some(),
            candidates: candidates.map(address).to_vec(),
        };
        let to_host = offer(GUEST, PathRole::Accept, ["203.0.113.2:4000", "10.0.0.2:1"]);
        let to_guest = offer(HOST, PathRole::Dial, ["203.0.113.1:4000", "10.0.0.1:1"]);
        assert_eq!(told, [(HOST, to_host), (GUEST, to_guest)]);
        name(&mut room, OTHER, vec![address("10.0.0.3:1")], NOW);
        assert_eq!(offers(&mut room), [], "who showed no certificate is told to nobody");
    }
}

#[test]
fn threat_11_addresses_that_cannot_be_a_members_own_are_told_to_nobody() {
    let forged = [
        "224.0.0.1:5353",
        "255.255.255.255:7",
        "0.0.0.0:80",
        "0.1.2.3:80",
        "240.0.0.1:80",
        "127.0.0.1:22",
        "10.0.0.9:0",
        "[::]:80",
        "[::1]:22",
        "[ff02::1]:80",
        "[fe80::1]:80",
        "[::ffff:127.0.0.1]:22",
        "[::ffff:224.0.0.1]:80",
    ];
    for forged in forged.map(address) {
        let mut room = room(None);
        name(&mut room, HOST, vec![forged, address("10.0.0.1:1")], NOW);
        name(&mut room, GUEST, vec![address("10.0.0.2:1"), forged], NOW);
        assert_eq!(room.counters().candidates_refused, 2, "{forged} is refused and counted");
        let told = offers(&mut room);
        assert_eq!(told.len(), 2, "what else was named counts");
        assert!(told.iter().all(|(_, offer)| !offer.candidates.contains(&forged)), "{forged}: {told:?}");
    }
}

#[test]
fn threat_11_loopback_is_told_between_two_of_the_hubs_own_machine_alone() {
    let own = || vec![address("127.0.0.1:9000")];
    for (is_guest_local, expected) in [(true, true), (false, false)] {
        let mut room = room(None);
        seen(&mut room, HOST, "127.0.0.1:4000");
        if is_guest_local {
            seen(&mut room, GUEST, "127.0.0.1:5000");
        }
        name(&mut room, HOST, own(), NOW);
        name(&mut room, GUEST, vec![address("10.0.0.2:1")], NOW);
        let told = offers(&mut room);
        let is_told = told.iter().any(|(_, offer)| offer.candidates.iter().any(|it| it.ip().is_loopback()));
        assert_eq!(is_told, expected, "{told:?}");
    }
}

#[test]
fn threat_11_who_names_addresses_too_often_is_not_heard() {
    let mut room = room(None);
    name(&mut room, HOST, vec![address("10.0.0.1:1")], NOW);
    let mut ids = BTreeSet::<PathId>::new();
    for ms in 0..30_000 {
        // An attempt to flood victims of the attacker's choice.
        let victim = Ipv4Addr::from(0x0900_0000 + ms);
        let now = NOW + Duration::from_millis(ms.into());
        name(&mut room, GUEST, vec![SocketAddr::new(IpAddr::from(victim), 53)], now);
        ids.extend(offers(&mut room).into_iter().map(|(_, offer)| offer.id));
    }
    let most = 30_000 / PATH_CANDIDATES_INTERVAL.as_millis();
    assert_eq!(ids.len() as u128, most, "one path for each time that it is heard");
    assert_eq!(u128::from(room.counters().candidates_refused), 30_000 - most, "the others are counted");
}

#[test]
fn threat_11_no_more_addresses_are_told_than_an_attempt_may_have() {
    let mut room = room(None);
    let many = |net: u16| -> Vec<SocketAddr> {
        let ip = |host: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host));
        (1..).map(|host| SocketAddr::new(ip(host), 443)).take(PATH_CANDIDATES_MAX).collect()
    };
    name(&mut room, HOST, many(1), NOW);
    name(&mut room, GUEST, many(2), NOW);
    let told = offers(&mut room);
    assert_eq!(told.len(), 2);
    // The observed address comes first and displaces another.
    for (_, offer) in told {
        assert_eq!(offer.candidates.len(), PATH_CANDIDATES_MAX);
        assert!(offer.candidates[0].is_ipv4());
    }
}

#[test]
fn threat_11_who_is_seen_elsewhere_is_told_there_from_then_on() {
    let mut room = room(None);
    name(&mut room, HOST, Vec::new(), NOW);
    seen(&mut room, GUEST, "203.0.113.2:5555");
    name(&mut room, GUEST, Vec::new(), NOW);
    let told = offers(&mut room);
    let to_host = told.iter().find(|(to, _)| *to == HOST).expect("it is told");
    assert_eq!(to_host.1.candidates, [address("203.0.113.2:5555")]);
}

#[test]
fn threat_13_who_says_of_anothers_path_that_it_stands_or_fell_changes_nothing() {
    let mut room = room(None);
    seen(&mut room, OTHER, "203.0.113.3:4000");
    for member in [HOST, GUEST, OTHER] {
        name(&mut room, member, Vec::new(), NOW);
    }
    let told = offers(&mut room);
    let id_of = |member| told.iter().find(|(to, _)| *to == member).expect("it is introduced").1.id;
    let (of_guest, of_other) = (id_of(GUEST), id_of(OTHER));
    for stranger in [HOST, OTHER] {
        say(&mut room, stranger, &ToHub::PathUp { id: of_guest }, NOW);
    }
    assert_eq!((room.counters().paths_up, directs(&mut room)), (0, vec![]));
    say(&mut room, GUEST, &ToHub::PathUp { id: of_guest }, NOW);
    let mut all = directs(&mut room);
    all.sort_unstable();
    assert_eq!(all, [HOST, GUEST, OTHER].map(|to| (to, GUEST, true)));
    for stranger in [HOST, OTHER] {
        say(&mut room, stranger, &ToHub::PathDown { id: of_guest, was_up: true }, NOW);
    }
    say(&mut room, GUEST, &ToHub::PathDown { id: of_other, was_up: false }, NOW);
    assert_eq!(directs(&mut room), [], "it stands");
}

#[test]
fn a_new_authority_is_introduced_when_it_goes_on_and_not_before() {
    let mut room = room(Some(250));
    seen(&mut room, OTHER, "203.0.113.3:4000");
    for member in [HOST, GUEST, OTHER] {
        name(&mut room, member, Vec::new(), NOW);
    }
    assert_eq!(offers(&mut room).len(), 4);
    tell(&mut room, Input::Away { member: HOST, reason: LeaveReason::TimedOut }, NOW);
    assert_eq!(room.authority().member(), Some(GUEST));
    let later = NOW + PATH_CANDIDATES_INTERVAL;
    name(&mut room, OTHER, Vec::new(), later);
    assert_eq!(offers(&mut room), [], "it has nothing of the state yet that it could send");
}
