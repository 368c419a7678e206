//! Joining and leaving a room, and updates of its details.

use super::clients::allow;
use super::effect::{Effect, NoticeKind, Said};
use super::ids::PlayerId;
use super::limits::{BARRED_MAX, MESSAGE_BYTES_MAX, NAME_CHARS_MAX, REASON_CHARS_MAX};
use super::notify::Work;
use super::op::{Join, Kick, Say, Update};
use super::refusal::{Code, Refusal};
use super::{Barred, GameResult, Phase, Player, Status, TurnRoom, json};
use serde_json::json as object;

/// The end reason of a game that all players abandoned.
pub(super) const ABANDONED: &str = "abandoned";

impl TurnRoom {
    pub(super) fn player(&self, id: &PlayerId) -> Option<&Player> {
        self.players.iter().find(|player| player.id == *id)
    }

    /// Returns a player's index.
    pub(super) fn seat(&self, id: &PlayerId) -> Result<usize, Refusal> {
        let seat = self.players.iter().position(|player| player.id == *id);
        seat.ok_or_else(|| {
            Refusal::new(Code::NotInRoom, "only who is in the room may do that: join it first")
        })
    }

    pub(super) fn was_kicked(&self, id: &PlayerId) -> bool {
        self.barred.get(id) == Some(&Barred::Kicked)
    }

    pub(super) fn has_free_seat(&self) -> bool {
        self.players.len() < usize::from(self.max_players)
            && self.players.len() + self.barred.len() < BARRED_MAX
    }

    /// Whether the phase allows joining.
    pub(super) fn takes_players(&self) -> bool {
        match self.phase {
            Phase::Waiting => true,
            Phase::Playing => self.config.takes_late_players(),
            Phase::Ended => false,
        }
    }

    pub(super) fn join(&mut self, id: PlayerId, join: Join, work: &mut Work<'_>) -> Result<bool, Refusal> {
        // Checked for seated players too, so that an invalid name is always refused.
        let name = join.name.unwrap_or_else(|| id.as_str().to_owned());
        json::check_text("name", &name, NAME_CHARS_MAX)?;
        if self.player(&id).is_some() {
            return Ok(false);
        }
        self.check_door(&id)?;
        self.check_running()?;
        self.tell_all(NoticeKind::PlayerJoined, object!({ "player": id, "name": name }), work);
        let joined = work.with.now;
        self.players.push(Player { id: id.clone(), name, joined, role: None, status: Status::Active });
        match self.phase {
            Phase::Waiting if self.config.starts_itself() && self.has_enough_players() => {
                self.begin(None, None, work)?;
            }
            Phase::Playing => self.take_in(id),
            Phase::Waiting | Phase::Ended => {}
        }
        Ok(true)
    }

    fn check_door(&self, id: &PlayerId) -> Result<(), Refusal> {
        match self.barred.get(id) {
            Some(Barred::Kicked) => {
                return Err(Refusal::new(Code::Kicked, "you were turned out of this room: join another"));
            }
            Some(Barred::OutOfGame) => {
                let sentence = "you are out of this game and it takes nobody back: join another room";
                return Err(Refusal::new(Code::OutOfGame, sentence));
            }
            None => {}
        }
        match self.phase {
            Phase::Ended => {
                return Err(Refusal::new(
                    Code::WrongPhase,
                    "the game is over: join another room or create one",
                ));
            }
            Phase::Playing if !self.config.takes_late_players() => {
                let sentence = "the game has begun and takes nobody in: join another room or create one";
                return Err(Refusal::new(Code::GameStarted, sentence));
            }
            Phase::Waiting | Phase::Playing => {}
        }
        if !self.has_free_seat() {
            return Err(Refusal::new(Code::RoomFull, "all seats are taken: join another room or create one"));
        }
        Ok(())
    }

    pub(super) fn has_enough_players(&self) -> bool {
        self.players.len() >= usize::from(self.config.players_min())
    }

    pub(super) fn leave(&mut self, id: &PlayerId, work: &mut Work<'_>) -> Result<bool, Refusal> {
        let body = object!({ "player": id });
        self.get_up(id, work)?;
        // In games without turns players come and go, so leaving is no forfeit.
        if self.phase == Phase::Playing && self.config.is_turn_based() && self.turn.order.contains(id) {
            self.barred.insert(id.clone(), Barred::OutOfGame);
        }
        self.tell_all(NoticeKind::PlayerLeft, body, work);
        self.after_getting_up(id, "player_left", work);
        Ok(true)
    }

    pub(super) fn kick(
        &mut self,
        by: Option<&PlayerId>,
        kick: Kick,
        work: &mut Work<'_>,
    ) -> Result<bool, Refusal> {
        self.check_host(by, "turn players out")?;
        if by == Some(&kick.player) {
            return Err(Refusal::at(Code::BadInput, "player", "this is you: leave instead"));
        }
        if let Some(reason) = &kick.reason {
            json::check_text("reason", reason, REASON_CHARS_MAX)?;
        }
        if self.player(&kick.player).is_none() {
            return Err(no_such_player("player", &kick.player));
        }
        let mut told: Vec<PlayerId> = self.players.iter().map(|player| player.id.clone()).collect();
        told.sort_by_key(|id| *id == kick.player);
        self.get_up(&kick.player, work)?;
        self.barred.insert(kick.player.clone(), Barred::Kicked);
        let body = object!({ "player": kick.player, "reason": kick.reason });
        self.tell(told, self.config.spectators, NoticeKind::PlayerKicked, body, work);
        self.after_getting_up(&kick.player, "player_kicked", work);
        Ok(true)
    }

