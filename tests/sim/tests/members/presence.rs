//! How soon a lost player is missed, and how it reconnects: options of rooms and of players.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{ClosedReason, Event, Options, ReconnectPolicy};
use parlor_hub::Config;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::{CloseReason, LinkKind, MemberId};
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use std::time::Duration;

const PRESENCE: Duration = Duration::from_millis(1_500);

fn sim(seed: u64) -> Sim {
    let mut drawn = [4; 32];
    drawn[..8].copy_from_slice(&seed.to_le_bytes());
    Sim::with_hub(seed, Config { record: true, ..Config::new(drawn) })
}

/// A match or a room of this opener's, and two more.
fn room(sim: &mut Sim, options: Options, link: Link) -> [PeerId; 3] {
    let opener = sim.host(options, link);
    let code = sim.code(opener);
    let peers = [opener, sim.join(code, link), sim.join(code, link)];
    sim.run_for(3_000);
    peers.into_iter().for_each(|peer| drop(sim.take_events(peer)));
    peers
}

fn wanting(options: Options, grace: Option<Duration>) -> Options {
    Options { presence: Some(PRESENCE), grace, ..options }
}

/// How long until an event of a client is the one that is waited for.
fn wait_ms(sim: &mut Sim, peer: PeerId, most_ms: u64, is_it: impl Fn(&Event) -> bool) -> u64 {
    let begun = sim.now();
    for _ in 0..most_ms {
        if sim.events(peer).iter().any(&is_it) {
            break;
        }
        sim.run_for(1);
    }
    assert!(sim.events(peer).iter().any(&is_it), "{:?}\n{}", sim.events(peer), sim.excerpt(40));
    u64::try_from(sim.now().saturating_since(begun).as_millis()).unwrap()
}

#[test]
fn n2_who_is_killed_is_missed_within_two_seconds_where_the_room_asks_for_it() {
    for_seeds(20, |seed| {
        let mut sim = sim(seed);
        let kind = [LinkKind::Quic, LinkKind::WebSocket][usize::try_from(seed % 2).unwrap()];
        let options = if seed % 4 < 2 { Options::create_match(APP) } else { Options::host(APP) };
        let link = Link::quic().as_kind(kind).loss(20).jitter_ms(20);
        let peers = room(&mut sim, wanting(options, None), link);
        // Whoever it is, the opener of a match too, and whenever.
        let victim = peers[usize::try_from(if seed % 4 < 2 { seed % 3 } else { 1 + seed % 2 }).unwrap()];
        let id = sim.room(victim).local_id().unwrap();
        sim.run_for(seed * 37);
        sim.crash(victim);
        let lost = Event::PlayerLost { id, reason: LeaveReason::TimedOut };
        for peer in peers.into_iter().filter(|peer| *peer != victim) {
            let took_ms = wait_ms(&mut sim, peer, 2_500, |event| *event == lost);
            assert!(took_ms <= 2_000, "seed {seed}: {took_ms} ms");
        }
    });
}

#[test]
fn n2_nobody_is_missed_who_only_has_a_bad_link_or_nothing_to_say() {
    for_seeds(6, |seed| {
        let mut sim = sim(seed);
        let link = Link::quic().loss(50).jitter_ms(60).latency_ms(100);
        let peers = room(&mut sim, wanting(Options::create_match(APP), None), link);
        sim.run_for(120_000);
        let is_loss =
            |event: &Event| matches!(event, Event::PlayerLost { .. } | Event::ConnectionLost { .. });
        for peer in peers {
            let losses: Vec<Event> = sim.take_events(peer).into_iter().filter(is_loss).collect();
            assert_eq!(losses, [], "seed {seed}");
        }
    });
}

