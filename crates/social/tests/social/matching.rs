//! The matchmaker: every match keeps the rules, nobody is matched twice or lost, and who can be served is.

use core::time::Duration;
use parlor_social::{
    Ended, EnterRefused, Entrance, Filter, HandOutRefused, Match, Offer, Players, Pool, Property, Queue,
    Seeker, SkillRule, Ticket, TicketState, WidenBy, admits,
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a test is short")
}

fn seeker(name: &str, skill: i64) -> Seeker {
    Seeker { player: name.into(), name: name.to_owned(), skill, doubt: 0, rtt_ms: Some(20) }
}

fn ticket(id: &str, skills: &[i64], since_ms: u64) -> Ticket {
    let member = |(nth, skill): (usize, &i64)| seeker(&format!("{id}.{nth}"), *skill);
    Ticket {
        id: id.into(),
        members: skills.iter().enumerate().map(member).collect(),
        party: None,
        players: Players { min: 2, max: 64, multiple: 1 },
        properties: Arc::default(),
        filter: Arc::default(),
        avoid: Arc::default(),
        since: at(since_ms),
    }
}

fn room(code: &str) -> Entrance {
    Entrance { kind: "match".to_owned(), code: code.to_owned() }
}

fn skill() -> SkillRule {
    SkillRule {
        ladder: "duel".into(),
        start: 100,
        per_s: 50,
        most: 1_000,
        any_after_s: None,
        widen_by: WidenBy::Both,
    }
}

/// Lets everybody open the room that is asked to, at once. Gives the matches.
fn open_all(pool: &mut Pool, now: Duration) -> Vec<(Vec<String>, Arc<Match>)> {
    let mut found: BTreeMap<String, (Vec<String>, Arc<Match>)> = BTreeMap::new();
    while let Some(id) = pool.poll_changed() {
        match pool.ticket(&id).map(|(_, state)| state.clone()) {
            Some(TicketState::Opening { opener, .. }) => {
                // Only the opener's own ticket says it.
                let code = format!("R{opener}");
                let _ = pool.opened(&id, &opener, room(&code), now);
            }
            Some(TicketState::Found(it)) => {
                let entry = found.entry(it.room.code.clone()).or_insert_with(|| (Vec::new(), it));
                // It may have changed twice since.
                if !entry.0.contains(&id.to_string()) {
                    entry.0.push(id.to_string());
                }
            }
            _ => {}
        }
    }
    found.into_values().collect()
}

/// How far apart in skill two tickets may be, in plain words.
fn reach(queue: &Queue, one: &Ticket, other: &Ticket, now: Duration) -> i64 {
    let Some(rule) = &queue.skill else { return i64::MAX };
    let window = |ticket: &Ticket| {
        let age_ms = millis(now - ticket.since).cast_signed();
        (i64::from(rule.start) + i64::from(rule.per_s) * age_ms / 1_000).min(i64::from(rule.most))
    };
    let (one, other) = (window(one), window(other));
    match rule.widen_by {
        WidenBy::Both => one.midpoint(other),
        WidenBy::Oldest => one.max(other),
        WidenBy::Youngest => one.min(other),
    }
}

/// What is wrong with a group, if anything is.
fn wrong_with(queue: &Queue, group: &[&Ticket], now: Duration) -> Option<String> {
    let players: usize = group.iter().map(|ticket| ticket.members.len()).sum();
    if !queue.players.admits(players) || group.iter().any(|ticket| !ticket.players.admits(players)) {
        return Some(format!("{players} players"));
    }
    let waited = |ticket: &&&Ticket| now - ticket.since >= at(queue.fill_ms.into());
    if players < usize::from(queue.players.max) && group.iter().find(waited).is_none() {
        return Some("it has free seats, and nobody has waited".to_owned());
    }
    for (nth, one) in group.iter().enumerate() {
        for other in &group[nth + 1..] {
            if queue.same.iter().any(|name| one.properties.get(name) != other.properties.get(name)) {
                return Some("not the same".to_owned());
            }
            if !admits(&one.filter, &other.properties) || !admits(&other.filter, &one.properties) {
                return Some("a filter".to_owned());
            }
            let avoids =
                |one: &Ticket, other: &Ticket| other.members.iter().any(|it| one.avoid.contains(&it.player));
            if avoids(one, other) || avoids(other, one) {
                return Some("they avoid each other".to_owned());
            }
            if one.skill().abs_diff(other.skill()) > reach(queue, one, other, now).unsigned_abs() {
                return Some(format!("{} and {} are too far apart", one.skill(), other.skill()));
            }
        }
    }
    None
}

