//! The log of a room, or of a client's packets, message by message: sender, channel and size; for packets of state,
//! each entity and its size.

mod lines;
mod packets;
mod stream;
mod tally;
#[cfg(test)]
mod tests;
pub(crate) mod value;

use crate::args::EntityFilter;
use bytes::Bytes;
pub(crate) use lines::name;
use packets::PacketRecord;
use parlor::Value;
use parlor_client_core::{Typed, decode_typed};
use parlor_hub::room::log::{LogError, Replay, Step};
use parlor_hub::room::{Input, Output};
use parlor_proto::session::DeliveryId;
use parlor_proto::wire::action::{Action, AskedBy};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::envelope::{Downward, Upward};
use parlor_proto::wire::replica::{OwnState, StateOf};
use parlor_proto::{ChannelId, CloseReason, Instant, LinkKind, MemberId, TickRate, channel};
use parlor_sync::schema::Schema;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stream::{Packet, Stream};
use tally::Tally;

/// What is wanted of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only messages from or to this member.
    pub(crate) member: Option<MemberId>,
    /// Only packets of state that say something of this entity, and of them only that.
    pub(crate) entity: Option<EntityFilter>,
    /// Only what happened from this time after the room's opening on.
    pub(crate) from: Option<Duration>,
    /// Only what happened before this time.
    pub(crate) until: Option<Duration>,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) struct Record {
    /// After the room's opening.
    at: Duration,
    way: Way,
    /// Its sender or receiver; `None` if it concerns the room.
    member: Option<MemberId>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// From a member to the room.
    Up,
    /// From the room to members.
    Down,
}

#[derive(Debug)]
enum What {
    Joins {
        name: String,
        link: LinkKind,
    },
    Leaves(LeaveReason),
    Message {
        channel: ChannelId,
        bytes: usize,
        said: Said,
    },
    /// A packet of a client, with the messages that follow.
    Packet(PacketRecord),
    /// What became of a packet of state that the member was sent.
    Fate {
        source: Option<MemberId>,
        number: u64,
        delivered: bool,
    },
    /// Whether the member's connection takes packets.
    Takes(bool),
    /// What became of a connection, or of who is the host.
    Became(String),
    Refused(String),
    Removed(CloseReason),
    Ended(CloseReason),
}

/// What a message says, as far as the room's own layouts tell.
#[derive(Debug)]
enum Said {
    /// A packet of state: the room's, or a member's own.
    State {
        source: Option<MemberId>,
        packet: Packet,
    },
    Typed {
        kind: String,
        /// When it happened, as its sender says.
        event_time: Option<Duration>,
        value: Value,
    },
    Action(Action),
    /// Its layout is known, but its bytes do not match it.
    Unreadable(String),
    /// It is none of these.
    Other,
}

/// Takes a log apart, step by step.
#[derive(Debug)]
pub(crate) struct Dump {
    schema: Arc<Schema>,
    rate: TickRate,
    opened: Instant,
    filter: Filter,
    /// By direction, by the member at its other end, and by the member whose own state it has, if it is one of those.
    streams: BTreeMap<(Way, MemberId, Option<MemberId>), Stream>,
    tally: Tally,
}

impl Dump {
    /// For the log of a room of this schema.
    pub(crate) fn new(schema: Arc<Schema>, rate: TickRate, opened: Instant, filter: Filter) -> Self {
        Dump { schema, rate, opened, filter, streams: BTreeMap::new(), tally: Tally::default() }
    }

