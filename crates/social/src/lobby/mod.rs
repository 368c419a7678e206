//! Lobbies and parties: players who gather before they go into a room together.
//!
//! A [`Lobbies`] has those of one realm. Time is an argument, and ids and codes are drawn by the caller. A lobby ends
//! with its last member; a member without a connection keeps its seat for a short time.

mod find;
mod one;
mod refusal;

pub use find::{FIELDS, Found, Search, SearchOrder};
pub use one::{
    Access, Entrance, Gone, Lobby, LobbyChange, LobbyId, LobbyKind, LobbyMember, LobbyNews, NewLobby, Person,
    PlayerKey,
};
pub use refusal::LobbyRefused;

use crate::limits::{
    INVITES_MAX, LOBBIES_EACH, LOBBIES_MAX, LOBBY_BYTES_MAX, LOBBY_SEATS_MAX, PROPERTIES_MAX,
};
use crate::properties::{Properties, Property};
use core::time::Duration;
use one::seats;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// All lobbies of a realm.
#[derive(Debug, Default)]
pub struct Lobbies {
    /// By number: a search walks them.
    all: BTreeMap<u64, Lobby>,
    by_id: BTreeMap<LobbyId, u64>,
    by_code: BTreeMap<String, u64>,
    of: BTreeMap<PlayerKey, BTreeSet<LobbyId>>,
    invites: BTreeMap<PlayerKey, BTreeSet<LobbyId>>,
    /// The numbers of those that a search may find, by bucket.
    buckets: BTreeSet<(String, u64)>,
    timers: BTreeSet<(Duration, LobbyId, PlayerKey)>,
    news: VecDeque<LobbyNews>,
    number: u64,
}

impl Lobbies {
    /// The lobby with this id.
    pub fn get(&self, lobby: &str) -> Option<&Lobby> {
        self.all.get(self.by_id.get(lobby)?)
    }

    fn get_mut(&mut self, lobby: &str) -> Option<&mut Lobby> {
        self.all.get_mut(self.by_id.get(lobby)?)
    }

    /// The lobby with this code.
    pub fn by_code(&self, code: &str) -> Option<&Lobby> {
        self.all.get(self.by_code.get(code)?)
    }

    /// All lobbies in the order of their ids, beyond `after`.
    pub fn after(&self, after: &str) -> impl Iterator<Item = &Lobby> {
        let beyond = (core::ops::Bound::Excluded(Arc::from(after)), core::ops::Bound::Unbounded);
        self.by_id.range::<LobbyId, _>(beyond).filter_map(|(_, number)| self.all.get(number))
    }

    /// The lobbies in which a player is.
    pub fn of(&self, player: &str) -> impl Iterator<Item = &Lobby> {
        self.of.get(player).into_iter().flatten().filter_map(|id| self.get(id))
    }

    /// The lobbies to which a player is invited.
    pub fn invites(&self, player: &str) -> impl Iterator<Item = &Lobby> {
        self.invites.get(player).into_iter().flatten().filter_map(|id| self.get(id))
    }

