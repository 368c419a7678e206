//! The rooms that lobbies and matches go on in. A player names only a room in which it has a seat.

use super::Services;
use super::failure::Failure;
use super::live;
use super::rooms::no_such_room;
use super::table::Caller;
use crate::store::AccountId;
use parlor_proto::RoomCode;
use parlor_server::realm::Realm;
use parlor_social::Entrance;

impl Services {
    /// The room with this code, if this player sits in it: a live room, or a turn room. All others are one answer. A
    /// code that leads nowhere counts as a guess.
    pub(super) async fn own_room(
        &self,
        caller: &Caller,
        (realm, player): (&Realm, &AccountId),
        code: &str,
    ) -> Result<Entrance, Failure> {
        let code: RoomCode = code.parse().map_err(|error| Failure::field("code", format!("{error}")))?;
        let guess = self.guess_of_account(caller)?;
        let found = self.find_own_room(realm, player, code).await;
        guess.settle_by(&found);
        found?.ok_or_else(|| no_such_room(code.as_str()).at("code"))
    }

    /// The live room with this code, for the game's own service.
    pub(super) async fn live_room(&self, realm: &Realm, code: &str) -> Result<Entrance, Failure> {
        let code: RoomCode = code.parse().map_err(|error| Failure::field("code", format!("{error}")))?;
        let kind = live::kind_of_room(self, realm, code).await?;
        let kind = kind.ok_or_else(|| no_such_room(code.as_str()).at("code"))?;
        Ok(Entrance { kind: kind.to_owned(), code: code.as_str().to_owned() })
    }

    async fn find_own_room(
        &self,
        realm: &Realm,
        player: &AccountId,
        code: RoomCode,
    ) -> Result<Option<Entrance>, Failure> {
        let entrance = |kind: &str| Some(Entrance { kind: kind.to_owned(), code: code.as_str().to_owned() });
        if let Some(kind) = live::kind_of_own_room(self, realm, player, code).await? {
            return Ok(entrance(kind));
        }
        let Some(room) = self.store().room_by_code(realm, code.as_str()).await? else { return Ok(None) };
        let loaded = self.store().load_room(realm, &room).await?;
        let sits =
            loaded.is_some_and(|room| room.state.players.iter().any(|sits| sits.as_str() == player.as_str()));
        Ok(sits.then(|| entrance("turn")).flatten())
    }
}
