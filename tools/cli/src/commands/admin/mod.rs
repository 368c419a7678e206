//! `parlor admin`: operators' commands for accounts and turn rooms, over the server's own operations; and
//! restoring a backup, which needs no server.

mod define;
mod text;

use crate::args::admin::{AdminArgs, RestoreArgs, Task};
use crate::services;
use anyhow::{Context, bail};
use core::fmt;
use parlor::net::{self, Request};
use parlor_proto::RoomCode;
use parlor_server::admission::SigningKey;
use parlor_server::realm::ENVIRONMENT;
use parlor_services::operator_token;
use parlor_services::store::{Role, restore};
use parlor_terminal::print::say;
use parlor_transport::discovery::ServerAddress;
use serde_json::{Value, json};
use std::time::Duration;

/// How long it rests between two looks at whether the server has answered.
const NAP: Duration = Duration::from_millis(5);
/// Parts of a list that are asked for: a list that does not end is one of another kind of server.
const PARTS_MAX: usize = 10_000;

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or what the server said.
pub(crate) fn run(args: &AdminArgs) -> anyhow::Result<()> {
    // It is done where no server runs.
    if let Task::Restore(task) = &args.what {
        return put_back(task, args.json);
    }
    let server = Server::new(args)?;
    match &args.what {
        Task::Rooms => {
            server.list("/admin/live", "rooms", text::room_line)?;
            server.list("/admin/rooms", "rooms", text::room_line)
        }
        Task::Room { room } => match server.live(room, "", None)? {
            Some(answer) => server.show(&answer, text::live_room),
            None => server.show(&server.get(&format!("/rooms/{}", word(room)?))?["room"], text::turn_room),
        },
        Task::End { room, reason } => {
            let body = json!({ "reason": reason });
            match server.live(room, "/end", Some(&body))? {
                Some(answer) => server.done(&answer),
                None => server.done(&server.post(&format!("/rooms/{}/end", word(room)?), &body)?),
            }
        }
        Task::Kick { room, player, reason } => {
            let body = json!({ "reason": reason });
            match server.live(room, &format!("/members/{}/remove", word(player)?), Some(&body))? {
                Some(answer) => server.done(&answer),
                None => {
                    let body = json!({ "player": player, "reason": reason });
                    server.done(&server.post(&format!("/rooms/{}/kick", word(room)?), &body)?)
                }
            }
        }
        Task::Ban { account, operator, reason, scores, hours } => {
            let for_s = hours.map(|hours| hours * 3_600);
            let body = json!({
                "account": account, "operator": operator, "reason": reason, "for_s": for_s, "scores": scores,
            });
            server.done(&server.post("/admin/bans", &body)?)
        }
        Task::Lift { account } => {
            server.done(&server.post("/admin/bans/lift", &json!({ "account": account }))?)
        }
        Task::Bans => server.list("/admin/bans", "bans", text::ban_line),
        Task::Define { file } => define::define(&server, file),
        Task::Undefine { kind, name } => {
            server.done(&server.post("/admin/definitions/delete", &json!({ "kind": kind, "name": name }))?)
        }
        Task::DeleteBoard { board } => {
            server.done(&server.post("/admin/boards/delete", &json!({ "board": board }))?)
        }
        Task::Nodes => server.show(&server.get("/admin/nodes")?, text::nodes),
        Task::Drain { node } => {
            server.done(&server.post(&format!("/admin/nodes/{}/drain", word(node)?), &json!({}))?)
        }
        Task::Undrain { node } => {
            server.done(&server.post(&format!("/admin/nodes/{}/undrain", word(node)?), &json!({}))?)
        }
        Task::Move { room, to } => {
            let path = format!("/admin/live/{}/move", word(room)?);
            server.show(&server.post(&path, &json!({ "to": to }))?, text::fields)
        }
        Task::Where { room } => {
            server.show(&server.get(&format!("/admin/where/{}", word(room)?))?, text::fields)
        }
        Task::Status => server.show(&server.get("/admin/status")?, text::fields),
        Task::Backup => server.show(&server.post("/admin/backup", &json!({}))?, text::fields),
        Task::Restore(_) => Ok(()),
    }
}

/// Puts a backup in the place of a store.
fn put_back(task: &RestoreArgs, is_json: bool) -> anyhow::Result<()> {
    let store = match (&task.data, &task.store) {
        (_, Some(store)) => store.clone(),
        (Some(folder), None) => services::store_in(folder)?,
        (None, None) => bail!("name the store: --data FOLDER as the server has it, or --store FILE"),
    };
    let done = restore(&store, &task.backup)?;
    let kept = done.kept.as_ref().map(|path| path.display().to_string());
    let facts = json!({
        "store": done.store.display().to_string(),
        "accounts": done.facts.accounts,
        "turn_rooms": done.facts.rooms,
        "replaced": kept,
    });
    if is_json {
        say(&facts.to_string());
        return Ok(());
    }
    say(&format!(
        "{} is the backup: {} accounts, {} turn rooms",
        done.store.display(),
        done.facts.accounts,
        done.facts.rooms
    ));
    if let Some(kept) = kept {
        say(&format!("the store that was there is kept as {kept}: delete it once it is needed no more"));
    }
    Ok(())
}