#[test]
fn n4_a_match_without_a_grace_keeps_no_seat() {
    for_seeds(6, |seed| {
        let mut sim = sim(seed);
        let kind = [LinkKind::Quic, LinkKind::WebSocket][usize::try_from(seed % 2).unwrap()];
        let options = wanting(Options::create_match(APP), Some(Duration::ZERO));
        let [opener, guest, third] = room(&mut sim, options, Link::quic().as_kind(kind));
        let (id, code) = (sim.room(guest).local_id().unwrap(), sim.code(opener));
        let is_left = |id: MemberId| move |event: &Event| matches!(event, Event::PlayerLeft { id: who, .. } if *who == id);
        // Who leaves is told at once.
        sim.act(third, |core, now| core.leave(now));
        let left = sim.room(third).local_id().unwrap();
        assert!(wait_ms(&mut sim, opener, 1_000, is_left(left)) < 200);
        sim.crash(guest);
        assert!(wait_ms(&mut sim, opener, 2_500, is_left(id)) <= 2_000);
        assert!(!sim.events(opener).iter().any(|event| matches!(event, Event::PlayerLost { .. })));
        // A match ends with its last member: no kept seat holds it open.
        sim.crash(opener);
        sim.run_for(3_000);
        assert_eq!(sim.hub().room_count(), 0);
        let late = sim.join(code, Link::quic());
        assert!(matches!(sim.closed(late), Some(ClosedReason::Refused(_))), "its id is never valid again");
    });
}

/// Bytes a second of packets, without those of the transport beneath, between the hub and an idle member.
fn idle_cost(options: Options) -> u64 {
    const SECONDS: u64 = 120;
    let mut sim = sim(5);
    room(&mut sim, options, Link::quic());
    sim.run_for(30_000);
    let bytes = |sim: &Sim| sim.hub().stats().bytes_sent + sim.hub().stats().bytes_received;
    let before = bytes(&sim);
    sim.run_for(SECONDS * 1_000);
    (bytes(&sim) - before) / (3 * SECONDS)
}

#[test]
fn n2_presence_costs_an_idle_member_some_hundred_bytes_a_second() {
    let plain = idle_cost(Options::create_match(APP));
    let watched = idle_cost(wanting(Options::create_match(APP), None));
    println!("an idle member costs {plain} B/s, with presence {watched} B/s");
    assert!(plain < watched && watched < 150, "{plain} B/s without, {watched} B/s with");
}

#[test]
fn m10_every_field_of_the_reconnect_policy_is_kept_to() {
    let attempts_of = |policy: ReconnectPolicy| {
        let mut sim = sim(1);
        let [host, ..] = room(&mut sim, Options::host(APP), Link::quic());
        let code = sim.code(host);
        let options = Options { reconnect_policy: policy, ..Options::join(APP, code) };
        let guest = sim.enter(options, Link::quic());
        sim.run_for(1_000);
        sim.unplug(guest, true);
        sim.cut(guest);
        let lost_at = sim.now();
        let mut attempts_ms = Vec::new();
        for _ in 0..100_000 {
            let count =
                sim.events(guest).iter().filter(|it| matches!(it, Event::Reconnecting { .. })).count();
            if count > attempts_ms.len() {
                attempts_ms.push(u64::try_from(sim.now().saturating_since(lost_at).as_millis()).unwrap());
            }
            if sim.closed(guest).is_some() {
                break;
            }
            sim.run_for(1);
        }
        let closed = sim.closed(guest);
        let is_given_up = matches!(closed, Some(ClosedReason::Session(CloseReason::ConnectionLost { .. })));
        assert!(is_given_up, "{closed:?}");
        attempts_ms
    };
    let even = ReconnectPolicy { jitter: 0.0, ..ReconnectPolicy::default() };
    let gaps = |times: &[u64]| times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>();
    // A dial that fails takes some time of its own, which is the same each time.
    let three = attempts_of(ReconnectPolicy { attempts: 3, delay_factor: 1.0, ..even });
    let [one, other] = gaps(&three)[..] else { panic!("{three:?}") };
    assert!(one.abs_diff(other) <= 40, "{three:?}");
    let grown = attempts_of(ReconnectPolicy {
        attempts: 4,
        delay_factor: 3.0,
        delay_max: Duration::from_secs(60),
        ..even
    });
    let grown_gaps = gaps(&grown);
    let dial_ms = one - 200;
    let waits: Vec<u64> = grown_gaps.iter().map(|gap| gap - dial_ms).collect();
    for (wait, meant) in waits.iter().zip([600, 1_800, 5_400]) {
        assert!(wait.abs_diff(meant) <= 60, "{waits:?}");
    }
    let capped = attempts_of(ReconnectPolicy { attempts: 5, delay_max: Duration::from_millis(300), ..even });
    assert!(gaps(&capped).iter().all(|gap| (gap - dial_ms).abs_diff(300) <= 60), "{capped:?}");
    let first = attempts_of(ReconnectPolicy { attempts: 1, delay_first: Duration::from_secs(3), ..even });
    assert!(first[0].abs_diff(3_000) < 60, "{first:?}");
    let often = ReconnectPolicy { attempts: 1_000, delay_factor: 1.0, ..even };
    let [short, long] =
        [8, 40].map(|s| attempts_of(ReconnectPolicy { total: Duration::from_secs(s), ..often }));
    assert!(
        short.iter().all(|at| *at <= 8_050) && long.iter().all(|at| *at <= 40_050),
        "{short:?}, {long:?}"
    );
    assert!(long.len() >= 4 * short.len(), "{short:?}, {long:?}");
    let jittered = attempts_of(ReconnectPolicy { attempts: 6, delay_factor: 1.0, jitter: 0.5, ..even });
    let gaps = gaps(&jittered);
    assert!(gaps.iter().max().unwrap() - gaps.iter().min().unwrap() > 20, "{jittered:?}");
}

