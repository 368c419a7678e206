//! Keep-alive, silence, round trips and clocks.

use crate::harness::{CLIENT, Conditions, PERFECT, SERVER, World, for_seeds, ms};
use parlor_proto::session::{Outgoing, Session};
use parlor_proto::{CloseReason, Instant, LinkKind, channel, limits};

#[test]
fn an_idle_session_stays_open_with_few_packets() {
    for kind in [LinkKind::Quic, LinkKind::WebSocket] {
        let mut world = World::open(3, kind, PERFECT);
        let before = world.ends.each_ref().map(|end| end.left_at.len());
        world.run_ms(10 * 60 * 1_000);
        for (end, before) in world.ends.iter().zip(before) {
            assert!(end.session.is_open());
            let sent = end.left_at.len() - before;
            assert!(sent <= 200 + 2, "{kind:?}: {sent} packets in ten minutes");
        }
    }
}

/// Its silence is judged sooner than it ends the session, so it must be heard in spite of lost packets.
#[test]
fn threat_25_a_watched_session_says_something_in_every_keep_alive_interval() {
    let mut world = World::new(3, LinkKind::Quic, PERFECT);
    (world.terms.keep_alive_ms, world.terms.silence_ms) = (50, 8_000);
    let longest = |left: &[u64]| left.windows(2).map(|pair| pair[1] - pair[0]).max();
    world.run_ms(5_000);
    assert!(longest(&world.ends[CLIENT].left_at) <= Some(151_000), "from the first packet on");
    let begin = world.ends[CLIENT].left_at.iter().take(6).copied().collect::<Vec<_>>();
    assert!(longest(&begin) <= Some(51_000), "the first Time frames are keep-alives, too: {begin:?}");
    let before = world.ends[CLIENT].left_at.len();
    let now = world.clock(CLIENT);
    world.ends[CLIENT].session.set_watched(true, now);
    world.run_ms(10_000);
    let left = &world.ends[CLIENT].left_at[before..];
    assert!(longest(left) <= Some(51_000), "nothing for {:?} µs", longest(left));
    assert!((195..=205).contains(&left.len()), "{} packets in ten seconds", left.len());
}

/// With a short silence timeout and a long link, the answer takes longer than the keep-alive interval.
#[test]
fn an_idle_session_on_a_long_link_does_not_ask_for_what_cannot_be_there_yet() {
    for latency_ms in [2, 20, 50, 120] {
        let link = Conditions { latency_us: (latency_ms * 1_000, latency_ms * 1_000), lost: 0, doubled: 0 };
        let mut world = World::new(9, LinkKind::Quic, link);
        (world.terms.keep_alive_ms, world.terms.silence_ms) = (50, 1_000);
        world.run_ms(3_000);
        let before = world.ends[CLIENT].left_at.len();
        world.run_ms(60_000);
        let left = &world.ends[CLIENT].left_at[before..];
        // Three keep-alives of pause, or as many Time frames as fit into a round trip after the first two.
        let most = 60_000 / 150 * (2 + 2 * latency_ms / 50);
        assert!(
            left.len() as u64 <= most,
            "{latency_ms} ms: {} packets in a minute, {most} at most",
            left.len()
        );
        let longest = left.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(longest <= Some(151_000), "{latency_ms} ms: nothing for {longest:?} µs");
    }
}

/// An active session measures its clock once a second.
#[test]
fn a_session_that_is_not_idle_asks_for_the_time_more_often() {
    let mut world = World::open(8, LinkKind::Quic, PERFECT);
    // Its Time frame is never in the packet of an acknowledgement.
    world.run_ms(5_300);
    let before = world.ends[CLIENT].left_at.len();
    for _ in 0..60 {
        world.send(SERVER, channel::MESSAGE_UNRELIABLE, 0, 10, false);
        world.run_ms(1_000);
    }
    let sent = world.ends[CLIENT].left_at.len() - before;
    // An acknowledgement and a Time frame each second.
    assert!((115..=122).contains(&sent), "{sent} packets in a minute");
}

#[test]
fn a_session_stays_open_on_a_bad_link() {
    for_seeds(|seed| {
        let bad = Conditions { latency_us: (100_000, 300_000), lost: 300, doubled: 100 };
        let mut world = World::open(seed, LinkKind::Quic, PERFECT);
        world.conditions = bad;
        world.run_ms(120_000);
        assert!(world.ends.iter().all(|end| end.session.is_open()));
    });
}

#[test]
fn silence_ends_a_session_at_both_ends() {
    for kind in [LinkKind::Quic, LinkKind::WebSocket] {
        let mut world = World::open(4, kind, PERFECT);
        world.send(CLIENT, channel::MESSAGE_UNRELIABLE, 0, 10, true);
        world.is_cut = true;
        // The last packet was up to three seconds ago.
        world.run_ms(5_000 - 20);
        assert!(world.ends.iter().all(|end| end.closed.is_none()));
        world.run_ms(3_020);
        for end in &world.ends {
            assert_eq!(end.closed, Some(CloseReason::TimedOut));
            assert!(end.session.is_finished());
            assert_eq!(end.session.poll_timeout(), None);
        }
        assert_eq!(world.ends[CLIENT].fates.len(), 1);
    }
}

