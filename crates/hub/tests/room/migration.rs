//! The authority when hosts fall silent, disconnect, return, begin anew, hand over and leave: one per epoch, and
//! other members' state is ignored.

use crate::harness::{schema, settings, setup};
use bytes::Bytes;
use parlor_hub::room::{Input, Output, Room};
use parlor_proto::wire::control::{HandOver, HandOverRefusal, LeaveReason, ToHub, ToMember};
use parlor_proto::wire::handshake::{Authority, RoomKind, RoomSettings};
use parlor_proto::{Epoch, Instant, LinkKind, MemberId, PeerMisbehaved, channel};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const NOW: Instant = Instant::from_millis(1_000);

fn room() -> Room {
    let settings = settings(RoomKind::PlayerHosted, &schema());
    Room::new(setup(RoomSettings { host_timeout_ms: Some(250), ..settings })).expect("it is a room")
}

/// The invariants, as a model in ten plain lines.
#[derive(Default)]
struct Model {
    /// The members of the room, and whether each is connected.
    members: BTreeMap<u32, bool>,
    authority: u32,
    epoch: u32,
    /// Former authorities.
    former: BTreeSet<u32>,
    is_over: bool,
    /// The answers to requests to hand over, since they were last looked at.
    refused: Vec<HandOverRefusal>,
}

impl Model {
    /// Replaces the authority by the lowest other member that is connected and fit.
    fn succeed(&mut self, is_fit: impl Fn(u32) -> bool) -> bool {
        let old = self.authority;
        let heir = self.members.iter().find(|(id, connected)| **connected && **id != old && is_fit(**id));
        let Some((heir, _)) = heir else { return false };
        self.name(*heir);
        true
    }

    fn name(&mut self, heir: u32) {
        let old = std::mem::replace(&mut self.authority, heir);
        self.epoch += 1;
        if old != heir {
            self.former.insert(old);
        }
    }

    fn restart(&mut self, id: u32) {
        self.members.insert(id, true);
        if id == self.authority {
            self.name(id);
        }
    }

    /// No heir of this test ever sends what it has taken over.
    fn hand_over(&mut self, to: Option<u32>) {
        match to {
            _ if self.epoch > 0 => self.refused.push(HandOverRefusal::UnderWay),
            Some(to) => match self.members.get(&to) {
                None => self.refused.push(HandOverRefusal::NoSuchPlayer),
                Some(false) => self.refused.push(HandOverRefusal::NotReady),
                Some(true) => self.name(to),
            },
            None if self.succeed(|_| true) => {}
            None => self.refused.push(HandOverRefusal::Nobody),
        }
    }

    fn leave(&mut self, id: u32) {
        self.members.remove(&id);
        self.is_over = id == self.authority && !self.succeed(|_| true);
        self.former.remove(&id);
    }

