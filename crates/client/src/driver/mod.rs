//! The driver: sockets and a background thread behind a room, so that a game needs neither a runtime nor patience.

mod builder;
mod carry;
mod comeback;
mod dial;
mod inputs;
mod matches;
mod passport;
mod past;
mod paths;
mod places;
mod prediction;
mod reach;
mod recording;
mod replicas;
mod rollback;
mod room;
mod runtime;
mod shared;
mod ticket;
mod world;

pub use builder::RoomBuilder;
#[cfg(feature = "online")]
pub(crate) use passport::{NoTicket, Passport, Ticketing};
pub use reach::Via;
pub use recording::Recording;
pub use room::Room;
pub use ticket::{Ticket, TicketError};
