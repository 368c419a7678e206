//! Why something cannot be done with a lobby.

use crate::limits::{INVITES_MAX, LOBBIES_EACH, LOBBY_BYTES_MAX};
use thiserror::Error;

/// Why something is refused. It changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LobbyRefused {
    /// There is no such lobby, or none that this player may know of.
    #[error("there is no such lobby")]
    NoSuchLobby,
    /// The player is no member.
    #[error("you are not in this lobby")]
    NotInLobby,
    /// Another member is the owner.
    #[error("only the owner of the lobby does this")]
    NotOwner,
    /// The other is no member.
    #[error("there is no such player in this lobby")]
    NoSuchPlayer,
    /// All seats are taken.
    #[error("all seats of this lobby are taken")]
    Full,
    /// It takes nobody at present.
    #[error("this lobby takes nobody at present")]
    Locked,
    /// The player was kicked.
    #[error("you were kicked from this lobby")]
    Kicked,
    /// The player has a party.
    #[error("you are in a party: leave it first")]
    AlreadyInParty,
    /// The player is in as many lobbies as it may be.
    #[error("you are in {LOBBIES_EACH} lobbies: leave one first")]
    TooManyLobbies,
    /// Only friends are invited.
    #[error("players invite their friends")]
    NotFriends,
    /// Too many invitations wait.
    #[error("{INVITES_MAX} invitations wait already")]
    InvitedTooOften,
    /// All that it says is too much.
    #[error(
        "all that a lobby and its members say has at most {LOBBY_BYTES_MAX} bytes, in 32 properties each"
    )]
    TooLarge,
    /// It has another version.
    #[error("the lobby has version {0}: read it again")]
    Stale(u64),
    /// Such a lobby has not so many seats.
    #[error("it has 2 to {0} seats")]
    Seats(u16),
    /// More members sit there already.
    #[error("{0} players sit there")]
    Seated(usize),
    /// The server has no place for more lobbies.
    #[error("the server has no place for another lobby: ask again later")]
    NoPlace,
}
