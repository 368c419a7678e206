//! The operations on lobbies and parties.

use super::refused;
use super::views::{
    Changes, CreateLobby, FindLobbies, FoundLobbies, InLobby, JoinLobby, ListLobbies, LobbyList, LobbyView,
    MyLobbies, OneLobby, PlayerInLobby, SAID_BYTES_MAX, SAID_TYPE_BYTES_MAX, SaidInLobby, SayInLobby,
    SetRoom, UpdateLobby, UpdateMember,
};
use crate::online::Services;
use crate::online::accounts::{DONE, Done, Nothing};
use crate::online::callers::account_id;
use crate::online::failure::{Failure, Kind};
use crate::online::properties::{bad_property, checked};
use crate::online::rooms::draw_code;
use crate::online::secrets;
use crate::online::table::Caller;
use crate::store::AccountId;
use parlor_server::realm::Realm;
use parlor_social::limits::{LOBBIES_FOUND_MAX, LOBBY_NAME_BYTES_MAX, LOBBY_SEATS_MAX};
use parlor_social::{
    FIELDS, Lobby, LobbyChange, LobbyRefused, NewLobby, Person, Property, Search, check_filter,
};
use serde_json::json;
use std::sync::Arc;

/// Lobbies of a page of the operators' list.
const PAGE: usize = 10;
/// Default number of lobbies that a search finds.
const COUNT: usize = 20;
/// What is said that waits for a device at most, of each lobby.
const SAYINGS_KEPT: u64 = 16;

/// Checks what is set. What is removed needs no check.
fn checked_changes(changes: &Changes) -> Result<(), Failure> {
    let set = |(name, value): (&String, &Option<Property>)| Some((name.clone(), value.clone()?));
    checked("properties", &changes.iter().filter_map(set).collect())
}

fn checked_text(field: &str, text: Option<&String>) -> Result<(), Failure> {
    let is_text = |text: &&String| text.len() <= LOBBY_NAME_BYTES_MAX && !text.chars().any(char::is_control);
    if text.is_some_and(|text| !is_text(&text)) {
        let sentence = format!("it has at most {LOBBY_NAME_BYTES_MAX} bytes, and no character that controls");
        return Err(Failure::field(field, sentence));
    }
    Ok(())
}

/// Charges of each operation, also where another node does it.
pub(in crate::online) mod charges {
    use super::{Caller, Failure, Services, made as charge_made};

    macro_rules! charges {
        ($($name:ident),*) => {
            $(pub(in crate::online) fn $name(services: &Services, caller: &Caller) -> Result<(), Failure> {
                services.charged(caller, &services.lobbies().$name)
            })*
        };
    }
    charges!(entries, changes, searches, invites, sayings);

    pub(in crate::online) fn created(services: &Services, caller: &Caller) -> Result<(), Failure> {
        entries(services, caller)?;
        charge_made(services, caller)
    }

    pub(in crate::online) fn invited(services: &Services, caller: &Caller) -> Result<(), Failure> {
        invites(services, caller)?;
        changes(services, caller)
    }
}

/// Charges the caller's address for a lobby.
fn made(services: &Services, caller: &Caller) -> Result<(), Failure> {
    if caller.via.is_some() { Ok(()) } else { services.lobbies().created.charge(caller.origin) }
}

fn no_such_lobby() -> Failure {
    refused(LobbyRefused::NoSuchLobby).at("lobby")
}

impl Services {
    /// A lobby as a player sees it.
    fn lobby_seen(&self, realm: &Realm, lobby: &str, by: &Person) -> Result<OneLobby, Failure> {
        self.with_lobbies(realm, |lobbies| {
            let seen = lobbies.get(lobby).filter(|lobby| lobby.may_be_seen_by(by));
            seen.map(|lobby| OneLobby { lobby: LobbyView::seen_by(lobby, by) }).ok_or_else(no_such_lobby)
        })
    }

