//! `parlor match --list` and `--log`: open matches, and the log of a kept one.

use crate::services::wait;
use crate::typed::shown;
use parlor::online::{Account, Happened, KeptMatch, LiveMatch, LogEntry, MatchFilter};
use parlor_terminal::print::say;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Prints the matches that can be joined.
///
/// # Errors
/// Why the server did not say.
pub(super) fn list(account: &Account, label: &str, stop: &AtomicBool) -> anyhow::Result<()> {
    let label = Some(label.to_owned()).filter(|label| !label.is_empty());
    let filter = MatchFilter { label, ..MatchFilter::default() };
    let (mut after, mut count) = (None, 0);
    loop {
        let part = wait(account.matches(&filter, after.as_deref()), stop)?;
        count += part.items.len();
        part.items.iter().for_each(|live| say(&line(live)));
        after = part.next;
        if after.is_none() {
            break;
        }
    }
    if count == 0 {
        say("there is no match to join; `parlor match` opens one");
    }
    Ok(())
}

fn line(live: &LiveMatch) -> String {
    let LiveMatch { id, label, members, max_members, .. } = live;
    format!("{}  {members} of {max_members}  {}", shown(id), shown(label)).trim_end().to_owned()
}

/// Prints what happened in a match that was kept.
///
/// # Errors
/// Why the server did not say.
pub(super) fn log(account: &Account, id: &str, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut from = 0;
    let mut names = BTreeMap::new();
    loop {
        let part = wait(account.match_log(id.trim(), from), stop)?;
        let opened_ms = part.of.opened_at_ms;
        part.entries.iter().for_each(|entry| say(&told(entry, opened_ms, &mut names)));
        let Some(next) = part.next else {
            say(&ending(&part.of));
            return Ok(());
        };
        from = next;
    }
}

/// How a match ended, as the last line of its log.
fn ending(of: &KeptMatch) -> String {
    let after_ms = of.ended_at_ms.unwrap_or_default().saturating_sub(of.opened_at_ms);
    let after = format!("after {}.{:03} s", after_ms / 1_000, after_ms % 1_000);
    let how = match of.ending.as_deref() {
        None => "the match goes on".to_owned(),
        Some("ended") => format!("the match ended {after}"),
        Some("server_ended") => {
            format!("the match ended with its server, {after} or later: its newest moments may be missing")
        }
        Some(other) => format!("the match ended {after} ({})", shown(other)),
    };
    let cut = of.cut.as_deref().map(|why| format!("; its log ends before ({})", shown(why)));
    how + cut.as_deref().unwrap_or_default()
}

/// An entry as a line; `names` has those of who joined before.
fn told(entry: &LogEntry, opened_ms: u64, names: &mut BTreeMap<u32, String>) -> String {
    let since_ms = entry.at_ms.saturating_sub(opened_ms);
    let what = match &entry.what {
        Happened::Opened { label, members_max } if label.is_empty() => {
            format!("opened, for {members_max} at most")
        }
        Happened::Opened { label, members_max } => {
            format!("opened as {}, for {members_max} at most", shown(label))
        }
        Happened::Joined { member, name, user } => {
            names.insert(*member, shown(name));
            let user = user.iter().map(|user| format!(" [{}]", shown(user))).collect::<String>();
            format!("{}{user} joined as member {member}", shown(name))
        }
        Happened::Left { member, why, reason } => {
            let reason = reason.iter().map(|reason| format!(": {}", shown(reason))).collect::<String>();
            format!("{} is gone ({}){reason}", named(names, *member), shown(&why.replace('_', " ")))
        }
        Happened::Data { order, from, op, to, payload } => {
            let to: Vec<String> = to.iter().map(|member| named(names, *member)).collect();
            let to = if to.is_empty() { "nobody".to_owned() } else { to.join(", ") };
            let text = shown(&String::from_utf8_lossy(payload));
            format!("data {order} (op {op}) from {} to {to}: {text}", named(names, *from))
        }
        Happened::Ended => "ended".to_owned(),
        Happened::Cut { why } => format!("the log ends here ({}); the match went on", shown(why)),
        _ => "something that this version does not know".to_owned(),
    };
    format!("{} {}.{:03} s  {what}", entry.number, since_ms / 1_000, since_ms % 1_000)
}

fn named(names: &BTreeMap<u32, String>, member: u32) -> String {
    names.get(&member).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("member {member}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_reads_like_a_story() {
        let mut names = BTreeMap::new();
        let mut line = |number: u64, what: Happened| {
            told(&LogEntry { number, at_ms: 5_000 + number * 1_250, what }, 5_000, &mut names)
        };
        let opened = Happened::Opened { label: "casual".into(), members_max: 16 };
        assert_eq!(line(0, opened), "0 0.000 s  opened as casual, for 16 at most");
        let joined = Happened::Joined { member: 0, name: "ada".into(), user: Some("a-1".into()) };
        assert_eq!(line(1, joined), "1 1.250 s  ada [a-1] joined as member 0");
        let payload = "hi\u{1b}[2J".as_bytes().into();
        let data = line(2, Happened::Data { order: 0, from: 0, op: 1, to: vec![3], payload });
        assert!(data.starts_with("2 2.500 s  data 0 (op 1) from ada to member 3: hi"), "{data}");
        assert!(!data.contains('\u{1b}'), "what was sent cannot steer the terminal: {data:?}");
        let left = Happened::Left { member: 0, why: "timed_out".into(), reason: None };
        assert_eq!(line(3, left), "3 3.750 s  ada is gone (timed out)");
    }

    #[test]
    fn a_log_says_at_its_end_how_the_match_ended() {
        let of = |ending: Option<&str>, cut: Option<&str>| {
            ending_of(ending.map(str::to_owned), cut.map(str::to_owned))
        };
        assert_eq!(of(None, None), "the match goes on");
        assert_eq!(of(Some("ended"), None), "the match ended after 12.345 s");
        assert_eq!(
            of(Some("ended"), Some("full")),
            "the match ended after 12.345 s; its log ends before (full)"
        );
        assert!(of(Some("server_ended"), None).contains("newest moments may be missing"));
        assert_eq!(of(Some("later\u{1b}"), None).matches('\u{1b}').count(), 0);
    }

    fn ending_of(how: Option<String>, cut: Option<String>) -> String {
        let ended_at_ms = how.as_ref().map(|_| 17_345);
        ending(&KeptMatch {
            id: "1".into(),
            label: "casual".into(),
            opened_at_ms: 5_000,
            ended_at_ms,
            ending: how,
            entries: 3,
            bytes: 99,
            cut,
        })
    }
}
