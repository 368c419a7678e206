//! The driver: sockets and a background thread behind a room, so that a game needs neither a runtime nor patience.

mod builder;
mod claim;
#[cfg(feature = "clipboard")]
mod clipboard;
mod connect_options;
mod dial;
mod failure;
mod file_writer;
#[cfg(feature = "settings")]
mod from_settings;
mod handle;
mod host;
mod join_at;
mod kind_options;
mod link_pump;
#[cfg(feature = "server")]
mod listed;
mod loop_advice;
mod messages;
#[cfg(feature = "server")]
mod own_server;
mod packet_log;
mod passport;
mod paths;
mod places;
mod preset;
mod recording;
mod replicas;
mod resume;
mod resume_ticket;
mod rollback;
mod room;
mod runtime;
mod state;
mod step;
mod world;

/// What a room is opened as: [`RoomBuilder`] has the options of each.
pub mod kind {
    pub use super::kind_options::{Host, Hosted, Join, Match, Opens};
}

pub use builder::{HostBuilder, JoinBuilder, MatchBuilder, RoomBuilder};
pub use connect_options::TransportPreference;
#[cfg(feature = "settings")]
pub(crate) use connect_options::check_scheme;
pub use host::Host;
pub use messages::SendOptions;
pub use packet_log::PacketLog;
#[cfg(feature = "online")]
pub(crate) use passport::{NoTicket, Passport, Ticketing};
pub use preset::Preset;
pub use recording::{Recording, RecordingControl};
pub use replicas::OwnState;
pub use resume_ticket::{ResumeTicket, ResumeTicketError};
pub use rollback::Rollback;
pub use room::Room;
pub use state::StateView;
pub use step::{HostStep, Step};
pub use world::{WorldReader, WorldView};
