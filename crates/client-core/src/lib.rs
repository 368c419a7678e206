//! A room without sockets: pure, so that the simulator, the tests and a browser run the same code as a game.
//!
//! [`RoomCore`] has two faces. A *driver* delivers packets and time and sends its packets. A *game* polls
//! events, runs steps, reads and writes. The game sees the driver's input only when it polls.
//!
//! This crate has no stable API: its users are the crate `parlor`, the simulator and the benches, and its API
//! changes as they need it.

mod action;
pub mod binding;
mod columns;
mod connection;
mod defined;
mod describe;
mod drawing;
mod error;
mod event;
mod finding;
mod inbox;
mod info;
mod message;
mod migration;
mod options;
mod packet_log;
mod paths;
mod players;
mod recording;
mod replicas;
mod rollback;
mod room;
mod scope;
mod simulation;
mod state;
mod status;
mod world;

pub use action::{Acting, Action, ActionError};
pub use columns::Columns;
pub use connection::{LinkState, ReconnectPolicy};
pub use defined::Actions;
pub use describe::{Describe, Fields};
pub use drawing::{Drawing, Interpolator};
pub use error::RoomError;
pub use event::{
    ClosedReason, ConnectFailure, ConnectFailureKind, Event, Message, NoDirectPath, StateSource, StateUpdate,
};
pub use finding::Found;
pub use info::{
    Connectivity, Diagnostics, JoinPath, Mode, ReasonCode, Role, RoomInfo, Scope, TransportPath,
    TransportStatus,
};
pub use message::{MessageOptions, Typed, decode_typed};
pub use options::{Admission, Options, PRESENCE_MIN, PathMode, Protocol, Wish};
pub use packet_log::{
    LoggedMoment, LoggedPacket, Moment, PacketEntry, PacketLogError, PacketLogReader, PacketLogWriter,
    PacketWay,
};
pub use parlor_proto::PathId;
pub use parlor_proto::wire::path::PathRole;
pub use paths::PathCommand;
pub use players::{Player, Transport};
pub use recording::Recording;
pub use rollback::{RollbackConfig, RollbackKeyDiagnostics, RollbackLane, RollbackRequest};
pub use room::{ActionFailed, ActionToApply, RoomCore};
pub use simulation::{OverlayDiagnostics, Past};
pub use world::WorldAccess;
