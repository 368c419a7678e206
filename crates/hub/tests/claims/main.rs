//! Seats claimed at another hub after theirs died: two hubs and more, with one store.

mod cluster;
mod moves;

use cluster::{Cluster, GRACE, Seat};
use parlor_hub::cluster::pass::PassKey;
use parlor_hub::{ClaimAnswer, ClusterConfig, Config};
use parlor_proto::session::Rejection;
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::handshake::{Authority, Hello, Intent, Refusal, ResumeRefusal, RoomKind, capability};
use parlor_proto::{CloseReason, ConnectionId, Epoch, MemberId};
use std::time::Duration;

const GONE: Rejection = Rejection::Refused(Refusal::Resume { why: ResumeRefusal::Gone });
const TOKEN: Rejection = Rejection::Refused(Refusal::Resume { why: ResumeRefusal::Token });

fn reopened(cluster: &Cluster, at: (usize, ConnectionId)) -> Option<(bool, Epoch)> {
    cluster.heard(at).iter().find_map(|message| match message {
        ToMember::Reopened { gap, epoch } => Some((*gap, *epoch)),
        _ => None,
    })
}

#[test]
fn a_room_goes_on_at_another_node_with_its_members_and_their_ids() {
    for kind in [RoomKind::PlayerHosted, RoomKind::Match] {
        let mut cluster = Cluster::new(2);
        let mut seats: Vec<Seat> = cluster.room_of(kind, &["ada", "bob", "cy"]);
        let before = cluster.welcome(seats[0].at).clone();
        cluster.write_rosters();
        cluster.kill(0);
        if kind == RoomKind::PlayerHosted {
            let early = cluster.claim(1, &seats[1]);
            assert!(
                matches!(cluster.rejected(early), Some(Rejection::RetryAfter(_))),
                "without its host it does not begin"
            );
        }
        for seat in &mut seats {
            let claimed = cluster.claim(1, seat);
            let welcome = cluster.welcome(claimed).clone();
            assert_eq!((welcome.member, welcome.code), (seat.member, before.code));
            assert_eq!((welcome.authority, welcome.members), (before.authority, 3));
            assert!(welcome.epoch.0 > before.epoch.0, "the epoch is a new one");
            assert_eq!(reopened(&cluster, claimed), Some((true, welcome.epoch)));
            let newest = cluster.seat(claimed);
            assert!(newest.told.term > seat.told.term && newest.told.uid == seat.told.uid);
            *seat = newest;
        }
        for seat in &seats {
            let news = cluster.heard(seat.at).iter();
            let news: Vec<_> =
                news.filter(|it| !matches!(it, ToMember::Presence(_) | ToMember::Primary(_))).collect();
            assert!(
                matches!(
                    news[..],
                    [
                        ToMember::Joined(_),
                        ToMember::Joined(_),
                        ToMember::Joined(_),
                        ToMember::Reopened { .. }
                    ]
                ),
                "each is told once: {news:?}"
            );
        }
        assert_eq!(cluster.names(1, before.code), ["ada", "bob", "cy"]);
        let newcomer = cluster.join(1, before.code, "dee");
        assert!(
            cluster.welcome(newcomer).member > MemberId(3 + 60),
            "ids of members who joined after the roster stay theirs"
        );
    }
}

#[test]
fn a_room_outlives_one_node_after_the_other() {
    let mut cluster = Cluster::new(4);
    let mut seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let mut epoch = Epoch(0);
    for node in 1..4 {
        cluster.write_rosters();
        cluster.kill(node - 1);
        for seat in &mut seats {
            let claimed = cluster.claim(node, seat);
            assert!(cluster.welcome(claimed).epoch > epoch || seat.member != MemberId(0));
            epoch = cluster.welcome(claimed).epoch;
            *seat = cluster.seat(claimed);
        }
    }
}

#[test]
fn who_joined_after_the_roster_was_written_comes_by_its_pass() {
    let mut cluster = Cluster::new(2);
    let mut seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    let code = cluster.welcome(seats[0].at).code;
    let late = cluster.join(0, code, "cy");
    seats.push(cluster.seat(late));
    cluster.kill(0);
    for seat in &seats {
        let claimed = cluster.claim(1, seat);
        assert_eq!(cluster.welcome(claimed).member, seat.member);
    }
    assert_eq!(cluster.names(1, code), ["ada", "bob", "cy"]);
}

#[test]
fn a_room_that_has_no_roster_yet_begins_with_its_host() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.kill(0);
    for seat in &seats {
        let claimed = cluster.claim(1, seat);
        assert_eq!(cluster.welcome(claimed).authority, Authority::Member(seats[0].member));
    }
}

#[test]
fn members_who_do_not_come_within_the_grace_leave() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    let host = cluster.claim(1, &seats[0]);
    let code = cluster.welcome(host).code;
    cluster.pass(GRACE - Duration::from_secs(1), &[host]);
    assert_eq!(cluster.names(1, code), ["ada", "bob"]);
    cluster.pass(Duration::from_secs(2), &[host]);
    assert_eq!(cluster.names(1, code), ["ada"]);
    let late = cluster.claim(1, &seats[1]);
    assert_eq!(cluster.rejected(late), Some(&GONE));
}