/// Whether some group with the first ticket is right, by trying all.
fn has_group(queue: &Queue, tickets: &[Ticket], now: Duration) -> bool {
    (0_u32..1 << (tickets.len() - 1)).any(|set| {
        let others = (1..tickets.len()).filter(|nth| set & (1 << (nth - 1)) != 0);
        let group: Vec<&Ticket> = core::iter::once(0).chain(others).map(|nth| &tickets[nth]).collect();
        wrong_with(queue, &group, now).is_none()
    })
}

#[derive(Clone, Debug)]
struct Arrival {
    skills: Vec<i64>,
    mode: i64,
    wants: Option<i64>,
    after_ms: u64,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    (
        proptest::collection::vec(prop_oneof![Just(2_000_i64), 1_500_i64..2_500], 1..3),
        0_i64..2,
        proptest::option::weighted(0.3, 0_i64..2),
        prop_oneof![3 => 0_u64..400, 1 => 0_u64..20_000],
    )
        .prop_map(|(skills, mode, wants, after_ms)| Arrival { skills, mode, wants, after_ms })
}

fn queues() -> impl Strategy<Value = Queue> {
    let players = prop_oneof![
        Just(Players { min: 2, max: 2, multiple: 1 }),
        Just(Players { min: 2, max: 4, multiple: 1 }),
        Just(Players { min: 2, max: 6, multiple: 2 }),
        Just(Players { min: 3, max: 5, multiple: 1 }),
    ];
    let widen = prop_oneof![Just(WidenBy::Both), Just(WidenBy::Oldest), Just(WidenBy::Youngest)];
    (players, widen, any::<bool>(), any::<bool>()).prop_map(|(players, widen_by, has_skill, has_same)| {
        Queue {
            players,
            skill: has_skill.then(|| SkillRule { widen_by, ..skill() }),
            same: if has_same { vec!["mode".to_owned()] } else { Vec::new() },
            ..Queue::default()
        }
    })
}

proptest! {
    #[test]
    fn n5_each_match_keeps_the_rules_and_nobody_is_in_two(
        queue in queues(), arrivals in proptest::collection::vec(arrival(), 1..40),
    ) {
        queue.check().unwrap();
        let mut pool = Pool::new(queue.clone());
        let (mut now, mut all, mut matched) = (0, BTreeMap::<String, Ticket>::new(), BTreeSet::<String>::new());
        let mut arrivals = arrivals.into_iter().enumerate();
        let mut next = arrivals.next();
        while now < 120_000 {
            while let Some((nth, arrival)) = next.take_if(|(_, arrival)| arrival.after_ms <= 400 || now >= arrival.after_ms) {
                let id = format!("t{nth}");
                let mut new = ticket(&id, &arrival.skills, now);
                Arc::make_mut(&mut new.properties).insert("mode".into(), Property::Number(arrival.mode));
                if let Some(mode) = arrival.wants {
                    let wanted = serde_json::json!({ "mode": { "ge": mode } });
                    new.filter = Arc::new(serde_json::from_value(wanted).unwrap());
                }
                if pool.enter(new.clone(), at(now)).is_ok() {
                    all.insert(id, new);
                }
                next = arrivals.next();
            }
            while pool.work(1, at(now)).is_none() {}
            for (ids, found) in open_all(&mut pool, at(now)) {
                let group: Vec<&Ticket> = ids.iter().map(|id| &all[id]).collect();
                prop_assert_eq!(wrong_with(&queue, &group, at(now)), None, "{:?}", group);
                let players: BTreeSet<_> = found.teams.iter().flatten().map(|it| it.player.clone()).collect();
                prop_assert_eq!(players.len(), group.iter().map(|it| it.members.len()).sum::<usize>());
                for id in ids {
                    prop_assert!(matched.insert(id.clone()), "{id} is matched twice");
                }
            }
            let due = pool.next_timeout().map_or(u64::MAX, |at| millis(at) + 1);
            let arrives = next.as_ref().map_or(u64::MAX, |(_, arrival)| arrival.after_ms);
            now = due.min(arrives).max(now + 1).min(120_000);
        }
        // Whoever is left at the end can be served by no group of those who are left.
        let left: Vec<Ticket> = all.iter().filter(|(id, _)| !matched.contains(*id)).map(|(_, it)| it.clone()).collect();
        for nth in 0..left.len().min(9) {
            let mut others: Vec<Ticket> = left.iter().take(9).cloned().collect();
            others.swap(0, nth);
            prop_assert!(!has_group(&queue, &others, at(now - 31_000)), "{:?} wait for nothing", others);
        }
        // Each has one fate.
        while pool.work(u32::MAX, at(now + 900_000)).is_none() {}
        for id in all.keys() {
            let state = pool.ticket(id).map(|(_, state)| state.clone());
            let is_over = matches!(state, None | Some(TicketState::Ended(Ended::Expired)));
            prop_assert!(is_over, "{id}: {state:?}");
        }
    }

    #[test]
    fn n5_the_same_tickets_make_the_same_matches_however_the_work_is_cut(
        queue in queues(), skills in proptest::collection::vec(1_500_i64..2_500, 2..60), budget in 1_u32..2_000,
    ) {
        let run = |budget: u32| {
            let mut pool = Pool::new(queue.clone());
            for (nth, skill) in skills.iter().enumerate() {
                pool.enter(ticket(&format!("t{nth}"), &[*skill], 0), at(0)).unwrap();
            }
            let mut matches = Vec::new();
            for second in 1..40 {
                while pool.work(budget, at(second * 1_000)).is_none() {}
                matches.extend(open_all(&mut pool, at(second * 1_000)).into_iter().map(|(ids, _)| ids));
            }
            matches
        };
        prop_assert_eq!(run(budget), run(u32::MAX));
    }
}

