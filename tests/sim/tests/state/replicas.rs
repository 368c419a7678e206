//! Own states of players, and events among them.

use parlor_client_core::{Event, Message, MessageOptions, Options, RoomError};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{Lane, MemberId};
use parlor_sim::{Link, PeerId, Rng, SEEDS, Sim, for_seeds};
use parlor_sync::replicated;
use parlor_sync::replicator::{Flow, Template, Tolerance};
use parlor_sync::schema::Kind;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Allowed display error of a car, and the quantization step of its position.
const OFF_BY: f32 = 0.1;
const STEP: f32 = 1.0 / 64.0;

#[derive(Clone, Debug, PartialEq)]
struct Car {
    place: [f32; 2],
    gear: u8,
}
replicated!(Car as "car" => {
    place: Kind::vector2(-512.0, 512.0, STEP.into()),
    gear: Kind::int(0, 6),
});

fn options(options: Options) -> Options {
    let template = Template::of::<Car>().tolerance("place", Tolerance::off_by(OFF_BY.into()));
    Options { template: Some(template.build().expect("it is in order")), ..options }
}

/// A room of four; the host is the first.
fn room(sim: &mut Sim, mut link: impl FnMut() -> Link) -> [PeerId; 4] {
    let host = sim.host(options(Options::host("race")), link());
    let code = sim.code(host);
    let mut join = || {
        let guest = sim.enter(options(Options::join("race", code)), link());
        sim.run_until(10_000, "a seat", |sim| sim.room(guest).is_connected());
        guest
    };
    [host, join(), join(), join()]
}

fn id(index: usize) -> MemberId {
    MemberId(u32::try_from(index).expect("it is small"))
}

/// Metres per second of the fastest of the four.
const SPEED_MAX: f32 = 6.0;

/// The car after `at` seconds of room time: each has its own route, and turns around now and then.
fn on_its_way(index: usize, at: f64) -> Car {
    let speed = f64::from(SPEED_MAX) - 3.0 + index as f64;
    let leg = (at / 1.5).floor();
    let (along, is_back) = (at / 1.5 - leg, leg % 2.0 == 1.0);
    let x = speed * if is_back { 1.0 - along } else { along };
    #[allow(clippy::cast_possible_truncation)]
    Car { place: [x as f32, index as f32], gear: if is_back { 1 } else { 2 } }
}

/// All drive until `stop` is set; then they stay where they are.
fn drive(sim: &mut Sim, peers: &[PeerId]) -> Rc<RefCell<bool>> {
    let stop = Rc::new(RefCell::new(false));
    for (index, peer) in peers.iter().enumerate() {
        let (stop, mut last) = (Rc::clone(&stop), None);
        sim.play(*peer, move |room, now| {
            if !*stop.borrow() || last.is_none() {
                last = Some(on_its_way(index, room.server_time(now).expect("it is open").as_secs_f64()));
            }
            room.set_own(last.as_ref().expect("it was just set")).expect("it has a template");
        });
    }
    stop
}

fn apart(a: &Car, b: &Car) -> f32 {
    (a.place[0] - b.place[0]).hypot(a.place[1] - b.place[1])
}

#[test]
fn t7_four_players_see_each_other_where_they_are_whatever_is_lost() {
    for_seeds(SEEDS / 5, |seed| {
        let (mut sim, mut links) = (Sim::new(seed), Rng::new(seed ^ 4));
        let peers = room(&mut sim, || Link::any(&mut links).jitter_ms(20));
        let stop = drive(&mut sim, &peers);
        sim.run_for(4_000);
        // While they move, the displayed state lags by no more than a turn takes to arrive.
        let mut far = 0.0f32;
        for _ in 0..100 {
            sim.run_for(20);
            for (viewer, peer) in peers.iter().enumerate() {
                sim.act(*peer, |room, now| {
                    let at = room.server_time(now).unwrap();
                    for other in (0..4).filter(|other| *other != viewer) {
                        let shown: Car = room.remote_state(id(other), None, now).expect("it came");
                        far = far.max(apart(&shown, &on_its_way(other, at.as_secs_f64())));
                    }
                });
            }
        }
        // A turn at top speed counts twice. Loss on a WebSocket delays everything behind it, on either link:
        // 0.7 s in all.
        assert!(far < 2.0 * SPEED_MAX * 0.7, "one is shown {far} off");
        *stop.borrow_mut() = true;
        sim.run_for(4_000);
        for viewer in 0..4 {
            for other in 0..4 {
                let own: Car =
                    sim.act(peers[other], |room, now| room.remote_state(id(other), None, now).unwrap());
                let shown: Car =
                    sim.act(peers[viewer], |room, now| room.remote_state(id(other), None, now).unwrap());
                assert!(apart(&own, &shown) <= OFF_BY + STEP, "{viewer} shows {other} at {shown:?}: {own:?}");
                assert_eq!(own.gear, shown.gear);
            }
        }
    });
}