    /// Does something with a lobby as one of its members.
    fn in_lobby(
        &self,
        caller: &Caller,
        lobby: &str,
        work: impl FnOnce(&mut parlor_social::Lobbies) -> Result<(), LobbyRefused>,
    ) -> Result<OneLobby, Failure> {
        let (realm, player) = self.account_of(caller)?;
        self.charged(caller, &self.lobbies().changes)?;
        self.with_lobbies(&realm, |lobbies| {
            // A stranger gets the same answer as for a lobby that does not exist.
            let is_member = |lobby: &&Lobby| lobby.member(player.as_str()).is_some();
            lobbies.get(lobby).filter(is_member).ok_or_else(no_such_lobby)?;
            work(lobbies).map_err(refused)?;
            let lobby = lobbies.get(lobby).ok_or_else(no_such_lobby)?;
            Ok(OneLobby { lobby: LobbyView::of_member(lobby) })
        })
    }
}

pub(crate) async fn create(
    services: Services,
    caller: Caller,
    input: CreateLobby,
) -> Result<OneLobby, Failure> {
    let (realm, _) = services.account_of(&caller)?;
    services.charged(&caller, &services.lobbies().entries)?;
    made(&services, &caller)?;
    checked_text("name", input.name.as_ref())?;
    checked_text("bucket", input.bucket.as_ref())?;
    checked("properties", &input.properties)?;
    checked("mine", &input.mine)?;
    let new = NewLobby {
        id: secrets::id('l')?,
        code: draw_code()?.as_str().to_owned(),
        kind: input.kind,
        access: input.access,
        max: input.max,
        name: input.name.unwrap_or_default(),
        bucket: input.bucket.unwrap_or_default(),
        properties: input.properties,
        mine: input.mine,
    };
    let by = services.person(&caller).await?;
    let now = services.time().steady();
    let created = services.with_lobbies(&realm, |lobbies| {
        let id = lobbies.create(&by, new, now).map_err(refused)?;
        let lobby = lobbies.get(&id).ok_or_else(no_such_lobby)?;
        Ok(OneLobby { lobby: LobbyView::of_member(lobby) })
    });
    is_here_still(&services, &caller, &by);
    created
}

/// A connection may have come or gone while the player was looked up.
fn is_here_still(services: &Services, caller: &Caller, by: &Person) {
    // A player of another node is looked for there.
    let (None, Ok((realm, player))) = (&caller.via, services.account_of(caller)) else { return };
    let (realm, player) = (&realm, &player);
    let is_here = services.feeds().has(realm, player);
    if is_here != by.is_here {
        services.is_in_lobbies(realm, player, is_here);
    }
}

pub(crate) async fn find(
    services: Services,
    caller: Caller,
    input: FindLobbies,
) -> Result<FoundLobbies, Failure> {
    let (realm, _) = services.account_of(&caller)?;
    services.charged(&caller, &services.lobbies().searches)?;
    let (filter, near) = (input.filter.unwrap_or_default(), input.near.unwrap_or_default());
    check_filter(&filter, FIELDS).map_err(|error| bad_property("filter", error))?;
    checked("near", &near)?;
    if let Some((name, _)) = near.iter().find(|(_, value)| matches!(value, Property::Text(_))) {
        return Err(Failure::field(format!("near.{name}"), "it must be a number"));
    }
    if input.free_seats.is_some_and(|seats| seats > LOBBY_SEATS_MAX) {
        return Err(Failure::field("free_seats", format!("0 to {LOBBY_SEATS_MAX}")));
    }
    let count = input.count.unwrap_or(COUNT);
    if !(1..=LOBBIES_FOUND_MAX).contains(&count) {
        return Err(Failure::field("count", format!("1 to {LOBBIES_FOUND_MAX}")));
    }
    let search = Search {
        bucket: input.bucket,
        filter,
        free_seats: input.free_seats.unwrap_or(1).into(),
        of_friends: input.of_friends,
        near,
        order: input.order,
        count,
        before: input.before,
    };
    let by = services.person(&caller).await?;
    Ok(services.with_lobbies(&realm, |lobbies| {
        let found = lobbies.find(&by, &search);
        let lobbies = found.lobbies.iter().map(|lobby| LobbyView::seen_by(lobby, &by)).collect();
        FoundLobbies { lobbies, next: found.next }
    }))
}

