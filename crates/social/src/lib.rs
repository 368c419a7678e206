//! What players have beyond a room, as pure machines: time is an argument, and storing is the caller's.
//!
//! A [`Board`] is what an operator defines. An [`Entry`] is one player's place in one [`Season`] of it, and only
//! [`Board::submit`] says what a score makes of it. [`Ranks`] has the order of all entries of a season, and gives
//! ranks and pages without reading a store.
//!
//! [`write_save`] says what a save in a [slot](SlotName) replaces, and which versions before are kept.

mod board;
mod entry;
pub mod limits;
mod ranks;
mod save;
mod season;

pub use board::{BadBoard, Board, BoardName, Keep, Order, Refused, Writers};
pub use entry::{Entry, Submission, Verdict, mark_of};
pub use ranks::{Full, Key, Loading, Ranks, Standing};
pub use save::{KeptSave, Replaces, SaveChange, SaveRefused, SlotName, remove_save, write_save};
pub use season::{BadSchedule, Schedule, Season, SeasonClock};