#[test]
fn what_moves_steadily_is_sent_rarely_and_what_stands_not_at_all() {
    let mut sim = Sim::new(1);
    let peers = room(&mut sim, Link::quic);
    let steady = Rc::new(RefCell::new(0.0f32));
    let place = Rc::clone(&steady);
    sim.play(peers[1], move |room, _| {
        *place.borrow_mut() += 0.2;
        room.set_own(&Car { place: [*place.borrow(), 0.0], gear: 3 }).unwrap();
    });
    sim.run_for(1_000);
    let before = sim.traffic(peers[1]).up;
    sim.run_for(10_000);
    let sent = sim.traffic(peers[1]).up - before;
    assert!(sent < 100, "{sent} packets for 300 steps");
    let shown: Car = sim.act(peers[2], |room, now| room.remote_state(id(1), None, now).unwrap());
    assert!((shown.place[0] - *steady.borrow()).abs() < 1.0, "{shown:?} of {steady:?}");
    sim.play(peers[1], |_, _| ());
    sim.run_for(3_000);
    let before = sim.traffic(peers[1]).up;
    sim.run_for(10_000);
    assert!(sim.traffic(peers[1]).up - before <= 20, "only signs of life");
}

#[test]
fn a_state_that_is_put_elsewhere_is_not_seen_on_the_way() {
    let mut sim = Sim::new(2);
    let peers = room(&mut sim, || Link::quic().latency_ms(40));
    let put = |x: f32| Car { place: [x, 0.0], gear: 0 };
    sim.play(peers[1], move |room, _| room.set_own(&put(-100.0)).unwrap());
    sim.run_for(2_000);
    let mut is_cut = false;
    sim.play(peers[1], move |room, _| {
        if !std::mem::replace(&mut is_cut, true) {
            room.teleport_own().unwrap();
        }
        room.set_own(&put(100.0)).unwrap();
    });
    for _ in 0..100 {
        sim.run_for(10);
        let shown: Car = sim.act(peers[2], |room, now| room.remote_state(id(1), None, now).unwrap());
        assert!([-100.0, 100.0].iter().any(|x| (shown.place[0] - x).abs() < 1.0), "{shown:?}");
    }
    let shown: Car = sim.act(peers[2], |room, now| room.remote_state(id(1), None, now).unwrap());
    assert!((shown.place[0] - 100.0).abs() < 0.2);
    // The history is kept for a moment.
    let latency = sim.room(peers[2]).remote_latency(id(1)).expect("states came");
    assert!(
        latency.mean >= Duration::from_millis(40) && latency.mean < Duration::from_millis(200),
        "{latency:?}"
    );
}

