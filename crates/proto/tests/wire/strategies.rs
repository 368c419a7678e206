//! Arbitrary values of each wire type, within bounds.

use bytes::Bytes;
use parlor_proto::channel::{Channel, ChannelTable, Codec, Lane};
use parlor_proto::wire::action::{Action, ActionRefusal, AskedBy, Decision, RefusedAction};
use parlor_proto::wire::control::{
    HandOver, HandOverRefusal, Handover, LeaveReason, MemberInfo, PlayerData, Presence, RoomTerms, ToHub,
    ToMember,
};
use parlor_proto::wire::cursor::VARINT_MAX;
use parlor_proto::wire::envelope::{Downward, Recipient, Sender, Upward};
use parlor_proto::wire::frame::{Echo, Fragment, Frame, Time};
use parlor_proto::wire::handshake::{
    Auth, Authority, Claim, Hello, Intent, Limits, Redirect, Refusal, Resume, ResumeRefusal, ResumeToken,
    Resumed, RetryAfter, RoomKind, RoomSettings, Seat, Welcome,
};
use parlor_proto::wire::header::{Ack, Header};
use parlor_proto::wire::path::{Candidates, PathOffer, PathRole};
use parlor_proto::wire::replica::{OwnState, StateOf};
use parlor_proto::{
    ChannelId, CloseReason, EntityId, Epoch, Instant, LinkKind, MemberId, PathId, RoomCode, RoomId,
    SessionId, Tick, TickRate, limits,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::time::Duration;

fn varint() -> impl Strategy<Value = u64> {
    (0..=VARINT_MAX, 0u32..62).prop_map(|(value, shift)| value >> shift)
}

fn text(max: usize) -> impl Strategy<Value = String> {
    // A character takes up to four bytes.
    proptest::string::string_regex(&format!(".{{0,{}}}", max / 4)).expect("a regular expression")
}

fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=max).prop_map(Bytes::from)
}

fn member() -> impl Strategy<Value = MemberId> {
    any::<u32>().prop_map(MemberId)
}

fn code() -> impl Strategy<Value = RoomCode> {
    prop_oneof!["[A-Z0-9]{4,12}", "[A-Z0-9]{16}"].prop_map(|text| text.parse().expect("it is a code"))
}

fn tick_rate() -> impl Strategy<Value = TickRate> {
    (1..=limits::TICK_HZ_MAX).prop_map(|hz| TickRate::new(hz).expect("it is within bounds"))
}

pub(crate) fn header() -> impl Strategy<Value = Header> {
    let ack = option::of((any::<u16>(), any::<u32>()).prop_map(|(newest, bits)| Ack { newest, bits }));
    let epoch = prop_oneof![Just(0), any::<u32>()].prop_map(Epoch);
    (option::of(any::<u16>()), ack, option::of(varint()), option::of(any::<u16>()), epoch).prop_map(
        |(sequence, ack, reliable_ack, tick, epoch)| Header { sequence, ack, reliable_ack, tick, epoch },
    )
}

fn table() -> impl Strategy<Value = ChannelTable> {
    let lane = prop_oneof![
        Just(Lane::ReliableOrdered),
        Just(Lane::ReliableUnordered),
        Just(Lane::Unreliable),
        Just(Lane::UnreliableSequenced)
    ];
    let codec = prop_oneof![Just(Codec::Parlor), Just(Codec::Typed), Just(Codec::Raw)];
    proptest::collection::btree_map(16u8..64, (lane, codec, any::<u64>()), 0..6).prop_map(|rows| {
        let mut table = ChannelTable::default();
        for (id, (lane, codec, schema_hash)) in rows {
            let row = Channel { id: ChannelId(id), lane, codec, schema_hash };
            table.declare(row).expect("each number is free");
        }
        table
    })
}

fn room_kind() -> impl Strategy<Value = RoomKind> {
    prop_oneof![Just(RoomKind::PlayerHosted), Just(RoomKind::Dedicated), Just(RoomKind::Match)]
}

fn settings() -> impl Strategy<Value = RoomSettings> {
    let secret = option::of(text(limits::LABEL_BYTES_MAX));
    let last = (text(limits::LABEL_BYTES_MAX), any::<bool>(), any::<u32>());
    let rest = (any::<u16>(), tick_rate(), option::of(any::<u32>()), bytes(300));
    (room_kind(), option::of(code()), secret, rest, last).prop_map(
        |(
            kind,
            code,
            secret,
            (max_players, tick_rate, host_timeout_ms, schema),
            (label, keep, spectator_delay_ms),
        )| {
            RoomSettings {
                kind,
                code,
                secret,
                max_players,
                tick_rate,
                host_timeout_ms,
                schema,
                label,
                keep,
                spectator_delay_ms,
            }
        },
    )
}

