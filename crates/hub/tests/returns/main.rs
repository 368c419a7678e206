//! Members that were lost and return after the grace, against a model: by ticket or by user, in any order, among
//! strangers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod house;
mod spectators;

use house::{GRACE, House, REMEMBER};
use parlor_hub::{HubEvent, KeptSeats, Origin, StateMemory, UserSeats};
use parlor_impair::Rng;
use parlor_proto::session::Rejection;
use parlor_proto::wire::control::{RoomTerms, ToHub, ToMember};
use parlor_proto::wire::handshake::{
    Intent, Refusal, Resume, ResumeRefusal, ResumeToken, RoomKind, RoomSettings,
};
use parlor_proto::{CloseReason, ConnectionId, Epoch, MemberId, SessionId};
use std::time::Duration;

#[test]
fn m9_who_returns_after_the_grace_is_the_same_player_by_its_ticket() {
    let mut house = House::new();
    let (host, code) = house.open(4);
    let guest = house.join(code, None);
    house.set_data(guest, "red");
    let (id, ticket) = (house.member(guest), house.ticket(guest));
    house.lose(guest);
    assert_eq!(house.members(code), [0], "its seat is free");
    let again = house.resume(ticket);
    assert_eq!((house.member(again), house.members(code)), (id, vec![0, id.0]));
    assert_ne!(house.welcome(again).session, ticket.session);
    for end in [host, again] {
        assert_eq!(house.joined_with(end, id), Some(Some("red".into())), "{end}: with its player data");
    }
    // Its next ticket is as good as its first: while its seat is kept, and after that.
    let next = house.ticket(again);
    house.hang_up(again);
    let third = house.resume(next);
    let last = house.ticket(third);
    house.lose(third);
    let fourth = house.resume(last);
    assert_eq!(house.member(fourth), id);
    assert_eq!(house.joined_with(fourth, id), Some(Some("red".into())));
    // New members have new ids.
    let other = house.join(code, None);
    assert_eq!(house.member(other), MemberId(2));
}

/// In a room with host migration a new process gets the authority's seat, by ticket or user. It receives the members,
/// then its naming. In other rooms its user is a newcomer, and its ticket is refused.
#[test]
fn the_authoritys_seat_is_a_new_process_own_where_it_can_be_its_own_heir() {
    for (host_timeout_ms, by_user) in [(Some(250), false), (Some(250), true), (None, false), (None, true)] {
        let mut house = House::new();
        let settings = RoomSettings { host_timeout_ms, ..RoomSettings::new(RoomKind::PlayerHosted, 4) };
        let host = house.greet(Intent::Create(settings), Some("ada"));
        let (code, ticket) = (house.welcome(host).code, house.ticket(host));
        house.hang_up(host);
        let again = if by_user { house.join(code, Some("ada")) } else { house.resume(ticket) };
        let names = house.ends[&again].heard.iter().filter_map(|message| match message {
            ToMember::Authority(handover) => Some((handover.epoch, handover.member)),
            _ => None,
        });
        let names: Vec<(Epoch, MemberId)> = names.collect();
        match (host_timeout_ms, by_user) {
            (Some(_), _) => {
                assert_eq!(house.member(again), MemberId(0));
                assert_eq!(house.welcome(again).epoch, Epoch(0));
                assert_eq!(names, [(Epoch(1), MemberId(0))]);
            }
            (None, true) => assert_eq!((house.member(again), names.len()), (MemberId(1), 0)),
            (None, false) => assert!(house.is_refused(again, ResumeRefusal::Gone)),
        }
    }
}

#[test]
fn threat_08_m9_who_returns_is_the_same_player_by_its_user_while_its_seat_is_kept_and_after() {
    let mut house = House::new();
    let (host, code) = house.open(4);
    let guest = house.join(code, Some("ada"));
    house.set_data(guest, "blue");
    let (id, ticket) = (house.member(guest), house.ticket(guest));
    house.hang_up(guest);
    let again = house.join(code, Some("ada"));
    assert_eq!(
        (house.member(again), house.members(code)),
        (id, vec![0, id.0]),
        "it takes over its kept seat"
    );
    let late = house.resume(ticket);
    assert!(house.is_refused(late, ResumeRefusal::Gone), "the older session is over");
    house.lose(again);
    assert_eq!(house.members(code), [0]);
    let other = house.join(code, Some("bob"));
    assert_ne!(house.member(other), id, "nobody else is it");
    let third = house.join(code, Some("ada"));
    assert_eq!(house.member(third), id);
    assert_eq!(house.joined_with(host, id), Some(Some("blue".into())));
    // A second process of the same user is a second member: the first is connected.
    let second = house.join(code, Some("ada"));
    assert_eq!(house.member(second), MemberId(3));
}

