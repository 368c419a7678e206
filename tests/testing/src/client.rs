//! A raw member of a room: a session, a link, and a task that keeps both alive, so that no test depends on
//! its polling rate.

use bytes::Bytes;
use core::time::Duration;
use parlor_proto::session::{Event, Message, Outgoing, Rejection, SendError, Session};
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::envelope::{Downward, Recipient, Sender, Upward};
use parlor_proto::wire::handshake::{Hello, Intent, Refusal, RoomKind, RoomSettings, Welcome};
use parlor_proto::{CloseReason, Instant, MemberId, Packet, RoomCode, channel};
use parlor_transport::{Link, LinkClosed};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Only a hang lasts this long.
pub const HANG: Duration = Duration::from_secs(60);

/// What a future gives; it panics where the future hangs.
pub async fn within<F: Future>(future: F) -> F::Output {
    timeout(HANG, future).await.expect("this takes milliseconds; it hangs")
}

/// What a member sees.
#[derive(Debug)]
pub enum Seen {
    /// What the session tells.
    Event(Event),
    /// The link is over, and nothing comes after it.
    Ended(LinkClosed),
}

enum Command {
    Send(Outgoing),
    Raw(Packet),
    Close(CloseReason),
    /// Reads nothing until it is resumed.
    Pause(bool),
}

/// A member.
pub struct Client {
    commands: mpsc::Sender<Command>,
    seen: mpsc::Receiver<Seen>,
}

impl Client {
    /// Says hello over a link.
    pub fn new(link: Link, hello: Hello) -> Self {
        let (commands, command_queue) = mpsc::channel(4);
        let (seen_queue, seen) = mpsc::channel(100_000);
        tokio::spawn(run(link, hello, command_queue, seen_queue));
        Client { commands, seen }
    }

    /// The next that it sees.
    pub async fn seen(&mut self) -> Seen {
        within(self.seen.recv()).await.expect("a link tells its end before it is gone")
    }

    /// The next event.
    pub async fn event(&mut self) -> Event {
        match self.seen().await {
            Seen::Event(event) => event,
            Seen::Ended(end) => panic!("the link is over: {end}"),
        }
    }

    /// The welcome, which comes first.
    pub async fn welcome(&mut self) -> Welcome {
        match self.event().await {
            Event::Welcome(welcome) => *welcome,
            event => panic!("{event:?}"),
        }
    }

    /// The refusal, which comes first.
    pub async fn refusal(&mut self) -> Refusal {
        match self.event().await {
            Event::Rejected(Rejection::Refused(refusal)) => refusal,
            event => panic!("{event:?}"),
        }
    }

    /// The next message that is neither about presence, the primary nor state.
    pub async fn message(&mut self) -> Message {
        loop {
            match self.event().await {
                Event::Seat(_) => {}
                Event::Message(message) if message.channel == channel::STATE => {}
                Event::Message(message) => {
                    let control = (message.channel == channel::CONTROL).then(|| message.payload.clone());
                    let control = control.and_then(|bytes| ToMember::decode(bytes).ok().flatten());
                    if !matches!(control, Some(ToMember::Presence(_) | ToMember::Primary(_))) {
                        return message;
                    }
                }
                event => panic!("{event:?}"),
            }
        }
    }

    /// The next message of the hub.
    pub async fn control(&mut self) -> ToMember {
        let message = self.message().await;
        assert_eq!(message.channel, channel::CONTROL);
        ToMember::decode(message.payload).expect("the hub writes it well").expect("it is known")
    }

    /// Takes the news of who is there, and gives their ids.
    pub async fn joined(&mut self, count: usize) -> Vec<MemberId> {
        let mut ids = Vec::new();
        while ids.len() < count {
            match self.control().await {
                ToMember::Joined(member) => ids.push(member.id),
                other => panic!("{other:?}"),
            }
        }
        ids
    }

    /// The next message of another member.
    pub async fn heard(&mut self) -> (MemberId, Bytes) {
        let message = self.message().await;
        assert_eq!(message.channel, channel::MESSAGE_ORDERED);
        let Downward { from, payload, .. } =
            Downward::decode(message.payload).expect("the hub writes it well");
        match from {
            Sender::Member(member) => (member, payload),
            Sender::Hub => panic!("the hub says nothing by itself"),
        }
    }

    /// Why the session ended.
    pub async fn closed(&mut self) -> CloseReason {
        loop {
            match self.event().await {
                Event::Closed(reason) => return reason,
                Event::Rejected(away) => panic!("{away:?}"),
                _ => {}
            }
        }
    }

    /// How the link ended, whatever came before.
    pub async fn ended(&mut self) -> LinkClosed {
        loop {
            if let Seen::Ended(end) = self.seen().await {
                return end;
            }
        }
    }