fn token() -> impl Strategy<Value = ResumeToken> {
    any::<[u8; 32]>().prop_map(ResumeToken)
}

fn resume() -> impl Strategy<Value = Resume> {
    (any::<u128>(), token()).prop_map(|(session, token)| Resume { session: SessionId(session), token })
}

fn claim() -> impl Strategy<Value = Claim> {
    (bytes(limits::PASS_BYTES_MAX), token(), varint(), option::of(varint()), varint())
        .prop_map(|(pass, token, term, room_time_us, order)| Claim { pass, token, term, room_time_us, order })
}

fn seat() -> impl Strategy<Value = Seat> {
    let elsewhere = vec(text(limits::ADDRESS_BYTES_MAX), 0..=limits::ELSEWHERE_MAX);
    let places = (elsewhere, option::of(text(limits::ADDRESS_BYTES_MAX)));
    (varint(), any::<[u8; 16]>(), bytes(limits::PASS_BYTES_MAX), any::<u32>(), places).prop_map(
        |(term, uid, pass, hedge_ms, (elsewhere, moves_to))| Seat {
            term,
            uid,
            pass,
            hedge_ms,
            elsewhere,
            moves_to,
        },
    )
}

fn hello() -> impl Strategy<Value = Hello> {
    let auth = prop_oneof![Just(Auth::Anonymous), bytes(300).prop_map(Auth::Token)];
    let intent = prop_oneof![
        settings().prop_map(Intent::Create),
        (code(), option::of(text(limits::LABEL_BYTES_MAX)))
            .prop_map(|(code, secret)| Intent::Join { code, secret }),
        resume().prop_map(Intent::Resume),
        claim().prop_map(|claim| Intent::Claim(Box::new(claim))),
    ];
    let texts = (text(limits::LABEL_BYTES_MAX), text(limits::LABEL_BYTES_MAX), text(limits::NAME_BYTES_MAX));
    let versions = (0..=limits::VERSION_MAX, limits::VERSION_MIN..=u16::MAX)
        .prop_filter("some version is shared", |(min, max)| min <= max);
    let tables = (table(), any::<u64>().prop_map(NonZeroU64::new));
    (versions, texts, any::<u64>(), auth, any::<Option<[u8; 32]>>(), tables, intent).prop_map(
        |(
            (version_min, version_max),
            (app, environment, name),
            capabilities,
            auth,
            key,
            (channels, schema),
            intent,
        )| {
            Hello {
                version_min,
                version_max,
                app,
                environment,
                capabilities,
                auth,
                key,
                name,
                channels,
                schema,
                intent,
            }
        },
    )
}

fn welcome() -> impl Strategy<Value = Welcome> {
    let authority = prop_oneof![Just(Authority::Hub), member().prop_map(Authority::Member)];
    let ids = (any::<u128>(), varint(), code(), member(), authority, any::<u32>());
    let times = (tick_rate(), varint(), varint(), bytes(100));
    let limits = (any::<[u32; 4]>(), option::of(token()), any::<u32>(), option::of(any::<u32>()));
    let members = 0..=limits::MEMBERS_MAX_SERVER_RUN;
    ((any::<u16>(), any::<u64>(), room_kind(), any::<u16>(), members), ids, times, limits).prop_map(
        |(
            (version, capabilities, kind, max_players, members),
            ids,
            (tick_rate, opened, now, schema),
            limits,
        )| {
            let (session, room, code, member, authority, epoch) = ids;
            let (limits, resume, grace_ms, gone_ms) = limits;
            let [message_bytes, datagram_bytes, keep_alive_ms, silence_ms] = limits;
            Welcome {
                version,
                session: SessionId(session),
                capabilities,
                room: RoomId(room),
                code,
                kind,
                member,
                authority,
                epoch: Epoch(epoch),
                tick_rate,
                opened: Instant::from_micros(opened),
                now: Instant::from_micros(now),
                max_players,
                limits: Limits { message_bytes, datagram_bytes, keep_alive_ms, silence_ms },
                resume,
                grace_ms,
                gone_ms,
                schema,
                members,
            }
        },
    )
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![
        any::<(u16, u16)>().prop_map(|(min, max)| Refusal::Version { min, max }),
        text(limits::LABEL_BYTES_MAX).prop_map(|expected| Refusal::App { expected }),
        Just(Refusal::NoSuchRoom),
        any::<u16>().prop_map(|max| Refusal::RoomFull { max }),
        any::<u16>().prop_map(|max| Refusal::SpectatorsFull { max }),
        Just(Refusal::CodeTaken),
        any::<u8>().prop_map(|id| Refusal::Channels { channel: ChannelId(id) }),
        Just(Refusal::Unauthorized),
        text(limits::REASON_BYTES_MAX).prop_map(|detail| Refusal::BadRequest { detail }),
        Just(Refusal::ServerFull),
        any::<u64>().prop_map(|hash| Refusal::Schema { hash }),
        room_kind().prop_map(|kind| Refusal::RoomKind { kind }),
        prop_oneof![Just(ResumeRefusal::Gone), Just(ResumeRefusal::Token), Just(ResumeRefusal::GraceOver)]
            .prop_map(|why| Refusal::Resume { why }),
        Just(Refusal::NotKept),
        Just(Refusal::KeepNeedsUser),
        text(limits::REASON_BYTES_MAX).prop_map(|detail| Refusal::KeepQuota { detail }),
        (16u8..).prop_map(|code| Refusal::Unknown { code }),
    ]
}

