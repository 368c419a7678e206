//! The values whose bytes are in `testdata/wire.txt`.

use crate::roundtrip::{read_frame, read_header, write_frame, write_header};
use bytes::Bytes;
use parlor_proto::channel::{Channel, ChannelTable, Codec, Lane};
use parlor_proto::wire::action::{Action, ActionRefusal, AskedBy, Decision, RefusedAction};
use parlor_proto::wire::control::{
    HandOver, HandOverRefusal, Handover, LeaveReason, MemberInfo, PlayerData, Presence, RoomTerms, ToHub,
    ToMember,
};
use parlor_proto::wire::cursor::Reader;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::{Downward, Recipient, Sender, Upward};
use parlor_proto::wire::frame::{Echo, Fragment, Frame, Time};
use parlor_proto::wire::handshake::{
    Auth, Authority, Claim, Hello, Intent, Limits, Redirect, Refusal, Resume, ResumeRefusal, ResumeToken,
    Resumed, RetryAfter, RoomKind, RoomSettings, Seat, Welcome, capability,
};
use parlor_proto::wire::header::{Ack, Header};
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole, PathSignal};
use parlor_proto::wire::replica::{OwnState, StateOf};
use parlor_proto::{
    ChannelId, CloseReason, EntityId, Epoch, Instant, LinkKind, MemberId, PathId, RoomId, SessionId, Tick,
    TickRate, channel, limits,
};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

/// A value of any wire type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Header(Header),
    Frame(Frame),
    Packet(Header, Vec<Frame>),
    ToMember(ToMember),
    ToHub(ToHub),
    Upward(Upward),
    Downward(Downward),
    Action(Action),
    AskedBy(AskedBy),
    OwnState(OwnState),
    StateOf(StateOf),
    MatchData(MatchData),
    PathSignal(PathSignal),
}

impl Value {
    pub(crate) fn encode(&self) -> Bytes {
        match self {
            Value::Header(header) => write_header(header),
            Value::Frame(frame) => write_frame(frame),
            Value::Packet(header, frames) => {
                let mut out = Vec::new();
                header.write(&mut out);
                frames.iter().for_each(|frame| frame.write(&mut out));
                out.into()
            }
            Value::ToMember(message) => message.encode(),
            Value::ToHub(message) => message.encode(),
            Value::Upward(message) => message.encode(),
            Value::Downward(message) => message.encode(),
            Value::Action(message) => message.encode(),
            Value::AskedBy(message) => message.encode(),
            Value::OwnState(message) => message.encode(),
            Value::StateOf(message) => message.encode(),
            Value::MatchData(message) => message.encode(),
            Value::PathSignal(message) => message.encode(),
        }
    }

    /// Decodes bytes as a value of the same type.
    pub(crate) fn decode_alike(&self, bytes: Bytes) -> Option<Value> {
        match self {
            Value::Header(_) => read_header(bytes).ok().map(Value::Header),
            Value::Frame(_) => read_frame(bytes).ok().flatten().map(Value::Frame),
            Value::Packet(..) => {
                let mut reader = Reader::new(bytes);
                let header = Header::read(&mut reader).ok()?;
                let mut frames = Vec::new();
                while !reader.is_empty() {
                    frames.push(Frame::read(&mut reader).ok()??);
                }
                Some(Value::Packet(header, frames))
            }
            Value::ToMember(_) => ToMember::decode(bytes).ok().flatten().map(Value::ToMember),
            Value::ToHub(_) => ToHub::decode(bytes).ok().flatten().map(Value::ToHub),
            Value::Upward(_) => Upward::decode(bytes).ok().map(Value::Upward),
            Value::Downward(_) => Downward::decode(bytes).ok().map(Value::Downward),
            Value::Action(_) => Action::decode(bytes).ok().map(Value::Action),
            Value::AskedBy(_) => AskedBy::decode(bytes).ok().map(Value::AskedBy),
            Value::OwnState(_) => OwnState::decode(bytes).ok().map(Value::OwnState),
            Value::StateOf(_) => StateOf::decode(bytes).ok().map(Value::StateOf),
            Value::MatchData(_) => MatchData::decode(bytes).ok().map(Value::MatchData),
            Value::PathSignal(_) => PathSignal::decode(bytes).ok().flatten().map(Value::PathSignal),
        }
    }
}

