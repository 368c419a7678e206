//! Accounts and turn rooms: rooms that the server runs, and that outlive every process, the server's included.
//!
//! ```no_run
//! use parlor::online::{self, Event};
//! # #[derive(serde::Serialize)] struct Put { cell: u8 }
//! # #[derive(Default, serde::Serialize, serde::Deserialize)] struct Board { cells: [u8; 9] }
//!
//! let mut room = online::sign_in("play.example.com").join_or_create("noughts")?;
//! loop {
//!     while let Some(event) = room.poll() {
//!         match event {
//!             Event::TurnStarted { is_me: true, .. } => println!("your turn"),
//!             Event::MoveRejected { error, .. } => println!("{error}"),
//!             Event::GameOver { winner, reason } => return Ok(println!("{winner:?} won: {reason}")),
//!             Event::Closed(error) => return Err(error.into()),
//!             _ => {}
//!         }
//!     }
//!     if room.my_turn() {
//!         let mut board: Board = room.state()?;
//!         board.cells[4] = 1;
//!         room.propose_move("put", &Put { cell: 4 }, &board)?;
//!     }
//!     // Draw, and wait for the next frame.
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing blocks and nothing calls back: a thread in the background has the socket, and what came is taken in by
//! [`poll`](TurnRoom::poll) alone. A connection that is lost is made again, for as long as the game polls. A move that was under way then is
//! made once or not at all: the room's state has a number, and a move is for one of them.
//!
//! - [`SignIn`]: who the player is, and which room
//! - [`TurnRoom`], [`Event`]: the room as a game holds it
//! - [`Account`]: the same player in realtime rooms, and what there is for it to join
//! - [`Session`]: what a game saves so that its player is the same one after a restart
//! - [`RoomView`]: all that there is to read
//!
//! `docs/turn-rooms.md` says what a room is, `docs/accounts.md` what an account is, `docs/online.md` how this travels.

mod account;
mod core;
mod error;
mod event;
mod lists;
mod own_data;
mod room;
mod session;
mod sign_in;
mod token_store;
mod view;
mod who;

pub use account::{Account, AccountError, Pending};
pub use error::{OnlineError, RoomFailure};
pub use event::Event;
pub use lists::{Happened, KeptMatch, LiveMatch, LogEntry, MatchFilter, MatchLog, Part, RoomSummary};
pub use own_data::{AccountInfo, ExportPart};
pub use room::TurnRoom;
pub use session::{Session, SessionError};
pub use sign_in::{SignIn, sign_in};
pub use view::{Phase, RoomPlayer, RoomResult, RoomView};
