//! The disk for room logs: writes take time, and completed ones survive the hub's process.

use parlor_impair::Rng;
use parlor_proto::{Instant, RoomId};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Writes wait in one queue, as in a server's recorder: each completes some time after the one before it.
#[derive(Debug)]
pub(crate) struct Disk {
    rng: Rng,
    write_us: RangeInclusive<u64>,
    /// When the queue is empty.
    idle_at: Instant,
    /// In the order in which the rooms opened.
    files: Vec<LogFile>,
    /// The files of the living process. A restarted process numbers its rooms from the beginning again.
    open: BTreeMap<RoomId, usize>,
}

/// The log of a room, as far as it was written.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// The room.
    pub room: RoomId,
    bytes: Vec<u8>,
    /// Where each write ends, the head first, and when it completed.
    writes: Vec<(usize, Instant)>,
    /// Bytes that survived the death of its process.
    kept: Option<usize>,
}

impl Disk {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0xd15c);
        let slowest_us = rng.pick(&[50, 2_000, 300_000]);
        Disk {
            rng,
            write_us: 10..=slowest_us,
            idle_at: Instant::ZERO,
            files: Vec::new(),
            open: BTreeMap::new(),
        }
    }

    pub(crate) fn append(&mut self, room: RoomId, bytes: &[u8], now: Instant) {
        let spread = self.write_us.end() - self.write_us.start();
        let takes = Duration::from_micros(self.write_us.start() + self.rng.below(spread + 1));
        self.idle_at = self.idle_at.max(now) + takes;
        let (files, done) = (&mut self.files, self.idle_at);
        let index = *self.open.entry(room).or_insert_with(|| {
            files.push(LogFile { room, bytes: Vec::new(), writes: Vec::new(), kept: None });
            files.len() - 1
        });
        let file = &mut files[index];
        file.bytes.extend_from_slice(bytes);
        file.writes.push((file.bytes.len(), done));
    }

    /// Kills the writing process: queued writes are lost, and the current one may be cut short.
    pub(crate) fn process_dies(&mut self, now: Instant) {
        let open: Vec<usize> = std::mem::take(&mut self.open).into_values().collect();
        let being_written = |file: &LogFile| {
            let first = file.writes.iter().find(|(_, done)| *done > now)?;
            Some((first.1, first.0))
        };
        let waiting = open.iter().filter_map(|index| Some((being_written(&self.files[*index])?, *index)));
        let torn = waiting.min().map(|((_, end), index)| (index, end));
        for index in open {
            let file = &mut self.files[index];
            let done = file.writes.iter().take_while(|(_, done)| *done <= now).last();
            let mut kept = done.map_or(0, |(end, _)| *end);
            if let Some((_, end)) = torn.filter(|(torn, _)| *torn == index) {
                kept += self.rng.index(end - kept + 1);
            }
            file.kept = Some(kept);
        }
        self.idle_at = now;
    }

    pub(crate) fn files(&self) -> &[LogFile] {
        &self.files
    }

    /// The logs of the living process, including queued writes.
    pub(crate) fn open(&self) -> impl Iterator<Item = (RoomId, &[u8])> {
        self.open.iter().map(|(room, index)| (*room, &self.files[*index].bytes[..]))
    }
}

impl LogFile {
    /// What is on the disk, or will be.
    pub fn durable(&self) -> Vec<u8> {
        self.bytes[..self.kept.unwrap_or(self.bytes.len())].to_vec()
    }

    /// Whether nothing of it was lost.
    pub fn is_whole(&self) -> bool {
        self.kept.is_none_or(|kept| kept == self.bytes.len())
    }

    /// The number of complete entries, the head not counted, and whether nothing follows them. `None` if the
    /// head is incomplete.
    pub fn whole_entries(&self) -> (Option<u64>, bool) {
        let kept = self.kept.unwrap_or(self.bytes.len());
        let writes = self.writes.iter().take_while(|(end, _)| *end <= kept).count();
        let is_clean = kept == 0 || writes > 0 && self.writes[writes - 1].0 == kept;
        (writes.checked_sub(1).map(|entries| entries as u64), is_clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(seed: u64) -> (Disk, Instant) {
        let mut disk = Disk::new(seed);
        let mut now = Instant::from_millis(1);
        for write in 0..40 {
            disk.append(RoomId(write % 2), b"12345", now);
            now += Duration::from_micros(20);
        }
        (disk, now)
    }

    #[test]
    fn who_dies_keeps_a_beginning_and_tears_one_write_at_most() {
        let mut torn = 0;
        for seed in 0..200 {
            let (mut disk, now) = written(seed);
            disk.process_dies(now);
            let unclean = disk.files().iter().filter(|file| !file.whole_entries().1).count();
            assert!(unclean <= 1, "seed {seed}: one thread writes");
            torn += unclean;
            for file in disk.files() {
                let (entries, is_clean) = file.whole_entries();
                let whole = entries.map_or(0, |entries| usize::try_from(entries).unwrap() + 1);
                assert_eq!(file.durable().len() / 5, whole, "seed {seed}");
                assert_eq!(file.durable().len().is_multiple_of(5), is_clean, "seed {seed}");
            }
        }
        assert!(torn > 20, "{torn} of 200 tore");
    }

    #[test]
    fn who_lives_writes_everything_and_another_process_begins_new_files() {
        let (mut disk, now) = written(1);
        assert!(disk.files().iter().all(|file| file.is_whole() && file.whole_entries() == (Some(19), true)));
        disk.process_dies(now + Duration::from_secs(60));
        disk.append(RoomId(0), b"head", now);
        assert_eq!(disk.files().len(), 3);
        assert_eq!(disk.open().collect::<Vec<_>>(), [(RoomId(0), &b"head"[..])]);
        assert!(disk.files().iter().all(LogFile::is_whole));
    }
}