    /// Says something to all others.
    pub async fn say(&self, payload: impl Into<Bytes>) {
        let upward = Upward { to: Recipient::Others, stamp: false, payload: payload.into() };
        self.command(Command::Send(Outgoing::new(channel::MESSAGE_ORDERED, upward.encode()))).await;
    }

    /// Sends data of a match to all members, the sender too.
    pub async fn data(&self, op: i64, payload: impl Into<Bytes>) {
        let payload = MatchData { op, payload: payload.into() }.encode();
        let upward = Upward { to: Recipient::Everyone, stamp: false, payload };
        self.command(Command::Send(Outgoing::new(channel::MATCH_DATA, upward.encode()))).await;
    }

    /// The next data of a match: its order, whose, and what.
    pub async fn got(&mut self) -> (u64, MemberId, MatchData) {
        loop {
            let message = self.message().await;
            if message.channel != channel::MATCH_DATA {
                continue;
            }
            let Downward { from, order, payload, .. } =
                Downward::decode(message.payload).expect("the hub writes it well");
            let Sender::Member(member) = from else { panic!("the hub says nothing by itself") };
            let data = MatchData::decode(payload).expect("the hub checks it");
            return (order.expect("what arrives has an order"), member, data);
        }
    }

    /// Sends a packet that no session made.
    pub async fn raw(&self, packet: Packet) {
        self.command(Command::Raw(packet)).await;
    }

    /// Leaves the room.
    pub async fn leave(&self) {
        self.command(Command::Close(CloseReason::Left)).await;
    }

    /// Reads nothing until it is resumed.
    pub async fn pause(&self, pause: bool) {
        self.command(Command::Pause(pause)).await;
    }

    async fn command(&self, command: Command) {
        // A link that is over takes no commands; the test sees its end.
        let _ = within(self.commands.send(command)).await;
    }
}

/// Ends, and drops the link without a goodbye, when the client is dropped.
async fn run(mut link: Link, hello: Hello, mut commands: mpsc::Receiver<Command>, seen: mpsc::Sender<Seen>) {
    let started = tokio::time::Instant::now();
    let now = || Instant::from_millis(1) + started.elapsed();
    let mut session = Session::client(hello, link.kind(), now());
    let mut waiting: Option<Outgoing> = None;
    let mut is_paused = false;
    loop {
        if let Some(message) = waiting.take() {
            match session.send(message.clone()) {
                Ok(()) => {}
                Err(SendError::Full) => waiting = Some(message),
                Err(SendError::Misuse(_)) => assert!(!session.is_open(), "the test sends what may be sent"),
            }
        }
        while let Some(packet) = session.poll_packet(now()) {
            let carrier = packet.carrier;
            let mut next = Some(packet);
            while let Some(Err(parlor_transport::SendError::NotWritable(packet))) =
                next.take().map(|packet| link.send(packet))
            {
                link.sender.writable(carrier).await;
                next = Some(packet);
            }
        }
        while let Some(event) = session.poll_event() {
            if seen.send(Seen::Event(event)).await.is_err() {
                return;
            }
        }
        let due = session.poll_timeout().map_or(HANG, |at| at.saturating_since(now()));
        let (sender, receiver) = (&link.sender, &mut link.receiver);
        tokio::select! {
            // Without a packet until then, it is the session's time to do something.
            received = timeout(due, receiver.recv()), if !is_paused => match received {
                Ok(Ok(packet)) => session.handle_packet(packet, now()).expect("a server keeps to the protocol"),
                Ok(Err(end)) => {
                    // The test may have gone.
                    let _ = seen.send(Seen::Ended(end)).await;
                    return;
                }
                Err(_) => session.handle_timeout(now()),
            },
            command = commands.recv(), if waiting.is_none() => match command {
                Some(Command::Send(message)) => waiting = Some(message),
                Some(Command::Raw(packet)) => drop(sender.send(packet)),
                Some(Command::Close(reason)) => session.close(reason, now()),
                Some(Command::Pause(pause)) => is_paused = pause,
                None => return,
            },
        }
    }
}

/// A hello for a new room.
pub fn creating(code: Option<RoomCode>, secret: Option<&str>, max_players: u16) -> Hello {
    hello(Intent::Create(RoomSettings {
        code,
        secret: secret.map(str::to_owned),
        ..RoomSettings::new(RoomKind::PlayerHosted, max_players)
    }))
}

/// A hello for a match, which is kept.
pub fn opening(label: &str, max_players: u16) -> Hello {
    hello(Intent::Create(RoomSettings {
        label: label.into(),
        keep: true,
        ..RoomSettings::new(RoomKind::Match, max_players)
    }))
}

/// A hello for a room that exists.
pub fn joining(code: RoomCode, secret: Option<&str>) -> Hello {
    hello(Intent::Join { code, secret: secret.map(str::to_owned) })
}

fn hello(intent: Intent) -> Hello {
    Hello { name: "ada".into(), ..Hello::new("tanks", intent) }
}
