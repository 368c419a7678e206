//! What players have beyond a room, as pure machines: time is an argument, and storing is the caller's.
//!
//! A [`Board`] is what an operator defines. An [`Entry`] is one player's place in one [`Season`] of it, and only
//! [`Board::submit`] says what a score makes of it. [`Ranks`] has the order of all entries of a season, and gives
//! ranks and pages without reading a store.
//!
//! A [`Statistic`] is a number of each player, an [`Achievement`] is unlocked once, and [`rate`] says what a result
//! makes of [ratings](Rating).
//!
//! [`write_save`] says what a save in a slot replaces, and which versions before are kept. [`Readers`] and
//! [`ObjectWriters`] say who may read and write an object. [`Relation`] is what two players are to each other, and
//! [`Presence`] says which friends are told who is here, and [`Elsewhere`] what is known of friends at other servers. [`Lobbies`] has the lobbies and parties of a realm. A
//! [`Pool`] makes matches of those who look for one.

mod board;
mod definition;
mod elsewhere;
mod entry;
mod friend;
pub mod limits;
mod lobby;
mod matching;
mod name;
mod object;
mod presence;
mod progress;
mod properties;
mod ranks;
mod save;
mod season;

pub use board::{Board, Keep, Order, Refused, Writers};
pub use definition::BadDefinition;
pub use elsewhere::Elsewhere;
pub use entry::{Entry, Submission, Verdict, mark_of};
pub use friend::{FriendCounts, FriendRefused, FriendState, FriendStep, Relation};
pub use lobby::{
    Access, Entrance, FIELDS, Found, Gone, Lobbies, Lobby, LobbyChange, LobbyId, LobbyKind, LobbyMember,
    LobbyNews, LobbyRefused, NewLobby, Person, PlayerKey, Search, SearchOrder,
};
pub use matching::{
    Backfill, Ended, EnterRefused, HandOutRefused, Match, Offer, OfferRefused, OfferedBy, Players, Pool,
    PoolStats, Queue, RttRule, Seeker, SkillRule, Ticket, TicketId, TicketState, WidenBy, go_together,
};
pub use name::{BadName, Name};
pub use object::{ObjectUser, ObjectWriters, Readers};
pub use presence::{LINGER, Presence, PresenceNews};
pub use progress::{
    Achievement, Goal, Ladder, Progress, ProgressRefused, ProgressWrite, RATING_START, Rating, RatingChange,
    ResultRefused, Statistic, StatisticKeep, StatisticRefused, StatisticValue, StatisticWrite,
    StatisticWritten, rate, unlocks,
};
pub use properties::{
    BadProperty, Comparisons, Condition, Filter, Properties, Property, admits, check_filter, check_properties,
};
pub use ranks::{Full, Key, Loading, Ranks, Standing};
pub use save::{KeptSave, Replaces, SaveChange, SaveRefused, remove_save, write_save};
pub use season::{BadSchedule, Schedule, Season, SeasonClock};