    /// Number of lobbies.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Opens a lobby.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn create(&mut self, by: &Person, new: NewLobby, now: Duration) -> Result<LobbyId, LobbyRefused> {
        let player = &by.player;
        let max = seats(new.kind, new.max)?;
        self.must_have_place(player, new.kind)?;
        if self.all.len() >= LOBBIES_MAX {
            return Err(LobbyRefused::NoPlace);
        }
        self.number += 1;
        let id: LobbyId = new.id.into();
        let mut lobby = Lobby {
            id: Arc::clone(&id),
            code: new.code,
            kind: new.kind,
            access: if new.kind == LobbyKind::Party { Access::Private } else { new.access },
            is_locked: false,
            name: new.name,
            bucket: new.bucket,
            owner: Arc::clone(player),
            max,
            version: 1,
            properties: new.properties,
            members: Vec::new(),
            invited: BTreeSet::new(),
            barred: BTreeSet::new(),
            room: None,
            number: self.number,
            said: 0,
        };
        self.seat(&mut lobby, by, new.mine, now);
        if lobby.bytes() > LOBBY_BYTES_MAX {
            self.unseat(&lobby, player);
            return Err(LobbyRefused::TooLarge);
        }
        self.by_code.insert(lobby.code.clone(), lobby.number);
        self.put(lobby);
        Ok(id)
    }

    /// Joins a lobby. `has_code`: by its code.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn join(
        &mut self,
        lobby: &str,
        by: &Person,
        mine: Properties,
        has_code: bool,
        now: Duration,
    ) -> Result<(), LobbyRefused> {
        let player = &by.player;
        let found = self.get(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        if found.member(player).is_some() {
            return Ok(());
        }
        let is_invited = found.invited.contains(player);
        if !is_invited && found.members.iter().any(|member| by.blocked.contains(&member.player)) {
            return Err(LobbyRefused::NoSuchLobby);
        }
        let may = match found.access {
            Access::Public => true,
            Access::Friends => by.friends.contains(&found.owner),
            Access::Private => false,
        };
        if !(is_invited || has_code || may) {
            return Err(LobbyRefused::NoSuchLobby);
        }
        if found.barred.contains(player) && !is_invited {
            return Err(LobbyRefused::Kicked);
        }
        if found.is_locked && !is_invited {
            return Err(LobbyRefused::Locked);
        }
        if found.free() == 0 {
            return Err(LobbyRefused::Full);
        }
        self.must_have_place(player, found.kind)?;
        let mut lobby = found.clone();
        self.seat(&mut lobby, by, mine, now);
        if lobby.bytes() > LOBBY_BYTES_MAX {
            self.unseat(&lobby, player);
            return Err(LobbyRefused::TooLarge);
        }
        self.take_invite(&mut lobby, player);
        self.changed(lobby);
        Ok(())
    }

    /// Leaves a lobby.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn leave(&mut self, lobby: &str, player: &str) -> Result<(), LobbyRefused> {
        let found = self.get(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        found.member(player).ok_or(LobbyRefused::NotInLobby)?;
        self.remove(lobby, player, Gone::Left);
        Ok(())
    }

    /// Changes a lobby, for its owner.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn update(&mut self, lobby: &str, player: &str, change: LobbyChange) -> Result<(), LobbyRefused> {
        let found = self.get(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        found.must_be_owner(player)?;
        if change.version.is_some_and(|version| version != found.version) {
            return Err(LobbyRefused::Stale(found.version));
        }
        let mut lobby = found.clone();
        if let Some(max) = change.max {
            lobby.max = seats(lobby.kind, Some(max))?;
            if usize::from(max) < lobby.members.len() {
                return Err(LobbyRefused::Seated(lobby.members.len()));
            }
        }
        lobby.name = change.name.unwrap_or(lobby.name);
        lobby.bucket = change.bucket.unwrap_or(lobby.bucket);
        lobby.is_locked = change.is_locked.unwrap_or(lobby.is_locked);
        if lobby.kind == LobbyKind::Lobby {
            lobby.access = change.access.unwrap_or(lobby.access);
        }
        merge(&mut lobby.properties, change.properties)?;
        if lobby.bytes() > LOBBY_BYTES_MAX {
            return Err(LobbyRefused::TooLarge);
        }
        self.changed(lobby);
        Ok(())
    }

    /// Changes what a member says of itself.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn update_member(
        &mut self,
        lobby: &str,
        player: &str,
        properties: BTreeMap<String, Option<Property>>,
    ) -> Result<(), LobbyRefused> {
        let mut lobby = self.get(lobby).ok_or(LobbyRefused::NoSuchLobby)?.clone();
        let member = lobby.members.iter_mut().find(|member| &*member.player == player);
        merge(&mut member.ok_or(LobbyRefused::NotInLobby)?.properties, properties)?;
        if lobby.bytes() > LOBBY_BYTES_MAX {
            return Err(LobbyRefused::TooLarge);
        }
        self.changed(lobby);
        Ok(())
    }

    /// Counts something that a member says. Returns its number, from 1.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn say(&mut self, lobby: &str, player: &str) -> Result<u64, LobbyRefused> {
        let lobby = self.get_mut(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        lobby.member(player).ok_or(LobbyRefused::NotInLobby)?;
        lobby.said += 1;
        Ok(lobby.said)
    }

    /// Invites a player, who may then join in any case.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn invite(&mut self, lobby: &str, by: &Person, other: &PlayerKey) -> Result<(), LobbyRefused> {
        let found = self.get(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        found.member(&by.player).ok_or(LobbyRefused::NotInLobby)?;
        if by.blocked.contains(other) || !by.friends.contains(other) {
            return Err(LobbyRefused::NotFriends);
        }
        if found.member(other).is_some() || found.invited.contains(other) {
            return Ok(());
        }
        let waiting = self.invites.get(other).map_or(0, BTreeSet::len);
        if waiting >= INVITES_MAX || found.invited.len() >= INVITES_MAX {
            return Err(LobbyRefused::InvitedTooOften);
        }
        let mut lobby = found.clone();
        lobby.invited.insert(Arc::clone(other));
        self.invites.entry(Arc::clone(other)).or_default().insert(Arc::clone(&lobby.id));
        self.news.push_back(LobbyNews::Invited(Arc::clone(other)));
        self.changed(lobby);
        Ok(())
    }

    /// Declines an invitation. One that there is not is declined already.
    pub fn decline(&mut self, lobby: &str, player: &str) {
        let Some(found) = self.get(lobby).filter(|found| found.invited.contains(player)) else { return };
        let mut lobby = found.clone();
        self.take_invite(&mut lobby, player);
        self.changed(lobby);
    }

    /// Kicks a member for good: for the owner, and for operators (`None`).
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn kick(&mut self, lobby: &str, by: Option<&str>, other: &str) -> Result<(), LobbyRefused> {
        let found = self.get_mut(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        if let Some(by) = by {
            found.must_be_owner(by)?;
        }
        let member = found.member(other).ok_or(LobbyRefused::NoSuchPlayer)?;
        let player = Arc::clone(&member.player);
        // Who is kicked first may come back first: the list has an end.
        if found.barred.len() >= usize::from(LOBBY_SEATS_MAX) {
            found.barred.pop_first();
        }
        found.barred.insert(player);
        self.remove(lobby, other, Gone::Kicked);
        Ok(())
    }

    /// Makes another member the owner.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn promote(&mut self, lobby: &str, player: &str, other: &str) -> Result<(), LobbyRefused> {
        let found = self.get(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        found.must_be_owner(player)?;
        let member = found.member(other).ok_or(LobbyRefused::NoSuchPlayer)?;
        let mut lobby = found.clone();
        lobby.owner = Arc::clone(&member.player);
        self.changed(lobby);
        Ok(())
    }

    /// Says where the lobby goes on, for its owner; `None` takes it back.
    ///
    /// # Errors
    /// [`LobbyRefused`].
    pub fn set_room(
        &mut self,
        lobby: &str,
        player: &str,
        room: Option<Entrance>,
    ) -> Result<(), LobbyRefused> {
        let found = self.get(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        found.must_be_owner(player)?;
        let mut lobby = found.clone();
        lobby.room = room;
        self.changed(lobby);
        Ok(())
    }

    /// Ends a lobby, for an operator.
    ///
    /// # Errors
    /// [`LobbyRefused::NoSuchLobby`].
    pub fn end(&mut self, lobby: &str) -> Result<(), LobbyRefused> {
        let found = self.get(lobby).ok_or(LobbyRefused::NoSuchLobby)?;
        for member in found.members.clone() {
            self.remove(lobby, &member.player, Gone::Ended);
        }
        Ok(())
    }

    /// A player has a connection, or none.
    pub fn set_here(&mut self, player: &str, is_here: bool, now: Duration) {
        for id in self.of.get(player).cloned().unwrap_or_default() {
            let Some(lobby) = self.by_id.get(&id).and_then(|number| self.all.get_mut(number)) else {
                continue;
            };
            let away = lobby.away();
            let Some(member) = lobby.members.iter_mut().find(|member| &*member.player == player) else {
                continue;
            };
            let was_here = member.away_at.is_none();
            if was_here == is_here {
                continue;
            }
            if let Some(at) = member.away_at.take() {
                self.timers.remove(&(at, Arc::clone(&id), Arc::clone(&member.player)));
            }
            if !is_here {
                member.away_at = Some(now + away);
                self.timers.insert((now + away, Arc::clone(&id), Arc::clone(&member.player)));
            }
            lobby.version += 1;
            self.news.push_back(LobbyNews::Changed(id));
        }
    }

    /// Removes a player from everything, because its account is gone or banned.
    pub fn forget(&mut self, player: &str) {
        for lobby in self.of.get(player).cloned().unwrap_or_default() {
            self.remove(&lobby, player, Gone::Kicked);
        }
        for lobby in self.invites.get(player).cloned().unwrap_or_default() {
            self.decline(&lobby, player);
        }
    }

    /// The next news to tell.
    pub fn poll_news(&mut self) -> Option<LobbyNews> {
        self.news.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.timers.first().map(|(at, ..)| *at)
    }

    /// Those whose time is over have left.
    pub fn handle_timeout(&mut self, now: Duration) {
        while let Some((at, lobby, player)) = self.timers.first().cloned() {
            if at > now {
                return;
            }
            self.remove(&lobby, &player, Gone::TimedOut);
        }
    }

    fn must_have_place(&self, player: &str, kind: LobbyKind) -> Result<(), LobbyRefused> {
        let same = self.of(player).filter(|lobby| lobby.kind == kind).count();
        match kind {
            LobbyKind::Party if same > 0 => Err(LobbyRefused::AlreadyInParty),
            LobbyKind::Lobby if same >= LOBBIES_EACH => Err(LobbyRefused::TooManyLobbies),
            LobbyKind::Party | LobbyKind::Lobby => Ok(()),
        }
    }

    fn seat(&mut self, lobby: &mut Lobby, by: &Person, properties: Properties, now: Duration) {
        let player = Arc::clone(&by.player);
        let away_at = (!by.is_here).then(|| now + lobby.away());
        if let Some(at) = away_at {
            self.timers.insert((at, Arc::clone(&lobby.id), Arc::clone(&player)));
        }
        self.of.entry(Arc::clone(&player)).or_default().insert(Arc::clone(&lobby.id));
        lobby.members.push(LobbyMember { player, name: by.name.clone(), properties, away_at });
    }

    /// Takes back what [`seat`](Self::seat) has done beside the lobby.
    fn unseat(&mut self, lobby: &Lobby, player: &str) {
        if let Some(LobbyMember { player, away_at: Some(at), .. }) = lobby.member(player) {
            self.timers.remove(&(*at, Arc::clone(&lobby.id), Arc::clone(player)));
        }
        if let Some(of) = self.of.get_mut(player) {
            of.remove(&lobby.id);
            if of.is_empty() {
                self.of.remove(player);
            }
        }
    }

    fn take_invite(&mut self, lobby: &mut Lobby, player: &str) {
        if !lobby.invited.remove(player) {
            return;
        }
        if let Some((key, mut invites)) = self.invites.remove_entry(player) {
            invites.remove(&lobby.id);
            self.news.push_back(LobbyNews::Invited(Arc::clone(&key)));
            if !invites.is_empty() {
                self.invites.insert(key, invites);
            }
        }
    }

    /// Removes a member. The lobby ends with the last one, and an owner is followed by who is there longest: first
    /// among those who have a connection.
    fn remove(&mut self, lobby: &str, player: &str, why: Gone) {
        let Some(found) = self.get(lobby) else { return };
        let mut lobby = found.clone();
        let Some(at) = lobby.members.iter().position(|member| &*member.player == player) else { return };
        self.unseat(&lobby, player);
        let gone = lobby.members.remove(at);
        self.news.push_back(LobbyNews::Gone { lobby: Arc::clone(&lobby.id), player: gone.player, why });
        let next = lobby.members.iter().find(|member| member.away_at.is_none()).or(lobby.members.first());
        match next {
            Some(next) => {
                if &*lobby.owner == player {
                    lobby.owner = Arc::clone(&next.player);
                }
                self.changed(lobby);
            }
            None => self.close(lobby),
        }
    }

    fn close(&mut self, mut lobby: Lobby) {
        for player in lobby.invited.clone() {
            self.take_invite(&mut lobby, &player);
        }
        self.hide(&lobby);
        self.all.remove(&lobby.number);
        self.by_id.remove(&lobby.id);
        self.by_code.remove(&lobby.code);
        if lobby.kind == LobbyKind::Party {
            self.news.push_back(LobbyNews::PartyChanged(lobby.id));
        }
    }

    /// Takes a lobby, as it is stored, out of searches.
    fn hide(&mut self, lobby: &Lobby) {
        self.buckets.remove(&(lobby.bucket.clone(), lobby.number));
    }

    /// Stores a changed lobby under its next version.
    fn changed(&mut self, mut lobby: Lobby) {
        lobby.version += 1;
        self.put(lobby);
    }

    fn put(&mut self, lobby: Lobby) {
        let id = Arc::clone(&lobby.id);
        let is_open = lobby.is_open();
        let (bucket, number) = (lobby.bucket.clone(), lobby.number);
        let who = |lobby: &Lobby| lobby.members.iter().map(|it| Arc::clone(&it.player)).collect::<Vec<_>>();
        let (is_party, members) = (lobby.kind == LobbyKind::Party, who(&lobby));
        self.by_id.insert(Arc::clone(&id), number);
        let before = self.all.insert(number, lobby);
        if let Some(before) = &before {
            self.hide(before);
        }
        if is_open {
            self.buckets.insert((bucket, number));
        }
        if is_party && before.is_some_and(|before| who(&before) != members) {
            self.news.push_back(LobbyNews::PartyChanged(Arc::clone(&id)));
        }
        self.news.push_back(LobbyNews::Changed(id));
    }
}

fn merge(
    properties: &mut Properties,
    changes: BTreeMap<String, Option<Property>>,
) -> Result<(), LobbyRefused> {
    for (name, value) in changes {
        match value {
            Some(value) => properties.insert(name, value),
            None => properties.remove(&name),
        };
    }
    if properties.len() > PROPERTIES_MAX { Err(LobbyRefused::TooLarge) } else { Ok(()) }
}
