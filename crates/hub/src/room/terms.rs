//! How a room treats members whose connection is lost, as its opener wants it.

use super::{Output, Room};
use parlor_proto::wire::control::RoomTerms;
use parlor_proto::wire::handshake::Authority;
use parlor_proto::{MemberId, PeerMisbehaved};
use std::time::Duration;

/// The member that opened the room.
const OPENER: MemberId = MemberId(0);

impl Room {
    /// Returns the silence after which a member counts as lost, if the room's opener set it.
    pub fn presence(&self) -> Option<Duration> {
        self.terms.presence_ms.map(|ms| Duration::from_millis(ms.into()))
    }

    /// Returns how long a seat of it is kept on a hub that keeps seats for `of_hub`.
    pub fn grace(&self, of_hub: Duration) -> Duration {
        let of_room = self.terms.grace_ms.map(|ms| Duration::from_millis(ms.into()));
        of_room.map_or(of_hub, |of_room| of_room.min(of_hub))
    }

    pub(super) fn terms_from(&mut self, from: MemberId, terms: RoomTerms) -> Result<(), PeerMisbehaved> {
        if self.is_word_of_opener(from)? {
            self.terms = terms;
            self.outputs.push_back(Output::Terms { by: from });
        }
        Ok(())
    }

    pub(super) fn spectators_from(&mut self, from: MemberId, most: u16) -> Result<(), PeerMisbehaved> {
        if self.is_word_of_opener(from)? {
            self.spectators = most;
        }
        Ok(())
    }

    /// Whether a member may say how the room is. A former authority, which the room has outlived, is ignored.
    fn is_word_of_opener(&mut self, from: MemberId) -> Result<bool, PeerMisbehaved> {
        match self.authority {
            Authority::Member(_) => self.is_word_of_authority(from, "the terms of the room"),
            Authority::Hub if from == OPENER => Ok(true),
            Authority::Hub => Err(PeerMisbehaved::OutOfPlace {
                frame: "the terms of a match",
                when: "from a member that did not open it",
            }),
        }
    }
}