fn close_reason() -> impl Strategy<Value = CloseReason> {
    let detail = || text(limits::REASON_BYTES_MAX);
    prop_oneof![
        Just(CloseReason::Left),
        detail().prop_map(|reason| CloseReason::Kicked { reason }),
        Just(CloseReason::HostLeft),
        Just(CloseReason::HostGone),
        detail().prop_map(|reason| CloseReason::RoomEnded { reason }),
        Just(CloseReason::ServerShutdown),
        Just(CloseReason::TimedOut),
        detail().prop_map(|detail| CloseReason::ConnectionLost { detail }),
        detail().prop_map(|detail| CloseReason::Misbehaved { detail }),
        Just(CloseReason::TooSlow),
        Just(CloseReason::NotPolled),
        Just(CloseReason::TokenReused),
        detail().prop_map(|address| CloseReason::Moved { address }),
        (13u8.., detail()).prop_map(|(code, detail)| CloseReason::Unknown { code, detail }),
    ]
}

fn fragment() -> impl Strategy<Value = Fragment> {
    (any::<u16>(), 2..=limits::FRAGMENTS_MAX, any::<prop::sample::Index>(), 1..=limits::FRAGMENT_BYTES)
        .prop_map(|(id, count, index, tail)| {
            let index = index.index(count);
            let len = if index + 1 == count { tail } else { limits::FRAGMENT_BYTES };
            let byte = |number: usize| u8::try_from(number).expect("it fits a byte");
            Fragment { id, index: byte(index), count: byte(count), part: vec![byte(index); len].into() }
        })
}

pub(crate) fn frame() -> impl Strategy<Value = Frame> {
    let echo = (varint(), varint()).prop_map(|(sent_us, held_us)| Echo { sent_us, held_us });
    let channel = || any::<u8>().prop_map(ChannelId);
    prop_oneof![
        hello().prop_map(|hello| Frame::Hello(Box::new(hello))),
        (limits::VERSION_MAX + 1.., any::<u16>())
            .prop_map(|(version_min, version_max)| Frame::ForeignHello { version_min, version_max }),
        welcome().prop_map(|welcome| Frame::Welcome(Box::new(welcome))),
        text(limits::ADDRESS_BYTES_MAX).prop_map(|address| Frame::Redirect(Redirect { address })),
        (any::<u32>(), text(limits::REASON_BYTES_MAX)).prop_map(|(ms, detail)| {
            Frame::RetryAfter(RetryAfter { after: Duration::from_millis(ms.into()), detail })
        }),
        refusal().prop_map(Frame::Refused),
        close_reason().prop_map(Frame::Close),
        (varint(), option::of(echo)).prop_map(|(sent_us, echo)| Frame::Time(Time { sent_us, echo })),
        resume().prop_map(Frame::Resume),
        token().prop_map(|token| Frame::Resumed(Resumed { token })),
        seat().prop_map(|seat| Frame::Seat(Box::new(seat))),
        (channel(), bytes(100)).prop_map(|(channel, payload)| Frame::Unreliable { channel, payload }),
        (channel(), any::<u32>(), bytes(100)).prop_map(|(channel, key, payload)| Frame::Sequenced {
            channel,
            key,
            payload
        }),
        (channel(), varint(), bytes(100)).prop_map(|(channel, number, payload)| Frame::Reliable {
            channel,
            number,
            payload
        }),
        (channel(), varint(), varint(), bytes(100)).prop_map(|(channel, number, order, payload)| {
            Frame::Ordered { channel, number, order, payload }
        }),
        fragment().prop_map(Frame::Fragment),
    ]
}

