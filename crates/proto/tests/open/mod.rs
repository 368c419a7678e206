//! The server's end of an open session, for tests that count its memory.

use bytes::Bytes;
use parlor_proto::session::{Answer, Session};
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::handshake::{Authority, Hello, Intent, Limits, RoomKind, Welcome};
use parlor_proto::wire::header::Header;
use parlor_proto::{Carrier, Epoch, Instant, LinkKind, MemberId, Packet, RoomId, SessionId, TickRate};

pub(crate) const NOW: Instant = Instant::from_millis(1);

pub(crate) fn open_server() -> Session {
    let code = "K7QM".parse().expect("it is a code");
    let hello = Hello { name: "ada".into(), ..Hello::new("tanks", Intent::Join { code, secret: None }) };
    let mut client = Session::client(hello, LinkKind::Quic, NOW);
    let mut server = Session::server(LinkKind::Quic, NOW);
    while let Some(packet) = client.poll_packet(NOW) {
        server.handle_packet(packet, NOW).expect("it is honest");
    }
    let welcome = Welcome {
        version: 1,
        session: SessionId(1),
        capabilities: 0,
        room: RoomId(1),
        code,
        kind: RoomKind::PlayerHosted,
        member: MemberId(1),
        authority: Authority::Hub,
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
        members: 1,
    };
    server.answer(Answer::Welcome(Box::new(welcome)), NOW);
    while server.poll_event().is_some() || server.poll_packet(NOW).is_some() {}
    server
}

pub(crate) fn packet(
    carrier: Carrier,
    number: Option<u16>,
    frames: impl IntoIterator<Item = Frame>,
) -> Packet {
    let mut bytes = Vec::new();
    Header { sequence: number, ..Header::default() }.write(&mut bytes);
    frames.into_iter().for_each(|frame| frame.write(&mut bytes));
    Packet { carrier, bytes: bytes.into() }
}
