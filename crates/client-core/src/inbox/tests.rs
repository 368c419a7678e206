use super::*;
use crate::{Event, StateSource, StateUpdate};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::Sender;
use parlor_proto::{ChannelId, MemberId, Tick};

fn update(sequence: u64, changed: &[&str]) -> StateUpdate {
    StateUpdate {
        sequence,
        server_tick: Tick(0),
        server_time_ms: 0,
        tick_interval_ms: 33.3,
        input_ack_tick: None,
        source: StateSource::Delta,
        jitter_ms: 0.0,
        buffer_delay_ms: 0.0,
        history_depth: 0,
        buffered_server_time_ms: 0.0,
        changed: changed.iter().map(|key| (*key).to_owned()).collect(),
    }
}

fn raw(number: u8) -> Event {
    let from = Sender::Member(MemberId(1));
    Event::Raw { from, channel: ChannelId(16), order: None, payload: vec![number].into() }
}

fn drain(inbox: &mut Inbox) -> Vec<Event> {
    std::iter::from_fn(|| inbox.next_event()).collect()
}

#[test]
fn state_events_of_a_game_that_does_not_poll_become_one() {
    let mut inbox = Inbox::default();
    for sequence in 1..=10_000 {
        inbox.tell_state(update(sequence, &[if sequence % 2 == 0 { "even" } else { "odd" }]), |_| true);
    }
    let events = drain(&mut inbox);
    assert_eq!(events.len(), STATE_EVENTS_MAX);
    let Some(Event::State(first)) = events.first() else { panic!("the first is of the state") };
    assert_eq!(first.changed, ["even", "odd"]);
    let Some(Event::State(last)) = events.last() else { panic!("the last is of the state") };
    assert_eq!(last.sequence, 10_000);
    assert_eq!((inbox.state_events, inbox.state_event_bytes), (0, 0));
}

#[test]
fn keys_that_come_and_go_do_not_pile_up() {
    let mut inbox = Inbox::default();
    for sequence in 0..20_000 {
        let key = format!("a bullet with a rather long name/{sequence}");
        inbox.tell_state(update(sequence, &[&key]), |key| key == "tank");
        assert!(inbox.state_event_bytes <= STATE_EVENT_BYTES_MAX);
    }
    let Some(Event::State(first)) = inbox.next_event() else { panic!("there is one") };
    assert!(first.changed.len() <= 2, "{} keys", first.changed.len());
}

#[test]
fn large_state_events_are_joined_before_there_are_many() {
    let mut inbox = Inbox::default();
    let keys: Vec<String> = (0..4_000).map(|key| format!("key/{key:060}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for sequence in 0..20 {
        inbox.tell_state(update(sequence, &keys), |_| true);
    }
    assert_eq!(drain(&mut inbox).len(), 1);
}

#[test]
fn other_events_keep_their_place_among_joined_ones() {
    let mut inbox = Inbox::default();
    inbox.tell_state(update(1, &["a"]), |_| true);
    inbox.tell_message(raw(1), 1, false).unwrap();
    for sequence in 2..100 {
        inbox.tell_state(update(sequence, &["b"]), |_| true);
    }
    let events = drain(&mut inbox);
    assert_eq!(events.first(), Some(&raw(1)));
    assert_eq!(events.len(), 1 + STATE_EVENTS_MAX);
}

#[test]
fn unreliable_messages_make_way_and_are_counted() {
    let mut inbox = Inbox::default();
    let bytes = 64 * 1024;
    let fit = EVENT_BYTES_MAX / (bytes + 64);
    for number in 0..fit + 10 {
        let event = raw(u8::try_from(number % 256).unwrap());
        inbox.tell_message(event, bytes, number % 2 == 0).unwrap();
    }
    assert_eq!(inbox.dropped, 10);
    assert_eq!(drain(&mut inbox).len(), fit);
    assert_eq!(inbox.event_bytes, 0);
}

#[test]
fn what_must_not_be_missed_ends_the_session_instead() {
    let mut inbox = Inbox::default();
    let left = || Event::PlayerLeft { id: MemberId(1), name: "ada".into(), reason: LeaveReason::Left };
    let told = (0..1_000_000).find_map(|_| inbox.tell_bounded(left(), 0).err());
    assert_eq!(told, Some(CloseReason::NotPolled));
    assert!(drain(&mut inbox).len() <= EVENT_BYTES_MAX / 64);
}

#[test]
fn what_arrives_is_read_before_it_is_too_much() {
    let mut inbox = Inbox::default();
    let message = |len| {
        let channel = ChannelId(3);
        let (tick, epoch) = (None, Default::default());
        Came::Session(session::Event::Message(session::Message {
            channel,
            key: 0,
            number: None,
            payload: vec![0; len].into(),
            tick,
            epoch,
        }))
    };
    assert!(!inbox.arrive(Instant::ZERO, message(1_000)));
    assert!(inbox.arrive(Instant::ZERO, message(ARRIVED_BYTES_MAX)));
    while inbox.next_arrived().is_some() {}
    assert!(!inbox.arrive(Instant::ZERO, message(1_000)));
}