fn presence() -> impl Strategy<Value = Presence> {
    let flags = (any::<bool>(), any::<bool>());
    (member(), flags, option::of(any::<u32>())).prop_map(|(member, (connected, slow), rtt_ms)| Presence {
        member,
        connected,
        slow,
        rtt_ms,
    })
}

fn player_data() -> impl Strategy<Value = PlayerData> {
    (member(), text(limits::LABEL_BYTES_MAX), option::of(bytes(50)))
        .prop_map(|(member, key, value)| PlayerData { member, key, value })
}

fn member_info() -> impl Strategy<Value = MemberInfo> {
    let link = any::<u8>().prop_map(LinkKind::from_wire);
    let data = vec((text(limits::LABEL_BYTES_MAX), bytes(50)), 0..4);
    let names = (text(limits::NAME_BYTES_MAX), option::of(text(limits::USER_BYTES_MAX)));
    (names, link, presence(), data).prop_map(|((name, user), link, presence, data)| MemberInfo {
        id: presence.member,
        name,
        user,
        link,
        presence,
        data,
    })
}

fn leave_reason() -> impl Strategy<Value = LeaveReason> {
    prop_oneof![
        Just(LeaveReason::Left),
        text(limits::REASON_BYTES_MAX).prop_map(|reason| LeaveReason::Kicked { reason }),
        Just(LeaveReason::ConnectionLost),
        Just(LeaveReason::TimedOut),
        Just(LeaveReason::Misbehaved),
        Just(LeaveReason::TooSlow),
        (6u8..).prop_map(|code| LeaveReason::Unknown { code }),
    ]
}

pub(crate) fn to_member() -> impl Strategy<Value = ToMember> {
    prop_oneof![
        member_info().prop_map(ToMember::Joined),
        (member(), leave_reason()).prop_map(|(member, reason)| ToMember::Left { member, reason }),
        (member(), leave_reason()).prop_map(|(member, reason)| ToMember::Away { member, reason }),
        player_data().prop_map(ToMember::Data),
        vec(presence(), 0..10).prop_map(ToMember::Presence),
        Just(ToMember::Throttled),
        option::of(member()).prop_map(ToMember::Primary),
        handover().prop_map(ToMember::Authority),
        any::<u32>().prop_map(|epoch| ToMember::GoesOn { epoch: Epoch(epoch) }),
        refused().prop_map(ToMember::ActionRefused),
        decisions().prop_map(ToMember::ActionsDecided),
        path_offer().prop_map(ToMember::Path),
        (member(), any::<bool>()).prop_map(|(member, direct)| ToMember::Direct { member, direct }),
        vec(member(), 0..10).prop_map(ToMember::Spectators),
        hand_over_refusal().prop_map(ToMember::NotHandedOver),
        (any::<bool>(), any::<u32>())
            .prop_map(|(gap, epoch)| ToMember::Reopened { gap, epoch: Epoch(epoch) }),
    ]
}

fn hand_over_refusal() -> impl Strategy<Value = HandOverRefusal> {
    use HandOverRefusal::*;
    proptest::sample::select(vec![
        NoMigration,
        NoSuchPlayer,
        NotReady,
        Spectator,
        TooSoon,
        Nobody,
        UnderWay,
        Unknown { code: 7 },
    ])
}

fn addresses() -> impl Strategy<Value = Vec<SocketAddr>> {
    let address = (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port));
    vec(address, 0..=limits::PATH_CANDIDATES_MAX)
}

fn path_offer() -> impl Strategy<Value = PathOffer> {
    let flags = any::<(bool, bool, bool)>();
    let fields = (any::<u64>(), member(), any::<[u8; 32]>(), flags, addresses());
    fields.prop_map(|(id, peer, fingerprint, (accepts, has_authority, passes_on), candidates)| {
        let role = if accepts { PathRole::Accept } else { PathRole::Dial };
        PathOffer { id: PathId(id), peer, fingerprint, role, has_authority, passes_on, candidates }
    })
}

fn handover() -> impl Strategy<Value = Handover> {
    (any::<u32>(), member(), option::of(any::<u32>()), any::<u16>(), any::<u16>()).prop_map(
        |(epoch, member, tick, slots, generation)| Handover {
            epoch: Epoch(epoch),
            member,
            tick: tick.map(Tick),
            slots,
            generation,
        },
    )
}

fn entity() -> impl Strategy<Value = EntityId> {
    any::<u32>().prop_map(EntityId::from_bits)
}

fn refused() -> impl Strategy<Value = RefusedAction> {
    let why = action_refusal(6);
    (entity(), action_name(), why).prop_map(|(entity, name, why)| RefusedAction { entity, name, why })
}