pub(crate) async fn mine(services: Services, caller: Caller, _: Nothing) -> Result<MyLobbies, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    services.charged(&caller, &services.lobbies().searches)?;
    let by = services.person(&caller).await?;
    Ok(services.with_lobbies(&realm, |lobbies| MyLobbies {
        lobbies: lobbies.of(player.as_str()).map(LobbyView::of_member).collect(),
        invitations: lobbies.invites(player.as_str()).map(|lobby| LobbyView::seen_by(lobby, &by)).collect(),
    }))
}

pub(crate) async fn read(services: Services, caller: Caller, input: InLobby) -> Result<OneLobby, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    // A member reads it without the store, as often as its connection is lost.
    let own = services.with_lobbies(&realm, |lobbies| {
        let lobby = lobbies.get(&input.lobby).filter(|lobby| lobby.member(player.as_str()).is_some());
        lobby.map(LobbyView::of_member)
    });
    if let Some(lobby) = own {
        return Ok(OneLobby { lobby });
    }
    // Whether the caller is a member is known here alone, so also a caller of another node is charged.
    services.lobbies().searches.charge(&realm, &player)?;
    let by = services.person(&caller).await?;
    services.lobby_seen(&realm, &input.lobby, &by)
}

pub(crate) async fn join(services: Services, caller: Caller, input: JoinLobby) -> Result<OneLobby, Failure> {
    let (realm, _) = services.account_of(&caller)?;
    services.charged(&caller, &services.lobbies().entries)?;
    checked("mine", &input.mine)?;
    let (id, has_code) = match (input.lobby, input.code) {
        (Some(lobby), None) => (lobby, false),
        (None, Some(code)) => {
            let guess = services.guess_of_account(&caller)?;
            let code = code.trim().to_uppercase();
            let found: Result<Option<String>, Failure> = Ok(services
                .with_lobbies(&realm, |lobbies| lobbies.by_code(&code).map(|lobby| lobby.id.to_string())));
            guess.settle_by(&found);
            (found?.ok_or_else(|| no_such_lobby().at("code"))?, true)
        }
        (Some(_), Some(_)) => return Err(Failure::field("code", "either `lobby` or `code`, not both")),
        (None, None) => return Err(Failure::missing("lobby", "name the lobby, or give its code")),
    };
    let by = services.person(&caller).await?;
    let now = services.time().steady();
    services
        .with_lobbies(&realm, |lobbies| lobbies.join(&id, &by, input.mine, has_code, now))
        .map_err(refused)?;
    is_here_still(&services, &caller, &by);
    services.lobby_seen(&realm, &id, &by)
}

pub(crate) async fn leave(services: Services, caller: Caller, input: InLobby) -> Result<Done, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    services.charged(&caller, &services.lobbies().changes)?;
    services.with_lobbies(&realm, |lobbies| lobbies.leave(&input.lobby, player.as_str())).map_err(refused)?;
    Ok(DONE)
}

pub(crate) async fn update(
    services: Services,
    caller: Caller,
    input: UpdateLobby,
) -> Result<OneLobby, Failure> {
    let (_, player) = services.account_of(&caller)?;
    checked_text("name", input.name.as_ref())?;
    checked_text("bucket", input.bucket.as_ref())?;
    checked_changes(&input.properties)?;
    let change = LobbyChange {
        name: input.name,
        access: input.access,
        is_locked: input.locked,
        max: input.max,
        bucket: input.bucket,
        properties: input.properties,
        version: input.version,
    };
    let id = input.lobby;
    services.in_lobby(&caller, &id, |lobbies| lobbies.update(&id, player.as_str(), change))
}

pub(crate) async fn update_me(
    services: Services,
    caller: Caller,
    input: UpdateMember,
) -> Result<OneLobby, Failure> {
    let (_, player) = services.account_of(&caller)?;
    checked_changes(&input.properties)?;
    let id = input.lobby;
    services.in_lobby(&caller, &id, |lobbies| lobbies.update_member(&id, player.as_str(), input.properties))
}

pub(crate) async fn invite(
    services: Services,
    caller: Caller,
    input: PlayerInLobby,
) -> Result<OneLobby, Failure> {
    services.charged(&caller, &services.lobbies().invites)?;
    let other: Arc<str> = account_id(&input.account, "account")?.as_str().into();
    let by = services.person(&caller).await?;
    let id = input.lobby;
    services.in_lobby(&caller, &id, |lobbies| lobbies.invite(&id, &by, &other))
}