#[test]
fn m9_refusals_say_whose_the_session_is() {
    let mut house = House::new();
    let (host, code) = house.open(4);
    let guest = house.join(code, None);
    let (id, ticket) = (house.member(guest), house.ticket(guest));
    let refusal = |why| Some(Refusal::Resume { why });
    house.lose(guest);
    assert_eq!(house.go_on(ticket), refusal(ResumeRefusal::GraceOver));
    let wrong = Resume { token: ResumeToken([9; 32]), ..ticket };
    assert_eq!(house.go_on(wrong), refusal(ResumeRefusal::Token));
    let unknown = Resume { session: SessionId(7), ..ticket };
    assert_eq!(house.go_on(unknown), refusal(ResumeRefusal::Gone));
    let again = house.resume(ticket);
    assert_eq!(house.member(again), id);
    // A ticket that was used twice ends the session for both: two processes would be one player.
    house.set_data(again, "red");
    let thief = house.resume(ticket);
    assert!(house.is_refused(thief, ResumeRefusal::Token));
    assert_eq!(house.ends[&again].over, Some(CloseReason::TokenReused));
    assert_eq!(house.members(code), [0]);
    house.pass(REMEMBER);
    assert_eq!(house.go_on(ticket), refusal(ResumeRefusal::Gone));
    assert!(house.ends[&host].over.is_none());
}

#[test]
fn threat_08_m9_nobody_else_returns_as_a_member_that_is_gone() {
    let mut house = House::new();
    let (_, code) = house.open(8);
    let guest = house.join(code, None);
    let (id, first) = (house.member(guest), house.ticket(guest));
    house.hang_up(guest);
    let again = house.resume(first);
    house.set_data(again, "red");
    let second = house.ticket(again);
    house.lose(again);
    for stranger in 0..5 {
        let wrong = Resume { token: ResumeToken([stranger; 32]), ..second };
        let stranger = house.resume(wrong);
        assert!(house.is_refused(stranger, ResumeRefusal::Token));
        let newcomer = house.join(code, Some("mallory"));
        assert_ne!(house.member(newcomer), id);
    }
    // A ticket that was used before makes the newest void as well: nobody can tell who has which.
    let old = house.resume(first);
    assert!(house.is_refused(old, ResumeRefusal::Token));
    let owner = house.resume(second);
    assert!(house.is_refused(owner, ResumeRefusal::Gone));
    assert_eq!(house.hub.stats().tokens_reused, 1);
    let reused = |event: &HubEvent| matches!(event, HubEvent::TokenReused { member, .. } if *member == id);
    assert!(house.happened.iter().any(reused));
}

#[test]
fn m9_who_left_was_kicked_or_was_turned_out_is_not_remembered() {
    let mut house = House::new();
    let (host, code) = house.open(8);
    let ids: Vec<MemberId> = ["leaves", "kicked", "absent", "banned"]
        .into_iter()
        .map(|user| {
            let end = house.join(code, Some(user));
            let id = house.member(end);
            match user {
                "leaves" => house.leave(end),
                "kicked" => house.tell(host, &ToHub::Kick { member: id, reason: String::new() }),
                _ => house.lose(end),
            }
            id
        })
        .collect();
    // A kick reaches whom the host has lost; a second one changes nothing.
    for _ in 0..2 {
        house.tell(host, &ToHub::Kick { member: ids[2], reason: "rude".into() });
    }
    let seats = UserSeats { app: "tanks".into(), environments: Vec::new(), user: "banned".into() };
    assert_eq!(house.hub.remove_user(&seats, "cheats", house.now), 0, "it has no seat");
    for user in ["leaves", "kicked", "absent", "banned"] {
        let end = house.join(code, Some(user));
        assert!(!ids.contains(&house.member(end)), "{user} is a newcomer");
    }
}

