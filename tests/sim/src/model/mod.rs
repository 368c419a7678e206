//! A small model of rooms that the real implementation is checked against: members, events, messages and
//! their receivers, and the state at each sequence.
//!
//! It watches the calls of games, the events of their hub, and the events of games. It objects as soon as two
//! of these contradict each other. It knows nothing of packets, acknowledgements or time: its demands hold on
//! any network. Only [`Model::settled`] expects a good network.
//!
//! - `members`: seats, and the news that each member must receive
//! - `messages`: messages of games, on every lane
//! - `shared`: the state at each sequence, inputs, and player data
//! - `replayed`: the logs of the rooms

mod members;
pub(crate) mod messages;
mod replayed;
mod shared;
#[cfg(test)]
mod tests;

use crate::peer::PeerId;
use members::{Peer, Room};
use messages::Messages;
use parlor_client_core::Event;
use parlor_proto::{MemberId, RoomCode};
use std::collections::BTreeMap;
use std::fmt;

pub use members::Trouble;
pub use messages::{Channel, SentMessage};
pub use shared::Key;

/// A contradiction between the model and the implementation.
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

/// The model's judgement of what it was given.
pub type Verdict = Result<(), Divergence>;

/// Objects unless the condition holds.
fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Divergence(otherwise())) }
}

/// Numbers the rooms of a world in the order of their opening: codes and the hub's own numbers are reused.
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
    messages: Messages,
    is_shutting_down: bool,
    counts: Counts,
}

/// Counts of what was checked, so that a test can see that it was not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rooms that opened.
    pub rooms: u64,
    /// Seats taken.
    pub seats: u64,
    /// Of these, spectators' seats.
    pub spectators: u64,
    /// Seats given up, for any reason.
    pub leaves: u64,
    /// Of these, kicks.
    pub kicks: u64,
    /// Of these, timeouts.
    pub silences: u64,
    /// Connections lost and resumed.
    pub resumed: u64,
    /// Clients rejected.
    pub rejected: u64,
    /// Messages received by games.
    pub messages: u64,
    /// Of these, messages missing in their room's log, because they went over a path.
    pub messages_apart: u64,
    /// Decoded states whose hash was compared.
    pub states: u64,
    /// How often a member was seen reading its host's state over a path.
    pub apart: u64,
    /// Inputs that a host read.
    pub inputs: u64,
    /// Predicted actions that members made.
    pub actions: u64,
    /// Of these, refused ones.
    pub actions_refused: u64,
    /// Changes of player data seen by games.
    pub data: u64,
    /// Members present at the end with everything that they must have.
    pub settled: u64,
    /// Logs of rooms that were replayed.
    pub logs: u64,
    /// Of these, logs that had lost their end.
    pub torn: u64,
}

impl Counts {
    /// The sum of two.
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            rooms: self.rooms + other.rooms,
            seats: self.seats + other.seats,
            leaves: self.leaves + other.leaves,
            spectators: self.spectators + other.spectators,
            kicks: self.kicks + other.kicks,
            silences: self.silences + other.silences,
            resumed: self.resumed + other.resumed,
            rejected: self.rejected + other.rejected,
            messages: self.messages + other.messages,
            messages_apart: self.messages_apart + other.messages_apart,
            states: self.states + other.states,
            apart: self.apart + other.apart,
            inputs: self.inputs + other.inputs,
            actions: self.actions + other.actions,
            actions_refused: self.actions_refused + other.actions_refused,
            data: self.data + other.data,
            settled: self.settled + other.settled,
            logs: self.logs + other.logs,
            torn: self.torn + other.torn,
        }
    }
}

impl Model {
    /// A world without rooms.
    pub fn new() -> Self {
        Model::default()
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Checks an event of a game.
    ///
    /// # Errors
    /// [`Divergence`] if the event is wrong.
    pub fn told(&mut self, who: PeerId, event: &Event) -> Verdict {
        self.told_in_order(who, event)?;
        match event {
            Event::Message(_) | Event::Raw { .. } => self.message_came(who, event),
            Event::PlayerData { id, key, value } => self.data_came(who, *id, key, value.as_ref()),
            Event::PlayerJoined(player) | Event::SpectatorJoined(player) => {
                player.all_data().try_for_each(|(key, value)| self.data_was_set(who, player.id, key, value))
            }
            Event::State(update) => self.update_came(who, update),
            Event::ActionRefused { .. } => self.action_refused(who),
            _ => Ok(()),
        }
    }

    /// Whether a client has taken a seat, according to the hub's events so far.
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
