//! Rooms that move: what their hub tells, refuses and takes along, and who may go on in them.

use super::TOKEN;
use super::cluster::{Cluster, GRACE, Seat};
use parlor_hub::{ClaimAnswer, Unmovable};
use parlor_proto::CloseReason;
use parlor_proto::session::Rejection;
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::handshake::{Hello, Intent, RoomKind, RoomSettings, capability};
use std::time::Duration;

const TO: &str = "node-1:7700";

impl Cluster {
    fn moves_to(&self, seat: &Seat) -> Option<&str> {
        self.told_seat(seat.at).and_then(|seat| seat.moves_to.as_deref())
    }

    fn continues(&self, at: (usize, parlor_proto::ConnectionId)) -> bool {
        self.welcome(at).capabilities & capability::CONTINUES != 0
    }
}

#[test]
fn members_are_told_where_their_room_is_about_to_move_and_that_it_is_not() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let code = cluster.welcome(seats[0].at).code;
    assert_eq!(cluster.announce(0, code, TO), Ok(()));
    assert!(seats.iter().all(|seat| cluster.moves_to(seat) == Some(TO)));
    assert_eq!(cluster.announce(0, code, TO), Err(Unmovable::Busy), "twice");
    cluster.call_off(0, code);
    assert!(seats.iter().all(|seat| cluster.moves_to(seat).is_none()));
    assert_eq!(cluster.seal(0, code).err(), Some(Unmovable::Busy), "it was called off");
    assert_eq!(cluster.announce(0, "HELLO7".parse().unwrap(), TO), Err(Unmovable::NoRoom));
}

#[test]
fn what_cannot_move_is_told_before_anything_happens() {
    let mut cluster = Cluster::new(2);
    let settings = RoomSettings { spectator_delay_ms: 1_000, ..Cluster::settings(RoomKind::PlayerHosted) };
    let host = cluster.greet(0, Hello::new("tanks", Intent::Create(settings)));
    let code = cluster.welcome(host).code;
    assert_eq!(cluster.announce(0, code, TO), Err(Unmovable::Stays), "its delayed copy would be lost");
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let code = cluster.welcome(seats[0].at).code;
    let old = Hello::new("tanks", Intent::Join { code, secret: None });
    let old = cluster.greet(0, old);
    assert_eq!(cluster.announce(0, code, TO), Err(Unmovable::CannotFollow));
    cluster.hang_up(old);
    cluster.pass(GRACE + Duration::from_secs(1), &[seats[0].at, seats[1].at]);
    assert_eq!(cluster.announce(0, code, TO), Ok(()));
    cluster.greet(0, Hello::new("tanks", Intent::Join { code, secret: None }));
    assert_eq!(cluster.seal(0, code).err(), Some(Unmovable::CannotFollow), "it came meanwhile");
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let code = cluster.welcome(seats[0].at).code;
    assert_eq!(cluster.announce(0, code, TO), Ok(()));
    cluster.hang_up(seats[0].at);
    assert_eq!(cluster.seal(0, code).err(), Some(Unmovable::Busy), "its host is away");
    assert!(cluster.moves_to(&seats[1]).is_none(), "the others hear that it stays");
}

#[test]
fn threat_34_a_sealed_room_takes_nothing_and_says_nothing() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob", "cy"]);
    let code = cluster.welcome(seats[0].at).code;
    assert_eq!(cluster.announce(0, code, TO), Ok(()));
    let snapshot = cluster.seal(0, code).expect("it was announced");
    let heard = cluster.orders(seats[1].at).len();
    cluster.say_ordered(seats[0].at);
    assert_eq!(cluster.orders(seats[1].at).len(), heard);
    assert_eq!(cluster.seal(0, code).err(), Some(Unmovable::Busy), "once");
    cluster.leave(seats[2].at);
    assert_eq!(cluster.names(0, code), ["ada", "bob", "cy"], "as the snapshot says");
    // What was said meanwhile comes by the way that the room goes: here it stays.
    cluster.unseal(0, code, 2);
    let ada = cluster.resume(&seats[0]);
    let bob = cluster.resume(&seats[1]);
    assert_eq!(cluster.orders(bob).len(), heard + 1);
    assert_eq!(cluster.told_seat(ada).map(|seat| seat.term), Some(2), "under the term that the store has");
    drop(snapshot);
}