/// All vectors, by name.
pub(crate) fn vectors() -> Vec<(&'static str, Value)> {
    let controls = [controls(), links(), spectators(), hand_overs(), paths()].concat();
    [headers(), handshakes(), answers(), frames(), closes(), envelopes(), controls, actions(), packets()]
        .into_iter()
        .flatten()
        .collect()
}

fn headers() -> Vec<(&'static str, Value)> {
    let full = Header {
        sequence: Some(0x1234),
        ack: Some(Ack { newest: 0x00ff, bits: 0x8000_0001 }),
        reliable_ack: Some(15_293),
        tick: Some(0xabcd),
        epoch: Epoch(70),
    };
    let none = Header::default();
    vec![
        ("header.empty", Value::Header(none)),
        ("header.sequence", Value::Header(Header { sequence: full.sequence, ..none })),
        ("header.ack", Value::Header(Header { ack: full.ack, ..none })),
        ("header.reliable_ack", Value::Header(Header { reliable_ack: full.reliable_ack, ..none })),
        ("header.tick", Value::Header(Header { tick: full.tick, ..none })),
        ("header.epoch", Value::Header(Header { epoch: full.epoch, ..none })),
        ("header.full", Value::Header(full)),
    ]
}

fn hello(intent: Intent) -> Hello {
    Hello { name: "ada".into(), ..Hello::new("tanks", intent) }
}

fn handshakes() -> Vec<(&'static str, Value)> {
    let settings = |code: Option<&str>, secret: Option<&str>| RoomSettings {
        code: code.map(|code| code.parse().expect("a code")),
        secret: secret.map(Into::into),
        ..RoomSettings::new(RoomKind::PlayerHosted, 4)
    };
    let dedicated = RoomSettings {
        kind: RoomKind::Dedicated,
        max_players: 64,
        schema: Bytes::from_static(b"schema"),
        spectator_delay_ms: 30_000,
        ..settings(None, None)
    };
    let of_match = RoomSettings {
        kind: RoomKind::Match,
        max_players: 16,
        label: "duel".into(),
        keep: true,
        ..settings(None, None)
    };
    let mut channels = ChannelTable::default();
    for (id, lane, codec) in
        [(16, Lane::ReliableOrdered, Codec::Raw), (20, Lane::UnreliableSequenced, Codec::Typed)]
    {
        let row = Channel { id: ChannelId(id), lane, codec, schema_hash: 0x0102_0304_0506_0708 };
        channels.declare(row).expect("each number is free");
    }
    let join = |secret: Option<&str>| Intent::Join {
        code: "K7QM".parse().expect("a code"),
        secret: secret.map(Into::into),
    };
    let full = Hello {
        environment: "development".into(),
        capabilities: 1 << 63,
        auth: Auth::Token(Bytes::from_static(b"token")),
        key: Some([0xaa; 32]),
        name: "Ada Ł".into(),
        channels,
        schema: NonZeroU64::new(0x0102_0304_0506_0708),
        ..hello(join(Some("sesame")))
    };
    let frame = |hello| Value::Frame(Frame::Hello(Box::new(hello)));
    vec![
        ("hello.create", frame(hello(Intent::Create(settings(None, None))))),
        ("hello.create_named", frame(hello(Intent::Create(settings(Some("MYROOM"), Some("sesame")))))),
        ("hello.create_dedicated", frame(hello(Intent::Create(dedicated)))),
        ("hello.create_match", frame(hello(Intent::Create(of_match)))),
        ("hello.join", frame(hello(join(None)))),
        ("hello.join_full", frame(full)),
        ("hello.spectate", frame(Hello { capabilities: capability::SPECTATES, ..hello(join(None)) })),
        ("hello.resume", frame(hello(Intent::Resume(resume())))),
        ("hello.path", frame(hello(Intent::Path(PathId(0x0102_0304_0506_0708))))),
        (
            "hello.claim",
            frame(Hello { capabilities: capability::MOVES, ..hello(Intent::Claim(claim().into())) }),
        ),
        ("hello.foreign", Value::Frame(Frame::ForeignHello { version_min: 7, version_max: 9 })),
    ]
}