pub(crate) async fn decline(services: Services, caller: Caller, input: InLobby) -> Result<Done, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    services.charged(&caller, &services.lobbies().changes)?;
    services.with_lobbies(&realm, |lobbies| lobbies.decline(&input.lobby, player.as_str()));
    Ok(DONE)
}

pub(crate) async fn kick(
    services: Services,
    caller: Caller,
    input: PlayerInLobby,
) -> Result<OneLobby, Failure> {
    let (_, player) = services.account_of(&caller)?;
    let id = input.lobby;
    services.in_lobby(&caller, &id, |lobbies| lobbies.kick(&id, Some(player.as_str()), &input.account))
}

pub(crate) async fn promote(
    services: Services,
    caller: Caller,
    input: PlayerInLobby,
) -> Result<OneLobby, Failure> {
    let (_, player) = services.account_of(&caller)?;
    let id = input.lobby;
    services.in_lobby(&caller, &id, |lobbies| lobbies.promote(&id, player.as_str(), &input.account))
}

pub(crate) async fn say(
    services: Services,
    caller: Caller,
    input: SayInLobby,
) -> Result<SaidInLobby, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    services.charged(&caller, &services.lobbies().sayings)?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !(1..=SAID_TYPE_BYTES_MAX).contains(&input.kind.len()) || !input.kind.bytes().all(is_word) {
        let sentence = format!("it has 1 to {SAID_TYPE_BYTES_MAX} letters, digits, `.`, `_` or `-`");
        return Err(Failure::field("type", sentence));
    }
    if !input.body.is_object() {
        return Err(Failure::field("body", "it must be a JSON object"));
    }
    if input.body.to_string().len() > SAID_BYTES_MAX {
        let sentence = format!("it has at most {SAID_BYTES_MAX} bytes");
        return Err(Failure::new(Kind::TooLarge, "too_large", sentence).at("body"));
    }
    services.with_lobbies(&realm, |lobbies| {
        let n = lobbies.say(&input.lobby, player.as_str()).map_err(|_| no_such_lobby())?;
        let lobby = lobbies.get(&input.lobby).ok_or_else(no_such_lobby)?;
        // So many wait for a slow device; the gap in `n` shows what it has missed.
        let place = format!("lobby/{}/said/{}", lobby.id, n % SAYINGS_KEPT);
        let news = json!({
            "topic": format!("lobby/{}/said", lobby.id), "n": n, "from": player.as_str(), "type": input.kind,
            "body": input.body,
        });
        for member in &lobby.members {
            if let Ok(to) = AccountId::new(&member.player) {
                services.tell_at_home(&realm, &to, &place, &news, false);
            }
        }
        Ok(SaidInLobby { n })
    })
}

pub(crate) async fn room(services: Services, caller: Caller, input: SetRoom) -> Result<OneLobby, Failure> {
    let (realm, player) = services.account_of(&caller)?;
    let room = match &input.code {
        Some(code) => Some(services.own_room(&caller, (&realm, &player), code).await?),
        None => None,
    };
    let id = input.lobby;
    services.in_lobby(&caller, &id, |lobbies| lobbies.set_room(&id, player.as_str(), room))
}

/// Lists all lobbies, for operators.
pub(crate) async fn all(
    services: Services,
    caller: Caller,
    input: ListLobbies,
) -> Result<LobbyList, Failure> {
    let realm = services.realm_of(&caller)?;
    let (after, count) = (input.after.unwrap_or_default(), input.limit.rows().min(PAGE));
    Ok(services.with_lobbies(&realm, |lobbies| {
        let mut rest = lobbies.after(&after);
        let shown: Vec<LobbyView> = rest.by_ref().take(count).map(LobbyView::of_member).collect();
        let last = shown.last().map(|lobby| lobby.id.clone());
        LobbyList { lobbies: shown, next: rest.next().and(last) }
    }))
}

/// Ends a lobby, for an operator.
pub(crate) async fn end(services: Services, caller: Caller, input: InLobby) -> Result<Done, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    services.with_lobbies(&realm, |lobbies| lobbies.end(&input.lobby)).map_err(refused)?;
    tracing::info!(lobby = %input.lobby, ?realm, %by, "a lobby was ended");
    Ok(DONE)
}