    /// The expected handling of bytes that are not valid state.
    fn state_of(&self, from: u32, epoch: u32) -> Word {
        if epoch < self.epoch || from != self.authority && self.former.contains(&from) {
            Word::Ignored
        } else if from == self.authority {
            Word::Heard
        } else {
            Word::Fault
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Word {
    /// The room tried to decode it.
    Heard,
    Ignored,
    /// The member may not send it.
    Fault,
    /// Of a future epoch.
    Ahead,
}

/// Sends bytes that are not valid state as a member.
fn say(room: &mut Room, from: u32, epoch: u32) -> Word {
    let ignored = room.counters().stale_epoch;
    let said = room.handle(
        Input::Message {
            from: MemberId(from),
            channel: channel::STATE,
            key: 0,
            payload: Bytes::from_static(&[0xff; 40]),
            epoch: Epoch(epoch),
        },
        NOW,
    );
    match said {
        Ok(()) => {
            assert_eq!(room.counters().stale_epoch, ignored + 1, "what is ignored is counted");
            Word::Ignored
        }
        Err((who, PeerMisbehaved::NotAuthority { .. })) if who == MemberId(from) => Word::Fault,
        Err((who, PeerMisbehaved::BadState { .. })) if who == MemberId(from) => Word::Heard,
        Err((who, PeerMisbehaved::Malformed { .. })) if who == MemberId(from) => Word::Ahead,
        Err(other) => panic!("{other:?}"),
    }
}

/// The authorities that the room names, by their epochs, and the hand-overs that it refuses.
fn named(room: &mut Room) -> (Vec<(u32, u32)>, Vec<HandOverRefusal>) {
    let outputs: Vec<Output> = std::iter::from_fn(|| room.poll_output()).collect();
    let told = outputs.into_iter().filter_map(|output| match output {
        Output::Send { message, .. } if message.channel == channel::CONTROL => {
            ToMember::decode(message.payload).expect("the room writes what can be read")
        }
        _ => None,
    });
    let (mut named, mut refused) = (Vec::new(), Vec::new());
    for message in told {
        match message {
            ToMember::Authority(handover) => named.push((handover.epoch.0, handover.member.0)),
            ToMember::NotHandedOver(why) => refused.push(why),
            _ => {}
        }
    }
    (named, refused)
}

fn hand_over(from: u32, epoch: u32, to: Option<u32>) -> Input {
    let asked = HandOver { epoch: Epoch(epoch), to: to.map(MemberId) };
    let payload = ToHub::HandOver(asked).encode();
    Input::Message { from: MemberId(from), channel: channel::CONTROL, key: 0, payload, epoch: Epoch(epoch) }
}

fn act(room: &mut Room, model: &mut Model, rng: &mut ChaCha8Rng) {
    let mut below = |bound: u32| rng.next_u32() % bound;
    let ids: Vec<u32> = model.members.keys().copied().collect();
    let of = |draw: u32| ids[draw as usize % ids.len()];
    // Most events happen to the authority.
    let whom = if below(2) == 0 && ids.contains(&model.authority) { model.authority } else { of(below(99)) };
    let member = MemberId(whom);
    let input = match below(8) {
        0 if model.members.len() < 7 => {
            model.members.insert(room.next_member().0, true);
            Input::Join { name: String::new(), user: None, link: LinkKind::Memory, spectates: false }
        }
        1 | 2 => {
            let heard: BTreeSet<u32> = ids.iter().copied().filter(|_| below(2) == 0).collect();
            model.succeed(|id| heard.contains(&id));
            Input::HostSilent { heard: heard.into_iter().map(MemberId).collect() }
        }
        3 if model.members[&whom] => {
            model.members.insert(whom, false);
            if whom == model.authority {
                model.succeed(|_| true);
            }
            Input::Away { member, reason: LeaveReason::TimedOut }
        }
        4 if !model.members[&whom] => {
            model.members.insert(whom, true);
            Input::Back { member, link: LinkKind::Memory }
        }
        5 if below(4) == 0 => {
            model.leave(whom);
            Input::Leave { member, reason: LeaveReason::ConnectionLost }
        }
        6 => {
            model.restart(whom);
            Input::Restarted { member, link: LinkKind::Memory }
        }
        7 => {
            let to = Some(below(9)).filter(|to| *to < 8);
            let (from, epoch) = (model.authority, model.epoch);
            if to == Some(from) {
                return;
            }
            // Of an older epoch it is void.
            let is_late = epoch > 0 && below(3) == 0;
            if !is_late {
                model.hand_over(to);
            }
            hand_over(from, epoch - u32::from(is_late), to)
        }
        _ => return,
    };
    room.handle(input, NOW).expect("the hub makes no faults");
}

#[test]
fn threat_25_each_epoch_has_one_authority_and_nobody_elses_word_counts() {
    let seeds = std::env::var("PARLOR_SEEDS").map_or(100, |text| text.parse().expect("a number"));
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut room, mut model) = (room(), Model::default());
        for _ in 0..3 {
            model.members.insert(room.next_member().0, true);
            room.handle(
                Input::Join { name: String::new(), user: None, link: LinkKind::Memory, spectates: false },
                NOW,
            )
            .expect("it may");
        }
        let mut authorities = BTreeMap::from([(0, 0)]);
        for step in 0..60 {
            let what = format!("seed {seed}, step {step}");
            act(&mut room, &mut model, &mut rng);
            assert_eq!(room.has_ended(), model.is_over, "{what}");
            let (named, refused) = named(&mut room);
            assert_eq!(refused, std::mem::take(&mut model.refused), "{what}");
            for (epoch, member) in named {
                assert_eq!(authorities.insert(epoch, member), None, "{what}: epoch {epoch} is given once");
            }
            if model.is_over {
                break;
            }
            let now = (room.epoch(), room.authority());
            assert_eq!(now, (Epoch(model.epoch), Authority::Member(MemberId(model.authority))), "{what}");
            assert_eq!(authorities.last_key_value(), Some((&model.epoch, &model.authority)), "{what}");
            for from in model.members.keys() {
                for epoch in [0, model.epoch.saturating_sub(1), model.epoch] {
                    let wanted = model.state_of(*from, epoch);
                    assert_eq!(say(&mut room, *from, epoch), wanted, "{what}: {from} under {epoch}");
                }
            }
        }
    }
}

fn with_members(mut room: Room, members: u32) -> Room {
    for _ in 0..members {
        let join = Input::Join { name: String::new(), user: None, link: LinkKind::Memory, spectates: false };
        room.handle(join, NOW).expect("it may");
    }
    room
}

#[test]
fn threat_25_only_the_authority_hands_its_part_over_and_not_to_itself() {
    let mut room = with_members(room(), 3);
    let fault = room.handle(hand_over(1, 0, Some(1)), NOW);
    let what = PeerMisbehaved::NotAuthority { what: "a hand-over" };
    assert_eq!(fault, Err((MemberId(1), what)));
    let fault = room.handle(hand_over(0, 0, Some(0)), NOW);
    assert!(matches!(fault, Err((MemberId(0), PeerMisbehaved::Malformed { .. }))), "{fault:?}");
    assert_eq!((room.epoch(), named(&mut room)), (Epoch(0), (Vec::new(), Vec::new())));
    room.handle(hand_over(0, 0, Some(2)), NOW).expect("it may");
    assert_eq!((room.epoch(), room.authority()), (Epoch(1), Authority::Member(MemberId(2))));
    // Twice: the second word is one of a former authority.
    let stale = room.counters().stale_epoch;
    room.handle(hand_over(0, 0, Some(1)), NOW).expect("it could not know");
    room.handle(hand_over(0, 1, Some(1)), NOW).expect("it could not know");
    assert_eq!((room.counters().stale_epoch, room.epoch()), (stale + 2, Epoch(1)));
}

#[test]
fn a_room_without_host_migration_hands_nothing_over_and_says_so() {
    for kind in [RoomKind::PlayerHosted, RoomKind::Dedicated] {
        let room = Room::new(setup(settings(kind, &schema()))).expect("it is a room");
        let mut room = with_members(room, 2);
        named(&mut room);
        room.handle(hand_over(0, 0, Some(1)), NOW).expect("it is answered");
        assert_eq!(named(&mut room), (Vec::new(), vec![HandOverRefusal::NoMigration]));
        assert_eq!(room.authority(), Authority::Member(MemberId(0)));
    }
}

#[test]
fn threat_25_nobody_can_be_ahead_of_the_epoch() {
    let mut room = room();
    for _ in 0..2 {
        room.handle(
            Input::Join { name: String::new(), user: None, link: LinkKind::Memory, spectates: false },
            NOW,
        )
        .expect("it may");
    }
    assert_eq!(say(&mut room, 0, 1), Word::Ahead);
    assert_eq!(say(&mut room, 1, 1), Word::Fault);
}