fn welcome(authority: Authority) -> Value {
    let is_match = authority == Authority::Hub;
    Value::Frame(Frame::Welcome(Box::new(Welcome {
        version: 1,
        session: SessionId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
        capabilities: 0,
        room: RoomId(9),
        code: if is_match { "K7QMABCDEFGH2345" } else { "K7QM" }.parse().expect("a code"),
        kind: if is_match { RoomKind::Match } else { RoomKind::PlayerHosted },
        member: MemberId(1),
        authority,
        epoch: Epoch(0),
        tick_rate: TickRate::DEFAULT,
        opened: Instant::from_millis(1_000),
        now: Instant::from_millis(3_500),
        max_players: 4,
        limits: Limits {
            message_bytes: 65_536,
            datagram_bytes: 1_000,
            keep_alive_ms: 1_000,
            silence_ms: 8_000,
        },
        resume: Some(ResumeToken([0xbb; 32])),
        grace_ms: 30_000,
        gone_ms: authority.member().map(|_| 2_800),
        schema: Bytes::from_static(b"schema"),
        members: 2,
    })))
}

fn resume() -> Resume {
    let session = SessionId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    Resume { session, token: ResumeToken([0xbb; 32]) }
}

fn claim() -> Claim {
    Claim {
        pass: Bytes::from_static(b"pass"),
        token: ResumeToken([0xbb; 32]),
        term: 3,
        room_time_us: Some(5_000_000),
        order: 70_000,
    }
}

fn seat(elsewhere: &[&str], moves_to: Option<&str>) -> Value {
    Value::Frame(Frame::Seat(Box::new(Seat {
        term: 3,
        uid: 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes(),
        pass: Bytes::from_static(b"pass"),
        hedge_ms: 500,
        elsewhere: elsewhere.iter().map(|&address| address.into()).collect(),
        moves_to: moves_to.map(Into::into),
    })))
}

fn answers() -> Vec<(&'static str, Value)> {
    let refused = |refusal| Value::Frame(Frame::Refused(refusal));
    let retry = RetryAfter { after: Duration::from_millis(1_500), detail: "starting".into() };
    vec![
        ("welcome.member", welcome(Authority::Member(MemberId(0)))),
        ("welcome.hub", welcome(Authority::Hub)),
        ("redirect", Value::Frame(Frame::Redirect(Redirect { address: "eu.example.com:4433".into() }))),
        ("retry_after", Value::Frame(Frame::RetryAfter(retry))),
        ("refused.version", refused(Refusal::Version { min: 2, max: 3 })),
        ("refused.app", refused(Refusal::App { expected: "chess".into() })),
        ("refused.no_such_room", refused(Refusal::NoSuchRoom)),
        ("refused.room_full", refused(Refusal::RoomFull { max: 4 })),
        ("refused.code_taken", refused(Refusal::CodeTaken)),
        ("refused.channels", refused(Refusal::Channels { channel: ChannelId(20) })),
        ("refused.unauthorized", refused(Refusal::Unauthorized)),
        ("refused.bad_request", refused(Refusal::BadRequest { detail: "max_players is 1".into() })),
        ("refused.server_full", refused(Refusal::ServerFull)),
        ("refused.schema", refused(Refusal::Schema { hash: 0x0102_0304_0506_0708 })),
        ("refused.room_kind", refused(Refusal::RoomKind { kind: RoomKind::Dedicated })),
        ("refused.not_kept", refused(Refusal::NotKept)),
        ("refused.keep_needs_user", refused(Refusal::KeepNeedsUser)),
        ("refused.keep_quota", refused(Refusal::KeepQuota { detail: "4 matches of yours are kept".into() })),
        ("refused.resume_gone", refused(Refusal::Resume { why: ResumeRefusal::Gone })),
        ("refused.resume_token", refused(Refusal::Resume { why: ResumeRefusal::Token })),
        ("refused.resume_grace_over", refused(Refusal::Resume { why: ResumeRefusal::GraceOver })),
        ("refused.spectators_full", refused(Refusal::SpectatorsFull { max: 8 })),
        ("resume", Value::Frame(Frame::Resume(resume()))),
        ("resumed", Value::Frame(Frame::Resumed(Resumed { token: ResumeToken([0xcc; 32]) }))),
        ("seat", seat(&["b.example.com:4433", "c.example.com:4433"], None)),
        ("seat.alone", seat(&[], None)),
        ("seat.moves", seat(&[], Some("b.example.com:4433"))),
        ("refused.unknown", refused(Refusal::Unknown { code: 200 })),
    ]
}

