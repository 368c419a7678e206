//! `parlor lobby`: a lobby in a terminal.

use crate::args::lobby::{LobbyArgs, Task};
use crate::services::wait;
use crate::typed::{lines, shown};
use parlor::online::{Lobby, LobbyEvent, LobbyMember, LobbySearch, LobbyView, NewLobby};
use parlor_terminal::print::say;
use parlor_terminal::run_until::stop_flag;
use serde_json::{Map, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two looks at the lobby.
const REST: Duration = Duration::from_millis(10);

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or what the server said.
pub(crate) fn run(args: &LobbyArgs) -> anyhow::Result<()> {
    let (account, stop) = (args.who.account()?, stop_flag()?);
    match &args.what {
        Task::Find { bucket } => {
            let search = bucket.iter().fold(LobbySearch::new(), |search, bucket| search.bucket(bucket));
            let found = wait(account.find_lobbies(&search.count(50)), &stop)?;
            found.iter().for_each(|lobby| say(&line(lobby)));
            if found.is_empty() {
                say("there is no lobby that you may join: open one with `parlor lobby open`");
            }
            Ok(())
        }
        Task::Open { title, bucket, max } => {
            let new =
                bucket.iter().fold(NewLobby::public(*max).name(title), |new, bucket| new.bucket(bucket));
            gather(account.create_lobby(new), &stop)
        }
        Task::Join { code } => gather(account.join_lobby_by_code(code), &stop),
    }
}

fn line(lobby: &LobbyView) -> String {
    let LobbyView { name, bucket, size, max, ready, friends, .. } = lobby;
    let name = if name.is_empty() { "a lobby" } else { name };
    let id = &lobby.id;
    format!("{id}  {size}/{max}, {ready} ready, {friends} friends  {}  {}", shown(bucket), shown(name))
}

/// Shows what happens in a lobby, and does what is typed, until it is over.
fn gather(mut lobby: Lobby, stop: &AtomicBool) -> anyhow::Result<()> {
    let typed = lines();
    loop {
        while let Some(event) = lobby.poll() {
            if tell(&lobby, event)? {
                return Ok(());
            }
        }
        while let Ok(text) = typed.try_recv() {
            act(&mut lobby, text.trim())?;
        }
        if stop.swap(false, Ordering::Relaxed) {
            lobby.leave();
        }
        std::thread::sleep(REST);
    }
}

/// Says what has happened. Returns whether the lobby is over.
fn tell(lobby: &Lobby, event: LobbyEvent) -> anyhow::Result<bool> {
    match event {
        LobbyEvent::Here => {
            let Some(view) = lobby.view() else { return Ok(false) };
            say(&format!(
                "lobby {}: others join by `parlor lobby join {0}`",
                view.code.as_deref().unwrap_or("?")
            ));
            view.members.iter().for_each(|member| say(&format!("  {}", shown(&member.name))));
        }
        LobbyEvent::MemberJoined(member) => say(&format!("{} is here", shown(&member.name))),
        LobbyEvent::MemberLeft(account) => say(&format!("{} is gone", shown(&account))),
        LobbyEvent::OwnerChanged { is_me: true } => say("the lobby is yours now"),
        LobbyEvent::Said { from, body, .. } => {
            let name = named(lobby, &from).map_or(from.clone(), |member| member.name.clone());
            let text = body.get("text").and_then(|text| text.as_str()).unwrap_or_default();
            say(&format!("{}: {}", shown(&name), shown(text)));
        }
        LobbyEvent::Room(room) => say(&format!("all go on in the room {} ({})", room.code, room.kind)),
        LobbyEvent::Refused(error) => say(&error.to_string()),
        LobbyEvent::Closed(parlor::online::LobbyClosed::Failed(error)) => return Err(error.into()),
        LobbyEvent::Closed(why) => {
            say(&format!("the lobby is over: {why:?}"));
            return Ok(true);
        }
        _ => {}
    }
    Ok(false)
}

/// A member by its name or account.
fn named<'l>(lobby: &'l Lobby, who: &str) -> Option<&'l LobbyMember> {
    let members = lobby.view().map_or(&[][..], |view| &view.members);
    members.iter().find(|member| member.name == who || member.account == who)
}

/// Does what was typed.
fn act(lobby: &mut Lobby, text: &str) -> anyhow::Result<()> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let other = named(lobby, rest.trim()).map(|member| member.account.clone());
    match (word, other) {
        ("", _) => {}
        ("/ready", _) => lobby.set_mine("ready", 1),
        ("/leave", _) => lobby.leave(),
        ("/room", _) => lobby.go_on_in(Some(rest.trim()).filter(|code| !code.is_empty())),
        ("/kick", Some(account)) => lobby.kick(&account),
        ("/give", Some(account)) => lobby.give_to(&account),
        ("/kick" | "/give", None) => say("there is nobody of this name"),
        _ if word.starts_with('/') => say("/ready, /kick NAME, /give NAME, /room CODE, /leave"),
        _ => {
            let body: Map<_, _> = [("text".to_owned(), json!(text))].into_iter().collect();
            // Whether it was refused shows in the lobby: it is not there.
            drop(lobby.say("chat", body));
        }
    }
    Ok(())
}
