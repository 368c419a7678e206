//! Playback: the recorded world and players at any moment.

use super::{Ended, Head, Reader, Record, RecordingError};
use crate::audience::Viewer;
use crate::keyed::{Changes, KeyReader};
use crate::world::{Applied, Outcome, Replica, World};
use parlor_proto::limits::MEMBERS_MAX_SERVER_RUN;
use parlor_proto::wire::cursor::ReadError;
use parlor_proto::{Instant, MemberId, Tick};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Plays a recording, record by record or up to a room time, so that a spectator may be arbitrarily far
/// behind.
///
/// Its state is that of the recorded room. It is complete between two calls, whatever was lost on the room's
/// network.
#[derive(Debug, Default)]
pub struct Playback {
    reader: Reader,
    play: Option<Play>,
    /// A record that is not due yet.
    next: Option<(Instant, Record)>,
    at: Instant,
    records: u64,
    players: BTreeMap<MemberId, String>,
    marks: u64,
    first_difference: Option<Tick>,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Play {
    head: Arc<Head>,
    replica: Replica,
    keys: KeyReader,
}

/// The result of a record.
#[derive(Clone, Debug)]
pub struct Step {
    /// When it happened, in room time.
    pub at: Instant,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// The world changed.
    Changed {
        /// The spawned, changed and despawned entities, including those that carry keys.
        applied: Applied,
        /// The changed keys.
        keys: Changes,
    },
    /// The world was compared with the recorded hash.
    Mark {
        /// The authority's newest tick.
        tick: Tick,
        /// The recorded hash.
        hash: u64,
        /// Whether this world has the same hash.
        agrees: bool,
    },
    /// A player joined: see [`Playback::players`].
    Came(MemberId),
    /// A player left.
    Left(MemberId),
    /// The recording ended.
    Ended(Ended),
}

impl Playback {
    /// Creates a playback without data.
    pub fn new() -> Self {
        Playback::default()
    }

    /// Feeds the next bytes of the file. Feed only when [`step`](Self::step) returns `None`, to keep little
    /// more than a piece in memory.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes);
    }

    /// Returns the recording's head; `None` until enough was fed.
    ///
    /// # Errors
    /// [`RecordingError`], the same at every call.
    pub fn head(&mut self) -> Result<Option<Arc<Head>>, RecordingError> {
        if self.play.is_none()
            && let Some(head) = self.reader.head()?
        {
            let replica = Replica::of_everything(Arc::clone(&head.schema), head.tick_rate);
            self.play = Some(Play { head: Arc::clone(head), replica, keys: KeyReader::new() });
        }
        Ok(self.play.as_ref().map(|play| Arc::clone(&play.head)))
    }

    /// Returns the time of the next record; `None` until it was fed completely.
    ///
    /// # Errors
    /// [`RecordingError`]; after that, only the same error.
    pub fn next_at(&mut self) -> Result<Option<Instant>, RecordingError> {
        if self.next.is_none() && self.head()?.is_some() {
            self.next = self.reader.next_record()?;
        }
        Ok(self.next.as_ref().map(|(at, _)| *at))
    }

    /// Plays the next record, if there is one that is not after `until`.
    ///
    /// # Errors
    /// As [`next_at`](Self::next_at); the state played so far stays.
    pub fn step(&mut self, until: Instant) -> Result<Option<Step>, RecordingError> {
        let is_due = self.next_at()?.is_some_and(|at| at <= until);
        let Some((at, record)) = self.next.take_if(|_| is_due) else { return Ok(None) };
        self.at = at;
        self.records += 1;
        let what = self.take(record).map_err(|error| self.reader.fail(error))?;
        Ok(Some(Step { at, what }))
    }

    fn take(&mut self, record: Record) -> Result<What, RecordingError> {
        let play = self.play.as_mut().expect("a record comes after the head");
        let number = self.reader.records() - 1;
        match record {
            Record::Packet(packet) => {
                let outcome = play.replica.apply(packet);
                let outcome = outcome
                    .map_err(|error| RecordingError::Stream { record: number, error: Box::new(error) })?;
                let applied = match outcome {
                    Outcome::Taken(applied) => applied,
                    Outcome::Old | Outcome::Waiting => Applied::default(),
                };
                let keys = play.keys.observe(play.replica.world(), &applied);
                Ok(What::Changed { applied, keys })
            }
            Record::Mark { tick, hash } => {
                let agrees = play.replica.world().hash(Viewer::Everything) == hash;
                self.marks += 1;
                if !agrees {
                    self.first_difference.get_or_insert(tick);
                }
                Ok(What::Mark { tick, hash, agrees })
            }
            Record::Came { member, name } => {
                let is_full = self.players.len() >= usize::from(MEMBERS_MAX_SERVER_RUN);
                if is_full && !self.players.contains_key(&member) {
                    let (offset, error) = (self.reader.offset(), ReadError::OutOfRange { field: "members" });
                    return Err(RecordingError::Malformed { record: number, offset, error });
                }
                self.players.insert(member, name);
                Ok(What::Came(member))
            }
            Record::Left { member } => {
                self.players.remove(&member);
                Ok(What::Left(member))
            }
            Record::End(ended) => {
                self.ended = Some(ended);
                Ok(What::Ended(ended))
            }
        }
    }

    /// Returns the world; `None` before the head.
    pub fn world(&self) -> Option<&World> {
        self.play.as_ref().map(|play| play.replica.world())
    }

    /// Returns the keyed state; `None` before the head.
    pub fn keys(&self) -> Option<&KeyReader> {
        self.play.as_ref().map(|play| &play.keys)
    }

    /// Returns the players with their names.
    pub const fn players(&self) -> &BTreeMap<MemberId, String> {
        &self.players
    }

    /// Returns the current room time.
    pub const fn at(&self) -> Instant {
        self.at
    }

    /// The number of records played.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The number of marks compared.
    pub const fn marks(&self) -> u64 {
        self.marks
    }

    /// The tick of the first mark that did not match.
    pub const fn first_difference(&self) -> Option<Tick> {
        self.first_difference
    }

    /// Why the recording ended, once it has. A file without an end was cut off.
    pub const fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Returns the underlying reader, which may be one record ahead.
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }
}
