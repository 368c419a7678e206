//! What was found: a line for each check, and below it what to do.

use anyhow::bail;
use parlor_terminal::print::{print_json, say};
use serde::Serialize;
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    /// Players may notice it, or it becomes a problem.
    Warning,
    /// A server does not start, or players do not get in.
    Problem,
    NotLookedAt,
}

#[derive(Debug, Serialize)]
struct Check {
    check: String,
    verdict: Verdict,
    found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    todo: Option<String>,
}

/// The checks so far. As text each is printed at once, because some take seconds.
#[derive(Debug)]
pub(super) struct Findings {
    is_json: bool,
    checks: Vec<Check>,
}

impl Findings {
    pub(super) fn new(is_json: bool) -> Self {
        Findings { is_json, checks: Vec::new() }
    }

    pub(super) fn ok(&mut self, check: &str, found: impl Into<String>) {
        self.add(Verdict::Ok, check, found.into(), None);
    }

    pub(super) fn warning(&mut self, check: &str, found: impl Into<String>, todo: impl Into<String>) {
        self.add(Verdict::Warning, check, found.into(), Some(todo.into()));
    }

    pub(super) fn problem(&mut self, check: &str, found: impl Into<String>, todo: impl Into<String>) {
        self.add(Verdict::Problem, check, found.into(), Some(todo.into()));
    }

    /// For a check that this machine or these settings do not allow.
    pub(super) fn not_looked_at(&mut self, check: &str, why: impl Into<String>) {
        self.add(Verdict::NotLookedAt, check, why.into(), None);
    }

    fn add(&mut self, verdict: Verdict, check: &str, found: String, todo: Option<String>) {
        if !self.is_json {
            let (word, lead) = match verdict {
                Verdict::Ok => ("ok", ""),
                Verdict::Warning => ("warning", ""),
                Verdict::Problem => ("problem", ""),
                Verdict::NotLookedAt => ("-", "not looked at: "),
            };
            say(&format!("{word:<8} {check:<12} {lead}{}", plain(&found)));
            if let Some(todo) = &todo {
                say(&format!("{:<21} -> {}", "", plain(todo)));
            }
        }
        self.checks.push(Check { check: check.to_owned(), verdict, found, todo });
    }

    /// Prints the rest.
    ///
    /// # Errors
    /// There are problems.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let count = |verdict| self.checks.iter().filter(|check| check.verdict == verdict).count();
        let (problems, warnings) = (count(Verdict::Problem), count(Verdict::Warning));
        if self.is_json {
            print_json(
                &json!({ "command": "doctor", "problems": problems, "warnings": warnings, "checks": self.checks }),
            )?;
        }
        match problems {
            0 => Ok(()),
            1 => bail!("1 check found a problem"),
            more => bail!("{more} checks found a problem"),
        }
    }

    /// The last check in one line.
    #[cfg(test)]
    pub(super) fn last(&self) -> String {
        let last = self.checks.last().expect("something was looked at");
        let Check { check, verdict, found, todo } = last;
        format!("{verdict:?} {check}: {found}{}", todo.as_deref().unwrap_or_default())
    }
}

/// Text without what a terminal obeys. Some is of another machine, which may pass its lines off as ours.
fn plain(text: &str) -> String {
    text.chars().fold(String::new(), |mut plain, letter| {
        match letter {
            '\n' => plain.push_str("\n                      "),
            letter if letter.is_control() => plain.push('\u{fffd}'),
            letter => plain.push(letter),
        }
        plain
    })
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn no_text_of_another_machine_forges_a_line() {
        let text = plain("1\u{1b}[2J\nok       ready");
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("     ")), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
