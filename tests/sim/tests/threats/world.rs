//! A hub with sessions that reach it without a network.

use bytes::Bytes;
use parlor_hub::{Config, Hub, HubEvent, Origin, Output};
use parlor_proto::session::{Event, Message, Outgoing, SendError, Session};
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::envelope::{Downward, Recipient, Upward};
use parlor_proto::wire::handshake::{Intent, RoomKind, RoomSettings};
use parlor_proto::{
    ChannelId, CloseReason, ConnectionId, Instant, LinkKind, MemberId, Packet, RoomCode, channel, limits,
};
use parlor_sim::hello;
use std::collections::BTreeMap;
use std::time::Duration;

/// How a peer takes packets from the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// At once.
    AtOnce,
    /// When [`World::deliver`] is called; until then they are in flight.
    Later,
    /// Never: its connection is full.
    Never,
}

/// A session and its received messages.
pub(crate) struct Peer {
    session: Session,
    reading: Reading,
    under_way: Vec<Packet>,
    is_connected: bool,
    pub(crate) member: Option<(RoomCode, MemberId)>,
    /// Received messages that the test has not taken.
    pub(crate) messages: Vec<Message>,
    pub(crate) closed: Option<CloseReason>,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    hub: Hub,
    peers: BTreeMap<ConnectionId, Peer>,
    next: u64,
    pub(crate) hub_events: Vec<HubEvent>,
    /// Observes every packet to a peer.
    #[allow(clippy::type_complexity)] // it is one function
    pub(crate) watch: Option<Box<dyn FnMut(ConnectionId, &Packet)>>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        World {
            now: Instant::from_millis(1_000_000),
            hub: Hub::new(Config::new(drawn)),
            peers: BTreeMap::new(),
            next: 0,
            hub_events: Vec::new(),
            watch: None,
        }
    }

    /// A room with its host and guests.
    pub(crate) fn room(&mut self, guests: usize) -> Vec<ConnectionId> {
        let host = self.open("host");
        self.settle();
        let code = self.peer(host).member.expect("the room is open").0;
        let mut members = vec![host];
        for _ in 0..guests {
            members.push(self.join(code));
        }
        self.settle();
        assert!(members.iter().all(|member| self.peer(*member).member.is_some()), "everybody is in");
        members
    }

    pub(crate) fn open(&mut self, name: &str) -> ConnectionId {
        let settings = RoomSettings::new(RoomKind::PlayerHosted, limits::MEMBERS_MAX_PLAYER_HOSTED);
        self.connect(Intent::Create(settings), name)
    }

    pub(crate) fn join(&mut self, code: RoomCode) -> ConnectionId {
        self.join_as(code, "guest")
    }

    pub(crate) fn join_as(&mut self, code: RoomCode, name: &str) -> ConnectionId {
        self.connect(Intent::Join { code, secret: None }, name)
    }

    pub(crate) fn connect(&mut self, intent: Intent, name: &str) -> ConnectionId {
        let connection = ConnectionId(self.next);
        self.next += 1;
        let mut hello = hello(intent);
        hello.name = name.to_owned();
        let peer = Peer {
            session: Session::client(hello, LinkKind::Quic, self.now),
            reading: Reading::AtOnce,
            under_way: Vec::new(),
            is_connected: true,
            member: None,
            messages: Vec::new(),
            closed: None,
        };
        self.peers.insert(connection, peer);
        self.hub.handle_connected(connection, LinkKind::Quic, Origin::LOCAL, self.now);
        self.carry(connection);
        connection
    }

    pub(crate) fn peer(&self, connection: ConnectionId) -> &Peer {
        &self.peers[&connection]
    }

    pub(crate) fn take_messages(&mut self, connection: ConnectionId) -> Vec<Message> {
        std::mem::take(&mut self.peers.get_mut(&connection).expect("it is known").messages)
    }

    /// Takes the messages that a peer received since the last call: from members, and from the hub.
    pub(crate) fn take_said(&mut self, connection: ConnectionId) -> (Vec<Downward>, Vec<ToMember>) {
        let (mut said, mut control) = (Vec::new(), Vec::new());
        for message in self.take_messages(connection) {
            match message.channel {
                channel::CONTROL => {
                    control.extend(ToMember::decode(message.payload).expect("the hub writes it well"));
                }
                channel::STATE | channel::INPUT => {}
                _ => said.push(Downward::decode(message.payload).expect("the hub writes it well")),
            }
        }
        (said, control)
    }

    pub(crate) fn is_in(&self, connection: ConnectionId) -> bool {
        let peer = self.peer(connection);
        peer.is_connected && peer.member.is_some() && peer.closed.is_none()
    }

    /// Whether a peer is in its room and was not forgotten.
    pub(crate) fn is_known_in(&self, connection: ConnectionId) -> bool {
        self.peers.contains_key(&connection) && self.is_in(connection)
    }

    /// Sets how a peer takes packets from here on.
    pub(crate) fn read(&mut self, connection: ConnectionId, reading: Reading) {
        self.peers.get_mut(&connection).expect("it is known").reading = reading;
    }

    /// Delivers a peer's message to the hub, which does not answer yet.
    pub(crate) fn say(&mut self, connection: ConnectionId, message: Outgoing) -> Result<(), SendError> {
        let peer = self.peers.get_mut(&connection).expect("it is known");
        let said = peer.session.send(message);
        self.carry(connection);
        said
    }

    pub(crate) fn send(
        &mut self,
        from: ConnectionId,
        channel: ChannelId,
        to: Recipient,
        payload: Bytes,
    ) -> Result<(), SendError> {
        let upward = Upward { to, stamp: false, payload };
        self.say(from, Outgoing::new(channel, upward.encode()))
    }

    /// Sends a peer's goodbye.
    pub(crate) fn leave(&mut self, connection: ConnectionId) {
        let now = self.now;
        let peer = self.peers.get_mut(&connection).expect("it is known");
        peer.session.close(CloseReason::Left, now);
        self.carry(connection);
    }

    /// Breaks a connection.
    pub(crate) fn cut(&mut self, connection: ConnectionId) {
        self.peers.get_mut(&connection).expect("it is known").is_connected = false;
        self.hub.handle_disconnected(connection, self.now);
    }

    /// Forgets a peer that is out.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.peers.remove(&connection);
    }

    fn carry(&mut self, connection: ConnectionId) -> bool {
        let mut carried = false;
        let Some(peer) = self.peers.get_mut(&connection).filter(|peer| peer.is_connected) else {
            return false;
        };
        while let Some(packet) = peer.session.poll_packet(self.now) {
            self.hub.handle_packet(connection, packet, self.now);
            carried = true;
        }
        carried
    }

    /// Delivers the packets in flight to a peer.
    pub(crate) fn deliver(&mut self, connection: ConnectionId) {
        let packets = std::mem::take(&mut self.peers.get_mut(&connection).expect("it is known").under_way);
        packets.into_iter().for_each(|packet| self.hear(connection, packet));
        self.carry(connection);
    }

    fn hear(&mut self, connection: ConnectionId, packet: Packet) {
        let Some(peer) = self.peers.get_mut(&connection) else { return };
        peer.session.handle_packet(packet, self.now).expect("the hub keeps to the protocol");
        while let Some(event) = peer.session.poll_event() {
            match event {
                Event::Welcome(welcome) => peer.member = Some((welcome.code, welcome.member)),
                Event::Message(message) => peer.messages.push(message),
                Event::Closed(reason) => peer.closed = Some(reason),
                _ => {}
            }
        }
    }

    /// Delivers and answers everything.
    pub(crate) fn settle(&mut self) {
        loop {
            self.hub.handle_timeout(self.now);
            self.hub.flush(self.now);
            let mut is_quiet = true;
            while let Some(output) = self.hub.poll_output() {
                is_quiet = false;
                self.obey(output);
            }
            let connections: Vec<ConnectionId> = self.peers.keys().copied().collect();
            for connection in connections {
                is_quiet &= !self.carry(connection);
            }
            if is_quiet {
                return;
            }
        }
    }

    fn obey(&mut self, output: Output) {
        match output {
            Output::Packet { connection, packet } => {
                if let Some(watch) = &mut self.watch {
                    watch(connection, &packet);
                }
                match self.peers.get_mut(&connection) {
                    Some(peer) if peer.reading != Reading::AtOnce => {
                        peer.under_way.push(packet);
                        if peer.reading == Reading::Never {
                            self.hub.handle_writable(connection, false, self.now);
                        }
                    }
                    _ => self.hear(connection, packet),
                }
            }
            Output::Close { connection, .. } => {
                if let Some(peer) = self.peers.get_mut(&connection) {
                    peer.is_connected = false;
                    peer.under_way.clear();
                }
            }
            Output::Event(hub_event) => self.hub_events.push(hub_event),
            Output::Recorded { .. } | Output::Kept { .. } => {}
            Output::Locate { .. } | Output::Enter { .. } | Output::Claim { .. } | Output::Left { .. } => {
                unreachable!("this hub is of no cluster")
            }
        }
    }

    /// Lets time pass, and delivers everything.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        for peer in self.peers.values_mut().filter(|peer| peer.is_connected) {
            if peer.session.poll_timeout().is_some_and(|at| at <= self.now) {
                peer.session.handle_timeout(self.now);
            }
        }
        self.settle();
    }
}