/// A server's operations, for its operator.
struct Server {
    url: String,
    options: net::Options,
    is_json: bool,
}

impl Server {
    fn new(args: &AdminArgs) -> anyhow::Result<Self> {
        let (Some(key), Some(app)) = (&args.key, &args.app) else {
            bail!("an operator needs --key FILE and --app APP: `parlor token --new-key FILE` makes a key");
        };
        let named = services::server(args.server.as_deref())?;
        let address: ServerAddress = named.parse().with_context(|| format!("--server is {named:?}"))?;
        let environment = args.environment.as_deref().unwrap_or(ENVIRONMENT);
        let token = operator_token(&SigningKey::read(key)?, Role::Admin, &args.by, app, environment);
        let trust = services::trust(&address, args.ca.as_deref())?;
        let options = net::Options::default().header("Authorization", &format!("Bearer {token}"));
        let url = format!("{}/v1", address.url("http", trust.is_some()));
        let options = trust.into_iter().fold(options, net::Options::trust);
        Ok(Server { url, options, is_json: args.json })
    }

    /// What the server answers about a room in memory; nothing if none has this for its code.
    fn live(&self, room: &str, rest: &str, body: Option<&Value>) -> anyhow::Result<Option<Value>> {
        let Ok(code) = room.parse::<RoomCode>() else { return Ok(None) };
        let path = format!("/admin/live/{code}{rest}");
        let answer = match body {
            Some(body) => self.post(&path, body),
            None => self.get(&path),
        };
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.downcast_ref().is_some_and(Refused::is_no_such_room) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn get(&self, path: &str) -> anyhow::Result<Value> {
        answer(self.options.clone().get(&format!("{}{path}", self.url)))
    }

    fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let options = self.options.clone().header("Content-Type", "application/json");
        answer(options.post(&format!("{}{path}", self.url), body.to_string()))
    }

    /// Prints all parts of a list, a line for each of its entries.
    fn list(&self, path: &str, name: &str, line: fn(&Value) -> String) -> anyhow::Result<()> {
        let mut next: Option<String> = None;
        for _ in 0..PARTS_MAX {
            let after = next.take().map(|after| format!("?after={after}")).unwrap_or_default();
            let part = self.get(&format!("{path}{after}"))?;
            let entries = part[name].as_array().context("the server's answer has no list")?;
            if self.is_json {
                say(&part.to_string());
            } else {
                entries.iter().for_each(|entry| say(&line(entry)));
            }
            next = part["next"].as_str().map(str::to_owned);
            if next.is_none() {
                return Ok(());
            }
        }
        bail!("the list does not end")
    }

    fn show(&self, answer: &Value, text: fn(&Value) -> String) -> anyhow::Result<()> {
        say(&if self.is_json { answer.to_string() } else { text(answer) });
        Ok(())
    }

    fn done(&self, answer: &Value) -> anyhow::Result<()> {
        self.show(answer, |_| "done".to_owned())
    }
}

/// A server's refusal.
#[derive(Debug)]
struct Refused {
    code: String,
    sentence: String,
}

impl Refused {
    fn is_no_such_room(&self) -> bool {
        self.code == "no_such_room"
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.sentence, self.code)
    }
}

impl std::error::Error for Refused {}

/// What the server answers, once it does; its refusal is an error.
fn answer(mut request: Request) -> anyhow::Result<Value> {
    let response = loop {
        match request.poll_response() {
            Some(response) => break response?,
            None => std::thread::sleep(NAP),
        }
    };
    let status = response.head.status;
    let said: Value = serde_json::from_slice(&response.body).with_context(|| match status {
        404 => {
            "this server has no services for operators: start it with --data FOLDER or --store URL".to_owned()
        }
        _ => format!("the server answers {status} and no JSON"),
    })?;
    if response.head.is_success() {
        return Ok(said);
    }
    let of = |field: &str, otherwise: &str| match &said["error"][field] {
        Value::Null => otherwise.to_owned(),
        value => text::plain(value),
    };
    bail!(Refused { code: of("code", "without a code"), sentence: of("sentence", "the server refuses") })
}

/// An id within a path; text that needs escaping is no id.
fn word(id: &str) -> anyhow::Result<&str> {
    let is_word =
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_word { Ok(id) } else { bail!("{id:?} is no id: `parlor admin rooms` lists them") }
}