#[test]
fn a_player_without_a_template_sends_none_and_reads_those_of_others() {
    let mut sim = Sim::new(3);
    let host = sim.host(options(Options::host("race")), Link::quic());
    let guest = sim.enter(Options::join("race", sim.code(host)), Link::quic());
    sim.run_until(10_000, "a seat", |sim| sim.room(guest).is_connected());
    sim.play(host, |room, _| room.set_own(&Car { place: [7.0, 8.0], gear: 1 }).unwrap());
    sim.act(guest, |room, _| {
        let error = room.set_own(&Car { place: [0.0, 0.0], gear: 0 }).unwrap_err();
        assert!(error.to_string().contains("template"), "{error}");
    });
    sim.act(host, |room, _| {
        let error = room.set_own(&Car { place: [f32::NAN, 0.0], gear: 0 }).unwrap_err();
        assert!(matches!(error, RoomError::World(_)), "{error:?}");
    });
    sim.run_for(1_000);
    let shown = sim.act(guest, |room, now| room.remote_state::<Car>(id(0), None, now));
    assert_eq!(shown, Some(Car { place: [7.0, 8.0], gear: 1 }));
    assert_eq!(sim.act(host, |room, now| room.remote_state::<Car>(id(1), None, now)), None);
    // A player that left is no longer displayed.
    let code = sim.code(host);
    let third = sim.enter(options(Options::join("race", code)), Link::quic());
    sim.play(third, |room, _| room.set_own(&Car { place: [1.0, 1.0], gear: 1 }).unwrap());
    sim.run_for(1_000);
    assert!(sim.act(guest, |room, now| room.remote_state::<Car>(id(2), None, now)).is_some());
    sim.act(third, |room, now| room.leave(now));
    sim.run_for(1_000);
    assert!(sim.act(guest, |room, now| room.remote_state::<Car>(id(2), None, now)).is_none());
}

fn heard(sim: &mut Sim, peer: PeerId) -> Vec<(String, i64)> {
    let events = sim.take_events(peer).into_iter();
    let read = |message: Message| (message.kind.clone(), message.read().expect("it is a number"));
    events.filter_map(message).map(read).collect()
}

#[test]
fn t8_t10_events_reach_all_others_or_the_primary_which_hands_over_when_it_lags() {
    let mut sim = Sim::new(4);
    let peers = room(&mut sim, || Link::quic().jitter_ms(10).loss(30));
    sim.run_for(1_000);
    let primary = |sim: &Sim, peer| sim.room(peer).primary();
    assert_eq!(peers.map(|peer| primary(&sim, peer)), [Some(id(0)); 4]);
    sim.act(peers[2], |room, now| {
        (0..20).for_each(|number| {
            room.send(Lane::ReliableOrdered, Recipient::Others, "horn", &number, false, now).unwrap()
        });
        room.send(Lane::ReliableUnordered, Recipient::Primary, "lap", &7, false, now).unwrap();
    });
    sim.run_for(2_000);
    let horns: Vec<(String, i64)> = (0..20).map(|number| ("horn".to_owned(), number)).collect();
    let mut first = heard(&mut sim, peers[0]);
    let lap = first.iter().position(|(kind, _)| kind == "lap").expect("the primary is told");
    assert_eq!(first.remove(lap), ("lap".to_owned(), 7));
    assert_eq!(
        [first, heard(&mut sim, peers[1]), heard(&mut sim, peers[3])],
        [horns.clone(), horns.clone(), horns]
    );
    assert_eq!(heard(&mut sim, peers[2]), []);

    sim.relink(peers[0], Link::quic().latency_ms(900));
    sim.run_until(30_000, "another primary", |sim| {
        peers.iter().all(|peer| primary(sim, *peer) == Some(id(1)))
    });
    let told = |sim: &Sim, peer| sim.events(peer).contains(&Event::Primary { member: Some(id(1)) });
    assert!(peers.iter().all(|peer| told(&sim, *peer)));
    sim.act(peers[3], |room, now| {
        room.send(Lane::ReliableOrdered, Recipient::Primary, "lap", &8, false, now).unwrap()
    });
    sim.run_for(2_000);
    assert_eq!(heard(&mut sim, peers[1]), [("lap".to_owned(), 8)]);
}

