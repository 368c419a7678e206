//! The output of a program run with `--events`: a member's events, and its status twice a second.

use serde_json::Value;

/// The lines so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Vec<Value>,
}

impl Log {
    /// Adds a line. Lines that are not JSON objects are ignored.
    pub(crate) fn push(&mut self, line: &str) {
        self.lines.extend(serde_json::from_str(line).ok().filter(Value::is_object));
    }

    /// Number of lines: later lines are read with [since](Log::since).
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// All events with this name.
    pub(crate) fn all<'a>(&'a self, event: &'a str) -> impl Iterator<Item = &'a Value> {
        self.since(0, event)
    }

    /// Events with this name at or after a line.
    pub(crate) fn since<'a>(&'a self, line: usize, event: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().skip(line).filter(move |line| line["event"] == event)
    }

    /// The last status.
    pub(crate) fn status(&self) -> Option<&Value> {
        self.lines.iter().rfind(|line| line["event"] == "status")
    }

    /// A counter in the last status, such as `/updates_decoded`; 0 before the first status.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        self.status().and_then(|status| status.pointer(pointer)?.as_u64()).unwrap_or(0)
    }

    /// The longest times without an update since a line, in milliseconds: one per status, in descending
    /// order.
    pub(crate) fn gaps_ms(&self, since: usize) -> Vec<f64> {
        let gaps = self.since(since, "status").filter_map(|status| status["gap_ms_max"].as_f64());
        let mut gaps: Vec<f64> = gaps.collect();
        gaps.sort_by(|one, other| other.total_cmp(one));
        gaps
    }

    /// Whether there is a status since a line and all of them show this path.
    pub(crate) fn keeps_path(&self, since: usize, path: &str) -> bool {
        let mut paths = self.since(since, "status").map(|status| status["transport_path"] == path).peekable();
        paths.peek().is_some() && paths.all(|is_it| is_it)
    }

    /// The member's present id.
    pub(crate) fn member(&self) -> Option<u64> {
        self.all("player_joined").filter(|line| line["is_me"] == true).last()?["player"].as_u64()
    }

    /// Numbers that were lost or duplicated, summed over all senders.
    pub(crate) fn unheard(&self) -> u64 {
        let heard = self.status().and_then(|status| status["heard"].as_object());
        let count = |one: &Value| {
            ["missing", "out_of_order"].iter().filter_map(|key| one[*key].as_u64()).sum::<u64>()
        };
        heard.map_or(0, |heard| heard.values().map(count).sum())
    }

    /// Events of trouble with the connection.
    pub(crate) fn troubles(&self, since: usize) -> Vec<&Value> {
        const TROUBLES: [&str; 7] = [
            "connection_lost",
            "reconnecting",
            "reconnected",
            "player_lost",
            "player_back",
            "player_left",
            "closed",
        ];
        let is_trouble =
            |line: &&Value| line["event"].as_str().is_some_and(|event| TROUBLES.contains(&event));
        self.lines.iter().skip(since).filter(is_trouble).collect()
    }

    /// The last lines, for diagnosing a failure.
    pub(crate) fn tail(&self) -> String {
        let from = self.lines.len().saturating_sub(6);
        self.lines[from..].iter().map(|line| format!("\n      {line}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let mut log = Log::default();
        for line in [
            "room K7QM",
            r#"{"event":"player_joined","player":3,"is_me":true}"#,
            r#"{"event":"status","updates_decoded":7,"gap_ms_max":90.5,"heard":{"0":{"missing":2,"out_of_order":1}}}"#,
            r#"{"event":"host_migration","new":3,"is_me":true}"#,
            r#"{"event":"connection_lost"}"#,
            r#"{"event":"status","updates_decoded":9,"gap_ms_max":40.0,"heard":{"0":{"last":5}}}"#,
        ] {
            log.push(line);
        }
        assert_eq!((log.len(), log.member(), log.count("/updates_decoded")), (5, Some(3), 9));
        assert_eq!(
            (log.gaps_ms(0), log.gaps_ms(3), log.troubles(0).len(), log.troubles(4).len()),
            (vec![90.5, 40.0], vec![40.0], 1, 0)
        );
        assert_eq!((log.count("/heard/0/last"), log.count("/heard/1/last"), log.unheard()), (5, 0, 0));
        log.push(r#"{"event":"status","heard":{"0":{"missing":2,"out_of_order":1},"4":{"missing":1}}}"#);
        assert_eq!(log.unheard(), 4);
        for path in ["relay_room", "direct_udp", "direct_udp"] {
            log.push(&format!(r#"{{"event":"status","transport_path":"{path}"}}"#));
        }
        assert!(log.keeps_path(7, "direct_udp") && !log.keeps_path(6, "direct_udp"));
        assert!(!log.keeps_path(9, "direct_udp"), "nothing was printed since");
    }
}
