//! A hub without a room, which a test makes say anything.

use bytes::Bytes;
use parlor_client_core::RoomCore;
use parlor_proto::session::{self, Answer, Outgoing, Session};
use parlor_proto::wire::control::{MemberInfo, Presence, ToHub, ToMember};
use parlor_proto::wire::handshake::{Authority, Limits, RoomKind, Welcome};
use parlor_proto::{Epoch, Instant, LinkKind, MemberId, RoomId, SessionId, TickRate, channel};

/// When a test begins.
pub(crate) const NOW: Instant = Instant::from_millis(1_000);

/// The welcome of the host of a room with two members.
pub(crate) fn welcome(capabilities: u64) -> Welcome {
    Welcome {
        version: 1,
        session: SessionId(1),
        capabilities,
        room: RoomId(1),
        code: "K7QM".parse().expect("it is a code"),
        kind: RoomKind::PlayerHosted,
        member: MemberId(0),
        authority: Authority::Member(MemberId(0)),
        epoch: Epoch(0),
        tick_rate: TickRate::DEFAULT,
        opened: NOW,
        now: NOW,
        max_players: 4,
        limits: Limits::of_this_build(),
        resume: None,
        grace_ms: 0,
        gone_ms: None,
        schema: Bytes::new(),
        members: 2,
    }
}

/// Sends room control.
pub(crate) fn tell(hub: &mut Session, control: &ToMember) {
    hub.send(Outgoing::new(channel::CONTROL, control.encode())).expect("it is open");
}

/// Admits a member to a room with these members.
pub(crate) fn admit(hub: &mut Session, welcome: Welcome, members: &[u32], now: Instant) {
    hub.answer(Answer::Welcome(Box::new(welcome)), now);
    members.iter().for_each(|id| tell(hub, &joined(*id, true)));
}

/// The announcement of a member.
pub(crate) fn joined(id: u32, connected: bool) -> ToMember {
    let id = MemberId(id);
    let presence = Presence { member: id, connected, slow: false, rtt_ms: None };
    let (name, link) = (format!("player {id}"), LinkKind::WebSocket);
    ToMember::Joined(MemberInfo { id, name, user: None, link, presence, data: Vec::new() })
}

/// Exchanges all packets. Returns the messages that the hub received.
pub(crate) fn exchange(room: &mut RoomCore, hub: &mut Session, now: Instant) -> Vec<session::Message> {
    for _ in 0..4 {
        while let Some(packet) = room.poll_packet(now) {
            hub.handle_packet(packet, now).expect("the room keeps to the protocol");
        }
        while let Some(packet) = hub.poll_packet(now) {
            room.handle_packet(packet, now);
        }
    }
    messages(hub)
}

/// The messages that a hub received.
pub(crate) fn messages(hub: &mut Session) -> Vec<session::Message> {
    let events = std::iter::from_fn(|| hub.poll_event());
    let messages = events.filter_map(|event| match event {
        session::Event::Message(message) => Some(message),
        _ => None,
    });
    messages.collect()
}

/// The room control among messages.
pub(crate) fn control(messages: Vec<session::Message>) -> Vec<ToHub> {
    let control = messages.into_iter().filter(|message| message.channel == channel::CONTROL);
    control.filter_map(|message| ToHub::decode(message.payload).expect("it can be read")).collect()
}
