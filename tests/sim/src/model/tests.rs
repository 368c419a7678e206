//! The model can object: it accepts a true story, and rejects each story that differs from it in one step.

use super::messages::{KIND, content};
use super::{Channel, Key, Model, SentMessage, Trouble, Verdict};
use crate::link::Link;
use crate::peer::PeerId;
use crate::sim::{APP, Sim};
use parlor_client_core::{ClosedReason, Event, Options};
use parlor_hub::HubEvent;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{CloseReason, Lane, MemberId, Tick};
use parlor_sync::keyed::Audience;
use parlor_sync::value::Value;
use std::num::NonZeroU64;

/// One call of the model.
#[derive(Clone, Debug)]
enum Step {
    Entered(PeerId, Options),
    Happened(HubEvent),
    Told(PeerId, Event),
    Sends(PeerId, SentMessage, Vec<MemberId>),
    Writes(Key),
    Publishes(u64),
    Decoded(PeerId, Vec<(u64, u64)>),
    PutsIn(PeerId, Tick),
    Reads(MemberId, (u32, u64)),
    SetsData(PeerId, &'static str),
    Kicks(MemberId),
    Leaves(PeerId),
}

const HOST: PeerId = PeerId(0);
const ADA: PeerId = PeerId(1);
const GRACE: PeerId = PeerId(2);
const GONE: PeerId = PeerId(3);
/// A client in another room.
const STRANGER: PeerId = PeerId(4);
const REASON: &str = "team killing";

/// A recorded run of a small world.
struct Story {
    sim: Sim,
    steps: Vec<Step>,
    serials: u64,
}

impl Story {
    fn new() -> Story {
        let mut story = Story { sim: Sim::new(1), steps: Vec::new(), serials: 0 };
        story.enter(Options::host(APP));
        let code = story.sim.code(HOST);
        (0..3).for_each(|_| story.enter(Options::join(APP, code)));
        story.enter(Options::host(APP));
        for _ in 0..3 {
            for lane in [Lane::ReliableOrdered, Lane::ReliableUnordered, Lane::UnreliableSequenced] {
                story.send(ADA, lane, Recipient::Others, false);
            }
        }
        story.send(ADA, Lane::ReliableUnordered, Recipient::Member(MemberId(2)), false);
        story.send(GRACE, Lane::ReliableOrdered, Recipient::Everyone, true);
        story.send(ADA, Lane::ReliableOrdered, Recipient::Everyone, true);
        story.host();
        story.steps.push(Step::SetsData(ADA, "color"));
        story
            .sim
            .act(ADA, |room, _| room.set_player_data(MemberId(1), "color", Some(&Value::Int(0))).unwrap());
        story.pass(500);
        story.steps.push(Step::Kicks(MemberId(3)));
        story.sim.act(HOST, |room, _| room.kick(MemberId(3), REASON).unwrap());
        story.pass(500);
        story
    }

    fn enter(&mut self, options: Options) {
        let name = format!("player {}", self.sim.peer_count());
        let options = Options { hash_every: NonZeroU64::new(1), name, ..options };
        let peer = self.sim.enter(options.clone(), Link::quic());
        self.steps.push(Step::Entered(peer, options));
        self.pass(500);
    }

    fn send(&mut self, who: PeerId, lane: Lane, to: Recipient, stamp: bool) {
        let value = Value::Bytes(content(self.serials, 20));
        self.serials += 1;
        let known = self.sim.act(who, |room, now| {
            room.send(lane, to.clone(), KIND, &value, stamp, now).unwrap();
            room.players().iter().map(|player| player.id).collect()
        });
        self.steps.push(Step::Sends(
            who,
            SentMessage { channel: Channel::Typed(lane), to, stamp, bytes: 20 },
            known,
        ));
        self.pass(100);
    }

