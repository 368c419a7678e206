//! A packet log, as far as a trace needs it: what the game did, and the inputs in packets, in room time.

use anyhow::Context;
use bytes::Bytes;
use parlor_client_core::{LoggedMoment, LoggedPacket, Moment, PacketEntry, PacketLogReader, PacketWay};
use parlor_proto::wire::cursor::Reader;
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::header::Header;
use parlor_proto::{ChannelId, MemberId, Tick, TickRate, channel};
use std::path::Path;
use std::time::Duration;

/// The log of one client in one room.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) member: MemberId,
    pub(super) rate: TickRate,
    /// Whether it is the host: it sent the room's state.
    pub(super) is_host: bool,
    pub(super) moments: Vec<LoggedMoment>,
    /// When a packet with an input left; the input's tick is the newest in it.
    pub(super) sent: Vec<(Duration, Tick)>,
    /// When a packet with an input came, and whose: unknown if it came over a path.
    pub(super) came: Vec<(Duration, Option<MemberId>, Tick)>,
}

/// A packet with inputs: whose (unknown at their sender, and on paths), and the newest tick.
type Inputs = (Option<MemberId>, Tick);

impl Log {
    /// Reads a log. Of several rooms the last one counts.
    ///
    /// # Errors
    /// The file is no packet log, or its client was in no room.
    pub(super) fn read(path: &Path) -> anyhow::Result<Log> {
        let file = path.display();
        let bytes = Bytes::from(std::fs::read(path).with_context(|| format!("{file} cannot be read"))?);
        let entries = PacketLogReader::new(bytes).with_context(|| format!("{file} cannot be used"))?;
        // A log that was cut is used up to the cut.
        let entries = entries.map_while(Result::ok);
        Log::of(entries).with_context(|| format!("{file}: its client was in no room"))
    }

    fn of(entries: impl Iterator<Item = (Duration, PacketEntry)>) -> Option<Log> {
        let mut log: Option<Log> = None;
        let (mut sent, mut came) = (Vec::new(), Vec::new());
        // What to add to the log's time for the room's: known with the first moment, and renewed with each.
        let mut ahead: Option<(Duration, Duration)> = None;
        for (at, entry) in entries {
            match entry {
                PacketEntry::Opened { member, tick_rate, .. } => {
                    let (moments, is_host) = (Vec::new(), false);
                    let (sent, came) = (Vec::new(), Vec::new());
                    log = Some(Log { member, rate: tick_rate, is_host, moments, sent, came });
                    ahead = None;
                }
                PacketEntry::Moment(moment) => {
                    ahead = Some((at, moment.room_time));
                    log.iter_mut().for_each(|log| log.moments.push(moment));
                }
                PacketEntry::Packet(packet) => {
                    let Some((log, (then, room_time))) = log.as_mut().zip(ahead) else { continue };
                    let now = room_time + at.saturating_sub(then);
                    let way = packet.way;
                    let (has_state, inputs) = contents(packet);
                    log.is_host |= has_state && way == PacketWay::Sent;
                    for (from, tick) in inputs {
                        match way {
                            PacketWay::Sent => sent.push((now, tick)),
                            PacketWay::Received => came.push((now, from, tick)),
                        }
                    }
                    log.sent.append(&mut sent);
                    log.came.append(&mut came);
                }
                PacketEntry::Missed(_) | PacketEntry::Full => {}
            }
        }
        log
    }

    /// When the first moment came that is wanted.
    pub(super) fn first(&self, is_wanted: impl Fn(&LoggedMoment) -> bool) -> Option<&LoggedMoment> {
        self.moments.iter().find(|moment| is_wanted(moment))
    }

    /// When the step of a tick was run.
    pub(super) fn step(&self, tick: Tick) -> Option<Duration> {
        let is_it = |moment: &LoggedMoment| moment.moment == Moment::Step && moment.tick == tick;
        self.first(is_it).map(|moment| moment.room_time)
    }
}

/// Whether a packet has state of the room, and the inputs in it.
fn contents(packet: LoggedPacket) -> (bool, Vec<Inputs>) {
    let is_of_path = packet.path.is_some();
    let mut reader = Reader::new(packet.bytes);
    let (mut has_state, mut inputs) = (false, Vec::new());
    if Header::read(&mut reader).is_err() {
        return (false, inputs);
    }
    while !reader.is_empty() {
        let Ok(frame) = Frame::read(&mut reader) else { break };
        let Some((channel, key, payload)) = frame.and_then(message) else { continue };
        has_state |= channel == channel::STATE;
        if channel == channel::INPUT
            && let Ok(tick) = Reader::new(payload).u32()
        {
            inputs.push(((!is_of_path).then_some(MemberId(key)), Tick(tick)));
        }
    }
    (has_state, inputs)
}

fn message(frame: Frame) -> Option<(ChannelId, u32, Bytes)> {
    match frame {
        Frame::Sequenced { channel, key, payload, .. } => Some((channel, key, payload)),
        Frame::Unreliable { channel, payload }
        | Frame::Reliable { channel, payload, .. }
        | Frame::Ordered { channel, payload, .. } => Some((channel, 0, payload)),
        _ => None,
    }
}
