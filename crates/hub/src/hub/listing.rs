//! Which matches are there: what a server lists, so that a game can join one without having been given its id.

use super::Hub;
use super::news::{RoomSummary, summary};
use parlor_proto::RoomCode;
use parlor_proto::wire::handshake::RoomKind;

/// Which matches are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchFilter {
    /// Of which game.
    pub app: String,
    /// Of which environment of it.
    pub environment: String,
    /// Under which label; `None` for any.
    pub label: Option<String>,
    /// With so many members at least.
    pub members_min: usize,
    /// And so many at most; `None` for any number.
    pub members_max: Option<usize>,
    /// Only those that have a seat left.
    pub has_seat: bool,
}

impl MatchFilter {
    fn admits(&self, room: &RoomSummary) -> bool {
        room.kind == RoomKind::Match
            && !room.needs_secret
            && room.app == self.app
            && room.environment == self.environment
            && self.label.as_ref().is_none_or(|label| *label == room.label)
            && (self.members_min..=self.members_max.unwrap_or(usize::MAX)).contains(&room.players)
            && (!self.has_seat || room.players < usize::from(room.max_players))
    }
}

impl Hub {
    /// Matches of this hub that are wanted, by ascending id: at most `limit` of those after the id `after`. One with a secret is
    /// never among them: whoever may join it was told of it.
    #[must_use]
    pub fn matches(&self, filter: &MatchFilter, after: Option<RoomCode>, limit: usize) -> Vec<RoomSummary> {
        let rooms = self.directory.after(after).filter(|(code, _)| code.is_match_id());
        let rooms = rooms.filter_map(|(_, id)| self.rooms.get(&id));
        let wanted = rooms.map(|seated| summary(&seated.room)).filter(|room| filter.admits(room));
        wanted.take(limit).collect()
    }
}