fn frames() -> Vec<(&'static str, Value)> {
    let payload = Bytes::from_static(b"hi");
    let echo = Echo { sent_us: 1_000_000, held_us: 2_500 };
    let fragment = Fragment { id: 0x0102, index: 1, count: 2, part: payload.clone() };
    [
        ("time.first", Frame::Time(Time { sent_us: 1_000_000, echo: None })),
        ("time.echo", Frame::Time(Time { sent_us: 5_000_000_000, echo: Some(echo) })),
        ("unreliable", Frame::Unreliable { channel: channel::MESSAGE_UNRELIABLE, payload: payload.clone() }),
        ("unreliable.empty", Frame::Unreliable { channel: ChannelId(16), payload: Bytes::new() }),
        ("sequenced", Frame::Sequenced { channel: channel::INPUT, key: 300, payload: payload.clone() }),
        (
            "reliable",
            Frame::Reliable { channel: channel::MESSAGE_UNORDERED, number: 37, payload: payload.clone() },
        ),
        ("ordered", Frame::Ordered { channel: channel::MESSAGE_ORDERED, number: 70_000, order: 3, payload }),
        ("fragment", Frame::Fragment(fragment)),
    ]
    .map(|(name, frame)| (name, Value::Frame(frame)))
    .into()
}

fn closes() -> Vec<(&'static str, Value)> {
    [
        ("close.left", CloseReason::Left),
        ("close.kicked", CloseReason::Kicked { reason: "rude".into() }),
        ("close.host_left", CloseReason::HostLeft),
        ("close.host_gone", CloseReason::HostGone),
        ("close.room_ended", CloseReason::RoomEnded { reason: "maintenance".into() }),
        ("close.server_shutdown", CloseReason::ServerShutdown),
        ("close.timed_out", CloseReason::TimedOut),
        ("close.connection_lost", CloseReason::ConnectionLost { detail: "reset".into() }),
        ("close.misbehaved", CloseReason::Misbehaved { detail: "two hellos".into() }),
        ("close.too_slow", CloseReason::TooSlow),
        ("close.not_polled", CloseReason::NotPolled),
        ("close.token_reused", CloseReason::TokenReused),
        ("close.moved", CloseReason::Moved { address: "b.example.com:4433".into() }),
        ("close.unknown", CloseReason::Unknown { code: 99, detail: "new".into() }),
    ]
    .map(|(name, reason)| (name, Value::Frame(Frame::Close(reason))))
    .into()
}

fn envelopes() -> Vec<(&'static str, Value)> {
    let payload = Bytes::from_static(b"hi");
    let up = |to, stamp| Value::Upward(Upward { to, stamp, payload: payload.clone() });
    let down = |from, order, epoch: Option<u32>| {
        let authority_of = epoch.map(Epoch);
        Value::Downward(Downward { from, order, authority_of, payload: payload.clone() })
    };
    vec![
        ("up.authority", up(Recipient::Authority, false)),
        ("up.others", up(Recipient::Others, false)),
        ("up.member", up(Recipient::Member(MemberId(300)), false)),
        ("up.members", up(Recipient::Members([1, 2, 300].map(MemberId).into()), false)),
        ("up.everyone_stamped", up(Recipient::Everyone, true)),
        ("up.primary", up(Recipient::Primary, false)),
        ("up.except", up(Recipient::Except([1, 300].map(MemberId).into()), false)),
        ("down.hub", down(Sender::Hub, None, None)),
        ("down.member", down(Sender::Member(MemberId(2)), None, None)),
        ("down.member_stamped", down(Sender::Member(MemberId(2)), Some(70), None)),
        ("down.for_authority", down(Sender::Member(MemberId(2)), None, Some(0))),
        ("down.for_authority_stamped", down(Sender::Member(MemberId(2)), Some(70), Some(300))),
    ]
}

