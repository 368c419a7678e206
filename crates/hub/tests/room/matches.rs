//! Relayed matches: receivers, order and log of messages, against a model.

use crate::harness::{settings, setup};
use bytes::Bytes;
use parlor_hub::room::{Input, KeptEntry, Output, Room, Setup, log};
use parlor_proto::wire::action::Action;
use parlor_proto::wire::control::{LeaveReason, MemberInfo, ToHub, ToMember};
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::{Downward, Recipient, Sender, Upward};
use parlor_proto::wire::handshake::{Authority, RoomKind, RoomSettings};
use parlor_proto::{
    ChannelId, CloseReason, EntityId, Epoch, Instant, LinkKind, MemberId, PeerMisbehaved, channel,
};
use parlor_sync::schema::Schema;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn settings_of_match(keep: bool) -> RoomSettings {
    let schema = Bytes::new();
    RoomSettings { schema, label: "duel".into(), keep, ..settings(RoomKind::Match, &Schema::default()) }
}

fn room(keep: bool) -> Room {
    Room::new(setup(settings_of_match(keep))).expect("it is a room")
}

fn join(name: &str, user: Option<&str>) -> Input {
    Input::Join { name: name.into(), user: user.map(Into::into), link: LinkKind::Memory, spectates: false }
}

fn data(to: Recipient, op: i64, payload: &[u8]) -> Bytes {
    let payload = MatchData { op, payload: Bytes::copy_from_slice(payload) }.encode();
    Upward { to, stamp: false, payload }.encode()
}

fn says(from: u32, channel: ChannelId, payload: Bytes) -> Input {
    Input::Message { from: MemberId(from), channel, key: 0, payload, epoch: Epoch(0) }
}

fn outputs(room: &mut Room) -> Vec<Output> {
    std::iter::from_fn(|| room.poll_output()).collect()
}

/// Passes an accepted input to a room; returns its outputs.
fn tell(room: &mut Room, input: Input) -> Vec<Output> {
    room.handle(input, Instant::ZERO).expect("it may be said");
    outputs(room)
}

/// The match data that a room sends, with the receivers.
fn sent(outputs: &[Output]) -> Vec<(Vec<MemberId>, ChannelId, Downward, MatchData)> {
    let is_data = |channel| [channel::MATCH_DATA, channel::MATCH_DATA_UNRELIABLE].contains(&channel);
    let sends = outputs.iter().filter_map(|output| match output {
        Output::Send { to, message } if is_data(message.channel) => Some((to, message)),
        _ => None,
    });
    sends
        .map(|(to, message)| {
            let downward = Downward::decode(message.payload.clone()).expect("the room writes it");
            let data = MatchData::decode(downward.payload.clone()).expect("it was looked at");
            (to.clone(), message.channel, downward, data)
        })
        .collect()
}

fn kept(outputs: &[Output]) -> Vec<(u64, KeptEntry)> {
    let kept = outputs.iter().filter_map(|output| match output {
        Output::Kept { number, entry } => Some((*number, entry.clone())),
        _ => None,
    });
    kept.collect()
}

#[test]
fn its_members_are_equal_and_know_who_each_is() {
    let mut room = room(false);
    assert_eq!(room.authority(), Authority::Hub);
    tell(&mut room, join("ada", Some("account 1")));
    let outputs = tell(&mut room, join("bob", None));
    assert_eq!((room.players(), room.authority(), room.host_timeout()), (2, Authority::Hub, None));
    let control = |to: u32| -> Vec<(String, Option<String>)> {
        let told = outputs.iter().filter_map(|output| match output {
            Output::Send { to: told, message } if told.contains(&MemberId(to)) => {
                ToMember::decode(message.payload.clone()).expect("the room writes it")
            }
            _ => None,
        });
        let joined = told.filter_map(|message| match message {
            ToMember::Joined(MemberInfo { name, user, .. }) => Some((name, user)),
            _ => None,
        });
        joined.collect()
    };
    let (ada, bob) = (("ada".to_owned(), Some("account 1".to_owned())), ("bob".to_owned(), None));
    assert_eq!(control(0), std::slice::from_ref(&bob));
    assert_eq!(control(1), [bob, ada]);
    assert!(kept(&outputs).is_empty(), "it is not to be kept");
}