    /// Lets the host write twice and read two inputs.
    fn host(&mut self) {
        for serial in 0..2u64 {
            let tick = self.sim.act(ADA, |room, _| {
                room.send_input(&(1u32, serial)).unwrap();
                room.tick_number().unwrap()
            });
            self.steps.push(Step::PutsIn(ADA, tick));
            self.pass(100);
            let (value, private) = (Value::Int(7), Audience::members([MemberId(1)]));
            let keys = [(format!("all/{serial}"), Audience::All), (format!("one/{serial}"), private)];
            let read = self.sim.act(HOST, |room, _| {
                keys.iter().for_each(|(key, audience)| room.set(key, &value, audience.clone()).unwrap());
                room.inputs::<(u32, u64)>().unwrap()
            });
            self.steps
                .extend(keys.map(|(key, audience)| Step::Writes(Key::Set(key, value.clone(), audience))));
            self.steps.extend(read.into_iter().map(|(member, input)| Step::Reads(member, input)));
            self.pass(100);
        }
    }

    fn pass(&mut self, ms: u64) {
        self.sim.run_for(ms);
        self.steps.extend(self.sim.take_hub_events().into_iter().map(Step::Happened));
        let peers: Vec<PeerId> = (0..self.sim.peer_count()).map(PeerId).collect();
        if let Some((sequence, _)) = self.sim.room(HOST).state_hash() {
            self.steps.push(Step::Publishes(sequence));
        }
        for peer in peers {
            let events = self.sim.take_events(peer);
            self.steps.extend(events.into_iter().map(|event| Step::Told(peer, event)));
            if !self.sim.room(peer).is_host() {
                self.steps.push(Step::Decoded(peer, self.sim.room(peer).state_checksums()));
            }
        }
    }

    /// The model's judgement of this story.
    fn judge(&self, steps: &[Step]) -> Verdict {
        let mut model = Model::new();
        steps.iter().try_for_each(|step| tell(&mut model, step))?;
        model.replay(self.sim.log_files())?;
        model.settled(|who| self.sim.room(who), |_| true)
    }