/// However late a message comes, and out of order, its receivers read when it happened.
#[test]
fn t8_an_event_carries_the_time_at_which_it_happened() {
    for_seeds(SEEDS / 20, |seed| {
        let mut sim = Sim::new(seed);
        let peers = room(&mut sim, || Link::quic().latency_ms(60).jitter_ms(20).loss(50));
        sim.run_for(3_000);
        let mut sent = Vec::new();
        for number in 0..20i64 {
            // Every other one tells of something that happened a while ago, and every fifth has no time.
            let ago = Duration::from_millis(if number % 2 == 0 { 0 } else { 250 });
            let event_time = sim.act(peers[1], |room, now| {
                let happened = room.server_time(now).expect("the room is open") - ago;
                let event_time = (number % 5 != 0).then_some(happened);
                let options = MessageOptions { lane: Lane::ReliableUnordered, stamp: false, event_time };
                room.send_with(&options, Recipient::Others, "horn", &number, now).unwrap();
                event_time
            });
            sent.push(
                event_time
                    .map(|time| Duration::from_millis(u64::try_from(time.as_millis()).expect("it is small"))),
            );
            sim.run_for(70);
        }
        sim.run_for(2_000);
        for peer in [peers[0], peers[2], peers[3]] {
            let mut events: Vec<Message> = sim.take_events(peer).into_iter().filter_map(message).collect();
            events.sort_by_key(|message| message.read::<i64>().expect("it is a number"));
            let times: Vec<Option<Duration>> = events.iter().map(|message| message.event_time).collect();
            assert_eq!(times, sent);
        }
        // The clocks agree: to the receiver the last of them is as long ago as it is to the sender.
        let there = sim.act(peers[1], |room, now| room.server_time(now).expect("the room is open"));
        let here = sim.act(peers[3], |room, now| room.server_time(now).expect("the room is open"));
        assert!(here.abs_diff(there) < Duration::from_millis(10), "{here:?} and {there:?}");
    });
}

/// All drive, and each reads how the states travel between it and the others.
fn drive_and_measure(sim: &mut Sim, peers: [PeerId; 4], ms: u64) {
    for (index, peer) in peers.into_iter().enumerate() {
        sim.play(peer, move |room, now| {
            let time = room.server_time(now).expect("the room is open").as_secs_f64();
            room.set_own(&on_its_way(index, time * 4.0)).expect("it fits");
            (0..4).for_each(|other| {
                let _ = room.remote_flows(id(other), now);
            });
        });
    }
    sim.run_for(ms);
}

#[test]
fn t9_latency_both_ways_loss_and_bandwidth_are_known_of_each_player() {
    for_seeds(SEEDS / 20, |seed| {
        let mut sim = Sim::new(seed);
        let mut links = [(5, 0), (60, 0), (5, 150), (90, 50)].into_iter();
        let peers = room(&mut sim, || {
            let (latency_ms, loss) = links.next().expect("four join");
            Link::quic().latency_ms(latency_ms).loss(loss)
        });
        drive_and_measure(&mut sim, peers, 20_000);
        let mut flows =
            |from: usize, to: usize| sim.act(peers[from], |room, now| room.remote_flows(id(to), now));
        assert_eq!((flows(0, 0).down, flows(0, 9).down), (None, None), "only others have a way");
        for (a, b) in [(0, 1), (1, 2), (1, 3), (3, 0)] {
            let (here, there) = (flows(a, b), flows(b, a));
            let (down, up) = (here.down.expect("states came"), here.up.expect("it answered"));
            // The link of each to the hub, and the waits for steps and packets.
            let links = [5, 60, 5, 90];
            let least = Duration::from_millis(links[a] + links[b]);
            for flow in [down, up] {
                let mean = flow.latency.mean;
                let is_near = mean >= least && mean < least + Duration::from_millis(120);
                assert!(is_near, "{a} and {b}: {mean:?} over {least:?}");
                assert!((30.0..4_000.0).contains(&flow.bytes_per_second), "{flow:?}");
            }
            // What is told is at most some seconds old.
            let measured = there.down.expect("states came there");
            let apart = up.latency.mean.abs_diff(measured.latency.mean);
            assert!(apart < Duration::from_millis(40), "{up:?} is told, {measured:?} measured");
        }
        let loss = |flow: Option<Flow>| flow.expect("it is measured").loss;
        // Of what goes over the hub's link to the second and to the third.
        assert!(loss(flows(1, 0).down) < 0.01 && loss(flows(0, 1).up) < 0.01);
        let (measured, told) = (loss(flows(2, 0).down), loss(flows(0, 2).up));
        assert!((0.05..0.3).contains(&measured) && (0.05..0.3).contains(&told), "{measured} {told}");
    });
}

