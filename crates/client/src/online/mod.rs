//! Accounts and turn rooms. A turn room is run by the server and outlives every process, the server's
//! included.
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
//! No call blocks and there are no callbacks. A background thread has the socket, and only
//! [`poll`](TurnRoom::poll) takes in what was received. A lost connection is reconnected as long as the game
//! polls. A move that was pending then is made once or not at all: a move names the version of the state that
//! it is for.
//!
//! - [`SignIn`]: the player's identity, and the room to enter
//! - [`TurnRoom`], [`Event`], [`Topic`]: a turn room and its events
//! - [`Account`]: the same player in realtime rooms, and its lists
//! - [`Board`]: scores and ranks
//! - [`Statistics`], [`Achievements`]: what a player has done
//! - [`Friends`], [`News`]: friends, and who of them is here
//! - [`Lobby`]: players who gather, and parties
//! - [`MatchSearch`], [`Search`]: others to play with
//! - [`Saves`], [`Storage`]: what a player saves in slots, and other objects of a game
//! - [`Session`]: what a game saves so that its player keeps the account after a restart
//! - [`RoomView`]: all readable data of a room
//!
//! `docs/turn-rooms.md` documents turn rooms, `docs/accounts.md` accounts, `docs/online.md` the protocol.

mod account;
mod boards;
mod core;
mod error;
mod event;
mod filter;
mod friends;
mod lists;
mod lobby;
mod news;
mod own_data;
mod progress;
mod repeat;
mod room;
mod saves;
mod search;
mod session;
mod sign_in;
mod storage;
mod token_store;
mod view;
mod who;

pub use account::{Account, AccountError, Pending};
pub use boards::{Board, BoardEntry, BoardInfo, BoardList, BoardPage, BoardSeason, Score, Submitted};
pub use error::{OnlineError, RoomFailure};
pub use event::{Event, Topic};
pub use filter::{Filter, Properties, Property};
pub use friends::{Friend, FriendState, Friends};
pub use lists::{Happened, KeptMatch, LiveMatch, LogEntry, MatchFilter, MatchLog, Part, RoomSummary};
pub use lobby::{
    Lobby, LobbyAccess, LobbyClosed, LobbyEvent, LobbyMember, LobbyRoom, LobbySearch, LobbyView, MyLobbies,
    NewLobby,
};
pub use news::{FriendNews, News, NewsEvent};
pub use own_data::{AccountInfo, ExportPart};
pub use progress::{
    Achievement, AchievementWritten, Achievements, Rating, Statistic, StatisticWrite, Statistics,
    StatisticsWritten,
};
pub use room::TurnRoom;
pub use saves::{Save, SaveInfo, Saved, Saves, WholeSave};
pub use search::{MatchFound, MatchPlayer, MatchSearch, QueueInfo, Search, SearchEnded, SearchEvent};
pub use session::{Session, SessionError};
pub use sign_in::{SignIn, sign_in};
pub use storage::{NewObject, Object, ObjectId, Storage};
pub use view::{
    Check, Checks, DecidedMove, Phase, ProposedMove, RoomMessage, RoomPlayer, RoomResult, RoomStatus,
    RoomView,
};
