//! One member of the crowd: a session on a link, or bare datagrams where a relay knows nothing else.

use super::{player, stamp};
use bytes::Bytes;
use parlor_proto::channel::{Channel, Codec};
use parlor_proto::session::{Event, Outgoing, Rejection, Session};
use parlor_proto::wire::envelope::{Downward, Recipient, Upward};
use parlor_proto::wire::handshake::{Auth, Hello, Intent, RoomKind, RoomSettings};
use parlor_proto::{Carrier, ChannelId, CloseReason, Instant, Lane, Packet, RoomCode, TickRate, limits};
use parlor_transport::{CloseCode, LinkSender};
use std::fmt;
use std::time::Duration;
use tokio::sync::oneshot;

/// Members of a room in every bench that sends.
pub(crate) const MEMBERS: u16 = 8;
/// Messages of each member, each second.
pub(crate) const RATE_HZ: u16 = 30;
/// The game that the members play.
pub(crate) const APP: &str = "parlor-bench";
/// On which channel they send.
const CHANNEL: ChannelId = ChannelId(limits::APP_CHANNEL_FIRST);
/// How soon a link that takes nothing is asked again, and a datagram that may have been lost is sent again.
const RETRY: Duration = Duration::from_millis(1);
const KNOCK_AGAIN: Duration = Duration::from_millis(100);

/// What a member wants.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    room: u32,
    others: u64,
    voice: WishedVoice,
}

#[derive(Clone, Debug)]
enum WishedVoice {
    Session(Box<Hello>),
    Datagrams,
}

impl Wish {
    /// A new room that will have so many members, the bench's `room`th. It has as many seats as a room can.
    pub(crate) fn create(room: u32, members: u16) -> Self {
        let tick_rate = TickRate::new(RATE_HZ).expect("the bench's rate is one that rooms may have");
        Self::session(
            room,
            members,
            Intent::Create(RoomSettings {
                tick_rate,
                ..RoomSettings::new(RoomKind::PlayerHosted, limits::MEMBERS_MAX_PLAYER_HOSTED)
            }),
        )
    }

    /// A seat in the room with this code.
    pub(crate) fn join(room: u32, members: u16, code: RoomCode) -> Self {
        Self::session(room, members, Intent::Join { code, secret: None })
    }

    /// The same, with an admission token.
    pub(crate) fn with_token(mut self, token: Option<String>) -> Self {
        if let (WishedVoice::Session(hello), Some(token)) = (&mut self.voice, token) {
            hello.auth = Auth::Token(token.into());
        }
        self
    }

    /// A seat at a relay that passes on each datagram to the others whose first one named the same room.
    pub(crate) fn datagrams(room: u32, members: u16) -> Self {
        Wish { room, others: u64::from(members) - 1, voice: WishedVoice::Datagrams }
    }

    fn session(room: u32, members: u16, intent: Intent) -> Self {
        let mut hello = Hello::new(APP, intent);
        let channel = Channel { id: CHANNEL, lane: Lane::Unreliable, codec: Codec::Raw, schema_hash: 0 };
        hello.channels.declare(channel).expect("it is the first number that is free for applications");
        Wish { room, others: u64::from(members) - 1, voice: WishedVoice::Session(Box::new(hello)) }
    }

    /// What the session says first, if there is one.
    pub(crate) fn into_hello(self) -> Option<Hello> {
        match self.voice {
            WishedVoice::Session(hello) => Some(*hello),
            WishedVoice::Datagrams => None,
        }
    }
}

/// What a member with a session says to all others.
pub(crate) fn speech(now: Instant, counted: Counted) -> Outgoing {
    let upward = Upward { to: Recipient::Others, stamp: false, payload: stamp::write(now, counted) };
    Outgoing::new(CHANNEL, upward.encode())
}

/// A seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// The room's code, where the server has codes.
    pub code: Option<RoomCode>,
}

/// Whether what is sent is part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Yes,
    No,
}

