//! The bodies of the fuzz targets: each takes any bytes and panics if a promise is broken.

use bytes::Bytes;
use parlor_proto::session::{Answer, Event, Outgoing, Rejection, Session};
use parlor_proto::wire::action::{Action, AskedBy};
use parlor_proto::wire::control::{ToHub, ToMember};
use parlor_proto::wire::cursor::Reader;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::{Downward, Upward};
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::handshake::{Authority, Hello, Intent, Limits, Refusal, RoomKind, Welcome};
use parlor_proto::wire::header::Header;
use parlor_proto::wire::replica::{OwnState, StateOf};
use parlor_proto::{
    Carrier, ChannelId, CloseReason, Epoch, Instant, LinkKind, MemberId, Packet, RoomId, SessionId, TickRate,
    limits,
};
use std::time::Duration;

/// A header and frames: what can be read is written so that it reads the same.
pub fn packet(bytes: &[u8]) {
    let mut reader = Reader::new(Bytes::copy_from_slice(bytes));
    let Ok(header) = Header::read(&mut reader) else { return };
    let mut written = Vec::new();
    header.write(&mut written);
    let head = bytes.len() - reader.remaining();
    assert_eq!(written, bytes[..head], "a header has one form");
    while !reader.is_empty() {
        let Ok(frame) = Frame::read(&mut reader) else { return };
        let Some(frame) = frame else { continue };
        let mut written = Vec::new();
        frame.write(&mut written);
        let mut again = Reader::new(written.into());
        assert_eq!(Frame::read(&mut again), Ok(Some(frame)));
        assert!(again.is_empty());
    }
}

/// Envelopes, room control, actions and members' own states, chosen by the first byte: what can be read is written so that it reads the same.
pub fn control(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else { return };
    let rest = Bytes::copy_from_slice(rest);
    match which % 8 {
        0 => {
            if let Ok(Some(message)) = ToMember::decode(rest) {
                assert_eq!(ToMember::decode(message.encode()), Ok(Some(message)));
            }
        }
        1 => {
            if let Ok(Some(message)) = ToHub::decode(rest.clone()) {
                assert_eq!(message.encode(), rest);
            }
        }
        2 => {
            if let Ok(message) = Upward::decode(rest.clone()) {
                assert_eq!(message.encode(), rest);
                match_data(message.payload);
            }
        }
        3 => {
            if let Ok(message) = Downward::decode(rest.clone()) {
                assert_eq!(message.encode(), rest);
                match_data(message.payload);
            }
        }
        4 => {
            if let Ok(message) = Action::decode(rest.clone()) {
                assert_eq!(message.encode(), rest);
            }
        }
        5 => {
            if let Ok(message) = AskedBy::decode(rest.clone()) {
                assert_eq!(message.encode(), rest);
            }
        }
        6 => {
            if let Ok(message) = OwnState::decode(rest.clone()) {
                assert_eq!(message.encode(), rest);
            }
        }
        _ => {
            if let Ok(message) = StateOf::decode(rest.clone()) {
                assert_eq!(message.encode(), rest);
            }
        }
    }
}

/// What stands in an envelope may be match data, which has one form.
fn match_data(payload: Bytes) {
    if let Ok(data) = MatchData::decode(payload.clone()) {
        assert_eq!(data.encode(), payload);
    }
}

/// What a script does with two sessions and the connection between them. The low bits of the first byte say what, the
/// highest at which end (server if it is set).
pub mod op {
    /// Hands bytes in: carrier, two bytes of length, the bytes.
    pub const FEED: u8 = 0;
    /// Lets time pass at both ends: two bytes of milliseconds.
    pub const WAIT: u8 = 1;
    /// Sends a message: channel, key, two bytes of length.
    pub const SEND: u8 = 2;
    /// Carries all packets of this end to the other.
    pub const CARRY: u8 = 3;
    /// Takes all packets of this end and loses them.
    pub const LOSE: u8 = 4;
    /// Breaks the connection at this end.
    pub const DETACH: u8 = 5;
    /// Attaches this end to another connection, of the kind that the next byte says.
    pub const ATTACH: u8 = 6;
    /// The server answers: the next byte says welcome (0) or no. At the client, it closes.
    pub const ANSWER: u8 = 7;
    /// Which end.
    pub const SERVER: u8 = 0x80;
}