#[test]
fn a_room_goes_on_with_its_members_and_what_they_said() {
    for kind in [RoomKind::PlayerHosted, RoomKind::Match] {
        let mut cluster = Cluster::new(2);
        let seats = cluster.room_of(kind, &["ada", "bob", "cy"]);
        let before = cluster.welcome(seats[0].at).clone();
        cluster.say_ordered(seats[0].at);
        cluster.give(0, 1, before.code);
        for seat in &seats {
            assert_eq!(cluster.moved(seat.at), Some(TO), "it is told where");
        }
        // A guest brings the room, too.
        for seat in seats.iter().rev() {
            let claimed = cluster.claim(1, seat);
            let welcome = cluster.welcome(claimed).clone();
            assert!(cluster.continues(claimed));
            assert_eq!((welcome.member, welcome.authority), (seat.member, before.authority));
            assert_eq!(welcome.epoch, before.epoch, "the host is the same");
            let news: Vec<_> = cluster.heard(claimed).iter().collect();
            assert!(
                news.iter().any(|news| matches!(news, ToMember::Reopened { gap: false, .. })),
                "{news:?}"
            );
            assert!(!news.iter().any(|news| matches!(news, ToMember::Away { .. } | ToMember::Left { .. })));
        }
        assert_eq!(cluster.names(1, before.code), ["ada", "bob", "cy"]);
        assert_eq!(cluster.hub(0).room_count(), 0);
        // Ids go on.
        let newcomer = cluster.join(1, before.code, "dee");
        assert_eq!(cluster.welcome(newcomer).member.0, 3);
    }
}

#[test]
fn threat_35_a_seat_of_a_moved_room_is_taken_with_its_token_alone() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let code = cluster.welcome(seats[0].at).code;
    cluster.give(0, 1, code);
    let stolen = cluster.claim_with(1, &seats[1], |claim| claim.token.0[0] ^= 1);
    assert_eq!(cluster.rejected(stolen), Some(&TOKEN));
    let bob = cluster.claim(1, &seats[1]);
    assert!(cluster.continues(bob));
    // The token was good once.
    cluster.say_ordered(bob);
    let again = cluster.claim(1, &seats[1]);
    assert_eq!(cluster.rejected(again), Some(&TOKEN));
}

#[test]
fn an_answer_that_was_lost_is_given_again() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let code = cluster.welcome(seats[0].at).code;
    cluster.give(0, 1, code);
    cluster.claim_unheard(1, &seats[1]);
    let bob = cluster.claim(1, &seats[1]);
    assert!(cluster.continues(bob), "its messages go on still");
}

#[test]
fn members_that_do_not_come_are_away_and_then_leave() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let code = cluster.welcome(seats[0].at).code;
    cluster.give(0, 1, code);
    let ada = cluster.claim(1, &seats[0]);
    let is_told = |cluster: &Cluster, is: fn(&ToMember) -> bool| cluster.heard(ada).iter().any(is);
    cluster.pass(Duration::from_secs(1), &[ada]);
    assert!(!is_told(&cluster, |news| matches!(news, ToMember::Away { .. })), "it may be on its way");
    cluster.pass(Duration::from_secs(2), &[ada]);
    assert!(is_told(&cluster, |news| matches!(news, ToMember::Away { .. })));
    cluster.pass(GRACE, &[ada]);
    assert!(is_told(&cluster, |news| matches!(news, ToMember::Left { .. })));
    assert_eq!(cluster.names(1, code), ["ada"]);
}

#[test]
fn threat_37_a_snapshot_that_lies_reopens_the_room_as_after_a_death() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let code = cluster.welcome(seats[0].at).code;
    cluster.write_rosters();
    let (setup, roster) = cluster.stored(code);
    cluster.give(0, 1, code);
    let snapshot = bytes::Bytes::from_static(b"\x01 this is none");
    cluster.answer_next = Some(ClaimAnswer::Reopened { term: 3, setup, roster, snapshot });
    let ada = cluster.claim(1, &seats[0]);
    assert!(!cluster.continues(ada));
    let is_told = |news: &ToMember| matches!(news, ToMember::Reopened { gap: true, .. });
    assert!(cluster.heard(ada).iter().any(is_told));
}

#[test]
fn a_client_that_keeps_no_session_hears_that_the_room_is_elsewhere() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada"]);
    let code = cluster.welcome(seats[0].at).code;
    let old = cluster.greet(0, Hello::new("tanks", Intent::Join { code, secret: None }));
    cluster.move_room(0, code, TO);
    assert!(matches!(cluster.over(old), Some(CloseReason::RoomEnded { .. })));
    assert!(!matches!(cluster.rejected(old), Some(Rejection::Redirect(_))));
}
