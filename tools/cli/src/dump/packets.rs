//! The packet log of a client, packet by packet and message by message.

use super::{Dump, Record, Way, What, typed_value};
use bytes::Bytes;
use parlor_client_core::{
    LoggedMoment, LoggedPacket, Moment, PacketEntry, PacketLogError, PacketLogReader, PacketWay,
};
use parlor_proto::wire::cursor::Reader;
use parlor_proto::wire::frame::{Fragment, Frame};
use parlor_proto::wire::header::Header;
use parlor_proto::{Carrier, ChannelId, MemberId, PathId, channel};
use parlor_sync::schema::{Schema, SchemaError};
use serde_json::{Value, json};
use std::sync::Arc;

/// A packet, without the messages in it: each of these is a record of its own.
#[derive(Debug)]
pub(super) struct PacketRecord {
    bytes: usize,
    carrier: Carrier,
    path: Option<PathId>,
    /// The low half of its number.
    number: Option<u16>,
    /// The low half of the newest packet that it acknowledges.
    ack: Option<u16>,
    /// The number below which it acknowledges all reliable messages.
    reliable_ack: Option<u64>,
    /// What is in it beside messages, and what the log left out.
    others: Vec<String>,
}

impl Dump {
    /// Takes a packet log apart; `each` gets what is wanted. If the log ends early, it is said why.
    ///
    /// # Errors
    /// What `each` says.
    pub(crate) fn packets(
        &mut self,
        log: &mut PacketLogReader,
        each: &mut dyn FnMut(&Record) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<PacketLogError>> {
        let own_schema = log.schema().clone();
        let mut me = None;
        for entry in log {
            let (at, entry) = match entry {
                Ok(entry) => entry,
                Err(error) => return Ok(Some(error)),
            };
            let mut records = Vec::new();
            let mut put = |way, member, what| records.push(Record { at, way, member, what });
            match entry {
                PacketEntry::Packet(packet) => self.packet(packet, me, &mut put),
                PacketEntry::Opened { code, member, tick_rate, schema } => {
                    me = Some(member);
                    let schema = if schema.is_empty() { own_schema.clone() } else { schema };
                    let what = match read_schema(schema) {
                        Ok(schema) => {
                            self.begin(schema, tick_rate);
                            format!("room {code} at {} Hz, as {member}", tick_rate.hz())
                        }
                        Err(error) => format!("room {code}, whose schema cannot be read: {error}"),
                    };
                    put(Way::Down, me, What::Became(what));
                }
                PacketEntry::Missed(count) => {
                    let what = format!("{count} packets are missing: the disk was too slow");
                    put(Way::Down, None, What::Became(what));
                }
                PacketEntry::Moment(LoggedMoment { moment, tick, .. }) => {
                    let what = match moment {
                        Moment::Step => format!("the game runs step {}", tick.0),
                        Moment::State { input: Some(input) } => {
                            format!("the game has the state of {}, with its input of {}", tick.0, input.0)
                        }
                        Moment::State { input: None } => format!("the game has the state of {}", tick.0),
                        Moment::Drawn => format!("the game draws {}", tick.0),
                    };
                    put(Way::Down, me, What::Became(what));
                }
                PacketEntry::Full => {
                    put(Way::Down, None, What::Became("the log is full and ends here".to_owned()));
                }
            }
            for record in self.wanted(records) {
                each(&record)?;
            }
        }
        Ok(None)
    }

    fn packet(
        &mut self,
        packet: LoggedPacket,
        me: Option<MemberId>,
        put: &mut impl FnMut(Way, Option<MemberId>, What),
    ) {
        let way = match packet.way {
            PacketWay::Sent => Way::Up,
            PacketWay::Received => Way::Down,
        };
        let mut record = PacketRecord {
            bytes: packet.length,
            carrier: packet.carrier,
            path: packet.path,
            number: None,
            ack: None,
            reliable_ack: None,
            others: packet.left_out.iter().map(|name| format!("{name} (left out)")).collect(),
        };
        let mut reader = Reader::new(packet.bytes);
        let mut messages = Vec::new();
        if let Ok(header) = Header::read(&mut reader) {
            record.number = header.sequence;
            record.ack = header.ack.map(|ack| ack.newest);
            record.reliable_ack = header.reliable_ack;
            while !reader.is_empty() {
                match Frame::read(&mut reader) {
                    Ok(Some(frame)) => match message_of(frame) {
                        Ok(message) => messages.push(message),
                        Err(other) => record.others.push(other),
                    },
                    Ok(None) => record.others.push("a frame of an unknown kind".to_owned()),
                    Err(error) => {
                        record.others.push(format!("unreadable: {error}"));
                        break;
                    }
                }
            }
        }
        let path = packet.path;
        put(way, me, What::Packet(record));
        for (channel, payload) in messages {
            let what = match (path, me) {
                (None, Some(me)) => self.message(way, me, channel, payload),
                _ => of_path(channel, payload),
            };
            put(way, me, what);
        }
    }
}

/// Messages over a path have no envelope, and the state of one begins anew.
fn of_path(channel: ChannelId, payload: Bytes) -> What {
    let bytes = payload.len();
    let said = match channel {
        channel::MESSAGE_ORDERED
        | channel::MESSAGE_UNORDERED
        | channel::MESSAGE_UNRELIABLE
        | channel::MESSAGE_SEQUENCED => typed_value(payload),
        _ => super::Said::Other,
    };
    What::Message { channel, bytes, said }
}

/// The message of a frame, or what it is instead.
fn message_of(frame: Frame) -> Result<(ChannelId, Bytes), String> {
    match frame {
        Frame::Unreliable { channel, payload }
        | Frame::Sequenced { channel, payload, .. }
        | Frame::Reliable { channel, payload, .. }
        | Frame::Ordered { channel, payload, .. } => Ok((channel, payload)),
        Frame::Fragment(Fragment { id, index, count, part }) => {
            Err(format!("part {} of {count} of message {id}, {} B", u16::from(index) + 1, part.len()))
        }
        Frame::Close(reason) => Err(format!("Close: {reason}")),
        other => Err(other.name().to_owned()),
    }
}

fn read_schema(schema: Bytes) -> Result<Arc<Schema>, SchemaError> {
    if schema.is_empty() { Ok(Arc::default()) } else { Schema::decode(schema).map(Arc::new) }
}

const fn carrier_word(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Datagram => "datagram",
        Carrier::Stream => "stream",
        Carrier::Isolated => "own stream",
    }
}

impl PacketRecord {
    pub(super) fn summary(&self) -> String {
        let mut text = format!("packet     {:>6} B  {}", self.bytes, carrier_word(self.carrier));
        if let Some(path) = self.path {
            text.push_str(&format!(" of {path}"));
        }
        for (name, number) in [
            ("number", self.number.map(u64::from)),
            ("ack", self.ack.map(u64::from)),
            ("reliable ack", self.reliable_ack),
        ] {
            if let Some(number) = number {
                text.push_str(&format!(", {name} {number}"));
            }
        }
        self.others.iter().for_each(|other| text.push_str(&format!(", {other}")));
        text
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "bytes": self.bytes,
            "carrier": carrier_word(self.carrier),
            "path": self.path.map(|path| path.0),
            "number": self.number,
            "ack": self.ack,
            "reliable_ack": self.reliable_ack,
            "others": self.others,
        })
    }
}