fn duel() -> Queue {
    Queue { skill: Some(skill()), ..Queue::default() }
}

fn codes(found: &[(Vec<String>, Arc<Match>)]) -> Vec<Vec<String>> {
    let mut ids: Vec<Vec<String>> = found
        .iter()
        .map(|(ids, _)| {
            let mut ids = ids.clone();
            ids.sort();
            ids
        })
        .collect();
    ids.sort();
    ids
}

#[test]
fn n5_of_two_alike_the_older_goes_first_and_limits_widen() {
    let mut pool = Pool::new(duel());
    for (id, skill, since) in [("a", 2_000, 0), ("b", 2_000, 10), ("c", 2_600, 20)] {
        pool.enter(ticket(id, &[skill], since), at(since)).unwrap();
    }
    pool.enter(ticket("d", &[2_010], 30), at(30)).unwrap();
    pool.work(u32::MAX, at(600));
    assert_eq!(codes(&open_all(&mut pool, at(600))), [["a", "b"]], "d comes after b");
    // 600 apart: both windows reach 600 after ten seconds.
    pool.work(u32::MAX, at(9_000));
    assert_eq!(open_all(&mut pool, at(9_000)).len(), 0);
    pool.work(u32::MAX, at(13_100));
    assert_eq!(codes(&open_all(&mut pool, at(13_100))), [["c", "d"]]);
    assert!(pool.next_timeout().is_some());
}

#[test]
fn n5_a_match_waits_to_be_full_as_long_as_the_oldest_may_wait() {
    let queue = Queue { players: Players { min: 2, max: 4, multiple: 1 }, ..Queue::default() };
    let mut pool = Pool::new(queue);
    for (id, since) in [("a", 0), ("b", 100), ("c", 5_000)] {
        pool.enter(ticket(id, &[0], since), at(since)).unwrap();
    }
    pool.work(u32::MAX, at(9_999));
    assert_eq!(open_all(&mut pool, at(9_999)).len(), 0);
    pool.work(u32::MAX, at(10_000));
    assert_eq!(codes(&open_all(&mut pool, at(10_000))), [["a", "b", "c"]], "three, and not two");
}

/// Others' tickets, which stand nearer than who fits.
#[test]
fn n5_tickets_that_nobody_fits_hold_up_nobody() {
    let mut pool = Pool::new(duel());
    let nobody: Filter = serde_json::from_value(serde_json::json!({ "mod": "of nobody" })).unwrap();
    let nobody = Arc::new(nobody);
    for nth in 0..5_000 {
        let picky = Ticket { filter: Arc::clone(&nobody), ..ticket(&format!("n{nth}"), &[2_000], 0) };
        pool.enter(picky, at(0)).unwrap();
    }
    for (id, skill) in [("a", 2_000), ("b", 2_050)] {
        pool.enter(ticket(id, &[skill], 0), at(0)).unwrap();
    }
    // A step moves each to those that are tried, a step tries it, and each try looks at the kinds.
    let left = pool.work(100_000, at(600)).unwrap();
    assert_eq!(codes(&open_all(&mut pool, at(600))), [["a", "b"]]);
    assert!(left > 100_000 - 4 * 5_002, "{left} steps are left");
}