#[test]
fn whoever_opened_it_may_leave_and_it_ends_with_its_last_member() {
    let mut room = room(false);
    tell(&mut room, join("ada", None));
    tell(&mut room, join("bob", None));
    let leave = |member| Input::Leave { member: MemberId(member), reason: LeaveReason::Left };
    tell(&mut room, leave(0));
    assert!(!room.has_ended());
    // A kept seat counts.
    tell(&mut room, Input::Away { member: MemberId(1), reason: LeaveReason::TimedOut });
    assert!(!room.has_ended());
    let outputs = tell(&mut room, leave(1));
    assert_eq!(outputs.last(), Some(&Output::Ended { reason: CloseReason::Left }));
    assert!(room.has_ended());
}

#[test]
fn nothing_of_a_host_has_a_place_in_it() {
    let mut room = room(false);
    tell(&mut room, join("ada", None));
    tell(&mut room, join("bob", None));
    let action =
        Action { entity: EntityId { slot: 1, generation: 0 }, name: "open".into(), value: Bytes::new() };
    let word = Upward { to: Recipient::Others, stamp: false, payload: "x".into() };
    let of_others = [
        (channel::STATE, "x".into()),
        (channel::INPUT, "x".into()),
        (channel::ACTIONS, action.encode()),
        (channel::REPLICAS, "x".into()),
        (channel::ROLLBACK, word.encode()),
        (channel::CHECKPOINT, "x".into()),
    ];
    for member in [0, 1] {
        for (channel, payload) in of_others.clone() {
            let how = room.handle(says(member, channel, payload), Instant::ZERO);
            let is_refused = matches!(&how, Err((MemberId(at_fault), PeerMisbehaved::OutOfPlace { .. })) if *at_fault == member);
            assert!(is_refused, "{channel}: {how:?}");
        }
        let kick = ToHub::Kick { member: MemberId(1 - member), reason: String::new() };
        let how = room.handle(says(member, channel::CONTROL, kick.encode()), Instant::ZERO);
        assert!(matches!(how, Err((_, PeerMisbehaved::NotAuthority { .. }))), "{how:?}");
    }
    assert_eq!(outputs(&mut room), [], "and nobody was told a thing");
    // A message without an existing receiver is not delivered.
    let nobody = tell(&mut room, says(0, channel::MATCH_DATA, data(Recipient::Authority, 1, b"hi")));
    assert!(nobody.is_empty() && room.counters().unreachable == 1);
}

#[test]
fn match_data_has_a_place_in_no_other_room_and_its_form_everywhere() {
    for kind in [RoomKind::PlayerHosted, RoomKind::Dedicated] {
        let mut hosted = Room::new(setup(settings(kind, &Schema::default()))).expect("it is a room");
        tell(&mut hosted, join("ada", None));
        for channel in [channel::MATCH_DATA, channel::MATCH_DATA_UNRELIABLE] {
            let how = hosted.handle(says(0, channel, data(Recipient::Others, 1, b"hi")), Instant::ZERO);
            assert!(matches!(how, Err((_, PeerMisbehaved::OutOfPlace { .. }))), "{how:?}");
        }
    }
    let mut room = room(true);
    tell(&mut room, join("ada", None));
    for channel in [channel::MATCH_DATA, channel::MATCH_DATA_UNRELIABLE] {
        let empty = Upward { to: Recipient::Others, stamp: false, payload: Bytes::new() }.encode();
        let how = room.handle(says(0, channel, empty), Instant::ZERO);
        assert!(matches!(how, Err((_, PeerMisbehaved::Malformed { what: "match data", .. }))), "{how:?}");
    }
    assert_eq!(outputs(&mut room), []);
}

#[test]
fn what_is_kept_is_what_happened_in_its_order() {
    let mut room = room(true);
    let mut all = Vec::new();
    let leave = |member, reason| Input::Leave { member: MemberId(member), reason };
    for input in [
        join("ada", Some("account 1")),
        says(0, channel::MATCH_DATA, data(Recipient::Others, -3, b"alone")),
        join("bob", None),
        says(1, channel::MATCH_DATA, data(Recipient::Everyone, 7, b"hello")),
        says(1, channel::MATCH_DATA_UNRELIABLE, data(Recipient::Everyone, 7, b"may be lost")),
        leave(0, LeaveReason::TimedOut),
        Input::End { reason: CloseReason::ServerShutdown },
    ] {
        all.extend(tell(&mut room, input));
    }
    let joined = |member, name: &str, user: Option<&str>| {
        let (name, user) = (name.to_owned(), user.map(str::to_owned));
        KeptEntry::Joined { member: MemberId(member), name, user }
    };
    let data = |order, from, op, to: &[u32], payload: &'static str| KeptEntry::Data {
        order,
        from: MemberId(from),
        op,
        to: to.iter().copied().map(MemberId).collect(),
        payload: payload.into(),
    };
    let entries = [
        KeptEntry::Opened { label: "duel".into(), members_max: 8, by: Some("account 1".into()) },
        joined(0, "ada", Some("account 1")),
        data(0, 0, -3, &[], "alone"),
        joined(1, "bob", None),
        data(1, 1, 7, &[0, 1], "hello"),
        KeptEntry::Left { member: MemberId(0), reason: LeaveReason::TimedOut },
        KeptEntry::Ended,
    ];
    assert_eq!(kept(&all), (0..).zip(entries).collect::<Vec<_>>());
}