#[test]
fn m9_a_member_that_returns_needs_a_free_seat_and_takes_none_meanwhile() {
    let mut house = House::new();
    let (_, code) = house.open(2);
    let guest = house.join(code, Some("ada"));
    let (id, ticket) = (house.member(guest), house.ticket(guest));
    house.lose(guest);
    let other = house.join(code, Some("bob"));
    assert_eq!(house.member(other), MemberId(2));
    let full = Some(Rejection::Refused(Refusal::RoomFull { max: 2 }));
    let refused = [house.resume(ticket), house.join(code, Some("ada"))];
    assert!(refused.iter().all(|end| house.ends[end].rejected == full));
    house.lose(other);
    let again = house.resume(ticket);
    assert_eq!(house.member(again), id, "being refused cost nothing");
}

#[test]
fn m9_a_room_that_ended_remembers_nobody_and_a_hub_may_remember_none() {
    let mut house = House::new();
    let (host, code) = house.open(4);
    let guest = house.join(code, None);
    let ticket = house.ticket(guest);
    house.lose(guest);
    house.leave(host);
    assert_eq!((house.hub.room_count(), house.hub.stats().state_bytes), (0, 0));
    let late = house.resume(ticket);
    assert!(house.is_refused(late, ResumeRefusal::Gone));
    let mut house = House::with(|config| config.remember = Duration::ZERO);
    let (_, code) = house.open(4);
    let guest = house.join(code, Some("ada"));
    house.lose(guest);
    let again = house.join(code, Some("ada"));
    assert_eq!(house.member(again), MemberId(2));
}

#[test]
fn m9_a_room_without_a_grace_keeps_no_seat_and_a_user_returns_all_the_same() {
    let mut house = House::new();
    let (host, code) = house.open(4);
    house.tell(host, &ToHub::Terms(RoomTerms { presence_ms: Some(1_500), grace_ms: Some(0) }));
    let guest = house.join(code, Some("ada"));
    let welcome = house.welcome(guest);
    assert_eq!((welcome.grace_ms, welcome.resume), (0, None));
    assert_eq!((welcome.limits.silence_ms, welcome.limits.keep_alive_ms), (1_500, 375));
    let id = house.member(guest);
    house.hang_up(guest);
    assert_eq!(house.members(code), [0]);
    let again = house.join(code, Some("ada"));
    assert_eq!(house.member(again), id);
    // Terms are the opener's alone.
    house.tell(again, &ToHub::Terms(RoomTerms::default()));
    assert!(matches!(house.ends[&again].over, Some(CloseReason::Misbehaved { .. })));
}

#[test]
fn threat_45_m9_what_is_remembered_has_its_bounds() {
    let kept = KeptSeats { origin: 40, all: 60 };
    let mut house = House::with(|config| (config.kept, config.memory) = (kept, StateMemory::default()));
    let (_, code) = house.open(16);
    // The first one to come and go leaves the room as it is from then on.
    let first = house.join(code, None);
    house.lose(first);
    house.pass(REMEMBER + Duration::from_secs(2));
    let base = house.hub.stats().state_bytes;
    // A room: as many as it has seats, the last ones.
    let mut tickets = Vec::new();
    for _ in 0..20 {
        let guest = house.join(code, None);
        tickets.push(house.ticket(guest));
        house.lose(guest);
    }
    let is_known = |house: &mut House, ticket: Resume| {
        house.go_on(ticket) == Some(Refusal::Resume { why: ResumeRefusal::GraceOver })
    };
    let known: Vec<bool> = tickets.iter().map(|ticket| is_known(&mut house, *ticket)).collect();
    assert_eq!(known, [vec![false; 4], vec![true; 16]].concat());
    let bytes = house.hub.stats().state_bytes - base;
    assert!((16 * 2_048..16 * 3_072).contains(&bytes), "they are charged: {bytes}");
    house.pass(REMEMBER + Duration::from_secs(2));
    assert_eq!(house.hub.stats().state_bytes, base, "and forgotten after their time");
    // A user, and an address, over all rooms.
    for (user, place, most) in [(Some("ada"), None, 32), (None, Some(Origin(1 << 40)), 40)] {
        let mut known = 0;
        let mut tickets = Vec::new();
        for _ in 0..50 {
            let (_, code) = house.open(2);
            let origin = place.unwrap_or(Origin((1 + house.next) << 16));
            let guest = house.greet_from(origin, Intent::Join { code, secret: None }, user);
            tickets.push(house.ticket(guest));
            house.hang_up(guest);
        }
        house.pass(GRACE + Duration::from_secs(1));
        tickets.into_iter().for_each(|ticket| known += usize::from(is_known(&mut house, ticket)));
        assert_eq!(known, most, "{user:?}");
        house.pass(REMEMBER + Duration::from_secs(2));
    }
}

