//! What players have beyond a room, over real sockets: typed calls against a whole server.

mod boards;
mod friends;
mod lobbies;
mod progress;
mod saves;
mod search;
mod signed_in;
#[path = "../support/mod.rs"]
mod support;