#[test]
fn t9_nobody_is_asked_while_nobody_reads_it() {
    let mut sim = Sim::new(3);
    let peers = room(&mut sim, Link::quic);
    drive_and_measure(&mut sim, peers, 4_000);
    peers.iter().for_each(|peer| sim.play(*peer, |_, _| {}));
    sim.run_for(4_000);
    let before = peers.map(|peer| sim.room(peer).diagnostics().session.messages_received);
    sim.run_for(20_000);
    let after = peers.map(|peer| sim.room(peer).diagnostics().session.messages_received);
    // Pings of the room are no messages; the presence of players is, when a round trip changed.
    before.iter().zip(&after).for_each(|(before, after)| assert!(after - before < 10, "{before} {after}"));
    let game = sim.act(peers[1], |room, now| {
        room.send(Lane::ReliableOrdered, Recipient::Others, "parlor.flow", &1, false, now)
    });
    assert!(game.unwrap_err().to_string().contains("rename parlor.flow"));
}

#[derive(Clone, Debug, PartialEq)]
struct Ship {
    place: [f32; 2],
    alarm: u64,
}
replicated!(Ship as "ship" => {
    place: Kind::vector2(-512.0, 512.0, 0.25),
    alarm: Kind::int(0, 1_000),
});

/// A room whose ships are 10 m and 150 m from the first one. It never stays in its course, and its alarm changes each
/// second; `alarm` is the priority of that, and the radius is 100 m.
fn ships(sim: &mut Sim, alarm: u16) -> [PeerId; 3] {
    let template = Template::of::<Ship>()
        .radius("place", 100.0)
        .tolerance("alarm", Tolerance::default().priority(alarm))
        .build()
        .expect("it is in order");
    let options = |options: Options| Options { template: Some(template.clone()), ..options };
    let host = sim.host(options(Options::host("seas")), Link::quic().latency_ms(5));
    let code = sim.code(host);
    let mut join = || {
        let guest = sim.enter(options(Options::join("seas", code)), Link::quic().latency_ms(5));
        sim.run_until(10_000, "a seat", |sim| sim.room(guest).is_connected());
        guest
    };
    let peers = [host, join(), join()];
    for (peer, x) in peers.into_iter().zip([0.0, 10.0, 150.0]) {
        let mut turns = 0u32;
        sim.play(peer, move |room, now| {
            turns = turns.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let y = if x == 0.0 { f32::from((turns >> 24) as u8) / 32.0 } else { 0.0 };
            let alarm = room.server_time(now).expect("the room is open").as_secs();
            room.set_own(&Ship { place: [x, y], alarm }).expect("it fits");
        });
    }
    peers
}

#[test]
fn t7_the_update_interval_grows_with_distance() {
    let mut sim = Sim::new(5);
    let peers = ships(&mut sim, 0);
    sim.run_for(20_000);
    let [near, far] = [peers[1], peers[2]].map(|peer| {
        let flows = sim.act(peer, |room, now| room.remote_flows(id(0), now));
        flows.down.expect("states came").bytes_per_second
    });
    // 30 a second, and four.
    assert!((4.0..12.0).contains(&(near / far)), "{near} and {far} bytes a second");
}

#[test]
fn t6_an_urgent_field_reaches_distant_players_at_once() {
    // How late the alarms are seen in the distance, in ms.
    let latest = |priority: u16| {
        let mut sim = Sim::new(6);
        let peers = ships(&mut sim, priority);
        sim.run_for(5_000);
        let mut latest = 0;
        for _ in 0..2_000 {
            sim.run_for(5);
            let seen = sim.act(peers[2], |room, now| room.remote_state::<Ship>(id(0), None, now));
            let now = sim.act(peers[0], |room, now| room.server_time(now).expect("the room is open"));
            if seen.expect("states came").alarm != now.as_secs() {
                latest = latest.max(now.subsec_millis());
            }
        }
        latest
    };
    let (urgent, usual) = (latest(4_096), latest(0));
    assert!(urgent < 120 && usual > 180, "{urgent} ms if it is urgent, {usual} ms if not");
}

fn message(event: Event) -> Option<Message> {
    match event {
        Event::Message(message) => Some(message),
        _ => None,
    }
}