fn controls() -> Vec<(&'static str, Value)> {
    let id = MemberId(2);
    let presence = |rtt_ms: Option<u32>| Presence {
        member: id,
        connected: rtt_ms != Some(0),
        slow: rtt_ms.is_none(),
        rtt_ms,
    };
    let data = |value| PlayerData { member: id, key: "team".into(), value };
    let joined = MemberInfo {
        id,
        name: "ada".into(),
        user: None,
        link: LinkKind::WebSocket,
        presence: presence(Some(70)),
        data: vec![("team".into(), Bytes::from_static(b"red"))],
    };
    let known = MemberInfo { user: Some("account 7".into()), data: Vec::new(), ..joined.clone() };
    let refused =
        |why| RefusedAction { entity: EntityId { slot: 12, generation: 3 }, name: "open".into(), why };
    let handover = |tick: Option<Tick>| {
        let (slots, generation) = if tick.is_some() { (0x0203, 7) } else { (0, 0) };
        Value::ToMember(ToMember::Authority(Handover {
            epoch: Epoch(70),
            member: id,
            tick,
            slots,
            generation,
        }))
    };
    let left = |reason| Value::ToMember(ToMember::Left { member: id, reason });
    let terms = |presence_ms, grace_ms| Value::ToHub(ToHub::Terms(RoomTerms { presence_ms, grace_ms }));
    vec![
        ("to_member.joined", Value::ToMember(ToMember::Joined(joined))),
        ("to_member.joined_user", Value::ToMember(ToMember::Joined(known))),
        ("to_member.left", left(LeaveReason::Left)),
        ("to_member.kicked", left(LeaveReason::Kicked { reason: "rude".into() })),
        ("to_member.connection_lost", left(LeaveReason::ConnectionLost)),
        ("to_member.timed_out", left(LeaveReason::TimedOut)),
        ("to_member.misbehaved", left(LeaveReason::Misbehaved)),
        ("to_member.too_slow", left(LeaveReason::TooSlow)),
        ("to_member.data", Value::ToMember(ToMember::Data(data(Some(Bytes::from_static(b"red")))))),
        ("to_member.data_removed", Value::ToMember(ToMember::Data(data(None)))),
        (
            "to_member.presence",
            Value::ToMember(ToMember::Presence(vec![presence(Some(70)), presence(None), presence(Some(0))])),
        ),
        ("to_member.throttled", Value::ToMember(ToMember::Throttled)),
        ("to_member.primary", Value::ToMember(ToMember::Primary(Some(MemberId(300))))),
        ("to_member.no_primary", Value::ToMember(ToMember::Primary(None))),
        (
            "to_member.action_refused",
            Value::ToMember(ToMember::ActionRefused(refused(ActionRefusal::NoSuchEntity))),
        ),
        ("to_member.actions_decided", Value::ToMember(ToMember::ActionsDecided(decisions()))),
        ("to_member.authority", handover(Some(Tick(0x0102_0304)))),
        ("to_member.authority_of_nothing", handover(None)),
        ("to_member.goes_on", Value::ToMember(ToMember::GoesOn { epoch: Epoch(70) })),
        ("to_member.away", Value::ToMember(ToMember::Away { member: id, reason: LeaveReason::TimedOut })),
        ("to_hub.set_data", Value::ToHub(ToHub::SetData(data(Some(Bytes::from_static(b"red")))))),
        ("to_hub.remove_data", Value::ToHub(ToHub::SetData(data(None)))),
        ("to_hub.kick", Value::ToHub(ToHub::Kick { member: id, reason: "rude".into() })),
        (
            "to_hub.refuse_action",
            Value::ToHub(ToHub::RefuseAction { member: id, refused: refused(ActionRefusal::NotOwner) }),
        ),
        ("to_hub.decide_actions", Value::ToHub(ToHub::DecideActions { member: id, decisions: decisions() })),
        ("to_hub.follow", Value::ToHub(ToHub::Follow { epoch: Epoch(70) })),
        ("to_hub.terms", terms(Some(1_500), Some(0))),
        ("to_hub.terms_of_server", terms(None, None)),
    ]
}

fn spectators() -> Vec<(&'static str, Value)> {
    let to_member = ToMember::Spectators(vec![MemberId(3), MemberId(300)]);
    vec![
        ("to_member.spectators", Value::ToMember(to_member)),
        ("to_hub.spectators", Value::ToHub(ToHub::Spectators { most: limits::SPECTATORS_MAX })),
    ]
}

/// Members on other links than WebSocket.
fn links() -> Vec<(&'static str, Value)> {
    let on = |link| {
        let presence = Presence { member: MemberId(2), connected: true, slow: false, rtt_ms: Some(70) };
        let (name, user) = ("ada".into(), Some("account 7".into()));
        let data = Vec::new();
        Value::ToMember(ToMember::Joined(MemberInfo { id: MemberId(2), name, user, link, presence, data }))
    };
    vec![
        ("to_member.joined_web", on(LinkKind::WebTransport)),
        ("to_member.joined_later", on(LinkKind::Unknown(127))),
    ]
}

