//! Messages: the receivers of each, and the guarantees of each lane.

use super::{Divergence, Model, RoomIndex, Verdict, ensure};
use crate::peer::PeerId;
use bytes::Bytes;
use parlor_client_core::Event;
use parlor_proto::wire::cursor::Reader;
use parlor_proto::wire::envelope::{Recipient, Sender};
use parlor_proto::{ChannelId, Lane, MemberId, channel, limits};
use parlor_sync::value::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// As a typed message.
    Typed(Lane),
    /// On one of the game's own channels, with this lane.
    Raw(ChannelId, Lane),
}

impl Channel {
    fn lane(self) -> Lane {
        match self {
            Channel::Typed(lane) | Channel::Raw(_, lane) => lane,
        }
    }

    fn id(self) -> ChannelId {
        match self {
            Channel::Typed(lane) => channel::typed(lane),
            Channel::Raw(id, _) => id,
        }
    }
}

/// A message that a game is about to send. Its first eight bytes are its serial, and the rest follows from
/// the serial. So a received message can be compared with the one sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// The channel.
    pub channel: Channel,
    /// The recipients.
    pub to: Recipient,
    /// Whether the hub must stamp it.
    pub stamp: bool,
    /// Its size in bytes, at least the eight of its serial.
    pub bytes: usize,
}

/// Size of the serial.
pub(crate) const LETTER_BYTES_MIN: usize = 8;
/// Kind of the typed messages.
pub(crate) const KIND: &str = "message";

/// The content of a message with this serial.
pub(crate) fn content(serial: u64, bytes: usize) -> Bytes {
    let mut content = serial.to_le_bytes().to_vec();
    let filler = serial.to_le_bytes()[0] ^ 0x5a;
    content.resize(bytes.max(LETTER_BYTES_MIN), filler);
    content.into()
}

fn serial_of(content: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(content.get(..LETTER_BYTES_MIN)?.try_into().ok()?))
}

/// The serial in the payload of a relayed message, which the hub forwards unread.
pub(super) fn serial_in(channel: ChannelId, payload: Bytes) -> Option<u64> {
    if channel.0 >= limits::APP_CHANNEL_FIRST {
        return serial_of(&payload);
    }
    let mut reader = Reader::new(payload);
    reader.str_max("kind", limits::LABEL_BYTES_MAX).ok()?;
    match Value::decode(reader.rest()).ok()? {
        Value::Bytes(content) => serial_of(&content),
        _ => None,
    }
}

#[derive(Debug)]
struct Sent {
    message: SentMessage,
    by: PeerId,
    room: RoomIndex,
    from: MemberId,
    /// The members that the sender knew when it sent this: they had a seat then.
    known: Vec<MemberId>,
    /// Its position among the messages of its sender on this channel.
    place: usize,
    got: BTreeSet<PeerId>,
    order: Option<u64>,
}

impl Sent {
    fn is_for(&self, member: MemberId) -> bool {
        match &self.message.to {
            Recipient::Authority => member == MemberId(0),
            Recipient::Others => member != self.from,
            Recipient::Member(one) => *one == member,
            Recipient::Members(many) => many.contains(&member),
            Recipient::Everyone => true,
            Recipient::Except(many) => !many.contains(&member),
            // The model does not know the primary, and scenarios do not send to it.
            Recipient::Primary => false,
        }
    }
}

/// All messages so far.
#[derive(Debug, Default)]
pub(super) struct Messages {
    sent: Vec<Sent>,
    /// By sender and channel, oldest first.
    outgoing: BTreeMap<(PeerId, ChannelId), Vec<u64>>,
    /// By receiver, sender and channel: the position of the newest received message.
    newest: BTreeMap<(PeerId, PeerId, ChannelId), usize>,
    /// By receiver: the newest stamp received on the ordered lane.
    newest_order: BTreeMap<(PeerId, ChannelId), u64>,
    /// Assigned stamps, by room.
    orders: BTreeMap<(RoomIndex, u64), u64>,
    /// By receiver: messages received on the ordered typed lane.
    pub(super) in_order: BTreeMap<PeerId, Vec<u64>>,
}