#[test]
fn a_room_time_goes_on_as_its_host_has_it() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    let room_time_us = 7_000_000;
    let host = cluster.claim_with(1, &seats[0], |claim| claim.room_time_us = Some(room_time_us));
    let welcome = cluster.welcome(host);
    assert_eq!(welcome.now.saturating_since(welcome.opened), Duration::from_micros(room_time_us));
}

#[test]
fn the_order_of_a_match_goes_on_above_all_numbers_that_were_given() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::Match, &["ada", "bob"]);
    cluster.say_ordered(seats[0].at);
    let first = cluster.orders(seats[1].at);
    cluster.write_rosters();
    cluster.kill(0);
    let (ada, bob) = (cluster.claim(1, &seats[0]), cluster.claim(1, &seats[1]));
    cluster.say_ordered(ada);
    assert_eq!((first, cluster.orders(bob)), (vec![0], vec![2 << 32]));
}

#[test]
fn a_host_that_was_named_after_the_roster_was_written_reopens_its_room() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_with(RoomKind::PlayerHosted, &["ada", "bob"], |settings| {
        settings.host_timeout_ms = Some(5_000);
    });
    cluster.write_rosters();
    cluster.hang_up(seats[0].at);
    let heir = cluster.seat(seats[1].at);
    cluster.kill(0);
    let claimed = cluster.claim(1, &heir);
    assert_eq!(cluster.welcome(claimed).authority, Authority::Member(heir.member));
}

#[test]
fn a_client_without_the_capability_and_a_hub_without_a_key_say_nothing_of_seats() {
    let mut cluster = Cluster::new(1);
    let settings = Cluster::settings(RoomKind::PlayerHosted);
    let plain = Hello { name: "ada".into(), ..Hello::new("tanks", Intent::Create(settings.clone())) };
    let plain = cluster.greet(0, plain);
    assert_eq!(cluster.welcome(plain).capabilities & capability::MOVES, 0);
    assert!(cluster.told_seat(plain).is_none());
    let mut alone = Cluster::with(1, |config: &mut Config| config.cluster = None);
    let hello = Hello { capabilities: capability::MOVES, ..Hello::new("tanks", Intent::Create(settings)) };
    let host = alone.greet(0, hello);
    assert_eq!(alone.welcome(host).capabilities & capability::MOVES, 0);
    assert!(alone.told_seat(host).is_none());
}

#[test]
fn members_are_told_their_seat_again_when_the_other_nodes_change() {
    let mut cluster = Cluster::new(3);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    assert_eq!(seats[0].told.elsewhere.len(), 2);
    cluster.kill(2);
    let again = cluster.seat(seats[0].at);
    assert_eq!(again.told.elsewhere, ["node-1:7700"]);
}

#[test]
fn a_resumed_session_has_a_pass_for_its_newest_token() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let resumed = cluster.resume(&seats[1]);
    let newest = cluster.seat(resumed);
    assert_ne!(newest.told.pass, seats[1].told.pass);
    cluster.write_rosters();
    cluster.kill(0);
    cluster.claim(1, &seats[0]);
    let claimed = cluster.claim(1, &newest);
    assert_eq!(cluster.welcome(claimed).member, seats[1].member);
}

#[test]
fn threat_35_a_pass_that_is_forged_foreign_or_without_its_token_is_refused_and_counts_as_a_guess() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    let asked = cluster.asked;
    let forged = cluster.claim_with(1, &seats[0], |claim| {
        let mut pass = claim.pass.to_vec();
        pass[20] ^= 1;
        claim.pass = pass.into();
    });
    assert_eq!(cluster.rejected(forged), Some(&TOKEN));
    let stolen = cluster.claim_with(1, &seats[0], |claim| claim.token.0[0] ^= 1);
    assert_eq!(cluster.rejected(stolen), Some(&TOKEN));
    let mut foreign = Cluster::with(2, |config| {
        let pass_key = Some(PassKey::of(&[9; 32]));
        config.cluster = Some(ClusterConfig { pass_key, ..ClusterConfig::default() });
    });
    let claimed = foreign.claim(1, &seats[0]);
    assert_eq!(foreign.rejected(claimed), Some(&TOKEN));
    assert_eq!((cluster.asked, foreign.asked), (asked, 0), "the store is asked for none of them");
    let from_one_place = (0..100).map(|_| {
        let guess = cluster.claim_with(1, &seats[0], |claim| claim.token.0[0] ^= 1);
        matches!(cluster.rejected(guess), Some(Rejection::RetryAfter(_)))
    });
    assert!(from_one_place.into_iter().any(|is_put_off| is_put_off), "they are guesses");
}

#[test]
fn threat_35_a_pass_that_is_used_twice_ends_the_seat_for_both() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    cluster.claim(1, &seats[0]);
    let first = cluster.claim(1, &seats[1]);
    let second = cluster.claim(1, &seats[1]);
    assert_eq!(cluster.rejected(second), Some(&TOKEN));
    assert_eq!(cluster.over(first), Some(&CloseReason::TokenReused));
}