/// Refusals of one byte. Codes from `unknown` on mean nothing yet.
fn action_refusal(unknown: u8) -> impl Strategy<Value = ActionRefusal> {
    prop_oneof![
        Just(ActionRefusal::NoSuchEntity),
        Just(ActionRefusal::NotOwner),
        Just(ActionRefusal::NotDefined),
        Just(ActionRefusal::Unreadable),
        Just(ActionRefusal::Late),
        Just(ActionRefusal::HostChanged),
        (unknown..u8::MAX).prop_map(|code| ActionRefusal::Unknown { code }),
    ]
}

fn decisions() -> impl Strategy<Value = Vec<Decision>> {
    let by_game = action_name().prop_map(|reason| ActionRefusal::ByGame { reason });
    let decision = (any::<u32>(), option::of(prop_oneof![action_refusal(7), by_game]))
        .prop_map(|(number, refusal)| Decision { number, refusal });
    vec(decision, 0..=limits::ACTION_DECISIONS_MAX)
}

fn action_name() -> impl Strategy<Value = String> {
    text(limits::LABEL_BYTES_MAX).prop_filter("a name is not empty", |name| !name.is_empty())
}

pub(crate) fn action() -> impl Strategy<Value = Action> {
    (entity(), action_name(), bytes(50)).prop_map(|(entity, name, value)| Action { entity, name, value })
}

pub(crate) fn state_of() -> impl Strategy<Value = StateOf> {
    (member(), own_state()).prop_map(|(source, state)| StateOf { source, state })
}

pub(crate) fn own_state() -> impl Strategy<Value = OwnState> {
    (option::of(bytes(50)), bytes(50)).prop_map(|(schema, packet)| OwnState { schema, packet })
}

pub(crate) fn asked_by() -> impl Strategy<Value = AskedBy> {
    let epoch = any::<u32>().prop_map(Epoch);
    (member(), epoch, action()).prop_map(|(from, epoch, action)| AskedBy { from, epoch, action })
}

pub(crate) fn to_hub() -> impl Strategy<Value = ToHub> {
    prop_oneof![
        player_data().prop_map(ToHub::SetData),
        (member(), text(limits::REASON_BYTES_MAX))
            .prop_map(|(member, reason)| ToHub::Kick { member, reason }),
        (member(), refused()).prop_map(|(member, refused)| ToHub::RefuseAction { member, refused }),
        (member(), decisions()).prop_map(|(member, decisions)| ToHub::DecideActions { member, decisions }),
        any::<u32>().prop_map(|epoch| ToHub::Follow { epoch: Epoch(epoch) }),
        (addresses(), any::<(bool, bool)>()).prop_map(|(addresses, (may_tell_observed, wants_all))| {
            ToHub::Candidates(Candidates { addresses, may_tell_observed, wants_all })
        }),
        any::<u64>().prop_map(|id| ToHub::PathUp { id: PathId(id) }),
        (any::<u64>(), any::<bool>()).prop_map(|(id, was_up)| ToHub::PathDown { id: PathId(id), was_up }),
        (option::of(any::<u32>()), option::of(any::<u32>()))
            .prop_map(|(presence_ms, grace_ms)| ToHub::Terms(RoomTerms { presence_ms, grace_ms })),
        (0..=limits::SPECTATORS_MAX).prop_map(|most| ToHub::Spectators { most }),
        (any::<u32>(), option::of(member()))
            .prop_map(|(epoch, to)| ToHub::HandOver(HandOver { epoch: Epoch(epoch), to })),
    ]
}

pub(crate) fn upward() -> impl Strategy<Value = Upward> {
    let to = prop_oneof![
        Just(Recipient::Authority),
        Just(Recipient::Others),
        member().prop_map(Recipient::Member),
        btree_set(member(), 0..20).prop_map(|members| Recipient::Members(members.into_iter().collect())),
        Just(Recipient::Everyone),
        Just(Recipient::Primary),
        btree_set(member(), 0..20).prop_map(|members| Recipient::Except(members.into_iter().collect())),
    ];
    (to, any::<bool>(), bytes(50)).prop_map(|(to, stamp, payload)| Upward { to, stamp, payload })
}

pub(crate) fn downward() -> impl Strategy<Value = Downward> {
    let from = prop_oneof![Just(Sender::Hub), member().prop_map(Sender::Member)];
    let epoch = option::of(any::<u32>().prop_map(Epoch));
    let parts = (from, option::of(varint()), epoch, bytes(50));
    parts.prop_map(|(from, order, authority_of, payload)| Downward { from, order, authority_of, payload })
}