/// What a member said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speech {
    /// How many messages.
    pub messages: u64,
    /// How many others should hear each.
    pub others: u64,
}

/// A member.
pub(crate) struct Member {
    room: u32,
    others: u64,
    voice: Voice,
    link: LinkSender,
    /// A packet that the link did not take yet.
    held: Option<Packet>,
    rhythm: Option<Rhythm>,
    wakes_at: Option<Instant>,
    /// The receiver of the seat's result.
    answer: Option<oneshot::Sender<Result<Seat, Away>>>,
    /// Why its session ended.
    closed: Option<CloseReason>,
    has_seat: bool,
}

enum Voice {
    Session(Box<Session>),
    Datagrams { knocks_at: Option<Instant> },
}

struct Rhythm {
    next_at: Instant,
    period: Duration,
}

impl Member {
    pub(crate) fn new(
        link: LinkSender,
        wish: Wish,
        answer: oneshot::Sender<Result<Seat, Away>>,
        now: Instant,
    ) -> Self {
        let voice = match wish.voice {
            WishedVoice::Session(hello) => {
                Voice::Session(Box::new(Session::client(*hello, link.kind(), now)))
            }
            WishedVoice::Datagrams => Voice::Datagrams { knocks_at: Some(now) },
        };
        let (room, others) = (wish.room, wish.others);
        Member {
            room,
            others,
            voice,
            link,
            held: None,
            rhythm: None,
            wakes_at: None,
            answer: Some(answer),
            closed: None,
            has_seat: false,
        }
    }

    /// Its room, by the bench's count.
    pub(crate) fn room(&self) -> u32 {
        self.room
    }

    /// From `first` on it sends once in each period.
    pub(crate) fn start_sending(&mut self, first: Instant, period: Duration) {
        self.rhythm = Some(Rhythm { next_at: first, period });
    }