    /// Takes a whole log apart; `each` gets what is wanted. If the log ends early, it is said why.
    ///
    /// # Errors
    /// What `each` says.
    pub(crate) fn log(
        &mut self,
        replay: &mut Replay,
        each: &mut dyn FnMut(&Record) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<LogError>> {
        loop {
            // The seat that a joiner in the next step takes.
            let next = replay.room().next_member();
            match replay.next() {
                None => return Ok(None),
                Some(Err(error)) => return Ok(Some(error)),
                Some(Ok(step)) => self.step(step, next).iter().try_for_each(&mut *each)?,
            }
        }
    }

    /// What happened in a step, as far as it is wanted. `next` is the seat that a joiner in it takes.
    fn step(&mut self, step: Step, next: MemberId) -> Vec<Record> {
        let at = step.at.saturating_since(self.opened);
        let mut records = Vec::new();
        let mut put = |way, member, what| records.push(Record { at, way, member, what });
        self.input(step.input, next, &mut put);
        if let Some(refused) = step.refused {
            put(Way::Down, None, What::Refused(refused));
        }
        step.outputs.into_iter().for_each(|output| self.output(output, &mut put));
        self.wanted(records)
    }

    /// Those of the records that are wanted; they are counted.
    fn wanted(&mut self, mut records: Vec<Record>) -> Vec<Record> {
        records.retain_mut(|record| self.filter.admits(record));
        records.iter().for_each(|record| self.tally.count(record));
        records
    }

    /// Another room begins.
    fn begin(&mut self, schema: Arc<Schema>, rate: TickRate) {
        (self.schema, self.rate) = (schema, rate);
        self.streams.clear();
    }

    fn input(&mut self, input: Input, next: MemberId, put: &mut impl FnMut(Way, Option<MemberId>, What)) {
        match input {
            Input::Join { name, link, .. } => put(Way::Up, Some(next), What::Joins { name, link }),
            Input::Leave { member, reason } | Input::Lost { member, reason } => {
                self.streams.retain(|(_, end, source), _| *end != member && *source != Some(member));
                put(Way::Up, Some(member), What::Leaves(reason));
            }
            Input::Message { from, channel, payload, .. } => {
                let what = self.message(Way::Up, from, channel, payload);
                put(Way::Up, Some(from), what);
            }
            Input::Fate { member, delivery_id, delivered } => {
                let (source, number) = DeliveryId(delivery_id).stream();
                put(Way::Up, Some(member), What::Fate { source, number, delivered });
            }
            Input::Writable { member, writable } => put(Way::Up, Some(member), What::Takes(writable)),
            Input::Path { member, bytes_per_second } => {
                put(Way::Up, Some(member), What::Became(format!("has a path of {bytes_per_second} B/s")));
            }
            Input::Reachable { member, observed, .. } => {
                let place = observed.map_or_else(|| "an unknown address".to_owned(), |at| at.to_string());
                put(Way::Up, Some(member), What::Became(format!("wants direct paths, from {place}")));
            }
            Input::Away { member, reason } => {
                put(Way::Up, Some(member), What::Became(format!("{reason}, and its seat is kept")));
            }
            Input::Returned { member, name, link, .. } => {
                put(
                    Way::Up,
                    Some(member),
                    What::Became(format!("returns as {name:?} over {}", link.as_str())),
                );
            }
            Input::Forget { member } => {
                put(Way::Up, Some(member), What::Became("may not return any more".to_owned()));
            }
            Input::Back { member, link } => {
                put(Way::Up, Some(member), What::Became(format!("is back over {}", link.as_str())));
            }
            Input::Restarted { member, link } => {
                self.streams.retain(|(_, end, source), _| *end != member && *source != Some(member));
                put(Way::Up, Some(member), What::Became(format!("begins anew over {}", link.as_str())));
            }
            Input::Reopened(reopening) => {
                let members = reopening.roster.members.len();
                put(
                    Way::Up,
                    None,
                    What::Became(format!("is reopened at another node with {members} members")),
                );
            }
            Input::Sealed => put(Way::Up, None, What::Became("is sealed for a move".to_owned())),
            Input::Claimed { seat, .. } => {
                self.streams
                    .retain(|(_, end, source), _| *end != seat.member && *source != Some(seat.member));
                let link = seat.link.as_str();
                put(Way::Up, Some(seat.member), What::Became(format!("claims its seat over {link}")));
            }
            Input::HostSilent { .. } => {
                put(Way::Up, None, What::Became("nothing is heard of the host".to_owned()))
            }
            Input::End { reason } => put(Way::Down, None, What::Ended(reason)),
            Input::Measured(_) | Input::Untaken { .. } | Input::Flush => {}
        }
    }

    fn output(&mut self, output: Output, put: &mut impl FnMut(Way, Option<MemberId>, What)) {
        match output {
            Output::Send { to, message } => {
                for member in to {
                    let what = self.message(Way::Down, member, message.channel, message.payload.clone());
                    put(Way::Down, Some(member), what);
                }
            }
            Output::Remove { member, reason } => put(Way::Down, Some(member), What::Removed(reason)),
            Output::Epoch { epoch } => put(Way::Down, None, What::Became(format!("epoch {epoch} begins"))),
            Output::Succession(succession) => {
                put(Way::Down, Some(succession.to), What::Became("the authority".to_owned()));
            }
            Output::Forgotten { member } => {
                put(Way::Down, Some(member), What::Became("may not return any more".to_owned()));
            }
            Output::Terms { by } => {
                put(Way::Down, Some(by), What::Became("has set the terms of the room".to_owned()));
            }
            Output::Ended { reason } => put(Way::Down, None, What::Ended(reason)),
            // Who keeps a match is told what its members are told.
            Output::Kept { .. } => {}
        }
    }

    fn message(&mut self, way: Way, member: MemberId, channel: ChannelId, payload: Bytes) -> What {
        let bytes = payload.len();
        let said = match channel {
            channel::STATE => self.state(way, member, None, None, payload),
            channel::ACTIONS => action(way, payload),
            channel::REPLICAS => self.own_state(way, member, payload),
            channel::MESSAGE_ORDERED
            | channel::MESSAGE_UNORDERED
            | channel::MESSAGE_UNRELIABLE
            | channel::MESSAGE_SEQUENCED => typed(way, payload),
            _ => Said::Other,
        };
        What::Message { channel, bytes, said }
    }

    fn own_state(&mut self, way: Way, member: MemberId, payload: Bytes) -> Said {
        let read = match way {
            Way::Up => OwnState::decode(payload).map(|state| (member, state)),
            Way::Down => StateOf::decode(payload).map(|told| (told.source, told.state)),
        };
        let (source, state) = match read {
            Ok(read) => read,
            Err(error) => return Said::Unreadable(error.to_string()),
        };
        let schema = match state.schema.map(Schema::decode).transpose() {
            Ok(schema) => schema,
            Err(error) => return Said::Unreadable(error.to_string()),
        };
        self.state(way, member, Some(source), schema, state.packet)
    }

    /// Takes a packet of a stream apart; `schema` is what a member's own state is made of, if the packet brings that.
    fn state(
        &mut self,
        way: Way,
        member: MemberId,
        source: Option<MemberId>,
        schema: Option<Schema>,
        packet: Bytes,
    ) -> Said {
        let key = (way, member, source);
        if !self.streams.contains_key(&key) {
            let schema = match (source, schema) {
                (None, _) => Arc::clone(&self.schema),
                (Some(_), Some(schema)) => Arc::new(schema),
                (Some(_), None) => return Said::Unreadable("what it is made of was not told".into()),
            };
            self.streams.insert(key, Stream::new(schema, self.rate, way == Way::Up));
        }
        let stream = self.streams.get_mut(&key).expect("it was just put there");
        unreadable(stream.take(packet), |packet| Said::State { source, packet })
    }

    /// Sums over all records.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

fn unreadable<T, E: ToString>(read: Result<T, E>, said: impl FnOnce(T) -> Said) -> Said {
    read.map_or_else(|error| Said::Unreadable(error.to_string()), said)
}

fn typed(way: Way, payload: Bytes) -> Said {
    let payload = match way {
        Way::Up => Upward::decode(payload).map(|upward| upward.payload),
        Way::Down => Downward::decode(payload).map(|downward| downward.payload),
    };
    payload.map_or_else(|error| Said::Unreadable(error.to_string()), typed_value)
}

/// A typed message without its envelope.
fn typed_value(payload: Bytes) -> Said {
    match decode_typed(payload) {
        Some(Typed { kind, event_time, value }) => Said::Typed { kind, event_time, value },
        None => Said::Unreadable("it is no typed message".into()),
    }
}

fn action(way: Way, payload: Bytes) -> Said {
    match way {
        Way::Up => unreadable(Action::decode(payload), Said::Action),
        Way::Down => unreadable(AskedBy::decode(payload), |asked| Said::Action(asked.action)),
    }
}

impl Filter {
    /// Whether a record is wanted; of a packet of state only what is stays in it.
    fn admits(&self, record: &mut Record) -> bool {
        if self.from.is_some_and(|from| record.at < from)
            || self.until.is_some_and(|until| record.at >= until)
        {
            return false;
        }
        if self.member.is_some() && record.member.is_some() && self.member != record.member {
            return false;
        }
        let Some(entity) = self.entity else { return true };
        match &mut record.what {
            What::Message { said: Said::State { packet, .. }, .. } => {
                packet.entries.retain(|entry| entity.is(entry.entity));
                !packet.entries.is_empty()
            }
            What::Message { said: Said::Action(action), .. } => entity.is(action.entity),
            _ => false,
        }
    }
}
