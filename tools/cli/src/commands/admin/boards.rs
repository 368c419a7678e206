//! `parlor admin boards`: definitions from a file.

use super::Server;
use anyhow::Context;
use parlor_terminal::print::say;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The file. The server checks each definition.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    board: BTreeMap<String, Map<String, Value>>,
}

/// Defines all boards of a file.
///
/// # Errors
/// The file cannot be read, or the first definition that the server refuses; those before it are defined.
pub(super) fn define(server: &Server, file: &Path) -> anyhow::Result<()> {
    let shown = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("{shown} cannot be read"))?;
    let file: File = toml::from_str(&text).with_context(|| format!("{shown} defines no boards"))?;
    for (board, definition) in file.board {
        let body = json!({ "board": board, "definition": definition });
        let answer = server.post("/admin/boards", &body).with_context(|| format!("the board {board}"))?;
        if server.is_json {
            say(&answer.to_string());
        } else {
            say(&format!("{board}: version {}", answer["version"]));
        }
    }
    Ok(())
}