impl Model {
    /// The serial of the next message.
    pub fn next_serial(&self) -> u64 {
        self.messages.sent.len() as u64
    }

    /// Records a message that a game sent and its room accepted.
    ///
    /// # Errors
    /// [`Divergence`] if the game is in no room.
    pub fn sends(&mut self, who: PeerId, message: SentMessage, known: Vec<MemberId>) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence::new(format!("{who} sends and is in no room")))?;
        let serial = self.next_serial();
        let outgoing = self.messages.outgoing.entry((who, message.channel.id())).or_default();
        let place = outgoing.len();
        outgoing.push(serial);
        self.messages.sent.push(Sent {
            message,
            by: who,
            room: seat.0,
            from: seat.1,
            known,
            place,
            got: BTreeSet::new(),
            order: None,
        });
        Ok(())
    }

    /// Checks a received message.
    pub(super) fn message_came(&mut self, who: PeerId, event: &Event) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence::new(format!("{who} has no seat: {event:?}")))?;
        let (from, id, order, content) = match event {
            Event::Message(message) => match &message.value {
                Value::Bytes(content) => (message.from, None, message.order, content),
                other => return Err(Divergence::new(format!("{who} got what nobody sent: {other:?}"))),
            },
            Event::Raw { from, channel, order, payload } => (*from, Some(*channel), *order, payload),
            other => return Err(Divergence::new(format!("{other:?} is no message"))),
        };
        let unknown = || Divergence::new(format!("{who} got what nobody sent, of {} bytes", content.len()));
        let serial = serial_of(content).ok_or_else(unknown)?;
        let at = usize::try_from(serial).map_err(|_| unknown())?;
        let sent = self.messages.sent.get(at).ok_or_else(unknown)?;
        let say =
            |what: &str| format!("{who} got message {serial} of {} {what}: {:?}", sent.by, sent.message);
        ensure(*content == self::content(serial, sent.message.bytes), || say("with another content"))?;
        ensure(sent.room == seat.0, || say("from another room"))?;
        ensure(from == Sender::Member(sent.from), || say("under another name"))?;
        ensure(sent.is_for(seat.1), || say("which is not for it"))?;
        ensure(id.is_none_or(|id| id == sent.message.channel.id()), || say("on another channel"))?;
        ensure(matches!(sent.message.channel, Channel::Raw(..)) == id.is_some(), || say("as another kind"))?;
        ensure(!sent.got.contains(&who), || say("twice"))?;
        ensure(order.is_some() == sent.message.stamp, || say("stamped, or not, against its sender's wish"))?;
        self.messages.keeps_promise(who, seat.1, sent)?;
        self.messages.note(who, seat.0, serial, order)?;
        self.counts.messages += 1;
        Ok(())
    }

    /// Checks that all reliable messages between the remaining members have arrived.
    pub(super) fn all_messages_came(&self) -> Verdict {
        for (serial, sent) in self.messages.sent.iter().enumerate() {
            if !sent.message.channel.lane().is_reliable() || !self.stays(sent.by) {
                continue;
            }
            for member in &sent.known {
                let who = self.room(sent.room).seated[member.0 as usize];
                ensure(!sent.is_for(*member) || sent.got.contains(&who) || !self.stays(who), || {
                    format!("message {serial} of {} never came to {who}: {:?}", sent.by, sent.message)
                })?;
            }
        }
        Ok(())
    }

    /// Messages that a game received on the ordered lane, as its room's log with the messages `logged` must
    /// have them. A message that may have come over a path need not be in the log; if it is, its position
    /// must fit.
    pub(super) fn messages_in_order(&self, who: PeerId, logged: &[u64]) -> Vec<u64> {
        let logged: BTreeSet<u64> = logged.iter().copied().collect();
        let came = self.messages.in_order.get(&who).into_iter().flatten().copied();
        came.filter(|serial| logged.contains(serial) || !self.may_go_apart(*serial, who)).collect()
    }

    /// Number of them that are not in the complete log of their room.
    pub(super) fn messages_apart(&self, who: PeerId, logged: &[u64]) -> u64 {
        let logged: BTreeSet<u64> = logged.iter().copied().collect();
        let came = self.messages.in_order.get(&who).into_iter().flatten();
        came.filter(|serial| !logged.contains(serial)).count() as u64
    }

    /// Whether a message may use a path: one end is the host and both want paths, or both want a mesh; and it needs no
    /// stamp.
    fn may_go_apart(&self, serial: u64, to: PeerId) -> bool {
        let sent = &self.messages.sent[index(serial)];
        let of_host =
            [sent.by, to].iter().any(|who| self.seat(*who).is_some_and(|(_, it)| it == MemberId(0)));
        let both = |wants: fn(&Self, PeerId) -> bool| wants(self, sent.by) && wants(self, to);
        !sent.message.stamp && (of_host && both(Self::wants_paths) || both(Self::wants_mesh))
    }
}

