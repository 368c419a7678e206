//! A room without sockets: pure, so that the simulator, the tests and a browser run the same code as a game.
//!
//! [`RoomCore`] has two faces. A *driver* gives it packets and time and takes packets from it; a *game* polls events,
//! asks for steps, reads and writes. What a driver does is not seen by the game until the game polls.

mod comeback;
mod confirmed;
mod control;
mod error;
mod event;
mod game;
mod inbox;
mod info;
mod inputs;
mod marks;
mod matches;
mod message;
mod migration;
mod options;
mod overlay;
mod pace;
mod paths;
mod players;
mod prediction;
mod reading;
mod reconnect;
mod recording;
mod replay;
mod replicas;
mod resimulation;
mod rewind;
mod rollback;
mod room;
mod shared;
mod ticker;
mod unhandled;
mod upstream;
mod vigil;
mod world;

pub use error::RoomError;
pub use event::{ClosedReason, ConnectFailure, ConnectFailureKind, Event, Message, StateSource, StateUpdate};
pub use info::{
    Connectivity, Diagnostics, JoinPath, Mode, ReasonCode, Role, RoomInfo, Scope, TransportPath,
    TransportStatus,
};
pub use message::decode_typed;
pub use options::{Admission, Options, Wish};
pub use overlay::OverlayDiagnostics;
pub use parlor_proto::PathId;
pub use parlor_proto::wire::path::PathRole;
pub use paths::{PathCommand, PathMode};
pub use players::{Player, Transport};
pub use reconnect::LinkState;
pub use rewind::Past;
pub use rollback::{RollbackConfig, RollbackRequest};
pub use room::{Found, RoomCore};
pub use world::WorldAccess;
