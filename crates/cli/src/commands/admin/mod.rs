//! `parlor admin`: what whoever runs a server does with its accounts and turn rooms, over the server's own operations.

pub(crate) mod args;

use super::say;
use crate::services;
use anyhow::{Context, bail};
use args::{AdminArgs, Task};
use core::fmt::Write;
use parlor::net::{self, Request};
use parlor_server::admission::SigningKey;
use parlor_server::online::{ENVIRONMENT, operator_token};
use parlor_server::store::Role;
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
    let server = Server::new(args)?;
    match &args.what {
        Task::Rooms => server.list("/admin/rooms", "rooms", room_line),
        Task::Bans => server.list("/admin/bans", "bans", ban_line),
        Task::Room { room } => {
            server.show(&server.get(&format!("/rooms/{}", word(room)?))?["room"], room_text)
        }
        Task::End { room, reason } => {
            let body = json!({ "reason": reason });
            server.done(&server.post(&format!("/rooms/{}/end", word(room)?), &body)?)
        }
        Task::Kick { room, player, reason } => {
            let body = json!({ "player": player, "reason": reason });
            server.done(&server.post(&format!("/rooms/{}/kick", word(room)?), &body)?)
        }
        Task::Ban { account, reason, hours } => {
            let for_s = hours.map(|hours| hours * 3_600);
            server.done(
                &server
                    .post("/admin/bans", &json!({ "account": account, "reason": reason, "for_s": for_s }))?,
            )
        }
        Task::Lift { account } => {
            server.done(&server.post("/admin/bans/lift", &json!({ "account": account }))?)
        }
        Task::Status => server.show(&server.get("/admin/status")?, fields),
        Task::Backup => server.show(&server.post("/admin/backup", &json!({}))?, fields),
    }
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
            // A list of bans says where it goes on by its last entry alone.
            let last = entries.last().and_then(|entry| entry["account"].as_str());
            next = part["next"].as_str().or(last).map(str::to_owned);
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

/// What the server answers, once it does; its refusal is an error.
fn answer(mut request: Request) -> anyhow::Result<Value> {
    let response = loop {
        match request.poll_response() {
            Some(response) => break response?,
            None => std::thread::sleep(NAP),
        }
    };
    let said: Value = serde_json::from_slice(&response.body)
        .with_context(|| format!("the server answers {} and no JSON", response.head.status))?;
    if response.head.is_success() {
        return Ok(said);
    }
    let error = &said["error"];
    let (code, sentence) = (error["code"].as_str(), error["sentence"].as_str());
    bail!("{} ({})", sentence.unwrap_or("the server refuses"), code.unwrap_or("without a code"))
}

/// An id as it stands in a path: what needs escaping there is no id.
fn word(id: &str) -> anyhow::Result<&str> {
    let is_word =
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_word { Ok(id) } else { bail!("{id:?} is no id: `parlor admin rooms` lists them") }
}

/// Text without the quotes of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn room_line(room: &Value) -> String {
    let [id, game, phase, seated, seats, name] =
        ["id", "game", "phase", "player_count", "max_players", "name"].map(|field| plain(&room[field]));
    format!("{id}  {game}  {phase}  {seated} of {seats}  {name}")
}

fn ban_line(ban: &Value) -> String {
    let [account, by, reason] = ["account", "by", "reason"].map(|field| plain(&ban[field]));
    let until = ban["until_ms"].as_u64().map_or_else(|| "for ever".to_owned(), |ms| format!("until {ms} ms"));
    format!("{account}  {until}  by {by}: {reason}")
}

fn room_text(room: &Value) -> String {
    let mut text = String::new();
    for field in ["id", "code", "game", "name", "phase", "version", "host", "current_player"] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{field}: {}", plain(&room[field]));
    }
    for player in room["players"].as_array().into_iter().flatten() {
        let [id, name, status] = ["id", "name", "status"].map(|field| plain(&player[field]));
        let _ = writeln!(text, "player {id}  {name}  {status}");
    }
    text.trim_end().to_owned()
}

fn fields(answer: &Value) -> String {
    let fields = answer.as_object().into_iter().flatten();
    fields.map(|(name, value)| format!("{name}: {}", plain(value))).collect::<Vec<_>>().join("\n")
}