/// A player of the model.
struct Player {
    user: Option<String>,
    /// Its id, once it has been in, and whether the hub must still know it.
    id: Option<MemberId>,
    at: At,
    ticket: Option<Resume>,
    spent: Option<Resume>,
    data: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    /// It has never been in, or is not known any more.
    Out,
    In(ConnectionId),
    /// Its connection is lost; its seat is kept, or it is remembered.
    Lost,
}

/// Number of runs of the model. Override: `PARLOR_SEEDS`.
fn seeds() -> u64 {
    std::env::var("PARLOR_SEEDS").map_or(40, |text| text.parse().expect("PARLOR_SEEDS is a number"))
}

/// The invariant: a player that was lost is the same member again by whatever proves it, and nobody else ever is.
#[test]
fn m9_in_any_order_each_id_is_one_players() {
    for seed in 0..seeds() {
        let (mut rng, mut house) = (Rng::new(seed), House::with(|config| config.remember = REMEMBER * 10));
        let (_, code) = house.open(16);
        let player = |number: usize| Player {
            user: number.is_multiple_of(2).then(|| format!("user {number}")),
            id: None,
            at: At::Out,
            ticket: None,
            spent: None,
            data: ["red", "blue", "green", "pink"][number],
        };
        let mut players: Vec<Player> = (0..4).map(player).collect();
        for step in 0..60 {
            let what = format!("seed {seed}, step {step}");
            let index = rng.index(players.len());
            let mine: Vec<Option<MemberId>> = players.iter().map(|player| player.id).collect();
            let player = &mut players[index];
            let mut entered = None;
            match (player.at, rng.below(6)) {
                (At::In(connection), 0..=3) => {
                    house.hang_up(connection);
                    (player.at, player.spent) = (At::Lost, player.ticket);
                }
                (At::Lost, 0 | 1) if player.user.is_some() => {
                    entered = Some((house.join(code, player.user.as_deref()), true));
                }
                (At::Lost, 0..=3) if player.ticket.is_some() => {
                    entered = Some((house.resume(player.ticket.unwrap()), true));
                }
                (At::Out, 0..=3) => entered = Some((house.join(code, player.user.as_deref()), false)),
                (_, 4) => house.pass(Duration::from_secs(1 + rng.below(60))),
                _ => {
                    // A stranger with somebody's session.
                    let Some(ticket) = player.ticket else { continue };
                    let wrong = ResumeToken([u8::try_from(step).unwrap(); 32]);
                    let stranger = house.resume(Resume { token: wrong, ..ticket });
                    assert!(house.is_refused(stranger, ResumeRefusal::Token), "{what}");
                }
            }
            if let Some((connection, returns)) = entered {
                let id = house.member(connection);
                assert!(!returns || player.id == Some(id), "{what}: {:?} returns as {id}", player.id);
                let others = mine.iter().enumerate().filter(|(other, _)| *other != index);
                assert!(others.into_iter().all(|(_, other)| *other != Some(id)), "{what}: {id} is another's");
                let had = returns.then(|| player.data.to_owned());
                assert_eq!(house.joined_with(connection, id), Some(had), "{what}");
                house.set_data(connection, player.data);
                (player.id, player.at, player.ticket) =
                    (Some(id), At::In(connection), Some(house.ticket(connection)));
            }
            let mut members = house.members(code);
            members.dedup();
            assert_eq!(members, house.members(code), "{what}: each id once");
        }
        assert_eq!(house.hub.stats().tokens_reused, 0, "seed {seed}: they are honest");
        assert!(players.iter().any(|player| player.spent.is_some()));
    }
}