#[test]
fn n5_what_ends_at_once_is_worked_off_within_the_budget() {
    let mut pool = Pool::new(Queue { life_s: 10, ..duel() });
    for nth in 0..1_000 {
        // Each in a world of its own.
        pool.enter(ticket(&format!("t{nth}"), &[nth * 100_000], 0), at(0)).unwrap();
    }
    while pool.work(u32::MAX, at(9_000)).is_none() {}
    let ended = |pool: &mut Pool| core::iter::from_fn(|| pool.poll_changed()).count();
    assert_eq!((pool.work(100, at(10_000)), ended(&mut pool)), (None, 100));
    assert_eq!((pool.work(900, at(10_000)), ended(&mut pool), pool.stats().waiting), (Some(0), 900, 0));
}

#[test]
fn n5_parties_stay_whole_and_teams_are_fair() {
    let queue = Queue { players: Players { min: 6, max: 6, multiple: 1 }, teams: 2, ..Queue::default() };
    let mut pool = Pool::new(queue);
    let too_large = pool.enter(ticket("x", &[0; 4], 0), at(0));
    assert_eq!(too_large, Err(EnterRefused::PartyTooLarge));
    for (id, skills) in
        [("a", vec![2_000, 2_000]), ("b", vec![1_000]), ("c", vec![3_000, 1_000]), ("d", vec![2_000])]
    {
        pool.enter(ticket(id, &skills, 0), at(0)).unwrap();
    }
    assert_eq!(pool.enter(ticket("a", &[0], 0), at(0)), Err(EnterRefused::AlreadyInQueue));
    pool.work(u32::MAX, at(600));
    let found = open_all(&mut pool, at(600));
    let teams: Vec<Vec<&str>> =
        found[0].1.teams.iter().map(|team| team.iter().map(|it| &*it.player).collect()).collect();
    for team in &teams {
        assert_eq!(team.len(), 3, "{teams:?}");
        assert_eq!(team.contains(&"a.0"), team.contains(&"a.1"), "{teams:?}");
    }
    let sum = |team: &Vec<Seeker>| team.iter().map(|it| it.skill).sum::<i64>();
    let sums: Vec<i64> = found[0].1.teams.iter().map(sum).collect();
    assert_eq!(sums[0].abs_diff(sums[1]), 1_000, "{sums:?}: as fair as whole parties can be");
}

#[test]
fn n5_who_declines_or_is_silent_is_out_and_the_others_wait_on() {
    let mut pool = Pool::new(Queue { confirm_s: 10, ..Queue::default() });
    for id in ["a", "b"] {
        pool.enter(ticket(id, &[0], 0), at(0)).unwrap();
    }
    pool.work(u32::MAX, at(600));
    let state = |pool: &Pool, id: &str| pool.ticket(id).unwrap().1.clone();
    assert!(matches!(state(&pool, "a"), TicketState::Confirm { .. }));
    assert_eq!(pool.confirm("a", "b.0", true, at(700)), Err(HandOutRefused::NoSuchTicket));
    pool.confirm("a", "a.0", true, at(700)).unwrap();
    assert!(pool.opened("a", "a.0", room("R"), at(700)).is_err(), "nobody opens before all have confirmed");
    pool.work(u32::MAX, at(10_600));
    assert_eq!(state(&pool, "b"), TicketState::Ended(Ended::Declined));
    assert_eq!(state(&pool, "a"), TicketState::Waiting);
    pool.enter(ticket("c", &[0], 11_000), at(11_000)).unwrap();
    pool.work(u32::MAX, at(13_500));
    pool.confirm("c", "c.0", false, at(13_600)).unwrap();
    assert_eq!(
        (state(&pool, "c"), state(&pool, "a")),
        (TicketState::Ended(Ended::Declined), TicketState::Waiting)
    );
    pool.enter(ticket("d", &[0], 14_000), at(14_000)).unwrap();
    pool.work(u32::MAX, at(21_500));
    for id in ["a", "d"] {
        pool.confirm(id, &format!("{id}.0"), true, at(21_600)).unwrap();
    }
    assert!(matches!(state(&pool, "a"), TicketState::Opening { .. }));
}

