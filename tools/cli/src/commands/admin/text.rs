//! A server's answers as text for operators. Names and reasons come from players, so control characters are
//! escaped.

use core::fmt::Write;
use serde_json::Value;

/// A room of either kind, in a line of a list.
pub(super) fn room_line(room: &Value) -> String {
    let field = |name: &str| plain(&room[name]);
    if room["id"].is_null() {
        let [code, kind, app, members, seats] = ["code", "kind", "app", "members", "max_players"].map(field);
        let away = room["away"].as_u64().filter(|away| *away > 0);
        let away = away.map(|away| format!(", {away} away")).unwrap_or_default();
        return format!("{code}  live  {app}  {kind}  {members} of {seats}{away}");
    }
    let [id, game, phase, seated, seats, name] =
        ["id", "game", "phase", "player_count", "max_players", "name"].map(field);
    format!("{id}  turn  {game}  {phase}  {seated} of {seats}  {name}")
}

pub(super) fn ban_line(ban: &Value) -> String {
    let [account, by, reason] = ["account", "by", "reason"].map(|field| plain(&ban[field]));
    let until = ban["until_ms"].as_u64().map_or_else(|| "for ever".to_owned(), |ms| format!("until {ms} ms"));
    format!("{account}  {until}  by {by}: {reason}")
}

/// A turn room and its players.
pub(super) fn turn_room(room: &Value) -> String {
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

/// A room in memory and its members.
pub(super) fn live_room(answer: &Value) -> String {
    let mut text = fields(&answer["room"]);
    for member in answer["members"].as_array().into_iter().flatten() {
        let [id, name, link] = ["id", "name", "link"].map(|field| plain(&member[field]));
        let user =
            member["user"].as_str().map(|_| format!("  as {}", plain(&member["user"]))).unwrap_or_default();
        let rtt = member["rtt_ms"].as_u64().map(|ms| format!("  {ms} ms")).unwrap_or_default();
        let is = |field: &str, word: &'static str| if member[field] == true { word } else { "" };
        let away = if member["connected"] == false { "  away" } else { "" };
        let _ = write!(text, "\nmember {id}  {name}{user}  {link}{rtt}{away}{}", is("is_host", "  host"));
    }
    text
}

/// Nodes, one on a line.
pub(super) fn nodes(answer: &Value) -> String {
    let mut text = format!("answered by {}, which is {}", plain(&answer["node"]), plain(&answer["standing"]));
    for node in answer["nodes"].as_array().into_iter().flatten() {
        let [id, state, address, build] =
            ["id", "state", "address", "build"].map(|field| plain(&node[field]));
        let [lease_ms, rooms, connections, load] = ["lease_ms", "rooms", "connections", "load_permille"]
            .map(|field| node[field].as_u64().unwrap_or_default());
        let _ = write!(
            text,
            "\n{id}  {state}  lease {lease_ms} ms  {rooms} rooms  {connections} connections  load {}.{} %  {address}  {build}",
            load / 10,
            load % 10
        );
    }
    text
}

/// All fields of an answer, one on a line.
pub(super) fn fields(answer: &Value) -> String {
    let fields = answer.as_object().into_iter().flatten();
    fields.map(|(name, value)| format!("{name}: {}", plain(value))).collect::<Vec<_>>().join("\n")
}

/// Text without the quotes of JSON, and without anything that a terminal would obey.
pub(super) fn plain(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars().fold(String::new(), |mut text, letter| {
        if letter.is_control() {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_forges_no_line_and_steers_no_terminal() {
        let room = json!({ "room": { "code": "K7QM" }, "members": [
            { "id": 1, "name": "ada\nmember 0  root\u{1b}[2J\u{9b}31m", "user": "p1\n", "link": "quic", "connected": true, "is_host": false }
        ] });
        let text = live_room(&room);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("  as p1\\n  quic"), "{text}");
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
    }
}
