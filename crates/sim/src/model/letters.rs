//! Messages: to whom each goes, and what each lane promises.

use super::{Divergence, Model, RoomIndex, Verdict, ensure};
use crate::peer::PeerId;
use bytes::Bytes;
use parlor::{Event, From, Lane, MemberId, To, Value};
use parlor_proto::ChannelId;
use parlor_proto::wire::cursor::Reader;
use parlor_proto::{channel, limits};
use std::collections::{BTreeMap, BTreeSet};

/// How a letter travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// As a typed message.
    Typed(Lane),
    /// On a channel of the game's own, which has this lane.
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

/// A message that a game is about to send. Its serial stands in its first eight bytes and all else follows from it, so
/// that whatever comes can be held against what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// How.
    pub channel: Channel,
    /// To whom.
    pub to: To,
    /// Whether the hub shall number it.
    pub stamp: bool,
    /// Its size in bytes, at least the eight of its serial.
    pub bytes: usize,
}

/// What the serial of a letter takes.
pub(crate) const LETTER_BYTES_MIN: usize = 8;
/// What typed letters call themselves.
pub(crate) const KIND: &str = "letter";

/// What a letter says.
pub(crate) fn content(serial: u64, bytes: usize) -> Bytes {
    let mut content = serial.to_le_bytes().to_vec();
    let filler = serial.to_le_bytes()[0] ^ 0x5a;
    content.resize(bytes.max(LETTER_BYTES_MIN), filler);
    content.into()
}

fn serial_of(content: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(content.get(..LETTER_BYTES_MIN)?.try_into().ok()?))
}

/// The letter in the payload of a relayed message, as the hub passes it on unread.
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
    letter: Letter,
    by: PeerId,
    room: RoomIndex,
    from: MemberId,
    /// Whom the sender was told of when it sent this: they had a seat then.
    known: Vec<MemberId>,
    /// Its place among all of its sender's on this channel.
    place: usize,
    got: BTreeSet<PeerId>,
    order: Option<u64>,
}

impl Sent {
    fn is_for(&self, member: MemberId) -> bool {
        match &self.letter.to {
            To::Authority => member == MemberId(0),
            To::Others => member != self.from,
            To::Member(one) => *one == member,
            To::Members(many) => many.contains(&member),
            To::Everyone => true,
            To::Except(many) => !many.contains(&member),
            // The model does not know who is primary, and worlds send nothing there.
            To::Primary => false,
        }
    }
}

/// All letters so far.
#[derive(Debug, Default)]
pub(super) struct Letters {
    sent: Vec<Sent>,
    /// By sender and channel, oldest first.
    outgoing: BTreeMap<(PeerId, ChannelId), Vec<u64>>,
    /// By receiver, sender and channel: the place of the newest that came.
    newest: BTreeMap<(PeerId, PeerId, ChannelId), usize>,
    /// By receiver: the newest stamp that came on the ordered lane.
    newest_order: BTreeMap<(PeerId, ChannelId), u64>,
    /// Stamps that were given, by room.
    orders: BTreeMap<(RoomIndex, u64), u64>,
    /// By receiver: what came on the ordered typed lane.
    pub(super) in_order: BTreeMap<PeerId, Vec<u64>>,
}

impl Model {
    /// The number that the next letter bears.
    #[must_use]
    pub fn next_serial(&self) -> u64 {
        self.letters.sent.len() as u64
    }