    fn get_up(&mut self, id: &PlayerId, work: &mut Work<'_>) -> Result<(), Refusal> {
        let seat = self.seat(id)?;
        let player = self.players.remove(seat);
        self.admins.retain(|admin| *admin != player.id);
        work.gone.insert(player.id, player.name);
        Ok(())
    }

    /// Replaces the host and continues the game after a player left.
    fn after_getting_up(&mut self, id: &PlayerId, reason: &str, work: &mut Work<'_>) {
        if self.host.as_ref() == Some(id) {
            // An admin has the host's trust; the longest-seated player is the likeliest to stay.
            let is_admin = |player: &&Player| self.admins.contains(&player.id);
            let next = self.players.iter().find(is_admin).or(self.players.first());
            self.host = next.map(|player| player.id.clone());
            if let Some(host) = self.host.clone() {
                self.admins.retain(|admin| *admin != host);
                self.tell_all(NoticeKind::HostChanged, object!({ "host": host }), work);
            }
        }
        self.take_out(id, reason, work);
        if self.players.is_empty() && self.phase != Phase::Ended {
            self.over(GameResult::without_winner(ABANDONED, None, work.with.now), work);
        }
    }

    /// Checks that the caller is the host, or the server (`None`).
    pub(super) fn check_host(&self, by: Option<&PlayerId>, what: &str) -> Result<(), Refusal> {
        if by.is_none() || by == self.host.as_ref() {
            return Ok(());
        }
        Err(Refusal::new(Code::NotHost, format!("only the room's host may {what}: ask the host")))
    }

    /// Checks that the caller is the host, one of its admins, or the server (`None`).
    pub(super) fn check_admin(&self, by: Option<&PlayerId>, what: &str) -> Result<(), Refusal> {
        if by.is_none_or(|by| self.admins().any(|admin| admin == by)) {
            return Ok(());
        }
        let sentence = format!("only the room's host and its admins may {what}: ask the host");
        Err(Refusal::new(Code::NotHost, sentence))
    }

    pub(super) fn update(
        &mut self,
        by: &PlayerId,
        update: Update,
        work: &mut Work<'_>,
    ) -> Result<bool, Refusal> {
        let Update { name, visibility, metadata, data, replace, admins } = update;
        let may = self.config.clients_may;
        let mut changed = serde_json::Map::new();
        if name.is_some() || visibility.is_some() || metadata.is_some() {
            self.check_admin(Some(by), "change its name, visibility and metadata")?;
        }
        let replaces = replace && (metadata.is_some() || data.is_some());
        if let Some(admins) = admins {
            changed.insert("admins".to_owned(), object!(admins));
            self.name_admins(by, admins)?;
        }
        if let Some(name) = name {
            json::check_text("name", &name, NAME_CHARS_MAX)?;
            allow("name", may.name, name == self.name)?;
            changed.insert("name".to_owned(), object!(name));
            self.name = name;
        }
        if let Some(visibility) = visibility {
            allow("visibility", may.visibility, visibility == self.visibility)?;
            changed.insert("visibility".to_owned(), object!(visibility));
            self.visibility = visibility;
        }
        if let Some(patch) = metadata {
            let metadata = json::updated(&self.metadata, "metadata", &patch, replace)?;
            allow("metadata", may.metadata, metadata == self.metadata)?;
            self.metadata = metadata;
            changed.insert("metadata".to_owned(), patch);
        }
        if let Some(patch) = data {
            self.data = json::updated(&self.data, "data", &patch, replace)?;
            changed.insert("data".to_owned(), patch);
        }
        if changed.is_empty() {
            return Ok(false);
        }
        let body = object!({ "player": by, "changed": changed, "replaces": replaces });
        self.tell_all(NoticeKind::RoomUpdated, body, work);
        Ok(true)
    }

    /// Sets the admins beside the host.
    fn name_admins(&mut self, by: &PlayerId, mut admins: Vec<PlayerId>) -> Result<(), Refusal> {
        self.check_host(Some(by), "name its admins")?;
        for (index, admin) in admins.iter().enumerate() {
            let path = format!("admins[{index}]");
            if self.player(admin).is_none() {
                return Err(no_such_player(&path, admin));
            }
            if admins[..index].contains(admin) {
                return Err(Refusal::at(Code::BadInput, path, "stands there twice: name it once"));
            }
        }
        admins.retain(|admin| Some(admin) != self.host.as_ref());
        self.admins = admins;
        Ok(())
    }

    pub(super) fn say(&mut self, by: &PlayerId, say: Say, work: &mut Work<'_>) -> Result<bool, Refusal> {
        json::check_word("type", &say.kind)?;
        json::check_depth("body", &say.body)?;
        json::check_size("body", &say.body, MESSAGE_BYTES_MAX)?;
        self.messages_given = self.messages_given.saturating_add(1);
        let number = self.messages_given;
        let body = object!({ "player": by, "type": say.kind, "body": say.body, "number": number });
        self.tell_all(NoticeKind::Message, body, work);
        let name = self.name_of(by, work);
        let said = Said { number, player: by.clone(), name, kind: say.kind, body: say.body };
        work.effects.push(Effect::Said(said));
        Ok(true)
    }
}

pub(super) fn no_such_player(path: &str, id: &PlayerId) -> Refusal {
    Refusal::at(Code::NoSuchPlayer, path, format!("{id} is not in this game: name one of its players"))
}
