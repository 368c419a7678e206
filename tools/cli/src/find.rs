//! `parlor play --find`: the server finds others to play with.

use crate::args::PlayArgs;
use crate::player::APP;
use crate::services;
use anyhow::bail;
use parlor::online::{Account, MatchFound, Search, SearchEnded, SearchEvent};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two looks at the search.
const REST: Duration = Duration::from_millis(10);

/// What a search leads to.
pub(crate) enum Lead {
    /// This player opens the room, and [`OpenRoom`] says where it is.
    Open(OpenRoom),
    /// Another has opened the room with this code.
    Join(String),
}

/// The room that this player opens for a match that was found.
#[derive(Debug)]
pub(crate) struct OpenRoom {
    search: Search,
    is_said: bool,
}

impl OpenRoom {
    /// Says the room's code once it is there. Gives what to tell the player when all know it.
    ///
    /// # Errors
    /// The server does not take the room.
    pub(crate) fn tend(&mut self, code: Option<String>) -> anyhow::Result<Option<String>> {
        if let Some(code) = code.filter(|_| !self.is_said) {
            self.is_said = true;
            self.search.opened(&code);
        }
        while let Some(event) = self.search.poll() {
            match event {
                SearchEvent::Found(found) => return Ok(Some(names(&found))),
                // The others search on, and this room stays open for whoever comes by its code.
                SearchEvent::Ended(_) | SearchEvent::Waiting => {
                    return Ok(Some("nobody waits for this room any more".to_owned()));
                }
                SearchEvent::Refused(error) => bail!("the server does not take the room: {error}"),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// The account of a player who searches.
///
/// # Errors
/// What is wrong with the arguments.
pub(crate) fn account(args: &PlayArgs, name: &str) -> anyhow::Result<Account> {
    let files = (args.session.as_deref(), args.connect.ca.as_deref());
    services::account(args.connect.server.as_deref(), APP, name, files)
}

/// Searches until a match is found.
///
/// # Errors
/// Why the search is over.
pub(crate) fn find(
    account: &Account,
    queue: &str,
    max_players: u16,
    stop: &AtomicBool,
) -> anyhow::Result<Lead> {
    let mut search = account.find_match(queue).players(2, max_players).start();
    loop {
        while let Some(event) = search.poll() {
            match event {
                SearchEvent::Waiting => tell(&format!("searching others in the queue {queue}")),
                SearchEvent::Confirm(_) => search.accept(),
                SearchEvent::Open(_) => return Ok(Lead::Open(OpenRoom { search, is_said: false })),
                SearchEvent::Found(found) => {
                    tell(&names(&found));
                    return Ok(Lead::Join(found.room.code));
                }
                SearchEvent::Refused(error) => bail!("{error}"),
                SearchEvent::Ended(SearchEnded::Failed(error)) => return Err(error.into()),
                SearchEvent::Ended(why) => bail!("the search is over: {why:?}"),
                _ => {}
            }
        }
        if stop.load(Ordering::Relaxed) {
            bail!("nobody was found until now");
        }
        std::thread::sleep(REST);
    }
}

/// A line on standard error: standard output is for reports.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn names(found: &MatchFound) -> String {
    let names: Vec<&str> = found.teams.iter().flatten().map(|player| player.name.as_str()).collect();
    format!("found: {}", names.join(", "))
}