#[test]
fn threat_12_who_is_alone_in_a_match_that_is_kept_is_held_back_too() {
    let said = |keep: bool| {
        let mut room = room(keep);
        tell(&mut room, join("ada", None));
        let entry = says(0, channel::MATCH_DATA, data(Recipient::Others, 1, &[7; 20_000]));
        (0..1_000).take_while(|_| room.handle(entry.clone(), Instant::ZERO).is_ok()).count()
    };
    assert_eq!(said(false), 1_000, "nobody pays for it");
    assert!(said(true) < 30, "the log does");
}

/// The steps of a script: numbers that are taken modulo the available choices.
#[derive(Clone, Debug)]
enum Act {
    Join,
    Leave(u32),
    Say { from: u32, to: u8, of: Vec<u32>, reliable: bool, bytes: usize },
    Pass(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let of = proptest::collection::vec(0u32..12, 0..4);
    let say = (0u32..12, 0u8..5, of, any::<bool>(), prop_oneof![4 => 0usize..40, 1 => 0usize..9_000]);
    let act = prop_oneof![
        2 => Just(Act::Join),
        1 => (0u32..12).prop_map(Act::Leave),
        12 => say.prop_map(|(from, to, of, reliable, bytes)| Act::Say { from, to, of, reliable, bytes }),
        3 => (0u64..300).prop_map(Act::Pass),
    ];
    proptest::collection::vec(act, 1..120)
}

/// A match and its model.
struct Game {
    room: Room,
    log: Vec<u8>,
    now: Instant,
    here: BTreeSet<MemberId>,
    /// Number of reliable messages sent by each member.
    spoken: BTreeMap<MemberId, u32>,
    /// The reliable messages each member got: order, sender and the sender's count.
    got: BTreeMap<MemberId, Vec<(u64, MemberId, u32)>>,
    all: Vec<Output>,
}

impl Game {
    fn new() -> Self {
        let setup = Setup { ..setup(settings_of_match(true)) };
        Game {
            log: log::head(&setup),
            room: Room::new(setup).expect("it is a room"),
            now: Instant::ZERO,
            here: BTreeSet::new(),
            spoken: BTreeMap::new(),
            got: BTreeMap::new(),
            all: Vec::new(),
        }
    }

    /// Returns whether the room accepted the input; removes a misbehaving member, as a hub does.
    fn tell(&mut self, input: Input) -> Result<(), TestCaseError> {
        self.log.extend(log::entry(self.now, &input));
        let handled = self.room.handle(input, self.now);
        let outputs = outputs(&mut self.room);
        for (to, channel, downward, data) in sent(&outputs) {
            prop_assert!(!to.is_empty());
            let Sender::Member(from) = downward.from else { panic!("a member says it") };
            let count = u32::from_le_bytes(data.payload[..4].try_into().expect("it has a count"));
            let named = named(&data, from, &self.here);
            for member in to {
                prop_assert!(self.here.contains(&member), "{member} is not here");
                prop_assert!(named.contains(&member), "it was not for {member}");
                if channel == channel::MATCH_DATA {
                    let order = downward.order.expect("what arrives has an order");
                    self.got.entry(member).or_default().push((order, from, count));
                } else {
                    prop_assert_eq!(downward.order, None);
                }
            }
        }
        self.all.extend(outputs);
        if let Err((member, PeerMisbehaved::Flooded { .. })) = handled {
            self.leave(member, LeaveReason::Misbehaved)?;
        } else {
            prop_assert_eq!(handled, Ok(()));
        }
        Ok(())
    }

    fn leave(&mut self, member: MemberId, reason: LeaveReason) -> Result<(), TestCaseError> {
        self.here.remove(&member);
        self.tell(Input::Leave { member, reason })
    }

    fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
        let pick = |number: u32, here: &BTreeSet<MemberId>| {
            here.iter().nth(number as usize % here.len().max(1)).copied()
        };
        match act {
            Act::Join if self.room.has_seat(false) => {
                self.here.insert(self.room.next_member());
                self.tell(join("x", None))?;
            }
            Act::Join => {}
            Act::Leave(number) => {
                // The last member stays: later messages would have no receivers.
                if self.here.len() > 1
                    && let Some(member) = pick(number, &self.here)
                {
                    self.leave(member, LeaveReason::Left)?;
                }
            }
            Act::Say { from, to, of, reliable, bytes } => {
                let Some(from) = pick(from, &self.here) else { return Ok(()) };
                let mut of: Vec<MemberId> = of.into_iter().map(MemberId).collect();
                of.sort_unstable();
                of.dedup();
                let count = self.spoken.entry(from).or_default();
                *count += u32::from(reliable);
                // The payload names its receivers for the check: the kind, the count and the members.
                let mut payload = count.to_le_bytes().to_vec();
                payload.extend([to, u8::try_from(of.len()).expect("they are few")]);
                of.iter().for_each(|member| payload.extend(member.0.to_le_bytes()));
                payload.resize(payload.len() + bytes, 7);
                let to = match to {
                    0 => Recipient::Others,
                    1 => Recipient::Everyone,
                    2 => Recipient::Members(of),
                    3 => Recipient::Except(of),
                    _ => of.first().copied().map_or(Recipient::Others, Recipient::Member),
                };
                let channel = if reliable { channel::MATCH_DATA } else { channel::MATCH_DATA_UNRELIABLE };
                self.tell(says(from.0, channel, data(to, 1, &payload)))?;
            }
            Act::Pass(ms) => {
                self.now += Duration::from_millis(ms);
                self.tell(Input::Flush)?;
            }
        }
        Ok(())
    }
}

/// The receivers of match data, as its sender wrote them into it.
fn named(data: &MatchData, from: MemberId, here: &BTreeSet<MemberId>) -> BTreeSet<MemberId> {
    let listed = data.payload[6..].chunks_exact(4).take(data.payload[5].into());
    let listed: BTreeSet<MemberId> =
        listed.map(|id| MemberId(u32::from_le_bytes(id.try_into().expect("four bytes")))).collect();
    let others = || here.iter().copied().filter(|member| *member != from).collect();
    match data.payload[4] {
        0 => others(),
        1 => here.clone(),
        2 => listed,
        3 => here.difference(&listed).copied().collect(),
        _ => listed.first().map_or_else(others, |first| BTreeSet::from([*first])),
    }
}

proptest! {
    #[test]
    fn all_get_what_is_for_them_in_one_order(acts in acts()) {
        let mut game = Game::new();
        for act in acts {
            game.act(act)?;
        }
        // Held-back messages are sent in time.
        for _ in 0..400 {
            game.act(Act::Pass(100))?;
        }
        let mut by_order = BTreeMap::new();
        for (member, got) in &game.got {
            prop_assert!(got.is_sorted_by(|a, b| a.0 < b.0), "{member} got {got:?}");
            let mut counts: BTreeMap<MemberId, u32> = BTreeMap::new();
            for (order, from, count) in got {
                prop_assert_eq!(*by_order.entry(*order).or_insert((*from, *count)), (*from, *count));
                let before = counts.insert(*from, *count);
                prop_assert!(before.is_none_or(|before| before < *count), "{} overtook itself", from);
            }
        }
        // The log has the same data, for each of its receivers.
        let kept = kept(&game.all);
        prop_assert!(kept.iter().map(|(number, _)| *number).eq(0..kept.len() as u64));
        let mut of_log: BTreeMap<MemberId, Vec<(u64, MemberId, u32)>> = BTreeMap::new();
        let (mut told, mut next) = (BTreeMap::new(), 0);
        for (_, entry) in kept {
            if let KeptEntry::Data { order, from, to, payload, .. } = entry {
                prop_assert_eq!(order, next, "every one has its place");
                next += 1;
                let count = u32::from_le_bytes(payload[..4].try_into().expect("it has a count"));
                told.insert(from, count);
                to.into_iter().for_each(|member| of_log.entry(member).or_default().push((order, from, count)));
            }
        }
        prop_assert_eq!(&of_log, &game.got);
        // No message of a present member was lost.
        for (member, count) in game.spoken.iter().filter(|(member, _)| game.here.contains(member)) {
            prop_assert_eq!(told.get(member).copied().unwrap_or_default(), *count);
        }
        // The room's own log replays to the same outputs.
        let replayed = log::replay(game.log.into()).expect("it is a log");
        let replayed: Vec<Output> = replayed.flat_map(|step| step.expect("it is whole").outputs).collect();
        prop_assert_eq!(replayed, game.all);
    }
}
