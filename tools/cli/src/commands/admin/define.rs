//! `parlor admin define`: definitions from a file.

use super::Server;
use anyhow::Context;
use parlor_terminal::print::say;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

type Definitions = BTreeMap<String, Map<String, Value>>;

/// The file. The server checks each definition.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    board: Definitions,
    statistic: Definitions,
    achievement: Definitions,
    ladder: Definitions,
    queue: Definitions,
}

/// Defines all that a file has: what others refer to comes first.
///
/// # Errors
/// The file cannot be read, or the first definition that the server refuses; those before it are defined.
pub(super) fn define(server: &Server, file: &Path) -> anyhow::Result<()> {
    let shown = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("{shown} cannot be read"))?;
    let File { board, statistic, achievement, ladder, queue } =
        toml::from_str(&text).with_context(|| format!("{shown} defines nothing"))?;
    let all = [
        ("board", board),
        ("statistic", statistic),
        ("achievement", achievement),
        ("ladder", ladder),
        ("queue", queue),
    ];
    for (kind, definitions) in all {
        for (name, definition) in definitions {
            let (path, body) = match kind {
                "board" => ("/admin/boards", json!({ "board": name, "definition": definition })),
                _ => {
                    let body = json!({ "kind": kind, "name": name, "definition": definition });
                    ("/admin/definitions", body)
                }
            };
            let answer = server.post(path, &body).with_context(|| format!("the {kind} {name}"))?;
            if server.is_json {
                say(&answer.to_string());
            } else {
                say(&format!("{kind} {name}: version {}", answer["version"]));
            }
        }
    }
    Ok(())
}
