//! Connections that are lost for seconds, for half a minute, or for good. A member that resumes has its old
//! id and misses nothing.

use parlor_client_core::{ClosedReason, Event, Options, Wish};
use parlor_hub::{Config, HubEvent};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::wire::handshake::{Intent, Refusal, ResumeRefusal};
use parlor_proto::{CloseReason, Lane, LinkKind, MemberId};
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds, hello};
use parlor_sync::keyed::Audience;
use parlor_sync::value::Value;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(30);

/// A host and guests at a hub that keeps seats.
struct Room {
    sim: Sim,
    host: PeerId,
    guest: PeerId,
    /// A second guest with an undisturbed connection.
    witness: PeerId,
}

fn room(seed: u64, link: Link) -> Room {
    room_on(seed, link, false)
}

/// A room on a hub inside or outside the process of its host.
fn room_on(seed: u64, link: Link, is_of_host: bool) -> Room {
    room_that_remembers(seed, link, is_of_host, Duration::ZERO)
}

/// A room that knows its lost members for so long after their grace.
fn room_that_remembers(seed: u64, link: Link, is_of_host: bool, remember: Duration) -> Room {
    let mut drawn = [3; 32];
    drawn[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { record: true, grace: GRACE, remember, is_of_host, ..Config::new(drawn) };
    let mut sim = Sim::with_hub(seed, config);
    let host = sim.host(Options::host(APP), Link::quic());
    let code = sim.code(host);
    let guest = sim.join(code, link);
    let witness = sim.join(code, Link::quic());
    let mut count = 0u64;
    sim.play(host, move |room, _| {
        count += 1;
        room.set("count", &count, Audience::All).expect("the host writes");
    });
    sim.run_for(500);
    for peer in [host, guest, witness] {
        sim.take_events(peer);
    }
    Room { sim, host, guest, witness }
}

impl Room {
    /// Starts or ends an outage: the peer's packets are lost and its dials fail.
    fn outage(&mut self, peer: PeerId, is_out: bool) {
        self.sim.unplug(peer, is_out);
        self.sim.silence(peer, is_out);
    }

    fn id(&self, peer: PeerId) -> MemberId {
        self.sim.room(peer).local_id().expect("it is in the room")
    }

    /// Sends a message with this number both ways, on both reliable lanes.
    fn say(&mut self, number: u64) {
        for (from, to) in [(self.host, self.id(self.guest)), (self.guest, MemberId(0))] {
            for lane in [Lane::ReliableOrdered, Lane::ReliableUnordered] {
                let kind = if lane == Lane::ReliableOrdered { "ordered" } else { "unordered" };
                self.sim
                    .act(from, |room, now| room.send(lane, Recipient::Member(to), kind, &number, false, now))
                    .expect("it waits, if need be");
            }
        }
    }

    /// Numbers of the received messages of this kind.
    fn heard(events: &[Event], kind: &str) -> Vec<u64> {
        let messages = events.iter().filter_map(|event| match event {
            Event::Message(message) if message.kind == kind => Some(message),
            _ => None,
        });
        messages.map(|message| message.read().expect("it is a number")).collect()
    }

    /// Checks that both received all numbers up to `count` once, and the ordered ones in order.
    fn expect_all_said(&mut self, count: u64, events: &[(PeerId, Vec<Event>)]) {
        for (peer, events) in events {
            let mut unordered = Self::heard(events, "unordered");
            unordered.sort_unstable();
            let all: Vec<u64> = (0..count).collect();
            assert_eq!(Self::heard(events, "ordered"), all, "{peer}\n{}", self.sim.excerpt(60));
            assert_eq!(unordered, all, "{peer}");
        }
    }

    fn count(&self, peer: PeerId) -> u64 {
        self.sim.room(peer).get("count").expect("it is a number").unwrap_or(0)
    }

    fn expect_state_flows(&mut self) {
        let before = self.count(self.guest);
        self.sim.run_for(1_000);
        let (there, here) = (self.count(self.host), self.count(self.guest));
        assert!(here > before && there - here < 30, "{before} became {here}, and the host has {there}");
    }
}

/// The events about the game's own connection.
fn of_connection(events: &[Event]) -> Vec<&Event> {
    let is_of_it = |event: &&Event| {
        matches!(
            event,
            Event::ConnectionLost { .. }
                | Event::Reconnected { .. }
                | Event::PlayerLost { .. }
                | Event::PlayerBack { .. }
                | Event::PlayerLeft { .. }
                | Event::Closed(_)
                | Event::Open { .. }
        )
    };
    events.iter().filter(is_of_it).collect()
}

#[test]
fn x2_a_connection_that_breaks_is_made_again_and_nothing_is_missed() {
    for_seeds(20, |seed| {
        let link = if seed % 2 == 0 { Link::quic().loss(20).jitter_ms(30) } else { Link::websocket() };
        let mut room = room(seed, link);
        let id = room.id(room.guest);
        for number in 0..10 {
            room.say(number);
            room.sim.run_for(37);
        }
        room.sim.unplug(room.guest, true);
        room.sim.cut(room.guest);
        for number in 10..20 {
            room.say(number);
            room.sim.run_for(300);
        }
        room.sim.unplug(room.guest, false);
        room.sim.run_for(6_000);
        let [host, guest, witness] =
            [room.host, room.guest, room.witness].map(|peer| room.sim.take_events(peer));
        assert_eq!(room.id(room.guest), id);
        let told = of_connection(&guest);
        let is_meant =
            matches!(told[..], [Event::ConnectionLost { .. }, Event::Reconnected { state_resynced: false }]);
        assert!(is_meant, "{told:?}");
        assert!(guest.iter().any(|event| *event == Event::Reconnecting { attempt: 1 }));
        for others in [&host, &witness] {
            let lost = Event::PlayerLost { id, reason: LeaveReason::ConnectionLost };
            assert_eq!(of_connection(others), [&lost, &Event::PlayerBack { id }]);
        }
        room.expect_all_said(20, &[(room.host, host), (room.guest, guest)]);
        room.expect_state_flows();
        assert_eq!(room.sim.hub().stats().resumed, 1);
    });
}

#[test]
fn silence_of_twenty_seconds_is_survived() {
    for_seeds(6, |seed| {
        let mut room = room(seed, if seed % 2 == 0 { Link::quic() } else { Link::websocket() });
        let id = room.id(room.guest);
        room.outage(room.guest, true);
        for number in 0..10 {
            room.say(number);
            room.sim.run_for(2_000);
        }
        let info = room.sim.room(room.guest).info();
        assert_eq!(info.transport_status.map(|status| status.as_str()), Some("resume_pending"));
        assert_eq!(info.last_reason_code.map(|code| code.as_str()), Some("control_heartbeat_timeout"));
        room.outage(room.guest, false);
        // An attempt that began in the outage may have to fail first; the wait after it is up to 6.25 s.
        room.sim.run_for(15_000);
        let [host, guest] = [room.host, room.guest].map(|peer| room.sim.take_events(peer));
        assert_eq!(room.id(room.guest), id);
        let info = room.sim.room(room.guest).info();
        assert_eq!(info.transport_status.map(|status| status.as_str()), Some("resumed"));
        assert!(guest.contains(&Event::Reconnected { state_resynced: false }), "{guest:?}");
        room.expect_all_said(10, &[(room.host, host), (room.guest, guest)]);
        room.expect_state_flows();
    });
}

#[test]
fn an_outage_that_nobody_notices_costs_no_connection() {
    let mut room = room(1, Link::quic());
    room.outage(room.guest, true);
    room.say(0);
    room.sim.run_for(3_000);
    room.outage(room.guest, false);
    room.sim.run_for(2_000);
    let guest = room.sim.take_events(room.guest);
    assert!(of_connection(&guest).is_empty());
    assert_eq!(Room::heard(&guest, "ordered"), [0]);
    assert_eq!(room.sim.hub().stats().resumed, 0);
}

#[test]
fn who_comes_when_the_hub_has_forgotten_it_is_a_newcomer_and_is_told_everything_anew() {
    let mut room = room(2, Link::quic());
    let id = room.id(room.guest);
    room.sim.unplug(room.guest, true);
    room.sim.cut(room.guest);
    // Its game acts as usual in every step, whatever the state of its connection.
    let mut step = 0u32;
    room.sim.play(room.guest, move |room, now| {
        step += 1;
        room.send_input(&step).expect("the room is not over");
        if step.is_multiple_of(20) {
            let said = room.send(Lane::ReliableOrdered, Recipient::Others, "step", &step, false, now);
            said.expect("few messages wait, and later they are dropped");
        }
    });
    // It gives up later than the hub does.
    room.sim.run_for(32_000);
    let witness = room.sim.take_events(room.witness);
    let left = |event: &Event| matches!(event, Event::PlayerLeft { id: who, reason: LeaveReason::ConnectionLost, .. } if *who == id);
    assert!(witness.iter().any(left), "{witness:?}");
    room.sim.unplug(room.guest, false);
    room.sim.run_for(10_000);
    let guest = room.sim.take_events(room.guest);
    let newer = room.id(room.guest);
    assert_ne!(newer, id);
    let at = guest.iter().position(|event| *event == Event::Reconnected { state_resynced: true });
    let (before, after) = guest.split_at(at.unwrap_or_else(|| panic!("{guest:?}")));
    let gone: Vec<MemberId> = before
        .iter()
        .filter_map(|event| match event {
            Event::PlayerLeft { id, .. } => Some(*id),
            _ => None,
        })
        .collect();
    assert_eq!(gone, [MemberId(0), id, room.id(room.witness)]);
    let here: Vec<MemberId> = after
        .iter()
        .filter_map(|event| match event {
            Event::PlayerJoined(player) => Some(player.id),
            _ => None,
        })
        .collect();
    assert_eq!(here, [newer, MemberId(0), room.id(room.witness)]);
    room.expect_state_flows();
}

/// The reason with which a member is told that another left.
fn left_for(events: &[Event], who: MemberId) -> Option<LeaveReason> {
    events.iter().find_map(|event| match event {
        Event::PlayerLeft { id, reason, .. } if *id == who => Some(reason.clone()),
        _ => None,
    })
}

#[test]
fn m9_who_comes_too_late_is_the_same_player_with_its_data_and_what_it_owns() {
    for_seeds(6, |seed| {
        let link = if seed % 2 == 0 { Link::quic() } else { Link::websocket() };
        let mut room = room_that_remembers(seed, link, false, Duration::from_secs(600));
        let id = room.id(room.guest);
        room.sim
            .act(room.guest, |core, _| core.set_player_data(id, "team", Some(&Value::from("red"))))
            .expect("it may");
        let tank = room.sim.act(room.host, |core, now| core.world(now).and_then(|mut it| it.spawn(Some(id))));
        let tank = tank.expect("the host may");
        room.sim.run_for(500);
        room.outage(room.guest, true);
        room.sim.run_for(45_000);
        let witness = room.sim.take_events(room.witness);
        let lost = Event::PlayerLost { id, reason: LeaveReason::TimedOut };
        assert!(witness.contains(&lost), "{witness:?}");
        assert_eq!(left_for(&witness, id), Some(LeaveReason::TimedOut));
        assert_eq!(room.sim.room(room.host).player_count(), 2);
        room.outage(room.guest, false);
        room.sim.run_for(10_000);
        let guest = room.sim.take_events(room.guest);
        assert!(guest.contains(&Event::Reconnected { state_resynced: true }), "{guest:?}");
        assert_eq!(room.id(room.guest), id);
        let came = |events: &[Event]| {
            let joined = events.iter().rev().find_map(|event| match event {
                Event::PlayerJoined(player) if player.id == id => Some(player.clone()),
                _ => None,
            });
            joined.and_then(|player| player.data::<String>("team").expect("it is a text"))
        };
        let [host, witness] = [room.host, room.witness].map(|peer| room.sim.take_events(peer));
        for events in [&guest, &host, &witness] {
            assert_eq!(came(events).as_deref(), Some("red"));
        }
        // What it owned is its own: it may act on it, and the host is asked.
        room.sim.act(room.guest, |core, _| core.act(tank, "fire", &1)).expect("it is its own");
        room.sim.run_for(1_000);
        let asked = room.sim.take_events(room.host);
        let is_asked = |event: &Event| matches!(event, Event::Action { from, entity, .. } if (*from, *entity) == (id, tank));
        assert!(asked.iter().any(is_asked), "{asked:?}");
        room.say(0);
        room.sim.run_for(1_000);
        let said = [room.host, room.guest].map(|peer| (peer, room.sim.take_events(peer)));
        room.expect_all_said(1, &said);
        room.expect_state_flows();
    });
}

#[test]
fn m9_who_does_not_take_a_resync_is_told_why_its_seat_is_gone() {
    for (remember, why) in [(600, ResumeRefusal::GraceOver), (0, ResumeRefusal::Gone)] {
        let mut room = room_that_remembers(2, Link::quic(), false, Duration::from_secs(remember));
        let mut options = Options::join(APP, room.sim.code(room.host));
        options.reconnect_policy.accept_state_resync = false;
        let third = room.sim.enter(options, Link::quic());
        room.sim.run_for(1_000);
        room.sim.unplug(third, true);
        room.sim.cut(third);
        room.sim.run_for(32_000);
        room.sim.unplug(third, false);
        room.sim.run_for(10_000);
        assert_eq!(room.sim.closed(third), Some(ClosedReason::Refused(Refusal::Resume { why })));
    }
}

#[test]
fn a_host_that_is_away_is_waited_for() {
    let mut room = room(3, Link::quic());
    room.sim.unplug(room.host, true);
    room.sim.cut(room.host);
    room.sim.run_for(10_000);
    room.sim.unplug(room.host, false);
    room.sim.run_for(6_000);
    let guest = room.sim.take_events(room.guest);
    let id = MemberId(0);
    let lost = Event::PlayerLost { id, reason: LeaveReason::ConnectionLost };
    assert_eq!(of_connection(&guest), [&lost, &Event::PlayerBack { id }]);
    room.expect_state_flows();
    assert!(room.sim.room(room.host).is_host());
}

#[test]
fn a_host_that_does_not_come_back_ends_its_room() {
    let mut room = room(4, Link::quic());
    room.outage(room.host, true);
    room.sim.run_for(8_000 + 29_000);
    assert!(room.sim.room(room.guest).is_connected());
    room.sim.run_for(3_000);
    let gone = parlor_client_core::ClosedReason::Session(CloseReason::HostGone);
    assert_eq!(room.sim.closed(room.guest), Some(gone));
    // The host gets the reason once it is reachable.
    room.outage(room.host, false);
    room.sim.run_for(40_000);
    assert!(room.sim.closed(room.host).is_some());
    assert_eq!(room.sim.hub().room_count(), 0);
}

#[test]
fn guests_of_a_hub_in_the_hosts_process_know_within_three_seconds_that_the_host_is_gone() {
    for_seeds(20, |seed| {
        let link = if seed % 2 == 0 { Link::quic() } else { Link::websocket() };
        let mut room = room_on(seed, link.loss(50), true);
        // Only keepalives are sent for a while: that does not count as silence.
        room.sim.play(room.host, |_, _| ());
        room.sim.run_for(20_000);
        for peer in [room.guest, room.witness] {
            assert_eq!(room.sim.closed(peer), None, "seed {seed}");
        }
        room.sim.crash(room.host);
        for peer in [room.guest, room.witness] {
            room.outage(peer, true);
        }
        // The operating system closes the streams of a dead process.
        room.sim.cut(room.witness);
        // Its last packet may have arrived a while before, because keepalives are lost, too.
        room.sim.run_for(1_000);
        assert_eq!(room.sim.closed(room.guest), None, "this may yet be an outage");
        room.sim.run_for(2_000);
        for peer in [room.guest, room.witness] {
            let closed = ClosedReason::Session(CloseReason::HostGone);
            assert_eq!(room.sim.closed(peer), Some(closed), "seed {seed}\n{}", room.sim.excerpt(40));
        }
    });
}

#[test]
fn short_outages_of_a_hub_in_the_hosts_process_are_survived_and_its_host_does_not_give_itself_up() {
    let mut room = room_on(3, Link::quic(), true);
    room.outage(room.guest, true);
    room.say(0);
    room.sim.run_for(2_000);
    room.outage(room.guest, false);
    room.sim.run_for(1_000);
    room.sim.cut(room.guest);
    room.sim.run_for(2_000);
    let guest = room.sim.take_events(room.guest);
    assert_eq!(Room::heard(&guest, "ordered"), [0]);
    assert!(guest.contains(&Event::Reconnected { state_resynced: false }), "{guest:?}");
    room.outage(room.host, true);
    room.sim.run_for(20_000);
    room.outage(room.host, false);
    room.sim.run_for(7_000);
    let host = room.sim.take_events(room.host);
    assert!(host.contains(&Event::Reconnected { state_resynced: false }), "{host:?}");
    room.expect_state_flows();
}

#[test]
fn who_reaches_nobody_gives_up_after_a_minute_at_the_latest() {
    let mut room = room(5, Link::quic());
    room.sim.unplug(room.guest, true);
    room.sim.cut(room.guest);
    room.sim.run_for(62_000);
    let guest = room.sim.take_events(room.guest);
    let attempts = guest.iter().filter(|event| matches!(event, Event::Reconnecting { .. })).count();
    assert_eq!(attempts, 8);
    assert!(
        matches!(of_connection(&guest)[..], [Event::ConnectionLost { .. }, Event::Closed(_)]),
        "{guest:?}"
    );
    assert_eq!(room.sim.room(room.guest).link_state().as_str(), "lost");
}

#[test]
fn who_is_kicked_or_leaves_or_wants_no_other_connection_does_not_come_back() {
    let mut room = room(6, Link::quic());
    let (guest, witness) = (room.id(room.guest), room.id(room.witness));
    room.sim.act(room.host, |core, _| core.kick(guest, "rude")).expect("the host may");
    room.sim.act(room.witness, |core, now| core.leave(now));
    room.sim.run_for(5_000);
    assert_eq!(room.sim.hub().stats().resumed, 0);
    assert_eq!(room.sim.room(room.host).player_count(), 1, "{witness} skips the grace");
    for peer in [room.guest, room.witness] {
        assert!(room.sim.closed(peer).is_some());
        assert!(!room.sim.events(peer).iter().any(|event| matches!(event, Event::ConnectionLost { .. })));
    }
    let options = Options { reconnect: false, ..Options::join(APP, room.sim.code(room.host)) };
    let third = room.sim.enter(options, Link::quic());
    room.sim.run_for(500);
    room.sim.cut(third);
    room.sim.run_for(1_000);
    let lost = |reason: Option<parlor_client_core::ClosedReason>| {
        matches!(reason, Some(parlor_client_core::ClosedReason::Session(CloseReason::ConnectionLost { .. })))
    };
    assert!(lost(room.sim.closed(third)));
}

#[test]
fn who_was_kicked_while_away_is_told_so() {
    let mut room = room(7, Link::quic());
    let guest = room.id(room.guest);
    room.sim.unplug(room.guest, true);
    room.sim.cut(room.guest);
    room.sim.run_for(500);
    room.sim.act(room.host, |core, _| core.kick(guest, "rude")).expect("the host may");
    room.sim.unplug(room.guest, false);
    room.sim.run_for(10_000);
    let kicked = CloseReason::Kicked { reason: "rude".into() };
    assert_eq!(room.sim.closed(room.guest), Some(parlor_client_core::ClosedReason::Session(kicked)));
    assert_eq!(room.sim.room(room.host).player_count(), 2);
}

#[test]
fn x2_a_process_that_began_anew_has_its_seat_and_what_it_missed() {
    for link in [LinkKind::Quic, LinkKind::WebSocket] {
        let mut room = room(8, Link::quic().as_kind(link));
        let id = room.id(room.guest);
        let proof = room.sim.room(room.guest).resume_proof().expect("the hub keeps seats");
        // Its process dies, and messages to it wait.
        room.sim.crash(room.guest);
        for number in 0..5u64 {
            let send = |core: &mut parlor_client_core::RoomCore, now| {
                core.send(Lane::ReliableOrdered, Recipient::Member(id), "ordered", &number, false, now)
            };
            room.sim.act(room.host, send).expect("it waits");
            room.sim.run_for(400);
        }
        let mut options = Options::host(APP);
        options.intent = Wish::Resume { session: proof.session, token: proof.token };
        room.sim.restart(room.guest, options);
        room.sim.run_for(2_000);
        let guest = room.sim.take_events(room.guest);
        assert_eq!(room.sim.room(room.guest).local_id(), Some(id), "{}", room.sim.excerpt(40));
        assert_eq!(Room::heard(&guest, "ordered"), [0, 1, 2, 3, 4]);
        assert_eq!(room.sim.room(room.guest).player_count(), 3);
        let witness = room.sim.take_events(room.witness);
        assert!(!witness.iter().any(|event| matches!(event, Event::PlayerLeft { .. })));
        room.expect_state_flows();
        let has_resumed =
            |hub_event: &HubEvent| matches!(hub_event, HubEvent::Resumed { is_restarted: true, .. });
        assert!(room.sim.hub_events().iter().any(has_resumed));
    }
}

#[test]
fn threat_08_a_host_that_began_anew_has_no_world_and_does_not_get_its_room() {
    let mut room = room(9, Link::quic());
    let proof = room.sim.room(room.host).resume_proof().expect("the hub keeps seats");
    let thief = room.sim.intrude(hello(Intent::Resume(proof)), Link::quic());
    room.sim.run_for(500);
    let events = room.sim.session_events(thief);
    let is_gone = |event: &parlor_proto::session::Event| format!("{event:?}").contains("Gone");
    assert!(events.iter().any(is_gone), "{events:?}");
    room.expect_state_flows();
}

#[test]
fn threat_08_a_stolen_token_ends_the_session_when_its_owner_comes() {
    let mut room = room(10, Link::quic());
    let proof = room.sim.room(room.guest).resume_proof().expect("the hub keeps seats");
    room.sim.unplug(room.guest, true);
    room.sim.cut(room.guest);
    // The thief is first, and has proved that it is in.
    let thief = room.sim.intrude(hello(Intent::Resume(proof)), Link::quic());
    room.sim.run_for(1_000);
    room.sim.unplug(room.guest, false);
    room.sim.run_for(8_000);
    let reused = |hub_event: &HubEvent| matches!(hub_event, HubEvent::TokenReused { .. });
    assert!(room.sim.hub_events().iter().any(reused), "{}", room.sim.excerpt(40));
    let closed = parlor_proto::session::Event::Closed(CloseReason::TokenReused);
    assert!(room.sim.session_events(thief).contains(&closed));
    // The owner was refused too, and rejoined with the code like any client.
    let guest = room.sim.take_events(room.guest);
    assert!(guest.contains(&Event::Reconnected { state_resynced: true }), "{guest:?}");
}

#[test]
fn the_logs_of_rooms_whose_members_were_away_run_again() {
    let mut room = room(11, Link::quic());
    room.sim.cut(room.guest);
    room.sim.run_for(3_000);
    let proof = room.sim.room(room.guest).resume_proof().expect("the hub keeps seats");
    let mut options = Options::host(APP);
    options.intent = Wish::Resume { session: proof.session, token: proof.token };
    room.sim.restart(room.guest, options);
    room.sim.run_for(2_000);
    for log in room.sim.logs().into_values() {
        let steps: Result<Vec<_>, _> =
            parlor_hub::room::log::replay(log.into()).expect("it is a log").collect();
        let steps = steps.expect("each entry can be read");
        let has = |wanted: &str| steps.iter().any(|step| format!("{:?}", step.input).starts_with(wanted));
        assert!(has("Away") && has("Back") && has("Restarted"));
    }
}