impl Messages {
    /// Checks the guarantees of a message's lane on earlier messages.
    fn keeps_promise(&self, who: PeerId, member: MemberId, sent: &Sent) -> Verdict {
        let channel = sent.message.channel;
        let newest = self.newest.get(&(who, sent.by, channel.id())).copied();
        match channel.lane() {
            Lane::ReliableUnordered | Lane::Unreliable => Ok(()),
            Lane::UnreliableSequenced => ensure(newest.is_none_or(|newest| newest < sent.place), || {
                format!("{who} got an older message of {} after a newer one: {:?}", sent.by, sent.message)
            }),
            Lane::ReliableOrdered => {
                ensure(newest.is_none_or(|newest| newest < sent.place), || {
                    format!("{who} got messages of {} out of order: {:?}", sent.by, sent.message)
                })?;
                let outgoing = &self.outgoing[&(sent.by, channel.id())];
                let skipped = &outgoing[newest.map_or(0, |newest| newest + 1)..sent.place];
                let missing = skipped.iter().copied().find(|serial| {
                    let skipped = &self.sent[index(*serial)];
                    // The receiver may have joined after messages before the first one it received.
                    skipped.is_for(member) && (newest.is_some() || skipped.known.contains(&member))
                });
                ensure(missing.is_none(), || {
                    format!("{who} misses message {missing:?} of {} before {:?}", sent.by, sent.message)
                })
            }
        }
    }

    /// Records the arrival of a message and its stamp.
    fn note(&mut self, who: PeerId, room: RoomIndex, serial: u64, order: Option<u64>) -> Verdict {
        let sent = &mut self.sent[index(serial)];
        let channel = sent.message.channel;
        sent.got.insert(who);
        let newest = self.newest.entry((who, sent.by, channel.id())).or_default();
        *newest = (*newest).max(sent.place);
        if channel == Channel::Typed(Lane::ReliableOrdered) {
            self.in_order.entry(who).or_default().push(serial);
        }
        let Some(order) = order else { return Ok(()) };
        let agreed = *sent.order.get_or_insert(order);
        let stamped = *self.orders.entry((room, order)).or_insert(serial);
        ensure(agreed == order && stamped == serial, || {
            format!("{who} got message {serial} stamped {order}, others {agreed}; {stamped} has that stamp")
        })?;
        if channel.lane() != Lane::ReliableOrdered {
            return Ok(());
        }
        let older = self.newest_order.insert((who, channel.id()), order);
        ensure(older.is_none_or(|older| older < order), || {
            format!("{who} got message {serial} stamped {order} after {older:?}")
        })
    }
}

fn index(serial: u64) -> usize {
    usize::try_from(serial).expect("messages are numbered by their place in a list")
}
