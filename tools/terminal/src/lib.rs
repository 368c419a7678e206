//! Code shared by Parlor's terminal programs: `parlor` and the demos.
//!
//! - [`connect_options`]: from the command line to a room's builder; [`nearby`] finds a room on the local network
//! - [`own_server`]: the server inside a process that hosts
//! - [`run_until`]: when a program ends; [`mod@print`], [`error_text`]: its output
//! - [`screen`], [`palette`], [`text`], [`net_graph`], [`costs`]: its drawing

pub mod connect_options;
pub mod costs;
pub mod error_text;
pub mod nearby;
pub mod net_graph;
pub mod own_server;
pub mod palette;
pub mod print;
pub mod run_until;
pub mod screen;
pub mod text;