#[test]
fn m11_a_kick_of_who_is_gone_is_no_error_and_keeps_it_away() {
    let mut sim = sim(2);
    let [host, guest, witness] = room(&mut sim, Options::host(APP), Link::quic());
    let id = sim.room(guest).local_id().unwrap();
    sim.unplug(guest, true);
    sim.cut(guest);
    sim.run_for(35_000);
    assert!(sim.room(host).player(id).is_none(), "it was lost for good");
    for who in [id, id, MemberId(77)] {
        sim.act(host, |core, _| core.kick(who, "rude")).unwrap();
    }
    sim.unplug(guest, false);
    sim.run_for(20_000);
    assert_ne!(sim.room(guest).local_id(), Some(id), "it comes as somebody else");
    // Twice at once: the second finds nobody.
    let other = sim.room(witness).local_id().unwrap();
    for _ in 0..2 {
        sim.act(host, |core, _| core.kick(other, "rude")).unwrap();
    }
    sim.run_for(1_000);
    let kicked = CloseReason::Kicked { reason: "rude".into() };
    assert_eq!(sim.closed(witness), Some(ClosedReason::Session(kicked)));
    let oneself = sim.act(host, |core, _| core.kick(MemberId(0), "")).unwrap_err();
    assert!(oneself.to_string().contains("leave instead"), "{oneself}");
}

#[test]
fn m12_each_loss_says_how_it_came() {
    let mut sim = sim(3);
    let [host, guest, witness] = room(&mut sim, Options::host(APP), Link::quic());
    let [broken, silent] = [guest, witness].map(|peer| sim.room(peer).local_id().unwrap());
    sim.unplug(guest, true);
    sim.cut(guest);
    sim.unplug(witness, true);
    sim.silence(witness, true);
    sim.run_for(10_000);
    let told = sim.take_events(host);
    for (id, reason) in [(broken, LeaveReason::ConnectionLost), (silent, LeaveReason::TimedOut)] {
        assert!(told.contains(&Event::PlayerLost { id, reason }), "{told:?}");
    }
    let own = |sim: &mut Sim, peer| {
        let events = sim.take_events(peer);
        events.into_iter().find_map(|event| match event {
            Event::ConnectionLost { reason, .. } => Some(reason),
            _ => None,
        })
    };
    assert_eq!(own(&mut sim, guest), Some(LeaveReason::ConnectionLost));
    assert_eq!(own(&mut sim, witness), Some(LeaveReason::TimedOut));
    sim.run_for(35_000);
    let told = sim.take_events(host);
    for (who, why) in [(broken, LeaveReason::ConnectionLost), (silent, LeaveReason::TimedOut)] {
        let is_it = |event: &Event| matches!(event, Event::PlayerLeft { id, reason, .. } if *id == who && *reason == why);
        assert!(told.iter().any(is_it), "lost for good: {told:?}");
    }
}