    /// When it is to be woken.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        self.wakes_at
    }

    /// The wake has come.
    pub(crate) fn awake(&mut self) {
        self.wakes_at = None;
    }

    /// Takes a packet in, and gives the latency of each message of the measurement, in µs.
    pub(crate) fn hear(&mut self, packet: Packet, now: Instant, mut arrived: impl FnMut(u32)) {
        match &mut self.voice {
            Voice::Session(session) => {
                // A fault ends the session, and the loss of the member says so.
                let _ = session.handle_packet(packet, now);
                while let Some(event) = session.poll_event() {
                    match event {
                        Event::Message(message) if message.channel == CHANNEL => {
                            let payload = Downward::decode(message.payload).map(|downward| downward.payload);
                            let latency_us = payload.ok().and_then(|payload| stamp::read(&payload, now));
                            latency_us.into_iter().for_each(&mut arrived);
                        }
                        Event::Welcome(welcome) => {
                            self.has_seat = true;
                            answer(&mut self.answer, Ok(Seat { code: Some(welcome.code) }));
                        }
                        Event::Closed(why) => self.closed = Some(why),
                        Event::Rejected(away) => answer(&mut self.answer, Err(Away::of(away))),
                        _ => {}
                    }
                }
            }
            Voice::Datagrams { knocks_at } => match stamp::read(&packet.bytes, now) {
                Some(latency_us) => arrived(latency_us),
                None if packet.bytes[..] == self.room.to_be_bytes() => {
                    (*knocks_at, self.has_seat) = (None, true);
                    answer(&mut self.answer, Ok(Seat { code: None }));
                }
                None => {}
            },
        }
    }

    /// Does what is due: says what it has to, lets time pass, and hands packets to the link.
    ///
    /// # Errors
    /// Its session is over.
    pub(crate) fn attend(&mut self, now: Instant, counted: Counted) -> Result<Speech, String> {
        let mut messages = 0;
        while let Some(rhythm) = self.rhythm.as_mut().filter(|rhythm| rhythm.next_at <= now) {
            rhythm.next_at += rhythm.period;
            messages += 1;
            match &mut self.voice {
                Voice::Session(session) => {
                    session.send(speech(now, counted)).map_err(|error| error.to_string())?;
                }
                Voice::Datagrams { .. } => {
                    offer(&self.link, &mut self.held, datagram(stamp::write(now, counted)));
                }
            }
        }
        if let Some(packet) = self.held.take() {
            offer(&self.link, &mut self.held, packet);
        }
        match &mut self.voice {
            Voice::Session(session) => {
                if session.poll_timeout().is_some_and(|due| due <= now) {
                    session.handle_timeout(now);
                }
                while self.held.is_none()
                    && let Some(packet) = session.poll_packet(now)
                {
                    offer(&self.link, &mut self.held, packet);
                }
                if session.is_finished() {
                    let why = self.closed.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                    return Err(format!("its session ended{why}"));
                }
            }
            Voice::Datagrams { knocks_at } => {
                if knocks_at.is_some_and(|at| at <= now) {
                    *knocks_at = Some(now + KNOCK_AGAIN);
                    let knock = datagram(Bytes::copy_from_slice(&self.room.to_be_bytes()));
                    offer(&self.link, &mut self.held, knock);
                }
            }
        }
        Ok(Speech { messages, others: self.others })
    }

    /// When it must be woken, if it is not to be before.
    pub(crate) fn next_wake(&mut self, now: Instant) -> Option<Instant> {
        let due = match &self.voice {
            Voice::Session(session) => session.poll_timeout(),
            Voice::Datagrams { knocks_at } => *knocks_at,
        };
        let speaks_at = self.rhythm.as_ref().map(|rhythm| rhythm.next_at);
        let retries_at = self.held.is_some().then(|| now + RETRY);
        let next = [due, speaks_at, retries_at].into_iter().flatten().min()?;
        if self.wakes_at.is_some_and(|at| at <= next) {
            return None;
        }
        self.wakes_at = Some(next);
        Some(next)
    }

    /// Says goodbye.
    pub(crate) fn leave(mut self, now: Instant) {
        if let Voice::Session(session) = &mut self.voice {
            session.close(CloseReason::Left, now);
            while let Some(packet) = session.poll_packet(now) {
                // A link that takes no goodbye is closed all the same.
                if self.link.send(packet).is_err() {
                    break;
                }
            }
        }
        self.link.close(CloseCode::DONE, "the bench is done");
    }

    /// Ends a lost member. Returns the reason if the member had a seat; otherwise the caller of its join gets the reason.
    pub(crate) fn lost(mut self, why: &str) -> Option<String> {
        if let Some(waiting) = self.answer.take() {
            // Whoever waited may have given up.
            let _ = waiting.send(Err(Away::Refused(why.to_owned())));
        }
        self.has_seat.then(|| why.to_owned())
    }
}

fn answer(waiting: &mut Option<oneshot::Sender<Result<Seat, Away>>>, seat: Result<Seat, Away>) {
    if let Some(waiting) = waiting.take() {
        // Whoever waited may have given up.
        let _ = waiting.send(seat);
    }
}

fn datagram(bytes: Bytes) -> Packet {
    Packet { carrier: Carrier::Datagram, bytes }
}

/// Hands a packet to the link; holds it if the link takes none now.
fn offer(link: &LinkSender, held: &mut Option<Packet>, packet: Packet) {
    if let Some(packet) = player::offer(link, packet) {
        *held = Some(packet);
    }
}

/// Why a member got no seat.
#[derive(Debug)]
pub(crate) enum Away {
    /// The room is at this address.
    Elsewhere(String),
    /// The server's words.
    Refused(String),
}

impl Away {
    fn of(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Redirect(redirect) => Away::Elsewhere(redirect.address),
            Rejection::RetryAfter(retry) => Away::Refused(retry.detail),
            Rejection::Refused(refusal) => Away::Refused(refusal.to_string()),
        }
    }
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Away::Elsewhere(address) => write!(f, "the room is at {address}"),
            Away::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Away {}
