//! Compares PROTOCOL.md's tables with the code.

use bytes::Bytes;
use parlor_proto::channel::{Codec, Lane};
use parlor_proto::wire::action::{ActionRefusal, RefusedAction};
use parlor_proto::wire::control::{
    HandOver, HandOverRefusal, Handover, LeaveReason, MemberInfo, PlayerData, Presence, RoomTerms, ToHub,
    ToMember,
};
use parlor_proto::wire::frame::{Fragment, Frame, Time};
use parlor_proto::wire::handshake::{
    Authority, Hello, Intent, Limits, Redirect, Refusal, Resume, ResumeToken, Resumed, RetryAfter, RoomKind,
    Seat, Welcome,
};
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole};
use parlor_proto::{
    ChannelId, ChannelTable, CloseReason, EntityId, Epoch, Instant, LinkKind, MemberId, PathId, RoomId,
    SessionId, TickRate, code, limits,
};
use std::collections::BTreeMap;
use std::time::Duration;

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../PROTOCOL.md");
    std::fs::read_to_string(path).expect("PROTOCOL.md is there")
}

/// Returns the rows of the table with the head `head`.
fn table(head: &str) -> Vec<Vec<String>> {
    let document = document();
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let mut lines = document.lines().skip_while(|line| *line != head);
    assert!(lines.next().is_some(), "PROTOCOL.md has a table with the head {head}");
    lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// Compares the first two columns of a table with the code.
fn compare(head: &str, code: impl IntoIterator<Item = (String, String)>) {
    let documented: Vec<(String, String)> =
        table(head).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let code: Vec<(String, String)> = code.into_iter().collect();
    assert_eq!(documented, code, "the table {head}");
}

/// The value of a limit in its source: numbers and other limits, added, subtracted and multiplied. Durations are in ms.
fn value_of(source: &str, limits: &BTreeMap<&str, u64>) -> u64 {
    let value = |source: &str| value_of(source, limits);
    if source.contains(" + ") {
        return source.split(" + ").map(value).sum();
    }
    if let Some((from, taken)) = source.rsplit_once(" - ") {
        return value(from) - value(taken);
    }
    if let Some((left, right)) = source.split_once(" * ") {
        return value(left) * value(right);
    }
    let inside = |head: &str| source.strip_prefix(head)?.strip_suffix(')');
    if let Some(seconds) = inside("Duration::from_secs(") {
        return 1_000 * value(seconds);
    }
    let number = inside("Duration::from_millis(").unwrap_or(source).trim_end_matches(" as usize");
    limits.get(number).copied().unwrap_or_else(|| number.replace('_', "").parse().expect("a number"))
}

#[test]
fn limits_are_those_of_the_code() {
    let source = include_str!("../src/limits.rs").lines();
    let constants = source
        .filter_map(|line| line.strip_prefix("pub const ")?.strip_suffix(';')?.split_once(": "))
        .map(|(name, rest)| (name, rest.split_once(" = ").expect("a type and a value")));
    let mut values = BTreeMap::new();
    let mut code = Vec::new();
    for (name, (kind, value)) in constants {
        let value = value_of(value, &values);
        values.insert(name, value);
        code.push((name.to_owned(), format!("{value}{}", if kind == "Duration" { " ms" } else { "" })));
    }
    compare("| limit | value | kind | what |", code);
    assert_eq!(
        values["FRAGMENT_BYTES"],
        limits::FRAGMENT_BYTES as u64,
        "values are read as the compiler does"
    );
}

fn first_byte(frame: &Frame) -> u8 {
    let mut out = Vec::new();
    frame.write(&mut out);
    out[0]
}

/// The first byte of a frame's body.
fn body_byte(frame: &Frame) -> u8 {
    let mut out = Vec::new();
    frame.write(&mut out);
    out[2]
}

fn one_of_each_frame() -> Vec<Frame> {
    let code = "K7QM".parse().expect("it is a code");
    let hello = Hello::new("tanks", Intent::Join { code, secret: None });
    let welcome = Welcome {
        version: 1,
        session: SessionId(1),
        capabilities: 0,
        room: RoomId(1),
        code,
        kind: RoomKind::PlayerHosted,
        member: MemberId(0),
        authority: Authority::Hub,
        epoch: Epoch(0),
        tick_rate: TickRate::DEFAULT,
        opened: Instant::ZERO,
        now: Instant::ZERO,
        max_players: 2,
        limits: Limits::of_this_build(),
        resume: None,
        grace_ms: 0,
        gone_ms: None,
        schema: Bytes::new(),
        members: 1,
    };
    let (channel, number, payload) = (ChannelId(3), 0, Bytes::new());
    vec![
        Frame::Hello(Box::new(hello)),
        Frame::Welcome(Box::new(welcome)),
        Frame::Redirect(Redirect { address: String::new() }),
        Frame::RetryAfter(RetryAfter { after: Duration::ZERO, detail: String::new() }),
        Frame::Refused(Refusal::NoSuchRoom),
        Frame::Close(CloseReason::Left),
        Frame::Time(Time { sent_us: 0, echo: None }),
        Frame::Resume(Resume { session: SessionId(1), token: ResumeToken([0; 32]) }),
        Frame::Resumed(Resumed { token: ResumeToken([0; 32]) }),
        Frame::Seat(Box::new(Seat {
            term: 1,
            uid: [0; 16],
            pass: Bytes::new(),
            hedge_ms: 0,
            elsewhere: Vec::new(),
            moves_to: None,
        })),
        Frame::Unreliable { channel, payload: payload.clone() },
        Frame::Sequenced { channel, key: 0, payload: payload.clone() },
        Frame::Reliable { channel, number, payload: payload.clone() },
        Frame::Ordered { channel, number, order: 0, payload },
        Frame::Fragment(Fragment { id: 0, index: 1, count: 2, part: Bytes::from_static(b"x") }),
    ]
}

#[test]
fn frame_kinds_are_those_of_the_code() {
    let frames = one_of_each_frame();
    let rows = frames.iter().map(|frame| (format!("0x{:02x}", first_byte(frame)), frame.name().to_owned()));
    compare("| kind | frame | body |", rows);
    // No further kind is known: an empty body of it would be an error or a frame, not `None`.
    let known: Vec<u8> = frames.iter().map(first_byte).collect();
    for kind in (0..64).filter(|kind| !known.contains(kind)) {
        let mut reader = parlor_proto::wire::cursor::Reader::new(Bytes::from(vec![kind, 0]));
        assert_eq!(Frame::read(&mut reader), Ok(None), "kind {kind} is in the table");
    }
}

/// The numbers that a reader knows, with their names: reads a body that begins with the number and has enough
/// for any reason.
fn known<T>(read: impl Fn(u8) -> T, name: impl Fn(&T) -> &'static str) -> BTreeMap<u8, &'static str> {
    let all = (0..=u8::MAX).map(|code| (code, read(code)));
    all.map(|(code, value)| (code, name(&value))).filter(|(_, name)| *name != "unknown").collect()
}

fn rows(known: BTreeMap<u8, &'static str>) -> impl Iterator<Item = (String, String)> {
    known.into_iter().map(|(code, name)| (code.to_string(), name.to_owned()))
}

#[test]
fn close_codes_are_those_of_the_code() {
    let read = |code: u8| {
        let mut reader = parlor_proto::wire::cursor::Reader::new(Bytes::from(vec![0x06, 2, code, 0]));
        match Frame::read(&mut reader) {
            Ok(Some(Frame::Close(reason))) => {
                assert_eq!(body_byte(&Frame::Close(reason.clone())), code);
                reason
            }
            other => panic!("{other:?}"),
        }
    };
    compare("| code | reason | detail |", rows(known(read, CloseReason::as_str)));
}

#[test]
fn refusal_codes_are_those_of_the_code() {
    // The content of each: nothing, or some zeros, which are also an empty text.
    let read = |code: u8| {
        let attempt = |zeros: usize| {
            let body = [vec![0x05, u8::try_from(zeros + 1).unwrap(), code], vec![0; zeros]].concat();
            Frame::read(&mut parlor_proto::wire::cursor::Reader::new(body.into()))
        };
        match [0, 1, 2, 4, 8].map(attempt).into_iter().find_map(Result::ok) {
            Some(Some(Frame::Refused(refusal))) => {
                assert_eq!(body_byte(&Frame::Refused(refusal.clone())), code);
                refusal
            }
            other => panic!("{other:?}"),
        }
    };
    compare("| code | reason | what belongs to it |", rows(known(read, Refusal::as_str)));
}

#[test]
fn leave_codes_are_those_of_the_code() {
    let read = |code: u8| match ToMember::decode(Bytes::from(vec![1, 0, code, 0])) {
        Ok(Some(ToMember::Left { reason, .. })) => reason,
        other => panic!("{other:?}"),
    };
    compare("| code | leave reason | detail |", rows(known(read, LeaveReason::as_str)));
}

#[test]
fn action_refusals_are_those_of_the_code() {
    let read = |code: u8| match ToMember::decode(Bytes::from(vec![6, 0, 0, 0, 0, 1, b'x', code])) {
        Ok(Some(ToMember::ActionRefused(refused))) => refused.why,
        other => panic!("{other:?}"),
    };
    let decided = |code: u8| {
        let bytes = [11, 1, 0, code + 1, 1, b'x'];
        match ToMember::decode(Bytes::from(bytes[..if code == 6 { 6 } else { 4 }].to_vec())) {
            Ok(Some(ToMember::ActionsDecided(all))) => all[0].refusal.clone().expect("it is refused"),
            other => panic!("{other:?}"),
        }
    };
    for code in 0..6 {
        assert_eq!(decided(code), read(code), "both messages have the same codes");
    }
    let read = |code: u8| if code == 6 { decided(6) } else { read(code) };
    compare("| code | why an action is refused | when |", rows(known(read, ActionRefusal::as_str)));
}

#[test]
fn hand_over_refusals_are_those_of_the_code() {
    let read = |code: u8| match ToMember::decode(Bytes::from(vec![14, code])) {
        Ok(Some(ToMember::NotHandedOver(why))) => why,
        other => panic!("{other:?}"),
    };
    let why = |why: &HandOverRefusal| why.as_str();
    compare("| code | why the authority keeps its part | when |", rows(known(read, why)));
}

#[test]
fn control_kinds_are_those_of_the_code() {
    let (member, id) = (MemberId(0), MemberId(0));
    let presence = Presence { member, connected: true, slow: false, rtt_ms: None };
    let data = || PlayerData { member, key: "k".into(), value: None };
    let info =
        MemberInfo { id, name: String::new(), user: None, link: LinkKind::Quic, presence, data: Vec::new() };
    let handover = Handover { epoch: Epoch(1), member, tick: None, slots: 0, generation: 0 };
    let refused = || RefusedAction {
        entity: EntityId::from_bits(1),
        name: "open".into(),
        why: ActionRefusal::NoSuchEntity,
    };
    let id = PathId(1);
    let offer = PathOffer {
        id,
        peer: member,
        fingerprint: [0; 32],
        role: PathRole::Dial,
        has_authority: true,
        passes_on: true,
        candidates: Vec::new(),
    };
    let down = [
        ("joined", ToMember::Joined(info)),
        ("left", ToMember::Left { member, reason: LeaveReason::Left }),
        ("data", ToMember::Data(data())),
        ("presence", ToMember::Presence(Vec::new())),
        ("throttled", ToMember::Throttled),
        ("primary", ToMember::Primary(None)),
        ("action refused", ToMember::ActionRefused(refused())),
        ("authority", ToMember::Authority(handover)),
        ("goes on", ToMember::GoesOn { epoch: Epoch(1) }),
        ("path", ToMember::Path(offer)),
        ("direct", ToMember::Direct { member, direct: true }),
        ("actions decided", ToMember::ActionsDecided(Vec::new())),
        ("away", ToMember::Away { member, reason: LeaveReason::TimedOut }),
        ("spectators", ToMember::Spectators(Vec::new())),
        ("not handed over", ToMember::NotHandedOver(HandOverRefusal::Nobody)),
        ("reopened", ToMember::Reopened { gap: true, epoch: Epoch(1) }),
    ];
    let up = [
        ("set data", ToHub::SetData(data())),
        ("kick", ToHub::Kick { member, reason: String::new() }),
        ("refuse action", ToHub::RefuseAction { member, refused: refused() }),
        ("follow", ToHub::Follow { epoch: Epoch(1) }),
        ("candidates", ToHub::Candidates(Candidates::default())),
        ("path up", ToHub::PathUp { id }),
        ("path down", ToHub::PathDown { id, was_up: true }),
        ("decide actions", ToHub::DecideActions { member, decisions: Vec::new() }),
        ("terms", ToHub::Terms(RoomTerms::default())),
        ("spectators", ToHub::Spectators { most: 0 }),
        ("hand over", ToHub::HandOver(HandOver { epoch: Epoch(1), to: None })),
    ];
    let down =
        down.map(|(name, message)| ["to a member".into(), message.encode()[0].to_string(), name.into()]);
    let up = up.map(|(name, message)| ["to the hub".into(), message.encode()[0].to_string(), name.into()]);
    let code: Vec<[String; 3]> = down.into_iter().chain(up).collect();
    let documented = table("| direction | kind | message | fields |");
    let documented: Vec<&[String]> = documented.iter().map(|row| &row[..3]).collect();
    assert_eq!(documented, code);
}

#[test]
fn built_in_channels_are_those_of_the_code() {
    let table_of_code = ChannelTable::default();
    let lane = |lane| match lane {
        Lane::ReliableOrdered => "reliable ordered",
        Lane::ReliableUnordered => "reliable unordered",
        Lane::Unreliable => "unreliable",
        Lane::UnreliableSequenced => "unreliable sequenced",
    };
    let codec = |codec| match codec {
        Codec::Parlor => "parlor",
        Codec::Typed => "typed",
        Codec::Raw => "raw",
    };
    let documented = table("| number | channel | lane | codec | key |");
    let code: Vec<[String; 3]> = (0..=u8::MAX)
        .filter_map(|id| table_of_code.get(ChannelId(id)))
        .map(|row| [row.id.0.to_string(), lane(row.lane).into(), codec(row.codec).into()])
        .collect();
    let documented: Vec<[String; 3]> =
        documented.iter().map(|row| [row[0].clone(), row[2].clone(), row[3].clone()]).collect();
    assert_eq!(documented, code);
}

#[test]
fn room_codes_are_those_of_the_code() {
    let document = document();
    let alphabet = std::str::from_utf8(code::ALPHABET).expect("it is ASCII");
    assert!(document.contains(&format!("`{alphabet}`")));
    assert!(document.contains(&format!(
        "A code has {} to {} letters",
        code::CODE_LEN_MIN,
        code::CODE_LEN_MAX
    )));
    assert!(document.contains(&format!("The id of a match has {}", code::MATCH_ID_LEN)));
}

#[test]
fn limits_that_the_text_names_are_in_the_table() {
    let document = document();
    // The limits of worlds belong to the crate `sync`, which compares them.
    let tables = ["| limit | value | kind | what |", "| limit of worlds | value | kind | what |"].map(table);
    let names: Vec<String> = tables.into_iter().flatten().map(|row| row[0].clone()).collect();
    let is_limit = |word: &&str| {
        word.contains('_') && word.len() > 5 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    let words = document.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(is_limit);
    for word in words.filter(|word| *word != "RELIABLE_ACK") {
        assert!(names.iter().any(|name| name == word), "{word} is no limit");
    }
}