    /// A game sent a letter, and its room took it.
    ///
    /// # Errors
    /// [`Divergence`] if that game is in no room.
    pub fn sends(&mut self, who: PeerId, letter: Letter, known: Vec<MemberId>) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence(format!("{who} sends and is in no room")))?;
        let serial = self.next_serial();
        let outgoing = self.letters.outgoing.entry((who, letter.channel.id())).or_default();
        let place = outgoing.len();
        outgoing.push(serial);
        self.letters.sent.push(Sent {
            letter,
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

    /// A letter came.
    pub(super) fn letter_came(&mut self, who: PeerId, event: &Event) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence(format!("{who} has no seat: {event:?}")))?;
        let (from, id, order, content) = match event {
            Event::Message(message) => match &message.value {
                Value::Bytes(content) => (message.from, None, message.order, content),
                other => return Err(Divergence(format!("{who} got what nobody sent: {other:?}"))),
            },
            Event::Raw { from, channel, order, payload } => (*from, Some(*channel), *order, payload),
            other => return Err(Divergence(format!("{other:?} is no letter"))),
        };
        let unknown = || Divergence(format!("{who} got what nobody sent, of {} bytes", content.len()));
        let serial = serial_of(content).ok_or_else(unknown)?;
        let at = usize::try_from(serial).map_err(|_| unknown())?;
        let sent = self.letters.sent.get(at).ok_or_else(unknown)?;
        let say = |what: &str| format!("{who} got letter {serial} of {} {what}: {:?}", sent.by, sent.letter);
        ensure(*content == self::content(serial, sent.letter.bytes), || say("with another content"))?;
        ensure(sent.room == seat.0, || say("from another room"))?;
        ensure(from == From::Member(sent.from), || say("under another name"))?;
        ensure(sent.is_for(seat.1), || say("which is not for it"))?;
        ensure(id.is_none_or(|id| id == sent.letter.channel.id()), || say("on another channel"))?;
        ensure(matches!(sent.letter.channel, Channel::Raw(..)) == id.is_some(), || say("as another kind"))?;
        ensure(!sent.got.contains(&who), || say("twice"))?;
        ensure(order.is_some() == sent.letter.stamp, || say("stamped, or not, against its sender's wish"))?;
        self.letters.keeps_promise(who, seat.1, sent)?;
        self.letters.note(who, seat.0, serial, order)?;
        self.counts.letters += 1;
        Ok(())
    }

    /// Everything reliable between those who stay has come.
    pub(super) fn all_letters_came(&self) -> Verdict {
        for (serial, sent) in self.letters.sent.iter().enumerate() {
            if !sent.letter.channel.lane().is_reliable() || !self.stays(sent.by) {
                continue;
            }
            for member in &sent.known {
                let who = self.room(sent.room).seated[member.0 as usize];
                ensure(!sent.is_for(*member) || sent.got.contains(&who) || !self.stays(who), || {
                    format!("letter {serial} of {} never came to {who}: {:?}", sent.by, sent.letter)
                })?;
            }
        }
        Ok(())
    }

    /// Letters that came to a game on the ordered lane, as the log of its room must have them that has `logged`. One that may have
    /// come over a path need not stand there; if it does, it has its place.
    pub(super) fn letters_in_order(&self, who: PeerId, logged: &[u64]) -> Vec<u64> {
        let logged: BTreeSet<u64> = logged.iter().copied().collect();
        let came = self.letters.in_order.get(&who).into_iter().flatten().copied();
        came.filter(|serial| logged.contains(serial) || !self.may_go_apart(*serial, who)).collect()
    }

    /// How many of them are not in the whole log of their room.
    pub(super) fn letters_apart(&self, who: PeerId, logged: &[u64]) -> u64 {
        let logged: BTreeSet<u64> = logged.iter().copied().collect();
        let came = self.letters.in_order.get(&who).into_iter().flatten();
        came.filter(|serial| !logged.contains(serial)).count() as u64
    }

    /// Whether a letter may go over a path: one of its ends is the host, both want paths, and the hub need not number it.
    fn may_go_apart(&self, serial: u64, to: PeerId) -> bool {
        let sent = &self.letters.sent[index(serial)];
        let of_host =
            [sent.by, to].iter().any(|who| self.seat(*who).is_some_and(|(_, it)| it == MemberId(0)));
        of_host && !sent.letter.stamp && self.wants_paths(sent.by) && self.wants_paths(to)
    }
}

impl Letters {
    /// What the lane of a letter promises about those before it.
    fn keeps_promise(&self, who: PeerId, member: MemberId, sent: &Sent) -> Verdict {
        let channel = sent.letter.channel;
        let newest = self.newest.get(&(who, sent.by, channel.id())).copied();
        match channel.lane() {
            Lane::ReliableUnordered | Lane::Unreliable => Ok(()),
            Lane::UnreliableSequenced => ensure(newest.is_none_or(|newest| newest < sent.place), || {
                format!("{who} got an older letter of {} after a newer one: {:?}", sent.by, sent.letter)
            }),
            Lane::ReliableOrdered => {
                ensure(newest.is_none_or(|newest| newest < sent.place), || {
                    format!("{who} got letters of {} out of order: {:?}", sent.by, sent.letter)
                })?;
                let outgoing = &self.outgoing[&(sent.by, channel.id())];
                let skipped = &outgoing[newest.map_or(0, |newest| newest + 1)..sent.place];
                let missing = skipped.iter().copied().find(|serial| {
                    let skipped = &self.sent[index(*serial)];
                    // Before the first that came, the receiver need not have been there yet.
                    skipped.is_for(member) && (newest.is_some() || skipped.known.contains(&member))
                });
                ensure(missing.is_none(), || {
                    format!("{who} misses letter {missing:?} of {} before {:?}", sent.by, sent.letter)
                })
            }
        }
    }

    /// Writes down that a letter came, and under which stamp.
    fn note(&mut self, who: PeerId, room: RoomIndex, serial: u64, order: Option<u64>) -> Verdict {
        let sent = &mut self.sent[index(serial)];
        let channel = sent.letter.channel;
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
            format!("{who} got letter {serial} stamped {order}, others {agreed}; {stamped} has that stamp")
        })?;
        if channel.lane() != Lane::ReliableOrdered {
            return Ok(());
        }
        let older = self.newest_order.insert((who, channel.id()), order);
        ensure(older.is_none_or(|older| older < order), || {
            format!("{who} got letter {serial} stamped {order} after {older:?}")
        })
    }
}

fn index(serial: u64) -> usize {
    usize::try_from(serial).expect("letters are numbered by their place in a list")
}