#[test]
fn n5_three_are_asked_to_open_the_room_and_a_result_is_kept() {
    let mut pool = Pool::new(Queue::default());
    for id in ["a", "b"] {
        pool.enter(ticket(id, &[0], 0), at(0)).unwrap();
    }
    pool.work(u32::MAX, at(600));
    let opener = |pool: &Pool| match pool.ticket("a").unwrap().1 {
        TicketState::Opening { opener, .. } => Some(opener.to_string()),
        _ => None,
    };
    assert_eq!(opener(&pool).as_deref(), Some("a.0"));
    assert_eq!(pool.must_be_opener("b", "b.0"), Err(HandOutRefused::NotAsked));
    pool.work(u32::MAX, at(15_700));
    assert_eq!(opener(&pool).as_deref(), Some("b.0"), "the other is asked");
    pool.opened("b", "b.0", room("R"), at(16_000)).unwrap();
    let found = |pool: &Pool, id: &str| matches!(pool.ticket(id), Some((_, TicketState::Found(it))) if it.room.code == "R");
    assert!(found(&pool, "a") && found(&pool, "b"));
    pool.work(u32::MAX, at(75_000));
    assert!(found(&pool, "a"), "it is no message that may be lost");
    // Who could not get in is back with its age.
    assert_eq!(pool.again("a", "b.0", at(75_000)), Err(HandOutRefused::NoSuchTicket));
    pool.again("a", "a.0", at(75_000)).unwrap();
    assert_eq!(pool.ticket("a").unwrap().0.since, at(0));
    pool.work(u32::MAX, at(77_000));
    assert!(pool.ticket("b").is_none(), "after a minute it is forgotten");
    // Nobody opens: both wait on.
    pool.enter(ticket("c", &[0], 77_000), at(77_000)).unwrap();
    for ms in (77_000..130_000).step_by(1_000) {
        pool.work(u32::MAX, at(ms));
    }
    assert_eq!(pool.stats().waiting + usize::from(opener(&pool).is_some()) * 2, 2);
}

#[test]
fn n5_a_member_that_is_gone_ends_its_ticket_and_a_leaver_takes_nobody_along() {
    let mut pool = Pool::new(Queue { confirm_s: 10, ..Queue::default() });
    for id in ["a", "b", "c"] {
        pool.enter(ticket(id, &[0], 0), at(0)).unwrap();
    }
    pool.set_here("c.0", false, at(0));
    pool.work(u32::MAX, at(600));
    pool.leave("a", Ended::Left, at(700));
    let ended = |pool: &Pool, id: &str| match pool.ticket(id) {
        Some((_, TicketState::Ended(why))) => Some(*why),
        _ => None,
    };
    assert_eq!((ended(&pool, "a"), ended(&pool, "b")), (Some(Ended::Left), None));
    pool.set_here("b.0", false, at(1_000));
    pool.set_here("b.0", true, at(2_000));
    pool.work(u32::MAX, at(30_000));
    assert_eq!((ended(&pool, "c"), ended(&pool, "b")), (Some(Ended::Gone), None));
}

#[test]
fn x9_a_round_trip_that_is_too_long_waits_until_it_is_accepted() {
    let rtt =
        serde_json::from_value(serde_json::json!({ "start_ms": 50, "per_s": 10, "most_ms": 300 })).unwrap();
    let mut pool = Pool::new(Queue { rtt: Some(rtt), ..Queue::default() });
    for (id, rtt_ms) in [("near", Some(30)), ("far", Some(140)), ("also near", Some(40))] {
        let mut ticket = ticket(id, &[0], 0);
        ticket.members[0].rtt_ms = rtt_ms;
        pool.enter(ticket, at(0)).unwrap();
    }
    pool.work(u32::MAX, at(600));
    assert_eq!(codes(&open_all(&mut pool, at(600))), [["also near", "near"]]);
    let mut late = ticket("late", &[0], 5_000);
    late.members[0].rtt_ms = Some(20);
    pool.enter(late, at(5_000)).unwrap();
    pool.work(u32::MAX, at(8_000));
    assert_eq!(open_all(&mut pool, at(8_000)).len(), 0);
    let mut found = Vec::new();
    for ms in (8_000..30_000).step_by(500) {
        pool.work(u32::MAX, at(ms));
        found.extend(open_all(&mut pool, at(ms)));
    }
    assert_eq!(codes(&found), [["far", "late"]]);
    let opener = found[0].1.room.code.clone();
    assert_eq!(opener, "Rlate.0", "who is nearest opens the room");
}

fn offer(id: &str, seats: u16, skill: i64) -> Offer {
    let (by, properties) = (None, BTreeMap::new());
    Offer { id: id.into(), by, room: room(id), seats, skill: Some(skill), properties }
}