#[test]
fn threat_35_an_older_pass_than_the_roster_knows_is_refused_and_a_newer_one_wins() {
    let mut cluster = Cluster::new(2);
    let mut seats = cluster.room_of(RoomKind::Match, &["ada", "bob"]);
    let copied = seats[1].clone();
    for _ in 0..3 {
        let at = cluster.resume(&seats[1]);
        seats[1] = cluster.seat(at);
    }
    cluster.write_rosters();
    cluster.kill(0);
    cluster.claim(1, &seats[0]);
    let refused = cluster.claim(1, &copied);
    assert_eq!(cluster.rejected(refused), Some(&TOKEN), "the roster knows a newer one");
    let claimed = cluster.claim(1, &seats[1]);
    assert_eq!(cluster.welcome(claimed).member, seats[1].member);
}

#[test]
fn threat_39_a_claim_of_a_room_whose_owner_lives_changes_nothing() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    for seat in &seats {
        let claimed = cluster.claim(1, seat);
        assert!(matches!(cluster.rejected(claimed), Some(Rejection::RetryAfter(_))));
    }
    let code = cluster.welcome(seats[0].at).code;
    assert_eq!(cluster.names(0, code), ["ada", "bob"]);
    assert!(cluster.names(1, code).is_empty());
    assert!(seats.iter().all(|seat| cluster.over(seat.at).is_none()));
}

#[test]
fn a_claim_of_a_seat_whose_session_is_here_leaves_the_session_as_it_is() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::Match, &["ada", "bob"]);
    cluster.write_rosters();
    let claimed = cluster.claim(0, &seats[1]);
    assert!(matches!(cluster.rejected(claimed), Some(Rejection::RetryAfter(_))));
    assert_eq!(cluster.over(seats[1].at), None);
    cluster.say_ordered(seats[0].at);
    assert_eq!(cluster.orders(seats[1].at), [0]);
    let resumed = cluster.resume(&seats[1]);
    assert_eq!(cluster.seat(resumed).told.term, seats[1].told.term);
}

#[test]
fn a_member_is_sent_to_the_node_that_has_reopened_its_room() {
    let mut cluster = Cluster::new(3);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    cluster.claim(1, &seats[0]);
    let claimed = cluster.claim(2, &seats[1]);
    assert!(
        matches!(cluster.rejected(claimed), Some(Rejection::Redirect(to)) if to.address == "node-1:7700")
    );
}

#[test]
fn threat_39_claims_that_wait_for_the_store_are_bounded() {
    let mut cluster = Cluster::with(2, |config| {
        let cluster = config.cluster.as_mut().expect("it is a node");
        cluster.waiting_max = 3;
    });
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    cluster.holds_answers = true;
    let claims: Vec<_> = (0..5).map(|_| cluster.claim(1, &seats[1])).collect();
    assert_eq!(cluster.asked, 3);
    let put_off =
        |claim: &&(usize, ConnectionId)| matches!(cluster.rejected(**claim), Some(Rejection::RetryAfter(_)));
    assert_eq!(claims.iter().filter(put_off).count(), 2);
}

#[test]
fn threat_41_a_member_cannot_name_another_term_than_its_pass_does() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    let asked = cluster.asked;
    let claimed = cluster.claim_with(1, &seats[0], |claim| claim.term += 1);
    assert_eq!((cluster.rejected(claimed), cluster.asked), (Some(&TOKEN), asked));
}

#[test]
fn a_banned_user_gets_its_seat_at_no_node() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::Match, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    cluster.claim(1, &seats[0]);
    cluster.banned.insert("bob".into());
    let claimed = cluster.claim(1, &seats[1]);
    assert_eq!(cluster.rejected(claimed), Some(&Rejection::Refused(Refusal::Unauthorized)));
}

#[test]
fn a_room_that_another_node_has_sends_its_members_there() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    let code = cluster.welcome(seats[0].at).code;
    let address = "node-1:7700";
    cluster.move_room(0, code, address);
    for seat in &seats {
        assert_eq!(cluster.moved(seat.at), Some(address));
    }
}

#[test]
fn what_the_store_has_may_be_anything() {
    let mut cluster = Cluster::new(2);
    let seats = cluster.room_of(RoomKind::PlayerHosted, &["ada", "bob"]);
    cluster.write_rosters();
    cluster.kill(0);
    let answers: [(&[u8], &[u8]); 3] = [(b"", b""), (b"PARLORLOG", b"x"), (b"x", b"")];
    for (setup, roster) in answers {
        let (setup, roster) = (bytes::Bytes::copy_from_slice(setup), bytes::Bytes::copy_from_slice(roster));
        let snapshot = bytes::Bytes::new();
        cluster.answer_next = Some(ClaimAnswer::Reopened { term: 2, setup, roster, snapshot });
        let claimed = cluster.claim(1, &seats[0]);
        assert_eq!(cluster.rejected(claimed), Some(&GONE));
        assert_eq!(cluster.hub(1).room_count(), 0);
    }
}
