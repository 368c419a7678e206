//! The commands of the binary.

pub(crate) mod admin;
pub(crate) mod board;
pub(crate) mod bots;
pub(crate) mod doctor;
pub(crate) mod draughts;
pub(crate) mod dump;
pub(crate) mod impair;
pub(crate) mod lobby;
pub(crate) mod manual;
pub(crate) mod matches;
pub(crate) mod new;
pub(crate) mod play;
mod playback;
pub(crate) mod replay;
pub(crate) mod rooms;
pub(crate) mod serve;
pub(crate) mod token;
