//! Realtime multiplayer for any game: open a room, share its code, play.
//!
#![cfg_attr(feature = "driver", doc = "```no_run")]
#![cfg_attr(not(feature = "driver"), doc = "```ignore")]
//! use parlor::{Event, Room};
//!
//! let mut room = Room::host("tanks").max_players(4).open();
//! loop {
//!     while let Some(event) = room.poll() {
//!         match event {
//!             Event::Open { code } => println!("share {code}"),
//!             Event::PlayerJoined(player) => println!("{} is here", player.name),
//!             Event::Closed(why) => return println!("{why}"),
//!             _ => {}
//!         }
//!     }
//!     while let Some(mut step) = room.step() {
//!         step.send_input("right").expect("the room is open while it steps");
//!         if let Some(mut host) = step.host() {
//!             // One fixed step of the game, from host.inputs() to host.set(…).
//!         }
//!     }
//!     // Draw.
//!     std::thread::sleep(room.until_next_tick());
//! }
//! ```
//!
//! - [`Room`] is all that a game holds; [`RoomBuilder`] has its options before it opens; [`Event`] tells what happens in it.
//! - State is a set of keys that the host writes ([`Host::set`]) and everybody reads: as it is ([`StateView::get`]), or
//!   smoothed for the eye ([`StateView::interpolated`]).
//! - Entities with components are for worlds of many things ([`Host::spawn`], [`Host::insert`], [`WorldView::component`]): quantized
//!   by a [`schema`], sent as small as can be, and only to those who see them. Who owns one may [act](Room::act) on it.
//! - States that players send of themselves, for games without a host that decides ([`OwnState`]): see
//!   [`replicator`].
//! - Inputs go from players to the host ([`Step::send_input`], [`HostStep::inputs`]); messages go from anybody to anybody
//!   ([`Room::send`], [`Room::broadcast`]).
//! - A match ([`Room::create_match`]) has no host: its players are equal and send each other data ([`Room::send_data`]).
//! - A host can record its room into a file ([`Room::recording`]), and [`recording::Playback`] plays it again, bit for bit.
//! - The crate `parlor-client-core` is the same without sockets, for other drivers: the simulator, a browser. Its API may change
//!   with any release.
//!
//! Features: `driver` (on by default) has the sockets; `clipboard` adds `Room::copy_invite`; `lan` adds rooms on the local network
//! (`parlor::lan`); `net` adds TCP, UDP, WebSocket and HTTP for what is not a room (`parlor::net`); `server` lets a host that finds no
//! server start one in its process; `online` adds accounts and rooms
//! that outlive every process (`parlor::online`); `settings` (on by default) reads a game's `parlor.toml` (`Settings`).
//! [`Module`] tells which of them a build has.

#[cfg(any(feature = "driver", feature = "net"))]
mod background;
#[cfg(feature = "driver")]
mod driver;
#[cfg(feature = "lan")]
pub mod lan;
mod modules;
#[cfg(feature = "net")]
pub mod net;
#[cfg(feature = "online")]
pub mod online;
#[cfg(feature = "settings")]
mod settings;

#[cfg(feature = "driver")]
pub use driver::{
    Host, HostBuilder, HostStep, JoinBuilder, MatchBuilder, OwnState, PacketLog, Preset, Recording,
    RecordingControl, ResumeTicket, ResumeTicketError, Rollback, Room, RoomBuilder, SendOptions, StateView,
    Step, TransportPreference, WorldReader, WorldView, kind,
};

pub use crate::modules::{DisabledBy, Module, ModuleDisabled};
#[cfg(feature = "settings")]
pub use crate::settings::{Settings, SettingsError};
pub use parlor_client_core::{
    Acting, Action, ActionError, Actions, ClosedReason, ConnectFailure, ConnectFailureKind, Connectivity,
    Diagnostics, Event, Interpolator, JoinPath, LinkState, Message, Mode, NoDirectPath, OverlayDiagnostics,
    Past, PathMode, Player, Protocol, ReasonCode, ReconnectPolicy, Role, RollbackConfig,
    RollbackKeyDiagnostics, RollbackRequest, RoomError, RoomInfo, Scope, StateSource, StateUpdate, Transport,
    TransportPath, TransportStatus, WorldAccess,
};
pub use parlor_proto::wire::action::ActionRefusal;
pub use parlor_proto::wire::control::HandOverRefusal;
pub use parlor_proto::wire::control::LeaveReason;
pub use parlor_proto::wire::envelope::{Recipient, Sender};
pub use parlor_proto::wire::handshake::{Refusal, ResumeRefusal};
pub use parlor_proto::{ApiMisuse, CloseReason, EntityId, Epoch, Lane, LinkKind, MemberId, RoomCode, Tick};
pub use parlor_sync::audience::Audience;
pub use parlor_sync::inputs::Counters as InputCounters;
pub use parlor_sync::interpolation::RenderDelay;
pub use parlor_sync::keyed::{HintError, Hints, Interp, StateError};
pub use parlor_sync::lead::LeadTuning;
pub use parlor_sync::prediction::{PredictionCounters, Smoothing};
pub use parlor_sync::replicated;
pub use parlor_sync::value::{Map, Value, ValueError, from_value, to_value};
pub use parlor_sync::world::{Diagnostics as WorldDiagnostics, WorldError};
pub use parlor_sync::{recording, replicator, rollback, schema};
#[cfg(feature = "driver")]
pub use parlor_transport::discovery::{Invite, Registry, ServerAddress};
#[cfg(feature = "driver")]
pub use parlor_transport::impaired::{Impairment, ImpairmentError, Outage};
#[cfg(feature = "driver")]
pub use parlor_transport::inside::Inside;

/// The programs in the README and the guide compile as they stand there.
#[cfg(all(doctest, feature = "driver"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;
    #[doc = include_str!("../../../docs/dedicated.md")]
    struct Dedicated;
    #[doc = include_str!("../../../docs/matches.md")]
    struct Matches;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/boards.md")]
    struct Boards;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/saves.md")]
    struct Saves;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/progress.md")]
    struct Progress;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/friends.md")]
    struct Friends;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/lobbies.md")]
    struct Lobbies;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/matchmaking.md")]
    struct Matchmaking;
    #[doc = include_str!("../../../docs/world.md")]
    struct World;
    #[doc = include_str!("../../../docs/feel.md")]
    struct Feel;
    #[doc = include_str!("../../../docs/replicator.md")]
    struct Replicator;
    #[doc = include_str!("../../../docs/impair.md")]
    struct Impair;
    #[doc = include_str!("../../../docs/recording.md")]
    struct Recording;
    #[cfg(feature = "server")]
    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/dump.md")]
    struct Dump;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/coming-from.md")]
    struct ComingFrom;
    #[cfg(feature = "net")]
    #[doc = include_str!("../../../docs/net.md")]
    struct Net;
    #[cfg(feature = "lan")]
    #[doc = include_str!("../../../docs/lan.md")]
    struct Lan;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/accounts.md")]
    struct Accounts;
    #[cfg(feature = "online")]
    #[doc = include_str!("../../../docs/online.md")]
    struct Online;
}