#[test]
fn x9_free_seats_of_matches_are_filled_whole_parties_first_come() {
    let mut pool = Pool::new(Queue { players: Players { min: 2, max: 4, multiple: 1 }, ..duel() });
    pool.offer(offer("M1", 1, 2_000), at(0)).unwrap();
    pool.offer(offer("M2", 3, 2_000), at(0)).unwrap();
    pool.enter(ticket("pair", &[2_000, 2_050], 0), at(0)).unwrap();
    pool.enter(ticket("one", &[1_950], 10), at(10)).unwrap();
    pool.enter(ticket("strong", &[2_900], 20), at(20)).unwrap();
    pool.work(u32::MAX, at(600));
    let of = |pool: &Pool, id: &str| match pool.ticket(id) {
        Some((_, TicketState::Found(it))) if it.is_backfill => Some(it.room.code.clone()),
        _ => None,
    };
    assert_eq!(of(&pool, "pair").as_deref(), Some("M2"), "one seat is too few for two");
    assert_eq!(of(&pool, "one").as_deref(), Some("M1"), "the fullest first");
    assert_eq!(of(&pool, "strong"), None, "too strong for both");
    // The last seat of M2 is free; those two are on their way for 30 seconds.
    pool.enter(ticket("two", &[2_000, 2_000], 700), at(700)).unwrap();
    pool.work(u32::MAX, at(1_500));
    assert_eq!(of(&pool, "two"), None);
    pool.offer(offer("M2", 2, 2_000), at(2_000)).unwrap();
    pool.work(u32::MAX, at(4_000));
    assert_eq!(of(&pool, "two").as_deref(), Some("M2"));
    pool.withdraw("M2", None).unwrap();
    assert!(pool.offered_room("M2").is_none());
    pool.work(u32::MAX, at(61_000));
    assert_eq!(pool.stats().offers, 0, "an offer that is not renewed ends");
}

/// 100,000 tickets from a seed, or as many as `PARLOR_TICKETS` says: squads of five against five, with parties.
#[test]
fn n5_a_hundred_thousand_tickets_are_matched_fairly_and_none_is_lost() {
    let count: u64 = std::env::var("PARLOR_TICKETS").map_or(5_000, |text| text.parse().unwrap());
    let seed = std::env::var("PARLOR_SEED").map_or(7, |text| text.parse().unwrap());
    println!("{count} tickets from seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let queue = Queue {
        players: Players { min: 10, max: 10, multiple: 1 },
        teams: 2,
        skill: Some(skill()),
        same: vec!["mode".to_owned()],
        ..Queue::default()
    };
    let mut pool = Pool::new(queue.clone());
    let (mut all, mut matched, mut now_ms) = (BTreeMap::new(), BTreeSet::new(), 0);
    let mut entered = 0;
    let mut spread = Vec::new();
    while entered < count || now_ms < count / 2 + 60_000 {
        for _ in 0..(count - entered).min(200) {
            let size = [1, 1, 1, 1, 1, 1, 2, 2, 3, 5][(random.next_u32() % 10) as usize];
            let skill = 2_000 + i64::from(random.next_u32() % 1_000);
            let id = format!("t{entered}");
            let mut new = ticket(&id, &vec![skill; size], now_ms);
            Arc::make_mut(&mut new.properties)
                .insert("mode".into(), Property::Number((random.next_u32() % 3).into()));
            pool.enter(new.clone(), at(now_ms)).unwrap();
            all.insert(id, new);
            entered += 1;
        }
        now_ms += 100;
        while pool.work(20_000, at(now_ms)).is_none() {}
        for (ids, found) in open_all(&mut pool, at(now_ms)) {
            let group: Vec<&Ticket> = ids.iter().map(|id| &all[id]).collect();
            assert_eq!(wrong_with(&queue, &group, at(now_ms)), None);
            for id in ids {
                assert!(matched.insert(id));
            }
            let sums: Vec<i64> =
                found.teams.iter().map(|team| team.iter().map(|it| it.skill).sum()).collect();
            spread.push(sums[0].abs_diff(sums[1]) / 5);
        }
    }
    spread.sort_unstable();
    let left = all.len() - matched.len();
    println!(
        "{} matches, {left} tickets left, mean skill of teams apart: p50 {}",
        spread.len(),
        spread[spread.len() / 2]
    );
    assert!(left < 100, "{left} of {} wait", all.len());
    assert!(spread[spread.len() * 9 / 10] <= 100, "nine of ten matches have teams within 100 points");
}