fn hand_overs() -> Vec<(&'static str, Value)> {
    let hand_over = |to| Value::ToHub(ToHub::HandOver(HandOver { epoch: Epoch(70), to }));
    vec![
        ("to_hub.hand_over", hand_over(Some(MemberId(2)))),
        ("to_hub.hand_over_to_any", hand_over(None)),
        ("to_member.reopened", Value::ToMember(ToMember::Reopened { gap: true, epoch: Epoch(300) })),
        ("to_member.not_handed_over", Value::ToMember(ToMember::NotHandedOver(HandOverRefusal::TooSoon))),
    ]
}

fn decisions() -> Vec<Decision> {
    let by_game = ActionRefusal::ByGame { reason: "no_ammo".into() };
    let decision = |number, refusal| Decision { number, refusal };
    vec![decision(7, None), decision(70, Some(by_game)), decision(71, Some(ActionRefusal::NotOwner))]
}

fn paths() -> Vec<(&'static str, Value)> {
    let id = PathId(0x0102_0304_0506_0708);
    let addresses = vec![
        SocketAddr::from(([10, 0, 0, 7], 4_000)),
        SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 443)),
    ];
    let offer = PathOffer {
        id,
        peer: MemberId(300),
        fingerprint: [0xaa; 32],
        role: PathRole::Accept,
        has_authority: true,
        passes_on: true,
        candidates: addresses.clone(),
    };
    let rest = PathSignal::Rest {
        id,
        number: 70,
        channel: channel::MESSAGE_ORDERED,
        payload: Bytes::from_static(b"hi"),
    };
    vec![
        ("to_member.path", Value::ToMember(ToMember::Path(offer))),
        ("to_member.direct", Value::ToMember(ToMember::Direct { member: MemberId(2), direct: true })),
        (
            "to_hub.candidates",
            Value::ToHub(ToHub::Candidates(Candidates {
                addresses,
                may_tell_observed: true,
                wants_all: false,
            })),
        ),
        ("to_hub.path_up", Value::ToHub(ToHub::PathUp { id })),
        ("to_hub.path_down", Value::ToHub(ToHub::PathDown { id, was_up: true })),
        ("path.over", Value::PathSignal(PathSignal::Over { id })),
        ("path.back", Value::PathSignal(PathSignal::Back { id, ends: true, rests: 70 })),
        ("path.rest", Value::PathSignal(rest)),
    ]
}

fn actions() -> Vec<(&'static str, Value)> {
    let entity = EntityId { slot: 12, generation: 3 };
    let action = Action { entity, name: "open".into(), value: Bytes::from_static(b"hi") };
    let asked = AskedBy { from: MemberId(300), epoch: Epoch(70), action: action.clone() };
    let packet = Bytes::from_static(b"packet");
    let data = |op, payload| Value::MatchData(MatchData { op, payload: Bytes::from_static(payload) });
    let with_schema = OwnState { schema: Some(Bytes::from_static(b"schema")), packet: packet.clone() };
    vec![
        ("action.up", Value::Action(action)),
        ("action.down", Value::AskedBy(asked)),
        ("replica.up", Value::OwnState(OwnState { schema: None, packet: packet.clone() })),
        ("replica.up_with_schema", Value::OwnState(with_schema.clone())),
        ("replica.down", Value::StateOf(StateOf { source: MemberId(300), state: with_schema })),
        ("data.first", data(0, b"")),
        ("data.negative", data(-1, b"hi")),
        ("data.large", data(1 << 40, b"hi")),
        ("data.largest", data(i64::MAX, b"hi")),
    ]
}

fn packets() -> Vec<(&'static str, Value)> {
    let header = Header {
        sequence: Some(7),
        ack: Some(Ack { newest: 41, bits: 0b101 }),
        reliable_ack: Some(2),
        tick: Some(900),
        epoch: Epoch(1),
    };
    let frames = vec![
        Frame::Time(Time { sent_us: 30_000_000, echo: None }),
        Frame::Unreliable { channel: channel::STATE, payload: Bytes::from_static(b"state") },
        Frame::Unreliable { channel: channel::MESSAGE_UNRELIABLE, payload: Bytes::from_static(b"hi") },
    ];
    assert!(limits::FRAMES_PER_PACKET_MAX >= frames.len());
    vec![
        ("packet.numbered", Value::Packet(header, frames)),
        ("packet.ack_only", Value::Packet(Header { sequence: None, tick: None, ..header }, Vec::new())),
    ]
}
