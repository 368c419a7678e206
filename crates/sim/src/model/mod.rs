//! A small model of rooms, held against the real thing: who is a member, who must have been told what, which messages
//! reach whom, and what the state is at each sequence.
//!
//! It watches what games ask for, what their hub says that it did, and what games are told, and objects as soon as two
//! of these do not fit together. It knows nothing of packets, acknowledgements or time: what it demands holds however
//! bad the network is. The part that waits for a good network is [`Model::settled`].
//!
//! - `members`: seats, and the news that each member is owed
//! - `letters`: messages, on every lane
//! - `shared`: the state at each sequence, inputs, and player data
//! - `replayed`: the logs of the rooms

pub(crate) mod letters;
mod members;
mod replayed;
mod shared;
#[cfg(test)]
mod tests;

use crate::peer::PeerId;
use letters::Letters;
use members::{Peer, Room};
use parlor::{Event, MemberId, RoomCode};
use std::collections::BTreeMap;
use std::fmt;

pub use letters::{Channel, Letter};
pub use members::Trouble;
pub use shared::Key;

/// Two things that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence(String);

impl Divergence {
    pub(crate) fn new(what: String) -> Self {
        Divergence(what)
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Divergence {}

/// What the model thinks of what it was told.
pub type Verdict = Result<(), Divergence>;

/// Objects unless something holds.
fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Divergence(otherwise())) }
}

/// Numbers the rooms of a world in the order in which they opened: codes and the hub's own numbers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RoomIndex(usize);

impl fmt::Display for RoomIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "room #{}", self.0)
    }
}

/// The model of a world. See the [module](self).
#[derive(Debug, Default)]
pub struct Model {
    rooms: Vec<Room>,
    open: BTreeMap<RoomCode, RoomIndex>,
    peers: BTreeMap<PeerId, Peer>,
    letters: Letters,
    is_shutting_down: bool,
    counts: Counts,
}

/// How much was held against the model, so that a test can see that it was not nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rooms that opened.
    pub rooms: u64,
    /// Seats that were taken.
    pub seats: u64,
    /// Seats that were given up, one way or another.
    pub leaves: u64,
    /// Of these, by the host's wish.
    pub kicks: u64,
    /// Of these, because nothing was heard any more.
    pub silences: u64,
    /// Connections that were lost and made again.
    pub resumed: u64,
    /// Clients that were turned away.
    pub turned_away: u64,
    /// Messages that reached a game.
    pub letters: u64,
    /// Of these, those that no log of their room has, because they went over a path between their two ends.
    pub letters_apart: u64,
    /// States that members decoded and whose hash was compared.
    pub states: u64,
    /// How often a member was seen to read what comes from its host over a path.
    pub apart: u64,
    /// Inputs that a host read.
    pub inputs: u64,
    /// Changes of player data that a game was told.
    pub data: u64,
    /// Members that were there at the end and had everything that they were owed.
    pub settled: u64,
    /// Logs of rooms that ran again.
    pub logs: u64,
    /// Of these, logs that had lost their end.
    pub torn: u64,
}

impl Counts {
    /// The sum of two.
    #[must_use]
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            rooms: self.rooms + other.rooms,
            seats: self.seats + other.seats,
            leaves: self.leaves + other.leaves,
            kicks: self.kicks + other.kicks,
            silences: self.silences + other.silences,
            resumed: self.resumed + other.resumed,
            turned_away: self.turned_away + other.turned_away,
            letters: self.letters + other.letters,
            letters_apart: self.letters_apart + other.letters_apart,
            states: self.states + other.states,
            apart: self.apart + other.apart,
            inputs: self.inputs + other.inputs,
            data: self.data + other.data,
            settled: self.settled + other.settled,
            logs: self.logs + other.logs,
            torn: self.torn + other.torn,
        }
    }
}

impl Model {
    /// A world without rooms.
    #[must_use]
    pub fn new() -> Self {
        Model::default()
    }

    /// How much was held against it so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A game was told something.
    ///
    /// # Errors
    /// [`Divergence`] if it should not have been.
    pub fn told(&mut self, who: PeerId, event: &Event) -> Verdict {
        self.told_in_order(who, event)?;
        match event {
            Event::Message(_) | Event::Raw { .. } => self.letter_came(who, event),
            Event::PlayerData { id, key, value } => self.data_came(who, *id, key, value.as_ref()),
            Event::PlayerJoined(player) => {
                player.all_data().try_for_each(|(key, value)| self.data_was_set(who, player.id, key, value))
            }
            Event::State(update) => self.update_came(who, update),
            _ => Ok(()),
        }
    }

    /// Whether a client took a seat, as far as the hub has said so.
    #[must_use]
    pub fn has_seat(&self, who: PeerId) -> bool {
        self.seat(who).is_some()
    }

    fn seat(&self, who: PeerId) -> Option<(RoomIndex, MemberId)> {
        self.peers.get(&who).and_then(|peer| peer.seat)
    }

    fn room(&self, index: RoomIndex) -> &Room {
        &self.rooms[index.0]
    }

    fn room_mut(&mut self, index: RoomIndex) -> &mut Room {
        &mut self.rooms[index.0]
    }

    fn peer_mut(&mut self, who: PeerId) -> Result<&mut Peer, Divergence> {
        self.peers.get_mut(&who).ok_or_else(|| Divergence(format!("{who} never asked to be let in")))
    }
}