    /// Tells the story with the `nth` step that `which` selects replaced. Returns the model's objection.
    fn with(&self, which: impl Fn(&Step) -> bool, nth: usize, change: impl Fn(Step) -> Vec<Step>) -> String {
        let at = self.steps.iter().enumerate().filter(|(_, step)| which(step)).nth(nth);
        let at = at.expect("the story has such a step").0;
        let mut steps = self.steps.clone();
        let changed = change(steps[at].clone());
        steps.splice(at..=at, changed);
        self.judge(&steps).expect_err("the model must object").to_string()
    }
}

fn tell(model: &mut Model, step: &Step) -> Verdict {
    match step.clone() {
        Step::Entered(who, options) => {
            model.entered(who, &options);
            Ok(())
        }
        Step::Happened(hub_event) => model.happened(&hub_event),
        Step::Told(who, event) => model.told(who, &event),
        Step::Sends(who, message, known) => model.sends(who, message, known),
        Step::Writes(key) => model.writes(HOST, key),
        Step::Publishes(sequence) => model.publishes(HOST, sequence),
        Step::Decoded(who, marks) => model.decoded(who, &marks),
        Step::PutsIn(who, tick) => model.puts_in(who, tick),
        Step::Reads(member, input) => model.reads(HOST, member, input),
        Step::SetsData(who, key) => model.sets_data(who, MemberId(1), key),
        Step::Kicks(member) => model.kicks(HOST, member, REASON),
        Step::Leaves(who) => model.leaves(who),
    }
}

fn twice(step: Step) -> Vec<Step> {
    vec![step.clone(), step]
}

fn never(_: Step) -> Vec<Step> {
    Vec::new()
}

/// Selects the arrival of the message with this serial at a client.
fn message(who: PeerId, serial: u64) -> impl Fn(&Step) -> bool {
    move |step| match step {
        Step::Told(told, Event::Message(message)) => {
            *told == who && message.value == Value::Bytes(content(serial, 20))
        }
        _ => false,
    }
}

fn is_told(step: &Step, who: PeerId, of: impl Fn(&Event) -> bool) -> bool {
    matches!(step, Step::Told(told, event) if *told == who && of(event))
}

fn objects(said: &str, what: &str) {
    assert!(said.contains(what), "it objects to something else: {said}");
}

#[test]
fn a_true_story_passes() {
    let story = Story::new();
    assert_eq!(story.judge(&story.steps), Ok(()));
    let mut model = Model::new();
    story.steps.iter().for_each(|step| tell(&mut model, step).unwrap());
    let counts = model.counts();
    assert_eq!((counts.rooms, counts.seats, counts.kicks, counts.inputs, counts.data), (2, 5, 1, 2, 4));
    assert!(counts.messages >= 30 && counts.states >= 4, "{counts:?}");
}

#[test]
fn it_objects_to_a_message_that_comes_twice_on_every_lane() {
    let story = Story::new();
    for serial in 0..3 {
        objects(&story.with(message(HOST, serial), 0, twice), "twice");
    }
}

#[test]
fn it_objects_to_a_reliable_message_that_never_comes() {
    let story = Story::new();
    objects(&story.with(message(HOST, 0), 0, never), "misses message");
    objects(&story.with(message(GRACE, 4), 0, never), "never came");
    // The last message of an ordered lane has no successor that would reveal the gap; the room's log does.
    objects(&story.with(message(GRACE, 11), 0, never), "the log has the messages");
}

#[test]
fn it_objects_to_messages_out_of_order() {
    let story = Story::new();
    let swapped = |first: u64, second: u64| {
        let at = |serial| story.steps.iter().position(message(HOST, serial)).expect("it came");
        let mut steps = story.steps.clone();
        let late = steps.remove(at(first));
        steps.insert(at(second), late);
        story.judge(&steps).unwrap_err().to_string()
    };
    objects(&swapped(0, 3), "misses message");
    objects(&swapped(2, 5), "an older message");
    objects(&swapped(10, 11), "stamped");
}

#[test]
fn it_objects_to_a_message_that_is_anothers_or_of_another_room_or_forged() {
    let story = Story::new();
    let to = |who: PeerId| {
        move |step| match step {
            Step::Told(_, event) => vec![Step::Told(who, event)],
            other => vec![other],
        }
    };
    objects(&story.with(message(GRACE, 9), 0, to(HOST)), "not for it");
    objects(&story.with(message(GRACE, 9), 0, to(STRANGER)), "another room");
    let forged = |change: fn(&mut parlor_client_core::Message)| {
        story.with(message(HOST, 0), 0, move |step| match step {
            Step::Told(who, Event::Message(mut message)) => {
                change(&mut message);
                vec![Step::Told(who, Event::Message(message))]
            }
            other => vec![other],
        })
    };
    objects(&forged(|message| message.value = Value::Bytes(content(0, 21))), "another content");
    objects(&forged(|message| message.value = Value::Bytes(content(99, 20))), "nobody sent");
    objects(
        &forged(|message| message.from = parlor_proto::wire::envelope::Sender::Member(MemberId(2))),
        "under another name",
    );
    objects(&forged(|message| message.order = Some(0)), "against its sender's wish");
}

#[test]
fn it_objects_to_a_wrong_state() {
    let story = Story::new();
    let has_marks = |step: &Step| matches!(step, Step::Decoded(GRACE, marks) if !marks.is_empty());
    let flipped = story.with(has_marks, 0, |step| match step {
        Step::Decoded(who, mut marks) => {
            marks[0].1 ^= 1;
            vec![Step::Decoded(who, marks)]
        }
        other => vec![other],
    });
    objects(&flipped, "for state");
    // One member's view is another state than the public one.
    let ada = story.steps.iter().rev().find_map(|step| match step {
        Step::Decoded(ADA, marks) => Some(marks.clone()),
        _ => None,
    });
    let anothers =
        story.with(has_marks, 0, |_| vec![Step::Decoded(GRACE, ada.clone().expect("she saw some"))]);
    objects(&anothers, "for state");
    let is_state = |step: &Step| is_told(step, ADA, |event| matches!(event, Event::State(_)));
    let first = story.steps.iter().find(|step| is_state(step)).cloned().expect("she saw some");
    objects(&story.with(is_state, 1, |step| vec![step, first.clone()]), "after");
    objects(&story.with(|step| matches!(step, Step::Publishes(_)), 0, never), "did not publish");
    objects(&story.with(|step| matches!(step, Step::Writes(_)), 0, never), "for state");
}

#[test]
fn it_objects_to_news_that_are_missing_or_wrong() {
    let story = Story::new();
    let joined = |who| move |step: &Step| is_told(step, who, |event| matches!(event, Event::PlayerJoined(_)));
    let left = |step: &Step| is_told(step, ADA, |event| matches!(event, Event::PlayerLeft { .. }));
    for nth in 0..4 {
        objects(&story.with(joined(ADA), nth, never), "");
    }
    objects(&story.with(joined(ADA), 1, twice), "was owed");
    objects(&story.with(left, 0, never), "the log tells");
    let other_reason = story.with(left, 0, |_| {
        let event = Event::PlayerLeft { id: MemberId(3), name: "player 3".into(), reason: LeaveReason::Left };
        vec![Step::Told(ADA, event)]
    });
    objects(&other_reason, "was owed");
}

#[test]
fn it_objects_to_ends_that_nobody_wanted() {
    let story = Story::new();
    objects(&story.with(|step| matches!(step, Step::Kicks(_)), 0, never), "for no reason");
    let closed = |step: &Step| is_told(step, GONE, |event| matches!(event, Event::Closed(_)));
    objects(&story.with(closed, 0, never), "never told that it is over");
    objects(&story.with(closed, 0, twice), "after the end");
    for reason in [CloseReason::HostGone, CloseReason::TimedOut, CloseReason::TooSlow, CloseReason::Left] {
        let other = story.with(closed, 0, |_| {
            vec![Step::Told(GONE, Event::Closed(ClosedReason::Session(reason.clone())))]
        });
        objects(&other, "is closed for no reason");
    }
    let left = |reason: LeaveReason| {
        story.with(
            |step| matches!(step, Step::Happened(HubEvent::Left { .. })),
            0,
            move |step| match step {
                Step::Happened(HubEvent::Left { code, member, .. }) => {
                    vec![Step::Happened(HubEvent::Left { code, member, reason: reason.clone() })]
                }
                other => vec![other],
            },
        )
    };
    for reason in [LeaveReason::TimedOut, LeaveReason::Misbehaved, LeaveReason::TooSlow, LeaveReason::Left] {
        objects(&left(reason), "for no reason");
    }
    let mut model = Model::new();
    story.steps.iter().for_each(|step| tell(&mut model, step).unwrap());
    let code = story.sim.code(HOST);
    tell(&mut model, &Step::Leaves(ADA)).unwrap();
    model.befalls(GRACE, Trouble::Network).unwrap();
    let left = |member, reason| HubEvent::Left { code, member, reason };
    assert_eq!(model.happened(&left(MemberId(1), LeaveReason::Left)), Ok(()));
    assert_eq!(model.happened(&left(MemberId(2), LeaveReason::TimedOut)), Ok(()));
    let ended = HubEvent::RoomEnded { code, reason: CloseReason::HostLeft };
    objects(&model.happened(&ended).unwrap_err().to_string(), "ended for no reason");
}

#[test]
fn it_objects_to_seats_that_cannot_be() {
    let story = Story::new();
    let seated = |step: &Step| matches!(step, Step::Happened(HubEvent::Joined { .. }));
    objects(&story.with(seated, 1, twice), "is 1 of room #0");
    objects(&story.with(seated, 1, never), "was owed None");
    let entered = |step: &Step| matches!(step, Step::Entered(ADA, _));
    let wrong_code = story.with(entered, 0, |_| {
        let options = Options { name: "player 1".into(), ..Options::join(APP, "NQSXCH".parse().unwrap()) };
        vec![Step::Entered(ADA, options)]
    });
    objects(&wrong_code, "was let into");
}

#[test]
fn it_objects_to_inputs_and_data_that_nobody_made() {
    let story = Story::new();
    let read = |step: &Step| matches!(step, Step::Reads(..));
    objects(&story.with(read, 0, |_| vec![Step::Reads(MemberId(1), (1, 9))]), "never sent");
    objects(&story.with(read, 0, |_| vec![Step::Reads(MemberId(2), (1, 0))]), "of member 1 for 2's");
    let newest_first = |step| vec![Step::Reads(MemberId(1), (1, 1)), step, Step::Reads(MemberId(1), (1, 0))];
    objects(&story.with(read, 1, newest_first), "after Some(1)");
    objects(&story.with(read, 0, never), "which its host never read");
    objects(&story.with(|step| matches!(step, Step::SetsData(..)), 0, never), "which nobody set");
    let data = |step: &Step| is_told(step, GRACE, |event| matches!(event, Event::PlayerData { .. }));
    objects(&story.with(data, 0, twice), "after Some(0)");
}