#[test]
fn both_ends_keep_the_terms_of_the_welcome() {
    let mut world = World::new(5, LinkKind::Quic, PERFECT);
    (world.terms.keep_alive_ms, world.terms.silence_ms) = (5_000, 20_000);
    world.run_ms(3_000);
    let before = world.ends.each_ref().map(|end| end.left_at.len());
    world.run_ms(60_000);
    for (end, before) in world.ends.iter().zip(before) {
        assert!(end.left_at.len() - before <= 2 * 13);
    }
    world.is_cut = true;
    // The last packet was up to three eighths of the silence timeout ago.
    world.run_ms(12_400);
    assert!(world.ends.iter().all(|end| end.closed.is_none()));
    world.run_ms(8_500);
    assert!(world.ends.iter().all(|end| end.closed == Some(CloseReason::TimedOut)));
}

#[test]
fn round_trip_and_clock_are_known_within_a_second() {
    for_seeds(|seed| {
        for kind in [LinkKind::Quic, LinkKind::WebSocket] {
            let (least, spread) = (10_000 + seed % 7 * 15_000, 1 + seed % 5 * 4_000);
            let link = Conditions { latency_us: (least, least + spread), lost: 0, doubled: 0 };
            let mut world = World::new(seed, kind, link);
            while world.ends[CLIENT].welcome.is_none() {
                world.run_ms(1);
            }
            world.run_ms(990);
            for (here, there) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
                let session = &world.ends[here].session;
                let rtt = session.rtt().expect("it was measured");
                assert!(
                    (2 * least..=2 * (least + spread) + 1).contains(&u64::try_from(rtt.as_micros()).unwrap()),
                    "{rtt:?} on a link of {link:?}"
                );
                assert!(session.rtt_jitter() <= rtt, "{:?}", session.rtt_jitter());
                let ahead = |end: usize| i64::try_from(world.ends[end].ahead_us).unwrap();
                let error =
                    session.clock_offset_us().expect("it was measured") - (ahead(there) - ahead(here));
                assert!(error.unsigned_abs() <= spread / 2 + 1, "{error} µs on a link of {link:?}");
            }
        }
    });
}

#[test]
fn threat_19_who_says_no_hello_is_gone_after_five_seconds() {
    let began = Instant::from_millis(1_000);
    let mut server = Session::server(LinkKind::Quic, began);
    assert_eq!(server.poll_timeout(), Some(began + limits::HANDSHAKE_TIMEOUT));
    server.handle_timeout(began + ms(4_999));
    assert_eq!(server.poll_event(), None);
    server.handle_timeout(began + ms(5_000));
    let closed = server.poll_event();
    assert!(
        matches!(&closed, Some(parlor_proto::session::Event::Closed(CloseReason::Misbehaved { detail })) if detail.contains("hello")),
        "{closed:?}"
    );
    assert!(server.poll_packet(began + ms(5_000)).is_some(), "it is told why");
    assert!(server.is_finished());
}

#[test]
fn a_client_that_is_not_answered_gives_up() {
    let mut world = World::new(6, LinkKind::Quic, PERFECT);
    world.is_cut = true;
    world.run_ms(6_000);
    assert_eq!(world.ends[CLIENT].closed, Some(CloseReason::TimedOut));
    assert!(world.ends[CLIENT].session.is_finished());
}

#[test]
fn a_session_without_a_connection_waits_for_ever_and_asks_for_no_time() {
    let mut world = World::open(7, LinkKind::Quic, PERFECT);
    world.send(SERVER, channel::MESSAGE_ORDERED, 0, 10, false);
    world.run_ms(21);
    world.disconnect([true, true]);
    for end in &world.ends {
        assert_eq!(end.session.poll_timeout(), None);
    }
    world.run_ms(60_000);
    assert!(world.ends.iter().all(|end| end.session.is_open()));
    world.reconnect(LinkKind::WebSocket);
    world.run_ms(1_000);
    world.check_settled();
}

/// A fast sender whose peer reads everything never lacks room because of a missing acknowledgement.
#[test]
fn a_burst_is_acknowledged_at_once() {
    for kind in [LinkKind::Quic, LinkKind::WebSocket] {
        let mut world = World::open(6, kind, PERFECT);
        let now = world.clock(CLIENT);
        let [client, server] = world.ends.each_mut().map(|end| &mut end.session);
        let mut sent = 0;
        while sent < 8 * limits::RELIABLE_QUEUE_BYTES_MAX {
            let message = vec![7; limits::MESSAGE_BYTES_MAX / 4];
            sent += message.len();
            client
                .send(Outgoing::new(channel::MESSAGE_ORDERED, message.into()))
                .expect("the peer reads everything");
            while let Some(packet) = client.poll_packet(now) {
                server.handle_packet(packet, now).expect("a session understands another");
            }
            while let Some(packet) = server.poll_packet(now) {
                client.handle_packet(packet, now).expect("a session understands another");
            }
        }
    }
}
