//! What the services remember of what players have beyond rooms and boards.

use super::Services;
use super::definitions::Definitions;
use super::friends::Friends;
use super::here::WhoIsHere;
use super::homes::Homes;
use super::lobbies::AllLobbies;
use super::matchmaking::Matchmaking;
use super::progress::{self, ProgressWrites};
use super::saves::Saves;
use super::storage::Storage;
use parlor_server::embed::Clock;

/// What players have beyond rooms and boards.
pub(super) struct OfPlayers {
    saves: Saves,
    storage: Storage,
    definitions: Definitions,
    progress_writes: ProgressWrites,
    friends: Friends,
    who_is_here: WhoIsHere,
    lobbies: AllLobbies,
    matchmaking: Matchmaking,
    homes: Homes,
}

impl OfPlayers {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(clock: Clock, makes_definitions: bool, mut random: impl FnMut() -> u64) -> Self {
        OfPlayers {
            saves: Saves::new(clock, &mut random),
            storage: Storage::new(clock, &mut random),
            definitions: Definitions::new(clock, makes_definitions, &mut random),
            progress_writes: progress::writes(clock, &mut random),
            friends: Friends::new(clock, &mut random),
            lobbies: AllLobbies::new(clock, &mut random),
            matchmaking: Matchmaking::new(clock, random),
            who_is_here: WhoIsHere::default(),
            homes: Homes::default(),
        }
    }
}

impl Services {
    pub(super) fn saves(&self) -> &Saves {
        &self.0.of_players.saves
    }

    pub(super) fn storage(&self) -> &Storage {
        &self.0.of_players.storage
    }

    pub(super) fn definitions(&self) -> &Definitions {
        &self.0.of_players.definitions
    }

    pub(super) fn progress_writes(&self) -> &ProgressWrites {
        &self.0.of_players.progress_writes
    }

    pub(super) fn friends(&self) -> &Friends {
        &self.0.of_players.friends
    }

    pub(super) fn who_is_here(&self) -> &WhoIsHere {
        &self.0.of_players.who_is_here
    }

    pub(super) fn lobbies(&self) -> &AllLobbies {
        &self.0.of_players.lobbies
    }

    pub(super) fn homes(&self) -> &Homes {
        &self.0.of_players.homes
    }

    pub(super) fn matchmaking(&self) -> &Matchmaking {
        &self.0.of_players.matchmaking
    }
}