/// A script of operations on a client and a server: nothing panics, and each end keeps its promises.
pub fn session(script: &[u8]) {
    let mut script = Script(script);
    let link = kind(script.byte());
    let mut now = Instant::from_millis(1);
    let mut ends = [
        Checked { session: Session::client(hello(), link, now), link, is_over: false },
        Checked { session: Session::server(link, now), link, is_over: false },
    ];
    while !script.0.is_empty() {
        let first = script.byte();
        let at = usize::from(first & op::SERVER != 0);
        match first & 7 {
            op::FEED => {
                let carrier =
                    [Carrier::Datagram, Carrier::Stream, Carrier::Isolated][usize::from(script.byte()) % 3];
                let len = script.number();
                let bytes = Bytes::copy_from_slice(script.take(len));
                ends[at].feed(Packet { carrier, bytes }, now);
            }
            op::WAIT => {
                now += Duration::from_millis(script.number() as u64);
                ends.iter_mut().for_each(|end| end.wait(now));
            }
            op::SEND => {
                let (channel, key) = (ChannelId(script.byte()), script.byte());
                let payload = Bytes::from(vec![key; script.number()]);
                let message = Outgoing { channel, key: key.into(), payload, delivery_id: None };
                let _ = ends[at].session.send(message);
            }
            op::CARRY => {
                for packet in ends[at].packets(now) {
                    ends[1 - at].feed(packet, now);
                }
            }
            op::LOSE => drop(ends[at].packets(now)),
            op::DETACH => ends[at].session.detach(),
            op::ATTACH => {
                ends[at].link = kind(script.byte());
                let link = ends[at].link;
                ends[at].session.attach(link, now);
            }
            _ if at == 0 => ends[at].session.close(CloseReason::Left, now),
            _ => ends[at].session.answer(answer(script.byte(), now), now),
        }
        ends.iter_mut().for_each(Checked::take_events);
    }
}

/// A session, and what must always hold for one.
struct Checked {
    session: Session,
    link: LinkKind,
    is_over: bool,
}

impl Checked {
    fn feed(&mut self, packet: Packet, now: Instant) {
        let result = self.session.handle_packet(packet, now);
        assert!(result.is_ok() || !self.session.is_open(), "who misbehaves is shut out");
        self.take_events();
        assert!(result.is_ok() || self.is_over, "and the caller is told");
    }

    fn wait(&mut self, now: Instant) {
        self.session.handle_timeout(now);
        assert!(self.session.poll_timeout().is_none_or(|at| at > now), "a timeout is due once");
        self.take_events();
    }

    fn packets(&mut self, now: Instant) -> Vec<Packet> {
        let mut packets = Vec::new();
        while let Some(packet) = self.session.poll_packet(now) {
            let max = match packet.carrier {
                Carrier::Datagram => limits::DATAGRAM_BYTES_MAX,
                Carrier::Stream | Carrier::Isolated => limits::STREAM_PACKET_BYTES_MAX,
            };
            assert!(packet.bytes.len() <= max, "a packet fits its carrier");
            assert!(self.link.has_datagrams() || packet.carrier == Carrier::Stream);
            packets.push(packet);
            assert!(packets.len() < 10_000, "it comes to an end");
        }
        packets
    }

    fn take_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            assert!(!self.is_over, "nothing comes after the end: {event:?}");
            self.is_over = matches!(event, Event::Closed(_) | Event::Rejected(_));
        }
    }
}

struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

fn kind(byte: u8) -> LinkKind {
    if byte.is_multiple_of(2) { LinkKind::Quic } else { LinkKind::WebSocket }
}

fn hello() -> Hello {
    Hello::new("fuzz", Intent::Join { code: "FUZZ".parse().expect("it is a code"), secret: None })
}

fn answer(byte: u8, now: Instant) -> Answer {
    if byte > 0 {
        return Answer::Rejected(Rejection::Refused(Refusal::ServerFull));
    }
    Answer::Welcome(Box::new(Welcome {
        version: limits::VERSION_MAX,
        session: SessionId(1),
        capabilities: 0,
        room: RoomId(1),
        code: "FUZZ".parse().expect("it is a code"),
        kind: RoomKind::PlayerHosted,
        member: MemberId(1),
        authority: Authority::Hub,
        epoch: Epoch(0),
        tick_rate: TickRate::DEFAULT,
        opened: now,
        now,
        max_players: 4,
        limits: Limits::of_this_build(),
        resume: None,
        grace_ms: 0,
        gone_ms: None,
        schema: Bytes::new(),
        members: 1,
    }))
}
