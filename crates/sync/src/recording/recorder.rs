//! Records a world that this process writes.

use super::{Ended, Head, Record, Writer};
use crate::audience::Viewer;
use crate::limits::{RECORDING_MARK_EVERY, RECORDING_PACKET_BYTES, RECORDING_WAITING_BYTES_MAX};
use crate::world::{Encodings, Publisher, PublisherConfig, World};
use parlor_proto::{Instant, MemberId};

/// Records one world, which must be the same at every call.
#[derive(Debug)]
pub struct Recorder {
    writer: Writer,
    publisher: Publisher,
    encodings: Encodings,
    mark_due: Instant,
    figures: Figures,
}

/// Counters of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes, including the head.
    pub bytes: u64,
    /// Packets of the world.
    pub packets: u64,
    /// Marks for comparison.
    pub marks: u64,
    /// Why the recording ended, if it has.
    pub ended: Option<Ended>,
}

/// No budget: everything that was committed is in the file.
const CONFIG: PublisherConfig = PublisherConfig {
    bytes_per_second: u32::MAX,
    packet_bytes: RECORDING_PACKET_BYTES,
    in_flight_bytes_max: u32::MAX as usize,
    is_plain: false,
};

impl Recorder {
    /// Creates a recording. It begins with the whole world at the first [observation](Self::observe).
    pub fn new(head: &Head) -> Self {
        let writer = Writer::new(head);
        let figures = Figures { bytes: writer.waiting_bytes() as u64, ..Figures::default() };
        Recorder {
            writer,
            publisher: Publisher::new(Viewer::Everything, CONFIG),
            encodings: Encodings::default(),
            mark_due: Instant::ZERO,
            figures,
        }
    }

    /// Records what was committed since the last call, as of this room time. Once a second it adds a hash of
    /// the world. It also shows a reader that follows the file that the room is alive.
    pub fn observe(&mut self, world: &World, at: Instant) {
        if self.figures.ended.is_some() {
            return;
        }
        while let Some((packet, sent)) = self.publisher.poll(world, &mut self.encodings, at) {
            self.put(at, &Record::Packet(packet));
            self.publisher.delivered(sent);
        }
        // Uncommitted changes would count in the hash, and are not in the file.
        if at >= self.mark_due && !world.is_dirty() {
            let hash = world.hash(Viewer::Everything);
            self.put(at, &Record::Mark { tick: world.tick().unwrap_or_default(), hash });
            self.mark_due = at + RECORDING_MARK_EVERY;
        }
    }

    /// Records that a player is in the room.
    pub fn came(&mut self, member: MemberId, name: &str) {
        self.put(self.writer.at(), &Record::Came { member, name: name.to_owned() });
    }

    /// Records that a player left.
    pub fn left(&mut self, member: MemberId) {
        self.put(self.writer.at(), &Record::Left { member });
    }

    /// Ends the recording. The first reason counts.
    pub fn end(&mut self, ended: Ended) {
        if self.figures.ended.is_none() {
            self.write(self.writer.at(), &Record::End(ended));
            self.figures.ended = Some(ended);
        }
    }

    /// Returns the bytes since the last call, to be appended to those before. If they are not taken, the
    /// recording ends once [`RECORDING_WAITING_BYTES_MAX`] bytes are pending.
    pub fn take(&mut self) -> Vec<u8> {
        self.writer.take()
    }

    /// Returns the counters.
    pub const fn figures(&self) -> Figures {
        self.figures
    }

    /// Writes a record unless the recording has ended. Ends it if too many bytes are pending.
    fn put(&mut self, at: Instant, record: &Record) {
        if self.figures.ended.is_none() {
            self.write(at, record);
            if self.writer.waiting_bytes() > RECORDING_WAITING_BYTES_MAX {
                self.end(Ended::Behind);
            }
        }
    }

    fn write(&mut self, at: Instant, record: &Record) {
        let before = self.writer.waiting_bytes();
        self.writer.write(at, record);
        let Figures { bytes, packets, marks, .. } = &mut self.figures;
        *bytes += (self.writer.waiting_bytes() - before) as u64;
        match record {
            Record::Packet(_) => *packets += 1,
            Record::Mark { .. } => *marks += 1,
            Record::Came { .. } | Record::Left { .. } | Record::End(_) => {}
        }
    }
}
