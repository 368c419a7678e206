//! The simulated disk: files as the process sees them, and what of them survives a power cut.

use crate::vfs;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Size of an atomic write, in bytes.
const SECTOR: usize = 512;

static DISKS: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

/// A faulty disk under a folder.
#[derive(Clone, Debug)]
pub struct Disk {
    shared: Arc<Shared>,
}

/// Counters of syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syncs {
    /// Syncs that were begun.
    pub begun: u64,
    /// Syncs that were completed.
    pub completed: u64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    folder: PathBuf,
    state: Mutex<State>,
    /// Signals that a sync began, or that the disk is no longer stalled.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Image>,
    random: u64,
    is_full: bool,
    fails_syncs: bool,
    stands_still: bool,
    syncs: Syncs,
}

/// A file as the process sees it.
#[derive(Debug)]
struct Image {
    /// The surviving file. Open until the process ends: closing a file would release the locks that SQLite
    /// holds on it.
    file: File,
    content: Vec<u8>,
    /// Sectors that are not in the file, or may not be.
    unsynced: BTreeSet<usize>,
}

/// Errors of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Full,
    Sync,
    File,
}

impl Disk {
    /// Puts a folder on a faulty disk. The seed decides which writes reach their file before a sync, and the
    /// order in which sectors are written.
    ///
    /// # Errors
    ///
    /// If the folder does not exist, or SQLite refuses the layer.
    pub fn over(folder: &Path, seed: u64) -> io::Result<Disk> {
        vfs::install()?;
        let state = State { random: seed | 1, ..State::default() };
        let shared =
            Shared { folder: folder.canonicalize()?, state: Mutex::new(state), changed: Condvar::new() };
        let shared = Arc::new(shared);
        disks().push(Arc::clone(&shared));
        Ok(Disk { shared })
    }

    /// Sets whether the disk is full: all writes fail.
    pub fn set_full(&self, is_full: bool) {
        self.shared.lock().is_full = is_full;
    }

    /// Sets whether syncs fail. A failed sync writes nothing.
    pub fn fail_syncs(&self, fails: bool) {
        self.shared.lock().fails_syncs = fails;
    }

    /// Sets whether the disk is stalled: a sync that began completes once the disk is no longer stalled.
    pub fn stand_still(&self, stands_still: bool) {
        self.shared.lock().stands_still = stands_still;
        self.shared.changed.notify_all();
    }

    /// Waits until more than `begun` syncs have begun.
    pub fn wait_for_sync_after(&self, begun: u64) {
        let mut state = self.shared.lock();
        while state.syncs.begun <= begun {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Syncs so far.
    pub fn syncs(&self) -> Syncs {
        self.shared.lock().syncs
    }
}

fn disks() -> MutexGuard<'static, Vec<Arc<Shared>>> {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The faulty disk that a file is on, if any.
pub(crate) fn of(path: &Path) -> Option<Arc<Shared>> {
    disks().iter().find(|disk| path.parent() == Some(&disk.folder)).cloned()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens an existing file. Earlier writes of this process are still visible.
    pub(crate) fn open(&self, path: &Path) -> Result<(), Failed> {
        let mut state = self.lock();
        if state.files.contains_key(path) {
            return Ok(());
        }
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(|_| Failed::File)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(|_| Failed::File)?;
        state.files.insert(path.to_owned(), Image { file, content, unsynced: BTreeSet::new() });
        Ok(())
    }

    /// Deletes a file. Deletion is always durable here: SQLite makes no promise that depends on it.
    pub(crate) fn forget(&self, path: &Path) {
        self.lock().files.remove(path);
    }

    pub(crate) fn len(&self, path: &Path) -> Option<usize> {
        self.lock().files.get(path).map(|image| image.content.len())
    }

    /// Fills the buffer from an offset, with zeros beyond the file's end. Returns the number of bytes read.
    pub(crate) fn read(&self, path: &Path, offset: usize, buffer: &mut [u8]) -> Result<usize, Failed> {
        let state = self.lock();
        let content = &state.files.get(path).ok_or(Failed::File)?.content;
        let from = content.get(offset..).unwrap_or_default();
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        buffer[count..].fill(0);
        Ok(count)
    }

    pub(crate) fn write(&self, path: &Path, offset: usize, bytes: &[u8]) -> Result<(), Failed> {
        let mut state = self.lock();
        if state.is_full {
            return Err(Failed::Full);
        }
        let random = state.next_random();
        let image = state.files.get_mut(path).ok_or(Failed::File)?;
        let end = offset.checked_add(bytes.len()).ok_or(Failed::Full)?;
        if image.content.len() < end {
            image.content.resize(end, 0);
        }
        image.content[offset..end].copy_from_slice(bytes);
        let sectors = offset / SECTOR..end.div_ceil(SECTOR);
        image.unsynced.extend(sectors.clone());
        // One sector in a few reaches the file at once, ahead of earlier writes.
        let sooner = sectors.start + usize::try_from(random >> 32).unwrap_or(0) % (sectors.len() * 4).max(1);
        if sectors.contains(&sooner) {
            image.flush(sooner).map_err(|_| Failed::File)?;
        }
        Ok(())
    }

    pub(crate) fn truncate(&self, path: &Path, len: usize) -> Result<(), Failed> {
        let mut state = self.lock();
        let image = state.files.get_mut(path).ok_or(Failed::File)?;
        image.content.truncate(len);
        image.unsynced.retain(|sector| sector * SECTOR < len);
        // The last sector was cut short.
        image.unsynced.extend(len.checked_sub(1).map(|last| last / SECTOR));
        Ok(())
    }

    /// Makes all writes durable.
    pub(crate) fn sync(&self, path: &Path) -> Result<(), Failed> {
        let mut state = self.lock();
        state.syncs.begun += 1;
        self.changed.notify_all();
        while state.stands_still {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.fails_syncs {
            return Err(Failed::Sync);
        }
        let random = state.next_random();
        let image = state.files.get_mut(path).ok_or(Failed::File)?;
        let mut sectors: Vec<usize> = image.unsynced.iter().copied().collect();
        // A process killed in this loop leaves any subset written.
        sectors.sort_by_key(|sector| (*sector as u64 ^ random).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for sector in sectors {
            image.flush(sector).map_err(|_| Failed::Sync)?;
        }
        image.file.set_len(image.content.len() as u64).map_err(|_| Failed::Sync)?;
        image.unsynced.clear();
        state.syncs.completed += 1;
        Ok(())
    }
}

impl State {
    /// xorshift64*, which is random enough for a disk.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

impl Image {
    fn flush(&mut self, sector: usize) -> io::Result<()> {
        let start = sector * SECTOR;
        let end = (start + SECTOR).min(self.content.len());
        let Some(bytes) = self.content.get(start..end) else { return Ok(()) };
        self.file.seek(SeekFrom::Start(start as u64))?;
        self.file.write_all(bytes)
    }
}
